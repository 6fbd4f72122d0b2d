//! Promise: a dump of a large native filter holds nobody up, not even its header, which has a checksum of all of it; and it is
//! the dump of one moment or refused, whatever is written meanwhile.

use crate::common::key;
use ironbloom_testing::module::{Client, Server, all_programs as programs, replica_of, string_of};
use ironbloom_testing::wait_until;

/// (commands, made by, add): native filters of some 50 MB.
const LARGE: [(&str, &str, &str); 2] = [
    ("BF", "BF.RESERVE f 0.01 40000000 LAYOUT BLOCKED", "BF.ADD"),
    ("CF", "CF.RESERVE f 40000000 ERROR 0.01", "CF.ADD"),
];

fn make(client: &mut Client, made: &str, add: &str) {
    client.call("FLUSHALL");
    assert_eq!(client.text(made), "+OK\r\n");
    for i in 0..2000 {
        assert_eq!(client.text(&format!("{add} f {}", key(i))), ":1\r\n");
    }
}

/// A SCANDUMP that is not over before [`hurry`] says so, or two seconds have gone.
fn begin(server: &Server, family: &str, iterator: i64) -> Client {
    let mut client = server.client();
    client.configure("step-usec", "1");
    let before: u64 = client.info("clients", "blocked_clients").parse().unwrap();
    let mut waiting = server.client();
    let (command, iterator) = (format!("{family}.SCANDUMP"), iterator.to_string());
    waiting.send(&[command.as_bytes(), b"f", iterator.as_bytes()]).unwrap();
    wait_until(|| client.info("clients", "blocked_clients").parse() == Ok(before + 1));
    waiting
}

fn hurry(server: &Server) {
    server.client().configure("step-usec", "50000");
}

/// The pairs of a dump, with a header that came before.
fn with_header(client: &mut Client, family: &str, header: &[u8]) -> Vec<(i64, Vec<u8>)> {
    let mut pairs = client.scandump(family, "f");
    let header = header.strip_prefix(b"*2\r\n:1\r\n").expect("the first pair");
    pairs[0].1 = string_of(header).to_vec();
    pairs
}

#[test]
fn a_header_made_in_slices_is_the_one_made_at_once() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let replica = replica_of(&server, &program, &[]);
        let mut client = server.client();
        for (family, made, add) in LARGE {
            make(&mut client, made, add);
            // Two that wait for the same, and one on a replica.
            let mut both = [begin(&server, family, 0), begin(&server, family, 0)];
            assert_eq!(client.text("PING"), "+PONG\r\n");
            hurry(&server);
            let [one, two] = [0, 1].map(|i| both[i].receive().unwrap());
            wait_until(|| replica.client().text(&format!("{family}.INFO f")).starts_with('*'));
            let on_replica = replica.client().call(&format!("{family}.SCANDUMP f 0"));
            // In a transaction, where nobody can wait; a command that may change the filter has it read again.
            client.call("MULTI");
            client.call(&format!("{add}{} f {}", if family == "CF" { "NX" } else { "" }, key(0)));
            client.call(&format!("{family}.SCANDUMP f 0"));
            let reply = client.call("EXEC");
            let at_once = reply.strip_prefix(b"*2\r\n:0\r\n").expect("nothing new, and a header");
            assert!(one == two && one == at_once && one == on_replica, "{family}");
            let pairs = with_header(&mut client, family, &one);
            assert_eq!(client.load(family, "g", &pairs), "+OK\r\n");
            let digest = |client: &mut Client, name: &str| {
                client.text(&format!("DEBUG DIGEST-VALUE {name}"))
            };
            assert_eq!(digest(&mut client, "f"), digest(&mut client, "g"), "{family}");
        }
    }
}

#[test]
fn a_write_in_the_middle_gives_a_dump_of_one_moment() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut client = server.client();
        for (family, made, add) in LARGE {
            make(&mut client, made, add);
            let mut waiting = begin(&server, family, 0);
            assert_eq!(client.text(&format!("{add} f {}", key(5000))), ":1\r\n");
            hurry(&server);
            let header = waiting.receive().unwrap();
            let pairs = with_header(&mut client, family, &header);
            assert_eq!(client.load(family, "g", &pairs), "+OK\r\n");
            assert_eq!(client.text(&format!("{family}.EXISTS g {}", key(5000))), ":1\r\n");
            // After the header: the end of the image is that of another filter, and the dump is refused.
            assert_eq!(client.text(&format!("{add} f {}", key(6000))), ":1\r\n");
            let last = pairs[pairs.len() - 2].0;
            let mut waiting = begin(&server, family, last);
            hurry(&server);
            let end = waiting.receive().unwrap();
            let (next, bytes) = pairs.last().unwrap();
            let end = end.strip_prefix(format!("*2\r\n:{next}\r\n").as_bytes()).expect("the end");
            let end = string_of(end).to_vec();
            assert!(end.len() == bytes.len() && end != *bytes, "other checksums");
            let mut torn = pairs.clone();
            torn.last_mut().unwrap().1 = end;
            let reply = client.load(family, "h", &torn);
            assert!(reply.starts_with("-ERR the filter was not loaded"), "{family}: {reply}");
        }
    }
}

#[test]
fn whatever_happens_to_the_filter_meanwhile_there_is_a_reply() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut client = server.client();
        for (family, made, add) in LARGE {
            for (change, reply) in [
                ("DEL f", "-ERR not found\r\n"),
                ("SET f x", "-WRONGTYPE "),
                (
                    "DEL f;BF.RESERVE f 0.01 100",
                    if family == "BF" { "-ERR the filter was replaced" } else { "-WRONGTYPE " },
                ),
                ("RENAME f g", "-ERR not found\r\n"),
            ] {
                make(&mut client, made, add);
                let mut waiting = begin(&server, family, 0);
                client.call("MULTI");
                change.split(';').for_each(|command| drop(client.call(command)));
                client.call("EXEC");
                let got = String::from_utf8(waiting.receive().unwrap()).unwrap();
                assert!(got.starts_with(reply), "{family}, {change}: {got}");
            }
            // Its client goes away.
            make(&mut client, made, add);
            drop(begin(&server, family, 0));
            hurry(&server);
            wait_until(|| client.info("clients", "blocked_clients") == "0");
            // Written to all the time: it is read at once in the end.
            make(&mut client, made, add);
            let mut waiting = begin(&server, family, 0);
            let mut next = 10_000;
            wait_until(|| {
                client.call(&format!("{add} f {}", key(next)));
                next += 1;
                client.info("clients", "blocked_clients") == "0"
            });
            assert!(waiting.receive().unwrap().starts_with(b"*2\r\n:1\r\n$"));
        }
    }
}
