//! Filters on their way to a server: first under temporary keys, renamed when complete.
//!
//! Clients that ask meanwhile see the old filter or none, never a part of the new one. On a server all keys are renamed in one
//! transaction, in a cluster one after the other. A temporary key is removed when something fails, and if this program is
//! killed the server forgets it after [`LIFETIME`].

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use ironbloom::any::AnyFilter;
use ironbloom::format::dump::Family;
use ironbloom::format::redis_chunks::{self, FIRST};
use redis::Cmd;

use super::explain::Lost;
use super::names::{LoadId, Name, ROUTE, ROUTE_FIELD, SHARDS_FIELD};
use super::server::{FilterInfo, Found, Server, family_command};
use crate::failure::Advice;
use crate::progress::Progress;

/// A server drops a filter after this time without a new chunk.
pub(super) const LIFETIME: Duration = Duration::from_secs(600);
/// How often the lifetime of shards that are there already is renewed.
const RENEWAL: Duration = Duration::from_secs(60);
/// Watched keys may change before a transaction; this is how often it is tried.
const TRIES: u32 = 3;

/// Fate of a filter that already has the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Existing {
    Keep,
    Replace,
}

/// Source and destination of a load.
pub(super) struct UploadTarget {
    pub(super) id: LoadId,
    pub(super) name: Name,
    pub(super) shards: Option<u32>,
    pub(super) existing: Existing,
}

pub(super) struct Upload<'s> {
    server: &'s mut Server,
    target: &'s UploadTarget,
    /// Value that was there when the upload began.
    before: Found,
    /// Filters under their temporary keys; the last one may be incomplete.
    pending: Vec<Pending>,
    renewed: Instant,
    progress: Progress,
    sent: u64,
}

struct Pending {
    key: Name,
    temporary: String,
    /// Known with the first chunk.
    family: Option<Family>,
}

impl<'s> Upload<'s> {
    /// Refuses what would be refused at the end.
    pub(super) fn new(server: &'s mut Server, target: &'s UploadTarget) -> Result<Self> {
        let name = &target.name;
        let before = server.find(name.key())?;
        match (&before, target.existing) {
            (Found::Nothing, _) | (Found::Filter(_) | Found::Shards(_), Existing::Replace) => {}
            (Found::Other(other), _) => return Err(server.no_filter(name.key(), other)),
            (Found::Filter(_) | Found::Shards(_), Existing::Keep) => {
                return Err(exists(name.key()));
            }
        }
        let (progress, renewed) = (Progress::new(None), Instant::now());
        Ok(Self { server, target, before, pending: Vec::new(), renewed, progress, sent: 0 })
    }

    /// The next filter: of the next shard, or the only one.
    pub(super) fn start_filter(&mut self) {
        let name = &self.target.name;
        let key = match self.target.shards {
            Some(shards) => name.shard(self.pending.len() as u32, shards),
            None => name.clone(),
        };
        let temporary = key.temporary(&self.target.id);
        self.pending.push(Pending { key, temporary, family: None });
    }

    /// The next chunk of the filter that was started last.
    pub(super) fn chunk(&mut self, family: Family, iterator: i64, bytes: &[u8]) -> Result<()> {
        let Some((last, others)) = self.pending.split_last_mut() else { return Ok(()) };
        last.family = Some(family);
        let mut commands = Vec::new();
        if iterator == FIRST {
            // It may be left over from a lost master.
            commands.push(unlink(&last.temporary));
        }
        let mut load = family_command(family, "LOADCHUNK", &last.temporary);
        load.arg(iterator).arg(bytes);
        commands.extend([load, expire(&last.temporary)]);
        if self.renewed.elapsed() > RENEWAL {
            commands.extend(others.iter().map(|other| expire(&other.temporary)));
            self.renewed = Instant::now();
        }
        self.server.ask_all(commands)?;
        self.sent += bytes.len() as u64;
        self.progress.update_bytes(self.sent);
        Ok(())
    }

    /// A whole filter.
    pub(super) fn filter(&mut self, filter: &AnyFilter, family: Family) -> Result<()> {
        self.start_filter();
        redis_chunks::for_each_chunk(filter, |iterator, bytes| {
            let sent = self.chunk(family, iterator, bytes);
            // Servers with another module mistake our announcement for a damaged header.
            sent.map_err(|error| match (iterator, crate::failure::hint(&error)) {
                (FIRST, None) if !error.is::<Lost>() => Advice::error(
                    format!("the server cannot hold a {} filter: {error}", filter.kind()),
                    "this needs the module of this version of Ironbloom, libironbloom_redis.so (docs/redis.md)",
                ),
                _ => error,
            })
        })
    }

    /// Bytes that were sent.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// Renames the filters to their keys. The receipt, if one is wanted, exists if and only if they have them.
    pub(super) fn publish(mut self, receipt: Option<&str>) -> Result<()> {
        self.require_whole()?;
        if self.server.is_cluster() {
            self.publish_in_turn()?
        } else {
            self.publish_at_once(receipt)?
        }
        self.pending.clear();
        Ok(())
    }

