"""The index finds exactly the rows that pandas would, whatever the condition."""

from __future__ import annotations

import datetime as dt
import decimal
import os
import pathlib
import pickle
import subprocess
import sys
import threading
from typing import Any

import duckdb
import ironbloom as ib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

ROWS = 20_000
UTC = dt.timezone.utc


def rows(start: int = 0, count: int = ROWS) -> pa.Table:
    rng = np.random.default_rng(start + 18)
    numbers = np.arange(start, start + count)
    return pa.table(
        {
            "id": numbers,
            "user": rng.integers(0, 500, count),
            "country": pa.array(rng.choice(["SE", "NO", "DK", "O'Hara"], count)),
            "score": pa.array(rng.random(count).round(3), mask=rng.random(count) < 0.1),
            "time": pa.array([dt.datetime(2024, 1, 1) + dt.timedelta(seconds=int(n)) for n in numbers]),
            "seen": pa.array([dt.datetime(2024, 1, 1, tzinfo=UTC) + dt.timedelta(hours=int(n)) for n in numbers], pa.timestamp("us", "UTC")),
            "day": pa.array([dt.date(2024, 1, 1) + dt.timedelta(days=int(n) % 300) for n in numbers]),
            "price": pa.array([decimal.Decimal(int(n) % 1000) / 100 for n in numbers], pa.decimal128(10, 2)),
            "flag": rng.random(count) < 0.5,
            "raw": pa.array([bytes([int(n) % 256]) for n in numbers], pa.binary()),
        }
    )


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return rows()


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory, table: pa.Table) -> ib.Index:
    folder = tmp_path_factory.mktemp("index")
    pq.write_table(table.slice(0, 12_000), folder / "a.parquet", row_group_size=2000)
    pq.write_table(table.slice(12_000), folder / "b.parquet", row_group_size=2000)
    return ib.Index.build(folder / "*.parquet", folder / "t.ibx")


# A condition as text, the same built in Python, and the same for pandas.
CONDITIONS: list[tuple[str, Any, Any]] = [
    ("id = 17000", ib.col("id") == 17000, lambda t: t.id == 17000),
    ("user = 7 and country = 'SE'", (ib.col("user") == 7) & (ib.col("country") == "SE"), lambda t: (t.user == 7) & (t.country == "SE")),
    ("user in (1, 2, 3) or country = 'O''Hara' and flag = true", ib.col("user").isin([1, 2, 3]) | ((ib.col("country") == "O'Hara") & (ib.col("flag") == True)), lambda t: t.user.isin([1, 2, 3]) | ((t.country == "O'Hara") & t.flag)),  # noqa: E712
    ("score is null and user = 5", ib.col("score").is_null() & (ib.col("user") == 5), lambda t: t.score.isna() & (t.user == 5)),
    ("score is not null and user = 5", (ib.col("score") != None) & (ib.col("user") == 5), lambda t: t.score.notna() & (t.user == 5)),  # noqa: E711
    ("not user > 3", ~(ib.col("user") > 3), lambda t: t.user <= 3),
    ("score < 0.002", ib.col("score") < 0.002, lambda t: t.score < 0.002),
    ("id between 5 and 9", ib.col("id").between(5, 9), lambda t: t.id.between(5, 9)),
    ("id >= 19998 or id <= 1", (ib.col("id") >= 19998) | (ib.col("id") <= 1), lambda t: (t.id >= 19998) | (t.id <= 1)),
    ("country != 'SE' and user = 9", (ib.col("country") != "SE") & (ib.col("user") == 9), lambda t: (t.country != "SE") & (t.user == 9)),
    ("time = '2024-01-01 00:01:40'", ib.col("time") == dt.datetime(2024, 1, 1, 0, 1, 40), lambda t: t.id == 100),
    ("seen = '2024-01-05 04:00:00+00:00'", ib.col("seen") == dt.datetime(2024, 1, 5, 5, tzinfo=dt.timezone(dt.timedelta(hours=1))), lambda t: t.id == 100),
    ("day = '2024-01-02' and user = 5", (ib.col("day") == dt.date(2024, 1, 2)) & (ib.col("user") == np.int64(5)), lambda t: (t.id % 300 == 1) & (t.user == 5)),
    ("price = 1.5 and user = 5", (ib.col("price") == decimal.Decimal("1.50")) & (ib.col("user") == 5), lambda t: (t.id % 1000 == 150) & (t.user == 5)),
    ("raw = x'07' and user = 1", (ib.col("raw") == b"\x07") & (ib.col("user") == 1), lambda t: (t.id % 256 == 7) & (t.user == 1)),
    ("id = -1", ib.col("id") == -1, lambda t: t.id == -1),
    ("score in (0.5, 0.25)", ib.col("score").isin(np.array([0.5, 0.25])), lambda t: t.score.isin([0.5, 0.25])),
    ("user = 5 and (score is null or score = 0.5)", (ib.col("user") == 5) & ib.col("score").isin([None, 0.5]), lambda t: (t.user == 5) & (t.score.isna() | (t.score == 0.5))),
]


