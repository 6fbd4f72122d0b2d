//! Files that somebody cuts short or overwrites while they are open: every question is answered right or is an error that
//! names the file. Nothing dies by a signal, and no row goes missing without a word.
//!
//! What might die runs in a process of its own, so that a signal is a failed test and not the end of all tests.

use std::fs::{self, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use crate::common::random;
use crate::common::{Layout, layouts, reopen, scan_all};
use crate::model::{Row, batch, columns};
use arrow::array::{Int64Array, RecordBatch};
use arrow::compute::concat_batches;
use ironbloom_index::{
    Candidates, Error, FilePart, Index, IndexBuilder, Indexed, Params, Predicate, Reads,
    SourceMeta, Table, TableError, Value, columns_of, index_tables, parse,
};
use ironbloom_testing::{Random, TemporaryFile};
use parquet::basic::Compression;

/// Runs a test again in a process of its own, where `work` is done.
fn in_child(test: &str, work: impl FnOnce()) {
    const CHILD: &str = "IRONBLOOM_TEST_CHILD";
    if std::env::var_os(CHILD).is_some() {
        return work();
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("changed_while_open::{test}"), "--nocapture"])
        .env(CHILD, test)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let ran = text(&output.stdout).contains("1 passed");
    assert!(output.status.success() && ran, "{}\n{}", output.status, text(&output.stderr));
}

/// What others do to a file. Its name stays, and so does the file behind it.
#[derive(Clone, Debug)]
enum Change {
    Cut(u64),
    Overwrite(u64, Vec<u8>),
    /// Some bytes become others of the same sort, such as digits: what is read may still make sense.
    Alter(u64, u64),
}

impl Change {
    fn random(random: &mut Random, length: u64) -> Self {
        let at = random.below(length);
        match random.below(4) {
            0 => return Self::Cut(at),
            1 | 2 => return Self::Alter(at, 1 + random.below((length - at).min(3))),
            _ => {}
        }
        let bytes = 1 + random.below((length - at).min(5000));
        let fill = random.next() as u8;
        let byte = |i: u64| if fill.is_multiple_of(2) { fill } else { (i * 151) as u8 ^ fill };
        Self::Overwrite(at, (0..bytes).map(byte).collect())
    }

    fn make(&self, path: &Path) {
        let mut file = OpenOptions::new().read(true).write(true).open(path).unwrap();
        match self {
            Self::Cut(length) => file.set_len(*length).unwrap(),
            Self::Overwrite(at, bytes) => {
                file.seek(SeekFrom::Start(*at)).unwrap();
                file.write_all(bytes).unwrap();
            }
            Self::Alter(at, count) => {
                let mut bytes = vec![0; *count as usize];
                file.seek(SeekFrom::Start(*at)).unwrap();
                file.read_exact(&mut bytes).unwrap();
                bytes.iter_mut().for_each(|byte| *byte ^= 1);
                Self::Overwrite(*at, bytes).make(path);
            }
        }
    }
}

// --------------------------------------------------------------------------------------------------------- index files

/// Two sources of many values: columns of several pages of memory each, and blobs as well.
fn index() -> Index {
    let row = |i: i32| Row {
        int: (i % 7 != 0).then_some(i.wrapping_mul(7919) % 10_007),
        text: Some(format!("t{}", i % 3001)),
        float: Some(f64::from(i % 5)),
        flag: (i % 11 != 0).then_some(i % 2 == 0),
    };
    let mut builder = IndexBuilder::new(columns(), Params::new(16, 8).unwrap()).unwrap();
    for (name, count) in [("one.parquet", 9000), ("two.csv", 4000)] {
        builder.start(name).unwrap();
        builder.push(&batch(&(0..count).map(row).collect::<Vec<_>>())).unwrap();
        builder
            .end(SourceMeta { bytes: 10, fingerprint: 11, blob: blob(), ..SourceMeta::default() })
            .unwrap();
    }
    builder.finish().unwrap()
}

fn blob() -> Vec<u8> {
    (0..10_000).map(|i| (i % 251) as u8).collect()
}

fn questions() -> Vec<Predicate> {
    let int = |value| Predicate::Eq("int".into(), Value::Int(value));
    let text = |i| Predicate::Eq("text".into(), Value::Text(format!("t{i}")));
    let mut questions: Vec<_> = (0..40).map(|i| int(i * 251)).collect();
    questions.extend((0..40).map(|i| text(i * 73)));
    questions.extend([
        Predicate::IsNull("int".into()),
        Predicate::IsNull("flag".into()),
        Predicate::Eq("float".into(), Value::Float(1.0)),
        Predicate::Eq("flag".into(), Value::Bool(true)),
        Predicate::And(vec![int(7919), text(1)]),
    ]);
    questions
}

fn answers(index: &Index) -> Vec<Candidates> {
    questions().iter().map(|question| index.candidates(question).unwrap()).collect()
}

