//! An embedded store: one file of the `redb` crate, a B-tree that survives crashes.
//!
//! The generation is in its own table, written by its own transaction that is on disk before the next write. The file
//! is locked while it is open, and a write through [`Redb`] without a guard removes the generation in the same
//! transaction, so a checkpoint of its generation is proof. The exception is changing the table `keys` with the `redb`
//! crate itself.

use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use redb::{Database, ReadableDatabase, ReadableTable, ReadableTableMetadata, TableDefinition};

use super::seal::Seal;
use crate::backend::{Backend, Before};
use crate::generation::Generation;

const KEYS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("keys");
const NOTES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("ironbloom");
const GENERATION: &str = "generation";

/// A `redb` file.
#[derive(Debug)]
pub struct Redb {
    database: Database,
    path: PathBuf,
    /// Changed within transactions that write, of which there is one at a time.
    seal: Seal,
}

/// An error, with the file it concerns.
#[derive(Debug)]
pub struct RedbError {
    /// The file.
    pub path: PathBuf,
    /// What went wrong.
    pub error: Box<redb::Error>,
}

impl fmt::Display for RedbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.error)
    }
}

impl std::error::Error for RedbError {}

impl Redb {
    /// Opens a file, or creates one.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, RedbError> {
        Self::build(redb::Builder::new(), path.as_ref())
    }

    /// Opens a file, or creates one, with this many bytes of memory for its page cache.
    pub fn with_cache(path: impl AsRef<Path>, bytes: usize) -> Result<Self, RedbError> {
        let mut builder = redb::Builder::new();
        builder.set_cache_size(bytes);
        Self::build(builder, path.as_ref())
    }

    fn build(builder: redb::Builder, path: &Path) -> Result<Self, RedbError> {
        let opened = || -> Result<Database, redb::Error> {
            if !path.exists() {
                make(path)?;
            }
            let database = builder.open(path)?;
            make_tables(&database)?;
            Ok(database)
        };
        let path = path.to_owned();
        match opened() {
            Ok(database) => Ok(Self { database, path, seal: Seal::new() }),
            Err(error) => Err(RedbError { path, error: Box::new(error) }),
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The database, for its other tables. Keys that are written to the table `keys` must be
    /// [noted](crate::Guard::note), and changing it while no guard is open makes the next guard trust an outdated
    /// checkpoint: use [`put`](Backend::put) and [`remove`](Backend::remove) for that.
    pub fn database(&self) -> &Database {
        &self.database
    }

    fn named<T>(&self, result: Result<T, redb::Error>) -> Result<T, RedbError> {
        result.map_err(|error| RedbError { path: self.path.clone(), error: Box::new(error) })
    }

    fn read<T>(
        &self,
        ask: impl FnOnce(redb::ReadOnlyTable<&'static [u8], &'static [u8]>) -> Result<T, redb::Error>,
    ) -> Result<T, RedbError> {
        let answer =
            || -> Result<T, redb::Error> { ask(self.database.begin_read()?.open_table(KEYS)?) };
        self.named(answer())
    }

    fn write<T>(
        &self,
        change: impl FnOnce(
            &mut redb::Table<'_, &'static [u8], &'static [u8]>,
        ) -> Result<T, redb::Error>,
    ) -> Result<T, RedbError> {
        let changed = || -> Result<T, redb::Error> {
            let transaction = self.database.begin_write()?;
            let sealed = self.seal.is_whole();
            if sealed {
                transaction.open_table(NOTES)?.remove(GENERATION)?;
            }
            let answer = change(&mut transaction.open_table(KEYS)?)?;
            self.commit(transaction, if sealed { Some(false) } else { None })?;
            Ok(answer)
        };
        self.named(changed())
    }

    /// Commits, and seals the store or breaks its seal. A store whose transaction was not committed counts as sealed,
    /// which is always safe.
    fn commit(
        &self,
        transaction: redb::WriteTransaction,
        seal: Option<bool>,
    ) -> Result<(), redb::Error> {
        if let Some(whole) = seal {
            self.seal.set(whole);
        }
        transaction.commit().inspect_err(|_| {
            if seal.is_some() {
                self.seal.set(true);
            }
        })?;
        Ok(())
    }

    fn keep(&self, generation: Generation, sealed: bool) -> Result<(), RedbError> {
        let kept = || -> Result<(), redb::Error> {
            let transaction = self.database.begin_write()?;
            transaction.open_table(NOTES)?.insert(GENERATION, &generation.to_bytes()[..])?;
            self.commit(transaction, Some(sealed))
        };
        self.named(kept())
    }
}

/// Creates a file under another name and renames it when it is complete: a process killed while `redb` creates a file
/// leaves one that nobody can open.
fn make(path: &Path) -> Result<(), redb::Error> {
    let temporary = ironbloom::format::native::temporary_path(path);
    let _ = std::fs::remove_file(&temporary);
    make_tables(&Database::create(&temporary)?)?;
    // A link, because a rename would replace what another process has created meanwhile.
    let linked = std::fs::hard_link(&temporary, path);
    std::fs::remove_file(&temporary)?;
    match linked {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error.into()),
        _ => Ok(()),
    }
}

