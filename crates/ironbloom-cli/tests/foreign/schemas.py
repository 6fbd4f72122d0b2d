"""Files of pyarrow, DuckDB and people that have not all the same columns, or odd values: what is indexed can be asked and shown.

    python schemas.py PROGRAM FOLDER NAME
"""

import datetime
import itertools
import pathlib
import random
import subprocess
import sys

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from asking import Program, Rows, ask, compare

program, folder = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()


def as_parquet(asked, condition):
    done = subprocess.run([program, "index", "find", asked.index, condition, "--format", "parquet"], capture_output=True, check=True)
    return pq.read_table(pa.BufferReader(done.stdout))


def columns_of_any_order():
    """Files with more, fewer, wider and other columns, in every order, built at once and appended: one schema."""
    rows = Rows(1)
    base = [("id", pa.int64()), ("n", pa.int32())]
    parts = {
        "a": rows.make(pa.schema(base), 60),
        "b": rows.make(pa.schema([*base, ("extra", pa.string())]), 70),
        "c": rows.make(pa.schema([("extra", pa.string()), ("x", pa.float64()), *base]), 50),
        "d": rows.make(pa.schema([("id", pa.int64()), ("n", pa.int64()), ("x", pa.int32()), ("list", pa.list_(pa.int32()))]), 40),
    }
    for name, part in parts.items():
        pq.write_table(part, folder / f"{name}.parquet")
    known = pa.concat_tables(parts.values(), promote_options="permissive")
    r = random.Random(1)
    for number, order in enumerate(itertools.permutations(parts)):
        files = [folder / f"{name}.parquet" for name in order]
        asked = Program(program, folder / "t.ibx")
        asked.run("build", *files, "-o", asked.index, "--block-rows", 64)
        ask(r, f"built of {order}", asked, known)
        told = {column["column"] for column in asked.info()["columns"]}
        assert told == {"id", "n", "extra", "x"}, (order, told)
        types = {field.name: field.type for field in as_parquet(asked, "id >= 0").schema}
        wanted = {"id": pa.int64(), "n": pa.int64(), "extra": pa.string(), "x": pa.float64(), "list": pa.list_(pa.int32())}
        assert {name: str(kind).replace("element", "item") for name, kind in types.items()} == {
            name: str(kind).replace("element", "item") for name, kind in wanted.items()
        }, (order, types)
        if number % 4:
            continue
        for columns in [[], ["--columns", "id"], ["--columns", "extra,id"]]:
            built, appended = files[:2], files[2:]
            if "extra" in str(columns) and not {"b", "c"} & set(order[:2]):
                continue
            asked = Program(program, folder / "appended.ibx")
            asked.run("build", *built, "-o", asked.index, "--block-rows", 64, *columns)
            # What is indexed as integers stays so.
            has_integers = not columns and "d" in order[:2] and "c" not in order[:2]
            if has_integers:
                said = asked.run("append", asked.index, folder / "c.parquet", status=(2,)).stderr
                assert "column x" in said and "c.parquet" in said, said
                continue
            for file in appended:
                asked.run("append", asked.index, file)
            ask(r, f"appended, {order} {columns}", asked, known, questions=5)
            asked.run("compact", asked.index)
            ask(r, f"compacted, {order} {columns}", asked, known, questions=3)
            asked.run("drop", asked.index, files[0])
            asked.run("verify", asked.index, "--tables")
            found = {row["id"] for row in asked.find("id >= 0")}
            gone = set(parts[order[0]]["id"].to_pylist())
            assert found == set(known["id"].to_pylist()) - gone, order
            asked.run("append", asked.index, files[0])
            ask(r, f"again, {order} {columns}", asked, known, questions=3)


def csv_columns_of_any_order():
    texts = {"a": "id,n\n1,5\n2,6\n", "b": "id,n,extra\n3,7,x\n4,8,\n", "c": "extra,id,day\ny,5,2024-01-01\n"}
    for name, text in texts.items():
        (folder / f"{name}.csv").write_text(text)
    wanted = {
        1: {"id": 1, "n": 5, "extra": None, "day": None},
        2: {"id": 2, "n": 6, "extra": None, "day": None},
        3: {"id": 3, "n": 7, "extra": "x", "day": None},
        4: {"id": 4, "n": 8, "extra": None, "day": None},
        5: {"id": 5, "n": None, "extra": "y", "day": "2024-01-01"},
    }
    for order in itertools.permutations(texts):
        asked = Program(program, folder / "c.ibx")
        asked.run("build", *(folder / f"{name}.csv" for name in order), "-o", asked.index)
        find = lambda condition: {row["id"]: row for row in asked.find(condition)}
        assert find("id > 0") == wanted, (order, find("id > 0"))
        assert set(find("extra is null")) == {1, 2, 4} and set(find("extra = 'x'")) == {3}, order
        assert set(find("day = '2024-01-01' or n = 6")) == {2, 5}, order
    # A file that grows keeps its columns.
    with open(folder / "a.csv", "a") as file:
        file.write("6,9\n")
    asked.run("append", asked.index, folder / "a.csv")
    assert find("n = 9") == {6: {"id": 6, "n": 9, "extra": None, "day": None}}


