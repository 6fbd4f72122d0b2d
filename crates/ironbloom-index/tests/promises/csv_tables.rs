//! CSV: rows are found again by where they begin, whatever stands in quotes; types are those of all values.

#![expect(clippy::single_range_in_vec_init, reason = "one range of rows is what is meant")]

use crate::common::naive::matching_rows;
use crate::common::{find, read, reopen, scan_all};
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Int64Type, TimeUnit};
use ironbloom_index::{CsvOptions, Reads, Table, TableError, csv_options_in, csv_type, parse};
use ironbloom_testing::{Random, TemporaryFile};
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
        (b"a,b\n\n\n\"1,2\n", 4, "has a quote that is never closed"),
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
    // A last row that was left open.
    let cut = "id,text\n1,2";
    let file = TemporaryFile::with("csv", cut);
    let notes = Table::open(file.path()).unwrap().notes(&[]).unwrap();
    std::fs::write(file.path(), format!("{cut}7\n8,9\n")).unwrap();
    let error = Table::open(file.path()).unwrap().rows_before(&notes).unwrap_err();
    assert!(matches!(error, TableError::Changed { .. }), "{error}");
}

/// Options other than the default.
fn options(change: impl FnOnce(&mut CsvOptions)) -> CsvOptions {
    let mut options = CsvOptions::default();
    change(&mut options);
    options
}

/// All cells as text, null as `None`, the same when an index opens the file again.
#[track_caller]
fn cells(file: &TemporaryFile, options: &CsvOptions) -> Vec<Vec<Option<String>>> {
    let table = Table::open_with(file.path(), options).unwrap();
    let whole = scan_all(&table);
    let again = reopen(&table);
    assert_eq!(scan_all(&again), whole);
    assert_eq!(csv_options_in(&again.notes(&[]).unwrap()).unwrap().0, *options);
    let cell = |column: &arrow::array::ArrayRef, row| {
        let text = arrow::util::display::array_value_to_string(column, row).unwrap();
        let null = column.logical_nulls().is_some_and(|nulls| nulls.is_null(row));
        (!null).then_some(text)
    };
    let row = |row| whole.columns().iter().map(|column| cell(column, row)).collect();
    (0..whole.num_rows()).map(row).collect()
}

fn row(cells: &[&str]) -> Vec<Option<String>> {
    cells.iter().map(|cell| (!cell.is_empty()).then(|| (*cell).to_owned())).collect()
}

#[test]
fn delimiters_quotes_headers_and_null_words_are_as_people_have_them() {
    let file = TemporaryFile::with("txt", "a;b\n'x;y';1\nNA;-\n\"q;2\n");
    let with = options(|o| {
        o.delimiter = Some(b';');
        o.quote = Some(b'\'');
        o.nulls = vec!["NA".into(), "-".into()];
    });
    assert_eq!(cells(&file, &with), [row(&["x;y", "1"]), row(&["", ""]), row(&["\"q", "2"])]);
    let table = Table::open_with(file.path(), &with).unwrap();
    assert_eq!(*table.schema().field(1).data_type(), DataType::Int64, "null words have no type");
    // No quotes at all: an inch mark is one, and opens nothing.
    let file = TemporaryFile::with("csv", "size,n\n\"5 inch,1\n6\",2\n");
    let with = options(|o| o.quote = None);
    assert_eq!(cells(&file, &with), [row(&["\"5 inch", "1"]), row(&["6\"", "2"])]);
    // No header, after a byte order mark.
    let file = TemporaryFile::with("csv", "\u{feff}1,x\n2,y\n");
    let with = options(|o| o.header = false);
    assert_eq!(cells(&file, &with), [row(&["1", "x"]), row(&["2", "y"])]);
    let table = Table::open_with(file.path(), &with).unwrap();
    assert_eq!(table.schema().field(1).name(), "column_2");
}

