"""Keys are the same in every process, on every machine, and in Rust."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import struct
import subprocess
import sys
import uuid

import ironbloom as ib
import numpy as np
import pandas as pd
import pytest

UTC = dt.timezone.utc
UUID = uuid.UUID("12345678-1234-5678-1234-567812345678")


def nanos(number: int) -> bytes:
    return number.to_bytes(16, "little", signed=True)


# Pinned for ever: a change here is a change of every filter that was ever saved.
PINNED = [
    ("alice", b"alice"),
    ("größe", "größe".encode()),
    ("", b""),
    (b"\x00\xff", b"\x00\xff"),
    (bytearray(b"ab"), b"ab"),
    (memoryview(b"ab"), b"ab"),
    (0, bytes(8)),
    (7, b"\x07" + bytes(7)),
    (-1, b"\xff" * 8),
    (2**63 - 1, b"\xff" * 7 + b"\x7f"),
    (2**63, bytes(7) + b"\x80"),
    (2**64 - 1, b"\xff" * 8),
    (2**64, b"\xffi" + bytes(8) + b"\x01"),
    (-(2**63) - 1, b"\xffi" + b"\xff" * 7 + b"\x7f\xff"),
    (True, b"\x01" + bytes(7)),
    (1.0, b"\x01" + bytes(7)),
    (-0.0, bytes(8)),
    (2.0**63, bytes(7) + b"\x80"),
    (1.5, b"\xfff" + struct.pack("<d", 1.5)),
    (float("inf"), b"\xfff" + struct.pack("<d", float("inf"))),
    (None, b"\xffn"),
    (UUID, UUID.bytes),
    (dt.date(1970, 1, 2), b"\xffd\x01" + bytes(7)),
    (dt.date(2000, 3, 1), b"\xffd" + (11017).to_bytes(8, "little")),
    (dt.datetime(1970, 1, 1, 0, 0, 1), b"\xffT" + nanos(10**9)),
    (dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), b"\xfft" + nanos(10**9)),
    (dt.datetime(1969, 12, 31, 23, 59, 59, 999999), b"\xffT" + nanos(-1000)),
    (dt.timedelta(days=-1), b"\xffe" + nanos(-86400 * 10**9)),
    (dt.datetime(1970, 1, 2), b"\xffd\x01" + bytes(7)),
    (dt.datetime(1970, 1, 2, tzinfo=UTC), b"\xfft" + nanos(86400 * 10**9)),
    (dt.time(0, 0, 1), b"\xffc" + (10**9).to_bytes(8, "little")),
    (dt.time(1, tzinfo=dt.timezone(dt.timedelta(hours=2))), b"\xffz" + (-3600 * 10**9).to_bytes(8, "little", signed=True)),
    (decimal.Decimal("7.00"), b"\x07" + bytes(7)),
    (decimal.Decimal("1.50"), b"\xfff" + struct.pack("<d", 1.5)),
    (decimal.Decimal("0.10"), b"\xffD\x01" + bytes(7) + b"\x01"),
    (decimal.Decimal("-12.34"), b"\xffD\x02" + bytes(7) + (-1234).to_bytes(2, "little", signed=True)),
    (decimal.Decimal("1E+30"), b"\xffi" + (10**30).to_bytes(13, "little")),
    ((), b"\xff("),
    (("a", 1), b"\xff(b" + (1).to_bytes(8, "little") + b"a" + b"i" + (8).to_bytes(8, "little") + b"\x01" + bytes(7)),
]


@pytest.mark.parametrize(("key", "expected"), PINNED, ids=[repr(key)[:40] for key, _ in PINNED])
def test_the_bytes_of_a_key_never_change(key: object, expected: bytes) -> None:
    assert ib.key_bytes(key) == expected


def test_hashes_are_those_of_the_reference_implementation() -> None:
    # Of a filter with one key, the bits are what the key hashed to: the same as of the library's golden files.
    seen = ib.Bloom(1000, 0.01)
    seen.add("alice")
    again = ib.Bloom(1000, 0.01)
    again.add(b"alice")
    assert seen == again


SAME = [
    # As in a set of Python.
    (1, 1.0), (1, True), (0, False), (0.0, -0.0), (10**30, 1e30 // 1 if int(1e30) == 10**30 else 10**30),
    (2**80, 2.0**80), (-(2**80), -(2.0**80)), (2**63, 2.0**63), (-(2**63), -(2.0**63)),
    (np.int8(5), 5), (np.uint64(2**64 - 1), 2**64 - 1), (np.float32(0.5), 0.5), (np.float64(3), 3),
    (np.bool_(True), 1), (np.str_("a"), "a"), (np.bytes_(b"a"), b"a"), ((1, "a"), (1.0, np.str_("a"))),
    (dt.datetime(2024, 1, 1, 12, tzinfo=UTC), dt.datetime(2024, 1, 1, 13, tzinfo=dt.timezone(dt.timedelta(hours=1)))),
    # Numpy's and pandas' times are the times they say.
    (np.datetime64("2024-01-01T12:00:00", "ns"), dt.datetime(2024, 1, 1, 12)),
    (np.datetime64("2024-01-01", "D"), dt.date(2024, 1, 1)),
    (np.datetime64("2020-01-01"), np.datetime64("2020-01-01", "ns")),
    (np.datetime64("2020", "Y"), np.datetime64("2020-01", "M")),
    (decimal.Decimal("0.5"), 0.5), (decimal.Decimal(2**70), 2**70), (decimal.Decimal("-Infinity"), -float("inf")),
    (decimal.Decimal("2.50"), decimal.Decimal("2.5")), (decimal.Decimal("-0.0"), 0), (decimal.Decimal("NaN"), float("nan")),
    (dt.time(12, tzinfo=UTC), dt.time(13, tzinfo=dt.timezone(dt.timedelta(hours=1)))),
    # Numpy finds a day equal to both, so they are one key here, and two in Python.
    (dt.date(2024, 1, 1), dt.datetime(2024, 1, 1)),
    (np.timedelta64(5, "s"), dt.timedelta(seconds=5)),
    (pd.Timestamp("2024-01-01 12:00"), dt.datetime(2024, 1, 1, 12)),
    (pd.Timestamp("2024-01-01 12:00", tz="UTC"), dt.datetime(2024, 1, 1, 12, tzinfo=UTC)),
    # Unlike in a set: text is its UTF-8, because the program and Rust have no other text; all NaN are one.
    ("alice", b"alice"), (UUID, UUID.bytes), (float("nan"), -float("nan")), (7, b"\x07" + bytes(7)),
    (-1, 2**64 - 1),
]

DIFFERENT = [
    (1, "1"), (1, b"1"), (1.0, "1"), (True, "True"), (None, ""), (None, "None"), (None, 0), (1.5, 1), (2**64, 0),
    (1.5, struct.pack("<d", 1.5)), ((1, 2), (2, 1)), (("ab", "c"), ("a", "bc")), ((1,), 1), ((1,), ("1",)), ((), None),
    ((1, (2, 3)), (1, 2, 3)), (dt.date(2024, 1, 1), dt.datetime(2024, 1, 1, 0, 0, 1)),
    (dt.date(2024, 1, 1), dt.datetime(2024, 1, 1, tzinfo=UTC)), (decimal.Decimal("0.1"), 0.1), (dt.time(12), dt.time(12, tzinfo=UTC)),
    (decimal.Decimal("0.1"), decimal.Decimal("0.01")), (dt.time(0), 0), (decimal.Decimal("1.5"), decimal.Decimal("15")),
    (dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, tzinfo=UTC)), (UUID, str(UUID)), (2**63, -(2**63) - 1),
    (dt.timedelta(0), 0), (float("inf"), -float("inf")),
    (pd.Timestamp(1, unit="ns"), pd.Timestamp(0)),
]


@pytest.mark.parametrize(("one", "other"), SAME, ids=repr)
def test_equal_keys_are_one_key(one: object, other: object) -> None:
    assert ib.key_bytes(one) == ib.key_bytes(other)
    seen = ib.Bloom(100, 1e-9)
    seen.add(one)
    assert other in seen
    assert not seen.add(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT, ids=repr)
def test_different_keys_are_two_keys(one: object, other: object) -> None:
    assert ib.key_bytes(one) != ib.key_bytes(other)
    seen = ib.Bloom(100, 1e-9)
    seen.add(one)
    assert other not in seen


class Colour(str, enum.Enum):
    RED = "red"


class Number(enum.IntEnum):
    ONE = 1


def test_members_of_enums_are_the_texts_and_numbers_they_are() -> None:
    assert ib.key_bytes(Colour.RED) == b"red"
    assert ib.key_bytes(Number.ONE) == ib.key_bytes(1)


@pytest.mark.parametrize("key", [[], {}, set(), object(), 1j, (1, []), pd.NA, pd.Period("2020", "M"), np.longdouble(1)], ids=repr)
def test_what_has_no_stable_bytes_is_a_type_error_with_a_hint(key: object) -> None:
    seen = ib.Bloom(100, 0.01)
    for use in (seen.add, seen.__contains__, lambda key: seen.update([key])):
        with pytest.raises(TypeError, match="key=") as raised:
            use(key)
        assert isinstance(raised.value, ib.InvalidKey)
    assert not seen


def test_a_decimal_of_endless_digits_is_refused_at_once() -> None:
    for number in ("1E+999999999", "1E+4301", "-1E+4300"):
        with pytest.raises(ib.InvalidKey, match="4300 digits"):
            ib.key_bytes(decimal.Decimal(number))
    assert ib.key_bytes(decimal.Decimal("1E-999999")) != ib.key_bytes(decimal.Decimal("1E-999998"))
    assert ib.key_bytes(decimal.Decimal("1E+4000")) == ib.key_bytes(10**4000)


def test_a_text_that_is_not_unicode_is_refused() -> None:
    with pytest.raises(ib.InvalidKey, match="surrogate"):
        ib.key_bytes("\udc80")


def test_tuples_in_tuples_have_an_end() -> None:
    key: tuple[object, ...] = ()
    for _ in range(30):
        key = (key,)
    ib.key_bytes(key)
    for _ in range(100_000):
        key = (key,)
    with pytest.raises(ValueError, match="nested"):
        ib.key_bytes(key)


def test_another_process_with_another_hash_seed_finds_the_keys() -> None:
    keys = [key for key, _ in PINNED if not isinstance(key, (memoryview, bytearray))]
    seen = ib.BlockedBloom(100, 1e-6)
    seen.update(keys)
    program = (
        "import sys, pickle, ironbloom as ib\n"
        "data, keys = pickle.load(sys.stdin.buffer)\n"
        "seen = ib.from_bytes(data)\n"
        "assert all(key in seen for key in keys), [key for key in keys if key not in seen]\n"
    )
    import pickle

    for seed in ("0", "1", "random"):
        subprocess.run(
            [sys.executable, "-c", program],
            input=pickle.dumps((seen.to_bytes(), keys)),
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            check=True,
        )
