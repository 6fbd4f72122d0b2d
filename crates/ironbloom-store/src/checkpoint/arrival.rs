//! A filter that is read while the guard already answers, from the store. The same for both kinds of guard.

use std::sync::Arc;

use super::{ToLoad, Unusable};
use crate::events;
use crate::front::{Front, Next};
use crate::guard::Opened;

/// The filter of a checkpoint for which a place is reserved.
pub(crate) struct Arrival {
    checkpoint: ToLoad,
    next: Arc<Next>,
}

impl Arrival {
    /// Reserves the place: from now on puts are recorded.
    pub(crate) fn expect(front: &Front, checkpoint: ToLoad) -> Self {
        let next = Arc::new(Next::awaited(front.spec().kind));
        front.await_filter(next.clone());
        Self { checkpoint, next }
    }

    /// Reads the filter and installs it; how the guard was opened. If the files are damaged, there is no filter, or a
    /// window that starts empty.
    pub(crate) fn take_place(&self, front: &Front) -> Opened {
        match self.checkpoint.load() {
            Ok(loaded) => {
                front.arrive(&self.next, loaded.filter, loaded.dead);
                Opened::FromCheckpoint
            }
            Err(why) => self.fail(front, why),
        }
    }

    fn fail(&self, front: &Front, why: Unusable) -> Opened {
        events::checkpoint_unusable(&why);
        front.give_up(&self.next);
        Opened::WithoutCheckpoint(why)
    }

    /// Nobody can read it: there is no thread.
    pub(crate) fn cancel(&self, front: &Front) -> Opened {
        self.fail(front, Unusable::Damaged("there is no thread to read it".to_owned()))
    }
}
