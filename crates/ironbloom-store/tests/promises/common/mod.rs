//! What the tests share: keys, and what every store must do.

pub(crate) mod lab;
pub(crate) mod tasks;
pub(crate) mod vault;

use ironbloom_store::{Backend, Before, Guard, GuardKind, Options};
use ironbloom_testing::Scratch;

/// Key number `i`.
pub(crate) fn key(i: u64) -> Vec<u8> {
    format!("key-{i}").into_bytes()
}

/// The kinds that never forget.
pub(crate) const EXACT: [GuardKind; 4] =
    [GuardKind::Blocked, GuardKind::Cuckoo, GuardKind::DLeft, GuardKind::Scalable];

/// Everything that the store holds must be answered.
pub(crate) fn assert_covers<B: Backend>(guard: &Guard<B>, context: &str) {
    let mut keys = Vec::new();
    let mut visit = |key: &[u8]| {
        keys.push(key.to_vec());
        std::ops::ControlFlow::Continue(())
    };
    guard.backend().scan(&mut visit).unwrap();
    for key in &keys {
        let found = guard.get(key).unwrap();
        assert!(found.is_some(), "{context}: {} is stored", String::from_utf8_lossy(key));
    }
    let found = guard.get_many(&keys).unwrap();
    assert!(found.iter().all(Option::is_some), "{context}: get_many misses a stored key");
}

/// What every backend must do, and a guard over it: put, get, remove, scan, generation, checkpoint, reopen. `open` opens
/// the same store again.
pub(crate) fn exercise<B: Backend>(scratch: &Scratch, open: impl Fn() -> B) {
    let store = open();
    assert_eq!(store.generation().unwrap(), None);
    assert_eq!(store.get(b"a").unwrap(), None);
    assert_eq!(store.put(b"a", b"1").unwrap(), Before::Absent);
    assert_eq!(store.put(b"a", b"2").unwrap(), Before::Present);
    assert_eq!(store.get(b"a").unwrap().as_deref(), Some(&b"2"[..]));
    assert!(store.contains(b"a").unwrap() && !store.contains(b"b").unwrap());
    let odd: [&[u8]; 4] = [b"", b"\0\xff", "größe/..?*[]".as_bytes(), &[b'x'; 200]];
    assert_eq!(
        store.put_many(&odd.map(|key| (key, &b"odd"[..]))).unwrap(),
        [Before::Absent; 4],
        "keys are any bytes"
    );
    assert_eq!(
        store.put_many(&[(b"b", b""), (b"b", b"3")]).unwrap(),
        [Before::Absent, Before::Present]
    );
    let asked: Vec<&[u8]> = vec![b"b", b"missing", b"a", b"b", odd[1]];
    let values = store.get_many(&asked).unwrap();
    let values: Vec<Option<&[u8]>> = values.iter().map(Option::as_deref).collect();
    assert_eq!(values, [Some(&b"3"[..]), None, Some(b"2"), Some(b"3"), Some(b"odd")]);
    assert_eq!(store.remove(b"b").unwrap(), Before::Present);
    assert_eq!(store.remove(b"b").unwrap(), Before::Absent);
    store.put_many(&[(b"c", b""), (b"d", b"")]).unwrap();
    let removed = store.remove_many(&[b"c", b"missing", b"d", b"c"]).unwrap();
    let [there, not] = [Before::Present, Before::Absent];
    assert_eq!(removed, [there, not, there, not], "a key that comes twice was there once");
    assert_eq!(store.remove_many(&[]).unwrap(), []);
    let scanned = scan(&store);
    let mut expected: Vec<Vec<u8>> = odd.iter().map(|key| key.to_vec()).collect();
    expected.push(b"a".to_vec());
    expected.sort();
    assert_eq!(scanned, expected);
    let mut visited = 0;
    let mut once = |_: &[u8]| {
        visited += 1;
        std::ops::ControlFlow::Break(())
    };
    store.scan(&mut once).unwrap();
    assert_eq!(visited, 1, "a scan ends when it is told to");
    let generation = ironbloom_store::Generation::fresh();
    store.set_generation(generation).unwrap();
    assert_eq!(store.generation().unwrap(), Some(generation));
    assert!(scan(&store) == expected, "the generation is not a key");
    drop(store);

    let options =
        || Options::new(GuardKind::Cuckoo, 10_000, 0.01).checkpoint(scratch.file("g.ibg"));
    let guard = Guard::open(open(), options().only_writer()).unwrap();
    assert!(matches!(guard.opened(), ironbloom_store::Opened::WithoutCheckpoint(_)));
    guard.settle().unwrap();
    let pairs: Vec<(Vec<u8>, Vec<u8>)> = (0..500).map(|i| (key(i), key(i + 1))).collect();
    assert!(guard.put_many(&pairs).unwrap().iter().all(|&before| before == Before::Absent));
    assert_eq!(guard.put(key(0), b"other").unwrap(), Before::Present);
    assert_eq!(guard.remove(key(1)).unwrap(), Before::Present);
    assert_eq!(guard.remove(key(1)).unwrap(), Before::Absent);
    assert_eq!(guard.get(key(0)).unwrap().as_deref(), Some(&b"other"[..]));
    assert_eq!(guard.get(key(1)).unwrap(), None);
    assert_covers(&guard, "written");
    let gone: Vec<Vec<u8>> = (490..510).map(key).collect();
    let removed = guard.remove_many(&gone).unwrap();
    assert_eq!(removed.iter().filter(|before| before.was_present()).count(), 10);
    assert!(guard.get_many(&gone).unwrap().iter().all(Option::is_none));
    assert_covers(&guard, "removed many");
    let absent: Vec<Vec<u8>> = (1000..2000).map(key).collect();
    assert!(guard.get_many(&absent).unwrap().iter().all(Option::is_none));
    let before = guard.stats().skipped();
    assert!(before >= 900, "{before} of 1000 absent keys were skipped");
    guard.rebuild().unwrap();
    assert_covers(&guard, "rebuilt");
    guard.close().unwrap();

    let guard = Guard::open(open(), options().only_writer()).unwrap();
    assert_eq!(*guard.opened(), ironbloom_store::Opened::FromCheckpoint);
    assert_covers(&guard, "opened from the checkpoint");
    assert!(guard.stats().skipped() >= before, "statistics are kept");
    guard.put(key(7000), b"").unwrap();
    drop(guard); // as if it had crashed: no checkpoint covers the last put
    let guard = Guard::open(open(), options().only_writer()).unwrap();
    assert_eq!(
        *guard.opened(),
        ironbloom_store::Opened::WithoutCheckpoint(ironbloom_store::Unusable::OtherGeneration)
    );
    assert!(guard.get(key(7000)).unwrap().is_some());
    guard.settle().unwrap();
    assert_covers(&guard, "after a crash");
    let exclusive = guard.backend().is_exclusive();
    guard.close().unwrap();

    let guard = Guard::open(open(), options()).unwrap();
    let believed = *guard.opened() == ironbloom_store::Opened::FromCheckpoint;
    assert_eq!(believed, exclusive, "others can write to a shared store");
}

fn scan<B: Backend>(store: &B) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    let mut visit = |key: &[u8]| {
        keys.push(key.to_vec());
        std::ops::ControlFlow::Continue(())
    };
    store.scan(&mut visit).unwrap();
    keys.sort();
    keys
}
