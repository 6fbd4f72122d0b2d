"""Files, bytes and pickles: every state survives, and damage is an error."""

from __future__ import annotations

import multiprocessing
import os
import pathlib
import pickle
import random
import threading
import time
from typing import Any

import ironbloom as ib
import pyarrow as pa
import pytest
from conftest import GOLDEN, LIBRARY_GOLDEN, every_kind

KEYS = [f"golden key {number}" for number in range(100)]


def made_again(kind: str) -> ib.Filter:
    """The filter that the program wrote, made here."""
    makers: dict[str, Any] = {
        "bloom": lambda: ib.Bloom(200, 0.01, seed=42),
        "segmented": lambda: ib.Bloom.segmented(200, 0.01, seed=42),
        "blocked": lambda: ib.BlockedBloom(200, 0.01, seed=42),
        "split-block": lambda: ib.SplitBlock(200, 0.01, seed=42),
        "counting": lambda: ib.Counting(200, 0.01, seed=42),
        "d-left": lambda: ib.DLeft(200, 0.01, seed=42),
        "cuckoo": lambda: ib.Cuckoo(200, 0.01, seed=42),
        "cuckoo-packed": lambda: ib.Cuckoo.packed(200, 0.01, seed=42),
        "fuse": lambda: ib.BinaryFuse(KEYS, 0.01, seed=42),
        "fuse4": lambda: ib.BinaryFuse(KEYS, 0.01, arity=4, seed=42),
        "scalable": lambda: ib.Scalable(200, 0.01, seed=42),
        "windowed": lambda: ib.Windowed(200, 0.01, seed=42),
        "bitmap": lambda: ib.Bitmap(1000),
        "joint": lambda: ib.Joint(200, 0.01, ["size", "name"], partial=True, seed=42),
    }
    filter: ib.Filter = makers[kind]()
    if kind == "bitmap":
        filter.update(range(0, 700, 7))
    elif kind == "joint":
        filter.update((str(number % 3), key) for number, key in enumerate(KEYS))
    elif not kind.startswith("fuse"):
        filter.update(KEYS)
    return filter


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("program-*.ibf")), ids=lambda path: path.stem)
def test_what_the_program_built_answers_here_and_the_other_way_round(path: pathlib.Path) -> None:
    kind = path.stem.removeprefix("program-")
    read, made = ib.open(path), made_again(kind)
    assert read.kind == made.kind and type(read) is type(made)
    assert read.hash_function == made.hash_function
    if kind == "bitmap":
        assert list(read) == list(range(0, 700, 7))  # type: ignore[call-overload]
    elif kind == "joint":
        assert all((str(number % 3), key) in read for number, key in enumerate(KEYS))
        assert read.contains(size="2")  # type: ignore[attr-defined]
        assert ("1", KEYS[0]) not in read
    else:
        assert all(key in read for key in KEYS)
        assert all(read.contains_many([key.encode() for key in KEYS]))
    if kind in ("joint", "cuckoo", "cuckoo-packed", "d-left"):
        # The program inserts them in another order.
        assert len(read) == len(made) == 100  # type: ignore[arg-type]
        others = [f"other {number}" for number in range(2000)]
        if kind != "joint":
            assert read.contains_many(others) == made.contains_many(others)
    else:
        # The header of those files does not yet say what their keys are, and their last checksum is also of the header.
        assert made.to_bytes()[256:-8] == path.read_bytes()[256:-8]
        assert made.to_bytes()[:8] == path.read_bytes()[:8]


@pytest.mark.parametrize("path", sorted(LIBRARY_GOLDEN.glob("*.ibf")), ids=lambda path: path.stem)
def test_golden_files_of_the_library_answer(path: pathlib.Path) -> None:
    read = ib.open(path)
    if read.kind == "bitmap":
        keys: list[Any] = list(range(0, 700, 7))
    elif read.attributes:
        sizes = ["small", "large", "huge"]
        keys = [(sizes[number % 3], key) for number, key in enumerate(KEYS)]
    else:
        keys = KEYS[-60:] if read.kind == "windowed" else list(KEYS)  # the window has 60
    assert all(key in read for key in keys)
    assert all(read.contains_many(keys))
    assert read.to_bytes() == path.read_bytes()


def answers(filter: ib.Filter) -> list[bool]:
    if filter.attributes:
        return [(number % 3, f"key {number}") in filter for number in range(1000)]
    if filter.kind == "bitmap":
        return [number in filter for number in range(1000)]
    return [f"key {number}" in filter for number in range(1000)]


