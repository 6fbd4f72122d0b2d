//! Random tables of all types, files to keep them in, and the naive answer to compare with.

pub(crate) mod canonical;
pub(crate) mod naive;
pub(crate) mod random;

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use ironbloom_index::{Find, Match, Predicate, Reads, Table};
use ironbloom_testing::TemporaryFile;
use parquet::arrow::ArrowWriter;
use parquet::basic::{BrotliLevel, Compression, Encoding, GzipLevel, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};

/// The bytes of a file that other people wrote.
pub(crate) fn other(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/others");
    std::fs::read(folder.join(name)).unwrap()
}

/// A way to write a Parquet file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub(crate) name: &'static str,
    pub(crate) compression: Compression,
    pub(crate) version: WriterVersion,
    pub(crate) dictionary: bool,
    /// Bytes after which a column gives up its dictionary.
    pub(crate) dictionary_bytes: usize,
    pub(crate) page_index: bool,
    pub(crate) page_rows: usize,
    pub(crate) group_rows: usize,
}

const V1: WriterVersion = WriterVersion::PARQUET_1_0;
const V2: WriterVersion = WriterVersion::PARQUET_2_0;

/// What files differ in, so that each is there once.
pub(crate) fn layouts() -> Vec<Layout> {
    let plain = Layout {
        name: "one page, nothing special",
        compression: Compression::UNCOMPRESSED,
        version: V1,
        dictionary: false,
        dictionary_bytes: 1 << 20,
        page_index: false,
        page_rows: 1 << 20,
        group_rows: 1 << 20,
    };
    let zstd = Compression::ZSTD(ZstdLevel::default());
    vec![
        plain,
        Layout { name: "small pages", page_rows: 37, ..plain },
        Layout {
            name: "as pyarrow: snappy, dictionary, no page index",
            compression: Compression::SNAPPY,
            dictionary: true,
            page_rows: 300,
            group_rows: 1000,
            ..plain
        },
        Layout {
            name: "a dictionary that is given up",
            compression: Compression::SNAPPY,
            dictionary: true,
            dictionary_bytes: 64,
            page_rows: 64,
            group_rows: 700,
            ..plain
        },
        Layout {
            name: "page index, version 2, zstd, odd sizes",
            compression: zstd,
            version: V2,
            dictionary: true,
            page_index: true,
            page_rows: 101,
            group_rows: 997,
            ..plain
        },
        Layout {
            name: "delta encodings of version 2, lz4",
            compression: Compression::LZ4_RAW,
            version: V2,
            page_rows: 128,
            group_rows: 512,
            ..plain
        },
        Layout {
            name: "gzip, page index, tiny row groups",
            compression: Compression::GZIP(GzipLevel::default()),
            page_index: true,
            page_rows: 10,
            group_rows: 100,
            ..plain
        },
        Layout {
            name: "brotli, version 2",
            compression: Compression::BROTLI(BrotliLevel::default()),
            version: V2,
            dictionary: true,
            page_rows: 50,
            group_rows: 1 << 20,
            ..plain
        },
    ]
}

impl Layout {
    pub(crate) fn write(&self, batch: &RecordBatch) -> TemporaryFile {
        let statistics =
            if self.page_index { EnabledStatistics::Page } else { EnabledStatistics::Chunk };
        let mut properties = WriterProperties::builder()
            .set_compression(self.compression)
            .set_writer_version(self.version)
            .set_dictionary_enabled(self.dictionary)
            .set_dictionary_page_size_limit(self.dictionary_bytes)
            .set_statistics_enabled(statistics)
            .set_offset_index_disabled(!self.page_index)
            .set_data_page_row_count_limit(self.page_rows)
            .set_write_batch_size(self.page_rows.min(100))
            .set_max_row_group_row_count(Some(self.group_rows));
        if !self.dictionary && self.version == V2 {
            let column = |name: &str| vec![name.to_owned()].into();
            properties = properties
                .set_column_encoding(column("i64"), Encoding::DELTA_BINARY_PACKED)
                .set_column_encoding(column("f64"), Encoding::BYTE_STREAM_SPLIT)
                .set_column_encoding(column("text"), Encoding::DELTA_BYTE_ARRAY)
                .set_column_encoding(column("binary"), Encoding::DELTA_LENGTH_BYTE_ARRAY);
        }
        let file = TemporaryFile::new("parquet");
        let output = File::create(file.path()).unwrap();
        let mut writer =
            ArrowWriter::try_new(output, batch.schema(), Some(properties.build())).unwrap();
        writer.write(batch).unwrap();
        writer.close().unwrap();
        file
    }
}

/// All columns of all rows.
pub(crate) fn scan_all(table: &Table) -> RecordBatch {
    let columns: Vec<usize> = (0..table.schema().fields().len()).collect();
    let batches: Vec<_> =
        table.scan(&columns, 333).unwrap().collect::<Result<_, _>>().expect("a sound table");
    concat_batches(table.schema(), &batches).unwrap()
}

/// The table as an index finds it again.
pub(crate) fn reopen(table: &Table) -> Table {
    let all: Vec<usize> = (0..table.schema().fields().len()).collect();
    let notes = table.notes(&all).unwrap();
    Table::open_known(table.location(), table.identity(), &notes).unwrap()
}

/// All rows that match, with these candidates.
pub(crate) fn find(
    table: &Table,
    predicate: &Predicate,
    blocks: &[u64],
    block_rows: u64,
    select: &[&str],
) -> Match {
    Find::new(table, predicate, rows_of(blocks, block_rows), select)
        .unwrap()
        .collect_all()
        .unwrap()
        .0
}

/// The rows of blocks, as an index gives them.
pub(crate) fn rows_of(blocks: &[u64], block_rows: u64) -> impl Iterator<Item = Range<u64>> {
    blocks.iter().map(move |block| block * block_rows..(block + 1) * block_rows)
}

/// One range of rows in one batch.
pub(crate) fn read(table: &Table, rows: Range<u64>, columns: &[usize]) -> RecordBatch {
    let batches =
        table.read_rows(std::slice::from_ref(&rows), columns, &mut Reads::default()).unwrap();
    concat_batches(&batches[0].schema(), &batches).unwrap()
}
