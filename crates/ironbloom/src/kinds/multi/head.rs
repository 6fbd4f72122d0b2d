//! The start of the payload in every multi-attribute file.
//!
//! ```text
//! names    a length byte and that many bytes of UTF-8 for each attribute, zeros to the end of the line
//! tables   a line for each table that follows: slots, bits of a number, bits of a count, five zeros
//! ```

use super::attributes::{Attributes, MAX_ATTRIBUTES};
use crate::error::{DecodeError, check_range};
use crate::format::native::{Image, Sections};
use crate::hash::HashFn;
use crate::kernel::LINE_WORDS;

/// Maximum lines of the names of all attributes: up to 256 bytes each.
const MAX_LINES: u64 = MAX_ATTRIBUTES as u64 * 4;

/// The numbers of attributes and of lines of names, as stored among the parameters.
pub(super) fn params(attributes: &Attributes) -> [u64; 2] {
    [attributes.len() as u64, (attributes.encode().len() / LINE_WORDS) as u64]
}

/// Appends names, and the shapes of the tables that follow.
pub(super) fn append_to<'a>(
    image: Image<'a>,
    attributes: &Attributes,
    shapes: impl Iterator<Item = [u64; 3]>,
) -> Image<'a> {
    let lines = shapes
        .flat_map(|[slots, key_bits, count_bits]| [slots, key_bits, count_bits, 0, 0, 0, 0, 0]);
    image.owned_section(attributes.encode()).owned_section(lines.collect())
}

/// Reads the attributes, which [`params`] counts.
pub(super) fn take_attributes(
    [count, lines]: [u64; 2],
    hash_fn: HashFn,
    sections: &mut Sections,
) -> Result<Attributes, DecodeError> {
    check_range("lines of names", lines, 1, MAX_LINES)?;
    Attributes::decode(count, &sections.take_lines(lines)?, hash_fn)
}

/// Reads the shapes of `tables` tables.
pub(super) fn take_shapes(
    tables: usize,
    sections: &mut Sections,
) -> Result<Vec<[u64; 3]>, DecodeError> {
    let lines = sections.take_lines(tables as u64)?;
    let shape = |line: &[u64]| match line {
        &[slots, key_bits, count_bits, 0, 0, 0, 0, 0] => Ok([slots, key_bits, count_bits]),
        _ => Err(DecodeError::Invalid { what: "table", value: line[LINE_WORDS - 1] }),
    };
    lines.chunks_exact(LINE_WORDS).map(shape).collect()
}
