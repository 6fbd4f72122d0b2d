//! What a guard requires of an asynchronous store.

use std::ops::ControlFlow;
use std::time::Duration;

use super::{Before, Failure};
use crate::generation::Generation;

/// Called with each key of a scan.
pub type Visit<'v> = &'v mut (dyn FnMut(&[u8]) -> ControlFlow<()> + Send);

/// An asynchronous key-value store. It has the same obligations as a [`Backend`](crate::Backend).
pub trait AsyncBackend: Send + Sync + 'static {
    /// The error type.
    type Error: std::error::Error + Send + Sync + 'static;

    /// The value of a key.
    fn get(&self, key: &[u8]) -> impl Future<Output = Result<Option<Vec<u8>>, Self::Error>> + Send;

    /// The values of many keys, in their order.
    fn get_many(
        &self,
        keys: &[&[u8]],
    ) -> impl Future<Output = Result<Vec<Option<Vec<u8>>>, Self::Error>> + Send {
        async move {
            let mut values = Vec::with_capacity(keys.len());
            for key in keys {
                values.push(self.get(key).await?);
            }
            Ok(values)
        }
    }

    /// Whether the key is there. For stores that can tell without fetching the value.
    fn contains(&self, key: &[u8]) -> impl Future<Output = Result<bool, Self::Error>> + Send {
        async move { Ok(self.get(key).await?.is_some()) }
    }

    /// Stores a value; returns whether the key was there before.
    fn put(
        &self,
        key: &[u8],
        value: &[u8],
    ) -> impl Future<Output = Result<Before, Self::Error>> + Send;

    /// Removes a key; returns whether it was there.
    fn remove(&self, key: &[u8]) -> impl Future<Output = Result<Before, Self::Error>> + Send;

    /// Stores many values, one after the other; returns for each whether its key was there before.
    fn put_many(
        &self,
        pairs: &[(&[u8], &[u8])],
    ) -> impl Future<Output = Result<Vec<Before>, Self::Error>> + Send {
        async move {
            let mut new = Vec::with_capacity(pairs.len());
            for (key, value) in pairs {
                new.push(self.put(key, value).await?);
            }
            Ok(new)
        }
    }

    /// Removes many keys, one after the other; returns for each whether it was there.
    fn remove_many(
        &self,
        keys: &[&[u8]],
    ) -> impl Future<Output = Result<Vec<Before>, Self::Error>> + Send {
        async move {
            let mut removed = Vec::with_capacity(keys.len());
            for key in keys {
                removed.push(self.remove(key).await?);
            }
            Ok(removed)
        }
    }

    /// Visits all keys, in any order, until the callback says stop.
    fn scan(&self, visit: Visit<'_>) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Approximate number of keys, if the store knows it without counting. `Some(0)` only if there are none.
    fn len_hint(&self) -> impl Future<Output = Result<Option<u64>, Self::Error>> + Send {
        async { Ok(None) }
    }

    /// The generation set last.
    fn generation(&self) -> impl Future<Output = Result<Option<Generation>, Self::Error>> + Send;

    /// Stores a generation.
    fn set_generation(
        &self,
        generation: Generation,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Stores the generation of a checkpoint; see [`Backend::seal`](crate::Backend::seal).
    fn seal(&self, generation: Generation) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.set_generation(generation)
    }

    /// Stores the first generation of a guard that is the only writer; see [`Backend::claim`](crate::Backend::claim).
    fn claim(
        &self,
        generation: Generation,
    ) -> impl Future<Output = Result<bool, Self::Error>> + Send {
        async move { self.set_generation(generation).await.map(|()| false) }
    }

    /// Whether [`claim`](Self::claim) can put an end to earlier writes.
    fn can_claim(&self) -> bool {
        false
    }

    /// True if the store was found, since this was last asked, to be in another state; see
    /// [`Backend::was_exchanged`](crate::Backend::was_exchanged).
    fn was_exchanged(&self) -> bool {
        false
    }

    /// What became of a write that ended with this error.
    fn failure(&self, _error: &Self::Error) -> Failure {
        Failure::Unknown
    }

    /// How long after a write has failed, or its future was dropped, it may still take effect. `None` if unknown.
    fn lands_within(&self) -> Option<Duration> {
        None
    }

    /// Makes everything written so far durable, if writes are acknowledged earlier than that.
    fn sync(&self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        async { Ok(()) }
    }

    /// True if nobody else can write to the store while this is open.
    fn is_exclusive(&self) -> bool {
        false
    }
}
