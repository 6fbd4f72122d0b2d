//! [`Index`]: sources split into segments, and the answer to "which blocks?".

use std::convert::Infallible;
use std::ops::Range;

use arrow::array::RecordBatch;

use ironbloom_blocks::bounds::{BlockSpans, Span};
use ironbloom_blocks::encode::NULL;
use ironbloom_blocks::{
    BlockSet, List, Lookup, Params, Postings, ReadLists, RowRange, Slices, ValueKind,
};

use crate::builder::{Buffer, arrays_of};
use crate::error::{Error, FilePart};
use crate::file_bytes::FileBytes;
use crate::fingerprints::append_fingerprints;
use crate::images::push_images;
use crate::location::Location;
use crate::lock::IndexLock;
use crate::predicate::Predicate;
use crate::query::{Unknown, lookup, lookup_of_misses};
use crate::schema::{Column, adopt_kinds, kind_of};
use crate::section::Fault;
use crate::segment::{Segment, SegmentColumn};
use crate::segment_bounds::SegmentBounds;
use crate::segment_rows::SegmentRows;
use crate::source::{Blob, Source, SourceMeta};

/// An index on columns of one or several tables, in memory or in a file whose columns are read on demand.
///
/// Changes ([`append`](Self::append), [`compact`](Self::compact), [`remove`](Self::remove), [`push`](Self::push)) are
/// made in memory; [`save`](Self::save) writes them, to a new file that then replaces the old one.
#[derive(Debug)]
pub struct Index {
    params: Params,
    pub(crate) columns: Vec<Column>,
    /// What the sources have in common, for whoever reads them.
    pub(crate) layout: Vec<u8>,
    pub(crate) sources: Vec<Source>,
    /// Ordered by their first source, then by row.
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
    pub(crate) target: Location,
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

impl Index {
    pub(crate) fn empty(columns: Vec<Column>, params: Params) -> Self {
        let (layout, sources, segments) = (Vec::new(), Vec::new(), Vec::new());
        Self { params, columns, layout, sources, segments, growing: None, origin: None, file: None }
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
        let source = &self.sources[source];
        source.blob.bytes().map_err(|fault| source.blob.error(fault, source.blob_part()))
    }

    /// Which rows of this table have been deleted ([`SourceMeta::deleted`]).
    ///
    /// # Panics
    ///
    /// If there is no such source.
    pub fn deleted(&self, source: usize) -> Result<&[u8], Error> {
        let source = &self.sources[source];
        source.deleted.bytes().map_err(|fault| source.deleted.error(fault, source.deleted_part()))
    }

    /// Says that the blobs of these sources will be read: they are requested together, if the index is in a bucket.
    pub(crate) fn prefetch_blobs(&self, sources: &[usize]) -> Result<(), Error> {
        let Some(file) = self.file.as_ref().filter(|file| file.is_object()) else { return Ok(()) };
        let range = |&source: &usize| self.sources[source].blob.stored_range();
        let ranges: Vec<Range<u64>> = sources.iter().filter_map(range).collect();
        let location = || file.location().clone();
        file.prefetch(&ranges).map_err(|error| Error::Io { path: location(), error })
    }

    /// The blocks that may contain a matching row; no other block does.
    ///
    /// Fails if a column is not in the index, if a value does not match its column's kind, or if a part of the file
    /// read for this is damaged.
    pub fn candidates(&self, predicate: &Predicate) -> Result<Candidates, Error> {
        self.candidates_in(predicate, Unknown::IsAnError, &|_| true)
    }

    /// All blocks.
    pub(crate) fn blocks(&self) -> u64 {
        self.all_segments().map(|(_, part)| part.rows.present_blocks()).sum()
    }

    /// As [`candidates`](Self::candidates), in some of the sources, for predicates on columns that may not be in the index. All
    /// blocks count as considered.
    pub(crate) fn candidates_in(
        &self,
        predicate: &Predicate,
        unknown: Unknown,
        is_meant: &dyn Fn(usize) -> bool,
    ) -> Result<Candidates, Error> {
        let lookup = lookup(predicate, &self.columns, unknown)?;
        #[cfg(feature = "object_store")]
        self.prefetch(&lookup, is_meant)?;
        self.blocks_of(&lookup, is_meant)
    }

