//! Bytes as an index of logs blooms, as they come and with a checksum that fits.
#![no_main]

use std::io::Cursor;

use ironbloom::ethereum::{Index, LogQuery};
use libfuzzer_sys::fuzz_target;
use xxhash_rust::xxh3::Xxh3;

fn exercise(bytes: &[u8]) {
    let Ok(index) = Index::open(Cursor::new(bytes)) else { return };
    let query = LogQuery::default().any_of([[7u8; 20]]);
    for range in [0..=u64::MAX, 1..=2, u64::MAX..=u64::MAX] {
        if let Ok(found) = index.find(&query, range) {
            assert!(found.is_sorted() && found.len() as u64 <= index.blocks());
        }
    }
    let _ = (index.range(), index.verify());
}

fuzz_target!(|bytes: &[u8]| {
    exercise(bytes);
    if let Some((start, _)) = bytes.split_last_chunk::<8>()
        && start.len() >= 32
    {
        let runs = u64::from_le_bytes(start[start.len() - 8..].try_into().unwrap());
        let end = runs.checked_mul(16).and_then(|runs| (start.len() as u64 - 16).checked_sub(runs));
        let Some(end) = end.filter(|&end| end >= 16) else { return };
        let mut hasher = Xxh3::new();
        hasher.update(&start[..16]);
        hasher.update(&start[end as usize..]);
        exercise(&[start, &hasher.digest().to_le_bytes()].concat());
    }
});
