//! RedisBloom's Bloom filter: a chain of links, each stricter than the previous one.
//!
//! ```text
//! link 0 [n keys, rate P/2]   link 1 [n·g, P/4]   link 2 [n·g², P/8]   …        g: growth
//!
//! insert(key):   in some link? then it is not new.  Else into the last; if that is full, add one first.
//! contains(key): in some link?                      The newest first: it has the most keys.
//! ```
//!
//! The rates sum to less than P however long the chain. A chain that does not scale is one link at P itself, which
//! refuses keys when it is full.

use crate::{Fill, FillProgress, UnionProgress};

use super::error::{CreateError, DecodeError, InsertError, ShapeMismatch};
use super::limits::MemoryLimit;
use super::link::{Link, LinkShape};
use super::murmur::BloomHash;
use super::stats;

/// Each link has half the rate of the previous one.
const TIGHTENING: f64 = 0.5;

/// Bytes that RedisBloom counts for a chain and for a link besides the arrays: the sizes of its structures.
const CHAIN_BYTES: u64 = 32;
const LINK_BYTES: u64 = 64;

/// More links than any chain has: even with growth 1, the rate underflows earlier.
pub(crate) const MAX_LINKS: u64 = 1100;

/// The behaviour of a full filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaling {
    /// Adds a link with this many times the capacity of the last.
    Growing(u32),
    /// Refuses keys. The number has no effect, but is kept because dumps carry it.
    Fixed(u32),
}

/// Storage options of a chain: bits of a number in dumps and files.
pub(crate) mod options {
    /// Sizes are not rounded up to powers of two.
    pub(crate) const NO_ROUND: u32 = 1;
    /// Hashes have 64 bits.
    pub(crate) const HASH_64: u32 = 4;
    /// The chain does not grow.
    pub(crate) const FIXED: u32 = 8;
}

impl Scaling {
    /// Encodes the scaling for dumps and files: options and growth.
    pub(crate) fn encode(self) -> (u32, u32) {
        let plain = options::NO_ROUND | options::HASH_64;
        match self {
            Self::Growing(growth) => (plain, growth),
            Self::Fixed(growth) => (plain | options::FIXED, growth),
        }
    }

    pub(crate) fn decode(options: u64, growth: u64) -> Result<Self, DecodeError> {
        let plain = u64::from(options::NO_ROUND | options::HASH_64);
        let fixed = u64::from(options::FIXED);
        if options & plain != plain {
            let what = "filters with hashes of 32 bits or sizes rounded to powers of two";
            return Err(DecodeError::Unsupported { what });
        }
        DecodeError::unless(options & !(plain | fixed) == 0, "options")?;
        let growth = u32::try_from(growth).map_err(|_| DecodeError::Field { what: "growth" })?;
        if options & fixed != 0 {
            return Ok(Self::Fixed(growth));
        }
        DecodeError::unless(growth >= 1, "growth")?;
        Ok(Self::Growing(growth))
    }
}

/// A Bloom filter in RedisBloom's layout.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain {
    scaling: Scaling,
    /// The links, at least one.
    links: Vec<Link>,
}

impl Chain {
    /// Creates an empty filter that starts with room for `capacity` keys.
    pub fn new(
        capacity: u64,
        rate: f64,
        scaling: Scaling,
        limit: MemoryLimit,
    ) -> Result<Self, CreateError> {
        let first = Link::new(Self::first_shape(capacity, rate, scaling)?, 0, limit)?;
        Ok(Self { scaling, links: vec![first] })
    }

    /// Shape of the first link of such a filter.
    pub(crate) fn first_shape(
        capacity: u64,
        rate: f64,
        scaling: Scaling,
    ) -> Result<LinkShape, CreateError> {
        let rate = match scaling {
            Scaling::Growing(0) => return Err(CreateError::Shape),
            Scaling::Growing(_) => rate * TIGHTENING,
            Scaling::Fixed(_) => rate,
        };
        LinkShape::for_rate(capacity, rate)
    }

    /// Builds a filter from links that were each checked.
    pub(crate) fn from_links(scaling: Scaling, links: Vec<Link>) -> Result<Self, DecodeError> {
        let most = if matches!(scaling, Scaling::Growing(_)) { MAX_LINKS } else { 1 };
        let is_possible = (1..=most).contains(&(links.len() as u64));
        DecodeError::unless(is_possible, "number of sub-filters")?;
        // No link has more keys than its capacity, so their sum fits as well.
        let capacities = links.iter().map(|link| link.shape().capacity);
        let sum = capacities.into_iter().try_fold(0u64, u64::checked_add);
        DecodeError::unless(sum.is_some(), "capacity")?;
        Ok(Self { scaling, links })
    }

    /// Inserts a key unless it might already be present. Returns true if it was new.
    pub fn insert(&mut self, hash: BloomHash, limit: MemoryLimit) -> Result<bool, InsertError> {
        self.insert_asking(hash, || limit)
    }

    /// Like [`insert`](Self::insert), with a limit that is evaluated only if the filter has to grow.
    pub fn insert_asking(
        &mut self,
        hash: BloomHash,
        limit: impl FnOnce() -> MemoryLimit,
    ) -> Result<bool, InsertError> {
        if self.contains(hash) {
            return Ok(false);
        }
        self.insert_absent(hash, limit)?;
        Ok(true)
    }

