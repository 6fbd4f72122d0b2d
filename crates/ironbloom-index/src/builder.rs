//! [`IndexBuilder`]: turns record batches into an index.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::datatypes::DataType;

use ironbloom_blocks::bounds::{BlockSpans, Bounds, Span};
use ironbloom_blocks::{
    CELL_PARTS, Cells, EncodedPart, MAX_ROWS, Params, PartMemory, Postings, Remainder, RowRange,
    SealedCells, ValueKind,
};

use crate::error::Error;
use crate::fingerprints::append_fingerprints;
use crate::images::push_images;
use crate::index::Index;
use crate::resources::Resources;
use crate::schema::{Column, check_columns, kind_of};
use crate::segment::{Segment, SegmentColumn};
use crate::segment_bounds::SegmentBounds;
use crate::segment_rows::SegmentRows;
use crate::source::{Blob, Source, SourceMeta};
use crate::workspace::Workspace;

/// Builds an index from record batches, source by source.
///
/// ```
/// use std::sync::Arc;
/// use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
/// use ironbloom_index::{IndexBuilder, Params, Predicate, SourceMeta, Value, columns_of};
///
/// let batch = RecordBatch::try_from_iter([
///     ("id", Arc::new(Int64Array::from_iter_values(0..10_000)) as ArrayRef),
///     ("name", Arc::new(StringArray::from_iter_values((0..10_000).map(|i| format!("n{i}"))))),
/// ])?;
/// let mut builder = IndexBuilder::new(columns_of(&batch.schema())?, Params::default())?;
/// builder.start("people.parquet")?;
/// builder.push(&batch)?;
/// builder.end(SourceMeta::default())?;
/// let index = builder.finish()?;
///
/// let found = index.candidates(&Predicate::Eq("name".into(), Value::Text("n7000".into())))?;
/// assert!(found.blocks.iter().any(|block| block.range().contains(&7000)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct IndexBuilder {
    index: Index,
    resources: Resources,
    workspace: Workspace,
    /// If it was set: then segments stay as they are.
    segment_rows: Option<u64>,
    expected_rows: u64,
    open: Option<OpenSource>,
}

/// A source that is being read.
struct OpenSource {
    name: String,
    /// Rows before the segment being filled.
    first_row: u64,
    buffer: Buffer,
}

/// The cells of a segment that is not sealed yet.
pub(crate) struct Buffer {
    pub(crate) rows: u64,
    columns: Vec<ColumnBuffer>,
}

/// One of its columns.
struct ColumnBuffer {
    cells: Cells,
    spans: BlockSpans,
}

impl Buffer {
    pub(crate) fn new(columns: usize, params: Params) -> Self {
        let column = || ColumnBuffer {
            cells: Cells::new(params),
            spans: BlockSpans::new(params.block_rows()),
        };
        Self { rows: 0, columns: std::iter::repeat_with(column).take(columns).collect() }
    }

    /// Appends rows, of arrays that [`arrays_of`] checked.
    pub(crate) fn push(&mut self, arrays: &[ArrayRef], rows: usize) {
        for (column, array) in self.columns.iter_mut().zip(arrays) {
            let known = column.cells.push_with(|prints| append_fingerprints(array, prints));
            assert!(known, "a kind for every type that can be encoded");
            push_images(array, &mut column.spans);
        }
        self.rows += rows as u64;
    }

    /// The columns of these rows, each as `keep` keeps it. Consumes the cells column by column, so that memory is freed on the
    /// way.
    pub(crate) fn seal<E>(
        self,
        params: Params,
        bucket_bits: u32,
        threads: usize,
        keep: impl Fn(Postings, u32) -> Result<SegmentColumn, E>,
    ) -> Result<(Vec<SegmentColumn>, SegmentBounds), E> {
        let blocks = self.rows.div_ceil(params.block_rows().into()) as u32;
        let mut columns = Vec::with_capacity(self.columns.len());
        let mut bounds = Vec::with_capacity(self.columns.len());
        for ColumnBuffer { cells, spans } in self.columns {
            let postings = encode(&cells.seal(), blocks, bucket_bits, threads);
            bounds.push(pack_bounds(spans.spans(), &postings));
            columns.push(keep(postings, blocks)?);
        }
        Ok((columns, SegmentBounds::Sealed(bounds)))
    }

    /// Bytes of memory that are held.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.columns.iter().map(|column| column.cells.held_bytes()).sum()
    }
}

/// Encodes a column, with several threads if it is large.
fn encode(cells: &SealedCells, blocks: u32, bucket_bits: u32, threads: usize) -> Postings {
    const FEW_BYTES: u64 = 1 << 20;
    if threads == 1 || cells.held_bytes() < FEW_BYTES {
        return Postings::build(cells, blocks, bucket_bits);
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let next = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&part| part < CELL_PARTS);
        std::iter::from_fn(next)
            .map(|part| {
                (part, EncodedPart::new(cells, part, blocks, bucket_bits, PartMemory::default()))
            })
            .collect::<Vec<_>>()
    };
    let mut parts = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut parts = work();
        for other in others {
            parts.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        parts
    });
    parts.sort_by_key(|&(part, _)| part);
    let parts = parts.into_iter().map(|(_, encoded)| encoded).collect();
    Postings::join(parts, &Remainder::new(cells), bucket_bits).0
}

