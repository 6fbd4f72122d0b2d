//! What an operator should know, as `tracing` events (feature `tracing`); without the feature, nothing.

#![cfg_attr(not(feature = "tracing"), allow(unused_variables, reason = "there is nobody to tell"))]

use std::fmt::Display;
use std::time::Duration;

/// A rebuild has failed, and is tried again after a pause.
pub(crate) fn rebuild_failed(error: &dyn Display, pause: Duration) {
    #[cfg(feature = "tracing")]
    tracing::warn!(%error, ?pause, "the filter could not be built; lookups ask the store");
}

/// A filter made from a scan is in place.
pub(crate) fn rebuilt(keys: u64) {
    #[cfg(feature = "tracing")]
    tracing::info!(keys, "the filter was built from a scan");
}

/// A key was in the store that had come there without the guard.
pub(crate) fn foreign_row() {
    #[cfg(feature = "tracing")]
    tracing::warn!("the store holds keys that came without the guard; the filter is built again");
}

/// The checkpoint is of no use.
pub(crate) fn checkpoint_unusable(why: &dyn Display) {
    #[cfg(feature = "tracing")]
    tracing::info!(%why, "the checkpoint is not used");
}
