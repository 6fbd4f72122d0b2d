#!/usr/bin/env python3
"""The index as used from the shell: the cost of a build, and of a query by a new process.

Writes a Parquet file with DuckDB, builds the index (time and peak memory beside DuckDB's scan of the same columns), asks a
question on two columns with everything in the page cache and with nothing of it there, looks up a list of values, and does the
same on many small files. Called by `make bench-index`; prints Markdown.

    index_shell.py IRONBLOOM [ROWS] [FILES] [--beside OLDER_IRONBLOOM]
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

import duckdb
import pyarrow
import pyarrow.parquet

COLUMNS = ["a", "b", "c", "d"]
VALUES = 1_000_000
ROUNDS = 5


def run(*arguments):
    """Seconds, peak memory in MiB and output of a program. The system also counts the memory of this process, until it
    becomes the other program: so the peak is never less than about 130 MiB."""
    start = time.perf_counter()
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE)
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in (0, 1), (arguments, process.returncode)
    return time.perf_counter() - start, usage.ru_maxrss / 1024, text.decode()


def forget(*paths):
    """Drops files from the page cache."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def write_table(path, rows):
    connection = duckdb.connect()
    connection.execute("set threads = 1; select setseed(0.5)")
    columns = ", ".join(f"(random() * {VALUES})::int {name}" for name in COLUMNS)
    connection.execute(f"copy (select {columns} from range({rows})) to '{path}'")


def scan(path):
    """Seconds that DuckDB takes to read all columns, with two threads. (It would take a maximum from the footer.)"""
    connection = duckdb.connect()
    connection.execute("set threads = 2")
    start = time.perf_counter()
    connection.execute(f"select {', '.join(f'sum({name})' for name in COLUMNS)} from '{path}'").fetchall()
    return time.perf_counter() - start


def one_shot(path, condition):
    """Seconds of a DuckDB query in a new process, counted after its module is loaded."""
    program = f"""
import time, duckdb
start = time.perf_counter()
found = duckdb.connect().execute("select count(*) from '{path}' where {condition}").fetchone()[0]
print(time.perf_counter() - start, found)"""
    seconds, found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    return float(seconds), int(found)


def builds(programs, table, folder):
    print("| build | time | peak memory | of DuckDB's scan |\n|---|---|---|---|")
    times = {name: [] for name in programs}
    scans, peaks = [], dict.fromkeys(programs, 0)
    for _ in range(3):
        scans.append(scan(table))
        for name, program in programs.items():
            seconds, peak, _ = run(program, "index", "build", table, "-o", os.path.join(folder, f"{name}.ibx"))
            times[name].append(seconds)
            peaks[name] = max(peaks[name], peak)
    scanned = statistics.median(scans)
    for name, all_times in times.items():
        built = statistics.median(all_times)
        print(f"| {name} | {built:.1f} s | {peaks[name]:.0f} MiB | {built / scanned:.1f} |")
    print(f"| DuckDB, sums of the same columns, two threads | {scanned:.1f} s | | |\n")


def questions(program, table, index):
    row = duckdb.connect().execute(f"select a, b from '{table}' limit 1 offset 4711").fetchone()
    condition = f"a = {row[0]} and b = {row[1]}"
    print("| one question on two columns | ironbloom, whole process | DuckDB, after start | times as fast |\n|---|---|---|---|")
    for name, is_cold in (("warm", False), ("not in the page cache", True)):
        ours, theirs = [], []
        for _ in range(ROUNDS):
            if is_cold:
                forget(table, index)
            seconds, found = one_shot(table, condition)
            theirs.append(seconds)
            if is_cold:
                forget(table, index)
            seconds, _, text = run(program, "index", "find", index, condition, "--count")
            assert int(text) == found, (text, found)
            ours.append(seconds)
        iron, duck = statistics.median(ours), statistics.median(theirs)
        print(f"| {name} | {iron * 1e3:.1f} ms | {duck * 1e3:.0f} ms | {duck / iron:.0f} |")
    print()


def values(program, table, index, folder, count):
    """A list of values, each of which occurs in some rows."""
    path = os.path.join(folder, "ids.txt")
    with open(path, "w") as out:
        out.writelines(f"{value}\n" for value in range(count))
    seconds, peak, text = run(program, "index", "find", index, "--values", path, "--column", "a", "--count")
    start = time.perf_counter()
    query = f"select count(*) from '{table}' where a in (select column0 from read_csv('{path}', header = false))"
    found = duckdb.connect().execute(query).fetchone()[0]
    duck = time.perf_counter() - start
    assert int(text) == found, (text, found)
    print(f"{count:,} values by --values: {seconds:.1f} s, {peak:.0f} MiB; DuckDB {duck:.1f} s; {found:,} rows\n")


def many_files(program, folder, files):
    parts = os.path.join(folder, "parts")
    os.mkdir(parts)
    for number in range(files):
        rows = range(number * 1000, (number + 1) * 1000)
        table = {"a": [row * 7919 % VALUES for row in rows], "b": [row * 104_729 % VALUES for row in rows]}
        pyarrow.parquet.write_table(pyarrow.table(table), os.path.join(parts, f"{number:05}.parquet"))
    index = os.path.join(folder, "parts.ibx")
    seconds, peak, _ = run(program, "index", "build", parts, "-o", index)
    opened = statistics.median(run(program, "index", "info", index)[0] for _ in range(ROUNDS))
    row = files * 500
    condition = f"a = {row * 7919 % VALUES} and b = {row * 104_729 % VALUES}"
    found = statistics.median(run(program, "index", "find", index, condition, "--count")[0] for _ in range(ROUNDS))
    print(
        f"{files:,} files of 1,000 rows: built in {seconds:.1f} s ({peak:.0f} MiB), opened and described in {opened * 1e3:.0f} ms, "
        f"a question on two columns in {found * 1e3:.0f} ms, each with the start of the process"
    )


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("ironbloom")
    arguments.add_argument("rows", nargs="?", type=int, default=100_000_000)
    arguments.add_argument("files", nargs="?", type=int, default=3000)
    arguments.add_argument("--beside", help="another ironbloom, for instance an older one")
    arguments.add_argument("--table", help="a table with columns a, b, c and d, instead of a new one")
    arguments = arguments.parse_args()
    programs = {"ironbloom": arguments.ironbloom}
    if arguments.beside:
        programs["beside"] = arguments.beside
    with tempfile.TemporaryDirectory() as folder:
        table = arguments.table or os.path.join(folder, "t.parquet")
        if not arguments.table:
            write_table(table, arguments.rows)
        index = os.path.join(folder, "ironbloom.ibx")
        print(f"DuckDB {duckdb.__version__}, {os.cpu_count()} cores, {os.path.getsize(table) / 1e6:.0f} MB of Parquet\n")
        builds(programs, table, folder)
        print(f"Index: {os.path.getsize(index) / 1e6:.0f} MB\n")
        questions(arguments.ironbloom, table, index)
        values(arguments.ironbloom, table, index, folder, min(arguments.rows // 100, 1_000_000))
        many_files(arguments.ironbloom, folder, arguments.files)


if __name__ == "__main__":
    main()
