//! The promises of the program, one file each, in one program of tests: one for each would link everything again each time.

mod bad_input;
mod build_and_check;
mod dedup;
mod index;
mod index_tables;
mod interrupted;
mod manners;
mod merge_add_remove;
mod plan_info_verify;
mod program;
mod redis;
mod rows;
mod store;
mod tables;
mod text;
