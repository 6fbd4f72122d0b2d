"""Partitioned tables as DuckDB and pyarrow write them: the program finds and shows what DuckDB does.

    python hive.py PROGRAM FOLDER
"""

import pathlib
import random
import sys

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from asking import Program, compare

program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
r = random.Random(11)

CONDITIONS = [
    "country = 'SE' and id = 77",
    "country = 'NO' or id = 78",
    "country is null and n = 3",
    "country is not null and not (country in ('SE', 'å b/c')) and n = 3",
    "day = '2026-01-02' and n = 4",
    "day between '2026-01-02' and '2026-01-03' and country > 'N' and n = 5",
    "not (day > '2026-01-01' or n > 2)",
    "shard = 7 and n = 1",
    "shard in (1, 2) and (country = 'DK' or day = '2026-01-01') and n < 3",
    "country = 'nowhere'",
    "code = '01' and n = 2",
    "id in (1, 2, 3)",
]


def ask(name, files, build=(), conditions=CONDITIONS, read=""):
    index = folder / f"{name}.ibx"
    asked = Program(program, index)
    asked.run("build", *files, "-o", index, "--block-rows", 64, *build)
    known = duckdb.sql(f"select * from read_parquet({list(map(str, files))}{read})")
    for condition in conditions:
        wanted = known.filter(condition)
        wanted = [dict(zip(known.columns, row)) for row in wanted.fetchall()]
        compare(f"{name}: {condition}", asked.find(condition), wanted)
    return asked


def table(rows):
    countries = ["SE", "NO", "DK", "å b/c", "x=y", None]
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "n": pa.array([r.randrange(6) for _ in range(rows)], pa.int32()),
            "country": pa.array([r.choice(countries) for _ in range(rows)]),
            "day": pa.array([["2026-01-01", "2026-01-02", "2026-01-03"][r.randrange(3)] for _ in range(rows)]),
            "shard": pa.array([r.randrange(3) * 3 + 1 for _ in range(rows)], pa.int64()),
            "code": pa.array([["01", "12"][r.randrange(2)] for _ in range(rows)]),
        }
    )


rows = table(4000)
parts = ["country", "day", "shard", "code"]

# As DuckDB writes: the columns are in the folders only.
by_duckdb = folder / "by duckdb"
duckdb.sql(f"copy (select * from rows) to '{by_duckdb}' (format parquet, partition_by (country, day, shard, code))")
files = sorted(by_duckdb.rglob("*.parquet"))
assert len(files) > 100, len(files)
ask("duckdb", files)

# In the files, too, with other values, which do not count.
both = folder / "both"
for number, place in enumerate(["country=SE/day=2026-01-02", "country=NO/day=2026-01-03"]):
    (both / place).mkdir(parents=True)
    pq.write_table(rows.slice(number * 100, 100).select(["id", "country", "n"]), both / place / "part.parquet")
files = sorted(both.rglob("*.parquet"))
few = ["country = 'SE' and n = 2", "country = 'NO'", "day = '2026-01-03' and n = 1", "country = 'DK'"]
ask("both", files, conditions=few)
off = ["country = 'SE' and n = 2", "country = 'DK'", "country is null"]
ask("off", files, build=["--hive", "off"], conditions=off, read=", hive_partitioning = false")
types = ["day = '2026-01-03' and n = 1", "day > '2026'"]
ask("types", files, build=["--hive-types", "day:text"], conditions=types, read=", hive_types = {'day': varchar}")

# New folders: more values, and then one that changes the type of the column.
asked = ask("grown", [both / "country=SE/day=2026-01-02/part.parquet"], conditions=few)
for place in ["country=NO/day=2026-01-03", "country=FI/day=someday"]:
    (both / place).mkdir(parents=True, exist_ok=True)
    if not (both / place / "part.parquet").exists():
        pq.write_table(rows.slice(300, 100).select(["id", "country", "n"]), both / place / "part.parquet")
    asked.run("append", asked.index, both / place / "part.parquet")
known = duckdb.sql(f"select * from read_parquet('{both}/**/*.parquet')")
for condition in ["day = 'someday' and n = 1", "day = '2026-01-02' and n = 1", "country = 'FI'"]:
    wanted = [dict(zip(known.columns, row)) for row in known.filter(condition).fetchall()]
    compare(f"grown: {condition}", asked.find(condition), wanted)

# Rows in the order of their values: as DuckDB orders them, and equal ones as they come.
index = folder / "order.ibx"
asked = Program(program, index)
asked.run("build", *sorted(by_duckdb.rglob("*.parquet")), "-o", index, "--block-rows", 64)
known = duckdb.sql(f"select * from read_parquet('{by_duckdb}/**/*.parquet')")
for order, more, sql in [
    ("n,id desc", [], "n, id desc"),
    ("country desc,id", ["--limit", "37"], "country desc nulls last, id limit 37"),
    ("day,shard desc,id", ["--limit", "5000"], "day, shard desc, id limit 5000"),
]:
    wanted = [row[0] for row in known.filter("n < 4").select("*").query("t", f"select id from t order by {sql}").fetchall()]
    found = [row["id"] for row in asked.find("n < 4", "--select", "id", "--order", order, *more)]
    assert found == wanted, f"--order {order}: {found[:10]} instead of {wanted[:10]}"
