//! The promises of the program, one file each, in one program of tests: one for each would link everything again each time.

mod bad_input;
mod build_and_check;
mod dedup;
mod foreign;
#[cfg(feature = "index")]
mod foreign_tables;
#[cfg(feature = "index")]
mod index;
#[cfg(feature = "index")]
mod index_asking;
#[cfg(all(feature = "index", target_os = "linux"))]
mod index_limits;
#[cfg(feature = "index")]
mod index_tables;
mod interrupted;
mod keys;
mod manners;
mod merge_add_remove;
#[cfg(feature = "index")]
mod object_faults;
#[cfg(feature = "index")]
mod objects;
mod one_meaning;
mod plan_info_verify;
mod program;
#[cfg(feature = "redis")]
mod redis;
mod rows;
#[cfg(all(feature = "index", feature = "redis"))]
mod secrets;
#[cfg(feature = "store")]
mod store;
mod tables;
mod text;
mod turns;