/// Whether values of this type can go into a column: its kind. A part of a table may contain only nulls, without a type; and
/// so may all that came before.
fn check_type(column: &Column, found: &DataType) -> Result<ValueKind, Error> {
    match kind_of(found) {
        Some(kind) if kind == column.kind || [kind, column.kind].contains(&ValueKind::Null) => {
            Ok(kind)
        }
        Some(_) => Err(Error::Kind {
            column: column.name.clone(),
            expected: column.kind,
            found: found.to_string(),
        }),
        None => Err(Error::Type { column: column.name.clone(), found: found.to_string() }),
    }
}

/// Bounds beside the lists of the same column.
pub(crate) fn pack_bounds(spans: &[Span], postings: &Postings) -> Bounds {
    Bounds::pack(spans, 64 * postings.words().len() as u64)
}

/// The arrays of a batch that belong to these columns, each of the right kind.
pub(crate) fn arrays_of(batch: &RecordBatch, columns: &[Column]) -> Result<Vec<ArrayRef>, Error> {
    let schema = batch.schema();
    let array = |column: &Column| {
        let array = batch.column_by_name(&column.name).ok_or_else(|| Error::NoColumn {
            column: column.name.clone(),
            known: schema.fields().iter().map(|field| field.name().clone()).collect(),
        })?;
        check_type(column, array.data_type())?;
        Ok(array.clone())
    };
    columns.iter().map(array).collect()
}

/// A table that was read and sealed.
pub(crate) struct ReadTable {
    pub(crate) name: String,
    pub(crate) first_row: u64,
    /// The types of its columns that are in the index.
    pub(crate) types: Vec<DataType>,
    pub(crate) segments: Vec<(RowRange, Vec<SegmentColumn>, SegmentBounds)>,
    pub(crate) meta: SourceMeta,
}

impl ReadTable {
    /// Rows that were read.
    pub(crate) fn rows(&self) -> u64 {
        self.segments.iter().map(|(range, ..)| range.rows).sum()
    }
}

impl IndexBuilder {
    /// A builder for these columns, of which there must be at least one.
    pub fn new(columns: Vec<Column>, params: Params) -> Result<Self, Error> {
        check_columns(&columns)?;
        let resources = Resources::default();
        Ok(Self {
            index: Index::empty(columns, params),
            resources,
            workspace: Workspace::new(&std::env::temp_dir(), resources),
            segment_rows: None,
            expected_rows: 0,
            open: None,
        })
    }

    /// A builder for more sources, or more rows of one, of an existing index: same columns, same parameters.
    pub fn like(index: &Index) -> Result<Self, Error> {
        Self::new(index.columns().to_vec(), index.params())
    }

    /// Seals a segment after this many rows (rounded to whole blocks) instead of when memory is short, and leaves the segments
    /// as they are. Lookups take longer until [`Index::compact`].
    pub fn with_segment_rows(mut self, rows: u64) -> Self {
        let block = u64::from(self.index.params().block_rows());
        self.segment_rows = Some((rows.min(MAX_ROWS) / block).max(1) * block);
        self
    }

    /// Uses this much memory and this many threads. Segments that are sealed when memory is short go to a temporary file
    /// without a name in this folder, usually that of the index, and are merged by [`finish`](Self::finish).
    pub fn with_resources(mut self, resources: Resources, folder: impl Into<PathBuf>) -> Self {
        self.workspace = Workspace::new(&folder.into(), resources);
        Self { resources, ..self }
    }

    /// Chooses the number of buckets for segments of about this many rows. Without this, it follows from the rows of a source that
    /// fit into memory, and lookups read longer lists once many segments are merged.
    pub fn with_expected_rows(mut self, rows: u64) -> Self {
        self.expected_rows = rows;
        self
    }

    /// The most bytes of memory that cells and sealed columns took at the same time.
    pub fn peak_bytes(&self) -> u64 {
        self.workspace.peak_bytes()
    }

    pub(crate) fn expected_rows(&self) -> u64 {
        self.expected_rows
    }

    pub(crate) fn resources(&self) -> Resources {
        self.resources
    }

    pub(crate) fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    pub(crate) fn index(&self) -> &Index {
        &self.index
    }

    fn rows_in_segment(&self) -> u64 {
        let (columns, params) = (self.index.columns().len(), self.index.params());
        self.segment_rows.unwrap_or_else(|| self.resources.segment_rows(columns, params))
    }

    /// Starts a source.
    pub fn start(&mut self, name: impl Into<String>) -> Result<(), Error> {
        self.start_at(name, 0)
    }

