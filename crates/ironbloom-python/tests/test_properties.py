"""Random operations on a filter and on a `set`: never a false negative, and no other difference beyond the rate."""

from __future__ import annotations

import datetime as dt
import math
import pathlib
import pickle
from collections import Counter
from collections.abc import Callable
from typing import Any

import ironbloom as ib
import pyarrow as pa
import pytest
from conftest import GOLDEN, GROWING, MERGING, REMOVING
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

settings.register_profile(
    "fixed", derandomize=True, max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None
)
settings.load_profile("fixed")

SCALARS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.binary(max_size=12),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.none(),
    st.uuids(),
    st.datetimes(),
    st.datetimes(timezones=st.timezones()),
    st.dates(),
    st.timedeltas(),
    st.times(),
    st.decimals(allow_nan=False),
)
KEYS = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=6)


@given(KEYS, KEYS)
def test_keys_that_python_finds_equal_are_equal_here(one: Any, other: Any) -> None:
    if one == other and hash(one) == hash(other):
        assert ib.key_bytes(one) == ib.key_bytes(other)
    elif ib.key_bytes(one) == ib.key_bytes(other):
        assert same_here(one) == same_here(other)


def same_here(key: Any) -> Any:
    """What a key is here and is not in Python: text and UUIDs are bytes, small integers are their eight bytes, midnight is
    its day, all NaN are one."""
    if isinstance(key, tuple):
        return tuple(same_here(value) for value in key)
    if isinstance(key, str):
        return key.encode()
    if hasattr(key, "bytes"):
        return key.bytes
    if isinstance(key, float) and math.isnan(key):
        return "nan"
    if isinstance(key, (int, float)) and key == int(key) if not isinstance(key, float) or math.isfinite(key) else False:
        number = int(key)
        if -(2**63) <= number < 2**64:
            return (number % 2**64).to_bytes(8, "little")
        return number
    if isinstance(key, dt.datetime) and key.utcoffset() is None and key.time() == dt.time():
        return key.date()
    if isinstance(key, dt.datetime) and key.utcoffset() is not None:
        return ("moment", key.astimezone(dt.timezone.utc) if key.year not in (1, 9999) else key - key.utcoffset())
    return key


def filled(make: Callable[[], ib.Filter]) -> Callable[[list[Any]], ib.Filter]:
    def with_keys(keys: list[Any]) -> ib.Filter:
        filter = make()
        filter.update(keys)
        return filter

    return with_keys


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), KEYS),
        st.tuples(st.just("update"), st.lists(KEYS, max_size=20)),
        st.tuples(st.just("column"), st.lists(st.integers(-(2**63), 2**63 - 1), max_size=50)),
        st.tuples(st.just("texts"), st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), max_size=50)),
        st.tuples(st.just("clear"), st.none()),
        st.tuples(st.just("copy"), st.none()),
        st.tuples(st.just("bytes"), st.none()),
        st.tuples(st.just("pickle"), st.none()),
    ),
    max_size=25,
)


@pytest.mark.parametrize("kind", GROWING)
@given(operations=OPERATIONS)
def test_no_kind_ever_loses_a_key(kind: str, operations: list[tuple[str, Any]]) -> None:
    filter, model = GROWING[kind](), {}
    for operation, argument in operations:
        if operation == "add":
            # A cell of a cuckoo filter holds eight copies of a key: here is a set of keys, not a multiset.
            if ib.key_bytes(argument) not in model:
                filter.add(argument)
            model[ib.key_bytes(argument)] = argument
        elif operation in ("update", "column", "texts"):
            new = {ib.key_bytes(key): key for key in argument if ib.key_bytes(key) not in model}
            model |= new
            keys = list(new.values())
            if operation == "column":
                filter.add_many(pa.array(keys, pa.int64()))
            elif operation == "texts":
                filter.add_many(pa.array(keys, pa.string()))
            else:
                filter.update(keys)
        elif operation == "clear":
            filter.clear()
            model.clear()
        elif operation == "copy":
            filter = filter.copy()
        elif operation == "bytes":
            filter = type(filter).from_bytes(filter.to_bytes())
        else:
            filter = pickle.loads(pickle.dumps(filter))
        assert all(key in filter for key in model.values())
        assert bool(filter) == bool(model)
    if filter.len_is_exact:
        assert filter.counted == len(model)
    assert all(filter.contains_many(list(model.values())))


