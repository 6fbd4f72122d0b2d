//! PostgreSQL servers, which can be stopped and started again.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{Process, Signal, find_program, is_root, skipped};
use crate::tls::TlsFiles;
use crate::{eventually, free_port};

/// A PostgreSQL server.
pub struct PostgresServer {
    /// The folder of its programs.
    programs: PathBuf,
    directory: PathBuf,
    /// The port it listens on.
    pub port: u16,
    more: Vec<String>,
    process: Option<Process>,
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Arguments of `initdb` that leave nothing to the environment: without a locale, it would create databases of bytes
/// instead of text, which allow no ICU collation.
pub const INITDB: [&str; 7] =
    ["-A", "trust", "-U", "postgres", "--no-sync", "--encoding=UTF8", "--locale=C.UTF-8"];

/// Prepares a server program, which refuses to run as root: it then runs as the user `postgres`. The process is that
/// program itself, so that a signal reaches it; `runuser` would stay in between.
pub fn as_user(program: &Path) -> Command {
    let mut command = plain(program);
    if is_root() {
        let (user, group) = ids_of("postgres");
        command.uid(user).gid(group);
    }
    command
}

/// IDs of a user and its group.
fn ids_of(user: &str) -> (u32, u32) {
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
    let found = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let numbers: Vec<u32> =
            fields.skip(1).take(2).filter_map(|field| field.parse().ok()).collect();
        (name == user && numbers.len() == 2).then(|| (numbers[0], numbers[1]))
    });
    found.unwrap_or_else(|| {
        panic!("there is no user {user}, who comes with Debian's package postgresql")
    })
}

/// Prepares a program that ignores the language, time zone and PG variables of the environment, which change messages
/// and settings.
pub fn plain(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("PG") || name.starts_with("LC_")) {
            command.env_remove(name);
        }
    }
    command.env("LC_ALL", "C.UTF-8").env("TZ", "UTC").env_remove("LANGUAGE");
    command
}

/// Gives a folder to the user as whom servers run.
fn own(path: &Path) {
    let owned = Command::new("chown").args(["-R", "postgres"]).arg(path).status().unwrap();
    assert!(owned.success());
}

impl PostgresServer {
    /// Starts a server; `None` if the program is not installed.
    pub fn start(directory: &Path) -> Option<Self> {
        Self::start_with(directory, None)
    }

    /// Starts a server; with TLS, it accepts nothing else.
    pub fn start_with(directory: &Path, tls: Option<&TlsFiles>) -> Option<Self> {
        let mut versions: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
            .map(|entries| entries.flatten().map(|entry| entry.path().join("bin")).collect())
            .unwrap_or_default();
        // As numbers: 9.6 is older than 15.
        versions.sort_by_key(|folder| {
            let numbers = folder.iter().nth_back(1).unwrap_or_default().to_string_lossy();
            numbers.split('.').map(|number| number.parse().unwrap_or(0)).collect::<Vec<u32>>()
        });
        let Some(server) = find_program("postgres", &versions) else {
            skipped("postgres");
            return None;
        };
        let server = server.canonicalize().unwrap();
        let programs = server.parent().unwrap().to_owned();
        let data = directory.join("data");
        if is_root() {
            own(directory);
        }
        let mut initdb = as_user(&programs.join("initdb"));
        initdb.args(INITDB).arg("-D").arg(&data);
        let made = initdb.current_dir(directory).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let mut more: Vec<String> = vec!["-c".into(), "fsync=off".into()];
        if let Some(files) = tls {
            std::fs::write(data.join("pg_hba.conf"), "hostssl all all 127.0.0.1/32 trust\n")
                .unwrap();
            for (name, file) in [
                ("ssl_cert_file", &files.certificate),
                ("ssl_key_file", &files.key),
                ("ssl_ca_file", &files.authority),
            ] {
                more.extend(["-c".into(), format!("{name}={}", file.display())]);
            }
            more.extend(["-c".into(), "ssl=on".into()]);
        }
        let (directory, port) = (directory.to_owned(), free_port());
        let mut server = Self { programs, directory, port, more, process: None };
        server.resume();
        Some(server)
    }

