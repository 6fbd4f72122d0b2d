//! A parallel filter: the parameters of a counting filter, names, and for each attribute counters and their surplus.
#![no_main]

use ironbloom::BloomParams;
use ironbloom::any::AnyFilter;
use ironbloom::multi::{MultiFilter, ParallelBloom};
use ironbloom_fuzz::{EditedRows, exercise, exercise_rows};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|rows: EditedRows| {
    let make = |capacity, attributes| {
        ParallelBloom::new(BloomParams::segmented_for_rate(capacity, 0.05)?, attributes)
    };
    let Some((mut parallel, file)) = rows.decode(make) else { return };
    exercise(AnyFilter::Parallel(parallel.clone()), &file);
    exercise_rows(&mut parallel);
    parallel.clear();
    assert_eq!((parallel.len(), parallel.surpluses(), parallel.estimate_rate()), (0, 0, 0.0));
});
