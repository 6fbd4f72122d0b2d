//! A Bloom filter: bits, probes, form and scheme; the payload is its bits.
#![no_main]

use ironbloom::any::AnyFilter;
use ironbloom::{Bloom, Kind};
use ironbloom_fuzz::{Forged, exercise};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|forged: Forged| {
    let Some((mut bloom, file)) = forged.decode::<Bloom>(Kind::Bloom, 4) else { return };
    exercise(AnyFilter::Bloom(bloom.clone()), &file);
    let copy = bloom.clone();
    assert!(bloom.estimate_union_len(&copy).unwrap() >= 0.0);
    assert!(bloom.estimate_intersection_len(&copy).unwrap() >= 0.0);
    let jaccard = bloom.estimate_jaccard(&copy).unwrap();
    assert!((0.0..=1.0).contains(&jaccard) || bloom.estimate_len().is_infinite());
    assert!((0.0..=1.0).contains(&bloom.fill()));
    bloom.clear();
    assert_eq!((bloom.len(), bloom.fill()), (0, 0.0));
});