def integers_beside_floats():
    """A column that has integers in one file and floats in another is one of floats."""
    for place, columns in enumerate([[], ["--columns", "id"]]):
        for order in [["f", "i"], ["i", "f"]]:
            pq.write_table(pa.table({"x": [1.5, 2.0, None], "id": [1, 2, 3]}), folder / "f.parquet")
            pq.write_table(pa.table({"x": [1, 2, 2**53], "id": [4, 5, 6]}), folder / "i.parquet")
            asked = Program(program, folder / f"{place}{order[0]}.ibx")
            asked.run("build", *(folder / f"{name}.parquet" for name in order), "-o", asked.index, *columns)
            ids = lambda condition: sorted(row["id"] for row in asked.find(condition))
            for condition, wanted in [("x = 2", [2, 5]), ("x > 0.5", [1, 2, 4, 5, 6]), ("x is null", [3]), ("x in (1, 1.5)", [1, 4])]:
                assert ids(condition) == wanted, (order, columns, condition, ids(condition))
    # One that no float is equal to is refused, by its file and column, before anything is shown.
    pq.write_table(pa.table({"x": [2**53 + 1], "id": [7]}), folder / "i.parquet")
    asked = Program(program, folder / "exact.ibx")
    said = asked.run("build", folder / "f.parquet", folder / "i.parquet", "-o", asked.index, status=(2,)).stderr
    assert "i.parquet" in said and "column x" in said and "damaged" not in said, said


def seconds_with_a_zone():
    """Parquet has no seconds: the zone that pyarrow keeps for such a column counts as it does for other units."""
    moments = [datetime.datetime(2024, 6, 1, hour, tzinfo=datetime.timezone.utc) for hour in range(24)]
    for unit in ["s", "ms", "us", "ns"]:
        table = pa.table({"id": list(range(24)), "t": pa.array(moments, pa.timestamp(unit, tz="Europe/Berlin"))})
        pq.write_table(table, folder / f"{unit}.parquet")
        asked = Program(program, folder / f"{unit}.ibx")
        asked.run("build", folder / f"{unit}.parquet", "-o", asked.index)
        for condition, wanted in [("t = '2024-06-01 12:00'", [10]), ("t = '2024-06-01 12:00Z'", [12]), ("t < '2024-06-01 03:00'", [0])]:
            found = asked.find(condition)
            assert [row["id"] for row in found] == wanted, (unit, condition, found)
        assert asked.find("id = 10")[0]["t"] == "2024-06-01T12:00:00+02:00", unit


def ends_of_time():
    """Days and moments that stand for ever, as DuckDB writes them, are shown and asked for."""
    values = "(1, 'infinity'::date, 'infinity'::timestamp, 'infinity'::timestamptz), (2, '-infinity', '-infinity', '-infinity'), (3, '2024-01-01', '2024-01-01', '2024-01-01'), (4, '5881580-07-09', '294247-01-10', '2024-01-01')"
    duckdb.sql(f"copy (select * from (values {values}) t(id, d, t, z)) to '{folder}/inf.parquet' (format parquet)")
    asked = Program(program, folder / "inf.ibx")
    asked.run("build", folder / "inf.parquet", "-o", asked.index)
    for form in ["table", "csv", "jsonl"]:
        asked.run("find", asked.index, "id > 0", "--format", form)
    assert as_parquet(asked, "id > 0").num_rows == 4
    for row in asked.find("id > 0"):
        for name in ("d", "t", "z"):
            found = [other["id"] for other in asked.find(f"{name} = '{row[name]}'")]
            assert row["id"] in found, (row, name, found)
    assert asked.find("d > '2100-01-01'")[0]["d"] == "5881580-07-11"


