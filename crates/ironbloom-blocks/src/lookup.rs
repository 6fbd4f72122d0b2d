//! From fingerprints to blocks.
//!
//! A condition is turned into a lookup once, and the lookup is run on each segment. What lists cannot answer (a
//! negation, a range) is "any block": under an AND the other columns still narrow it down, and no row is lost.

use std::convert::Infallible;

use crate::block_set::{BlockSet, estimate};
use crate::postings::{List, Postings};

/// What to look up in a segment. Columns are numbers, values are fingerprints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// Lists cannot answer this.
    Any,
    /// No row can match.
    Nothing,
    /// The column has this value.
    Is(usize, u32),
    /// The column has one of these values.
    In(usize, Vec<u32>),
    /// The column has no value.
    Null(usize),
    /// All of these hold.
    And(Vec<Lookup>),
    /// One of these holds.
    Or(Vec<Lookup>),
}

/// The lists of a column in a segment, wherever they are.
pub trait ReadLists<'a> {
    /// Why a list could not be read.
    type Error;

    /// The blocks that may hold a value of this fingerprint; no other block does.
    fn list(&self, print: u32) -> Result<List<'a>, Self::Error>;

    /// The blocks that hold nulls.
    fn nulls(&self) -> Result<List<'a>, Self::Error>;

    /// Reads from memory what a lookup will wait for first, then (`stage` 1) what it will wait for next. The result means
    /// nothing.
    fn touch(&self, print: u32, stage: u32) -> u64;
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
    /// The blocks of a segment where this may hold. `lists_of` gives the lists of a column.
    pub fn blocks<'a, L: ReadLists<'a>>(
        &self,
        blocks: u32,
        lists_of: &impl Fn(usize) -> L,
    ) -> Result<BlockSet, L::Error> {
        if let Some(list) = self.list(lists_of)? {
            return Ok(BlockSet::from_list(list));
        }
        match self {
            Self::And(parts) => and(parts, blocks, lists_of),
            Self::Or(parts) => {
                let sets: Result<Vec<_>, _> =
                    parts.iter().map(|part| part.blocks(blocks, lists_of)).collect();
                Ok(BlockSet::any_of(sets?))
            }
            Self::In(column, prints) => {
                let column = lists_of(*column);
                let set = |&print: &u32| Ok(BlockSet::from_list(column.list(print)?));
                BlockSet::any_of_many(prints.iter().map(set), blocks)
            }
            _ => Ok(BlockSet::All),
        }
    }

    /// The list that answers this alone, if there is one.
    fn list<'a, L: ReadLists<'a>>(
        &self,
        lists_of: &impl Fn(usize) -> L,
    ) -> Result<Option<List<'a>>, L::Error> {
        Ok(Some(match self {
            Self::Nothing => List::Empty,
            Self::Is(column, print) => lists_of(*column).list(*print)?,
            Self::Null(column) => lists_of(*column).nulls()?,
            _ => return Ok(None),
        }))
    }
}

/// Starts from the shortest list, reads the others only as far as what is left needs, and stops when nothing is.
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
        if !matches!(part, Lookup::Nothing | Lookup::Is(..) | Lookup::Null(_)) && !left.is_empty() {
            left = left.and(part.blocks(blocks, lists_of)?);
        }
    }
    Ok(left)
}

/// A lookup waits for memory several times, one after the other. The waits of several columns overlap if all are
/// requested before any is used.
fn fetch<'a, L: ReadLists<'a>>(parts: &[Lookup], lists_of: &impl Fn(usize) -> L) {
    for stage in 0..2 {
        let mut read = 0;
        for part in parts {
            if let Lookup::Is(column, print) = part {
                read ^= lists_of(*column).touch(*print, stage);
            }
        }
        std::hint::black_box(read);
    }
}
