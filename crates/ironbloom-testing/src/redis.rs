//! Ordinary Redis servers, which can be stopped and started again.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::free_port;
use crate::process::{Process, Signal, find_program, skipped};
use crate::sentinel::Sentinel;
use crate::tls::TlsFiles;

/// A Redis server.
pub struct RedisServer {
    program: PathBuf,
    directory: PathBuf,
    /// The port it listens on.
    pub port: u16,
    more: Vec<String>,
    process: Option<Process>,
}

impl RedisServer {
    /// Starts a server; `None` if the program is not installed.
    pub fn start(directory: &Path, more: &[&str]) -> Option<Self> {
        Self::start_with(directory, more, None)
    }

    /// Starts a server; with TLS, it speaks nothing else.
    pub fn start_with(directory: &Path, more: &[&str], tls: Option<&TlsFiles>) -> Option<Self> {
        let Some(program) = find_program("redis-server", &[]) else {
            skipped("redis-server");
            return None;
        };
        let port = free_port();
        let mut all: Vec<String> = match tls {
            None => vec!["--port".into(), port.to_string()],
            Some(files) => {
                let plain = ["--port", "0", "--tls-auth-clients", "no"].map(String::from);
                plain.into_iter().chain(files.options(port)).collect()
            }
        };
        all.extend(["--bind", "127.0.0.1", "--save", "3600 1"].map(String::from));
        all.extend(more.iter().map(|&word| word.to_owned()));
        let directory = directory.to_owned();
        let mut server = Self { program, directory, port, more: all, process: None };
        server.resume();
        Some(server)
    }

    /// Starts a Sentinel that watches it, and takes it for lost after this many milliseconds.
    pub fn sentinel(&self, down_after: u32) -> Sentinel {
        Sentinel::start(&self.program, self.port, down_after, &[])
    }

    /// The URL for clients.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Starts it again, on the same port with the same files.
    pub fn resume(&mut self) {
        let mut command = Command::new(&self.program);
        command.args(&self.more).current_dir(&self.directory);
        self.process = Some(Process::new(&mut command, &self.directory.join("log")));
    }

    /// Shuts it down cleanly: it saves its keys.
    pub fn stop(&mut self) {
        self.process = None;
    }

    /// Sends it a signal.
    pub fn signal(&self, name: Signal) {
        self.process.as_ref().unwrap().signal(name);
    }
}
