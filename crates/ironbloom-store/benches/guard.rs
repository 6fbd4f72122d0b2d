//! What a guard itself costs: building a filter from a scan, opening with a checkpoint, lookups, also during a rebuild,
//! and puts. The store is one that costs nothing, so that nothing else is measured. Stores themselves: `ironbloom store
//! bench`.
//!
//! ```text
//! cargo bench --package ironbloom-store                  10 M and 100 M keys
//! cargo bench --package ironbloom-store -- 1000000 cuckoo      as many as you like, one kind
//! ```

#[path = "../tests/promises/common/tasks.rs"]
mod tasks;

use std::convert::Infallible;
use std::hint::black_box;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_lite::future::block_on;
use ironbloom::hash::mix64;
use ironbloom_store::{
    AsyncGuard, Backend, Before, Generation, Guard, GuardKind, Opened, Options, Rebuild,
};
use tasks::Tasks;

/// Holds the numbers below a bound, and delivers them as fast as they can be counted.
#[derive(Clone)]
struct Numbers {
    keys: u64,
    generation: Arc<Mutex<Option<Generation>>>,
}

impl Backend for Numbers {
    type Error = Infallible;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Infallible> {
        let number = key.try_into().map(u64::from_le_bytes).unwrap_or(u64::MAX);
        Ok((number < self.keys).then(Vec::new))
    }

    fn put(&self, _: &[u8], _: &[u8]) -> Result<Before, Infallible> {
        Ok(Before::Absent)
    }

    fn remove(&self, _: &[u8]) -> Result<Before, Infallible> {
        Ok(Before::Absent)
    }

    fn scan(&self, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), Infallible> {
        let _ = (0..self.keys).try_for_each(|number| visit(&number.to_le_bytes()));
        Ok(())
    }

    fn len_hint(&self) -> Result<Option<u64>, Infallible> {
        Ok(Some(self.keys))
    }

    fn generation(&self) -> Result<Option<Generation>, Infallible> {
        Ok(*self.generation.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn set_generation(&self, generation: Generation) -> Result<(), Infallible> {
        *self.generation.lock().unwrap_or_else(PoisonError::into_inner) = Some(generation);
        Ok(())
    }
}

/// The shortest of some tries.
fn shortest<T>(tries: u32, mut run: impl FnMut() -> T) -> (Duration, T) {
    let mut timed = || {
        let start = Instant::now();
        let result = run();
        (start.elapsed(), result)
    };
    let mut best = timed();
    for _ in 1..tries {
        let next = timed();
        if next.0 < best.0 {
            best = next;
        }
    }
    best
}

fn lookup_nanos(guard: &Guard<Numbers>, from: u64, range: u64) -> f64 {
    const LOOKUPS: u64 = 2_000_000;
    let ask = || {
        for i in 0..LOOKUPS {
            let key = (from + mix64(i) % range).to_le_bytes();
            black_box(guard.get(key)).expect("it cannot fail");
        }
    };
    shortest(3, ask).0.as_nanos() as f64 / LOOKUPS as f64
}

/// Nanoseconds that the guard adds to a put of a new key: the median of rounds that take turns with the bare store.
fn put_nanos(guard: &Guard<Numbers>, from: u64) -> f64 {
    const ROUNDS: u64 = 201;
    const PUTS: u64 = 1000;
    let mut added: Vec<f64> = (0..ROUNDS)
        .map(|round| {
            let keys = || (0..PUTS).map(|i| mix64(from + round * PUTS + i) | 1 << 63);
            let time = |put: &dyn Fn(u64)| {
                let start = Instant::now();
                keys().for_each(put);
                start.elapsed().as_nanos() as f64 / PUTS as f64
            };
            let bare = time(&|key| {
                black_box(guard.backend().put(&key.to_le_bytes(), b"")).expect("it cannot fail");
            });
            let guarded = time(&|key| {
                black_box(guard.put(key.to_le_bytes(), b"")).expect("it cannot fail");
            });
            guarded - bare
        })
        .collect();
    added.sort_by(f64::total_cmp);
    added[added.len() / 2]
}

/// The 99th percentile of lookups, half of them of stored keys, each timed on its own, until it is said to stop.
fn p99(guard: &Guard<Numbers>, keys: u64, stop: impl Fn(usize) -> bool) -> f64 {
    let mut times = Vec::with_capacity(1 << 20);
    while !stop(times.len()) {
        let key = (mix64(times.len() as u64) % (2 * keys)).to_le_bytes();
        let start = Instant::now();
        black_box(guard.get(key)).expect("it cannot fail");
        times.push(start.elapsed().as_nanos() as u64);
    }
    times.sort_unstable();
    times[times.len() * 99 / 100] as f64
}

/// The same when nothing else happens, and while the filter is rebuilt: the medians of rounds that take turns.
fn p99_quiet_and_rebuilding(guard: &Guard<Numbers>, keys: u64) -> [f64; 2] {
    const ROUNDS: usize = 3;
    let mut rounds = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        rounds[0].push(p99(guard, keys, |count| count == 1_000_000));
        let done = AtomicBool::new(false);
        rounds[1].push(std::thread::scope(|scope| {
            scope.spawn(|| {
                guard.rebuild().expect("a rebuild");
                done.store(true, Ordering::Relaxed);
            });
            p99(guard, keys, |count| count > 0 && done.load(Ordering::Relaxed))
        }));
    }
    rounds.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[ROUNDS / 2]
    })
}

