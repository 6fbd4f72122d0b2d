//! Tables that others write as many files, and the rows that their own readers find in them.
//!
//! The scripts in `tests/foreign` write the tables, run the program, and compare. They need Python with some packages: `make test`
//! makes such an environment and names its interpreter in IRONBLOOM_PYTHON. Without that, these tests say so and pass.

use std::path::Path;

use ironbloom_testing::python;
use ironbloom_testing::s3::{BUCKET, S3Server};

use crate::program::Scratch;

fn run(script: &str) {
    run_in(script, &[], &Scratch::new(), None);
}

/// One part of a script.
fn run_part(script: &str, part: &str) {
    run_in(script, &[part], &Scratch::new(), None);
}

/// With the tables in a bucket.
fn run_in_a_bucket(script: &str) {
    let scratch = Scratch::new();
    let Some(server) = S3Server::start(scratch.as_ref()) else { return };
    run_in(script, &[], &scratch, Some(&server));
}

fn run_in(script: &str, parts: &[&str], scratch: &Scratch, server: Option<&S3Server>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign").join(script);
    let Some(mut command) = python::script(path, script) else { return };
    command.arg(env!("CARGO_BIN_EXE_ironbloom")).arg(scratch.path(".")).args(parts);
    if let Some(server) = server {
        command
            .arg(format!("s3://{BUCKET}/lake"))
            .envs(server.environment())
            .env("AWS_ENDPOINT_URL", server.url())
            .env_remove("AWS_PROFILE");
        command.env("IRONBLOOM_CACHE_DIR", scratch.path("cache"));
    }
    python::run(command);
}

#[test]
fn tables_of_text_are_read_as_by_other_strict_readers_or_refused_with_the_line() {
    run("tables.py");
}

#[test]
fn columns_in_folders_are_those_of_duckdb() {
    run("hive.py");
}

#[test]
fn an_index_follows_iceberg_tables() {
    run("iceberg.py");
}

#[test]
fn an_index_follows_delta_tables() {
    run("delta.py");
}

#[test]
fn an_index_follows_delta_tables_in_a_bucket() {
    run_in_a_bucket("delta.py");
}

#[test]
fn an_index_follows_iceberg_tables_in_a_bucket() {
    run_in_a_bucket("iceberg.py");
}

/// A short history; `make fuzz-lakes` has longer ones, and more readers.
fn random_history(lake: &str, seed: &str) {
    run_in("lakes.py", &[lake, seed, "8"], &Scratch::new(), None);
}

#[test]
fn random_histories_of_delta_tables_are_followed_as_two_other_readers_see_them() {
    random_history("delta", "1");
    random_history("delta", "2");
}

#[test]
fn random_histories_of_iceberg_tables_are_followed_as_two_other_readers_see_them() {
    random_history("iceberg", "1");
    random_history("iceberg", "2");
}

#[test]
fn columns_of_delta_are_mapped_if_the_protocol_enables_it() {
    run_part("protocol.py", "mapping_as_the_protocol_says");
}

#[test]
fn a_delta_table_may_enable_the_mapping_of_columns_later() {
    run_part("protocol.py", "mapping_enabled_later");
}

#[test]
fn features_of_delta_that_a_table_lists_and_does_not_use_do_not_refuse_it() {
    run_part("protocol.py", "features_not_used");
}

#[test]
fn a_refresh_looks_for_newer_metadata_of_iceberg_than_the_file_that_was_named() {
    run_part("protocol.py", "newer_metadata");
}

#[test]
fn a_table_that_lists_a_file_twice_is_refused() {
    run_part("protocol.py", "files_listed_twice");
}

#[test]
fn actions_of_delta_count_beside_members_that_are_null() {
    run_part("protocol.py", "members_that_are_null");
}

#[test]
fn an_index_of_an_earlier_version_of_delta_has_its_rows_and_columns_and_stays_with_it() {
    run_part("protocol.py", "versions_of_delta");
}

#[test]
fn an_index_of_an_earlier_snapshot_of_iceberg_has_its_rows_and_columns_and_stays_with_it() {
    run_part("protocol.py", "versions_of_iceberg");
}

#[test]
fn columns_of_files_are_united_by_name_in_any_order() {
    run_part("schemas.py", "columns_of_any_order");
}

#[test]
fn columns_of_csv_files_are_united_by_name_in_any_order() {
    run_part("schemas.py", "csv_columns_of_any_order");
}

#[test]
fn a_column_of_integers_and_floats_is_one_of_floats() {
    run_part("schemas.py", "integers_beside_floats");
}

#[test]
fn the_zone_of_timestamps_in_seconds_counts() {
    run_part("schemas.py", "seconds_with_a_zone");
}

#[test]
fn days_and_moments_at_the_ends_of_time_are_shown_and_found() {
    run_part("schemas.py", "ends_of_time");
}

#[test]
fn files_that_other_readers_accept_are_not_called_damaged() {
    run_part("schemas.py", "files_that_others_read");
}

#[test]
fn a_column_without_a_name_can_be_selected() {
    run_part("schemas.py", "names_that_are_empty");
}

#[test]
fn no_integer_equals_a_fraction_and_that_is_no_error() {
    run_part("schemas.py", "fractions_among_integers");
}

#[test]
fn offsets_of_csv_are_kept_and_words_for_null_are_explained() {
    run_part("schemas.py", "offsets_and_words_in_csv");
}