@pytest.mark.parametrize(("text", "built", "model"), CONDITIONS, ids=[text for text, _, _ in CONDITIONS])
def test_the_rows_are_those_that_match(index: ib.Index, table: pa.Table, text: str, built: Any, model: Any) -> None:
    frame = table.to_pandas()
    expected = list(frame[model(frame)]["id"])
    for condition in (text, built, repr(built)):
        found = index.find(condition, select=["id", "country"])
        assert found.column_names == ("id", "country")
        assert found.to_pyarrow()["id"].to_pylist() == expected
        batches = pa.RecordBatchReader.from_stream(index.find_batches(condition, "id")).read_all()
        assert batches["id"].to_pylist() == expected
        assert [row for batch in index.find_batches(condition, "id") for row in batch.to_pyarrow()["id"].to_pylist()] == expected
        inside = {path: ranges for path, ranges in index.candidates(condition).items()}
        for row in expected:
            name, number = ("a.parquet", row) if row < 12_000 else ("b.parquet", row - 12_000)
            ranges = next(ranges for path, ranges in inside.items() if path.endswith(name))
            assert any(start <= number < end for start, end in ranges)
    explained = index.explain(built)
    assert explained["rows_found"] == len(expected)
    assert explained["candidate_blocks"] <= explained["blocks"]


@given(st.recursive(
    st.one_of(
        st.tuples(st.just("user"), st.sampled_from(["==", "!=", "<", ">="]), st.integers(-1, 12)),
        st.tuples(st.just("country"), st.just("in"), st.lists(st.sampled_from(["SE", "NO", "XX", None]), max_size=3)),
        st.tuples(st.just("score"), st.just("null"), st.none()),
    ),
    lambda inner: st.one_of(st.tuples(st.just("and"), inner, inner), st.tuples(st.just("or"), inner, inner)),
    max_leaves=5,
))
def test_random_conditions_find_what_pandas_finds(small: tuple[ib.Index, pd.DataFrame], tree: Any) -> None:
    index, frame = small
    condition, expected = both(tree, frame)
    assert list(index.find(condition, "id").to_pandas()["id"]) == list(frame[expected]["id"])


def both(tree: Any, frame: pd.DataFrame) -> Any:
    """The condition for the index and the rows for pandas."""
    if tree[0] == "and" or tree[0] == "or":
        (one, left), (two, right) = both(tree[1], frame), both(tree[2], frame)
        return (one & two, left & right) if tree[0] == "and" else (one | two, left | right)
    name, operator, value = tree
    column, series = ib.col(name), frame[name]
    if operator == "null":
        return column.is_null(), series.isna()
    if operator == "in":
        return column.isin(value), series.isin(value)
    return {
        "==": lambda: (column == value, series == value),
        "!=": lambda: (column != value, series != value),
        "<": lambda: (column < value, series < value),
        ">=": lambda: (column >= value, series >= value),
    }[operator]()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[ib.Index, pd.DataFrame]:
    folder = tmp_path_factory.mktemp("small")
    table = rows(0, 3000).select(["id", "user", "country", "score"])
    user = pa.array(table["user"].to_numpy() % 12)
    table = table.set_column(1, "user", user)
    return ib.Index.build(table, folder / "s.ibx", block_rows=64), table.to_pandas()


