//! Sentinels, which are the same program as the server in another mode.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::module::Client;
use crate::{Running, Scratch, Start as _, free_port, wait_until};

/// A Sentinel.
pub struct Sentinel {
    _process: Running,
    /// The port it listens on.
    pub port: u16,
    folder: Scratch,
}

impl Sentinel {
    /// Starts a Sentinel that watches a master on this port, and considers it down after this many
    /// milliseconds.
    pub fn start(program: &Path, master: u16, down_after: u32, options: &[String]) -> Self {
        let port = free_port();
        let folder = Scratch::on_disk("sentinel");
        let config = format!(
            "port {port}\nbind 127.0.0.1\nlogfile {0}/log\ndir {0}\nsentinel monitor mymaster 127.0.0.1 {master} 2\n\
             sentinel down-after-milliseconds mymaster {down_after}\nsentinel failover-timeout mymaster 1500\n\
             sentinel parallel-syncs mymaster 5\n",
            folder.path().display()
        );
        fs::write(folder.file("sentinel.conf"), config).unwrap();
        let mut command = Command::new(program);
        command.arg(folder.file("sentinel.conf")).arg("--sentinel").args(options);
        let process = command.stdout(Stdio::null()).start();
        wait_until(|| Client::connect(port).is_some());
        let sentinel = Self { _process: process, port, folder };
        // Makes it check for changes more often; servers before Redis 7 cannot.
        sentinel.ask("SENTINEL DEBUG info-period 500 publish-period 500 ask-period 300");
        sentinel
    }

    /// Returns its reply; an empty string if it does not answer.
    pub fn ask(&self, command: &str) -> String {
        Client::connect(self.port).map_or(String::new(), |mut client| client.text(command))
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", fs::read_to_string(self.folder.file("log")).unwrap_or_default());
        }
    }
}
