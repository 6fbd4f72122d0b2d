//! A pool of connections that threads take and give back.

use std::sync::{Mutex, PoisonError};

/// Idle connections. There are as many as were ever in use at the same time.
#[derive(Debug)]
pub(super) struct Pool<C>(Mutex<Vec<C>>);

impl<C> Pool<C> {
    pub(super) fn new(first: C) -> Self {
        Self(Mutex::new(vec![first]))
    }

    /// Uses an idle connection, or a new one. One that has failed is not used again, since its state is unknown.
    pub(super) fn with<T, E>(
        &self,
        connect: impl FnOnce() -> Result<C, E>,
        ask: impl FnOnce(&mut C) -> Result<T, E>,
    ) -> Result<T, E> {
        let idle = self.0.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut connection = idle.map_or_else(connect, Ok)?;
        let answer = ask(&mut connection)?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        Ok(answer)
    }
}
