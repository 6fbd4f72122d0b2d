//! What the tests of all crates share. Only tests, examples and benchmarks depend on it.
//!
//! - [`Scratch`] and [`TemporaryFile`]: folders and files that go when a test ends
//! - [`Start`] and [`Running`]: programs that end with their test; [`signal`]
//! - [`Random`]: numbers that look random and are the same in every run
//! - [`module`]: servers of Redis and Valkey with our module, and a client; [`cluster`], [`sentinel`]
//! - [`redis`], [`postgres`]: servers as others have them, which can be stopped and started again
//! - [`s3`]: a server of S3 behind a proxy that counts, delays and breaks requests
//! - [`python`]: scripts in Python
//! - [`tls`]: servers that speak TLS; `certificates` (a feature, since it needs cryptography) for them
//!
//! Every server has a port of loopback to itself and a folder of its own, and ends with the test.

#[cfg(feature = "certificates")]
pub mod certificates;
pub mod cluster;
pub mod module;
mod ports;
pub mod postgres;
mod process;
pub mod python;
mod random;
pub mod redis;
pub mod s3;
mod scratch;
pub mod sentinel;
pub mod tls;

pub use ports::free_port;
pub use process::{Running, Signal, Start, eventually, is_root, signal, wait_until};
pub use random::Random;
pub use scratch::{Scratch, TemporaryFile};
