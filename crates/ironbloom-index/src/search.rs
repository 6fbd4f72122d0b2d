//! A search through the tables of an index, one after the other.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::Block;
use crate::find::{Find, Match, Report};
use crate::indexed::Indexed;
use crate::indexed_error::IndexedError;
use crate::predicate::Predicate;
use crate::table::{Table, TableError};

pub(crate) fn by_source(blocks: &[Block]) -> VecDeque<(usize, Vec<Range<u64>>)> {
    let groups = blocks.chunk_by(|a, b| a.source == b.source);
    groups.map(|group| (group[0].source, group.iter().map(Block::range).collect())).collect()
}

/// What a search did.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Explanation {
    /// Blocks of all tables.
    pub considered: u64,
    /// Blocks that the index did not rule out.
    pub candidates: u64,
    /// Tables that were ruled out by values that they have in all rows.
    pub excluded_tables: u64,
    /// Time the index took.
    pub index_time: Duration,
    /// What was done with the tables.
    pub tables: Report,
}

/// A search in progress: an iterator over the matches, each with the number of its table.
pub struct Search<'a> {
    pub(crate) indexed: &'a Indexed,
    pub(crate) predicate: Predicate,
    pub(crate) select: Vec<String>,
    pub(crate) left: VecDeque<(usize, Vec<Range<u64>>)>,
    /// Rows of these that need not be compared, by table.
    pub(crate) certain: HashMap<usize, Vec<Range<u64>>>,
    pub(crate) current: Option<(usize, Find<Arc<Table>>)>,
    pub(crate) explanation: Explanation,
    /// Why tables were skipped, if that is wanted.
    pub(crate) skipped: Option<Vec<TableError>>,
    /// Tables whose turn has come.
    pub(crate) opened: u32,
    /// Nothing is wanted but how many rows match.
    pub(crate) counts_only: bool,
}

impl Search<'_> {
    /// What has been done so far, also in the table that is being searched.
    pub fn explanation(&self) -> Explanation {
        let mut explanation = self.explanation.clone();
        if let Some((_, find)) = &self.current {
            explanation.tables.add(find.report());
        }
        explanation
    }

    /// Continues with the next table if one is missing, has changed or cannot be read. Then matches may be missing: see
    /// [`skipped`](Self::skipped).
    pub fn skip_changed(&mut self) {
        self.skipped.get_or_insert_default();
    }

    /// Leaves out the numbers of rows, if no columns were selected: [`Match::batch`] says how many match.
    pub fn count_only(&mut self) {
        self.counts_only = true;
    }

    /// What is wrong with the tables that were skipped so far. Matches that they returned before are right.
    pub fn skipped(&self) -> &[TableError] {
        self.skipped.as_deref().unwrap_or_default()
    }

    fn is_object(&self, number: usize) -> bool {
        self.indexed.tables.is_object(&self.indexed.index, number)
    }

    /// Opens the next tables at the same time, if they are objects: one after the other, each would wait for its requests.
    /// What is wrong with one is an error when its turn comes.
    pub(crate) fn open_ahead(&self) -> Result<(), IndexedError> {
        const AT_ONCE: usize = 16;
        let next: Vec<usize> = self.left.iter().map(|(number, _)| *number).take(AT_ONCE).collect();
        let is_object = |&number: &usize| self.is_object(number);
        let objects: Vec<usize> = next.into_iter().filter(is_object).collect();
        self.indexed.index.prefetch_blobs(&objects)?;
        if objects.len() < 2 {
            return Ok(());
        }
        std::thread::scope(|scope| {
            for &number in &objects {
                scope.spawn(move || drop(self.indexed.table(number)));
            }
        });
        Ok(())
    }

    /// A search through these rows of a table.
    pub(crate) fn within(
        &self,
        table: Arc<Table>,
        ranges: Vec<Range<u64>>,
    ) -> Result<Find<Arc<Table>>, TableError> {
        let select: Vec<&str> = self.select.iter().map(String::as_str).collect();
        let columns = self.indexed.index.columns();
        let is_unknown = |name: &str| columns.iter().all(|column| column.name != name);
        let mut find = Find::beside_filters(table, &self.predicate, ranges, &select, &is_unknown)?;
        if self.counts_only {
            find.count_only();
        }
        Ok(find)
    }

    fn step(&mut self) -> Result<Option<(usize, Match)>, IndexedError> {
        loop {
            if let Some((number, find)) = &mut self.current {
                if let Some(found) = find.next().transpose()? {
                    return Ok(Some((*number, found)));
                }
                self.end_table();
            }
            let Some((number, ranges)) = self.left.pop_front() else { return Ok(None) };
            self.opened += 1;
            if self.opened.is_multiple_of(8) {
                self.open_ahead()?;
            }
            let table = self.indexed.table(number)?;
            let mut find = match self.within(table, ranges.clone()) {
                // It was taken to be of the version that was indexed. Perhaps it is the same under another one.
                Err(error) if error.is_of_the_file() && self.is_object(number) => {
                    let table = self.indexed.tables.get_anew(
                        &self.indexed.index,
                        &self.indexed.layout,
                        number,
                    )?;
                    self.within(table, ranges)?
                }
                find => find?,
            };
            if let Some(certain) = self.certain.remove(&number) {
                find.without_comparing(certain);
            }
            self.current = Some((number, find));
        }
    }

    fn end_table(&mut self) {
        if let Some((_, find)) = self.current.take() {
            self.explanation.tables.add(find.report());
        }
    }

    /// As [`step`](Self::step), but skips tables if that is wanted.
    fn step_over(&mut self) -> Result<Option<(usize, Match)>, IndexedError> {
        loop {
            match (self.step(), &mut self.skipped) {
                (Err(IndexedError::Table(error)), Some(skipped)) if error.is_of_the_file() => {
                    skipped.push(error);
                    self.end_table();
                }
                (done, _) => return done,
            }
        }
    }
}

impl Iterator for Search<'_> {
    type Item = Result<(usize, Match), IndexedError>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step_over();
        if step.is_err() {
            (self.left, self.current) = (VecDeque::new(), None);
        }
        step.transpose()
    }
}
