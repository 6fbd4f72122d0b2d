"""Columns of numpy, pyarrow, polars, pandas and DuckDB have the keys that their Python objects are."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

import duckdb
import ironbloom as ib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

UTC = dt.timezone.utc
MOMENTS = [dt.datetime(2024, 1, 1, 12, 30, 15, 123456), dt.datetime(1960, 5, 5)]
AWARE = [moment.replace(tzinfo=UTC) for moment in MOMENTS]
DAYS = [dt.date(2024, 1, 1), dt.date(1960, 5, 5)]
SPANS = [dt.timedelta(seconds=5), dt.timedelta(days=-3, microseconds=7)]
UUIDS = [uuid.UUID(int=7), uuid.UUID(int=2**127 + 1)]
FLOATS = [0.5, 1.0, -0.0, 1e300, -1e19, float("inf"), float("nan")]

# A column, and the objects that its values are.
COLUMNS: list[tuple[Any, list[Any]]] = [
    *((np.array([1, 2, 100], dtype), [1, 2, 100]) for dtype in "bBhHiIlLqQ"),
    (np.array([-1, -(2**63)], "int64"), [-1, -(2**63)]),
    (np.array([2**64 - 1], "uint64"), [2**64 - 1]),
    (np.array([True, False]), [True, False]),
    (np.array(FLOATS), FLOATS),
    (np.array([0.5, 3.0], "float32"), [0.5, 3.0]),
    (np.array([0.5, 3.0], "float16"), [0.5, 3.0]),
    (np.array(["alice", "", "größe"]), ["alice", "", "größe"]),
    (np.array([b"alice", b"bob"]), [b"alice", b"bob"]),
    (np.array(["alice", 7, None, 1.5], dtype=object), ["alice", 7, None, 1.5]),
    (np.array(MOMENTS, "datetime64[us]"), MOMENTS),
    (np.array(MOMENTS, "datetime64[ns]"), MOMENTS),
    (np.array(DAYS, "datetime64[D]"), DAYS),
    (np.array(SPANS, "timedelta64[us]"), SPANS),
    (np.arange(10)[::2], [0, 2, 4, 6, 8]),
    (np.arange(10, dtype=">i4"), list(range(10))),
    (np.frombuffer(b"x" + np.arange(4).tobytes(), "u1")[1:].view("i8"), [0, 1, 2, 3]),
    (np.array([], "int64"), []),
    *((pa.array([1, 2, 3], type), [1, 2, 3]) for type in (pa.int8(), pa.uint16(), pa.int32(), pa.uint64())),
    (pa.array([True, False]), [True, False]),
    (pa.array(FLOATS), FLOATS),
    *((pa.array(["alice", "größe", ""], type), ["alice", "größe", ""]) for type in (pa.string(), pa.large_string(), pa.string_view())),
    *((pa.array([b"alice", b"\xff"], type), [b"alice", b"\xff"]) for type in (pa.binary(), pa.large_binary(), pa.binary_view())),
    (pa.array([one.bytes for one in UUIDS], pa.binary(16)), UUIDS),
    (pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
    (pa.array(MOMENTS, pa.timestamp("us")), MOMENTS),
    (pa.array(MOMENTS, pa.timestamp("ns")), MOMENTS),
    (pa.array(AWARE, pa.timestamp("us", "Europe/Paris")), AWARE),
    (pa.array(DAYS, pa.date32()), DAYS),
    (pa.array(DAYS, pa.date64()), DAYS),
    (pa.array(SPANS, pa.duration("us")), SPANS),
    (pa.chunked_array([["a", "b"], [], ["c"]]), ["a", "b", "c"]),
    (pa.table({"only": [1, 2]}), [1, 2]),
    (pa.array(range(100))[10:13], [10, 11, 12]),
    (pl.Series("k", ["alice", "bob"]), ["alice", "bob"]),
    (pl.Series([1, 2, 3]), [1, 2, 3]),
    (pl.Series(["a", "b", "a"], dtype=pl.Categorical), ["a", "b", "a"]),
    (pl.Series(MOMENTS), MOMENTS),
    (pl.DataFrame({"only": ["x", "y"]}), ["x", "y"]),
    (pd.Series([1, 2, 3]), [1, 2, 3]),
    (pd.Series(["alice", "bob"]), ["alice", "bob"]),
    (pd.Series(["alice", "bob"], dtype=object), ["alice", "bob"]),
    (pd.Series(["alice", 5], dtype=object), ["alice", 5]),
    (pd.Series([1, 2], dtype="Int64"), [1, 2]),
    (pd.Series([1, 2], dtype="int64[pyarrow]"), [1, 2]),
    (pd.Series(MOMENTS), MOMENTS),
    (pd.Series(AWARE), AWARE),
    (pd.Series(["a", "b"], dtype="category"), ["a", "b"]),
    (pd.Index([5, 6]), [5, 6]),
    (duckdb.sql("select range as key from range(5)"), list(range(5))),
    ([1, "a", None], [1, "a", None]),
    (range(5), list(range(5))),
]


@pytest.mark.parametrize(("column", "objects"), COLUMNS, ids=[f"{type(c).__module__}-{getattr(c, 'dtype', getattr(c, 'type', ''))}-{i}" for i, (c, _) in enumerate(COLUMNS)])
def test_a_column_has_the_keys_of_its_objects(column: Any, objects: list[Any]) -> None:
    many, one_by_one = ib.Bloom(1000, 1e-9), ib.Bloom(1000, 1e-9)
    many.add_many(column)
    for key in objects:
        one_by_one.add(key)
    assert many == one_by_one
    assert as_list(many.contains_many(column)) == [True] * len(objects)
    assert not any(as_list(ib.Bloom(1000, 1e-9).contains_many(column)))
    if objects:
        here = ib.Counting(1000, 1e-9)
        here.update(column)
        assert all(as_list(here.remove_many(column)))
        assert not here
        assert all(key in ib.BinaryFuse(column, 1e-6) for key in objects)


def test_answers_come_as_the_keys_came() -> None:
    seen = ib.BlockedBloom(100, 1e-6)
    seen.update([1, 2])
    cases: list[tuple[Any, type]] = [
        (np.array([1, 3]), np.ndarray),
        (pa.array([1, 3]), pa.BooleanArray),
        (pa.chunked_array([[1], [3]]), pa.ChunkedArray),
        (pl.Series("x", [1, 3]), pl.Series),
        (pd.Series([1, 3], index=["a", "b"], name="x"), pd.Series),
        ([1, 3], list),
        ((1, 3), list),
        (duckdb.sql("select unnest([1, 3])"), ib.Mask),
    ]
    for column, expected in cases:
        answers = seen.contains_many(column)
        assert isinstance(answers, expected), type(answers)
        assert as_list(answers) == [True, False], column
    series = seen.contains_many(cases[4][0])
    assert list(series.index) == ["a", "b"] and series.name == "x" and series.dtype == bool
    assert seen.contains_many(cases[3][0]).name == "x"
    assert seen.contains_many(np.array([1, 3])).dtype == bool
    frame = pl.DataFrame({"x": [1, 3, 2]})
    assert frame.filter(seen.contains_many(frame["x"]))["x"].to_list() == [1, 2]


def test_answers_of_any_length_are_packed_right() -> None:
    thirds = ib.Bitmap(100)
    thirds.update(range(0, 100, 3))
    for length in range(70):
        expected = [key % 3 == 0 for key in range(length)]
        assert thirds.contains_many(pa.array(range(length), pa.int64())).to_pylist() == expected
        keys = [None if key % 5 == 4 else key for key in range(length)]
        expected_or_none = [None if key is None else key % 3 == 0 for key in keys]
        assert thirds.contains_many(pa.array(keys, pa.int64())).to_pylist() == expected_or_none


def as_list(answers: Any) -> list[Any]:
    return answers.to_pylist() if hasattr(answers, "to_pylist") else list(answers)


def library(value: object) -> str:
    return type(value).__module__.partition(".")[0]


def test_nulls_stay_null_and_are_no_keys() -> None:
    seen = ib.Bloom(100, 1e-6)
    columns: list[Any] = [
        pa.array([1, None, 3]),
        pa.array(["a", None, "c"]),
        pa.array(["a", None, "a"]).dictionary_encode(),
        pl.Series([1.5, None, 2.5]),
        pd.Series([1, None, 3]),
        pd.Series([1, None, 3], dtype="Int64"),
        pd.Series(["a", None, "c"]),
        pd.Series(["a", None, "c"], dtype=object),
        np.array(["2024-01-01", "NaT", "2024-01-02"], "datetime64[s]"),
        pa.nulls(3),
    ]
    for column in columns:
        seen.clear()
        seen.add_many(column)
        assert seen.counted in (0, 1, 2)
        assert None not in seen
        answers = seen.contains_many(column)
        if library(column) == "numpy":
            assert list(answers) == [True, False, True]
            continue
        given = as_list(answers)
        missing = [one is None or one is pd.NA for one in given]
        assert missing in ([False, True, False], [True, True, True]), (column, given)
        assert all(one for one, gone in zip(given, missing, strict=True) if not gone)
    here = ib.Cuckoo(100, 1e-6)
    here.update(["a", "b"])
    removed = here.remove_many(pa.array([None, "a", None, "x"]))
    assert removed.to_pylist() == [None, True, None, False]
    assert len(here) == 1


def test_a_mask_is_read_by_numpy_and_arrow() -> None:
    seen = ib.Bloom(100, 1e-6)
    seen.add(1)
    mask = seen.contains_many(duckdb.sql("select unnest([1, null, 3]) as x"))
    assert isinstance(mask, ib.Mask)
    assert (len(mask), mask.null_count, mask.tolist()) == (3, 1, [True, None, False])
    assert pa.array(mask).to_pylist() == [True, None, False]
    assert np.asarray(mask).tolist() == [True, False, False]
    assert mask.is_valid().tolist() == [True, False, True]
    assert mask[-1] is False and mask[1] is None
    with pytest.raises(IndexError):
        mask[3]
    array = np.asarray(mask)
    del mask
    assert array.tolist() == [True, False, False]  # it keeps the memory


@pytest.mark.parametrize(
    "column",
    [
        np.zeros((2, 2)),
        np.array([1j]),
        np.ma.masked_array([1, 2], [True, False]),
        np.array([5], "timedelta64[Y]"),
        np.array(["\udc80"]),
        pa.array([[1], [2]]),
        pl.Series([{"a": 1}]),
        pd.Series(pd.period_range("2020", "2021", freq="M")),
        pa.table({"a": [1], "b": [2]}),
        5,
    ],
    ids=repr,
)
def test_what_is_no_column_of_keys_is_a_type_error(column: Any) -> None:
    seen = ib.Bloom(100)
    for use in (seen.add_many, seen.contains_many):
        with pytest.raises(TypeError):
            use(column)
    assert not seen


def test_a_bitmap_takes_columns_of_integers_only() -> None:
    bits = ib.Bitmap(100)
    bits.add_many(np.array([1, 5, 7]))
    assert bits.contains_many(np.array([1, 2, -1, 1000])).tolist() == [True, False, False, False]
    with pytest.raises(ib.OutOfBounds, match=r"^-1 is outside"):
        bits.add_many(np.array([1, -1]))
    for key in (-1, 2**64 - 1, 2**70, -(2**70), -5.0):
        for use in (bits.add, bits.remove, lambda key: bits.add_many([key]), lambda key: bits.remove_many([key])):
            with pytest.raises(ib.OutOfBounds, match=rf"^{key} is outside the bitmap, which holds integers below 100"):
                use(key)
        assert key not in bits and bits.contains_many([key]) == [False]
    for column in (np.array([1.0]), pa.array(["1"])):
        with pytest.raises(TypeError, match="integers"):
            bits.add_many(column)


def test_rows_of_tables() -> None:
    table = pa.table({"size": ["large", "small"], "weight": [1, 2], "colour": ["red", "green"]})
    for rows in (ib.Joint(100, 1e-6, ["size", "colour"]), ib.Parallel(100, 1e-6, ["size", "colour"])):
        rows.add_many(table)
        assert ("large", "red") in rows and ("small", "green") in rows and len(rows) == 2
        assert rows.contains_many(table).to_pylist() == [True, True]
        assert rows.contains_many(pl.DataFrame(table)).to_list() == [True, True]
        assert rows.remove_many(table).to_pylist() == [True, True]
        assert not rows
        with pytest.raises(KeyError, match="colour"):
            rows.add_many(pa.table({"size": ["a"]}))
        with pytest.raises(TypeError, match="nulls"):
            rows.add_many(pa.table({"size": ["a", None], "colour": ["b", "c"]}))


def test_long_columns_cross_the_borders_of_groups() -> None:
    rng = np.random.default_rng(18)
    keys = rng.integers(0, 2**63, 100_003)
    seen = ib.BlockedBloom(200_000, 1e-4)
    seen.add_many(keys)
    assert seen.contains_many(keys).all()
    expected = ib.BlockedBloom(200_000, 1e-4)
    expected.update(keys.tolist())
    assert seen == expected
    validity = rng.random(100_003) < 0.5
    column = pa.array(keys, mask=~validity)
    half = ib.BlockedBloom(200_000, 1e-4)
    half.add_many(column)
    answers = half.contains_many(column)
    assert answers.null_count == (~validity).sum()
    assert answers.drop_null().to_numpy(zero_copy_only=False).all()
    expected = ib.BlockedBloom(200_000, 1e-4)
    expected.add_many(keys[validity])
    assert half == expected


def test_a_column_that_fails_half_way_leaves_what_came_before() -> None:
    def batches() -> Any:
        yield pa.record_batch({"key": [1, 2, 3]})
        raise ValueError("the source has failed")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("key", pa.int64())]), batches())
    seen = ib.Bloom(100, 1e-6)
    with pytest.raises(ValueError, match="the source has failed"):
        seen.add_many(reader)
    assert [key in seen for key in (1, 2, 3, 4)] == [True, True, True, False]
