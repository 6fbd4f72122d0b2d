//! What the fuzz targets share: files that get past magic and checksums, and everything to do with what they hold.
//!
//! A checksum is a wall that no fuzzer climbs, but an attacker computes it. So the targets do as the attacker does:
//!
//! ```text
//! fuzzer ──► numbers and bytes ──► seal: magic, version, kind, checksums ──► decode ──► exercise
//!                     ▲                                                        │
//!                     └──────── "the payload must have N bytes" ◄──────────────┘
//! ```
//!
//! The decoder itself tells which length it wants, so payloads fit their headers without a second copy of the
//! sizing rules here. What is a failure: a panic, more memory than the file has bytes, an estimate that is no
//! number, a key that is lost, a refusal that changes something, two files that hold the same filter.

mod foreign;
mod rows;

pub use foreign::exercise_foreign;
pub use rows::{EditedRows, exercise_rows};

use arbitrary::Arbitrary;
use ironbloom::any::{AnyFilter, Refused};
use ironbloom::hash::mix64;
use ironbloom::{CuckooLayout, DecodeError, Filter, Kind, Persist};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

const MAGIC: [u8; 8] = *b"\x89IBF\r\n\x1a\n";
const HEADER_BYTES: usize = 256;
const CHUNK_BYTES: usize = 64 * 1024;
const LINE_BYTES: usize = 64;
const PAYLOAD_AT: usize = 40;

/// Longest payload made when a decoder asks for one. Longer ones are slow and find nothing that this does not.
const MOST_PAYLOAD: u64 = 8 * 1024;

/// A number in a header. Most that mean anything are small, and eight random bytes hardly ever are.
#[derive(Arbitrary, Clone, Copy, Debug)]
pub enum Number {
    /// A few.
    Byte(u8),
    /// Some thousands.
    Short(u16),
    /// Anything.
    Any(u64),
    /// The bits of a float strictly between 0 and 1.
    Ratio(u16),
}

impl Number {
    /// The word that stands in the file.
    pub fn word(self) -> u64 {
        match self {
            Self::Byte(value) => value.into(),
            Self::Short(value) => value.into(),
            Self::Any(value) => value,
            Self::Ratio(value) => ((f64::from(value) + 1.0) / 65_537.0).to_bits(),
        }
    }
}

/// The fields of a header that a decoder looks at, and a payload.
#[derive(Arbitrary, Clone, Debug)]
pub struct Forged<'a> {
    /// Hash function 1, 2 or 3, by its remainder.
    pub hash: u8,
    /// Seed of the hash.
    pub seed: u64,
    /// Keys counted.
    pub len: Number,
    /// Keys planned for.
    pub capacity: Number,
    /// Parameters, as many as the kind with the most has.
    pub params: [Number; 9],
    /// The payload, repeated or cut if the decoder wants another length.
    pub payload: &'a [u8],
}

impl Forged<'_> {
    /// The parameters as words.
    pub fn words(&self) -> [u64; 9] {
        self.params.map(Number::word)
    }

    /// What a file with these fields and this many of the parameters holds, and that file; `None` if it is refused.
    pub fn decode<T: Persist>(&self, kind: Kind, params: usize) -> Option<(T, Vec<u8>)> {
        let decode = |payload: &[u8]| {
            let file = self.file(kind, params, payload);
            T::from_bytes(&file).map(|filter| (filter, file))
        };
        match decode(self.payload) {
            Err(DecodeError::Length { expected, .. }) if expected <= MOST_PAYLOAD => {
                let bytes = self.payload.iter().copied().cycle();
                let mut payload: Vec<u8> = bytes.take(expected as usize).collect();
                decode(&payload).ok().or_else(|| {
                    // There must be zeros after the last bit, which is somewhere in the last line.
                    let last_line = payload.len().saturating_sub(LINE_BYTES);
                    payload[last_line..].fill(0);
                    decode(&payload).ok()
                })
            }
            outcome => outcome.ok(),
        }
    }

    /// The file, with the payload filled up to whole lines.
    fn file(&self, kind: Kind, params: usize, payload: &[u8]) -> Vec<u8> {
        let hash = 1 + u16::from(self.hash % 3);
        let encoding = match (kind, hash) {
            (Kind::Bitmap, _) => 2,
            (_, 3) => 0,
            (Kind::Parallel | Kind::Joint, _) => 3,
            _ => 1,
        };
        let payload_bytes = payload.len().next_multiple_of(LINE_BYTES);
        let mut file = MAGIC.to_vec();
        for half in [1, kind as u16, hash, encoding] {
            file.extend(half.to_le_bytes());
        }
        let counts = [self.seed, self.len.word(), self.capacity.word(), payload_bytes as u64];
        let fixed = [CHUNK_BYTES as u64, 0];
        for word in counts.iter().chain(&fixed).chain(&self.words()[..params]) {
            file.extend(word.to_le_bytes());
        }
        file.resize(HEADER_BYTES, 0);
        file.extend(payload);
        file.resize(HEADER_BYTES + payload_bytes, 0);
        file.resize(file.len() + 8 * payload_bytes.div_ceil(CHUNK_BYTES) + 8, 0);
        seal(&mut file);
        file
    }
}

