//! Bytes as a filter of another program: see `exercise_foreign`.
#![no_main]

use ironbloom::format::foreign::Format;
use ironbloom_fuzz::exercise_foreign;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| exercise_foreign(Format::Parquet, bytes));