#[test]
fn numbers_with_leading_zeros_are_text_unless_a_type_is_given() {
    let text = "zip,n,x,d\n01234,1,0.5,-7\n99999,0,10.5,-0.5\n";
    let file = TemporaryFile::with("csv", text);
    let types = |options: &CsvOptions| {
        let table = Table::open_with(file.path(), options).unwrap();
        let fields = table.schema().fields();
        fields.iter().map(|field| field.data_type().clone()).collect::<Vec<_>>()
    };
    use DataType::*;
    assert_eq!(types(&CsvOptions::default()), [Utf8, Int64, Float64, Float64]);
    assert_eq!(cells(&file, &CsvOptions::default())[0], row(&["01234", "1", "0.5", "-7.0"]));
    let all_text = options(|o| o.all_text = true);
    assert_eq!(types(&all_text), [Utf8, Utf8, Utf8, Utf8]);
    assert_eq!(cells(&file, &all_text)[0], row(&["01234", "1", "0.5", "-7"]));
    let given = options(|o| {
        o.types = vec![("zip".into(), Int64), ("n".into(), csv_type("text").unwrap())];
    });
    assert_eq!(types(&given), [Int64, Utf8, Float64, Float64]);
    assert_eq!(cells(&file, &given)[0], row(&["1234", "1", "0.5", "-7.0"]));
    let unknown = options(|o| o.types = vec![("zpi".into(), Int64)]);
    let error = Table::open_with(file.path(), &unknown).err().unwrap().to_string();
    assert!(error.ends_with("no column zpi; did you mean zip?"), "{error}");
    // In the last of many rows, and negative.
    let rows: String = (1..2000).map(|n| format!("{n}\n")).collect();
    for last in ["-012", "\"012\""] {
        let file = TemporaryFile::with("csv", format!("n\n{rows}{last}\n"));
        let table = Table::open(file.path()).unwrap();
        assert_eq!(*table.schema().field(0).data_type(), Utf8, "{last}");
    }
}

#[test]
fn bad_rows_are_errors_or_left_out() {
    let mut text = b"id,n\n".to_vec();
    let mut good = Vec::new();
    for id in 0..3000 {
        match id % 400 {
            7 => text.extend(format!("{id}\n").bytes()),
            8 => text.extend(format!("{id},1,2\r\n").bytes()),
            9 => text.extend(b"\xff,1\n"),
            10 => text.extend(format!("{id},eleven\n").bytes()),
            _ => {
                text.extend(format!("{id},{}\r\n", id % 5).bytes());
                good.push(id.to_string());
            }
        }
    }
    let file = TemporaryFile::with("csv", &text);
    let skip = options(|o| {
        o.skip_bad_rows = true;
        o.types = vec![("n".into(), DataType::Int64)];
    });
    let found = cells(&file, &skip);
    let ids: Vec<String> = found.iter().map(|row| row[0].clone().unwrap()).collect();
    assert_eq!(ids, good);
    let table = Table::open_with(file.path(), &skip).unwrap();
    assert_eq!(csv_options_in(&table.notes(&[]).unwrap()).unwrap().1, 3000 - good.len() as u64);
    assert_eq!(read(&table, 1000..1001, &[0]).num_rows(), 1);
    // Rows are added, some of them bad.
    let notes = table.notes(&[]).unwrap();
    text.extend(b"3000,x\n3001,4\n3002\n");
    std::fs::write(file.path(), &text).unwrap();
    let grown = Table::open_grown(file.path(), &notes).unwrap();
    let before = grown.rows_before(&notes).unwrap();
    assert_eq!((before, grown.rows()), (good.len() as u64, good.len() as u64 + 1));
    // A type that is given is checked for all rows, whether or not the column is read.
    let strict = options(|o| o.types = vec![("n".into(), DataType::Int64)]);
    let file = TemporaryFile::with("csv", "id,n\n1,2\n2,x\n");
    let error = Table::open_with(file.path(), &strict).err().unwrap().to_string();
    assert!(error.contains("line 3: ") && error.contains('x'), "{error}");
    // A quote that is never closed is an error even so: it hides all rows after it.
    let file = TemporaryFile::with("csv", "id,n\n1,2\n3,\"4\n5,6\n");
    for options in [&skip, &CsvOptions::default()] {
        let error = Table::open_with(file.path(), options).err().unwrap().to_string();
        assert!(error.ends_with("line 3: has a quote that is never closed"), "{error}");
    }
}

