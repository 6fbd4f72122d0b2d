//! Loads that end half way.

use std::process::Stdio;
use std::time::Duration;

use super::{keys, url};
use crate::program::Scratch;
use ironbloom_testing::module::{Server, programs};
use ironbloom_testing::{Running, Signal, Start as _};

/// A load that is held up when its first chunk is there: writes wait from then on.
fn load_held_up(scratch: &Scratch, server: &Server) -> Option<Running> {
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
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).start();
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
        for signal in [Signal::KILL, Signal::INT] {
            let mut child = (0..20).find_map(|_| {
                let child = load_held_up(&scratch, &server);
                if child.is_none() {
                    client.text("DEL k");
                    client.text("BF.MADD k old");
                }
                child
            });
            let child = child.as_mut().expect("one of twenty loads is caught in the act");
            child.signal(signal);
            let code = child.wait().unwrap().code();
            assert_eq!(code, if signal == Signal::INT { Some(130) } else { None });
            client.text("CLIENT UNPAUSE");
            assert!(client.scandump("BF", "k") == before, "{signal:?}");
            let all = keys(&mut client);
            let left = all.iter().find(|key| key.contains("loading")).expect("what came is there");
            let seconds: i64 = client.text(&format!("TTL {left}"))[1..].trim().parse().unwrap();
            assert!((1..=600).contains(&seconds), "{seconds}");
            client.text(&format!("DEL {left}"));
        }
    }
}
