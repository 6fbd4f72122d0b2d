//! One link of the chain: a filter of fixed size, of one of two kinds.

use crate::error::{DecodeError, Mismatch};
use crate::format::Kind;
use crate::format::native::{Header, Parts, Persist, Sections};
use crate::hash::HashFn;
use crate::kernel::{LANES, LINE_WORDS};
use crate::kinds::blocked::BlockedBloom;
use crate::kinds::bloom::Bloom;
use crate::kinds::fill::FillProgress;
use crate::kinds::union::UnionProgress;

/// The kind of the stages of a [`Scalable`](crate::Scalable).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StageKind {
    /// Segmented [`Bloom`] filters: the fewest bits.
    #[default]
    Bloom,
    /// [`BlockedBloom`] filters: one cache line per stage.
    Blocked,
}

/// The current state of one stage of a [`Scalable`](crate::Scalable).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StageInfo {
    /// The kind of filter.
    pub kind: StageKind,
    /// Number of bits.
    pub bits: u64,
    /// Bits set per key.
    pub probes: u32,
    /// The capacity: the number of keys planned for.
    pub capacity: u64,
    /// Number of keys counted: those that were new to the stage. After a union an estimate, which may exceed the
    /// capacity.
    pub len: u64,
    /// True if it has reached its capacity: the next new key starts another stage.
    pub full: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Stage {
    Bloom(Bloom),
    Blocked(BlockedBloom),
}

impl Stage {
    #[inline]
    pub(super) fn insert_hash(&mut self, hash: u64) -> bool {
        match self {
            Self::Bloom(stage) => stage.insert_hash(hash),
            Self::Blocked(stage) => stage.insert_hash(hash),
        }
    }

    #[inline]
    pub(super) fn contains_hash(&self, hash: u64) -> bool {
        match self {
            Self::Bloom(stage) => stage.contains_hash(hash),
            Self::Blocked(stage) => stage.contains_hash(hash),
        }
    }

