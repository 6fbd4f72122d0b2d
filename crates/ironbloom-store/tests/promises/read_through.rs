//! Promise: keys and values of any type come back as they were stored, or as an error; and a missing key is loaded once,
//! however many ask for it.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::common::tasks::Tasks;
use futures_lite::future::{block_on, poll_once};
use ironbloom_store::{
    AsyncGuard, Backend, Before, CodecError, Error, Guard, GuardKind, LoadError, Memory, Options,
    ReadThrough, Serde, Typed,
};
use ironbloom_testing::wait_until;
use serde::{Deserialize, Serialize};

const CALLERS: u64 = 64;

fn options() -> Options {
    Options::new(GuardKind::Blocked, 10_000, 0.001)
}

fn threads(store: &Memory, options: Options) -> ReadThrough<Guard<Memory>> {
    ReadThrough::new(Guard::open(store.clone(), options).unwrap())
}

fn tasks(store: &Memory, options: Options) -> ReadThrough<AsyncGuard<Tasks<Memory>>> {
    ReadThrough::new(block_on(AsyncGuard::open(Tasks(store.clone()), options)).unwrap())
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct User {
    name: String,
    born: Option<u16>,
    tags: Vec<String>,
}

fn user() -> User {
    User { name: "Alice".to_owned(), born: Some(1990), tags: vec!["a".to_owned(), String::new()] }
}

#[test]
fn typed_values_come_back_as_they_were() {
    let store = Memory::new();
    let guard = Guard::open(store.clone(), options()).unwrap();
    let users: Typed<_, String, Serde<User>> = Typed::new(guard);
    assert!(users.put("alice", &Serde(user())).unwrap().was_absent());
    assert!(!users.put(&"alice".to_owned(), &Serde(user())).unwrap().was_absent(), "the same key");
    assert_eq!(users.get("alice").unwrap(), Some(Serde(user())));
    assert_eq!(users.get("bob").unwrap(), None);
    assert_eq!(users.get_many(["bob", "alice"]).unwrap(), [None, Some(Serde(user()))]);
    assert!(users.contains("alice").unwrap() && users.remove("alice").unwrap().was_present());
    let more = [("x".to_owned(), Serde(user())), ("y".to_owned(), Serde(user()))];
    assert_eq!(users.put_many(more.iter().map(|(k, v)| (k, v))).unwrap(), [Before::Absent; 2]);
    assert_eq!(users.remove_many(["x", "z"]).unwrap(), [Before::Present, Before::Absent]);
    users.into_guard().close().unwrap();
    assert_eq!(store.len(), 1);

    let guard = block_on(AsyncGuard::open(Tasks::<Memory>::default(), options())).unwrap();
    let numbers: Typed<_, i32, i16> = Typed::new(guard);
    block_on(async {
        assert!(numbers.put(&-7, &-300).await.unwrap().was_absent());
        assert_eq!(numbers.get(&-7).await.unwrap(), Some(-300));
        assert_eq!(numbers.get_many(&[7, -7]).await.unwrap(), [None, Some(-300)]);
        assert_eq!(numbers.put_many([(&1, &2), (&3, &4)]).await.unwrap(), [Before::Absent; 2]);
        assert!(
            numbers.contains(&3).await.unwrap() && numbers.remove(&3).await.unwrap().was_present()
        );
        assert_eq!(numbers.remove_many(&[1, 3]).await.unwrap(), [Before::Present, Before::Absent]);
    });
}

/// These bytes are in people's stores: they can never change.
#[test]
fn keys_are_encoded_as_they_always_were() {
    fn bytes<K: ironbloom_store::Encode + ?Sized>(key: &K) -> Vec<u8> {
        key.encode().unwrap().as_ref().to_vec()
    }
    let seven = 7u64.to_le_bytes();
    let all = [bytes(&7u8), bytes(&7i8), bytes(&7u16), bytes(&7i32), bytes(&7u64), bytes(&7usize)];
    assert!(all.iter().all(|bytes| *bytes == seven), "{all:?}");
    assert_eq!(bytes(&-1i16), [0xff; 8]);
    assert_eq!(bytes("é"), [0xc3, 0xa9]);
    assert_eq!(bytes(&"é".to_owned()), bytes("é"));
    assert_eq!(bytes(&[1u8, 2]), [1, 2]);
    assert_eq!((bytes(&true), bytes(&())), (vec![1], vec![]));
    let packed = [5, b'A', b'l', b'i', b'c', b'e', 1, 0xc6, 0x0f, 2, 1, b'a', 0];
    assert_eq!(bytes(&Serde(user())), packed, "version 1 of postcard's wire format");
    // A filter of the library that was filled with the same keys knows them by the same hash.
    let hash_fn = ironbloom::HashFn::default();
    assert_eq!(hash_fn.hash(-7i32), hash_fn.hash(bytes(&-7i64)));
}

#[test]
fn what_does_not_decode_is_an_error_that_says_why() {
    let store = Memory::new();
    for (key, value) in [
        ("short", &b"1234567"[..]),
        ("long", b"123456789"),
        ("large", &300u64.to_le_bytes()),
        ("text", b"\xff"),
        ("two", b"\x02"),
        ("cut", b"\x05Al"),
        ("more", b"\x01A\x00\x00\x00"),
    ] {
        store.put(key.as_bytes(), value).unwrap();
    }
    macro_rules! refused {
        ($key:literal as $type:ty, $error:pat) => {
            let guard = Guard::open(store.clone(), options()).unwrap();
            let typed: Typed<_, str, $type> = Typed::new(guard);
            let error = typed.get($key).unwrap_err();
            assert!(matches!(error, Error::Codec($error)), "{}: {error:?}", $key);
            assert!(!error.to_string().is_empty());
            let error = typed.get_many([$key]).unwrap_err();
            assert!(matches!(error, Error::Codec($error)), "{}: {error:?}", $key);
        };
    }
    refused!("short" as u64, CodecError::Length { expected: 8, found: 7 });
    refused!("long" as i8, CodecError::Length { expected: 8, found: 9 });
    refused!("large" as u8, CodecError::Range { value: 300, wanted: "u8" });
    refused!("large" as i8, CodecError::Range { value: 300, wanted: "i8" });
    refused!("text" as String, CodecError::Text(_));
    refused!("two" as bool, CodecError::Range { value: 2, .. });
    refused!("two" as (), CodecError::Length { expected: 0, found: 1 });
    refused!("two" as [u8; 4], CodecError::Length { expected: 4, found: 1 });
    refused!("cut" as Serde<User>, CodecError::Other(_));
    refused!("more" as Serde<User>, CodecError::Length { expected: 4, found: 5 });
    let typed: Typed<_, str, u16> = Typed::new(Guard::open(store, options()).unwrap());
    assert_eq!(typed.get("large").unwrap(), Some(300));
}

#[test]
fn many_threads_cause_one_load() {
    let pages = threads(&Memory::new(), options());
    let loads = AtomicU64::new(0);
    let load = || {
        loads.fetch_add(1, Ordering::Relaxed);
        wait_until(|| pages.guard().stats().lookups() > CALLERS); // all of them are there
        Ok::<_, Infallible>(Some(b"value".to_vec()))
    };
    std::thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                let value = pages.get_or_load("key", load).unwrap();
                assert_eq!(value.as_deref(), Some(&b"value"[..]));
            });
        }
    });
    assert_eq!(loads.into_inner(), 1);
    assert!(pages.guard().contains("key").unwrap());
}

