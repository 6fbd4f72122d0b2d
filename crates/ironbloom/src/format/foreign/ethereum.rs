//! The logs bloom of an Ethereum block or receipt: 256 bytes, usually as hexadecimal digits after `0x`.
//!
//! ```text
//! bit i, i = 0 … 2047, is bit i mod 8 of byte 255 − i / 8: bits are counted from the end
//! ```
//!
//! Keys are the addresses (20 bytes) and topics (32 bytes) of logs. With h = Keccak-256 of the key, three probes are the low
//! 11 bits of the byte pairs 0–1, 2–3 and 4–5 of h, each pair big-endian. (Yellow Paper, section 4.3.1.)
//!
//! 2048 bits are few for the hundreds of logs of today's blocks: half full, one key in eight is found by chance.
//! `docs/benchmarks/ethereum.md` measures the effect on finding logs.

use super::bytes::{Fields, Order};
use super::{ForeignError, Format};
use crate::hash::key_form::from_hex;
use crate::hash::{Modulus, keccak256};
use crate::kinds::foreign::{Noted, Probing};
use crate::kinds::{Foreign, Rule};

/// Bits of a logs bloom.
pub(crate) const BITS: u64 = 2048;
/// Bytes of a logs bloom.
pub(crate) const BYTES: usize = BITS as usize / 8;
/// Probes per key.
pub(crate) const PROBES: u32 = 3;

/// Positions in a logs bloom.
#[derive(Clone, Copy)]
pub(crate) struct Pairs;

impl Probing for Pairs {
    type Hash = [u16; 3];

    #[inline]
    fn hash(self, key: &[u8]) -> [u16; 3] {
        let hash = keccak256(key);
        [0, 2, 4].map(|at| u16::from_le_bytes([hash[at + 1], hash[at]]) % BITS as u16)
    }

    #[inline]
    fn positions(self, hash: [u16; 3], _range: Modulus, first: u32) -> impl Iterator<Item = u64> {
        hash.into_iter().skip(first as usize).map(u64::from)
    }
}

/// The bytes of a logs bloom, from text or raw.
pub(crate) fn bytes_of(bytes: &[u8]) -> Option<[u8; BYTES]> {
    // Digits truncated to 256 characters are not the raw bytes of a bloom.
    let is_text = bytes.starts_with(b"0x") && bytes[2..].iter().all(u8::is_ascii_hexdigit);
    if let (Ok(raw), false) = (bytes.try_into(), is_text) {
        return Some(raw);
    }
    // Longer text cannot be a bloom and need not be decoded.
    if bytes.len() > 2 * BYTES + 64 {
        return None;
    }
    from_hex(bytes.trim_ascii())?.try_into().ok()
}

pub(super) fn is(bytes: &[u8]) -> bool {
    bytes.starts_with(b"0x") && bytes_of(bytes).is_some()
}

pub(super) fn read(bytes: &[u8]) -> Result<Foreign, ForeignError> {
    let fields = Fields::new(Format::Ethereum, Order::Little, bytes);
    let Some(mut raw) = bytes_of(bytes) else {
        let what = "length; 256 bytes or 512 digits after 0x are a logs bloom";
        return Err(fields.invalid(bytes.len(), what, bytes.len() as u64));
    };
    raw.reverse();
    let words = Fields::new(Format::Ethereum, Order::Little, &raw).words(BYTES as u64, BITS)?;
    let (rule, noted) = (Rule::Ethereum, Noted::default());
    Ok(Foreign::from_parts(rule, BITS, PROBES, None, words, noted).with_estimate())
}

pub(super) fn write(filter: &Foreign) -> Option<Vec<u8>> {
    if filter.rule() != Rule::Ethereum {
        return None;
    }
    let words = filter.words()[..BITS as usize / 64].iter().rev();
    let digits: String = words.map(|word| format!("{word:016x}")).collect();
    Some(format!("0x{digits}\n").into_bytes())
}
