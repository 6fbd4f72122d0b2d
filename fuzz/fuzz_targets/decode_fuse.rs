//! A fuse filter: seed, segments, width and arity; the payload is its cells. Its capacity is its number of keys.
#![no_main]

use ironbloom::any::AnyFilter;
use ironbloom::{BinaryFuse, Kind};
use ironbloom_fuzz::{Forged, exercise};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|forged: Forged| {
    let forged = Forged { capacity: forged.len, ..forged };
    let Some((fuse, file)) = forged.decode::<BinaryFuse>(Kind::Fuse, 5) else { return };
    assert!(fuse.bits_per_key() > 0.0);
    assert_eq!(fuse.params().width(), fuse.width());
    exercise(AnyFilter::Fuse(fuse), &file);
});
