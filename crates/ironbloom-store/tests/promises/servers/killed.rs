//! Killed at any instant in front of a server, a guard leaves nothing behind that the next one takes for the truth: neither a
//! checkpoint nor a write that the server carries out later.

#![cfg(all(unix, feature = "redb"))]

use std::collections::HashSet;
use std::path::Path;

use ironbloom_store::{Backend, Guard, GuardKind, Opened, Options, Postgres, Rebuild, Redis};
use ironbloom_testing::postgres::PostgresServer;
use ironbloom_testing::redis::RedisServer;
use ironbloom_testing::{Random, Scratch, eventually};

use crate::common::{assert_covers, key};
use crate::crash::{act, live_and_die, start};

/// Kills for each store and kind.
const KILLS: u64 = 15;
const DIRECTORY: &str = "IRONBLOOM_KILLED_DIRECTORY";
const SEED: &str = "IRONBLOOM_KILLED_SEED";
const KIND: &str = "IRONBLOOM_KILLED_KIND";
const SERVER: &str = "IRONBLOOM_KILLED_SERVER";

fn options(directory: &Path, kind: GuardKind, rebuild: Rebuild) -> Options {
    Options::new(kind, 150, 0.05)
        .checkpoint(directory.join(format!("{kind}.ibg")))
        .only_writer()
        .rebuild(rebuild)
        .max_dead(0.02)
}

fn redis(url: &str, kind: GuardKind) -> Redis {
    eventually(|| Redis::connect(url, format!("{kind}:")))
}

fn postgres(url: &str, kind: GuardKind) -> Postgres {
    eventually(|| Postgres::connect(url, kind.name()))
}

/// Does nothing unless it is started by a test below.
#[test]
fn child() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let [seed, kind, url] = [SEED, KIND, SERVER].map(|name| std::env::var(name).unwrap());
    let (seed, kind): (u64, GuardKind) = (seed.parse().unwrap(), kind.parse().unwrap());
    let options = |rebuild| options(Path::new(&directory), kind, rebuild);
    match url.starts_with("redis:") {
        true => act(|rebuild| Guard::open(redis(&url, kind), options(rebuild)).unwrap(), seed),
        false => act(|rebuild| Guard::open(postgres(&url, kind), options(rebuild)).unwrap(), seed),
    }
}

fn killed<B: Backend>(scratch: &Scratch, url: &str, connect: impl Fn(&str, GuardKind) -> B) {
    let directory = scratch.path();
    let mut random = Random(27);
    let mut from_checkpoint = 0;
    for kind in [GuardKind::Blocked, GuardKind::Cuckoo] {
        let mut stored = HashSet::new();
        for seed in 0..KILLS {
            let seed = seed.to_string();
            let variables = [
                (DIRECTORY, directory.to_str().unwrap()),
                (SEED, &seed),
                (KIND, kind.name()),
                (SERVER, url),
            ];
            live_and_die(start("servers::killed::child", &variables), &mut stored, &mut random);
            let context = format!("{url}, {kind}, life {seed}");
            let options = options(directory, kind, Rebuild::Background);
            let guard = Guard::open(connect(url, kind), options).unwrap();
            from_checkpoint += u64::from(*guard.opened() == Opened::FromCheckpoint);
            for &i in &stored {
                assert!(guard.get(key(i)).unwrap().is_some(), "{context}: {i} was acknowledged");
            }
            assert_covers(&guard, &context);
            guard.settle().unwrap();
            assert_covers(&guard, &context);
            if random.one_in(3) {
                guard.close().unwrap();
            }
        }
        assert!(!stored.is_empty());
    }
    assert!(from_checkpoint < 2 * KILLS, "none has died while it wrote");
}

#[test]
fn guards_that_are_killed_in_front_of_redis_hide_no_key() {
    let scratch = Scratch::new("killed-redis");
    let Some(server) = RedisServer::start(scratch.path(), &[]) else { return };
    killed(&scratch, &server.url(), redis);
}

#[test]
fn guards_that_are_killed_in_front_of_postgresql_hide_no_key() {
    let scratch = Scratch::new("killed-postgres");
    let Some(server) = PostgresServer::start(scratch.path()) else { return };
    server.wait();
    killed(&scratch, &server.url(), postgres);
}
