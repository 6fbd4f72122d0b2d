//! A damaged file is an error or gives the right answer; it never gives a wrong one, and never panics.

use std::fs;

use crate::model::{Row, batch, columns};
use ironbloom_index::{
    Candidates, Error, FilePart, Index, IndexBuilder, Params, Predicate, SourceMeta, Value,
};
use ironbloom_testing::TemporaryFile;

fn rows(count: i32) -> Vec<Row> {
    let row = |i: i32| Row {
        int: (i % 7 != 0).then_some(i % 50),
        text: Some(format!("t{}", i % 200)),
        float: Some(f64::from(i % 3)),
        flag: (i % 11 != 0).then_some(i % 2 == 0),
    };
    (0..count).map(row).collect()
}

fn small_index() -> Index {
    let mut builder = IndexBuilder::new(columns(), Params::new(16, 4).unwrap()).unwrap();
    for (name, count) in [("one.parquet", 300), ("two.csv", 100)] {
        builder.start(name).unwrap();
        builder.push(&batch(&rows(count))).unwrap();
        let blob = (0..count as u8).collect();
        builder
            .end(SourceMeta { bytes: 10, fingerprint: 11, blob, ..SourceMeta::default() })
            .unwrap();
    }
    builder.finish().unwrap()
}

fn predicates() -> Vec<Predicate> {
    vec![
        Predicate::Eq("int".into(), Value::Int(8)),
        Predicate::Eq("text".into(), Value::Text("t150".into())),
        Predicate::IsNull("flag".into()),
        Predicate::And(vec![
            Predicate::Eq("float".into(), Value::Float(1.0)),
            Predicate::Eq("flag".into(), Value::Bool(true)),
        ]),
    ]
}

type Answers = Vec<Candidates>;

fn answers(index: &Index) -> Result<Answers, Error> {
    predicates().iter().map(|predicate| index.candidates(predicate)).collect()
}

/// Everything a reader can ask of these bytes: refused, or right.
fn refused_or_right(file: &TemporaryFile, bytes: &[u8], right: &Answers) -> bool {
    fs::write(&file.0, bytes).unwrap();
    let Ok(index) = Index::open(&file.0) else { return true };
    let all_verified = index.verify().is_empty();
    let blobs = (0..index.sources().len()).map(|source| index.blob(source)).filter_map(Result::ok);
    assert!(blobs.into_iter().all(|blob| blob.iter().zip(0..).all(|(&byte, i)| byte == i)));
    match answers(&index) {
        Ok(answers) => {
            assert_eq!(&answers, right);
            !all_verified
        }
        Err(_) => true,
    }
}

#[test]
fn every_changed_byte_is_refused_or_does_not_matter() {
    let (file, damaged) = (TemporaryFile::new("ibx"), TemporaryFile::new("ibx"));
    small_index().save(&file.0).unwrap();
    let bytes = fs::read(&file.0).unwrap();
    let right = answers(&Index::open(&file.0).unwrap()).unwrap();
    let mut unnoticed = 0;
    for at in 0..bytes.len() {
        for change in [1, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= change;
            unnoticed += usize::from(!refused_or_right(&damaged, &changed, &right));
        }
    }
    // What fills chunks up to 64 bytes is in no checksum and in no answer: less than 64 bytes for each of 10 chunks.
    assert!(unnoticed <= 3 * 10 * 63, "{unnoticed} of {}", 3 * bytes.len());
}

#[test]
fn every_truncation_and_any_appendix_is_refused() {
    let (file, damaged) = (TemporaryFile::new("ibx"), TemporaryFile::new("ibx"));
    small_index().save(&file.0).unwrap();
    let mut bytes = fs::read(&file.0).unwrap();
    for len in 0..bytes.len() {
        fs::write(&damaged.0, &bytes[..len]).unwrap();
        assert!(Index::open(&damaged.0).is_err(), "{len}");
    }
    bytes.push(0);
    fs::write(&damaged.0, &bytes).unwrap();
    assert!(matches!(Index::open(&damaged.0), Err(Error::Length { .. })));
}

#[test]
fn a_damaged_column_is_named_and_the_others_still_answer() {
    let file = TemporaryFile::new("ibx");
    small_index().save(&file.0).unwrap();
    let mut bytes = fs::read(&file.0).unwrap();
    // The first chunks are the blobs, then come int, text, … of the first segment: find int's by its damage.
    let at = (64..bytes.len())
        .find(|&at| {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            fs::write(&file.0, &changed).unwrap();
            let index = Index::open(&file.0).unwrap();
            index.candidates(&predicates()[0]).is_err()
        })
        .unwrap();
    bytes[at] ^= 1;
    fs::write(&file.0, &bytes).unwrap();
    let index = Index::open(&file.0).unwrap();
    let error = index.candidates(&predicates()[0]).unwrap_err();
    let source = "one.parquet and one other".into();
    let named = FilePart::Column { column: "int".into(), source, segment: 0 };
    assert!(matches!(&error, Error::Damaged { part, .. } if *part == named), "{error:?}");
    let text = error.to_string();
    assert!(
        text.contains(&file.0.display().to_string()) && text.contains("column int of one.parquet"),
        "{text}"
    );
    assert!(index.candidates(&predicates()[1]).is_ok());
    assert_eq!(index.verify().len(), 1);
}

#[test]
fn files_that_are_no_index_are_refused() {
    let file = TemporaryFile::new("ibx");
    assert!(matches!(Index::open(&file.0), Err(Error::Io { .. })));
    for bytes in [&b""[..], b"PAR1", &[0; 1000], b"\x89IBF\r\n\x1a\n"] {
        fs::write(&file.0, bytes).unwrap();
        assert!(matches!(Index::open(&file.0), Err(Error::NotAnIndex { .. })));
    }
    assert!(Index::open(std::env::temp_dir()).is_err());
}
