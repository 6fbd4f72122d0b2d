"""A guard never hides what is stored, whatever its store does."""

from __future__ import annotations

import asyncio
import gc
import inspect
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ironbloom as ib
import pytest
from hypothesis import given
from hypothesis import strategies as st


class Counted:
    """A store that counts what it is asked, and fails on demand."""

    def __init__(self, start: dict[Any, Any] | None = None) -> None:
        self.values = dict(start or {})
        self.asked: list[Any] = []
        self.fail: BaseException | None = None

    def _try(self) -> None:
        if self.fail is not None:
            raise self.fail

    def get(self, key: Any) -> Any:
        self.asked.append(key)
        self._try()
        return self.values.get(key)

    def put(self, key: Any, value: Any) -> bool:
        self._try()
        new = key not in self.values
        self.values[key] = value
        return new

    def remove(self, key: Any) -> bool:
        self._try()
        return self.values.pop(key, None) is not None

    def keys(self) -> Any:
        return list(self.values)


def test_what_is_not_there_is_not_asked_for() -> None:
    store = Counted({f"key {number}": number for number in range(1000)})
    guard = ib.Guard(store, 1000, 0.01)
    assert all(guard.get(f"key {number}") == number for number in range(1000))
    store.asked.clear()
    assert all(guard.get(f"other {number}") is None for number in range(10_000))
    # 1 % of 10,000, sigma 10.
    assert len(store.asked) < 160
    stats = guard.stats()
    assert stats["hits"] == 1000 and stats["skipped"] == 10_000 - len(store.asked)
    assert stats["false_positives"] == len(store.asked) and stats["lookups"] == 11_000
    assert 0 <= stats["measured_rate"] < 0.016
    assert "skipped" in repr(guard)


@pytest.mark.parametrize("kind", ["blocked", "cuckoo", "d-left", "scalable"])
@given(steps=st.lists(st.tuples(st.sampled_from(["put", "remove", "get", "fail", "rebuild"]), st.integers(0, 20)), max_size=60))
def test_every_kind_answers_as_the_store_itself(kind: str, steps: list[tuple[str, int]]) -> None:
    store = Counted({1: "one"})
    guard = ib.Guard(store, 100, kind=kind, only_writer=True)
    for step, key in steps:
        if step == "put":
            assert guard.put(key, f"value {key}") in (True, False)
        elif step == "remove":
            was = key in store.values
            assert guard.remove(key) is was
        elif step == "fail":
            store.fail = OSError("the disk is gone")
            for operation in (lambda: guard.put(key, "lost?"), lambda: guard.remove(key)):
                try:
                    operation()
                except OSError:
                    pass
            store.fail = None
        elif step == "rebuild":
            guard.rebuild()
        for key, value in store.values.items():
            assert guard.get(key) == value and key in guard
        assert guard.get(100) is None or 100 in store.values


def test_a_put_that_fails_but_took_effect_is_found() -> None:
    store = Counted()
    guard = ib.Guard(store)

    class Late(Exception):
        pass

    def put(key: Any, value: Any) -> bool:
        store.values[key] = value
        raise Late

    store.put = put  # type: ignore[method-assign]
    with pytest.raises(Late):
        guard.put("alice", 1)
    assert guard.get("alice") == 1
    store.fail = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        guard.get("alice")
    store.fail = None
    assert guard.get("alice") == 1


def test_mappings_are_stores() -> None:
    store: dict[Any, Any] = {"alice": 1, 7: "seven", (1, "a"): "row"}
    users = ib.Guard(store)
    assert users["alice"] == 1 and users[7] == "seven" and users[1, "a"] == "row" and users.get("bob", "nobody") == "nobody"
    users["bob"] = 2
    assert store["bob"] == 2 and "bob" in users and "carol" not in users
    assert users.put("bob", 3) is False and users.put("dave", 4) is True
    del users["bob"]
    assert "bob" not in store
    for use in (lambda: users["bob"], lambda: users.__delitem__("bob")):
        with pytest.raises(KeyError):
            use()
    store["eve"] = 5  # past the guard
    assert users.get("eve") is None
    users.note("eve")
    assert users.get("eve") == 5
    store["zoe"] = 6
    users.rebuild()
    assert users.get("zoe") == 6


