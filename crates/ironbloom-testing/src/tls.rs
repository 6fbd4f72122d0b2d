//! Servers that speak TLS. Their certificates are files in a folder: `NAME.pem` and `NAME.key`, signed by `ca.pem`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::free_port;
use crate::module::{Server, programs};

/// The TLS files of a server: its certificate, its key, and the authority of its clients.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// Its certificate.
    pub certificate: PathBuf,
    /// The key of the certificate.
    pub key: PathBuf,
    /// The authority that signs the certificates of its clients.
    pub authority: PathBuf,
}

impl TlsFiles {
    /// The files with this name in a folder.
    pub fn named(folder: impl AsRef<Path>, name: &str) -> Self {
        let file = |name: String| folder.as_ref().join(name);
        Self {
            certificate: file(format!("{name}.pem")),
            key: file(format!("{name}.key")),
            authority: file("ca.pem".to_owned()),
        }
    }

    /// Options that make a Redis server, or a Sentinel, speak TLS on this port.
    pub fn options(&self, port: u16) -> Vec<String> {
        let path = |file: &Path| file.to_str().unwrap().to_owned();
        let options = [
            ("--tls-port", port.to_string()),
            ("--tls-cert-file", path(&self.certificate)),
            ("--tls-key-file", path(&self.key)),
            ("--tls-ca-cert-file", path(&self.authority)),
        ];
        options.into_iter().flat_map(|(option, value)| [option.to_owned(), value]).collect()
    }
}

/// The server programs that were built with TLS.
pub fn tls_programs() -> Vec<PathBuf> {
    let has_tls = |program: &PathBuf| {
        // Without a certificate none starts, and programs without TLS say so.
        let run = Command::new(program).args(["--port", "0", "--tls-port", "1"]).output().unwrap();
        let said = String::from_utf8_lossy(&run.stdout);
        !said.contains("TLS support") && !said.contains("Bad directive")
    };
    let all = programs();
    let found: Vec<PathBuf> = all.iter().filter(|program| has_tls(program)).cloned().collect();
    assert!(all.is_empty() || !found.is_empty(), "no server speaks TLS");
    found
}

/// A server with the module that also speaks TLS.
pub struct Secured {
    /// The server.
    pub server: Server,
    /// The TLS port.
    pub tls_port: u16,
}

impl Secured {
    /// Starts a server with the certificate of this name in a folder.
    pub fn start(program: &Path, folder: impl AsRef<Path>, name: &str, options: &[&str]) -> Self {
        let tls_port = free_port();
        let tls = TlsFiles::named(folder, name).options(tls_port);
        let options: Vec<&str> =
            tls.iter().map(String::as_str).chain(options.iter().copied()).collect();
        Self { server: Server::start(program, &options), tls_port }
    }

    /// The URL for clients.
    pub fn url(&self) -> String {
        format!("rediss://127.0.0.1:{}", self.tls_port)
    }
}
