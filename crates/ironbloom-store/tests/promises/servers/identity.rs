//! A Redis server that went back within a generation, in a way that no count of writes tells: it is known by its run and by
//! its history.

use std::cell::RefCell;
use std::fs;

use ironbloom_store::{Guard, GuardKind, Options, Redis};
use ironbloom_testing::redis::RedisServer;
use ironbloom_testing::{Scratch, Signal, eventually, wait_until};

use crate::common::{assert_covers, key};

fn client(server: &RedisServer) -> redis::Connection {
    eventually(|| redis::Client::open(server.url())?.get_connection())
}

fn say(server: &RedisServer, words: &[&str]) {
    redis::cmd(words[0]).arg(&words[1..]).exec(&mut client(server)).unwrap();
}

fn replication(server: &RedisServer) -> String {
    redis::cmd("INFO").arg("replication").query(&mut client(server)).unwrap()
}

/// Makes a server copy another one, and waits until it has.
fn copy(from: &RedisServer, to: &RedisServer) {
    say(to, &["REPLICAOF", "127.0.0.1", &from.port.to_string()]);
    wait_until(|| replication(to).contains("master_link_status:up"));
}

/// A removal whose answer was lost takes effect late, and a lookup sees it, which the guard remembers. Then the server goes back to a
/// backup from before it, of the same generation, and with all the writes that the guard has heard of.
fn a_key_comes_back(
    url: &str,
    server: &RefCell<RedisServer>,
    backup: impl FnOnce(),
    go_back: impl FnOnce(),
) {
    let store = eventually(|| Redis::connect(url, "users:"));
    let options = Options::new(GuardKind::Cuckoo, 1000, 0.01).only_writer();
    let guard = Guard::open(store, options).unwrap();
    guard.settle().unwrap();
    for i in 0..100 {
        let _ = guard.put(key(i), b"").unwrap();
    }
    backup();
    say(&server.borrow(), &["DEL", "users:key-1"]);
    say(&server.borrow(), &["HINCRBY", "users:ironbloom:generation", "writes", "1"]);
    assert!(guard.get(key(1)).unwrap().is_none());
    assert_eq!(guard.stats().remembered, 1);
    let before = guard.stats().foreign;
    go_back();
    assert!(eventually(|| guard.get(key(0))).is_some());
    assert!(guard.stats().foreign > before, "the first connection notices it");
    assert!(guard.get(key(1)).unwrap().is_some(), "it is stored again");
    assert_covers(&guard, url);
    eventually(|| guard.rebuild());
    assert_covers(&guard, url);
}

#[test]
fn a_redis_server_that_was_started_again_is_another_one_also_if_it_may_not_tell() {
    let silent = ["--user", "silent", "on", ">secret", "~*", "&*", "+@all", "-info"];
    for user in ["", "silent:secret@"] {
        let scratch = Scratch::new("identity-run");
        let Some(server) = RedisServer::start(scratch.path(), &silent) else { return };
        let server = RefCell::new(server);
        let url = format!("redis://{user}127.0.0.1:{}/", server.borrow().port);
        let [dump, saved] = ["dump.rdb", "saved.rdb"].map(|name| scratch.file(name));
        let backup = || {
            say(&server.borrow(), &["SAVE"]);
            fs::copy(&dump, &saved).unwrap();
        };
        let go_back = || {
            let mut server = server.borrow_mut();
            server.signal(Signal::KILL);
            server.stop();
            fs::copy(&saved, &dump).unwrap();
            server.resume();
        };
        a_key_comes_back(&url, &server, backup, go_back);
    }
}

#[test]
fn a_redis_server_that_was_a_replica_for_a_while_is_another_one() {
    let [scratch, other] = ["identity-history", "identity-other"].map(Scratch::new);
    let Some(server) = RedisServer::start(scratch.path(), &[]) else { return };
    let Some(other) = RedisServer::start(other.path(), &[]) else { return };
    let (url, server) = (server.url(), RefCell::new(server));
    let backup = || {
        copy(&server.borrow(), &other);
        say(&other, &["REPLICAOF", "NO", "ONE"]);
    };
    // As a Sentinel does, whoever is connected is sent away.
    let go_back = || {
        copy(&other, &server.borrow());
        say(&server.borrow(), &["REPLICAOF", "NO", "ONE"]);
        say(&server.borrow(), &["CLIENT", "KILL", "TYPE", "normal"]);
    };
    a_key_comes_back(&url, &server, backup, go_back);
}
