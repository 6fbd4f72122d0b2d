//! Promise: native filters are values like RedisBloom's: all commands, files, replicas, limits; and what is sent in pieces is
//! a filter only when all of it has come.

mod commands;
mod files;
mod pieces;

use crate::common::key;
use ironbloom_testing::module::{Client, Server, all_programs as programs};

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
const OVER_LIMIT: &str = "-ERR the filter would exceed the memory limit of a key, see CONFIG GET \
                          *key-memory-limit\r\n";

fn each_server(test: impl Fn(&Server, &mut Client)) {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut client = server.client();
        test(&server, &mut client);
    }
}

/// (how it is made, family) of one native filter of each layout, under these names.
const MADE: [(&str, &str, &str); 5] = [
    ("grow", "BF", "BF.RESERVE grow 0.01 100 LAYOUT BLOCKED"),
    ("fixed", "BF", "BF.RESERVE fixed 0.01 5000 NONSCALING LAYOUT BLOCKED"),
    ("window", "BF", "BF.RESERVE window 0.01 300 WINDOW 300"),
    ("parts", "CF", "CF.RESERVE parts 200 ERROR 0.001"),
    ("one", "CF", "CF.RESERVE one 5000 ERROR 0.0001 EXPANSION 0"),
];

/// Makes all of them, with these keys in them.
fn fill(client: &mut Client, keys: std::ops::Range<usize>) {
    for (name, family, made) in MADE {
        if client.text(&format!("EXISTS {name}")) == ":0\r\n" {
            assert_eq!(client.text(made), "+OK\r\n", "{made}");
        }
        for i in keys.clone() {
            let reply = client.text(&format!("{family}.ADD {name} {}", key(i)));
            assert!(reply == ":1\r\n" || (family == "BF" && reply == ":0\r\n"), "{name}: {reply}");
        }
    }
}

/// All keys are there; of the window, the last 300.
fn check(client: &mut Client, keys: std::ops::Range<usize>) {
    for (name, family, _) in MADE {
        let first = if name == "window" { keys.end.saturating_sub(300) } else { keys.start };
        for i in first.max(keys.start)..keys.end {
            let reply = client.text(&format!("{family}.EXISTS {name} {}", key(i)));
            assert_eq!(reply, ":1\r\n", "{name}: key {i} of {keys:?} is lost");
        }
    }
}
