//! gzip and zstd, recognised by their first bytes.

use std::io::{self, Cursor, Read};

use anyhow::{Context as _, Result};

/// Puts the decoder in front that the first bytes call for.
pub(super) fn decompress(mut raw: impl Read + 'static) -> Result<Box<dyn Read>> {
    const GZIP: &[u8] = &[0x1f, 0x8b];
    const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
    // Parallel compressors of zstd begin with a frame that decoders skip: one of sixteen numbers, with anything in it.
    let skippable = std::array::from_fn::<_, 16, _>(|i| [0x50 + i as u8, 0x2a, 0x4d, 0x18]);
    let mut marks = vec![GZIP, ZSTD];
    marks.extend(skippable.iter().map(<[u8; 4]>::as_slice));
    let first = peek(&mut raw, &marks)?;
    let found = first.clone();
    let is_zstd = found.starts_with(ZSTD) || skippable.iter().any(|mark| found.starts_with(mark));
    let input = Cursor::new(first).chain(raw);
    if found.starts_with(GZIP) {
        Ok(Box::new(flate2::read::MultiGzDecoder::new(input)))
    } else if is_zstd {
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
