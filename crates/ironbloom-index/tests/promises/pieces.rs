//! A large column is read in pieces of 4 KiB, each verified when it is touched: a lookup reads little, and damage harms only
//! the lookups that need what is damaged.

use std::fs;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use ironbloom_index::{
    Candidates, Error, FilePart, Index, IndexBuilder, Indexed, Params, Predicate, SourceMeta,
    Value, columns_of, parse,
};
use ironbloom_testing::{Scratch, TemporaryFile};

const ROWS: i64 = 600_000;

/// A column of different values, and one of a thousand frequent ones and nulls.
fn index() -> Index {
    let kind = |row: i64| (row % 7 != 0).then(|| format!("kind {}", row * 31 % 1000));
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS));
    let kinds: ArrayRef = Arc::new(StringArray::from_iter((0..ROWS).map(kind)));
    let batch = RecordBatch::try_from_iter([("id", ids), ("kind", kinds)]).unwrap();
    let columns = columns_of(&batch.schema()).unwrap();
    let mut builder = IndexBuilder::new(columns, Params::default()).unwrap();
    builder.start("t.parquet").unwrap();
    builder.push(&batch).unwrap();
    builder.end(SourceMeta::default()).unwrap();
    builder.finish().unwrap()
}

fn index_once() -> &'static Index {
    static INDEX: LazyLock<Index> = LazyLock::new(index);
    &INDEX
}

fn saved(file: &TemporaryFile) {
    static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let file = TemporaryFile::new("ibx");
        index().save(&file.0).unwrap();
        fs::read(&file.0).unwrap()
    });
    fs::write(&file.0, &*BYTES).unwrap();
}

fn id(id: i64) -> Predicate {
    Predicate::Eq("id".into(), Value::Int(id.into()))
}

fn questions() -> Vec<Predicate> {
    let kind = |kind| Predicate::Eq("kind".into(), Value::Text(format!("kind {kind}")));
    let mut questions: Vec<Predicate> = (0..ROWS).step_by(2003).map(id).collect();
    questions.extend((0..1100).step_by(101).map(kind));
    questions.push(Predicate::IsNull("kind".into()));
    questions.push(Predicate::And(vec![id(77), kind(77 * 31 % 1000)]));
    questions
}

#[test]
fn opening_and_a_lookup_read_kilobytes() {
    let file = TemporaryFile::new("ibx");
    saved(&file);
    assert!(fs::metadata(&file.0).unwrap().len() > 1_000_000);
    for question in questions() {
        let opened = Index::open(&file.0).unwrap();
        assert!(opened.bytes_read() < 1000, "{} bytes to open it", opened.bytes_read());
        assert_eq!(
            opened.candidates(&question).unwrap(),
            index_once().candidates(&question).unwrap()
        );
        let read = opened.bytes_read();
        assert!(read < 80_000, "{read} bytes for {question:?}");
        opened.candidates(&question).unwrap();
        assert_eq!(opened.bytes_read(), read, "what was read stays in memory");
    }
}

#[test]
fn a_column_that_is_used_much_is_read_once() {
    let file = TemporaryFile::new("ibx");
    saved(&file);
    let length = fs::metadata(&file.0).unwrap().len();
    let opened = Index::open(&file.0).unwrap();
    for row in (0..ROWS).step_by(6007) {
        assert_eq!(index_of(&opened, row), index_of(index_once(), row));
    }
    assert!(opened.bytes_read() < 2 * length, "{} of {length}", opened.bytes_read());
    // All of it is in memory now, also what these questions have not needed, and answers whatever happens to the file.
    fs::OpenOptions::new().write(true).open(&file.0).unwrap().set_len(0).unwrap();
    for row in (0..ROWS).step_by(50) {
        assert_eq!(index_of(&opened, row), index_of(index_once(), row));
    }
    assert!(!opened.verify().is_empty());
}

fn index_of(index: &Index, row: i64) -> Candidates {
    index.candidates(&id(row)).unwrap()
}

#[test]
fn loading_reads_everything_and_then_nothing() {
    let file = TemporaryFile::new("ibx");
    saved(&file);
    let opened = Index::open(&file.0).unwrap();
    opened.load().unwrap();
    let read = opened.bytes_read();
    for question in questions() {
        let right = index_once().candidates(&question).unwrap();
        assert_eq!(opened.candidates(&question).unwrap(), right);
    }
    assert_eq!(opened.bytes_read(), read);
}

