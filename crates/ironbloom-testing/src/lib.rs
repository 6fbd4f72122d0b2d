//! Test support shared by all crates. Only tests, examples and benchmarks depend on it.
//!
//! - [`Scratch`] and [`TemporaryFile`]: folders and files that are removed when a test ends
//! - [`Start`] and [`Running`]: programs that end with their test; [`signal`]
//! - [`Random`]: pseudo-random numbers, the same in every run
//! - [`module`]: Redis and Valkey servers with our module, and a client; [`cluster`], [`sentinel`]
//! - [`redis`], [`postgres`]: ordinary servers, which can be stopped and started again
//! - [`Proxy`]: an address whose server is replaced
//! - [`s3`]: an S3 server behind a proxy that counts, delays and breaks requests
//! - [`python`]: Python scripts
//! - [`tls`]: servers that speak TLS; `certificates` for them (a feature, since it needs cryptography)
//!
//! Every server has its own loopback port and its own folder, and ends with the test.

#[cfg(feature = "certificates")]
pub mod certificates;
pub mod cluster;
pub mod module;
mod ports;
pub mod postgres;
mod process;
mod proxy;
pub mod python;
mod random;
pub mod redis;
pub mod s3;
mod scratch;
pub mod sentinel;
pub mod tls;

pub use ports::free_port;
pub use process::{
    Running, Signal, Start, end_with_this_program, eventually, is_root, marked, signal, wait_until,
};
pub use proxy::Proxy;
pub use random::Random;
pub use scratch::{Scratch, TemporaryFile};
