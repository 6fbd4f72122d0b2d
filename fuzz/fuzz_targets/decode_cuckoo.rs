//! A cuckoo filter: buckets, bits of a fingerprint and layout; the payload is the buckets, plain or packed.
#![no_main]

use ironbloom::any::AnyFilter;
use ironbloom::{Cuckoo, Kind};
use ironbloom_fuzz::{Forged, exercise, some_hashes};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|forged: Forged| {
    let Some((mut cuckoo, file)) = forged.decode::<Cuckoo>(Kind::Cuckoo, 3) else { return };
    exercise(AnyFilter::Cuckoo(cuckoo.clone()), &file);
    for hash in some_hashes() {
        assert!(cuckoo.count_hash(hash) <= 8);
        let _ = cuckoo.insert_new_hash(hash);
        if cuckoo.insert_hash(hash).is_ok() {
            assert!(cuckoo.remove_hash(hash), "a key just inserted cannot be removed");
        }
    }
    assert!((0.0..=1.0).contains(&cuckoo.fill()));
    cuckoo.clear();
    assert_eq!((cuckoo.len(), cuckoo.fill()), (0, 0.0));
});
