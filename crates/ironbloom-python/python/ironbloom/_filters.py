"""What all filters can do."""

from __future__ import annotations

import copy
import copyreg
import operator
import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from . import _native
from ._errors import InvalidParameter, Mismatch, Refused
from ._mirror import answers_like, as_column

if TYPE_CHECKING:
    from typing_extensions import Self

    Path = str | os.PathLike[str]
    Seed = int | str
    Secret = bytes | str | None

_CLASSES: dict[str, type[Filter]] = {}


def natural(number: int, what: str, bits: int = 64) -> int:
    """A number that may become one without a sign."""
    number = operator.index(number)
    if not 0 <= number < 2**bits:
        raise InvalidParameter(f"{what} must be between 0 and 2^{bits} - 1, got {number}")
    return number


def hashing(seed: Seed, secret: Secret) -> int | str | bytes:
    """How keys are hashed, as the native code takes it."""
    if secret is not None:
        if seed != 0:
            raise InvalidParameter("a filter has a seed or a secret, not both")
        return as_secret(secret)
    if isinstance(seed, str):
        if seed != "random":
            raise InvalidParameter(f'seed is a number or "random", not {seed!r}')
        return seed
    return natural(seed, "seed")


def as_secret(secret: bytes | str) -> bytes:
    """The bytes of a secret, which is never shown."""
    data = secret.encode() if isinstance(secret, str) else _bytes(secret)
    if len(data) != 16 and len(data.strip()) != 32:
        raise InvalidParameter("a secret is 16 bytes, or 32 hexadecimal digits")
    return data


