//! gzip and zstd, recognised by their first bytes.

use std::io::{self, Cursor, Read};

use anyhow::{Context as _, Result};

/// Puts the decoder in front that the first bytes call for.
pub(super) fn decompress(mut raw: impl Read + 'static) -> Result<Box<dyn Read>> {
    const GZIP: &[u8] = &[0x1f, 0x8b];
    const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
    let first = peek(&mut raw, &[GZIP, ZSTD])?;
    let found = first.clone();
    let input = Cursor::new(first).chain(raw);
    if found.starts_with(GZIP) {
        Ok(Box::new(flate2::read::MultiGzDecoder::new(input)))
    } else if found.starts_with(ZSTD) {
        Ok(Box::new(zstd::Decoder::new(input).context("zstd")?))
    } else {
        Ok(Box::new(input))
    }
}

/// The first bytes, only as many as it takes to tell whether the input begins with one of `marks`: a person
/// typing at a terminal should not have to type four.
pub(super) fn peek(input: &mut impl Read, marks: &[&[u8]]) -> Result<Vec<u8>> {
    let max = marks.iter().map(|mark| mark.len()).max().unwrap_or(0);
    let mut first = vec![0; max];
    let mut got = 0;
    let undecided =
        |first: &[u8]| marks.iter().any(|mark| mark.len() > first.len() && mark.starts_with(first));
    while undecided(&first[..got]) {
        match input.read(&mut first[got..]) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    first.truncate(got);
    Ok(first)
}
