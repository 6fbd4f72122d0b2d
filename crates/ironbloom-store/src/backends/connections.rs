//! How a store connects to its server.

use std::time::Duration;

#[cfg(feature = "tls")]
use super::tls::Tls;

/// How a store connects to its server: how many connections at most, how long an attempt may take, and (with the feature
/// `tls`) which certificates are trusted.
///
/// ```
/// use ironbloom_store::Connections;
/// let connections = Connections::new().max(32);
/// ```
#[derive(Clone, Debug)]
pub struct Connections {
    pub(super) max: usize,
    pub(super) timeout: Duration,
    pub(super) prove_every: Duration,
    #[cfg(feature = "tls")]
    pub(super) tls: Option<Tls>,
}

impl Default for Connections {
    fn default() -> Self {
        Self {
            max: 16,
            timeout: Duration::from_secs(10),
            prove_every: Duration::from_secs(10),
            #[cfg(feature = "tls")]
            tls: None,
        }
    }
}

impl Connections {
    /// 16 at most, 10 seconds to connect, TLS if the address asks for it.
    pub fn new() -> Self {
        Self::default()
    }

    /// The largest number of connections in use at a time; at least one. Further callers wait. A scan of a
    /// PostgreSQL table and a [`Follower`](crate::Follower) each have one more connection of their own.
    #[cfg_attr(
        not(any(feature = "async-postgres", feature = "async-redis")),
        allow(rustdoc::broken_intra_doc_links, reason = "there is no follower")
    )]
    pub fn max(mut self, max: usize) -> Self {
        self.max = max;
        self
    }

    /// How long connecting may take before it is an error.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How often a [`Follower`](crate::Follower) proves that it would hear of a change; at most a second longer, or as long
    /// again, it may be deaf without knowing. Default: 10 seconds.
    #[cfg_attr(
        not(any(feature = "async-postgres", feature = "async-redis")),
        allow(rustdoc::broken_intra_doc_links, reason = "there is no follower")
    )]
    pub fn prove_every(mut self, interval: Duration) -> Self {
        self.prove_every = interval;
        self
    }

    /// Encrypts every connection, and refuses servers that cannot, or whose certificate is not trusted or not theirs.
    /// The address of a Redis server must then begin with `rediss://`.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }
}
