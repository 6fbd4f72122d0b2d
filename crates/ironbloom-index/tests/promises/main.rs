//! The promises of the index, one file each, in one program: a program for each would link everything again each time.

mod bad_tables;
mod bounds;
mod building;
mod changed_while_open;
mod common;
mod csv_tables;
mod evaluation;
mod files;
mod finding;
mod foreign_writers;
mod fuzz;
mod golden_file;
mod hostile_bytes;
mod indexed;
mod model;
mod no_row_is_lost;
mod one_encoding;
mod own_filters;
mod parquet_files;
mod pieces;
mod reading;
mod shared_segments;
mod size;
