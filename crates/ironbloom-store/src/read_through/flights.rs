//! Single flight: one caller loads a key, the others wait for what it has loaded.
//!
//! ```text
//!  first ──► lead ── loads ──► land(value) ──► all who wait have it
//!                        └──── dropped: error, panic, or a future that is no longer polled ──► all who wait try again
//! ```

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use event_listener::{Event, EventListener};

/// What a load has found.
pub(super) type Answer = Option<Vec<u8>>;

/// The loads in progress, by key.
#[derive(Default)]
pub(super) struct Flights(Mutex<HashMap<Vec<u8>, Arc<Flight>>>);

/// One load.
#[derive(Default)]
pub(super) struct Flight {
    /// Set when it is over; `None` if it failed.
    landed: OnceLock<Option<Answer>>,
    over: Event,
}

/// What a caller has to do.
pub(super) enum Boarding<'f> {
    Lead(Lead<'f>),
    Wait(Arc<Flight>),
}

/// The one that loads.
pub(super) struct Lead<'f> {
    flights: &'f Flights,
    key: Vec<u8>,
    flight: Arc<Flight>,
}

impl Flights {
    /// The first caller for a key leads; those that come before it lands wait.
    pub(super) fn board(&self, key: &[u8]) -> Boarding<'_> {
        let mut flights = self.locked();
        if let Some(flight) = flights.get(key) {
            return Boarding::Wait(flight.clone());
        }
        let flight = Arc::<Flight>::default();
        flights.insert(key.to_owned(), flight.clone());
        Boarding::Lead(Lead { flights: self, key: key.to_owned(), flight })
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Arc<Flight>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lead<'_> {
    /// The load has succeeded, and what it found is stored.
    pub(super) fn land(self, answer: Answer) {
        let _ = self.flight.landed.set(Some(answer));
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        self.flights.locked().remove(&self.key);
        let _ = self.flight.landed.set(None); // unless it has landed
        self.flight.over.notify(usize::MAX);
    }
}

impl Flight {
    /// What was loaded, `None` if that failed; or something to wait for.
    fn poll(&self) -> Result<Option<Answer>, EventListener> {
        if let Some(landed) = self.landed.get() {
            return Ok(landed.clone());
        }
        let over = self.over.listen();
        // It may have landed before the listener was there.
        self.landed.get().cloned().ok_or(over)
    }

    /// Waits for what was loaded. `None` if the load failed.
    pub(super) async fn landed(&self) -> Option<Answer> {
        loop {
            match self.poll() {
                Ok(landed) => return landed,
                Err(over) => over.await,
            }
        }
    }
}
