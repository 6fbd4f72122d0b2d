//! Random tables with every type, and random predicates on them. Values are few, so that predicates find some.

use std::sync::Arc;

use arrow::array::*;
use arrow::compute::cast;
use arrow::datatypes::*;
use ironbloom_index::{Pattern, Predicate, Value, ValueKind, kind_of};
use std::ops::Bound;

use ironbloom_testing::Random;

use super::naive;

/// Cells of a table.
trait Cells {
    /// A value, or null once in ten times.
    fn cells<T>(&mut self, rows: usize, cell: impl FnMut(&mut Self) -> T) -> Vec<Option<T>>;
    fn integer(&mut self) -> i64;
    fn float(&mut self) -> f64;
    fn text(&mut self) -> String;
}

impl Cells for Random {
    fn cells<T>(&mut self, rows: usize, mut cell: impl FnMut(&mut Self) -> T) -> Vec<Option<T>> {
        (0..rows).map(|_| if self.one_in(10) { None } else { Some(cell(self)) }).collect()
    }

    fn integer(&mut self) -> i64 {
        match self.below(20) {
            0 => i64::MIN,
            1 => i64::MAX,
            _ => self.below(30) as i64 - 15,
        }
    }

    fn float(&mut self) -> f64 {
        match self.below(20) {
            0 => f64::NAN,
            1 => -f64::NAN,
            2 => -0.0,
            3 => f64::INFINITY,
            4 => f64::NEG_INFINITY,
            _ => self.below(20) as f64 / 4.0 - 2.0,
        }
    }

    fn text(&mut self) -> String {
        const TEXTS: [&str; 9] = [
            "",
            "a",
            "b",
            "abc",
            "O'Hara",
            "größer",
            "longer than twelve bytes",
            "x\ny",
            "\u{10ffff}",
        ];
        TEXTS[self.below(TEXTS.len() as u64) as usize].into()
    }
}

/// A table with a column of each type that can be compared, and a few that cannot.
pub(crate) fn table(seed: u64, rows: usize) -> RecordBatch {
    let mut columns = comparable(seed, rows);
    let random = &mut Random(seed ^ 0xabcd);
    let mut lists = ListBuilder::new(Int32Builder::new());
    for _ in 0..rows {
        for _ in 0..random.below(4) {
            lists.values().append_value(random.below(9) as i32);
        }
        lists.append(!random.one_in(5));
    }
    columns.push(("list", Arc::new(lists.finish())));
    let inner: ArrayRef = Arc::new(Int64Array::from(random.cells(rows, Random::integer)));
    let field = Arc::new(Field::new("inner", DataType::Int64, true));
    columns.push(("struct", Arc::new(StructArray::from(vec![(field, inner)]))));
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, column)| (name, column, true)),
    )
    .unwrap()
}

