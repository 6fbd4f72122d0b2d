//! Promise: what a user may do follows from the categories of commands, as with RedisBloom 8, wherever a server lets modules
//! have categories (Redis 7.2 and later, Valkey); and from the names of commands and keys everywhere.

use ironbloom_testing::module::{Client, Server, all_programs as programs};

/// (command, categories beside the family's own) as RedisBloom 8 has them. It has no BF.FIND, BF.MERGE and BF.MERGESLICE; its CF.COMPACT is
/// `read`.
const CATEGORIES: [(&str, &str); 28] = [
    ("bf.reserve", "write fast"),
    ("bf.add", "write"),
    ("bf.madd", "write"),
    ("bf.insert", "write"),
    ("bf.exists", "read"),
    ("bf.mexists", "read"),
    ("bf.find", "read"),
    ("bf.card", "read fast"),
    ("bf.info", "read fast"),
    ("bf.debug", "read"),
    ("bf.scandump", "read"),
    ("bf.loadchunk", "write"),
    ("bf.merge", "write"),
    ("bf.mergeslice", "write"),
    ("cf.reserve", "write fast"),
    ("cf.add", "write"),
    ("cf.addnx", "write"),
    ("cf.insert", "write"),
    ("cf.insertnx", "write"),
    ("cf.exists", "read"),
    ("cf.mexists", "read"),
    ("cf.count", "read"),
    ("cf.del", "write"),
    ("cf.compact", "write"),
    ("cf.info", "read fast"),
    ("cf.debug", "read"),
    ("cf.scandump", "read"),
    ("cf.loadchunk", "write"),
];

/// Whether the server lets modules have categories; those that do not are known by their versions.
fn has_categories(client: &mut Client) -> bool {
    let has = client.text("ACL CAT bloom").starts_with('*');
    let version = client.info("server", "redis_version");
    let is_old = version.starts_with("6.") || version.starts_with("7.0.");
    assert_eq!(has, !is_old, "Redis {version}");
    has
}

/// A client that is this user. The server's own default user stays as it is.
fn user(server: &Server, rules: &str) -> Client {
    let mut client = server.client();
    let reply = client.text(&format!("ACL SETUSER user reset on nopass {rules}"));
    assert_eq!(reply, "+OK\r\n", "{rules}");
    assert_eq!(client.text("AUTH user x"), "+OK\r\n");
    client
}

fn is_refused(client: &mut Client, command: &str) -> bool {
    client.text(command).starts_with("-NOPERM")
}

/// An example of each command with as many arguments as it needs.
fn example(command: &str) -> String {
    let arguments = match command {
        "bf.reserve" => "r 0.01 100",
        "cf.reserve" => "r 100",
        "bf.insert" => "b ITEMS x",
        "cf.insert" | "cf.insertnx" => "c ITEMS x",
        "bf.merge" => "b b",
        "bf.mergeslice" => "b b 0 0 0 0",
        "bf.scandump" => "b 0",
        "cf.scandump" => "c 0",
        "bf.loadchunk" => "l 1 x",
        "cf.loadchunk" => "l 1 x",
        "bf.card" | "bf.info" | "bf.debug" => "b",
        "cf.compact" | "cf.info" | "cf.debug" => "c",
        other if other.starts_with("bf.") => "b x",
        _ => "c x",
    };
    format!("{command} {arguments}")
}

#[test]
fn commands_have_the_categories_of_redisbloom_8() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut client = server.client();
        if !has_categories(&mut client) {
            continue;
        }
        for (command, categories) in CATEGORIES {
            let info = client.text(&format!("COMMAND INFO {command}"));
            let mut found: Vec<&str> = info.lines().filter_map(|l| l.strip_prefix("+@")).collect();
            let family = if command.starts_with("bf.") { "bloom" } else { "cuckoo" };
            let mut expected: Vec<&str> = categories.split(' ').chain([family]).collect();
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected, "{}: {command}", program.display());
        }
    }
}

/// For each user the commands that are allowed, by their categories.
#[test]
fn users_may_do_what_their_categories_say() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut admin = server.client();
        if !has_categories(&mut admin) {
            continue;
        }
        admin.call("BF.ADD b x");
        admin.call("CF.ADD c x");
        for (rules, allows) in [
            ("~* +@all -@write", &["read"][..]),
            ("~* +@read +@write", &["read", "write"]),
            ("~* +@read", &["read"]),
            ("~* +@write", &["write"]),
            ("~* +@fast", &["fast"]),
            ("~* +@all -@bloom -@cuckoo", &[]),
            ("~* -@all", &[]),
        ] {
            let mut client = user(&server, rules);
            for (command, categories) in CATEGORIES {
                let is_allowed = categories.split(' ').any(|category| allows.contains(&category));
                let refused = is_refused(&mut client, &example(command));
                assert_eq!(refused, !is_allowed, "{}: {command} for {rules}", program.display());
            }
        }
        let mut client = user(&server, "~* +@bloom");
        assert!(!is_refused(&mut client, "BF.ADD b y") && is_refused(&mut client, "CF.ADD c y"));
    }
}

/// What works on every server: names of commands, and what may be done with which keys (since Redis 7).
#[test]
fn names_and_keys_limit_users_on_every_server() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut admin = server.client();
        let mut client = user(&server, "~* +bf.exists +bf.mexists");
        assert!(!is_refused(&mut client, "BF.EXISTS b x") && is_refused(&mut client, "BF.ADD b x"));
        let mut client = user(&server, "~* +@all -bf.add");
        assert!(is_refused(&mut client, "BF.ADD b x") && !is_refused(&mut client, "BF.MADD b x"));
        if admin.info("server", "redis_version").starts_with("6.") {
            continue;
        }
        let mut client = user(&server, "+@all %R~* ~own:*");
        assert!(!is_refused(&mut client, "BF.EXISTS b x") && is_refused(&mut client, "BF.ADD b x"));
        assert!(!is_refused(&mut client, "BF.ADD own:b x"));
        assert!(is_refused(&mut client, "BF.MERGE b own:b"));
        assert!(!is_refused(&mut client, "BF.MERGE own:b b"));
    }
}
