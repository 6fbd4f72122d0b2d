//! Keys that were found nowhere, for as long as that is believed.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Keys remembered at most. If there are more, the oldest are forgotten, and asked for again.
const MOST: usize = 1 << 16;

/// Tells the time.
pub(super) type Clock = Box<dyn Fn() -> Instant + Send + Sync>;

pub(super) struct Negatives {
    ttl: Option<Duration>,
    clock: Clock,
    known: Mutex<Known>,
}

/// Every key once with the time at which it was last asked for; and in the order of those times, also outdated ones.
#[derive(Default)]
struct Known {
    asked: HashMap<Arc<[u8]>, Instant>,
    order: VecDeque<(Instant, Arc<[u8]>)>,
}

impl Negatives {
    /// Remembers nothing.
    pub(super) fn none() -> Self {
        Self { ttl: None, clock: Box::new(Instant::now), known: Mutex::default() }
    }

    pub(super) fn set_ttl(&mut self, ttl: Duration) {
        self.ttl = Some(ttl);
    }

    pub(super) fn set_clock(&mut self, clock: Clock) {
        self.clock = clock;
    }

    pub(super) fn are_kept(&self) -> bool {
        self.ttl.is_some()
    }

    pub(super) fn now(&self) -> Instant {
        (self.clock)()
    }

    /// Whether the key was found nowhere less than the time to live ago.
    pub(super) fn recall(&self, key: &[u8]) -> bool {
        let Some(ttl) = self.ttl else { return false };
        let now = self.now();
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.asked.get(key).is_some_and(|&asked| now.saturating_duration_since(asked) < ttl)
    }

    /// The key was found nowhere; the first question for it came after this moment.
    pub(super) fn remember(&self, key: &[u8], asked: Instant) {
        let Some(ttl) = self.ttl else { return };
        let now = self.now();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let key = Arc::<[u8]>::from(key);
        if known.asked.insert(key.clone(), asked) == Some(asked) {
            return; // its place in the order is the same
        }
        known.order.push_back((asked, key));
        while let Some((asked, _)) = known.order.front()
            && (known.order.len() > MOST || now.saturating_duration_since(*asked) >= ttl)
        {
            known.forget_oldest();
        }
    }
}

impl Known {
    fn forget_oldest(&mut self) {
        if let Some((asked, key)) = self.order.pop_front()
            && self.asked.get(&key) == Some(&asked)
        {
            self.asked.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_keys_are_remembered_than_allowed() {
        let mut negatives = Negatives::none();
        let start = Instant::now();
        negatives.set_ttl(Duration::from_secs(3600));
        negatives.set_clock(Box::new(move || start));
        for i in 0..MOST + 1000 {
            let asked = start + Duration::from_nanos(i as u64);
            negatives.remember(&i.to_le_bytes(), asked);
            negatives.remember(b"the same again", asked);
            negatives.remember(b"the same again", asked);
        }
        let known = negatives.known.lock().unwrap();
        assert!(known.asked.len() <= MOST && known.order.len() == MOST);
        drop(known);
        assert!(
            negatives.recall(&(MOST + 999).to_le_bytes()) && negatives.recall(b"the same again")
        );
        assert!(!negatives.recall(&0usize.to_le_bytes()));
    }
}