#[test]
fn compressed_files_are_read_and_damage_in_them_is_noticed() {
    use std::io::Write as _;
    let text = messy(9, 2000, "\n");
    let plain = TemporaryFile::with("csv", &text);
    let wanted = scan_all(&Table::open(plain.path()).unwrap());
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&text.as_bytes()[..30_000]).unwrap();
    let mut members = gzip.finish().unwrap();
    // A second member: what `cat a.gz b.gz` makes.
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&text.as_bytes()[30_000..]).unwrap();
    members.extend(gzip.finish().unwrap());
    let frames = zstd::stream::encode_all(text.as_bytes(), 1).unwrap();
    for (extension, bytes) in [("csv.gz", members), ("csv.zst", frames)] {
        let file = TemporaryFile::with(extension, &bytes);
        let table = Table::open(file.path()).unwrap();
        for table in [&table, &reopen(&table)] {
            assert_eq!(scan_all(table), wanted);
            assert_eq!(read(table, 1500..1600, &[0, 1, 2]), wanted.slice(1500, 100));
        }
        let cut = TemporaryFile::with(extension, &bytes[..bytes.len() / 2]);
        let error = Table::open(cut.path()).err().unwrap().to_string();
        assert!(error.contains(&cut.path().display().to_string()), "{error}");
    }
}

#[test]
fn a_grown_file_is_told_from_a_changed_one_when_it_is_opened() {
    let text = messy(10, 20_000, "\n");
    let file = TemporaryFile::with("csv", &text);
    let table = Table::open(file.path()).unwrap();
    let (identity, notes) = (table.identity(), table.notes(&[]).unwrap());
    let opened = |content: String| {
        std::fs::write(file.path(), content).unwrap();
        Table::open_known(file.path(), identity, &notes).err().unwrap()
    };
    let grown = opened(format!("{text}20000,x,1.5\n"));
    assert!(matches!(grown, TableError::Grown { .. }), "{grown}");
    assert!(grown.to_string().starts_with("append: "), "{grown}");
    let changed = opened(format!("{}20000,x,1.5\n", text.replacen("id,", "no,", 1)));
    assert!(matches!(changed, TableError::Changed { .. }), "{changed}");
    let shorter = opened(text[..text.len() - 10].into());
    assert!(matches!(shorter, TableError::Changed { .. }), "{shorter}");
}

/// No timestamp is in a second 60: such a column is text, and refused where it must not be.
#[test]
fn leap_seconds_are_not_made_other_moments() {
    let text = "id,t\n1,2016-12-31T23:59:60\n2,2024-06-01T12:00:00\n";
    let file = TemporaryFile::with("csv", text);
    let table = Table::open(file.path()).unwrap();
    assert_eq!(*table.schema().field(1).data_type(), DataType::Utf8);
    for table in [&table, &reopen(&table)] {
        let shown = scan_all(table);
        assert_eq!(shown.column(1).as_string::<i32>().value(0), "2016-12-31T23:59:60");
    }
    let mut given = CsvOptions::default();
    given.types = vec![("t".to_owned(), csv_type("timestamp").unwrap())];
    let refused = Table::open_with(file.path(), &given).err().unwrap().to_string();
    assert!(refused.contains("line 2") && refused.contains("leap second"), "{refused}");
    // A table that was indexed without one.
    let plain = TemporaryFile::with("csv", "id,t\n1,2016-12-31T23:59:59\n2,\n");
    let notes = Table::open(plain.path()).unwrap().notes(&[0, 1]).unwrap();
    std::fs::write(plain.path(), "id,t\n1,2016-12-31T23:59:59\n2,\n3,2016-12-31 23:59:60Z\n")
        .unwrap();
    let grown = Table::open_grown(plain.path(), &notes).unwrap();
    let read = grown.scan(&[0, 1], 64).unwrap().find_map(Result::err).unwrap().to_string();
    assert!(read.contains("leap second"), "{read}");
}