    /// Inserts a key that is absent.
    pub(super) fn insert_absent(
        &mut self,
        hash: BloomHash,
        limit: impl FnOnce() -> MemoryLimit,
    ) -> Result<(), InsertError> {
        if self.last().is_full() {
            self.grow(limit())?;
            stats::GROWTHS.add(1);
        }
        self.links.last_mut().expect("a chain has a link").insert(hash);
        Ok(())
    }

    /// Returns true if a key might be present.
    #[inline]
    pub fn contains(&self, hash: BloomHash) -> bool {
        self.links.iter().rev().any(|link| link.contains(hash))
    }

    fn grow(&mut self, limit: MemoryLimit) -> Result<(), InsertError> {
        let Scaling::Growing(growth) = self.scaling else { return Err(InsertError::Full) };
        // Only a chain loaded by LOADCHUNK gets this far; one more could not be loaded again.
        if self.links.len() as u64 >= MAX_LINKS {
            return Err(InsertError::Growth(CreateError::Shape));
        }
        let last = self.last().shape();
        let link = (|| {
            let capacity =
                last.capacity.checked_mul(u64::from(growth)).ok_or(CreateError::Shape)?;
            self.capacity().checked_add(capacity).ok_or(CreateError::Shape)?;
            let shape = LinkShape::for_rate(capacity, last.rate * TIGHTENING)?;
            Link::new(shape, self.array_bytes(), limit)
        })();
        self.links.push(link.map_err(InsertError::Growth)?);
        Ok(())
    }

    pub(super) fn last(&self) -> &Link {
        self.links.last().expect("a chain has a link")
    }

    /// Adds the keys of another filter, which must have links of the same shapes; otherwise nothing changes.
    ///
    /// The resulting number of keys in a link is unknown, since some may be in both: it is estimated from the bits.
    pub fn union_with(&mut self, other: &Self) -> Result<(), ShapeMismatch> {
        self.check_union(other)?;
        UnionProgress::all(other.links.len(), |progress, most| {
            self.union_step(other, progress, most)
        })
    }

    /// Performs a step of a union: adds the next words of a link, at most `most_words`. Between two steps both filters
    /// may take keys and grow. The union is done when `progress.stage` is the number of links that the other had at the
    /// start. Both must have this link in the same shape; otherwise nothing changes.
    pub fn union_step(
        &mut self,
        other: &Self,
        progress: &mut UnionProgress,
        most_words: usize,
    ) -> Result<(), ShapeMismatch> {
        let links = (self.links.get_mut(progress.stage), other.links.get(progress.stage));
        match links {
            (Some(one), Some(two)) if one.shape() == two.shape() => {
                one.union_step(two, progress, most_words);
                Ok(())
            }
            _ => Err(ShapeMismatch),
        }
    }

    /// Creates an empty filter with links like this one's.
    pub fn empty_like(&self) -> Result<Self, CreateError> {
        let links = self.links.iter().map(Link::empty_like).collect::<Result<_, CreateError>>()?;
        Ok(Self { scaling: self.scaling, links })
    }

    /// Returns an error unless [`union_with`](Self::union_with) would accept the other.
    pub fn check_union(&self, other: &Self) -> Result<(), ShapeMismatch> {
        let is_equal = self.scaling == other.scaling
            && self.links.len() == other.links.len()
            && self.links.iter().zip(&other.links).all(|(one, two)| one.shape() == two.shape());
        if is_equal { Ok(()) } else { Err(ShapeMismatch) }
    }

    /// Performs a step of counting the bits: counts the next words of a link, at most `most_words`. Between two steps
    /// the filter may take keys and grow; added links are counted as well. The last step, and any after it, returns the
    /// result.
    pub fn fill_step(&self, progress: &mut FillProgress, most_words: usize) -> Option<Fill> {
        if let Some(link) = self.links.get(progress.stages().len()) {
            link.fill_step(progress, most_words);
        }
        let links = progress.stages();
        (links.len() >= self.links.len()).then(|| Fill {
            bits: links.iter().map(|link| link.bits).sum(),
            ones: links.iter().map(|link| link.ones).sum(),
            // A key is found by chance if any link finds it.
            rate: 1.0 - links.iter().map(|link| 1.0 - link.rate).product::<f64>(),
        })
    }

    /// The links, oldest first.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    pub(crate) fn links_mut(&mut self) -> &mut [Link] {
        &mut self.links
    }

    /// The arrays, for defragmentation. Their lengths must not change.
    pub fn arrays_to_move(&mut self) -> Vec<&mut Vec<u8>> {
        self.links.iter_mut().map(Link::array_to_move).collect()
    }

    /// The behaviour when full.
    pub fn scaling(&self) -> Scaling {
        self.scaling
    }

    /// Number of keys that were new when inserted.
    pub fn len(&self) -> u64 {
        self.links.iter().map(Link::len).sum()
    }

    /// Returns true if it holds no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of keys that its links are planned for.
    pub fn capacity(&self) -> u64 {
        self.links.iter().map(|link| link.shape().capacity).sum()
    }

    /// Total bytes of all arrays.
    pub fn array_bytes(&self) -> u64 {
        self.links.iter().map(|link| link.shape().bytes()).sum()
    }

    /// Bytes as RedisBloom counts them: 240 for the default filter.
    pub fn size_in_bytes(&self) -> u64 {
        CHAIN_BYTES + LINK_BYTES * self.links.len() as u64 + self.array_bytes()
    }
}
