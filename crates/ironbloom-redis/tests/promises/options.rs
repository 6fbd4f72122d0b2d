//! Promise: options mean what they mean in RedisBloom 8, to the reply and to the byte, also on replicas; and the documentation
//! of the commands says so in its words.

use ironbloom_testing::module::{
    Client, Server, all_programs as programs, assert_equal, replica_of, save_or_rewrite,
};

const CANNOT_EXPAND: &str = "-Nonscaling filters cannot expand\r\n";
const BAD: &str = "-ERR bad expansion\r\n";
const RANGE: &str = "-ERR expansion must be in the range [0, 32768]\r\n";

/// Options and growth in the header of a dump.
type Header = (u8, u32);

/// (options of BF.RESERVE, reply, header of the dump)
const RESERVE: [(&str, &str, Option<Header>); 13] = [
    ("", "+OK\r\n", Some((5, 2))),
    ("EXPANSION 3", "+OK\r\n", Some((5, 3))),
    ("EXPANSION 0", "+OK\r\n", Some((13, 0))),
    ("NONSCALING", "+OK\r\n", Some((13, 2))),
    ("EXPANSION 0 NONSCALING", "+OK\r\n", Some((13, 0))),
    ("NONSCALING EXPANSION 0", "+OK\r\n", Some((13, 0))),
    ("EXPANSION 2 NONSCALING", CANNOT_EXPAND, None),
    ("NONSCALING EXPANSION 1", CANNOT_EXPAND, None),
    ("NONSCALING EXPANSION -1", CANNOT_EXPAND, None),
    ("EXPANSION 40000 NONSCALING", CANNOT_EXPAND, None),
    ("EXPANSION abc NONSCALING", BAD, None),
    ("EXPANSION -1", RANGE, None),
    ("EXPANSION 32769", RANGE, None),
];

/// (options of BF.INSERT, header of the dump)
const INSERT: [(&str, Header); 8] = [
    ("", (5, 2)),
    ("EXPANSION 16", (5, 16)),
    ("EXPANSION 16 NONSCALING", (13, 16)),
    ("NONSCALING EXPANSION 16", (13, 16)),
    ("NONSCALING", (13, 2)),
    ("EXPANSION 0", (13, 0)),
    ("EXPANSION 0 NONSCALING", (13, 0)),
    ("CAPACITY 5 ERROR 0.5 EXPANSION 1 NONSCALING", (13, 1)),
];

/// Options and growth of a filter, from the header of its dump.
fn dumped(client: &mut Client, name: &str) -> Header {
    let (_, header) = client.scandump("BF", name).remove(0);
    (header[12], u32::from_le_bytes(header[16..20].try_into().unwrap()))
}

#[test]
fn expansion_and_nonscaling_are_redisblooms() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut client = server.client();
        for (options, reply, header) in RESERVE {
            let command = format!("BF.RESERVE k 0.01 10 {options}");
            assert_eq!(client.text(command.trim_end()), reply, "{options}");
            match header {
                Some(header) => assert_eq!(dumped(&mut client, "k"), header, "{options}"),
                None => assert_eq!(client.text("EXISTS k"), ":0\r\n", "{options}"),
            }
            client.call("DEL k");
        }
        for (options, header) in INSERT {
            let command = format!("BF.INSERT k {options} ITEMS a b").replace("  ", " ");
            assert!(client.text(&command).starts_with("*2"), "{options}");
            assert_eq!(dumped(&mut client, "k"), header, "{options}");
            let shown = client.text("BF.INFO k EXPANSION");
            assert_eq!(shown == "*1\r\n$-1\r\n", header.0 == 13, "{options}: {shown}");
            client.call("DEL k");
        }
        // What a filter that does not grow remembers is the setting.
        client.configure("bf-expansion-factor", "7");
        assert_eq!(client.text("BF.RESERVE k 0.01 10 NONSCALING"), "+OK\r\n");
        assert_eq!(dumped(&mut client, "k"), (13, 7));
        client.configure("bf-expansion-factor", "0");
        assert_eq!(client.text("BF.RESERVE l 0.01 10"), "+OK\r\n");
        assert_eq!(dumped(&mut client, "l"), (13, 0));
        assert_eq!(client.text("BF.RESERVE m 0.01 10 EXPANSION 2"), CANNOT_EXPAND);
    }
}

