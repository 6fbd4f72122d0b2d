//! CSV: rows are found again by where they begin, whatever stands in quotes; types are those of all values.

#![expect(clippy::single_range_in_vec_init, reason = "one range of rows is what is meant")]

mod common;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Int64Type, TimeUnit};
use common::naive::matching_rows;
use common::random::Random;
use common::{TemporaryFile, find, read, reopen, scan_all};
use ironbloom_index::{Reads, Table, TableError, parse};
use std::fmt::Write as _;

/// Rows with line ends, quotes and delimiters in quotes, empty fields and empty lines between.
fn messy(seed: u64, rows: u64, line_end: &str) -> String {
    const TEXTS: [&str; 7] = [
        "plain",
        "\"quoted\"",
        "\"a,b\"",
        "\"two\nlines\"",
        "\"say \"\"hi\"\"\"",
        "",
        "\"\u{feff}mark\"",
    ];
    let random = &mut Random(seed);
    let mut text = format!("id,text,amount{line_end}");
    for id in 0..rows {
        let cell = TEXTS[random.below(7) as usize];
        let amount =
            if random.one_in(5) { String::new() } else { format!("{}.5", random.below(9)) };
        write!(text, "{id},{cell},{amount}{line_end}").unwrap();
        if random.one_in(50) {
            text.push_str(line_end);
        }
    }
    text
}

fn ids(batch: &RecordBatch) -> Vec<i64> {
    batch.column(0).as_primitive::<Int64Type>().values().to_vec()
}

#[test]
fn any_rows_are_found_again() {
    for line_end in ["\n", "\r\n"] {
        let file = TemporaryFile::with("csv", messy(3, 3000, line_end));
        let table = Table::open(file.path()).unwrap();
        assert_eq!(table.rows(), 3000);
        let whole = scan_all(&table);
        assert_eq!(ids(&whole), (0..3000).collect::<Vec<_>>());
        let random = &mut Random(4);
        for table in [&table, &reopen(&table)] {
            assert_eq!(scan_all(table), whole);
            for _ in 0..200 {
                let start = random.below(3000);
                let end = start + 1 + random.below(3000 - start);
                let batch = read(table, start..end, &[0, 1, 2]);
                assert_eq!(batch, whole.slice(start as usize, (end - start) as usize));
            }
        }
    }
}

#[test]
fn only_the_strides_that_hold_the_rows_are_parsed_and_each_once() {
    let file = TemporaryFile::with("csv", messy(5, 10_000, "\n"));
    let table = reopen(&Table::open(file.path()).unwrap());
    let mut reads = Reads::default();
    let batches = table.read_rows(&[700..701, 710..715, 900..901, 5000..5200], &[0], &mut reads);
    assert_eq!(batches.unwrap().iter().map(RecordBatch::num_rows).sum::<usize>(), 207);
    assert_eq!(reads.pages, 3, "one for the first three, and two for the last");
    let length = std::fs::metadata(file.path()).unwrap().len();
    assert!(reads.bytes * 5 < length, "{} of {length} bytes", reads.bytes);
}

#[test]
fn a_mark_at_the_start_of_a_later_row_is_a_character() {
    let mut text = String::from("\u{feff}name\n");
    for _ in 0..1024 {
        text.push_str("\u{feff}x\n");
    }
    let file = TemporaryFile::with("csv", text);
    let table = reopen(&Table::open(file.path()).unwrap());
    assert_eq!(table.schema().field(0).name(), "name");
    let batch = read(&table, 512..513, &[0]);
    assert_eq!(batch.column(0).as_string::<i32>().value(0), "\u{feff}x");
}

#[test]
fn types_are_those_of_all_values_and_are_remembered() {
    let file = TemporaryFile::with(
        "csv",
        "i,f,b,d,t,s,n,late,big,day\n\
         1,1,true,2024-01-31,2024-01-31T10:00:00,x,,1,9223372036854775808,2024-01-31\n\
         2,2.5,FALSE,2024-02-29,2024-01-31T10:00:00.5,7,,2,1,2024-99-99\n\
         ,,,,,,,x,,\n",
    );
    let table = Table::open(file.path()).unwrap();
    for table in [&table, &reopen(&table)] {
        let types: Vec<_> =
            table.schema().fields().iter().map(|field| field.data_type().clone()).collect();
        use DataType::*;
        let wanted = [
            Int64,
            Float64,
            Boolean,
            Date32,
            Timestamp(TimeUnit::Millisecond, None),
            Utf8,
            Null,
            Utf8,
            Utf8,
            Utf8,
        ];
        assert_eq!(types, wanted);
    }
    let whole = scan_all(&table);
    for column in 0..7 {
        assert!(
            whole.column(column).is_nullable()
                && whole.column(column).logical_nulls().is_some_and(|nulls| nulls.is_null(2))
        );
    }
}

#[test]
fn conditions_find_rows_of_csv() {
    let file = TemporaryFile::with("csv", messy(6, 2000, "\n"));
    let table = reopen(&Table::open(file.path()).unwrap());
    let whole = scan_all(&table);
    let blocks: Vec<u64> = (0..2000u64.div_ceil(100)).collect();
    let conditions = [
        "id = 1234",
        "text = 'say \"hi\"' and amount > 3",
        "text is null or amount is null",
        "not text in ('plain', 'quoted') and id between 500 and 600",
        "text = 'two\nlines'",
    ];
    for condition in conditions {
        let predicate = parse(condition, table.schema()).unwrap();
        let wanted = matching_rows(&predicate, &whole);
        assert!(!wanted.is_empty(), "{condition}");
        let found = find(&table, &predicate, &blocks, 100, &["id", "text"]);
        assert_eq!(found.rows, wanted, "{condition}");
        assert_eq!(ids(&found.batch), wanted.iter().map(|&row| row as i64).collect::<Vec<_>>());
    }
}

