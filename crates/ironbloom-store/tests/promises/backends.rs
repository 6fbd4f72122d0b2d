//! Promise: every store that is its own process does what a guard relies on.

use crate::common::exercise;
use ironbloom_store::Memory;
use ironbloom_testing::Scratch;

#[test]
fn a_store_in_memory_does_what_a_guard_relies_on() {
    let scratch = Scratch::new("memory");
    let store = Memory::new();
    exercise(&scratch, || store.clone());
}

#[cfg(feature = "redb")]
#[test]
fn a_file_of_redb_does_what_a_guard_relies_on() {
    let scratch = Scratch::new("redb");
    exercise(&scratch, || ironbloom_store::Redb::create(scratch.file("s.redb")).unwrap());
}