def test_results_go_to_every_library(index: ib.Index) -> None:
    found = index.find("user = 7", ["id", "country"])
    assert len(found) == found.num_rows > 10
    frames = [found.to_pandas(), found.to_pyarrow().to_pandas(), found.to_polars().to_pandas(), pl.DataFrame(found).to_pandas()]
    frames.append(pl.from_arrow(found.to_pyarrow()).to_pandas())
    frames.append(duckdb.sql("select * from found").df())
    for frame in frames:
        assert list(frame["id"]) == list(frames[0]["id"]) and list(frame.columns) == ["id", "country"]
    assert found.to_pylist()[0]["id"] == frames[0]["id"][0]
    nothing = index.find("id = -1")
    assert nothing.num_rows == 0 and nothing.column_names[0] == "id"
    assert nothing.to_pyarrow().schema.field("seen").type == pa.timestamp("us", "UTC")
    assert "rows of id" in repr(nothing)


def test_other_libraries_read_only_the_row_groups_that_matter(index: ib.Index, table: pa.Table) -> None:
    condition = (ib.col("id") == 17_003) | (ib.col("id") == 5)
    groups = index.row_groups(condition)
    assert {os.path.basename(path): numbers for path, numbers in groups.items()} == {"a.parquet": [0], "b.parquet": [2]}
    several = index.row_groups(ib.col("id").isin([5, 2500, 11_999]))
    assert list(several.values()) == [[0, 1, 5]]
    dataset = index.dataset(condition)
    assert dataset.to_table().num_rows == 4000
    found = dataset.to_table(filter=(ds.field("id") == 17_003) | (ds.field("id") == 5), columns=["id"])
    assert found["id"].to_pylist() == [5, 17_003]
    lazy = pl.scan_pyarrow_dataset(dataset).filter(pl.col("id").is_in([5, 17_003])).select("id")
    assert lazy.collect()["id"].to_list() == [5, 17_003]
    connection = duckdb.connect()
    connection.register("events", dataset)
    assert connection.sql("select id from events where id in (5, 17003) order by id").fetchall() == [(5,), (17_003,)]
    assert index.dataset("id = -1").to_table().num_rows == 0


def test_conditions_that_do_not_fit_are_errors(index: ib.Index) -> None:
    for wrong in ("usr = 7", "user = 'x'", "user =", "user = 7 and", ib.col("usr") == 7, ib.col("user") == "x"):
        with pytest.raises(ib.InvalidCondition):
            index.find(wrong)
    with pytest.raises(ib.InvalidCondition, match="no column nothing"):
        index.find("user = 7", ["nothing"])
    with pytest.raises(TypeError, match="col"):
        index.find(7)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="neither true nor false"):
        ib.col("a") == 1 and ib.col("b") == 2  # noqa: B015
    for value in (object(), [1], 1j):
        with pytest.raises(TypeError):
            ib.col("a") == value  # noqa: B015
    with pytest.raises(TypeError):
        ib.col("a").isin("text")
    with pytest.raises(TypeError):
        ib.col("a") < None  # noqa: B015
    with pytest.raises(ValueError):
        ib.col("a") == float("nan")  # noqa: B015


def test_long_chains_are_flat_and_deep_ones_are_refused(index: ib.Index) -> None:
    chain = ib.col("id") == 0
    for number in range(1, 2000):
        chain = chain | (ib.col("id") == number)
    assert index.find(chain, "id").num_rows == 2000
    deep = ib.col("id") == 0
    with pytest.raises(ib.InvalidCondition, match="nested"):
        for _ in range(200):
            deep = (deep & (ib.col("id") == 1)) | (ib.col("id") == 2)


def test_an_index_follows_its_tables(tmp_path: pathlib.Path) -> None:
    pq.write_table(rows(0, 1000), tmp_path / "a.parquet")
    index = ib.Index.build([tmp_path / "a.parquet"], tmp_path / "t.ibx", columns=["id", "user"])
    assert index.columns == ["id", "user"] and index.tables == ["a.parquet"]
    pq.write_table(rows(1000, 1000), tmp_path / "b.parquet")
    index.append(str(tmp_path / "b.parquet"))
    index.append(rows(2000, 1000), parquet=tmp_path / "c.parquet")
    assert index.tables == ["a.parquet", "b.parquet", "c.parquet"]
    assert index.find("id in (5, 1005, 2005)", "id").num_rows == 3
    index.compact()
    info = index.info()
    assert info["rows"] == 3000 and info["segments"] == 1 and set(info["columns"]) == {"id", "user"}
    index.drop(tmp_path / "b.parquet")
    index.drop("c.parquet")
    assert index.tables == ["a.parquet"] and index.find("id in (5, 1005)").num_rows == 1
    with pytest.raises(KeyError, match="no table z"):
        index.drop("z")
    assert index.verify() == [] and index.verify(tables=True) == []
    other = pickle.loads(pickle.dumps(index))
    assert other.find("id = 5").num_rows == 1
    assert "1,000 rows" in repr(index)
    with pytest.raises(TypeError, match="parquet="):
        index.append(rows(0, 10))
    with pytest.raises(FileExistsError):
        index.append(rows(0, 10), parquet=tmp_path / "a.parquet")
    with pytest.raises(ib.Error):
        index.append(tmp_path / "a.parquet")


