//! Bytes as they come, and the same with checksums that fit. `make fuzz` starts it from the golden files.
#![no_main]

use ironbloom::{AnyFilter, Persist};
use ironbloom_fuzz::{exercise, seal};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    if let Ok(filter) = AnyFilter::from_bytes(&bytes) {
        exercise(filter, &bytes);
    }
    seal(&mut bytes);
    if let Ok(filter) = AnyFilter::from_bytes(&bytes) {
        exercise(filter, &bytes);
    }
});