    /// The blocks in which some row may not satisfy this, of these sources: every row of the others does. `None` if that is not
    /// known of any, or would have to be requested.
    pub(crate) fn misses_in(
        &self,
        predicate: &Predicate,
        is_meant: &dyn Fn(usize) -> bool,
    ) -> Option<Vec<Block>> {
        if self.file.as_ref().is_some_and(|file| file.is_object()) {
            return None;
        }
        let lookup = lookup_of_misses(predicate, &self.columns).ok()?;
        // What cannot be read proves nothing: rows are compared then.
        (lookup != Lookup::Any).then(|| self.blocks_of(&lookup, is_meant).ok())?.map(|it| it.blocks)
    }

    fn blocks_of(
        &self,
        lookup: &Lookup,
        is_meant: &dyn Fn(usize) -> bool,
    ) -> Result<Candidates, Error> {
        let mut found = Candidates { blocks: Vec::new(), considered: 0 };
        for (number, segment) in self.all_segments() {
            found.considered += segment.rows.present_blocks();
            if !segment.has_any_of(is_meant) {
                continue;
            }
            let lists_of = |column| Lists { index: self, number, segment, column };
            let blocks = lookup.blocks(segment.rows.blocks(), &lists_of)?;
            segment.rows.each_block(&blocks, is_meant, |block| found.blocks.push(block));
        }
        // Not if a source has rows in several segments of which others are between.
        if !found.blocks.is_sorted() {
            found.blocks.sort_unstable();
        }
        Ok(found)
    }

    /// Requests what a lookup will read of all segments, together: in a few rounds, because what is read tells what is to be
    /// read next. Only if the index is in a bucket.
    #[cfg(feature = "object_store")]
    fn prefetch(&self, lookup: &Lookup, is_meant: &dyn Fn(usize) -> bool) -> Result<(), Error> {
        /// More than a lookup takes; if not, the rest is requested as it is read.
        const ROUNDS: usize = 8;
        let Some(file) = self.file.as_ref().filter(|file| file.is_object()) else { return Ok(()) };
        for _ in 0..ROUNDS {
            let missing = crate::object::planned(|| {
                for segment in self.segments.iter().filter(|segment| segment.has_any_of(is_meant)) {
                    // Errors come again when it is read.
                    lookup.each_part(&mut |part| drop(segment.read_for(part)));
                }
            });
            if missing.is_empty() {
                break;
            }
            file.prefetch(&missing).map_err(|error| self.replaced(error))?;
        }
        Ok(())
    }

    /// An error on reading the file that it was opened from.
    #[cfg(feature = "object_store")]
    fn replaced(&self, error: std::io::Error) -> Error {
        let path = self.file.as_ref().map(|file| file.location().clone());
        Error::Io { path: path.unwrap_or_else(|| "".into()), error }
    }

    pub(crate) fn all_segments(&self) -> impl Iterator<Item = (usize, &Segment)> {
        let growing = self.growing.as_ref().map(|growing| &growing.segment);
        self.segments.iter().chain(growing).enumerate()
    }

    #[cold]
    pub(crate) fn column_error(
        &self,
        number: usize,
        segment: &Segment,
        column: usize,
        fault: Fault,
    ) -> Error {
        let SegmentColumn::Stored(found) = &segment.columns[column] else {
            unreachable!("what is in memory has no faults")
        };
        found.section.error(fault, self.column_part(number, segment, column))
    }

    #[cold]
    pub(crate) fn bounds_error(&self, number: usize, segment: &Segment, fault: Fault) -> Error {
        let SegmentBounds::Stored(found) = &segment.bounds else {
            unreachable!("what is in memory has no faults")
        };
        found.section.error(fault, self.bounds_part(number, segment))
    }

    /// The name of a column in a segment, for errors.
    pub(crate) fn column_part(&self, number: usize, segment: &Segment, column: usize) -> FilePart {
        FilePart::Column {
            column: self.columns[column].name.clone(),
            source: self.names_of(segment),
            segment: number,
        }
    }

    /// The name of the bounds of a segment, for errors.
    pub(crate) fn bounds_part(&self, number: usize, segment: &Segment) -> FilePart {
        FilePart::Bounds { source: self.names_of(segment), segment: number }
    }