def test_every_kind_survives_every_way(tmp_path: pathlib.Path) -> None:
    for number, one in enumerate(every_kind()):
        path = tmp_path / f"{number}.ibf"
        one.save(path)
        one.save(str(path))
        ways = [
            ib.open(path),
            ib.open(str(path)),
            ib.open(path, mmap=True),
            ib.open(path, mmap=True, verify=False),
            type(one).load(path),
            ib.Filter.load(path),
            ib.from_bytes(one.to_bytes()),
            type(one).from_bytes(one.to_bytes()),
            ib.from_bytes(bytearray(one.to_bytes())),
            *(pickle.loads(pickle.dumps(one, protocol)) for protocol in range(2, 6)),
        ]
        for other in ways:
            assert other == one and type(other) is type(one)
            assert answers(other) == answers(one)
            assert other.capacity == one.capacity


def test_a_mapped_filter_can_be_changed_and_the_file_stays(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "seen.ibf"
    seen = ib.Bloom(1000)
    seen.add("alice")
    seen.save(path)
    before = path.read_bytes()
    mapped = ib.open(path, mmap=True)
    mapped.add("bob")
    assert "alice" in mapped and "bob" in mapped
    assert path.read_bytes() == before
    mapped.save(path)  # replaces the file that it maps
    assert "bob" in ib.open(path)


def test_files_that_are_not_there_are_os_errors(tmp_path: pathlib.Path) -> None:
    missing = tmp_path / "missing.ibf"
    for read in (ib.open, ib.Bloom.load, lambda path: ib.open(path, mmap=True)):
        with pytest.raises(FileNotFoundError) as raised:
            read(missing)
        assert raised.value.filename == str(missing)
    with pytest.raises(FileNotFoundError):
        ib.Bloom(10).save(tmp_path / "no" / "folder.ibf")
    with pytest.raises(IsADirectoryError):
        ib.open(tmp_path)


def test_a_filter_of_another_kind_is_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "seen.ibf"
    ib.Bloom(10).save(path)
    with pytest.raises(ib.Mismatch, match="holds a bloom filter, not a cuckoo"):
        ib.Cuckoo.load(path)
    with pytest.raises(ib.Mismatch):
        ib.Cuckoo.from_bytes(path.read_bytes())


def test_hostile_bytes_are_an_error_never_an_answer() -> None:
    random.seed(18)
    for one in every_kind():
        data = one.to_bytes()
        for cut in (0, 1, 7, 8, 100, len(data) // 2, len(data) - 1):
            with pytest.raises(ib.DamagedFile):
                ib.from_bytes(data[:cut])
        with pytest.raises(ib.DamagedFile):
            ib.from_bytes(data + b"\0")
        for _ in range(60):
            damaged = bytearray(data)
            place = random.randrange(len(damaged))
            damaged[place] ^= 1 << random.randrange(8)
            with pytest.raises(ib.DamagedFile):
                ib.from_bytes(bytes(damaged))
    for _ in range(200):
        with pytest.raises(ib.DamagedFile):
            ib.from_bytes(random.randbytes(random.randrange(600)))
    with pytest.raises(TypeError):
        ib.from_bytes("text")  # type: ignore[arg-type]


def _ask(filter: ib.Filter) -> tuple[list[bool], bytes]:
    filter_answers = answers(filter)
    return filter_answers, filter.to_bytes()


@pytest.mark.parametrize("start", ["spawn", "fork"])
def test_filters_go_to_other_processes(start: str) -> None:
    filters = every_kind()
    with multiprocessing.get_context(start).Pool(2) as pool:
        for one, (there, data) in zip(filters, pool.map(_ask, filters), strict=True):
            assert there == answers(one)
            assert data == one.to_bytes()


def test_attributes_of_a_subclass_are_pickled() -> None:
    seen = Tagged(100)
    seen.tag = "urls"
    seen.add("alice")
    other = pickle.loads(pickle.dumps(seen))
    assert type(other) is Tagged and other.tag == "urls" and other == seen


class Tagged(ib.Bloom):
    tag: str


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_in_the_middle_leaves_two_valid_filters(tmp_path: pathlib.Path) -> None:
    seen = ib.Scalable(100, 0.01)
    path = tmp_path / "child.ibf"
    child = 0

    def keys() -> Any:
        nonlocal child
        for key in range(10_000):
            if key == 5000:
                child = os.fork()
            yield ("child", key) if key >= 5000 and child == 0 else key

    seen.update(keys())
    if child == 0:
        seen.save(path)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    other = ib.open(path)
    assert all(key in seen for key in range(10_000))
    assert all((key if key < 5000 else ("child", key)) in other for key in range(10_000))


def foreign_key(form: str, number: int) -> Any:
    """The keys of `crates/ironbloom/tests/foreign/README.md`."""
    if form in ("long", "int"):
        bits, factor = (64, 0x9E3779B97F4A7C15) if form == "long" else (32, 0x9E3779B1)
        return (number * factor + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)
    if form == "double":
        return number / 8
    return f"{number}{['', 'é', 'ab', '漢字', 'x€'][number % 5]}"


@pytest.mark.parametrize(
    ("name", "form"),
    [("guava-64-long", "long"), ("guava-64-int", "int"), ("guava-64-chars", "chars"), ("datasketches-double", "double"), ("dcso", "text")],
)
def test_a_converted_filter_answers_as_its_program_did(name: str, form: str) -> None:
    answers = (GOLDEN.parents[2] / "ironbloom" / "tests" / "foreign" / f"{name}.answers").read_bytes()
    filter = ib.open(GOLDEN / f"foreign-{name}.ibf")
    assert isinstance(filter, ib.Foreign) and filter.kind == "foreign"
    if name != "dcso":
        with pytest.raises(ib.InvalidKey, match="does not say"):
            foreign_key(form, 1) in filter
    filter = filter.of_keys(form)
    keys = [foreign_key(form, number) for number in range(5000)]
    expected = [bool(answers[number // 8] >> (number % 8) & 1) for number in range(5000)]
    assert [key in filter for key in keys] == filter.contains_many(keys) == expected
    column = pa.array([None, *keys])
    assert filter.contains_many(column).to_pylist() == [None, *expected]
    new = next(key for key, known in zip(keys, expected, strict=True) if not known)
    more = pickle.loads(pickle.dumps(filter.copy()))
    assert more.add(new) and new in more and new not in filter
    more.update(keys[-100:])
    assert all(more.contains_many(pa.chunked_array([keys[-100:]])).to_pylist())
    assert type(filter | more) is ib.Foreign and new in filter | more
    wrong: list[Any] = [b"1", "1", None, (1,), 2**70, [], 1.5]
    wrong = [key for key in wrong if type(key) is not type(keys[0]) and not (form == "text" and key == b"1")]
    for key in wrong if form != "double" else ["1", b"1", None]:
        for use in (filter.__contains__, more.add, lambda key: filter.contains_many([key])):
            with pytest.raises(ib.InvalidKey):
                use(key)
    with pytest.raises(ib.Refused):
        more.remove(keys[0])
    with pytest.raises(ib.InvalidParameter, match="hex"):
        filter.of_keys("number")
    with pytest.raises(ib.Refused, match="itself"):
        ib.Bloom(10)._with_form("long")


def test_a_save_waits_for_who_has_the_lock_and_who_has_it_saves(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "f.ibf"
    ib.Bloom(1000).save(path)
    other = ib.Bloom(1000)
    other.add("bob")
    with ib.lock(path):
        saving = threading.Thread(target=other.save, args=(path,))
        saving.start()
        with pytest.raises(ib.Refused, match="this thread"), ib.lock(tmp_path / "." / "f.ibf"):
            pass
        seen = ib.open(path)
        seen.add("alice")
        time.sleep(0.2)
        seen.save(path)
        assert saving.is_alive() and "alice" in ib.open(path)
        other.save(tmp_path / "g.ibf")  # of another file
    saving.join(60)
    assert not saving.is_alive() and "bob" in ib.open(path)
    assert sorted(os.listdir(tmp_path)) == ["f.ibf", "g.ibf"]
    seen.save(path)
    with ib.lock(path):  # again
        pass


def test_no_thread_loses_what_others_have_saved(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "f.ibf"
    ib.Bloom(1000, 1e-9).save(path)

    def add(writer: int) -> None:
        for number in range(10):
            with ib.lock(path):
                seen = ib.open(path)
                seen.add((writer, number))
                seen.save(path)

    threads = [threading.Thread(target=add, args=(writer,)) for writer in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    kept = ib.open(path)
    assert all((writer, number) in kept for writer in range(6) for number in range(10))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_does_not_have_the_lock_and_leaves_it_alone(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "f.ibf"
    ib.Bloom(1000).save(path)
    with ib.lock(path):
        child = os.fork()
        if child == 0:
            done = 1
            try:
                filter = ib.Bloom(1000)
                filter.add("child")
                threading.Timer(0.2, lambda: (tmp_path / "waits").touch()).start()
                filter.save(path)
                done = 0
            finally:
                os._exit(done)
        while not (tmp_path / "waits").exists():
            time.sleep(0.01)
        assert "child" not in ib.open(path)
    assert os.waitpid(child, 0)[1] == 0
    assert "child" in ib.open(path)


def test_no_lock_is_needed_where_there_are_none(tmp_path: pathlib.Path) -> None:
    filter = ib.Bloom(1000)
    filter.save("/dev/null")
    with pytest.raises(FileNotFoundError):
        filter.save(tmp_path / "missing" / "f.ibf")
    with pytest.raises(OSError):
        filter.save(tmp_path)
