//! A server or a cluster, and what it says in words that a person understands.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result};
use redis::cluster::{ClusterClient, ClusterConnection, cluster_pipe};
use redis::cluster_routing::{RoutingInfo, SingleNodeRoutingInfo};
use redis::{Cmd, Connection, ErrorKind, FromRedisValue, RedisError, ServerErrorKind, Value};

use super::names::{Name, ROUTE, ROUTE_FIELD, SHARDS_FIELD};
use crate::failure::Advice;

/// How long a server may take to accept a connection.
const PATIENCE_TO_CONNECT: Duration = Duration::from_secs(10);
/// How long it may take to answer: a busy server may be saving, or loading a big chunk.
const PATIENCE: Duration = Duration::from_secs(120);

enum Link {
    One(Box<Connection>),
    Cluster(Box<ClusterConnection>),
}

pub(super) struct Server {
    link: Link,
    /// The address, without a password.
    address: String,
}

/// The two families of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Bloom,
    Cuckoo,
}

impl Family {
    /// The start of the names of its commands.
    pub(super) fn prefix(self) -> &'static str {
        match self {
            Self::Bloom => "BF",
            Self::Cuckoo => "CF",
        }
    }

    /// A command of this family about a key.
    pub(super) fn command(self, name: &str, key: &str) -> Cmd {
        let mut command = redis::cmd(&format!("{}.{name}", self.prefix()));
        command.arg(key);
        command
    }
}

/// What is under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    Filter(Family),
    /// The hash that stands for a filter in so many shards.
    Shards(u32),
    /// A value of another type, with its name.
    Other(String),
}

/// What Valkey 9 says of a type that none of its modules has.
const UNKNOWN_TYPE: &str = "unknown type name";

impl Server {
    pub(super) fn connect(url: &str) -> Result<Self> {
        let address = without_password(url);
        let explain = |error: RedisError| explain(&address, error);
        if url.starts_with("rediss:") || url.starts_with("valkeys:") {
            return Err(Advice::error(
                format!("{address}: TLS is not supported"),
                "connect through a tunnel (stunnel, ssh -L) to a port of this machine",
            ));
        }
        let client = redis::Client::open(url).map_err(|_| {
            Advice::error(
                format!("--url {address:?} is not the address of a server"),
                "write redis://[user:password@]host[:port][/database] or unix:///path",
            )
        })?;
        let mut one = client.get_connection_with_timeout(PATIENCE_TO_CONNECT).map_err(explain)?;
        let link = if is_in_cluster(&mut one).map_err(explain)? {
            let builder = ClusterClient::builder([url]).connection_timeout(PATIENCE_TO_CONNECT);
            let client = builder.response_timeout(PATIENCE).build().map_err(explain)?;
            Link::Cluster(Box::new(client.get_connection().map_err(explain)?))
        } else {
            one.set_read_timeout(Some(PATIENCE)).map_err(explain)?;
            one.set_write_timeout(Some(PATIENCE)).map_err(explain)?;
            Link::One(Box::new(one))
        };
        Ok(Self { link, address })
    }

    /// The reply to a command.
    pub(super) fn ask<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T> {
        let reply = match &mut self.link {
            Link::One(link) => command.query(link),
            Link::Cluster(link) => command.query(link),
        };
        reply.map_err(|error| explain(&self.address, error))
    }

    /// The replies to commands that are sent all at once. If a slot of a cluster has moved meanwhile, all are sent again.
    pub(super) fn ask_all(&mut self, commands: Vec<Cmd>) -> Result<Vec<Value>> {
        if commands.is_empty() {
            return Ok(Vec::new());
        }
        let replies = match &mut self.link {
            Link::One(link) => {
                let mut pipe = redis::pipe();
                for command in commands {
                    pipe.add_command(command);
                }
                pipe.query(link)
            }
            Link::Cluster(link) => {
                let mut pipe = cluster_pipe();
                for command in &commands {
                    pipe.add_command(command.clone());
                }
                match pipe.query(link) {
                    // Pipelines are not redirected, single commands are.
                    Err(error) if error.is_cluster_error() => {
                        commands.iter().map(|command| command.query(link)).collect()
                    }
                    replies => replies,
                }
            }
        };
        replies.map_err(|error| explain(&self.address, error))
    }

