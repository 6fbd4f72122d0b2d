"""A program as users write it, for mypy: what it calls has types, and they are the right ones."""

from __future__ import annotations

import ironbloom as ib


def main() -> None:
    seen: ib.Bloom = ib.Bloom(1_000_000, 0.01)
    new: bool = seen.add("alice")
    seen.update(["bob"], [1, 2], key=None)
    union: ib.Bloom = seen | seen.copy()
    seen |= union
    there: bool = "alice" in seen
    opened: ib.Filter = ib.open("seen.ibf", mmap=True)
    loaded: ib.Cuckoo = ib.Cuckoo.load("here.ibf")
    count: int = len(loaded)
    rate: float = opened.rate()
    plans: ib.Plans = ib.plan(1000, 0.01)
    for word in ib.dedup(["a", "b"]):
        word.upper()
    print(new, there, count, rate, plans.recommended["plan"])
