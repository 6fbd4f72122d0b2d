"""A column is accepted only if its values are, one by one, and has the same keys: generated columns of every type of
numpy, pyarrow, polars, pandas and DuckDB beside the Python objects that these libraries show for them."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import uuid
from collections.abc import Callable
from typing import Any

import duckdb
import ironbloom as ib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

settings.register_profile(
    "columns", derandomize=True, max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), database=None
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
MIDNIGHTS = st.dates(dt.date(1700, 1, 1), dt.date(2200, 1, 1)).map(lambda day: dt.datetime(day.year, day.month, day.day))
MOMENTS = st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)) | MIDNIGHTS
FLOATS = st.floats() | st.sampled_from([2.0**63, -(2.0**63), 2.0**64 - 2048, -2048.0, 0.0, -0.0, 1e300, 0.5])
SPANS = st.timedeltas(dt.timedelta(days=-90_000), dt.timedelta(days=90_000))
UTC = dt.timezone.utc


def integers(bits: int, signed: bool) -> st.SearchStrategy[int]:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return st.integers(low, high) | st.sampled_from([low, high, 0, 1])


def decimals(digits: int, scale: int) -> st.SearchStrategy[decimal.Decimal]:
    limit = 10**digits - 1
    exact = decimal.Context(prec=100)
    numbers = st.integers(-limit, limit) | st.sampled_from([0, 5, -5, 10, limit, -limit, 125, 1000])
    return numbers.filter(lambda n: abs(n) <= limit).map(lambda n: exact.scaleb(decimal.Decimal(n), -scale))


def is_missing(value: Any) -> bool:
    return value is None or value is pd.NaT or value is pd.NA


def check(column: Any, values: list[Any], *, missing: Callable[[Any], bool] = is_missing) -> bool:
    """The law, for a column and its values. Returns whether it was accepted."""
    many = ib.Bloom(1000, 1e-9)
    try:
        many.add_many(column)
    except ib.InvalidKey:
        assert not many, "a refused column has left keys"
        with pytest.raises(ib.InvalidKey):
            many.contains_many(column)
        return False
    one_by_one = ib.Bloom(1000, 1e-9)
    there = [value for value in values if not missing(value)]
    for value in there:
        one_by_one.add(value)
    assert many == one_by_one, (column, values)
    assert all(value in many for value in there)
    answers = many.contains_many(column)
    answers = answers.to_pylist() if hasattr(answers, "to_pylist") else list(answers)
    assert len(answers) == len(values)
    assert all(answer for answer, value in zip(answers, values, strict=True) if not missing(value))
    return True


def columns_of(strategy: st.SearchStrategy[Any], nulls: bool = True) -> st.SearchStrategy[list[Any]]:
    return st.lists(strategy | st.none() if nulls else strategy, max_size=12)


ARROW: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "bool": (pa.bool_(), st.booleans()),
    **{f"int{n}": (getattr(pa, f"int{n}")(), integers(n, True)) for n in (8, 16, 32, 64)},
    **{f"uint{n}": (getattr(pa, f"uint{n}")(), integers(n, False)) for n in (8, 16, 32, 64)},
    "float16": (pa.float16(), st.floats(width=16).map(np.float16)),
    "float32": (pa.float32(), st.floats(width=32)),
    "float64": (pa.float64(), FLOATS),
    **{name: (getattr(pa, name)(), TEXT) for name in ("string", "large_string", "string_view")},
    **{name: (getattr(pa, name)(), st.binary(max_size=20)) for name in ("binary", "large_binary", "binary_view")},
    "fixed": (pa.binary(8), st.binary(min_size=8, max_size=8)),
    "date32": (pa.date32(), st.dates()),
    "date64": (pa.date64(), st.dates(dt.date(1000, 1, 1))),
    **{f"timestamp-{unit}": (pa.timestamp(unit), MOMENTS) for unit in ("us", "ns")},
    **{f"timestamp-{unit}": (pa.timestamp(unit), MOMENTS.map(lambda at: at.replace(microsecond=0))) for unit in ("s", "ms")},
    "timestamp-zone": (pa.timestamp("us", "Europe/Paris"), MOMENTS.map(lambda at: at.replace(tzinfo=UTC))),
    "time-s": (pa.time32("s"), st.times().map(lambda at: at.replace(microsecond=0))),
    "time-ms": (pa.time32("ms"), st.times().map(lambda at: at.replace(microsecond=5000))),
    **{f"time-{unit}": (pa.time64(unit), st.times()) for unit in ("us", "ns")},
    **{f"duration-{unit}": (pa.duration(unit), SPANS) for unit in ("us", "ns")},
    "duration-s": (pa.duration("s"), SPANS.map(lambda span: dt.timedelta(span.days))),
    "null": (pa.null(), st.none()),
    "decimal32": (pa.decimal32(7, 2), decimals(7, 2)),
    "decimal64": (pa.decimal64(15, 3), decimals(15, 3)),
    "decimal128": (pa.decimal128(38, 10), decimals(38, 10)),
    "decimal128-integers": (pa.decimal128(38, 0), decimals(38, 0)),
    "decimal256": (pa.decimal256(76, 40), decimals(76, 40)),
    "decimal256-large": (pa.decimal256(76, 0), decimals(76, 0)),
    "decimal-tens": (pa.decimal128(5, -3), decimals(5, -3)),
    "uuid": (pa.uuid(), st.uuids().map(lambda one: one.bytes)),
    "json": (pa.json_(), st.just("{}")),
    "bool8": (pa.bool8(), integers(8, True)),
    "opaque": (pa.opaque(pa.int64(), "thing", "vendor"), integers(64, True)),
    "list": (pa.list_(pa.int64()), st.lists(integers(64, True), max_size=2)),
    "large-list": (pa.large_list(pa.int64()), st.lists(integers(64, True), max_size=2)),
    "list-view": (pa.list_view(pa.int64()), st.lists(integers(64, True), max_size=2)),
    "fixed-list": (pa.list_(pa.int64(), 1), st.lists(integers(64, True), min_size=1, max_size=1)),
    "struct": (pa.struct({"a": pa.int64()}), st.fixed_dictionaries({"a": integers(64, True)})),
    "map": (pa.map_(pa.string(), pa.int64()), st.just([("a", 1)])),
    "interval": (pa.month_day_nano_interval(), st.just(pa.MonthDayNano((1, 2, 3)))),
}

# What a column may be refused for although its values, as Python has them, are keys.
REFUSED = {"decimal-tens", "opaque", "list", "large-list", "list-view", "fixed-list", "struct", "map", "interval"}


def arrow_column(type: pa.DataType, values: list[Any]) -> pa.Array:
    if isinstance(type, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(type, pa.array(values, type.storage_type))
    return pa.array(values, type)


@pytest.mark.parametrize("name", ARROW)
def test_columns_of_pyarrow(name: str) -> None:
    type, strategy = ARROW[name]

    @settings(settings.get_profile("columns"))
    @given(columns_of(strategy))
    def law(values: list[Any]) -> None:
        column = arrow_column(type, values)
        objects = column.to_pylist()
        accepted = check(column, objects)
        assert accepted == (name not in REFUSED), name
        assert check(pa.chunked_array([column, column.slice(0, 0), column]), objects * 2) == accepted
        assert check(column.slice(1), objects[1:]) == accepted
        assert check(pa.table({"only": column}), objects) == accepted
        if accepted and not isinstance(type, pa.BaseExtensionType) and not pa.types.is_null(type):
            places = pa.array([place for place, value in enumerate(objects) if value is not None], pa.int32())
            dictionary = pa.DictionaryArray.from_arrays(places, column)
            check(dictionary, dictionary.to_pylist())

    law()


def test_values_of_an_extension_type_are_not_taken_for_their_storage() -> None:
    class Celsius(pa.ExtensionType):
        def __init__(self) -> None:
            super().__init__(pa.int64(), "test.celsius")

        def __arrow_ext_serialize__(self) -> bytes:
            return b""

        @classmethod
        def __arrow_ext_deserialize__(cls, storage_type: Any, serialized: bytes) -> Any:
            return cls()

    storage = pa.array([1, 2])
    column = pa.ExtensionArray.from_storage(Celsius(), storage)
    dictionary = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), column)
    for refused in (column, dictionary, pa.table({"only": column}), pa.table({"only": dictionary})):
        with pytest.raises(ib.InvalidKey, match="celsius"):
            ib.Bloom(100).add_many(refused)
    with pytest.raises(ib.InvalidKey, match="celsius"):
        ib.dedup_table(pa.table({"only": column}))
    with pytest.raises(ib.InvalidKey, match="celsius"):
        ib.Joint(100, 0.01, ["only"]).add_many(pa.table({"only": column}))
    run_ends = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["a", "b"]))
    check(run_ends, run_ends.to_pylist())
    union = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])])
    check(union, union.to_pylist())


NUMPY: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    **{f"{code}{n // 8}": integers(n, code == "i") for code in "iu" for n in (8, 16, 32, 64)},
    ">i4": integers(32, True),
    ">f8": FLOATS,
    "f2": st.floats(width=16),
    "f4": st.floats(width=32),
    "f8": FLOATS,
    "longdouble": FLOATS,
    "complex128": st.complex_numbers(),
    "U6": st.text(max_size=6),
    "S6": st.binary(max_size=6),
    "O": TEXT | integers(64, True) | FLOATS | st.dates() | st.times() | st.decimals(allow_nan=False) | st.none(),
    **{f"M8[{unit}]": st.integers(-20_000, 20_000) for unit in ("Y", "M", "W", "D", "h", "m", "s")},
    **{f"M8[{unit}]": st.integers(-(2**62), 2**62) | st.just(86_400_000_000_000) for unit in ("ms", "us", "ns", "ps")},
    "M8[25s]": st.integers(-(2**40), 2**40),
    **{f"m8[{unit}]": st.integers(-(2**40), 2**40) for unit in ("Y", "D", "h", "s", "ms", "us", "ns")},
    "V3": st.binary(min_size=3, max_size=3),
}


@pytest.mark.parametrize("dtype", NUMPY)
def test_columns_of_numpy(dtype: str) -> None:
    @settings(settings.get_profile("columns"))
    @given(columns_of(NUMPY[dtype], nulls=False))
    def law(values: list[Any]) -> None:
        column = np.empty(len(values), dtype)
        for i, value in enumerate(values):
            column[i] = value
        # A None among objects is a key, as it is in a list.
        missing = (lambda value: False) if dtype == "O" else (lambda value: dtype[0] in "Mm" and np.isnat(value))
        check(column, list(column), missing=missing)
        check(column[::-1], list(column[::-1]), missing=missing)

    law()


def test_a_byte_that_is_not_zero_is_true() -> None:
    odd = np.array([0, 1, 2, 255], "u1").view(bool)
    assert check(odd, list(odd))
    texts = np.array(["a", None, "größe"], dtype=np.dtypes.StringDType(na_object=None))
    assert check(texts, list(texts), missing=lambda value: False)


POLARS: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "Boolean": (pl.Boolean, st.booleans()),
    **{f"Int{n}": (getattr(pl, f"Int{n}"), integers(n, True)) for n in (8, 16, 32, 64)},
    **{f"UInt{n}": (getattr(pl, f"UInt{n}"), integers(n, False)) for n in (8, 16, 32, 64)},
    "Int128": (pl.Int128, integers(128, True)),
    "Float32": (pl.Float32, st.floats(width=32)),
    "Float64": (pl.Float64, FLOATS),
    "String": (pl.String, TEXT),
    "Binary": (pl.Binary, st.binary(max_size=20)),
    "Categorical": (pl.Categorical, TEXT),
    "Enum": (pl.Enum(["a", "b", ""]), st.sampled_from(["a", "b", ""])),
    "Date": (pl.Date, st.dates()),
    "Time": (pl.Time, st.times()),
    **{f"Datetime-{unit}": (pl.Datetime(unit), MOMENTS.map(lambda at: at.replace(microsecond=0))) for unit in ("ms", "us", "ns")},
    "Datetime-zone": (pl.Datetime("us", "Europe/Paris"), MOMENTS.map(lambda at: at.replace(tzinfo=UTC))),
    "Duration": (pl.Duration("us"), SPANS),
    "Decimal": (pl.Decimal(30, 6), decimals(30, 6)),
    "Null": (pl.Null, st.none()),
    "Object": (pl.Object, TEXT | integers(64, True) | st.uuids() | st.tuples(TEXT, integers(64, True))),
    "List": (pl.List(pl.Int64), st.lists(integers(64, True), max_size=2)),
    "Array": (pl.Array(pl.Int64, 1), st.lists(integers(64, True), min_size=1, max_size=1)),
    "Struct": (pl.Struct({"a": pl.Int64}), st.fixed_dictionaries({"a": integers(64, True)})),
}


@pytest.mark.parametrize("name", POLARS)
def test_columns_of_polars(name: str) -> None:
    dtype, strategy = POLARS[name]

    @settings(settings.get_profile("columns"))
    @given(columns_of(strategy))
    def law(values: list[Any]) -> None:
        column = pl.Series("k", values, dtype=dtype)
        accepted = check(column, column.to_list())
        assert accepted == (name not in ("List", "Array", "Struct")), name
        if name != "Object" or values:
            assert check(pl.DataFrame({"k": column}), column.to_list()) == accepted

    law()


def test_objects_of_polars_are_not_taken_for_their_addresses_in_tables() -> None:
    frame = pl.DataFrame({"o": pl.Series(["a", "b"], dtype=pl.Object), "n": [1, 2]})
    for use in (ib.Joint(10, 0.01, ["o", "n"]).add_many, ib.dedup_table):
        with pytest.raises(ib.InvalidKey, match="column o"):
            use(frame)
    assert ib.dedup_table(frame.select("n")).height == 2


PANDAS: dict[str, Callable[[list[Any]], pd.Series]] = {
    "int64": lambda values: pd.Series([hash(value) for value in values], dtype="int64"),
    "float64": lambda values: pd.Series([hash(value) / 7 if value else math.nan for value in values], dtype="float64"),
    "object": lambda values: pd.Series(values, dtype=object),
    "str": lambda values: pd.Series([str(value) for value in values], dtype="str"),
    "string": lambda values: pd.Series([str(value) if value else None for value in values], dtype="string"),
    "Int32": lambda values: pd.Series([hash(value) % 1000 if value else None for value in values], dtype="Int32"),
    "UInt64": lambda values: pd.Series([2**64 - 1 - len(str(value)) if value else None for value in values], dtype="UInt64"),
    "Float64": lambda values: pd.Series([len(str(value)) / 4 if value else None for value in values], dtype="Float64"),
    "boolean": lambda values: pd.Series([bool(hash(value) % 2) if value else None for value in values], dtype="boolean"),
    "category": lambda values: pd.Series([str(value) if value else None for value in values], dtype="category"),
    "category-int": lambda values: pd.Series([hash(value) % 5 if value else None for value in values]).astype("category"),
    "category-mixed": lambda values: pd.Series(pd.Categorical([value for value in values if value])),
    "category-period": lambda values: pd.Series(pd.period_range("2020", periods=len(values), freq="M")).astype("category"),
    "datetime": lambda values: pd.Series(pd.date_range("2020", periods=len(values), freq="6h")),
    "datetime-ns": lambda values: pd.Series(pd.date_range("2020", periods=len(values), freq="7ns", unit="ns")),
    "datetime-zone": lambda values: pd.Series(pd.date_range("2020", periods=len(values), freq="6h", tz="Asia/Tokyo")),
    "timedelta": lambda values: pd.Series(pd.timedelta_range("1s", periods=len(values), freq="6h")),
    "period": lambda values: pd.Series(pd.period_range("2020", periods=len(values), freq="M")),
    "interval": lambda values: pd.Series(pd.interval_range(0, len(values))),
    "sparse": lambda values: pd.Series(pd.arrays.SparseArray([hash(value) % 3 for value in values])),
    "decimals": lambda values: pd.Series([decimal.Decimal(len(str(value))) / 8 for value in values], dtype=object),
    "arrow-decimal": lambda values: pd.Series([len(str(value)) for value in values], dtype=pd.ArrowDtype(pa.decimal128(9, 2))),
    "arrow-time": lambda values: pd.Series([dt.time(len(str(value)) % 24) for value in values], dtype=pd.ArrowDtype(pa.time64("us"))),
    "arrow-list": lambda values: pd.Series([[1] for _ in values], dtype=pd.ArrowDtype(pa.list_(pa.int64()))),
    "complex": lambda values: pd.Series([1j for _ in values], dtype="complex128"),
    "index": lambda values: pd.Index([str(value) for value in values]),
    "multi": lambda values: pd.MultiIndex.from_tuples([("a", 1), *((str(value), 2) for value in values)]),
}


@pytest.mark.parametrize("name", PANDAS)
def test_columns_of_pandas(name: str) -> None:
    @settings(settings.get_profile("columns"))
    @given(st.lists(TEXT | integers(40, True) | st.none(), max_size=12))
    @example(["a", None, 3])
    def law(values: list[Any]) -> None:
        column = PANDAS[name](values)
        objects = list(column)
        check(column, objects, missing=lambda value: bool(np.ndim(pd.isna(value)) == 0 and pd.isna(value)))

    law()


OBJECTS = (
    TEXT | st.binary(max_size=4) | integers(70, True) | FLOATS | st.booleans() | st.none() | st.dates() | MOMENTS | st.times() | SPANS | decimals(6, 2)
    | MOMENTS.map(lambda at: at.replace(tzinfo=UTC)) | st.times().map(lambda at: at.replace(tzinfo=UTC)) | st.uuids()
)  # fmt: skip


def is_gone(value: Any) -> bool:
    return bool(np.ndim(pd.isna(value)) == 0 and pd.isna(value))


def check_table_of_pandas(column: pd.Series) -> None:
    """The law for a column of a DataFrame, with another one before it: rows are those of the values, or refused."""
    frame = pd.DataFrame({"n": range(len(column)), "k": column.array})
    values = [None if is_gone(value) else value for value in frame["k"]]
    try:
        expected = list(ib.dedup(values))
    except ib.InvalidKey:
        with pytest.raises(ib.InvalidKey):
            ib.dedup_table(frame, "k")
        with pytest.raises(ib.InvalidKey):
            ib.Joint(1000, 1e-6, ["k", "n"]).add_many(frame)
        return
    first = ib.dedup_table(frame, ["k"])
    assert len(first) == len(expected), values
    assert len(ib.dedup_table(frame)) == len(frame)
    rows = ib.Joint(1000, 1e-6, ["k", "n"])
    if None in values:
        with pytest.raises(ib.InvalidKey, match="nulls"):
            rows.add_many(frame)
        assert not rows
        return
    rows.add_many(frame)
    assert all((value, number) in rows for number, value in enumerate(values)), values
    assert list(rows.contains_many(frame)) == [True] * len(values)
    one_by_one = ib.Joint(1000, 1e-6, ["k", "n"])
    one_by_one.update((value, number) for number, value in enumerate(values))
    assert rows == one_by_one


@pytest.mark.parametrize("name", [name for name in PANDAS if name not in ("index", "multi")])
def test_columns_of_tables_of_pandas(name: str) -> None:
    @settings(settings.get_profile("columns"))
    @given(st.lists(TEXT | integers(40, True) | st.none(), max_size=12))
    @example(["a", None, 3])
    @example(["a", "b", "a"])
    def law(values: list[Any]) -> None:
        check_table_of_pandas(PANDAS[name](values))

    law()


@settings(settings.get_profile("columns"), max_examples=200)
@given(st.lists(OBJECTS, max_size=12))
@example([dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, 5), dt.datetime(2020, 1, 1, 6)])
@example([dt.datetime(2020, 1, 1, tzinfo=UTC), dt.datetime(2020, 1, 1)])
@example([dt.time(1), dt.time(1, tzinfo=UTC)])
@example([dt.time(1, tzinfo=UTC), dt.time(1, tzinfo=dt.timezone(dt.timedelta(hours=1)))])
@example(["1", b"1"])
@example([1, "1"])
@example([True, 5])
@example([decimal.Decimal("0.5"), 0.5])
@example([-1, 2**64 - 1])
@example([*(f"text {number}" for number in range(200)), b"text 3", "text 3"])
def test_objects_in_tables_of_pandas(values: list[Any]) -> None:
    check_table_of_pandas(pd.Series(values, dtype=object))


def test_a_name_that_stands_twice_is_refused_in_every_table() -> None:
    twice = pa.Table.from_arrays([pa.array([1, 1]), pa.array([7, 8]), pa.array([3, 4])], names=["a", "a", "b"])
    frame = pd.DataFrame([[1, 7, 3], [1, 8, 4]], columns=["a", "a", "b"])
    for table in (twice, frame):
        rows = ib.Joint(10, 0.01, ["a", "b"])
        with pytest.raises(ib.InvalidColumn, match="2 columns a"):
            rows.add_many(table)
        assert not rows
        with pytest.raises(ib.InvalidColumn, match="2 columns a"):
            ib.dedup_table(table, "a")
        assert len(ib.dedup_table(table)) == 2 and len(ib.dedup_table(table, "b")) == 2
    assert len(ib.dedup_table(pd.DataFrame({0: [1, 1, 2]}), [0])) == 2
    for wrong in ("z", 5):
        with pytest.raises(ib.UnknownName):
            ib.dedup_table(frame, [wrong])  # type: ignore[list-item]


DUCKDB = [
    "(range || ':30:00+02')::TIMETZ", "340282366920938463463374607431768211455::UHUGEINT - range::UHUGEINT",
    "range::BOOLEAN", "range::TINYINT", "-range::BIGINT", "range::UBIGINT", "range::HUGEINT * 170141183460469231731687",
    "range::UHUGEINT", "range::FLOAT / 3", "range::DOUBLE / 4", "range::DECIMAL(9, 2) / 8", "(range / 8)::DECIMAL(38, 12)",
    "range::VARCHAR", "range::VARCHAR::BLOB", "DATE '2020-01-01' + range::INT", "TIME '12:30:00' + to_seconds(range)",
    "TIMESTAMP '2020-01-01' + to_hours(range * 12)", "TIMESTAMP_NS '2020-01-01 00:00:00.000001'",
    "TIMESTAMP_S '2020-01-01 00:00:00'", "TIMESTAMPTZ '2020-01-01 00:00:00+00' + to_days(range::INT)", "to_seconds(range)",
    "md5(range::VARCHAR)::UUID", "'101'::BIT", "'a'::ENUM('a', 'b')", "[range]", "{'a': range}", "MAP {range: 1}",
    "union_value(a := range)", "'{}'::JSON", "range::VARCHAR::BIGNUM", "NULL", "if(range = 1, NULL, range)",
    "if(range = 1, NULL, md5(range::VARCHAR)::UUID)",
]  # fmt: skip


@pytest.mark.parametrize("expression", DUCKDB)
def test_columns_of_duckdb(expression: str) -> None:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    relation = connection.sql(f"SELECT {expression} AS key FROM range(5)")
    check(relation, [row[0] for row in relation.fetchall()])


def test_uuids_of_duckdb_are_not_taken_for_texts_in_tables() -> None:
    relation = duckdb.sql("SELECT uuid() AS id, 1 AS n")
    with pytest.raises(ib.InvalidKey, match="column id"):
        ib.Joint(10, 0.01, ["id", "n"]).add_many(relation)
    for expression in ("'12:30:00+02'::TIMETZ", "5::UHUGEINT"):
        for use in (ib.Joint(10, 0.01, ["id", "n"]).add_many, ib.dedup_table):
            with pytest.raises(ib.InvalidKey, match="column id"):
                use(duckdb.sql(f"SELECT {expression} AS id, 1 AS n"))
    one = uuid.uuid4()
    seen = ib.Bloom(10, 1e-9)
    seen.add(one)
    mask = seen.contains_many(duckdb.sql(f"SELECT unnest(['{one}'::UUID, NULL, uuid()])"))
    assert isinstance(mask, ib.Mask) and mask.tolist() == [True, None, False]


NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70),
    FLOATS,
    st.decimals(),
    st.booleans(),
    st.integers(-1000, 1000).map(lambda n: decimal.Decimal(n) / 16),
    st.integers(-1000, 1000).map(lambda n: n / 16),
    st.integers(-1000, 1000).map(lambda n: decimal.Decimal(n).scaleb(3)),
    st.sampled_from([np.int8(1), np.uint64(2**64 - 1), np.float32(0.5), np.float16(2), np.bool_(True)]),
)
TIMES = st.one_of(
    st.dates(),
    MOMENTS,
    st.datetimes(timezones=st.timezones()),
    st.times(),
    st.times(timezones=st.just(dt.timezone(dt.timedelta(hours=1)))),
    st.integers(0, 30).map(lambda n: np.datetime64(18_262 + n, "D")),
    st.integers(0, 30).map(lambda n: np.datetime64((18_262 + n) * 86_400 * 10**9, "ns")),
    st.integers(0, 30).map(lambda n: dt.date(2020, 1, 1) + dt.timedelta(n)),
    st.integers(0, 30).map(lambda n: dt.datetime(2020, 1, 1) + dt.timedelta(n)),
    st.integers(50, 51).map(lambda n: np.datetime64(n, "Y")),
)


@settings(settings.get_profile("columns"), max_examples=2000)
@given(NUMBERS | TIMES, NUMBERS | TIMES)
def test_what_python_or_numpy_finds_equal_is_one_key(one: Any, other: Any) -> None:
    if isinstance(one, decimal.Decimal) and one.is_snan() or isinstance(other, decimal.Decimal) and other.is_snan():
        return
    try:
        equal = bool(one == other) or bool(other == one)
    except (TypeError, ValueError, OverflowError):
        return
    if equal:
        assert ib.key_bytes(one) == ib.key_bytes(other), (one, other)
