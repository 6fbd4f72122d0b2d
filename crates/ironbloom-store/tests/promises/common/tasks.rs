//! A blocking store, asked asynchronously. Benchmarks use it, too.

use std::ops::ControlFlow;

use ironbloom_store::{AsyncBackend, Backend, Before, Failure, Generation, Visit};

/// Answers at once, blocking.
#[derive(Clone, Default)]
pub(crate) struct Tasks<B>(pub(crate) B);

impl<B: Backend> AsyncBackend for Tasks<B> {
    type Error = B::Error;

    async fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, B::Error> {
        self.0.get(key)
    }

    async fn put(&self, key: &[u8], value: &[u8]) -> Result<Before, B::Error> {
        self.0.put(key, value)
    }

    async fn remove(&self, key: &[u8]) -> Result<Before, B::Error> {
        self.0.remove(key)
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

    fn is_exclusive(&self) -> bool {
        self.0.is_exclusive()
    }
}
