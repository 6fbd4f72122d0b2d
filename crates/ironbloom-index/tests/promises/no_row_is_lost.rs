//! Whatever is built, appended, pushed, merged, dropped, saved and opened: every row that matches is in a candidate block.

use std::ops::Bound;

use crate::model::{self, Model, Row, batch, check, columns};
use ironbloom_index::{Index, IndexBuilder, Params, Pattern, Predicate, SourceMeta, Value};
use ironbloom_testing::TemporaryFile;
use proptest::prelude::*;

/// Values from small sets, so that they repeat, meet, and become heavy.
fn row() -> impl Strategy<Value = Row> {
    let int = prop_oneof![
        1 => Just(None),
        3 => (0i32..4).prop_map(Some),
        6 => (0i32..5000).prop_map(Some),
    ];
    let text = prop_oneof![
        1 => Just(None),
        4 => (0u32..300).prop_map(|number| Some(format!("text {number}"))),
    ];
    let float =
        prop::option::weighted(0.2, prop_oneof![Just(0.0), Just(-0.0), Just(f64::NAN), Just(1.5)]);
    let flag = prop::option::of(any::<bool>());
    (int, text, float, flag).prop_map(|(int, text, float, flag)| Row { int, text, float, flag })
}

/// Rows in no order, or in the order of a column, so that the bounds of blocks differ.
fn rows(most: usize) -> impl Strategy<Value = Vec<Row>> {
    (prop::collection::vec(row(), 0..most), 0..4).prop_map(|(mut rows, order)| {
        match order {
            0 => rows.sort_by_key(|row| row.int),
            1 => rows.sort_by(|a, b| a.text.cmp(&b.text)),
            _ => {}
        }
        rows
    })
}

fn leaf() -> impl Strategy<Value = Predicate> {
    let int = || (0i128..6000).prop_map(Value::Int);
    let few = || (0i128..5).prop_map(Value::Int);
    let text = || (0u32..310).prop_map(|number| Value::Text(format!("text {number}")));
    let float =
        prop_oneof![Just(0.0), Just(-0.0), Just(f64::NAN), Just(2.5)].prop_map(Value::Float);
    let bound = |value: BoxedStrategy<Value>| {
        prop_oneof![
            Just(Bound::Unbounded),
            value.clone().prop_map(Bound::Included),
            value.prop_map(Bound::Excluded)
        ]
    };
    let float = float.boxed();
    let range = move |column: &'static str, value: BoxedStrategy<Value>| {
        (bound(value.clone()), bound(value)).prop_map(move |(low, high)| Predicate::Range {
            column: column.into(),
            low,
            high,
        })
    };
    const PATTERNS: [&str; 7] = ["text 1%", "text 29_", "te%7", "u%", "%", "text 12", "%9"];
    let column = prop::sample::select(&model::COLUMNS[..]);
    prop_oneof![
        4 => prop_oneof![int(), few(), Just(Value::Null)].prop_map(|value| Predicate::Eq("int".into(), value)),
        2 => text().prop_map(|value| Predicate::Eq("text".into(), value)),
        1 => float.clone().prop_map(|value| Predicate::Eq("float".into(), value)),
        1 => any::<bool>().prop_map(|flag| Predicate::Eq("flag".into(), Value::Bool(flag))),
        2 => prop::collection::vec(prop_oneof![8 => text(), 1 => Just(Value::Null)], 0..6)
            .prop_map(|values| Predicate::In("text".into(), values)),
        1 => column.prop_map(|column| Predicate::IsNull(column.into())),
        2 => range("int", int().boxed()),
        1 => range("text", text().boxed()),
        1 => range("float", float),
        1 => range("flag", any::<bool>().prop_map(Value::Bool).boxed()),
        2 => prop::sample::select(&PATTERNS[..])
            .prop_map(|pattern| Predicate::Like("text".into(), Pattern::new(pattern, None).unwrap())),
    ]
}

fn predicate() -> impl Strategy<Value = Predicate> {
    leaf().prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            2 => prop::collection::vec(inner.clone(), 0..4).prop_map(Predicate::And),
            2 => prop::collection::vec(inner.clone(), 0..4).prop_map(Predicate::Or),
            1 => inner.prop_map(|part| Predicate::Not(Box::new(part))),
        ]
    })
}

#[derive(Clone, Debug)]
enum Step {
    NewSource { rows: Vec<Row>, segment_rows: u64, batch_rows: usize },
    MoreRows { of: prop::sample::Index, rows: Vec<Row> },
    Push { of: prop::sample::Index, rows: Vec<Row> },
    Compact,
    Remove(prop::sample::Index),
    SaveAndOpen,
}