fn comparable(seed: u64, rows: usize) -> Vec<(&'static str, ArrayRef)> {
    let random = &mut Random(seed);
    let integers = Int64Array::from(random.cells(rows, |r| r.below(100) as i64 - 20));
    // Out of range is null: unsigned columns get fewer values.
    let as_type = |to: DataType| cast(&integers, &to).unwrap();
    let texts = StringArray::from(random.cells(rows, Random::text));
    let text_as = |to: DataType| cast(&texts, &to).unwrap();
    let key = |of: DataType| DataType::Dictionary(Box::new(DataType::Int16), Box::new(of));
    let millisecond = random.cells(rows, |r| r.below(400_000_000) as i64 - 200_000_000);
    let decimals = random.cells(rows, |r| i128::from(r.below(500)) - 100);
    let big_decimals: Vec<_> = random.cells(rows, |r| i256::from_i128(r.below(500).into()));
    let fixed: Vec<_> = random.cells(rows, |r| [r.below(3) as u8, r.below(2) as u8]);
    let fixed = fixed.iter().map(|cell| cell.as_ref());
    let half =
        random.cells(rows, |r| <Float16Type as ArrowPrimitiveType>::Native::from_f64(r.float()));
    let unsigned = random.cells(rows, |r| if r.one_in(4) { u64::MAX } else { r.below(9) });
    vec![
        ("i8", as_type(DataType::Int8)),
        ("i16", as_type(DataType::Int16)),
        ("i32", as_type(DataType::Int32)),
        ("i64", Arc::new(Int64Array::from(random.cells(rows, Random::integer)))),
        ("u8", as_type(DataType::UInt8)),
        ("u16", as_type(DataType::UInt16)),
        ("u32", as_type(DataType::UInt32)),
        ("u64", Arc::new(UInt64Array::from(unsigned))),
        ("f16", Arc::new(half.into_iter().collect::<Float16Array>())),
        (
            "f32",
            Arc::new(
                random.cells(rows, |r| r.float() as f32).into_iter().collect::<Float32Array>(),
            ),
        ),
        ("f64", Arc::new(Float64Array::from(random.cells(rows, Random::float)))),
        ("bool", Arc::new(BooleanArray::from(random.cells(rows, |r| r.one_in(3))))),
        ("text", Arc::new(texts.clone())),
        ("large text", text_as(DataType::LargeUtf8)),
        ("text view", text_as(DataType::Utf8View)),
        ("binary", text_as(DataType::Binary)),
        ("large binary", text_as(DataType::LargeBinary)),
        ("binary view", text_as(DataType::BinaryView)),
        (
            "fixed",
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(fixed, 2).unwrap()),
        ),
        ("tag", text_as(key(DataType::Utf8))),
        ("number tag", as_type(key(DataType::Int64))),
        ("date32", cast(&as_type(DataType::Int32), &DataType::Date32).unwrap()),
        ("date64", Arc::new(Date64Array::from(millisecond.clone()))),
        ("seconds", cast(&integers, &DataType::Timestamp(TimeUnit::Second, None)).unwrap()),
        (
            "milliseconds",
            Arc::new(TimestampMillisecondArray::from(millisecond).with_timezone("+02:00")),
        ),
        (
            "microseconds",
            cast(&integers, &DataType::Timestamp(TimeUnit::Microsecond, None)).unwrap(),
        ),
        (
            "nanoseconds",
            cast(&integers, &DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())))
                .unwrap(),
        ),
        (
            "price",
            Arc::new(Decimal128Array::from(decimals).with_precision_and_scale(20, 2).unwrap()),
        ),
        (
            "big price",
            Arc::new(
                big_decimals
                    .into_iter()
                    .collect::<Decimal256Array>()
                    .with_precision_and_scale(60, 3)
                    .unwrap(),
            ),
        ),
        ("small price", cast(&as_type(DataType::Int32), &DataType::Decimal64(12, 1)).unwrap()),
        ("nothing", Arc::new(NullArray::new(rows))),
    ]
}

/// The columns of [`table`] that can be compared.
pub(crate) fn comparable_columns() -> Vec<String> {
    comparable(0, 1).into_iter().map(|(name, _)| name.to_owned()).collect()
}

/// A predicate on one to three columns, with values that are in the table or close to one that is.
pub(crate) fn predicate(random: &mut Random, batch: &RecordBatch, depth: u32) -> Predicate {
    if depth > 0 && random.one_in(2) {
        let parts = |random: &mut Random| {
            (0..random.below(4)).map(|_| predicate(random, batch, depth - 1)).collect()
        };
        return match random.below(3) {
            0 => Predicate::And(parts(random)),
            1 => Predicate::Or(parts(random)),
            _ => Predicate::Not(Box::new(predicate(random, batch, depth - 1))),
        };
    }
    let names = comparable_columns();
    let column = names[random.below(names.len() as u64) as usize].clone();
    leaf(random, batch, column)
}

