"""The manners of a set, and the errors of each kind."""

from __future__ import annotations

import copy
import pickle
import weakref
from typing import Any

import ironbloom as ib
import pytest
from conftest import GROWING, MERGING, every_kind


def test_what_was_added_is_there(filter: ib.Filter) -> None:
    assert not filter
    assert filter.add("alice")
    assert filter
    assert "alice" in filter
    filter.update((f"key {number}" for number in range(1000)), range(500))
    assert all(f"key {number}" in filter for number in range(1000))
    assert all(number in filter for number in range(500))
    # 100,000 others at 1 %: expected 1000, sigma 31. Windowed and blocked kinds have their own laws, within 1.5 %.
    wrong = sum(filter.contains_many([f"other {number}" for number in range(100_000)]))
    assert wrong < 1500


def test_rates_sizes_and_repr_say_what_they_mean(filter: ib.Filter) -> None:
    filter.update(range(1000))
    assert 0 <= filter.rate() < 0.02
    assert 900 < filter.estimate_len() < 1100
    assert 900 <= filter.counted <= 1000
    assert filter.size_in_bytes > 100
    assert not filter.is_over_capacity
    text = repr(filter)
    assert text.startswith(f"<{type(filter).__name__}: ")
    assert "keys of" in text and "rate" in text
    assert ("about" in text) is not filter.len_is_exact
    assert filter.describe()


def test_only_exact_kinds_have_a_len() -> None:
    for one in every_kind():
        assert one.len_is_exact is hasattr(type(one), "__len__"), one
        assert one.abilities()["exact_len"] is one.len_is_exact
        if one.len_is_exact:
            assert len(one) == one.counted  # type: ignore[arg-type]
        else:
            with pytest.raises(TypeError):
                len(one)  # type: ignore[arg-type]


def test_removed_keys_are_gone_and_others_stay(removing: Any) -> None:
    removing.update(range(1000))
    before = len(removing)
    for key in range(500):
        assert removing.remove(key)
    assert len(removing) == before - 500
    assert all(key in removing for key in range(500, 1000))
    assert sum(key in removing for key in range(500)) < 30
    # Which of 100 keys that are all there may be removed?
    check = removing.check_removal(range(500, 600))
    assert check == {"present": 100, "absent": 0, "expected_wrong": check["expected_wrong"], "is_wrong": False}
    assert removing.check_removal(range(10**6, 10**6 + 50_000))["is_wrong"]


@pytest.mark.parametrize("kind", MERGING)
def test_a_union_has_the_keys_of_both(kind: str) -> None:
    one, two = GROWING[kind](), GROWING[kind]()
    one.update(range(80))
    two.update(range(40, 90))
    both = one | two
    assert type(both) is type(one)
    assert all(key in both for key in range(90))
    assert 85 not in one or 86 not in one or 87 not in one
    one |= two
    assert one == both
    one.merge(two)
    assert all(key in one for key in range(90))


def test_an_intersection_has_what_is_in_both() -> None:
    for make in (lambda: ib.Bloom(1000, 1e-6), lambda: ib.BlockedBloom(1000, 1e-6), lambda: ib.Bitmap(1000)):
        one, two = make(), make()
        one.update(range(80))
        two.update(range(40, 90))
        both = one & two
        assert [key in both for key in (39, 40, 79, 80)] == [False, True, True, False]
        one &= two
        assert one == both


def test_copies_are_equal_and_apart() -> None:
    for one in every_kind():
        for other in (one.copy(), copy.copy(one), copy.deepcopy(one)):
            assert other == one
            assert type(other) is type(one)
        if one.abilities()["add"]:
            other = one.copy()
            other.clear()
            assert other != one
            assert not other
            assert one
        assert one != object()
        with pytest.raises(TypeError, match="unhashable"):
            hash(one)


