"""First occurrences."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from . import _native
from ._filters import natural
from ._mirror import columns_of_pandas, refuse_unread, table_of_pandas

T = TypeVar("T")


def dedup(
    iterable: Iterable[T],
    *,
    key: Callable[[T], Any] | None = None,
    rate: float = 1e-6,
    window: int | None = None,
) -> Iterator[T]:
    """Yield what comes for the first time, in its order.

    Keys are the same if they are equal in Python (and all NaN are one). Up to 250,000 distinct ones are remembered by their
    hashes of 64 bits; beyond that in a filter, which takes a new key for a known one, and leaves it out, at `rate`. With
    `window`, only that many of the latest keys are remembered. `key` makes the key of an item.

    >>> import ironbloom as ib
    >>> list(ib.dedup(["b", "a", "b", "c", "a"]))
    ['b', 'a', 'c']
    >>> list(ib.dedup(["Ann", "ann", "Bob"], key=str.lower))
    ['Ann', 'Bob']
    """
    is_new = _seen(rate, window).is_new
    if key is None:
        return (item for item in iterable if is_new(item))
    return (item for item in iterable if is_new(key(item)))


def _seen(rate: float, window: int | None) -> _native.Dedup:
    return _native.Dedup(rate, None if window is None else natural(window, "window"))


def dedup_table(
    table: Any,
    columns: Sequence[str] | str | None = None,
    *,
    rate: float = 1e-6,
    window: int | None = None,
) -> Any:
    """The rows of a table whose values in these columns (all, if none are named) come for the first time, in their order.

    A table of pyarrow, polars or pandas comes back as one of theirs. Nulls equal each other.
    """
    names = [columns] if isinstance(columns, str) else None if columns is None else list(columns)
    seen = _seen(rate, window)
    library = type(table).__module__.partition(".")[0]
    if library == "pandas" and hasattr(table, "columns"):
        chosen = columns_of_pandas(table, names)
        read = table_of_pandas(chosen, [str(place) for place in range(len(chosen))])
        new = [seen.is_new(row) for row in _rows(chosen)] if read is None or not chosen else seen.new_rows(read)
        return table[sys.modules["numpy"].asarray(new, dtype=bool)]
    refuse_unread(table)
    mask = seen.new_rows(table, names)
    if mask is None:
        raise TypeError(f"a table that speaks Arrow is needed, not {type(table).__name__}")
    if library == "polars":
        return table.filter(sys.modules["polars"].Series(mask))
    if library == "pyarrow":
        return table.filter(sys.modules["pyarrow"].array(mask))
    return mask


def _rows(columns: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Rows of pandas, as tuples. All that is missing is None."""
    each = [
        [None if gone else value for value, gone in zip(column, column.isna(), strict=True)]
        for column in columns
    ]
    return zip(*each, strict=True)
