//! Promise: a command on k items costs O(k), also on memory that nobody has touched yet, and a filter with few keys takes the
//! memory of few keys. Counted in pages, by the system: how many a server has, and how often one had to be found for it.

use std::fs;

use crate::common::key;
use ironbloom_testing::module::{Client, Server, all_programs as programs};

const PAGE: u64 = 4096;

/// What a server has had of the system.
#[derive(Clone, Copy, Debug)]
struct Pages {
    /// Pages in memory.
    resident: u64,
    /// Page faults so far: first touches, of reads as well.
    faults: u64,
}

impl Pages {
    /// `None` where the system does not tell.
    fn of(client: &mut Client) -> Option<Self> {
        let process = client.info("server", "process_id");
        let field = |text: &str, i: usize| text.split(' ').nth(i)?.parse().ok();
        let statm = fs::read_to_string(format!("/proc/{process}/statm")).ok()?;
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name of the program, in parentheses, may have blanks in it.
        let (_, after_name) = stat.rsplit_once(") ")?;
        Some(Self { resident: field(&statm, 1)?, faults: field(after_name, 7)? })
    }
}

/// Runs commands, and what pages they took.
fn taken(client: &mut Client, run: impl FnOnce(&mut Client)) -> Option<Pages> {
    let before = Pages::of(client)?;
    run(client);
    let after = Pages::of(client)?;
    Some(Pages {
        resident: after.resident.saturating_sub(before.resident),
        faults: after.faults - before.faults,
    })
}

/// What a server needs beside the filters: buffers, replies, a thread that wakes up.
const BESIDE: u64 = (6 << 20) / PAGE;

/// Items of a command.
const ITEMS: usize = 100;

/// (how a filter of some 50 MB is made, command that adds items, pages that an item may touch)
const LARGE: [(&str, &str, u64); 7] = [
    ("BF.RESERVE k 0.001 25000000", "BF.MADD k", 11),
    ("BF.RESERVE k 0.001 30000000 NONSCALING", "BF.INSERT k ITEMS", 10),
    ("BF.RESERVE k 0.001 25000000 LAYOUT BLOCKED", "BF.MADD k", 1),
    ("BF.RESERVE k 0.001 25000000 LAYOUT BLOCKED NONSCALING", "BF.MADD k", 1),
    ("BF.RESERVE k 0.001 10 WINDOW 10000000", "BF.MADD k", 20),
    ("CF.RESERVE k 50000000", "CF.INSERT k ITEMS", 2),
    ("CF.RESERVE k 20000000 ERROR 0.001", "CF.INSERT k ITEMS", 2),
];

/// What took 737 ms of a server, and 440 MB.
const VERY_LARGE: (&str, &str, u64) = ("BF.RESERVE k 0.001 230000000", "BF.MADD k", 11);

fn items(from: usize) -> String {
    (from..from + ITEMS).map(key).collect::<Vec<_>>().join(" ")
}

fn each_server(test: impl Fn(&mut Client)) {
    for program in programs() {
        let server = Server::start(&program, &[]);
        test(&mut server.client());
    }
}

#[test]
fn items_in_a_large_filter_take_pages_for_items() {
    each_server(|client| {
        for (made, add, of_item) in LARGE.into_iter().chain([VERY_LARGE]) {
            let mut so_far = 0;
            for round in 0..3 {
                let command = format!("{add} {}", items(round * ITEMS));
                let Some(pages) = taken(client, |client| {
                    if round == 0 {
                        assert_eq!(client.text(made), "+OK\r\n", "{made}");
                    }
                    assert_eq!(client.text(&command).matches(":1").count(), ITEMS, "{made}");
                }) else {
                    return;
                };
                so_far += pages.resident;
                let most = (round as u64 + 1) * ITEMS as u64 * of_item + BESIDE;
                assert!(so_far <= most, "{made}: {so_far} pages, more than {most}");
                assert!(pages.faults <= most, "{made}: {} page faults", pages.faults);
            }
            assert_eq!(client.text("DEL k"), ":1\r\n");
        }
    });
}

#[test]
fn a_chunk_takes_pages_for_its_bytes() {
    each_server(|client| {
        for (made, family) in
            [("BF.RESERVE k 0.001 230000000", "BF"), ("CF.RESERVE k 200000000", "CF")]
        {
            assert_eq!(client.text(made), "+OK\r\n");
            let Some(pages) = taken(client, |client| {
                for i in 1..=100 {
                    let place = (i * 2_000_003).to_string();
                    let command = format!("{family}.LOADCHUNK k {place} x");
                    assert_eq!(client.text(&command), "+OK\r\n", "{command}");
                }
            }) else {
                return;
            };
            assert!(pages.resident <= 100 + BESIDE, "{made}: {pages:?}");
            assert_eq!(client.text("DEL k"), ":1\r\n");
        }
    });
}

/// Copies and unions have as many pages as what they were made from.
#[test]
fn a_copy_of_few_keys_takes_pages_for_few_keys() {
    each_server(|client| {
        for (made, add, of_item) in LARGE {
            assert_eq!(client.text(made), "+OK\r\n", "{made}");
            client.call(&format!("{add} {}", items(0)));
            let most = 2 * ITEMS as u64 * of_item + BESIDE;
            let is_merged = made.starts_with("BF") && !made.contains("WINDOW");
            for command in
                ["COPY k copy", "BF.MERGE copy k"].iter().take(1 + usize::from(is_merged))
            {
                let Some(pages) = taken(client, |client| {
                    let reply = client.text(command);
                    assert!([":1\r\n", "+OK\r\n"].contains(&&*reply), "{made}: {reply}");
                }) else {
                    return;
                };
                assert!(pages.resident <= most, "{made}, {command}: {pages:?}, more than {most}");
                let digest = client.text("DEBUG DIGEST-VALUE k");
                assert_eq!(client.text("DEBUG DIGEST-VALUE copy"), digest, "{made}, {command}");
                client.call("DEL copy");
            }
            client.call("DEL k");
        }
    });
}

/// The reply is known without a look at the slots, however many there are.
#[test]
fn a_dump_of_an_empty_cuckoo_filter_reads_nothing() {
    each_server(|client| {
        assert_eq!(client.text("CF.RESERVE k 200000000"), "+OK\r\n");
        let Some(pages) = taken(client, |client| {
            for iterator in [0, 1, 1_000_000] {
                let reply = client.text(&format!("CF.SCANDUMP k {iterator}"));
                assert_eq!(reply, "*2\r\n:0\r\n$-1\r\n");
            }
        }) else {
            return;
        };
        assert!(pages.faults <= BESIDE, "{pages:?}");
    });
}
