//! Promise: a checkpoint that is damaged, old or foreign is never believed, and never an error.

use std::fs;
use std::path::PathBuf;

use crate::common::{assert_covers, key};
use ironbloom::HashFn;
use ironbloom_store::{
    Backend, Error, Guard, GuardKind, Memory, Opened, Options, Rebuild, Unusable,
};
use ironbloom_testing::Scratch;

/// Enough for a blocked filter above the size up to which it is read at once.
const LARGE: u64 = 5_000_000;

fn options(scratch: &Scratch, kind: GuardKind) -> Options {
    Options::new(kind, 3000, 0.01).checkpoint(scratch.file("g.ibg")).only_writer()
}

/// A store of some keys with a checkpoint that covers it.
fn stored(scratch: &Scratch, kind: GuardKind) -> Memory {
    let store = Memory::new();
    let guard = Guard::open(store.clone(), options(scratch, kind)).unwrap();
    for i in 0..2000 {
        guard.put(key(i), key(i)).unwrap();
    }
    guard.close().unwrap();
    store
}

fn files(scratch: &Scratch) -> Vec<PathBuf> {
    scratch.names().iter().map(|name| scratch.file(name)).collect()
}

#[test]
fn a_checkpoint_is_two_files_and_the_old_ones_go() {
    for kind in GuardKind::ALL {
        let scratch = Scratch::new(&format!("files-{kind}"));
        let store = stored(&scratch, kind);
        let first = scratch.names();
        assert_eq!(first.len(), 2, "{first:?}");
        let guard = Guard::open(store.clone(), options(&scratch, kind)).unwrap();
        assert_eq!(*guard.opened(), Opened::FromCheckpoint);
        guard.put(key(5000), b"").unwrap();
        fs::write(scratch.file(".g.ibg.1-0.tmp"), b"half a file of a process that died").unwrap();
        let filter = ".g-0123456789abcdef0123456789abcdef.parts.1-0.tmp";
        fs::write(scratch.file(filter), b"another").unwrap();
        fs::write(scratch.file("g-notes.ibf"), b"somebody else's").unwrap();
        fs::write(scratch.file(".g-notes.1-0.tmp"), b"somebody else's").unwrap();
        fs::write(scratch.file(".g.ibg.backup.tmp"), b"somebody else's").unwrap();
        guard.close().unwrap();
        let second = scratch.names();
        assert_eq!(second.len(), 5, "{second:?}");
        assert!(second.contains(&"g-notes.ibf".to_owned()));
        assert!(second.contains(&".g-notes.1-0.tmp".to_owned()));
        assert_eq!(second.iter().filter(|name| first.contains(name)).count(), 1, "only g.ibg");
        let guard = Guard::open(store, options(&scratch, kind)).unwrap();
        assert_eq!(*guard.opened(), Opened::FromCheckpoint);
    }
}

#[test]
fn a_blocked_checkpoint_is_a_filter_that_the_library_reads() {
    use ironbloom::Persist;
    let scratch = Scratch::new("library");
    stored(&scratch, GuardKind::Blocked);
    let path = files(&scratch).into_iter().find(|path| path.extension().unwrap() == "ibf").unwrap();
    let filter = ironbloom::BlockedBloom::load(path).unwrap();
    assert!((0..2000).all(|i| filter.contains(key(i))));
}

