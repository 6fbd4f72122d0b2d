//! What every server needs: a program, a process that ends with its owner, and patience.

use std::env;
use std::fmt::Debug;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// Where a program is: in one of the folders of PATH, or in one of these.
pub(crate) fn find_program(name: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut places = env::split_paths(&path).chain(folders.iter().cloned());
    places.find_map(|place| Some(place.join(name)).filter(|file| file.is_file()))
}

/// Says that a test is skipped for want of a program; an error if `IRONBLOOM_REQUIRE_SERVER` is set, as `make test` does.
pub(crate) fn skipped(name: &str) {
    assert!(env::var_os("IRONBLOOM_REQUIRE_SERVER").is_none(), "{name} is not installed");
    eprintln!("SKIPPED: {name} is not installed");
}

/// Tries until it works, for a minute or so. No assertion depends on the time: it only bounds how long is waited in vain.
pub fn eventually<T, E: Debug>(mut attempt: impl FnMut() -> Result<T, E>) -> T {
    let mut last = None;
    for _ in 0..6000 {
        match attempt() {
            Ok(done) => return done,
            Err(error) => last = Some(error),
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("it never worked: {last:?}");
}

/// Waits until something holds, as [`eventually`].
pub fn wait_until(mut holds: impl FnMut() -> bool) {
    eventually(|| if holds() { Ok(()) } else { Err("not yet") });
}

/// A process that ends with its owner.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn new(command: &mut Command, log: &Path) -> Self {
        let log = File::create(log).unwrap();
        let quiet = command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        Self(quiet.spawn().unwrap())
    }

    pub(crate) fn signal(&self, name: &str) {
        let _ = Command::new("kill").args([name, &self.0.id().to_string()]).status();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SIGINT: PostgreSQL then leaves no memory of the system behind, and Redis saves what it should.
        self.signal("-INT");
        for _ in 0..500 {
            if matches!(self.0.try_wait(), Ok(Some(_)) | Err(_)) {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
