//! Promise: BF.INFO … FULL of a large filter holds nobody up while its bits are counted, and says the same as when they are
//! counted at once. Whatever happens to the filter meanwhile, there is a reply.

use crate::common::key;
use ironbloom_testing::module::{Client, Server, all_programs as programs};
use ironbloom_testing::wait_until;

/// What filters of some 50 MB are made by.
const LARGE: [&str; 3] = [
    "BF.RESERVE f 0.01 40000000",
    "BF.RESERVE f 0.01 40000000 LAYOUT BLOCKED",
    "BF.RESERVE f 0.01 20000000 WINDOW 20000000",
];

const NOT_COUNTED: &str = "-ERR the bits were not counted: ";

fn add(client: &mut Client, keys: std::ops::Range<usize>) {
    let keys: Vec<String> = keys.map(key).collect();
    for group in keys.chunks(1000) {
        let reply = client.text(&format!("BF.MADD f {}", group.join(" ")));
        assert_eq!(reply.matches(":1").count(), group.len(), "all are new");
    }
}

fn make(client: &mut Client, made: &str) {
    client.call("FLUSHALL");
    assert_eq!(client.text(made), "+OK\r\n");
    add(client, 0..2000);
}

/// A count that is not over before [`hurry`] says so, or a second has gone.
fn begin(server: &Server, protocol: u8) -> Client {
    let mut client = server.client();
    client.configure("step-usec", "1");
    let before: u64 = client.info("clients", "blocked_clients").parse().unwrap();
    let mut waiting = server.client();
    waiting.hello(protocol);
    waiting.send(&[b"BF.INFO", b"f", b"FULL"]).unwrap();
    wait_until(|| client.info("clients", "blocked_clients").parse() == Ok(before + 1));
    waiting
}

fn hurry(server: &Server) {
    server.client().configure("step-usec", "50000");
}

fn finish(server: &Server, waiting: &mut Client) -> String {
    hurry(server);
    String::from_utf8(waiting.receive().expect("a reply")).unwrap()
}

/// Runs commands in a transaction in the middle of a count: `waiting` clients wait for theirs.
fn in_the_middle(client: &mut Client, commands: &str, waiting: usize) -> String {
    client.call("MULTI");
    client.call("INFO clients");
    commands.split(';').for_each(|command| drop(client.call(command)));
    let reply = client.text("EXEC");
    assert!(reply.contains(&format!("blocked_clients:{waiting}\r\n")), "{commands}: {reply}");
    reply
}

#[test]
fn bits_counted_in_slices_are_those_counted_at_once() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut client = server.client();
        for (made, protocol) in LARGE.into_iter().zip([2, 3, 2]) {
            make(&mut client, made);
            client.hello(protocol);
            let mut waiting = begin(&server, protocol);
            // Others are served, and those who cannot wait are answered at once.
            assert_eq!(client.text(&format!("BF.EXISTS f {}", key(1))).trim_end(), {
                if protocol == 3 { "#t" } else { ":1" }
            });
            let at_once = in_the_middle(&mut client, "BF.INFO f FULL", 1);
            let sliced = finish(&server, &mut waiting);
            assert!(at_once.ends_with(&sliced), "{made}: {sliced}, but at once {at_once}");
            assert!(sliced.contains("Fill\r\n") && !sliced.contains("Fill\r\n$1\r\n0"), "{sliced}");
            client.hello(2);
        }
    }
}

#[test]
fn in_a_script_bits_are_counted_at_once() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut client = server.client();
        for made in LARGE {
            make(&mut client, made);
            let script = b"return redis.call('BF.INFO', KEYS[1], 'FULL')";
            let at_once = client.call_words(&[b"EVAL", script, b"1", b"f"]);
            let mut waiting = begin(&server, 2);
            let sliced = finish(&server, &mut waiting);
            assert_eq!(String::from_utf8(at_once).unwrap(), sliced, "{made}");
        }
    }
}

/// (what happens, whether the count can go on)
const CHANGES: [(&str, bool); 8] = [
    ("DEL f", false),
    ("RENAME f g", false),
    ("RENAME f g;RENAME g f", true),
    ("SET f x", false),
    ("PEXPIRE f 0", false),
    ("DEL f;MADE", false),
    ("COPY other f REPLACE", false),
    ("FLUSHALL", false),
];

#[test]
fn whatever_happens_to_the_filter_meanwhile_there_is_a_reply() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut client = server.client();
        for (made, (change, goes_on)) in LARGE.into_iter().cycle().zip(CHANGES) {
            make(&mut client, made);
            client.call("BF.RESERVE other 0.01 100");
            let mut waiting = begin(&server, 2);
            in_the_middle(&mut client, &change.replace("MADE", made), 1);
            let reply = finish(&server, &mut waiting);
            let start = if goes_on { "*16\r\n+Capacity\r\n" } else { NOT_COUNTED };
            assert!(reply.starts_with(start), "{made}, {change}: {reply}");
        }
        // A chunk that overwrites part of it.
        make(&mut client, LARGE[0]);
        let pairs = client.scandump("BF", "f");
        let mut waiting = begin(&server, 2);
        assert_eq!(client.load("BF", "f", &pairs[1..2]), "+OK\r\n");
        assert!(finish(&server, &mut waiting).starts_with(NOT_COUNTED));
        // Its client goes away.
        drop(begin(&server, 2));
        hurry(&server);
        wait_until(|| client.info("clients", "blocked_clients") == "0");
        assert_eq!(client.text("PING"), "+PONG\r\n");
    }
}

/// The fraction of bits that are set, as a reply says.
fn fill(reply: &str) -> f64 {
    let (_, rest) = reply.split_once("+Fill\r\n$").expect("a fill");
    rest.lines().nth(1).unwrap().parse().unwrap()
}

/// A rate low enough for a few keys to fill megabytes, and enough waiting clients for the count to take long.
#[test]
fn the_filter_may_take_keys_and_grow_in_the_middle() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut client = server.client();
        client.call("BF.RESERVE f 1e-300 30000");
        add(&mut client, 0..29_990);
        let before = client.text("BF.INFO f FULL");
        assert!(before.contains("+Number of filters\r\n:1\r\n"), "{before}");
        let mut waiting: Vec<Client> = (0..10).map(|_| begin(&server, 2)).collect();
        let keys: Vec<String> = (40_000..41_000).map(key).collect();
        in_the_middle(&mut client, &format!("BF.MADD f {}", keys.join(" ")), 10);
        hurry(&server);
        let now = fill(&client.text("BF.INFO f FULL"));
        // The second link is larger than the first, and nearly empty.
        assert!(now < fill(&before) / 2.0, "{now}");
        for waiting in &mut waiting {
            let reply = String::from_utf8(waiting.receive().expect("a reply")).unwrap();
            assert!(reply.contains("+Number of filters\r\n:2\r\n"), "{reply}");
            assert!(reply.contains("+Number of items inserted\r\n:30990\r\n"), "{reply}");
            // A few of the keys came after their words had been counted.
            assert!((0.99..=1.0).contains(&(fill(&reply) / now)), "{now} at once, but {reply}");
        }
        assert_eq!(client.text(&format!("BF.EXISTS f {}", key(40_500))), ":1\r\n");
    }
}
