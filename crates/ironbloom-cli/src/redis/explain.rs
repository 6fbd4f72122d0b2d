//! Errors of servers and connections in words that people understand, and what to do about them.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::sync::Arc;

use redis::{ErrorKind, RedisError};
use rustls::{AlertDescription, CertificateError};

use crate::failure::Advice;

/// The server is gone, or no longer a primary: there may be another one to ask.
#[derive(Debug)]
pub(super) struct Lost(anyhow::Error);

impl Lost {
    pub(super) fn error(error: anyhow::Error) -> anyhow::Error {
        Self(error).into()
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for Lost {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(self.0.as_ref())
    }
}

/// A URL for messages: without user and password.
pub(crate) fn without_password(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (host, query) = rest.split_once('?').map_or((rest, ""), |(host, _)| (host, "?…"));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    let scheme = if scheme.is_empty() { String::new() } else { format!("{scheme}://") };
    format!("{scheme}{host}{query}")
}

/// The code and the words of a server's error.
pub(super) fn server_error(error: &RedisError) -> (String, String) {
    let said = error.clone().into_server_errors().and_then(|errors| errors.first().cloned());
    match said {
        Some((_, said)) => (said.code().to_owned(), said.details().unwrap_or_default().to_owned()),
        None => (
            error.code().unwrap_or_default().to_owned(),
            error.detail().unwrap_or_default().to_owned(),
        ),
    }
}

/// An error of a server or a connection, as a message with a hint. [`Lost`] if another server may help.
pub(super) fn explain(address: &str, error: RedisError) -> anyhow::Error {
    if let Some(error) = tls_error(&error) {
        return explain_tls(address, error);
    }
    if error.is_io_error() {
        return Lost::error(explain_io(address, &error));
    }
    let (code, text) = server_error(&error);
    let (message, hint) = match (error.kind(), code.as_str()) {
        (ErrorKind::AuthenticationFailed, _) | (_, "WRONGPASS" | "NOAUTH") => (
            "the server does not accept this user and password".to_owned(),
            "write them into the URL: redis://user:password@host:port, or redis://:password@host:port",
        ),
        (_, "NOPERM") => {
            (format!("not permitted: {text}"), "ask who looks after the server's ACLs")
        }
        (_, "MOVED" | "ASK") => (
            "the server belongs to a cluster, and this user may not ask it (INFO)".to_owned(),
            "permit it: ACL SETUSER … +info +cluster",
        ),
        (_, "READONLY") => {
            ("the server is a replica".to_owned(), "give the address of its primary")
        }
        (_, "LOADING" | "MASTERDOWN" | "NOREPLICAS" | "UNBLOCKED") => {
            (format!("the server cannot do this now: {text}"), "try again later")
        }
        (_, "OOM") => {
            ("the server has no memory left (maxmemory)".to_owned(), "see CONFIG GET maxmemory")
        }
        (_, "CROSSSLOT") => (
            "the key cannot be replaced in a cluster".to_owned(),
            "a name with a } and without a part in braces has no neighbours; choose another",
        ),
        _ if text.contains("memory limit of a key") => (
            "the filter is larger than a key may be".to_owned(),
            "raise CONFIG SET ironbloom.key-memory-limit, or cut it: give keys, with --lines and --shards",
        ),
        _ if text.starts_with("Insufficient memory") => {
            ("the server gets no memory for the filter".to_owned(), "see INFO memory")
        }
        _ if text.starts_with("unknown command") => {
            (format!("the server does not know this command: {}", quoted(&text)), unknown(&text))
        }
        _ if code.is_empty() => return anyhow::anyhow!("{address}: {error}"),
        _ => return anyhow::anyhow!("{address}: {code} {text}"),
    };
    let explained = Advice::error(format!("{address}: {message}"), hint);
    match code.as_str() {
        "READONLY" | "LOADING" | "MASTERDOWN" | "NOREPLICAS" | "UNBLOCKED" => {
            Lost::error(explained)
        }
        _ => explained,
    }
}

/// Advises on a command that a server does not know: one of the module, or one that only Sentinels lack.
fn unknown(text: &str) -> &'static str {
    match quoted(text).to_ascii_uppercase() {
        command if command.starts_with("BF.") || command.starts_with("CF.") => {
            "load the module: redis-server --loadmodule libironbloom_redis.so (docs/redis.md)"
        }
        _ => "is it a Sentinel? write redis+sentinel://host:port/NAME, with the name of the master",
    }
}

