//! Filling one filter from several threads, with keys that arrive in shards.
//!
//! ```text
//! shards ──┬─► thread 1: its own filter ──┐
//!          ├─► thread 2: its own filter ──┼─► union
//!          └─► …                          ┘
//! ```
//!
//! Each thread takes the next shard when it finishes one, so shards do not have to be equal in size. Each thread has
//! its own filter, which multiplies the memory, because setting bits with atomic instructions costs several times as
//! much (docs/benchmarks/kernels.md). If memory is short, insert into an [`AtomicBloom`](crate::AtomicBloom) or an
//! [`AtomicBlockedBloom`](crate::AtomicBlockedBloom) from your own threads.

use std::num::NonZeroUsize;
use std::sync::Mutex;

use crate::hash::GROUP;

/// Inserts the hashes of all shards into `filter` and into `others`, one thread each.
///
/// The calling thread works on `filter`.
pub(crate) fn insert<F: Send, S: IntoIterator<Item = u64>>(
    filter: &mut F,
    others: &mut [F],
    shards: impl IntoIterator<Item = S, IntoIter: Send>,
    insert_hashes: impl Fn(&mut F, &[u64]) + Sync,
) {
    let shards = Mutex::new(shards.into_iter());
    let work = |filter: &mut F| {
        // The lock is held while the next shard is produced, not while it is processed.
        let next = || shards.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).next();
        while let Some(shard) = next() {
            in_groups(shard, |hashes| insert_hashes(filter, hashes));
        }
    };
    std::thread::scope(|scope| {
        for other in others {
            scope.spawn(|| work(other));
        }
        work(filter);
    });
}

/// Creates the filters of all threads but the calling one.
pub(crate) fn others<F, E>(
    threads: NonZeroUsize,
    empty: impl Fn() -> Result<F, E>,
) -> Result<Vec<F>, E> {
    (1..threads.get()).map(|_| empty()).collect()
}

/// Passes on the hashes of a shard in groups large enough for a batch.
fn in_groups(hashes: impl IntoIterator<Item = u64>, mut work: impl FnMut(&[u64])) {
    let mut group = [0; GROUP];
    let mut len = 0;
    for hash in hashes {
        group[len] = hash;
        len += 1;
        if len == GROUP {
            work(&group);
            len = 0;
        }
    }
    work(&group[..len]);
}