    /// What is under a key.
    pub(super) fn find(&mut self, key: &str) -> Result<Found> {
        let found: String = self.ask(redis::cmd("TYPE").arg(key))?;
        if found != "hash" {
            return Ok(Found::of_type(&found));
        }
        let fields: (Option<u32>, Option<String>) =
            self.ask(redis::cmd("HMGET").arg(key).arg(SHARDS_FIELD).arg(ROUTE_FIELD))?;
        match fields {
            (Some(shards), Some(route)) if route == ROUTE && shards > 0 => {
                Ok(Found::Shards(shards))
            }
            (Some(_), Some(route)) => Err(Advice::error(
                format!(
                    "{key}: its shards are found by {route:?}, which this version does not know"
                ),
                "use the version of ironbloom that made them, or a later one",
            )),
            _ => Ok(Found::Other(found)),
        }
    }

    /// Where keys are looked for: at the one server, or at each primary of a cluster.
    fn primaries(&mut self) -> Result<Vec<Option<RoutingInfo>>> {
        if let Link::One(_) = self.link {
            return Ok(vec![None]);
        }
        let mut nodes: Vec<Node> = self.ask(redis::cmd("CLUSTER").arg("SLOTS"))?;
        nodes.sort();
        nodes.dedup();
        let by_address = |Node { host, port }| SingleNodeRoutingInfo::ByAddress { host, port };
        Ok(nodes.into_iter().map(|node| Some(RoutingInfo::SingleNode(by_address(node)))).collect())
    }

    /// Keys of this type, each once: `most` of them or a few more.
    pub(super) fn scan(
        &mut self,
        kind: &str,
        pattern: &str,
        most: usize,
    ) -> Result<BTreeSet<Vec<u8>>> {
        let mut found = BTreeSet::new();
        for primary in self.primaries()? {
            let mut cursor: Vec<u8> = b"0".to_vec();
            while found.len() < most {
                let mut command = redis::cmd("SCAN");
                command
                    .arg(cursor)
                    .arg("MATCH")
                    .arg(pattern)
                    .arg("COUNT")
                    .arg(SCANNED)
                    .arg("TYPE")
                    .arg(kind);
                let reply = self.ask_at(&command, primary.clone());
                // Newer servers know the types of the modules they have loaded, and refuse others.
                if reply.as_ref().is_err_and(|error| format!("{error:#}").contains(UNKNOWN_TYPE)) {
                    break;
                }
                let (next, keys): (Vec<u8>, Vec<Vec<u8>>) = reply?;
                found.extend(keys);
                if next == b"0" {
                    break;
                }
                cursor = next;
            }
        }
        Ok(found)
    }

    /// The reply to a command that goes to this server of a cluster.
    fn ask_at<T: FromRedisValue>(&mut self, command: &Cmd, to: Option<RoutingInfo>) -> Result<T> {
        match (&mut self.link, to) {
            (Link::Cluster(link), Some(to)) => {
                let reply = link
                    .route_command(command, to)
                    .and_then(|reply| Ok(redis::from_redis_value(reply)?));
                reply.map_err(|error| explain(&self.address, error))
            }
            _ => self.ask(command),
        }
    }

    /// What BF.INFO or CF.INFO says, with this word; or the words about a load that is not finished. Nothing if there is no
    /// such filter.
    pub(super) fn info(
        &mut self,
        family: Family,
        key: &[u8],
        word: Option<&str>,
    ) -> Result<Option<Result<Fields, String>>> {
        let mut command = redis::cmd(&format!("{}.INFO", family.prefix()));
        command.arg(key).arg(word);
        let reply = match &mut self.link {
            Link::One(link) => command.query(link),
            Link::Cluster(link) => command.query(link),
        };
        match reply {
            Ok(reply) => Ok(Some(Ok(Fields(reply)))),
            Err(error) => {
                let said = error.to_string();
                if let Some((_, bytes)) = said.split_once("still being loaded: ") {
                    return Ok(Some(Err(format!("is being loaded, {bytes}"))));
                }
                // RedisBloom's words, with and without a code, and those for a key that has another type by now.
                let is_gone = ["not found", "WRONGTYPE", "does not exist"]
                    .iter()
                    .any(|words| said.contains(words));
                if is_gone { Ok(None) } else { Err(explain(&self.address, error)) }
            }
        }
    }

