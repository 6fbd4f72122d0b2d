//! Own puts that a follower is going to hear of, so that a window counts each of them once.
//!
//! A store tells of every write, whoever makes it, and not who has made it. So a put through this guard is counted when
//! it is acknowledged, and the next event of its key is taken for its own. If that was another's, it is made up for by
//! the one that follows: a key that others put, too, is counted as often as it was put.

#![cfg_attr(
    not(any(feature = "async-postgres", feature = "async-redis")),
    allow(dead_code, reason = "there is no follower")
)]

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::backend::Before;

/// See the module documentation. Empty while no follower listens.
#[derive(Default)]
pub(super) struct Echoes(Mutex<Option<Awaited>>);

struct Awaited {
    /// Whether the store also tells of a put that has replaced a value.
    overwriting: bool,
    /// How many events of a key, by its hash.
    puts: HashMap<u64, u32>,
}

impl Echoes {
    fn awaited(&self) -> MutexGuard<'_, Option<Awaited>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A subscription is about to be made: from here on, events of own puts may come.
    #[cfg(any(feature = "async-postgres", feature = "async-redis"))]
    pub(super) fn begin(&self, overwriting: bool) {
        *self.awaited() = Some(Awaited { overwriting, puts: HashMap::new() });
    }

    /// No event comes any more.
    #[cfg(any(feature = "async-postgres", feature = "async-redis"))]
    pub(super) fn end(&self) {
        *self.awaited() = None;
    }

    /// An own put was acknowledged.
    pub(super) fn expect(&self, hash: u64, before: Before) {
        if let Some(awaited) = &mut *self.awaited()
            && (awaited.overwriting || before != Before::Present)
        {
            *awaited.puts.entry(hash).or_default() += 1;
        }
    }

    /// An event of this key has come. True if it is that of an own put.
    pub(super) fn is_own(&self, hash: u64) -> bool {
        let mut awaited = self.awaited();
        let Some(awaited) = &mut *awaited else { return false };
        let Some(puts) = awaited.puts.get_mut(&hash) else { return false };
        *puts -= 1;
        if *puts == 0 {
            awaited.puts.remove(&hash);
        }
        true
    }
}
