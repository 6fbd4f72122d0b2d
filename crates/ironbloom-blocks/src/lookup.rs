//! From fingerprints and spans to blocks.
//!
//! A condition is turned into a lookup once, and the lookup runs on each segment. A condition that neither lists nor
//! bounds can answer (`!=`) becomes "any block": under an AND the other columns still narrow it down, and no row is
//! lost.
//!
//! A value outside the bounds of a segment is not looked up there. Where bounds are narrow, because rows are ordered by
//! the column, they also remove most of the blocks that a list names for other values of its bucket.

use std::convert::Infallible;

use crate::block_set::{BlockSet, estimate};
use crate::bounds::{Image, Span};
use crate::postings::{List, Postings};

/// A value as lists and bounds see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Its position among the values of the column.
    pub image: Image,
    /// Its fingerprint.
    pub print: u32,
}

/// A lookup in a segment. Columns are numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// Neither lists nor bounds can answer this.
    Any,
    /// No row can match.
    Nothing,
    /// The column has this value.
    Is(usize, Key),
    /// The column has one of these values, in ascending order.
    In(usize, Vec<Key>),
    /// The column has a value with an image in this span.
    Between(usize, Span),
    /// The column is null.
    Null(usize),
    /// All of these hold.
    And(Vec<Lookup>),
    /// One of these holds.
    Or(Vec<Lookup>),
}

/// The lists and the bounds of a column in a segment, wherever they are.
pub trait ReadLists<'a> {
    /// The reason why a list could not be read.
    type Error;

    /// Returns the blocks that may hold a value with this fingerprint; no other block does.
    fn list(&self, print: u32) -> Result<List<'a>, Self::Error>;

    /// Returns the blocks that hold nulls.
    fn nulls(&self) -> Result<List<'a>, Self::Error>;

    /// Touches the memory that a lookup waits for first, then (`stage` 1) what it waits for next. The result is
    /// meaningless.
    fn touch(&self, print: u32, stage: u32) -> u64;

    /// The span of all values; [`Span::ALL`] if it is not known.
    #[inline]
    fn frame(&self) -> Span {
        Span::ALL
    }

    /// Returns true if bounds narrow down the blocks found by lists.
    #[inline]
    fn is_clustered(&self) -> bool {
        false
    }

    /// Keeps those of these blocks that may have a value with an image in this span; no other of them has.
    fn narrow(&self, _wanted: Span, blocks: BlockSet) -> Result<BlockSet, Self::Error> {
        Ok(blocks)
    }

    /// Like [`narrow`](Self::narrow), for blocks found by lists, which suffice if bounds cannot be read.
    fn narrow_found(&self, wanted: Span, blocks: BlockSet) -> Result<BlockSet, Self::Error> {
        self.narrow(wanted, blocks)
    }
}

impl<'a> ReadLists<'a> for &'a Postings {
    type Error = Infallible;

    #[inline]
    fn list(&self, print: u32) -> Result<List<'a>, Infallible> {
        Ok(Postings::list(self, print))
    }

    fn nulls(&self) -> Result<List<'a>, Infallible> {
        Ok(Postings::nulls(self))
    }

    #[inline]
    fn touch(&self, print: u32, stage: u32) -> u64 {
        Postings::touch(self, print, stage)
    }
}

impl Lookup {
    /// Returns the blocks of a segment where this may hold. `lists_of` returns the lists of a column.
    pub fn blocks<'a, L: ReadLists<'a>>(
        &self,
        blocks: u32,
        lists_of: &impl Fn(usize) -> L,
    ) -> Result<BlockSet, L::Error> {
        if let Some(list) = self.list(lists_of)? {
            return self.narrowed(BlockSet::from_list(list), lists_of);
        }
        match self {
            Self::And(parts) => and(parts, blocks, lists_of),
            Self::Or(parts) => {
                let sets: Result<Vec<_>, _> =
                    parts.iter().map(|part| part.blocks(blocks, lists_of)).collect();
                Ok(BlockSet::any_of(sets?))
            }
            Self::In(column, keys) => one_of(&lists_of(*column), keys, blocks),
            Self::Between(..) => self.narrowed(BlockSet::All, lists_of),
            _ => Ok(BlockSet::All),
        }
    }

