//! Files: what is saved is what is opened, and a program that dies leaves the old file or the new one.

use std::fs;
#[cfg(unix)]
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::model::{Row, batch, columns};
use ironbloom_index::{
    Error, Index, IndexBuilder, IndexLock, ParamError, Params, Predicate, SourceMeta, Value,
};
use ironbloom_testing::{Start as _, TemporaryFile};

fn rows(count: i32, first: i32) -> Vec<Row> {
    let row = |i| Row { int: Some(i), text: Some(format!("t{i}")), float: None, flag: Some(true) };
    (first..first + count).map(row).collect()
}

fn index_of(name: &str, count: i32) -> Index {
    let mut builder = IndexBuilder::new(columns(), Params::default()).unwrap();
    builder.start(name).unwrap();
    builder.push(&batch(&rows(count, 0))).unwrap();
    builder
        .end(SourceMeta {
            bytes: 1234,
            fingerprint: 5678,
            blob: b"pages".to_vec(),
            ..SourceMeta::default()
        })
        .unwrap();
    builder.finish().unwrap()
}

#[test]
fn an_opened_index_is_the_saved_one() {
    let file = TemporaryFile::new("ibx");
    let mut index = index_of("t.parquet", 5000);
    index.save(&file.0).unwrap();
    let opened = Index::open(&file.0).unwrap();
    assert_eq!(opened.params(), index.params());
    assert_eq!(opened.columns(), index.columns());
    assert_eq!(opened.info(), index.info());
    let source = &opened.sources()[0];
    let known = (source.name(), source.bytes(), source.fingerprint(), source.rows());
    assert_eq!(known, ("t.parquet", 1234, 5678, 5000));
    assert_eq!(opened.blob(0).unwrap(), b"pages");
    for i in (0..5000).step_by(97) {
        let predicate = Predicate::Eq("text".into(), Value::Text(format!("t{i}")));
        assert_eq!(opened.candidates(&predicate).unwrap(), index.candidates(&predicate).unwrap());
    }
}

#[test]
fn an_index_without_rows_and_one_without_sources_are_files_too() {
    let file = TemporaryFile::new("ibx");
    let mut none = IndexBuilder::new(columns(), Params::default()).unwrap().finish().unwrap();
    none.save(&file.0).unwrap();
    let opened = Index::open(&file.0).unwrap();
    assert_eq!((opened.sources().len(), opened.info().rows), (0, 0));
    let mut empty = index_of("empty.csv", 0);
    empty.compact().unwrap();
    empty.save(&file.0).unwrap();
    let opened = Index::open(&file.0).unwrap();
    assert_eq!((opened.sources().len(), opened.info().rows, opened.info().segments), (1, 0, 0));
    let found = opened.candidates(&Predicate::And(vec![])).unwrap();
    assert_eq!((found.blocks.len(), found.considered), (0, 0));
}

#[test]
fn saving_over_the_file_that_is_open_keeps_the_old_one_usable() {
    let file = TemporaryFile::new("ibx");
    index_of("t.parquet", 5000).save(&file.0).unwrap();
    let old = Index::open(&file.0).unwrap();
    let mut new = Index::open(&file.0).unwrap();
    new.append(index_of("u.parquet", 700)).unwrap();
    new.compact().unwrap();
    new.save(&file.0).unwrap();
    assert!(old.verify().is_empty());
    assert_eq!(old.sources().len(), 1);
    assert_eq!(Index::open(&file.0).unwrap().sources().len(), 2);
}

#[test]
fn what_is_refused_changes_nothing() {
    let mut index = index_of("t.parquet", 1000);
    let before = index.info();
    assert!(matches!(index.append(index_of("t.parquet", 10)), Err(Error::TwoSources { .. })));
    let other = IndexBuilder::new(columns(), Params::new(64, 10).unwrap()).unwrap();
    assert!(matches!(index.append(other.finish().unwrap()), Err(Error::Mismatch { .. })));
    let fewer = IndexBuilder::new(columns()[..1].to_vec(), Params::default()).unwrap();
    assert!(matches!(index.append(fewer.finish().unwrap()), Err(Error::Mismatch { .. })));
    let mut gap = IndexBuilder::like(&index).unwrap();
    gap.start_at("t.parquet", 999).unwrap();
    gap.push(&batch(&rows(10, 0))).unwrap();
    let mut gap = gap.finish().unwrap();
    assert!(matches!(gap.save(TemporaryFile::new("ibx").0.clone()), Err(Error::Gap { .. })));
    assert!(matches!(index.append(gap), Err(Error::Gap { rows: 1000, first_row: 999, .. })));
    assert!(matches!(index.remove("u.parquet"), Err(Error::NoSource { .. })));
    let few = batch(&rows(10, 0)).project(&[0, 1]).unwrap();
    assert!(matches!(index.push(0, &few), Err(Error::NoColumn { .. })));
    assert_eq!(index.info(), before);
    assert!(matches!(
        index.candidates(&Predicate::IsNull("x".into())),
        Err(Error::NoColumn { .. })
    ));
    assert!(matches!(Params::new(500, 10), Err(ParamError { .. })));
    assert!(matches!(Params::new(512, 0), Err(ParamError { .. })));
    assert!(matches!(IndexBuilder::new(vec![], Params::default()), Err(Error::NoColumns)));
}

