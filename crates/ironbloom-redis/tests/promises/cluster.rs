//! Promise: filters live in a cluster as other values do; a slot that moves takes its filters along.

use crate::common::*;
use ironbloom_testing::cluster::{SLOTS, cluster};
use ironbloom_testing::module::{Client, Server, all_programs as programs};

fn slot_of(client: &mut Client, key: &str) -> u32 {
    client.text(&format!("CLUSTER KEYSLOT {key}"))[1..].trim().parse().unwrap()
}

fn id_of(client: &mut Client) -> String {
    let reply = client.text("CLUSTER MYID");
    reply.lines().nth(1).unwrap().to_owned()
}

/// One logical filter as n keys, each routed by its own hash: what `{…}` does not force together spreads.
#[test]
fn filters_spread_over_masters_and_move_with_their_slots() {
    for program in programs() {
        let servers = cluster(&program);
        let mut clients: Vec<Client> = servers.iter().map(Server::client).collect();
        let owner = |slot: u32| SLOTS.iter().position(|&(_, last)| slot <= last).unwrap();
        let mut used = [false; 3];
        for shard in 0..12 {
            let (b, c) = (format!("b{{{shard}}}"), format!("c{{{shard}}}"));
            let slot = slot_of(&mut clients[0], &b);
            assert_eq!(slot, slot_of(&mut clients[1], &c), "the part in braces decides");
            let client = &mut clients[owner(slot)];
            used[owner(slot)] = true;
            for i in 0..200 {
                assert!(client.text(&format!("BF.ADD {b} {}", key(i))).starts_with(':'));
                assert_eq!(client.text(&format!("CF.ADD {c} {}", key(i))), ":1\r\n");
            }
            let made = format!("BF.INSERT n{{{shard}}} CAPACITY 100 LAYOUT BLOCKED ITEMS a b c");
            assert!(client.text(&made).starts_with("*3"));
            let made = format!("CF.RESERVE m{{{shard}}} 100 ERROR 0.001");
            assert_eq!(client.text(&made), "+OK\r\n");
            assert_eq!(client.text(&format!("CF.ADD m{{{shard}}} x")), ":1\r\n");
            let reply = clients[(owner(slot) + 1) % 3].text(&format!("BF.ADD {b} x"));
            assert!(reply.starts_with(&format!("-MOVED {slot} ")), "{reply}");
        }
        assert_eq!(used, [true; 3], "twelve shards reach every master");

        let slot = slot_of(&mut clients[0], "b{0}");
        let (from, to) = (owner(slot), (owner(slot) + 1) % 3);
        let before = clients[from].text("DEBUG DIGEST-VALUE b{0} c{0} n{0} m{0}");
        let ids: Vec<String> = clients.iter_mut().map(id_of).collect();
        let (from_id, to_id) = (&ids[from], &ids[to]);
        let mut ask = |who: usize, command: String| {
            let reply = clients[who].text(&command);
            assert_eq!(reply, "+OK\r\n", "{command}");
        };
        ask(to, format!("CLUSTER SETSLOT {slot} IMPORTING {from_id}"));
        ask(from, format!("CLUSTER SETSLOT {slot} MIGRATING {to_id}"));
        let port = servers[to].port;
        // The empty key says that the keys come at the end.
        let migrate = format!("MIGRATE 127.0.0.1 {port}  0 5000 KEYS b{{0}} c{{0}} n{{0}} m{{0}}");
        ask(from, migrate);
        ask(to, format!("CLUSTER SETSLOT {slot} NODE {to_id}"));
        ask(from, format!("CLUSTER SETSLOT {slot} NODE {to_id}"));
        assert_eq!(clients[to].text("DEBUG DIGEST-VALUE b{0} c{0} n{0} m{0}"), before);
        assert_eq!(clients[to].text("BF.MEXISTS n{0} a b c"), "*3\r\n:1\r\n:1\r\n:1\r\n");
        assert_eq!(clients[to].text("CF.DEL m{0} x"), ":1\r\n");
        for i in 0..200 {
            assert_eq!(clients[to].text(&format!("BF.EXISTS b{{0}} {}", key(i))), ":1\r\n");
            assert_eq!(clients[to].text(&format!("CF.DEL c{{0}} {}", key(i))), ":1\r\n");
        }
    }
}
