//! Any rows of any columns are what a scan says, from as few pages as hold them.

#![expect(clippy::single_range_in_vec_init, reason = "one range of rows is what is meant")]

use crate::common::random;
use crate::common::{Layout, layouts, read, reopen, scan_all};
use arrow::array::{AsArray, FixedSizeBinaryArray, Float32Array, Int64Array, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Int64Type, TimeUnit, TimestampMicrosecondType};
use ironbloom_index::{Reads, Table, TableError};
use ironbloom_testing::{Random, TemporaryFile};
use parquet::basic::Compression;
use parquet::data_type::{Int96, Int96Type};
use parquet::file::metadata::{FileMetaData, ParquetMetaDataBuilder, ParquetMetaDataWriter};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// Sorted, disjoint ranges below `rows`.
fn ranges(random: &mut Random, rows: u64) -> Vec<Range<u64>> {
    let mut cuts: Vec<u64> = (0..2 * random.below(6)).map(|_| random.below(rows + 1)).collect();
    cuts.sort_unstable();
    cuts.chunks_exact(2).map(|two| two[0]..two[1]).collect()
}

fn expected(whole: &RecordBatch, ranges: &[Range<u64>], columns: &[usize]) -> RecordBatch {
    let whole = whole.project(columns).unwrap();
    let parts: Vec<_> = ranges
        .iter()
        .map(|range| whole.slice(range.start as usize, (range.end - range.start) as usize))
        .collect();
    concat_batches(&whole.schema(), &parts).unwrap()
}

fn read_all(table: &Table, ranges: &[Range<u64>], columns: &[usize]) -> RecordBatch {
    let batches = table.read_rows(ranges, columns, &mut Reads::default()).unwrap();
    let schema = table.schema().project(columns).unwrap();
    concat_batches(&Arc::new(schema), &batches).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn rows_are_what_a_scan_says(seed: u64, rows in 1usize..2500) {
        let batch = random::table(seed, rows);
        let random = &mut Random(seed);
        for layout in layouts() {
            let file = layout.write(&batch);
            let table = Table::open(file.path()).unwrap();
            prop_assert_eq!(table.rows(), rows as u64);
            let whole = scan_all(&table);
            prop_assert_eq!(&whole.columns(), &batch.columns(), "{}", layout.name);
            for table in [&table, &reopen(&table)] {
                for _ in 0..5 {
                    let ranges = ranges(random, rows as u64);
                    let columns: Vec<usize> =
                        (0..1 + random.below(4)).map(|_| random.below(33) as usize).collect();
                    let found = read_all(table, &ranges, &columns);
                    let wanted = expected(&whole, &ranges, &columns);
                    prop_assert_eq!(found.columns(), wanted.columns(), "{}: {:?} of {:?}", layout.name, ranges, columns);
                }
            }
        }
    }
}

/// 100 000 rows in pages of 1000, two columns.
fn paged(layout: Layout) -> (TemporaryFile, Table) {
    let numbers =
        || Arc::new(Int64Array::from_iter_values((0..100_000).map(|i| i * 7919 % 50_021)));
    let batch = RecordBatch::try_from_iter([("a", numbers() as _), ("b", numbers() as _)]).unwrap();
    let file = layout.write(&batch);
    let table = reopen(&Table::open(file.path()).unwrap());
    (file, table)
}

#[test]
fn only_the_pages_that_hold_the_rows_are_read() {
    for layout in layouts() {
        let layout = Layout { page_rows: 1000, group_rows: 20_000, dictionary: false, ..layout };
        let (_file, table) = paged(layout);
        let mut reads = Reads::default();
        table.read_rows(&[25_300..25_812, 70_999..71_001], &[1], &mut reads).unwrap();
        assert_eq!(reads.pages, 3, "{}: one page, and two at a border", layout.name);
        assert!(reads.bytes <= 3 * 1000 * 9, "{}: {} bytes", layout.name, reads.bytes);
    }
}

#[test]
fn a_dictionary_is_read_for_the_pages_that_use_it() {
    let layout = Layout {
        compression: Compression::SNAPPY,
        dictionary: true,
        dictionary_bytes: 8000,
        page_rows: 1000,
        group_rows: 100_000,
        ..layouts()[0]
    };
    let (_file, table) = paged(layout);
    let mut reads = Reads::default();
    table.read_rows(&[500..600], &[0], &mut reads).unwrap();
    assert_eq!(reads.pages, 2, "a page and its dictionary");
    let mut reads = Reads::default();
    table.read_rows(&[90_500..90_600], &[0], &mut reads).unwrap();
    assert_eq!(reads.pages, 1, "the dictionary has been given up by then");
}

