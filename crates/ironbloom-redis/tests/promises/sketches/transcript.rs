//! Every reply of RedisBloom 8, and what its servers say of the commands.

use super::{is_of_sketches, is_same_reply};
use crate::common::envelope;
use crate::transcripts::lines;
use ironbloom_testing::module::{Server, all_programs as programs, string_of};

/// The words of a command: blanks separate them, quotes keep them together.
fn words(command: &str) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    let mut rest = command.bytes().peekable();
    while let Some(&first) = rest.peek() {
        if first == b' ' {
            rest.next();
            continue;
        }
        let is_quoted = first == b'"';
        if is_quoted {
            rest.next();
        }
        let mut word = Vec::new();
        while let Some(byte) = rest.next_if(|&b| b != if is_quoted { b'"' } else { b' ' }) {
            if is_quoted && byte == b'\\' {
                assert_eq!(rest.next(), Some(b'x'), "{command}");
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                let digits = std::str::from_utf8(&digits).unwrap();
                word.push(u8::from_str_radix(digits, 16).unwrap());
            } else {
                word.push(byte);
            }
        }
        if is_quoted {
            rest.next();
        }
        words.push(word);
    }
    words
}

/// Writes a hexadecimal number in decimal.
fn in_decimal(word: &mut Vec<u8>) {
    let number = word.strip_prefix(b"0x").and_then(|digits| std::str::from_utf8(digits).ok());
    if let Some(number) = number.and_then(|digits| u64::from_str_radix(digits, 16).ok()) {
        *word = number.to_string().into_bytes();
    }
}

#[test]
fn every_reply_of_the_transcript_comes_back() {
    let lines = lines("transcript-sketches-8.txt");
    for program in programs() {
        let server = Server::start(&program, &[]);
        for protocol in [2, 3] {
            let mut client = server.client();
            client.hello(protocol);
            client.call("FLUSHALL");
            client.call("SET str v");
            // Numbers are read by the server, and Valkey 9 reads no hexadecimal ones.
            client.call("TDIGEST.CREATE hexadecimal");
            let takes_hexadecimal = client.text("TDIGEST.ADD hexadecimal 0x10") == "+OK\r\n";
            client.call("DEL hexadecimal");
            let mut compared = 0;
            for (_, command, reply) in
                lines.iter().filter(|(of, command, _)| *of == protocol && is_of_sketches(command))
            {
                let mut words = words(command);
                if !takes_hexadecimal {
                    words.iter_mut().for_each(in_decimal);
                }
                let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
                let ours = client.call_words(&words);
                assert!(
                    is_same_reply(&ours, reply),
                    "{} {protocol} {command}\n ours: {}\ntheirs: {}",
                    program.display(),
                    ours.escape_ascii(),
                    reply.escape_ascii()
                );
                compared += 1;
            }
            assert!(compared >= 470, "{compared} replies");
            for (_, command, reply) in lines.iter().filter(|(of, ..)| *of == protocol) {
                let Some(key) = command.strip_prefix("DUMP ") else { continue };
                if client.text(&format!("EXISTS {key}")) == ":1\r\n" {
                    let ours = client.call(command);
                    let (ours, theirs) = (string_of(&ours), string_of(reply));
                    assert_eq!(envelope::open(ours), envelope::open(theirs), "{command}");
                }
            }
        }
    }
}

