//! [`IndexBuilder`]: turns record batches into an index.

use arrow::array::{Array, ArrayRef, RecordBatch};

use ironbloom_blocks::{
    Cells, MAX_ROWS, Params, Postings, RowRange, RowRanges, SequenceWriter, ValueKind,
};

use crate::error::Error;
use crate::fingerprints::append_fingerprints;
use crate::index::Index;
use crate::schema::{Column, check_columns, kind_of};
use crate::segment::{Segment, SegmentColumn};
use crate::source::{Blob, Source, SourceMeta};

/// Number of cells held before a segment is sealed: four bytes each, 512 MiB in total. Ten columns reach it with 13
/// million rows.
const SEGMENT_CELLS: u64 = 1 << 27;

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
    segment_rows: u64,
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
    pub(crate) columns: Vec<Cells>,
}

impl Buffer {
    pub(crate) fn new(columns: usize, params: Params) -> Self {
        Self {
            rows: 0,
            columns: std::iter::repeat_with(|| Cells::new(params)).take(columns).collect(),
        }
    }

    /// Appends rows, of arrays that [`arrays_of`] checked.
    pub(crate) fn push(&mut self, arrays: &[ArrayRef], rows: usize) {
        for (cells, array) in self.columns.iter_mut().zip(arrays) {
            let known = cells.push_with(|prints| append_fingerprints(array, prints));
            assert!(known, "a kind for every type that can be encoded");
        }
        self.rows += rows as u64;
    }

    /// The columns of these rows. Consumes the cells column by column, so that memory is freed on the way.
    pub(crate) fn seal(self, params: Params) -> Vec<SegmentColumn> {
        let blocks = self.rows.div_ceil(params.block_rows().into()) as u32;
        let mut writer = SequenceWriter::default();
        let seal = |cells: Cells| {
            SegmentColumn::Sealed(Postings::build(&cells.seal(), blocks, params, &mut writer))
        };
        self.columns.into_iter().map(seal).collect()
    }
}

/// The arrays of a batch that belong to these columns, each of the right kind.
pub(crate) fn arrays_of(batch: &RecordBatch, columns: &[Column]) -> Result<Vec<ArrayRef>, Error> {
    let schema = batch.schema();
    let array = |column: &Column| {
        let array = batch.column_by_name(&column.name).ok_or_else(|| Error::NoColumn {
            column: column.name.clone(),
            known: schema.fields().iter().map(|field| field.name().clone()).collect(),
        })?;
        let found = array.data_type();
        match kind_of(found) {
            // A part of a table may contain only nulls, without a type; and so may all that came before.
            Some(kind) if kind == column.kind || [kind, column.kind].contains(&ValueKind::Null) => {
                Ok(array.clone())
            }
            Some(_) => Err(Error::Kind {
                column: column.name.clone(),
                expected: column.kind,
                found: found.to_string(),
            }),
            None => Err(Error::Type { column: column.name.clone(), found: found.to_string() }),
        }
    };
    columns.iter().map(array).collect()
}

impl IndexBuilder {
    /// A builder for these columns, of which there must be at least one.
    pub fn new(columns: Vec<Column>, params: Params) -> Result<Self, Error> {
        check_columns(&columns)?;
        let segment_rows = SEGMENT_CELLS / columns.len() as u64;
        let index = Index::empty(columns, params);
        Ok(Self { index, segment_rows: 0, open: None }.with_segment_rows(segment_rows))
    }

    /// A builder for more sources, or more rows of one, of an existing index: same columns, same parameters.
    pub fn like(index: &Index) -> Result<Self, Error> {
        Self::new(index.columns().to_vec(), index.params())
    }

    /// Seals a segment after this many rows (rounded to whole blocks) instead of when 512 MiB of cells are held. Fewer
    /// rows take less memory, and lookups take longer until [`Index::compact`].
    pub fn with_segment_rows(mut self, rows: u64) -> Self {
        let block = u64::from(self.index.params().block_rows());
        self.segment_rows = (rows.min(MAX_ROWS) / block).max(1) * block;
        self
    }

    /// Starts a source.
    pub fn start(&mut self, name: impl Into<String>) -> Result<(), Error> {
        self.start_at(name, 0)
    }

    /// Starts with row `first_row` of a source whose earlier rows are in the index that this one will be
    /// [appended](Index::append) to.
    pub fn start_at(&mut self, name: impl Into<String>, first_row: u64) -> Result<(), Error> {
        self.end_open(None);
        let name = name.into();
        if self.index.source(&name).is_some() {
            return Err(Error::TwoSources { source: name });
        }
        let buffer = Buffer::new(self.index.columns().len(), self.index.params());
        self.open = Some(OpenSource { name, first_row, buffer });
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
        let mut done = 0;
        while done < batch.num_rows() {
            let open = self.open.as_mut().expect("started above");
            let room = self.segment_rows - open.buffer.rows;
            let rows = (batch.num_rows() - done).min(room.try_into().unwrap_or(usize::MAX));
            let part: Vec<ArrayRef> = arrays.iter().map(|array| array.slice(done, rows)).collect();
            open.buffer.push(&part, rows);
            done += rows;
            if open.buffer.rows == self.segment_rows {
                self.seal();
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
        self.end_open(Some(meta));
        Ok(())
    }

    /// Finishes the index, ending the open source if there is one.
    pub fn finish(mut self) -> Result<Index, Error> {
        self.end_open(None);
        Ok(self.index)
    }

    fn seal(&mut self) {
        let Some(open) = &mut self.open else { return };
        let (columns, params) = (self.index.columns().len(), self.index.params());
        let buffer = std::mem::replace(&mut open.buffer, Buffer::new(columns, params));
        if buffer.rows > 0 {
            let rows = RowRanges(vec![RowRange { first_row: open.first_row, rows: buffer.rows }]);
            open.first_row += buffer.rows;
            let source = self.index.sources().len();
            let segment = Segment { source, rows, columns: buffer.seal(params) };
            self.index.segments.push(segment);
        }
    }

    fn end_open(&mut self, meta: Option<SourceMeta>) {
        self.seal();
        if let Some(open) = self.open.take() {
            let SourceMeta { bytes, fingerprint, blob } = meta.unwrap_or_default();
            let (name, rows) = (open.name, open.first_row);
            let blob = Blob::Owned(blob);
            self.index.sources.push(Source { name, bytes, fingerprint, rows, blob });
        }
    }
}