INT64 = st.integers(-(2**63), 2**63 - 1)
ROWS = st.tuples(st.integers(0, 50), st.text("abc", max_size=3))
FEW_TEXTS = st.text("abcd", max_size=4)

# Every kind, made with some keys (a fuse filter takes none later); its keys, few enough to come again; and, as a column, their type.
MODELS: dict[str, tuple[Callable[[list[Any]], ib.Filter], st.SearchStrategy[Any], pa.DataType | None]] = {
    **{kind: (filled(make), KEYS | st.integers(0, 40), None) for kind, make in GROWING.items()},
    **{f"{kind}-texts": (filled(make), FEW_TEXTS, pa.string_view()) for kind, make in GROWING.items()},
    "split-block-times": (filled(GROWING["split-block"]), st.datetimes(), pa.timestamp("us")),
    "cuckoo-decimals": (filled(GROWING["cuckoo"]), st.decimals("-99", "99", places=2), pa.decimal128(6, 2)),
    "fuse": (lambda keys: ib.BinaryFuse(keys, 0.01), st.integers(0, 60), pa.int16()),
    "bitmap": (filled(lambda: ib.Bitmap(61)), st.integers(0, 60), pa.uint64()),
    "joint": (filled(lambda: ib.Joint(3000, 1e-4, ["a", "b"])), ROWS, None),
    "joint-partial": (filled(lambda: ib.Joint(3000, 1e-4, ["a", "b"], partial=True)), ROWS, None),
    "parallel": (filled(lambda: ib.Parallel(3000, 1e-4, ["a", "b"])), ROWS, None),
    "foreign": (filled(lambda: ib.open(GOLDEN / "foreign-guava-64-long.ibf").of_keys("long")), INT64, pa.int64()),  # type: ignore[attr-defined]
    "random": (filled(lambda: ib.Cuckoo(2000, 0.01, seed="random")), st.integers(0, 60), pa.int64()),
}

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "update", "column", "remove", "remove", "remove many", "remove column", "absent", "clear", "copy", "pickle", "save", "map"]),
        st.lists(st.integers(0, 10**6), min_size=1, max_size=12),
    ),
    max_size=20,
)


@pytest.mark.parametrize("kind", MODELS)
def test_every_kind_is_a_multiset_as_far_as_it_can(kind: str, tmp_path: pathlib.Path) -> None:
    make, strategy, column_type = MODELS[kind]

    @settings(max_examples=12)  # each saves files, which waits for the disk
    @given(st.lists(strategy, min_size=1, max_size=25, unique_by=ib.key_bytes), STEPS)
    def model(keys: list[Any], steps: list[tuple[str, list[int]]]) -> None:
        filter, there = make(keys[:5]), Counter(range(len(keys[:5])))
        can = filter.abilities()
        counts = can["remove"] and kind != "bitmap"

        def column(chosen: list[int]) -> Any:
            if isinstance(keys[0], tuple) and kind in ("joint", "joint-partial", "parallel"):
                return pa.table({"a": pa.array([keys[i][0] for i in chosen], pa.int64()), "b": pa.array([keys[i][1] for i in chosen], pa.string())})
            return pa.array([keys[i] for i in chosen], column_type) if column_type else [keys[i] for i in chosen]

        for step, places in steps:
            chosen = [place % len(keys) for place in places]
            new = [i for i in dict.fromkeys(chosen) if not (there[i] >= 2 if counts else there[i])]
            present = [i for i in dict.fromkeys(chosen) if there[i]]
            if step in ("add", "update", "column"):
                if not can["add"]:
                    with pytest.raises(ib.Refused):
                        filter.add(keys[0])
                    continue
                if step == "add":
                    for i in new:
                        filter.add(keys[i])
                elif step == "update":
                    filter.update([keys[i] for i in new])
                else:
                    filter.add_many(column(new))
                there.update(new)
            elif step.startswith("remove"):
                if not can["remove"]:
                    with pytest.raises(ib.Refused):
                        filter.remove(keys[chosen[0]])
                    continue
                if step == "remove":
                    assert all(filter.remove(keys[i]) for i in present)
                else:
                    gone = filter.remove_many([keys[i] for i in present] if step == "remove many" else column(present))
                    assert all(gone.to_pylist() if hasattr(gone, "to_pylist") else gone)
                there.subtract(present)
            elif step == "absent":
                for i in chosen:
                    if not there[i] and can["remove"] and keys[i] not in filter:
                        assert filter.remove(keys[i]) is False
            elif step == "clear" and kind not in ("fuse", "foreign"):
                filter.clear()
                there.clear()
            elif step == "copy":
                filter = filter.copy()
            elif step == "pickle":
                filter = pickle.loads(pickle.dumps(filter))
            elif step in ("save", "map"):
                filter.save(tmp_path / "model.ibf")
                filter = ib.open(tmp_path / "model.ibf", mmap=step == "map")
            here = [i for i in there if there[i]]
            assert all(keys[i] in filter for i in here)
            if here:
                answers = filter.contains_many(column(here))
                assert all(answers.to_pylist() if hasattr(answers, "to_pylist") else answers)
            if filter.len_is_exact:
                assert filter.counted == sum(there.values())
            if kind == "bitmap":
                assert list(filter) == sorted(keys[i] for i in here)  # type: ignore[call-overload]

    model()