fn names(error: &impl ToString, path: &Path) {
    let text = error.to_string();
    assert!(text.contains(&path.display().to_string()), "{text} does not name the file");
}

/// How many questions were answered; all of those rightly: with every block, and perhaps others that damaged bounds would
/// have excluded.
fn refused_or_right(index: &Index, path: &Path, right: &[Candidates]) -> usize {
    let mut answered = 0;
    for (question, right) in questions().iter().zip(right) {
        match index.candidates(question) {
            Ok(found) => {
                let is_named = |block| found.blocks.contains(block);
                assert!(right.blocks.iter().all(is_named), "{question:?}");
                answered += 1;
            }
            Err(error @ Error::Damaged { part: FilePart::Column { .. }, .. }) => {
                names(&error, path)
            }
            Err(error) => panic!("{error}"),
        }
    }
    for source in 0..index.sources().len() {
        match index.blob(source) {
            Ok(found) => assert_eq!(found, blob()),
            Err(error) => names(&error, path),
        }
    }
    answered
}

#[test]
fn an_index_that_is_cut_off_while_it_is_open_says_so() {
    in_child("an_index_that_is_cut_off_while_it_is_open_says_so", || {
        let file = TemporaryFile::new("ibx");
        index().save(&file.0).unwrap();
        let right = answers(&index());
        let opened = Index::open(&file.0).unwrap();
        Change::Cut(0).make(&file.0);
        // The directory was read before: it knows that no row has int 0.
        assert_eq!(refused_or_right(&opened, &file.0, &right), 1);
        assert_eq!(opened.candidates(&questions()[0]).unwrap(), right[0]);
        assert!(right[0].blocks.is_empty());
        let parts = "four columns of a segment, its bounds, and two blobs";
        assert_eq!(opened.verify().len(), 7, "{parts}");
        let text = opened.candidates(&questions()[1]).unwrap_err().to_string();
        assert!(text.contains("column int of one.parquet"), "{text}");
    });
}

#[test]
fn a_column_that_was_used_answers_on_whatever_happens_to_its_file() {
    in_child("a_column_that_was_used_answers_on_whatever_happens_to_its_file", || {
        for change in [Change::Cut(0), Change::Overwrite(64, vec![0xff; 60_000])] {
            let file = TemporaryFile::new("ibx");
            index().save(&file.0).unwrap();
            let opened = Index::open(&file.0).unwrap();
            let right = answers(&opened);
            change.make(&file.0);
            assert_eq!(refused_or_right(&opened, &file.0, &right), questions().len());
            assert!(!opened.verify().is_empty(), "verify reads the file again");
        }
    });
}

#[test]
fn no_change_at_any_place_and_time_makes_an_index_lie() {
    in_child("no_change_at_any_place_and_time_makes_an_index_lie", || {
        let (whole, file) = (TemporaryFile::new("ibx"), TemporaryFile::new("ibx"));
        index().save(&whole.0).unwrap();
        let right = answers(&index());
        let length = fs::metadata(&whole.0).unwrap().len();
        let random = &mut Random(11);
        let (mut answered, mut asked) = (0, 0);
        for _ in 0..150 {
            fs::copy(&whole.0, &file.0).unwrap();
            let opened = Index::open(&file.0).unwrap();
            for _ in 0..random.below(3) {
                let number = random.below(questions().len() as u64) as usize;
                assert_eq!(opened.candidates(&questions()[number]).unwrap(), right[number]);
            }
            for _ in 0..=random.below(2) {
                let length = fs::metadata(&file.0).unwrap().len().max(1);
                Change::random(random, length).make(&file.0);
                answered += refused_or_right(&opened, &file.0, &right);
                asked += questions().len();
            }
            opened.verify();
        }
        assert!(answered > asked / 10 && answered < asked, "{answered} of {asked}");
        assert!(length > 50_000, "{length}");
    });
}

#[test]
fn an_index_that_is_cut_off_is_not_saved_elsewhere_and_not_merged() {
    in_child("an_index_that_is_cut_off_is_not_saved_elsewhere_and_not_merged", || {
        let (file, other) = (TemporaryFile::new("ibx"), TemporaryFile::new("ibx"));
        let mut short = index();
        short.remove("two.csv").unwrap();
        short.save(&file.0).unwrap();
        let mut opened = Index::open(&file.0).unwrap();
        let mut more = IndexBuilder::like(&opened).unwrap();
        more.start_at("one.parquet", 9000).unwrap();
        let row = Row { int: Some(1), text: None, float: None, flag: None };
        more.push(&batch(&[row])).unwrap();
        opened.append(more.finish().unwrap()).unwrap();
        Change::Cut(5000).make(&file.0);
        let before = opened.info();
        let error = opened.compact().unwrap_err();
        names(&error, &file.0);
        assert_eq!(opened.info(), before);
        let error = opened.save(&other.0).unwrap_err();
        names(&error, &file.0);
        assert!(!other.0.exists(), "nothing is left of a file that could not be written");
        // Also over itself: what is there stays.
        assert!(opened.save(&file.0).is_err());
        assert_eq!(fs::metadata(&file.0).unwrap().len(), 5000);
    });
}

