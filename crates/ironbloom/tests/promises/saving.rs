//! Promise: the file under a name is the complete old or new filter, whatever happens while it is written.

use std::io::Write as _;
use std::path::Path;

use crate::common::{self, hashes};
use crate::mapped;
use ironbloom::any::AnyFilter;
use ironbloom::format::native::{FileLock, Replacing, replace_file};
use ironbloom::*;
use ironbloom_testing::Scratch;

fn filter(stream: u64) -> Bloom {
    let mut bloom = Bloom::with_rate(50_000, 0.01).unwrap();
    bloom.insert_hashes(&hashes(stream, 50_000));
    bloom
}

#[test]
fn saving_replaces_the_file_and_leaves_nothing_else() {
    let scratch = Scratch::new("replace");
    let path = scratch.file("f.ibf");
    filter(1).save(&path).unwrap();
    filter(2).save(&path).unwrap();
    assert_eq!(Bloom::load(&path).unwrap(), filter(2));
    assert_eq!(scratch.names(), ["f.ibf"]);
}

#[test]
fn threads_that_save_under_one_name_do_not_mix_their_bytes() {
    let scratch = Scratch::new("threads");
    let path = scratch.file("f.ibf");
    let filters: Vec<Bloom> = (0..4).map(filter).collect();
    std::thread::scope(|scope| {
        for filter in &filters {
            scope.spawn(|| (0..10).for_each(|_| filter.save(&path).unwrap()));
        }
    });
    assert!(filters.contains(&Bloom::load(&path).unwrap()));
    assert_eq!(scratch.names(), ["f.ibf"]);
}

#[test]
fn a_mapped_filter_outlives_the_replacement_of_its_file() {
    let scratch = Scratch::new("outlive");
    let path = scratch.file("f.ibf");
    filter(1).save(&path).unwrap();
    let mapped = mapped::map::<Bloom>(&path).unwrap();
    filter(2).save(&path).unwrap();
    assert_eq!(mapped, filter(1));
}

#[test]
fn a_privately_mapped_filter_takes_keys_and_leaves_its_file_alone() {
    let scratch = Scratch::new("private");
    let path = scratch.file("f.ibf");
    filter(1).save(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let mut private = mapped::map_private::<Bloom>(&path).unwrap();
    assert_eq!(private, filter(1));
    let more = hashes(2, 10_000);
    private.insert_hashes(&more);
    let mut expected = filter(1);
    expected.insert_hashes(&more);
    assert_eq!(private, expected);
    assert_eq!(std::fs::read(&path).unwrap(), bytes, "the file has changed");

    let mut blocked = BlockedBloom::with_rate(50_000, 0.01).unwrap();
    blocked.insert_hashes(&more);
    blocked.save(&path).unwrap();
    let shared = AtomicBlockedBloom::from(mapped::map_private::<BlockedBloom>(&path).unwrap());
    shared.insert_hashes(&hashes(3, 10_000));
    blocked.insert_hashes(&hashes(3, 10_000));
    assert_eq!(BlockedBloom::from(shared), blocked);
}

#[test]
fn a_failed_save_leaves_the_old_file_and_no_other() {
    let scratch = Scratch::new("failed");
    let directory = scratch.file("directory.ibf");
    std::fs::create_dir(&directory).unwrap();
    assert!(matches!(filter(1).save(&directory), Err(FileError::Io { .. })));
    assert!(filter(1).save(scratch.file("missing/f.ibf")).is_err());
    assert!(filter(1).save("").is_err());
    assert_eq!(scratch.names(), ["directory.ibf"]);
    assert!(std::fs::read_dir(directory).unwrap().next().is_none());
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link_and_permissions_stay() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let scratch = Scratch::new("link");
    let (path, link) = (scratch.file("f.ibf"), scratch.file("link.ibf"));
    filter(1).save(&path).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&path, &link).unwrap();
    filter(2).save(&link).unwrap();
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(Bloom::load(&path).unwrap(), filter(2));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    std::fs::remove_file(&path).unwrap();
    filter(1).save(&link).unwrap(); // a link to nothing yet
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(Bloom::load(&path).unwrap(), filter(1));
}

#[test]
fn a_name_may_be_as_long_as_the_file_system_allows() {
    let scratch = Scratch::new("long");
    let path = scratch.file(&"n".repeat(255));
    filter(1).save(&path).unwrap();
    assert_eq!(Bloom::load(&path).unwrap(), filter(1));
}

#[cfg(unix)]
#[test]
fn a_device_is_written_to_and_not_replaced() {
    filter(1).save("/dev/null").unwrap();
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
    assert!(filter(1).save("/dev/full").is_err());
}

#[test]
fn a_pipe_is_read_without_its_length_being_known() {
    let bytes = filter(1).to_bytes();
    let scratch = Scratch::new("header");
    let path = scratch.file("f.ibf");
    std::fs::write(&path, &bytes).unwrap();
    let header = format::native::header(&path).unwrap();
    assert_eq!((header.kind, header.len), (Kind::Bloom, filter(1).len()));
    assert_eq!(Bloom::read_from(&bytes[..]).unwrap(), filter(1));
    assert!(Bloom::read_from(&bytes[..bytes.len() - 1]).is_err());
    assert!(Bloom::load(Path::new("no such file.ibf")).is_err());
}