@pytest.mark.parametrize("kind", REMOVING)
@given(steps=st.lists(st.tuples(st.booleans(), st.integers(0, 30)), max_size=60))
def test_removing_what_was_added_loses_nothing_else(kind: str, steps: list[tuple[bool, int]]) -> None:
    filter: Any = GROWING[kind]()
    model: Counter[int] = Counter()
    for add, key in steps:
        if add and model[key] < 3:
            filter.add(key)
            model[key] += 1
        elif not add and model[key]:
            assert filter.remove(key)
            model[key] -= 1
        assert all(key in filter for key, count in model.items() if count)
        assert len(filter) == model.total()


@pytest.mark.parametrize("kind", MERGING)
@given(one=st.sets(st.integers(), max_size=60), two=st.sets(st.integers(), max_size=60))
def test_a_union_is_that_of_the_sets(kind: str, one: set[int], two: set[int]) -> None:
    left, right = GROWING[kind](), GROWING[kind]()
    left.update(one)
    right.update(two)
    union = left | right
    assert all(key in union for key in one | two)
    assert all(key in left for key in one) and all(key in right for key in two)


@given(st.sets(st.integers(0, 999)), st.sets(st.integers(0, 999)), st.sets(st.integers(0, 999)))
def test_a_bitmap_is_a_set(one: set[int], two: set[int], gone: set[int]) -> None:
    left, right = ib.Bitmap(1000), ib.Bitmap(1000)
    left.update(one)
    right.add_many(pa.array(list(two), pa.int64()))
    assert list(left | right) == sorted(one | two)
    assert list(left & right) == sorted(one & two)
    removed = left.remove_many(list(gone))
    assert removed == [key in one for key in gone]
    assert list(left) == sorted(one - gone)
    assert (left == right) == (one - gone == two)


@given(st.lists(st.tuples(st.integers(0, 5), st.text("ab", max_size=2)), max_size=60))
def test_rows_are_a_multiset(rows: list[tuple[int, str]]) -> None:
    filter = ib.Joint(500, 1e-6, ["number", "text"], partial=True)
    filter.update(rows)
    assert len(filter) == len(rows)
    assert all(row in filter for row in rows)
    for number in range(6):
        expected = any(row[0] == number for row in rows)
        assert filter.contains(number=number) == expected
    for row in rows:
        assert filter.remove(row)
    assert not filter and not any(row in filter for row in rows)


@given(st.lists(KEYS, max_size=80))
def test_deduplication_is_that_of_a_dict(keys: list[Any]) -> None:
    first: dict[Any, Any] = {}
    for key in keys:
        first.setdefault(in_python(key), key)
    assert list(map(in_python, ib.dedup(keys))) == list(first)


def in_python(key: Any) -> Any:
    """A key as Python compares it, but that all NaN are one, and moments are one whatever rules their zones have."""
    if isinstance(key, tuple):
        return tuple(map(in_python, key))
    if isinstance(key, float) and math.isnan(key):
        return "nan", ()
    if isinstance(key, dt.datetime) and key.utcoffset() is not None:
        return "moment", key.replace(tzinfo=None) - dt.datetime(1970, 1, 1) - key.utcoffset()
    return key


@given(st.sets(st.integers(), max_size=300))
def test_a_fuse_filter_has_all_its_keys(keys: set[int]) -> None:
    filter = ib.BinaryFuse(keys)
    assert all(key in filter for key in keys)
    assert abs(len(filter) - len(keys)) <= (1 if keys & {-1, 2**64 - 1} else 0) or len(filter) <= len(keys)
