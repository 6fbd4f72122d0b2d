//! Time and identity of a published state are inside its checksum.

use std::fs;
use std::time::{Duration, SystemTime};

use ironbloom::{BlockedBloom, BlockedBloomParams, HashFn, Persist};
use ironbloom_store::{Guard, GuardKind, Memory, Options, Published};
use ironbloom_testing::{Scratch, eventually};

fn open(scratch: &Scratch, store: Memory) -> Guard<Memory> {
    let options = Options::new(GuardKind::Blocked, 1000, 0.001).publish(scratch.file("users.ibf"));
    Guard::open(store, options).unwrap()
}

#[test]
fn an_older_file_that_is_copied_over_a_newer_one_is_not_used() {
    let scratch = Scratch::new("copied");
    let [file, stamp] = ["users.ibf", "users.ibf.stamp"].map(|name| scratch.file(name));
    let guard = open(&scratch, Memory::new());
    guard.put("alice", "").unwrap();
    guard.publish().unwrap();
    let old = [&file, &stamp].map(|path| fs::read(path).unwrap());
    guard.put("bob", "").unwrap();
    guard.publish().unwrap();
    let reader = Published::open(&file).unwrap();
    let taken = reader.taken();
    fs::write(&file, &old[0]).unwrap(); // with the time of today
    assert!(reader.refresh().is_err() && reader.contains("bob") && reader.taken() == taken);
    assert!(Published::open(&file).is_err(), "the stamp is that of another file");
    fs::write(&stamp, &old[1]).unwrap();
    assert!(reader.refresh().is_err() && reader.contains("bob") && reader.taken() == taken);
    // Who has read nothing else is told its true age.
    let late = Published::open(&file).unwrap();
    assert!(!late.contains("bob") && late.taken() < taken);
    guard.put("carol", "").unwrap();
    guard.publish().unwrap();
    assert!(reader.refresh().unwrap() && late.refresh().unwrap() && late.contains("bob"));
}

#[test]
fn files_of_another_guard_or_of_another_program_are_not_used() {
    let [scratch, other] = ["publisher", "other-publisher"].map(Scratch::new);
    let guard = open(&scratch, Memory::new());
    guard.put("alice", "").unwrap();
    guard.publish().unwrap();
    let reader = Published::open(scratch.file("users.ibf")).unwrap();
    let foreign = open(&other, Memory::new());
    foreign.put("zoe", "").unwrap();
    foreign.publish().unwrap();
    for name in ["users.ibf", "users.ibf.stamp"] {
        fs::copy(other.file(name), scratch.file(name)).unwrap();
    }
    assert!(reader.refresh().is_err() && reader.contains("alice") && !reader.contains("zoe"));
    // A filter that `ironbloom build` has made has no stamp.
    let params = BlockedBloomParams::for_rate(10, 0.01).unwrap();
    let built = BlockedBloom::new(params, HashFn::default()).unwrap();
    fs::write(scratch.file("built.ibf"), built.to_bytes()).unwrap();
    assert!(Published::open(scratch.file("built.ibf")).is_err());
}

#[test]
fn the_next_guard_of_a_store_continues_what_was_published() {
    let scratch = Scratch::new("continued");
    let store = Memory::new();
    let guard = open(&scratch, store.clone());
    guard.publish().unwrap();
    let reader = Published::open(scratch.file("users.ibf")).unwrap();
    drop(guard);
    let guard = open(&scratch, store);
    guard.put("alice", "").unwrap();
    guard.publish().unwrap();
    assert!(reader.refresh().unwrap() && reader.contains("alice"));
}

#[test]
fn a_reader_may_watch_before_anything_is_published() {
    let scratch = Scratch::new("early");
    let file = scratch.file("users.ibf");
    let reader = Published::watch(&file, Duration::from_millis(5)).unwrap();
    assert!(reader.contains("anything") && reader.contains_many(&["a", "b"]) == [true, true]);
    assert_eq!((reader.generation(), reader.taken()), (0, SystemTime::UNIX_EPOCH));
    let guard = open(&scratch, Memory::new());
    guard.put("alice", "").unwrap();
    guard.publish().unwrap();
    eventually(|| if reader.generation() > 0 { Ok(()) } else { Err("not read yet") });
    assert!(reader.contains("alice") && !reader.contains("bob"));
}
