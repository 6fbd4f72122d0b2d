//! What is no table, or not the one that was indexed, is an error that names the file; never a wrong answer, never a panic.

#![expect(clippy::single_range_in_vec_init, reason = "one range of rows is what is meant")]

use crate::common::random;
use crate::common::{Layout, layouts, other, reopen, scan_all};
use arrow::array::{AsArray as _, Int32Array, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Int32Type, Schema};
use ironbloom_index::{Reads, Table, TableError};
use ironbloom_testing::{Random, TemporaryFile};
use std::sync::Arc;

fn refused(file: &TemporaryFile) -> String {
    let error = Table::open(file.path()).err().expect("refused").to_string();
    let path = file.path().display().to_string();
    assert!(error.contains(&path), "{error} does not name {path}");
    error.replace(&path, "FILE")
}

#[test]
fn what_is_no_table_is_refused() {
    let missing = TemporaryFile::new("parquet");
    assert!(refused(&missing).starts_with("FILE: No such file"));
    let directory = TemporaryFile::new("parquet");
    std::fs::create_dir(directory.path()).unwrap();
    assert_eq!(refused(&directory), "FILE: is a directory");
    std::fs::remove_dir(directory.path()).unwrap();
    let cases = [
        ("parquet", "", "FILE: is empty"),
        ("csv", "", "FILE: is empty: not even a header"),
        ("csv", "\n\n", "FILE: is empty: not even a header"),
        ("parquet", "hello", "FILE: does not begin as a Parquet file"),
        ("txt", "a,b\n", "FILE: is neither Parquet nor named .csv or .tsv"),
        ("gz", "a,b\n", "FILE: is neither Parquet nor named .csv or .tsv"),
        ("bz2", "a,b\n", "FILE: is compressed as a whole; decompress it first"),
    ];
    for (extension, content, message) in cases {
        assert_eq!(refused(&TemporaryFile::with(extension, content)), message);
    }
    for cut in ["PAR1", "PAR1PAR1", "PAR1 and then nothing"] {
        assert!(
            refused(&TemporaryFile::with("parquet", cut)).starts_with("FILE: damaged"),
            "{cut}"
        );
    }
    let csv = TemporaryFile::with("csv", "PAR1,is how this begins\n1,2\n");
    assert_eq!(Table::open(csv.path()).unwrap().schema().field(0).name(), "PAR1");
    // Parquet whatever it is called.
    let parquet = layouts()[0].write(&random::table(1, 10));
    let misnamed = TemporaryFile::with("csv", std::fs::read(parquet.path()).unwrap());
    assert_eq!(Table::open(misnamed.path()).unwrap().rows(), 10);
}

#[test]
fn a_table_without_columns_is_refused_and_one_without_rows_is_not() {
    let options = RecordBatchOptions::new().with_row_count(Some(3));
    let nothing =
        RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options).unwrap();
    assert_eq!(refused(&layouts()[0].write(&nothing)), "FILE: has no columns");
    for layout in layouts() {
        let file = layout.write(&random::table(1, 0));
        let table = reopen(&Table::open(file.path()).unwrap());
        assert_eq!(table.rows(), 0);
        assert_eq!(scan_all(&table).num_rows(), 0);
    }
}

#[test]
fn names_that_are_not_there_or_there_twice_are_refused() {
    let column = || Arc::new(Int32Array::from(vec![1])) as _;
    let batch =
        RecordBatch::try_from_iter([("first", column()), ("twice", column()), ("twice", column())])
            .unwrap();
    let file = layouts()[0].write(&batch);
    let table = Table::open(file.path()).unwrap();
    let error = |name: &str| {
        table
            .column(name)
            .unwrap_err()
            .to_string()
            .replace(&file.path().display().to_string(), "FILE")
    };
    assert_eq!(error("frist"), "FILE: no column frist; did you mean first?");
    assert_eq!(error("twice"), "FILE: several columns are called twice");
    assert_eq!(table.column("first").unwrap(), 0);
}

/// Everything one can do with a table; errors are fine, panics and wrong numbers of rows are not.
fn use_everything(table: &Table) -> Result<(), TableError> {
    let columns: Vec<usize> = (0..table.schema().fields().len()).collect();
    for batch in table.scan(&columns, 100)? {
        batch?;
    }
    table.notes(&columns)?;
    let middle = table.rows() / 2;
    for column in columns {
        let rows = middle..table.rows().min(middle + 10);
        let wanted = (rows.end - rows.start) as usize;
        let batches = table.read_rows(&[rows], &[column], &mut Reads::default())?;
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), wanted);
    }
    Ok(())
}

#[test]
fn cut_files_are_refused() {
    let batch = random::table(1, 300);
    for layout in layouts() {
        let whole = std::fs::read(layout.write(&batch).path()).unwrap();
        for part in 0..40 {
            let length = whole.len() * part / 40;
            let file = TemporaryFile::with("parquet", &whole[..length]);
            assert!(Table::open(file.path()).is_err(), "{}: {length} bytes", layout.name);
        }
    }
}