class Filter(_native.Filter):
    """A set that answers "might this key be here?" from a few bits per key.

    *No* is certain; *yes* is wrong at a rate that was chosen. Keys are `str`, `bytes`, `int`, `float`, `Decimal`, `bool`,
    `None`, `uuid.UUID`, `datetime`, `date`, `time`, `timedelta`, tuples of these, and numpy's scalars. They have the same
    hash in every process, on every machine, in Rust and in the program `ironbloom`.

    Filters can be shared by threads. Batches and everything else that takes long runs without the interpreter's lock.
    """

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    _kind: ClassVar[str]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "_kind" in cls.__dict__:
            _CLASSES[cls._kind] = cls

    @classmethod
    def _wrap(cls, made: _native.Made) -> Self:
        return _native.Filter.__new__(cls, made)

    def update(self, *iterables: Iterable[Any], key: Callable[[Any], Any] | None = None) -> None:
        """Add the keys of iterables and columns, as `set.update`. With `key`, what that makes of each.

        If an iterable raises, the keys before that are in the filter.

        >>> import ironbloom as ib
        >>> seen = ib.Bloom(1000, 0.01)
        >>> seen.update(["alice", "bob"], range(10))
        >>> "bob" in seen, 7 in seen
        (True, True)
        >>> seen.update([{"id": 1}, {"id": 2}], key=lambda user: ("user", user["id"]))
        >>> ("user", 2) in seen
        True
        """
        for keys in iterables:
            self.add_many(keys, key=key)

    def add_many(self, keys: Any, *, key: Callable[[Any], Any] | None = None) -> None:
        """Add all keys of a column: numpy, pyarrow, polars, pandas, or anything else that speaks Arrow.

        There is no Python object per key, no copy of the column, and the interpreter is free meanwhile. Nulls are not
        keys and are left out. Other iterables work, too, one key at a time.

        >>> import array, ironbloom as ib
        >>> seen = ib.BlockedBloom(1000, 0.01)
        >>> seen.add_many([1, 2, 3])
        >>> seen.contains_many([1, 2, 4])
        [True, True, False]
        """
        self._many("add", as_column(keys)[0] if key is None else keys, key)

    def contains_many(self, keys: Any, *, key: Callable[[Any], Any] | None = None) -> Any:
        """Look up all keys of a column. The answers come as the keys came.

        A numpy array of bool for a numpy array; an array of pyarrow, a series of polars or pandas for theirs; a list for
        other iterables; and a `Mask`, which numpy and Arrow can read, for everything else that speaks Arrow. The answer
        for a null is null.
        """
        return self._answers("contains", keys, key)

    def remove_many(self, keys: Any, *, key: Callable[[Any], Any] | None = None) -> Any:
        """Remove all keys of a column, each once. The answers, as of `contains_many`, say which were there.

        Removing a key that was never added makes another one disappear if it looks present; `check_removal` says before
        how many of a list would.
        """
        return self._answers("remove", keys, key)

    def _answers(self, work: str, keys: Any, key: Any) -> Any:
        if key is not None:
            return self._many(work, keys, key).tolist()
        column, missing = as_column(keys)
        return answers_like(keys, self._many(work, column), missing)

    def check_removal(self, keys: Any) -> dict[str, Any]:
        """Whether a list of keys can all have been added. Changes nothing.

        `present` of them look present; `absent` are certainly not there; `expected_wrong` of the former are likely false positives, whose removal would
        take other keys away; and `is_wrong` says whether the list should not be removed.
        """
        return self._check_removal(as_column(keys)[0])

    def copy(self) -> Self:
        """A separate filter with the same keys. What a subclass has added is copied as `copy.copy` does."""
        return self._copied(self._state())

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copied = self._copied(None)
        memo[id(self)] = copied
        _set_state(copied, copy.deepcopy(self._state(), memo))
        return copied

    def _copied(self, state: Any) -> Self:
        copied = type(self)._wrap(self._copy())
        _set_state(copied, state)
        return copied

    def _state(self) -> Any:
        """The attributes of a subclass, as `object.__getstate__` of Python 3.11 returns them."""
        if hasattr(self, "__getstate__"):
            return self.__getstate__()
        attributes = getattr(self, "__dict__", None) or None
        names = [name for name in copyreg._slotnames(type(self)) if hasattr(self, name)]  # type: ignore[attr-defined]
        return (attributes, {name: getattr(self, name) for name in names}) if names else attributes

    def __eq__(self, other: object) -> bool:
        """Whether two filters are the same to the last bit: kind, shape, hash and contents."""
        if not isinstance(other, _native.Filter):
            return NotImplemented
        return self._equals(other)

    def __or__(self, other: Filter) -> Self:
        if not isinstance(other, Filter):
            return NotImplemented
        union = self.copy()
        union.merge(other)
        return union

    def __ior__(self, other: Filter) -> Self:
        if not isinstance(other, Filter):
            return NotImplemented
        self.merge(other)
        return self

    def __and__(self, other: Filter) -> Self:
        if not isinstance(other, Filter):
            return NotImplemented
        both = self.copy()
        both._intersect(other)
        return both

    def __iand__(self, other: Filter) -> Self:
        if not isinstance(other, Filter):
            return NotImplemented
        self._intersect(other)
        return self

    def __repr__(self) -> str:
        about = "" if self.len_is_exact else "about "
        size, percent = _size(self.size_in_bytes), 100 * self.rate()
        rate = f"{percent:.2g} %" if percent == 0 or percent >= 1e-6 else "below 1e-6 %"
        return (
            f"<{type(self).__name__}: {about}{self.counted:,} keys of {self.capacity:,}, {size}, "
            f"rate {rate}>"
        )

    @classmethod
    def load(cls, path: Path, *, secret: Secret = None) -> Self:
        """Read a filter of this class from a file. Every checksum is verified."""
        return cls._checked(_native.load(path, None if secret is None else as_secret(secret)))

    @classmethod
    def from_bytes(cls, data: bytes, *, secret: Secret = None) -> Self:
        """Make a filter of this class from what `to_bytes` returned. Every checksum is verified."""
        return cls._checked(_read(data, secret))

    @classmethod
    def _checked(cls, made: _native.Made) -> Self:
        own = class_of(made.kind)
        if issubclass(cls, own):
            return cls._wrap(made)
        if issubclass(own, cls):
            return own._wrap(made)
        raise Mismatch(f"holds a {made.kind} filter, not a {cls._kind}")

    def __reduce__(self) -> tuple[Any, ...]:
        if self._is_secret:
            raise Refused("a filter with a secret is not pickled: send to_bytes(), and give the secret where they are read")
        return _restored, (type(self), self.to_bytes(), self._is_strict), self._state() or None