    /// Calls back with every part that is not a combination of others.
    pub fn each_part(&self, call: &mut impl FnMut(&Self)) {
        match self {
            Self::And(parts) | Self::Or(parts) => {
                parts.iter().for_each(|part| part.each_part(call));
            }
            single => call(single),
        }
    }

    /// Returns the list that alone answers this, if there is one.
    fn list<'a, L: ReadLists<'a>>(
        &self,
        lists_of: &impl Fn(usize) -> L,
    ) -> Result<Option<List<'a>>, L::Error> {
        Ok(Some(match self {
            Self::Nothing => List::Empty,
            Self::Is(column, key) => {
                let lists = lists_of(*column);
                if lists.frame().contains(key.image) { lists.list(key.print)? } else { List::Empty }
            }
            Self::Between(column, span) if !lists_of(*column).frame().overlaps(*span) => {
                List::Empty
            }
            Self::Null(column) => lists_of(*column).nulls()?,
            _ => return Ok(None),
        }))
    }

    /// Keeps those of these blocks that bounds do not exclude.
    fn narrowed<'a, L: ReadLists<'a>>(
        &self,
        left: BlockSet,
        lists_of: &impl Fn(usize) -> L,
    ) -> Result<BlockSet, L::Error> {
        if left.is_empty() {
            return Ok(left);
        }
        match self {
            Self::Is(column, key) => narrowed_to(&lists_of(*column), *key, left),
            Self::Between(column, span) => lists_of(*column).narrow(*span, left),
            _ => Ok(left),
        }
    }

    fn is_answered_by_lists(&self) -> bool {
        matches!(self, Self::Nothing | Self::Is(..) | Self::Null(_))
    }
}

/// Keeps the blocks of a value's list whose bounds do not exclude it, if bounds can tell.
fn narrowed_to<'a, L: ReadLists<'a>>(
    lists: &L,
    key: Key,
    left: BlockSet,
) -> Result<BlockSet, L::Error> {
    if lists.is_clustered() { lists.narrow_found(Span::of(key.image), left) } else { Ok(left) }
}

/// Returns the blocks of these values. Values outside the segment's bounds cost nothing.
fn one_of<'a, L: ReadLists<'a>>(
    lists: &L,
    keys: &[Key],
    blocks: u32,
) -> Result<BlockSet, L::Error> {
    let Span { low, high } = lists.frame();
    let first = keys.partition_point(|key| key.image < low);
    let end = keys.partition_point(|key| key.image <= high).max(first);
    let set = |key: &Key| narrowed_to(lists, *key, BlockSet::from_list(lists.list(key.print)?));
    BlockSet::any_of_many(keys[first..end].iter().map(set), blocks)
}

/// Starts with the shortest list, reads the others only as far as the remaining blocks require, and stops when none
/// remain. Bounds are consulted last.
fn and<'a, L: ReadLists<'a>>(
    parts: &[Lookup],
    blocks: u32,
    lists_of: &impl Fn(usize) -> L,
) -> Result<BlockSet, L::Error> {
    fetch(parts, lists_of);
    let mut lists = Vec::with_capacity(parts.len());
    for part in parts {
        lists.extend(part.list(lists_of)?);
    }
    lists.sort_by_key(|list| estimate(list, blocks));
    let mut left = BlockSet::All;
    for list in lists {
        left = left.and_list(list);
        if left.is_empty() {
            return Ok(left);
        }
    }
    for part in parts {
        left = part.narrowed(left, lists_of)?;
    }
    for part in parts {
        let is_done = part.is_answered_by_lists() || matches!(part, Lookup::Between(..));
        if !is_done && !left.is_empty() {
            left = left.and(part.blocks(blocks, lists_of)?);
        }
    }
    Ok(left)
}

/// Requests the memory of all columns before any is used: a lookup waits for memory several times in succession, and
/// this way the waits overlap.
fn fetch<'a, L: ReadLists<'a>>(parts: &[Lookup], lists_of: &impl Fn(usize) -> L) {
    for stage in 0..2 {
        let mut read = 0;
        for part in parts {
            if let Lookup::Is(column, key) = part {
                read ^= lists_of(*column).touch(key.print, stage);
            }
        }
        std::hint::black_box(read);
    }
}
