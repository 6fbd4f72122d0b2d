//! Promise: filters go to servers and come back as they were, whole or not at all, and answer there as here.
//!
//! The servers are real ones, started by the tests of the module (see its `tests/common/server.rs`).

mod program;
#[allow(dead_code, reason = "the module's tests use the rest")]
mod servers;

use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use program::{Run, Scratch, lines};
use servers::cluster::cluster;
use servers::server::{Client, Server, programs};

fn url(server: &Server) -> String {
    format!("redis://127.0.0.1:{}", server.port)
}

/// Runs `ironbloom redis` with these arguments against a server.
fn redis(scratch: &Scratch, server: &Server, args: &[&str]) -> Run {
    redis_with(scratch, &url(server), args, "")
}

fn redis_with(scratch: &Scratch, url: &str, args: &[&str], stdin: &str) -> Run {
    let mut command = scratch.command(["redis"].iter().chain(args).chain(&["--url", url]));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let _ = pipe.write_all(stdin.as_bytes()); // a program that refuses reads nothing
        });
        Run::from(child.wait_with_output().unwrap())
    })
}

/// That a run fails with a message that begins so, and a hint that holds these words.
#[track_caller]
fn refused(run: &Run, message: &str, hint: &str) {
    assert_eq!(run.status, 2, "{}{}", run.text(), run.stderr);
    let start = format!("error: {message}");
    assert!(run.stderr.starts_with(&start), "{start:?} expected, got {}", run.stderr);
    assert!(run.hint().contains(hint), "{hint:?} expected, got {}", run.stderr);
}

/// Keys of a server, in order.
fn keys(client: &mut Client) -> Vec<String> {
    let reply = client.text("KEYS *");
    let mut keys: Vec<String> =
        reply.lines().skip(1).filter(|line| !line.starts_with('$')).map(str::to_owned).collect();
    keys.sort();
    keys
}

/// Puts keys `0`, `1`, … into a filter, a thousand a command.
fn madd(client: &mut Client, command: &str, range: std::ops::Range<u64>) {
    let all: Vec<String> = range.map(|i| i.to_string()).collect();
    for some in all.chunks(1000) {
        let reply = client.text(&format!("{command} {}", some.join(" ")));
        assert!(
            reply.starts_with('*') && !reply.contains('-'),
            "{}",
            &reply[..60.min(reply.len())]
        );
    }
}

#[test]
fn a_filter_of_each_kind_goes_up_answers_alike_and_comes_back_to_the_byte() {
    for program in programs() {
        let (server, scratch) = (Server::start(&program, &[]), Scratch::new());
        for kind in
            ["blocked", "bloom", "segmented", "scalable", "windowed", "cuckoo", "cuckoo-packed"]
        {
            let file = format!("{kind}.ibf");
            let options = ["--kind", kind, "--capacity", "20k", "--rate", "2%"];
            scratch.build(&file, options, &lines(0..20_000));
            redis(&scratch, &server, &["load", &file, "--key", kind]).succeeds();
            redis(&scratch, &server, &["dump", "--key", kind, "-o", "back.ibf"]).succeeds();
            assert!(scratch.read(&file) == scratch.read("back.ibf"), "{kind}");

            scratch.write("asked.txt", lines(0..40_000));
            let here = scratch.run(["check", &file, "asked.txt"]);
            let there = redis(&scratch, &server, &["check", "asked.txt", "--key", kind]);
            assert_eq!((there.status, here.status), (0, 0));
            assert!(here.text() == there.text(), "{kind}: other answers, false positives included");
            assert!(here.text().lines().count() > 20_000, "{kind}: no false positive to compare");
        }
    }
}

#[test]
fn large_filters_come_back_as_they_were() {
    for program in programs() {
        let (server, scratch) = (Server::start(&program, &[]), Scratch::new());
        scratch.build("big.ibf", ["--kind", "blocked", "--capacity", "12M"], &lines(0..1000));
        assert!(scratch.read("big.ibf").len() > 14 << 20, "more than one chunk");
        redis(&scratch, &server, &["load", "big.ibf", "--key", "big"]).succeeds();
        redis(&scratch, &server, &["dump", "--key", "big", "-o", "back.ibf"]).succeeds();
        assert!(scratch.read("big.ibf") == scratch.read("back.ibf"));
    }
}

