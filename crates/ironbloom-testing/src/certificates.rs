//! Certificates created for a test.

use std::fs;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd,
};

/// A certificate authority.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    /// Creates a new authority.
    pub fn named(name: &str) -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Creates a new authority and writes its own certificate to this file.
    pub fn new(folder: impl AsRef<Path>, file: &str) -> Self {
        let authority = Self::named(file);
        fs::write(folder.as_ref().join(file), authority.pem()).unwrap();
        authority
    }

    /// The authority's own certificate, in PEM format.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Issues a certificate and key, in PEM format.
    pub fn certificate(&self, name: &str, hosts: &[&str]) -> (String, String) {
        self.signed(name, hosts, |_| {})
    }

    /// The same, valid for a year that is long over.
    pub fn expired(&self, name: &str, hosts: &[&str]) -> (String, String) {
        self.signed(name, hosts, |params| {
            params.not_before = date_time_ymd(2001, 1, 1);
            params.not_after = date_time_ymd(2002, 1, 1);
        })
    }

    /// The same, valid from a year that is far away.
    pub fn not_yet_valid(&self, name: &str, hosts: &[&str]) -> (String, String) {
        self.signed(name, hosts, |params| {
            params.not_before = date_time_ymd(2400, 1, 1);
            params.not_after = date_time_ymd(2401, 1, 1);
        })
    }

    fn signed(
        &self,
        name: &str,
        hosts: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> (String, String) {
        let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
        let mut params = CertificateParams::new(hosts).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        (params.signed_by(&key, &self.0).unwrap().pem(), key.serialize_pem())
    }

    /// Writes a certificate for these hosts, `NAME.pem`, and its key, `NAME.key`.
    pub fn sign(&self, folder: impl AsRef<Path>, name: &str, hosts: &[&str]) {
        let (certificate, key) = self.certificate(name, hosts);
        fs::write(folder.as_ref().join(format!("{name}.pem")), certificate).unwrap();
        fs::write(folder.as_ref().join(format!("{name}.key")), key).unwrap();
    }
}
