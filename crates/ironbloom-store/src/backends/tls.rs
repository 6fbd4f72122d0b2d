//! Encrypted connections: which servers are trusted.
//!
//! There is one level of trust, the one that PostgreSQL calls `verify-full`: the certificate of the server must be signed
//! by an authority that is trusted, and be made out to the host name of the address. Encryption without that protects
//! from nobody who can get between the two.

use std::fmt;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

/// Which servers are trusted, and how we identify ourselves to them, if they ask.
///
/// The certificate of a server must be signed by a trusted authority and be made out to the host name (or address) that
/// was connected to. There is no way to switch that off.
#[derive(Clone)]
pub struct Tls {
    /// In PEM format; `None`: the authorities that the system trusts.
    pub(super) roots: Option<Vec<u8>>,
    /// Certificates and key, in PEM format.
    pub(super) identity: Option<(Vec<u8>, Vec<u8>)>,
}

/// Keys are not for logs.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let roots = if self.roots.is_some() { "given" } else { "system" };
        write!(f, "Tls {{ roots: {roots}, identity: {} }}", self.identity.is_some())
    }
}

/// Certificates or keys that cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum TlsError {
    /// This is not PEM, or what is in it is not what it should be.
    Pem(pem::Error),
    /// There is no certificate of an authority, so no server could ever be trusted.
    NoRoots,
    /// A certificate or key is unusable.
    Rustls(rustls::Error),
    /// A file that a connection string names cannot be read.
    File(String, std::io::Error),
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pem(error) => write!(f, "TLS certificates: {error}"),
            Self::NoRoots => write!(f, "TLS: no certificate of an authority was found"),
            Self::Rustls(error) => write!(f, "TLS: {error}"),
            Self::File(name, error) => write!(f, "{name}: {error}"),
        }
    }
}

/// All causes are already in the message.
impl std::error::Error for TlsError {}

impl Tls {
    /// Trusts the authorities that the system trusts.
    pub fn system() -> Self {
        Self { roots: None, identity: None }
    }

    /// Trusts these authorities and nobody else: certificates in PEM format, one or several.
    pub fn trusting(pem: impl Into<Vec<u8>>) -> Self {
        Self { roots: Some(pem.into()), identity: None }
    }

    /// Shows these certificates to a server that asks for them, and proves them with this key; both in PEM format.
    pub fn identity(mut self, certificates: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        self.identity = Some((certificates.into(), key.into()));
        self
    }

    fn root_store(&self) -> Result<RootCertStore, TlsError> {
        let mut store = RootCertStore::empty();
        match &self.roots {
            Some(pem) => {
                for certificate in certificates(pem)? {
                    store.add(certificate).map_err(TlsError::Rustls)?;
                }
            }
            None => {
                store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
        }
        if store.is_empty() { Err(TlsError::NoRoots) } else { Ok(store) }
    }

    pub(super) fn client_config(&self) -> Result<ClientConfig, TlsError> {
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Rustls)?
            .with_root_certificates(self.root_store()?);
        match &self.identity {
            None => Ok(config.with_no_client_auth()),
            Some((chain, key)) => {
                let key = PrivateKeyDer::from_pem_slice(key).map_err(TlsError::Pem)?;
                let chain = certificates(chain)?;
                config.with_client_auth_cert(chain, key).map_err(TlsError::Rustls)
            }
        }
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(TlsError::Pem)
}

/// The `redis` crate uses the provider of the process, and panics if there is none and rustls was compiled with several.
#[cfg(feature = "redis")]
pub(super) fn ensure_provider() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        let _ = ring::default_provider().install_default(); // somebody else was faster, if it fails
    }
}