#[test]
fn check_speaks_as_check_of_a_file_does() {
    for program in programs() {
        let (server, scratch) = (Server::start(&program, &[]), Scratch::new());
        let mut client = server.client();
        client.text("BF.RESERVE few 0.000001 1000");
        client.text("BF.MADD few alice bob");
        let url = url(&server);
        let check = |args: &[&str], stdin: &str| {
            let args: Vec<&str> = ["check", "--key", "few"].iter().chain(args).copied().collect();
            redis_with(&scratch, &url, &args, stdin)
        };
        assert_eq!(check(&[], "alice\ncarol\nbob\n").ends_with(0).text(), "alice\nbob\n");
        assert_eq!(check(&["--absent"], "alice\ncarol\nbob").ends_with(0).text(), "carol\n");
        assert_eq!(check(&["-0"], "alice\0carol").ends_with(0).text(), "alice\0");
        assert_eq!(check(&[], "carol\n").ends_with(1).text(), "");
        assert_eq!(check(&[], "").ends_with(1).text(), "");
        let counts = check(&["--count", "--json"], "alice\ncarol\n\nbob\n").ends_with(0).json();
        assert_eq!((&counts["present"], &counts["absent"]), (&2.into(), &2.into()));
        // A reader that has seen enough is no error.
        scratch.write("many.txt", "alice\n".repeat(300_000));
        let line = format!(
            "(ironbloom redis check --key few --url {url} many.txt; echo $? >&2) | head -n 1"
        );
        let run = scratch.shell(&line);
        assert_eq!((run.text().as_str(), run.stderr.as_str()), ("alice\n", "0\n"));
        scratch.write("users.csv", "id,name\n1,alice\n2,carol\n");
        assert_eq!(check(&["--csv", "name", "users.csv"], "").ends_with(0).text(), "alice\n");
    }
}

#[test]
fn filters_of_redisbloom_move_to_another_server() {
    let programs = programs();
    for from in &programs {
        for to in &programs {
            let (old, new) = (Server::start(from, &[]), Server::start(to, &[]));
            let (mut old_client, mut new_client) = (old.client(), new.client());
            // Several sub-filters; one of more bytes than a chunk; and a cuckoo filter that has grown.
            madd(&mut old_client, "BF.MADD chain", 0..5000);
            old_client.text("BF.RESERVE big 0.001 12000000 NONSCALING");
            madd(&mut old_client, "BF.MADD big", 0..2000);
            madd(&mut old_client, "CF.INSERT cuckoo ITEMS", 0..5000);
            let scratch = Scratch::new();
            for (key, family) in [("chain", "BF"), ("big", "BF"), ("cuckoo", "CF")] {
                redis(&scratch, &old, &["dump", "--key", key, "-o", "file"]).succeeds();
                assert!(scratch.read("file").starts_with(b"\x89IBD\r\n\x1a\n"));
                redis(&scratch, &new, &["load", "file", "--key", key]).succeeds();
                let there = new_client.scandump(family, key);
                assert!(old_client.scandump(family, key) == there, "{key}");
                let found =
                    redis_with(&scratch, &url(&new), &["check", "--key", key], &lines(0..2000));
                assert_eq!(found.succeeds().text(), lines(0..2000));
                assert_eq!(new_client.text(&format!("TTL {key}")), ":-1\r\n");
            }
            assert_eq!(keys(&mut new_client), ["big", "chain", "cuckoo"]);
        }
    }
}

#[test]
fn a_cuckoo_filter_that_grows_is_carried_with_all_its_parts() {
    for program in programs() {
        let (server, scratch) = (Server::start(&program, &[]), Scratch::new());
        let mut client = server.client();
        assert_eq!(client.text("CF.RESERVE k 1000 ERROR 0.001"), "+OK\r\n");
        madd(&mut client, "CF.INSERT k ITEMS", 0..3000);
        redis(&scratch, &server, &["dump", "--key", "k", "-o", "file"]).succeeds();
        assert!(scratch.read("file").starts_with(b"\x89IBD\r\n\x1a\n"));
        redis(&scratch, &server, &["load", "file", "--key", "copy"]).succeeds();
        assert!(client.scandump("CF", "k") == client.scandump("CF", "copy"));
        assert_eq!(client.text("CF.ADD copy new"), ":1\r\n");
    }
}

#[test]
fn a_filter_that_is_written_to_is_not_dumped_in_pieces_of_different_ages() {
    for program in programs().into_iter().take(1) {
        let (server, scratch) = (Server::start(&program, &[]), Scratch::new());
        scratch.write("file", "as it was");
        for layout in ["", " LAYOUT BLOCKED"] {
            let mut client = server.client();
            client.text("DEL k");
            let reserve = format!("BF.RESERVE k 0.001 12000000{layout}");
            assert_eq!(client.text(&reserve), "+OK\r\n");
            // A queue of inserts at the server at any moment, as long as the dump runs.
            let done = std::sync::atomic::AtomicBool::new(false);
            let run = std::thread::scope(|scope| {
                scope.spawn(|| {
                    let mut next = 0u64;
                    while !done.load(std::sync::atomic::Ordering::Relaxed) {
                        let keys: Vec<String> = (next..next + 200).map(|i| i.to_string()).collect();
                        keys.iter().for_each(|key| {
                            client.send(&[b"BF.ADD", b"k", key.as_bytes()]).unwrap();
                        });
                        keys.iter().for_each(|_| drop(client.receive().unwrap()));
                        next += 200;
                    }
                });
                let run = redis(&scratch, &server, &["dump", "--key", "k", "-o", "file"]);
                done.store(true, std::sync::atomic::Ordering::Relaxed);
                run
            });
            refused(&run, "k: the filter was changed while it was read, 3 times", "COPY");
            assert_eq!(scratch.read("file"), b"as it was");
            assert_eq!(scratch.files(), ["file"]);
        }
    }
}

