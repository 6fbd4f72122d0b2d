//! Other programs' filters: the same answers, and the same bytes.
//!
//! `tests/foreign/` holds small filters written by the real programs, each with its program's answers to 100,000
//! lookups, a bit each; its README says how they were made. The same keys are looked up here, so present keys, absent
//! keys and false positives must all agree.

use std::path::PathBuf;

use ironbloom::any::AnyFilter;
use ironbloom::format::foreign::{ForeignError, Format, with_form};
use ironbloom::hash::{KeyError, KeyForm};
use ironbloom::{Foreign, Key, Persist, Rule};

const INSERTED: u32 = 1000;
const ASKED: u32 = 100_000;

/// Key i as text: ends of every length, and bytes above 127, which some hashes treat differently.
fn text(i: u32) -> String {
    format!("{i}{}", ["", "é", "ab", "漢字", "x€"][i as usize % 5])
}

fn number(i: u32) -> i64 {
    i64::from(i).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64)
}

fn small(i: u32) -> i32 {
    (i as i32).wrapping_mul(0x9e37_79b1_u32 as i32)
}

fn read_golden(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/foreign").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A golden file: its name, its format, the form of its keys, and the filter to fill for comparing bytes, if we write
/// that format.
struct Golden {
    name: &'static str,
    format: Format,
    form: KeyForm,
    new: fn() -> Option<Foreign>,
}

const RATE: f64 = 0.03;

fn made(rule: Rule, form: KeyForm) -> Option<Foreign> {
    Some(Foreign::for_rate(rule, INSERTED.into(), RATE, Some(form)).unwrap())
}

macro_rules! golden {
    ($name:literal, $format:ident, $form:ident, $new:expr) => {
        Golden {
            name: $name,
            format: Format::$format,
            form: KeyForm::$form,
            new: || $new.and_then(|rule| made(rule, KeyForm::$form)),
        }
    };
}

const GOLDEN: &[Golden] = &[
    golden!("guava-64-text", Guava, Text, Some(Rule::Guava64)),
    golden!("guava-64-bytes", Guava, Text, Some(Rule::Guava64)),
    golden!("guava-64-chars", Guava, Chars, Some(Rule::Guava64)),
    golden!("guava-64-long", Guava, Long, Some(Rule::Guava64)),
    golden!("guava-64-int", Guava, Int, Some(Rule::Guava64)),
    golden!("guava-32-text", Guava, Text, None::<Rule>),
    golden!("guava-32-long", Guava, Long, None::<Rule>),
    golden!("spark-v1-text", Spark, Text, Some(Rule::Spark1)),
    golden!("spark-v1-long", Spark, Long, Some(Rule::Spark1)),
    golden!("spark-v2-text", Spark, Text, Some(Rule::Spark2 { seed: 0 })),
    golden!("spark-v2-long", Spark, Long, Some(Rule::Spark2 { seed: 0 })),
    golden!("spark-v2-seeded-binary", Spark, Text, Some(Rule::Spark2 { seed: -123_456_789 })),
    golden!("datasketches-text", DataSketches, Text, Some(Rule::DataSketches { seed: 9001 })),
    golden!("datasketches-long", DataSketches, Long, Some(Rule::DataSketches { seed: 9001 })),
    golden!("datasketches-double", DataSketches, Double, Some(Rule::DataSketches { seed: 9001 })),
    golden!("bits-and-blooms", BitsAndBlooms, Text, Some(Rule::BitsAndBlooms)),
    golden!("dcso", Dcso, Text, None::<Rule>), // with attached bytes
    golden!("leveldb", LevelDb, Text, None::<Rule>),
    golden!("rocksdb", RocksDb, Text, None::<Rule>),
    golden!("ethereum", Ethereum, Hex, Some(Rule::Ethereum)),
];

impl Golden {
    fn bytes(&self) -> Vec<u8> {
        read_golden(&format!("{}.bin", self.name))
    }

    fn read(&self) -> AnyFilter {
        let filter = self.format.read(&self.bytes()).unwrap();
        with_form(filter, Some(self.form)).unwrap()
    }

    /// The answers of the program that wrote the file.
    fn expected(&self) -> Vec<bool> {
        let bits = read_golden(&format!("{}.answers", self.name));
        (0..ASKED as usize).map(|i| bits[i / 8] >> (i % 8) & 1 == 1).collect()
    }

    /// Key i as text, which also stands for numbers.
    fn key(&self, i: u32) -> String {
        match (self.form, self.name) {
            (KeyForm::Long, _) => number(i).to_string(),
            (KeyForm::Int, _) => small(i).to_string(),
            (KeyForm::Double, _) => (f64::from(i) / 8.0).to_string(),
            (KeyForm::Hex, _) if i.is_multiple_of(2) => format!("0x{i:040x}"),
            (KeyForm::Hex, _) => format!("{i:064x}"),
            // Lengths up to 330 bytes: its hash takes a different path for each.
            (_, "rocksdb") if i % 7 == 6 => {
                let letter = char::from(b'a' + (i % 26) as u8);
                text(i) + &String::from(letter).repeat(i as usize % 331)
            }
            _ => text(i),
        }
    }

    /// Number of keys inserted: all before this one.
    fn inserted(&self) -> u32 {
        if self.format == Format::Ethereum { 150 } else { INSERTED }
    }

    /// Calls `take` with the first keys, in the form that this filter has.
    fn with_keys<R>(&self, count: u32, take: &mut dyn FnMut(&dyn DynKey) -> R) -> Vec<R> {
        (0..count)
            .map(|i| match self.form {
                KeyForm::Long => take(&number(i)),
                KeyForm::Int => take(&small(i)),
                _ => take(&self.key(i)),
            })
            .collect()
    }
}

/// A key of any type, singly or in batches.
trait DynKey {
    fn ask(&self, filter: &AnyFilter) -> Result<bool, KeyError>;
    fn put(&self, filter: &mut Foreign) -> bool;
}

impl<K: Key> DynKey for K {
    fn ask(&self, filter: &AnyFilter) -> Result<bool, KeyError> {
        filter.contains(self)
    }

    fn put(&self, filter: &mut Foreign) -> bool {
        filter.insert(self).unwrap()
    }
}

fn differences(found: &[bool], expected: &[bool]) -> Vec<usize> {
    assert_eq!(found.len(), expected.len());
    (0..found.len()).filter(|&i| found[i] != expected[i]).collect()
}

#[test]
fn every_answer_is_that_of_the_program_that_wrote_the_filter() {
    for golden in GOLDEN {
        let (filter, expected) = (golden.read(), golden.expected());
        let found = golden.with_keys(ASKED, &mut |key| key.ask(&filter).unwrap());
        assert_eq!(differences(&found, &expected), [0usize; 0], "{}", golden.name);
        let (there, others) = expected.split_at(golden.inserted() as usize);
        assert!(there.iter().all(|&found| found), "{}", golden.name);
        let false_positives = others.iter().filter(|&&found| found).count();
        assert!(false_positives > 500, "{}: the test would not notice much", golden.name);
    }
}

/// Small filters are queried differently than large ones: both must agree, in batches of any length.
#[test]
fn batches_answer_as_single_questions_do() {
    for golden in GOLDEN {
        let AnyFilter::Foreign(filter) = golden.read() else { panic!("foreign") };
        let expected = golden.expected();
        let mut found = vec![false; ASKED as usize];
        let keys: Vec<String> = (0..ASKED).map(|i| golden.key(i)).collect();
        filter.contains_keys(&keys, &mut found).unwrap();
        assert_eq!(differences(&found, &expected), [0usize; 0], "{}", golden.name);
    }
    // A filter that does not fit into the cache.
    let mut large = Foreign::for_rate(Rule::Guava64, 8_000_000, 0.01, Some(KeyForm::Long)).unwrap();
    (0..100_000).for_each(|i| assert!(large.insert(number(i)).unwrap() || i > 0));
    let keys: Vec<i64> = (50_000..150_000).map(number).collect();
    let mut found = vec![false; keys.len()];
    large.contains_keys(&keys, &mut found).unwrap();
    let single: Vec<bool> = keys.iter().map(|key| large.contains(key).unwrap()).collect();
    assert_eq!(differences(&found, &single), [0usize; 0]);
    assert!(found[..50_000].iter().all(|&found| found) && found.iter().any(|&found| !found));
}

#[test]
fn the_same_keys_make_the_same_bytes() {
    let mut written = 0;
    for golden in GOLDEN {
        let Some(mut filter) = (golden.new)() else { continue };
        golden.with_keys(golden.inserted(), &mut |key| key.put(&mut filter));
        if golden.form == KeyForm::Double {
            filter.insert("-0").unwrap(); // which Java distinguishes from 0
        }
        let bytes = golden.format.write(&AnyFilter::Foreign(filter)).unwrap();
        assert!(bytes == golden.bytes(), "{}", golden.name);
        written += 1;
    }
    assert!(written >= 10);
}

#[test]
fn a_foreign_filter_goes_through_our_files_and_back_without_a_change() {
    for golden in GOLDEN {
        let filter = golden.read();
        let again = AnyFilter::from_bytes(&filter.to_bytes()).unwrap();
        assert_eq!(again, filter, "{}", golden.name);
        let expected = golden.expected();
        let found = golden.with_keys(5000, &mut |key| key.ask(&again).unwrap());
        assert_eq!(differences(&found, &expected[..5000]), [0usize; 0], "{}", golden.name);
        match golden.format.write(&again) {
            Ok(bytes) => assert!(bytes == golden.bytes(), "{}", golden.name),
            Err(refused) => assert!(refused.only_read, "{}: {refused}", golden.name),
        }
    }
}

#[test]
fn a_filter_is_refused_by_formats_that_hash_otherwise() {
    let own: AnyFilter = ironbloom::Bloom::with_rate(1000, 0.01).unwrap().into();
    for format in Format::all() {
        let refused = format.write(&own).unwrap_err().to_string();
        assert!(refused.contains("bits cannot be hashed again"), "{refused}");
    }
    for golden in GOLDEN {
        for format in Format::all().filter(|&format| format != golden.format) {
            assert!(format.write(&golden.read()).is_err(), "{} as {format}", golden.name);
        }
    }
}

#[test]
fn formats_are_told_apart_by_their_bytes() {
    for golden in GOLDEN {
        // Nothing in LevelDB's bytes identifies them.
        let expected = Some(golden.format).filter(|&format| format != Format::LevelDb);
        assert_eq!(Format::detect(&golden.bytes()), expected, "{}", golden.name);
    }
    for bytes in [&b""[..], b"hello", &[0; 100], &[0xff; 1000]] {
        assert_eq!(Format::detect(bytes), None);
    }
}

/// Missing or surplus bytes are an error at that byte, however many are missing.
#[test]
fn truncated_files_and_longer_ones_are_errors_that_say_where() {
    for golden in GOLDEN {
        let bytes = golden.bytes();
        // A prefix of a LevelDB filter may be another one, and bytes may follow a DCSO filter.
        if golden.format == Format::LevelDb {
            continue;
        }
        for len in 0..bytes.len() - if golden.format == Format::Dcso { 11 } else { 0 } {
            let read = golden.format.read(&bytes[..len]);
            if golden.format == Format::Ethereum && len + 1 == bytes.len() {
                continue; // the newline
            }
            let ForeignError { offset, .. } = read.unwrap_err();
            assert!(offset <= len as u64, "{}: {offset} of {len}", golden.name);
        }
        if golden.format == Format::Dcso {
            continue;
        }
        let longer = [&bytes[..], &[0]].concat();
        let error = golden.format.read(&longer).unwrap_err();
        assert!(error.offset.abs_diff(bytes.len() as u64) <= 5, "{}: {error}", golden.name);
    }
}

/// A header that announces more than there is must not be trusted: memory would be allocated for it.
#[test]
fn announced_lengths_are_compared_before_memory_is_taken() {
    let huge = [1u8, 5, 0x7f, 0xff, 0xff, 0xff, 0, 0];
    let error = Format::Guava.read(&huge).unwrap_err();
    assert_eq!(error.to_string().split(':').next(), Some("not a whole guava filter"));
    let negative = [1u8, 5, 0xff, 0xff, 0xff, 0xff];
    assert!(Format::Guava.read(&negative).is_err());
    let spark = [0u8, 0, 0, 1, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    let error = Format::Spark.read(&spark).unwrap_err();
    assert_eq!((error.offset, error.to_string().contains("number of probes")), (4, true));
}

#[test]
fn a_filter_whose_keys_nobody_has_named_answers_nothing() {
    let filter = Format::Guava.read(&read_golden("guava-64-long.bin")).unwrap();
    assert_eq!(filter.contains(7), Err(KeyError::UnknownForm));
    assert_eq!(filter.contains("7"), Err(KeyError::UnknownForm));
    let again = AnyFilter::from_bytes(&filter.to_bytes()).unwrap();
    assert_eq!(again.contains(7), Err(KeyError::UnknownForm), "nor does its .ibf file");
    let known = with_form(again, Some(KeyForm::Long)).unwrap();
    assert_eq!(known.contains(number(7)), Ok(true));
    assert!(matches!(known.contains("alice"), Err(KeyError::NotOfForm { .. })));
    let filter = Format::Spark.read(&read_golden("spark-v1-long.bin")).unwrap();
    assert!(with_form(filter, Some(KeyForm::Chars)).is_err(), "Spark has no such keys");
}

#[test]
fn unions_of_foreign_filters_are_those_of_their_keys() {
    let empty = || Foreign::for_rate(Rule::Guava64, 1000, 0.03, Some(KeyForm::Text)).unwrap();
    let (mut one, mut two, mut both) = (empty(), empty(), empty());
    for i in 0..600 {
        let side = if i % 2 == 0 { &mut one } else { &mut two };
        side.insert(text(i)).unwrap();
        both.insert(text(i)).unwrap();
    }
    let mut union: AnyFilter = one.clone().into();
    union.union_with(&two.clone().into()).unwrap();
    let AnyFilter::Foreign(union) = union else { panic!("foreign") };
    let bytes = |filter: &Foreign| Format::Guava.write(&filter.clone().into()).unwrap();
    assert!(bytes(&union) == bytes(&both));
    let before = one.clone();
    let other = Foreign::for_rate(Rule::Guava64, 1000, 0.03, Some(KeyForm::Long)).unwrap();
    assert!(one.union_with(&other).is_err() && one == before, "another form of keys");
    let other = Foreign::for_rate(Rule::Spark1, 1000, 0.03, Some(KeyForm::Text)).unwrap();
    assert!(one.union_with(&other).is_err() && one == before, "another rule");
}

/// The sizes are part of the bytes: compares 56 pairs of a number of keys and a rate with the programs' own sizes.
#[test]
fn filters_are_sized_as_their_programs_size_them() {
    let sizes = String::from_utf8(read_golden("sizes.txt")).unwrap();
    assert_eq!(sizes.lines().count(), 56);
    for line in sizes.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let (keys, rate): (u64, f64) = (fields[0].parse().unwrap(), fields[1].parse().unwrap());
        let numbers: Vec<u64> = fields[2..].iter().map(|field| field.parse().unwrap()).collect();
        let size = |rule| {
            let filter = Foreign::for_rate(rule, keys, rate, Some(KeyForm::Long)).unwrap();
            [filter.bits() / 64, u64::from(filter.probes())]
        };
        assert_eq!(size(Rule::Guava64), numbers[..2], "Guava: {line}");
        assert_eq!(size(Rule::Spark2 { seed: 0 }), numbers[2..4], "Spark: {line}");
    }
}

/// Written by DCSO's own program, `bloom --gzip`, from the same keys; unpacked, it equals what we write.
#[test]
fn a_file_of_dcso_keeps_its_numbers_and_what_was_attached() {
    let bytes = read_golden("dcso.bin");
    let AnyFilter::Foreign(filter) = Format::Dcso.read(&bytes).unwrap() else { panic!("foreign") };
    assert_eq!((filter.capacity(), filter.bits(), filter.probes()), (1000, 7298, 6));
    assert!(bytes.ends_with(b"golden data"));
    let mut ours = Foreign::for_rate(Rule::Dcso, 1000, 0.03, None).unwrap();
    (0..INSERTED).for_each(|i| {
        ours.insert(text(i)).unwrap();
    });
    let ours = Format::Dcso.write(&ours.into()).unwrap();
    assert!(ours == bytes[..bytes.len() - b"golden data".len()]);
}

/// A file does not record whether its program tells 0 from −0, so neither may be missed, whichever was inserted.
#[test]
fn a_zero_is_found_whatever_its_sign_was() {
    let empty = || {
        Foreign::for_rate(Rule::DataSketches { seed: 7 }, 1000, 0.001, Some(KeyForm::Double))
            .unwrap()
    };
    for inserted in ["0", "-0"] {
        let mut filter = empty();
        assert!(filter.insert(inserted).unwrap());
        let mut found = [false; 4];
        filter.contains_keys(&["0", "-0.0", "0e5", "1"], &mut found).unwrap();
        assert_eq!(found, [true, true, true, false], "{inserted}");
        assert!(filter.contains("-0").unwrap() && filter.contains("0").unwrap());
    }
}

#[test]
fn datasketches_ignores_the_empty_text_and_so_do_we() {
    let filter = Format::DataSketches.read(&read_golden("datasketches-text.bin")).unwrap();
    let AnyFilter::Foreign(filter) = with_form(filter, Some(KeyForm::Text)).unwrap() else {
        panic!("foreign")
    };
    assert_eq!(filter.contains(""), Ok(false), "as query(\"\") says, after update(\"\")");
    let mut found = [true; 3];
    filter.contains_keys(&["", "0", ""], &mut found).unwrap();
    assert_eq!(found, [false, true, false]);
    let empty = read_golden("datasketches-empty.bin");
    let filter = Format::DataSketches.read(&empty).unwrap();
    assert_eq!(Format::DataSketches.write(&filter).unwrap(), empty);
    // 24 bytes that announce 16 GiB.
    let mut forged = empty;
    forged[16..20].copy_from_slice(&0x7fff_ffffu32.to_le_bytes());
    assert_eq!(Format::DataSketches.read(&forged).unwrap_err().offset, 16);
}

mod parquet {
    use super::*;
    use ironbloom::SplitBlock;
    use ironbloom::format::parquet_file::{ParquetError, ParquetFile};
    use std::io::Cursor;

    fn open(name: &str) -> ParquetFile<Cursor<Vec<u8>>> {
        ParquetFile::open(Cursor::new(read_golden(name))).unwrap()
    }

    /// Answers of DuckDB's `parquet_bloom_probe`, by column, value and row group. It writes no filters for wide decimals.
    #[test]
    fn row_groups_are_those_that_duckdb_would_read() {
        let mut file = open("duckdb.parquet");
        let answers = String::from_utf8(read_golden("duckdb.answers")).unwrap();
        let mut excluded = 0;
        for line in answers.lines() {
            let fields: Vec<&str> = line.split('\t').collect();
            let column = file.column(fields[0]).unwrap();
            let groups = file.may_hold(column, fields[1]).unwrap();
            let expected: Vec<bool> = fields[2].chars().map(|answer| answer == '1').collect();
            assert_eq!(groups, expected, "{line}");
            excluded += groups.iter().filter(|&&may| !may).count();
        }
        assert!(excluded > 3000, "{excluded}");
    }

    #[test]
    fn every_value_of_every_type_is_found_in_its_row_group() {
        let mut file = open("pyarrow.parquet");
        assert!(file.groups.len() == 2 && file.groups.iter().all(|group| group.rows == 50));
        type Value = fn(i32) -> String;
        let columns: [(&str, Value); 5] = [
            ("d9", |i| format!("{:.2}", f64::from(i - 30) / 100.0)),
            ("d30", |i| format!("{:.2}", f64::from(i - 30) / 100.0)),
            ("i8", |i| (i - 50).to_string()),
            ("u16", |i| (i * 600).to_string()),
            ("bytes", |i| format!("0x{:02x}{:02x}{:02x}", i, i + 1, i + 2)),
        ];
        for (name, value) in columns {
            let column = file.column(name).unwrap();
            let mut excluded = 0;
            for i in 0..100 {
                let groups = file.may_hold(column, &value(i)).unwrap();
                assert!(groups[(i / 50) as usize], "{name} = {}", value(i));
                excluded += groups.iter().filter(|&&may| !may).count();
            }
            assert!(excluded > 90, "{name}: {excluded} of 100 excluded");
        }
    }

    #[test]
    fn a_filter_of_a_file_is_written_with_the_same_bytes() {
        for name in ["duckdb.parquet", "pyarrow.parquet"] {
            let bytes = read_golden(name);
            let mut file = open(name);
            let offset = file.groups[1].chunks[0].filter_offset.unwrap() as usize;
            let filter = file.filter(1, 0).unwrap().unwrap();
            let written = Format::Parquet.write(&filter.clone().into()).unwrap();
            assert!(bytes[offset..].starts_with(&written), "{name}");
            assert_eq!(Format::detect(&written), Some(Format::Parquet));
            assert_eq!(Format::Parquet.read(&written).unwrap(), filter.into());
        }
        let other = SplitBlock::new(
            ironbloom::SplitBlockParams::for_rate(100, 0.01).unwrap(),
            ironbloom::HashFn::Xxh3 { seed: 0 },
        )
        .unwrap();
        assert!(other.is_empty() && Format::Parquet.write(&other.into()).is_err());
    }

    #[test]
    fn damaged_files_are_errors_and_never_answers() {
        let bytes = read_golden("duckdb.parquet");
        for len in (0..bytes.len()).step_by(97) {
            assert!(ParquetFile::open(Cursor::new(&bytes[..len])).is_err(), "{len} bytes");
        }
        let mut encrypted = bytes.clone();
        *encrypted.last_mut().unwrap() = b'E';
        let refused = ParquetFile::open(Cursor::new(&encrypted)).unwrap_err();
        assert!(matches!(refused, ParquetError::Encrypted));
        // Every byte of a filter's header: another algorithm, another hash, another length.
        let offset = open("duckdb.parquet").groups[0].chunks[0].filter_offset.unwrap() as usize;
        let mut refused = 0;
        for at in offset..offset + 15 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x02;
            let mut file = ParquetFile::open(Cursor::new(damaged)).unwrap();
            refused += usize::from(file.filter(0, 0).is_err());
        }
        assert!(refused >= 12, "{refused} of 15");
        let mut file = open("duckdb.parquet");
        assert!(matches!(file.column("nothing"), Err(ParquetError::NoColumn { .. })));
        let column = file.column("i8").unwrap();
        assert!(matches!(file.may_hold(column, "x"), Err(ParquetError::Value { .. })));
    }
}

