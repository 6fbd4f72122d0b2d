//! A cluster of three masters on this machine.

use std::path::Path;

use crate::module::Server;
use crate::wait_until;

/// The slots of each master.
pub const SLOTS: [(u32, u32); 3] = [(0, 5460), (5461, 10922), (10923, 16383)];

/// Starts three masters that know each other and share the slots.
pub fn cluster(program: &Path) -> Vec<Server> {
    let options = ["--cluster-enabled", "yes", "--cluster-node-timeout", "30000"];
    let servers: Vec<Server> = SLOTS.iter().map(|_| Server::start(program, &options)).collect();
    for (server, (first, last)) in servers.iter().zip(SLOTS) {
        let slots: Vec<String> = (first..=last).map(|slot| slot.to_string()).collect();
        let reply = server.client().text(&format!("CLUSTER ADDSLOTS {}", slots.join(" ")));
        assert_eq!(reply, "+OK\r\n");
        let reply = server.client().text(&format!("CLUSTER MEET 127.0.0.1 {}", servers[0].port));
        assert_eq!(reply, "+OK\r\n");
    }
    for server in &servers {
        let mut client = server.client();
        wait_until(|| {
            let info = client.text("CLUSTER INFO");
            info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
        });
    }
    servers
}
