//! Large filters take only the memory in use: one test, alone in its process, since memory is
//! counted per process.
#![cfg(target_os = "linux")]

mod mapped;

use ironbloom::hash::mix64;
use ironbloom::{BlockedBloom, Persist};
use ironbloom_testing::TemporaryFile;

const MIB: u64 = 1 << 20;

/// A field of /proc/self/status, in bytes.
fn resident(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).expect("Linux has it");
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib << 10
}

#[test]
fn memory_is_taken_when_it_is_used_and_a_map_reads_only_what_is_asked_for() {
    let before = resident("RssAnon:");
    let mut filter = BlockedBloom::with_rate(200_000_000, 0.01).unwrap();
    let size = filter.size_in_bytes() as u64;
    assert!(size > 200 * MIB);
    assert!(resident("RssAnon:") - before < 16 * MIB, "an empty filter takes memory");

    let hashes: Vec<u64> = (0..2_000_000).map(mix64).collect();
    filter.insert_hashes(&hashes);
    assert!(resident("RssAnon:") - before > size / 2, "the measure measures nothing");

    let path = TemporaryFile::new("ibf");
    filter.save(&path).unwrap();
    drop(filter);
    let before = resident("RssFile:");
    let mapped = mapped::map_unverified::<BlockedBloom>(&path).unwrap();
    assert!(hashes[..50].iter().all(|&hash| mapped.contains_hash(hash)));
    let read = resident("RssFile:") - before;
    assert!(read < 32 * MIB, "fifty lookups in a map of {size} bytes read {read}");

    let checked = mapped::map::<BlockedBloom>(&path).unwrap();
    assert!(resident("RssFile:") - before > size / 2, "the measure measures nothing");
    assert!(hashes.iter().all(|&hash| checked.contains_hash(hash)));
}