#[test]
fn the_last_line_may_lack_its_end_and_tabs_separate_tsv() {
    let file = TemporaryFile::with("tsv", "a\tb\n1\tx,y\n2\tz");
    let table = reopen(&Table::open(file.path()).unwrap());
    assert_eq!(table.rows(), 2);
    let batch = read(&table, 1..2, &[1, 0]);
    assert_eq!(batch.column(0).as_string::<i32>().value(0), "z");
    assert_eq!(batch.column(1).as_primitive::<Int64Type>().value(0), 2);
}

#[test]
fn a_header_alone_is_an_empty_table() {
    let file = TemporaryFile::with("csv", "a,b\n");
    let table = reopen(&Table::open(file.path()).unwrap());
    assert_eq!((table.rows(), table.schema().fields().len()), (0, 2));
    assert_eq!(table.scan(&[0], 10).unwrap().count(), 0);
    let predicate = parse("a is null", table.schema()).unwrap();
    assert!(find(&table, &predicate, &[], 512, &["b"]).rows.is_empty());
}

#[test]
fn lines_that_make_no_sense_are_refused_with_their_number() {
    let cases: [(&[u8], u64, &str); 4] = [
        (b"a,b\n1,2\n3\n", 3, "has 1 fields where the header has 2"),
        (b"a,b\r\n\"x\r\ny\",2\r\n3,4,5\r\n", 4, "has 3 fields where the header has 2"),
        (b"a,b\n1,2\n\xff,4\n", 3, "is not UTF-8"),
        (b"a,b\n\n\n\"1,2\n", 4, "has 1 fields where the header has 2"),
    ];
    for (content, line, what) in cases {
        let file = TemporaryFile::with("csv", content);
        let error = Table::open(file.path()).err().unwrap();
        assert_eq!(error.to_string(), format!("{}: line {line}: {what}", file.path().display()));
    }
}

#[test]
fn a_changed_stride_is_refused_when_it_is_read_and_a_changed_end_when_it_is_opened() {
    let text = messy(7, 20_000, "\n");
    let file = TemporaryFile::with("csv", &text);
    let table = Table::open(file.path()).unwrap();
    let (identity, notes) = (table.identity(), table.notes(&[]).unwrap());
    drop(table);

    // In the middle, of the same length, and between the samples.
    let mut bytes = text.clone().into_bytes();
    let row = text.find("\n10000,").unwrap() + 1;
    bytes[row..row + 5].copy_from_slice(b"99999");
    std::fs::write(file.path(), &bytes).unwrap();
    let table = Table::open_known(file.path(), identity, &notes).unwrap();
    let error = table.read_rows(&[10_000..10_001], &[0], &mut Reads::default()).unwrap_err();
    assert!(matches!(error, TableError::Changed { .. }), "{error}");
    assert!(table.read_rows(&[0..512], &[0], &mut Reads::default()).is_ok());

    let mut bytes = text.into_bytes();
    *bytes.last_mut().unwrap() = b' ';
    std::fs::write(file.path(), &bytes).unwrap();
    let error = Table::open_known(file.path(), identity, &notes).err().unwrap();
    assert!(error.to_string().starts_with("rebuild: "), "{error}");
}

#[test]
fn rows_added_at_the_end_are_told_from_other_changes() {
    let text = messy(8, 3000, "\n");
    let file = TemporaryFile::with("csv", &text);
    let notes = Table::open(file.path()).unwrap().notes(&[]).unwrap();
    let rows_before = |content: &str| {
        std::fs::write(file.path(), content).unwrap();
        let table = Table::open(file.path()).unwrap();
        let rows = table.rows_before(&notes)?;
        let new = table.scan_from(rows, &[0], 7).unwrap().map(|batch| ids(&batch.unwrap()));
        Ok::<_, TableError>((rows, new.flatten().collect::<Vec<_>>()))
    };
    let more: String = (3000..3100).map(|id| format!("{id},x,0.5\n")).collect();
    let (rows, new) = rows_before(&format!("{text}{more}")).unwrap();
    assert_eq!((rows, new), (3000, (3000..3100).collect()));
    assert_eq!(rows_before(&text).unwrap(), (3000, vec![]));
    let refused = [
        format!("{}{more}", text.replace("\n1500,", "\n9500,")),
        format!("{text}3000,x,not a number\n"),
        format!("{text}{more}").replacen("id,", "no,", 1),
    ];
    for content in refused {
        let error = rows_before(&content).unwrap_err();
        assert!(matches!(error, TableError::Changed { .. }), "{error}");
    }
    // A last row that was left open: a number, and a quote.
    for (cut, rest) in [("id,text\n1,2", "7\n"), ("id,text\n1,\"a\n", "b\"\n")] {
        let file = TemporaryFile::with("csv", cut);
        let notes = Table::open(file.path()).unwrap().notes(&[]).unwrap();
        std::fs::write(file.path(), format!("{cut}{rest}8,9\n")).unwrap();
        let error = Table::open(file.path()).unwrap().rows_before(&notes).unwrap_err();
        assert!(matches!(error, TableError::Changed { .. }), "{error}");
    }
}