    /// Checks that no server has lost a chunk: in a cluster, a replica without it may have taken over.
    fn require_whole(&mut self) -> Result<()> {
        for Pending { key, temporary, family } in &self.pending {
            let Some(family) = *family else { continue };
            let words = match self.server.info(family, temporary.as_bytes(), None)? {
                Some(FilterInfo::Fields(_)) => continue,
                Some(FilterInfo::Loading(bytes)) => format!("is being loaded, {bytes}"),
                None => "is gone".to_owned(),
            };
            return Err(Advice::error(
                format!("{}: what was sent is not there: {temporary} {words}", key.key()),
                "was a server replaced meanwhile, or is maxmemory too low? then load it again",
            ));
        }
        Ok(())
    }

    fn publish_at_once(&mut self, receipt: Option<&str>) -> Result<()> {
        for _ in 0..TRIES {
            let mut watched: Vec<&str> =
                self.pending.iter().map(|one| one.temporary.as_str()).collect();
            let mut taken: Vec<&str> = Vec::new();
            if self.target.existing == Existing::Keep {
                taken.extend(self.pending.iter().map(|one| one.key.key()));
                taken.push(self.target.name.key());
            }
            watched.extend(&taken);
            self.server.ask::<()>(redis::cmd("WATCH").arg(&watched))?;
            let here: u64 =
                self.server.ask(redis::cmd("EXISTS").arg(&watched[..self.pending.len()]))?;
            if here < self.pending.len() as u64 {
                break;
            }
            for key in taken {
                if self.server.ask(redis::cmd("EXISTS").arg(key))? {
                    return Err(exists(key));
                }
            }
            if self.server.transact(self.renames(receipt))? {
                return Ok(());
            }
        }
        Err(anyhow!("{}: the server has removed what was sent", self.target.name.key()))
    }

    /// Builds the commands that give all filters their keys.
    fn renames(&self, receipt: Option<&str>) -> Vec<Cmd> {
        let UploadTarget { name, shards, .. } = self.target;
        let mut commands = Vec::new();
        for Pending { key, temporary, .. } in &self.pending {
            commands.push(persist(temporary));
            commands.push(rename("RENAME", temporary, key));
        }
        if let Some(shards) = *shards {
            commands.push(unlink(name.key()));
            commands.push(note(name.key(), shards));
        }
        commands.extend(self.left_over().iter().map(|part| unlink(part.key())));
        if let Some(receipt) = receipt {
            let mut set = redis::cmd("SET");
            set.arg(receipt).arg(1).arg("EX").arg(LIFETIME.as_secs());
            commands.push(set);
        }
        commands
    }

    /// Shard by shard, and their common key last.
    fn publish_in_turn(&mut self) -> Result<()> {
        let UploadTarget { name, shards, existing, id } = self.target;
        for Pending { key, temporary, .. } in &self.pending {
            // Before it has its name: a filter must not vanish under it.
            self.server.ask::<i64>(&persist(temporary))?;
            rename_as_wanted(self.server, temporary, key, *existing)?;
        }
        if let Some(shards) = *shards {
            let temporary = name.temporary(id);
            self.server.ask::<i64>(&note(&temporary, shards))?;
            rename_as_wanted(self.server, &temporary, name, *existing)?;
        }
        for part in self.left_over() {
            self.server.ask::<i64>(&unlink(part.key()))?;
        }
        Ok(())
    }

    /// Shards of the filter that is replaced.
    fn left_over(&self) -> Vec<Name> {
        match self.before {
            Found::Shards(old) if Some(old) != self.target.shards => {
                self.target.name.parts(Some(old))
            }
            _ => Vec::new(),
        }
    }
}

impl Drop for Upload<'_> {
    fn drop(&mut self) {
        for Pending { temporary, .. } in &self.pending {
            // Nothing left to say: what failed is reported, and the server forgets the key by itself.
            if self.server.ask::<i64>(&unlink(temporary)).is_err() {
                break;
            }
        }
    }
}

fn expire(key: &str) -> Cmd {
    let mut command = redis::cmd("EXPIRE");
    command.arg(key).arg(LIFETIME.as_secs());
    command
}

fn persist(key: &str) -> Cmd {
    let mut command = redis::cmd("PERSIST");
    command.arg(key);
    command
}

pub(super) fn unlink(key: &str) -> Cmd {
    let mut command = redis::cmd("UNLINK");
    command.arg(key);
    command
}

fn rename(command: &str, from: &str, to: &Name) -> Cmd {
    let mut command = redis::cmd(command);
    command.arg(from).arg(to.key());
    command
}

/// The hash that stands for a filter in shards.
fn note(key: &str, shards: u32) -> Cmd {
    let mut command = redis::cmd("HSET");
    command.arg(key).arg(SHARDS_FIELD).arg(shards).arg(ROUTE_FIELD).arg(ROUTE);
    command
}

fn rename_as_wanted(server: &mut Server, from: &str, to: &Name, existing: Existing) -> Result<()> {
    if existing == Existing::Replace {
        return server.ask::<()>(&rename("RENAME", from, to));
    }
    if server.ask::<bool>(&rename("RENAMENX", from, to))? {
        return Ok(());
    }
    let _ = server.ask::<i64>(&unlink(from));
    Err(exists(to.key()))
}

fn exists(key: &str) -> anyhow::Error {
    Advice::error(
        format!("{key}: this key exists already"),
        "--replace puts the new filter in its place",
    )
}
