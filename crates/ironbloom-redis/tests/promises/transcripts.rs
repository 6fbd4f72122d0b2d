//! Promise: replies are RedisBloom 8's, to the byte, in both versions of the protocol.

use crate::common::golden_path;
use ironbloom_testing::module::{Server, all_programs as programs};

/// A line of a transcript: protocol, command, reply.
pub(crate) fn lines(file: &str) -> Vec<(u8, String, Vec<u8>)> {
    let text = std::fs::read_to_string(golden_path(file)).unwrap();
    // What follows a line of dashes was answered by another server.
    text.lines()
        .take_while(|line| !line.starts_with("# ---"))
        .map(|line| {
            let (command, reply) = line.split_once(" => ").expect("a reply");
            let (protocol, command) = command.split_once(' ').expect("a protocol");
            (protocol.parse().unwrap(), command.to_owned(), python_bytes(reply))
        })
        .collect()
}

/// The bytes that a Python literal such as `b'+OK\r\n'` means.
fn python_bytes(literal: &str) -> Vec<u8> {
    let inside = &literal[2..literal.len() - 1];
    let mut bytes = Vec::new();
    let mut rest = inside.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'\\' => match rest.next().expect("a letter after the backslash") {
                b'r' => b'\r',
                b'n' => b'\n',
                b't' => b'\t',
                b'x' => {
                    let digits = [rest.next().unwrap(), rest.next().unwrap()];
                    u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
                }
                other => other,
            },
            other => other,
        });
    }
    bytes
}

#[test]
fn every_reply_of_the_transcript_comes_back() {
    let lines = lines("transcript-redisbloom-8.txt");
    assert!(lines.len() > 170, "{} lines", lines.len());
    for program in programs() {
        let server = Server::start(&program, &[]);
        for protocol in [2, 3] {
            let mut client = server.client();
            client.hello(protocol);
            client.call("FLUSHALL");
            client.call("SET str x");
            for (_, command, reply) in lines.iter().filter(|(of, ..)| *of == protocol) {
                // The transcript cut this reply, and it depends on the server's version: see `command_info`.
                if command.starts_with("COMMAND ") {
                    continue;
                }
                let ours = client.call(command);
                assert!(
                    ours == *reply,
                    "{} {protocol} {command}\n ours: {}\ntheirs: {}",
                    program.display(),
                    ours.escape_ascii(),
                    reply.escape_ascii()
                );
            }
        }
    }
}

/// What RedisBloom 2.8 says otherwise than 8: the words of errors; no greatest capacity, so that the key `x` is there when
/// it is made again.
const CHANGED_SINCE_2_8: [&str; 14] = [
    "BF.RESERVE x 0 100",
    "BF.RESERVE x 1 100",
    "BF.RESERVE x 0.01 0",
    "BF.RESERVE x 0.01 1073741825",
    "BF.RESERVE x 0.01 10 EXPANSION 40000",
    "BF.RESERVE x 0.01 10 BOGUS",
    "BF.INSERT i ERROR 2 ITEMS a",
    "BF.INSERT i CAPACITY 0 ITEMS a",
    "BF.INSERT i EXPANSION -1 ITEMS a",
    "CF.RESERVE d 1",
    "CF.RESERVE d 100 BUCKETSIZE 0",
    "CF.RESERVE d 100 MAXITERATIONS 0",
    "CF.RESERVE d 100 EXPANSION 40000",
    "CF.INSERT c CAPACITY 1 ITEMS a",
];

/// The same commands to RedisBloom 2.8: all else is equal, and where they differ ours are those of 8.
#[test]
fn replies_are_also_those_of_2_8_but_for_words_of_errors() {
    let (older, newer) =
        (lines("transcript-redisbloom-2.8.txt"), lines("transcript-redisbloom-8.txt"));
    assert_eq!(older.len(), newer.len());
    for program in programs() {
        let server = Server::start(&program, &[]);
        for protocol in [2, 3] {
            let mut client = server.client();
            client.hello(protocol);
            client.call("FLUSHALL");
            client.call("SET str x");
            let mut changed = 0;
            let both = older.iter().zip(&newer).filter(|(older, _)| older.0 == protocol);
            for ((_, command, reply), (_, same, reply_of_8)) in both {
                assert_eq!(command, same);
                if command.starts_with("COMMAND ") {
                    continue;
                }
                let ours = client.call(command);
                if ours != *reply {
                    let is_known = CHANGED_SINCE_2_8.contains(&command.as_str());
                    assert!(is_known && ours == *reply_of_8, "{command}: {}", ours.escape_ascii());
                    changed += 1;
                }
            }
            assert_eq!(changed, CHANGED_SINCE_2_8.len(), "each of them differs");
        }
    }
}

