//! A server or a cluster, and the commands it is sent.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use ironbloom::format::dump::Family;
use redis::cluster::{ClusterClient, ClusterConnection, cluster_pipe};
use redis::cluster_routing::{RoutingInfo, SingleNodeRoutingInfo};
use redis::{
    Client, Cmd, Connection, ConnectionAddr, ConnectionInfo, ErrorKind, FromRedisValue, RedisError,
    ServerErrorKind, Value,
};
use rustls::InvalidMessage;

use super::address::{Address, Endpoint};
use super::explain::{Lost, explain};
use super::names::{Name, ROUTE, ROUTE_FIELD, SHARDS_FIELD};
use super::sentinel::{Master, Sentinels};
use super::tls::{self, Tls};
use crate::failure::Advice;

/// How long a server may take to accept a connection.
pub(super) const PATIENCE_TO_CONNECT: Duration = Duration::from_secs(10);
/// How long to wait before checking whether it speaks TLS at all.
const PATIENCE_TO_BEGIN: Duration = Duration::from_secs(3);
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
    /// The host of the address, for servers that do not say their own.
    host: String,
    /// Which master this is, if Sentinels say so.
    master: Option<Master>,
}

/// Description of a filter by its server.
pub(super) enum FilterInfo {
    Fields(Fields),
    /// It is being loaded: the progress in the server's words.
    Loading(String),
}

impl FilterInfo {
    pub(super) fn fields(self) -> Option<Fields> {
        match self {
            Self::Fields(fields) => Some(fields),
            Self::Loading(_) => None,
        }
    }
}

/// A command of a family about a key.
pub(super) fn family_command(family: Family, name: &str, key: &str) -> Cmd {
    let mut command = redis::cmd(&format!("{}.{name}", family.prefix()));
    command.arg(key);
    command
}

/// Value under a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    Nothing,
    Filter(Family),
    /// The hash that stands for a filter in this many shards.
    Shards(u32),
    /// A value of another type, with its name.
    Other(String),
}

/// Name that Valkey 9 gives to a type that none of its modules has.
const UNKNOWN_TYPE: &str = "unknown type name";

impl Server {
    /// The server of an address, or the master that its Sentinels know: [`Lost`] if that is not a master, or not reachable.
    pub(super) fn connect(address: &Address) -> Result<Self> {
        match &address.endpoint {
            Endpoint::Server(info) => Self::open(info, address.tls.as_ref(), &address.shown),
            Endpoint::Sentinels(sentinels) => {
                Self::connect_to_master(sentinels, address.tls.as_ref())
            }
        }
    }

