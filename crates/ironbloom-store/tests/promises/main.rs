//! The promises of the store, one file each, in one program: a program for each would link everything again each time.

mod backends;
mod checkpoints;
mod common;
mod crash;
mod faults;
mod generations;
mod healing;
mod histories;
mod laws;
mod model;
mod order;
mod promise;
mod protocol;
mod published;
mod read_through;
mod remote;
mod s3;
mod servers;
mod stress;
