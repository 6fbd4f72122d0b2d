//! The fields of a native filter in an RDB file, in order.
//!
//! ```text
//! 0 or 1       whole, or pieces of one that is being loaded
//! bytes of the whole image, and its XXH3-64 if it is not whole (else 0)
//! count of the numbers beside it, and they
//! count of strings, and they: the image, or what has come of it
//! ```
//!
//! A filter that is being loaded by LOADCHUNK is thus saved as it is, and the load goes on after a restart or on a replica.
//! RESTORE passes bytes from anywhere to the same code: strings come with their lengths from the server, so no number in the
//! file decides how much memory is allocated, and their contents are checked like any image.

use super::images::{Images, Origin};
use super::wire::Arrival;
use super::{Imaged, Native};
use crate::error::{DecodeError, LoadError};
use crate::fields::{FieldReader, FieldWriter};

/// The version that is written.
pub const VERSION: u32 = 1;

/// Maximum length of a string. Larger than a chunk of a dump, because a save does not hold clients up.
const MAX_STRING: usize = 8 << 20;

/// More strings than any filter has: 8 TiB.
const MAX_STRINGS: u64 = 1 << 20;

/// Writes a filter.
pub fn save<T: Imaged>(value: &Native<T>, to: &mut impl FieldWriter) {
    let (is_arriving, len, sum, numbers, there) = match value {
        Native::Whole(filter) => {
            let len = filter.image_bytes();
            (0, len, 0, filter.numbers(), len)
        }
        Native::Arriving(arrival) => {
            let numbers = arrival.numbers().to_vec();
            (1, arrival.announced(), arrival.sum(), numbers, arrival.arrived())
        }
    };
    [is_arriving, len, sum, numbers.len() as u64].into_iter().for_each(|field| to.unsigned(field));
    numbers.iter().for_each(|&number| to.unsigned(number));
    to.unsigned(there.div_ceil(MAX_STRING as u64));
    let mut offset = 0;
    while offset < there {
        let string = string_at(value, offset);
        to.string(&string);
        offset += string.len() as u64;
    }
}

/// The bytes from here on, [`MAX_STRING`] of them or up to the end.
fn string_at<T: Imaged>(value: &Native<T>, offset: u64) -> Vec<u8> {
    let mut string = Vec::new();
    loop {
        let iterator = (1 + offset + string.len() as u64) as i64;
        let Some((_, piece)) = value.piece(iterator) else { return string };
        let room = MAX_STRING - string.len();
        string.extend_from_slice(&piece[..piece.len().min(room)]);
        if string.len() == MAX_STRING {
            return string;
        }
    }
}

/// Reads a filter.
pub fn load<T: Imaged>(from: &mut impl FieldReader, version: u32) -> Result<Native<T>, LoadError> {
    if version != VERSION {
        return Err(DecodeError::Unsupported { what: "files of a newer version" }.into());
    }
    let (is_arriving, len, sum) = (from.unsigned()?, from.unsigned()?, from.unsigned()?);
    DecodeError::unless(is_arriving <= 1, "state")?;
    let count = from.unsigned()?;
    DecodeError::unless(count == 0 || count == T::NUMBERS as u64, "count of numbers")?;
    let numbers = (0..count).map(|_| from.unsigned()).collect::<Result<Vec<u64>, _>>()?;
    let strings = from.unsigned()?;
    DecodeError::unless(strings <= MAX_STRINGS, "count of strings")?;
    let mut images = Images::new(len, Origin::Unknown);
    for _ in 0..strings {
        let string = from.string()?;
        DecodeError::unless(images.len() + string.len() as u64 <= len, "number of bytes")?;
        images.push(&string)?;
    }
    if is_arriving == 1 {
        return Ok(Native::Arriving(Arrival::from_parts(len, sum, numbers, images)?));
    }
    DecodeError::unless(images.len() == len && sum == 0, "number of bytes")?;
    Ok(Native::whole(T::from_images(images, &numbers)?))
}