#[test]
fn flipped_bytes_are_errors_or_harmless_and_never_panics() {
    let batch = random::table(2, 120);
    let random = &mut Random(3);
    for layout in layouts() {
        let layout = Layout { page_rows: layout.page_rows.min(40), ..layout };
        let whole = std::fs::read(layout.write(&batch).path()).unwrap();
        for _ in 0..150 {
            let mut bytes = whole.clone();
            // The footer is where most mischief can be done.
            let near_the_end = random.one_in(2);
            let reach = if near_the_end { 4000 } else { bytes.len() as u64 };
            let at = bytes.len() - 1 - random.below(reach.min(bytes.len() as u64)) as usize;
            bytes[at] ^= 1 << random.below(8);
            let file = TemporaryFile::with("parquet", &bytes);
            if let Ok(table) = Table::open(file.path()) {
                let _ = use_everything(&table);
            }
        }
    }
}

#[test]
fn a_damaged_page_of_an_indexed_column_is_refused_and_the_others_are_read() {
    let batch = random::table(4, 1000);
    for layout in layouts() {
        let layout = Layout { page_rows: 100, group_rows: 500, ..layout };
        let file = layout.write(&batch);
        let table = Table::open(file.path()).unwrap();
        let column = table.column("i64").unwrap();
        let (identity, notes) = (table.identity(), table.notes(&[column]).unwrap());
        drop(table);
        let mut bytes = std::fs::read(file.path()).unwrap();
        // Where the column is: its metadata says, and reading a page tells which bytes.
        let metadata = parquet::file::metadata::ParquetMetaDataReader::new()
            .parse_and_finish(&bytes::Bytes::from(bytes.clone()))
            .unwrap();
        let chunk = metadata.row_group(0).column(column);
        let (start, length) = chunk.byte_range();
        bytes[(start + length) as usize - 3] ^= 0x10;
        std::fs::write(file.path(), &bytes).unwrap();
        let table = Table::open_known(file.path(), identity, &notes).unwrap();
        let error = table.read_rows(&[450..460], &[column], &mut Reads::default()).unwrap_err();
        assert!(matches!(error, TableError::Changed { .. }), "{}: {error}", layout.name);
        let others = table.read_rows(&[900..910], &[column, 0], &mut Reads::default());
        assert!(others.is_ok(), "{}", layout.name);
    }
}

