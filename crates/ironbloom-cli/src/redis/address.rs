//! Where servers are: what `--url` says.
//!
//! ```text
//! redis://[user:password@]host[:port][/database]             a server, or any server of a cluster
//! unix:///path
//! redis+sentinel://[user:password@]host[:port][,…]/NAME[/database][?sentinel_user=…&sentinel_password=…]
//!                                                            the master that Sentinels know under this name
//! rediss://, rediss+sentinel://                              with TLS: to servers and Sentinels
//! ```

use anyhow::Result;
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _, RedisError};

use super::explain::{explain, without_password};
use super::sentinel::Sentinels;
use super::tls::{Tls, TlsArgs};
use crate::failure::Advice;

pub(super) struct Address {
    /// For messages: without passwords.
    pub(super) shown: String,
    pub(super) endpoint: Endpoint,
    pub(super) tls: Option<Tls>,
}

pub(super) enum Endpoint {
    Server(Box<ConnectionInfo>),
    Sentinels(Sentinels),
}

/// The default port of a Sentinel.
const SENTINEL_PORT: u16 = 26379;

impl Address {
    pub(super) fn parse(url: &str, tls: &TlsArgs) -> Result<Self> {
        let shown = without_password(url);
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        if url.ends_with("#insecure") {
            return Err(Advice::error(
                format!("{shown}: #insecure is an option"),
                "write --insecure",
            ));
        }
        let (family, is_sentinel) =
            scheme.strip_suffix("+sentinel").map_or((scheme, false), |family| (family, true));
        let tls = tls.read(matches!(family, "rediss" | "valkeys"))?;
        let parsed =
            match is_sentinel && matches!(family, "redis" | "rediss" | "valkey" | "valkeys") {
                true => sentinels(rest, tls.as_ref()).map(|found| found.map(Endpoint::Sentinels)),
                false => server(url, tls.as_ref())
                    .map(|found| found.map(|one| Endpoint::Server(Box::new(one)))),
            };
        match parsed.map_err(|error| explain(&shown, error))? {
            Some(endpoint) => Ok(Self { shown, endpoint, tls }),
            None if is_sentinel => Err(Advice::error(
                format!("--url {shown:?} does not say which Sentinels, and which master"),
                "write redis+sentinel://[user:password@]host[:port][,host[:port]…]/NAME[/database][?sentinel_password=…]",
            )),
            None => Err(Advice::error(
                format!("--url {shown:?} is not the address of a server"),
                "write redis://[user:password@]host[:port][/database], unix:///path or redis+sentinel://host[:port]/NAME",
            )),
        }
    }
}

/// One server; nothing if this is not the address of one.
fn server(url: &str, tls: Option<&Tls>) -> Result<Option<ConnectionInfo>, RedisError> {
    let Ok(info) = url.into_connection_info() else { return Ok(None) };
    if tls.is_some() && matches!(info.addr(), ConnectionAddr::Unix(_)) {
        return Ok(None);
    }
    secured(info, tls).map(Some)
}

/// Adds TLS, if it is wanted.
fn secured(info: ConnectionInfo, tls: Option<&Tls>) -> Result<ConnectionInfo, RedisError> {
    let Some(tls) = tls else { return Ok(info) };
    let (host, port) = match info.addr() {
        ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => {
            (host, *port)
        }
        _ => return Ok(info),
    };
    let address = tls.address(host.clone(), port)?;
    Ok(info.set_addr(address))
}

/// Sentinels; nothing if this does not say which.
fn sentinels(rest: &str, tls: Option<&Tls>) -> Result<Option<Sentinels>, RedisError> {
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (mut user, mut password) = ("", "");
    for field in query.split('&').filter(|field| !field.is_empty()) {
        match field.split_once('=') {
            Some(("sentinel_user" | "sentinel_username", value)) => user = value,
            Some(("sentinel_password", value)) => password = value,
            _ => return Ok(None),
        }
    }
    let Some((authority, path)) = place.split_once('/') else { return Ok(None) };
    let (of_master, hosts) = authority
        .rsplit_once('@')
        .map_or((String::new(), authority), |(user, hosts)| (format!("{user}@"), hosts));
    let (name, database) = path.split_once('/').unwrap_or((path, ""));
    // The client's own parser knows about escaping.
    let Ok(master) = format!("redis://{of_master}master/{database}").into_connection_info() else {
        return Ok(None);
    };
    let of_sentinel =
        if (user, password) == ("", "") { String::new() } else { format!("{user}:{password}@") };
    let mut nodes = Vec::new();
    for host in hosts.split(',') {
        let port = if has_port(host) { String::new() } else { format!(":{SENTINEL_PORT}") };
        let Ok(node) = format!("redis://{of_sentinel}{host}{port}").into_connection_info() else {
            return Ok(None);
        };
        nodes.push(secured(node, tls)?);
    }
    if name.is_empty() {
        return Ok(None);
    }
    Ok(Some(Sentinels { name: name.to_owned(), nodes, master: Box::new(master) }))
}

/// Returns true if a host is followed by a port; those of IPv6 have colons, too, in brackets.
fn has_port(host: &str) -> bool {
    host.rsplit_once(']').map_or(host, |(_, port)| port).contains(':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentinels_have_a_port_a_password_and_a_master_of_their_own() {
        let url = "us%2Fer:pass@one,[::1],two:7/mymaster/3?sentinel_password=sec%40ret";
        let found = sentinels(url, None).unwrap().unwrap();
        assert_eq!(found.name, "mymaster");
        let nodes: Vec<String> = found.nodes.iter().map(|node| node.addr().to_string()).collect();
        assert_eq!(nodes, ["one:26379", "::1:26379", "two:7"]);
        assert!(found.nodes.iter().all(|node| node.redis_settings().password() == Some("sec@ret")));
        let settings = found.master.redis_settings();
        assert_eq!((settings.username(), settings.password()), (Some("us/er"), Some("pass")));
        assert_eq!(settings.db(), 3);
        let bare = sentinels("one/m", None).unwrap().unwrap();
        assert_eq!(bare.nodes[0].redis_settings().password(), None);
    }

    #[test]
    fn addresses_without_a_host_or_a_master_are_refused() {
        for rest in ["", "one", "one/", "/m", "one,/m", "one/m/x", "one/m?password=x", "one:x/m"] {
            assert!(sentinels(rest, None).unwrap().is_none(), "{rest}");
        }
    }
}
