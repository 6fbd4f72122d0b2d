//! A store that blocks is an asynchronous one whose futures are ready, so that a guard is written once for both.

use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use super::{AsyncBackend, Backend, Before, Failure, Visit};
use crate::generation::Generation;

/// Answers at once, blocking the thread.
pub(crate) struct Blocking<B>(pub(crate) B);

impl<B: Backend> AsyncBackend for Blocking<B> {
    type Error = B::Error;

    #[inline]
    async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, B::Error> {
        self.0.get(key)
    }

    async fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, B::Error> {
        self.0.get_many(keys)
    }

    async fn contains(&self, key: &[u8]) -> Result<bool, B::Error> {
        self.0.contains(key)
    }

    async fn put(&self, key: &[u8], value: &[u8]) -> Result<Before, B::Error> {
        self.0.put(key, value)
    }

    async fn put_many(&self, pairs: &[(&[u8], &[u8])]) -> Result<Vec<Before>, B::Error> {
        self.0.put_many(pairs)
    }

    async fn remove(&self, key: &[u8]) -> Result<Before, B::Error> {
        self.0.remove(key)
    }

    async fn remove_many(&self, keys: &[&[u8]]) -> Result<Vec<Before>, B::Error> {
        self.0.remove_many(keys)
    }

    async fn scan(&self, visit: Visit<'_>) -> Result<(), B::Error> {
        self.0.scan(&mut |key: &[u8]| -> ControlFlow<()> { visit(key) })
    }

    async fn len_hint(&self) -> Result<Option<u64>, B::Error> {
        self.0.len_hint()
    }

    async fn generation(&self) -> Result<Option<Generation>, B::Error> {
        self.0.generation()
    }

    async fn set_generation(&self, generation: Generation) -> Result<(), B::Error> {
        self.0.set_generation(generation)
    }

    async fn seal(&self, generation: Generation) -> Result<(), B::Error> {
        self.0.seal(generation)
    }

    async fn claim(&self, generation: Generation) -> Result<bool, B::Error> {
        self.0.claim(generation)
    }

    fn can_claim(&self) -> bool {
        self.0.can_claim()
    }

    fn was_exchanged(&self) -> bool {
        self.0.was_exchanged()
    }

    fn failure(&self, error: &B::Error) -> Failure {
        self.0.failure(error)
    }

    fn lands_within(&self) -> Option<Duration> {
        self.0.lands_within()
    }

    async fn sync(&self) -> Result<(), B::Error> {
        self.0.sync()
    }

    fn is_exclusive(&self) -> bool {
        self.0.is_exclusive()
    }
}

/// Wakes a thread that waits for a lock.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future to its end in this thread. One that never waits, which is the rule, costs nothing.
#[inline]
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    if let Poll::Ready(answer) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        return answer;
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(answer) = future.as_mut().poll(&mut context) {
            return answer;
        }
        std::thread::park();
    }
}
