//! Certificates that are made for a test, and servers that have them.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use crate::program::Scratch;
use crate::servers::server::{Server, programs};

/// Who signs.
pub(crate) struct Authority(Issuer<'static, KeyPair>);

impl Authority {
    /// A new one, whose own certificate goes to this file.
    pub(crate) fn new(scratch: &Scratch, file: &str) -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, file);
        let key = KeyPair::generate().unwrap();
        scratch.write(file, params.self_signed(&key).unwrap().pem());
        Self(Issuer::new(params, key))
    }

    /// A certificate for these names, `NAME.pem`, and its key, `NAME.key`.
    pub(crate) fn sign(&self, scratch: &Scratch, name: &str, hosts: &[&str]) {
        let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
        let mut params = CertificateParams::new(hosts).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        scratch.write(&format!("{name}.pem"), params.signed_by(&key, &self.0).unwrap().pem());
        scratch.write(&format!("{name}.key"), key.serialize_pem());
    }
}

/// The programs of the servers that were built with TLS.
pub(crate) fn tls_programs() -> Vec<PathBuf> {
    let has_tls = |program: &PathBuf| {
        // Without a certificate none starts, and those without TLS say so.
        let run = Command::new(program).args(["--port", "0", "--tls-port", "1"]).output().unwrap();
        let said = String::from_utf8_lossy(&run.stdout);
        !said.contains("TLS support") && !said.contains("Bad directive")
    };
    let all = programs();
    let found: Vec<PathBuf> = all.iter().filter(|program| has_tls(program)).cloned().collect();
    assert!(all.is_empty() || !found.is_empty(), "no server speaks TLS");
    found
}

/// A server that also speaks TLS, and the port where it does.
pub(crate) struct Secured {
    pub(crate) server: Server,
    pub(crate) tls_port: u16,
}

impl Secured {
    /// With the certificate of this name, trusting `ca.pem`.
    pub(crate) fn start(program: &Path, scratch: &Scratch, name: &str, options: &[&str]) -> Self {
        let tls_port = free_port();
        let tls = options_of(scratch, name, tls_port);
        let options: Vec<&str> =
            tls.iter().map(String::as_str).chain(options.iter().copied()).collect();
        Self { server: Server::start(program, &options), tls_port }
    }

    pub(crate) fn url(&self) -> String {
        format!("rediss://127.0.0.1:{}", self.tls_port)
    }
}

/// What makes a server, or a Sentinel, speak TLS.
pub(crate) fn options_of(scratch: &Scratch, name: &str, port: u16) -> Vec<String> {
    let path = |file: String| scratch.path(&file).to_str().unwrap().to_owned();
    let options = [
        ("--tls-port", port.to_string()),
        ("--tls-cert-file", path(format!("{name}.pem"))),
        ("--tls-key-file", path(format!("{name}.key"))),
        ("--tls-ca-cert-file", path("ca.pem".to_owned())),
    ];
    options.into_iter().flat_map(|(option, value)| [option.to_owned(), value]).collect()
}

/// A port that nobody uses, low enough for a cluster's second one, 10000 higher.
pub(crate) fn free_port() -> u16 {
    loop {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        if port < 55_000 {
            return port;
        }
    }
}
