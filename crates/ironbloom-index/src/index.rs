//! [`Index`]: sources split into segments, and the answer to "which blocks?".

use std::ops::Range;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;

use ironbloom_blocks::encode::NULL;
use ironbloom_blocks::{
    BlockSet, List, MAX_ROWS, Params, Placed, Postings, ReadLists, RowRange, RowRanges, Slices,
    ValueKind,
};

use crate::builder::{Buffer, arrays_of};
use crate::error::{Error, FilePart};
use crate::file_bytes::FileBytes;
use crate::fingerprints::append_fingerprints;
use crate::lock::IndexLock;
use crate::predicate::Predicate;
use crate::query::lookup;
use crate::schema::{Column, adopt_kinds, kind_of};
use crate::section::Fault;
use crate::segment::{Segment, SegmentColumn};
use crate::source::{Blob, Source, SourceMeta};

/// An index on columns of one or several tables, in memory or in a file whose columns are read on demand.
///
/// Changes ([`append`](Self::append), [`compact`](Self::compact), [`remove`](Self::remove), [`push`](Self::push)) are
/// made in memory; [`save`](Self::save) writes them, to a new file that then replaces the old one.
#[derive(Debug)]
pub struct Index {
    params: Params,
    columns: Vec<Column>,
    pub(crate) sources: Vec<Source>,
    /// Ordered by source, then by row.
    pub(crate) segments: Vec<Segment>,
    growing: Option<Growing>,
    /// The file that it was read from or saved to last.
    pub(crate) origin: Option<Origin>,
    /// The file that it was opened from.
    pub(crate) file: Option<FileBytes>,
}

/// A state of an index file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The file, with all symbolic links resolved.
    pub(crate) target: PathBuf,
    /// Its first bytes, which differ if anything in the file does: they hold a checksum of all checksums.
    pub(crate) header: Vec<u8>,
}

/// Rows added batch by batch that can already be looked up.
struct Growing {
    /// Its columns are slices.
    segment: Segment,
    /// What they will be sealed from.
    buffer: Buffer,
}

impl std::fmt::Debug for Growing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Growing({} rows)", self.buffer.rows)
    }
}

/// Growing rows are sealed when there are this many.
const GROWING_ROWS: u64 = 1 << 18;

/// Consecutive rows that may match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Block {
    /// The position of the table in [`Index::sources`].
    pub source: usize,
    /// The first row, counted from 0 in the table.
    pub first_row: u64,
    /// Number of rows.
    pub rows: u32,
}

impl Block {
    /// The rows, counted from 0 in the table.
    pub fn range(&self) -> Range<u64> {
        self.first_row..self.first_row + u64::from(self.rows)
    }
}

/// Where matching rows may be. There are none elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidates {
    /// The blocks, by source, then by row.
    pub blocks: Vec<Block>,
    /// All blocks of the index.
    pub considered: u64,
}

/// The contents and size of an index.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Info {
    /// Rows of all sources.
    pub rows: u64,
    /// Blocks of all segments.
    pub blocks: u64,
    /// Segments.
    pub segments: usize,
    /// Bytes of all columns, not counting the data of the sources.
    pub bytes: u64,
    /// Bytes stored for the readers of the tables.
    pub blob_bytes: u64,
    /// The columns.
    pub columns: Vec<ColumnInfo>,
}

/// What an index holds for a column.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ColumnInfo {
    /// Its name.
    pub name: String,
    /// The kind of its values.
    pub kind: ValueKind,
    /// Size in bytes.
    pub bytes: u64,
    /// Bits per row, null or not.
    pub bits_per_cell: f64,
}

impl Index {
    pub(crate) fn empty(columns: Vec<Column>, params: Params) -> Self {
        let (sources, segments) = (Vec::new(), Vec::new());
        Self { params, columns, sources, segments, growing: None, origin: None, file: None }
    }

    /// Rows per block and selectivity.
    pub fn params(&self) -> Params {
        self.params
    }

    /// The columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// See [`adopt_kinds`].
    pub(crate) fn adopt_kinds(&mut self, kinds: impl Iterator<Item = Option<ValueKind>>) {
        adopt_kinds(&mut self.columns, kinds);
    }

    /// The tables.
    pub fn sources(&self) -> &[Source] {
        &self.sources
    }

    /// The position of the table with this name.
    pub fn source(&self, name: &str) -> Option<usize> {
        self.sources.iter().position(|source| source.name == name)
    }

