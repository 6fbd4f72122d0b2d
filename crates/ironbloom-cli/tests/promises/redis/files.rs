//! Filters of each kind, from files and keys, to servers and back.

use super::{keys, madd, redis, redis_with, refused, url};
use crate::program::{Scratch, lines};
use ironbloom_testing::module::{Server, programs};

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
        // A reader that stops early is not an error.
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
fn keys_of_windows_text_are_those_of_unix_text_and_reports_are_for_programs_too() {
    for program in programs().into_iter().take(1) {
        let (server, scratch) = (Server::start(&program, &[]), Scratch::new());
        let url = url(&server);
        let load = ["load", "--lines", "-", "--json", "--key", "dos", "--rate", "1e-4"];
        let run = redis_with(&scratch, &url, &load, "\u{feff}alice\r\nbob\r\n").succeeds();
        let note = "note: ignored the carriage return at the end of 2 lines and the byte-order mark of 1 input";
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
