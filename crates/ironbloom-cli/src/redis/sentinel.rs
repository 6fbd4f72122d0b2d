//! Sentinels: they watch a master and its replicas, and say which server is the master now.
//!
//! All Sentinels that the address names are asked, not the first that answers: one that was cut off from the others does
//! not know of a failover. The answer with the highest epoch is the newest.

use std::collections::HashMap;

use anyhow::Result;
use redis::{ConnectionInfo, ErrorKind, RedisError};

use super::explain::{explain, quoted, server_error};
use super::server::{PATIENCE_TO_CONNECT, connect};
use crate::failure::Advice;

pub(super) struct Sentinels {
    /// Name that they give to the master.
    pub(super) name: String,
    pub(super) nodes: Vec<ConnectionInfo>,
    /// User, password and database of the master; its address is not known yet.
    pub(super) master: Box<ConnectionInfo>,
}

/// The address of the master.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Master {
    pub(super) host: String,
    pub(super) port: u16,
    /// Of the failover that made it the master.
    epoch: u64,
}

impl Master {
    /// Returns true if both are the same server.
    pub(super) fn is_at(&self, other: &Self) -> bool {
        (&self.host, self.port) == (&other.host, other.port)
    }
}

/// The replicas of a master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Replicas {
    pub(super) known: usize,
    /// Those of them that run and are connected to the master.
    pub(super) healthy: usize,
}

type Fields = HashMap<String, String>;

impl Sentinels {
    /// The master, by the newest answer.
    pub(super) fn master(&self) -> Result<Master> {
        Ok(self.newest()?.0)
    }

    /// The replicas of the master, by the Sentinel that has the newest answer.
    pub(super) fn replicas(&self) -> Result<Replicas> {
        let (_, node) = self.newest()?;
        let found: Vec<Fields> =
            ask(node, "REPLICAS", Some(&self.name)).map_err(|error| self.explain(node, error))?;
        let is_healthy = |replica: &&Fields| {
            let flags = replica.get("flags").map_or("", String::as_str);
            let link = replica.get("master-link-status").map_or("", String::as_str);
            !flags.contains("down") && !flags.contains("disconnected") && link == "ok"
        };
        Ok(Replicas { known: found.len(), healthy: found.iter().filter(is_healthy).count() })
    }

    fn newest(&self) -> Result<(Master, &ConnectionInfo)> {
        let (mut newest, mut failure): (Option<(Master, &ConnectionInfo)>, Option<anyhow::Error>) =
            (None, None);
        for node in &self.nodes {
            match ask::<Fields>(node, "MASTER", Some(&self.name)) {
                Ok(fields) => {
                    let Some(master) = master_of(&fields) else { continue };
                    if newest.as_ref().is_none_or(|(known, _)| known.epoch < master.epoch) {
                        newest = Some((master, node));
                    }
                }
                Err(error) => {
                    failure.get_or_insert_with(|| self.explain(node, error));
                }
            }
        }
        newest.ok_or_else(|| {
            failure.unwrap_or_else(|| {
                anyhow::anyhow!("the Sentinels do not say where {:?} is", self.name)
            })
        })
    }

    /// Answer of a Sentinel, or error on the way to it.
    fn explain(&self, node: &ConnectionInfo, error: RedisError) -> anyhow::Error {
        let address = format!("Sentinel {}", node.addr());
        let (code, text) = server_error(&error);
        match (error.kind(), code.as_str()) {
            (ErrorKind::AuthenticationFailed, _) | (_, "NOAUTH" | "WRONGPASS") => Advice::error(
                format!("{address}: does not accept this user and password"),
                "a Sentinel has its own: redis+sentinel://…/NAME?sentinel_user=…&sentinel_password=…",
            ),
            _ if text.starts_with("No such master") => Advice::error(
                format!("{address}: knows no master {:?}", self.name),
                match ask::<Vec<Fields>>(node, "MASTERS", None).unwrap_or_default().as_slice() {
                    [] => "see SENTINEL MASTERS".to_owned(),
                    masters => {
                        let names: Vec<_> =
                            masters.iter().filter_map(|one| one.get("name")).cloned().collect();
                        format!("it knows {}", names.join(", "))
                    }
                },
            ),
            _ if text.starts_with("unknown command")
                && quoted(&text).eq_ignore_ascii_case("sentinel") =>
            {
                Advice::error(
                    format!("{address}: is a server, not a Sentinel"),
                    "a Sentinel has a port of its own, usually 26379; a server is redis://host:port",
                )
            }
            _ => explain(&address, error),
        }
    }
}

fn ask<T: redis::FromRedisValue>(
    node: &ConnectionInfo,
    what: &str,
    name: Option<&str>,
) -> Result<T, RedisError> {
    let mut link = connect(node, PATIENCE_TO_CONNECT)?;
    redis::cmd("SENTINEL").arg(what).arg(name).query(&mut link)
}

fn master_of(fields: &Fields) -> Option<Master> {
    let number = |name: &str| fields.get(name)?.parse::<u64>().ok();
    let port = u16::try_from(number("port")?).ok()?;
    Some(Master {
        host: fields.get("ip")?.clone(),
        port,
        epoch: number("config-epoch").unwrap_or(0),
    })
}
