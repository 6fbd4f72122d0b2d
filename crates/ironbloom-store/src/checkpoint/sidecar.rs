//! The `.ibg` file: its words, and what they mean. The layout is described at the top of `mod.rs`.

use std::fmt;

use ironbloom::{BlockedBloom, BlockedBloomParams, HashFn, Persist};
use xxhash_rust::xxh3::xxh3_64;

use crate::filter::MAX_SHARDS;
use crate::generation::Generation;
use crate::kind::GuardKind;
use crate::options::FilterSpec;
use crate::stats::Totals;

const MAGIC: [u8; 8] = *b"\x89IBG\r\n\x1a\n";
/// The version written. Versions 1 and 2 can be read as well.
const VERSION: u64 = 3;
/// Shards of a filter, and the hashes that they spill.
const MAX_PARTS: u64 = MAX_SHARDS + 1;
const WORD: usize = size_of::<u64>();
/// Words before the statistics.
const FIXED_WORDS: usize = 11;

/// What a `.ibg` file says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sidecar {
    pub(crate) generation: Generation,
    pub(crate) kind: GuardKind,
    pub(crate) rate: f64,
    /// Requested.
    pub(crate) capacity: u64,
    /// Of the filter.
    pub(crate) filter_capacity: u64,
    pub(crate) dead: u64,
    pub(crate) note: u64,
    pub(crate) totals: Totals,
    /// Bytes of each part of the filter.
    pub(crate) parts: Vec<u64>,
    /// The keys in doubt: the bytes of a `.ibf` file, or none.
    pub(crate) doubts: Vec<u8>,
    /// The function by which keys were hashed. Version 1 and 2 had the default one, or another that only their filters
    /// know.
    pub(crate) hash_fn: HashFn,
}

/// Why bytes are not a `.ibg` file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SidecarError {
    NotACheckpoint,
    /// The length fits no header.
    Length(usize),
    Version(u64),
    Checksum,
    PartCount(u64),
    Kind(u64),
    HashFn,
}

impl fmt::Display for SidecarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotACheckpoint => write!(f, "not a checkpoint of a guard"),
            Self::Length(bytes) => write!(f, "invalid length: {bytes} bytes"),
            Self::Version(version) => {
                write!(f, "version {version}, but this program knows only 1 to {VERSION}")
            }
            Self::Checksum => write!(f, "checksum mismatch"),
            Self::PartCount(parts) => write!(f, "invalid number of parts: {parts}"),
            Self::HashFn => write!(f, "invalid hash function"),
            Self::Kind(number) => write!(f, "invalid kind: {number}"),
        }
    }
}

impl std::error::Error for SidecarError {}

impl Sidecar {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let mut word = |word: u64| bytes.extend(word.to_le_bytes());
        word(VERSION);
        for half in self.generation.to_bytes().chunks_exact(WORD) {
            word(u64::from_le_bytes(half.try_into().expect("chunks of eight")));
        }
        word(self.kind.in_files() as u64);
        word(self.rate.to_bits());
        word(self.capacity);
        word(self.filter_capacity);
        word(self.dead);
        word(self.note);
        word(self.parts.len() as u64);
        self.totals.to_words().into_iter().for_each(&mut word);
        let hash_fn = hash_bytes(self.hash_fn);
        word((self.doubts.len() / WORD) as u64);
        word((hash_fn.len() / WORD) as u64);
        self.parts.iter().copied().for_each(&mut word);
        debug_assert!(self.doubts.len().is_multiple_of(WORD), "files of filters are whole lines");
        bytes.extend(&self.doubts);
        bytes.extend(&hash_fn);
        let seal = xxh3_64(&bytes);
        bytes.extend(seal.to_le_bytes());
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, SidecarError> {
        if !bytes.starts_with(&MAGIC) {
            return Err(SidecarError::NotACheckpoint);
        }
        let words: Vec<u64> = bytes
            .chunks_exact(WORD)
            .map(|word| u64::from_le_bytes(word.try_into().expect("chunks of eight")))
            .collect();
        let wrong_length = SidecarError::Length(bytes.len());
        let version = *words.get(1).ok_or(wrong_length)?;
        if version == 0 || version > VERSION {
            return Err(SidecarError::Version(version));
        }
        let totals = FIXED_WORDS + if version == 1 { Totals::FIRST_WORDS } else { Totals::WORDS };
        let head = totals + (version - 1) as usize;
        if words.len() < head + 1 || bytes.len() != words.len() * WORD {
            return Err(wrong_length);
        }
        let (body, seal) = bytes.split_at(bytes.len() - WORD);
        if xxh3_64(body).to_le_bytes() != seal {
            return Err(SidecarError::Checksum);
        }
        let doubts = if version == 1 { 0 } else { words[totals] };
        let hash_words = if version < 3 { 0 } else { words[totals + 1] };
        let parts = words[10];
        let rest = (words.len() - head - 1) as u64;
        let all = parts.checked_add(doubts).and_then(|sum| sum.checked_add(hash_words));
        if parts > MAX_PARTS || all != Some(rest) {
            return Err(SidecarError::PartCount(parts));
        }
        let parts_end = head + parts as usize;
        let (doubts, hash_fn) = body[parts_end * WORD..].split_at(doubts as usize * WORD);
        Ok(Self {
            generation: Generation::from_bytes(&bytes[2 * WORD..4 * WORD]).expect("16 bytes"),
            kind: GuardKind::from_number(words[4]).ok_or(SidecarError::Kind(words[4]))?,
            rate: f64::from_bits(words[5]),
            capacity: words[6],
            filter_capacity: words[7],
            dead: words[8],
            note: words[9],
            totals: Totals::from_words(&words[FIXED_WORDS..totals]),
            parts: words[head..parts_end].to_vec(),
            doubts: doubts.to_vec(),
            hash_fn: if version < 3 { HashFn::default() } else { hash_fn_of(hash_fn)? },
        })
    }

