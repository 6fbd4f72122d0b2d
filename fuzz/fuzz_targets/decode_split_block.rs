//! A split block filter: the number of blocks, of which an odd one leaves half a line unused.
#![no_main]

use ironbloom::any::AnyFilter;
use ironbloom::{Kind, SplitBlock};
use ironbloom_fuzz::{Forged, exercise};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|forged: Forged| {
    let Some((mut split, file)) = forged.decode::<SplitBlock>(Kind::SplitBlock, 1) else { return };
    exercise(AnyFilter::SplitBlock(split.clone()), &file);
    assert!((0.0..=1.0).contains(&split.fill()));
    split.clear();
    assert_eq!((split.len(), split.fill()), (0, 0.0));
});
