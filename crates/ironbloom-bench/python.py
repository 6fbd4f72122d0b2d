"""The Python package beside the library in Rust, rbloom, pybloom-live, `set`, and pandas, polars and DuckDB:
python.py BATCH [KEYS] [ROUNDS] [ROWS], where BATCH is the program of crates/ironbloom/benches/batch.rs.

A round of each in turn; the median of the rounds is reported. Everything runs in one process, except for the library's
batches, which a program beside it runs while this one waits. Loops over Python objects (`rbloom`, `set`, pybloom-live) are those that their
documentation shows. The last lines compare with the goals.
"""

from __future__ import annotations

import gc
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import duckdb
import ironbloom as ib
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import rbloom
from pybloom_live import BloomFilter

BATCH = sys.argv[1]
KEYS = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000_000
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 5
ROWS = int(sys.argv[4]) if len(sys.argv) > 4 else 10_000_000
FEW = min(KEYS, 1_000_000)  # for what takes microseconds per key

GOALS: list[str] = []


def goal(what: str, value: float, bar: float, at_least: bool = True) -> None:
    """Keep a line for the end: the measurement and its target."""
    met = value >= bar if at_least else value <= bar
    GOALS.append(f"| {what} | {value:,.2f} | {'≥' if at_least else '≤'} {bar:g} | {'met' if met else '**missed**'} |")