def test_filters_that_do_not_fit_are_refused_and_unchanged() -> None:
    one = ib.Bloom(1000, 0.01)
    one.add("alice")
    before = one.to_bytes()
    for other in (ib.Bloom(1000, 0.001), ib.Bloom(1000, 0.01, seed=1), ib.BlockedBloom(1000, 0.01)):
        other.add("bob")
        for combine in (one.merge, one.__ior__, one.__or__, one.__and__, one.__iand__):
            with pytest.raises(ib.Mismatch, match="differs"):
                combine(other)
    assert one.to_bytes() == before
    with pytest.raises(TypeError):
        one | {"alice"}  # type: ignore[operator]


def test_what_a_kind_cannot_do_is_refused_by_name() -> None:
    fuse = ib.BinaryFuse(["alice"])
    window = ib.Windowed(100)
    cases = [
        (lambda: fuse.add("bob"), "a fuse filter cannot take keys"),
        (lambda: fuse.update(["bob"]), "a fuse filter cannot take keys"),
        (lambda: fuse.clear(), "a fuse filter cannot be cleared"),
        (lambda: ib.Bloom(100).remove("a"), "a bloom filter cannot remove keys"),
        (lambda: ib.Bloom(100).remove_many(["a"]), "a bloom filter cannot remove keys"),
        (lambda: window.merge(window.copy()), "a windowed filter cannot be merged"),
        (lambda: ib.Cuckoo(100) & ib.Cuckoo(100), "a cuckoo filter cannot be intersected"),
    ]
    for operation, message in cases:
        with pytest.raises(ib.Refused, match=message):
            operation()
    assert issubclass(ib.Refused, ib.Error)
    assert f"{ib.Refused.__module__}.{ib.Refused.__name__}" == "ironbloom.Refused"  # as users write it


def test_a_full_filter_says_so_and_keeps_its_keys() -> None:
    here = ib.Cuckoo(100, 0.01)
    with pytest.raises(ib.Full, match="planned for 100"):
        here.update(range(10_000))
    count = len(here)
    assert count >= 100
    assert all(key in here for key in range(count))
    with pytest.raises(ib.Full):
        for key in range(10_000, 20_000):
            here.add(key)


@pytest.mark.parametrize("rate", [0, 1, -1, 2, float("nan"), 1e-30])
def test_impossible_rates_are_refused(rate: float) -> None:
    with pytest.raises(ib.InvalidParameter, match="rate"):
        ib.Bloom(1000, rate)


def test_impossible_sizes_are_refused() -> None:
    for capacity in (0, -1, 2**64, 10**16):
        with pytest.raises(ib.InvalidParameter):
            ib.Bloom(capacity)
    with pytest.raises(ValueError):
        ib.Bloom(10, 0.01, seed=-1)
    with pytest.raises(MemoryError):
        ib.Bloom(10**15, 0.01)
    with pytest.raises(TypeError):
        ib.Bloom("many")  # type: ignore[arg-type]


def test_a_bitmap_is_exact_and_holds_only_integers() -> None:
    bits = ib.Bitmap(100)
    bits.update([3, 1.0, True, 99])
    assert list(bits) == [1, 3, 99]
    assert [key in bits for key in (-1, 100, 2**64 - 1, 2**70, 1e30)] == [False] * 5
    for key in (-1, 100, 2**64 - 1, 2**70):
        with pytest.raises(ib.OutOfBounds):
            bits.add(key)
    for key in ("3", b"3", 1.5, None):
        with pytest.raises(TypeError, match="integers"):
            bits.add(key)
        with pytest.raises(TypeError, match="integers"):
            assert key in bits
    assert bits.remove(3)
    assert not bits.remove(3)
    assert list(bits) == [1, 99]


def test_rows_are_there_together() -> None:
    rows = ib.Joint(1000, 1e-6, ["size", "colour"])
    assert rows.attributes == ("size", "colour")
    assert rows.add(("large", "red"))
    assert not rows.add({"colour": "red", "size": "large"})
    rows.add(["small", None])
    assert ("large", "red") in rows and ("small", None) in rows
    assert ("large", None) not in rows and ("red", "large") not in rows
    assert len(rows) == 3
    for query in [("large", ...), {"size": "large"}]:
        with pytest.raises(ib.Refused, match="only for all 2"):
            assert query in rows
    for row in ("large", 5, ("large",), ("a", "b", "c")):
        with pytest.raises((TypeError, ib.Refused)):
            rows.add(row)
    with pytest.raises(KeyError, match="weight"):
        rows.add({"size": 1, "weight": 2})
    with pytest.raises(ib.Refused):
        rows.add(("large", ...))
    assert len(rows) == 3
    assert rows.remove(("large", "red")) and rows.remove(("large", "red")) and not rows.remove(("large", "red"))
    with pytest.raises(ib.InvalidParameter, match="that of"):
        ib.Joint(10, 0.01, ["a", "a"])


