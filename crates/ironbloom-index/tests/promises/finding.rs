//! `Find` returns what a naive scan returns, whatever superset of the right blocks it is given, and reads no more than it
//! must.

use crate::common::naive::{self, matching_rows};
use crate::common::random;
use crate::common::{Layout, find, layouts, reopen, rows_of};
use arrow::array::{AsArray as _, Int64Array, RecordBatch};
use arrow::compute::take_record_batch;
use arrow::datatypes::Int64Type;
use ironbloom_index::{Find, Indexed, Params, Predicate, Table, TableError, Value, index_tables};
use ironbloom_testing::{Random, Scratch, TemporaryFile};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use proptest::prelude::*;
use std::ops::Bound;
use std::sync::Arc;

/// Blocks that hold matching rows, and some others.
fn superset(random: &mut Random, rows: &[u64], block_rows: u64, blocks: u64) -> Vec<u64> {
    let one_in = 1 + random.below(10);
    let holds = |block: u64| rows.iter().any(|row| row / block_rows == block);
    (0..blocks).filter(|&block| random.one_in(one_in) || holds(block)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn any_superset_of_the_right_blocks_gives_the_rows_of_a_naive_scan(
        seed: u64, rows in 0usize..2000, block_rows in 1u64..700,
    ) {
        let batch = random::table(seed, rows);
        let random = &mut Random(seed);
        let select = ["text", "i64", "list", "struct", "text", "price"];
        let selected: Vec<usize> =
            select.iter().map(|name| batch.schema().index_of(name).unwrap()).collect();
        for layout in layouts() {
            let file = layout.write(&batch);
            let table = reopen(&Table::open(file.path()).unwrap());
            for _ in 0..6 {
                let predicate = random::predicate(random, &batch, 2);
                let wanted = matching_rows(&predicate, &batch);
                let blocks = table.rows().div_ceil(block_rows);
                let all: Vec<u64> = (0..blocks).collect();
                for candidates in [all, superset(random, &wanted, block_rows, blocks)] {
                    let found = find(&table, &predicate, &candidates, block_rows, &select);
                    prop_assert_eq!(&found.rows, &wanted, "{}: {:?}", layout.name, predicate);
                    let indices = arrow::array::UInt64Array::from(wanted.clone());
                    let batch = batch.project(&selected).unwrap();
                    let shown = take_record_batch(&batch, &indices).unwrap();
                    prop_assert_eq!(found.batch.columns(), shown.columns());
                    let numbers = find(&table, &predicate, &candidates, block_rows, &[]);
                    prop_assert_eq!(&numbers.rows, &wanted);
                    prop_assert_eq!(numbers.batch.num_rows(), wanted.len());
                }
            }
        }
    }
}

/// Three columns of 200 000 rows; a = row % 1000, b = row / 1000, c = row.
fn numbers() -> (TemporaryFile, Table) {
    let column = |of: fn(i64) -> i64| Arc::new(Int64Array::from_iter_values((0..200_000).map(of)));
    let batch = RecordBatch::try_from_iter([
        ("a", column(|row| row % 1000) as _),
        ("b", column(|row| row / 1000) as _),
        ("c", column(|row| row) as _),
    ])
    .unwrap();
    let layout = Layout { page_rows: 1000, group_rows: 50_000, ..layouts()[2] };
    let file = layout.write(&batch);
    let table = reopen(&Table::open(file.path()).unwrap());
    (file, table)
}

fn equal(column: &str, value: i128) -> Predicate {
    Predicate::Eq(column.into(), Value::Int(value))
}

#[test]
fn a_block_that_the_first_column_rules_out_costs_nothing_of_the_second() {
    let (_file, table) = numbers();
    let predicate = Predicate::And(vec![equal("b", 170), equal("a", 7)]);
    let candidates = || rows_of(&[10, 100, 332, 340], 512);
    let (found, report) =
        Find::new(&table, &predicate, candidates(), &["c"]).unwrap().collect_all().unwrap();
    assert_eq!(found.rows, [170_007]);
    assert_eq!((report.candidates, report.rows_verified, report.rows_matched), (4, 4 * 512, 1));
    // a: only the two pages that block 332 lies in, and their dictionary. c: one page and its dictionary.
    let b_alone = Find::new(&table, &equal("b", 170), candidates(), &[]).unwrap();
    let (_, only_b) = b_alone.collect_all().unwrap();
    let pages = |report: &ironbloom_index::Report| {
        report.verify_reads.pages + report.verify_reads.cached_pages
    };
    assert!(pages(&report) - pages(&only_b) <= 3, "{report:?} {only_b:?}");
    assert!(report.select_reads.pages <= 2, "{report:?}");
}

#[test]
fn steps_bound_what_is_held_at_once() {
    let (_file, table) = numbers();
    let blocks: Vec<u64> = (0..table.rows().div_ceil(512)).collect();
    let candidates = rows_of(&blocks, 512);
    let all = Predicate::And(vec![]);
    let mut next = 0;
    let mut steps = 0;
    for found in Find::new(&table, &all, candidates, &["c"]).unwrap() {
        let found = found.unwrap();
        assert!(found.rows.len() <= 1 << 17);
        for row in found.rows {
            assert_eq!(row, next);
            next += 1;
        }
        steps += 1;
    }
    assert_eq!(next, 200_000);
    assert!(steps > 1);
}

#[test]
fn candidates_beyond_the_table_are_of_no_rows() {
    let (_file, table) = numbers();
    let found = find(&table, &equal("c", 199_999), &[390, 391, 1 << 50], 512, &[]);
    assert_eq!(found.rows, [199_999]);
}

#[test]
fn what_does_not_fit_the_table_is_said_before_anything_is_read() {
    let (file, table) = numbers();
    let error = |predicate: Predicate, select: &[&str]| {
        Find::new(&table, &predicate, [], select).err().expect("refused").to_string()
    };
    let path = file.path().display();
    assert_eq!(
        error(equal("d", 1), &[]),
        format!("{path}: no column d; did you mean a or b or c?")
            .replace("; did you mean a or b or c?", "")
    );
    assert_eq!(error(equal("a", 1), &["cc"]), format!("{path}: no column cc"));
    let text = Predicate::Eq("a".into(), Value::Text("x".into()));
    assert_eq!(error(text, &[]), format!("{path}: column a is Int64, which Text(\"x\") is not"));
}

/// Conditions as long as a shell or a program makes them: side by side, they take no more of the stack than one.
#[test]
fn thousands_of_parts_of_a_condition_are_compared() {
    let (_file, table) = numbers();
    let below = |column: &str, limit| {
        let (low, high) = (Bound::Unbounded, Bound::Excluded(Value::Int(limit)));
        Predicate::Range { column: column.into(), low, high }
    };
    let others = |column: &'static str| {
        (5..5000).map(move |value| Predicate::Not(Box::new(equal(column, value))))
    };
    let of_one: Vec<_> = [below("a", 10)].into_iter().chain(others("a")).collect();
    let of_two: Vec<_> = others("a").chain(others("b")).chain([below("b", 7)]).collect();
    let either: Vec<_> = (5..5000).map(|value| equal("a", value + 990)).collect();
    let rows = |predicate: &Predicate| {
        let found = find(&table, predicate, &[0, 1], 512, &[]).rows;
        // As deep as conditions may be, and no deeper.
        let nested = Predicate::And(vec![Predicate::And(vec![predicate.clone()])]);
        assert_eq!(find(&table, &nested, &[0, 1], 512, &[]).rows, found);
        found
    };
    assert_eq!(rows(&Predicate::And(of_one)), [0, 1, 2, 3, 4, 1000, 1001, 1002, 1003, 1004]);
    assert_eq!(rows(&Predicate::And(of_two)).len(), 10);
    assert_eq!(rows(&Predicate::Or(either)), [995, 996, 997, 998, 999]);
}

