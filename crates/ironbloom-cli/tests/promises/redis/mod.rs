//! Promise: filters go to servers and come back as they were, whole or not at all, and answer there as here.
//!
//! The servers are real ones, with the module loaded (see the crate ironbloom-testing).

mod files;
mod info;
mod interrupted;
mod moving;
mod refusals;
mod sentinel;
mod shards;
mod tls;

use std::io::Write as _;
use std::process::Stdio;

use crate::program::{Run, Scratch};
use ironbloom_testing::Start as _;
use ironbloom_testing::module::{Client, Server};

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
    let mut child = command.start();
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
