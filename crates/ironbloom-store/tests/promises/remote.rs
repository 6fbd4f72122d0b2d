//! Promise: an asynchronous guard keeps what the other promises, also if futures are dropped half way.

#![cfg(feature = "object_store")]

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use crate::common::lab::{Broken, Fault, Lab};
use crate::common::{EXACT, key};
use futures_lite::future::{block_on, yield_now};
use ironbloom_store::{
    AsyncBackend, AsyncGuard, Backend, Before, Generation, GuardKind, Objects, Opened, Options,
    Rebuild, Unusable, Visit,
};
use ironbloom_testing::{Random, Scratch};
use object_store::local::LocalFileSystem;

async fn scan<B: AsyncBackend>(store: &B) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    let mut visit = |key: &[u8]| {
        keys.push(key.to_vec());
        ControlFlow::Continue(())
    };
    store.scan(&mut visit).await.unwrap();
    keys.sort();
    keys
}

async fn assert_covers<B: AsyncBackend>(guard: &AsyncGuard<B>, context: &str) {
    let keys = scan(guard.backend()).await;
    for key in &keys {
        let found = guard.get(key).await.unwrap();
        assert!(found.is_some(), "{context}: {} is stored", String::from_utf8_lossy(key));
    }
    assert!(guard.get_many(&keys).await.unwrap().iter().all(Option::is_some), "{context}");
}

#[test]
fn a_directory_of_objects_does_what_a_guard_relies_on() {
    let scratch = Scratch::new("objects");
    std::fs::create_dir(scratch.file("objects")).unwrap();
    let files = LocalFileSystem::new_with_prefix(scratch.file("objects")).unwrap();
    let store = Objects::new(Arc::new(files), "app/keys");
    block_on(async {
        assert_eq!(store.generation().await.unwrap(), None);
        assert!(
            store.put(b"a", b"1").await.unwrap().was_absent()
                && !store.put(b"a", b"2").await.unwrap().was_absent()
        );
        let odd: [&[u8]; 4] = [b"", b"\0\xff", b"../a", &[b'x'; 900]];
        for key in odd {
            assert!(store.put(key, b"odd").await.unwrap().was_absent());
        }
        assert_eq!(store.get(b"a").await.unwrap().as_deref(), Some(&b"2"[..]));
        let values = store.get_many(&[odd[3], b"missing", odd[0]]).await.unwrap();
        assert_eq!(values, [Some(b"odd".to_vec()), None, Some(b"odd".to_vec())]);
        assert!(
            store.remove(odd[2]).await.unwrap().was_present()
                && !store.remove(odd[2]).await.unwrap().was_present()
        );
        let generation = Generation::fresh();
        store.set_generation(generation).await.unwrap();
        assert_eq!(store.generation().await.unwrap(), Some(generation));
        let mut expected = vec![b"a".to_vec(), odd[0].to_vec(), odd[1].to_vec(), odd[3].to_vec()];
        expected.sort();
        assert_eq!(scan(&store).await, expected);

        let options = || {
            Options::new(GuardKind::Cuckoo, 1000, 0.01)
                .checkpoint(scratch.file("g.ibg"))
                .lands_within(std::time::Duration::ZERO) // a directory on this machine
                .rebuild(Rebuild::Manual)
        };
        let guard = AsyncGuard::open(store.clone(), options().only_writer()).await.unwrap();
        assert!(matches!(guard.opened(), Opened::WithoutCheckpoint(_)) && guard.wants_rebuild());
        assert_covers(&guard, "without a filter").await;
        guard.rebuild().await.unwrap();
        assert!(!guard.wants_rebuild());
        for i in 0..100 {
            assert!(guard.put(&key(i), b"").await.unwrap().was_absent());
        }
        assert!(
            guard.remove(&key(3)).await.unwrap().was_present()
                && !guard.remove(&key(3)).await.unwrap().was_present()
        );
        assert_covers(&guard, "written").await;
        for i in 1000..1200 {
            assert_eq!(guard.get(&key(i)).await.unwrap(), None);
        }
        assert!(guard.stats().skipped() > 180);
        guard.checkpoint().await.unwrap();
        drop(guard);

        let guard = AsyncGuard::open(store.clone(), options()).await.unwrap();
        assert_eq!(*guard.opened(), Opened::WithoutCheckpoint(Unusable::SharedStore));
        let guard = AsyncGuard::open(store.clone(), options().only_writer()).await.unwrap();
        assert_eq!(*guard.opened(), Opened::FromCheckpoint);
        assert_covers(&guard, "from the checkpoint").await;
        guard.put(b"later", b"").await.unwrap();
        drop(guard); // as if it had crashed
        let guard = AsyncGuard::open(store.clone(), options().only_writer()).await.unwrap();
        assert_eq!(*guard.opened(), Opened::WithoutCheckpoint(Unusable::OtherGeneration));
        assert!(guard.get(b"later").await.unwrap().is_some());
        guard.checkpoint().await.unwrap();
        drop(guard);

        let guard = AsyncGuard::open(store.clone(), options().only_writer()).await.unwrap();
        assert_eq!(*guard.opened(), Opened::FromCheckpoint);
        store.put(b"foreign", b"").await.unwrap();
        guard.note(b"foreign").await.unwrap();
        assert!(guard.get(b"foreign").await.unwrap().is_some());
        drop(guard);
        let guard = AsyncGuard::open(store, options().only_writer()).await.unwrap();
        assert_eq!(*guard.opened(), Opened::WithoutCheckpoint(Unusable::OtherGeneration));
    });
}

