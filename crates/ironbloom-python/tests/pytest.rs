//! The package is tested in Python, as its users have it: as a wheel, installed into an empty folder.
//!
//! The wheel is packed from the library that cargo has built beside this test, with the metadata that maturin writes, so
//! that nothing is compiled twice. Needs an environment with maturin, pytest and the libraries that users bring keys from:
//! `make test` makes one and names its interpreter in IRONBLOOM_PYTHON. Without that, the tests say so on standard error
//! and pass.
//!
//! The interpreters in IRONBLOOM_PYTHONS, with colons between them, get fresh environments with the wheel and the libraries, and
//! run the tests as well: the oldest and the newest there are, before a release.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use ironbloom_testing::Scratch;

/// Runs pytest, and ends as soon as it is done: threads of other packages that still hold objects of Python while it shuts down
/// can abort the process, before Python 3.14.
const PYTEST: &str = "\
import os, sys, pytest
status = pytest.main()
sys.stdout.flush()
sys.stderr.flush()
os._exit(status)";

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The interpreter; `None`, with a note, if there is none.
fn python() -> Option<Command> {
    let Some(python) = std::env::var_os("IRONBLOOM_PYTHON") else {
        // Not by eprintln, which the test harness would swallow.
        let message = "\nSKIPPED: the Python package; set IRONBLOOM_PYTHON, or run `make test`\n\n";
        std::io::stderr().write_all(message.as_bytes()).unwrap();
        return None;
    };
    let mut command = Command::new(python);
    command.current_dir(folder());
    Some(command)
}

fn run(mut command: Command) {
    let done = command.output().unwrap();
    let (said, complained) =
        (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success(), "{command:?}:\n{said}{complained}");
}

/// Installs the wheel into a folder of this test: another run may have the same target folder.
fn installed() -> Option<Scratch> {
    let mut command = python()?;
    let beside = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let scratch = Scratch::on_disk("wheel");
    command.arg("pack.py").arg(beside.join("libironbloom_python.so")).arg(site(&scratch));
    run(command);
    Some(scratch)
}

fn site(installed: &Scratch) -> PathBuf {
    installed.file("site")
}

#[test]
fn the_package_passes_its_tests() {
    let Some(installed) = installed() else { return };
    let mut command = python().unwrap();
    command.args(["-c", PYTEST]).env("PYTHONPATH", site(&installed));
    run(command);
}

#[test]
fn the_wheel_passes_its_tests_in_fresh_environments_of_other_interpreters() {
    let Some(interpreters) = std::env::var_os("IRONBLOOM_PYTHONS") else { return };
    let Some(installed) = installed() else { return };
    let wheels = std::fs::read_dir(installed.file("wheels")).unwrap();
    let wheel = wheels.map(|entry| entry.unwrap().path()).next().unwrap();
    for (number, interpreter) in std::env::split_paths(&interpreters).enumerate() {
        let environment = installed.file(&format!("environment-{number}"));
        let mut command = Command::new(&interpreter);
        command.args(["-m", "venv"]).arg(&environment);
        run(command);
        let python = || {
            let mut command = Command::new(environment.join("bin/python"));
            command.current_dir(folder());
            command
        };
        let mut command = python();
        command.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        command.args([
            "deltalake",
            "duckdb",
            "hypothesis",
            "matplotlib",
            "moto[s3,server]",
            "numpy",
            "pandas",
            "polars",
            "pyarrow",
            "pytz",
        ]);
        command.arg("pytest").arg(&wheel);
        run(command);
        let mut command = python();
        command.args(["-c", PYTEST]);
        run(command);
    }
}

#[test]
fn examples_in_docstrings_are_right() {
    let Some(installed) = installed() else { return };
    let mut command = python().unwrap();
    command.args(["-c", PYTEST, "--doctest-modules", "--pyargs", "ironbloom"]);
    command.env("PYTHONPATH", site(&installed));
    run(command);
}

#[test]
fn types_are_right_in_the_package_and_for_its_users() {
    let Some(mut command) = python() else { return };
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mypy");
    command.args(["-m", "mypy", "--cache-dir"]).arg(&cache);
    run(command);
    let mut command = python().unwrap();
    command.args(["-m", "mypy", "--strict", "--cache-dir"]).arg(&cache);
    command.arg("tests/typed_user.py").env("MYPYPATH", "python");
    run(command);
}
