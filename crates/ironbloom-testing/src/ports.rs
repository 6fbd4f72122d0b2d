//! Ports reserved from the moment a test asks for one until its process ends.
//!
//! A port that the system chose (port 0) and that was closed again can be taken before the server binds it: by an
//! outgoing connection of another test, or by another test that asks for a port. So ports come from below the range
//! that the system hands out, and each is claimed by a name that only one process can hold.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process;
use std::sync::Mutex;

use crate::Random;

/// The lowest server port. Systems hand out 32768 and above by themselves.
const FIRST: u16 = 11_000;
const LAST: u16 = 20_999;
/// A cluster node also listens this much higher.
const CLUSTER_BUS: u16 = 10_000;

/// The claims held by this process.
static CLAIMS: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());

/// Reserves a port for a server of this process. It stays ours while the server is stopped, and so does the second port
/// of a cluster node.
pub fn free_port() -> u16 {
    let mut claims = CLAIMS.lock().unwrap();
    // The starting point of the search matters little: claims keep processes apart.
    let mut random = Random((u64::from(process::id()) << 32) | claims.len() as u64);
    for _ in 0..10_000 {
        let port = FIRST + random.below(u64::from(LAST - FIRST) + 1) as u16;
        if let Some(claim) = claim(port) {
            claims.push(claim);
            return port;
        }
    }
    panic!("no port between {FIRST} and {LAST} is free");
}

/// Claims a port, unless another process of ours has it or something listens there.
fn claim(port: u16) -> Option<UnixListener> {
    let name = SocketAddr::from_abstract_name(format!("ironbloom-testing-port-{port}")).unwrap();
    let claim = UnixListener::bind_addr(&name).ok()?;
    let is_free = |port| TcpListener::bind(("127.0.0.1", port)).is_ok();
    (is_free(port) && is_free(port + CLUSTER_BUS)).then_some(claim)
}
