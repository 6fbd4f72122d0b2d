//! Our files of other programs' filters.
#![no_main]

use ironbloom::{AnyFilter, Persist};
use ironbloom_fuzz::seal;
use libfuzzer_sys::fuzz_target;

const FOREIGN: u16 = 13;

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    if bytes.len() > 16 {
        bytes[10..12].copy_from_slice(&FOREIGN.to_le_bytes());
        bytes[12..14].copy_from_slice(&4u16.to_le_bytes());
    }
    seal(&mut bytes);
    let Ok(filter) = AnyFilter::from_bytes(&bytes) else { return };
    assert_eq!(filter.to_bytes(), bytes, "an accepted file is the one that its filter writes");
    let _ = (filter.contains("7"), filter.contains(7), filter.estimate_rate(), filter.describe());
});