#[test]
fn a_damaged_piece_of_a_large_page_is_refused_and_the_others_are_read() {
    let numbers = (0..100_000).map(|row| row * 7919 % 1_000_003);
    let column = Arc::new(arrow::array::Int64Array::from_iter_values(numbers)) as _;
    let batch = RecordBatch::try_from_iter([("a", column)]).unwrap();
    let layout = Layout { compression: parquet::basic::Compression::SNAPPY, ..layouts()[0] };
    let file = layout.write(&batch);
    let table = Table::open(file.path()).unwrap();
    let (identity, notes) = (table.identity(), table.notes(&[0]).unwrap());
    drop(table);
    let mut bytes = std::fs::read(file.path()).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(file.path(), &bytes).unwrap();
    let table = Table::open_known(file.path(), identity, &notes).unwrap();
    let mut refused = 0;
    for start in (0..100_000).step_by(1000) {
        match table.read_rows(&[start..start + 1], &[0], &mut Reads::default()) {
            Ok(batches) => assert_eq!(batches[0], batch.slice(start as usize, 1)),
            Err(TableError::Changed { .. }) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!((5..=10).contains(&refused), "{refused} of 100, where a piece is about 8");
}

#[test]
fn another_table_is_refused_when_it_is_opened() {
    let file = layouts()[2].write(&random::table(1, 500));
    let table = Table::open(file.path()).unwrap();
    let (identity, notes) = (table.identity(), table.notes(&[0]).unwrap());
    let other = layouts()[2].write(&random::table(2, 500));
    std::fs::rename(other.path(), file.path()).unwrap();
    let error = Table::open_known(file.path(), identity, &notes).err().unwrap();
    assert!(matches!(error, TableError::Changed { .. }), "{error}");
    assert!(error.to_string().starts_with("rebuild: "), "{error}");
    // The old one is still open and still right: whoever has a file open keeps it.
    assert_eq!(scan_all(&table).columns(), random::table(1, 500).columns());
}

#[test]
fn notes_of_another_table_or_damaged_ones_are_refused() {
    let file = layouts()[2].write(&random::table(1, 1500));
    let table = Table::open(file.path()).unwrap();
    let notes = table.notes(&[0]).unwrap();
    let fewer = layouts()[2].write(&random::table(1, 500));
    let other = Table::open(fewer.path()).unwrap().notes(&[0]).unwrap();
    let open = |notes: &[u8]| Table::open_known(file.path(), table.identity(), notes);
    assert!(open(&notes).is_ok());
    for wrong in [&other[..], &[], &notes[..notes.len() - 1]] {
        let error = open(wrong).err().unwrap();
        assert!(matches!(error, TableError::Notes { .. }), "{error}");
    }
    let csv = TemporaryFile::with("csv", "a\n1\n");
    let of_csv = Table::open(csv.path()).unwrap().notes(&[]).unwrap();
    assert!(matches!(open(&of_csv), Err(TableError::Notes { .. })));
    let random = &mut Random(1);
    for _ in 0..500 {
        let mut wrong = notes.clone();
        let at = random.below(wrong.len() as u64) as usize;
        wrong[at] ^= 1 << random.below(8);
        assert!(matches!(open(&wrong), Err(TableError::Notes { .. })));
    }
}

#[test]
fn forged_notes_with_a_right_checksum_never_panic() {
    let file = layouts()[2].write(&random::table(1, 1500));
    let table = Table::open(file.path()).unwrap();
    let notes = table.notes(&[0]).unwrap();
    let whole = scan_all(&table);
    let random = &mut Random(1);
    let mut accepted = 0;
    for _ in 0..2000 {
        let mut forged = notes[..notes.len() - 8].to_vec();
        let at = 4 + random.below(forged.len() as u64 - 4) as usize;
        forged[at] = random.next() as u8;
        let check = xxhash_rust::xxh3::xxh3_64(&forged);
        forged.extend_from_slice(&check.to_le_bytes());
        let Ok(table) = Table::open_known(file.path(), table.identity(), &forged) else {
            continue;
        };
        accepted += 1;
        for column in [0, 1, 12] {
            let Ok(batches) = table.read_rows(&[700..710], &[column], &mut Reads::default()) else {
                continue;
            };
            assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 10);
        }
    }
    assert!(accepted > 0, "some changes leave the notes sound, such as one of a checksum");
    drop(whole);
}

/// What other readers take as it is meant is not called damaged.
#[test]
fn odd_footers_that_others_read_are_read() {
    let open = |name| {
        let file = TemporaryFile::with("parquet", other(name));
        let table = reopen(&Table::open(file.path()).unwrap());
        (scan_all(&table), file)
    };
    // A field of another type, and a dictionary at byte 0.
    let (batch, _) = open("dict-page-offset-zero.parquet");
    assert_eq!(batch.num_rows(), 39);
    let values: Vec<Option<i32>> = batch.column(0).as_primitive::<Int32Type>().iter().collect();
    assert_eq!(values, [Some(1552); 39]);
    // Columns that are longer than is said.
    let (batch, file) = open("nation.dict-malformed.parquet");
    assert_eq!(batch.num_rows(), 25);
    let keys: Vec<i32> = batch.column(0).as_primitive::<Int32Type>().values().to_vec();
    assert_eq!(keys, (0..25).collect::<Vec<i32>>());
    let names = batch.column(1).as_binary::<i32>();
    assert_eq!((names.value(0), names.value(24)), (&b"ALGERIA"[..], &b"UNITED STATES"[..]));
    let table = reopen(&Table::open(file.path()).unwrap());
    let read = table.read_rows(&[3..5], &[1], &mut Reads::default()).unwrap();
    assert_eq!(read[0].column(0).as_binary::<i32>().value(1), b"EGYPT");
    // An empty list of the wrong type.
    let (batch, _) = open("fastparquet-no-rows.parquet");
    let names: Vec<String> =
        batch.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!((batch.num_rows(), names), (0, vec!["a".to_owned(), "b".into(), "c".into()]));
}

#[test]
fn encrypted_files_are_called_so() {
    let encrypted = other("uniform_encryption.parquet.encrypted");
    let message = "FILE: is encrypted, and tables are read without keys";
    for extension in ["encrypted", "parquet", "csv"] {
        assert_eq!(refused(&TemporaryFile::with(extension, &encrypted)), message);
    }
    // Its footer can be read, and says that columns cannot: FileMetaData { version, encryption_algorithm { … } }.
    let mut plain_footer = b"PAR1".to_vec();
    let footer = [0x15, 4, 0x7c, 0x1c, 0, 0, 0];
    plain_footer.extend(footer);
    plain_footer.extend((footer.len() as u32).to_le_bytes());
    plain_footer.extend(b"PAR1");
    assert_eq!(refused(&TemporaryFile::with("parquet", plain_footer)), message);
}

#[test]
fn pages_that_do_not_match_the_checksums_of_their_writer_are_not_indexed() {
    let bytes = other("rle-dict-uncompressed-corrupt-checksum.parquet");
    let file = TemporaryFile::with("parquet", bytes);
    let error = Table::open(file.path()).unwrap().notes(&[0, 1]).unwrap_err().to_string();
    assert!(error.contains("does not match the checksum of its writer"), "{error}");
    let file = TemporaryFile::with("parquet", other("plain-dict-uncompressed-checksum.parquet"));
    Table::open(file.path()).unwrap().notes(&[0, 1]).unwrap();
}
