"""Know what is not there: sets that fit in memory, an index for DataFrames, and a guard in front of a slow store.

>>> import ironbloom as ib
>>> seen = ib.Bloom(1_000_000, 0.01)     # capacity, rate
>>> seen.add("alice")                    # True: it was new
True
>>> "alice" in seen, "bob" in seen       # no is certain; yes is wrong for one key in a hundred
(True, False)
"""

from __future__ import annotations

from ._dedup import dedup, dedup_table
from ._errors import (
    DamagedFile,
    Error,
    Full,
    InvalidColumn,
    InvalidCondition,
    InvalidKey,
    InvalidParameter,
    Mismatch,
    OutOfBounds,
    Overtaken,
    Refused,
    TableChanged,
    UnknownName,
)
from ._filters import Filter, from_bytes, lock, open
from ._guard import AsyncGuard, Guard, guarded
from ._index import Batches, Column, Expr, Index, Table, col
from ._kinds import (
    BinaryFuse,
    Bitmap,
    BlockedBloom,
    Bloom,
    Counting,
    Cuckoo,
    DLeft,
    Foreign,
    Joint,
    Parallel,
    RedisBloom,
    Scalable,
    SplitBlock,
    Windowed,
)
from ._native import Mask, key_bytes
from ._plan import Plans, plan, plot_rates

__version__ = "0.3.0"

__all__ = [
    "AsyncGuard",
    "Batches",
    "BinaryFuse",
    "Bitmap",
    "BlockedBloom",
    "Bloom",
    "Column",
    "Counting",
    "Cuckoo",
    "DLeft",
    "DamagedFile",
    "Error",
    "Expr",
    "Filter",
    "Foreign",
    "Full",
    "Guard",
    "Index",
    "InvalidColumn",
    "InvalidCondition",
    "InvalidKey",
    "InvalidParameter",
    "Joint",
    "Mask",
    "Mismatch",
    "OutOfBounds",
    "Overtaken",
    "Parallel",
    "Plans",
    "RedisBloom",
    "Refused",
    "Scalable",
    "SplitBlock",
    "Table",
    "TableChanged",
    "UnknownName",
    "Windowed",
    "col",
    "dedup",
    "dedup_table",
    "from_bytes",
    "guarded",
    "key_bytes",
    "lock",
    "open",
    "plan",
    "plot_rates",
]