def test_a_partial_filter_answers_for_some_attributes() -> None:
    rows = ib.Joint(1000, 1e-6, ["size", "colour"], partial=True)
    rows.update([("large", "red"), ("small", "green")])
    assert rows.contains(size="large") and rows.contains(colour="green") and (..., "red") in rows
    assert not rows.contains(size="huge") and not rows.contains(size="large", colour="green")


def test_a_window_of_time_forgets() -> None:
    recent = ib.Windowed.of_time(60, 1000, 1e-6)
    recent.advance_to(1000.0)
    recent.add("alice")
    recent.advance_to(1059.0)
    assert "alice" in recent
    recent.advance_to(1200.0)
    assert "alice" not in recent


def test_an_iterator_that_raises_leaves_what_came_before() -> None:
    def keys() -> Any:
        yield from range(1900)
        raise LookupError("no more")

    for kind, make in GROWING.items():
        seen = make()
        with pytest.raises(LookupError, match="no more"):
            seen.update(keys())
        assert all(key in seen for key in range(1900)), kind


def test_the_iterator_may_use_the_filter_that_it_fills() -> None:
    seen = ib.Bloom(10_000)

    def keys() -> Any:
        for key in range(5000):
            seen.add(("again", key))
            assert ("again", key) in seen
            yield key

    seen.update(keys())
    assert 4999 in seen and ("again", 4999) in seen


def test_a_subclass_stays_one() -> None:
    class Seen(ib.Bloom):
        def note(self, key: object) -> None:
            self.add(key)

    seen = Seen(100)
    seen.note("alice")
    assert type(seen.copy()) is Seen and type(seen | seen) is Seen
    assert "alice" in Seen.from_bytes(seen.to_bytes())
    assert type(Seen.from_bytes(seen.to_bytes())) is Seen


class Named(ib.Bloom):
    """A subclass with attributes."""

    name: str


class Slotted(ib.Cuckoo):
    __slots__ = ("__dict__", "shelf")
    shelf: list[int]


@pytest.mark.parametrize("kind", [Named, Slotted])
def test_copies_have_what_a_subclass_has_added(kind: type[Any]) -> None:
    filter = kind(100, 0.01)
    filter.add("alice")
    filter.name, filter.shelf = "first", [1]
    copies = [filter.copy(), copy.copy(filter), filter | kind(100, 0.01) if kind is Named else filter.copy()]
    for one in [*copies, copy.deepcopy(filter), pickle.loads(pickle.dumps(filter))]:
        assert type(one) is kind and "alice" in one
        assert one.name == "first" and one.shelf == [1]
    assert copies[0].shelf is filter.shelf and copy.deepcopy(filter).shelf is not filter.shelf
    filter.shelf = filter  # type: ignore[assignment]
    again = copy.deepcopy(filter)
    assert again.shelf is again


def test_filters_and_masks_can_be_referred_to_weakly() -> None:
    for filter in every_kind():
        reference = weakref.ref(filter)
        assert reference() is filter
    del filter
    assert reference() is None
    mask = ib.Mask([True, None])
    assert weakref.ref(mask)() is mask


def test_bytes_are_needed_where_bytes_are_read() -> None:
    data = ib.Bloom(100).to_bytes()
    for same in (bytearray(data), memoryview(data)):
        assert ib.from_bytes(same) == ib.Bloom.from_bytes(same) == ib.Bloom(100)  # type: ignore[arg-type]
    for wrong in (5, "text", None, [1, 2]):
        for read in (ib.from_bytes, ib.Bloom.from_bytes):
            with pytest.raises(TypeError):
                read(wrong)  # type: ignore[arg-type]
