#!/usr/bin/env python3
"""Rows of a PostgreSQL table by any columns: ironbloom beside contrib/bloom, BRIN with bloom filters, ten B-trees and no index.

Starts a private server, makes a table of ten random integer columns, and for each kind of index in turn: builds it, asks the same
questions with everything warm (the execution time that EXPLAIN ANALYZE reports, the best of three for each constant), and
inserts a million rows. Builds and inserts are the median of three; those of ten B-trees are done once. Called by `make bench-postgres`; prints Markdown tables.

    postgres.py LIBRARY PG_CONFIG          ROWS=10000000   ONLY="ironbloom;no index"
                                           GROWTH=1 (100 M rows of two columns, instead)   LISTS=1 (lists beside single values, instead)
                                           WRITES=1 (inserts and updates beside a table without an index, instead)   ROUNDS=7
"""

import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROWS = int(os.environ.get("ROWS", "10000000"))
MORE = ROWS // 10
COLUMNS = [f"i{i}" for i in range(1, 11)]
VALUES = 1_000_000
QUESTIONS = 20
REPEATS = 3
SETTINGS = {
    "shared_buffers": "2GB",
    "maintenance_work_mem": "1GB",
    # A hundred million rows need the disk to themselves.
    "max_wal_size": "2GB" if os.environ.get("GROWTH") else "16GB",
    "checkpoint_timeout": "1h",
    "autovacuum": "off",
    "listen_addresses": "",
}
COLUMN_LIST = ", ".join(COLUMNS)
BRIN = "int4_bloom_ops(n_distinct_per_range = 1920, false_positive_rate = 0.01)"

# Statements that create the indexes of each kind, and settings that make the planner use them if it does not by itself.
KINDS = {
    "ironbloom": ([f"create index on t using ironbloom ({COLUMN_LIST})"], ""),
    "ironbloom, selectivity 14": ([f"create index on t using ironbloom ({COLUMN_LIST}) with (selectivity = 14)"], ""),
    "contrib/bloom": ([f"create index on t using bloom ({COLUMN_LIST})"], "set enable_seqscan = off;"),
    "no index": ([], ""),
    "BRIN bloom, tuned": ([f"create index on t using brin ({c} {BRIN}) with (pages_per_range = 16)" for c in COLUMNS], ""),
    "ten B-trees": ([f"create index on t ({c})" for c in COLUMNS], ""),
}


def place():
    """Where a server can run: the name of a socket has 107 bytes at most, and the server's user must be able to pass to it."""
    folder = pathlib.Path(tempfile.gettempdir())
    passable = os.getuid() != 0 or all(parent.stat().st_mode & 0o001 for parent in [folder, *folder.parents])
    return folder if len(str(folder)) <= 60 and passable else "/tmp"


class Server:
    def __init__(self, library, config):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ironbloom-bench-", dir=place()))
        script = pathlib.Path(__file__).parent.parent / "ironbloom-postgres" / "server.sh"
        made = subprocess.run(["bash", script, self.folder / "server", library, config], check=True, capture_output=True, text=True)
        self.bin = pathlib.Path(made.stdout.strip())
        self.user = []
        if os.getuid() == 0:
            self.folder.chmod(0o755)
            subprocess.run(["chown", "-R", "postgres", self.folder], check=True)
            self.user = ["runuser", "-u", "postgres", "--"]
        self.run("initdb", "-A", "trust", "-U", "postgres", "--encoding=UTF8", "--locale=C.UTF-8", "-D", self.folder / "data")
        with open(self.folder / "data/postgresql.conf", "a") as conf:
            conf.writelines(f"{name} = '{value}'\n" for name, value in SETTINGS.items())
        self.run("pg_ctl", "-D", self.folder / "data", "-l", self.folder / "log", "-o", f"-k {self.folder}", "-w", "start")

    def run(self, program, *arguments):
        subprocess.run([*self.user, self.bin / program, *arguments], check=True, cwd=self.folder, stdout=subprocess.DEVNULL)

    def sql(self, text):
        psql = [self.bin / "psql", "-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-h", self.folder, "-U", "postgres"]
        # In English, which `timed` reads.
        words = {**os.environ, "LC_ALL": "C.UTF-8"}
        return subprocess.run(psql, input=text, check=True, capture_output=True, text=True, cwd=self.folder, env=words).stdout.strip()

    def timed(self, text):
        """Seconds of one statement."""
        printed = self.sql(f"\\timing on\n{text};")
        return sum(float(ms) for ms in re.findall(r"^Time: ([0-9.]+) ms", printed, re.M)) / 1e3

    def stop(self):
        self.run("pg_ctl", "-D", self.folder / "data", "-m", "immediate", "-w", "stop")
        shutil.rmtree(self.folder)


