//! An index follows the columns of its table: they are renamed, dropped and added without reading the rows again.

use std::convert::Infallible;
use std::sync::Arc;

use arrow::array::{ArrayRef, NullArray};
use ironbloom_blocks::Params;

use crate::builder::Buffer;
use crate::error::Error;
use crate::index::Index;
use crate::schema::{Column, check_columns};
use crate::segment::{Segment, SegmentColumn};
use crate::segment_bounds::SegmentBounds;

/// Where a column of the changed index comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewColumn {
    pub(crate) column: Column,
    /// Its position now; `None` if it is new, and null in all rows that are indexed.
    pub(crate) from: Option<usize>,
}

/// Rows of nulls made at a time.
const BATCH_ROWS: usize = 1 << 16;

impl Index {
    /// Gives the index these columns. On error nothing has changed.
    pub(crate) fn reshape(&mut self, columns: Vec<NewColumn>) -> Result<(), Error> {
        let kept: Vec<Column> = columns.iter().map(|new| new.column.clone()).collect();
        check_columns(&kept)?;
        self.seal();
        let (block_rows, params) = (self.params().block_rows(), self.params());
        // Only names differ. Otherwise the bounds, which are of all columns together, are of the wrong ones.
        let as_before = columns.len() == self.columns.len()
            && columns.iter().enumerate().all(|(place, new)| new.from == Some(place));
        for segment in &mut self.segments {
            let Segment { rows, columns: held, bounds, .. } = segment;
            if !as_before {
                *bounds = SegmentBounds::Unknown;
            }
            // A segment may have more blocks than its rows would fill: each gets as many nulls as it could hold.
            let cells = u64::from(rows.blocks()) * u64::from(block_rows);
            let mut old: Vec<Option<SegmentColumn>> = held.drain(..).map(Some).collect();
            held.extend(columns.iter().flat_map(|new| match new.from {
                Some(from) => old[from].take().into_iter().collect(),
                None => nulls(cells, params),
            }));
        }
        self.columns = kept;
        Ok(())
    }
}

fn nulls(rows: u64, params: Params) -> Vec<SegmentColumn> {
    let mut left = rows;
    let mut buffer = Buffer::new(1, params);
    while left > 0 {
        let batch = left.min(BATCH_ROWS as u64) as usize;
        buffer.push(&[Arc::new(NullArray::new(batch)) as ArrayRef], batch);
        left -= batch as u64;
    }
    let keep = |postings, _| Ok::<_, Infallible>(SegmentColumn::Sealed(postings));
    let Ok((columns, _)) = buffer.seal(params, params.bucket_bits(rows), 1, keep);
    columns
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, RecordBatch};

    use super::*;
    use crate::parse::parse;
    use crate::schema::columns_of;
    use crate::source::SourceMeta;
    use crate::{IndexBuilder, Predicate};

    const ROWS: i64 = 4096;
    const BLOCK_ROWS: u32 = 64;

    /// Two columns in order: one upwards, the other downwards.
    fn rows() -> RecordBatch {
        let up = Int64Array::from_iter_values(0..ROWS);
        let down = Int64Array::from_iter_values((0..ROWS).map(|row| -row));
        let columns = [("up", Arc::new(up) as ArrayRef), ("down", Arc::new(down))];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    fn index() -> Index {
        let params = Params::new(BLOCK_ROWS, 10).unwrap();
        let mut builder = IndexBuilder::new(columns_of(&rows().schema()).unwrap(), params).unwrap();
        builder.start("t.parquet").unwrap();
        builder.push(&rows()).unwrap();
        builder.end(SourceMeta::default()).unwrap();
        builder.finish().unwrap()
    }

    fn column(name: &str, from: Option<usize>) -> NewColumn {
        let mut column = columns_of(&rows().schema()).unwrap().remove(0);
        column.name = name.into();
        NewColumn { column, from }
    }

    /// The blocks that may match, as the rows that they begin with.
    fn blocks(index: &Index, condition: &str) -> Vec<u64> {
        let names = index.columns().iter().map(|column| column.name.clone());
        let column = || Arc::new(Int64Array::from(vec![0])) as ArrayRef;
        let batch = RecordBatch::try_from_iter(names.map(|name| (name, column()))).unwrap();
        let predicate: Predicate = parse(condition, &batch.schema()).unwrap();
        let found = index.candidates(&predicate).unwrap().blocks;
        found.iter().map(|block| block.range().start).collect()
    }

    #[test]
    fn renamed_columns_keep_their_bounds() {
        let mut index = index();
        assert_eq!(blocks(&index, "up between 640 and 641"), [640]);
        index.reshape(vec![column("n", Some(0)), column("m", Some(1))]).unwrap();
        assert_eq!(blocks(&index, "n between 640 and 641"), [640]);
        assert_eq!(blocks(&index, "m between -641 and -640"), [640]);
    }

    /// Bounds of other columns are not taken for those of this one: ranges name all blocks, and values the right ones.
    #[test]
    fn columns_that_move_are_never_asked_by_the_bounds_of_others() {
        let all: Vec<u64> = (0..ROWS as u64).step_by(BLOCK_ROWS as usize).collect();
        for columns in [
            vec![column("down", Some(1))],
            vec![column("down", Some(1)), column("up", Some(0))],
            vec![column("up", Some(0)), column("down", Some(1)), column("new", None)],
            vec![column("new", None), column("down", Some(1))],
        ] {
            let mut index = index();
            index.reshape(columns.clone()).unwrap();
            assert_eq!(blocks(&index, "down between -641 and -640"), all);
            assert!(blocks(&index, "down = -700").contains(&640));
            if columns.iter().any(|new| new.from.is_none()) {
                assert_eq!(blocks(&index, "new is null"), all);
                assert_eq!(blocks(&index, "new = 7"), [] as [u64; 0]);
            }
            // Merging keeps it so.
            index.compact().unwrap();
            assert_eq!(blocks(&index, "down between -641 and -640"), all);
        }
    }
}