    /// What the reader of this table asked to store ([`SourceMeta::blob`]).
    ///
    /// # Panics
    ///
    /// If there is no such source.
    pub fn blob(&self, source: usize) -> Result<&[u8], Error> {
        self.sources[source].blob.bytes().map_err(|fault| self.blob_error(source, fault))
    }

    fn blob_error(&self, source: usize, fault: Fault) -> Error {
        let Blob::Stored { section, .. } = &self.sources[source].blob else {
            unreachable!("what is in memory has no faults")
        };
        section.error(fault, self.sources[source].blob_part())
    }

    /// The blocks that may contain a matching row; no other block does.
    ///
    /// Fails if a column is not in the index, if a value does not match its column's kind, or if a part of the file
    /// read for this is damaged.
    pub fn candidates(&self, predicate: &Predicate) -> Result<Candidates, Error> {
        let lookup = lookup(predicate, &self.columns)?;
        let block_rows = self.params.block_rows();
        let mut found = Candidates { blocks: Vec::new(), considered: 0 };
        for (number, segment) in self.all_segments() {
            let blocks = segment.rows.blocks(block_rows);
            found.considered += u64::from(blocks);
            let lists_of = |column| Lists { index: self, number, segment, column };
            let mut add = |block| {
                let RowRange { first_row, rows } = segment.rows.block(block, block_rows);
                let (source, rows) = (segment.source, rows as u32);
                found.blocks.push(Block { source, first_row, rows });
            };
            match lookup.blocks(blocks, &lists_of)? {
                BlockSet::All => (0..blocks.into()).for_each(&mut add),
                BlockSet::Some(some) => some.into_iter().map(u64::from).for_each(&mut add),
            }
        }
        if self.growing.is_some() {
            found.blocks.sort_unstable();
        }
        Ok(found)
    }

    fn all_segments(&self) -> impl Iterator<Item = (usize, &Segment)> {
        let growing = self.growing.as_ref().map(|growing| &growing.segment);
        self.segments.iter().chain(growing).enumerate()
    }

    #[cold]
    fn column_error(&self, number: usize, segment: &Segment, column: usize, fault: Fault) -> Error {
        let SegmentColumn::Stored(found) = &segment.columns[column] else {
            unreachable!("what is in memory has no faults")
        };
        found.section.error(fault, self.column_part(number, segment, column))
    }

    /// The name of a column in a segment, for errors.
    pub(crate) fn column_part(&self, number: usize, segment: &Segment, column: usize) -> FilePart {
        FilePart::Column {
            column: self.columns[column].name.clone(),
            source: self.sources[segment.source].name.clone(),
            segment: number,
        }
    }

    /// Adds the sources of another index with the same columns and parameters, usually one that was built
    /// [like](crate::IndexBuilder::like) this one. A source that is in both grows: the rows of the other must start where those here end
    /// ([`IndexBuilder::start_at`](crate::IndexBuilder::start_at)), and its length, fingerprint and blob replace those here.
    ///
    /// On error nothing has changed.
    pub fn append(&mut self, other: Index) -> Result<(), Error> {
        self.check_joinable(&other)?;
        let mut other = other;
        self.adopt_kinds(other.columns.iter().map(|column| Some(column.kind)));
        self.seal();
        other.seal();
        let mut places = Vec::new();
        for source in other.sources {
            if let Some(place) = self.source(&source.name) {
                self.sources[place] = source;
                places.push(place);
            } else {
                places.push(self.sources.len());
                self.sources.push(source);
            }
        }
        self.segments.extend(
            other.segments.into_iter().map(|part| Segment { source: places[part.source], ..part }),
        );
        self.order_segments();
        Ok(())
    }

