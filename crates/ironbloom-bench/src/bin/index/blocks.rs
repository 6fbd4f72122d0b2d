//! The cost of verifying a block of a Parquet file: the part of a lookup that the index cannot save.
//!
//! Each query looks for the values of a row chosen at random, in the block that holds it, as an index would report it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ironbloom_index::arrow::array::{Int64Array, RecordBatch};
use ironbloom_index::{Find, Predicate, Reads, Table, evaluate, parse};
use parquet::arrow::ArrowWriter;

use crate::Failure;

const BLOCK_ROWS: u64 = 512;
const QUERIES: u64 = 200;

pub(crate) fn run(given: Option<PathBuf>) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let path = match given {
        Some(path) => path,
        None => small_table(folder.path())?,
    };
    let opening = Instant::now();
    let table = Table::open(&path)?;
    let notes = table.notes(&[0, 1])?;
    println!("notes: {} bytes, made in {:.1?}", notes.len(), opening.elapsed());
    let opening = Instant::now();
    let table = Table::open_known(&path, table.identity(), &notes)?;
    println!("opened again in {:.1?}", opening.elapsed());

    let names: Vec<&str> = table.schema().fields().iter().map(|f| f.name().as_str()).collect();
    let cases: [(&str, u64, &[&str]); 4] = [
        ("two columns, rows anywhere", table.rows(), &[]),
        ("two columns, rows in 5000", 5000, &[]),
        ("and both shown", table.rows(), &names[..2]),
        ("and all shown", table.rows(), &names),
    ];
    println!(
        "{:28} {:>10} {:>10} {:>10} {:>7} {:>10}",
        "", "median", "worst", "processor", "pages", "bytes"
    );
    for (name, reach, select) in cases {
        measure(name, &table, reach.min(table.rows()), select)?;
    }
    Ok(())
}

fn measure(name: &str, table: &Table, reach: u64, select: &[&str]) -> Result<(), Failure> {
    let mut queries = Vec::new();
    let mut state = 1u128;
    for _ in 0..QUERIES {
        // A linear congruential generator is random enough: pages are visited in no particular order.
        state = (state * 6_364_136_223_846_793_005 + 1_442_695_040_888_963_407) % (1 << 64);
        let row = ((state * u128::from(reach)) >> 64) as u64;
        queries.push((row, values_of(table, row)?));
    }
    let mut times = Vec::new();
    let mut total = Reads::default();
    let cpu = processor_time();
    for (row, predicate) in &queries {
        let start = Instant::now();
        let first = row / BLOCK_ROWS * BLOCK_ROWS;
        let block = first..first + BLOCK_ROWS;
        let (found, report) = Find::new(table, predicate, [block], select)?.collect_all()?;
        times.push(start.elapsed());
        assert!(found.rows.contains(row), "row {row} is lost");
        total.add(report.verify_reads);
        total.add(report.select_reads);
    }
    let cpu = processor_time().zip(cpu).map(|(after, before)| (after - before) / QUERIES as u32);
    times.sort();
    println!(
        "{name:28} {:>10.1?} {:>10.1?} {:>10.1?} {:>7.2} {:>10}",
        times[times.len() / 2],
        times[times.len() - 1],
        cpu.unwrap_or_default(),
        total.pages as f64 / QUERIES as f64,
        total.bytes / QUERIES,
    );
    Ok(())
}

/// Processor time of this process, which a busy machine inflates less than wall-clock time. Linux only.
fn processor_time() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    Some(Duration::from_nanos(text.split(' ').next()?.parse().ok()?))
}

/// A condition on the first two columns that this row satisfies. Opens the table separately, so that the pages are not already
/// decompressed when they are measured.
fn values_of(table: &Table, row: u64) -> Result<Predicate, Failure> {
    let apart = Table::open(table.location())?;
    let this = row..row + 1;
    let batch =
        apart.read_rows(std::slice::from_ref(&this), &[0, 1], &mut Reads::default())?.remove(0);
    let condition: Vec<String> = (0..2)
        .map(|column| {
            let text = ironbloom_index::arrow::util::display::array_value_to_string(
                batch.column(column),
                0,
            )?;
            Ok(format!("\"{}\" = {text}", table.schema().field(column).name()))
        })
        .collect::<Result<_, ironbloom_index::arrow::error::ArrowError>>()?;
    let predicate = parse(&condition.join(" and "), table.schema())?;
    assert!(evaluate(&predicate, &batch)?.value(0));
    Ok(predicate)
}

/// Writes 200 000 rows of ten columns.
fn small_table(folder: &Path) -> Result<PathBuf, Failure> {
    let path = folder.join("table.parquet");
    let names: Vec<String> = (0..10).map(|column| format!("i{column}")).collect();
    let columns = names.iter().enumerate().map(|(column, name)| {
        let cell = move |row: i64| (row * 7919 + column as i64 * 104_729) * 31 % 1_000_003;
        (name.as_str(), Arc::new(Int64Array::from_iter_values((0..200_000).map(cell))) as _)
    });
    let batch = RecordBatch::try_from_iter(columns)?;
    let mut writer = ArrowWriter::try_new(File::create(&path)?, batch.schema(), None)?;
    writer.write(&batch)?;
    writer.close()?;
    Ok(path)
}