    /// The sources of a segment, for errors.
    fn names_of(&self, segment: &Segment) -> String {
        let mut sources: Vec<usize> = segment.rows.present().map(|(source, _)| source).collect();
        sources.dedup();
        let first = sources.first().map_or("no source", |&first| &self.sources[first].name);
        match sources.len() {
            0 | 1 => first.to_owned(),
            2 => format!("{first} and one other"),
            all => format!("{first} and {} others", all - 1),
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
                places.push(Some(place));
            } else {
                places.push(Some(self.sources.len()));
                self.sources.push(source);
            }
        }
        if !other.layout.is_empty() {
            self.layout = other.layout;
        }
        for mut segment in other.segments {
            segment.rows.place(&places);
            self.segments.push(segment);
        }
        self.order_segments();
        Ok(())
    }

    /// The sources and the first row of each: what [`into_appended`](Self::into_appended) needs.
    pub(crate) fn starts(&self) -> Vec<(String, u64)> {
        let sources = self.sources.iter().enumerate();
        sources.map(|(place, source)| (source.name.clone(), self.first_row(place))).collect()
    }

    /// What was [appended](Self::append) last, again: sources from these rows on.
    pub(crate) fn into_appended(mut self, starts: &[(String, u64)]) -> Self {
        let mut appended = Self::empty(self.columns.clone(), self.params);
        let mut places = vec![None; self.sources.len()];
        let mut first_rows = vec![u64::MAX; self.sources.len()];
        for (source, (name, first_row)) in starts.iter().enumerate() {
            if let Some(place) = self.source(name) {
                (places[place], first_rows[place]) = (Some(source), *first_row);
            }
        }
        // Segments are appended as they are: none has both old rows and new ones.
        let is_new = |segment: &mut Segment| {
            segment.rows.present().all(|(source, rows)| rows.first_row >= first_rows[source])
        };
        appended.segments.extend(self.segments.extract_if(.., is_new));
        for segment in &mut appended.segments {
            segment.rows.place(&places);
        }
        let mut sources: Vec<Option<Source>> = self.sources.into_iter().map(Some).collect();
        for (name, _) in starts {
            let is_meant = |source: &&mut Option<Source>| {
                source.as_ref().is_some_and(|source| source.name == *name)
            };
            appended.sources.extend(sources.iter_mut().find(is_meant).and_then(Option::take));
        }
        appended
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
        let ranges = self.all_segments().flat_map(|(_, segment)| segment.rows.present());
        let own = ranges.filter(|(owner, _)| *owner == source);
        own.map(|(_, rows)| rows.first_row).min().unwrap_or(self.sources[source].rows)
    }

