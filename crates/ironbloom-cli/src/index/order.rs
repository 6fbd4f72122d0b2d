//! Rows in the order of their values instead of that of the tables.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use ironbloom_index::arrow::array::{RecordBatch, UInt64Array};
use ironbloom_index::arrow::compute::{
    SortColumn, SortOptions, concat_batches, lexsort_to_indices, take_record_batch,
};
use ironbloom_index::arrow::datatypes::SchemaRef;

use super::names::{Item, items};
use super::one_schema::in_schema;
use super::show::Show;

/// With a limit, at least this many rows are held before the best are chosen among them.
const HELD_ROWS: usize = 1 << 16;
/// Rows passed on at a time.
const SHOWN_ROWS: usize = 1 << 13;

/// Columns to order by, as they are typed: `a desc,"b,c"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Order(pub(super) Vec<OrderColumn>);

/// A column to order by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OrderColumn {
    pub(super) name: String,
    pub(super) descending: bool,
}

impl Order {
    /// For clap.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut columns = Vec::new();
        for Item { name, rest } in items(text)? {
            let (name, direction) = match name.rsplit_once(' ') {
                Some((name, word)) if rest.is_empty() && is_direction(word) => {
                    (name.trim_end().to_owned(), word.to_owned())
                }
                _ => (name, rest),
            };
            if !direction.is_empty() && !is_direction(&direction) {
                bail!("`{direction}` follows {name}; there are asc and desc");
            }
            let descending = direction.eq_ignore_ascii_case("desc");
            columns.push(OrderColumn { name, descending });
        }
        Ok(Self(columns))
    }
}

fn is_direction(word: &str) -> bool {
    word.eq_ignore_ascii_case("asc") || word.eq_ignore_ascii_case("desc")
}

/// Holds rows until all are known, or with a limit the best of them, and then shows them in order. Nulls come last, and rows
/// that are equal in the order of the tables.
pub(super) struct Ordered {
    inner: Box<dyn Show>,
    /// Of the rows that come.
    schema: SchemaRef,
    keys: Vec<(usize, bool)>,
    /// The first columns are shown; others are there to order by.
    shown: usize,
    limit: Option<usize>,
    held: Vec<RecordBatch>,
    /// For each of the held rows, which one it was.
    numbers: Vec<u64>,
    seen: u64,
}

impl Ordered {
    pub(super) fn new(
        inner: Box<dyn Show>,
        schema: SchemaRef,
        order: &Order,
        shown: usize,
        limit: Option<usize>,
    ) -> Result<Self> {
        let key = |column: &OrderColumn| Ok((schema.index_of(&column.name)?, column.descending));
        let keys = order.0.iter().map(key).collect::<Result<_>>()?;
        let (held, numbers) = (Vec::new(), Vec::new());
        Ok(Self { inner, schema, keys, shown, limit, held, numbers, seen: 0 })
    }

    /// Orders what is held, and keeps only as much as may be shown.
    fn sort(&mut self) -> Result<()> {
        let all = concat_batches(&self.schema, &self.held)?;
        let numbers = UInt64Array::from(std::mem::take(&mut self.numbers));
        let mut columns: Vec<SortColumn> = Vec::new();
        for &(column, descending) in &self.keys {
            let options = Some(SortOptions { descending, nulls_first: false });
            columns.push(SortColumn { values: Arc::clone(all.column(column)), options });
        }
        columns.push(SortColumn { values: Arc::new(numbers.clone()), options: None });
        let names = || {
            let names = self.keys.iter().map(|&(key, _)| self.schema.field(key).name().as_str());
            format!("--order {}", names.collect::<Vec<_>>().join(","))
        };
        let order = lexsort_to_indices(&columns, self.limit).with_context(names)?;
        self.numbers = order.values().iter().map(|&at| numbers.value(at as usize)).collect();
        self.held = vec![take_record_batch(&all, &order)?];
        Ok(())
    }
}

impl Show for Ordered {
    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        self.held.push(in_schema(batch, &self.schema)?);
        let next = self.seen + batch.num_rows() as u64;
        self.numbers.extend(self.seen..next);
        self.seen = next;
        match self.limit {
            Some(limit) if self.numbers.len() > limit.saturating_mul(2).max(HELD_ROWS) => {
                self.sort()
            }
            _ => Ok(()),
        }
    }

    fn finish(&mut self) -> Result<()> {
        if !self.held.is_empty() {
            self.sort()?;
            let shown: Vec<usize> = (0..self.shown).collect();
            let all = self.held[0].project(&shown)?;
            for start in (0..all.num_rows()).step_by(SHOWN_ROWS) {
                self.inner.batch(&all.slice(start, SHOWN_ROWS.min(all.num_rows() - start)))?;
            }
        }
        self.inner.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_may_have_a_direction() {
        let order = |text| -> Option<Vec<(String, bool)>> {
            let Order(columns) = Order::parse(text).ok()?;
            Some(columns.into_iter().map(|column| (column.name, column.descending)).collect())
        };
        let pair = |name: &str, descending| (name.to_owned(), descending);
        assert_eq!(order("a"), Some(vec![pair("a", false)]));
        assert_eq!(order("a DESC,b asc"), Some(vec![pair("a", true), pair("b", false)]));
        assert_eq!(
            order("\"a desc,b\" desc,c d"),
            Some(vec![pair("a desc,b", true), pair("c d", false)])
        );
        assert_eq!(order("\"a\" upwards"), None);
        assert_eq!(order(""), None);
    }
}