#[test]
fn what_was_decompressed_lately_is_not_decompressed_again() {
    let layout = Layout { compression: Compression::SNAPPY, page_rows: 1000, ..layouts()[0] };
    let (_file, table) = paged(layout);
    for (pages, cached) in [(1, 0), (0, 1)] {
        let mut reads = Reads::default();
        let batches = table.read_rows(&[5000..5010], &[0], &mut reads).unwrap();
        assert_eq!((reads.pages, reads.cached_pages), (pages, cached));
        let values = batches[0].column(0).as_primitive::<Int64Type>();
        assert_eq!(values.value(3), 5003 * 7919 % 50_021);
    }
}

/// 100 000 rows in one page of each column, as DuckDB writes them: without nulls but nullable, never null, with nulls; wide and
/// narrow.
fn large_pages(compression: Compression) -> (TemporaryFile, RecordBatch) {
    let value = |row: i64| row * 7919 % 1_000_003;
    let all = || (0..100_000).map(value);
    let fixed = all().map(|value| (value as u32 * 31).to_le_bytes());
    let columns: [(&str, arrow::array::ArrayRef, bool); 5] = [
        ("nullable", Arc::new(Int64Array::from_iter_values(all())), true),
        ("required", Arc::new(Int64Array::from_iter_values(all())), false),
        ("nulls", Arc::new(Int64Array::from_iter(all().map(|v| (v % 3 > 0).then_some(v)))), true),
        ("narrow", Arc::new(Float32Array::from_iter_values(all().map(|v| v as f32))), true),
        ("fixed", Arc::new(FixedSizeBinaryArray::try_from_iter(fixed).unwrap()), true),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let file = Layout { compression, ..layouts()[0] }.write(&batch);
    (file, batch)
}

#[test]
fn parts_of_large_pages_are_what_they_are_in_the_whole() {
    for compression in [Compression::SNAPPY, Compression::LZ4_RAW] {
        let (file, batch) = large_pages(compression);
        let table = reopen(&Table::open(file.path()).unwrap());
        let random = &mut Random(9);
        for _ in 0..300 {
            let column = random.below(5) as usize;
            let ranges: Vec<_> = match random.below(3) {
                0 => ranges(random, 100_000),
                // At the borders of pieces, which are 64 KiB from the first value or a little less.
                1 => vec![8190..8194, 16_382..16_386, 99_999..100_000],
                _ => {
                    let start = random.below(99_000);
                    vec![start..start + 1 + random.below(999)]
                }
            };
            let found = read_all(&table, &ranges, &[column]);
            assert_eq!(
                found.columns(),
                expected(&batch, &ranges, &[column]).columns(),
                "{ranges:?}"
            );
        }
    }
}

#[test]
fn a_few_rows_cost_a_part_of_a_large_page() {
    let (file, _) = large_pages(Compression::SNAPPY);
    let table = reopen(&Table::open(file.path()).unwrap());
    for column in [0, 1, 3, 4] {
        let mut reads = Reads::default();
        table.read_rows(&[50_000..50_512], &[column], &mut reads).unwrap();
        assert_eq!((reads.pages, reads.cached_pages), (1, 0));
        assert!(reads.bytes < 3 * 65_536, "column {column}: {} bytes", reads.bytes);
    }
    // Where a value is depends on the nulls before it: the whole page, which is kept.
    for (pages, cached) in [(1, 0), (0, 1)] {
        let mut reads = Reads::default();
        table.read_rows(&[50_000..50_512], &[2], &mut reads).unwrap();
        assert_eq!((reads.pages, reads.cached_pages), (pages, cached));
    }
}

#[test]
fn columns_come_in_the_order_asked_for_and_as_often() {
    let (_file, table) = paged(layouts()[1]);
    let batch = read(&table, 10..20, &[1, 0, 1]);
    let names: Vec<_> = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, ["b", "a", "b"]);
    let scanned = table.scan(&[1, 0, 1], 10).unwrap().next().unwrap().unwrap();
    assert_eq!(scanned.schema().field(2).name(), "b");
}

#[test]
fn a_scan_may_start_anywhere() {
    let (_file, table) = paged(layouts()[2]);
    for start in [0, 1, 999, 1000, 54_321, 99_999, 100_000] {
        let mut next = start;
        for batch in table.scan_from(start, &[0], 4096).unwrap() {
            for value in batch.unwrap().column(0).as_primitive::<Int64Type>().values() {
                assert_eq!(*value as u64, next * 7919 % 50_021);
                next += 1;
            }
        }
        assert_eq!(next, 100_000);
    }
}