/// (command, arity, flags, categories) as RedisBloom 8 has them.
pub(super) const COMMANDS: &[(&str, i64, &str, &str)] = &[
    ("cms.initbydim", 4, "write denyoom", "write fast"),
    ("cms.initbyprob", 4, "write denyoom", "write fast"),
    ("cms.incrby", -4, "write denyoom", "write"),
    ("cms.query", -3, "readonly", "read"),
    ("cms.merge", -4, "write denyoom", "write"),
    ("cms.info", 2, "readonly", "read fast"),
    ("topk.reserve", -3, "write denyoom", "write fast"),
    ("topk.add", -3, "write denyoom", "write"),
    ("topk.incrby", -4, "write denyoom", "write"),
    ("topk.query", -3, "readonly", "read"),
    ("topk.count", -3, "readonly", "read"),
    ("topk.list", -2, "readonly", "read"),
    ("topk.info", 2, "readonly", "read fast"),
    ("tdigest.create", -2, "write denyoom", "write fast"),
    ("tdigest.reset", 2, "write denyoom", "write fast"),
    ("tdigest.add", -3, "write denyoom", "write"),
    ("tdigest.merge", -4, "write denyoom", "write"),
    ("tdigest.min", 2, "readonly", "read fast"),
    ("tdigest.max", 2, "readonly", "read fast"),
    ("tdigest.quantile", -3, "readonly", "read fast"),
    ("tdigest.cdf", -3, "readonly", "read fast"),
    ("tdigest.rank", -3, "readonly", "read fast"),
    ("tdigest.revrank", -3, "readonly", "read fast"),
    ("tdigest.byrank", -3, "readonly", "read fast"),
    ("tdigest.byrevrank", -3, "readonly", "read fast"),
    ("tdigest.trimmed_mean", 4, "readonly", "read"),
    ("tdigest.info", 2, "readonly", "read fast"),
];

#[test]
fn commands_have_redisblooms_arity_flags_and_categories() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut client = server.client();
        for (command, arity, flags, categories) in COMMANDS {
            let info = client.text(&format!("COMMAND INFO {command}"));
            assert!(info.contains(&format!("{command}\r\n:{arity}\r\n")), "{info}");
            let listed = |mark: &str| -> Vec<String> {
                let lines = info.lines().filter_map(|line| line.strip_prefix(mark));
                let mut found: Vec<String> = lines.map(str::to_owned).collect();
                found.sort_unstable();
                found
            };
            for flag in flags.split(' ') {
                assert!(listed("+").iter().any(|found| found == flag), "{command}: {flag}");
            }
            assert!(!listed("+").iter().any(|found| found == "fast"), "{command}");
            let family = command.split('.').next().unwrap();
            let has_categories = client.text(&format!("ACL CAT {family}")).starts_with('*');
            if has_categories {
                let mut expected: Vec<&str> = categories.split(' ').chain([family]).collect();
                expected.sort_unstable();
                assert_eq!(listed("+@"), expected, "{}: {command}", program.display());
            }
            // Servers before 7 have no documentation of commands.
            let docs = client.text(&format!("COMMAND DOCS {command}"));
            assert!(docs.contains("summary") || docs.starts_with('-'), "{docs}");
        }
    }
}

/// Who may not read a source must not read it through a merge: RedisBloom does not tell servers of them.
#[test]
fn the_sources_of_a_merge_are_keys_that_servers_know() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut client = server.client();
        if client.info("server", "redis_version").starts_with("6.") {
            continue;
        }
        let keys = client.text("COMMAND GETKEYS CMS.MERGE d 2 a b WEIGHTS 1 2");
        assert_eq!(keys, "*3\r\n$1\r\nd\r\n$1\r\na\r\n$1\r\nb\r\n");
        let keys = client.text("COMMAND GETKEYS TDIGEST.MERGE d 2 a b COMPRESSION 5");
        assert_eq!(keys, "*3\r\n$1\r\nd\r\n$1\r\na\r\n$1\r\nb\r\n");
        for command in ["CMS.INITBYDIM secret1 10 2", "CMS.INITBYDIM mine1 10 2"] {
            assert_eq!(client.text(command), "+OK\r\n");
        }
        for command in ["TDIGEST.CREATE secret2", "TDIGEST.CREATE mine2"] {
            assert_eq!(client.text(command), "+OK\r\n");
        }
        client.call("ACL SETUSER user reset on nopass +@all ~mine*");
        client.call("AUTH user x");
        for (command, i) in [("CMS.MERGE", 1), ("TDIGEST.MERGE", 2)] {
            let secret = client.text(&format!("{command} mine{i} 1 secret{i}"));
            assert!(secret.starts_with("-NOPERM"), "{command}: {secret}");
            assert_eq!(client.text(&format!("{command} mine{i} 1 mine{i}")), "+OK\r\n");
        }
    }
}
