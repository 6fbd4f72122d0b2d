//! Running the program as a person would: in a separate directory, with bytes on standard input.

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use ironbloom_testing::{Random, Start as _};

/// Every value of `--kind` that takes keys; `rows.rs` has the one that takes rows.
pub(crate) const KINDS: [&str; 13] = [
    "bloom",
    "segmented",
    "blocked",
    "split-block",
    "counting",
    "d-left",
    "cuckoo",
    "cuckoo-packed",
    "fuse",
    "fuse4",
    "scalable",
    "windowed",
    "bitmap",
];

/// The program, which signals end even if this test ignores them, as everything does that a script starts in the
/// background: what it starts would ignore them, too.
fn program() -> Command {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    // SIGHUP 1, SIGINT 2, SIGTERM 15
    if ignored & (1 << 0 | 1 << 1 | 1 << 14) == 0 {
        return Command::new(PROGRAM);
    }
    let mut command = Command::new("env");
    command.args(["--default-signal=HUP,INT,TERM", PROGRAM]);
    command
}

/// A directory that the program runs in, gone when the test is.
pub(crate) struct Scratch {
    directory: ironbloom_testing::Scratch,
}

impl AsRef<Path> for Scratch {
    fn as_ref(&self) -> &Path {
        self.directory.path()
    }
}

impl Scratch {
    pub(crate) fn new() -> Self {
        Self { directory: ironbloom_testing::Scratch::on_disk("program") }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.file(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// Names of all files, hidden ones too: a temporary file left behind would show.
    pub(crate) fn files(&self) -> Vec<String> {
        self.directory.names()
    }

    /// The program, not started yet.
    pub(crate) fn command<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = program();
        command.args(args).current_dir(self.directory.path());
        command
    }

    /// Runs the program with nothing on standard input.
    pub(crate) fn run<const N: usize>(&self, args: [&str; N]) -> Run {
        self.run_with(args, b"")
    }

    /// Runs the program with these bytes on standard input.
    pub(crate) fn run_with<const N: usize>(&self, args: [&str; N], stdin: impl AsRef<[u8]>) -> Run {
        finish(self.command(args), stdin.as_ref())
    }

    /// Runs a line of shell, in which `ironbloom` is the program.
    pub(crate) fn shell(&self, line: &str) -> Run {
        let mut command = Command::new("sh");
        let beside = Path::new(PROGRAM).parent().unwrap().to_str().unwrap();
        let path = format!("{beside}:{}", std::env::var("PATH").unwrap());
        command.args(["-c", line]).env("PATH", path).current_dir(self.directory.path());
        finish(command, b"")
    }

    /// Builds a filter of these keys, one per line, and insists that it works.
    pub(crate) fn build<const N: usize>(&self, name: &str, options: [&str; N], keys: &str) {
        let args = ["build", "-o", name].into_iter().chain(options);
        finish(self.command(args), keys.as_bytes()).succeeds();
    }

    /// Returns the output of `info --json` for a filter.
    pub(crate) fn info(&self, name: &str) -> serde_json::Value {
        self.run(["info", "--json", name]).succeeds().json()
    }

    /// The lines among `keys` that `check` takes for present.
    pub(crate) fn present(&self, name: &str, keys: &str) -> String {
        let run = self.run_with(["check", name], keys);
        assert_ne!(run.status, 2, "{}", run.stderr);
        run.text()
    }

    /// That a run fails with a message that begins with these words, and changes no file here.
    #[track_caller]
    pub(crate) fn refuses<const N: usize>(
        &self,
        args: [&str; N],
        stdin: &str,
        message: &str,
    ) -> Run {
        let before = self.contents();
        let run = self.run_with(args, stdin);
        assert_eq!(run.status, 2, "{args:?}\n{}{}", run.text(), run.stderr);
        let start = format!("error: {message}");
        assert!(run.stderr.starts_with(&start), "{args:?}: {start:?} expected, got {}", run.stderr);
        assert_eq!(run.stdout, b"", "{args:?} printed something");
        assert!(before == self.contents(), "{args:?} changed a file");
        run
    }

    /// Names and bytes of all files.
    pub(crate) fn contents(&self) -> Vec<(String, Option<Vec<u8>>)> {
        let files = self.files().into_iter();
        files.map(|name| (name.clone(), fs::read(self.path(&name)).ok())).collect()
    }
}

/// The most memory that a process has had until now, in KiB. `None` if it has ended.
pub(crate) fn most_memory(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_ironbloom");

fn finish(mut command: Command, stdin: &[u8]) -> Run {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.start();
    let mut pipe = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            let _ = pipe.write_all(stdin); // a program that refuses its options reads nothing
        });
        child.wait_with_output().unwrap()
    });
    Run::from(output)
}

/// How a run ended.
pub(crate) struct Run {
    /// The exit status, or -1 if a signal ended it.
    pub(crate) status: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            status: output.status.code().unwrap_or(-1),
            stdout: output.stdout,
            stderr: String::from_utf8(output.stderr).expect("messages are text"),
        }
    }
}

impl Run {
    #[track_caller]
    pub(crate) fn succeeds(self) -> Self {
        self.ends_with(0)
    }

    #[track_caller]
    pub(crate) fn ends_with(self, status: i32) -> Self {
        assert_eq!(self.status, status, "{}{}", self.text(), self.stderr);
        self
    }

    /// Standard output as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|e| panic!("{e}: {}", self.text()))
    }

    /// The advice below the error.
    #[track_caller]
    pub(crate) fn hint(&self) -> &str {
        self.stderr.split_once("\n\nhint: ").unwrap_or_else(|| panic!("no hint: {}", self.stderr)).1
    }
}

/// `0`, `1`, … below `end`, one per line.
pub(crate) fn lines(range: std::ops::Range<u64>) -> String {
    range.map(|i| format!("{i}\n")).collect()
}

/// Numbers that look random and are the same in every run.
pub(crate) fn random(seed: u64) -> impl FnMut() -> u64 {
    let mut random = Random(seed);
    move || random.next()
}