#[test]
fn whatever_byte_of_a_checkpoint_is_wrong_every_key_is_answered() {
    for kind in GuardKind::ALL {
        let scratch = Scratch::new(&format!("damage-{kind}"));
        let store = stored(&scratch, kind);
        for path in files(&scratch) {
            let whole = fs::read(&path).unwrap();
            let places = (0..whole.len().min(400)).chain((400..whole.len()).step_by(97));
            for place in places.chain([whole.len() - 1]) {
                let mut damaged = whole.clone();
                damaged[place] ^= 0x10;
                fs::write(&path, &damaged).unwrap();
                let options = options(&scratch, kind).rebuild(Rebuild::Manual);
                let guard = Guard::open(store.clone(), options).unwrap();
                let why = match guard.opened() {
                    Opened::WithoutCheckpoint(why) => why,
                    opened => panic!("{kind}: byte {place} of {}: {opened:?}", path.display()),
                };
                assert!(matches!(why, Unusable::Damaged(_)), "{kind}, byte {place}: {why}");
                assert!((0..2000).step_by(211).all(|i| guard.get(key(i)).unwrap().is_some()));
            }
            for len in [0, 1, 100, whole.len() - 1] {
                fs::write(&path, &whole[..len]).unwrap();
                let guard = Guard::open(store.clone(), options(&scratch, kind)).unwrap();
                assert!(
                    matches!(guard.opened(), Opened::WithoutCheckpoint(Unusable::Damaged(_))),
                    "{len} bytes"
                );
                assert_covers(&guard, "cut short");
                guard.settle().unwrap();
                assert_covers(&guard, "cut short, rebuilt");
            }
            fs::write(&path, [&whole[..], b"more"].concat()).unwrap();
            let guard = Guard::open(store.clone(), options(&scratch, kind)).unwrap();
            assert!(
                matches!(guard.opened(), Opened::WithoutCheckpoint(Unusable::Damaged(_))),
                "too long"
            );
            fs::write(&path, whole).unwrap();
        }
        let guard = Guard::open(store, options(&scratch, kind)).unwrap();
        assert_eq!(*guard.opened(), Opened::FromCheckpoint, "as it was written");
    }
}

#[test]
fn a_missing_filter_or_sidecar_is_only_a_rebuild() {
    let scratch = Scratch::new("missing");
    let store = stored(&scratch, GuardKind::Cuckoo);
    for path in files(&scratch) {
        let whole = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let guard = Guard::open(store.clone(), options(&scratch, GuardKind::Cuckoo)).unwrap();
        assert!(matches!(
            guard.opened(),
            Opened::WithoutCheckpoint(Unusable::Missing)
                | Opened::WithoutCheckpoint(Unusable::Damaged(_))
        ));
        assert_covers(&guard, "missing");
        drop(guard);
        fs::write(path, whole).unwrap();
    }
}

#[test]
fn the_checkpoint_of_another_store_or_time_is_not_believed() {
    let scratch = Scratch::new("foreign");
    let other = Scratch::new("foreign-other");
    stored(&other, GuardKind::Blocked);
    let store = stored(&scratch, GuardKind::Blocked);
    let mine: Vec<_> =
        files(&scratch).into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect();

    // Another store's.
    for path in files(&other) {
        fs::copy(&path, scratch.file(path.file_name().unwrap().to_str().unwrap())).unwrap();
    }
    let guard = Guard::open(store.clone(), options(&scratch, GuardKind::Blocked)).unwrap();
    assert_eq!(*guard.opened(), Opened::WithoutCheckpoint(Unusable::OtherGuard));
    guard.put(b"later", b"").unwrap();
    guard.close().unwrap();

    // One of this store, restored from a backup of the files alone.
    for (path, bytes) in &mine {
        fs::write(path, bytes).unwrap();
    }
    let guard = Guard::open(store.clone(), options(&scratch, GuardKind::Blocked)).unwrap();
    assert_eq!(*guard.opened(), Opened::WithoutCheckpoint(Unusable::OtherGeneration));
    assert!(guard.get(b"later").unwrap().is_some());
}

#[test]
fn a_refused_checkpoint_is_not_believed_after_a_write_either() {
    let scratch = Scratch::new("refused");
    let store = stored(&scratch, GuardKind::Blocked);
    // Refused because another filter is asked for; a write; a crash; and then the first filter is asked for again.
    let guard = Guard::open(store.clone(), options(&scratch, GuardKind::Cuckoo)).unwrap();
    assert_eq!(*guard.opened(), Opened::WithoutCheckpoint(Unusable::OtherFilter));
    guard.put(b"later", b"").unwrap();
    drop(guard);
    let guard = Guard::open(store, options(&scratch, GuardKind::Blocked)).unwrap();
    assert_eq!(*guard.opened(), Opened::WithoutCheckpoint(Unusable::OtherGeneration));
    assert!(guard.get(b"later").unwrap().is_some());
}

