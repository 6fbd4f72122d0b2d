//! What an operator should know, as `tracing` events (feature `tracing`); without the feature, nothing.

#![cfg_attr(not(feature = "tracing"), allow(unused_variables, reason = "there is nobody to tell"))]

use std::fmt::Display;
use std::time::Duration;

/// A rebuild has failed and will be retried after a pause.
pub(crate) fn rebuild_failed(error: &dyn Display, pause: Duration) {
    #[cfg(feature = "tracing")]
    tracing::warn!(%error, ?pause, "the filter could not be built; lookups ask the store");
}

/// A filter built from a scan is in place.
pub(crate) fn rebuilt(keys: u64) {
    #[cfg(feature = "tracing")]
    tracing::info!(keys, "the filter was built from a scan");
}

/// The store has a key that was written without the guard.
pub(crate) fn foreign_row() {
    #[cfg(feature = "tracing")]
    tracing::warn!("the store holds keys that came without the guard; the filter is built again");
}

/// The store does not hold the generation that this guard gave it.
pub(crate) fn exchanged() {
    #[cfg(feature = "tracing")]
    tracing::warn!("the store is in another state than before; the filter is built again");
}

/// The filter could not be published, which is tried again.
pub(crate) fn publish_failed(error: &dyn Display) {
    #[cfg(feature = "tracing")]
    tracing::warn!(%error, "the filter could not be published; readers keep the old one");
}

/// A published filter cannot be used.
pub(crate) fn publication_unusable(why: &dyn Display) {
    #[cfg(feature = "tracing")]
    tracing::warn!(%why, "a published filter is not used; the old one stays");
}

/// The checkpoint cannot be used.
pub(crate) fn checkpoint_unusable(why: &dyn Display) {
    #[cfg(feature = "tracing")]
    tracing::info!(%why, "the checkpoint is not used");
}

/// Nobody knows what others write to the store.
#[cfg(any(feature = "async-postgres", feature = "async-redis"))]
pub(crate) fn not_following(error: &dyn Display, pause: Duration) {
    #[cfg(feature = "tracing")]
    tracing::warn!(%error, ?pause, "changes of the store are not heard; lookups ask the store");
}

/// What others write is noted from now on.
#[cfg(any(feature = "async-postgres", feature = "async-redis"))]
pub(crate) fn following() {
    #[cfg(feature = "tracing")]
    tracing::info!("changes of the store are heard");
}
