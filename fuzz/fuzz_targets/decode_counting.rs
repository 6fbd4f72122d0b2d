//! A counting filter: the parameters of a Bloom filter; the payload is four bits for each of its bits.
#![no_main]

use ironbloom::any::AnyFilter;
use ironbloom::{CountingBloom, Kind};
use ironbloom_fuzz::{Forged, exercise, some_hashes};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|forged: Forged| {
    let Some((mut counting, file)) = forged.decode::<CountingBloom>(Kind::Counting, 4) else {
        return;
    };
    exercise(AnyFilter::Counting(counting.clone()), &file);
    assert!(counting.saturated() <= counting.params().bits());
    assert!((0.0..=1.0).contains(&counting.fill()));
    for hash in some_hashes() {
        counting.insert_hash(hash);
        assert!(counting.remove_hash(hash), "a key just inserted cannot be removed");
    }
    counting.clear();
    assert_eq!((counting.len(), counting.fill(), counting.saturated()), (0, 0.0, 0));
});