def test_functions_are_stores_with_known_keys() -> None:
    asked: list[Any] = []

    def ask(key: str) -> Any:
        asked.append(key)
        return len(key)

    words = ib.Guard(ask, keys=["alice", "bob"])
    assert (words.get("alice"), words.get("carol"), asked) == (5, None, ["alice"])
    with pytest.raises(ib.Refused, match="note"):
        words.put("carol", 5)
    words.note("carol")
    assert words.get("carol") == 5
    with pytest.raises(TypeError, match="keys="):
        ib.Guard(ask)
    with pytest.raises(TypeError, match="no store"):
        ib.Guard(5)
    with pytest.raises(ib.InvalidParameter, match="blocked"):
        ib.Guard({}, kind="fuse")
    with pytest.raises(TypeError, match="key="):
        words.get([])


def test_stores_that_say_nothing_lose_nothing() -> None:
    class Silent:
        def __init__(self) -> None:
            self.values: dict[Any, Any] = {}

        def get(self, key: Any) -> Any:
            return self.values.get(key)

        def put(self, key: Any, value: Any) -> None:
            self.values[key] = value

        def remove(self, key: Any) -> None:
            self.values.pop(key, None)

    guard = ib.Guard(Silent(), 100, kind="cuckoo", keys=(), only_writer=True)
    for round in range(3):
        for key in range(50):
            guard.put(key, key)
        for key in range(0, 50, 2):
            guard.remove(key)
        assert all(guard.get(key) == (key if key % 2 else None) or round for key in range(50))
        assert all(guard.get(key) == key for key in range(1, 50, 2))


def test_threads_lose_nothing() -> None:
    store: dict[int, int] = {}
    guard = ib.Guard(store, 20_000, kind="cuckoo", only_writer=True)

    def work(start: int) -> None:
        for key in range(start, 10_000, 8):
            guard.put(key, key)
            assert guard.get(key) == key
            if key % 3 == 0:
                assert guard.remove(key)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert all(guard.get(key) == (key if key % 3 else None) for key in range(10_000))


def test_a_store_may_ask_the_guard() -> None:
    class Nested(Counted):
        def get(self, key: Any) -> Any:
            value = super().get(key)
            return guard.get(value) if isinstance(value, str) else value

    store = Nested({"alias": "alice", "alice": 1})
    guard = ib.Guard(store)
    assert guard.get("alias") == 1 and guard.get("alice") == 1


def test_what_was_not_there_is_not_asked_for_again() -> None:
    asked: list[Any] = []

    @ib.guarded
    def user(name: str) -> Any:
        """Looks a user up."""
        asked.append(name)
        return {"alice": 1}.get(name)

    assert [user("bob") for _ in range(5)] == [None] * 5 and asked == ["bob"]
    assert [user("alice") for _ in range(3)] == [1] * 3 and asked == ["bob"] + ["alice"] * 3
    assert user.__doc__ == "Looks a user up." and user.stats()["lookups"] > 0  # type: ignore[attr-defined]

    @ib.guarded(ttl=0.05)
    def brief(one: int, two: int) -> Any:
        asked.append((one, two))
        return None

    asked.clear()
    brief(1, 2), brief(1, 2), brief(2, 1)
    assert asked == [(1, 2), (2, 1)]
    time.sleep(0.1)
    brief(1, 2)
    assert len(asked) == 3

    @ib.guarded(keys=lambda: ["alice"])
    def known(name: str) -> Any:
        asked.append(name)
        return 1

    asked.clear()
    assert (known("bob"), known("alice"), asked) == (None, 1, ["alice"])

    @ib.guarded
    def failing(name: str) -> Any:
        raise LookupError(name)

    for _ in range(2):
        with pytest.raises(LookupError, match="bob"):
            failing("bob")


def test_keys_that_a_filter_does_not_tell_apart_are_asked_for_each() -> None:
    there: dict[Any, Any] = {b"1": "bytes", 2**64 - 1: "large", ("x", b"1"): "pair"}
    asked: list[Any] = []

    @ib.guarded
    def look_up(key: Any) -> Any:
        asked.append(key)
        return there.get(key)

    for absent, present in [("1", b"1"), (-1, 2**64 - 1), (("x", "1"), ("x", b"1"))]:
        assert look_up(absent) is None and look_up(absent) is None
        assert look_up(present) == there[present]
        assert look_up(key=absent) is None  # by its name, it is the same call
    assert asked == ["1", b"1", -1, 2**64 - 1, ("x", "1"), ("x", b"1")]

    @ib.guarded
    def only_named(*, key: Any) -> Any:
        return None

    with pytest.raises(TypeError, match="by name"):
        only_named(key=1)


