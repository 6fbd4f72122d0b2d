//! An in-memory store for tests and examples: it behaves like any store, but is fast.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

use crate::backend::{Backend, Before};
use crate::generation::Generation;

/// An in-memory store. Clones share the same store, which outlives the guard that owns one of them.
#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<RwLock<Contents>>);

#[derive(Debug, Default)]
struct Contents {
    keys: BTreeMap<Vec<u8>, Vec<u8>>,
    generation: Option<Generation>,
    /// Whether the generation is that of a checkpoint: see `seal.rs`.
    sealed: bool,
}

impl Contents {
    fn about_to_change(&mut self) -> &mut BTreeMap<Vec<u8>, Vec<u8>> {
        if std::mem::take(&mut self.sealed) {
            self.generation = None;
        }
        &mut self.keys
    }
}

/// Number of keys that a scan reads under one lock.
const PAGE: usize = 1024;

impl Memory {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.read().keys.len()
    }

    /// True if there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn read(&self) -> RwLockReadGuard<'_, Contents> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Contents> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Backend for Memory {
    type Error = Infallible;

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Infallible> {
        Ok(self.read().keys.get(key).cloned())
    }

    fn put(&self, key: &[u8], value: &[u8]) -> Result<Before, Infallible> {
        let replaced = self.write().about_to_change().insert(key.to_owned(), value.to_owned());
        Ok(Before::stored(replaced.is_some()))
    }

    fn remove(&self, key: &[u8]) -> Result<Before, Infallible> {
        Ok(Before::stored(self.write().about_to_change().remove(key).is_some()))
    }

    /// A page at a time, so that writers can get in between, as in a store without snapshots.
    fn scan(&self, visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), Infallible> {
        let mut after = Bound::Unbounded;
        loop {
            let contents = self.read();
            let page = contents.keys.range((after, Bound::Unbounded)).take(PAGE);
            let page: Vec<Vec<u8>> = page.map(|(key, _)| key.clone()).collect();
            drop(contents);
            let Some(last) = page.last().cloned() else { return Ok(()) };
            if page.iter().try_for_each(|key| visit(key)).is_break() {
                return Ok(());
            }
            after = Bound::Excluded(last);
        }
    }

    fn len_hint(&self) -> Result<Option<u64>, Infallible> {
        Ok(Some(self.len() as u64))
    }

    fn generation(&self) -> Result<Option<Generation>, Infallible> {
        Ok(self.read().generation)
    }

    fn set_generation(&self, generation: Generation) -> Result<(), Infallible> {
        let mut contents = self.write();
        (contents.generation, contents.sealed) = (Some(generation), false);
        Ok(())
    }

    fn seal(&self, generation: Generation) -> Result<(), Infallible> {
        let mut contents = self.write();
        (contents.generation, contents.sealed) = (Some(generation), true);
        Ok(())
    }

    /// It never fails.
    fn lands_within(&self) -> Option<Duration> {
        Some(Duration::ZERO)
    }

    /// Anyone with a clone can write to it.
    fn is_exclusive(&self) -> bool {
        false
    }
}
