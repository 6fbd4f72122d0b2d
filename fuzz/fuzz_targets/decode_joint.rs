//! A joint filter: the parameters of a cuckoo filter, names, tables of copies and, for partial queries, of values.
#![no_main]

use ironbloom::CuckooParams;
use ironbloom::any::AnyFilter;
use ironbloom::multi::{Joint, MultiFilter};
use ironbloom_fuzz::{EditedRows, exercise, exercise_rows};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (bool, EditedRows)| {
    let (partial, rows) = input;
    let make = if partial { Joint::new_partial } else { Joint::new };
    let made = |capacity, attributes| make(CuckooParams::for_rate(capacity, 0.05)?, attributes);
    let Some((mut joint, file)) = rows.decode(made) else { return };
    exercise(AnyFilter::Joint(joint.clone()), &file);
    exercise_rows(&mut joint);
    joint.clear();
    assert_eq!((joint.len(), joint.copied(), joint.estimate_len()), (0, 0, 0.0));
});
