//! What a guard requires of a store: of one that blocks, and of one that is awaited.

mod awaited;
mod blocking;
mod outcome;

use std::ops::ControlFlow;
use std::time::Duration;

pub use self::awaited::{AsyncBackend, Visit};
pub(crate) use self::blocking::{Blocking, block_on};
pub use self::outcome::{Before, Failure};
use crate::generation::Generation;

/// A store of keys and values, shared by threads.
///
/// A guard keeps its promise, never to answer "absent" for a stored key, if the store keeps the following:
///
/// - what [`put`](Self::put) has acknowledged, [`get`](Self::get) finds and [`scan`](Self::scan) visits, from then on;
/// - `put` and [`remove`](Self::remove) report correctly whether the key was there, or that they do not know;
/// - [`scan`](Self::scan) visits every key that is there from its beginning to its end (others it may visit or not,
///   once or several times);
/// - [`set_generation`](Self::set_generation) is durable when it returns, and comes before every later write: there is no
///   crash after which a later write is there and the generation is not;
/// - a request through a handle that is gone does not take effect after another one was opened, unless the store says
///   how long it may ([`lands_within`](Self::lands_within)) or refuses it ([`claim`](Self::claim)).
///
/// A store must not call back into its own guard to change it: that is [`Error::Reentrant`](crate::Error::Reentrant).
///
/// All keys must also come through the guard: see [`is_exclusive`](Self::is_exclusive).
pub trait Backend: Send + Sync + 'static {
    /// The error type.
    type Error: std::error::Error + Send + Sync + 'static;

    /// The value of a key.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Self::Error>;

    /// The values of many keys, in their order. For stores that answer several queries for the price of one.
    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, Self::Error> {
        keys.iter().map(|key| self.get(key)).collect()
    }

    /// Whether the key is there. For stores that can tell without fetching the value.
    fn contains(&self, key: &[u8]) -> Result<bool, Self::Error> {
        Ok(self.get(key)?.is_some())
    }

    /// Stores a value; returns whether the key was there before.
    fn put(&self, key: &[u8], value: &[u8]) -> Result<Before, Self::Error>;

    /// Stores many values, one after the other; returns for each whether its key was there before. For stores that
    /// write several for the price of one. What [`failure`](Self::failure) says about an error holds for all of them.
    fn put_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<Vec<Before>, Self::Error> {
        pairs.iter().map(|(key, value)| self.put(key, value)).collect()
    }

    /// Removes a key; returns whether it was there.
    fn remove(&self, key: &[u8]) -> Result<Before, Self::Error>;

    /// Removes many keys, one after the other; returns for each whether it was there. For stores that write several for
    /// the price of one.
    fn remove_many(&self, keys: &[&[u8]]) -> Result<Vec<Before>, Self::Error> {
        keys.iter().map(|key| self.remove(key)).collect()
    }

    /// Visits all keys, in any order, until the callback says stop.
    fn scan(&self, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), Self::Error>;

    /// Approximate number of keys, if the store knows it without counting. `Some(0)` only if there are none.
    fn len_hint(&self) -> Result<Option<u64>, Self::Error> {
        Ok(None)
    }

    /// The generation set last. A store that cannot keep one always returns `None`; its guards then rebuild their
    /// filter whenever they are opened.
    fn generation(&self) -> Result<Option<Generation>, Self::Error>;

    /// Stores a generation.
    fn set_generation(&self, generation: Generation) -> Result<(), Self::Error>;

    /// Stores the generation of a checkpoint: the guard sets another one before its next write. A store can therefore
    /// tell that a write bypassed the guard, and drop the generation with the first such write. The stores of this
    /// crate do, for writes through the same handle.
    fn seal(&self, generation: Generation) -> Result<(), Self::Error> {
        self.set_generation(generation)
    }

    /// Stores the first generation of a guard that is the only writer. From then on, a write through this handle is
    /// carried out only while the store holds the generation that was stored last through it, and refused otherwise
    /// ([`Failure::OtherState`]): the store may have been restored from a backup, or replaced by another one. True if
    /// no write that was begun under an earlier generation, by whomever, can take effect any more. A store that cannot
    /// do this stores the generation and returns false.
    fn claim(&self, generation: Generation) -> Result<bool, Self::Error> {
        self.set_generation(generation).map(|()| false)
    }

    /// Whether [`claim`](Self::claim) can put an end to earlier writes.
    fn can_claim(&self) -> bool {
        false
    }

    /// True if the store was found, since this was last asked, to hold another generation than the one that was stored
    /// last through this handle: it is in another state than the guard's filter describes. A store that can be claimed
    /// looks when it connects, and before it stores another generation, in the same request.
    fn was_exchanged(&self) -> bool {
        false
    }

    /// What became of a write that ended with this error.
    fn failure(&self, _error: &Self::Error) -> Failure {
        Failure::Unknown
    }

    /// How long after a write has failed, or was abandoned, it may still take effect. `None` if unknown: its key is
    /// then in doubt for as long as the guard lives, and longer. See
    /// [`Options::lands_within`](crate::Options::lands_within).
    fn lands_within(&self) -> Option<Duration> {
        None
    }

    /// Makes everything written so far durable, if writes are acknowledged earlier than that.
    fn sync(&self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// True if nobody else can write to the store while this is open (a locked file). Then a checkpoint of its
    /// generation is sufficient proof; otherwise it is trusted only if the user promises that all writes go through
    /// guards, one at a time ([`Options::only_writer`](crate::Options::only_writer)).
    fn is_exclusive(&self) -> bool {
        false
    }
}
