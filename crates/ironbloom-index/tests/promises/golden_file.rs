//! An index of every version of the format is read, and gives the rows that are in its table.

use std::path::Path;

use ironbloom_index::{Indexed, parse};

#[test]
fn the_first_index_is_read_and_right() {
    read_and_right("v1.ibx");
}

#[test]
fn an_index_of_version_2_is_read_and_right() {
    read_and_right("v2.ibx");
}

#[test]
fn an_index_of_version_3_is_read_and_right() {
    read_and_right("v3.ibx");
}

fn read_and_right(name: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    let indexed = Indexed::open(file).unwrap();
    assert!(indexed.index().verify().is_empty());
    let schema = &indexed.schema().unwrap();
    let rows = |condition: &str| -> Vec<u64> {
        let predicate = parse(condition, schema).unwrap();
        indexed.find(&predicate, &[]).unwrap().flat_map(|part| part.unwrap().1.rows).collect()
    };
    for id in 0..1100 {
        assert_eq!(rows(&format!("id = {id}")), [id]);
        assert_eq!(rows(&format!("price = {}", id as f64 * 0.25)), [id]);
    }
    let every = |step: usize, first: u64| (first..1100).step_by(step).collect::<Vec<u64>>();
    assert_eq!(rows("name = 'cedar'"), every(5, 2));
    assert_eq!(rows("name is null"), every(5, 3));
    assert_eq!(rows("ok = false"), every(3, 0));
    assert_eq!(rows("day = '2024-03-03' and name = 'cedar'"), every(84 * 5, 2));
    assert_eq!(rows("id = 1100"), [0u64; 0]);
    assert_eq!(rows("id between 700 and 703"), [700, 701, 702, 703]);
    assert_eq!(rows("not (price >= 0.5)"), [0, 1]);
    assert_eq!(rows("name like 'ced%' and id < 10"), [2, 7]);
}
