//! Servers of tests and examples: each on a free port of loopback, in a directory of its own, stopped when dropped.

#![allow(dead_code, reason = "nobody uses all of it")]

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Where a program is. Without it there is nothing to show: that is said, and is an error if
/// `IRONBLOOM_REQUIRE_SERVER` is set.
pub(crate) fn program(name: &str, directories: &[PathBuf]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).chain(directories.iter().cloned());
    let found = places.find_map(|place| Some(place.join(name)).filter(|file| file.is_file()));
    if found.is_none() {
        assert!(std::env::var_os("IRONBLOOM_REQUIRE_SERVER").is_none(), "{name} is not installed");
        println!("skipped: {name} is not installed");
    }
    found
}

pub(crate) fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Tries until it works, half a minute at most.
pub(crate) fn eventually<T, E: Debug>(mut connect: impl FnMut() -> Result<T, E>) -> T {
    let mut last = None;
    for _ in 0..600 {
        match connect() {
            Ok(connected) => return connected,
            Err(error) => last = Some(error),
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("it never worked: {last:?}");
}

/// A process that ends with its owner.
struct Process(Child);

impl Process {
    fn new(command: &mut Command, log: &Path) -> Self {
        let log = std::fs::File::create(log).unwrap();
        let quiet = command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        Self(quiet.spawn().unwrap())
    }

    fn signal(&self, name: &str) {
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
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The files of a server that speaks TLS: its certificate, its key, and the authority of its clients.
pub(crate) struct TlsFiles {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) authority: PathBuf,
}

/// A server of Redis.
pub(crate) struct RedisServer {
    program: PathBuf,
    directory: PathBuf,
    pub(crate) port: u16,
    more: Vec<String>,
    process: Option<Process>,
}

impl RedisServer {
    /// `None` if there is no such program here.
    pub(crate) fn start(directory: &Path, more: &[&str]) -> Option<Self> {
        Self::start_with(directory, more, None)
    }

    pub(crate) fn start_with(
        directory: &Path,
        more: &[&str],
        tls: Option<&TlsFiles>,
    ) -> Option<Self> {
        let program = program("redis-server", &[])?;
        let port = free_port();
        let mut all: Vec<String> = match tls {
            None => vec!["--port".into(), port.to_string()],
            Some(files) => {
                let mut all = vec!["--port".into(), "0".into()];
                all.extend(["--tls-port".into(), port.to_string()]);
                all.extend(["--tls-auth-clients".into(), "no".into()]);
                for (flag, file) in [
                    ("--tls-cert-file", &files.certificate),
                    ("--tls-key-file", &files.key),
                    ("--tls-ca-cert-file", &files.authority),
                ] {
                    all.extend([flag.into(), file.to_str().unwrap().to_owned()]);
                }
                all
            }
        };
        all.extend(["--bind", "127.0.0.1", "--save", "3600 1"].map(String::from));
        all.extend(more.iter().map(|&word| word.to_owned()));
        let directory = directory.to_owned();
        let mut server = Self { program, directory, port, more: all, process: None };
        server.resume();
        Some(server)
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Starts it again, on the same port with the same files.
    pub(crate) fn resume(&mut self) {
        let mut command = Command::new(&self.program);
        command.args(&self.more).current_dir(&self.directory);
        self.process = Some(Process::new(&mut command, &self.directory.join("log")));
    }

    /// Ends it in order: it saves its keys.
    pub(crate) fn stop(&mut self) {
        self.process = None;
    }

    pub(crate) fn signal(&self, name: &str) {
        self.process.as_ref().unwrap().signal(name);
    }
}

/// A server of PostgreSQL.
pub(crate) struct PostgresServer {
    /// Where its programs are.
    programs: PathBuf,
    directory: PathBuf,
    pub(crate) port: u16,
    more: Vec<String>,
    process: Option<Process>,
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// It refuses to run as root.
fn as_user(program: &Path) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("runuser");
    command.args(["-u", "postgres", "--"]).arg(program);
    command
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().unwrap().stdout == b"0\n"
}

impl PostgresServer {
    /// `None` if there is no such program here.
    pub(crate) fn start(directory: &Path) -> Option<Self> {
        Self::start_with(directory, None)
    }

    /// With TLS, it accepts nothing else.
    pub(crate) fn start_with(directory: &Path, tls: Option<&TlsFiles>) -> Option<Self> {
        let mut versions: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
            .map(|entries| entries.flatten().map(|entry| entry.path().join("bin")).collect())
            .unwrap_or_default();
        versions.sort();
        let server = program("postgres", &versions)?.canonicalize().unwrap();
        let programs = server.parent().unwrap().to_owned();
        let data = directory.join("data");
        let own = |path: &Path| {
            let owned = Command::new("chown").args(["-R", "postgres"]).arg(path).status().unwrap();
            assert!(owned.success());
        };
        if is_root() {
            own(directory);
        }
        let mut initdb = as_user(&programs.join("initdb"));
        initdb.args(["-A", "trust", "-U", "postgres", "--no-sync", "-D"]).arg(&data);
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

    pub(crate) fn url(&self) -> String {
        format!("host=127.0.0.1 port={} user=postgres dbname=postgres", self.port)
    }

    /// Starts it again, on the same port with the same files.
    pub(crate) fn resume(&mut self) {
        let mut command = as_user(&self.programs.join("postgres"));
        command.arg("-D").arg(self.directory.join("data")).args(["-p", &self.port.to_string()]);
        command.args(["-c", "listen_addresses=127.0.0.1"]).args(&self.more);
        command.arg("-k").arg(&self.directory).current_dir(&self.directory);
        self.process = Some(Process::new(&mut command, &self.directory.join("log")));
    }

    /// Waits until it answers.
    pub(crate) fn wait(&self) {
        let ready = || self.client("pg_isready").output().unwrap().status.success();
        eventually(|| if ready() { Ok(()) } else { Err("not ready") });
    }

    /// Ends it and all its connections.
    pub(crate) fn stop(&mut self) {
        // Where it runs as another user, our child is only the one who has started it.
        if let Ok(text) = std::fs::read_to_string(self.directory.join("data/postmaster.pid")) {
            let number = text.lines().next().unwrap_or_default();
            let _ = Command::new("kill").args(["-INT", number]).status();
        }
        self.process = None;
    }

    /// Its settings, for who connects without a library; and who they are.
    fn client(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command.args(["-h", "127.0.0.1", "-U", "postgres", "-p", &self.port.to_string()]);
        command.current_dir(&self.directory);
        command
    }

    /// Runs a program of PostgreSQL, and returns what it prints.
    pub(crate) fn run(&self, name: &str, arguments: &[&str]) -> Vec<u8> {
        let run = self.client(name).args(arguments).output().unwrap();
        assert!(run.status.success(), "{name}: {}", String::from_utf8_lossy(&run.stderr));
        run.stdout
    }

    /// Has psql say this to the server, as anyone could.
    pub(crate) fn psql(&self, sql: &str) -> String {
        let printed = self.run("psql", &["-q", "-v", "ON_ERROR_STOP=1", "-At", "-c", sql]);
        String::from_utf8(printed).unwrap()
    }
}
