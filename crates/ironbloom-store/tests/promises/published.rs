//! Promise: readers of a published filter never miss a key that was acknowledged before it was taken, whatever happens to
//! the writer and to the file.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use crate::common::key;
use futures_lite::future::block_on;
use ironbloom::{AnyFilter, Persist};
use ironbloom_store::{Backend, Error, Guard, GuardKind, Memory, Options, Published, Redb};
use ironbloom_testing::{Random, Running, Scratch, Start as _, wait_until};

const DIRECTORY: &str = "IRONBLOOM_PUBLISHED_DIRECTORY";
const FROM: &str = "IRONBLOOM_PUBLISHED_FROM";

fn options(scratch: &Path) -> Options {
    Options::new(GuardKind::Blocked, 1000, 0.001).publish(scratch.join("users.ibf"))
}

/// The writer. Does nothing unless it is started by the test below.
#[test]
fn child() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let from: u64 = std::env::var(FROM).unwrap().parse().unwrap();
    let directory = Path::new(&directory);
    let options = options(directory).checkpoint(directory.join("g.ibg")).publish_after(7);
    let guard = Guard::open(Redb::create(directory.join("s.redb")).unwrap(), options).unwrap();
    let mut out = std::io::stdout();
    let mut say = |line: String| out.write_all(format!("\n!{line}\n").as_bytes()).unwrap();
    for i in from.. {
        guard.put(key(i), b"value").unwrap();
        say(format!("put {i}"));
        match i % 10 {
            3 => guard.publish().unwrap(),
            7 => guard.checkpoint().unwrap(),
            _ => continue,
        }
        say(format!("published {i}"));
    }
}

fn start(directory: &Path, from: u64) -> Running {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "published::child", "--nocapture", "--test-threads", "1"])
        .env(DIRECTORY, directory)
        .env(FROM, from.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .start()
}

/// This process reads while another writes, is killed, and is started again.
#[test]
fn a_reader_never_misses_what_was_published_while_writers_die() {
    let scratch = Scratch::new("published-processes");
    let path = scratch.file("users.ibf");
    let mut random = Random(1);
    let mut reader: Option<Published> = None;
    let (mut put, mut published) = (0, None);
    for life in 0..8 {
        let mut child = start(scratch.path(), put);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let wanted = 15 + random.below(40);
        let mut seen = 0;
        while seen < wanted {
            let line = lines.next().expect("the writer has ended by itself").unwrap();
            if let Some(i) = line.strip_prefix("!put ") {
                put = i.parse::<u64>().unwrap() + 1;
                seen += 1;
            }
            if let Some(i) = line.strip_prefix("!published ") {
                published = Some(i.parse::<u64>().unwrap());
            }
            let Some(last) = published else { continue };
            let reader = reader.get_or_insert_with(|| Published::open(&path).unwrap());
            let generation = reader.generation();
            assert_eq!(reader.refresh().unwrap(), reader.generation() > generation);
            for i in 0..=last {
                assert!(reader.contains(key(i)), "life {life}: {i} was published");
            }
            assert!(reader.taken() <= SystemTime::now() && reader.problem().is_none());
        }
        std::thread::sleep(Duration::from_micros(random.below(3000)));
        child.kill().unwrap();
        child.wait().unwrap();
        for line in lines.map_while(Result::ok) {
            assert!(!line.contains("panicked"), "the writer has failed: {line}");
            if let Some(i) = line.strip_prefix("!put ") {
                put = i.parse::<u64>().map_or(put, |i| i + 1);
            }
        }
    }
    let reader = reader.unwrap();
    assert!(reader.generation() > 8, "{} files were read", reader.generation());
    let absent: Vec<_> = (1_000_000..1_001_000).map(key).collect();
    let wrong = reader.contains_many(&absent).iter().filter(|&&found| found).count();
    assert!(wrong < 20, "{wrong} of 1000 at a rate of 0.001");
    // The library and the program read the same file.
    let filter = AnyFilter::load(&path).unwrap();
    assert!((0..=published.unwrap()).all(|i| filter.contains(&key(i)[..]).unwrap()));
    let left = |name: &&String| name.starts_with(".users.ibf");
    assert!(scratch.names().iter().filter(left).count() <= 1, "{:?}", scratch.names());
}

