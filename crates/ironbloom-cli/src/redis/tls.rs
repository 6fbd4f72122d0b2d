//! TLS on the way to servers and Sentinels: whom to trust, and which certificate to show.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use redis::{ClientTlsConfig, ConnectionAddr, RedisError, TlsCertificates, TlsMode};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use crate::failure::Advice;
use crate::{file, output};

/// The heading of these options in the help.
const TLS: &str = "TLS";

/// The options of redis-cli, except that its `--key` has another name: here that is the key of the filter.
#[derive(Args)]
pub(super) struct TlsArgs {
    /// Encrypt the connection; a URL that begins with rediss:// implies it
    #[arg(long, help_heading = TLS)]
    tls: bool,

    /// Trust certificates signed by those in this file (PEM), instead of those that the system trusts
    #[arg(long, value_name = "FILE", help_heading = TLS)]
    cacert: Option<PathBuf>,

    /// Client certificate for servers that require one (PEM, with any intermediate certificates)
    #[arg(long, value_name = "FILE", help_heading = TLS)]
    cert: Option<PathBuf>,

    /// Its private key (PEM); not needed if the file of --cert contains it
    #[arg(long, value_name = "FILE", requires = "cert", help_heading = TLS)]
    cert_key: Option<PathBuf>,

    /// Do not check the host name of the certificate: for clusters and Sentinels that know their servers by IP address
    #[arg(long, help_heading = TLS)]
    any_host_name: bool,

    /// Accept any certificate. Anyone between here and the server can then read and change what is sent, passwords included
    #[arg(long, help_heading = TLS)]
    insecure: bool,
}

/// How connections are encrypted.
#[derive(Clone)]
pub(super) struct Tls {
    certificates: TlsCertificates,
    any_host_name: bool,
    is_insecure: bool,
}

impl TlsArgs {
    /// The TLS settings; none if neither the options nor the URL ask for it.
    pub(super) fn read(&self, url_wants: bool) -> Result<Option<Tls>> {
        if !(url_wants || self.tls) {
            return match self.first() {
                None => Ok(None),
                Some(option) => Err(Advice::error(
                    format!("{option} is for TLS, and the URL is not"),
                    "write rediss:// instead of redis://, or add --tls",
                )),
            };
        }
        // Named, because if another crate brings a second one into the program, the default is undefined, or a panic.
        let _ = default_provider().install_default();
        if self.insecure {
            output::note(
                "warning: --insecure: the server's certificate is not checked. Whoever is on the way can read and \
                 change all that is sent, passwords included",
            );
        }
        let root_cert = self.cacert.as_deref().map(read_certificates).transpose()?;
        let client_tls = self
            .cert
            .as_deref()
            .map(|cert| read_identity(cert, self.cert_key.as_deref().unwrap_or(cert)));
        let certificates = TlsCertificates { client_tls: client_tls.transpose()?, root_cert };
        let (any_host_name, is_insecure) = (self.any_host_name, self.insecure);
        Ok(Some(Tls { certificates, any_host_name, is_insecure }))
    }

    /// An option that makes sense only with TLS.
    fn first(&self) -> Option<&'static str> {
        let options = [
            (self.cacert.is_some(), "--cacert"),
            (self.cert.is_some(), "--cert"),
            (self.any_host_name, "--any-host-name"),
            (self.insecure, "--insecure"),
        ];
        options.into_iter().find_map(|(is_given, option)| is_given.then_some(option))
    }
}

impl Tls {
    /// The address of a server to which this applies.
    pub(super) fn address(&self, host: String, port: u16) -> Result<ConnectionAddr, RedisError> {
        let insecure = self.is_insecure;
        let address = ConnectionAddr::TcpTls { host, port, insecure, tls_params: None };
        let client = redis::Client::build_with_tls(address, self.certificates.clone())?;
        let mut address = client.get_connection_info().addr().clone();
        address.set_danger_accept_invalid_hostnames(self.any_host_name);
        Ok(address)
    }

    /// Does the same for all servers of a cluster.
    pub(super) fn of_cluster(
        &self,
        builder: redis::cluster::ClusterClientBuilder,
    ) -> redis::cluster::ClusterClientBuilder {
        let mode = if self.is_insecure { TlsMode::Insecure } else { TlsMode::Secure };
        let builder = builder.tls(mode).certs(self.certificates.clone());
        builder.danger_accept_invalid_hostnames(self.any_host_name)
    }
}

/// Returns true if a server that should speak TLS answers in plain text.
pub(super) fn is_plain(address: &ConnectionAddr) -> bool {
    let ConnectionAddr::TcpTls { host, port, .. } = address else { return false };
    let answer = || -> io::Result<u8> {
        let mut addresses = (host.as_str(), *port).to_socket_addrs()?;
        let address = addresses.next().ok_or(io::ErrorKind::NotFound)?;
        let mut stream = TcpStream::connect_timeout(&address, PROBE)?;
        stream.set_read_timeout(Some(PROBE))?;
        stream.write_all(b"PING\r\n")?;
        let mut first = [0];
        stream.read_exact(&mut first)?;
        Ok(first[0])
    };
    matches!(answer(), Ok(b'+' | b'-'))
}

/// How long to wait for an answer in plain text.
const PROBE: Duration = Duration::from_secs(2);

fn read_certificates(path: &Path) -> Result<Vec<u8>> {
    let bytes = std::fs::read(path).map_err(|error| file::named(path, error))?;
    certificates_of(path, &bytes)?;
    Ok(bytes)
}

fn certificates_of(path: &Path, bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bytes).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        found => Err(no_pem(path, "certificate", found.err())),
    }
}

/// A certificate and its key, which must belong together.
fn read_identity(cert: &Path, key: &Path) -> Result<ClientTlsConfig> {
    let read = |path: &Path| std::fs::read(path).map_err(|error| file::named(path, error));
    let (client_cert, client_key) = (read(cert)?, read(key)?);
    let chain = certificates_of(cert, &client_cert)?;
    let private = PrivateKeyDer::from_pem_slice(&client_key).map_err(|error| {
        if String::from_utf8_lossy(&client_key).contains("ENCRYPTED") {
            return Advice::error(
                format!("{}: the private key is locked with a password", key.display()),
                "unlock it into another file: openssl pkey -in FILE -out OTHER",
            );
        }
        no_pem(key, "private key", Some(error))
    })?;
    CertifiedKey::from_der(chain, private, &default_provider()).map_err(|error| {
        let (cert, key) = (cert.display(), key.display());
        match error {
            rustls::Error::InconsistentKeys(_) => Advice::error(
                format!("{key}: is not the private key of the certificate {cert}"),
                "give the file that was made together with it as --cert-key",
            ),
            error => Advice::error(
                format!("{cert}, {key}: cannot be used: {error}"),
                "keys of RSA (2048 bits and more), ECDSA (P-256, P-384) and Ed25519 can",
            ),
        }
    })?;
    Ok(ClientTlsConfig { client_cert, client_key })
}

/// An error about a file that lacks something.
fn no_pem(path: &Path, what: &str, error: Option<pem::Error>) -> anyhow::Error {
    let reason = match error {
        None | Some(pem::Error::NoItemsFound) => String::new(),
        Some(error) => format!(": {error}"),
    };
    Advice::error(
        format!("{}: holds no {what} that can be read{reason}", path.display()),
        format!("a file with a line -----BEGIN {}----- is needed (PEM)", what.to_uppercase()),
    )
}