#[test]
fn commands_have_redisblooms_names_flags_and_keys() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut client = server.client();
        let reply = client.text("COMMAND INFO bf.add bf.exists cf.del bf.merge");
        for part in [
            "$6\r\nbf.add\r\n:3\r\n*3\r\n+write\r\n+denyoom\r\n+module\r\n:1\r\n:1\r\n:1\r\n",
            "$9\r\nbf.exists\r\n:3\r\n*3\r\n+readonly\r\n+module\r\n+fast\r\n:1\r\n:1\r\n:1\r\n",
            "$6\r\ncf.del\r\n:3\r\n*3\r\n+write\r\n+module\r\n+fast\r\n:1\r\n:1\r\n:1\r\n",
            "$8\r\nbf.merge\r\n:-3\r\n*3\r\n+write\r\n+denyoom\r\n+module\r\n:1\r\n:-1\r\n:1\r\n",
        ] {
            assert!(reply.contains(part), "{}: {part:?} is not in {reply:?}", program.display());
        }
        let docs = client.text("COMMAND DOCS bf.insert");
        for part in ["summary", "\r\nITEMS\r\n", "\r\nnonscaling\r\n"] {
            assert!(docs.contains(part), "{}: {part:?} is not in {docs:?}", program.display());
        }
        let keys = client.text("COMMAND GETKEYS BF.MERGE a b c");
        assert_eq!(keys, "*3\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\nc\r\n");
        // Who may only read must not add, which the bits of the keys decide.
        client.call("ACL SETUSER reader on nopass +@all %R~*");
        client.call("AUTH reader x");
        assert_eq!(client.text("BF.EXISTS b x"), ":0\r\n");
        assert!(client.text("BF.ADD b x").starts_with("-NOPERM"), "{}", program.display());
    }
}

/// (command, reply): what the transcript leaves out.
#[test]
fn options_are_read_as_redisbloom_reads_them() {
    let full = "-ERR wrong number of arguments for 'bf.insert' command\r\n";
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut client = server.client();
        for (command, reply) in [
            ("BF.RESERVE a 0.5 10", "+OK\r\n"),
            (
                "BF.DEBUG a",
                "*2\r\n$6\r\nsize:0\r\n$68\r\nbytes:8 bits:64 hashes:4 hashwidth:64 capacity:10 size:0 ratio:0.125\r\n",
            ),
            ("BF.RESERVE b 0.01 10 expansion 0", "+OK\r\n"),
            ("BF.INFO b expansion", "*1\r\n$-1\r\n"),
            ("BF.RESERVE c 0.01 10 nonscaling", "+OK\r\n"),
            (
                "BF.RESERVE d 0.01 10 EXPANSION 2 NONSCALING X",
                "-ERR wrong number of arguments for 'bf.reserve' command\r\n",
            ),
            ("BF.INSERT e cap 10 er 0.1 exp 3 i x y", "*2\r\n:1\r\n:1\r\n"),
            ("BF.INFO e EXPANSION", "*1\r\n:3\r\n"),
            ("BF.INSERT f nonsc items x", "*1\r\n:1\r\n"),
            ("BF.INFO f EXPANSION", "*1\r\n$-1\r\n"),
            ("BF.INSERT g noc items x", "-ERR not found\r\n"),
            ("BF.INSERT e CAPACITY 10", full),
            ("BF.INSERT e CAPACITY 10 ITEMS", full),
            ("BF.INSERT e ITEMS ITEMS ITEMS", "*2\r\n:1\r\n:0\r\n"),
            (
                "CF.RESERVE h 10 BUCKETSIZE",
                "-ERR wrong number of arguments for 'cf.reserve' command\r\n",
            ),
            ("CF.RESERVE h 100 expansion 3 bucketsize 4", "+OK\r\n"),
            (
                "CF.DEBUG h",
                "$78\r\nbktsize:4 buckets:32 items:0 deletes:0 filters:1 max_iterations:20 expansion:4\r\n",
            ),
            ("CF.SCANDUMP h 0", "*2\r\n:0\r\n$-1\r\n"),
            ("CF.LOADCHUNK h 1 x", "-ERR item exists\r\n"),
            ("CF.INSERT i cap 8 nocreate i x", "-ERR not found\r\n"),
            ("BF.FIND none x", "$-1\r\n"),
            ("BF.FIND e x zzz", "*2\r\n:1\r\n:0\r\n"),
            (
                "BF.FIND h x",
                "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
            ),
            (
                "BF.ADD h x",
                "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n",
            ),
        ] {
            let ours = client.text(command);
            assert_eq!(ours, reply, "{}: {command}", program.display());
        }
    }
}