    fn open(info: &ConnectionInfo, tls: Option<&Tls>, shown: &str) -> Result<Self> {
        let explain = |error: RedisError| explain(shown, error);
        let mut one = connect(info, PATIENCE).map_err(explain)?;
        let link = if is_in_cluster(&mut one).map_err(explain)? {
            require_hosts(&mut one, shown)?;
            let mut builder = ClusterClient::builder([info.clone()])
                .connection_timeout(PATIENCE_TO_CONNECT)
                .response_timeout(PATIENCE);
            if let Some(tls) = tls {
                builder = tls.of_cluster(builder);
            }
            let client = builder.build().map_err(explain)?;
            Link::Cluster(Box::new(client.get_connection().map_err(explain)?))
        } else {
            Link::One(Box::new(one))
        };
        let host = match info.addr() {
            ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. } => host.clone(),
            _ => String::new(),
        };
        Ok(Self { link, address: shown.to_owned(), host, master: None })
    }

    fn connect_to_master(sentinels: &Sentinels, tls: Option<&Tls>) -> Result<Self> {
        let master = sentinels.master()?;
        let (host, port) = (master.host.clone(), master.port);
        let scheme = if tls.is_some() { "rediss" } else { "redis" };
        let shown = format!("{scheme}://{host}:{port} (master {:?})", sentinels.name);
        let to = match tls {
            Some(tls) => tls.address(host, port).map_err(|error| explain(&shown, error))?,
            None => ConnectionAddr::Tcp(host, port),
        };
        let mut server = Self::open(&sentinels.master.as_ref().clone().set_addr(to), tls, &shown)?;
        // Sentinels hear of a failover some seconds after it has begun, and one that was cut off does not.
        if !server.is_master()? {
            return Err(Lost::error(Advice::error(
                format!("{shown}: is a replica"),
                "the Sentinels are not done with a failover: try again later",
            )));
        }
        server.master = Some(master);
        Ok(server)
    }

    fn is_master(&mut self) -> Result<bool> {
        let Link::One(link) = &mut self.link else { return Ok(true) };
        match redis::cmd("ROLE").query::<Vec<Value>>(link) {
            Ok(role) => Ok(role.first() == Some(&Value::BulkString(b"master".to_vec()))),
            // Without permission to ask, the first command that writes will tell.
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoPerm) => Ok(true),
            Err(error) => Err(explain(&self.address, error)),
        }
    }

    /// Which master this is, if Sentinels say so.
    pub(super) fn master(&self) -> Option<&Master> {
        self.master.as_ref()
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    pub(super) fn is_cluster(&self) -> bool {
        matches!(self.link, Link::Cluster(_))
    }

    /// Commands that are executed together or, if a key that was watched has changed, not at all.
    pub(super) fn transact(&mut self, commands: Vec<Cmd>) -> Result<bool> {
        let Link::One(link) = &mut self.link else {
            return Err(anyhow!("a cluster has no transactions over several servers"));
        };
        let mut pipe = redis::pipe();
        pipe.atomic();
        for command in commands {
            pipe.add_command(command);
        }
        let done: Option<Vec<Value>> =
            pipe.query(link).map_err(|error| explain(&self.address, error))?;
        Ok(done.is_some())
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

    /// Value under a key.
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
        let found: Vec<Slots> = self.ask(redis::cmd("CLUSTER").arg("SLOTS"))?;
        let mut nodes: Vec<Node> = found.iter().map(|slots| slots.primary(&self.host)).collect();
        nodes.sort();
        nodes.dedup();
        let by_address = |Node { host, port }| SingleNodeRoutingInfo::ByAddress { host, port };
        Ok(nodes.into_iter().map(|node| Some(RoutingInfo::SingleNode(by_address(node)))).collect())
    }

    /// Passes on keys of this type, some of them perhaps twice, until no more are wanted.
    pub(super) fn scan(
        &mut self,
        kind: &str,
        pattern: &str,
        mut take: impl FnMut(Vec<u8>) -> bool,
    ) -> Result<()> {
        for primary in self.primaries()? {
            let mut cursor: Vec<u8> = b"0".to_vec();
            loop {
                let mut command = redis::cmd("SCAN");
                command.arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(SCANNED);
                command.arg("TYPE").arg(kind);
                let reply = self.ask_at(&command, primary.clone());
                // Newer servers know the types of the modules they have loaded, and refuse others.
                if reply.as_ref().is_err_and(|error| format!("{error:#}").contains(UNKNOWN_TYPE)) {
                    break;
                }
                let (next, keys): (Vec<u8>, Vec<Vec<u8>>) = reply?;
                for key in keys {
                    if !take(key) {
                        return Ok(());
                    }
                }
                if next == b"0" {
                    break;
                }
                cursor = next;
            }
        }
        Ok(())
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

    /// Asks BF.INFO or CF.INFO for this word; `None` if there is no such filter.
    pub(super) fn info(
        &mut self,
        family: Family,
        key: &[u8],
        word: Option<&str>,
    ) -> Result<Option<FilterInfo>> {
        let mut command = redis::cmd(&format!("{}.INFO", family.prefix()));
        command.arg(key).arg(word);
        let reply = match &mut self.link {
            Link::One(link) => command.query(link),
            Link::Cluster(link) => command.query(link),
        };
        match reply {
            Ok(reply) => Ok(Some(FilterInfo::Fields(Fields(reply)))),
            Err(error) => {
                let said = error.to_string();
                if let Some((_, bytes)) = said.split_once("still being loaded: ") {
                    return Ok(Some(FilterInfo::Loading(bytes.to_owned())));
                }
                // RedisBloom's words, with and without a code, and those for a key that has another type by now.
                let is_gone = ["not found", "WRONGTYPE", "does not exist"]
                    .iter()
                    .any(|words| said.contains(words));
                if is_gone { Ok(None) } else { Err(explain(&self.address, error)) }
            }
        }
    }

    /// The parts of an existing filter, with the family of their commands. `wanted` is the number that the user gave.
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

    /// An error for a value that is not a filter.
    pub(super) fn no_filter(&self, key: &str, found: &str) -> anyhow::Error {
        Advice::error(
            format!("{key}: is a {found}, not a filter"),
            "look at --key and at the number of the database at the end of --url",
        )
    }
}

/// Keys that a server looks at in one step of a scan: well below a millisecond.
const SCANNED: u32 = 1000;

/// The address of a primary.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Node {
    host: String,
    port: u16,
}