#[test]
fn another_kind_rate_hash_or_window_is_another_filter() {
    let scratch = Scratch::new("plan");
    let refused = |store: &Memory, options: Options| {
        let options = options.checkpoint(scratch.file("g.ibg")).only_writer();
        let guard = Guard::open(store.clone(), options).unwrap();
        assert_covers(&guard, "another plan");
        *guard.opened() == Opened::WithoutCheckpoint(Unusable::OtherFilter)
    };
    let store = stored(&scratch, GuardKind::Blocked);
    assert!(refused(&store, Options::new(GuardKind::Scalable, 3000, 0.01)));
    assert!(refused(&store, Options::new(GuardKind::Blocked, 3000, 0.02)));
    let seeded = HashFn::Xxh3 { seed: 7 };
    assert!(refused(&store, Options::new(GuardKind::Blocked, 3000, 0.01).hash_fn(seeded)));
    assert!(!refused(&store, Options::new(GuardKind::Blocked, 1, 0.01)), "a capacity is a wish");
    let store = stored(&scratch, GuardKind::Windowed);
    assert!(refused(&store, Options::new(GuardKind::Windowed, 4000, 0.01)));
}

#[test]
fn another_hash_in_parts_is_refused_as_well() {
    for kind in [GuardKind::Cuckoo, GuardKind::DLeft, GuardKind::Scalable] {
        let scratch = Scratch::new(&format!("hash-{kind}"));
        let store = stored(&scratch, kind);
        let seeded = options(&scratch, kind).hash_fn(HashFn::Xxh3 { seed: 7 });
        let guard = Guard::open(store, seeded).unwrap();
        assert!(matches!(guard.opened(), Opened::WithoutCheckpoint(_)));
        assert_covers(&guard, "another seed");
    }
}

#[test]
fn without_a_file_there_is_no_checkpoint() {
    let guard = Guard::open(Memory::new(), Options::new(GuardKind::Blocked, 100, 0.01)).unwrap();
    assert!(matches!(guard.checkpoint(), Err(Error::NoCheckpointFile)));
    guard.close().unwrap();
}

#[test]
fn a_checkpoint_that_cannot_be_written_is_an_error_and_the_guard_goes_on() {
    let scratch = Scratch::new("unwritable");
    let store = Memory::new();
    let options = Options::new(GuardKind::Blocked, 100, 0.01).checkpoint(scratch.file("no/g.ibg"));
    let opened = Guard::open(store.clone(), options.clone().only_writer());
    assert!(matches!(opened, Err(Error::Checkpoint(_))), "a missing folder is said at once");
    fs::create_dir(scratch.file("no")).unwrap();
    let guard = Guard::open(store.clone(), options.clone().only_writer()).unwrap();
    fs::remove_dir(scratch.file("no")).unwrap();
    guard.put(b"a", b"").unwrap();
    assert!(matches!(guard.checkpoint(), Err(Error::Checkpoint(_))));
    guard.put(b"b", b"").unwrap();
    assert_covers(&guard, "without a checkpoint");
}

#[test]
fn a_capacity_that_no_machine_has_memory_for_is_refused_when_it_is_opened() {
    for kind in GuardKind::ALL {
        // Systems that promise any memory promise a single array of 2^45 keys as well, and it costs nothing until it is used.
        let least = if kind.can_remove() { 1 << 45 } else { 1 << 60 };
        for capacity in [least, 1 << 60, u64::MAX] {
            let opened = Guard::open(Memory::new(), Options::new(kind, capacity, 0.01));
            assert!(matches!(opened, Err(Error::Params(_))), "{kind} {capacity}");
        }
    }
}

#[test]
fn what_no_filter_can_be_made_of_is_refused_when_it_is_opened() {
    for (capacity, rate) in [(0, 0.01), (100, 0.0), (100, 1.5)] {
        for kind in GuardKind::ALL {
            let opened = Guard::open(Memory::new(), Options::new(kind, capacity, rate));
            assert!(matches!(opened, Err(Error::Params(_))), "{kind} {capacity} {rate}");
        }
    }
}