def questions(server, count):
    """Conditions on some columns, each with the values of an existing row."""
    rows = server.sql(f"select setseed({count / 10}); select {COLUMN_LIST} from base tablesample system_rows({QUESTIONS});").splitlines()[1:]
    made = []
    for number, row in enumerate(rows):
        values = row.split("|")
        places = [(number + 3 * i) % len(COLUMNS) for i in range(count)]
        made.append(" and ".join(f"{COLUMNS[place]} = {values[place]}" for place in places))
    return made


def ask(server, setup, conditions, table="t"):
    """The median of the best times of each condition, in milliseconds."""
    explain = "explain (analyze, timing off, buffers off)"
    asked = "".join(f"{explain} select * from {table} where {condition};\n" * (REPEATS + 1) for condition in conditions)
    printed = server.sql(setup + asked)
    times = [float(ms) for ms in re.findall(r"Execution Time: ([0-9.]+) ms", printed)]
    assert len(times) == len(conditions) * (REPEATS + 1)
    # The first of each is a warm-up.
    best = [min(times[i + 1 : i + 1 + REPEATS]) for i in range(0, len(times), REPEATS + 1)]
    return statistics.median(best)


def in_list(server, column, count):
    values = server.sql(f"select {column} from base tablesample system_rows({count});").split()
    return f"{column} in ({', '.join(values)})"


def measure(server, name):
    statements, setup = KINDS[name]
    server.sql("drop table if exists t; create table t as select * from base; vacuum (freeze, analyze) t; checkpoint;")
    repeats = 1 if name == "ten B-trees" else 3
    builds = []
    for repeat in range(repeats):
        server.sql("checkpoint;")
        builds.append(sum(server.timed(statement) for statement in statements))
        if repeat + 1 < repeats:
            made = server.sql("select indexrelid::regclass from pg_index where indrelid = 't'::regclass;").split()
            server.sql("".join(f"drop index {index};" for index in made))
    build = statistics.median(builds)
    size = int(server.sql("select pg_indexes_size('t');"))
    server.sql("vacuum analyze t; checkpoint;")
    answer = {"build": build, "size": size / 2**20}
    for count in (1, 2, 3):
        answer[count] = ask(server, setup, ASKED[count])
    answer["in 1"] = ask(server, setup, [f"i3 = {VALUES_OF_LIST[0].split('(')[1].split(',')[0]}"])
    answer["in 100"] = ask(server, setup, VALUES_OF_LIST)
    answer["in 100, and"] = ask(server, setup, [f"{condition} and i8 = 5" for condition in VALUES_OF_LIST])
    inserts = []
    for _ in range(repeats):
        server.sql("checkpoint;")
        inserts.append(server.timed("insert into t select * from more"))
        if len(inserts) == 1:
            answer["after load 1"] = ask(server, setup, ASKED[1])
            answer["after load 2"] = ask(server, setup, ASKED[2])
    answer["insert"] = statistics.median(inserts)
    return answer


def seed_table(server):
    global ASKED, VALUES_OF_LIST
    made = ", ".join(f"trunc(random() * {VALUES})::int as {column}" for column in COLUMNS)
    server.sql("create extension ironbloom; create extension bloom; create extension tsm_system_rows;")
    server.sql(f"select setseed(0.1); create table base as select {made} from generate_series(1, {ROWS});")
    server.sql(f"create table more as select {made} from generate_series(1, {MORE}); vacuum (freeze, analyze) more; vacuum (freeze, analyze) base;")
    ASKED = {count: questions(server, count) for count in (1, 2, 3)}
    VALUES_OF_LIST = [in_list(server, "i3", 100)]