/// A store that makes its caller wait before and after it does something.
#[derive(Clone, Default)]
struct Slow {
    keys: Arc<Mutex<BTreeMap<Vec<u8>, Vec<u8>>>>,
    generation: Arc<Mutex<Option<Generation>>>,
}

impl AsyncBackend for Slow {
    type Error = Infallible;

    async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Infallible> {
        Ok(self.keys.lock().unwrap().get(key).cloned())
    }

    async fn put(&self, key: &[u8], value: &[u8]) -> Result<Before, Infallible> {
        yield_now().await;
        let new = self.keys.lock().unwrap().insert(key.to_vec(), value.to_vec()).is_none();
        yield_now().await;
        Ok(Before::stored(!new))
    }

    async fn remove(&self, key: &[u8]) -> Result<Before, Infallible> {
        yield_now().await;
        let stored = self.keys.lock().unwrap().remove(key).is_some();
        yield_now().await;
        Ok(Before::stored(stored))
    }

    async fn scan(&self, visit: Visit<'_>) -> Result<(), Infallible> {
        let keys: Vec<_> = self.keys.lock().unwrap().keys().cloned().collect();
        for key in keys {
            yield_now().await;
            if visit(&key).is_break() {
                break;
            }
        }
        Ok(())
    }

    async fn generation(&self) -> Result<Option<Generation>, Infallible> {
        Ok(*self.generation.lock().unwrap())
    }

    async fn set_generation(&self, generation: Generation) -> Result<(), Infallible> {
        yield_now().await;
        *self.generation.lock().unwrap() = Some(generation);
        yield_now().await;
        Ok(())
    }
}

/// Polls a future at most this many times, and then drops it.
fn poll_times<F: Future>(future: F, times: u64) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    (0..times).find_map(|_| match future.as_mut().poll(&mut context) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    })
}

#[test]
fn futures_dropped_half_way_leave_no_stored_key_absent() {
    for kind in EXACT {
        let scratch = Scratch::new(&format!("dropped-{kind}"));
        let store = Slow::default();
        let options = Options::new(kind, 50, 0.05).checkpoint(scratch.file("g.ibg")).only_writer();
        let open = || block_on(AsyncGuard::open(store.clone(), options.clone())).unwrap();
        let mut guard = open();
        let mut random = Random(7);
        let (mut whole, mut dropped) = (0, 0);
        for _ in 0..400 {
            // A rebuild that is under way while others write, and may be dropped itself.
            let steps = random.below(150);
            {
                let mut rebuild = pin!(guard.rebuild());
                let mut context = Context::from_waker(Waker::noop());
                let mut under_way = true;
                for _ in 0..steps {
                    under_way = under_way && rebuild.as_mut().poll(&mut context).is_pending();
                    let key = key(random.below(100));
                    let times = 1 + random.below(6);
                    let done = match random.below(3) {
                        0 => poll_times(guard.remove(&key), times).is_some(),
                        _ => poll_times(guard.put(&key, b"value"), times).is_some(),
                    };
                    if done { whole += 1 } else { dropped += 1 }
                }
            }
            block_on(assert_covers(&guard, &format!("{kind}, in the middle")));
            match random.below(6) {
                0 => block_on(guard.rebuild()).unwrap(),
                1 => block_on(guard.checkpoint()).unwrap(),
                2 => guard = open(),
                3 => drop(poll_times(guard.checkpoint(), random.below(5))),
                _ => {}
            }
            block_on(assert_covers(&guard, &format!("{kind}, at the end")));
        }
        assert!(whole > 1000 && dropped > 1000, "{whole} whole, {dropped} dropped");
    }
}