/// Fills a window, which no scan can. Keys per second, in millions.
fn fill(guard: &Guard<Numbers>, keys: u64) -> f64 {
    const BATCH: u64 = 1 << 16;
    let start = Instant::now();
    for from in (0..keys).step_by(BATCH as usize) {
        let pairs: Vec<([u8; 8], [u8; 0])> =
            (from..keys.min(from + BATCH)).map(|i| (i.to_le_bytes(), [])).collect();
        guard.put_many(&pairs).expect("it cannot fail");
    }
    keys as f64 / start.elapsed().as_secs_f64() / 1e6
}

fn measure(kind: GuardKind, keys: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("guard.ibg");
    let options =
        Options::new(kind, keys, 0.005).checkpoint(&file).only_writer().rebuild(Rebuild::Manual);
    let store = Numbers { keys, generation: Arc::default() };
    let guard = Guard::open(store.clone(), options.clone()).expect("a guard");
    let build = match kind.can_rebuild() {
        true => {
            let build = shortest(2, || guard.rebuild().expect("a rebuild")).0;
            keys as f64 / build.as_secs_f64() / 1e6
        }
        false => fill(&guard, keys),
    };
    let (write, ()) = shortest(1, || guard.checkpoint().expect("a checkpoint"));
    let absent = lookup_nanos(&guard, keys, keys);
    let hit = lookup_nanos(&guard, 0, keys);
    let bits = guard.stats().bits_per_key().unwrap_or(0.0);
    let [quiet, rebuilding] = match kind.can_rebuild() {
        true => p99_quiet_and_rebuilding(&guard, keys),
        false => [p99(&guard, keys, |count| count == 1_000_000), f64::NAN],
    };
    drop(guard);
    let mut ready = Duration::MAX;
    let (open, ()) = shortest(5, || {
        let guard = Guard::open(store.clone(), options.clone()).expect("a guard");
        assert!(matches!(guard.opened(), Opened::FromCheckpoint | Opened::Reading));
        std::mem::forget(guard); // its end is not measured
    });
    let (open_async, ()) = shortest(5, || {
        let guard = block_on(AsyncGuard::open(Tasks(store.clone()), options.clone()));
        let guard = guard.expect("a guard");
        assert!(matches!(guard.opened(), Opened::FromCheckpoint | Opened::Reading));
        std::mem::forget(guard);
    });
    for _ in 0..5 {
        let start = Instant::now();
        let guard = Guard::open(store.clone(), options.clone()).expect("a guard");
        guard.settle().expect("a verified filter");
        ready = ready.min(start.elapsed());
        assert_eq!(*guard.opened(), Opened::FromCheckpoint);
    }
    // Last, since it makes the checkpoint outdated. A tenth of the keys more than now find room.
    let guard =
        Guard::open(store.clone(), Options::new(kind, keys + keys / 10, 0.005).only_writer());
    let guard = guard.expect("a guard");
    guard.settle().expect("a filter");
    if !kind.can_rebuild() {
        fill(&guard, keys);
    }
    let put = put_nanos(&guard, 2 * keys);
    println!(
        "{:<9} {keys:>11} {bits:>9.2} {build:>10.1} {absent:>10.0} {hit:>7.0} {put:>7.0} {quiet:>9.0} \
         {rebuilding:>14.0} {:>11.1} {:>8.2} {:>14.2} {:>12.1}",
        kind.name(),
        write.as_secs_f64() * 1e3,
        open.as_secs_f64() * 1e3,
        open_async.as_secs_f64() * 1e3,
        ready.as_secs_f64() * 1e3,
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let asked: Vec<u64> = arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
    let kinds: Vec<GuardKind> =
        arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
    let sizes = if asked.is_empty() { vec![10_000_000, 100_000_000] } else { asked };
    let kinds = if kinds.is_empty() { GuardKind::ALL.to_vec() } else { kinds };
    println!(
        "{:<9} {:>11} {:>9} {:>10} {:>10} {:>7} {:>7} {:>9} {:>14} {:>11} {:>8} {:>14} {:>12}",
        "kind",
        "keys",
        "bits/key",
        "build M/s",
        "absent ns",
        "hit ns",
        "put ns",
        "p99 ns",
        "rebuilding ns",
        "written ms",
        "open ms",
        "async open ms",
        "verified ms"
    );
    for keys in sizes {
        for &kind in &kinds {
            measure(kind, keys);
        }
    }
}