def class_of(kind: str) -> type[Filter]:
    """The class of a kind."""
    if kind not in _CLASSES:
        raise Refused(f"there is no class for filters of kind {kind}")
    return _CLASSES[kind]


def open(path: Path, *, mmap: bool = False, verify: bool = True, secret: Secret = None) -> Filter:
    """Open a filter of any kind.

    A filter from a file refuses keys of a type that it does not hold (`InvalidKey`), instead of saying that they are not
    there: the text "7" is not the number 7. `secret` is what the filter was made with, if it has one; it is not in the file.

    With `mmap`, the pages of the file are the filter: nothing is copied, and processes that open the same file share its
    memory. **The file must then not be changed in place** while the filter lives, or answers may be wrong and the process
    may even end; `save` never does, it writes a new file. The first change of the filter copies it.

    Without `verify`, a mapped file opens at once, whatever its size, and only its header is checked: for files that this
    machine has just written.

    >>> import ironbloom as ib, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "seen.ibf")
    >>> seen = ib.Bloom(1000, 0.01)
    >>> seen.add("alice")
    True
    >>> seen.save(path)
    >>> ib.open(path, mmap=True) == seen
    True
    """
    if mmap and secret is not None:
        raise Refused("a filter with a secret is not mapped: open it without mmap")
    key = None if secret is None else as_secret(secret)
    made = _native.load_mapped(path, verify) if mmap else _native.load(path, key)
    return class_of(made.kind)._wrap(made)


def lock(path: Path) -> _native.Lock:
    """The right to replace a file, for a `with` block: hold it from before reading a filter until after saving it.

    No other writer's keys are lost then: the program's `add`, another process, another thread. Readers need no lock. `save`
    takes it for itself, unless this thread holds it; a save by another thread waits until the block ends.

    >>> import ironbloom as ib, os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "seen.ibf")
    >>> ib.Bloom(1000, 0.01).save(path)
    >>> with ib.lock(path):
    ...     seen = ib.open(path)
    ...     new = seen.add("alice")
    ...     seen.save(path)
    >>> "alice" in ib.open(path)
    True
    """
    return _native.Lock(path)


def from_bytes(data: bytes, *, secret: Secret = None) -> Filter:
    """Make a filter of any kind from what `to_bytes` returned. Every checksum is verified."""
    made = _read(data, secret)
    return class_of(made.kind)._wrap(made)


def _read(data: bytes, secret: Secret) -> _native.Made:
    return _native.from_bytes(_bytes(data), None if secret is None else as_secret(secret))


def _bytes(data: bytes) -> bytes:
    """What has bytes. `bytes(5)` would be five zeros."""
    return data if isinstance(data, bytes) else memoryview(data).tobytes()


def _set_state(copied: Filter, state: Any) -> None:
    if state is None:
        return
    if hasattr(copied, "__setstate__"):
        copied.__setstate__(state)
        return
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    if attributes:
        copied.__dict__.update(attributes)
    for name, value in (slots or {}).items():
        setattr(copied, name, value)


def _restored(cls: type[Filter], data: bytes, strict: bool = True) -> Filter:
    return cls._wrap(_native.from_bytes(data, None, strict))


def _size(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            break
        count /= 1024
    return f"{count:,.0f} bytes" if unit == "bytes" else f"{count:,.1f} {unit}"