#[test]
fn a_damaged_dump_is_refused_and_leaves_nothing() {
    for program in programs().into_iter().take(1) {
        let (server, scratch) = (Server::start(&program, &[]), Scratch::new());
        let mut client = server.client();
        madd(&mut client, "BF.MADD old", 0..500);
        redis(&scratch, &server, &["dump", "--key", "old", "-o", "whole"]).succeeds();
        let whole = scratch.read("whole");
        let mut damaged = whole.clone();
        let last = damaged.len() - 60;
        damaged[last] ^= 1;
        scratch.write("damaged", &damaged);
        scratch.write("short", &whole[..whole.len() - 1]);
        for (file, message) in
            [("damaged", "the checksum of chunk"), ("short", "the dump is cut short")]
        {
            let run = redis(&scratch, &server, &["load", file, "--key", "new"]).ends_with(2);
            assert!(run.stderr.starts_with(&format!("error: {file}: {message}")), "{}", run.stderr);
            let run = redis(&scratch, &server, &["load", file, "--key", "old", "--replace"]);
            run.ends_with(2);
            assert_eq!(keys(&mut client), ["old"]);
        }
        let run = redis_with(&scratch, &url(&server), &["check", "--key", "old"], &lines(0..500));
        assert_eq!(run.text(), lines(0..500));
    }
}

#[test]
fn a_key_that_exists_is_kept_unless_it_is_to_be_replaced() {
    for program in programs().into_iter().take(1) {
        let (server, scratch) = (Server::start(&program, &[]), Scratch::new());
        let mut client = server.client();
        scratch.build("one.ibf", ["--kind", "blocked", "--rate", "0.001%"], "alice\n");
        scratch.build("two.ibf", ["--kind", "cuckoo", "--rate", "0.001%"], "bob\n");
        let check =
            |keys: &str| redis_with(&scratch, &url(&server), &["check", "--key", "k"], keys);
        redis(&scratch, &server, &["load", "one.ibf", "--key", "k"]).succeeds();
        let run = redis(&scratch, &server, &["load", "two.ibf", "--key", "k"]);
        refused(&run, "k: this key exists already", "--replace");
        assert_eq!(check("alice\nbob\n").text(), "alice\n");
        redis(&scratch, &server, &["load", "two.ibf", "--key", "k", "--replace"]).succeeds();
        assert_eq!(check("alice\nbob\n").text(), "bob\n");
        assert_eq!(client.text("TTL k"), ":-1\r\n");
        client.text("SET text hello");
        let run = redis(&scratch, &server, &["load", "two.ibf", "--key", "text", "--replace"]);
        refused(&run, "text: is a string, not a filter", "--key");
        assert_eq!(client.text("GET text"), "$5\r\nhello\r\n");
        assert_eq!(keys(&mut client), ["k", "text"]);
    }
}

#[test]
fn a_filter_in_shards_spreads_over_a_cluster_and_answers_as_one() {
    for program in programs() {
        let (masters, scratch) = (cluster(&program), Scratch::new());
        scratch.write("keys.txt", lines(0..30_000));
        let load =
            ["load", "--lines", "keys.txt", "--shards", "12", "--rate", "0.1%", "--key", "seen"];
        redis(&scratch, &masters[0], &load).succeeds();
        for master in &masters {
            let found = keys(&mut master.client());
            assert!(found.iter().any(|key| key.starts_with("{seen:")), "{found:?}");
            assert!(!found.iter().any(|key| key.contains("loading")), "{found:?}");
        }
        // Any server of the cluster may be asked, and the number of shards need not be known.
        scratch.write("asked.txt", lines(0..60_000));
        for master in &masters {
            let run = redis(&scratch, master, &["check", "asked.txt", "--key", "seen"]).succeeds();
            let text = run.text();
            assert!(text.starts_with(&lines(0..30_000)));
            // 30 wrong ones expected, six sigma: 63.
            let wrong = text.lines().count() - 30_000;
            assert!((1..63).contains(&wrong), "{wrong}");
            let again =
                redis(&scratch, master, &["check", "asked.txt", "--key", "seen", "--shards", "12"]);
            assert_eq!(again.text(), text);
        }
        let run =
            redis(&scratch, &masters[1], &["check", "asked.txt", "--key", "seen", "--shards", "8"]);
        refused(&run, "seen: is in 12 shards, not in 8", "leave --shards out");

        // To a server alone, and back under another name.
        let alone = Server::start(&program, &[]);
        redis(&scratch, &masters[2], &["dump", "--key", "seen", "-o", "seen.ibd"]).succeeds();
        let run = redis(&scratch, &alone, &["load", "seen.ibd", "--key", "copy", "--shards", "3"]);
        refused(&run, "seen.ibd: a dump of 12 shards, not of 3 shards", "leave --shards out");
        redis(&scratch, &alone, &["load", "seen.ibd", "--key", "copy"]).succeeds();
        let there = redis(&scratch, &masters[0], &["check", "asked.txt", "--key", "seen"]).text();
        assert!(redis(&scratch, &alone, &["check", "asked.txt", "--key", "copy"]).text() == there);
        assert_eq!(keys(&mut alone.client()).len(), 13);
    }
}