    fn check_joinable(&self, other: &Self) -> Result<(), Error> {
        if self.params != other.params {
            let (left, right) = (format!("{:?}", self.params), format!("{:?}", other.params));
            return Err(Error::Mismatch { what: "blocks or selectivity", left, right });
        }
        let fit = |(a, b): (&Column, &Column)| {
            a.name == b.name && (a.kind == b.kind || [a.kind, b.kind].contains(&ValueKind::Null))
        };
        let as_many = self.columns.len() == other.columns.len();
        if !as_many || !self.columns.iter().zip(&other.columns).all(fit) {
            let names = |index: &Self| {
                let column = |column: &Column| format!("{} ({})", column.name, column.kind);
                index.columns.iter().map(column).collect::<Vec<_>>().join(", ")
            };
            return Err(Error::Mismatch {
                what: "columns",
                left: names(self),
                right: names(other),
            });
        }
        for (place, source) in other.sources.iter().enumerate() {
            let first = other.first_row(place);
            let rows = self.source(&source.name).map(|place| self.sources[place].rows);
            match (rows, first) {
                (None, 0) => {}
                (Some(_), 0) => return Err(Error::TwoSources { source: source.name.clone() }),
                (Some(rows), first) if rows == first => {}
                (rows, first_row) => {
                    let source = source.name.clone();
                    return Err(Error::Gap { source, rows: rows.unwrap_or(0), first_row });
                }
            }
        }
        Ok(())
    }

    /// The first row of a source in this index; the one after its last if there are none.
    fn first_row(&self, source: usize) -> u64 {
        let own = self.all_segments().filter(|(_, segment)| segment.source == source);
        own.map(|(_, segment)| segment.rows.0[0].first_row)
            .min()
            .unwrap_or(self.sources[source].rows)
    }

    fn order_segments(&mut self) {
        self.segments.sort_by_key(|segment| (segment.source, segment.rows.0[0].first_row));
    }

    /// Adds the next rows of a source, which can be looked up immediately. Many rows are added faster with
    /// [`IndexBuilder`](crate::IndexBuilder) and [`append`](Self::append). A rejected batch adds nothing.
    ///
    /// # Panics
    ///
    /// If there is no such source.
    pub fn push(&mut self, source: usize, batch: &RecordBatch) -> Result<(), Error> {
        let arrays = arrays_of(batch, &self.columns)?;
        self.adopt_kinds(arrays.iter().map(|array| kind_of(array.data_type())));
        let first_row = self.sources[source].rows;
        if self.growing.as_ref().is_some_and(|growing| growing.segment.source != source) {
            self.seal();
        }
        let (columns, params) = (self.columns.len(), self.params);
        let growing =
            self.growing.get_or_insert_with(|| Growing::new(source, first_row, columns, params));
        let block_bits = params.block_rows().trailing_zeros();
        for (column, array) in growing.segment.columns.iter_mut().zip(&arrays) {
            let SegmentColumn::Growing(slices) = column else {
                unreachable!("growing columns are slices")
            };
            let mut prints = Vec::with_capacity(batch.num_rows());
            append_fingerprints(array, &mut prints);
            for (row, print) in (growing.buffer.rows..).zip(prints) {
                match (print, (row >> block_bits) as u32) {
                    (NULL, block) => slices.insert_null(block),
                    (print, block) => slices.insert(print, block),
                }
            }
        }
        growing.buffer.push(&arrays, batch.num_rows());
        growing.segment.rows.0[0].rows = growing.buffer.rows;
        self.sources[source].rows += batch.num_rows() as u64;
        if growing.buffer.rows >= GROWING_ROWS {
            self.seal();
        }
        Ok(())
    }

    /// Updates the metadata of a source after rows were [pushed](Self::push).
    ///
    /// # Panics
    ///
    /// If there is no such source.
    pub fn set_meta(&mut self, source: usize, meta: SourceMeta) {
        let source = &mut self.sources[source];
        (source.bytes, source.fingerprint) = (meta.bytes, meta.fingerprint);
        source.blob = Blob::Owned(meta.blob);
    }

    /// Seals the rows that were [pushed](Self::push): smaller, and faster to look up.
    pub fn seal(&mut self) {
        if let Some(growing) = self.growing.take()
            && growing.buffer.rows > 0
        {
            let columns = growing.buffer.seal(self.params);
            self.segments.push(Segment { columns, ..growing.segment });
            self.order_segments();
        }
    }

    /// Merges the segments of each source into one (of at most 2^30 rows), without reading the tables. Every segment
    /// adds to the lookup time.
    ///
    /// If it fails, because the file is damaged, nothing has changed.
    pub fn compact(&mut self) -> Result<(), Error> {
        self.seal();
        let groups = self.mergeable();
        let mut merged = Vec::new();
        for group in groups.iter().filter(|group| group.len() > 1) {
            merged.push(self.merge(group.clone())?);
        }
        let mut old: Vec<Option<Segment>> =
            std::mem::take(&mut self.segments).into_iter().map(Some).collect();
        let mut merged = merged.into_iter();
        for group in groups {
            let segment = if group.len() > 1 { merged.next() } else { old[group.start].take() };
            self.segments.extend(segment);
        }
        Ok(())
    }

