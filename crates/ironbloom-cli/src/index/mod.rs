//! `ironbloom index`: rows of big tables by any of their columns. One file per command, except that `change.rs` has
//! append, compact and drop.

mod build;
mod cell;
mod change;
mod csv;
mod find;
mod hive;
mod info;
mod names;
mod one_schema;
mod order;
mod paths;
mod place;
mod refresh;
mod resources;
mod show;
mod values;
mod verify;

use std::borrow::Borrow;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::{Args, Subcommand};
use ironbloom_index::{Error, Index, IndexLock, Location, change_index};

use crate::{Outcome, interrupt, output};

/// Find rows of Parquet and CSV tables by any of their columns
///
/// An index of about twelve bits per cell knows which blocks of rows may hold a value. Only these blocks are read and
/// compared, so the answers are exact.
///
/// Tables and indexes are files or objects in buckets: s3://bucket/key, gs://bucket/key, az://container/key, https://host/path,
/// file:///path. Credentials come from the environment (AWS_ACCESS_KEY_ID, AWS_REGION, AWS_ENDPOINT_URL, AZURE_STORAGE_…,
/// GOOGLE_APPLICATION_CREDENTIALS) or from the profile AWS_PROFILE. What is read of objects is kept in a cache
/// (IRONBLOOM_CACHE_DIR, ~/.cache/ironbloom by default) of at most IRONBLOOM_CACHE_BYTES (1 GiB by default, 0 for none). Requests
/// that fail are repeated for IRONBLOOM_RETRY_SECONDS (30 by default).
#[derive(Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  ironbloom index build events.parquet -o events.ibx
  ironbloom index find events.ibx 'user_id = 306047' \"country = 'SE'\" --select time,url
  ironbloom index find events.ibx 'user_id in (1, 2, 3)' --count --explain
  ironbloom index append events.ibx events-2.parquet"
)]
pub(crate) struct IndexArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Build(build::BuildArgs),
    Find(find::FindArgs),
    Append(change::AppendArgs),
    Compact(change::CompactArgs),
    Drop(change::DropArgs),
    Refresh(refresh::RefreshArgs),
    Info(info::InfoArgs),
    Verify(verify::VerifyArgs),
}

pub(crate) fn run(args: &IndexArgs) -> Result<Outcome> {
    match &args.command {
        Command::Build(args) => build::run(args),
        Command::Find(args) => find::run(args),
        Command::Append(args) => change::append(args),
        Command::Compact(args) => change::compact(args),
        Command::Drop(args) => change::drop(args),
        Command::Refresh(args) => refresh::run(args),
        Command::Info(args) => info::run(args),
        Command::Verify(args) => verify::run(args),
    }
}

/// The right to change an index. If Ctrl-C is pressed meanwhile, its lock file is removed.
struct Turn {
    /// `None` only once it is dropped.
    lock: Option<IndexLock>,
}

impl Turn {
    /// `None` if it is another process's turn.
    fn try_take(file: &Location) -> Result<Option<Self>, Error> {
        interrupt::while_locking(|locked| {
            let Some(lock) = IndexLock::try_acquire(file)? else { return Ok(None) };
            *locked = lock.lock_file().map(Path::to_owned);
            Ok(Some(Self { lock: Some(lock) }))
        })
    }

    /// Saves an index; if Ctrl-C is pressed meanwhile, the temporary file is removed.
    fn save(&self, index: &mut Index) -> Result<(), Error> {
        let lock: &IndexLock = self.borrow();
        match lock.location().as_file() {
            Some(path) => interrupt::while_writing(path, || lock.save(index)),
            None => lock.save(index),
        }
    }
}

impl Borrow<IndexLock> for Turn {
    fn borrow(&self) -> &IndexLock {
        self.lock.as_ref().expect("held until dropped")
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        interrupt::while_locking(|locked| {
            self.lock = None;
            *locked = None;
        });
    }
}

/// Changes an index as other writers have left it.
fn change(file: &Location, change: impl FnMut(&mut Index) -> Result<()>) -> Result<Index> {
    change_index(file, || lock(file), change, Turn::save)
}

/// Waits until no other process changes the index, and says so if that takes long.
fn lock(file: &Location) -> Result<Turn, Error> {
    const PATIENCE: Duration = Duration::from_secs(1);
    const PAUSE: Duration = Duration::from_millis(20);
    let mut patient_until = Some(Instant::now() + PATIENCE);
    loop {
        if let Some(turn) = Turn::try_take(file)? {
            return Ok(turn);
        }
        if patient_until.is_some_and(|end| Instant::now() > end) {
            patient_until = None;
            let waiting = "waiting for another process that is changing it";
            output::note(&format!("{}: {waiting}", file.display()));
        }
        std::thread::sleep(PAUSE);
    }
}
