//! A d-left filter: buckets, bits of a remainder and lines of the stash; the payload is cells, then the stash.
#![no_main]

use ironbloom::any::AnyFilter;
use ironbloom::{DLeft, Kind};
use ironbloom_fuzz::{Forged, exercise, some_hashes};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|forged: Forged| {
    let Some((mut dleft, file)) = forged.decode::<DLeft>(Kind::DLeft, 3) else { return };
    exercise(AnyFilter::DLeft(dleft.clone()), &file);
    let _ = (dleft.saturated(), dleft.stashed());
    for hash in some_hashes() {
        if dleft.insert_hash(hash).is_ok() {
            assert!(dleft.remove_hash(hash), "a key just inserted cannot be removed");
        }
    }
    dleft.clear();
    assert_eq!((dleft.len(), dleft.stashed(), dleft.estimate_len()), (0, 0, 0.0));
});