#[test]
fn a_table_that_is_written_to_while_it_is_open_is_refused() {
    let (file, table) = numbers();
    let content = std::fs::read(file.path()).unwrap();
    // In place, longer: shortening it would pull the map from under us, which is documented.
    let mut longer = std::fs::OpenOptions::new().append(true).open(file.path()).unwrap();
    std::io::Write::write_all(&mut longer, &content[..10]).unwrap();
    let error = Find::new(&table, &equal("a", 1), rows_of(&[1], 512), &[]).err().unwrap();
    assert!(matches!(error, TableError::Changed { .. }), "{error}");
}

#[test]
fn long_lists_find_what_the_definition_says() {
    let batch = random::table(11, 3000);
    let file = layouts()[2].write(&batch);
    let table = reopen(&Table::open(file.path()).unwrap());
    let blocks: Vec<u64> = (0..3000u64.div_ceil(100)).collect();
    let random = &mut Random(12);
    for column in random::comparable_columns() {
        let array = batch.column_by_name(&column).unwrap();
        let mut values: Vec<Value> =
            (0..200).map(|_| naive::value(array, random.below(3000) as usize)).collect();
        if column.len() % 2 == 0 {
            values.retain(|value| *value != Value::Null);
        }
        let list = Predicate::In(column.clone(), values);
        for predicate in [
            list.clone(),
            Predicate::Not(Box::new(list.clone())),
            Predicate::Or(vec![
                Predicate::Not(Box::new(list.clone())),
                Predicate::IsNull(column.clone()),
                list.clone(),
            ]),
        ] {
            let wanted = matching_rows(&predicate, &batch);
            let found = find(&table, &predicate, &blocks, 100, &[]);
            assert_eq!(found.rows, wanted, "{column}");
        }
    }
}

