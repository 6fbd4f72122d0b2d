//! Python scripts, with the packages that `make test` installs.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

/// Prepares a script to be run by the interpreter in IRONBLOOM_PYTHON; the caller can add arguments. Without an
/// interpreter, returns `None` and reports on standard error that `what` is skipped.
pub fn script(path: impl AsRef<Path>, what: &str) -> Option<Command> {
    let mut command = interpreter(what)?;
    let runner = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/run.py");
    command.args(["-W", "ignore", "-B"]).arg(runner).arg(path.as_ref());
    Some(command)
}

/// The interpreter in IRONBLOOM_PYTHON. Without one, returns `None` and reports on standard error that `what` is
/// skipped.
pub fn interpreter(what: &str) -> Option<Command> {
    let Some(python) = std::env::var_os("IRONBLOOM_PYTHON") else {
        // Not with eprintln, whose output the test harness would swallow.
        let message = format!("\nSKIPPED: {what}; set IRONBLOOM_PYTHON, or run `make test`\n\n");
        std::io::stderr().write_all(message.as_bytes()).expect("standard error can be written");
        return None;
    };
    Some(Command::new(python))
}

/// Runs a command.
///
/// # Panics
///
/// If it fails, with all its output.
pub fn run(mut command: Command) {
    let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let [said, complained] =
        [&done.stdout, &done.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    assert!(done.status.success(), "{command:?}: {}\n{said}{complained}", done.status);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TemporaryFile;

    #[test]
    fn a_script_that_is_done_has_succeeded_whatever_its_libraries_do_at_exit() {
        let file = TemporaryFile::new("script.py");
        let code = "import atexit, os, sys\nprint(sys.argv[1:])\natexit.register(os._exit, 3)\n";
        std::fs::write(&file, code).unwrap();
        let Some(mut command) = script(&file, "the end of scripts") else { return };
        let done = command.args(["a", "b c"]).output().unwrap();
        assert_eq!(done.status.code(), Some(0));
        assert_eq!(String::from_utf8_lossy(&done.stdout), "['a', 'b c']\n");
    }

    #[test]
    fn a_script_that_fails_has_failed() {
        for code in
            ["assert False, 'this'", "raise SystemExit('this')", "import sys\nsys.exit('this')"]
        {
            let file = TemporaryFile::new("script.py");
            std::fs::write(&file, code).unwrap();
            let Some(mut command) = script(&file, "scripts that fail") else { return };
            let done = command.output().unwrap();
            assert_eq!(done.status.code(), Some(1), "{code}");
            assert!(String::from_utf8_lossy(&done.stderr).contains("this"), "{code}");
        }
    }
}