def ten_columns(server):
    seed_table(server)
    version, heap = server.sql("show server_version; select pg_relation_size('base');").splitlines()
    print(f"PostgreSQL {version}, {ROWS:,} rows, heap {int(heap) / 2**20:.0f} MiB")
    print()
    print("| | build | size | 1 / 2 / 3 columns | after the load, 1 / 2 | 1 of / 100 in a list / and another | rows inserted |")
    print("|---|---|---|---|---|---|---|")
    only = os.environ.get("ONLY")
    for name in KINDS:
        if only and name not in only.split(";"):
            continue
        a = measure(server, name)
        print(
            f"| {name} | {a['build']:.2f} s | {a['size']:.1f} MiB | {a[1]:.3f} / {a[2]:.3f} / {a[3]:.3f} ms "
            f"| {a['after load 1']:.3f} / {a['after load 2']:.3f} ms "
            f"| {a['in 1']:.3f} / {a['in 100']:.2f} / {a['in 100, and']:.3f} ms | {a['insert']:.2f} s |",
            flush=True,
        )


def growth(server):
    """Two columns, ten times as many rows."""
    server.sql("create extension ironbloom; create extension tsm_system_rows;")
    print("| rows | build | size | 2 columns |\n|---|---|---|---|")
    for rows in (ROWS, 10 * ROWS):
        server.sql(f"drop table if exists base; select setseed(0.1); create table base as select trunc(random() * {VALUES})::int as i1, trunc(random() * {VALUES})::int as i2 from generate_series(1, {rows}); vacuum (freeze, analyze) base;")
        build = server.timed("create index on base using ironbloom (i1, i2)")
        size = int(server.sql("select pg_indexes_size('base');")) / 2**20
        pairs = [row.split("|") for row in server.sql(f"select i1, i2 from base tablesample system_rows({QUESTIONS});").splitlines()]
        both = ask(server, "", [f"i1 = {a} and i2 = {b}" for a, b in pairs], "base")
        print(f"| {rows:,} | {build:.2f} s | {size:.1f} MiB | {both:.3f} ms |", flush=True)


def lists(server):
    """The cost of a list of a hundred values compared with one of them, and of fetching its rows alone."""
    seed_table(server)
    print("| | size | 1 value | 100 in a list | |\n|---|---|---|---|---|")

    def show(name, table, column, values, size="–"):
        one = ask(server, "", [f"{column} = {value}" for value in values[:QUESTIONS]], table)
        many = ask(server, "", [f"{column} in ({', '.join(values)})"], table)
        print(f"| {name} | {size} | {one:.3f} ms | {many:.3f} ms | {many / one:.0f} × |", flush=True)

    def with_index(name, table, column, values, definition):
        server.sql(f"create index one on {table} {definition}; vacuum analyze {table};")
        show(name, table, column, values, f"{int(server.sql('select pg_relation_size($$one$$);')) / 2**20:.0f} MiB")
        server.sql("drop index one;")

    # Every value ten times, and every value once.
    server.sql(f"create table u as select (row_number() over ())::int as a, {COLUMN_LIST} from base order by i1; vacuum (freeze, analyze) u;")
    for name, table, column in (("ten rows a value", "base", "i3"), ("one row a value", "u", "a")):
        values = server.sql(f"select {column} from {table} tablesample system_rows(100);").split()
        server.sql(f"create index one on {table} ({column});")
        found = "\n".join(f"select string_agg(quote_literal(ctid), ', ') from {table} where {column} = {value};" for value in values)
        rows = server.sql(found).splitlines()
        server.sql("drop index one;")
        one = ask(server, "", [f"ctid in ({row})" for row in rows[:QUESTIONS]], table)
        many = ask(server, "", [f"ctid in ({', '.join(rows)})"], table)
        print(f"| {name}: the rows themselves, by ctid | – | {one:.3f} ms | {many:.3f} ms | {many / one:.0f} × |", flush=True)
        with_index(f"{name}: B-tree", table, column, values, f"({column})")
        for selectivity in (10, 14, 20):
            definition = f"using ironbloom ({column}) with (selectivity = {selectivity})"
            with_index(f"{name}: ironbloom, selectivity {selectivity}", table, column, values, definition)