/// Row groups smaller and larger than a step, and enough rows for several threads and rounds.
#[test]
fn a_scan_of_many_rows_finds_them_in_order_and_a_count_counts_as_many() {
    const ROWS: i64 = 1_500_000;
    let folder = Scratch::on_disk("scan");
    let column = |of: fn(i64) -> i64| Arc::new(Int64Array::from_iter_values((0..ROWS).map(of)));
    let batch = RecordBatch::try_from_iter([
        ("a", column(|row| row * 7919 % 1000) as _),
        ("c", column(|row| row) as _),
    ])
    .unwrap();
    let below = |limit: i128| Predicate::Range {
        column: "a".into(),
        low: Bound::Unbounded,
        high: Bound::Excluded(Value::Int(limit)),
    };
    for group_rows in [3_000, 122_880, 1 << 20] {
        let (path, file) = (
            folder.file(&format!("{group_rows}.parquet")),
            folder.file(&format!("{group_rows}.ibx")),
        );
        let properties =
            WriterProperties::builder().set_max_row_group_row_count(Some(group_rows)).build();
        let output = std::fs::File::create(&path).unwrap();
        let mut writer = ArrowWriter::try_new(output, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        index_tables(&[path], None, Params::default(), &file, &mut |_| {})
            .unwrap()
            .save(&file)
            .unwrap();
        let indexed = Indexed::open(&file).unwrap();
        for limit in [1000, 500, 1] {
            let wanted: Vec<u64> =
                (0..ROWS).filter(|row| row * 7919 % 1000 < limit).map(|row| row as u64).collect();
            let (mut rows, mut shown) = (Vec::new(), Vec::new());
            for found in indexed.find(&below(limit.into()), &["c"]).unwrap() {
                let (_, found) = found.unwrap();
                shown.extend(
                    found
                        .batch
                        .column(0)
                        .as_primitive::<Int64Type>()
                        .values()
                        .iter()
                        .map(|&c| c as u64),
                );
                rows.extend(found.rows);
            }
            assert!(rows == wanted && shown == wanted, "groups of {group_rows}, below {limit}");
            let mut search = indexed.find(&below(limit.into()), &[]).unwrap();
            search.count_only();
            let counts = search.map(|found| found.unwrap().1.batch.num_rows());
            assert_eq!(
                counts.sum::<usize>(),
                wanted.len(),
                "groups of {group_rows}, below {limit}"
            );
        }
    }
}
