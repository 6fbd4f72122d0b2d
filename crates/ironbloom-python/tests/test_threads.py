"""Threads run side by side, Ctrl-C is heard, and nothing leaks."""

from __future__ import annotations

import gc
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ironbloom as ib
import numpy as np
import pyarrow as pa
import pytest


def test_threads_that_add_lose_no_key() -> None:
    seen = ib.Scalable(1000, 1e-4)
    columns = [np.arange(start, start + 50_000) for start in range(0, 400_000, 50_000)]

    def work(column: Any) -> None:
        seen.add_many(column)
        for key in column[:500].tolist():
            seen.add(("one", key))
        assert seen.contains_many(column).all()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, columns))
    assert all(seen.contains_many(column).all() for column in columns)
    assert all(("one", key) in seen for column in columns for key in column[:500].tolist())


def test_single_adds_beside_a_batch_lose_no_key() -> None:
    """Single adds take no lock while they are alone; here they never are. The filter grows meanwhile."""
    seen = ib.Scalable(1000, 0.001)
    column = np.arange(1_500_000)
    count = 0
    # How many adds find room beside a batch depends on the machine.
    for part in np.split(column, 5):
        batch = threading.Thread(target=seen.add_many, args=(part,))
        batch.start()
        while batch.is_alive():
            seen.add(("one", count))
            count += 1
        batch.join()
    assert all(("one", number) in seen for number in range(count))
    assert seen.contains_many(column).all()


def test_the_interpreter_is_free_during_a_batch() -> None:
    """While one thread works on a batch, another one runs Python code: it is seen to make steps meanwhile."""
    seen = ib.Bloom(5_000_000, 1e-4)
    column = np.arange(5_000_000)
    steps, running = 0, True

    def count() -> None:
        nonlocal steps
        while running:
            steps += 1

    thread = threading.Thread(target=count)
    thread.start()
    try:
        before = steps
        seen._many("add", column)
        during = steps - before
    finally:
        running = False
        thread.join()
    # With the lock held there would be a handful at each end.
    assert during > 10_000


def test_a_union_with_itself_does_not_wait_for_itself() -> None:
    seen = ib.Bloom(1000)
    seen.add(1)
    seen |= seen
    seen &= seen
    assert seen == seen and 1 in seen
    one, two = ib.Bloom(1000), ib.Bloom(1000)

    def cross(a: Any, b: Any) -> None:
        for _ in range(300):
            a.merge(b)
            assert (a == b) in (True, False)

    threads = [threading.Thread(target=cross, args=pair) for pair in ((one, two), (two, one))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


INTERRUPTED = """
import itertools, os, signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever starts tests in the background ignores it
import numpy as np
import ironbloom as ib

seen = ib.Scalable(1000, 0.01)
seen.add("before")
what = sys.argv[1]
count = 0

def keys():
    global count
    for count in itertools.count():
        yield count

column = np.arange(200_000_000, dtype="int64") if what == "batch" else None
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    if what == "update":
        seen.update(keys())
    elif what == "range":
        seen.update(range(10**12))
    else:
        seen.add_many(column)
    print("not interrupted")
except KeyboardInterrupt:
    assert "before" in seen and 0 in seen and 1000 in seen
    assert what != "update" or all(key in seen for key in range(0, count - 1024, 997))
    seen.add("after")
    assert "after" in ib.from_bytes(seen.to_bytes())
    print("interrupted")
"""


@pytest.mark.parametrize("what", ["update", "range", "batch"])
def test_ctrl_c_interrupts_and_leaves_a_valid_filter(what: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, what],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )
    assert done.stdout.strip() == "interrupted", done.stdout + done.stderr


def test_a_signal_handler_may_use_the_filter() -> None:
    seen = ib.Bloom(30_000_000, 0.01)
    heard = []

    def handler(*_: Any) -> None:
        heard.append(seen.add("from the handler"))

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1))
        timer.start()
        column = np.arange(3_000_000)
        while not heard:
            seen.add_many(column)
        timer.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert "from the handler" in seen


def memory() -> int:
    """Bytes that the process has in memory."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_nothing_leaks() -> None:
    keys = [f"key {number}" for number in range(2000)]
    column, numbers = pa.array(keys), np.arange(2000)
    table = pa.table({"a": keys, "b": keys})

    def work() -> None:
        for make in (ib.Bloom, ib.BlockedBloom, ib.Cuckoo):
            seen = make(3000)
            seen.update(keys)
            seen.contains_many(column)
            seen.contains_many(numbers)
            seen.copy() == ib.from_bytes(seen.to_bytes())
            for wrong in ([], "\udc80"):
                try:
                    seen.add(wrong)
                except (TypeError, ValueError):
                    pass
        ib.BinaryFuse(column)
        ib.dedup_table(table, "a")
        np.asarray(ib.Bloom(10)._many("contains", numbers)).sum()

    for _ in range(20):
        work()
    gc.collect()
    before = memory()
    for _ in range(200):
        work()
    gc.collect()
    # One of the objects above leaked in each round would be 400 KB at least.
    assert memory() - before < 8 << 20


def test_references_to_keys_and_columns_are_given_back() -> None:
    class Key(str):
        pass

    seen = ib.Bloom(100)
    key = Key("alice")
    gone = weakref.ref(key)
    seen.add(key), key in seen, seen.update([key], iter([key])), seen.contains_many([key])
    before = sys.getrefcount(key)
    seen.add(key)
    assert sys.getrefcount(key) == before
    del key
    assert gone() is None
    column = np.arange(10)
    before = sys.getrefcount(column)
    seen.add_many(column)
    seen.contains_many(column)
    assert sys.getrefcount(column) == before


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_batch_makes_no_copy_of_its_column() -> None:
    """In a separate process: the largest amount of memory ever used grows by the answers (a byte per key) only."""
    program = """