fn explain_io(address: &str, error: &RedisError) -> anyhow::Error {
    let running =
        "is the server running, and is this its address? `redis-cli -u URL ping` should say PONG";
    if error.is_timeout() {
        return Advice::error(format!("{address}: no answer in time"), running);
    }
    if error.is_connection_dropped() && !error.is_connection_refusal() {
        // A server that speaks TLS does that to clients that do not.
        return Advice::error(
            format!("{address}: the server closed the connection ({error})"),
            "see its log; if it speaks TLS on this port, write rediss:// instead of redis://",
        );
    }
    Advice::error(format!("{address}: {error}"), running)
}

/// The TLS error inside an error of the client.
fn tls_error(error: &RedisError) -> Option<&rustls::Error> {
    let cause: &Arc<dyn StdError + Send + Sync> = error.source()?.downcast_ref()?;
    cause.downcast_ref().or_else(|| cause.downcast_ref::<io::Error>()?.get_ref()?.downcast_ref())
}

fn explain_tls(address: &str, error: &rustls::Error) -> anyhow::Error {
    use AlertDescription as Alert;
    let (message, hint) = match error {
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => (
            format!("the server's certificate is for another host name: {error}"),
            "write the host as the certificate has it; or, if the servers are known by IP address, add --any-host-name",
        ),
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => (
            "the server's certificate is not trusted: it is not signed by a known authority"
                .to_owned(),
            "give the certificate of who has signed it: --cacert FILE",
        ),
        rustls::Error::InvalidCertificate(_) => (
            format!("the server's certificate is not accepted: {error}"),
            "see `openssl s_client -connect host:port` and the clocks of both machines",
        ),
        rustls::Error::InvalidMessage(_) => (
            "the server does not speak TLS on this port".to_owned(),
            "write redis:// instead of rediss://, or give its other port (tls-port)",
        ),
        rustls::Error::AlertReceived(Alert::CertificateRequired) => (
            "the server asks for a certificate".to_owned(),
            "give one that it trusts: --cert FILE --cert-key FILE",
        ),
        rustls::Error::AlertReceived(
            Alert::UnknownCA
            | Alert::BadCertificate
            | Alert::CertificateUnknown
            | Alert::CertificateExpired
            | Alert::CertificateRevoked
            | Alert::UnsupportedCertificate
            | Alert::DecryptError,
        ) => (
            format!("the server does not accept the certificate of --cert: {error}"),
            "give one that was signed by who the server trusts (its tls-ca-cert-file)",
        ),
        _ => (format!("TLS: {error}"), "see the log of the server"),
    };
    Advice::error(format!("{address}: {message}"), hint)
}

/// The command in `unknown command 'BF.MEXISTS', with args …`: the arguments are keys, and there may be hundreds.
pub(super) fn quoted(text: &str) -> &str {
    text.split(['\'', '`']).nth(1).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        for (url, shown) in [
            ("redis://127.0.0.1:6379/3", "redis://127.0.0.1:6379/3"),
            ("redis://:secret@host", "redis://host"),
            ("redis://user:sec@ret@host:1/2", "redis://host:1/2"),
            ("user:secret@host", "host"),
            ("unix:///run/redis.sock?pass=secret", "unix:///run/redis.sock?…"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }

    #[test]
    fn of_an_unknown_command_only_the_name_is_repeated() {
        assert_eq!(
            quoted("unknown command 'BF.MEXISTS', with args beginning with: 'k' "),
            "BF.MEXISTS"
        );
        assert_eq!(quoted("unknown command `BF.ADD`, with args"), "BF.ADD");
    }
}
