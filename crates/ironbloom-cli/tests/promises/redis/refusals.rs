//! Refusals and their words.

use std::io::Write as _;
use std::process::Stdio;

use super::{keys, redis, redis_with, refused, url};
use crate::program::{Run, Scratch, lines};
use ironbloom_testing::module::{Server, programs};
use ironbloom_testing::{Start as _, free_port};

#[test]
fn a_filter_that_vanishes_while_it_is_asked_is_an_error() {
    for program in programs().into_iter().take(1) {
        let (server, scratch) = (Server::start(&program, &[]), Scratch::new());
        let mut client = server.client();
        client.text("BF.MADD k 0 1 2");
        let mut command = scratch.command(["redis", "check", "--key", "k", "--url", &url(&server)]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.start();
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
    let url = format!("redis://127.0.0.1:{}", free_port());
    let run = redis_with(&scratch, &url, &["check", "--key", "k"], "1\n");
    refused(&run, &format!("{url}: "), "is the server running");
    let mut command = scratch.command(["redis", "check", "--key", "k"]);
    let run = Run::from(command.env_remove("IRONBLOOM_REDIS_URL").output().unwrap());
    refused(&run, "which server?", "--url");
}