    /// Starts a standby of it, which streams what it writes, in another folder.
    pub fn standby(&self, directory: &Path) -> Self {
        let data = directory.join("data");
        let copy = ["-D", data.to_str().unwrap(), "-R", "-X", "stream", "-c", "fast", "--no-sync"];
        let arguments = [&copy[..], &["-h", "127.0.0.1", "-U", "postgres"]].concat();
        if is_root() {
            own(directory);
        }
        let mut command = as_user(&self.programs.join("pg_basebackup"));
        command.args(arguments).args(["-p", &self.port.to_string()]);
        let made = command.current_dir(directory).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let (programs, more) = (self.programs.clone(), self.more.clone());
        let (directory, port) = (directory.to_owned(), free_port());
        let mut standby = Self { programs, directory, port, more, process: None };
        standby.resume();
        standby
    }

    /// Sends it a signal.
    pub fn signal(&self, name: Signal) {
        self.process.as_ref().unwrap().signal(name);
    }

    /// The URL for clients.
    pub fn url(&self) -> String {
        format!("host=127.0.0.1 port={} user=postgres dbname=postgres", self.port)
    }

    /// Starts it again, on the same port with the same files.
    pub fn resume(&mut self) {
        let mut command = as_user(&self.programs.join("postgres"));
        command.arg("-D").arg(self.directory.join("data")).args(["-p", &self.port.to_string()]);
        command.args(["-c", "listen_addresses=127.0.0.1"]).args(&self.more);
        command.arg("-k").arg(&self.directory).current_dir(&self.directory);
        self.process = Some(Process::new(&mut command, &self.directory.join("log")));
    }

    /// Waits until it answers.
    pub fn wait(&self) {
        let ready = || self.client("pg_isready").output().unwrap().status.success();
        eventually(|| if ready() { Ok(()) } else { Err("not ready") });
    }

    /// Stops it and closes all its connections.
    pub fn stop(&mut self) {
        self.process = None;
    }

    /// Prepares a client program with the server's address, port and user.
    fn client(&self, name: &str) -> Command {
        let mut command = plain(&self.programs.join(name));
        command.args(["-h", "127.0.0.1", "-U", "postgres", "-p", &self.port.to_string()]);
        command.current_dir(&self.directory);
        command
    }

    /// Runs a PostgreSQL program and returns its output.
    pub fn run(&self, name: &str, arguments: &[&str]) -> Vec<u8> {
        let run = self.client(name).args(arguments).output().unwrap();
        assert!(run.status.success(), "{name}: {}", String::from_utf8_lossy(&run.stderr));
        run.stdout
    }

    /// Runs this SQL with psql.
    pub fn psql(&self, sql: &str) -> String {
        let printed = self.run("psql", &["-q", "-v", "ON_ERROR_STOP=1", "-At", "-c", sql]);
        String::from_utf8(printed).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Start as _;

    /// A signal to a process in between would end that one and leave the server running.
    #[test]
    fn the_process_that_is_started_is_the_program_and_not_one_that_starts_it() {
        let running = as_user(Path::new("sleep")).arg("600").start();
        let process = Path::new("/proc").join(running.id().to_string());
        let name = || std::fs::read_to_string(process.join("comm")).unwrap();
        eventually(|| if name().trim() == "sleep" { Ok(()) } else { Err(name()) });
        assert!(
            std::fs::read_to_string(
                process.join("task").join(running.id().to_string()).join("children")
            )
            .unwrap()
            .is_empty()
        );
        if is_root() {
            let owner = std::fs::metadata(&process).unwrap();
            assert_ne!(std::os::unix::fs::MetadataExt::uid(&owner), 0);
        }
    }
}