fn step() -> impl Strategy<Value = Step> {
    let of = any::<prop::sample::Index>;
    prop_oneof![
        3 => (rows(700), 1u64..400, 1usize..300).prop_map(|(rows, segment_rows, batch_rows)| {
            Step::NewSource { rows, segment_rows, batch_rows }
        }),
        2 => (of(), rows(200)).prop_map(|(of, rows)| Step::MoreRows { of, rows }),
        2 => (of(), rows(200)).prop_map(|(of, rows)| Step::Push { of, rows }),
        2 => Just(Step::Compact),
        1 => of().prop_map(Step::Remove),
        1 => Just(Step::SaveAndOpen),
    ]
}

/// Applies a step to the index and to the model.
fn apply(step: Step, number: usize, index: &mut Index, model: &mut Model) {
    match step {
        Step::NewSource { rows, segment_rows, batch_rows } => {
            let mut builder = IndexBuilder::like(index).unwrap().with_segment_rows(segment_rows);
            let name = format!("source {number}");
            builder.start(name.clone()).unwrap();
            rows.chunks(batch_rows).for_each(|rows| builder.push(&batch(rows)).unwrap());
            builder.end(SourceMeta::default()).unwrap();
            index.append(builder.finish().unwrap()).unwrap();
            model.push((name, rows));
        }
        Step::MoreRows { of, rows } if !model.is_empty() && !rows.is_empty() => {
            let place = of.index(model.len());
            let (name, old) = &mut model[place];
            // A source without rows cannot grow, since rows from 0 on are a new source.
            if !old.is_empty() {
                let mut builder = IndexBuilder::like(index).unwrap();
                builder.start_at(name.clone(), old.len() as u64).unwrap();
                builder.push(&batch(&rows)).unwrap();
                index.append(builder.finish().unwrap()).unwrap();
                old.extend(rows);
            }
        }
        Step::Push { of, rows } if !model.is_empty() => {
            let place = of.index(model.len());
            let (name, old) = &mut model[place];
            index.push(index.source(name).unwrap(), &batch(&rows)).unwrap();
            old.extend(rows);
        }
        Step::Remove(of) if !model.is_empty() => {
            let (name, _) = model.remove(of.index(model.len()));
            index.remove(&name).unwrap();
        }
        Step::Compact => index.compact().unwrap(),
        Step::SaveAndOpen => {
            let file = TemporaryFile::new("ibx");
            index.save(&file.0).unwrap();
            *index = Index::open(&file.0).unwrap();
            assert!(index.verify().is_empty());
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn answers_hold_every_row_that_matches(
        steps in prop::collection::vec(step(), 1..8),
        predicates in prop::collection::vec(predicate(), 12),
        block_rows in prop::sample::select(&[1u32, 2, 16, 64, 512][..]),
        selectivity in prop::sample::select(&[1u32, 4, 10, 20][..]),
    ) {
        let params = Params::new(block_rows, selectivity).unwrap();
        let mut index = IndexBuilder::new(columns(), params).unwrap().finish().unwrap();
        let mut model = Model::new();
        for (number, step) in steps.into_iter().enumerate() {
            apply(step, number, &mut index, &mut model);
            for predicate in &predicates {
                check(&index, &model, predicate);
            }
        }
    }
}

/// Nulls have their own lists: a value never finds them, and they never hide a value.
#[test]
fn nulls_are_found_only_by_is_null() {
    let row =
        |i: i32| Row { int: (i % 64 >= 32).then_some(7), text: None, float: None, flag: None };
    let rows: Vec<Row> = (0..640).map(row).collect();
    let mut builder = IndexBuilder::new(columns(), Params::new(32, 10).unwrap()).unwrap();
    builder.push(&batch(&rows)).unwrap();
    let index = builder.finish().unwrap();
    let firsts = |predicate| -> Vec<u64> {
        let found = index.candidates(&predicate).unwrap();
        found.blocks.iter().map(|block| block.first_row).collect()
    };
    let even: Vec<u64> = (0..640).step_by(64).collect();
    let odd: Vec<u64> = (32..640).step_by(64).collect();
    assert_eq!(firsts(Predicate::IsNull("int".into())), even);
    assert_eq!(firsts(Predicate::Eq("int".into(), Value::Int(7))), odd);
    assert_eq!(firsts(Predicate::Eq("int".into(), Value::Null)), [0u64; 0]);
    assert_eq!(firsts(Predicate::In("int".into(), vec![Value::Null, Value::Int(7)])), odd);
    assert_eq!(firsts(Predicate::IsNull("text".into())).len(), 20);
    assert_eq!(firsts(Predicate::Or(vec![])), [0u64; 0]);
    assert_eq!(firsts(Predicate::And(vec![])).len(), 20);
}