#[test]
fn many_threads_read_one_table() {
    let (_file, table) = paged(Layout { compression: Compression::SNAPPY, ..layouts()[1] });
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let table = &table;
            scope.spawn(move || {
                for i in 0..200 {
                    let row = (thread * 7001 + i * 499) % 99_000;
                    let batch = read(table, row..row + 5, &[0]);
                    let value = batch.column(0).as_primitive::<Int64Type>().value(4);
                    assert_eq!(value as u64, (row + 4) * 7919 % 50_021);
                }
            });
        }
    });
}

/// A file with one column of 96-bit timestamps: a Julian day, and nanoseconds within it.
fn int96_file(values: &[(u32, u64)]) -> TemporaryFile {
    let file = TemporaryFile::new("parquet");
    let schema = Arc::new(parse_message_type("message m { required int96 at; }").unwrap());
    let output = std::fs::File::create(file.path()).unwrap();
    let mut writer = SerializedFileWriter::new(output, schema, Default::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    let value = |&(day, nanos): &(u32, u64)| {
        let mut value = Int96::new();
        value.set_data(nanos as u32, (nanos >> 32) as u32, day);
        value
    };
    let values: Vec<Int96> = values.iter().map(value).collect();
    column.typed::<Int96Type>().write_batch(&values, None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    file
}

#[test]
fn timestamps_of_96_bits_are_what_the_file_says_or_refused() {
    const DAY_OF_1970: u32 = 2_440_588;
    const DAY_OF_9999_12_31: u32 = DAY_OF_1970 + 2_932_896;
    // Within 1677 and 2262: nanoseconds, as before.
    let near = int96_file(&[(DAY_OF_1970, 1), (DAY_OF_1970 + 19_753, 7)]);
    let table = reopen(&Table::open(near.path()).unwrap());
    let nanoseconds = DataType::Timestamp(TimeUnit::Nanosecond, None);
    assert_eq!(*table.schema().field(0).data_type(), nanoseconds);
    // Beyond: microseconds, if that is exact.
    let far = int96_file(&[(DAY_OF_9999_12_31, 1000), (DAY_OF_1970, 5_000)]);
    let table = Table::open(far.path()).unwrap();
    for table in [&table, &reopen(&table)] {
        let batch = read(table, 0..2, &[0]);
        let moments = batch.column(0).as_primitive::<TimestampMicrosecondType>();
        assert_eq!(moments.values(), &[2_932_896 * 86_400_000_000 + 1, 5]);
        assert_eq!(scan_all(table), batch);
    }
    // Beyond, and nanoseconds: no type holds both.
    let both = int96_file(&[(DAY_OF_9999_12_31, 1000), (DAY_OF_1970, 1)]);
    let error = Table::open(both.path()).err().unwrap();
    assert!(matches!(&error, TableError::InexactTimestamps { column, .. } if column == "at"));
    assert!(error.to_string().contains("column at"), "{error}");
}

/// Some writers say in the footer that there are no rows, and have them in row groups.
#[test]
fn row_groups_are_believed_if_the_footer_counts_other_rows() {
    let batch = random::table(3, 500);
    for said in [0, 3, 600] {
        let file = layouts()[2].write(&batch);
        let bytes = std::fs::read(file.path()).unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes.clone())).unwrap();
        let metadata = reader.metadata();
        let old = metadata.file_metadata();
        let other = FileMetaData::new(
            old.version(),
            said,
            old.created_by().map(str::to_owned),
            old.key_value_metadata().cloned(),
            old.schema_descr_ptr(),
            old.column_orders().cloned(),
        );
        let other = ParquetMetaDataBuilder::new(other)
            .set_row_groups(metadata.row_groups().to_vec())
            .build();
        let mut tail = [0; 4];
        tail.copy_from_slice(&bytes[bytes.len() - 8..bytes.len() - 4]);
        let mut output = bytes[..bytes.len() - 8 - u32::from_le_bytes(tail) as usize].to_vec();
        ParquetMetaDataWriter::new(&mut output, &other).finish().unwrap();
        std::fs::write(file.path(), output).unwrap();
        let table = Table::open(file.path()).unwrap();
        assert_eq!(table.rows(), 500);
        assert_eq!(scan_all(&table).columns(), batch.columns(), "{said} rows");
        assert_eq!(scan_all(&reopen(&table)).columns(), batch.columns(), "{said} rows");
    }
}
