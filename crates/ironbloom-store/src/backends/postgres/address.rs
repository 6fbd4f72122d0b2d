//! Connection strings, and what they say about TLS.
//!
//! The `tokio-postgres` crate knows `sslmode=disable`, `prefer` and `require`, but no certificates. Connection strings
//! come from settings that other programs use as well, so what libpq calls `sslmode=verify-full`, `sslrootcert`,
//! `sslcert` and `sslkey` is understood, too, in both forms:
//!
//! ```text
//! postgresql://me@db.example.com/app?sslmode=verify-full&sslrootcert=/etc/ca.pem
//! host=db.example.com user=me dbname=app sslmode=verify-full sslrootcert=/etc/ca.pem
//! ```

use tokio_postgres::Config;
use tokio_postgres::config::SslMode;
#[cfg(feature = "tls")]
use tokio_postgres_rustls::MakeRustlsConnect;

use super::PostgresError;
use crate::backends::Connections;
#[cfg(feature = "tls")]
use crate::backends::tls::{Tls, TlsError};

/// Where the server is, and how to talk to it.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) config: Config,
    #[cfg(feature = "tls")]
    pub(super) tls: Option<MakeRustlsConnect>,
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.config.fmt(f)
    }
}

/// What `tokio-postgres` does not know.
#[derive(Debug, Default, PartialEq)]
struct Ours {
    verify: bool,
    root: Option<String>,
    certificate: Option<String>,
    key: Option<String>,
}

impl Ours {
    /// False if this is a parameter for `tokio-postgres`.
    fn take(&mut self, name: &str, value: &str) -> bool {
        match (name, value) {
            ("sslmode", "verify-full" | "verify-ca") => self.verify = true,
            ("sslrootcert", value) => self.root = Some(value.to_owned()),
            ("sslcert", value) => self.certificate = Some(value.to_owned()),
            ("sslkey", value) => self.key = Some(value.to_owned()),
            _ => return false,
        }
        true
    }
}

impl Address {
    /// TLS is used if the string has `sslmode=require`, `verify-ca` or `verify-full`, which all mean the same here, or
    /// if the connections have a [`Tls`] of their own.
    pub(super) fn new(url: &str, connections: &Connections) -> Result<Self, PostgresError> {
        let (rest, ours) = split(url);
        let mut config: Config = rest.parse().map_err(PostgresError::Address)?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(connections.timeout);
        }
        let wanted = ours.verify || config.get_ssl_mode() == SslMode::Require;
        #[cfg(feature = "tls")]
        {
            let own = if wanted { Some(ours.tls().map_err(PostgresError::Tls)?) } else { None };
            let Some(tls) = connections.tls.clone().or(own) else {
                return Ok(Self { config, tls: None });
            };
            config.ssl_mode(SslMode::Require);
            let tls = tls.client_config().map_err(PostgresError::Tls)?;
            Ok(Self { config, tls: Some(MakeRustlsConnect::new(tls)) })
        }
        #[cfg(not(feature = "tls"))]
        if wanted { Err(PostgresError::WithoutTls) } else { Ok(Self { config }) }
    }
}

#[cfg(feature = "tls")]
impl Ours {
    fn tls(&self) -> Result<Tls, TlsError> {
        let read = |name: &String| {
            std::fs::read(name).map_err(|error| TlsError::File(name.clone(), error))
        };
        let tls = match &self.root {
            Some(file) if file != "system" => Tls::trusting(read(file)?),
            _ => Tls::system(),
        };
        match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => Ok(tls.identity(read(certificate)?, read(key)?)),
            _ => Ok(tls),
        }
    }
}

/// The string without our parameters, and those.
fn split(url: &str) -> (String, Ours) {
    let mut ours = Ours::default();
    let rest = match (url.starts_with("postgres"), url.split_once("://"), url.split_once('?')) {
        (true, Some(_), Some((place, parameters))) => {
            let others = parameters.split('&').filter(|parameter| {
                let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
                !ours.take(name, &percent_decoded(value))
            });
            format!("{place}?{}", others.collect::<Vec<_>>().join("&"))
        }
        (true, Some(_), None) => url.to_owned(),
        _ => without_pairs(url, |name, value| ours.take(name, value)),
    };
    (rest.trim_end_matches('?').to_owned(), ours)
}

/// `name=value name='quoted value' …` without the pairs that are taken.
fn without_pairs(text: &str, mut take: impl FnMut(&str, &str) -> bool) -> String {
    let (mut rest, mut left) = (String::new(), text.trim_start());
    while let Some((name, after)) = left.split_once('=') {
        let (value, end) = value_of(after.trim_start());
        let after = &after.trim_start()[end..];
        let pair = &left[..left.len() - after.len()];
        if !take(name.trim_end(), &value) {
            rest.push_str(pair);
            rest.push(' ');
        }
        left = after.trim_start();
    }
    rest + left
}

/// The value at the beginning, and where it ends.
fn value_of(text: &str) -> (String, usize) {
    let quoted = text.starts_with('\'');
    let mut value = String::new();
    let mut letters = text.char_indices().skip(usize::from(quoted));
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => value.extend(letters.next().map(|(_, letter)| letter)),
            '\'' if quoted => return (value, at + 1),
            _ if !quoted && letter.is_whitespace() => return (value, at),
            _ => value.push(letter),
        }
    }
    (value, text.len())
}

fn percent_decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if *first == b'%' => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(verify: bool, root: &str) -> Ours {
        Ours { verify, root: Some(root.to_owned()), ..Ours::default() }
    }

    #[test]
    fn parameters_of_libpq_are_taken_out_of_both_forms() {
        for (url, rest, ours) in [
            ("postgresql://me@h/db", "postgresql://me@h/db", Ours::default()),
            ("postgresql://h?sslmode=require", "postgresql://h?sslmode=require", Ours::default()),
            (
                "postgres://h/db?sslmode=verify-full&application_name=a%20b&sslrootcert=%2Fc%20a.pem",
                "postgres://h/db?application_name=a%20b",
                root(true, "/c a.pem"),
            ),
            ("postgres://h?sslmode=verify-ca&sslrootcert=/ca", "postgres://h", root(true, "/ca")),
            (
                "host=h sslrootcert = '/a b\\'c' user=me sslmode=verify-full password='x y\\\\' ",
                "host=h user=me password='x y\\\\' ",
                root(true, "/a b'c"),
            ),
            ("host=h nonsense", "host=h nonsense", Ours::default()),
        ] {
            let (left, found) = split(url);
            assert_eq!((left.as_str(), &found), (rest, &ours), "{url}");
        }
    }

    #[test]
    fn no_string_is_too_odd_to_be_split() {
        for odd in
            ["", "=", "a=", "a='", "a='\\", "= =", "postgres://?", "postgres://?&=&%", "é='ü"]
        {
            split(odd);
        }
    }
}
