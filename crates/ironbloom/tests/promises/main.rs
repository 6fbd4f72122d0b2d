//! The promises of the library, one file each, in one program: separate programs would each link
//! the library again. Tests that need their own process are beside this folder.

mod adversaries;
mod batches;
mod common;
mod cuckoo;
mod ethereum;
mod foreign;
mod forgetting;
mod fuse;
mod golden_files;
mod growth;
mod hostile_bytes;
mod integers;
#[path = "../mapped/mod.rs"]
mod mapped;
mod measured_rate;
mod multi;
mod no_false_negatives;
mod one_meaning;
mod over_capacity;
mod removal;
mod round_trip;
mod saving;
mod set_algebra;
mod sketches;
mod threads;
mod wrong_lengths;
mod wrong_removals;