/// Makes all checksums of a file right, if its length is that which the header gives it.
pub fn seal(file: &mut [u8]) {
    let Some((header, rest)) = file.split_at_mut_checked(HEADER_BYTES) else { return };
    let checksum = xxh3_64(&header[..HEADER_BYTES - 8]);
    header[HEADER_BYTES - 8..].copy_from_slice(&checksum.to_le_bytes());
    let payload_bytes = header[PAYLOAD_AT..][..8].try_into().map(u64::from_le_bytes);
    let payload_bytes = payload_bytes.ok().and_then(|bytes| usize::try_from(bytes).ok());
    let Some((payload, table)) = payload_bytes.and_then(|at| rest.split_at_mut_checked(at)) else {
        return;
    };
    if table.len() != 8 * payload.len().div_ceil(CHUNK_BYTES) + 8 {
        return;
    }
    let (checksums, seal) = table.split_at_mut(table.len() - 8);
    for (i, (chunk, stored)) in payload.chunks(CHUNK_BYTES).zip(checksums.chunks_mut(8)).enumerate()
    {
        stored.copy_from_slice(&xxh3_64_with_seed(chunk, i as u64).to_le_bytes());
    }
    seal.copy_from_slice(&xxh3_64_with_seed(checksums, checksum).to_le_bytes());
}

/// Hashes to ask for: mixed ones, the ends of the range, and what are integers to a bitmap.
pub fn some_hashes() -> Vec<u64> {
    (0..24).map(mix64).chain([0, 1, 63, 64, 511, u64::MAX >> 1, u64::MAX]).collect()
}

/// Which of the hashes a filter says it may have, asked one by one and all at once.
pub fn found(filter: &AnyFilter, hashes: &[u64]) -> Vec<u64> {
    let mut batch = vec![false; hashes.len()];
    filter.contains_hashes(hashes, &mut batch);
    let single: Vec<u64> = hashes.iter().copied().filter(|&h| filter.contains_hash(h)).collect();
    let batch: Vec<u64> =
        hashes.iter().zip(batch).filter(|(_, found)| *found).map(|(&h, _)| h).collect();
    assert_eq!(batch, single, "asking many at once gives other answers");
    single
}

/// A filter is equal to what its own file holds. Readers refuse counts above 2^60, which only forged ones reach.
pub fn survives_its_file(filter: &AnyFilter) {
    if filter.len() > 1 << 60 {
        return;
    }
    let back = AnyFilter::from_bytes(&filter.to_bytes());
    assert_eq!(back.as_ref(), Ok(filter), "a filter does not survive its own file");
}

/// Uses everything that all filters offer on the one that this file holds.
pub fn exercise(mut filter: AnyFilter, file: &[u8]) {
    assert!(filter.size_in_bytes() <= file.len(), "more memory than the file has bytes");
    assert_eq!(filter.to_bytes(), file, "two files hold the same filter");
    estimates_are_numbers(&filter);
    let hashes = some_hashes();

    let before = filter.clone();
    // A packed bucket that no filter writes answers "maybe" until it is written again, and keeps no key.
    let keeps =
        !matches!(&filter, AnyFilter::Cuckoo(f) if f.params().layout() == CuckooLayout::Packed);
    let had = if keeps { found(&filter, &hashes) } else { Vec::new() };
    let kept = |filter: &AnyFilter| had.iter().all(|&hash| filter.contains_hash(hash));
    match filter.union_with(&before) {
        Ok(()) => assert!(kept(&filter), "a union with itself loses a key"),
        Err(_) => assert_eq!(filter, before, "a refused union changes something"),
    }
    filter.clone_from(&before);
    match filter.intersect_with(&before) {
        Ok(()) => assert!(kept(&filter), "an intersection with itself loses a key"),
        Err(_) => assert_eq!(filter, before, "a refused intersection changes something"),
    }
    filter.clone_from(&before);

    for &hash in &hashes {
        if filter.insert_hashes(&[hash]).is_ok() {
            assert!(filter.contains_hash(hash), "a key just inserted is not there");
        }
    }
    estimates_are_numbers(&filter);
    survives_its_file(&filter);
    for &hash in &hashes {
        let there = filter.contains_hash(hash);
        match filter.remove_hash(hash) {
            Ok(removed) => assert!(there || !removed, "an absent key was removed"),
            Err(Refused::Unsupported { .. } | Refused::OutOfBounds(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    estimates_are_numbers(&filter);
    survives_its_file(&filter);
}

fn estimates_are_numbers(filter: &AnyFilter) {
    let (len, rate) = (filter.estimate_len(), filter.estimate_rate());
    assert!(len >= 0.0, "{len} keys estimated");
    assert!((0.0..=1.0).contains(&rate), "a rate of {rate} estimated");
    let _ = (filter.len(), filter.is_empty(), filter.capacity(), filter.is_over_capacity());
    let _ = filter.key_hash().of(b"7");
}