def test_callers_at_the_same_time_ask_once_for_what_is_not_there() -> None:
    asked: list[str] = []
    gate = threading.Event()

    @ib.guarded
    def user(name: str) -> Any:
        asked.append(name)
        gate.wait(10)
        return None if name == "bob" else len(name)

    with ThreadPoolExecutor(6) as pool:
        bobs = [pool.submit(user, "bob") for _ in range(6)]
        time.sleep(0.2)
        gate.set()
        assert [bob.result(10) for bob in bobs] == [None] * 6
        assert asked == ["bob"]
        gate.clear()
        others = [pool.submit(user, "carol") for _ in range(6)]
        time.sleep(0.1)
        gate.set()
        assert [other.result(10) for other in others] == [5] * 6


class Awaited(Counted):
    """The same, awaited."""

    async def get(self, key: Any) -> Any:
        await asyncio.sleep(0)
        return super().get(key)

    async def put(self, key: Any, value: Any) -> bool:
        await asyncio.sleep(0.001)
        return super().put(key, value)

    async def remove(self, key: Any) -> bool:
        await asyncio.sleep(0.001)
        return super().remove(key)

    async def keys(self) -> Any:
        await asyncio.sleep(0)
        return list(self.values)


def test_an_awaited_store_has_the_same_guard() -> None:
    async def main() -> None:
        store = Awaited({"alice": 1})
        guard = await ib.AsyncGuard.open(store, 1000, kind="cuckoo", only_writer=True)
        assert await guard.get("alice") == 1
        assert await guard.get("bob") is None and store.asked == ["alice"]
        assert await guard.put("bob", 2) is True and await guard.put("bob", 3) is False
        assert await guard.get("bob") == 3
        assert await guard.remove("bob") is True and await guard.remove("bob") is False
        assert await guard.get("bob", "nobody") == "nobody"
        assert guard.stats()["skipped"] >= 2
        store.values["eve"] = 5
        await guard.note("eve")
        assert await guard.get("eve") == 5
        store.fail = OSError("the network is gone")
        for operation in (guard.get("alice"), guard.put("zoe", 1), guard.remove("alice")):
            with pytest.raises(OSError, match="network"):
                await operation
        store.fail = None
        assert await guard.get("alice") == 1
        await guard.rebuild()
        assert await guard.get("alice") == 1

    asyncio.run(main())


def test_tasks_lose_nothing() -> None:
    async def main() -> None:
        store = Awaited()
        guard = await ib.AsyncGuard.open(store, 5000, kind="cuckoo", only_writer=True)

        async def work(start: int) -> None:
            for key in range(start, 400, 20):
                await guard.put(key, key)
                assert await guard.get(key) == key
                # The same key from several tasks: they wait for each other.
                await guard.put("shared", start)
                if key % 3 == 0:
                    assert await guard.remove(key)

        await asyncio.wait_for(asyncio.gather(*(work(start) for start in range(20))), 60)
        for key in range(400):
            assert await guard.get(key) == (key if key % 3 else None)
        assert await guard.get("shared") is not None

    asyncio.run(main())


def test_a_cancelled_put_is_in_doubt_and_found() -> None:
    class Slow(Awaited):
        async def put(self, key: Any, value: Any) -> bool:
            self.values[key] = value
            await asyncio.sleep(60)
            return True

    async def main() -> None:
        guard = await ib.AsyncGuard.open(Slow())
        task = asyncio.create_task(guard.put("alice", 1))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await guard.get("alice") == 1
        assert await asyncio.wait_for(guard.get("bob"), 10) is None

    asyncio.run(main())


def test_coroutine_functions_are_guarded_too() -> None:
    asked: list[Any] = []

    @ib.guarded
    async def user(name: str) -> Any:
        asked.append(name)
        await asyncio.sleep(0.01)
        return {"alice": 1}.get(name)

    @ib.guarded(keys=["alice"])
    async def known(name: str) -> Any:
        asked.append(name)
        return 1

    async def main() -> None:
        assert await asyncio.gather(*(user("bob") for _ in range(5))) == [None] * 5
        assert asked == ["bob"]
        assert await user("bob") is None and asked == ["bob"]
        assert await asyncio.gather(*(user("alice") for _ in range(3))) == [1] * 3
        asked.clear()
        assert (await known("bob"), await known("alice"), asked) == (None, 1, ["alice"])

    asyncio.run(main())

    async def keys() -> Any:
        yield "alice"

    async def again() -> None:
        async def ask(key: str) -> str:
            return key.upper()

        guard = await ib.AsyncGuard.open(ask, keys=keys)
        assert (await guard.get("alice"), await guard.get("bob")) == ("ALICE", None)

    asyncio.run(again())


