"""The kinds of filter: a class for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _native
from ._filters import Filter, hashing, natural
from ._mirror import answers_like, as_column, as_objects, as_rows
from ._native import Mask

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._filters import Secret, Seed


class _Planned(Filter):
    """A filter that a capacity and a rate determine."""

    __slots__ = ()
    _plan: str

    def __new__(cls, capacity: int, rate: float = 0.01, *, seed: Seed = 0, secret: Secret = None) -> Self:
        return cls._wrap(
            _native.make(cls._plan, natural(capacity, "capacity"), rate, hashing(seed, secret))
        )


class _Counted:
    """For kinds whose number of keys is exact."""

    __slots__ = ()
    counted: int

    def __len__(self) -> int:
        """The number of keys: adds minus removals, also of keys that were there already."""
        return self.counted


class Bloom(_Planned):
    """A Bloom filter: few bits, any rate, unions and intersections.

    `capacity` keys are planned for, of which an absent one is taken for present at `rate`.

    >>> import ironbloom as ib
    >>> seen = ib.Bloom(1_000_000, 0.01)
    >>> seen.add("alice")                        # True: it was new
    True
    >>> "alice" in seen, "bob" in seen
    (True, False)
    >>> seen
    <Bloom: about 1 keys of 1,000,000, 1.1 MiB, rate below 1e-6 %>

    There is no `len`: the number of distinct keys is not known exactly. `counted` is the number of adds that looked new,
    and `estimate_len` estimates from the bits.

    >>> seen.counted, round(seen.estimate_len())
    (1, 1)
    """

    __slots__ = ()
    _kind = "bloom"
    _plan = "bloom"

    @classmethod
    def segmented(cls, capacity: int, rate: float = 0.01, *, seed: Seed = 0, secret: Secret = None) -> Self:
        """A filter with a slice of its bits for each probe, as other programs have them."""
        capacity = natural(capacity, "capacity")
        return cls._wrap(_native.make("segmented", capacity, rate, hashing(seed, secret)))

    @classmethod
    def of_bits(cls, bits: int, probes: int, *, seed: Seed = 0, secret: Secret = None) -> Self:
        """A filter of exactly this shape."""
        return cls._wrap(
            _native.make_bloom_of_bits(
                natural(bits, "bits"), natural(probes, "probes", 32), hashing(seed, secret)
            )
        )


class BlockedBloom(_Planned):
    """A Bloom filter of one cache line per key: the fastest.

    >>> import ironbloom as ib
    >>> seen = ib.BlockedBloom(1000, 0.01)
    >>> seen.update(range(1000))
    >>> all(number in seen for number in range(1000))
    True
    """

    __slots__ = ()
    _kind = "blocked"
    _plan = "blocked"


class SplitBlock(_Planned):
    """Parquet's own filter, bit for bit.

    >>> import ironbloom as ib
    >>> ib.SplitBlock(1000, 0.01).hash_function
    'xxh64 seed 0'
    """

    __slots__ = ()
    _kind = "split-block"
    _plan = "split-block"


class Counting(_Counted, _Planned):
    """A Bloom filter of counters: removes keys, and merges.

    >>> import ironbloom as ib
    >>> here = ib.Counting(1000, 0.01)
    >>> here.add("alice"), here.remove("alice"), "alice" in here
    (True, True, False)
    """

    __slots__ = ()
    _kind = "counting"
    _plan = "counting"


class DLeft(_Counted, _Planned):
    """A d-left filter: removes keys, and an add never moves others.

    >>> import ironbloom as ib
    >>> here = ib.DLeft(1000, 0.01)
    >>> here.update(["alice", "bob"]); len(here)
    2
    """

    __slots__ = ()
    _kind = "d-left"
    _plan = "d-left"


class Cuckoo(_Counted, _Planned):
    """A cuckoo filter: removes keys, and touches two cache lines.

    Every add takes room, also of a key that is there already, and can fail with `Full`.

    >>> import ironbloom as ib
    >>> here = ib.Cuckoo(1000, 0.01)
    >>> here.update(["alice", "bob"]); here.remove("bob"), len(here)
    (True, 1)
    """

    __slots__ = ()
    _kind = "cuckoo"
    _plan = "cuckoo"

    @classmethod
    def packed(cls, capacity: int, rate: float = 0.01, *, seed: Seed = 0, secret: Secret = None) -> Self:
        """A filter of one bit less per key, and slower."""
        capacity = natural(capacity, "capacity")
        return cls._wrap(_native.make("cuckoo-packed", capacity, rate, hashing(seed, secret)))


class BinaryFuse(_Counted, Filter):
    """A binary fuse filter: the smallest, made from all its keys at once.

    >>> import ironbloom as ib
    >>> words = ib.BinaryFuse(["alice", "bob", "carol"], 0.001)
    >>> "alice" in words, len(words)
    (True, 3)
    >>> words.add("dave")
    Traceback (most recent call last):
        ...
    ironbloom.Refused: a fuse filter cannot take keys after it was built
    """

    __slots__ = ()
    _kind = "fuse"

    def __new__(
        cls,
        keys: Iterable[Any],
        rate: float = 0.01,
        *,
        arity: int = 3,
        seed: Seed = 0,
        secret: Secret = None,
        key: Callable[[Any], Any] | None = None,
    ) -> Self:
        column = as_column(keys)[0] if key is None else keys
        arity = natural(arity, "arity", 32)
        return cls._wrap(_native.make_fuse(column, rate, arity, hashing(seed, secret), key))


class Scalable(Filter):
    """A filter that grows with its keys and keeps its rate.

    >>> import ironbloom as ib
    >>> seen = ib.Scalable(100, 0.01)
    >>> seen.update(range(10_000))
    >>> 9999 in seen, seen.capacity >= 10_000
    (True, True)
    """

    __slots__ = ()
    _kind = "scalable"

    def __new__(
        cls,
        capacity: int,
        rate: float = 0.01,
        *,
        growth: int = 2,
        tightening: float = 0.85,
        stages: str = "bloom",
        seed: Seed = 0,
        secret: Secret = None,
    ) -> Self:
        return cls._wrap(
            _native.make_scalable(
                natural(capacity, "capacity"),
                rate,
                natural(growth, "growth"),
                tightening,
                stages,
                hashing(seed, secret),
            )
        )


class Windowed(_Planned):
    """A filter that remembers the last `capacity` keys, and forgets older ones.

    >>> import ironbloom as ib
    >>> recent = ib.Windowed(1000, 0.001)
    >>> recent.update(range(100_000))
    >>> 99_999 in recent, 5 in recent
    (True, False)
    """

    __slots__ = ()
    _kind = "windowed"
    _plan = "windowed"

    @classmethod
    def of_time(cls, seconds: float, capacity: int, rate: float = 0.01, *, seed: Seed = 0, secret: Secret = None) -> Self:
        """A filter that remembers every key for at least this long, at `rate` while no more than `capacity` come in that
        time. The clock is yours: call `advance_to(time.time())` before you add or look up.

        >>> import ironbloom as ib
        >>> recent = ib.Windowed.of_time(60, 1000)
        >>> recent.advance_to(0.0); recent.add("alice")
        True
        >>> recent.advance_to(59.0); "alice" in recent
        True
        >>> recent.advance_to(600.0); "alice" in recent
        False
        """
        capacity = natural(capacity, "capacity")
        return cls._wrap(_native.make_window_of_time(seconds, capacity, rate, hashing(seed, secret)))

    def advance_to(self, seconds: float) -> None:
        """Move a window of time to this moment, in seconds since any that you choose. Has no effect on one of keys."""
        self._advance_to(seconds)


class Bitmap(_Counted, Filter):
    """An exact set of integers below a bound, at one bit for each possible one.

    >>> import ironbloom as ib
    >>> odd = ib.Bitmap(100)
    >>> odd.update(range(1, 100, 2))
    >>> 7 in odd, 8 in odd, len(odd), list(odd)[:3]
    (True, False, 50, [1, 3, 5])
    >>> odd.add(100)
    Traceback (most recent call last):
        ...
    ironbloom.OutOfBounds: 100 is outside the bitmap, which holds integers below 100
    """

    __slots__ = ()
    _kind = "bitmap"

    def __new__(cls, bound: int) -> Self:
        return cls._wrap(_native.make("bitmap", natural(bound, "bound"), 0.5, 0))

    def __iter__(self) -> Iterator[int]:
        return iter(self._integers())


class _Rows(_Counted, Filter):
    """Keys are rows: a tuple with a value for each attribute, or a mapping from their names."""

    __slots__ = ()

    def add_many(self, keys: Any, *, key: Callable[[Any], Any] | None = None) -> None:
        """Add all rows of a table, which has a column for each attribute, or of an iterable."""
        self._many("add", keys if key is not None else as_rows(keys, self.attributes), key)

    def _answers(self, work: str, keys: Any, key: Any) -> Any:
        if key is not None:
            return self._many(work, keys, key).tolist()
        return answers_like(keys, self._many(work, as_rows(keys, self.attributes)), None)

    def contains(self, row: Sequence[Any] | Mapping[str, Any] | None = None, **values: Any) -> bool:
        """Whether there might be such a row: `contains(("large", "red"))` or `contains(size="large", color="red")`.

        An attribute that is left out, or `...` in a tuple, stands for any value.
        """
        return (values if row is None else row) in self


class Joint(_Rows):
    """A filter of rows with several attributes: are these values there *together*?

    >>> import ironbloom as ib
    >>> tables = ib.Joint(1000, 0.001, ["size", "color"], partial=True)
    >>> tables.update([("large", "red"), ("small", "green")])
    >>> ("large", "red") in tables, ("large", "green") in tables
    (True, False)
    >>> tables.contains(size="large"), (..., "blue") in tables     # for these it must be partial
    (True, False)

    A table of pyarrow, polars or pandas with columns of these names can be given to `add_many` and `contains_many`.
    """

    __slots__ = ()
    _kind = "joint"

    def __new__(
        cls,
        capacity: int,
        rate: float,
        attributes: Sequence[str],
        *,
        partial: bool = False,
        seed: Seed = 0,
        secret: Secret = None,
    ) -> Self:
        name = "joint-partial" if partial else "joint"
        capacity = natural(capacity, "capacity")
        return cls._wrap(_native.make_rows(name, capacity, rate, list(attributes), hashing(seed, secret)))


class Parallel(_Rows):
    """A Bloom filter for each attribute of rows, from the literature: it takes every combination of values that are
    there for present. Use `Joint`.

    >>> import ironbloom as ib
    >>> tables = ib.Parallel(1000, 0.001, ["size", "color"])
    >>> tables.update([("large", "red"), ("small", "green")])
    >>> ("large", "green") in tables
    True
    """

    __slots__ = ()
    _kind = "parallel"

    def __new__(
        cls,
        capacity: int,
        rate: float,
        attributes: Sequence[str],
        *,
        seed: Seed = 0,
        secret: Secret = None,
    ) -> Self:
        capacity = natural(capacity, "capacity")
        return cls._wrap(_native.make_rows("parallel", capacity, rate, list(attributes), hashing(seed, secret)))


class _ByKey(Filter):
    """A filter of another program, which hashes keys by its own rule, one by one."""

    __slots__ = ()

    def add_many(self, keys: Any, *, key: Callable[[Any], Any] | None = None) -> None:
        """Add all keys of a column or an iterable. Nulls of a column are left out."""
        objects, nulls = (map(key, keys), False) if key is not None else as_objects(keys)
        for one in objects:
            if one is not None or not nulls:
                self.add(one)

    def _answers(self, work: str, keys: Any, key: Any) -> Any:
        answer = self.remove if work == "remove" else self.__contains__
        if key is not None:
            return [answer(key(one)) for one in keys]
        objects, nulls = as_objects(keys)
        mask = Mask([None if nulls and one is None else answer(one) for one in objects])
        return answers_like(keys, mask, None)


class Foreign(_ByKey):
    """A filter that another program has written, and `ironbloom convert` has read: Guava, Spark, and others.

    Keys are what that program has: text, integers or floats, each for themselves. Where its file does not say which,
    `of_keys` does. There is no way to make one here.
    """

    __slots__ = ()
    _kind = "foreign"

    def of_keys(self, form: str) -> Self:
        """The same filter, with keys that are "text", "chars" (text of Java), "long", "int", "double" or "hex"."""
        return type(self)._wrap(self._with_form(form))


class RedisBloom(_ByKey):
    """A filter of RedisBloom's, as `BF.SCANDUMP` and `CF.SCANDUMP` return them. Keys are text or bytes."""

    __slots__ = ()
    _kind = "redisbloom"
