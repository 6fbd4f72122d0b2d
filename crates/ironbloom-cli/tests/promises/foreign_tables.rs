//! Tables that others write as many files, and the rows that their own readers find in them.
//!
//! The scripts in `tests/foreign` write the tables, run the program, and compare. They need Python with some packages: `make test`
//! makes such an environment and names its interpreter in IRONBLOOM_PYTHON. Without that, these tests say so and pass.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use ironbloom_testing::s3::{BUCKET, S3Server};

use crate::program::Scratch;

fn run(script: &str) {
    run_in(script, &Scratch::new(), None);
}

/// With the tables in a bucket.
fn run_in_a_bucket(script: &str) {
    let scratch = Scratch::new();
    let Some(server) = S3Server::start(scratch.as_ref()) else { return };
    run_in(script, &scratch, Some(&server));
}

fn run_in(script: &str, scratch: &Scratch, server: Option<&S3Server>) {
    let Some(python) = std::env::var_os("IRONBLOOM_PYTHON") else {
        // Not by eprintln, which the test harness would swallow.
        let message = format!("\nSKIPPED: {script}; set IRONBLOOM_PYTHON, or run `make test`\n\n");
        std::io::stderr().write_all(message.as_bytes()).unwrap();
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign").join(script);
    let mut command = Command::new(python);
    command.args(["-W", "ignore", "-B"]).arg(&script);
    command.arg(env!("CARGO_BIN_EXE_ironbloom")).arg(scratch.path("."));
    if let Some(server) = server {
        command
            .arg(format!("s3://{BUCKET}/lake"))
            .envs(server.environment())
            .env("AWS_ENDPOINT_URL", server.url())
            .env_remove("AWS_PROFILE");
        command.env("IRONBLOOM_CACHE_DIR", scratch.path("cache"));
    }
    let output = command.output().unwrap();
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {stdout}{stderr}", script.display());
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
