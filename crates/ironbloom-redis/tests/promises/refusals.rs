//! Promise: a command that is refused changes nothing, neither here nor on a replica, and one that is not changes both alike.

use ironbloom_testing::Random;
use ironbloom_testing::module::{
    Client, Server, all_programs as programs, assert_equal, replica_of,
};
use ironbloom_testing::wait_until;

/// Values of every type and of several shapes, under names that the commands below use.
const MADE: &[&str] = &[
    "BF.RESERVE b1 0.01 100",
    "BF.INSERT b2 CAPACITY 10 ERROR 0.25 ITEMS 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22",
    "BF.RESERVE b3 0.25 2000 NONSCALING",
    "BF.RESERVE n1 0.01 100 LAYOUT BLOCKED",
    "BF.RESERVE n2 0.01 100 LAYOUT BLOCKED",
    "BF.MADD n1 a b c",
    "CF.RESERVE c1 8 BUCKETSIZE 1 EXPANSION 1",
    "CF.INSERT c1 ITEMS 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20",
    "CF.RESERVE c2 100 ERROR 0.01 EXPANSION 0",
    "CMS.INITBYDIM m1 10 2",
    "CMS.INITBYDIM m2 10 2",
    "CMS.INCRBY m1 a 4294967290 b 7",
    "TOPK.RESERVE k1 3 8 2 0.9",
    "TOPK.ADD k1 a b c d",
    "TDIGEST.CREATE t1 COMPRESSION 1",
    "TDIGEST.CREATE t2",
    "TDIGEST.CREATE t3",
    "TDIGEST.ADD t1 1 2 3",
    "TDIGEST.ADD t2 1 2 3",
    "SET text x",
];

/// Every command that writes, and those that ask t-digests, in words that are right.
const COMMANDS: &[&str] = &[
    "BF.RESERVE new 0.01 100 EXPANSION 2",
    "BF.RESERVE new 0.01 100 LAYOUT BLOCKED SEED 7",
    "BF.ADD b1 x",
    "BF.MADD b2 x y z",
    "BF.INSERT new CAPACITY 100 ERROR 0.1 EXPANSION 2 ITEMS x y",
    "BF.INSERT b3 NOCREATE ITEMS x y",
    "BF.LOADCHUNK new 1 x",
    "BF.MERGE new b1 b1",
    "BF.MERGE n2 n1",
    "BF.MERGESLICE new b2 0 0 0 1",
    "BF.MERGESLICE new n1 0 0 0 1",
    "BF.MERGESLICE b2 b1 0 0 0 100",
    "BF.MERGESLICE new b3 0 0 0 100",
    "CF.RESERVE new 100 BUCKETSIZE 2 MAXITERATIONS 20 EXPANSION 1",
    "CF.RESERVE new 100 ERROR 0.01 EXPANSION 0",
    "CF.ADD c1 x",
    "CF.ADDNX c2 x",
    "CF.INSERT new CAPACITY 8 ITEMS x y",
    "CF.INSERTNX c2 NOCREATE ITEMS x y z",
    "CF.DEL c1 3",
    "CF.COMPACT c1",
    "CF.LOADCHUNK new 1 x",
    "CMS.INITBYDIM new 10 2",
    "CMS.INITBYPROB new 0.1 0.1",
    "CMS.INCRBY m1 a 1 b 4294967295",
    "CMS.MERGE m2 2 m1 m2 WEIGHTS 1 2",
    "TOPK.RESERVE new 3 8 2 0.9",
    "TOPK.ADD k1 a b",
    "TOPK.INCRBY k1 a 1 b 100000",
    "TDIGEST.CREATE new COMPRESSION 10",
    "TDIGEST.RESET t3",
    "TDIGEST.ADD t1 1 2 3 -4e300",
    "TDIGEST.MERGE t1 2 t1 t2 COMPRESSION 10",
    "TDIGEST.MERGE t1 3 t1 t1 t2",
    "TDIGEST.MERGE t2 2 t1 t1 OVERRIDE",
    "TDIGEST.QUANTILE t1 0 0.5 1",
    "TDIGEST.CDF t1 1 2",
    "TDIGEST.RANK t2 1 2",
    "TDIGEST.REVRANK t2 1 2",
    "TDIGEST.BYRANK t1 1 2",
    "TDIGEST.BYREVRANK t1 1 2",
    "TDIGEST.TRIMMED_MEAN t1 0.1 0.9",
];

