//! A blocked filter: the number of blocks; the payload is its blocks.
#![no_main]

use ironbloom::any::AnyFilter;
use ironbloom::{BlockedBloom, Kind};
use ironbloom_fuzz::{Forged, exercise};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|forged: Forged| {
    let Some((mut blocked, file)) = forged.decode::<BlockedBloom>(Kind::Blocked, 1) else {
        return;
    };
    exercise(AnyFilter::Blocked(blocked.clone()), &file);
    assert!((0.0..=1.0).contains(&blocked.fill()));
    blocked.clear();
    assert_eq!((blocked.len(), blocked.fill()), (0, 0.0));
});