def test_a_grown_csv_is_appended(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text("id;name\n1;alice\n2;NA\n")
    index = ib.Index.build(path, tmp_path / "log.ibx", csv={"delimiter": ";", "nulls": ["NA"], "types": {"id": "text"}})
    assert index.find("id = '2' and name is null").num_rows == 1
    with path.open("a") as log:
        log.write("3;bob\n")
    with pytest.raises(ib.TableChanged):
        index.find("id = '1'")
    index.append(path)
    assert index.find("name = 'bob'").to_pylist() == [{"id": "3", "name": "bob"}]
    for wrong in ({"delimiter": "ab"}, {"what": 1}, {"types": {"id": "colour"}}):
        with pytest.raises((TypeError, ValueError)):
            ib.Index.build(path, tmp_path / "x.ibx", csv=wrong)
    assert not (tmp_path / "x.ibx").exists()


def test_streams_and_tables_of_other_libraries_become_tables(tmp_path: pathlib.Path) -> None:
    table = rows(0, 5000).select(["id", "user", "country"])
    sources = [
        table,
        table.to_reader(1000),
        pl.DataFrame(table),
        duckdb.from_arrow(table),
        table.to_batches()[0],
    ]
    for number, source in enumerate(sources):
        index = ib.Index.build(source, tmp_path / f"{number}.ibx", columns=["id"])
        assert (tmp_path / f"{number}.parquet").exists()
        assert index.find("id = 4321", "user").to_pylist() == [{"user": table["user"][4321].as_py()}]

    def failing() -> Any:
        yield from table.to_batches(max_chunksize=100)
        raise ValueError("the source has failed")

    reader = pa.RecordBatchReader.from_batches(table.schema, failing())
    with pytest.raises(ValueError, match="the source has failed"):
        ib.Index.build(reader, tmp_path / "failed.ibx")
    assert not (tmp_path / "failed.parquet").exists() and not (tmp_path / "failed.ibx").exists()


def test_a_changed_table_is_an_error_only_where_it_matters(tmp_path: pathlib.Path) -> None:
    for name, start in (("a", 0), ("b", 1000)):
        pq.write_table(rows(start, 1000), tmp_path / f"{name}.parquet")
    index = ib.Index.build(tmp_path, tmp_path / "t.ibx")
    pq.write_table(rows(5000, 1000), tmp_path / "b.parquet")
    assert index.find("id = 5").num_rows == 1
    with pytest.raises(ib.TableChanged, match="b.parquet"):
        index.find("id = 1005")
    found = index.find("id in (5, 1005)", skip_changed=True)
    assert found.num_rows == 1 and "b.parquet" in found.skipped[0]
    assert any("b.parquet" in error for error in index.verify(tables=True))
    (tmp_path / "b.parquet").unlink()
    with pytest.raises((ib.TableChanged, FileNotFoundError)):
        index.find("id = 1005")
    assert index.find("id = 5").num_rows == 1


def test_files_that_are_no_index_or_no_table(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError):
        ib.Index(tmp_path / "missing.ibx")
    (tmp_path / "x.ibx").write_bytes(b"not an index at all" * 10)
    with pytest.raises(ib.DamagedFile):
        ib.Index(tmp_path / "x.ibx")
    pq.write_table(rows(0, 10), tmp_path / "a.parquet")
    with pytest.raises(ib.Refused, match="is not an Ironbloom index"):
        ib.Index.build(tmp_path / "a.parquet", tmp_path / "x.ibx")
    with pytest.raises(FileNotFoundError):
        ib.Index.build(tmp_path / "z*.parquet", tmp_path / "t.ibx")
    with pytest.raises(FileNotFoundError):
        ib.Index.build(tmp_path / "z.parquet", tmp_path / "t.ibx")
    with pytest.raises(ib.InvalidParameter, match="nothing"):
        ib.Index.build(tmp_path / "a.parquet", tmp_path / "t.ibx", columns=["nothing"])
    with pytest.raises(ib.InvalidParameter):
        ib.Index.build(tmp_path / "a.parquet", tmp_path / "t.ibx", block_rows=7)
    whole = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "half.parquet").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "lines.csv").write_text("a,b\n1,2\n1,2,3\n")
    for damaged in ("half.parquet", "lines.csv"):
        with pytest.raises(ib.DamagedFile, match=damaged):
            ib.Index.build(tmp_path / damaged, tmp_path / "t.ibx")
    index = ib.Index.build(tmp_path / "a.parquet", tmp_path / "t.ibx")
    data = bytearray((tmp_path / "t.ibx").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "t.ibx").write_bytes(data)
    with pytest.raises(ib.DamagedFile):
        problems = ib.Index(tmp_path / "t.ibx").verify()
        raise ib.DamagedFile(problems[0])
    assert index.info()["rows"] == 10


