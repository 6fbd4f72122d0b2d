//! Parts of a Snappy page, without the rest.
//!
//! ```text
//!  page of pyarrow or DuckDB      header │ length │ elements of bytes 0..64 Ki │ of 64 Ki..128 Ki │ …
//!  pieces                         └───────────── piece 0 ───────────────┘└─ piece 1 ───┘
//! ```
//!
//! Snappy compressors cut their input into independent blocks of 64 KiB, although the format does not require it and
//! does not say where one starts. One pass over a page can record that, and make sure that no copy reaches from one
//! block into another. After that a block of rows costs one or two pieces of a page that has sixteen.
//!
//! An element is a tag and its bytes. The low two bits of the tag say what follows:
//!
//! ```text
//!  0  literal   length - 1 in the upper six bits; 60 to 63: in the next 1 to 4 bytes; then the bytes themselves
//!  1  copy      4 + three bits of length; offset of 11 bits: three of the tag, and a byte
//!  2  copy      1 + six bits of length; offset of two bytes
//!  3  copy      1 + six bits of length; offset of four bytes
//! ```
//!
//! Reference: format_description.txt of google/snappy.

/// Decompressed size of every piece except the last, in bytes.
pub(super) const PIECE_BYTES: usize = 1 << 16;

/// One step of decompression.
enum Element<'a> {
    Literal(&'a [u8]),
    Copy { offset: usize, length: usize },
}

/// Takes the next element off the input; `None` if it is truncated or invalid.
#[inline]
fn next_element<'a>(input: &mut &'a [u8]) -> Option<Element<'a>> {
    let (&tag, mut rest) = input.split_first()?;
    let upper = usize::from(tag >> 2);
    let element = match tag & 3 {
        0 => {
            let length = match upper.checked_sub(59) {
                None | Some(0) => upper + 1,
                Some(bytes) => little_endian(&mut rest, bytes)?.checked_add(1)?,
            };
            Element::Literal(take(&mut rest, length)?)
        }
        1 => {
            let low = little_endian(&mut rest, 1)?;
            Element::Copy { offset: (usize::from(tag >> 5) << 8) | low, length: 4 + (upper & 7) }
        }
        2 => Element::Copy { offset: little_endian(&mut rest, 2)?, length: upper + 1 },
        _ => Element::Copy { offset: little_endian(&mut rest, 4)?, length: upper + 1 },
    };
    *input = rest;
    Some(element)
}

#[inline]
fn take<'a>(input: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = input.split_at_checked(length)?;
    *input = rest;
    Some(taken)
}

#[inline]
fn little_endian(input: &mut &[u8], bytes: usize) -> Option<usize> {
    let taken = take(input, bytes)?;
    Some(taken.iter().rev().fold(0, |number, &byte| (number << 8) | usize::from(byte)))
}