class Library:
    """The same batches in Rust, on the same keys."""

    def __init__(self, folder: pathlib.Path, keys: np.ndarray[Any, Any], others: np.ndarray[Any, Any]) -> None:
        names = [folder / "keys", folder / "others"]
        for name, numbers in zip(names, (keys, others)):
            numbers.astype("<i8").tofile(name)
        self._process = subprocess.Popen([BATCH, *names], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self("contains")  # it has read them

    def __call__(self, work: str) -> float:
        assert self._process.stdin is not None and self._process.stdout is not None
        print(work, file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())

    def end(self) -> None:
        self._process.communicate()


class Timed(float):
    """Seconds measured elsewhere."""


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    gc.collect()
    start = time.perf_counter()
    result = work()
    seconds = time.perf_counter() - start
    return float(result) if isinstance(result, Timed) else seconds, result


def interleaved(competitors: dict[str, tuple[int, Callable[[], Any]]]) -> dict[str, float]:
    """Nanoseconds per key of each: the median of the rounds."""
    times: dict[str, list[float]] = {name: [] for name in competitors}
    for _ in range(ROUNDS):
        for name, (count, work) in competitors.items():
            times[name].append(timed(work)[0] / count * 1e9)
    return {name: statistics.median(those) for name, those in times.items()}


def report(title: str, times: dict[str, float], unit: str = "ns/key") -> None:
    print(f"\n### {title}\n\n| | {unit} | beside the first |\n|---|---|---|")
    first = next(iter(times.values()))
    for name, value in times.items():
        print(f"| {name} | {value:,.1f} | {value / first:,.2f} |")


def filters(folder: pathlib.Path) -> None:
    numbers = np.random.default_rng(18).integers(0, 2**62, KEYS)
    others = np.random.default_rng(19).integers(0, 2**62, KEYS)
    library = Library(folder, numbers, others)
    objects, absent = numbers.tolist(), others[:FEW].tolist()
    texts = pa.array([f"https://example.org/{number}" for number in objects])
    strings = texts.to_pylist()

    def filled(kind: Any, keys: Any) -> Any:
        seen = kind(KEYS, 0.01)
        seen.add_many(keys)
        return seen

    def rbloom_of(keys: Any) -> Any:
        seen = rbloom.Bloom(KEYS, 0.01)
        for key in keys:
            seen.add(key)
        return seen

    def rbloom_updated(keys: Any) -> Any:
        seen = rbloom.Bloom(KEYS, 0.01)
        seen.update(keys)
        return seen

    def pybloom_of(keys: Any) -> Any:
        seen = BloomFilter(len(keys), 0.01)
        for key in keys:
            seen.add(key)
        return seen

    few = objects[: FEW // 10]
    times = interleaved({
        "BlockedBloom.add_many(array)": (KEYS, lambda: filled(ib.BlockedBloom, numbers)),
        "BlockedBloom::insert_keys in Rust": (KEYS, lambda: Timed(library("add"))),
        "Bloom.add_many(array)": (KEYS, lambda: filled(ib.Bloom, numbers)),
        "BlockedBloom.update(list)": (KEYS, lambda: filled(ib.BlockedBloom, objects)),
        "rbloom, a loop of add": (KEYS, lambda: rbloom_of(objects)),
        "rbloom.update(list)": (KEYS, lambda: rbloom_updated(objects)),
        "set(list)": (KEYS, lambda: set(objects)),
        "pybloom-live": (len(few), lambda: pybloom_of(few)),
    })
    report(f"add {KEYS:,} integers at 1 %", times)
    ours, rust, loop_of_rbloom = times["BlockedBloom.add_many(array)"], times["BlockedBloom::insert_keys in Rust"], times["rbloom, a loop of add"]
    goal("add_many of integers: times as fast as rbloom's loop", loop_of_rbloom / ours, 20)
    goal("add_many of integers: time, beside the batch in Rust", ours / rust, 1.3, at_least=False)
    blocked, bloom, peer = filled(ib.BlockedBloom, numbers), filled(ib.Bloom, numbers), rbloom_updated(objects)
    exact = set(objects)
    times = interleaved({
        "BlockedBloom.contains_many(array)": (KEYS, lambda: blocked.contains_many(others)),
        "BlockedBloom::contains_keys in Rust": (KEYS, lambda: Timed(library("contains"))),
        "Bloom.contains_many(array)": (KEYS, lambda: bloom.contains_many(others)),
        "rbloom, a loop of in": (FEW, lambda: [key in peer for key in absent]),
        "set, a loop of in": (FEW, lambda: [key in exact for key in absent]),
        "key in BlockedBloom": (FEW, lambda: [key in blocked for key in absent]),
    })
    library.end()
    report(f"look {KEYS:,} integers up, none there", times)
    ours, rust, loop_of_rbloom = times["BlockedBloom.contains_many(array)"], times["BlockedBloom::contains_keys in Rust"], times["rbloom, a loop of in"]
    goal("contains_many of integers: times as fast as rbloom's loop", loop_of_rbloom / ours, 20)
    goal("contains_many of integers: time, beside the batch in Rust", ours / rust, 1.3, at_least=False)
    wrong = blocked.contains_many(others).mean(), bloom.contains_many(others).mean()
    print(f"\nrates: BlockedBloom {100 * wrong[0]:.2f} %, Bloom {100 * wrong[1]:.2f} %; "
          f"{blocked.size_in_bytes:,} and {bloom.size_in_bytes:,} bytes, rbloom {peer.size_in_bits // 8:,}")
    assert max(wrong) < 0.0115 and blocked.contains_many(numbers).all()
    del exact, objects
    times = interleaved({
        "BlockedBloom.add_many(column)": (KEYS, lambda: filled(ib.BlockedBloom, texts)),
        "BlockedBloom.update(list)": (KEYS, lambda: filled(ib.BlockedBloom, strings)),
        "rbloom, a loop of add": (KEYS, lambda: rbloom_of(strings)),
        "rbloom.update(list)": (KEYS, lambda: rbloom_updated(strings)),
    })
    report(f"add {KEYS:,} strings of Arrow at 1 %", times)
    goal("add_many of strings: times as fast as rbloom's loop", times["rbloom, a loop of add"] / times["BlockedBloom.add_many(column)"], 10)
    blocked, peer = filled(ib.BlockedBloom, texts), rbloom_updated(strings)
    asked = strings[:FEW]
    times = interleaved({
        "BlockedBloom.contains_many(column)": (KEYS, lambda: blocked.contains_many(texts)),
        "rbloom, a loop of in": (FEW, lambda: [key in peer for key in asked]),
    })
    report(f"look {KEYS:,} strings up, all there", times)
    goal("contains_many of strings: times as fast as rbloom's loop", times["rbloom, a loop of in"] / times["BlockedBloom.contains_many(column)"], 10)
    # One at a time, in filters of all keys and of a tenth of them: the same texts repeatedly, whose hash Python caches,
    # and fresh ones, as from a file. Each filter is queried twice in a row, as others have evicted it from the cache.
    encoded = [text.encode() for text in asked]

    def loop(filter: Any) -> int:
        count = 0
        for key in asked:
            if key in filter:
                count += 1
        return count

    def fresh(filter: Any) -> int:
        count = 0
        for text in encoded:
            if text.decode() in filter:
                count += 1
        return count

    def none() -> int:
        count = 0
        for key in asked:
            if key is filled:
                count += 1
        return count

    for size, keys in ((KEYS, strings), (FEW, asked)):
        small = {"BlockedBloom": ib.BlockedBloom(size, 0.01), "Bloom": ib.Bloom(size, 0.01), "rbloom": rbloom.Bloom(size, 0.01)}
        for one in small.values():
            one.update(keys)
        for again, ask in ((True, loop), (False, fresh)):
            # (Garbage collection in between also evicts the filter from the cache if there are many texts.)
            competitors: dict[str, tuple[int, Callable[[], Any]]] = {}
            for name, one in small.items():
                for turn in ("", ", a second time"):
                    competitors[name + turn] = (FEW, lambda ask=ask, one=one: ask(one))
            if again:
                competitors["the loop alone"] = (FEW, none)
            times = interleaved(competitors)
            which = "whose hash Python remembers" if again else "whose hash Python has not computed yet"
            report(f"`key in filter`, one str at a time {which}, filters of {size:,} keys", times)
            for name in ("BlockedBloom", "Bloom"):
                for turn in ("", ", a second time"):
                    what = f"`key in {name}` of {size:,}, str {'again' if again else 'fresh'}{turn}: times as fast as rbloom"
                    goal(what, times["rbloom" + turn] / times[name + turn], 1)


def memory() -> None:
    program = f"""
import numpy as np, ironbloom as ib
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
keys = np.arange({KEYS})
keys.sum()
open("/proc/self/clear_refs", "w").write("5")
before = peak()
seen = ib.BlockedBloom({KEYS}, 0.01)
seen.add_many(keys)
print(peak() - before, seen.size_in_bytes, keys.nbytes)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    grown, filter, array = map(int, done.stdout.split())
    goal("memory of add_many beyond the filter, MiB", (grown - filter) / 2**20, 16, at_least=False)
    print(f"\n### Memory of add_many\n\n{grown:,} bytes more at the peak, of which the filter has {filter:,}; the array has {array:,}.")


def importing() -> None:
    def started(program: str) -> float:
        return timed(lambda: subprocess.run([sys.executable, "-c", program], check=True))[0] * 1000

    times: dict[str, list[float]] = {}
    for _ in range(max(ROUNDS, 9)):
        for program in ("import numpy", "import numpy, ironbloom", "import ironbloom", "pass"):
            times.setdefault(program, []).append(started(program))
    medians = {program: statistics.median(those) for program, those in times.items()}
    report("import", medians, "ms")
    goal("import above numpy, ms", medians["import numpy, ironbloom"] - medians["import numpy"], 30, at_least=False)


def lookups(folder: pathlib.Path) -> None:
    """Ten columns of integers, as in the table of the index's own benchmark: two of them are queried."""
    path = folder / "table.parquet"
    rng = np.random.default_rng(0)
    columns = {f"i{number}": rng.integers(0, 1_000_000, ROWS) for number in range(1, 11)}
    pq.write_table(pa.table(columns), path)
    asked = [(int(columns["i2"][row]), int(columns["i5"][row])) for row in rng.integers(0, ROWS, 20)]
    seconds, index = timed(lambda: ib.Index.build(path, folder / "table.ibx", progress=False))
    print(f"\n### Lookups in a Parquet file of {ROWS:,} rows and ten columns, {path.stat().st_size:,} bytes\n\n"
          f"index: {seconds:.1f} s, {(folder / 'table.ibx').stat().st_size:,} bytes")
    connection = duckdb.connect()
    connection.execute(f"create view t as select * from '{path}'")
    expected = []

    def ours() -> list[int]:
        return [index.find((ib.col("i2") == a) & (ib.col("i5") == b)).to_pyarrow().num_rows for a, b in asked]

    def duck() -> list[int]:
        return [connection.sql("select * from t where i2 = ? and i5 = ?", params=[a, b]).to_arrow_table().num_rows for a, b in asked]

    def polar() -> list[int]:
        lazy = pl.scan_parquet(path)
        return [lazy.filter((pl.col("i2") == a) & (pl.col("i5") == b)).collect().height for a, b in asked]

    def panda() -> list[int]:
        import pandas as pd

        a, b = asked[0]
        frame = pd.read_parquet(path, columns=["i2", "i5"])
        return [len(frame[(frame.i2 == a) & (frame.i5 == b)])]

    expected = ours()
    assert expected == duck() == polar() and all(expected) and panda() == expected[:1]
    times = interleaved({
        "Index.find": (len(asked), ours),
        "DuckDB": (len(asked), duck),
        "polars": (len(asked), polar),
        "pandas, one lookup with the two columns read": (1, panda),
    })
    for name in ("DuckDB", "polars"):
        goal(f"Index.find: times as fast as {name}", times[name] / times["Index.find"], 20)
    report("one lookup of two columns, all columns as an Arrow table", {name: nanos / 1e6 for name, nanos in times.items()}, "ms")


def main() -> None:
    print(f"ironbloom {ib.__version__}, rbloom, numpy {np.__version__}, polars {pl.__version__}, DuckDB {duckdb.__version__}, "
          f"Python {sys.version.split()[0]}; {os.cpu_count()} cores; {ROUNDS} rounds")
    with tempfile.TemporaryDirectory() as folder:
        filters(pathlib.Path(folder))
    memory()
    importing()
    with tempfile.TemporaryDirectory() as folder:
        lookups(pathlib.Path(folder))
    print("\n### Goals\n\n| | measured | goal | |\n|---|---|---|---|\n" + "\n".join(GOALS))
    print(f"\npeak of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024:,} MiB")


main()
