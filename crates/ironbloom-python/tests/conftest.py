"""What all tests share: a filter of each kind."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import ironbloom as ib
import pytest

GOLDEN = pathlib.Path(__file__).parent / "golden"
LIBRARY_GOLDEN = pathlib.Path(__file__).parents[2] / "ironbloom" / "tests" / "golden"

# Kinds that take keys one by one; the classes of all others are in the tests that are about them.
GROWING: dict[str, Callable[[], ib.Filter]] = {
    "bloom": lambda: ib.Bloom(2000, 0.01),
    "segmented": lambda: ib.Bloom.segmented(2000, 0.01),
    "blocked": lambda: ib.BlockedBloom(2000, 0.01),
    "split-block": lambda: ib.SplitBlock(2000, 0.01),
    "counting": lambda: ib.Counting(2000, 0.01),
    "d-left": lambda: ib.DLeft(2000, 0.01),
    "cuckoo": lambda: ib.Cuckoo(2000, 0.01),
    "cuckoo-packed": lambda: ib.Cuckoo.packed(2000, 0.01),
    "scalable": lambda: ib.Scalable(100, 0.01),
    "scalable-blocked": lambda: ib.Scalable(100, 0.01, stages="blocked"),
    "windowed": lambda: ib.Windowed(20_000, 0.01),
}

REMOVING = ["counting", "d-left", "cuckoo", "cuckoo-packed"]
MERGING = ["bloom", "segmented", "blocked", "split-block", "counting", "d-left", "cuckoo", "scalable"]


@pytest.fixture(params=GROWING)
def filter(request: pytest.FixtureRequest) -> Any:
    return GROWING[request.param]()


@pytest.fixture(params=REMOVING)
def removing(request: pytest.FixtureRequest) -> Any:
    return GROWING[request.param]()


def every_kind() -> list[ib.Filter]:
    """A filter of every class, with keys in it."""
    filters = [make() for make in GROWING.values()]
    for one in filters:
        one.update(f"key {number}" for number in range(500))
    fuse = ib.BinaryFuse([f"key {number}" for number in range(500)])
    bitmap = ib.Bitmap(1000)
    bitmap.update(range(0, 1000, 7))
    joint = ib.Joint(1000, 0.01, ["a", "b"], partial=True)
    parallel = ib.Parallel(1000, 0.01, ["a", "b"])
    for rows in (joint, parallel):
        rows.update((number % 3, f"key {number}") for number in range(500))
    return [*filters, fuse, bitmap, joint, parallel]
