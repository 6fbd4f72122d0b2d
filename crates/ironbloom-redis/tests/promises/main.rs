//! The promises of the module, one file each, in one program: a program for each would link everything again each time.

mod acl;
mod clients;
mod cluster;
mod common;
mod compaction;
mod cost;
mod counting;
mod golden_filters;
mod hostile_dumps;
mod loading;
mod merging;
mod migration;
mod model;
mod native;
mod native_server;
mod one_meaning;
mod options;
mod persistence;
mod plumbing;
mod refusals;
mod scanning;
mod seeds;
mod sketches;
mod survival;
mod survival_server;
mod transcripts;