/// A replica and a file have other settings, and the same filters.
#[test]
fn new_filters_are_the_same_on_replicas_and_in_files_whatever_the_settings() {
    for program in programs() {
        let options = ["--appendonly", "yes", "--appendfsync", "always"];
        let mut server = Server::start(&program, &options);
        let replica = replica_of(&server, &program, &[]);
        replica.client().configure("bf-expansion-factor", "9");
        let mut client = server.client();
        let made: Vec<&str> =
            RESERVE.iter().filter(|case| case.2.is_some()).map(|case| case.0).collect();
        for (i, options) in made.iter().enumerate() {
            client.call(format!("BF.RESERVE r:{i} 0.01 10 {options}").trim_end());
        }
        for (i, (options, _)) in INSERT.iter().enumerate() {
            let command = format!("BF.INSERT i:{i} {options} ITEMS a b").replace("  ", " ");
            assert!(client.text(&command).starts_with("*2"), "{command}");
        }
        client.configure("bf-expansion-factor", "5");
        client.call("BF.RESERVE late 0.01 10 NONSCALING");
        client.call("BF.INSERT later NONSCALING ITEMS x");
        assert_equal(&server, &replica);
        let digest = client.text("DEBUG DIGEST");
        server.kill_and_restart();
        let mut client = server.client();
        assert_eq!(client.text("DEBUG DIGEST"), digest, "from what led to it");
        save_or_rewrite(&mut client, &options);
        server.kill_and_restart();
        assert_eq!(server.client().text("DEBUG DIGEST"), digest, "from all of it");
    }
}

/// A reply: a text, a number, or a list.
enum Reply {
    Text(String),
    List(Vec<Reply>),
}

impl Reply {
    fn parse(bytes: &mut &[u8]) -> Self {
        let end = bytes.windows(2).position(|two| two == b"\r\n").unwrap();
        let line = String::from_utf8(bytes[1..end].to_vec()).unwrap();
        let kind = bytes[0];
        *bytes = &bytes[end + 2..];
        match kind {
            b'*' => Self::List((0..line.parse().unwrap()).map(|_| Self::parse(bytes)).collect()),
            b'$' => {
                let (text, rest) = bytes.split_at(line.parse().unwrap());
                *bytes = &rest[2..];
                Self::Text(String::from_utf8(text.to_vec()).unwrap())
            }
            _ => Self::Text(line),
        }
    }

    /// The value of a name, in a list of both.
    fn get(&self, name: &str) -> Option<&Self> {
        let Self::List(list) = self else { panic!("not a list") };
        list.chunks(2)
            .find(|pair| matches!(&pair[0], Self::Text(text) if text == name))
            .map(|pair| &pair[1])
    }

    fn text(&self, name: &str) -> &str {
        match self.get(name) {
            Some(Self::Text(text)) => text,
            _ => "",
        }
    }