/// Creates the tables for readers. A file that has them is not changed.
fn make_tables(database: &Database) -> Result<(), redb::Error> {
    let missing = {
        let transaction = database.begin_read()?;
        transaction.open_table(KEYS).is_err() || transaction.open_table(NOTES).is_err()
    };
    if missing {
        let transaction = database.begin_write()?;
        transaction.open_table(KEYS)?;
        transaction.open_table(NOTES)?;
        transaction.commit()?;
    }
    Ok(())
}

impl Backend for Redb {
    type Error = RedbError;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, RedbError> {
        self.read(|table| Ok(table.get(key)?.map(|value| value.value().to_vec())))
    }

    /// In one transaction: a consistent snapshot.
    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, RedbError> {
        self.read(|table| {
            let value = |key: &&[u8]| Ok(table.get(*key)?.map(|value| value.value().to_vec()));
            keys.iter().map(value).collect()
        })
    }

    fn contains(&self, key: &[u8]) -> Result<bool, RedbError> {
        self.read(|table| Ok(table.get(key)?.is_some()))
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<Before, RedbError> {
        self.write(|table| Ok(Before::stored(table.insert(key, value)?.is_some())))
    }

    /// In one transaction: all or none.
    fn put_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<Vec<Before>, RedbError> {
        self.write(|table| {
            let put = |(key, value): &(&[u8], &[u8])| {
                Ok(Before::stored(table.insert(*key, *value)?.is_some()))
            };
            pairs.iter().map(put).collect()
        })
    }

    fn remove(&self, key: &[u8]) -> Result<Before, RedbError> {
        self.write(|table| Ok(Before::stored(table.remove(key)?.is_some())))
    }

    /// In one transaction: all or none.
    fn remove_many(&self, keys: &[&[u8]]) -> Result<Vec<Before>, RedbError> {
        self.write(|table| {
            keys.iter().map(|key| Ok(Before::stored(table.remove(*key)?.is_some()))).collect()
        })
    }

    fn scan(&self, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), RedbError> {
        self.read(|table| {
            for entry in table.iter()? {
                if visit(entry?.0.value()).is_break() {
                    break;
                }
            }
            Ok(())
        })
    }

    fn len_hint(&self) -> Result<Option<u64>, RedbError> {
        self.read(|table| Ok(Some(table.len()?)))
    }

    fn generation(&self) -> Result<Option<Generation>, RedbError> {
        let kept = || -> Result<Option<Generation>, redb::Error> {
            let table = self.database.begin_read()?.open_table(NOTES)?;
            Ok(table.get(GENERATION)?.and_then(|kept| Generation::from_bytes(kept.value())))
        };
        self.named(kept())
    }

    fn set_generation(&self, generation: Generation) -> Result<(), RedbError> {
        self.keep(generation, false)
    }

    fn seal(&self, generation: Generation) -> Result<(), RedbError> {
        self.keep(generation, true)
    }

    /// A failed transaction is not carried out later.
    fn lands_within(&self) -> Option<Duration> {
        Some(Duration::ZERO)
    }

    fn is_exclusive(&self) -> bool {
        true
    }
}