/// If others overwrite or truncate the file, the result is an error or the old filter, never a wrong answer or a
/// signal.
#[test]
fn a_loaded_filter_does_not_care_what_becomes_of_its_file() {
    for config in common::FILTERS.iter() {
        let scratch = Scratch::new("loaded");
        let path = scratch.file("f.ibf");
        let keys = hashes(1, 2000);
        (config.build)(&keys, 2000, 0.01).save(&path).unwrap();
        let loaded = AnyFilter::load(&path).unwrap();
        let bytes = std::fs::read(&path).unwrap().len();
        std::fs::write(&path, vec![0; bytes]).unwrap();
        assert_eq!(common::found(&loaded, &keys), 2000, "{}: overwritten", config.name);
        std::fs::write(&path, "").unwrap();
        assert_eq!(common::found(&loaded, &keys), 2000, "{}: truncated", config.name);
        assert!(AnyFilter::load(&path).is_err(), "{}", config.name);
        assert!(ironbloom::format::native::verify(&path).is_err(), "{}", config.name);
    }
}

/// Promise: whoever takes the lock removes the temporary files of the dead, and no others.
#[test]
fn leftovers_are_those_of_this_file_whose_writer_is_dead() {
    let scratch = Scratch::new("leftovers");
    let path = scratch.file("seen");
    let dead = [".seen.4711-0.tmp", ".seen.4711-3.tmp"];
    let others = [
        ".seen.1.4711-0.tmp", // of the file seen.1
        ".seen..4711-0.tmp",  // of the file seen.
        ".seen.2024.tmp",
        ".seen.2024.1.tmp",
        ".seen.tmp",
        ".seen.-0.tmp",
        ".seen.1-.tmp",
        ".seen.1-2-3.tmp",
        ".seen.backup.tmp",
        "seen.4711-0.tmp",
        ".seenx.4711-0.tmp",
    ];
    for name in dead.into_iter().chain(others) {
        std::fs::write(scratch.file(name), b"half a file").unwrap();
    }
    FileLock::acquire(scratch.file("see")).unwrap().remove_leftovers();
    FileLock::acquire(scratch.file("seen.2")).unwrap().remove_leftovers();
    FileLock::acquire(&path).unwrap().remove_leftovers();
    for name in dead {
        assert!(!scratch.file(name).exists(), "{name}");
    }
    for name in others {
        assert!(scratch.file(name).exists(), "{name} is not its own");
    }
}

#[test]
fn a_writer_without_a_lock_keeps_its_file_whoever_takes_the_lock_meanwhile() {
    let scratch = Scratch::new("living");
    for name in ["seen", "seen.1"] {
        let path = scratch.file(name);
        for _ in 0..3 {
            replace_file(&path, |mut file| {
                // A second writer of the file, and others.
                for locked in ["seen", "seen.1", "seen.1.1"] {
                    FileLock::acquire(scratch.file(locked)).unwrap().remove_leftovers();
                }
                file.write_all(b"new")
            })
            .unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), b"new");
        }
    }
    assert_eq!(scratch.names(), ["seen", "seen.1"]);
}

#[test]
fn who_replaces_a_file_waits_for_who_changes_it_and_needs_no_lock_where_there_are_none() {
    let scratch = Scratch::new("replacing");
    let path = scratch.file("f.ibf");
    let replacing = |path: &Path| FileLock::try_acquire_to_replace(path).unwrap();
    let held = FileLock::acquire(&path).unwrap();
    assert!(matches!(replacing(&path), Replacing::Busy));
    drop(held);
    assert!(matches!(replacing(&path), Replacing::Locked(_)));
    assert!(matches!(replacing(&path), Replacing::Locked(_)), "it was dropped");
    assert!(matches!(replacing(Path::new("/dev/null")), Replacing::NoLocks));
    assert!(matches!(replacing(&scratch.file("missing/f.ibf")), Replacing::NoLocks));
    assert_eq!(scratch.names(), [""; 0]);
}

/// Others may have put something in the place of a lock, in a folder where they may write.
#[cfg(unix)]
#[test]
fn a_lock_is_a_file_and_never_a_link_or_a_pipe() {
    let scratch = Scratch::new("odd-locks");
    let (path, lock) = (scratch.file("f.ibf"), scratch.file(".f.ibf.lock"));
    let elsewhere = scratch.file("elsewhere");
    let refused = || {
        for error in [
            FileLock::acquire(&path).map(drop).unwrap_err(),
            FileLock::try_acquire(&path).map(drop).unwrap_err(),
            FileLock::try_acquire_to_replace(&path).map(drop).unwrap_err(),
        ] {
            assert!(error.to_string().contains(".f.ibf.lock"), "{error}");
        }
    };
    std::os::unix::fs::symlink(&elsewhere, &lock).unwrap();
    refused();
    assert!(!elsewhere.exists(), "a link was followed");
    std::fs::write(&elsewhere, b"").unwrap();
    refused();
    std::fs::remove_file(&lock).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&lock).status();
    assert!(made.unwrap().success());
    refused();
    std::fs::remove_file(&lock).unwrap();
    std::fs::create_dir(&lock).unwrap();
    refused();
}
