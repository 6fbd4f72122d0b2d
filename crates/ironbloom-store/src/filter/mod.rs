//! Filters that many threads query and change through `&self`, with lock-free queries.
//!
//! ```text
//!  Blocked          blocked.rs: the library's atomic filter, whose bits are only ever set
//!  Cuckoo, DLeft    shards.rs: many small filters, never changed, only replaced
//!  Scalable         stages.rs: a list of atomic filters, of which the last is filled
//!  Windowed         the same list, which loses its oldest
//! ```
//!
//! A guard knows its filter only as a [`SharedFilter`]. What it can be is the list of [`GuardKind`](crate::GuardKind)s,
//! which names the [`Maker`] of each.

mod blocked;
mod image;
mod shards;
mod stages;

use std::io::{self, Write};
use std::sync::Arc;

use ironbloom::ParamError;

pub(crate) use self::blocked::BLOCKED;
pub(crate) use self::image::{Image, ImageError, ImageWriter};
use self::image::{check_hash, sealed, unsealed};
pub(crate) use self::shards::{CUCKOO, D_LEFT, MAX_SHARDS};
pub(crate) use self::stages::{GROWING, WINDOW};
use crate::options::FilterSpec;

/// The filter of a guard.
pub(crate) trait SharedFilter: Send + Sync {
    /// Might the key with this hash be stored?
    fn contains(&self, hash: u64) -> bool;

    /// `found[i]` tells whether the key with `hashes[i]` might be stored. The slices are of one length.
    fn contains_many(&self, hashes: &[u64], found: &mut [bool]) {
        for (found, &hash) in found.iter_mut().zip(hashes) {
            *found = self.contains(hash);
        }
    }

    /// Inserts a key. False if it looked present already.
    fn insert(&self, hash: u64) -> bool;

    /// Inserts many keys, in any order.
    fn insert_many(&self, hashes: &mut [u64]) {
        for &hash in &*hashes {
            self.insert(hash);
        }
    }

    /// The put of a key that was inserted has ended; it counts if the store has acknowledged it. A window counts from
    /// here.
    fn acknowledge(&self, _hash: u64, _counts: bool) {}

    /// Removes one copy of a key, if the kind supports it. The key must have been inserted.
    fn remove(&self, _hash: u64) {}

    /// Number of keys counted.
    fn len(&self) -> u64;

    /// The capacity: the number of keys planned for.
    fn capacity(&self) -> u64;

    /// Whether the capacity is reached or exceeded, so that the requested rate will not be met for long. Checked at
    /// every write, so it uses the counts: counting the bits of a large filter takes milliseconds.
    fn is_over_capacity(&self) -> bool;

    fn size_in_bytes(&self) -> u64;

    /// Whether the store may still hold keys that this filter never saw, so that every key may be stored.
    fn is_blind(&self) -> bool {
        false
    }

    /// The store holds keys that this filter does not know and never will. Only a window can live with that.
    fn go_blind(&self) {}

    /// A snapshot of the filter, taken while nobody changes it; it does not change, except for keys inserted later in
    /// kinds where an extra key is harmless. The time does not grow with the number of keys, except for a stage of a
    /// window.
    fn frozen(self: Arc<Self>) -> Arc<dyn SharedFilter>;

    /// Writes the parts of a copy for a checkpoint, and returns the number that belongs to them. Concurrent inserts may
    /// or may not be in it.
    fn write_image(&self, out: &mut ImageWriter<'_>) -> io::Result<u64>;

    /// Writes a copy that others can read: a `.ibf` file. Concurrent inserts may or may not be in it. Only for kinds
    /// that [can be published](Maker::can_publish).
    fn write_published(&self, _out: &mut dyn Write) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A new filter, or why there is none.
type Made<E> = Result<Arc<dyn SharedFilter>, E>;

/// How the filters of a kind come into being.
pub(crate) struct Maker {
    /// An empty filter for this many keys.
    empty: fn(&FilterSpec, u64) -> Made<ParamError>,
    /// The filter of an image, planned for this many keys.
    from_image: fn(&FilterSpec, u64, &Image<'_>) -> Made<ImageError>,
    /// Whether one `.ibf` file can hold it. Cuckoo and d-left filters are thousands of small ones here, and windows are
    /// not the library's.
    pub(crate) can_publish: bool,
}

/// An empty filter for at least `capacity` keys.
pub(crate) fn empty(spec: &FilterSpec, capacity: u64) -> Made<ParamError> {
    (spec.kind.maker().empty)(spec, capacity.max(spec.capacity))
}

/// The filter of an image. Every checksum is verified.
pub(crate) fn from_image(spec: &FilterSpec, capacity: u64, image: &Image<'_>) -> Made<ImageError> {
    (spec.kind.maker().from_image)(spec, capacity, image)
}