/// A line of CLUSTER SLOTS: first slot, last slot, primary, replicas. Of it the primary, whose host may be missing.
struct Slots {
    host: Option<String>,
    port: u16,
}

/// Address that a cluster's server reports when it should report its host name and has none.
const UNKNOWN_HOST: &str = "?";

impl Slots {
    /// A server that lacks a host name has that of the server that was asked.
    fn primary(&self, asked: &str) -> Node {
        let own = self.host.as_deref().filter(|host| !host.is_empty());
        Node { host: own.unwrap_or(asked).to_owned(), port: self.port }
    }
}

impl FromRedisValue for Slots {
    fn from_redis_value(value: Value) -> Result<Self, redis::ParsingError> {
        let line: Vec<Value> = redis::from_redis_value(value)?;
        let primary = line.into_iter().nth(2).unwrap_or(Value::Nil);
        let fields: Vec<Value> = redis::from_redis_value(primary)?;
        let mut fields = fields.into_iter();
        let mut next = || fields.next().unwrap_or(Value::Nil);
        Ok(Self { host: redis::from_redis_value(next())?, port: redis::from_redis_value(next())? })
    }
}

/// Refuses a cluster whose servers do not report usable addresses.
fn require_hosts(link: &mut Connection, shown: &str) -> Result<()> {
    // A missing permission is reported by the client.
    let found: Vec<Slots> = redis::cmd("CLUSTER").arg("SLOTS").query(link).unwrap_or_default();
    if found.iter().any(|slots| slots.host.as_deref() == Some(UNKNOWN_HOST)) {
        return Err(Advice::error(
            format!("{shown}: the servers of this cluster do not say how they are called"),
            "give each a cluster-announce-hostname, or set cluster-preferred-endpoint-type to ip",
        ));
    }
    Ok(())
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

/// The keys of an existing filter.
pub(super) struct Parts {
    pub(super) family: Family,
    pub(super) keys: Vec<Name>,
    pub(super) shards: Option<u32>,
}

impl Found {
    /// By the name that TYPE returns.
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

/// A connection to a server that may take this long to answer.
pub(super) fn connect(info: &ConnectionInfo, patience: Duration) -> Result<Connection, RedisError> {
    let client = Client::open(info.clone())?;
    let link = match client.get_connection_with_timeout(PATIENCE_TO_BEGIN) {
        // One without TLS waits for the end of a line, which the first message of TLS does not have.
        Err(error) if error.is_timeout() && tls::is_plain(info.addr()) => {
            return Err(rustls::Error::from(InvalidMessage::InvalidContentType).into());
        }
        Err(error) if error.is_timeout() => {
            client.get_connection_with_timeout(PATIENCE_TO_CONNECT)?
        }
        link => link?,
    };
    link.set_read_timeout(Some(patience))?;
    link.set_write_timeout(Some(patience))?;
    Ok(link)
}

/// Returns true if the server belongs to a cluster. Without permission to ask, redirections tell later, see [`explain`].
fn is_in_cluster(link: &mut Connection) -> Result<bool, RedisError> {
    match redis::cmd("INFO").arg("cluster").query::<String>(link) {
        Ok(info) => Ok(info.contains("cluster_enabled:1")),
        Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoPerm) => Ok(false),
        Err(error) => Err(error),
    }
}
