#!/usr/bin/env python3
"""Ranges, patterns and absent values on a table ordered by time: `ironbloom index` beside DuckDB.

Writes events as they arrive (a time with jitter, a number, a path that changes with the hour, a random amount), indexes them, and asks
both for the number of rows: DuckDB in this process, with its metadata warm, and `ironbloom index find --count` as a process of its
own, from start to end. Called by `make bench-index`; prints a Markdown table.

    index_ordered.py IRONBLOOM [ROWS]
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time

import duckdb
import numpy
import pyarrow
import pyarrow.parquet

ROUNDS = 7
START = numpy.datetime64("2024-01-01T00:00:00", "us")


def write_table(path, rows):
    random = numpy.random.default_rng(1)
    row = numpy.arange(rows, dtype=numpy.int64)
    # Ten events per second, up to a minute late.
    moments = START + (row * 100_000 + random.integers(0, 60_000_000, rows)).astype("timedelta64[us]")
    hours = row // 36_000
    paths = numpy.char.add(numpy.char.add("/archive/", numpy.char.zfill((numpy.arange(hours[-1] + 1)).astype(str), 5)), "/item")
    table = pyarrow.table({
        "time": moments,
        "id": 1_000_000 + 3 * row,
        "path": pyarrow.array(paths).take(pyarrow.array(hours)),
        "amount": random.integers(0, 1_000_000, rows, dtype=numpy.int32),
        "user": random.integers(0, 1_000_000, rows, dtype=numpy.int32),
    })
    pyarrow.parquet.write_table(table, path)


def main():
    ironbloom = sys.argv[1]
    rows = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000_000
    last = 1_000_000 + 3 * rows
    questions = {
        "one minute": "time between '2024-01-05 10:00:00' and '2024-01-05 10:00:59.999999'",
        "one hour": "time >= '2024-01-05 10:00:00' and time < '2024-01-05 11:00:00'",
        "one hour, one user": "time >= '2024-01-05 10:00:00' and time < '2024-01-05 11:00:00' and user < 1000",
        "beginning of a path": "path like '/archive/00106/%'",
        "one id": f"id = {1_000_000 + 3 * (rows // 2)}",
        "an id beyond the last": f"id = {last + 5}",
        "newer than the last": "time > '2030-01-01'",
        "rare, in no order": "amount < 3",
        "half, in no order": "amount < 500000 and id < 1003000",
    }
    with tempfile.TemporaryDirectory() as folder:
        table, index = os.path.join(folder, "t.parquet"), os.path.join(folder, "t.ibx")
        write_table(table, rows)
        subprocess.run([ironbloom, "index", "build", table, "-o", index], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        info = subprocess.run([ironbloom, "index", "info", index], capture_output=True, text=True, check=True).stdout
        print(f"{rows:,} rows: Parquet {os.path.getsize(table) / 1e6:.0f} MB, index {os.path.getsize(index) / 1e6:.1f} MB")
        print(f"DuckDB {duckdb.__version__}, pyarrow {pyarrow.__version__}, {os.cpu_count()} cores\n\n{info}")
        print("| question | rows | blocks named | DuckDB | ironbloom, a process | times as fast |\n|---|---|---|---|---|---|")
        connection = duckdb.connect()
        for name, condition in questions.items():
            theirs, ours = [], []
            for _ in range(ROUNDS):
                start = time.perf_counter()
                found = connection.execute(f"select count(*) from '{table}' where {condition}").fetchone()[0]
                theirs.append((time.perf_counter() - start) * 1e3)
                start = time.perf_counter()
                run = subprocess.run([ironbloom, "index", "find", index, condition, "--count"], capture_output=True, text=True)
                ours.append((time.perf_counter() - start) * 1e3)
                assert run.stdout.strip() == str(found), (condition, found, run)
            told = subprocess.run([ironbloom, "index", "find", index, condition, "--count", "--explain"],
                                  capture_output=True, text=True).stderr
            blocks = next(line for line in told.splitlines() if line.startswith("blocks"))
            duck, iron = statistics.median(theirs), statistics.median(ours)
            print(f"| {name} | {found:,} | {blocks.split('considered, ')[1].split(' candidate')[0]} of {blocks.split()[1]} "
                  f"| {duck:.1f} ms | {iron:.1f} ms | {duck / iron:.1f} |")


if __name__ == "__main__":
    main()
