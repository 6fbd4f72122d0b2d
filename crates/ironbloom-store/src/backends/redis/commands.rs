//! What is said to the server, by the blocking and the awaited form alike.

use std::ops::ControlFlow;
use std::time::Duration;

use redis::{
    Client, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo, Pipeline,
    RedisError, RedisResult,
};

use crate::backends::Connections;
use crate::generation::Generation;

/// Number of keys that a scan requests at a time.
const PAGE: usize = 1000;

/// How long an answer may take before its connection is taken for lost.
pub(super) const ANSWER: Duration = Duration::from_secs(60);

/// A page of a scan: the next cursor, and full keys.
pub(super) type Page = (u64, Vec<Vec<u8>>);

/// The keys of a store, and the commands about them.
#[derive(Clone)]
pub(super) struct Keys {
    pub(super) prefix: Vec<u8>,
    /// The key of the generation: it is among the keys, so a scan skips it.
    pub(super) note: Vec<u8>,
    /// Comes and goes when somebody starts to watch.
    pub(super) probe: Vec<u8>,
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        String::from_utf8_lossy(&self.prefix).fmt(f)
    }
}

/// A pattern that matches exactly these bytes.
pub(super) fn escaped(bytes: &[u8]) -> Vec<u8> {
    let escape = |&byte: &u8| {
        let special = matches!(byte, b'*' | b'?' | b'[' | b']' | b'\\' | b'^' | b'-');
        special.then_some(b'\\').into_iter().chain([byte])
    };
    bytes.iter().flat_map(escape).collect()
}

/// The client of a server, with TLS if the address is `rediss://`.
pub(super) fn client(
    server: impl IntoConnectionInfo,
    connections: &Connections,
) -> RedisResult<Client> {
    let server: ConnectionInfo = server.into_connection_info()?;
    if matches!(server.addr(), ConnectionAddr::TcpTls { insecure: true, .. }) {
        let words = "certificates are always verified: #insecure is not supported";
        return Err((ErrorKind::InvalidClientConfig, words).into());
    }
    #[cfg(feature = "tls")]
    {
        if matches!(server.addr(), ConnectionAddr::TcpTls { .. }) {
            crate::backends::tls::ensure_provider();
        }
        if let Some(tls) = &connections.tls {
            let client_tls = tls.identity.clone().map(|(client_cert, client_key)| {
                redis::ClientTlsConfig { client_cert, client_key }
            });
            let certificates = redis::TlsCertificates { client_tls, root_cert: tls.roots.clone() };
            return Client::build_with_tls(server, certificates);
        }
    }
    #[cfg(not(feature = "tls"))]
    let _ = connections;
    Client::open(server)
}

/// False if the connection cannot be used after this error.
pub(super) fn survives(error: &RedisError) -> bool {
    !error.is_io_error() && !error.is_unrecoverable_error()
}

impl Keys {
    pub(super) fn new(prefix: &[u8]) -> Self {
        let with = |name: &[u8]| [prefix, name].concat();
        let (note, probe) = (with(b"ironbloom:generation"), with(b"ironbloom:probe"));
        Self { prefix: prefix.to_vec(), note, probe }
    }

    pub(super) fn full(&self, key: &[u8]) -> Vec<u8> {
        [&self.prefix[..], key].concat()
    }

    /// A command about one key.
    pub(super) fn one(&self, name: &str, key: &[u8]) -> Cmd {
        let mut command = redis::cmd(name);
        command.arg(self.full(key));
        command
    }

    pub(super) fn get_many(&self, keys: &[&[u8]]) -> Cmd {
        let mut command = redis::cmd("MGET");
        for key in keys {
            command.arg(self.full(key));
        }
        command
    }

    /// In one transaction: nobody else sees a part of it. Answers whether each was there before.
    pub(super) fn put_many(&self, pairs: &[(&[u8], &[u8])]) -> Pipeline {
        let mut pipe = redis::pipe();
        pipe.atomic();
        for (key, value) in pairs {
            let key = self.full(key);
            pipe.cmd("EXISTS").arg(&key);
            pipe.cmd("SET").arg(key).arg(*value).ignore();
        }
        pipe
    }

    /// In one transaction, likewise.
    pub(super) fn remove_many(&self, keys: &[&[u8]]) -> Pipeline {
        let mut pipe = redis::pipe();
        pipe.atomic();
        for key in keys {
            pipe.cmd("DEL").arg(self.full(key));
        }
        pipe
    }

    pub(super) fn scan(&self, cursor: u64) -> Cmd {
        let pattern = [&escaped(&self.prefix)[..], b"*"].concat();
        let mut scan = redis::cmd("SCAN");
        scan.arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(PAGE);
        scan
    }

    /// Visits the keys of a page; returns the cursor of the next, `None` at the end.
    pub(super) fn visit(
        &self,
        (next, keys): Page,
        mut visit: impl FnMut(&[u8]) -> ControlFlow<()>,
    ) -> Option<u64> {
        let mut ours = keys.iter().filter_map(|key| self.key(key));
        if ours.try_for_each(&mut visit).is_break() || next == 0 { None } else { Some(next) }
    }

    /// The key of the store that a full key is; `None` if it is one of the crate.
    pub(super) fn key<'k>(&self, full: &'k [u8]) -> Option<&'k [u8]> {
        let own = full == self.note || full == self.probe;
        full.strip_prefix(&self.prefix[..]).filter(|_| !own)
    }

    /// All keys of the server, and whether the generation is one of them.
    pub(super) fn count(&self) -> Pipeline {
        let mut pipe = redis::pipe();
        pipe.cmd("DBSIZE").cmd("EXISTS").arg(&self.note);
        pipe
    }

    /// The number of keys is known only if all keys of the server are ours.
    pub(super) fn length(&self, (all, noted): (u64, u64)) -> Option<u64> {
        let others = all.saturating_sub(noted);
        Some(others).filter(|&others| others == 0 || self.prefix.is_empty())
    }

    pub(super) fn generation(&self) -> Cmd {
        let mut command = redis::cmd("GET");
        command.arg(&self.note);
        command
    }

    /// The server's files and replicas apply writes in order, so this is there if a later write is.
    pub(super) fn keep(&self, generation: Generation) -> Cmd {
        let mut command = redis::cmd("SET");
        command.arg(&self.note).arg(&generation.to_bytes()[..]);
        command
    }

    pub(super) fn forget(&self) -> Cmd {
        let mut command = redis::cmd("DEL");
        command.arg(&self.note);
        command
    }
}