    /// Ranges of segments that can become one: of one source, and not too many rows.
    fn mergeable(&self) -> Vec<Range<usize>> {
        let mut groups: Vec<Range<usize>> = Vec::new();
        let mut rows = 0;
        for (i, segment) in self.segments.iter().enumerate() {
            rows += segment.rows.rows();
            match groups.last_mut() {
                Some(group)
                    if self.segments[group.start].source == segment.source && rows <= MAX_ROWS =>
                {
                    group.end = i + 1;
                }
                _ => {
                    groups.push(i..i + 1);
                    rows = segment.rows.rows();
                }
            }
        }
        groups
    }

    fn merge(&self, group: Range<usize>) -> Result<Segment, Error> {
        let block_rows = self.params.block_rows();
        let parts = &self.segments[group.clone()];
        let blocks = parts.iter().map(|part| part.rows.blocks(block_rows)).sum();
        let mut columns = Vec::new();
        for column in 0..self.columns.len() {
            let mut first_block = 0;
            let mut sealed = Vec::new();
            for (number, segment) in group.clone().zip(parts) {
                let postings = self.postings(number, segment, column)?;
                sealed.push(Placed { postings, first_block });
                first_block += segment.rows.blocks(block_rows);
            }
            columns.push(SegmentColumn::Sealed(Postings::merge(&sealed, blocks, self.params)));
        }
        let rows = RowRanges::join(parts.iter().map(|part| &part.rows), block_rows);
        Ok(Segment { source: parts[0].source, rows, columns })
    }