/// What may stand in the place of any word.
const WORDS: &[&str] = &[
    "b1",
    "b2",
    "b3",
    "n1",
    "n2",
    "c1",
    "c2",
    "m1",
    "m2",
    "k1",
    "t1",
    "t2",
    "t3",
    "text",
    "none",
    "new",
    "0",
    "1",
    "2",
    "3",
    "7",
    "-1",
    "64",
    "100",
    "65536",
    "4294967295",
    "9223372036854775807",
    "0.5",
    "1.5",
    "nan",
    "inf",
    "-1e308",
    "x",
    "",
    "ITEMS",
    "NOCREATE",
    "NONSCALING",
    "CAPACITY",
    "ERROR",
    "EXPANSION",
    "SEED",
    "RANDOM",
    "WINDOW",
    "LAYOUT",
    "BLOCKED",
    "BUCKETSIZE",
    "WEIGHTS",
    "COMPRESSION",
    "OVERRIDE",
];

/// All that is there; of t-digests also what their bytes do not show, because those are of merged nodes.
fn state(client: &mut Client) -> Vec<String> {
    let digests = ["t1", "t2", "t3"].map(|key| client.text(&format!("TDIGEST.INFO {key}")));
    let mut state = vec![client.text("DBSIZE"), client.text("DEBUG DIGEST")];
    state.extend(digests);
    state
}

fn changed(command: &str, random: &mut Random) -> Vec<String> {
    // A name that nothing has yet.
    let new = format!("new{}", random.below(1 << 20));
    let own = |word: &str| if word == "new" { new.clone() } else { word.to_owned() };
    let mut words: Vec<String> = command.split(' ').map(own).collect();
    for _ in 0..random.below(4) {
        let at = 1 + random.index(words.len());
        let word = WORDS[random.index(WORDS.len())].to_owned();
        match random.below(8) {
            0 => words.insert(at, word),
            1 if at < words.len() => drop(words.remove(at)),
            _ if at < words.len() => words[at] = word,
            _ => {}
        }
    }
    words
}

fn names_of_writing_commands(client: &mut Client) -> Vec<String> {
    let names = client.text("COMMAND LIST FILTERBY MODULE ironbloom");
    let names = names.lines().filter(|line| line.contains('.'));
    let writes = |name: &&str| client.text(&format!("COMMAND INFO {name}")).contains("+write\r\n");
    names.filter(writes).map(str::to_uppercase).collect()
}

#[test]
fn a_refused_command_changes_nothing_anywhere() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let replica = replica_of(&server, &program, &[]);
        let (mut client, mut other) = (server.client(), replica.client());
        let written = names_of_writing_commands(&mut client);
        assert!(written.len() > 20, "{written:?}");
        for name in written {
            let is_it = |command: &&str| command.split(' ').next() == Some(&name);
            assert!(COMMANDS.iter().any(is_it), "{name} is not tried");
        }
        let mut random = Random(1);
        let (mut refused, mut done) = (0, 0);
        for round in 0..30 {
            client.call("FLUSHALL");
            for made in MADE {
                assert!(!client.text(made).starts_with('-'), "{made}");
            }
            // Weights whose sum is none are reached by few steps.
            for _ in 0..2 * round {
                client.call("TDIGEST.MERGE t1 2 t1 t1");
            }
            client.call("TDIGEST.ADD t1 1 2 3");
            let mut before = state(&mut client);
            for _ in 0..150 {
                let words = changed(COMMANDS[random.index(COMMANDS.len())], &mut random);
                let bytes: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
                let reply = client.call_words(&bytes);
                let after = state(&mut client);
                if reply.starts_with(b"-") {
                    let shown = reply.escape_ascii();
                    assert_eq!(after, before, "{words:?} was refused and has an effect: {shown}");
                    refused += 1;
                } else {
                    done += 1;
                }
                before = after;
            }
            assert_equal(&server, &replica);
            wait_until(|| state(&mut other) == state(&mut client));
        }
        assert!(refused > 400 && done > 400, "{refused} refused, {done} done");
    }
}

/// Two filters of other sizes: the slice is refused after the destination would have been made.
#[test]
fn a_refused_slice_of_a_merge_makes_no_key() {
    for program in programs() {
        let server = Server::start(&program, &[]);
        let mut client = server.client();
        client.call("BF.RESERVE theirs 0.25 2000");
        client.call("BF.RESERVE native 0.25 2000 LAYOUT BLOCKED");
        for source in ["theirs", "native"] {
            for slice in ["1 0 0 1", "7 0 0 1", "18446744073709551615 0 0 1"] {
                let reply = client.text(&format!("BF.MERGESLICE new {source} {slice}"));
                assert!(reply.starts_with('-'), "{source} {slice}: {reply}");
                assert_eq!(client.text("EXISTS new"), ":0\r\n", "{source} {slice}");
            }
        }
        // A slice that is right makes it.
        assert_eq!(client.text("BF.MERGESLICE new theirs 0 0 0 1"), "+OK\r\n");
        assert_eq!(client.text("EXISTS new"), ":1\r\n");
    }
}