#[test]
fn damage_in_a_joined_index_names_the_file_it_came_from() {
    let (first, second) = (TemporaryFile::new("ibx"), TemporaryFile::new("ibx"));
    let mut one = index();
    one.remove("two.csv").unwrap();
    one.save(&first.0).unwrap();
    let mut two = index();
    two.remove("one.parquet").unwrap();
    two.save(&second.0).unwrap();
    let mut joined = Index::open(&first.0).unwrap();
    joined.append(Index::open(&second.0).unwrap()).unwrap();
    Change::Overwrite(64, vec![0xff; 15_000]).make(&second.0);
    let errors = joined.verify();
    assert!(!errors.is_empty());
    errors.iter().for_each(|error| names(error, &second.0));
}

// -------------------------------------------------------------------------------------------------------------- tables

fn all_columns(table: &Table) -> Vec<usize> {
    (0..table.schema().fields().len()).collect()
}

fn some_rows(random: &mut Random, rows: u64) -> Range<u64> {
    let start = random.below(rows);
    start..(start + 1 + random.below(300)).min(rows)
}

/// Whether rows were read, which are the right ones then.
fn read_right(table: &Table, whole: &RecordBatch, rows: Range<u64>, columns: &[usize]) -> bool {
    let range = std::slice::from_ref(&rows);
    match table.read_rows(range, columns, &mut Reads::default()) {
        Ok(batches) => {
            let found = concat_batches(&batches[0].schema(), &batches).unwrap();
            let right = whole.slice(rows.start as usize, (rows.end - rows.start) as usize);
            assert_eq!(found.columns(), right.project(columns).unwrap().columns(), "{rows:?}");
            true
        }
        Err(error) => {
            names(&error, table.location().as_file().unwrap());
            false
        }
    }
}

/// Changes a table again and again while it is open, with all columns that can be indexed known by their checksums. (Pages of
/// lists may not even say how many rows they hold: those are read as they are.)
fn change_and_read(file: &TemporaryFile, seed: u64, rounds: u32) {
    let bytes = fs::read(file.path()).unwrap();
    let whole = scan_all(&Table::open(file.path()).unwrap());
    let random = &mut Random(seed);
    let mut read = [0, 0];
    for _ in 0..rounds {
        // Not a new file: the same one with its old content.
        fs::write(file.path(), &bytes).unwrap();
        let table = reopen(&Table::open(file.path()).unwrap());
        let known = columns_of(table.schema()).unwrap();
        let columns: Vec<usize> =
            known.iter().map(|column| table.column(&column.name).unwrap()).collect();
        if random.one_in(2) {
            let rows = some_rows(random, table.rows());
            assert!(read_right(&table, &whole, rows, &columns));
        }
        Change::random(random, bytes.len() as u64).make(file.path());
        for &column in &columns {
            for rows in [some_rows(random, table.rows()), 0..table.rows()] {
                read[usize::from(read_right(&table, &whole, rows, &[column]))] += 1;
            }
        }
        // Nothing vouches for what a scan reads; it must end, that is all.
        if let Ok(scan) = table.scan(&all_columns(&table), 1000) {
            scan.for_each(drop);
        }
        let _ = table.notes(&all_columns(&table));
        let _ = table.rows_before(&[]);
    }
    assert!(read[0] > 0 && read[1] > 0, "{read:?}: refused, and read");
}

/// The decoders of the `parquet` crate panic on some damage, which is caught; the messages would only fill the screen.
fn without_messages() {
    std::panic::set_hook(Box::new(|info| {
        if info.location().is_some_and(|place| place.file().contains("changed_while_open")) {
            eprintln!("{info}");
        }
    }));
}

#[test]
fn no_change_at_any_place_makes_a_parquet_table_lie() {
    in_child("no_change_at_any_place_makes_a_parquet_table_lie", || {
        without_messages();
        for (layout, seed) in layouts().into_iter().zip(20..) {
            change_and_read(&layout.write(&random::table(seed, 1000)), seed, 25);
        }
        // One large page, of which only the pieces are read that hold the rows.
        let numbers = Int64Array::from_iter_values((0..60_000).map(|row| row * 7919 % 1_000_003));
        let batch = RecordBatch::try_from_iter([("a", Arc::new(numbers) as _)]).unwrap();
        let layout = Layout { compression: Compression::SNAPPY, ..layouts()[0] };
        change_and_read(&layout.write(&batch), 30, 50);
    });
}