class Users:
    """Methods of all sorts that look something up."""

    def __init__(self, there: dict[str, int]) -> None:
        self.there = there
        self.asked: list[str] = []

    @ib.guarded
    def find(self, name: str) -> Any:
        """Finds a user."""
        self.asked.append(name)
        return self.there.get(name)

    @ib.guarded(keys=lambda self: self.there)
    def known(self, name: str) -> Any:
        self.asked.append(name)
        return self.there[name]

    @ib.guarded
    async def later(self, name: str) -> Any:
        self.asked.append(name)
        return self.there.get(name)

    @ib.guarded
    @classmethod
    def of_class(cls, name: str) -> Any:
        CLASS_ASKED.append((cls, name))
        return None

    @classmethod
    @ib.guarded
    def inside(cls, name: str) -> Any:
        CLASS_ASKED.append((cls, name))
        return None

    @classmethod
    @ib.guarded
    async def awaited(cls, name: str) -> Any:
        CLASS_ASKED.append((cls, name))
        return None

    @staticmethod
    @ib.guarded
    def of_nothing(name: str) -> Any:
        CLASS_ASKED.append((None, name))
        return None


CLASS_ASKED: list[Any] = []


class MoreUsers(Users):
    pass


def test_methods_are_guarded_for_each_instance() -> None:
    one, two = Users({"alice": 1}), Users({"bob": 2})
    assert [one.find("bob"), one.find(name="bob"), one.find("alice")] == [None, None, 1]
    assert [two.find("bob"), two.find("alice"), two.find("alice")] == [2, None, None]
    assert (one.asked, two.asked) == (["bob", "alice"], ["bob", "alice"])
    assert one.find.__doc__ == Users.find.__doc__ == "Finds a user." and one.find.stats()["lookups"] > 0
    one.asked.clear(), two.asked.clear()
    assert [one.known("bob"), one.known("alice"), two.known("alice"), two.known("bob")] == [None, 1, None, 2]
    assert (one.asked, two.asked) == (["alice"], ["bob"])
    CLASS_ASKED.clear()
    for _ in range(2):
        one.of_class("x"), Users.of_class("x"), MoreUsers.of_class("x"), one.of_nothing("x"), Users.of_nothing("x")
    assert CLASS_ASKED == [(Users, "x"), (MoreUsers, "x"), (None, "x")]
    CLASS_ASKED.clear()
    for _ in range(2):
        one.inside("x"), Users.inside(name="x"), asyncio.run(MoreUsers.awaited("y"))
    assert CLASS_ASKED == [(Users, "x"), (MoreUsers, "y")]


def test_coroutine_methods_are_guarded_for_each_instance() -> None:
    one, two = Users({"alice": 1}), Users({"bob": 2})
    assert inspect.iscoroutinefunction(one.later) or asyncio.iscoroutinefunction(one.later)

    async def main() -> None:
        assert [await one.later("bob"), await one.later(name="bob"), await one.later("alice")] == [None, None, 1]
        assert [await two.later("bob"), await two.later("alice"), await two.later("alice")] == [2, None, None]

    asyncio.run(main())
    assert (one.asked, two.asked) == (["bob", "alice"], ["bob", "alice"])


def test_a_guarded_method_does_not_keep_its_instance() -> None:
    users = Users({"alice": 1})
    users.find("bob"), users.known("bob"), asyncio.run(users.later("bob"))
    gone = weakref.ref(users)
    del users
    gc.collect()
    assert gone() is None
    assert not Users.find._bound and not Users.known._bound and not Users.later._bound  # type: ignore[attr-defined]


def test_a_store_that_refers_to_its_guard_is_collected() -> None:
    class Value:
        pass

    class Aware(Counted):
        guard: ib.Guard

    store = Aware({"alice": Value()})
    store.guard = ib.Guard(store)
    assert store.guard.get("alice") is store.values["alice"] and store.guard.get("bob") is None
    gone = weakref.ref(store)
    del store
    gc.collect()
    assert gone() is None


def test_a_guard_is_iterated_over_as_its_store() -> None:
    assert list(ib.Guard({"alice": 1, "bob": 2})) == ["alice", "bob"]
    assert list(ib.Guard(Counted({7: 1}))) == [7]
    asked: list[Any] = []
    with pytest.raises(TypeError, match="keys"):
        list(ib.Guard(asked.append, keys=[]))
    assert not asked