#[test]
fn a_slot_that_moves_is_followed() {
    for program in programs().into_iter().take(1) {
        let (masters, scratch) = (cluster(&program), Scratch::new());
        scratch.write("keys.txt", lines(0..5000));
        let load = ["load", "--lines", "keys.txt", "--shards", "3", "--key", "seen"];
        redis(&scratch, &masters[0], &load).succeeds();
        // The program starts, asks for the slots, and waits for keys; then a slot moves.
        let mut command =
            scratch.command(["redis", "check", "--key", "seen", "--url", &url(&masters[0])]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        let mut first = String::new();
        let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
        writeln!(pipe, "0").unwrap();
        std::io::BufRead::read_line(&mut out, &mut first).unwrap();
        assert_eq!(first, "0\n");
        let from =
            masters.iter().position(|m| keys(&mut m.client()).contains(&"{seen:1/3}".to_owned()));
        let (from, to) = (from.unwrap(), (from.unwrap() + 1) % 3);
        let mut clients: Vec<Client> = masters.iter().map(Server::client).collect();
        let slot = clients[0].text("CLUSTER KEYSLOT {seen:1/3}")[1..].trim().to_owned();
        let id =
            |client: &mut Client| client.text("CLUSTER MYID").lines().nth(1).unwrap().to_owned();
        let (from_id, to_id) = (id(&mut clients[from]), id(&mut clients[to]));
        let mut ok =
            |who: usize, command: String| assert_eq!(clients[who].text(&command), "+OK\r\n");
        ok(to, format!("CLUSTER SETSLOT {slot} IMPORTING {from_id}"));
        ok(from, format!("CLUSTER SETSLOT {slot} MIGRATING {to_id}"));
        ok(from, format!("MIGRATE 127.0.0.1 {} {{seen:1/3}} 0 5000", masters[to].port));
        ok(to, format!("CLUSTER SETSLOT {slot} NODE {to_id}"));
        ok(from, format!("CLUSTER SETSLOT {slot} NODE {to_id}"));
        pipe.write_all(lines(1..5000).as_bytes()).unwrap();
        drop(pipe);
        let mut rest = String::new();
        std::io::Read::read_to_string(&mut out, &mut rest).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
        assert!(rest == lines(1..5000), "{} lines", rest.lines().count());
    }
}

#[test]
fn shards_are_replaced_by_more_or_fewer_or_by_one_filter() {
    for program in programs().into_iter().take(1) {
        let (server, scratch) = (Server::start(&program, &[]), Scratch::new());
        let mut client = server.client();
        scratch.write("keys.txt", lines(0..3000));
        scratch.build("one.ibf", ["--kind", "blocked"], &lines(0..3000));
        let all = |scratch: &Scratch| {
            let run = redis_with(scratch, &url(&server), &["check", "--key", "k"], &lines(0..3000));
            assert!(run.text() == lines(0..3000));
        };
        for (shards, kind) in [("4", "blocked"), ("4", "cuckoo"), ("2", "bloom"), ("5", "blocked")]
        {
            let load =
                ["load", "--lines", "keys.txt", "--key", "k", "--shards", shards, "--kind", kind];
            if shards != "4" {
                refused(
                    &redis(&scratch, &server, &load),
                    "k: this key exists already",
                    "--replace",
                );
            }
            let replace: Vec<&str> = load.into_iter().chain(["--replace"]).collect();
            redis(&scratch, &server, &replace).succeeds();
            let expected = shards.parse::<usize>().unwrap() + 1;
            assert_eq!(keys(&mut client).len(), expected, "{:?}", keys(&mut client));
            all(&scratch);
        }
        redis(&scratch, &server, &["load", "one.ibf", "--key", "k", "--replace"]).succeeds();
        assert_eq!(keys(&mut client), ["k"]);
        all(&scratch);
        let run =
            redis_with(&scratch, &url(&server), &["check", "--key", "k", "--shards", "2"], "1\n");
        refused(&run, "k: is one filter, not shards", "leave --shards out");
    }
}

#[test]
fn keys_of_windows_text_are_those_of_unix_text_and_reports_are_for_programs_too() {
    for program in programs().into_iter().take(1) {
        let (server, scratch) = (Server::start(&program, &[]), Scratch::new());
        let url = url(&server);
        let load = ["load", "--lines", "-", "--json", "--key", "dos", "--rate", "1e-4"];
        let run = redis_with(&scratch, &url, &load, "\u{feff}alice\r\nbob\r\n").succeeds();
        let note = "note: left out the carriage return at the end of 2 lines and the byte-order mark of 1 input";
        assert!(run.stderr.starts_with(note), "{}", run.stderr);
        let report = run.json();
        assert_eq!((&report["key"], &report["keys"]), (&"dos".into(), &2.into()));
        let check = ["check", "--key", "dos"];
        let run = redis_with(&scratch, &url, &check, "alice\ncarol\r\nbob\r\n").succeeds();
        assert_eq!(run.text(), "alice\nbob\r\n");
        let run =
            redis_with(&scratch, &url, &["check", "--key", "dos", "--exact-bytes"], "bob\r\n");
        run.ends_with(1);
        let dump = ["dump", "--json", "-o", "d.ibf", "--key", "dos"];
        let report = redis_with(&scratch, &url, &dump, "").succeeds().json();
        assert_eq!(report["size"].as_u64(), Some(scratch.read("d.ibf").len() as u64));
        let line = format!("ironbloom redis load - --key copy --url {url} < d.ibf");
        scratch.shell(&line).succeeds();
        let run = redis_with(&scratch, &url, &["check", "--key", "copy"], "bob\n").succeeds();
        assert_eq!(run.text(), "bob\n");
        let run = redis_with(&scratch, &url, &["dump", "-o", "-", "--key", "dos"], "").ends_with(2);
        assert!(run.stderr.starts_with("error: a dump needs a file"), "{}", run.stderr);
    }
}

#[test]
fn keys_build_the_filter_that_their_number_or_the_capacity_asks_for() {
    for program in programs().into_iter().take(1) {
        let (server, scratch) = (Server::start(&program, &[]), Scratch::new());
        for (key, options) in [
            ("sized", &["--rate", "1%"][..]),
            ("planned", &["--capacity", "20k", "--rate", "1%"]),
            ("cuckoo", &["--kind", "cuckoo", "--capacity", "20k"]),
        ] {
            for shards in [None, Some("7")] {
                let shards = shards.map_or(vec![], |n| vec!["--shards", n]);
                let args = [&["load", "--lines", "-", "--replace", "--key", key], options, &shards]
                    .concat();
                redis_with(&scratch, &url(&server), &args, &lines(0..20_000)).succeeds();
                let check = ["check", "--count", "--json", "--key", key];
                let counts = redis_with(&scratch, &url(&server), &check, &lines(0..40_000)).json();
                let present = counts["present"].as_u64().unwrap();
                // 200 wrong ones expected at most, six sigma above: 285. A filter of the wrong size has far more.
                assert!((20_000..20_285).contains(&present), "{key} {shards:?}: {present}");
            }
        }
    }
}

/// The records of `redis info`, by key.
fn info(scratch: &Scratch, server: &Server, args: &[&str]) -> Vec<serde_json::Value> {
    let args: Vec<&str> = ["info", "--json"].iter().chain(args).copied().collect();
    redis(scratch, server, &args).succeeds().json().as_array().unwrap().clone()
}

#[test]
fn info_lists_the_filters_of_a_server_with_advice() {
    for program in programs() {
        let (server, scratch) = (Server::start(&program, &[]), Scratch::new());
        let mut client = server.client();
        assert_eq!(info(&scratch, &server, &[]), [] as [serde_json::Value; 0]);
        for command in [
            "SET other value",
            "BF.RESERVE growing 0.01 1000",
            "BF.RESERVE blocked 0.01 1000 LAYOUT BLOCKED NONSCALING",
            "BF.RESERVE window 0.01 1000 WINDOW 500",
            "CF.RESERVE cuckoo 1000",
            "CF.RESERVE native 1000 ERROR 0.001",
            "BF.RESERVE roomy 0.01 1000000",
        ] {
            assert_eq!(client.text(command), "+OK\r\n", "{command}");
        }
        madd(&mut client, "BF.MADD growing", 0..5000);
        madd(&mut client, "BF.MADD blocked", 0..950);
        madd(&mut client, "BF.MADD window", 0..5000);
        madd(&mut client, "CF.INSERT cuckoo ITEMS", 0..100);
        madd(&mut client, "CF.INSERT native ITEMS", 0..2500);
        let records = info(&scratch, &server, &[]);
        let column = |name: &str| -> Vec<String> {
            let cells = records.iter().map(|record| &record[name]);
            cells.map(|cell| cell.as_str().map_or(cell.to_string(), str::to_owned)).collect()
        };
        let keys = ["blocked", "cuckoo", "growing", "native", "roomy", "window"];
        assert_eq!(column("key"), keys);
        let layouts =
            ["blocked", "redisbloom cuckoo", "redisbloom", "cuckoo", "redisbloom", "window"];
        assert_eq!(column("layout"), layouts);
        assert_eq!(column("stages"), ["1", "1", "3", "3", "1", "1"]);
        for (record, advice) in records.iter().zip([
            Some("% full, will soon refuse keys: rebuild for 2 k"),
            None,
            Some("3 stages, rate now "),
            Some("3 stages, rate now "),
            None,
            None,
        ]) {
            match advice {
                Some(words) => {
                    assert!(record["advice"].as_str().unwrap().contains(words), "{record}")
                }
                None => assert!(record["advice"].is_null(), "{record}"),
            }
            let number = |name: &str| record[name].as_f64().unwrap();
            assert!((0.0..0.6).contains(&number("fill")) || record["key"] == "native", "{record}");
            assert!((0.0..0.05).contains(&number("rate_now")), "{record}");
            assert!(number("memory") > 500.0 && number("capacity") >= 500.0, "{record}");
        }
        assert!(
            records[2]["advice"].as_str().unwrap().ends_with("rebuild for 10 k"),
            "{}",
            records[2]
        );
        let table = redis(&scratch, &server, &["info"]).succeeds().text().to_owned();
        assert!(table.lines().count() == 7 && table.contains("rate now"), "{table}");

        assert_eq!(info(&scratch, &server, &["--match", "*o*"]).len(), 5);
        let run = redis(&scratch, &server, &["info", "--most", "2"]).succeeds();
        assert_eq!(run.text().lines().count(), 3);
        assert!(run.stderr.contains("more than 2 filters"), "{}", run.stderr);

        // A filter of which only the header has come.
        let header: Vec<u8> = [&b"IBLOOM01"[..], &1000u64.to_le_bytes(), &[7; 8]].concat();
        let reply = client.call_words(&[b"BF.LOADCHUNK", b"half", b"1", &header]);
        assert!(reply.starts_with(b"+OK"));
        let half = &info(&scratch, &server, &["--match", "half"])[0];
        let advice = "is being loaded, 0 of 1000 bytes: finish the load, or delete the key";
        assert_eq!(half["advice"], advice, "{half}");
    }
}

#[test]
fn info_asks_all_servers_of_a_cluster() {
    for program in programs().into_iter().take(1) {
        let (masters, scratch) = (cluster(&program), Scratch::new());
        scratch.write("keys.txt", lines(0..1000));
        let load = ["load", "--lines", "keys.txt", "--shards", "12", "--key", "seen"];
        redis(&scratch, &masters[0], &load).succeeds();
        for master in &masters {
            let records = info(&scratch, master, &[]);
            assert_eq!(records.len(), 12);
            assert!(records.iter().all(|record| record["capacity"].as_u64() > Some(0)));
        }
    }
}

#[test]
fn a_shard_that_is_missing_is_an_error_and_not_an_answer() {
    for program in programs().into_iter().take(1) {
        let (server, scratch) = (Server::start(&program, &[]), Scratch::new());
        scratch.write("keys.txt", lines(0..1000));
        let load = ["load", "--lines", "keys.txt", "--key", "k", "--shards", "3"];
        redis(&scratch, &server, &load).succeeds();
        server.client().text("DEL {k:1/3}");
        let run = redis(&scratch, &server, &["check", "keys.txt", "--key", "k"]);
        refused(&run, "{k:1/3}: is missing, a shard of k", "--replace");
        assert_eq!(run.text(), "");
        let run = redis(&scratch, &server, &["dump", "--key", "k", "-o", "file"]);
        refused(&run, "{k:1/3}: is missing, a shard of k", "--replace");
        assert!(!scratch.exists("file"));
    }
}

#[test]
fn a_filter_that_vanishes_while_it_is_asked_is_an_error() {
    for program in programs().into_iter().take(1) {
        let (server, scratch) = (Server::start(&program, &[]), Scratch::new());
        let mut client = server.client();
        client.text("BF.MADD k 0 1 2");
        let mut command = scratch.command(["redis", "check", "--key", "k", "--url", &url(&server)]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        writeln!(pipe, "0").unwrap();
        let mut first = [0; 2];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
        client.text("DEL k");
        writeln!(pipe, "1").unwrap();
        drop(pipe);
        let run = Run::from(child.wait_with_output().unwrap()).ends_with(2);
        assert_eq!(run.text(), "");
        assert_eq!(run.stderr, "error: k: the filter was removed while it was asked\n");
    }
}

/// A load that is held up when its first chunk is there: writes wait from then on.
fn load_held_up(scratch: &Scratch, server: &Server) -> Option<Child> {
    let mut command = scratch.command([
        "redis",
        "load",
        "big.ibf",
        "--replace",
        "--key",
        "k",
        "--url",
        &url(server),
    ]);
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut client = server.client();
    while child.try_wait().unwrap().is_none() {
        if client.text("KEYS *loading*") != "*0\r\n" {
            assert_eq!(client.text("CLIENT PAUSE 60000 WRITE"), "+OK\r\n");
            std::thread::sleep(Duration::from_millis(100));
            if client.text("KEYS *loading*") != "*0\r\n" && child.try_wait().unwrap().is_none() {
                return Some(child);
            }
            client.text("CLIENT UNPAUSE"); // it was faster
        }
    }
    None
}

#[test]
fn killed_during_a_load_the_key_is_as_it_was_and_what_came_is_forgotten() {
    for program in programs().into_iter().take(1) {
        let (server, scratch) = (Server::start(&program, &[]), Scratch::new());
        let mut client = server.client();
        scratch.build("big.ibf", ["--kind", "blocked", "--capacity", "60M"], "new\n");
        client.text("BF.MADD k old");
        let before = client.scandump("BF", "k");
        for signal in ["-KILL", "-INT"] {
            let mut child = (0..20).find_map(|_| {
                let child = load_held_up(&scratch, &server);
                if child.is_none() {
                    client.text("DEL k");
                    client.text("BF.MADD k old");
                }
                child
            });
            let child = child.as_mut().expect("one of twenty loads is caught in the act");
            let status = Command::new("kill").args([signal, &child.id().to_string()]).status();
            assert!(status.unwrap().success());
            let code = child.wait().unwrap().code();
            assert_eq!(code, if signal == "-INT" { Some(130) } else { None });
            client.text("CLIENT UNPAUSE");
            assert!(client.scandump("BF", "k") == before, "{signal}");
            let all = keys(&mut client);
            let left = all.iter().find(|key| key.contains("loading")).expect("what came is there");
            let seconds: i64 = client.text(&format!("TTL {left}"))[1..].trim().parse().unwrap();
            assert!((1..=600).contains(&seconds), "{seconds}");
            client.text(&format!("DEL {left}"));
        }
    }
}

#[test]
fn what_no_server_can_hold_is_refused_before_it_is_sent() {
    for program in programs().into_iter().take(1) {
        let (server, scratch) = (Server::start(&program, &[]), Scratch::new());
        for kind in ["fuse", "d-left", "counting", "split-block", "bitmap"] {
            scratch.build("f.ibf", ["--kind", kind, "--capacity", "1000"], "1\n2\n");
            let run = redis(&scratch, &server, &["load", "f.ibf", "--key", "k"]);
            refused(
                &run,
                &format!("f.ibf: a server cannot hold a {kind} filter"),
                "--kind blocked",
            );
        }
        scratch.build("f.ibf", ["--kind", "blocked"], "1\n2\n");
        let run = redis(&scratch, &server, &["load", "f.ibf", "--key", "k", "--shards", "2"]);
        refused(&run, "f.ibf: a filter that is built cannot be split into shards", "--lines");
        scratch.write("keys.txt", "alice\nbob\n");
        let run = redis(&scratch, &server, &["load", "keys.txt", "--key", "k"]);
        refused(&run, "keys.txt: ", "--lines");
        let run = redis(&scratch, &server, &["load", "--key", "k"]);
        refused(&run, "which filter?", "ironbloom build");
        let run = redis(
            &scratch,
            &server,
            &["load", "--lines", "keys.txt", "--shards", "2", "--key", "a{b}"],
        );
        refused(&run, "--key \"a{b}\" has braces", "without");
        let run = redis(&scratch, &server, &["load", "none.ibf", "--key", "k"]).ends_with(2);
        assert!(run.stderr.starts_with("error: none.ibf: "), "{}", run.stderr);
        assert_eq!(keys(&mut server.client()), [""; 0]);
    }
}

#[test]
fn a_filter_above_the_limit_of_a_key_is_refused_and_shards_of_it_are_not() {
    for program in programs().into_iter().take(1) {
        let (server, scratch) = (Server::start(&program, &[]), Scratch::new());
        let mut client = server.client();
        let limit = "CONFIG SET ironbloom.key-memory-limit 100000";
        assert_eq!(client.text(limit), "+OK\r\n");
        scratch.build("f.ibf", ["--kind", "blocked", "--capacity", "100k"], &lines(0..1000));
        let run = redis(&scratch, &server, &["load", "f.ibf", "--key", "k"]);
        let message = format!("{}: the filter is larger than a key may be", url(&server));
        refused(&run, &message, "ironbloom.key-memory-limit");
        assert_eq!(keys(&mut client), [""; 0]);
        let load = ["load", "--lines", "-", "--capacity", "100k", "--shards", "3", "--key", "k"];
        redis_with(&scratch, &url(&server), &load, &lines(0..1000)).succeeds();
        let run = redis_with(&scratch, &url(&server), &["check", "--key", "k"], &lines(0..1000));
        assert_eq!(run.text(), lines(0..1000));
    }
}

#[test]
fn filters_made_from_hashes_of_another_program_are_refused() {
    use ironbloom::{BlockedBloom, BlockedBloomParams, HashFn, Persist as _};
    for program in programs().into_iter().take(1) {
        let (server, scratch) = (Server::start(&program, &[]), Scratch::new());
        let params = BlockedBloomParams::for_rate(100, 0.01).unwrap();
        let filter = BlockedBloom::new(params, HashFn::External { id: 7 }).unwrap();
        filter.save(scratch.path("f.ibf")).unwrap();
        let run = redis(&scratch, &server, &["load", "f.ibf", "--key", "k"]);
        let message = "f.ibf: built from hashes of another program (external hash 7)";
        refused(&run, message, "build it from keys");
    }
}

#[test]
fn a_server_without_the_module_says_what_is_missing() {
    for program in programs() {
        let (server, scratch) = (Server::start_without_module(&program), Scratch::new());
        scratch.build("f.ibf", ["--kind", "blocked"], "1\n2\n");
        let run = redis(&scratch, &server, &["load", "f.ibf", "--key", "k"]);
        let message =
            format!("{}: the server does not know this command: BF.LOADCHUNK", url(&server));
        refused(&run, &message, "libironbloom_redis.so");
        assert_eq!(keys(&mut server.client()), [""; 0]);
        let run = redis_with(&scratch, &url(&server), &["check", "--key", "k"], "1\n");
        refused(&run, "k: there is no such key on redis://", "--key");
        server.client().text("LPUSH list 1");
        let run = redis_with(&scratch, &url(&server), &["check", "--key", "list"], "1\n");
        refused(&run, "list: is a list, not a filter", "--key");
        let run = redis(&scratch, &server, &["dump", "--key", "list", "-o", "x"]);
        refused(&run, "list: is a list, not a filter", "--key");
        assert!(!scratch.exists("x"));
    }
}

#[test]
fn passwords_are_asked_for_and_never_shown() {
    for program in programs().into_iter().take(1) {
        let (server, scratch) = (Server::start(&program, &[]), Scratch::new());
        let mut client = server.client();
        client.text("BF.MADD k alice");
        client.text("CONFIG SET requirepass sesame");
        let address = format!("127.0.0.1:{}", server.port);
        let check = |url: &str| redis_with(&scratch, url, &["check", "--key", "k"], "alice\n");
        for url in [format!("redis://:swordfish@{address}"), format!("redis://{address}")] {
            let run = check(&url);
            let message =
                format!("redis://{address}: the server does not accept this user and password");
            refused(&run, &message, "redis://user:password@host:port");
            assert!(!run.stderr.contains("swordfish"), "{}", run.stderr);
        }
        let right = format!("redis://:sesame@{address}");
        assert_eq!(check(&right).succeeds().text(), "alice\n");
        // Where other users of the machine do not see it.
        let mut command = scratch.command(["redis", "dump", "--key", "k", "-o", "k.ibd"]);
        let run = Run::from(command.env("IRONBLOOM_REDIS_URL", &right).output().unwrap());
        run.succeeds();
        for url in [format!("rediss://:swordfish@{address}"), "nonsense://:swordfish@x".to_owned()]
        {
            let run = check(&url).ends_with(2);
            assert!(!run.stderr.contains("swordfish"), "{}", run.stderr);
        }
    }
}

#[test]
fn a_server_that_is_not_there_is_an_error_that_names_it() {
    let scratch = Scratch::new();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("redis://127.0.0.1:{port}");
    let run = redis_with(&scratch, &url, &["check", "--key", "k"], "1\n");
    refused(&run, &format!("{url}: "), "is the server running");
    let mut command = scratch.command(["redis", "check", "--key", "k"]);
    let run = Run::from(command.env_remove("IRONBLOOM_REDIS_URL").output().unwrap());
    refused(&run, "which server?", "--url");
}