#[test]
fn many_tasks_cause_one_load() {
    let pages = tasks(&Memory::new(), options());
    let loads = AtomicU64::new(0);
    let load = || async {
        loads.fetch_add(1, Ordering::Relaxed);
        wait_until(|| pages.guard().stats().lookups() > CALLERS);
        Ok::<_, Infallible>(Some(b"value".to_vec()))
    };
    std::thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| {
                let value = block_on(pages.get_or_load("key", load)).unwrap();
                assert_eq!(value.as_deref(), Some(&b"value"[..]));
            });
        }
    });
    assert_eq!(loads.into_inner(), 1);
}

#[test]
fn different_keys_do_not_wait_for_each_other() {
    let pages = threads(&Memory::new(), options());
    let both = Barrier::new(2);
    std::thread::scope(|scope| {
        for key in ["a", "b"] {
            let (pages, both) = (&pages, &both);
            scope.spawn(move || {
                let load = || {
                    both.wait(); // which would never end if one waited for the other
                    Ok::<_, Infallible>(Some(key.into()))
                };
                pages.get_or_load(key, load).unwrap()
            });
        }
    });
}

#[derive(Debug, PartialEq)]
struct Refused(u64);

/// The first loads fail as told, each while the others wait; then one succeeds.
fn failing_loads(fail: fn(u64) -> Option<Vec<u8>>) -> (u64, u64, u64) {
    let pages = threads(&Memory::new(), options());
    let (loads, errors, panics) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let load = || {
                    let number = loads.fetch_add(1, Ordering::Relaxed);
                    wait_until(|| pages.guard().stats().lookups() > 8);
                    fail(number).map(Some).ok_or(Refused(number))
                };
                match catch_unwind(AssertUnwindSafe(|| pages.get_or_load("key", load))) {
                    Ok(Ok(value)) => assert_eq!(value.as_deref(), Some(&b"value"[..])),
                    Ok(Err(LoadError::Load(Refused(_)))) => {
                        errors.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(Err(other)) => panic!("{other:?}"),
                    Err(_) => {
                        panics.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    (loads.into_inner(), errors.into_inner(), panics.into_inner())
}

#[test]
fn after_a_load_that_fails_another_caller_tries() {
    let fail = |number| (number >= 3).then(|| b"value".to_vec());
    assert_eq!(failing_loads(fail), (4, 3, 0), "each error goes to one caller");
}

#[test]
fn after_a_load_that_panics_another_caller_tries() {
    let fail = |number| match number {
        0 => panic!("on purpose"),
        _ => Some(b"value".to_vec()),
    };
    assert_eq!(failing_loads(fail), (2, 0, 1));
}

#[test]
fn after_a_dropped_future_another_task_tries() {
    let pages = tasks(&Memory::new(), options());
    let load = |answer: Option<&'static str>| async move {
        match answer {
            Some(value) => Ok::<_, Infallible>(Some(value.into())),
            None => std::future::pending().await,
        }
    };
    block_on(async {
        let mut first = Box::pin(pages.get_or_load("key", || load(None)));
        assert!(poll_once(&mut first).await.is_none(), "it loads for ever");
        let mut second = pin!(pages.get_or_load("key", || load(Some("second"))));
        let mut third = pin!(pages.get_or_load("key", || load(Some("third"))));
        let woken = Arc::new(Counted::default());
        let waker = Waker::from(woken.clone());
        let mut context = Context::from_waker(&waker);
        assert!(second.as_mut().poll(&mut context).is_pending(), "it waits for the first");
        assert!(third.as_mut().poll(&mut context).is_pending());
        assert_eq!(woken.0.load(Ordering::Relaxed), 0);
        drop(first);
        assert!(woken.0.load(Ordering::Relaxed) >= 1, "those that wait are told");
        let Poll::Ready(value) = second.as_mut().poll(&mut context) else {
            panic!("it can load now");
        };
        assert_eq!(value.unwrap(), Some(b"second".to_vec()));
        assert_eq!(third.await.unwrap(), Some(b"second".to_vec()));
    });
}

#[derive(Default)]
struct Counted(AtomicU64);

impl std::task::Wake for Counted {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A clock that goes when it is told to.
fn clock() -> (Arc<AtomicU64>, impl Fn() -> Instant + Send + Sync + Clone + 'static) {
    let (start, seconds) = (Instant::now(), Arc::new(AtomicU64::new(0)));
    let hand = seconds.clone();
    (seconds, move || start + Duration::from_secs(hand.load(Ordering::Relaxed)))
}

#[test]
fn a_negative_answer_is_believed_for_its_time_and_no_longer() {
    let (time, now) = clock();
    let store = Memory::new();
    let ttl = Duration::from_secs(10);
    let pages = threads(&store, options()).negative_ttl(ttl).clock(now.clone());
    let other = tasks(&store, options()).negative_ttl(ttl).clock(now);
    let loads = AtomicU64::new(0);
    let nothing = || {
        loads.fetch_add(1, Ordering::Relaxed);
        Ok::<_, Infallible>(None)
    };
    let ask = || {
        let value = pages.get_or_load("key", nothing).unwrap();
        assert_eq!(block_on(other.get_or_load("key", || async { nothing() })).unwrap(), value);
        value
    };
    assert_eq!((ask(), ask(), loads.load(Ordering::Relaxed)), (None, None, 2), "once for each");
    store.put(b"key", b"from another process").unwrap();
    time.store(9, Ordering::Relaxed);
    assert_eq!((ask(), loads.load(Ordering::Relaxed)), (None, 2), "still believed");
    time.store(10, Ordering::Relaxed);
    assert_eq!(ask().as_deref(), Some(&b"from another process"[..]), "the store was asked");
    assert_eq!(loads.load(Ordering::Relaxed), 2, "and the load was not");
    assert!(pages.guard().contains("key").unwrap(), "from now on the filter knows it");
    assert_eq!(pages.guard().stats().foreign, 0, "nothing has to be built again");
    // What comes through the guard is found at once.
    assert_eq!(pages.get("own").unwrap(), None);
    pages.guard().put("own", "1").unwrap();
    assert_eq!(pages.get("own").unwrap().as_deref(), Some(&b"1"[..]));
}

#[test]
fn without_others_that_write_the_filter_is_believed() {
    let (time, now) = clock();
    let store = Memory::new();
    let pages = threads(&store, options().only_writer());
    let pages = pages.negative_ttl(Duration::from_secs(10)).clock(now);
    let loads = AtomicU64::new(0);
    let ask = || {
        let load = || {
            loads.fetch_add(1, Ordering::Relaxed);
            Ok::<_, Infallible>(None)
        };
        pages.get_or_load("key", load).unwrap()
    };
    assert_eq!((ask(), ask()), (None, None));
    store.put(b"key", b"against the promise").unwrap();
    time.store(10, Ordering::Relaxed);
    assert_eq!((ask(), loads.load(Ordering::Relaxed)), (None, 2), "the load is asked again");
}

#[test]
fn without_a_time_to_live_every_miss_is_loaded() {
    let pages = threads(&Memory::new(), options());
    let (say, hear) = mpsc::channel();
    for _ in 0..3 {
        let load = || {
            say.send(()).unwrap();
            Ok::<_, Infallible>(None)
        };
        assert_eq!(pages.get_or_load("key", load).unwrap(), None);
    }
    assert_eq!(hear.try_iter().count(), 3);
}

#[test]
fn typed_values_are_loaded_and_stored() {
    let typed: Typed<_, String, Serde<User>> = Typed::new(threads(&Memory::new(), options()));
    let load = || Ok::<_, Infallible>(Some(Serde(user())));
    assert_eq!(typed.get_or_load("alice", load).unwrap(), Some(Serde(user())));
    let not_again = || -> Result<_, Infallible> { panic!("it is stored") };
    assert_eq!(typed.get_or_load("alice", not_again).unwrap(), Some(Serde(user())));
    typed.guard().guard().put("odd", b"").unwrap();
    let error = typed.get_or_load("odd", not_again).unwrap_err();
    assert!(matches!(error, LoadError::Guard(Error::Codec(_))), "{error}");
    let typed: Typed<_, u64, String> = Typed::new(tasks(&Memory::new(), options()));
    let load = || async { Ok::<_, Infallible>(Some("one".to_owned())) };
    assert_eq!(block_on(typed.get_or_load(&1, load)).unwrap().as_deref(), Some("one"));
    assert!(block_on(typed.guard().guard().contains(1u64.to_le_bytes())).unwrap());
}

/// Web frameworks move futures between threads.
#[test]
fn futures_can_be_sent_to_other_threads() {
    fn sendable<T: Send>(value: T) -> T {
        value
    }
    let pages = tasks(&Memory::new(), options());
    let load = || async { Ok::<_, Infallible>(Some(vec![1])) };
    assert_eq!(block_on(sendable(pages.get_or_load("key", load))).unwrap(), Some(vec![1]));
    let typed: Typed<_, str, Vec<u8>> = Typed::new(pages.into_guard());
    assert_eq!(block_on(sendable(typed.get("key"))).unwrap(), Some(vec![1]));
    assert!(!block_on(sendable(typed.put("key", &vec![2]))).unwrap().was_absent());
    assert_eq!(block_on(sendable(typed.get_many(["key"]))).unwrap(), [Some(vec![2])]);
}
