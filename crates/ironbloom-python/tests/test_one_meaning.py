"""One key, one meaning: this package's part of the test that crates/ironbloom/tests/promises/one_meaning.rs describes.

Every program that can write a filter of these keys writes the same bytes, and every program that reads one answers for its keys or
refuses, naming both types.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import ironbloom as ib
import numpy as np
import pyarrow as pa
import pytest
from conftest import LIBRARY_GOLDEN

FOLDER = LIBRARY_GOLDEN / "keys"
SECRET = bytes(range(16))

NUMBERS = [-(2**63), -(2**63) + 1, -2, -1, 2**63 - 2, 2**63 - 1, *range(994)]
ABSENT = range(5000, 6000)


def as_float(number: int) -> float:
    # The remainder has the sign of the number.
    return (abs(number) % 1_000_000) * (1 if number >= 0 else -1) + 0.5


def as_bytes(number: int) -> bytes:
    return b"\xff" + str(number).encode()


KEYS: dict[str, Callable[[int], Any]] = {"text": str, "bytes": as_bytes, "integers": int, "floats": as_float}
TYPES = {"text": "text or bytes", "bytes": "text or bytes", "integers": "integers", "floats": "other values, such as floats, dates and tuples"}

# How columns of the same keys are made.
COLUMNS: dict[str, list[Callable[[list[Any]], Any]]] = {
    "text": [pa.array, lambda keys: pa.array(keys, pa.large_string()), lambda keys: pa.array(keys).dictionary_encode(), np.array],
    "bytes": [lambda keys: pa.array(keys, pa.binary())],
    "integers": [lambda keys: np.array(keys, np.int64), lambda keys: np.array(keys, np.int64).view(np.uint64), pa.array],
    "floats": [np.array, pa.array],
}

NAMES = sorted(path.stem for path in FOLDER.glob("*.ibf"))


def golden(name: str) -> bytes:
    return (FOLDER / f"{name}.ibf").read_bytes()


def made(name: str) -> Callable[[], Any] | None:
    """An empty filter for the keys of a file; None if this package cannot make one."""
    return {
        "text": lambda: ib.Bloom(1000, 1e-6),
        "text-blocked": lambda: ib.BlockedBloom(1000, 1e-6),
        "text-secret": lambda: ib.Bloom(1000, 1e-6, secret=SECRET),
        "bytes": lambda: ib.Bloom(1000, 1e-6),
        "bytes-blocked": lambda: ib.BlockedBloom(1000, 1e-6),
        "integers": lambda: ib.Bloom(1000, 1e-6),
        "integers-blocked": lambda: ib.BlockedBloom(1000, 1e-6),
        "floats": lambda: ib.Bloom(1000, 1e-6),
    }.get(name)


@pytest.mark.parametrize("name", NAMES)
def test_the_package_writes_the_same_files_as_all_other_programs(name: str, tmp_path: pathlib.Path) -> None:
    make, of = made(name), KEYS.get(name.partition("-")[0])
    if make is None or of is None:
        assert name in {"text-keyed", "integers-declared", "hashed", "several", "rows-of-text", "rows-typed"}
        return
    keys = [of(number) for number in NUMBERS]
    one = make()
    for key in keys:
        one.add(key)
    assert one.to_bytes() == golden(name)
    one.save(tmp_path / "f.ibf")
    assert (tmp_path / "f.ibf").read_bytes() == golden(name)
    for column in COLUMNS[name.partition("-")[0]]:
        many = make()
        many.add_many(column(keys))
        assert many.to_bytes() == golden(name)


def test_the_package_writes_several_types_and_rows_as_all_other_programs() -> None:
    several = ib.Bloom(1000, 1e-6)
    several.update(str(number) for number in NUMBERS[:500])
    several.update(NUMBERS[500:])
    assert several.to_bytes() == golden("several")
    for name, of in (("rows-of-text", str), ("rows-typed", int)):
        rows = ib.Joint(1000, 1e-6, ["id", "name"])
        for number in NUMBERS:
            rows.add((of(number), f"n{number}"))
        # Which of its two buckets a row is in depends on the order of inserts: the head, which has the types, is the same.
        assert rows.to_bytes()[:384] == golden(name)[:384]


def ask(read: Any, of: Callable[[int], Any]) -> tuple[int, int] | str:
    """How many keys, and how many absent ones, are there, alone and in lists; or the message that refuses all of them."""
    refused: set[str] = set()
    counts = []
    for numbers in (NUMBERS, ABSENT):
        keys = [of(number) for number in numbers]
        answers = []
        for key in keys:
            try:
                answers.append(key in read)
            except ib.InvalidKey as error:
                refused.add(str(error))
        try:
            assert list(read.contains_many(keys)) == answers
        except ib.InvalidKey as error:
            refused.add(str(error))
        counts.append(sum(answers))
    if refused:
        assert len(refused) == 1 and counts == [0, 0]
        return refused.pop()
    return counts[0], counts[1]


@pytest.mark.parametrize("name", NAMES)
def test_the_package_answers_for_the_keys_of_every_file_or_refuses_by_name(name: str) -> None:
    for read in (ib.from_bytes(golden(name)), ib.open(FOLDER / f"{name}.ibf")):
        for asked, of in KEYS.items():
            if name.startswith("rows"):
                with pytest.raises(ib.Error):
                    of(7) in read
                continue
            answer = ask(read, of)
            holds = name.partition("-")[0]
            same_type = TYPES.get(holds) == TYPES[asked]
            if name == "text-secret":
                assert isinstance(answer, str) and "a secret key that is not in its file" in answer
            elif name == "several":
                expected: Any = {"text": (500, 0), "bytes": (0, 0), "integers": (500, 0)}.get(asked)
                assert answer == (expected or f"the filter holds text or bytes, and integers, not {TYPES[asked]}")
            elif same_type:
                assert answer == ((1000, 0) if holds == asked else (0, 0)), (name, asked)
            else:
                held = "hashed values" if holds == "hashed" else TYPES[holds]
                assert answer == f"the filter holds {held}, not {TYPES[asked]}", (name, asked)
    if name == "text-secret":
        assert ask(ib.from_bytes(golden(name), secret=SECRET), str) == (1000, 0)
    if name == "integers":
        assert 2**64 - 1 in ib.from_bytes(golden(name))


@pytest.mark.parametrize(("name", "of", "wrong"), [("rows-of-text", str, int), ("rows-typed", int, str)])
def test_the_package_answers_for_rows_by_the_types_of_their_attributes_or_refuses(name: str, of: Any, wrong: Any) -> None:
    read = ib.from_bytes(golden(name))
    assert all((of(number), f"n{number}") in read for number in NUMBERS)
    assert not any((of(number), f"n{number ^ 1}") in read for number in NUMBERS)
    with pytest.raises(ib.InvalidKey, match="holds .*, not "):
        (wrong(7), "n7") in read
