//! One filter that several threads fill and query at the same time.
//!
//! `make sanitize` runs this under ThreadSanitizer, which cannot see the synchronisation inside the shipped standard
//! library: so threads share a leaked reference here, and are joined one by one.

use std::thread;

use ironbloom::{AtomicBlockedBloom, AtomicBloom, BlockedBloom};

const THREADS: u64 = 4;
const KEYS: u64 = 50_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let blocked: &AtomicBlockedBloom =
        Box::leak(Box::new(AtomicBlockedBloom::with_rate(THREADS * KEYS, 0.01)?));
    let bloom: &AtomicBloom = Box::leak(Box::new(AtomicBloom::with_rate(THREADS * KEYS, 0.01)?));

    // Every thread inserts its own keys, one by one or in batches, and finds them at once, whatever the others do.
    let work = move |thread: u64| {
        let keys: Vec<u64> = (0..KEYS).map(|i| thread << 32 | i).collect();
        for batch in keys.chunks(1000) {
            blocked.insert_keys(batch);
            for &key in batch {
                bloom.insert(key);
                assert!(bloom.contains(key) && blocked.contains(key));
            }
            let before = thread.wrapping_sub(1) << 32;
            let _ = (bloom.contains(before), blocked.contains(before)); // present or not: unpredictable
        }
        let copy = blocked.snapshot(); // while others insert
        assert!(keys.iter().all(|&key| copy.contains(key)));
    };
    let threads: Vec<_> = (0..THREADS).map(|i| thread::spawn(move || work(i))).collect();
    for thread in threads {
        thread.join().expect("no thread misses a key");
    }

    let plain: BlockedBloom = blocked.snapshot(); // to save, merge or estimate
    println!("{} keys counted, about {:.0} there", plain.len(), plain.estimate_len());
    Ok(())
}
