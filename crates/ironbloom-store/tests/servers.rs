//! Promise: the servers of others do what a guard relies on. Each is started here, on a free port of loopback or a socket
//! in a directory of its own, and stopped again. Without the server's program the test says so and does nothing, unless
//! `IRONBLOOM_REQUIRE_SERVER` is set.

#![cfg(any(feature = "postgres", feature = "redis"))]

mod common;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::{Scratch, exercise};

/// A process that ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // SIGINT: PostgreSQL then leaves no memory of the system behind.
        let _ = Command::new("kill").args(["-INT", &self.0.id().to_string()]).status();
        for _ in 0..500 {
            if matches!(self.0.try_wait(), Ok(Some(_)) | Err(_)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Where a program is, or why the test is skipped.
fn program(name: &str, directories: &[PathBuf]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).chain(directories.iter().cloned());
    let found = places.find_map(|place| Some(place.join(name)).filter(|file| file.is_file()));
    if found.is_none() {
        assert!(std::env::var_os("IRONBLOOM_REQUIRE_SERVER").is_none(), "{name} is not installed");
        println!("skipped: {name} is not installed");
    }
    found
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Tries until it works, half a minute at most.
fn eventually<T, E: std::fmt::Debug>(mut connect: impl FnMut() -> Result<T, E>) -> T {
    let mut last = None;
    for _ in 0..300 {
        match connect() {
            Ok(connected) => return connected,
            Err(error) => last = Some(error),
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("the server does not answer: {last:?}");
}

fn quiet(command: &mut Command, log: &Path) -> Child {
    let log = std::fs::File::create(log).unwrap();
    command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap()
}

#[cfg(feature = "redis")]
#[test]
fn a_redis_server_does_what_a_guard_relies_on() {
    use ironbloom_store::{Backend, Redis};
    let Some(program) = program("redis-server", &[]) else { return };
    let scratch = Scratch::new("redis");
    let port = free_port().to_string();
    let mut command = Command::new(program);
    command.args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
    let _server = Server(quiet(command.current_dir(scratch.path()), &scratch.file("log")));
    let url = format!("redis://127.0.0.1:{port}/");
    let connect = |prefix: &str| eventually(|| Redis::connect(url.as_str(), prefix));
    // The prefix has letters that mean something in patterns, and a neighbour that a pattern would match.
    connect("u*er:").put(b"not ours", b"").unwrap();
    connect("uxer:").put(b"not ours", b"").unwrap();
    exercise(&scratch, || connect("u?er:"));
    assert_eq!(connect("u*er:").len_hint().unwrap(), None);
    let all = connect("");
    assert!(all.len_hint().unwrap().unwrap() > 490);
}

#[cfg(feature = "postgres")]
#[test]
fn a_table_of_postgresql_does_what_a_guard_relies_on() {
    use ironbloom_store::{Backend, Postgres};
    let mut versions: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .map(|entries| entries.flatten().map(|entry| entry.path().join("bin")).collect())
        .unwrap_or_default();
    versions.sort();
    let Some(server) = program("postgres", &versions) else { return };
    let scratch = Scratch::new("postgres");
    let data = scratch.file("data");
    // It refuses to run as root.
    let root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    if root {
        let owned = Command::new("chown").arg("postgres").arg(scratch.path()).status().unwrap();
        assert!(owned.success());
    }
    let as_user = |program: &Path| {
        if !root {
            return Command::new(program);
        }
        let mut command = Command::new("runuser");
        command.args(["-u", "postgres", "--"]).arg(program);
        command
    };
    let mut initdb = as_user(&server.with_file_name("initdb"));
    initdb.args(["-A", "trust", "-U", "postgres", "--no-sync", "-D"]).arg(&data);
    let made = initdb.current_dir(scratch.path()).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let port = free_port().to_string();
    let mut command = as_user(&server);
    command.arg("-D").arg(&data).args(["-p", &port, "-c", "listen_addresses=127.0.0.1"]);
    command.args(["-c", "fsync=off", "-k"]).arg(scratch.path());
    let _server = Server(quiet(command.current_dir(scratch.path()), &scratch.file("log")));
    let url = format!("host=127.0.0.1 port={port} user=postgres dbname=postgres");
    let connect = |table: &str| eventually(|| Postgres::connect(&url, table));
    exercise(&scratch, || connect("odd \"name\""));
    let other = connect("other");
    assert_eq!(other.len_hint().unwrap(), Some(0));
    let pairs: Vec<(Vec<u8>, &[u8])> = (0..25_000).map(|i| (common::key(i), &b""[..])).collect();
    let pairs: Vec<(&[u8], &[u8])> = pairs.iter().map(|(key, value)| (&key[..], *value)).collect();
    assert!(other.put_many(&pairs).unwrap().iter().all(|&new| new));
    let mut visited = 0;
    let mut count = |_: &[u8]| {
        visited += 1;
        std::ops::ControlFlow::Continue(())
    };
    other.scan(&mut count).unwrap();
    assert_eq!(visited, 25_000, "more than a page");

    // What went wrong is said, and where it may not be called it is an error.
    let wrong = Postgres::connect(&format!("{url} options='-c nonsense=1'"), "other").unwrap_err();
    assert!(wrong.to_string().contains("nonsense"), "{wrong}");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let inside = Postgres::connect(&url, "other").unwrap_err();
        assert!(matches!(inside, ironbloom_store::PostgresError::InsideRuntime), "{inside}");
        assert!(other.get(b"a").unwrap_err().to_string().contains("runtime"));
    });
}
