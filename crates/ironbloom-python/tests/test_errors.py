"""No panic reaches Python, every file opens or is an `ib.Error`, and what failed leaves nothing behind."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import os
import pathlib
import random
from collections.abc import Callable
from typing import Any

import ironbloom as ib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import GOLDEN, LIBRARY_GOLDEN, every_kind
from test_law_of_columns import ARROW, arrow_column

WRONG: list[Callable[[], Any]] = [
    lambda: ib.Bloom(-1),
    lambda: ib.Bloom(2**64),
    lambda: ib.Bloom(0),
    lambda: ib.Bloom(100, 0.0),
    lambda: ib.Bloom(100, 2.0),
    lambda: ib.Bloom(100, math.nan),
    lambda: ib.Bloom(100, seed=-1),
    lambda: ib.Bloom.of_bits(100, 2**40),
    lambda: ib.Bloom.of_bits(-1, 3),
    lambda: ib.Bloom.of_bits(0, 0),
    lambda: ib.Scalable(100, stages="cuckoo"),
    lambda: ib.Scalable(100, growth=0),
    lambda: ib.Scalable(100, tightening=2.0),
    lambda: ib.BinaryFuse(["a"], arity=5),
    lambda: ib.BinaryFuse(["a"], arity=-1),
    lambda: ib.BinaryFuse([[]]),
    lambda: ib.Windowed.of_time(-1.0, 100),
    lambda: ib.Windowed.of_time(math.inf, 100),
    lambda: ib.Windowed.of_time(60, 100).advance_to(-1.0),
    lambda: ib.Windowed.of_time(60, 100).advance_to(math.nan),
    lambda: ib.Bitmap(-1),
    lambda: ib.Bitmap(10).add(10),
    lambda: ib.Bitmap(10).add("a"),
    lambda: ib.Joint(100, 0.01, []),
    lambda: ib.Joint(100, 0.01, ["a", "a"]),
    lambda: ib.Joint(100, 0.01, ["a", "b"]).add(("x",)),
    lambda: ib.Joint(100, 0.01, ["a", "b"]).add({"a": 1, "c": 2}),
    lambda: ib.Joint(100, 0.01, ["a", "b"]).add_many(pa.table({"a": [1]})),
    lambda: ib.Joint(100, 0.01, ["a", "b"]).add("text"),
    lambda: ib.Joint(100, 0.01, ["a", "b"]).contains(a=1),
    lambda: ib.Bloom(100) | ib.Bloom(200),
    lambda: ib.Bloom(100) | ib.Cuckoo(100),
    lambda: ib.Bloom(100).remove("a"),
    lambda: ib.Bloom(100).add([]),
    lambda: ib.key_bytes(((((object(),),),),)),
    lambda: ib.dedup([], rate=5.0),
    lambda: ib.dedup([], window=-1),
    lambda: ib.dedup([], window=0),
    lambda: list(ib.dedup([[]])),
    lambda: ib.dedup_table(pa.table({"a": [1]}), "b"),
    lambda: ib.dedup_table(pa.table({"a": [[1]]}), "a"),
    lambda: ib.plan(-1, 0.01),
    lambda: ib.plan(100, memory=-1),
    lambda: ib.plan(100, 5.0).recommended,
    lambda: ib.Guard({}, -1),
    lambda: ib.Guard({}, 100, 7.0),
    lambda: ib.Guard({}, kind="bloom"),
    lambda: ib.guarded(ttl=-1.0)(print),
    lambda: ib.from_bytes(b""),
    lambda: ib.from_bytes(b"IBF"),
    lambda: ib.Cuckoo.from_bytes(ib.Bloom(100).to_bytes()),
    lambda: (ib.col("a") == math.nan),
    lambda: ib.Index.build([], "/nowhere.ibx", block_rows=-1),
    lambda: ib.Index.build([], "/nowhere.ibx", selectivity=2**40),
    lambda: ib.Index.build([], "/nowhere.ibx", memory=-1),
    lambda: ib.Index.build([], "/nowhere.ibx", threads=-1),
    lambda: ib.Index.build([], "/nowhere.ibx", csv={"delimiter": "ab"}),
    lambda: ib.Bloom(100).add_many(pl.Series([[1]])),
    lambda: ib.Bloom(100).add_many(np.array([1j])),
    lambda: ib.Bloom(100).add("\ud800"),
    lambda: "\ud800" in ib.Bloom(100),
    lambda: ib.Bloom(100).add(("\ud800", 1)),
    lambda: ib.Bloom(100).add_many(["\ud800"]),
    lambda: ib.Bloom(100).add_many(np.array(["\ud800"])),
    lambda: ib.key_bytes("\ud800"),
    lambda: list(ib.dedup(["\ud800"])),
    lambda: ib.dedup_table(pd.DataFrame({"a": ["\ud800"]}, dtype=object)),
    lambda: ib.dedup_table(pd.DataFrame({"a": [[1]]})),
    lambda: ib.Joint(100, 0.01, ["a"]).add_many(pd.DataFrame({"a": [[1], "b"]})),
]


def full() -> list[ib.Filter]:
    """Filters of integers that take no more."""
    filters: list[ib.Filter] = [ib.Cuckoo(10), ib.Cuckoo.packed(10), ib.DLeft(10), ib.Joint(10, 0.01, ["a", "b"])]
    for filter in filters:
        for number in range(20_000):
            try:
                filter.add((number, number) if isinstance(filter, ib.Joint) else number)
            except ib.Full:
                pass
    return [*filters, ib.BinaryFuse([1, 2, 3]), ib.Bitmap(10)]


@pytest.mark.parametrize("filter", full(), ids=lambda filter: filter.kind)
def test_a_refused_key_leaves_the_filter_as_it_was_to_the_last_bit(filter: ib.Filter) -> None:
    key: Any = ("a", "b") if isinstance(filter, ib.Joint) else "text"
    columns: list[Any] = [[key], [key] * 3]
    if isinstance(filter, ib.Joint):
        columns += [pa.table({"a": ["a"], "b": ["b"]}), pd.DataFrame({"a": ["a"], "b": [b"b"]})]
    else:
        columns += [pa.array([key]), np.array([key]), pd.Series([key])]
    before, types = filter.to_bytes(), filter.key_types
    with pytest.raises(ib.Error):
        filter.add(key)
    for column in columns:
        for _ in range(20):
            with pytest.raises(ib.Error):
                filter.add_many(column)
    with pytest.raises(ib.Error):
        filter.update([key])
    assert filter.to_bytes() == before and filter.key_types == types


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_a_wrong_value_is_an_error_of_ironbloom(number: int) -> None:
    with pytest.raises(ib.Error):
        WRONG[number]()


def test_errors_are_also_those_that_python_has_for_them() -> None:
    assert issubclass(ib.InvalidKey, TypeError) and issubclass(ib.InvalidParameter, ValueError)
    assert issubclass(ib.UnknownName, KeyError) and str(ib.UnknownName("no column a")) == "no column a"
    assert all(issubclass(getattr(ib, name), ib.Error) for name in ib.__all__ if isinstance(getattr(ib, name), type) and issubclass(getattr(ib, name), BaseException))


@pytest.mark.parametrize("path", sorted([*LIBRARY_GOLDEN.glob("*.ibf"), *GOLDEN.glob("*.ibf")]), ids=lambda path: path.name)
def test_every_file_opens(path: pathlib.Path) -> None:
    for filter in (ib.open(path), ib.open(path, mmap=True), ib.from_bytes(path.read_bytes())):
        assert filter.kind and repr(filter) and filter.to_bytes() and filter.describe() is not None
        assert filter == filter.copy()
        try:
            filter.contains_many(["a", "b"])
        except ib.Error:
            pass


def test_damaged_files_are_errors_and_never_panics(tmp_path: pathlib.Path) -> None:
    chance = random.Random(28)
    path = tmp_path / "damaged.ibf"
    for whole in [filter.to_bytes() for filter in every_kind()]:
        for _ in range(40):
            bytes = bytearray(whole)
            for _ in range(chance.randint(1, 3)):
                bytes[chance.randrange(min(len(bytes), 200))] = chance.randrange(256)
            if chance.random() < 0.3:
                del bytes[chance.randrange(len(bytes)) :]
            path.write_bytes(bytes)
            for read in (lambda: ib.from_bytes(bytes), lambda: ib.open(path), lambda: ib.open(path, mmap=True)):
                try:
                    read()
                except (ib.Error, MemoryError):
                    pass


NOT_IN_PARQUET = {"interval"}


@pytest.mark.parametrize("name", [*ARROW, "categorical", "enum", "views", "object", "int128"])
def test_a_table_of_any_type_is_indexed_or_refused_and_leaves_nothing(name: str, tmp_path: pathlib.Path) -> None:
    if name in ARROW:
        type, _ = ARROW[name]
        values = {"bool": True, "date": dt.date(2020, 1, 1), "time-": dt.time(1), "timestamp": dt.datetime(2020, 1, 1)}
        value: Any = next((v for start, v in values.items() if name.startswith(start)), 1)
        if name.startswith(("string", "large_string", "json")):
            value = "a"
        elif "list" in name:
            value = [1]
        elif name.startswith(("binary", "large_binary", "fixed", "uuid")):
            value = b"12345678" * (2 if name == "uuid" else 1)
        elif name == "duration" or name.startswith("duration"):
            value = dt.timedelta(1)
        elif name.startswith("decimal"):
            value = decimal.Decimal(1000)
        elif name in ("float16",):
            value = np.float16(1)
        value = {"struct": {"a": 1}, "map": [("a", 1)], "interval": pa.MonthDayNano((1, 2, 3)), "null": None, "bool8": 1}.get(name, value)
        table: Any = pa.table({"x": arrow_column(type, [value]), "n": [1]})
    elif name == "views":
        dictionary = pa.DictionaryArray.from_arrays(pa.array([0, 0]), pa.array(["a"], pa.string_view()))
        table = pa.table({"x": dictionary, "n": [1, 2]})
    else:
        dtypes = {"categorical": pl.Categorical, "enum": pl.Enum(["a"]), "object": pl.Object, "int128": pl.Int128}
        table = pl.DataFrame({"x": pl.Series([5 if name == "int128" else "a"], dtype=dtypes[name]), "n": [1]})
    path = tmp_path / "index.ibx"
    try:
        index = ib.Index.build(table, path)
    except ib.Error:
        assert os.listdir(tmp_path) == [], name
        return
    assert index.find("n = 1").num_rows == 1
    if name in ("categorical", "enum", "views"):
        assert index.find("x = 'a'").num_rows == len(table)
        assert index.find("x = 'b'").num_rows == 0


def test_a_build_that_fails_takes_its_table_away(tmp_path: pathlib.Path) -> None:
    table = pa.table({"a": [1, 2]})
    path = tmp_path / "index.ibx"

    def rows() -> Any:
        yield pa.record_batch({"a": [1, 2]})
        raise RuntimeError("the source has failed")

    def interrupted(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(ib.Error):
        ib.Index.build(table, path, columns=["b"])
    with pytest.raises(ib.InvalidColumn, match="the source has failed"):
        ib.Index.build(pa.RecordBatchReader.from_batches(table.schema, rows()), path)
    with pytest.raises(KeyboardInterrupt):
        ib.Index.build(table, path, progress=interrupted)
    with pytest.raises(OSError):
        ib.Index.build(table, tmp_path / "no folder" / "index.ibx")
    assert os.listdir(tmp_path) == []
    index = ib.Index.build(table, path)
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(ib.Error):
        index.append(pa.table({"a": [pa.MonthDayNano((1, 2, 3))]}), parquet=tmp_path / "more.parquet")
    with pytest.raises(FileExistsError):
        ib.Index.build(table, path)  # its table is there already, and is not replaced
    assert sorted(os.listdir(tmp_path)) == before
    assert index.find("a = 2").num_rows == 1


def test_objects_that_arrow_would_take_for_one_type_are_not_indexed(tmp_path: pathlib.Path) -> None:
    utc = dt.timezone.utc
    for values in (
        [dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, 5)],
        [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=utc)],
        [dt.time(1), dt.time(1, tzinfo=utc)],
        [dt.time(1, tzinfo=utc)],
        ["1", b"1"],
    ):
        with pytest.raises(ib.InvalidColumn, match="column a"):
            ib.Index.build(pd.DataFrame({"a": pd.Series(values, dtype=object)}), tmp_path / "t.ibx")
    assert not os.listdir(tmp_path)
    frame = pd.DataFrame({"a": pd.Series([dt.date(2020, 1, 1), None, dt.date(2020, 1, 2)], dtype=object), "b": ["x", None, "y"]})
    assert ib.Index.build(frame, tmp_path / "t.ibx").find("a = '2020-01-02'").num_rows == 1
