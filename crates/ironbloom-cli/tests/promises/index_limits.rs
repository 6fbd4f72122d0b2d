//! `ironbloom index` where there is not enough room: on the disk, and in memory.

use std::fmt::Write as _;
use std::process::Stdio;
use std::time::Duration;

use crate::program::{Run, Scratch, most_memory};
use ironbloom_testing::Start as _;

/// A table of columns of which almost every value is another one.
fn table(rows: u64, columns: u64) -> String {
    let mut text: String = (0..columns).map(|column| format!("c{column},")).collect();
    text.pop();
    text.push('\n');
    for row in 0..rows {
        for column in 0..columns {
            let end = if column + 1 == columns { '\n' } else { ',' };
            let value = (row * columns + column).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24;
            let _ = write!(text, "{value}{end}");
        }
    }
    text
}

/// Runs the program, which may write files of at most this many blocks of 512 bytes. More is an error, as on a full disk,
/// and not a signal.
fn run_in_blocks(scratch: &Scratch, blocks: u64, args: &str) -> Run {
    scratch.shell(&format!("trap '' XFSZ; ulimit -f {blocks}; exec ironbloom index {args}"))
}

#[test]
fn a_full_disk_is_an_error_and_leaves_everything_as_it_was() {
    let scratch = Scratch::new();
    scratch.write("a.csv", table(6000, 3));
    scratch.write("b.csv", table(6500, 3));
    scratch.run(["index", "build", "a.csv", "-o", "t.ibx"]).succeeds();
    // A second segment of the same table, to be merged.
    scratch.write("a.csv", table(7000, 3));
    scratch.run(["index", "append", "t.ibx", "a.csv"]).succeeds();
    let before = scratch.contents();
    let blocks = scratch.read("t.ibx").len() as u64 / 512;
    assert!(blocks > 40, "{blocks} blocks are no test");
    for args in [
        "build a.csv b.csv -o new.ibx",
        "build a.csv b.csv -o new.ibx --memory 0",
        "build a.csv b.csv -o t.ibx",
        "append t.ibx b.csv",
        "append t.ibx b.csv --memory 0 --threads 2",
        "compact t.ibx",
        "compact t.ibx --memory 0",
    ] {
        for room in [0, 1, 9, blocks / 2] {
            let run = run_in_blocks(&scratch, room, args);
            assert_eq!(run.status, 2, "{args}, {room} blocks: {}", run.stderr);
            let told = run.stderr.trim_end();
            assert!(told.starts_with("error: ") && !told.contains('\n'), "{args}: {told}");
            assert!(told.contains("too large") || told.contains("File too"), "{args}: {told}");
            assert!(scratch.contents() == before, "{args}, {room} blocks: {:?}", scratch.files());
        }
    }
    scratch.run(["index", "verify", "t.ibx", "--tables"]).succeeds();
    // With room, all of them work.
    run_in_blocks(&scratch, 4 * blocks, "append t.ibx b.csv").succeeds();
    run_in_blocks(&scratch, 4 * blocks, "compact t.ibx").succeeds();
}

/// The most memory that a build has had, in bytes.
fn build_memory<const N: usize>(scratch: &Scratch, args: [&str; N]) -> u64 {
    let mut command = scratch.command(args);
    // What the allocator keeps back for each thread differs from run to run.
    command.env("MALLOC_ARENA_MAX", "1").stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.start();
    let mut most = 0;
    // It only grows, until the process ends.
    while child.try_wait().unwrap().is_none() {
        most = most_memory(child.id()).unwrap_or(most);
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(child.wait().unwrap().success());
    most * 1024
}

#[test]
fn a_build_by_several_threads_stays_below_its_memory() {
    const COLUMNS: u64 = 8;
    const ROWS: u64 = 2_000_000;
    const MIB: u64 = 1 << 20;
    let scratch = Scratch::new();
    scratch.write("t.csv", table(ROWS, COLUMNS));
    let build = |memory: &str| {
        let args = ["index", "build", "t.csv", "-o", "t.ibx", "--memory", memory, "--threads", "2"];
        build_memory(&scratch, args)
    };
    let bounded = build("16MiB");
    let most = build("1GiB");
    // What is kept of all rows, four bytes for each cell, is what the bound is about. The program itself and the text that
    // its threads are parsing come on top of it.
    assert!(bounded < (16 + 2 * 42) * MIB, "{bounded} bytes");
    assert!(most > bounded + ROWS * COLUMNS * 2, "{most} bytes, bounded {bounded}");
}

/// Fewer files may be open than an index has tables: those that were not used for the longest time are closed.
#[test]
fn all_tables_are_searched_where_few_files_may_be_open() {
    let scratch = Scratch::new();
    for number in 0..90 {
        scratch.write(&format!("{number:02}.csv"), format!("id,n\n{number},7\n"));
    }
    scratch.run(["index", "build", ".", "-o", "t.ibx"]).succeeds();
    for limit in [24, 64] {
        for command in [
            "find t.ibx 'n = 7' --count",
            "find t.ibx 'n = 7' --count --skip-changed",
            "build . -o again.ibx && ironbloom index find again.ibx 'n = 7' --count | tail -1",
        ] {
            let run = scratch.shell(&format!("ulimit -n {limit}; ironbloom index {command}"));
            assert_eq!(run.status, 0, "{limit} files, {command}: {}", run.stderr);
            assert!(run.text().ends_with("90\n"), "{limit} files, {command}: {}", run.text());
        }
    }
}
