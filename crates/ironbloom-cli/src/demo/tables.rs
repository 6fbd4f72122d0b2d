//! Equality on any of ten columns of a table of ten million rows.
//!
//! The classic version asks PostgreSQL, once with a `bloom` index and once with ten B-trees. Here a signature file and sorted
//! columns stand in for the two, in this process and on columns in memory, next to our index in memory and on a Parquet file.

use std::hint::black_box;
use std::time::{Duration, Instant};

use anyhow::Result;
use ironbloom_index::{Index, Indexed, Params, index_tables};
use ironbloom_rivals::{Columns, Query, Signatures, SortedColumns, predicate, queries};
use tempfile::TempDir;

use super::Findings;
use crate::number;
use crate::report::{Cell, Record};

const COLUMNS: usize = 10;
const VALUES: u64 = 1_000_000;

/// Everything that can be asked, with its size and build time.
struct Contest {
    table: Columns,
    index: Index,
    signatures: Signatures,
    sorted: SortedColumns,
    indexed: Indexed,
    _folder: TempDir,
    sizes: [u64; 4],
    builds: [Duration; 4],
}

pub(super) fn run(rows: usize) -> Result<Findings> {
    let contest = Contest::new(rows)?;
    let mut records = contest.costs();
    for columns in 1..=3 {
        for hit in [true, false] {
            records.extend(contest.compare(columns, hit)?);
        }
    }
    Ok(Findings {
        title: "Any columns of a big table",
        about: format!(
            "{} rows of {COLUMNS} columns, numbers at random below {}; equality on one, two and three columns, of values\n\
             that are in a row together (hit) or chosen at random (miss). All answers are compared on the columns, and all\n\
             five find the same rows. PostgreSQL's signature file is read whole for every question; sorted columns\n\
             stand for B-trees; \"Parquet\" is our index on a file of {}, opened beforehand.",
            number::count(rows as u64),
            number::count(VALUES),
            number::bytes(contest.indexed.index().sources()[0].bytes()),
        ),
        records,
        see: "The index is no larger than the signature file and answers like the sorted columns, which take five times\n\
              its space. On the Parquet file only the pages that can hold the rows are read. PostgreSQL was measured with\n\
              107 ms for two columns by its bloom index (153 MB), and 0.06 ms by its ten B-trees (2.9 GB)."
            .to_owned(),
    })
}

impl Contest {
    fn new(rows: usize) -> Result<Self> {
        let table = Columns::random(rows, COLUMNS, VALUES);
        let folder = TempDir::with_prefix("ironbloom-demo-")?;
        let (parquet, ibx) = (folder.path().join("t.parquet"), folder.path().join("t.ibx"));
        table.write_parquet(&parquet)?;
        let (index, index_time) = timed(|| table.index(Params::default()));
        let (signatures, signatures_time) = timed(|| Signatures::build(&table));
        let (sorted, sorted_time) = timed(|| SortedColumns::build(&table));
        let (saved, saved_time) = timed(|| -> Result<()> {
            let mut index = index_tables(&[parquet], None, Params::default(), &ibx, &mut |_| {})?;
            Ok(index.save(&ibx)?)
        });
        saved?;
        let (index, indexed) = (index?, Indexed::open(&ibx)?);
        indexed.index().load()?;
        let file_size = std::fs::metadata(&ibx)?.len();
        let sizes =
            [index.info().bytes, file_size, signatures.size_in_bytes(), sorted.size_in_bytes()];
        let builds = [index_time, saved_time, signatures_time, sorted_time];
        Ok(Self { table, index, signatures, sorted, indexed, _folder: folder, sizes, builds })
    }

    fn costs(&self) -> Vec<Record> {
        let cells = (self.table.rows() * COLUMNS) as f64;
        let size = self.sizes.map(|bytes| {
            let bits = 8.0 * bytes as f64 / cells;
            format!("{:.0} MB, {bits:.1} b/cell", bytes as f64 / 1e6)
        });
        let with_scan = |[index, file, signatures, sorted]: [String; 4]| {
            [index, file, signatures, sorted, "–".to_owned()]
        };
        let builds = self.builds.map(number::time);
        vec![record("size", with_scan(size)), record("build", with_scan(builds))]
    }

    /// One line of times, and one of rows that were read in vain.
    fn compare(&self, columns: usize, hit: bool) -> Result<[Record; 2]> {
        let queries = queries(&self.table, columns, 2000, (!hit).then_some(VALUES));
        let few = &queries[..5];
        let (found, index_time) = each(&queries, |query| {
            let blocks = self.index.candidates(&predicate(&self.table, query))?.blocks;
            Ok(self.table.verify(query, &blocks))
        })?;
        let (sorted_found, sorted_time) = each(&queries, |query| Ok(self.sorted.find(query)))?;
        assert_eq!(found, sorted_found, "index and sorted columns must find the same rows");
        let some = &queries[..200];
        let (file_found, file_time) = each(some, |query| self.find_in_file(query))?;
        let (signed, signature_time) =
            each(few, |query| Ok(self.signatures.find(&self.table, query).0))?;
        assert_eq!(file_found[..], found[..some.len()], "and so must the file");
        assert_eq!(signed[..], found[..few.len()], "and so must the signatures");
        let name = format!(
            "{columns} column{}, {}",
            if columns == 1 { "" } else { "s" },
            if hit { "hit" } else { "miss" }
        );
        let (scanned, scan_time) = each(few, |query| Ok(self.table.scan(query)))?;
        assert_eq!(scanned[..], found[..few.len()], "and so must a look at all rows");
        let times =
            [index_time, file_time, signature_time, sorted_time, scan_time].map(number::time);
        Ok([record(&name, times), self.in_vain(&queries, &found)?])
    }

    fn find_in_file(&self, query: &Query) -> Result<u64> {
        let mut rows = 0;
        for found in self.indexed.find(&predicate(&self.table, query), &[])? {
            rows += found?.1.rows.len() as u64;
        }
        Ok(rows)
    }

    /// Rows that were compared and did not match, on average.
    fn in_vain(&self, queries: &[Query], found: &[u64]) -> Result<Record> {
        let mut rows = 0;
        for (query, found) in queries.iter().zip(found) {
            let blocks = self.index.candidates(&predicate(&self.table, query))?.blocks;
            rows += blocks.iter().map(|block| u64::from(block.rows)).sum::<u64>() - found;
        }
        let index = format!("{:.1}", rows as f64 / queries.len() as f64);
        let few = &queries[..5];
        let wrong: u64 = few.iter().map(|query| self.signatures.find(&self.table, query).1).sum();
        let signatures = number::count(wrong / few.len() as u64);
        let all = number::count(self.table.rows() as u64);
        Ok(record("  rows in vain", [index.clone(), index, signatures, "0".to_owned(), all]))
    }
}

fn record(name: &str, [index, file, signatures, sorted, scan]: [String; 5]) -> Record {
    vec![
        ("", Cell::text(name)),
        ("index", Cell::text(index)),
        ("index on Parquet", Cell::text(file)),
        ("signatures", Cell::text(signatures)),
        ("sorted columns", Cell::text(sorted)),
        ("full scan", Cell::text(scan)),
    ]
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

/// Rows found by each query, and the average time of one.
fn each(queries: &[Query], find: impl Fn(&Query) -> Result<u64>) -> Result<(Vec<u64>, Duration)> {
    let (found, time) = timed(|| queries.iter().map(&find).collect::<Result<Vec<u64>>>());
    Ok((black_box(found?), time / queries.len() as u32))
}
