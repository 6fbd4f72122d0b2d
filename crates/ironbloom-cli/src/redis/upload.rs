//! Filters on their way to a server: under temporary keys first, renamed when all is there.
//!
//! Whoever asks meanwhile sees the old filter or none, never a part of the new one. A temporary key is removed when
//! something fails, and if this program is killed the server forgets it after [`LIFETIME`] seconds.

use anyhow::Result;
use ironbloom::any::AnyFilter;

use super::chunks::{self, FIRST};
use super::names::{Name, ROUTE, ROUTE_FIELD, SHARDS_FIELD};
use super::server::{Family, Found, Server};
use crate::failure::Advice;
use crate::progress::Progress;

/// Seconds after which a server forgets a filter of which no more chunks come.
const LIFETIME: u32 = 600;

/// What becomes of a filter that has the key already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Existing {
    Keep,
    Replace,
}

pub(super) struct Upload<'s> {
    server: &'s mut Server,
    name: Name,
    shards: Option<u32>,
    existing: Existing,
    /// What was there when the upload began.
    before: Found,
    /// Filters that are there under their temporary keys; the last one may be a part.
    pending: Vec<Pending>,
    progress: Progress,
    sent: u64,
}

struct Pending {
    key: Name,
    temporary: String,
}

impl<'s> Upload<'s> {
    /// Refuses what would be refused at the end.
    pub(super) fn new(
        server: &'s mut Server,
        name: &Name,
        shards: Option<u32>,
        existing: Existing,
    ) -> Result<Self> {
        let before = server.find(name.key())?;
        match (&before, existing) {
            (Found::Nothing, _) | (Found::Filter(_) | Found::Shards(_), Existing::Replace) => {}
            (Found::Other(other), _) => return Err(server.no_filter(name.key(), other)),
            (Found::Filter(_) | Found::Shards(_), Existing::Keep) => return Err(exists(name)),
        }
        let progress = Progress::new(None);
        let (name, pending) = (name.clone(), Vec::new());
        Ok(Self { server, name, shards, existing, before, pending, progress, sent: 0 })
    }

    /// The next filter: of the next shard, or the only one.
    pub(super) fn start_filter(&mut self) {
        let key = match self.shards {
            Some(shards) => self.name.shard(self.pending.len() as u32, shards),
            None => self.name.clone(),
        };
        let temporary = key.temporary();
        self.pending.push(Pending { key, temporary });
    }

    /// The next chunk of the filter that was started last.
    pub(super) fn chunk(&mut self, family: Family, iterator: i64, bytes: &[u8]) -> Result<()> {
        let Some(Pending { temporary, .. }) = self.pending.last() else { return Ok(()) };
        let mut load = family.command("LOADCHUNK", temporary);
        load.arg(iterator).arg(bytes);
        let mut keep = redis::cmd("EXPIRE");
        keep.arg(temporary).arg(LIFETIME);
        self.server.ask_all(vec![load, keep])?;
        self.sent += bytes.len() as u64;
        self.progress.update_bytes(self.sent);
        Ok(())
    }

    /// A whole filter.
    pub(super) fn filter(&mut self, filter: &AnyFilter, family: Family) -> Result<()> {
        self.start_filter();
        chunks::of_filter(filter, |iterator, bytes| {
            let sent = self.chunk(family, iterator, bytes);
            // Servers with another module take our announcement for a damaged header of theirs.
            sent.map_err(|error| match (iterator, crate::failure::hint(&error)) {
                (FIRST, None) => Advice::error(
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

    /// Gives the filters their keys, and the shards their common one last.
    pub(super) fn publish(mut self) -> Result<()> {
        for at in 0..self.pending.len() {
            let Pending { key, temporary } = &self.pending[at];
            // Before it has its name: a filter must not vanish under it.
            self.server.ask::<i64>(redis::cmd("PERSIST").arg(temporary))?;
            rename(self.server, temporary, key, self.existing)?;
        }
        if let Some(shards) = self.shards {
            let temporary = self.name.temporary();
            let mut note = redis::cmd("HSET");
            note.arg(&temporary).arg(SHARDS_FIELD).arg(shards).arg(ROUTE_FIELD).arg(ROUTE);
            self.server.ask::<i64>(&note)?;
            rename(self.server, &temporary, &self.name, self.existing)?;
        }
        if let Found::Shards(old) = self.before
            && Some(old) != self.shards
        {
            for part in self.name.parts(Some(old)) {
                self.server.ask::<i64>(redis::cmd("UNLINK").arg(part.key()))?;
            }
        }
        self.pending.clear();
        Ok(())
    }
}

impl Drop for Upload<'_> {
    fn drop(&mut self) {
        for Pending { temporary, .. } in &self.pending {
            // Nothing left to say: what failed is reported, and the server forgets the key by itself.
            let _ = self.server.ask::<i64>(redis::cmd("UNLINK").arg(temporary));
        }
    }
}

fn rename(server: &mut Server, from: &str, to: &Name, existing: Existing) -> Result<()> {
    if existing == Existing::Replace {
        return server.ask::<()>(redis::cmd("RENAME").arg(from).arg(to.key()));
    }
    if server.ask::<bool>(redis::cmd("RENAMENX").arg(from).arg(to.key()))? {
        return Ok(());
    }
    let _ = server.ask::<i64>(redis::cmd("UNLINK").arg(from));
    Err(exists(to))
}

fn exists(name: &Name) -> anyhow::Error {
    Advice::error(
        format!("{}: this key exists already", name.key()),
        "--replace puts the new filter in its place",
    )
}