/// The total decompressed size, which precedes the elements.
fn length(input: &mut &[u8]) -> Option<usize> {
    let mut number = 0;
    for shift in (0..35).step_by(7) {
        let byte = little_endian(input, 1)?;
        number |= (byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// Where each piece begins, if the pieces are independent. The first begins with the length.
pub(super) fn pieces(compressed: &[u8]) -> Option<Vec<usize>> {
    let mut input = compressed;
    let total = length(&mut input)?;
    let mut starts = vec![0];
    let mut made = 0;
    while !input.is_empty() {
        if made > 0 && made % PIECE_BYTES == 0 {
            starts.push(compressed.len() - input.len());
        }
        let in_piece = made % PIECE_BYTES;
        let length = match next_element(&mut input)? {
            Element::Literal(bytes) => bytes.len(),
            Element::Copy { offset, length } => {
                (1..=in_piece).contains(&offset).then_some(length)?
            }
        };
        if in_piece + length > PIECE_BYTES {
            return None;
        }
        made += length;
    }
    (made == total).then_some(starts)
}

/// Decompresses one piece, which must fill the output exactly.
pub(super) fn decompress_piece(mut input: &[u8], is_first: bool, output: &mut [u8]) -> Option<()> {
    if is_first {
        length(&mut input)?;
    }
    let mut made = 0;
    while !input.is_empty() {
        made += match next_element(&mut input)? {
            Element::Literal(bytes) => literal(bytes, output, made)?,
            Element::Copy { offset, length } => copy(offset, length, output, made)?,
        };
    }
    (made == output.len()).then_some(())
}

/// Short runs are moved as 16 bytes whatever their length: the excess is overwritten by what follows.
const WIDE: usize = 16;

#[inline]
fn literal(bytes: &[u8], output: &mut [u8], made: usize) -> Option<usize> {
    output.get_mut(made..)?.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(bytes.len())
}

#[inline]
fn copy(offset: usize, length: usize, output: &mut [u8], made: usize) -> Option<usize> {
    let from = made.checked_sub(offset).filter(|_| offset > 0)?;
    let end = made.checked_add(length).filter(|&end| end <= output.len())?;
    if length <= WIDE && length <= offset && made + WIDE <= output.len() {
        let wide: [u8; WIDE] = output[from..from + WIDE].try_into().expect("as long");
        output[made..made + WIDE].copy_from_slice(&wide);
    } else if length <= offset {
        output.copy_within(from..from + length, made);
    } else {
        // The copy reads what it writes: a pattern is repeated.
        for at in made..end {
            output[at] = output[at - offset];
        }
    }
    Some(length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Numbers that compress a little, as those in tables do.
    fn numbers(seed: u64, bytes: usize, below: u64) -> Vec<u8> {
        let mut state = seed | 1;
        let next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut all: Vec<u8> =
            std::iter::repeat_with(next).take(bytes / 8 + 1).flat_map(u64::to_le_bytes).collect();
        all.truncate(bytes);
        all
    }

    fn compress(bytes: &[u8]) -> Vec<u8> {
        snap::raw::Encoder::new().compress_vec(bytes).unwrap()
    }

    fn decompress_all(compressed: &[u8], starts: &[usize], bytes: usize) -> Option<Vec<u8>> {
        let mut output = vec![0; bytes];
        for (piece, part) in output.chunks_mut(PIECE_BYTES).enumerate() {
            let end = starts.get(piece + 1).copied().unwrap_or(compressed.len());
            decompress_piece(&compressed[starts[piece]..end], piece == 0, part)?;
        }
        Some(output)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn pieces_give_what_was_compressed(seed: u64, bytes in 1usize..400_000, below in 1u64..1 << 40) {
            let plain = numbers(seed, bytes, below);
            let compressed = compress(&plain);
            let starts = pieces(&compressed).expect("the compressor works block by block");
            prop_assert_eq!(starts.len(), bytes.div_ceil(PIECE_BYTES));
            prop_assert_eq!(decompress_all(&compressed, &starts, bytes), Some(plain));
        }

        #[test]
        fn damage_is_noticed_or_harmless_and_never_a_panic(seed: u64, at: usize, bit in 0u8..8) {
            let plain = numbers(seed, 150_000, 1000);
            let mut compressed = compress(&plain);
            let starts = pieces(&compressed).unwrap();
            let at = at % compressed.len();
            compressed[at] ^= 1u8 << bit;
            pieces(&compressed);
            if let Some(output) = decompress_all(&compressed, &starts, plain.len()) {
                prop_assert_eq!(output.len(), plain.len());
            }
        }
    }

    #[test]
    fn every_kind_of_element_is_read() {
        // Length 30; literal "abcd"; copy of 4 from 4 back, with one byte of offset; of 6 from 3 back, two bytes; of 5 from 1
        // back, four bytes; a literal of 11 whose length stands in the next byte.
        let mut compressed = vec![30, 3 << 2];
        compressed.extend(b"abcd");
        compressed.extend([1, 4]);
        compressed.extend([(5 << 2) | 2, 3, 0]);
        compressed.extend([(4 << 2) | 3, 1, 0, 0, 0]);
        compressed.extend([60 << 2, 10]);
        compressed.extend(b"hello world");
        let mut output = [0; 30];
        assert_eq!(decompress_piece(&compressed, true, &mut output), Some(()));
        assert_eq!(&output, b"abcdabcdbcdbcddddddhello world");
        for length in 0..compressed.len() {
            assert_eq!(decompress_piece(&compressed[..length], true, &mut output), None);
        }
        assert_eq!(pieces(&compressed), Some(vec![0]));
    }

    #[test]
    fn a_copy_from_the_piece_before_makes_them_one() {
        // 64 Ki of literal, then a copy that reaches back into it: legal, and no compressor writes it.
        let mut compressed = vec![0x84, 0x80, 0x04, 61 << 2, 0xff, 0xff];
        compressed.extend(vec![7; PIECE_BYTES]);
        compressed.extend([1, 4]);
        assert_eq!(
            snap::raw::Decoder::new().decompress_vec(&compressed).unwrap().len(),
            PIECE_BYTES + 4
        );
        assert_eq!(pieces(&compressed), None);
    }
}
