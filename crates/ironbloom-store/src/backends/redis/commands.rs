//! What is said to the server, by the blocking and the awaited form alike.

use std::ops::ControlFlow;
use std::time::Duration;

use redis::{
    Client, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, IntoConnectionInfo, Pipeline,
    RedisError, RedisResult,
};

use crate::backend::Before;
use crate::backends::Connections;
use crate::generation::Generation;

/// Number of keys that a scan requests at a time.
const PAGE: usize = 1000;

/// How long an answer may take before its connection is taken for lost.
pub(super) const ANSWER: Duration = Duration::from_secs(60);

/// How the server says that it holds another generation than the one a write is for.
pub(super) const REFUSED: &str = "IRONBLOOM";

/// Where a user's key would have the name of one of our notes, it has one of these more at its end.
const MORE: u8 = b'#';

/// The fields of the note: a hash, which no value that a guard stores can be.
const GENERATION: &str = "generation";
const WRITES: &str = "writes";

/// Writes only while the note (the first key) holds a generation (the first argument), counts the write, and answers
/// whether each key was there, and the count.
const PUT: &str = "
    if redis.pcall('HGET', KEYS[1], 'generation') ~= ARGV[1] then
        return redis.error_reply('IRONBLOOM the store holds another generation')
    end
    local before = {}
    for i = 2, #KEYS do
        before[i - 1] = redis.call('EXISTS', KEYS[i])
        redis.call('SET', KEYS[i], ARGV[i])
    end
    before[#KEYS] = redis.call('HINCRBY', KEYS[1], 'writes', 1)
    return before";

/// The same for removing keys.
const REMOVE: &str = "
    if redis.pcall('HGET', KEYS[1], 'generation') ~= ARGV[1] then
        return redis.error_reply('IRONBLOOM the store holds another generation')
    end
    local before = {}
    for i = 2, #KEYS do
        before[i - 1] = redis.call('DEL', KEYS[i])
    end
    before[#KEYS] = redis.call('HINCRBY', KEYS[1], 'writes', 1)
    return before";

/// Stores a generation, and keeps the count, which is the answer. If there are further arguments, only in place of one of
/// those; otherwise the answer is zero. What else may be there under the name goes.
const KEEP: &str = "
    local before = redis.pcall('HGET', KEYS[1], 'generation')
    local known = #ARGV == 1
    for i = 2, #ARGV do
        known = known or before == ARGV[i]
    end
    if not known then
        return 0
    end
    if redis.call('TYPE', KEYS[1]).ok ~= 'hash' then
        redis.call('DEL', KEYS[1])
    end
    redis.call('HSET', KEYS[1], 'generation', ARGV[1])
    return redis.call('HINCRBY', KEYS[1], 'writes', 1)";

/// What the note says: the generation, and how many writes were counted.
pub(super) type Note = (Option<Vec<u8>>, Option<u64>);

/// A page of a scan: the next cursor, and full keys.
pub(super) type Page = (u64, Vec<Vec<u8>>);

/// The keys of a store, and the commands about them.
#[derive(Clone)]
pub(super) struct Keys {
    pub(super) prefix: Vec<u8>,
    /// The key of the generation: it has the prefix, but is no key of the store.
    pub(super) note: Vec<u8>,
    /// Comes and goes while a follower tests what it hears.
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

/// What tells one server from another: the number that it drew when it was started, and that of the history that it has
/// written or copied, which is another one after it was a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server {
    run: String,
    history: String,
}

impl Server {
    /// The sections of `INFO` that have them.
    pub(super) const SECTIONS: [&str; 2] = ["server", "replication"];

    /// From these sections. `None` if one was refused (rights, a command with another name) or lacks the number: the
    /// server does not tell.
    pub(super) fn of(told: [RedisResult<String>; 2]) -> RedisResult<Option<Self>> {
        let [server, replication] = told;
        Ok(match (refused_or(server)?, refused_or(replication)?) {
            (Some(server), Some(replication)) => {
                let run = field(&server, "run_id:");
                run.zip(field(&replication, "master_replid:"))
                    .map(|(run, history)| Self { run, history })
            }
            _ => None,
        })
    }
}

/// The answer, or `None` if the server has refused the command.
fn refused_or(answer: RedisResult<String>) -> RedisResult<Option<String>> {
    match answer {
        Ok(told) => Ok(Some(told)),
        Err(error) if survives(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What follows this at the beginning of a line.
fn field(info: &str, name: &str) -> Option<String> {
    let told = info.lines().find_map(|line| line.strip_prefix(name))?.trim();
    Some(told.to_owned()).filter(|told| !told.is_empty())
}

/// A section of what the server says about itself.
pub(super) fn info(section: &str) -> Cmd {
    let mut command = redis::cmd("INFO");
    command.arg(section);
    command
}

/// What a note says; anything else under its name says nothing.
pub(super) fn note_of(answer: RedisResult<Note>) -> RedisResult<(Option<Generation>, u64)> {
    match answer {
        Ok((generation, writes)) => {
            Ok((generation.and_then(|kept| Generation::from_bytes(&kept)), writes.unwrap_or(0)))
        }
        Err(error) if error.code() == Some("WRONGTYPE") => Ok((None, 0)),
        Err(error) => Err(error),
    }
}

/// Whether each key was there, and the count, from the answer of a script.
pub(super) fn befores(mut answer: Vec<u64>) -> (Vec<Before>, u64) {
    let counted = answer.pop().unwrap_or(0);
    (answer.into_iter().map(|found| Before::stored(found > 0)).collect(), counted)
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

    /// The name of a key on the server. Ours are not among those of users: a key that would have one of them, and every
    /// key that differs from one of them only by marks at its end, gets one more mark.
    pub(super) fn full(&self, key: &[u8]) -> Vec<u8> {
        let mut full = [&self.prefix[..], key].concat();
        if self.is_like_ours(&full) {
            full.push(MORE);
        }
        full
    }

    /// Whether this is a name of ours, perhaps with marks at its end.
    fn is_like_ours(&self, full: &[u8]) -> bool {
        [&self.note, &self.probe].into_iter().any(|ours| {
            full.strip_prefix(&ours[..]).is_some_and(|rest| rest.iter().all(|&byte| byte == MORE))
        })
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

    fn script(&self, script: &str, keys: &[Vec<u8>], generation: Generation) -> Cmd {
        let mut command = redis::cmd("EVAL");
        command.arg(script).arg(1 + keys.len()).arg(&self.note).arg(keys);
        command.arg(&generation.to_bytes()[..]);
        command
    }

    /// The same while the server holds this generation. Answers in numbers, and the count at the end.
    pub(super) fn put_many_if(&self, pairs: &[(&[u8], &[u8])], generation: Generation) -> Cmd {
        let keys: Vec<Vec<u8>> = pairs.iter().map(|(key, _)| self.full(key)).collect();
        let mut command = self.script(PUT, &keys, generation);
        for (_, value) in pairs {
            command.arg(*value);
        }
        command
    }

    pub(super) fn remove_many_if(&self, keys: &[&[u8]], generation: Generation) -> Cmd {
        let keys: Vec<Vec<u8>> = keys.iter().map(|key| self.full(key)).collect();
        self.script(REMOVE, &keys, generation)
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

    /// The key of the store that has this name on the server; `None` if it is one of ours.
    pub(super) fn key<'k>(&self, full: &'k [u8]) -> Option<&'k [u8]> {
        if full == self.note || full == self.probe {
            return None;
        }
        let marked = self.is_like_ours(full);
        let name = if marked { &full[..full.len() - 1] } else { full };
        name.strip_prefix(&self.prefix[..])
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
        let mut command = redis::cmd("HMGET");
        command.arg(&self.note).arg(GENERATION).arg(WRITES);
        command
    }

    /// The server's files and replicas apply writes in order, so this is there if a later write is.
    pub(super) fn keep(&self, generation: Generation, known: &[Generation]) -> Cmd {
        let mut command = self.script(KEEP, &[], generation);
        for known in known {
            command.arg(&known.to_bytes()[..]);
        }
        command
    }

    pub(super) fn forget(&self) -> Cmd {
        let mut command = redis::cmd("DEL");
        command.arg(&self.note);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_known_by_both_numbers_or_does_not_tell() {
        let told = |run: &str, history: &str| {
            let section = |text: &str| Ok(format!("# Section\r\n{text}\r\nother:1\r\n"));
            Server::of([section(run), section(history)]).unwrap()
        };
        let server = told("run_id:a", "master_replid:b").unwrap();
        assert_eq!(server, Server { run: "a".to_owned(), history: "b".to_owned() });
        for (run, history) in [("run_id:c", "master_replid:b"), ("run_id:a", "master_replid:c")] {
            assert_ne!(told(run, history).unwrap(), server);
        }
        for (run, history) in [("run_id:", "master_replid:b"), ("run_id:a", "master_replid2:b")] {
            assert_eq!(told(run, history), None);
        }
        let no_rights = || RedisError::from((ErrorKind::InvalidClientConfig, "NOPERM"));
        assert_eq!(Server::of([Err(no_rights()), Ok("master_replid:b".to_owned())]).unwrap(), None);
        let lost = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        Server::of([Ok("run_id:a".to_owned()), Err(lost.into())]).unwrap_err();
    }

    #[test]
    fn no_key_of_a_user_has_the_name_of_a_note() {
        for prefix in ["", "app:", "ironbloom:"] {
            let keys = Keys::new(prefix.as_bytes());
            let names = ["generation", "probe", "x", ""].map(|name| format!("ironbloom:{name}"));
            let marked = names
                .iter()
                .flat_map(|name| ["", "#", "##", "#x"].map(|end| format!("{name}{end}")));
            let mut seen = std::collections::HashSet::new();
            for name in marked.chain(["".to_owned(), "#".to_owned(), "alice".to_owned()]) {
                let full = keys.full(name.as_bytes());
                assert!(full != keys.note && full != keys.probe, "{prefix}{name}");
                assert_eq!(keys.key(&full), Some(name.as_bytes()));
                assert!(seen.insert(full), "{prefix}{name}");
            }
            assert_eq!((keys.key(&keys.note), keys.key(&keys.probe)), (None, None));
            assert_eq!(keys.full(b"alice"), format!("{prefix}alice").into_bytes());
        }
    }
}
