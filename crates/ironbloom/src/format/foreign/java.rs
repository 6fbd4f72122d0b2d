//! Bit arrays as Java programs write them: the number of words, at most 2^31 − 1, and the words.
//! Numbers are big-endian.

use super::ForeignError;
use super::bytes::{Fields, Order, put_words};
use crate::kinds::foreign::Noted;
use crate::kinds::{Foreign, Rule};

/// The fields before the bits.
pub(super) struct Head {
    pub(super) rule: Rule,
    pub(super) probes: u32,
    pub(super) words: u64,
}

/// Reads the number of words and checks that exactly as many follow.
pub(super) fn words(fields: &mut Fields<'_>) -> Result<u64, ForeignError> {
    let at = fields.at();
    let words = u64::from(fields.u32()?);
    let words = fields.within(at, "number of words", words, 1..=i32::MAX as u64)?;
    fields.check_rest(8 * words)?;
    Ok(words)
}

/// Reads the filter whose words come next.
pub(super) fn read(fields: &mut Fields<'_>, head: Head) -> Result<Foreign, ForeignError> {
    let Head { rule, probes, words } = head;
    let array = fields.words(8 * words, 64 * words)?;
    let filter = Foreign::from_parts(rule, 64 * words, probes, None, array, Noted::default());
    Ok(filter.with_estimate())
}

/// Appends the words of a filter to its header; `None` if there are too many.
pub(super) fn write(mut out: Vec<u8>, filter: &Foreign) -> Option<Vec<u8>> {
    let words = i32::try_from(filter.bits().div_ceil(64)).ok()?;
    out.extend(number(words.cast_unsigned()));
    put_words(&mut out, filter.words(), 8 * words as usize, Order::Big);
    Some(out)
}

/// Encodes a number of the header.
pub(super) fn number(value: u32) -> [u8; 4] {
    value.swap_bytes().to_le_bytes()
}