#[test]
fn no_change_at_any_place_makes_a_csv_table_lie() {
    in_child("no_change_at_any_place_makes_a_csv_table_lie", || {
        let row =
            |id: u64| format!("{id},\"text, {}\n\",{}.5,2024-02-{:02}\n", id % 7, id, id % 28 + 1);
        let text = (0..6000).map(row).collect::<String>();
        let file = TemporaryFile::with("csv", format!("id,text,amount,day\n{text}"));
        change_and_read(&file, 31, 60);
    });
}

#[test]
fn rows_that_were_handed_out_stay_what_they_are() {
    for layout in layouts() {
        let file = Layout { page_rows: 100, ..layout }.write(&random::table(5, 1000));
        let table = reopen(&Table::open(file.path()).unwrap());
        let columns = all_columns(&table);
        let range = 0..table.rows();
        let read = table.read_rows(std::slice::from_ref(&range), &columns, &mut Reads::default());
        let batch = concat_batches(&read.as_ref().unwrap()[0].schema(), &read.unwrap()).unwrap();
        let length = fs::metadata(file.path()).unwrap().len() as usize;
        Change::Overwrite(0, vec![0xff; length]).make(file.path());
        assert_eq!(batch.columns(), random::table(5, 1000).columns(), "{}", layout.name);
    }
}

#[test]
fn a_table_that_is_cut_off_while_it_is_scanned_is_an_error() {
    in_child("a_table_that_is_cut_off_while_it_is_scanned_is_an_error", || {
        let parquet = layouts()[1].write(&random::table(6, 3000));
        let lines: String = (0..3000).map(|id| format!("{id},some text {id}\n")).collect();
        let csv = TemporaryFile::with("csv", format!("id,text\n{lines}"));
        for file in [parquet, csv] {
            let table = Table::open(file.path()).unwrap();
            let mut scan = table.scan(&all_columns(&table), 100).unwrap();
            assert!(scan.next().unwrap().is_ok());
            Change::Cut(100).make(file.path());
            let errors: Vec<TableError> = scan.filter_map(Result::err).collect();
            assert!(!errors.is_empty());
            errors.iter().for_each(|error| names(error, file.path()));
        }
    });
}

#[test]
fn rows_of_csv_that_change_while_they_are_indexed_are_an_error() {
    let lines: String = (1000..9000).map(|id| format!("{id},some text {id}\n")).collect();
    let file = TemporaryFile::with("csv", format!("id,text\n{lines}"));
    let table = Table::open(file.path()).unwrap();
    // Of the same form, so that nothing but the content tells.
    Change::Overwrite(8 + 20 * 1000, b"7777".to_vec()).make(file.path());
    let scanned: Result<Vec<RecordBatch>, _> = table.scan(&[0, 1], 512).unwrap().collect();
    assert!(matches!(scanned, Err(TableError::Changed { .. })), "{scanned:?}");
}

/// From condition to rows, with everything open.
#[test]
fn a_search_whose_index_or_table_is_cut_off_is_an_error_that_names_it() {
    in_child("a_search_whose_index_or_table_is_cut_off_is_an_error_that_names_it", || {
        let lines: String = (0..150_000).map(|id| format!("{id},{}\n", id % 3)).collect();
        let numbers = random::table(7, 4000);
        for (number, layout) in [None, Some(layouts()[1]), Some(layouts()[2])].iter().enumerate() {
            let (table, question) = match layout {
                None => (TemporaryFile::with("csv", format!("id,kind\n{lines}")), "kind = 1"),
                Some(layout) => (layout.write(&numbers), "i64 is not null"),
            };
            let file = TemporaryFile::new("ibx");
            let tables = [table.path().to_owned()];
            let mut index =
                index_tables(&tables, None, Params::default(), &file.0, &mut |_| ()).unwrap();
            index.save(&file.0).unwrap();
            for cut in [&file.0, &tables[0]] {
                let (index, content) =
                    (fs::read(&file.0).unwrap(), fs::read(table.path()).unwrap());
                let indexed = Indexed::open(&file.0).unwrap();
                let schema = indexed.schema().unwrap();
                // Started before the table is cut, or a look at its length would tell.
                let search = indexed.find(&parse(question, &schema).unwrap(), &[]).unwrap();
                Change::Cut(0).make(cut);
                let failed = search.filter_map(Result::err).last();
                if cut == table.path() {
                    names(&failed.expect("an error"), cut);
                } else if number == 0 {
                    // The column that was asked for is in memory. The other one is gone.
                    assert!(failed.is_none());
                    let other = indexed.find(&parse("id = 7", &schema).unwrap(), &[]);
                    names(&other.err().expect("an error"), cut);
                }
                fs::write(&file.0, index).unwrap();
                fs::write(table.path(), content).unwrap();
            }
        }
    });
}