    /// Starts with row `first_row` of a source whose earlier rows are in the index that this one will be
    /// [appended](Index::append) to.
    pub fn start_at(&mut self, name: impl Into<String>, first_row: u64) -> Result<(), Error> {
        self.end_open(None)?;
        let name = name.into();
        self.check_new(&name)?;
        let buffer = Buffer::new(self.index.columns().len(), self.index.params());
        self.open = Some(OpenSource { name, first_row, buffer });
        Ok(())
    }

    /// Whether there is no source of this name.
    pub(crate) fn check_new(&self, name: &str) -> Result<(), Error> {
        match self.index.source(name) {
            None => Ok(()),
            Some(_) => Err(Error::TwoSources { source: name.to_owned() }),
        }
    }

    /// Whether columns of a table, in the order of those of the index, have their kinds.
    pub(crate) fn check_types(&self, types: &[DataType]) -> Result<Vec<ValueKind>, Error> {
        let columns = self.index.columns().iter().zip(types);
        columns.map(|(column, found)| check_type(column, found)).collect()
    }

    /// Adds a table that was read elsewhere.
    pub(crate) fn add(&mut self, table: ReadTable) -> Result<(), Error> {
        self.end_open(None)?;
        self.check_new(&table.name)?;
        let kinds = self.check_types(&table.types)?;
        self.index.adopt_kinds(kinds.into_iter().map(Some));
        let (source, rows) = (self.index.sources().len(), table.rows());
        for (range, columns, bounds) in table.segments {
            let rows = SegmentRows::of(source, range, self.index.params().block_rows());
            self.index.segments.push(Segment { rows, columns, bounds });
        }
        self.add_source(table.name, table.first_row + rows, table.meta);
        Ok(())
    }

    /// Adds the next rows of the source. The batch may have more columns than the index, in any order. A rejected batch
    /// adds nothing.
    pub fn push(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        if self.open.is_none() {
            self.start("memory")?;
        }
        let arrays = arrays_of(batch, self.index.columns())?;
        self.index.adopt_kinds(arrays.iter().map(|array| kind_of(array.data_type())));
        let segment_rows = self.rows_in_segment();
        let mut done = 0;
        while done < batch.num_rows() {
            let open = self.open.as_mut().expect("started above");
            let room = segment_rows - open.buffer.rows;
            let rows = (batch.num_rows() - done).min(room.try_into().unwrap_or(usize::MAX));
            let part: Vec<ArrayRef> = arrays.iter().map(|array| array.slice(done, rows)).collect();
            open.buffer.push(&part, rows);
            done += rows;
            if open.buffer.rows == segment_rows {
                self.seal()?;
            }
        }
        Ok(())
    }

    /// Rows of the open source so far, including those before [`start_at`](Self::start_at).
    pub fn rows(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.first_row + open.buffer.rows)
    }

    /// Ends the source, with the metadata of its file.
    pub fn end(&mut self, meta: SourceMeta) -> Result<(), Error> {
        if self.open.is_none() {
            return Err(Error::NoSource { source: "an open source".to_owned() });
        }
        self.end_open(Some(meta))
    }

    /// Finishes the index, ending the open source if there is one. Segments of a source are merged as far as memory allows.
    pub fn finish(mut self) -> Result<Index, Error> {
        self.end_open(None)?;
        self.workspace.free_memory();
        if self.segment_rows.is_none() {
            self.index.merge_segments(self.resources.mergeable_rows(), &|postings, blocks| {
                self.workspace.put(postings, blocks)
            })?;
        }
        Ok(self.index)
    }

    fn seal(&mut self) -> Result<(), Error> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let (columns, params) = (self.index.columns().len(), self.index.params());
        let buffer = std::mem::replace(&mut open.buffer, Buffer::new(columns, params));
        if buffer.rows == 0 {
            return Ok(());
        }
        let rows = RowRange { first_row: open.first_row, rows: buffer.rows };
        let bucket_bits = params.bucket_bits(buffer.rows.max(self.expected_rows));
        open.first_row += buffer.rows;
        let held = buffer.held_bytes();
        self.workspace.hold(held);
        let put = |postings, blocks| self.workspace.put(postings, blocks);
        let (columns, bounds) = buffer.seal(params, bucket_bits, self.resources.threads(), put)?;
        self.workspace.release(held);
        let rows = SegmentRows::of(self.index.sources().len(), rows, params.block_rows());
        self.index.segments.push(Segment { rows, columns, bounds });
        Ok(())
    }

    fn end_open(&mut self, meta: Option<SourceMeta>) -> Result<(), Error> {
        self.seal()?;
        if let Some(open) = self.open.take() {
            self.add_source(open.name, open.first_row, meta.unwrap_or_default());
        }
        Ok(())
    }

    fn add_source(&mut self, name: String, rows: u64, meta: SourceMeta) {
        let SourceMeta { bytes, fingerprint, version, blob, view, deleted } = meta;
        let (blob, deleted) = (Blob::Owned(blob), Blob::Owned(deleted));
        let source = Source { name, bytes, fingerprint, rows, version, blob, view, deleted };
        self.index.sources.push(source);
    }
}