/// The child: opens, grows or merges, and saves, until it is killed. Does nothing unless it is started by the test below.
#[test]
fn child_saves_for_ever() {
    let Ok(path) = std::env::var("IRONBLOOM_TEST_INDEX") else { return };
    for round in 0.. {
        let mut index = Index::open(&path).unwrap();
        let name = format!("more {}.parquet", round % 4);
        if index.source(&name).is_some() {
            index.remove(&name).unwrap();
        }
        index.append(index_of(&name, 3000)).unwrap();
        index.compact().unwrap();
        index.save(&path).unwrap();
    }
}

#[test]
#[cfg(unix)]
fn a_program_killed_while_it_saves_leaves_a_whole_index() {
    let file = TemporaryFile::new("ibx");
    index_of("t.parquet", 20_000).save(&file.0).unwrap();
    let stem = file.0.file_name().unwrap().to_string_lossy().into_owned();
    let inode = || fs::metadata(&file.0).unwrap().ino();
    for round in 0..12 {
        let before = inode();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "files::child_saves_for_ever"])
            .env("IRONBLOOM_TEST_INDEX", &file.0)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .start();
        // Every save makes another file: once the first is there, the child is at work, wherever that is.
        while inode() == before {
            assert!(child.try_wait().unwrap().is_none(), "the child died before it saved");
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_micros(700 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let index = Index::open(&file.0).unwrap();
        assert!(index.verify().is_empty());
        for i in (0..20_000).step_by(511) {
            let found =
                index.candidates(&Predicate::Eq("int".into(), Value::Int(i.into()))).unwrap();
            assert!(found.blocks.iter().any(|b| b.source == 0 && b.range().contains(&(i as u64))));
        }
    }
    // What the dead left behind under temporary names.
    for entry in fs::read_dir(std::env::temp_dir()).unwrap().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(&format!(".{}", stem.chars().take(40).collect::<String>())) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Two that opened the same state both change it: the second is told, and the first one's change stays.
#[test]
fn a_change_that_would_undo_another_is_refused() {
    let file = TemporaryFile::new("ibx");
    index_of("a.parquet", 1000).save(&file.0).unwrap();
    let (mut one, mut two) = (Index::open(&file.0).unwrap(), Index::open(&file.0).unwrap());
    one.append(index_of("b.parquet", 1000)).unwrap();
    one.save(&file.0).unwrap();
    two.append(index_of("c.parquet", 1000)).unwrap();
    assert!(matches!(two.save(&file.0), Err(Error::Overtaken { .. })));
    let names = |index: &Index| -> Vec<String> {
        index.sources().iter().map(|source| source.name().to_owned()).collect()
    };
    assert_eq!(names(&Index::open(&file.0).unwrap()), ["a.parquet", "b.parquet"]);
    // Who has saved may go on, and a copy elsewhere harms nobody.
    one.append(index_of("d.parquet", 1000)).unwrap();
    one.save(&file.0).unwrap();
    two.save(TemporaryFile::new("ibx").0.clone()).unwrap();
    assert_eq!(names(&Index::open(&file.0).unwrap()), ["a.parquet", "b.parquet", "d.parquet"]);
    // An index that was deleted does not come back.
    std::fs::remove_file(&file.0).unwrap();
    assert!(matches!(one.save(&file.0), Err(Error::Overtaken { .. })));
}

#[test]
fn writers_wait_for_each_other_and_readers_for_nobody() {
    let file = TemporaryFile::new("ibx");
    index_of("a.parquet", 1000).save(&file.0).unwrap();
    let lock = IndexLock::acquire(&file.0).unwrap();
    assert!(IndexLock::try_acquire(&file.0).unwrap().is_none());
    // By another name it is the same index.
    #[cfg(unix)]
    {
        let link = TemporaryFile::new("ibx");
        std::os::unix::fs::symlink(&file.0, &link.0).unwrap();
        assert!(IndexLock::try_acquire(&link.0).unwrap().is_none());
    }
    assert_eq!(Index::open(&file.0).unwrap().info().rows, 1000);
    let rows = std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let lock = IndexLock::acquire(&file.0).unwrap();
            lock.open().unwrap().info().rows
        });
        let mut index = lock.open().unwrap();
        index.append(index_of("b.parquet", 500)).unwrap();
        lock.save(&mut index).unwrap();
        drop(lock);
        other.join().unwrap()
    });
    assert_eq!(rows, 1500, "who waited sees what was written meanwhile");
}