def test_progress_is_told_and_can_end_the_work(tmp_path: pathlib.Path) -> None:
    pq.write_table(rows(0, 1000).select(["id"]), tmp_path / "a.parquet")
    big = pa.table({"id": np.random.default_rng(1).integers(0, 2**60, 3_000_000)})
    pq.write_table(big, tmp_path / "b.parquet")
    told: list[int] = []
    ib.Index.build(tmp_path / "b.parquet", tmp_path / "t.ibx", progress=told.append)
    assert told and told == sorted(told) and all(0 <= rows <= 3_000_000 for rows in told)
    before = (tmp_path / "t.ibx").read_bytes()

    def stop(rows: int) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        ib.Index.build(tmp_path / "b.parquet", tmp_path / "t.ibx", progress=stop)
    assert (tmp_path / "t.ibx").read_bytes() == before
    with pytest.raises(LookupError, match="enough"):
        ib.Index.build(tmp_path / "b.parquet", tmp_path / "new.ibx", progress=stop)
    assert sorted(os.listdir(tmp_path)) == ["a.parquet", "b.parquet", "t.ibx"]


INTERRUPTED = """
import os, signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever starts tests in the background ignores it
import ironbloom as ib
folder, what = sys.argv[1:]
if what == "find":
    index = ib.Index(os.path.join(folder, "t.ibx"))
def later():
    time.sleep(0.25)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=later).start()
try:
    for _ in range(10_000):
        if what == "find":
            index.find("not id = 5 and not id = 6 and name = 'x'")
        else:
            ib.Index.build(os.path.join(folder, "b.parquet"), os.path.join(folder, "new.ibx"), progress=False)
except KeyboardInterrupt:
    if what == "find":
        assert index.find("id = 5").num_rows >= 0
    print("interrupted")
"""


@pytest.mark.parametrize("what", ["find", "build"])
def test_ctrl_c_ends_a_search_and_a_build(tmp_path: pathlib.Path, what: str) -> None:
    numbers = np.arange(1_000_000)
    pq.write_table(pa.table({"id": numbers, "name": pa.array(numbers % 7).cast(pa.string())}), tmp_path / "b.parquet")
    ib.Index.build(tmp_path / "b.parquet", tmp_path / "t.ibx", columns=["id"])
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, str(tmp_path), what],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )
    assert done.stdout.strip() == "interrupted", done.stdout + done.stderr
    leftovers = {name for name in os.listdir(tmp_path) if name not in ("b.parquet", "t.ibx", "new.ibx")}
    assert not leftovers


def test_threads_search_side_by_side(index: ib.Index) -> None:
    wrong: list[Any] = []

    def work(user: int) -> None:
        for _ in range(5):
            found = index.find(ib.col("user") == user, "user").to_pyarrow()["user"].to_pylist()
            if set(found) != {user}:
                wrong.append(found)

    threads = [threading.Thread(target=work, args=(user,)) for user in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_stream_that_nobody_reads_to_its_end_is_let_go(index: ib.Index) -> None:
    for _ in range(50):
        batches = index.find_batches("not user = 5", "id")
        next(batches)
        del batches
    assert threading.active_count() < 20