# The statement that writes to a table, how many of its columns are indexed, and where it has room: on half of each page, or where
# rows were deleted.
APPEND = "insert into {t} select *, 0 from more"
WRITES = {
    "append": (10, None, APPEND),
    "append, three columns indexed": (3, None, APPEND),
    "append, row by row, each its own transaction": (10, None, None),
    "into the free space of old pages": (10, "deleted", APPEND),
    "update of an unindexed column, within pages (HOT)": (10, "half", "update {t} set note = note + 1 where i1 % 4 = 3"),
    "update of an unindexed column, to new pages": (10, None, "update {t} set note = note + 1 where i1 % 4 = 3"),
    "update of an indexed column, to new pages": (10, None, "update {t} set i1 = i1 + 1 where i2 % 4 = 3"),
}


def single_rows(table):
    """Ten thousand rows, each its own transaction."""
    values = ", ".join(f"i * {7 + place} % {VALUES}" for place in range(len(COLUMNS)))
    return f"do $$ begin for i in 1..10000 loop insert into {table} values ({values}, 0); commit; end loop; end $$"


def writes(server):
    """The same writes to a table without an index and to one with it, in turns."""
    rows, rounds = min(ROWS, 1_000_000), int(os.environ.get("ROUNDS", "7"))
    made = ", ".join(f"trunc(random() * {VALUES})::int as {column}" for column in COLUMNS)
    server.sql("create extension ironbloom; select setseed(0.1);")
    server.sql(f"create table base as select {made} from generate_series(1, {rows}); create table more as select {made} from generate_series(1, {rows // 2});")
    server.sql("vacuum (freeze, analyze) base, more;")
    # Processor time of the session, which hardly depends on what else runs on the machine.
    worked = "select split_part(pg_read_file('/proc/self/schedstat'), ' ', 1)"
    ratios, times = {}, {}
    for number in range(rounds):
        for what, (columns, room, statement) in WRITES.items():
            seconds = {}
            for table in ("plain", "indexed")[:: 1 if number % 2 else -1]:
                fill = 50 if room == "half" else 100
                server.sql(f"drop table if exists {table}; create table {table} with (fillfactor = {fill}, autovacuum_enabled = off) as select *, 0 as note from base;")
                if table == "indexed":
                    server.sql(f"create index on indexed using ironbloom ({', '.join(COLUMNS[:columns])});")
                if room == "deleted":
                    server.sql(f"delete from {table} where i1 % 2 = 0;")
                server.sql(f"vacuum (freeze, analyze) {table}; checkpoint;")
                written = (statement or single_rows("{t}")).format(t=table)
                before, after = map(int, server.sql(f"{worked}; {written}; {worked};").split())
                seconds[table] = (after - before) / 1e9
            times.setdefault(what, []).append((seconds["plain"], seconds["indexed"]))
            ratios.setdefault(what, []).append(seconds["indexed"] / seconds["plain"])
    print(f"{rows:,} rows, {rounds} rounds; processor time of the session, medians")
    print("\n| | no index | ironbloom | |\n|---|---|---|---|")
    for what, pairs in times.items():
        plain, indexed = (statistics.median(side) for side in zip(*pairs))
        low, high = min(ratios[what]), max(ratios[what])
        print(f"| {what} | {plain:.3f} s | {indexed:.3f} s | {statistics.median(ratios[what]):.2f} × ({low:.2f} to {high:.2f}) |", flush=True)


if __name__ == "__main__":
    # Our server must not be left behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    server = Server(sys.argv[1], sys.argv[2])
    try:
        others = {"GROWTH": growth, "LISTS": lists, "WRITES": writes}
        measured = [others[name] for name in others if os.environ.get(name)] or [ten_columns]
        measured[0](server)
    finally:
        server.stop()
