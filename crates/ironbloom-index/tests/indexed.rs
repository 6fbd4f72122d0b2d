//! Index and tables together: whatever is built, appended, compacted, dropped, saved and opened again, the rows found are
//! those of a naive scan.

mod common;

use std::path::PathBuf;

use arrow::array::RecordBatch;
use common::naive::matching_rows;
use common::random::{self, Random};
use common::{TemporaryFile, layouts};
use ironbloom_index::{
    Index, Indexed, IndexedError, Params, Predicate, Value, index_more_tables, index_tables,
};
use proptest::prelude::*;

/// Tables in the index, with their files and what is in them.
struct Model {
    tables: Vec<(TemporaryFile, RecordBatch)>,
    file: TemporaryFile,
}

impl Model {
    fn add(&mut self, random: &mut Random) -> PathBuf {
        let layouts = layouts();
        let batch = random::table(random.next(), random.below(1500) as usize);
        let layout = &layouts[random.below(layouts.len() as u64) as usize];
        let table = layout.write(&batch);
        let path = table.path().to_owned();
        self.tables.push((table, batch));
        path
    }

    /// Opens the file and compares some answers.
    fn check(&self, random: &mut Random) -> Result<(), TestCaseError> {
        let indexed = Indexed::open(self.file.path()).unwrap();
        for _ in 0..4 {
            let (_, batch) = &self.tables[random.below(self.tables.len() as u64) as usize];
            let predicate = random::predicate(random, batch, 2);
            let mut found = vec![Vec::new(); self.tables.len()];
            for part in indexed.find(&predicate, &["i64"]).unwrap() {
                let (table, part) = part.unwrap();
                prop_assert_eq!(part.batch.num_rows(), part.rows.len());
                found[table].extend(part.rows);
            }
            let wanted: Vec<Vec<u64>> =
                self.tables.iter().map(|(_, batch)| matching_rows(&predicate, batch)).collect();
            prop_assert_eq!(found, wanted, "{:?}", predicate);
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn whatever_happens_to_an_index_the_rows_are_those_of_a_naive_scan(
        seed: u64, block_bits in 0u32..9, selectivity in 1u32..14,
    ) {
        let random = &mut Random(seed);
        let mut model = Model { tables: Vec::new(), file: TemporaryFile::new("ibx") };
        let first = model.add(random);
        let Ok(params) = Params::new(1 << block_bits, selectivity) else { return Ok(()) };
        // Sometimes not all columns are indexed; conditions are on any.
        let names = random.one_in(2).then(|| vec!["i64".to_owned(), "text".into(), "f64".into()]);
        let file = model.file.path().to_owned();
        index_tables(&[first], names.as_deref(), params, &file, &mut |_| {})
            .unwrap().save(&file).unwrap();
        model.check(random)?;
        for _ in 0..4 {
            let mut index = Index::open(&file).unwrap();
            match random.below(3) {
                0 => {
                    let paths = [model.add(random), model.add(random)];
                    let more = index_more_tables(&index, &paths, &file, &mut |_| {}).unwrap();
                    index.append(more).unwrap();
                }
                1 => index.compact().unwrap(),
                _ if model.tables.len() > 1 => {
                    let gone = random.below(model.tables.len() as u64) as usize;
                    let name = index.sources()[gone].name().to_owned();
                    index.remove(&name).unwrap();
                    model.tables.remove(gone);
                }
                _ => {}
            }
            index.save(&file).unwrap();
            model.check(random)?;
        }
    }
}

#[test]
fn an_index_without_tables_is_refused_and_one_without_rows_is_not() {
    let file = TemporaryFile::new("ibx");
    let none = index_tables(&[], None, Params::default(), file.path(), &mut |_| {});
    assert!(matches!(none, Err(IndexedError::NoTables)));
    let table = layouts()[0].write(&random::table(1, 0));
    let paths = [table.path().to_owned()];
    index_tables(&paths, None, Params::default(), file.path(), &mut |_| {})
        .unwrap()
        .save(file.path())
        .unwrap();
    let indexed = Indexed::open(file.path()).unwrap();
    assert_eq!(indexed.find(&Predicate::IsNull("i64".into()), &[]).unwrap().count(), 0);
    let misfit = indexed.find(&Predicate::Eq("i64".into(), Value::Text("x".into())), &[]);
    assert!(misfit.is_err(), "a value of another type is an error even if there are no rows");
}