    fn postings<'a>(
        &self,
        number: usize,
        segment: &'a Segment,
        column: usize,
    ) -> Result<&'a Postings, Error> {
        let postings = segment.columns[column].postings();
        postings.map_err(|fault| self.column_error(number, segment, column, fault))
    }

    /// Reads all columns into memory, for a program that will ask for many values: lookups there are faster than in pieces
    /// of a file.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] or [`Error::Io`] for the first column that cannot be read completely.
    pub fn load(&self) -> Result<(), Error> {
        for (number, segment) in self.segments.iter().enumerate() {
            for column in 0..self.columns.len() {
                self.postings(number, segment, column)?;
            }
        }
        Ok(())
    }

    /// Removes a source from the index.
    pub fn remove(&mut self, name: &str) -> Result<(), Error> {
        let place = self.source(name).ok_or_else(|| Error::NoSource { source: name.to_owned() })?;
        self.seal();
        self.sources.remove(place);
        self.segments.retain(|segment| segment.source != place);
        for segment in &mut self.segments {
            segment.source -= usize::from(segment.source > place);
        }
        Ok(())
    }

    /// Reads everything and verifies all checksums. Returns one error for each damaged part; none if all is well.
    pub fn verify(&self) -> Vec<Error> {
        let mut errors = Vec::new();
        // What was read before is read again: it may have been damaged since. One column is in memory at a time.
        for (number, segment) in self.all_segments() {
            for (column, held) in segment.columns.iter().enumerate() {
                if let SegmentColumn::Stored(found) = held
                    && let Err(fault) = found.verify()
                {
                    errors.push(self.column_error(number, segment, column, fault));
                }
            }
        }
        for (number, source) in self.sources.iter().enumerate() {
            if let Blob::Stored { section, .. } = &source.blob
                && let Err(fault) = section.bytes()
            {
                errors.push(self.blob_error(number, fault));
            }
        }
        errors
    }

    /// Bytes that were read so far from the file that it was [opened](Self::open) from; 0 if there is none.
    pub fn bytes_read(&self) -> u64 {
        self.file.as_ref().map_or(0, FileBytes::bytes_read)
    }

    /// The contents and size of the index. Reads only the directory.
    pub fn info(&self) -> Info {
        let rows = self.sources.iter().map(|source| source.rows).sum();
        let block_rows = self.params.block_rows();
        let columns: Vec<ColumnInfo> = self
            .columns
            .iter()
            .enumerate()
            .map(|(i, column)| {
                let bytes =
                    self.all_segments().map(|(_, part)| part.columns[i].size_in_bytes()).sum();
                let bits_per_cell = if rows == 0 { 0.0 } else { 8.0 * bytes as f64 / rows as f64 };
                ColumnInfo { name: column.name.clone(), kind: column.kind, bytes, bits_per_cell }
            })
            .collect();
        Info {
            rows,
            blocks: self
                .all_segments()
                .map(|(_, part)| u64::from(part.rows.blocks(block_rows)))
                .sum(),
            segments: self.all_segments().count(),
            bytes: columns.iter().map(|column| column.bytes).sum(),
            blob_bytes: self.sources.iter().map(|source| source.blob.len()).sum(),
            columns,
        }
    }

    /// Writes the index to a file: under a temporary name next to it, synced, then renamed, so that the file under the
    /// real name is always either the old one or the new one, never a mix.
    ///
    /// Writers take turns ([`IndexLock`]); this one waits for its turn, forever if this thread holds the lock. If the
    /// index was opened from this file and another process has changed the file since, that change would be lost: it is
    /// [`Error::Overtaken`], and nothing is written. A file that is not an index is not overwritten
    /// ([`Error::Occupied`]), unless it is empty.
    pub fn save(&mut self, path: impl AsRef<Path>) -> Result<(), Error> {
        IndexLock::acquire(path)?.save(self)
    }

    /// As [`save`](Self::save), with the lock held.
    pub(crate) fn save_locked(&mut self, lock: &IndexLock) -> Result<(), Error> {
        self.seal();
        for (place, source) in self.sources.iter().enumerate() {
            let first_row = self.first_row(place);
            if first_row != 0 && source.rows != 0 {
                return Err(Error::Gap { source: source.name.clone(), rows: 0, first_row });
            }
        }
        let target = lock.path();
        crate::file::check_replaceable(target)?;
        if let Some(origin) = self.origin.as_ref().filter(|origin| origin.target == target)
            && crate::file::header(target).ok().as_ref() != Some(&origin.header)
        {
            return Err(Error::Overtaken { path: target.to_owned() });
        }
        let header = crate::file::save(self, target)?;
        self.origin = Some(Origin { target: target.to_owned(), header });
        Ok(())
    }

    /// Whether an index may be saved here: there is nothing, an empty file, or an index.
    ///
    /// # Errors
    ///
    /// [`Error::Occupied`] if there is another file, [`Error::Io`] if it cannot be read.
    pub fn check_replaceable(path: impl AsRef<Path>) -> Result<(), Error> {
        crate::file::check_replaceable(path.as_ref())
    }

    /// Whether both were read from the same state of the same file.
    pub(crate) fn is_same_state(&self, other: &Self) -> bool {
        self.origin.is_some() && self.origin == other.origin
    }

    /// Opens an index file. Only its directory is read; of the columns those pieces of 4 KiB are read, and their checksums
    /// verified, that a lookup needs. They stay in memory. Once half of a column has been read that way, all of it is; see
    /// also [`load`](Self::load). (Files of version 1 have one checksum for a column, so it is read on first use.)
    ///
    /// If others change the file meanwhile, using a piece that was not read before gives an error, never a wrong
    /// answer. [`save`](Self::save) replaces the file, which changes nothing for an open index.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        crate::file::open(path.as_ref())
    }
}

/// The lists of a column in a segment, with errors that name both.
struct Lists<'a> {
    index: &'a Index,
    number: usize,
    segment: &'a Segment,
    column: usize,
}

impl Lists<'_> {
    fn error(&self, fault: Fault) -> Error {
        self.index.column_error(self.number, self.segment, self.column, fault)
    }
}

impl<'a> ReadLists<'a> for Lists<'a> {
    type Error = Error;

    #[inline]
    fn list(&self, print: u32) -> Result<List<'a>, Error> {
        self.segment.columns[self.column].list(print).map_err(|fault| self.error(fault))
    }

    fn nulls(&self) -> Result<List<'a>, Error> {
        self.segment.columns[self.column].nulls().map_err(|fault| self.error(fault))
    }

    #[inline]
    fn touch(&self, print: u32, stage: u32) -> u64 {
        self.segment.columns[self.column].touch(print, stage)
    }
}

impl Growing {
    fn new(source: usize, first_row: u64, columns: usize, params: Params) -> Self {
        let slices = || SegmentColumn::Growing(Slices::new(params.block_rows()));
        let segment = Segment {
            source,
            rows: RowRanges(vec![RowRange { first_row, rows: 0 }]),
            columns: std::iter::repeat_with(slices).take(columns).collect(),
        };
        Self { segment, buffer: Buffer::new(columns, params) }
    }
}