    pub(crate) fn order_segments(&mut self) {
        self.segments.sort_by_key(|segment| segment.rows.first());
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
        if self
            .growing
            .as_ref()
            .is_some_and(|growing| growing.segment.rows.only_source() != Some(source))
        {
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
        if let SegmentBounds::Growing(spans) = &mut growing.segment.bounds {
            spans.iter_mut().zip(&arrays).for_each(|(spans, array)| push_images(array, spans));
        }
        growing.buffer.push(&arrays, batch.num_rows());
        growing.segment.rows.grow(growing.buffer.rows);
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
        source.version = meta.version;
        (source.blob, source.view) = (Blob::Owned(meta.blob), meta.view);
        source.deleted = Blob::Owned(meta.deleted);
    }

    /// Seals the rows that were [pushed](Self::push): smaller, and faster to look up.
    pub fn seal(&mut self) {
        if let Some(growing) = self.growing.take()
            && growing.buffer.rows > 0
        {
            let bucket_bits = self.params.bucket_bits(growing.buffer.rows);
            let keep = |postings, _| Ok::<_, Infallible>(SegmentColumn::Sealed(postings));
            let Ok((columns, bounds)) = growing.buffer.seal(self.params, bucket_bits, 1, keep);
            self.segments.push(Segment { columns, bounds, ..growing.segment });
            self.order_segments();
        }
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
                let loaded = segment.bounds.load(column);
                loaded.map_err(|fault| self.bounds_error(number, segment, fault))?;
            }
        }
        Ok(())
    }

    /// Removes a source from the index.
    pub fn remove(&mut self, name: &str) -> Result<(), Error> {
        let place = self.source(name).ok_or_else(|| Error::NoSource { source: name.to_owned() })?;
        self.retain(|source| source != place);
        Ok(())
    }

    /// Removes all sources but these, which are given by their positions.
    pub(crate) fn retain(&mut self, keep: impl Fn(usize) -> bool) {
        self.seal();
        let mut places = Vec::with_capacity(self.sources.len());
        let mut kept = 0;
        for place in 0..self.sources.len() {
            places.push(keep(place).then_some(kept));
            kept += usize::from(keep(place));
        }
        let mut place = 0..;
        self.sources.retain(|_| place.next().is_some_and(|place| places[place].is_some()));
        self.segments.retain_mut(|segment| segment.rows.place(&places));
        self.order_segments();
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
            if let SegmentBounds::Stored(found) = &segment.bounds
                && let Err(fault) = found.verify()
            {
                errors.push(self.bounds_error(number, segment, fault));
            }
        }
        for source in &self.sources {
            for (blob, part) in
                [(&source.blob, source.blob_part()), (&source.deleted, source.deleted_part())]
            {
                errors.extend(blob.verify().err().map(|fault| blob.error(fault, part)));
            }
        }
        errors
    }

    /// Bytes that were read so far from the file that it was [opened](Self::open) from; 0 if there is none.
    pub fn bytes_read(&self) -> u64 {
        self.file.as_ref().map_or(0, FileBytes::bytes_read)
    }

    /// Writes the index to a file: under a temporary name next to it, synced, then renamed, so that the file under the
    /// real name is always either the old one or the new one, never a mix.
    ///
    /// Writers take turns ([`IndexLock`]); this one waits for its turn, forever if this thread holds the lock. If the
    /// index was opened from this file and another process has changed the file since, that change would be lost: it is
    /// [`Error::Overtaken`], and nothing is written. A file that is not an index is not overwritten
    /// ([`Error::Occupied`]), unless it is empty.
    pub fn save(&mut self, path: impl Into<Location>) -> Result<(), Error> {
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
        let target = lock.location();
        if target.is_object() {
            // What is there is compared when it is replaced.
            let header = crate::file::save(self, target)?;
            self.origin = Some(Origin { target: target.clone(), header });
            return Ok(());
        }
        crate::file::check_replaceable(target)?;
        if let Some(origin) = self.origin.as_ref().filter(|origin| origin.target == *target)
            && crate::file::header(target).ok().as_ref() != Some(&origin.header)
        {
            return Err(Error::Overtaken { path: target.clone() });
        }
        let header = crate::file::save(self, target)?;
        self.origin = Some(Origin { target: target.clone(), header });
        Ok(())
    }

    /// Whether an index may be saved here: there is nothing, an empty file, or an index.
    ///
    /// # Errors
    ///
    /// [`Error::Occupied`] if there is another file, [`Error::Io`] if it cannot be read.
    pub fn check_replaceable(path: impl Into<Location>) -> Result<(), Error> {
        crate::file::check_replaceable(&path.into())
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
    pub fn open(path: impl Into<Location>) -> Result<Self, Error> {
        crate::file::open(&path.into())
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

    #[inline]
    fn frame(&self) -> Span {
        self.segment.bounds.frame(self.column)
    }

    #[inline]
    fn is_clustered(&self) -> bool {
        self.segment.bounds.is_clustered(self.column)
    }

    fn narrow(&self, wanted: Span, blocks: BlockSet) -> Result<BlockSet, Error> {
        let narrowed = self.segment.bounds.narrow(self.column, wanted, blocks);
        narrowed.map_err(|fault| self.index.bounds_error(self.number, self.segment, fault))
    }

    fn narrow_found(&self, wanted: Span, blocks: BlockSet) -> Result<BlockSet, Error> {
        match self.segment.bounds.narrow(self.column, wanted, blocks.clone()) {
            Err(Fault::Damaged(_)) => Ok(blocks),
            narrowed => {
                narrowed.map_err(|fault| self.index.bounds_error(self.number, self.segment, fault))
            }
        }
    }
}

impl Growing {
    fn new(source: usize, first_row: u64, columns: usize, params: Params) -> Self {
        let slices = || SegmentColumn::Growing(Slices::new(params.block_rows()));
        let segment = Segment {
            rows: SegmentRows::of(source, RowRange { first_row, rows: 0 }, params.block_rows()),
            columns: std::iter::repeat_with(slices).take(columns).collect(),
            bounds: SegmentBounds::Growing(vec![BlockSpans::new(params.block_rows()); columns]),
        };
        Self { segment, buffer: Buffer::new(columns, params) }
    }
}