#[test]
fn an_asynchronous_guard_has_all_that_the_other_has_and_works_behind_an_arc() {
    fn sent<F: Future + Send>(future: F) -> F {
        future
    }
    for kind in EXACT {
        let scratch = Scratch::new(&format!("all-{kind}"));
        let options = Options::new(kind, 500, 0.01).checkpoint(scratch.file("g.ibg")).only_writer();
        let store = Slow::default();
        let guard = block_on(AsyncGuard::open(store.clone(), options.clone())).unwrap();
        let guard = Arc::new(guard);
        block_on(guard.rebuild()).unwrap();
        let pairs: Vec<(Vec<u8>, &str)> = (0..100).map(|i| (key(i), "value")).collect();
        let new = block_on(sent(guard.put_many(&pairs))).unwrap();
        assert!(new.iter().all(|before| before.was_absent()));
        assert!(!block_on(sent(guard.put(key(0), String::from("text")))).unwrap().was_absent());
        assert!(block_on(sent(guard.contains("key-0"))).unwrap());
        assert!(!block_on(sent(guard.contains("key-1000"))).unwrap());
        let names = ["key-1", "key-2", "missing", "key-1"];
        let removed = block_on(sent(guard.remove_many(&names))).unwrap();
        let [there, not] = [Before::Present, Before::Absent];
        assert_eq!(removed, [there, there, not, not], "{kind}");
        assert!(block_on(sent(guard.get_many(&names))).unwrap().iter().all(Option::is_none));
        assert!(block_on(sent(guard.remove("key-3"))).unwrap().was_present());
        block_on(assert_covers(&guard, kind.name()));
        let guard = Arc::into_inner(guard).unwrap();
        block_on(guard.close()).unwrap();
        let guard = block_on(AsyncGuard::open(store, options)).unwrap();
        assert_eq!(*guard.opened(), Opened::FromCheckpoint);
        block_on(assert_covers(&guard, kind.name()));
    }
}

/// A server that has taken a put and does not answer: it carries it out when its client is gone.
struct Queue(Lab);

impl AsyncBackend for Queue {
    type Error = Broken;

    async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Broken> {
        Backend::get(&self.0, key)
    }

    async fn put(&self, key: &[u8], value: &[u8]) -> Result<Before, Broken> {
        self.0.fail_write(Fault::Late);
        let _ = Backend::put(&self.0, key, value);
        std::future::pending().await
    }

    async fn remove(&self, key: &[u8]) -> Result<Before, Broken> {
        Backend::remove(&self.0, key)
    }

    async fn scan(&self, visit: Visit<'_>) -> Result<(), Broken> {
        Backend::scan(&self.0, visit)
    }

    async fn generation(&self) -> Result<Option<Generation>, Broken> {
        Backend::generation(&self.0)
    }

    async fn set_generation(&self, generation: Generation) -> Result<(), Broken> {
        Backend::set_generation(&self.0, generation)
    }
}

#[test]
fn a_put_that_lands_after_its_future_was_dropped_and_the_filter_rebuilt_is_answered() {
    for kind in EXACT {
        let scratch = Scratch::new(&format!("dropped-late-{kind}"));
        let store = Lab::default();
        let options = Options::new(kind, 100, 0.01).checkpoint(scratch.file("g.ibg")).only_writer();
        let open = || block_on(AsyncGuard::open(Queue(store.clone()), options.clone())).unwrap();
        let guard = open();
        block_on(guard.rebuild()).unwrap();
        for i in 0..10 {
            assert!(poll_times(guard.put(&key(i), b""), 3).is_none(), "it does not answer");
        }
        block_on(guard.rebuild()).unwrap();
        block_on(guard.checkpoint()).unwrap();
        drop(guard);
        let guard = open();
        assert_eq!(*guard.opened(), Opened::FromCheckpoint);
        block_on(guard.rebuild()).unwrap();
        store.land();
        assert_eq!(store.contents().keys.len(), 10);
        block_on(assert_covers(&guard, kind.name()));
    }
}

