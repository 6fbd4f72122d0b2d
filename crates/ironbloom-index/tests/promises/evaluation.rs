//! `evaluate` agrees with the definition, cell by cell, for every type.

use crate::common::naive::matching_rows;
use crate::common::random;
use arrow::array::{Int32Array, RecordBatch};
use ironbloom_index::{EvaluateError, Predicate, Value, evaluate};
use ironbloom_testing::Random;
use proptest::prelude::*;
use std::ops::Bound;
use std::sync::Arc;

fn rows(predicate: &Predicate, batch: &RecordBatch) -> Vec<u64> {
    let mask = evaluate(predicate, batch).unwrap();
    assert_eq!(mask.len(), batch.num_rows());
    mask.set_indices().map(|row| row as u64).collect()
}

#[test]
fn every_type_is_compared_as_the_definition_says() {
    let batch = random::table(1, 500);
    let random = &mut Random(2);
    for column in random::comparable_columns() {
        let mut found = 0;
        for _ in 0..200 {
            let predicate = random::leaf(random, &batch, column.clone());
            let wanted = matching_rows(&predicate, &batch);
            assert_eq!(rows(&predicate, &batch), wanted, "{predicate:?}");
            found += wanted.len();
        }
        assert!(found > 0, "{column}: no predicate found anything, which tests nothing");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn combinations_follow_three_valued_logic(seed: u64, rows_of_table in 0usize..200) {
        let batch = random::table(seed, rows_of_table);
        let random = &mut Random(seed);
        for _ in 0..20 {
            let predicate = random::predicate(random, &batch, 3);
            prop_assert_eq!(rows(&predicate, &batch), matching_rows(&predicate, &batch), "{:?}", predicate);
        }
    }

    #[test]
    fn a_slice_gives_what_the_whole_gives(seed: u64, start in 0usize..100, length in 0usize..100) {
        let batch = random::table(seed, 200);
        let random = &mut Random(seed);
        for _ in 0..10 {
            let predicate = random::predicate(random, &batch, 1);
            let whole = evaluate(&predicate, &batch).unwrap();
            let part = evaluate(&predicate, &batch.slice(start, length)).unwrap();
            prop_assert_eq!(part, whole.slice(start, length));
        }
    }
}

fn numbers(cells: Vec<Option<i32>>) -> RecordBatch {
    RecordBatch::try_from_iter([("x", Arc::new(Int32Array::from(cells)) as _)]).unwrap()
}

#[test]
fn nulls_are_found_only_by_is_null() {
    let batch = numbers(vec![Some(1), None, Some(2)]);
    let x = || "x".to_owned();
    let one = Predicate::Eq(x(), Value::Int(1));
    let not = |predicate| Predicate::Not(Box::new(predicate));
    assert_eq!(rows(&one, &batch), [0]);
    assert_eq!(rows(&not(one.clone()), &batch), [2]);
    assert_eq!(rows(&Predicate::IsNull(x()), &batch), [1]);
    assert_eq!(rows(&not(Predicate::IsNull(x())), &batch), [0, 2]);
    assert_eq!(rows(&Predicate::Eq(x(), Value::Null), &batch), [0u64; 0]);
    assert_eq!(rows(&not(Predicate::Eq(x(), Value::Null)), &batch), [0u64; 0]);
    let list = Predicate::In(x(), vec![Value::Int(1), Value::Null]);
    assert_eq!(rows(&list, &batch), [0]);
    assert_eq!(rows(&not(list), &batch), [0u64; 0]);
    let null_bound = Bound::Included(Value::Null);
    let range = Predicate::Range { column: x(), low: null_bound, high: Bound::Unbounded };
    assert_eq!(rows(&not(range), &batch), [0u64; 0]);
    let everything =
        Predicate::Range { column: x(), low: Bound::Unbounded, high: Bound::Unbounded };
    assert_eq!(rows(&everything, &batch), [0, 2]);
    assert_eq!(rows(&not(Predicate::In(x(), vec![])), &batch), [0, 1, 2]);
}

#[test]
fn nothing_to_combine_is_true_for_and_and_false_for_or() {
    let batch = numbers(vec![Some(1), None]);
    assert_eq!(rows(&Predicate::And(vec![]), &batch), [0, 1]);
    assert_eq!(rows(&Predicate::Or(vec![]), &batch), [0u64; 0]);
}

#[test]
fn integers_that_the_type_cannot_hold_match_nothing_and_bound_everything() {
    let batch = numbers(vec![Some(i32::MAX), Some(i32::MIN)]);
    let x = || "x".to_owned();
    for beyond in [i128::MAX, i128::MIN, 1 << 31, (1 << 32) + i128::from(i32::MAX)] {
        assert_eq!(rows(&Predicate::Eq(x(), Value::Int(beyond)), &batch), [0u64; 0], "{beyond}");
    }
    let below = Predicate::Range {
        column: x(),
        low: Bound::Excluded(Value::Int(i128::MIN)),
        high: Bound::Included(Value::Int(i128::MAX)),
    };
    assert_eq!(rows(&below, &batch), [0, 1]);
}

#[test]
fn what_does_not_fit_is_an_error_with_the_column() {
    let batch = random::table(1, 3);
    let text = Predicate::Eq("i32".into(), Value::Text("7".into()));
    let error = evaluate(&text, &batch).unwrap_err();
    assert_eq!(error.to_string(), "column i32 is Int32, which Text(\"7\") is not");
    let list = Predicate::Eq("list".into(), Value::Int(7));
    assert!(matches!(evaluate(&list, &batch), Err(EvaluateError::Incomparable { .. })));
    assert!(evaluate(&Predicate::IsNull("list".into()), &batch).is_ok());
    let missing = Predicate::IsNull("nowhere".into());
    assert_eq!(evaluate(&missing, &batch).unwrap_err().to_string(), "no column nowhere");
}
