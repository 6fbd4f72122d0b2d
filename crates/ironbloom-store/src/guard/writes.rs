//! Puts and removes: the filter first and then the store, or the other way round, and what an answer means.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::core::{Asked, Core, Result};
use crate::backend::{AsyncBackend, Before, Failure};
use crate::error::Error;
use crate::events;
use crate::front::{Pending, Removing};

/// Number of writes between two checks whether the filter should be rebuilt.
const LOOK_EVERY: u64 = 64;
/// How often a write is tried while others exchange the store.
const MAX_ATTEMPTS: u32 = 8;

impl<B: AsyncBackend> Core<B> {
    /// Stores a value; see [`Guard::put`](crate::Guard::put).
    pub(crate) async fn put(self: &Arc<Self>, key: &[u8], value: &[u8]) -> Result<Before, B> {
        self.ensure_outside()?;
        let hash = self.front.hash(key);
        let _held = self.locks.lock(hash).await;
        let write = || async { self.backend.put(key, value).await.map(|before| [before]) };
        let [before] = self.put_all(&[hash], write).await?;
        Ok(before)
    }

    pub(super) async fn put_many(
        self: &Arc<Self>,
        pairs: &[(&[u8], &[u8])],
    ) -> Result<Vec<Before>, B> {
        self.ensure_outside()?;
        let hashes: Vec<u64> = pairs.iter().map(|(key, _)| self.front.hash(key)).collect();
        let _held = self.locks.lock_many(&hashes).await;
        self.put_all(&hashes, || self.backend.put_many(pairs)).await
    }

    /// The caller holds the locks. Each put is pending until the store has answered, however this ends.
    async fn put_all<T: AsRef<[Before]>, F>(
        self: &Arc<Self>,
        hashes: &[u64],
        write: impl Fn() -> F,
    ) -> Result<T, B>
    where
        F: Future<Output = std::result::Result<T, B::Error>>,
    {
        let _asked = Asked(self);
        let mut attempts = 0;
        let _asked = Asked(self);
        loop {
            let names = self.names.load(Ordering::Acquire);
            let mut pending = Vec::with_capacity(hashes.len());
            for &hash in hashes {
                pending.push(self.begin_put(hash).await?);
            }
            let error = match self.asked(write()).await {
                Ok(answers) => {
                    let ended = pending.into_iter().zip(answers.as_ref());
                    let foreign =
                        ended.fold(false, |foreign, (put, &before)| put.end(before) | foreign);
                    self.after_writes(hashes.len() as u64, foreign).await;
                    return Ok(answers);
                }
                Err(error) => error,
            };
            attempts += 1;
            match self.backend.failure(&error) {
                Failure::Unknown => drop(pending), // in doubt
                Failure::NotDone => pending.into_iter().for_each(Pending::cancel),
                Failure::OtherState => {
                    pending.into_iter().for_each(Pending::cancel);
                    self.was_exchanged(names).await;
                    if attempts < MAX_ATTEMPTS {
                        continue;
                    }
                }
            }
            self.after_writes(hashes.len() as u64, false).await;
            return Err(Error::Store(error));
        }
    }

    /// Removes a key; see [`Guard::remove`](crate::Guard::remove).
    pub(super) async fn remove(self: &Arc<Self>, key: &[u8]) -> Result<Before, B> {
        Ok(self.remove_many(&[key]).await?[0])
    }