#[cfg(feature = "metrics")]
#[test]
fn statistics_reach_prometheus_under_their_names() {
    use ironbloom_store::{Guard, Memory};
    let guard = Guard::open(Memory::new(), Options::new(GuardKind::Blocked, 1000, 1e-5)).unwrap();
    guard.put(b"a", b"").unwrap();
    guard.get(b"a").unwrap();
    (0..10).for_each(|i| assert!(guard.get(key(i)).unwrap().is_none()));
    let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
    metrics::with_local_recorder(&recorder, || guard.stats().publish("users"));
    let page = recorder.handle().render();
    for line in [
        "ironbloom_store_lookups_total{store=\"users\",result=\"skipped\"} 10",
        "ironbloom_store_lookups_total{store=\"users\",result=\"hit\"} 1",
        "ironbloom_store_filter_keys{store=\"users\"} 1",
        "ironbloom_store_failed_rebuilds_total{store=\"users\"} 0",
        "ironbloom_store_foreign_rows_total{store=\"users\"} 0",
        "ironbloom_store_doubtful_keys{store=\"users\"} 0",
        "ironbloom_store_false_positive_ratio{store=\"users\"} 0",
        "# TYPE ironbloom_store_lookups_total counter",
        "# TYPE ironbloom_store_saved_seconds gauge",
        "ironbloom_store_skip_seconds{store=\"users\"} ",
    ] {
        assert!(page.contains(line), "{line}\nis not in\n{page}");
    }
}

/// As with [`Guard`](ironbloom_store::Guard): a runtime is not blocked while a large filter is read.
#[test]
fn a_large_checkpoint_is_read_in_the_background() {
    for kind in GuardKind::ALL {
        let scratch = Scratch::new(&format!("async-large-{kind}"));
        let store = Objects::new(Arc::new(object_store::memory::InMemory::new()), "keys");
        // At least 4 MiB for every kind, a window's first stage included.
        let capacity = if kind == GuardKind::Windowed { 20_000_000 } else { 5_000_000 };
        let options = Options::new(kind, capacity, 0.01)
            .checkpoint(scratch.file("g.ibg"))
            .only_writer()
            .rebuild(Rebuild::Manual);
        let open = || block_on(AsyncGuard::open(store.clone(), options.clone())).unwrap();
        let guard = open();
        block_on(async {
            guard.rebuild().await.ok(); // there is nothing yet; a window cannot
            for i in 0..200 {
                guard.put(&key(i), b"").await.unwrap();
            }
            guard.close().await.unwrap();
        });
        let guard = open();
        block_on(async {
            guard.put(b"while it is read", b"").await.unwrap();
            guard.remove(&key(3)).await.unwrap();
            assert_covers(&guard, "being read").await;
            guard.settle().await.unwrap();
            assert_eq!(*guard.opened(), Opened::FromCheckpoint, "{kind}");
            assert!(!guard.wants_rebuild());
            assert_covers(&guard, "read").await;
            if kind != GuardKind::Windowed {
                let skipped = guard.stats().skipped();
                for i in 1000..1200 {
                    assert_eq!(guard.get(&key(i)).await.unwrap(), None);
                }
                assert!(guard.stats().skipped() > skipped + 150, "{kind}");
            }
            guard.close().await.unwrap();
        });
        let largest = |path: &std::path::PathBuf| std::fs::metadata(path).unwrap().len();
        let files = scratch.names().into_iter().map(|name| scratch.file(&name));
        let path = files.max_by_key(largest).unwrap();
        assert!(largest(&path) > 4 << 20, "{kind}: {} bytes are read at once", largest(&path));
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[5000] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        let guard = open();
        block_on(async {
            guard.put(b"another", b"").await.unwrap();
            guard.settle().await.unwrap();
            assert!(
                matches!(guard.opened(), Opened::WithoutCheckpoint(Unusable::Damaged(_))),
                "{kind}"
            );
            assert_eq!(guard.wants_rebuild(), kind != GuardKind::Windowed);
            assert_covers(&guard, "damaged").await;
            guard.checkpoint().await.unwrap();
            assert_covers(&guard, "built again").await;
        });
    }
}