/// A large filter is read in the background and answers only once it is seen to be whole; until then the store does.
#[test]
fn a_large_checkpoint_is_verified_before_it_says_absent() {
    let scratch = Scratch::new("large");
    let store = Memory::new();
    let options = || {
        Options::new(GuardKind::Blocked, LARGE, 0.01)
            .checkpoint(scratch.file("g.ibg"))
            .only_writer()
    };
    let guard = Guard::open(store.clone(), options()).unwrap();
    let pairs: Vec<_> = (0..10_000).map(|i| (key(i), b"")).collect();
    guard.put_many(&pairs).unwrap();
    guard.close().unwrap();

    let guard = Guard::open(store.clone(), options()).unwrap();
    guard.put(b"while it is read", b"").unwrap();
    assert_covers(&guard, "being read");
    guard.settle().unwrap();
    assert_eq!(*guard.opened(), Opened::FromCheckpoint);
    assert_covers(&guard, "read");
    let skipped = guard.stats().skipped();
    assert!((20_000..21_000).filter(|&i| guard.get(key(i)).unwrap().is_some()).count() == 0);
    assert!(guard.stats().skipped() > skipped + 900);
    assert_eq!(guard.stats().rebuilds, 0);
    guard.close().unwrap();

    // A bit of the payload that one of the keys needs is lost.
    let path = files(&scratch).into_iter().find(|path| path.extension().unwrap() == "ibf").unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let payload = 256..bytes.len() / 64 * 64 - 64 * 64;
    bytes[payload].fill(0);
    fs::write(&path, bytes).unwrap();
    let guard = Guard::open(store.clone(), options()).unwrap();
    guard.put(b"another", b"").unwrap();
    assert_covers(&guard, "damaged, being read");
    guard.settle().unwrap();
    assert!(
        matches!(guard.opened(), Opened::WithoutCheckpoint(Unusable::Damaged(_))),
        "{:?}",
        guard.opened()
    );
    assert_covers(&guard, "damaged, and rebuilt");
    assert_eq!(guard.stats().rebuilds, 1);
    assert!(store.len() == 10_002);
    let stored = store.get(b"another").unwrap();
    assert!(stored.is_some());
}

/// A window, too.
#[test]
fn a_large_window_is_read_in_the_background() {
    const WINDOW: u64 = 20_000_000; // 10 MB a stage
    let scratch = Scratch::new("large-window");
    let store = Memory::new();
    let options = || {
        Options::new(GuardKind::Windowed, WINDOW, 0.01)
            .checkpoint(scratch.file("g.ibg"))
            .only_writer()
    };
    let guard = Guard::open(store.clone(), options()).unwrap();
    let pairs: Vec<_> = (0..1000).map(|i| (key(i), b"")).collect();
    guard.put_many(&pairs).unwrap();
    guard.close().unwrap();

    let guard = Guard::open(store.clone(), options()).unwrap();
    guard.put(b"while it is read", b"").unwrap();
    guard.put_many(&pairs[..10]).unwrap();
    assert_covers(&guard, "being read");
    guard.settle().unwrap();
    assert_eq!(*guard.opened(), Opened::FromCheckpoint);
    assert_covers(&guard, "read");
    let skipped = guard.stats().skipped();
    assert!((20_000..21_000).all(|i| guard.get(key(i)).unwrap().is_none()));
    assert!(guard.stats().skipped() > skipped + 900, "it is not blind");
    guard.close().unwrap();

    let path = files(&scratch).into_iter().find(|path| path.extension().unwrap() == "parts");
    let path = path.unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[5000] ^= 1;
    fs::write(&path, bytes).unwrap();
    let guard = Guard::open(store.clone(), options()).unwrap();
    guard.put(b"another", b"").unwrap();
    guard.settle().unwrap();
    assert!(
        matches!(guard.opened(), Opened::WithoutCheckpoint(Unusable::Damaged(_))),
        "{:?}",
        guard.opened()
    );
    assert_covers(&guard, "damaged: a new window, which is blind");
    assert_eq!(guard.stats().skipped(), skipped + 1000);
}
