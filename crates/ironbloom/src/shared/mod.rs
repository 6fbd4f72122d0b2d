//! Filters and threads: [`atomic`] filters that many threads insert into, a [`counter`] they increment without
//! contention, and [`threads`] that fill one filter together.

pub mod atomic;
pub(crate) mod counter;
pub(crate) mod threads;
