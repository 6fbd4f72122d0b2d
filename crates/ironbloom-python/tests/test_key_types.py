"""A file says what its keys are: one that is read refuses keys of another type by name, instead of saying "absent"."""

from __future__ import annotations

import datetime as dt
import decimal
import operator
import os
import pathlib
import pickle
import struct
import uuid
from typing import Any

import ironbloom as ib
import numpy as np
import pyarrow as pa
import pytest
from conftest import GROWING, REMOVING

TEXT, INTEGERS, VALUES = "text or bytes", "integers", "other values, such as floats, dates and tuples"

# Keys of a type, as single objects and as columns.
KEYS: dict[str, tuple[list[Any], list[Any]]] = {
    TEXT: (["7", b"7", "größe", "", uuid.UUID(int=7), bytearray(b"8")], [pa.array(["7", "x"]), np.array([b"7"]), pa.array(["7"]).dictionary_encode()]),
    INTEGERS: ([7, -1, 2**63 - 1, 2**64 - 1, True, 7.0, decimal.Decimal(7), np.int8(7)], [np.array([7]), pa.array([7.0, None]), pa.array([7], pa.decimal128(5, 2))]),
    VALUES: (
        [1.5, None, 2**64, dt.date(2020, 1, 1), dt.datetime(2020, 1, 1), dt.time(1), dt.timedelta(1), (7,), decimal.Decimal("0.1"), float("nan")],
        [np.array([1.5]), pa.array([dt.date(2020, 1, 1)]), np.array(["2020-01-01"], "M8[D]"), pa.array([1.5, None]).dictionary_encode()],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", GROWING)
@pytest.mark.parametrize("held", KEYS)
def test_a_filter_that_was_read_refuses_other_types_by_name(kind: str, held: str) -> None:
    keys, columns = KEYS[held]
    made = GROWING[kind]()
    for key in keys:
        made.add(key)
    assert made.key_types == (held,)
    of_columns = GROWING[kind]()
    for column in columns:
        of_columns.add_many(column)
    assert of_columns.key_types == (held,)
    read = ib.from_bytes(made.to_bytes())
    assert read.key_types == (held,) and read == made
    assert all(key in read for key in keys) and all(read.contains_many(keys))
    for other, (wrong, wrong_columns) in KEYS.items():
        if other == held:
            continue
        for key in wrong:
            key in made  # a set inside one program answers for everything
            for ask in (read.__contains__, lambda key: read.contains_many([key])):
                with pytest.raises(ib.InvalidKey, match=f"holds {held}, not {other}"):
                    ask(key)
            if kind in REMOVING:
                with pytest.raises(ib.InvalidKey, match=f"not {other}"):
                    read.remove(key)
        for column in wrong_columns:
            with pytest.raises(ib.InvalidKey, match=f"not {other}"):
                read.contains_many(column)
    # Who adds keys of another type means it.
    read.add(KEYS[TEXT if held == INTEGERS else INTEGERS][0][0])
    assert set(read.key_types) == {held, TEXT if held == INTEGERS else INTEGERS}
    assert (7 in read) == (read.contains_many(np.array([7])).tolist()[0])


def test_a_column_of_floats_holds_what_its_values_are() -> None:
    for numbers, types in [([1.0, 2.0], (INTEGERS,)), ([1.5], (VALUES,)), ([1.5, 2.0], (INTEGERS, VALUES)), ([None], ())]:
        for column in (pa.array(numbers, pa.float64()), pa.array(numbers, pa.float64()).dictionary_encode()):
            many, one = ib.Bloom(100), ib.Bloom(100)
            many.add_many(column)
            one.update(number for number in numbers if number is not None)
            assert many.key_types == one.key_types == types and many == one


def test_fuse_filters_record_types_too() -> None:
    for keys in ([1, 2], np.array([1, 2]), pa.array([1, 2])):
        ids = ib.from_bytes(ib.BinaryFuse(keys).to_bytes())
        assert ids.key_types == (INTEGERS,) and 1 in ids
        with pytest.raises(ib.InvalidKey, match="holds integers, not text"):
            "1" in ids


def test_rows_record_a_type_for_each_attribute() -> None:
    for make in (ib.Joint, ib.Parallel):
        rows = make(100, 1e-6, ["id", "name"])
        rows.add((7, "alice"))
        table = make(100, 1e-6, ["id", "name"])
        table.add_many(pa.table({"id": [7], "name": ["alice"]}))
        assert rows.key_types == table.key_types == ((INTEGERS,), (TEXT,))
        read = ib.from_bytes(rows.to_bytes())
        assert (7, "alice") in read and read.contains_many([(7, "alice")]) == [True]
        for wrong in (("7", "alice"), (7, 5), (1.5, "alice")):
            wrong in rows
            for ask in (read.__contains__, read.remove, lambda row: read.contains_many([row])):
                with pytest.raises(ib.InvalidKey, match="holds"):
                    ask(wrong)
        with pytest.raises(ib.InvalidKey, match="holds integers, not text"):
            read.contains_many(pa.table({"id": ["7"], "name": ["alice"]}))


def test_copies_and_pickles_stay_what_they_were() -> None:
    made = ib.Bloom(100, 1e-9)
    made.add(7)
    for same in (made.copy(), pickle.loads(pickle.dumps(made)), made | made):
        assert "7" not in same
    read = ib.Bloom.from_bytes(made.to_bytes())
    for same in (read.copy(), pickle.loads(pickle.dumps(read)), read | read):
        with pytest.raises(ib.InvalidKey):
            "7" in same


def test_filters_that_were_read_are_not_merged_with_others_of_other_types() -> None:
    one, two = ib.Bloom(100), ib.Bloom(100)
    one.add(7), two.add("7")
    assert set((one | two).key_types) == {INTEGERS, TEXT} and 7 in one | two and "7" in one | two
    for left, right in ((ib.from_bytes(one.to_bytes()), two), (one, ib.from_bytes(two.to_bytes()))):
        for combine in (operator.or_, operator.and_):
            with pytest.raises(ib.Mismatch, match="integers and text"):
                combine(left, right)
    with pytest.raises(ib.Mismatch):
        one |= ib.Bloom(5000)
    assert one.key_types == (INTEGERS,)
    assert (one | ib.Bloom(100)).key_types == (INTEGERS,)
    one.clear()
    one.add("7")
    assert one.key_types == (TEXT,)


SECRET = bytes(range(16))


@pytest.mark.parametrize("kind", GROWING)
def test_a_secret_is_not_in_the_file_and_needed_to_read_it(kind: str, tmp_path: pathlib.Path) -> None:
    makers: dict[str, Any] = {
        "bloom": ib.Bloom, "segmented": ib.Bloom.segmented, "blocked": ib.BlockedBloom, "counting": ib.Counting, "d-left": ib.DLeft,
        "cuckoo": ib.Cuckoo, "cuckoo-packed": ib.Cuckoo.packed, "scalable": ib.Scalable, "windowed": ib.Windowed,
    }  # fmt: skip
    if kind not in makers:
        with pytest.raises(ib.InvalidParameter, match="prescribed"):
            ib.SplitBlock(1000, 0.01, secret=SECRET)
        return
    make = makers[kind]
    seen = make(1000, 1e-4, secret=SECRET)
    seen.update(["alice", 7])
    seen.add_many(np.arange(100))
    path = tmp_path / "secret.ibf"
    seen.save(path)
    data = path.read_bytes()
    assert SECRET not in data and struct.pack("<QQ", *struct.unpack("<QQ", SECRET)) not in data
    assert SECRET.hex() not in repr(seen) + seen.hash_function
    for read in (
        ib.open(path, secret=SECRET), ib.open(path, secret=SECRET.hex()), ib.from_bytes(data, secret=SECRET),
        type(seen).load(path, secret=SECRET), type(seen).from_bytes(data, secret=SECRET.hex() + "\n"), seen.copy(),
    ):  # fmt: skip
        assert "alice" in read and read.contains_many(np.arange(100)).all() and read == seen
    locked = ib.open(path)
    for ask in (locked.add, locked.__contains__, lambda key: locked.contains_many([key]), lambda key: locked.add_many(np.array([7]))):
        with pytest.raises(ib.InvalidKey, match="secret key"):
            ask("alice")
    with pytest.raises(ib.Mismatch):
        ib.open(path, secret=bytes(16))
    with pytest.raises(ib.Mismatch):
        ib.from_bytes(make(1000, 1e-4).to_bytes(), secret=SECRET)
    with pytest.raises(ib.Refused, match="pickled"):
        pickle.dumps(seen)
    with pytest.raises(ib.Mismatch if kind != "windowed" else ib.Refused):
        seen |= make(1000, 1e-4, secret=os.urandom(16))


def test_a_random_hash_is_one_word_away_and_kept_in_files() -> None:
    one, two = ib.Bloom(1000, 0.01, seed="random"), ib.Bloom(1000, 0.01, seed="random")
    one.add("alice"), two.add("alice")
    assert one != two and one.to_bytes() != two.to_bytes()
    assert ib.from_bytes(one.to_bytes()) == pickle.loads(pickle.dumps(one)) == one and "alice" in ib.from_bytes(one.to_bytes())
    fuse = ib.BinaryFuse(range(100), seed="random")
    joint = ib.Joint(100, 0.01, ["a"], secret=SECRET)
    joint.add(("x",))
    assert 7 in ib.from_bytes(fuse.to_bytes()) and ("x",) in ib.from_bytes(joint.to_bytes(), secret=SECRET)


@pytest.mark.parametrize("wrong", [b"short", "z" * 32, b"", bytes(17), "0" * 31])
def test_what_is_no_secret_is_refused_and_not_shown(wrong: Any) -> None:
    for use in (lambda: ib.Bloom(100, secret=wrong), lambda: ib.from_bytes(ib.Bloom(100).to_bytes(), secret=wrong)):
        with pytest.raises(ib.InvalidParameter, match="16 bytes") as raised:
            use()
        assert not wrong or str(wrong) not in str(raised.value)
    with pytest.raises(ib.InvalidParameter, match="not both"):
        ib.Bloom(100, seed=5, secret=SECRET)
    with pytest.raises(ib.InvalidParameter, match="random"):
        ib.Bloom(100, seed="accident")