/// A comparison of this column.
pub(crate) fn leaf(random: &mut Random, batch: &RecordBatch, column: String) -> Predicate {
    let array = batch.column_by_name(&column).unwrap();
    let value = |random: &mut Random| {
        let row = random.below(batch.num_rows().max(1) as u64) as usize;
        let found = if batch.num_rows() == 0 { Value::Null } else { naive::value(array, row) };
        nudged(random, found)
    };
    if array_is_text(array) && random.one_in(3) {
        let near = value(random);
        return like(random, column, &near);
    }
    match random.below(7) {
        0 | 1 => Predicate::Eq(column, value(random)),
        2 => Predicate::In(column, (0..random.below(12)).map(|_| value(random)).collect()),
        3 => Predicate::IsNull(column),
        _ => {
            let bound = |random: &mut Random| match random.below(3) {
                0 => Bound::Unbounded,
                1 => Bound::Included(not_null(value(random))),
                _ => Bound::Excluded(not_null(value(random))),
            };
            let (low, high) = (bound(random), bound(random));
            let null = |bound: &Bound<Option<Value>>| {
                matches!(bound, Bound::Included(None) | Bound::Excluded(None))
            };
            let plain = |bound: Bound<Option<Value>>| bound.map(|value| value.unwrap());
            let low = if null(&low) { Bound::Unbounded } else { plain(low) };
            let high = if null(&high) { Bound::Unbounded } else { plain(high) };
            Predicate::Range { column, low, high }
        }
    }
}

fn array_is_text(array: &ArrayRef) -> bool {
    let values = match array.data_type() {
        DataType::Dictionary(_, values) => values,
        other => other,
    };
    matches!(kind_of(values), Some(ValueKind::Text | ValueKind::Bytes))
}

/// A pattern that a value matches, or nearly.
fn like(random: &mut Random, column: String, value: &Value) -> Predicate {
    let text = match value {
        Value::Text(text) => text.clone(),
        Value::Bytes(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        _ => "ab".to_owned(),
    };
    let letters: Vec<char> = text.chars().collect();
    let mut pattern: String =
        letters[..random.below(letters.len() as u64 + 1) as usize].iter().collect();
    match random.below(4) {
        0 => {}
        1 => pattern += "_%",
        2 => pattern = pattern.replace(['a', 'r'], "_") + "%",
        _ => pattern += "%",
    }
    Predicate::Like(column, Pattern::new(&pattern, None).unwrap())
}

/// The same rows in the order of a column, or nearly: blocks differ there.
pub(crate) fn ordered(random: &mut Random, batch: &RecordBatch) -> RecordBatch {
    let names = comparable_columns();
    let by = batch.column_by_name(&names[random.below(names.len() as u64) as usize]).unwrap();
    let Ok(order) = arrow::compute::sort_to_indices(by, None, None) else { return batch.clone() };
    let mut order = order.values().to_vec();
    for _ in 0..random.below(4) * batch.num_rows() as u64 / 50 {
        let (a, b) = (random.index(order.len()), random.index(order.len()));
        order.swap(a, b);
    }
    arrow::compute::take_record_batch(batch, &UInt32Array::from(order)).unwrap()
}

fn not_null(value: Value) -> Option<Value> {
    (value != Value::Null).then_some(value)
}

/// Now and then a value beside the one given, which the type may be unable to hold.
fn nudged(random: &mut Random, value: Value) -> Value {
    if !random.one_in(4) {
        return value;
    }
    match value {
        Value::Int(number) => Value::Int(number + i128::from(random.below(3)) - 1),
        Value::Timestamp(moment) => {
            Value::Timestamp(moment + i128::from(random.below(2000)) - 1000)
        }
        Value::Decimal { digits, scale } => {
            Value::Decimal { digits: digits * 10 + 5, scale: scale + 1 }
        }
        Value::Date(days) => Value::Date(days + 1),
        Value::Float(number) => Value::Float(number + 0.25),
        other => other,
    }
}
