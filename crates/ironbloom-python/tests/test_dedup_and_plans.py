"""First occurrences, and what kinds cost."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from typing import Any

import ironbloom as ib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest


def test_first_occurrences_in_their_order() -> None:
    words = ["b", "a", "b", "c", "a", 1, 1.0, "1", None, None]
    assert list(ib.dedup(words)) == ["b", "a", "c", 1, "1", None]
    assert list(ib.dedup([[1], [2], [1]], key=tuple)) == [[1], [2]]
    endless = (number % 5 for number in iter(int, 1))  # it is lazy
    first = ib.dedup(endless)
    assert next(first) == 0
    many = list(ib.dedup(number // 2 for number in range(700_000)))
    assert 349_990 <= len(many) <= 350_000 and many == sorted(many)
    assert list(ib.dedup([1, *range(2, 3000), 1], window=100))[-1] == 1
    with pytest.raises(TypeError, match="key="):
        list(ib.dedup([[]]))
    with pytest.raises(ib.InvalidParameter):
        ib.dedup([], rate=2)


def test_first_rows_of_tables() -> None:
    table = pa.table({"a": [1, 1, 2, 1, None, None], "b": ["x", "y", "x", "x", None, None], "c": range(6)})
    assert ib.dedup_table(table, ["a", "b"])["c"].to_pylist() == [0, 1, 2, 4]
    assert ib.dedup_table(table, "a")["c"].to_pylist() == [0, 2, 4]
    assert ib.dedup_table(table).num_rows == 6
    frame = pl.DataFrame(table)
    assert ib.dedup_table(frame, ["a", "b"])["c"].to_list() == [0, 1, 2, 4]
    pandas = table.to_pandas()
    deduplicated = ib.dedup_table(pandas, ["a", "b"])
    assert isinstance(deduplicated, pd.DataFrame) and list(deduplicated.index) == [0, 1, 2, 4]
    with pytest.raises(KeyError, match="z"):
        ib.dedup_table(table, ["z"])
    with pytest.raises(TypeError):
        ib.dedup_table([1, 2])


def test_plans_say_what_filters_then_are() -> None:
    plans = ib.plan(100_000, 0.01)
    by_name = {plan["plan"]: plan for plan in plans}
    for name, filter in [("bloom", ib.Bloom(100_000)), ("blocked", ib.BlockedBloom(100_000)), ("cuckoo", ib.Cuckoo(100_000))]:
        assert abs(filter.size_in_bytes - by_name[name]["bytes"]) < 128
        assert filter.abilities()["remove"] is by_name[name]["remove"]
    assert plans.recommended["plan"] == "blocked"
    assert "bloom" in repr(plans)
    frame = plans.to_pandas()
    assert list(frame["plan"]) == list(plans.to_polars()["plan"]) == list(by_name)
    within = ib.plan(100_000, memory=100_000)
    assert all(plan["bytes"] <= 100_000 for plan in within) and within
    keys = ib.plan(rate=0.01, memory=100_000)
    assert all(plan["bytes"] <= 100_000 and plan["keys"] > 1000 for plan in keys) and keys
    for wrong in ({}, {"capacity": 1}, {"capacity": 1, "rate": 0.1, "memory": 1}):
        with pytest.raises(TypeError, match="two of"):
            ib.plan(**wrong)
    with pytest.raises(ib.InvalidParameter):
        ib.plan(1000, 1.5)
    for nothing in ({"capacity": 0, "rate": 0.1}, {"rate": 0.1, "memory": 0}):
        with pytest.raises(ib.InvalidParameter, match="at least 1"):
            ib.plan(**nothing)


def test_rates_are_plotted_if_matplotlib_is_there() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    axes = ib.plot_rates(1000, [0.1, 0.01])
    assert len(axes.lines) >= 10


def test_what_differs_in_python_is_not_left_out() -> None:
    day = dt.date(2024, 1, 1)
    different: list[Any] = [
        -1, 2**64 - 1, 2**63, -(2**63), "1234567\0", 0x0037363534333231, b"1234567\0", "1", b"1", 1, None, (), ("1",), (b"1",), (1,), (-1,), (2**64 - 1,),
        uuid.UUID(int=7), uuid.UUID(int=7).bytes, day, dt.datetime(2024, 1, 1), 1.5, decimal.Decimal("0.1"), 0.1, dt.time(0), dt.timedelta(0),
    ]  # fmt: skip
    assert list(ib.dedup(different)) == different
    assert list(ib.dedup([*different, *different])) == different
    assert list(ib.dedup([1, 1.0, True, decimal.Decimal(1), np.int8(1)])) == [1]
    assert list(ib.dedup([b"a", bytearray(b"a"), memoryview(b"a")])) == [b"a"]
    assert list(ib.dedup([np.datetime64("2020-01-01"), np.datetime64("2020-01-01", "ns"), dt.datetime(2020, 1, 1)]))[1:] == []
    for numbers in ([-(2.0**63), 2.0**63, -2048.0, 2.0**64 - 2048], [-1.0, 0.5]):
        assert ib.dedup_table(pa.table({"a": numbers})).num_rows == len(numbers)
    decimals = pa.array([-1, 2**64 - 1, 5], pa.decimal128(38, 0))
    assert ib.dedup_table(pa.table({"a": decimals})).num_rows == 3