    /// Whether the same filter would be built today: kind, rate and, for a window, its length. The hash function is in
    /// the filter itself.
    pub(crate) fn fits(&self, spec: &FilterSpec) -> bool {
        self.kind == spec.kind
            && self.rate == spec.rate
            && (!self.kind.forgets() || self.capacity == spec.capacity)
    }
}

/// The smallest file that records a hash function.
fn hash_bytes(hash_fn: HashFn) -> Vec<u8> {
    let params = BlockedBloomParams::for_rate(1, 0.5).expect("a valid rate");
    BlockedBloom::new(params, hash_fn).expect("memory for one line").to_bytes()
}

fn hash_fn_of(bytes: &[u8]) -> Result<HashFn, SidecarError> {
    BlockedBloom::from_bytes(bytes).map(|filter| filter.hash_fn()).map_err(|_| SidecarError::HashFn)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sidecar() -> Sidecar {
        Sidecar {
            generation: Generation::from_bytes(&[7; 16]).unwrap(),
            kind: GuardKind::Cuckoo,
            rate: 0.01,
            capacity: 100,
            filter_capacity: 120,
            dead: 3,
            note: 4,
            totals: Totals { rebuilds: 5, foreign: 6, ..Totals::default() },
            parts: vec![64, 128],
            doubts: vec![9; 64],
            hash_fn: HashFn::Xxh3 { seed: 8 },
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for doubts in [Vec::new(), vec![9; 64]] {
            let sidecar = Sidecar { doubts, ..sidecar() };
            assert_eq!(Sidecar::from_bytes(&sidecar.to_bytes()).unwrap(), sidecar);
        }
    }

    /// Written by the first release: 27 words of head, the lengths of the parts, a checksum.
    #[test]
    fn files_of_version_one_are_read() {
        let wanted = Sidecar {
            totals: Totals { rebuilds: 5, ..Totals::default() },
            doubts: Vec::new(),
            hash_fn: HashFn::default(),
            ..sidecar()
        };
        let mut bytes = wanted.to_bytes();
        bytes[8] = 1;
        let more = (Totals::WORDS - Totals::FIRST_WORDS + 2) * WORD;
        let statistics = (FIXED_WORDS + Totals::FIRST_WORDS) * WORD;
        bytes.drain(statistics..statistics + more);
        bytes.drain((27 + 2) * WORD..bytes.len() - WORD);
        let end = bytes.len() - WORD;
        let seal = xxh3_64(&bytes[..end]).to_le_bytes();
        bytes[end..].copy_from_slice(&seal);
        assert_eq!(bytes.len(), (27 + 2 + 1) * WORD);
        assert_eq!(Sidecar::from_bytes(&bytes).unwrap(), wanted);
    }

    #[test]
    fn another_version_or_length_is_refused() {
        let bytes = sidecar().to_bytes();
        for cut in 0..bytes.len() {
            assert!(Sidecar::from_bytes(&bytes[..cut]).is_err(), "{cut} bytes");
        }
        for version in [0, 4] {
            let mut other = bytes.clone();
            other[8] = version;
            let refused = Err(SidecarError::Version(version.into()));
            assert_eq!(Sidecar::from_bytes(&other), refused);
        }
    }
}