    /// The parts of a filter that is there, with the family of their commands. `wanted` is what the person believes.
    pub(super) fn parts(&mut self, name: &Name, wanted: Option<u32>) -> Result<Parts> {
        let key = name.key();
        let (parts, shards) = match (self.find(key)?, wanted) {
            (Found::Nothing, _) => return Err(self.missing(key)),
            (Found::Other(other), _) => return Err(self.no_filter(key, &other)),
            (Found::Filter(_), Some(_)) => {
                return Err(Advice::error(
                    format!("{key}: is one filter, not shards"),
                    "leave --shards out",
                ));
            }
            (Found::Shards(there), Some(wanted)) if there != wanted => {
                return Err(Advice::error(
                    format!("{key}: is in {there} shards, not in {wanted}"),
                    "leave --shards out: the server knows",
                ));
            }
            (Found::Shards(there), _) => (name.parts(Some(there)), Some(there)),
            (Found::Filter(family), None) => {
                return Ok(Parts { family, keys: vec![name.clone()], shards: None });
            }
        };
        let mut family = None;
        for part in &parts {
            match self.find(part.key())? {
                Found::Filter(found) if family.is_none_or(|family| family == found) => {
                    family = Some(found);
                }
                Found::Nothing => {
                    return Err(Advice::error(
                        format!("{}: is missing, a shard of {key}", part.key()),
                        "keys of this shard would be taken for absent; load the filter again with --replace",
                    ));
                }
                found => return Err(self.no_filter(part.key(), found.type_name())),
            }
        }
        let family = family.context("a filter has at least one shard")?;
        Ok(Parts { family, keys: parts, shards })
    }

    fn missing(&self, key: &str) -> anyhow::Error {
        Advice::error(
            format!("{key}: there is no such key on {}", self.address),
            "look at --key and at the number of the database at the end of --url",
        )
    }

    /// An error for a value that is no filter.
    pub(super) fn no_filter(&self, key: &str, found: &str) -> anyhow::Error {
        Advice::error(
            format!("{key}: is a {found}, not a filter"),
            "look at --key and at the number of the database at the end of --url",
        )
    }
}

/// Keys that a server looks at in one step of a scan: well below a millisecond.
const SCANNED: u32 = 1000;

/// The address of a primary, from a line of CLUSTER SLOTS: first slot, last slot, primary, replicas.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Node {
    host: String,
    port: u16,
}

impl FromRedisValue for Node {
    fn from_redis_value(value: Value) -> Result<Self, redis::ParsingError> {
        let line: Vec<Value> = redis::from_redis_value(value)?;
        let primary = line.into_iter().nth(2).unwrap_or(Value::Nil);
        let fields: Vec<Value> = redis::from_redis_value(primary)?;
        let mut fields = fields.into_iter();
        let mut next = || fields.next().unwrap_or(Value::Nil);
        Ok(Self { host: redis::from_redis_value(next())?, port: redis::from_redis_value(next())? })
    }
}

/// Names and values, as BF.INFO says them.
pub(super) struct Fields(Vec<(String, Value)>);

impl Fields {
    fn get<T: FromRedisValue>(&self, name: &str) -> Option<T> {
        let (_, value) = self.0.iter().find(|(field, _)| field == name)?;
        redis::from_redis_value(value.clone()).ok()
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.get(name)
    }

    pub(super) fn double(&self, name: &str) -> Option<f64> {
        self.get(name)
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.get(name)
    }
}

/// The keys of a filter that is there.
pub(super) struct Parts {
    pub(super) family: Family,
    pub(super) keys: Vec<Name>,
    pub(super) shards: Option<u32>,
}

impl Found {
    /// By the name that TYPE says.
    pub(super) fn of_type(name: &str) -> Self {
        match name {
            "none" => Self::Nothing,
            // RedisBloom's, ours, valkey-bloom's.
            "MBbloom--" | "ironbloom" | "bloomfltr" => Self::Filter(Family::Bloom),
            "MBbloomCF" | "ironcucko" => Self::Filter(Family::Cuckoo),
            other => Self::Other(other.to_owned()),
        }
    }

    fn type_name(&self) -> &str {
        match self {
            Self::Nothing => "missing key",
            Self::Filter(Family::Bloom) => "Bloom filter",
            Self::Filter(Family::Cuckoo) => "cuckoo filter",
            Self::Shards(_) => "filter in shards",
            Self::Other(name) => name,
        }
    }
}