    pub(super) async fn remove_many<K: AsRef<[u8]>>(
        self: &Arc<Self>,
        keys: &[K],
    ) -> Result<Vec<Before>, B> {
        self.ensure_outside()?;
        let hashes: Vec<u64> = keys.iter().map(|key| self.front.hash(key.as_ref())).collect();
        let _held = self.locks.lock_many(&hashes).await;
        let _asked = Asked(self);
        let mut answers = vec![Before::Absent; keys.len()];
        let mut attempts = 0;
        let _asked = Asked(self);
        loop {
            let asked = self.front.may_be_removed(&hashes);
            if asked.is_empty() {
                return Ok(answers);
            }
            let names = self.names.load(Ordering::Acquire);
            let mut removing = Vec::with_capacity(asked.len());
            for &i in &asked {
                removing.push(self.begin_remove(hashes[i]).await?);
            }
            let texts: Vec<&[u8]> = asked.iter().map(|&i| keys[i].as_ref()).collect();
            let error = match self.asked(self.backend.remove_many(&texts)).await {
                Ok(removed) => {
                    for ((&i, removing), before) in asked.iter().zip(removing).zip(removed) {
                        answers[i] = before;
                        self.front.end_remove(hashes[i], removing, before);
                    }
                    self.after_writes(asked.len() as u64, false).await;
                    return Ok(answers);
                }
                Err(error) => error,
            };
            attempts += 1;
            if self.backend.failure(&error) == Failure::OtherState {
                self.was_exchanged(names).await;
                if attempts < MAX_ATTEMPTS {
                    continue;
                }
            }
            return Err(Error::Store(error));
        }
    }

    /// Someone else has stored this key.
    pub(crate) async fn note(self: &Arc<Self>, key: &[u8]) -> Result<(), B> {
        self.ensure_outside()?;
        let hash = self.front.hash(key);
        let _held = self.locks.lock(hash).await;
        while !self.front.note(hash) {
            self.new_generation().await?;
        }
        if let Some(publisher) = &self.publisher {
            publisher.changed(1);
        }
        Ok(())
    }

    /// Someone else has removed this key.
    pub(crate) fn note_removed(self: &Arc<Self>, key: &[u8]) {
        self.front.note_removed(self.front.hash(key));
        self.count_writes(1, false);
    }

    /// A put begins, in a generation that no checkpoint has. The caller holds the lock of its key.
    async fn begin_put(&self, hash: u64) -> Result<Pending<'_>, B> {
        loop {
            if let Some(pending) = self.front.begin_put(hash) {
                return Ok(pending);
            }
            self.new_generation().await?;
        }
    }

    /// The same for a remove.
    async fn begin_remove(&self, hash: u64) -> Result<Removing, B> {
        loop {
            if let Some(removing) = self.front.begin_remove(hash) {
                return Ok(removing);
            }
            self.new_generation().await?;
        }
    }

    /// Checks from time to time whether the filter should be rebuilt; immediately if others have written to the store.
    async fn after_writes(self: &Arc<Self>, count: u64, foreign: bool) {
        if foreign {
            self.found_foreign().await;
        }
        self.count_writes(count, foreign);
    }

    fn count_writes(self: &Arc<Self>, count: u64, foreign: bool) {
        if let Some(publisher) = &self.publisher {
            publisher.changed(count);
        }
        let before = self.writes.fetch_add(count, Ordering::Relaxed);
        let lost = foreign || self.front.lacks_filter();
        if lost || before / LOOK_EVERY != (before + count) / LOOK_EVERY {
            self.rebuild_if_allowed();
        }
    }

    /// Others have written to the store.
    pub(super) async fn found_foreign(self: &Arc<Self>) {
        self.front.distrust();
        events::foreign_row();
        // A checkpoint being written does not know about them either. If the store fails now, the next write fails as
        // well, or sets a new generation.
        let _ = self.new_generation().await;
        self.rebuild_if_allowed();
    }

    /// The store is in another state than the filter describes. `names` is how often it had been given a generation
    /// when it was asked: if it was given another one since, that is why it has refused.
    async fn was_exchanged(self: &Arc<Self>, names: u64) {
        let _naming = self.naming.lock().await;
        if self.names.load(Ordering::Acquire) == names {
            self.lose_state();
            self.rebuild_if_allowed();
        }
    }

    /// The same, and builds the filter again.
    pub(super) fn check_state(self: &Arc<Self>) {
        if self.notice_exchange() {
            self.rebuild_if_allowed();
        }
    }

    /// Asks the store's handle whether the store was exchanged, which costs nothing.
    pub(super) fn notice_exchange(&self) -> bool {
        let exchanged = self.front.is_alone() && self.backend.was_exchanged();
        if exchanged {
            self.lose_state();
        }
        exchanged
    }

    fn lose_state(&self) {
        self.front.lose_state();
        events::exchanged();
    }
}