/// The chunks that RedisBloom itself returned, and its answers: `crates/ironbloom-redis/tests/golden`.
mod redisbloom {
    use super::*;
    use ironbloom::RedisBloom;
    use ironbloom::format::dump::{DumpWriter, Family};
    use serde_json::Value;

    /// Iterators and bytes.
    type Chunks = Vec<(i64, Vec<u8>)>;

    fn decode_base64(text: &str) -> Vec<u8> {
        let digit = |byte: u8| match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            _ => 63,
        };
        let digits: Vec<u8> = text.bytes().filter(|&byte| byte != b'=').map(digit).collect();
        let group = |group: &[u8]| {
            let bits = group.iter().fold(0u32, |bits, &digit| bits << 6 | u32::from(digit));
            let bits = bits << (6 * (4 - group.len()));
            [bits >> 16, bits >> 8, bits].map(|byte| byte as u8)[..group.len() - 1].to_vec()
        };
        digits.chunks(4).flat_map(group).collect()
    }

    fn cases() -> Vec<(String, Value)> {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("../ironbloom-redis/tests/golden/redisbloom-2.8.json");
        let all: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let cases = all["cases"].as_object().unwrap();
        cases.iter().map(|(name, case)| (name.clone(), case.clone())).collect()
    }

    /// The dump of a case: its header, and the pieces of its arrays.
    fn dumped(name: &str, case: &Value) -> (Family, Chunks, Vec<u8>) {
        let family = if name.starts_with("bf") { Family::Bloom } else { Family::Cuckoo };
        let chunks: Chunks = case["scandump"]
            .as_array()
            .unwrap()
            .iter()
            .map(|pair| (pair[0].as_i64().unwrap(), decode_base64(pair[1].as_str().unwrap_or(""))))
            .filter(|(iterator, _)| *iterator != 0)
            .collect();
        let bytes = written(family, &chunks);
        (family, chunks, bytes)
    }

    fn written(family: Family, chunks: &[(i64, Vec<u8>)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = DumpWriter::new(&mut bytes, None).unwrap();
        for (iterator, chunk) in chunks {
            writer.chunk(family, *iterator, chunk).unwrap();
        }
        writer.end_filter(family).unwrap();
        bytes
    }

    #[test]
    fn answers_are_those_of_redisbloom_and_survive_our_files() {
        let mut asked = 0;
        for (name, case) in cases() {
            let (_, chunks, bytes) = dumped(&name, &case);
            if chunks.is_empty() {
                continue; // a cuckoo filter without keys has nothing to dump
            }
            assert_eq!(Format::detect(&bytes), Some(Format::RedisBloom), "{name}");
            let filter = Format::RedisBloom.read(&bytes).unwrap();
            assert!(Format::RedisBloom.write(&filter).unwrap() == bytes, "{name}");
            let again = AnyFilter::from_bytes(&filter.to_bytes()).unwrap();
            assert_eq!(again, filter, "{name}");
            let exists = case["exists"].as_str().unwrap_or("");
            let others: Vec<String> = (20_000..24_000).map(|i| format!("user:1:{i}")).collect();
            let answers = exists.len().saturating_sub(others.len());
            for (key, expected) in others.iter().zip(exists[answers..].chars()) {
                assert_eq!(again.contains(key), Ok(expected == '1'), "{name}: {key}");
                asked += 1;
            }
            let mut found = vec![false; others.len()];
            again.try_contains_keys(&others, &mut found).unwrap();
            let single: Vec<bool> = others.iter().map(|key| again.contains(key).unwrap()).collect();
            assert_eq!(found, single, "{name}");
            assert!(again.contains(7).is_err(), "keys are bytes");
        }
        assert!(asked >= 20_000, "{asked}");
    }

    #[test]
    fn chunks_that_are_missing_or_out_of_order_are_errors() {
        for (name, case) in cases() {
            let (family, chunks, bytes) = dumped(&name, &case);
            if chunks.len() < 2 {
                continue;
            }
            let read =
                |chunks: &[(i64, Vec<u8>)]| Format::RedisBloom.read(&written(family, chunks));
            assert!(read(&chunks).is_ok());
            for left_out in 0..chunks.len() {
                let mut fewer = chunks.clone();
                fewer.remove(left_out);
                assert!(read(&fewer).is_err(), "{name} without chunk {left_out}");
            }
            let twice = [&chunks[..], &chunks[1..]].concat();
            assert!(read(&twice).is_err(), "{name}");
            for len in (0..bytes.len()).step_by(bytes.len() / 50 + 1) {
                let error = Format::RedisBloom.read(&bytes[..len]).unwrap_err();
                assert!(error.offset <= len as u64, "{name}: {error}");
            }
        }
    }

    #[test]
    fn keys_go_on_to_be_inserted() {
        let (_, case) = cases().into_iter().find(|(name, _)| name == "bf_default").unwrap();
        let (_, _, bytes) = dumped("bf_default", &case);
        let mut filter = Format::RedisBloom.read(&bytes).unwrap();
        filter.insert_keys(&["alice", "bob"]).unwrap();
        assert_eq!((filter.contains("alice"), filter.contains("bob")), (Ok(true), Ok(true)));
        assert!(matches!(filter, AnyFilter::RedisBloom(RedisBloom::Bloom(_))));
    }
}