    pub(super) fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) {
        match self {
            Self::Bloom(stage) => stage.contains_hashes(hashes, found),
            Self::Blocked(stage) => stage.contains_hashes(hashes, found),
        }
    }

    #[inline]
    pub(super) fn touch(&self, hash: u64) {
        match self {
            Self::Bloom(stage) => stage.touch(hash),
            Self::Blocked(stage) => stage.touch(hash),
        }
    }

    pub(super) fn clear(&mut self) {
        match self {
            Self::Bloom(stage) => stage.clear(),
            Self::Blocked(stage) => stage.clear(),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        match self {
            Self::Bloom(stage) => stage.thresholds().ends_stage(stage.len()),
            Self::Blocked(stage) => stage.thresholds().ends_stage(stage.len()),
        }
    }

    /// Returns true if a union has put more keys into it than planned. Inserts never do: they end a stage at its
    /// capacity, or earlier if its rate is high.
    pub(super) fn is_over_capacity(&self) -> bool {
        match self {
            Self::Bloom(stage) => {
                stage.len() >= stage.params().capacity() && stage.is_over_capacity()
            }
            Self::Blocked(stage) => {
                stage.len() >= stage.params().capacity() && stage.is_over_capacity()
            }
        }
    }

    pub(super) fn room(&self) -> u64 {
        match self {
            Self::Bloom(stage) => stage.thresholds().room_of_stage(stage.len()),
            Self::Blocked(stage) => stage.thresholds().room_of_stage(stage.len()),
        }
    }

    pub(super) fn fill(&self) -> f64 {
        match self {
            Self::Bloom(stage) => stage.fill(),
            Self::Blocked(stage) => stage.fill(),
        }
    }

    /// Returns an error unless the two set the same bits for the same key.
    pub(super) fn check_same(&self, other: &Self) -> Result<(), Mismatch> {
        match (self, other) {
            (Self::Bloom(one), Self::Bloom(two)) => one.params().check_same(&two.params()),
            (Self::Blocked(one), Self::Blocked(two)) => one.params().check_same(&two.params()),
            (one, two) => Mismatch::unless_equal("kind of stages", one.kind(), two.kind()),
        }
    }

    /// Adds words of a stage of the same shape. After the last its count is an estimate, which may exceed its capacity.
    pub(super) fn union_step(
        &mut self,
        other: &Self,
        progress: &mut UnionProgress,
        most_words: usize,
    ) -> Result<(), Mismatch> {
        match (&mut *self, other) {
            (Self::Bloom(one), Self::Bloom(two)) => one.union_step(two, progress, most_words),
            (Self::Blocked(one), Self::Blocked(two)) => one.union_step(two, progress, most_words),
            (one, two) => Mismatch::unless_equal("kind of stages", one.kind(), two.kind()),
        }
    }

    fn kind(&self) -> Kind {
        match self {
            Self::Bloom(_) => Kind::Bloom,
            Self::Blocked(_) => Kind::Blocked,
        }
    }

    pub(super) fn info(&self) -> StageInfo {
        match self {
            Self::Bloom(stage) => StageInfo {
                kind: StageKind::Bloom,
                bits: stage.params().bits(),
                probes: stage.params().probes(),
                capacity: stage.params().capacity(),
                len: stage.len(),
                full: self.is_full(),
            },
            Self::Blocked(stage) => StageInfo {
                kind: StageKind::Blocked,
                bits: stage.params().bits(),
                probes: LANES as u32,
                capacity: stage.params().capacity(),
                len: stage.len(),
                full: self.is_full(),
            },
        }
    }

    pub(super) fn estimate_len(&self) -> f64 {
        match self {
            Self::Bloom(stage) => stage.estimate_len(),
            Self::Blocked(stage) => stage.estimate_len(),
        }
    }

    /// Counts the next words.
    pub(super) fn count(&self, progress: &mut FillProgress, most_words: usize) {
        match self {
            Self::Bloom(stage) => stage.count_stage(progress, most_words),
            Self::Blocked(stage) => stage.count_stage(progress, most_words),
        }
    }

    pub(super) fn words(&self) -> &[u64] {
        match self {
            Self::Bloom(stage) => stage.words(),
            Self::Blocked(stage) => stage.words(),
        }
    }

    /// The stage's line in the table: the header fields of a file of this stage.
    ///
    /// ```text
    /// kind, len, capacity, lines of payload, four parameters
    /// ```
    pub(super) fn encode(&self) -> [u64; LINE_WORDS] {
        let header = match self {
            Self::Bloom(stage) => stage.encode().header,
            Self::Blocked(stage) => stage.encode().header,
        };
        let lines = (self.words().len() / LINE_WORDS) as u64;
        let [a, b, c, d] = std::array::from_fn(|i| header.params[i]);
        [header.kind as u64, header.len, header.capacity, lines, a, b, c, d]
    }

    /// Reads the stage described by a line of the table, whose words come next in the payload.
    pub(super) fn decode(
        line: [u64; LINE_WORDS],
        hash_fn: HashFn,
        sections: &mut Sections,
    ) -> Result<Self, DecodeError> {
        // Any length is accepted: that of a union is an estimate and may exceed the capacity.
        let [kind, len, capacity, lines, a, b, c, d] = line;
        let words = sections.take_lines(lines)?;
        let parts = |kind| {
            let header = Header::new(kind, hash_fn, len, capacity).with_params(&[a, b, c, d]);
            Parts { header, words }
        };
        Ok(match u16::try_from(kind).ok().and_then(Kind::from_number) {
            Some(Kind::Bloom) => Self::Bloom(Bloom::decode(parts(Kind::Bloom))?),
            Some(Kind::Blocked) => Self::Blocked(BlockedBloom::decode(parts(Kind::Blocked))?),
            _ => return Err(DecodeError::Invalid { what: "stage kind", value: kind }),
        })
    }
}
