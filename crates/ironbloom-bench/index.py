#!/usr/bin/env python3
"""Rows of a Parquet file by one, two and three columns: `ironbloom index` beside DuckDB.

Writes a table of ten random integer columns with pyarrow's defaults, indexes it, and asks both the same questions in turns, with
everything open and warm. Called by `make bench-index`; prints a Markdown table.

    index.py IRONBLOOM BENCH_INDEX [ROWS]
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

COLUMNS = 10
VALUES = 1_000_000
QUESTIONS = 20
ROUNDS = 5


def write_table(path, rows):
    random = numpy.random.default_rng(1)
    columns = {f"i{i + 1}": random.integers(0, VALUES, rows, dtype=numpy.int32) for i in range(COLUMNS)}
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return columns


def questions(columns, count, hit):
    """Conditions on `count` columns, with the values of an existing row or any values."""
    random = numpy.random.default_rng(count * 2 + hit)
    rows = len(columns["i1"])
    made = []
    for _ in range(QUESTIONS):
        row, first = random.integers(rows), random.integers(COLUMNS)
        names = [f"i{(first + 3 * i) % COLUMNS + 1}" for i in range(count)]
        value = lambda name: columns[name][row] if hit else random.integers(VALUES)
        made.append(" and ".join(f"{name} = {value(name)}" for name in names))
    return made


def ask_duckdb(connection, path, conditions):
    """Rows found, and milliseconds of each query."""
    found, times = 0, []
    for condition in conditions:
        start = time.perf_counter()
        found += connection.execute(f"select count(*) from '{path}' where {condition}").fetchone()[0]
        times.append((time.perf_counter() - start) * 1e3)
    return found, times


def ask_ironbloom(program, index, conditions):
    """Rows found, and the median time of a query in milliseconds."""
    text = "\n".join(conditions) + "\n"
    run = subprocess.run([program, "ask", index, "20"], input=text, capture_output=True, text=True, check=True)
    found, microseconds = run.stdout.split()
    return int(found), float(microseconds) / 1e3


def main():
    ironbloom, bench = sys.argv[1:3]
    rows = int(sys.argv[3]) if len(sys.argv) > 3 else 10_000_000
    with tempfile.TemporaryDirectory() as folder:
        table, index = os.path.join(folder, "t.parquet"), os.path.join(folder, "t.ibx")
        columns = write_table(table, rows)
        start = time.perf_counter()
        subprocess.run([ironbloom, "index", "build", table, "-o", index], check=True, stdout=subprocess.DEVNULL)
        built = time.perf_counter() - start
        size = lambda path: os.path.getsize(path) / 1e6
        print(f"{rows:,} rows, {COLUMNS} columns: Parquet {size(table):.0f} MB, index {size(index):.0f} MB in {built:.1f} s")
        print(f"DuckDB {duckdb.__version__}, pyarrow {pyarrow.__version__}, {os.cpu_count()} cores\n")
        print("| question | DuckDB | ironbloom | times as fast |\n|---|---|---|---|")
        connection = duckdb.connect()
        for count in (1, 2, 3):
            for hit in (True, False):
                conditions = questions(columns, count, hit)
                ask_duckdb(connection, table, conditions[:3])  # warm
                theirs, ours = [], []
                for _ in range(ROUNDS):
                    found, times = ask_duckdb(connection, table, conditions)
                    theirs += times
                    also_found, median = ask_ironbloom(bench, index, conditions)
                    ours.append(median)
                    assert found == also_found, (found, also_found)
                duck, iron = statistics.median(theirs), statistics.median(ours)
                name = f"{count} column{'s' if count > 1 else ''}, {'hit' if hit else 'miss'}"
                print(f"| {name} | {duck:.1f} ms | {iron:.3f} ms | {duck / iron:.0f} |")


if __name__ == "__main__":
    main()