    /// Arguments as `name type token flags(parts)`.
    fn arguments(&self) -> String {
        let Some(Self::List(arguments)) = self.get("arguments") else { return String::new() };
        let one = |argument: &Self| {
            let flags = match argument.get("flags") {
                Some(Self::List(flags)) => flags
                    .iter()
                    .map(|flag| match flag {
                        Self::Text(text) => format!(" {text}"),
                        Self::List(_) => panic!("a list of flags"),
                    })
                    .collect(),
                _ => String::new(),
            };
            let token = argument.text("token");
            let token = if token.is_empty() { String::new() } else { format!(" {token}") };
            let parts = argument.arguments();
            let parts = if parts.is_empty() { parts } else { format!("({parts})") };
            format!("{} {}{token}{flags}{parts}", argument.text("name"), argument.text("type"))
        };
        arguments.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

/// As RedisBloom 8 has them; what is our own stands in brackets.
const ARGUMENTS: [(&str, &str); 17] = [
    ("bf.add", "key key, item string"),
    ("bf.card", "key key"),
    ("bf.exists", "key key, item string"),
    (
        "bf.info",
        "key key, single_value oneof optional(capacity pure-token CAPACITY, size pure-token SIZE, filters pure-token FILTERS, items pure-token ITEMS, expansion pure-token EXPANSION[, full pure-token FULL])",
    ),
    (
        "bf.insert",
        "key key, capacity block CAPACITY optional(capacity integer), error block ERROR optional(error double), expansion block EXPANSION optional(expansion integer), nocreate pure-token NOCREATE optional, nonscaling pure-token NONSCALING optional, [layout block LAYOUT optional(layout string), window block WINDOW optional(window integer), seed block SEED optional(seed string), ]items pure-token ITEMS, item string multiple",
    ),
    ("bf.loadchunk", "key key, iterator integer, data string"),
    ("bf.madd", "key key, item string multiple"),
    ("bf.mexists", "key key, item string multiple"),
    (
        "bf.reserve",
        "key key, error_rate double, capacity integer, expansion block EXPANSION optional(expansion integer), nonscaling pure-token NONSCALING optional[, layout block LAYOUT optional(layout string), window block WINDOW optional(window integer), seed block SEED optional(seed string)]",
    ),
    ("bf.scandump", "key key, iterator integer"),
    ("cf.add", "key key, item string"),
    (
        "cf.insert",
        "key key, capacity block optional(capacity pure-token CAPACITY, capacity integer), nocreate pure-token NOCREATE optional, items pure-token ITEMS, item string multiple",
    ),
    (
        "cf.insertnx",
        "key key, capacity block optional(capacity pure-token CAPACITY, capacity integer), nocreate pure-token NOCREATE optional, items pure-token ITEMS, item string multiple",
    ),
    ("cf.loadchunk", "key key, iterator integer, data string"),
    ("cf.mexists", "key key, item string multiple"),
    (
        "cf.reserve",
        "key key, capacity integer, bucketsize block BUCKETSIZE optional(bucketsize integer), maxiterations block MAXITERATIONS optional(maxiterations integer), expansion block EXPANSION optional(expansion integer)[, error block ERROR optional(error double), seed block SEED optional(seed string)]",
    ),
    ("cf.scandump", "key key, iterator integer"),
];

#[test]
fn arguments_in_command_docs_are_redisblooms() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut client = server.client();
        if client.text("COMMAND DOCS get").starts_with("-ERR") {
            continue;
        }
        for (command, arguments) in ARGUMENTS {
            let reply = client.call(&format!("COMMAND DOCS {command}"));
            let docs = Reply::parse(&mut &reply[..]);
            let expected = arguments.replace(['[', ']'], "");
            assert_eq!(docs.get(command).unwrap().arguments(), expected, "{command}");
        }
        for (command, is_cached) in [
            ("bf.info", false),
            ("bf.debug", false),
            ("cf.info", false),
            ("cf.debug", false),
            ("bf.exists", true),
        ] {
            let reply = client.text(&format!("COMMAND INFO {command}"));
            assert_eq!(!reply.contains("dont_cache"), is_cached, "{command}: {reply}");
        }
    }
}

/// With the server's units, as in its own settings.
#[test]
fn the_memory_limit_at_load_time_has_units() {
    for (argument, bytes) in [
        ("1gb", 1u64 << 30),
        ("2G", 2_000_000_000),
        ("3Mb", 3 << 20),
        ("4m", 4_000_000),
        ("500kb", 500 << 10),
        ("700K", 700_000),
        ("1000b", 1000),
        ("123456", 123_456),
    ] {
        let program = &programs()[0];
        let server = Server::start_with_arguments(program, &["key-memory-limit", argument]);
        let shown = server.client().text("CONFIG GET ironbloom.key-memory-limit");
        assert!(shown.ends_with(&format!("\r\n{bytes}\r\n")), "{argument}: {shown}");
    }
}
