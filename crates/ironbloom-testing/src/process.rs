//! Programs that tests start: finding them, signalling them, and an owner that ends them.

use std::env;
use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, geteuid, kill_process};

pub use rustix::process::Signal;

/// Finds a program in the folders of PATH, then in these.
pub(crate) fn find_program(name: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut places = env::split_paths(&path).chain(folders.iter().cloned());
    places.find_map(|place| Some(place.join(name)).filter(|file| file.is_file()))
}

/// Reports that a test is skipped because a program is missing; fails if `IRONBLOOM_REQUIRE_SERVER` is set, as `make
/// test` does.
pub(crate) fn skipped(name: &str) {
    assert!(env::var_os("IRONBLOOM_REQUIRE_SERVER").is_none(), "{name} is not installed");
    eprintln!("SKIPPED: {name} is not installed");
}

/// Retries until it works, for a minute or so. No assertion depends on the time: it only bounds the wait.
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

/// Waits until a condition holds, like [`eventually`].
pub fn wait_until(mut holds: impl FnMut() -> bool) {
    eventually(|| if holds() { Ok(()) } else { Err("not yet") });
}

/// True if this process runs as root, as which PostgreSQL refuses to run.
pub fn is_root() -> bool {
    geteuid().is_root()
}

/// Sends a signal by system call: minimal systems lack the `kill` program.
///
/// # Errors
/// Returns the error of the system call, for instance if the process does not exist.
pub fn signal(process: u32, signal: Signal) -> io::Result<()> {
    let number = i32::try_from(process).ok().and_then(Pid::from_raw);
    let number = number.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    Ok(kill_process(number, signal)?)
}

/// Starts processes in tests: `command.start()` instead of `command.spawn().unwrap()`, which a lint refuses.
pub trait Start {
    /// Starts the program. It ends when its owner is dropped, even if the test fails.
    fn start(&mut self) -> Running;
}

impl Start for Command {
    #[track_caller]
    #[expect(clippy::disallowed_methods, reason = "the one place that makes sure of the end")]
    fn start(&mut self) -> Running {
        let child = self.spawn();
        Running(Some(child.unwrap_or_else(|error| panic!("{:?}: {error}", self.get_program()))))
    }
}

/// A process that ends with its owner: killed, unless it has already ended.
#[derive(Debug)]
pub struct Running(Option<Child>);

impl Running {
    /// Sends it a signal.
    #[track_caller]
    pub fn signal(&self, name: Signal) {
        signal(self.id(), name).unwrap();
    }

    /// Waits for its end; returns all its output.
    ///
    /// # Errors
    /// Returns an error if its output cannot be read.
    pub fn wait_with_output(mut self) -> io::Result<Output> {
        self.0.take().expect(OWNED).wait_with_output()
    }
}

const OWNED: &str = "only `wait_with_output` takes the process out, and it consumes the owner";

impl Deref for Running {
    type Target = Child;

    fn deref(&self) -> &Child {
        self.0.as_ref().expect(OWNED)
    }
}

impl DerefMut for Running {
    fn deref_mut(&mut self) -> &mut Child {
        self.0.as_mut().expect(OWNED)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A server that is asked to end with its owner, and killed if it does not.
pub(crate) struct Process(Running);

impl Process {
    pub(crate) fn new(command: &mut Command, log: &Path) -> Self {
        let log = File::create(log).unwrap();
        let quiet = command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        Self(quiet.start())
    }

    pub(crate) fn signal(&self, name: Signal) {
        let _ = signal(self.0.id(), name);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // This way PostgreSQL leaves no shared memory behind, and Redis saves its keys.
        self.signal(Signal::INT);
        for _ in 0..500 {
            if matches!(self.0.try_wait(), Ok(Some(_)) | Err(_)) {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper() -> Running {
        Command::new("sleep").arg("600").start()
    }

    fn exists(process: u32) -> bool {
        Path::new("/proc").join(process.to_string()).exists()
    }

    #[test]
    fn a_test_that_panics_leaves_no_process_behind() {
        let started = std::sync::Mutex::new(0);
        let failed = thread::scope(|scope| {
            let test = scope.spawn(|| {
                let child = sleeper();
                *started.lock().unwrap() = child.id();
                assert!(!exists(child.id()), "a test that fails");
            });
            test.join().is_err()
        });
        assert!(failed);
        assert!(!exists(started.into_inner().unwrap_or_else(|error| error.into_inner())));
    }

    #[test]
    fn a_signal_reaches_its_process() {
        use std::os::unix::process::ExitStatusExt as _;
        let mut child = sleeper();
        child.signal(Signal::TERM);
        assert_eq!(child.wait().unwrap().signal(), Some(15));
        assert!(signal(0, Signal::TERM).is_err(), "not the whole process group");
    }
}
