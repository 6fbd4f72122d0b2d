//! Programs that tests start: finding them, signalling them, and an owner that ends them.

use std::env;
use std::fmt::{Debug, Display};
use std::fs;
use std::fs::File;
use std::io::{self, Write as _};
use std::ops::{Deref, DerefMut};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime};

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
        let child = marked(self)
            .spawn()
            .unwrap_or_else(|error| panic!("{:?}: {error}", self.get_program()));
        tell_warden("+", child.id());
        Running(Some(child))
    }
}

/// A shell that is told of each process that starts and ends, and of the data folders of servers that detach themselves. Its input
/// ends with this program, however that ends, also by a signal or an abort; it then ends the processes that are left. Those that were
/// just being started, and what they have started themselves, it knows by their environment.
static WARDEN: LazyLock<Mutex<ChildStdin>> = LazyLock::new(|| {
    // A data folder belongs to another user, who may write anything into it: a number counts only if its process works there.
    const ENDS_WHAT_IS_LEFT: &str = "\
        trap '' HUP INT TERM
        left=' '
        while read -r change process; do
            case $change in
                +) left=\"$left$process \" ;;
                -) left=\"${left%% $process *} ${left#* $process }\" ;;
                server) set -- \"$@\" \"$process\" ;;
            esac
        done
        look() {
            for file in $(grep -lszx \"$0\" /proc/[0-9]*/environ); do
                file=${file#/proc/}
                left=\"$left${file%/environ} \"
            done
            for data; do
                [ -f \"$data/postmaster.pid\" ] && read -r process < \"$data/postmaster.pid\" || continue
                case $process in '' | *[!0-9]* | 0* | 1) continue ;; esac
                [ \"$(readlink \"/proc/$process/cwd\")\" != \"$data\" ] || left=\"$left$process \"
            done
        }
        look \"$@\"
        [ \"$left\" != ' ' ] || exit 0
        kill -INT $left
        sleep 2
        look \"$@\"
        kill -KILL $left";
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", ENDS_WHAT_IS_LEFT, &format!("{MARK}={}", *PROGRAM)]).stdin(Stdio::piped());
    // A signal to the group of this program is none to the shell, and its output is not waited for.
    shell.process_group(0).stdout(Stdio::null()).stderr(Stdio::null());
    #[expect(
        clippy::disallowed_methods,
        clippy::zombie_processes,
        reason = "it outlives this program"
    )]
    let warden = shell.spawn().unwrap_or_else(|error| panic!("/bin/sh: {error}"));
    Mutex::new(warden.stdin.expect("it is piped"))
});

/// Name of the variable in the environment of what this program starts.
const MARK: &str = "IRONBLOOM_STARTED_BY";

/// Name of this program among all that ever run on the machine.
static PROGRAM: LazyLock<String> = LazyLock::new(|| {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("{}-{}", std::process::id(), now.as_nanos())
});

/// Makes sure that a command, and all that it starts, ends with this program, although it is not started by [`Start`].
pub fn marked(command: &mut Command) -> &mut Command {
    drop(WARDEN.lock());
    command.env(MARK, &*PROGRAM)
}

/// Makes sure that a PostgreSQL server over this data folder, which detaches itself from whoever starts it, ends with this program.
pub fn end_with_this_program(data: &Path) {
    tell_warden("server", fs::canonicalize(data).unwrap().display());
}

fn tell_warden(change: &str, process: impl Display) {
    let mut warden = WARDEN.lock().unwrap_or_else(PoisonError::into_inner);
    // In one write, which a pipe does not tear apart.
    let _ = warden.write_all(format!("{change} {process}\n").as_bytes());
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
        let child = self.0.take().expect(OWNED);
        let process = child.id();
        let output = child.wait_with_output();
        tell_warden("-", process);
        output
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
            tell_warden("-", child.id());
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

    /// True until it has ended; the first process of a container may not take note of orphans that have.
    fn is_running(process: u32) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_some_and(|state| !state.is_empty() && !state.starts_with('Z'))
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

    /// Started as another process by the test below, with the name of a file in which it notes the process that it starts.
    #[test]
    fn a_test_program_that_is_killed() {
        let Some(note) = env::var_os("IRONBLOOM_KILLED_PROGRAM") else { return };
        // Its number is forgotten, so that the warden ends none that comes again.
        drop(sleeper());
        // Of the two, one is started by the other.
        let script = "sleep 600 & echo $! > \"$0.new\"; mv \"$0.new\" \"$0\"; wait";
        let _left = Command::new("sh").args(["-c", script]).arg(note).start();
        thread::sleep(Duration::from_secs(600));
    }

    #[test]
    fn a_test_program_that_is_killed_leaves_no_process_behind() {
        let scratch = crate::Scratch::new("killed");
        for ending in [Signal::KILL, Signal::TERM, Signal::ABORT] {
            let note = scratch.file("note");
            let name = "process::tests::a_test_program_that_is_killed";
            let mut program = Command::new(env::current_exe().unwrap());
            program.args(["--exact", name]).env("IRONBLOOM_KILLED_PROGRAM", &note);
            let mut program = program.stdout(Stdio::null()).stderr(Stdio::null()).start();
            let started: u32 = eventually(|| {
                let noted = std::fs::read_to_string(&note).unwrap_or_default();
                noted.trim().parse()
            });
            assert!(is_running(started));
            program.signal(ending);
            program.wait().unwrap();
            wait_until(|| !is_running(started));
            std::fs::remove_file(&note).unwrap();
        }
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
