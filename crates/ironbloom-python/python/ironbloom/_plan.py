"""What each kind costs."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from . import _native
from ._errors import InvalidParameter


class Plans(list[dict[str, Any]]):
    """Records, one for each plan: `to_pandas()` and `to_polars()` make a DataFrame of them."""

    def to_pandas(self) -> Any:
        """A DataFrame of pandas."""
        import pandas

        return pandas.DataFrame(list(self))

    def to_polars(self) -> Any:
        """A DataFrame of polars."""
        import polars

        return polars.DataFrame(list(self))

    @property
    def recommended(self) -> dict[str, Any]:
        """The plan to take if nothing speaks for another one."""
        for record in self:
            if record["recommended"]:
                return record
        raise InvalidParameter("no kind can do that")

    def __repr__(self) -> str:
        lines = [f"{'plan':14} {'bits/key':>9} {'bytes':>14} {'rate':>10}  "]
        for record in self:
            mark = "*" if record["recommended"] else " "
            lines.append(
                f"{record['plan']:14} {record['bits_per_key']:9.2f} {record['bytes']:14,} "
                f"{100 * record['rate']:8.4f} % {mark} {record['summary']}"
            )
        return "\n".join(lines)


def plan(
    capacity: int | None = None, rate: float | None = None, *, memory: int | None = None
) -> Plans:
    """What each kind costs or gives, for two of: a number of keys, a rate, and bytes of memory.

    >>> import ironbloom as ib
    >>> plans = ib.plan(1_000_000, 0.01)
    >>> plans.recommended["plan"], round(plans.recommended["bits_per_key"], 1)
    ('blocked', 10.1)
    >>> [p["plan"] for p in plans if p["remove"] and p["bits_per_key"] < 11]
    ['cuckoo', 'cuckoo-packed', 'bitmap', 'joint']
    >>> ib.plan(1_000_000, memory=1 << 20).recommended["rate"] < 0.03
    True
    """
    from ._filters import natural

    capacity = None if capacity is None else natural(capacity, "capacity")
    memory = None if memory is None else natural(memory, "memory")
    for what, number in (("capacity", capacity), ("memory", memory)):
        if number == 0:
            raise InvalidParameter(f"{what} must be at least 1, got 0")
    if rate is not None and not 0 < rate < 1:
        raise InvalidParameter(f"rate must lie strictly between 0 and 1, got {rate}")
    return Plans(_native.plans(capacity, rate, memory))


def plot_rates(
    capacity: int = 1_000_000,
    rates: Iterable[float] = (0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001),
    *,
    ax: Any = None,
) -> Any:
    """Plot the bits per key of each kind by rate, with matplotlib, and return its axes."""
    if "matplotlib" not in sys.modules:
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            raise ImportError("plot_rates needs matplotlib: pip install matplotlib") from None
    if ax is None:
        from matplotlib import pyplot

        _, ax = pyplot.subplots()
    curves: dict[str, list[tuple[float, float]]] = {}
    for rate in rates:
        for record in plan(capacity, rate):
            if record["kind"] != "bitmap":
                curves.setdefault(record["plan"], []).append((rate, record["bits_per_key"]))
    for name, points in curves.items():
        ax.plot(*zip(*points, strict=True), marker="o", label=name)
    ax.set_xscale("log")
    ax.set_xlabel("rate")
    ax.set_ylabel("bits per key")
    ax.set_title(f"{capacity:,} keys")
    ax.legend()
    return ax