/// Whether the server belongs to a cluster. Who may not know is told by redirections later, see [`explain`].
fn is_in_cluster(link: &mut Connection) -> Result<bool, RedisError> {
    match redis::cmd("INFO").arg("cluster").query::<String>(link) {
        Ok(info) => Ok(info.contains("cluster_enabled:1")),
        Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoPerm) => Ok(false),
        Err(error) => Err(error),
    }
}

/// A URL as it may be shown: without user and password.
pub(crate) fn without_password(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (host, query) = rest.split_once('?').map_or((rest, ""), |(host, _)| (host, "?…"));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let scheme = if scheme.is_empty() { String::new() } else { format!("{scheme}://") };
    format!("{scheme}{host}{query}")
}

/// What a server, or the way to it, said: as a message, and what to do about it.
fn explain(address: &str, error: RedisError) -> anyhow::Error {
    let said = error.clone().into_server_errors().and_then(|errors| errors.first().cloned());
    let (code, text) = match said {
        Some((_, said)) => (said.code().to_owned(), said.details().unwrap_or_default().to_owned()),
        None => (
            error.code().unwrap_or_default().to_owned(),
            error.detail().unwrap_or_default().to_owned(),
        ),
    };
    if error.is_io_error() {
        let what =
            if error.is_timeout() { "no answer in time".to_owned() } else { error.to_string() };
        return Advice::error(
            format!("{address}: {what}"),
            "is the server running, and is this its address? `redis-cli -u URL ping` should say PONG",
        );
    }
    let (message, hint) = match (error.kind(), code.as_str()) {
        (ErrorKind::AuthenticationFailed, _) | (_, "WRONGPASS" | "NOAUTH") => (
            "the server does not accept this user and password".to_owned(),
            "write them into the URL: redis://user:password@host:port, or redis://:password@host:port",
        ),
        (_, "NOPERM") => {
            (format!("not permitted: {text}"), "ask who looks after the server's ACLs")
        }
        (_, "MOVED" | "ASK") => (
            "the server belongs to a cluster, and this user may not ask it (INFO)".to_owned(),
            "permit it: ACL SETUSER … +info +cluster",
        ),
        (_, "READONLY") => {
            ("the server is a replica".to_owned(), "give the address of its primary")
        }
        (_, "OOM") => {
            ("the server has no memory left (maxmemory)".to_owned(), "see CONFIG GET maxmemory")
        }
        (_, "CROSSSLOT") => (
            "the key cannot be replaced in a cluster".to_owned(),
            "a name with a } and without a part in braces has no neighbours; choose another",
        ),
        _ if text.contains("memory limit of a key") => (
            "the filter is larger than a key may be".to_owned(),
            "raise CONFIG SET ironbloom.key-memory-limit, or cut it: give keys, with --lines and --shards",
        ),
        _ if text.starts_with("Insufficient memory") => {
            ("the server gets no memory for the filter".to_owned(), "see INFO memory")
        }
        _ if text.starts_with("unknown command") => (
            format!("the server does not know this command: {}", quoted(&text)),
            "load the module: redis-server --loadmodule libironbloom_redis.so (docs/redis.md)",
        ),
        _ if code.is_empty() => return anyhow::anyhow!("{address}: {error}"),
        _ => return anyhow::anyhow!("{address}: {code} {text}"),
    };
    Advice::error(format!("{address}: {message}"), hint)
}

/// The command in `unknown command 'BF.MEXISTS', with args …`: the arguments are keys, and there may be hundreds.
fn quoted(text: &str) -> &str {
    text.split(['\'', '`']).nth(1).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        for (url, shown) in [
            ("redis://127.0.0.1:6379/3", "redis://127.0.0.1:6379/3"),
            ("redis://:secret@host", "redis://host"),
            ("redis://user:sec@ret@host:1/2", "redis://host:1/2"),
            ("user:secret@host", "host"),
            ("unix:///run/redis.sock?pass=secret", "unix:///run/redis.sock?…"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }

    #[test]
    fn of_an_unknown_command_only_the_name_is_repeated() {
        assert_eq!(
            quoted("unknown command 'BF.MEXISTS', with args beginning with: 'k' "),
            "BF.MEXISTS"
        );
        assert_eq!(quoted("unknown command `BF.ADD`, with args"), "BF.ADD");
    }
}