#[test]
fn damage_in_one_piece_harms_only_the_questions_that_need_it() {
    let (whole, file) = (TemporaryFile::new("ibx"), TemporaryFile::new("ibx"));
    saved(&whole);
    let bytes = fs::read(&whole.0).unwrap();
    let questions = questions();
    let right: Vec<Candidates> =
        questions.iter().map(|question| index_once().candidates(question).unwrap()).collect();
    let mut harmed = [0; 2];
    // After the samples, which many lists share.
    for at in (30_000..900_000).step_by(29_989) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        fs::write(&file.0, &damaged).unwrap();
        let mut refused = 0;
        for (question, right) in questions.iter().zip(&right) {
            match Index::open(&file.0).unwrap().candidates(question) {
                Ok(found) => assert_eq!(&found, right),
                Err(Error::Damaged { part: FilePart::Column { .. }, offset, len, .. }) => {
                    let piece = offset..offset + len;
                    assert!(
                        len <= 4096 && piece.contains(&(at as u64)),
                        "{at} is not in {piece:?}"
                    );
                    refused += 1;
                }
                Err(other) => panic!("{other}"),
            }
        }
        assert!(refused * 4 < questions.len(), "{refused} by damage at {at}");
        harmed[usize::from(refused > 0)] += 1;
        // One that asks much does not fail where it did not before.
        let opened = Index::open(&file.0).unwrap();
        let again = questions.iter().filter(|question| opened.candidates(question).is_err());
        assert_eq!(again.count(), refused);
        assert_eq!(opened.verify().len(), 1, "damage at {at}");
        assert!(opened.load().is_err());
    }
    assert!(harmed[1] > 5, "{harmed:?}");
}

/// Also the levels of checksums above the words.
#[test]
fn every_damaged_piece_is_found_by_verify() {
    let (whole, file) = (TemporaryFile::new("ibx"), TemporaryFile::new("ibx"));
    saved(&whole);
    let bytes = fs::read(&whole.0).unwrap();
    let mut unnoticed = 0;
    for at in (64..bytes.len()).step_by(997) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x40;
        fs::write(&file.0, &damaged).unwrap();
        unnoticed += usize::from(Index::open(&file.0).is_ok_and(|index| index.verify().is_empty()));
    }
    // Only what fills up sections to 64 bytes.
    assert!(unnoticed <= 1, "{unnoticed}");
}

/// What version 1 has verified as a whole stays so, in a file of version 3.
#[test]
fn an_index_of_version_1_can_be_changed() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let folder = Scratch::on_disk("version-1");
    for name in ["v1.ibx", "trees.csv"] {
        fs::copy(golden.join(name), folder.file(name)).unwrap();
    }
    fs::copy(golden.join("trees.csv"), folder.file("more.csv")).unwrap();
    let file = folder.file("v1.ibx");
    let mut index = Index::open(&file).unwrap();
    let more = [folder.file("more.csv")];
    let more = ironbloom_index::index_more_tables(&index, &more, &file, &mut |_| ()).unwrap();
    index.append(more).unwrap();
    index.save(&file).unwrap();
    let bytes = fs::read(&file).unwrap();
    assert_eq!(bytes[8], 3, "the version");
    let indexed = Indexed::open(&file).unwrap();
    assert!(indexed.index().verify().is_empty());
    let schema = &indexed.schema().unwrap();
    let rows = |condition: &str| -> Vec<(usize, Vec<u64>)> {
        let found = indexed.find(&parse(condition, schema).unwrap(), &[]).unwrap();
        found.map(|found| found.map(|(table, found)| (table, found.rows)).unwrap()).collect()
    };
    assert_eq!(rows("id = 77"), [(0, vec![77]), (1, vec![77])]);
    let lost = (64..bytes.len()).step_by(13).filter(|&at| {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        fs::write(&file, &damaged).unwrap();
        Index::open(&file).is_ok_and(|index| index.verify().is_empty())
    });
    assert!(lost.count() < 63, "of {} bytes only those between sections", bytes.len());
}