import sys
import numpy as np
import ironbloom as ib

def peak():
    # Not getrusage, whose maximum is that of the parent at first.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))

def forget_peak():
    with open("/proc/self/clear_refs", "w") as refs:
        refs.write("5")

seen = ib.BlockedBloom(1000, 0.01)
numbers = np.arange(8_000_000, dtype="int64")
seen.add_many(numbers[:1000])
seen.contains_many(numbers[:1000])
forget_peak()
before = peak()
seen.add_many(numbers)
assert peak() - before < 2 << 20, peak() - before
before = peak()
answers = seen.contains_many(numbers)
assert peak() - before < (8 << 20) + (2 << 20), peak() - before
# That copies are seen at all: these values do not lie one after the other, and must be copied.
forget_peak()
before = peak()
seen.add_many(numbers[::2])
assert peak() - before > 24 << 20, peak() - before
"""
    subprocess.run(
        [sys.executable, "-c", program],
        check=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )


def test_importing_needs_no_other_library() -> None:
    program = "import sys, ironbloom; print([name for name in ('numpy', 'pyarrow', 'pandas', 'polars', 'asyncio') if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )
    assert done.stdout.strip() == "[]"


FORKED = """
import os, signal, sys, threading, time
import numpy as np
import ironbloom as ib

work, seconds = sys.argv[1], 20.0
seen = ib.BlockedBloom(3_000_000, 0.01)
seen.add("before")
column, done = np.arange(2_000_000), False

def other_thread():
    while not done:
        seen._many(work, column)

def child():
    answers = [
        ("in", lambda: "before" in seen),
        ("add", lambda: seen.add("after") and "after" in seen),
        ("many", lambda: bool(seen.contains_many(np.array([1, 2])).shape)),
        ("update", lambda: seen.update(range(5)) is None and 3 in seen),
        ("copy", lambda: "before" in seen.copy()),
        ("bytes", lambda: "before" in ib.from_bytes(seen.to_bytes())),
        ("clear", lambda: seen.clear() is None and not seen),
    ]
    said = set()
    for name, ask in answers:
        try:
            assert ask(), name
            said.add("answered")
        except ib.Error as error:
            assert "fork" in str(error), error
            said.add("refused")
    assert len(said) == 1, said
    return said.pop()

thread = threading.Thread(target=other_thread)
thread.start()
outcomes = []
for _ in range(25):
    time.sleep(0.003)
    ours, theirs = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            said = child()
        except BaseException as error:
            said = repr(error)
        os.write(theirs, said.encode())
        os._exit(0)
    os.close(theirs)
    deadline = time.monotonic() + seconds
    while os.waitpid(process, os.WNOHANG)[0] == 0:
        if time.monotonic() > deadline:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
            os.write(1, b"a child hangs ")
            break
        time.sleep(0.001)
    with os.fdopen(ours, "rb") as pipe:
        outcomes.append(pipe.read().decode())
done = True
thread.join()
assert seen.contains_many(column).all() or work == "contains"
print(" ".join(sorted(set(outcomes))))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("work", "expected"), [("contains", {"answered"}), ("add", {"answered", "refused"})])
def test_a_child_that_is_forked_beside_a_batch_answers_or_refuses_and_never_hangs(work: str, expected: set[str]) -> None:
    """Beside lookups it answers; beside a change, which may be half done in the child, it may also refuse."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED, work],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(done.stdout.split()) <= expected, done.stdout


FORKED_INSIDE = """
import os
import ironbloom as ib

seen = ib.Bloom(10_000, 1e-6)

def keys():
    yield from range(2000)
    global process
    process = os.fork()
    yield from range(2000, 4000)

seen.update(keys())
assert all(key in seen for key in range(4000)) and seen.add("after")
assert seen.contains_many(list(range(4000))) == [True] * 4000
if process == 0:
    os._exit(0)
assert os.waitpid(process, 0)[1] == 0
print("fine")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_an_iterator_may_fork() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED_INSIDE],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
    )
    assert done.stdout.strip() == "fine", done.stdout + done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_processes_that_are_forked_draw_different_secret_keys() -> None:
    """A server that forks its workers after it has drawn a key would give all of them the same ones."""
    drawn = {ib.Bloom(100, 0.01, seed="random").to_bytes()}
    for _ in range(3):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writing, ib.Bloom(100, 0.01, seed="random").to_bytes())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as answer:
            drawn.add(answer.read())
        os.waitpid(child, 0)
    assert len(drawn) == 4