#[test]
fn a_damaged_file_is_reported_and_the_old_filter_stays() {
    let scratch = Scratch::new("published-damaged");
    let path = scratch.file("users.ibf");
    assert!(Published::open(&path).is_err(), "there is none yet");
    let guard = Guard::open(Memory::new(), options(scratch.path())).unwrap();
    guard.put("alice", "").unwrap();
    guard.publish().unwrap();
    let reader = Published::open(&path).unwrap();
    assert!(reader.contains("alice") && !reader.contains("bob"));
    assert_eq!((reader.refresh().unwrap(), reader.generation()), (false, 1));
    let whole = fs::read(&path).unwrap();
    let taken = reader.taken();

    let mut random = Random(2);
    for round in 0..200 {
        let mut bytes = whole.clone();
        match round % 3 {
            0 => bytes.truncate(random.below(whole.len() as u64) as usize),
            1 => bytes[random.below(whole.len() as u64) as usize] ^= 1 << random.below(8),
            _ => bytes.extend(b"more"),
        }
        if round % 2 == 0 {
            fs::write(&path, &bytes).unwrap(); // in place, as no writer of ours does
        } else {
            fs::write(scratch.file("other"), &bytes).unwrap();
            fs::rename(scratch.file("other"), &path).unwrap();
        }
        assert!(reader.refresh().is_err(), "round {round}");
        assert!(reader.problem().is_some());
        assert!(reader.contains("alice") && !reader.contains("bob"));
        assert_eq!((reader.generation(), reader.taken()), (1, taken));
    }
    fs::remove_file(&path).unwrap();
    assert!(reader.refresh().is_err() && reader.contains("alice"));

    guard.put("bob", "").unwrap();
    guard.publish().unwrap();
    assert!(reader.refresh().unwrap() && reader.contains("bob") && reader.contains("alice"));
    assert!(reader.problem().is_none() && reader.generation() == 2 && reader.taken() > taken);
}

#[test]
fn it_is_published_after_writes_and_at_intervals_and_readers_follow() {
    let scratch = Scratch::new("published-when");
    let path = scratch.file("users.ibf");
    let store = Memory::new();
    let guard = Guard::open(store.clone(), options(scratch.path()).publish_after(100)).unwrap();
    for i in 0..150 {
        guard.put(key(i), b"").unwrap();
    }
    wait_until(|| path.exists());
    let reader = Published::watch(&path, Duration::from_millis(1)).unwrap();
    wait_until(|| (0..99).all(|i| reader.contains(key(i))));
    drop(guard);

    let every = options(scratch.path()).publish_every(Duration::from_millis(1));
    let guard = Guard::open(store, every).unwrap();
    guard.put("once", b"").unwrap(); // and never again
    wait_until(|| reader.contains("once"));
    assert!(reader.age() < Duration::from_secs(60));
    // Nothing changes: nothing is written.
    std::thread::sleep(Duration::from_millis(20));
    let generation = reader.generation();
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(reader.generation(), generation);
}

/// A guard that has to be rebuilt publishes nothing until it has.
#[test]
fn a_guard_without_a_filter_publishes_only_what_it_has_built() {
    let scratch = Scratch::new("published-rebuilt");
    let store = Memory::new();
    (0..500).for_each(|i| assert!(store.put(&key(i), b"").unwrap().was_absent()));
    let manual = options(scratch.path()).rebuild(ironbloom_store::Rebuild::Manual);
    let guard = Guard::open(store, manual.publish_every(Duration::from_millis(1))).unwrap();
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(scratch.names(), [""; 0], "an empty filter would say that nothing is there");
    guard.publish().unwrap();
    let reader = Published::open(scratch.file("users.ibf")).unwrap();
    assert!((0..500).all(|i| reader.contains(key(i))));
}

#[test]
fn asynchronous_guards_publish_too() {
    use ironbloom_store::{AsyncGuard, Objects};
    use object_store::memory::InMemory;
    let scratch = Scratch::new("published-async");
    let store = Objects::new(std::sync::Arc::new(InMemory::new()), "keys");
    let options = options(scratch.path()).checkpoint(scratch.file("g.ibg")).publish_after(50);
    block_on(async {
        let guard = AsyncGuard::open(store, options).await.unwrap();
        guard.put("alice", b"").await.unwrap();
        guard.publish().await.unwrap();
        let reader = Published::open(scratch.file("users.ibf")).unwrap();
        assert!(reader.contains("alice") && !reader.contains(key(1)));
        for i in 0..60 {
            guard.put(key(i), b"").await.unwrap();
        }
        wait_until(|| reader.refresh().unwrap() || reader.contains(key(40)));
        guard.put("last", b"").await.unwrap();
        guard.close().await.unwrap();
        reader.refresh().unwrap();
        assert!(reader.contains("last"), "a checkpoint publishes");
    });
}

#[test]
fn what_cannot_be_published_is_refused_when_the_guard_is_opened() {
    let scratch = Scratch::new("published-refused");
    for kind in GuardKind::ALL {
        let options = Options::new(kind, 1000, 0.01).publish(scratch.file("users.ibf"));
        let opened = Guard::open(Memory::new(), options);
        match opened {
            Ok(guard) => {
                assert_eq!(kind, GuardKind::Blocked);
                guard.publish().unwrap();
            }
            Err(Error::CannotPublish(refused)) => assert_eq!(kind, refused),
            Err(other) => panic!("{other}"),
        }
    }
    let nowhere = Options::new(GuardKind::Blocked, 1000, 0.01).publish_after(1);
    assert!(matches!(Guard::open(Memory::new(), nowhere), Err(Error::CannotPublish(_))));
    let guard = Guard::open(Memory::new(), Options::new(GuardKind::Blocked, 1000, 0.01)).unwrap();
    assert!(matches!(guard.publish(), Err(Error::CannotPublish(_))));
}
