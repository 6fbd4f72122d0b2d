//! SipHash-1-3 under a secret 128-bit key: the hash for keys that an adversary chooses.
//!
//! XXH3 is not made for that. If its seed is public, false positives can be computed; if it is secret, it is still only
//! 64 bits added to public constants, and an integer's hash is a public permutation of the integer xor a number derived
//! from the seed. SipHash is a pseudo-random function \[AB12\]: without the key, its values cannot be told from random
//! ones, and keys with related hashes can be found only by querying. Rust's and Python's hash tables also use one round
//! per word and three at the end; no attack on the full function is known. `docs/adversaries.md` has the argument, the
//! measurements and what else was considered.

use std::fmt;

use siphasher::sip::{SipHasher13, SipHasher24};

/// A secret key for [`HashFn::SipHash13`](crate::HashFn::SipHash13): 128 bits. It is never printed, not even by
/// `Debug`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct HashKey([u64; 2]);

impl HashKey {
    /// Creates a key from 16 bytes, which should be random.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        let number = u128::from_le_bytes(bytes);
        Self([number as u64, (number >> 64) as u64])
    }

    /// Parses the contents of a secrets file: 16 bytes, or 32 hexadecimal digits surrounded only by blanks and line
    /// ends.
    pub fn parse(contents: &[u8]) -> Option<Self> {
        if let Ok(bytes) = contents.try_into() {
            return Some(Self::from_bytes(bytes));
        }
        let digits = contents.trim_ascii();
        if digits.len() != 32 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let bytes = super::key_form::from_hex(digits)?;
        Some(Self::from_bytes(bytes.try_into().ok()?))
    }

    /// Creates a new secret key from the operating system's random numbers.
    ///
    /// WebAssembly outside a browser's interface has none: generate the bytes yourself (`crypto.getRandomValues`), and call
    /// [`from_bytes`](Self::from_bytes).
    ///
    /// # Panics
    /// Panics if the operating system has no random numbers.
    #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
    pub fn random() -> Self {
        // Not from the keys of the standard library's hash tables: a process that is forked has the same ones as its parent.
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("random numbers from the system");
        Self::from_bytes(bytes)
    }

    /// The 16 bytes. Anyone who knows them can compute false positives.
    pub fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.0[1]) << 64 | u128::from(self.0[0])).to_le_bytes()
    }

    /// A number that identifies a key without revealing it, recorded in files without the key.
    pub fn check(self) -> u64 {
        self.derived(b"ironbloom: check of a hash key")
    }

    /// Derives the key for the values of attribute `i`.
    pub(crate) fn of_attribute(self, i: usize) -> Self {
        let half = |half: &[u8]| self.derived(&[half, &(i as u64).to_le_bytes()].concat());
        Self([half(b"ironbloom: attribute, first "), half(b"ironbloom: attribute, second ")])
    }

    /// Derives a number with a different function than the one that hashes keys, so that no chosen key can reveal it.
    fn derived(self, purpose: &[u8]) -> u64 {
        SipHasher24::new_with_keys(self.0[0], self.0[1]).hash(purpose)
    }

    pub(crate) fn words(self) -> [u64; 2] {
        self.0
    }

    pub(crate) fn from_words(words: [u64; 2]) -> Self {
        Self(words)
    }

    #[inline]
    pub(super) fn hash(self, bytes: &[u8]) -> u64 {
        SipHasher13::new_with_keys(self.0[0], self.0[1]).hash(bytes)
    }
}

impl fmt::Debug for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HashKey({:016x})", self.check())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pins values that files rely on. The numbers are those of a transcription of \[AB12\] that reproduces the paper's
    /// test vector for two and four rounds.
    #[test]
    fn hashes_and_derived_numbers_stay() {
        let key = HashKey::from_bytes(std::array::from_fn(|i| i as u8));
        let bytes: Vec<u8> = (0..15).collect();
        assert_eq!(key.hash(b""), 0xabac_0158_050f_c4dc);
        assert_eq!(key.hash(&bytes), 0xd320_d86d_2a51_9956);
        assert_eq!(key.check(), 0x2250_e791_6131_bddc);
        assert_eq!(key.of_attribute(1).words(), [0xa0c3_57e6_4960_ed2c, 0x3c03_40b9_997e_a7e5]);
    }

    #[test]
    fn a_key_is_sixteen_bytes_or_their_digits_and_is_never_printed() {
        let bytes: [u8; 16] = std::array::from_fn(|i| i as u8 * 16 + 3);
        let key = HashKey::from_bytes(bytes);
        let digits: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
        assert_eq!(HashKey::parse(&bytes), Some(key));
        assert_eq!(HashKey::parse(format!("{digits}\n").as_bytes()), Some(key));
        assert_eq!(key.to_bytes(), bytes);
        for wrong in [&b""[..], b"secret", &digits.as_bytes()[1..], &[0; 15], &[b' '; 40]] {
            assert_eq!(HashKey::parse(wrong), None);
        }
        assert_eq!(format!("{key:?}"), format!("HashKey({:016x})", key.check()));
        assert_ne!(HashKey::random(), HashKey::random());
    }
}
