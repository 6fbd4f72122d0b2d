#!/usr/bin/env python3
"""Questions that want much of a table, which an index cannot narrow down: `ironbloom index` beside DuckDB.

Writes a table with DuckDB, indexes all columns, and asks both in turns: DuckDB in this process with two threads, and `ironbloom index find` as a new process, from start to end. Called by `make bench-index`; prints a
Markdown table with medians, of the time and of the time of processors, which depends less on what else the machine does.

    index_scan.py IRONBLOOM [ROWS] [--beside OLDER_IRONBLOOM]
"""

import argparse
import os
import random
import resource
import statistics
import subprocess
import tempfile
import time

import duckdb

ROUNDS = 5
COLUMNS = """
    i id, (random() * 1000000)::int u, (hash(i) % 1000)::int n, random() * 1000 x, 'name ' || (hash(i * 7) % 100000) name,
    date '2020-01-01' + (i * 2000 // {rows})::int as day
"""


def questions(rows):
    """A name, the condition, how rows are shown, and what DuckDB does with the rows."""
    listed = random.Random(3).sample(range(1_000_000), 10_000)
    return [
        ("count, half by a column of integers", "u < 500000", ["--count"], None),
        ("count, half by a column of floats", "x < 500", ["--count"], None),
        ("count, a quarter by two columns", "u < 500000 and n < 500", ["--count"], None),
        ("count, half by a column of text", "name > 'name 5'", ["--count"], None),
        ("count, half, of a column in order", f"id < {rows // 2}", ["--count"], None),
        ("count, one value of 1,000", "n = 7", ["--count"], None),
        ("count, `IN` of 10,000 values", f"u in ({', '.join(map(str, listed))})", ["--count"], None),
        ("one column of one value of 1,000, CSV", "n = 7", ["--select", "id", "--format", "csv"], "id"),
        ("one column of half, CSV", "x < 500", ["--select", "id", "--format", "csv"], "id"),
        ("one column of half, Parquet", "x < 500", ["--select", "id", "--format", "parquet"], "id"),
        ("half with all columns, Parquet", "x < 500", ["--format", "parquet"], "*"),
    ]


def processor_time(who):
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


class Watch:
    """The time that a question takes, and the time of processors."""

    def __init__(self, who):
        self.who, self.start, self.used = who, time.perf_counter(), processor_time(who)

    def read(self):
        return time.perf_counter() - self.start, processor_time(self.who) - self.used


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ironbloom")
    parser.add_argument("rows", type=int, nargs="?", default=20_000_000)
    parser.add_argument("--beside", action="append", default=[])
    args = parser.parse_args()
    programs = [args.ironbloom, *args.beside]
    with tempfile.TemporaryDirectory() as folder:
        table, index, output = (os.path.join(folder, name) for name in ("t.parquet", "t.ibx", "out"))
        connection = duckdb.connect()
        connection.execute("set threads = 2; select setseed(0.5)")
        connection.execute(f"copy (select {COLUMNS.format(rows=args.rows)} from range({args.rows}) t(i)) to '{table}'")
        subprocess.run([args.ironbloom, "index", "build", table, "-o", index], check=True, stdout=subprocess.DEVNULL)
        print("| question | DuckDB | " + " | ".join(f"{os.path.basename(name)} | of its time | of its processor time" for name in programs) + " |")
        print("|---" * (2 + 3 * len(programs)) + "|")
        for name, condition, shown, selected in questions(args.rows):
            form = "csv" if "csv" in shown else "parquet"
            query = f"select {selected or 'count(*)'} from '{table}' where {condition}"
            sql = query if selected is None else f"copy ({query}) to '{output}' (format {form})"
            times = {program: [] for program in ["DuckDB", *programs]}
            # The first round is not counted.
            for _ in range(ROUNDS + 1):
                watch = Watch(resource.RUSAGE_SELF)
                known = connection.execute(sql).fetchall()
                times["DuckDB"].append(watch.read())
                for program in programs:
                    with open(output, "wb") as out:
                        watch = Watch(resource.RUSAGE_CHILDREN)
                        subprocess.run([program, "index", "find", index, condition, *shown], check=True, stdout=out)
                        times[program].append(watch.read())
                    if selected is None:
                        assert int(open(output).read()) == known[0][0], (program, condition, known)
            middle = {program: [statistics.median(part) for part in zip(*some[1:])] for program, some in times.items()}
            theirs, used = middle["DuckDB"]
            ours = " | ".join(f"{all * 1e3:.0f} ms | {all / theirs:.2f} | {mine / used:.2f}" for all, mine in (middle[program] for program in programs))
            print(f"| {name} | {theirs * 1e3:.0f} ms | {ours} |", flush=True)


if __name__ == "__main__":
    main()