def files_that_others_read():
    """pyarrow's file of no rows with timestamps of 96 bits; DuckDB's integers whose differences do not fit into 32 bits."""
    empty = pa.table({"t": pa.array([], pa.timestamp("ns")), "x": pa.array([], pa.int64())})
    pq.write_table(empty, folder / "int96.parquet", use_deprecated_int96_timestamps=True)
    asked = Program(program, folder / "int96.ibx")
    asked.run("build", folder / "int96.parquet", "-o", asked.index)
    assert asked.find("x = 1") == []
    duckdb.sql(f"copy (select * from (values ((-2147483648)::int), (2147483647), (0), (null)) t(x)) to '{folder}/v2.parquet' (format parquet, parquet_version v2)")
    asked = Program(program, folder / "v2.ibx")
    # The differences are of 33 bits. pyarrow refuses such a file, too; the format says that 32 suffice and overflows wrap.
    said = asked.run("build", folder / "v2.parquet", "-o", asked.index, status=(2,)).stderr
    assert "damaged" not in said and "write it with parquet_version v1" in said and "  " not in said, said
    for values in ["((-1)::int), (2147483646), (0)", "(1::int), (2), (3), (null)"]:
        duckdb.sql(f"copy (select * from (values {values}) t(x)) to '{folder}/v2.parquet' (format parquet, parquet_version v2)")
        asked.run("build", folder / "v2.parquet", "-o", asked.index)
        assert asked.find("x > 0") == [{"x": x} for (x,) in duckdb.sql(f"select x from '{folder}/v2.parquet' where x > 0").fetchall()]


def names_that_are_empty():
    pq.write_table(pa.table([pa.array([1, 2]), pa.array([3, 4])], names=["", "id"]), folder / "e.parquet")
    asked = Program(program, folder / "e.ibx")
    asked.run("build", folder / "e.parquet", "-o", asked.index)
    assert asked.find("id = 3", "--select", '""') == [{"": 1}]
    assert asked.find('"" = 2', "--select", 'id,""', "--order", '""') == [{"id": 4, "": 2}]


def fractions_among_integers():
    rows = Rows(2)
    numbers = rows.make(pa.schema([("id", pa.int64()), ("n", pa.int32())]), 200)
    pq.write_table(numbers, folder / "n.parquet")
    asked = Program(program, folder / "n.ibx")
    asked.run("build", folder / "n.parquet", "-o", asked.index, "--block-rows", 64)
    known = {row["id"]: row for row in numbers.to_pylist()}
    for condition in ["n = 1.5", "n != 1.5", "n > 0.5", "n in (1.5, 7)", "n not in (1.5, 7)", "n not in (0.5)", "not (n = 2.5)", "n between 1.5 and 3.5"]:
        ids = duckdb.sql(f"select id from numbers where {condition}").fetchall()
        compare(condition, asked.find(condition), [known[id] for (id,) in ids])


def offsets_and_words_in_csv():
    (folder / "t.csv").write_text("id,at,local,mixed\n1,2024-06-01T12:00:00+02:00,2024-06-01T12:00:00,2024-06-01T12:00:00Z\n2,2024-06-01T11:30:00Z,2024-06-01 11:00:00,2024-06-01T12:00:00\n3,,,\n")
    asked = Program(program, folder / "t.ibx")
    asked.run("build", folder / "t.csv", "-o", asked.index)
    found = asked.find("id > 0")
    assert [row["at"] for row in found] == ["2024-06-01T10:00:00Z", "2024-06-01T11:30:00Z", None], found
    assert [row["local"] for row in found] == ["2024-06-01T12:00:00", "2024-06-01T11:00:00", None], found
    assert [row["mixed"] for row in found] == ["2024-06-01T12:00:00Z", "2024-06-01T12:00:00", None], found
    for condition in ["at = '2024-06-01 12:00+02:00'", "at < '2024-06-01 11:00'", "at <= '2024-06-01 12:00 Europe/Oslo'", "mixed = '2024-06-01T12:00:00Z'"]:
        assert [row["id"] for row in asked.find(condition)] == [1], condition
    # As it was when the file has grown, and for whoever asks next.
    with open(folder / "t.csv", "a") as file:
        file.write("4,2024-06-01T23:00:00-05:00,2024-06-02T00:00:00,x\n")
    asked.run("append", asked.index, folder / "t.csv")
    assert asked.find("id = 4")[0]["at"] == "2024-06-02T04:00:00Z"
    (folder / "na.csv").write_text("id,x\n1,5\n2,NA\n3,7\n")
    asked = Program(program, folder / "na.ibx")
    asked.run("build", folder / "na.csv", "-o", asked.index)
    for condition in ["x = 5", "x > 5"]:
        said = asked.run("find", asked.index, condition, status=(2,)).stderr
        assert "--null NA" in said and "'5'" in said, said
    asked.run("build", folder / "na.csv", "-o", asked.index, "--null", "NA")
    assert [row["id"] for row in asked.find("x > 5")] == [3]


if __name__ == "__main__":
    globals()[sys.argv[3]]()
