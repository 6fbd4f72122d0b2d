"""A filter in front of a slow store: lookups of what is not there never reach it."""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, overload

from . import _native
from ._errors import InvalidParameter, Refused
from ._filters import natural

F = TypeVar("F", bound=Callable[..., Any])

_USUAL_CAPACITY = 10_000


class Guard:
    """A filter in front of a store.

    A lookup of a key that is certainly not in the store is answered from memory. The store is a mapping (a dict, a
    `shelve`, `diskcache.Cache`), an object with `get`, `put` and `remove`, or a function that gets a key. `None` stands for
    "not there".

    The guard must know all keys that are there. It asks the store for them when it is made; a store that cannot tell needs
    `keys`: an iterable, or a function that returns one. All later keys must come through the guard, or be told to it with
    `note`.

    >>> import ironbloom as ib
    >>> users = ib.Guard({"alice": 1})                   # or something slow
    >>> users.get("alice"), users.get("bob")             # the second was answered from memory
    (1, None)
    >>> users.put("bob", 2), users.get("bob")
    (True, 2)
    >>> users.stats()["skipped"], users.stats()["hits"]
    (1, 2)

    **A stored key is never answered "not there"**: not while threads write, and not if the store raises in the middle; what
    may have been written counts as there.

    `kind` is "scalable" (the default, if no capacity is given), "blocked" (the fastest), "cuckoo" or "d-left" (which
    forget removed keys, if `only_writer` promises that there are no other writers to the store) or "windowed" (which forgets old
    keys, **also ones that are stored**).
    """

    def __init__(
        self,
        store: Any,
        capacity: int | None = None,
        rate: float = 0.01,
        *,
        kind: str | None = None,
        keys: Iterable[Any] | Callable[[], Iterable[Any]] | None = None,
        only_writer: bool = False,
    ) -> None:
        adapter = self._adapter = _adapted(store, keys)
        kind, capacity = _shape(kind, capacity)
        self._native = _native.Guard(adapter, kind, capacity, rate, only_writer)
        self._native.rebuild() if kind != "windowed" else None
        self.store = store

    def get(self, key: Any, default: Any = None) -> Any:
        """The value of a key. The store is asked only if the key may be there."""
        value = self._native.get(key)
        return default if value is None else value

    def put(self, key: Any, value: Any) -> bool:
        """Store a value. True if the key was not there before; also if the store does not say."""
        return self._native.put(key, value)

    def remove(self, key: Any) -> bool:
        """Remove a key. True if it was there; False also if the store does not say."""
        return self._native.remove(key)

    def note(self, key: Any) -> None:
        """Notes that another writer has stored this key. Until this is called, it is answered "not there"."""
        self._native.note(key)

    def note_removed(self, key: Any) -> None:
        """Notes that another writer has removed this key."""
        self._native.note_removed(key)

    def rebuild(self) -> None:
        """Make the filter again from the keys of the store: after many removals, or when there are many more keys than
        planned. Other threads may read and write meanwhile."""
        self._native.rebuild()

    def stats(self) -> dict[str, Any]:
        """What the guard has saved: lookups that were skipped, hits, false positives, and the time."""
        return self._native.stats()

    def __contains__(self, key: Any) -> bool:
        return self._native.contains(key)

    def __iter__(self) -> Iterator[Any]:
        """The keys of the store, as it has them; a TypeError if it cannot tell."""
        return iter(self._adapter.own_keys())

    def __getitem__(self, key: Any) -> Any:
        value = self._native.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __setitem__(self, key: Any, value: Any) -> None:
        self._native.put(key, value)

    def __delitem__(self, key: Any) -> None:
        if not self._native.remove(key):
            raise KeyError(key)

    def __repr__(self) -> str:
        stats = self.stats()
        return (
            f"<Guard of {type(self.store).__name__}: {stats['lookups']:,} lookups, "
            f"{stats['skipped']:,} skipped>"
        )


class AsyncGuard:
    """A filter in front of a store that is awaited, in asyncio. As `Guard`, but made with `await AsyncGuard.open(store)`.

    The methods of the store (`get`, `put`, `remove`, `keys`) are coroutines; `keys` may be an asynchronous iterator. The store
    may also be a coroutine function that gets a key. A task that is cancelled in the middle of a put leaves the key in
    doubt: it is looked up in the store from then on.

    >>> import asyncio, ironbloom as ib
    >>> class Store:
    ...     async def get(self, key):
    ...         return {"alice": 1}.get(key)
    ...     async def keys(self):
    ...         return ["alice"]
    >>> async def main():
    ...     users = await ib.AsyncGuard.open(Store())
    ...     print(await users.get("alice"), await users.get("bob"), users.stats()["skipped"])
    >>> asyncio.run(main())
    1 None 1
    """

    def __init__(self, adapter: _Awaited, native: _native.AsyncGuard) -> None:
        self._adapter, self._native = adapter, native

    @classmethod
    async def open(
        cls,
        store: Any,
        capacity: int | None = None,
        rate: float = 0.01,
        *,
        kind: str | None = None,
        keys: Any = None,
        only_writer: bool = False,
    ) -> AsyncGuard:
        """Put a guard in front of a store."""
        adapter = _Awaited(_adapted(store, keys))
        kind, capacity = _shape(kind, capacity)
        opening = _native.open_async_guard(kind, capacity, rate, only_writer, None)
        guard = cls(adapter, await adapter.drive(opening))
        if kind != "windowed":
            await guard.rebuild()
        return guard

    async def get(self, key: Any, default: Any = None) -> Any:
        """The value of a key. The store is asked only if the key may be there."""
        value = await self._adapter.drive(self._native.get(key))
        return default if value is None else value

    async def put(self, key: Any, value: Any) -> bool:
        """Store a value. True if the key was not there before; also if the store does not say."""
        return bool(await self._adapter.drive(self._native.put(key, value)))

    async def remove(self, key: Any) -> bool:
        """Remove a key. True if it was there; False also if the store does not say."""
        return bool(await self._adapter.drive(self._native.remove(key)))

    async def note(self, key: Any) -> None:
        """Notes that another writer has stored this key."""
        await self._adapter.drive(self._native.note(key))

    async def rebuild(self) -> None:
        """Make the filter again from the keys of the store."""
        await self._adapter.drive(self._native.rebuild())

    def stats(self) -> dict[str, Any]:
        """What the guard has saved."""
        return self._native.stats()


@overload
def guarded(function: F) -> F: ...
@overload
def guarded(
    *,
    keys: Iterable[Any] | Callable[[], Iterable[Any]] | None = None,
    ttl: float = 60.0,
    capacity: int | None = None,
    rate: float = 0.01,
) -> Callable[[F], F]: ...
def guarded(
    function: Any = None,
    *,
    keys: Any = None,
    ttl: float = 60.0,
    capacity: int | None = None,
    rate: float = 0.01,
) -> Any:
    """A decorator for a function that looks something up and returns None if it is not there: do not ask again for that.

    Without `keys`, what was not there is remembered for `ttl` seconds (the 65,536 most recent keys, exactly), and while one
    caller asks for it, others wait for the same answer. What is there is asked for each time.

    >>> import ironbloom as ib
    >>> asked = []
    >>> @ib.guarded
    ... def user(name):
    ...     asked.append(name)                           # a request to an API, say
    ...     return {"alice": 1}.get(name)
    >>> user("bob"), user("bob"), user("alice"), asked
    (None, None, 1, ['bob', 'alice'])

    With `keys`, an iterable of everything that is there or a function that returns one, a filter knows what is not, for
    good: `user.guard.note(key)` tells it of more.

    >>> @ib.guarded(keys=["alice"])
    ... def user(name):
    ...     return {"alice": 1}[name]
    >>> user("bob"), user("alice"), user.stats()["skipped"]
    (None, 1, 1)

    The key is what the function is called with: its argument, or a tuple of several. Coroutine functions work, too, and
    so do methods: each instance has a guard, and `keys`, if it is a function, is called with the instance.
    """
    if function is None:
        return lambda function: guarded(function, keys=keys, ttl=ttl, capacity=capacity, rate=rate)  # type: ignore[call-overload]
    import inspect  # takes longer to import than everything else here

    if isinstance(function, (classmethod, staticmethod)):
        wrapped = guarded(function.__func__, keys=keys, ttl=ttl, capacity=capacity, rate=rate)  # type: ignore[call-overload]
        return type(function)(wrapped)
    options = _Options(keys, ttl, capacity, rate)
    awaited = inspect.iscoroutinefunction(function)
    return (_GuardedCoroutine if awaited else _Guarded)(function, options)


def _mark_coroutine(made: Any) -> None:
    """Lets `inspect` and `asyncio` know that a call must be awaited."""
    import asyncio
    import inspect

    if hasattr(inspect, "markcoroutinefunction"):
        inspect.markcoroutinefunction(made)
    else:  # before Python 3.12
        made._is_coroutine = asyncio.coroutines._is_coroutine  # type: ignore[attr-defined]


class _Options:
    """What `guarded` was told."""

    def __init__(self, keys: Any, ttl: float, capacity: int | None, rate: float) -> None:
        if not ttl >= 0:
            raise InvalidParameter(f"ttl must not be negative, got {ttl}")
        self.keys, self.ttl, self.capacity, self.rate = keys, ttl, capacity, rate


class _Guarded:
    """A function with a guard; in a class, a method that has a guard for each instance."""

    def __init__(self, function: Any, options: _Options, instance: Any = None) -> None:
        import inspect

        functools.update_wrapper(self, function)
        self._function, self._options = function, options
        # The guards of methods are kept as long as their instances, and must not keep them.
        self._instance = None if instance is None else weakref.ref(instance)
        self._bound: dict[int, tuple[Any, _Guarded]] = {}
        self._positional = _positional(inspect.signature(function), instance is not None)
        self._guard: Any = None
        self._making = threading.Lock()

    @property
    def guard(self) -> Any:
        """The guard, which is made with the first call: a method needs none before it has an instance."""
        if self._guard is None:
            with self._making:
                if self._guard is None:
                    self._guard = self._made()
        return self._guard

    def _made(self) -> Any:
        options = self._options
        if options.keys is None:
            return _native.Guard(_Nowhere(), "windowed", 1 << 16, options.rate, True, options.ttl)
        return Guard(self._load, options.capacity, options.rate, keys=self._keys())

    def stats(self) -> dict[str, Any]:
        """What the guard has saved."""
        stats: dict[str, Any] = self.guard.stats()
        return stats

    def _keys(self) -> Any:
        """The keys that are there; for a method, a function is asked for those of its instance."""
        keys, instance = self._options.keys, self._instance
        return (lambda: keys(instance())) if callable(keys) and instance is not None else keys

    def _call(self, key: Any) -> Any:
        own = () if self._instance is None else (self._instance(),)
        return self._function(*own, *_arguments(key))

    def _load(self, key: Any) -> Any:
        return self._call(key)

    def _is_of_class(self, arguments: tuple[Any, ...]) -> bool:
        """Whether it is called as a class method. From Python 3.13 on, `classmethod` does not bind what it wraps to the class,
        but hands the class over as the first argument. A class is never a key."""
        return self._instance is None and len(arguments) > 0 and isinstance(arguments[0], type)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if self._is_of_class(arguments):
            return self.__get__(arguments[0])(*arguments[1:], **named)
        arguments = self._positional(arguments, named)
        if self._options.keys is None:
            return self.guard.get_or_load(_Call(arguments), self._load)
        return self.guard.get(_key(arguments))

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        known = self._bound.get(id(instance))
        if known is not None and known[0]() is instance:
            return known[1]
        bound = type(self)(self._function, self._options, instance)
        number = id(instance)
        reference = weakref.ref(instance, lambda gone: self._forget(number, gone))
        return self._bound.setdefault(number, (reference, bound))[1]

    def _forget(self, number: int, gone: Any) -> None:
        if self._bound.get(number, (None,))[0] is gone:
            del self._bound[number]


class _GuardedCoroutine(_Guarded):
    """The same for a coroutine function. Its guard is made with the first call, in the loop that runs then."""

    def __init__(self, function: Any, options: _Options, instance: Any = None) -> None:
        super().__init__(function, options, instance)
        _mark_coroutine(self)
        self._adapter = _Awaited(_Nowhere(), self._load)

    @property
    def guard(self) -> Any:
        """The guard; None before the first call."""
        return self._guard

    def stats(self) -> dict[str, Any]:
        """What the guard has saved; nothing before the first call."""
        return {} if self._guard is None else self._guard.stats()

    async def _load(self, key: Any) -> Any:
        return await self._call(key)

    async def _opened(self) -> AsyncGuard:
        if self._guard is None:
            options = self._options
            if options.keys is None:
                opening = _native.open_async_guard("windowed", 1 << 16, options.rate, True, options.ttl)
                made = AsyncGuard(self._adapter, await self._adapter.drive(opening))
            else:
                made = await AsyncGuard.open(self._load, options.capacity, options.rate, keys=self._keys())
            if self._guard is None:
                self._guard = made
        guard: AsyncGuard = self._guard
        return guard

    async def __call__(self, *arguments: Any, **named: Any) -> Any:
        if self._is_of_class(arguments):
            return await self.__get__(arguments[0])(*arguments[1:], **named)
        guard, arguments = await self._opened(), self._positional(arguments, named)
        if self._options.keys is None:
            return await self._adapter.drive(guard._native.get_or_load(_Call(arguments)))
        return await guard.get(_key(arguments))


def _positional(signature: Any, method: bool) -> Callable[[tuple[Any, ...], dict[str, Any]], tuple[Any, ...]]:
    """Makes arguments that were given by name positional: `user(name="bob")` asks for the same as `user("bob")`."""

    def positional(arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        if not named:
            return arguments
        bound = signature.bind(*((None,) if method else ()), *arguments, **named)
        if bound.kwargs:
            raise TypeError("a guarded function takes no arguments that can only be given by name")
        return tuple(bound.args[1:] if method else bound.args)

    return positional


class _Arguments(tuple[Any, ...]):
    """The arguments of a call with several: a key, and to be told from a single argument that is a tuple."""


class _Call(tuple[Any, ...]):
    """The arguments of a call and their types, where an answer for one key must not be taken for that of another: filters do
    not tell "1" from b"1", nor -1 from 2**64 - 1, and may say "perhaps" for both."""

    def __new__(cls, arguments: tuple[Any, ...]) -> _Call:
        return super().__new__(cls, (arguments, _types(arguments)))


def _types(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_types, value))
    return "-" if isinstance(value, int) and value < 0 else type(value).__name__


def _key(arguments: tuple[Any, ...]) -> Any:
    return arguments[0] if len(arguments) == 1 else _Arguments(arguments)


def _arguments(key: Any) -> tuple[Any, ...]:
    if isinstance(key, _Call):
        return tuple(key[0])
    return tuple(key) if isinstance(key, _Arguments) else (key,)


def _shape(kind: str | None, capacity: int | None) -> tuple[str, int]:
    if kind is None:
        kind = "scalable" if capacity is None else "blocked"
    return kind, natural(_USUAL_CAPACITY if capacity is None else capacity, "capacity")


def _adapted(store: Any, keys: Any) -> Any:
    if all(hasattr(store, name) for name in ("__getitem__", "__setitem__", "__delitem__", "__iter__")):
        return _Mapping(store, keys)
    if hasattr(store, "get"):
        return _Methods(store, keys)
    if callable(store):
        return _Function(store, keys)
    raise TypeError(
        f"{type(store).__name__} is no store: a mapping, an object with get, put and remove, or a function is needed"
    )


def _iterated(keys: Any) -> Any:
    return keys() if callable(keys) else keys


class _Store:
    """What the native guard calls."""

    def __init__(self, store: Any, keys: Any) -> None:
        self.store, self._keys = store, keys

    def keys(self) -> Any:
        if self._keys is not None:
            return _iterated(self._keys)
        return self.own_keys()

    def own_keys(self) -> Any:
        raise TypeError(
            f"the keys of a {type(self.store).__name__} are not known: give keys=, an iterable of those that are there, "
            "which may be empty"
        )

    def size(self) -> int | None:
        return None


class _Mapping(_Store):
    def get(self, key: Any) -> Any:
        try:
            return self.store[key]
        except KeyError:
            return None

    def put(self, key: Any, value: Any) -> bool:
        new = key not in self.store
        self.store[key] = value
        return new

    def remove(self, key: Any) -> bool:
        try:
            del self.store[key]
        except KeyError:
            return False
        return True

    def own_keys(self) -> Iterator[Any]:
        # A dict must not change while it is iterated over.
        return iter(list(self.store) if isinstance(self.store, dict) else self.store)

    def size(self) -> int | None:
        return len(self.store) if self._keys is None and hasattr(self.store, "__len__") else None


class _Methods(_Store):
    def get(self, key: Any) -> Any:
        return self.store.get(key)

    def put(self, key: Any, value: Any) -> Any:
        return said(self.store.put(key, value), True)

    def remove(self, key: Any) -> Any:
        # If the store does not say, the key stays in the filter: that costs a lookup, and loses nothing.
        return said(self.store.remove(key), False)

    def own_keys(self) -> Any:
        if hasattr(self.store, "keys"):
            return self.store.keys()
        return super().own_keys()


def said(answer: Any, otherwise: bool) -> Any:
    """What a store says of a key, or what is assumed if it says nothing. An awaitable says it later."""
    if hasattr(answer, "__await__"):

        async def later() -> bool:
            return bool(said(await answer, otherwise))

        return later()
    return otherwise if answer is None else bool(answer)


class _Function(_Store):
    def get(self, key: Any) -> Any:
        return self.store(key)

    def put(self, key: Any, value: Any) -> bool:
        raise Refused("a guard of a function cannot put: call note(key) when a key is stored")

    def remove(self, key: Any) -> bool:
        raise Refused("a guard of a function cannot remove: call note_removed(key) when a key is gone")


class _Nowhere(_Store):
    """A store that keeps nothing, for guards that only remember what is not there."""

    def __init__(self) -> None:
        super().__init__(None, ())

    def get(self, key: Any) -> None:
        return None

    def put(self, key: Any, value: Any) -> bool:
        return True

    def remove(self, key: Any) -> bool:
        return False

    def size(self) -> int:
        return 0


class _Awaited:
    """Drives operations of the native guard: it asks, and here the store is awaited."""

    def __init__(self, adapter: _Store, load: Any = None) -> None:
        self._adapter, self._load = adapter, load

    async def drive(self, operation: _native.Operation) -> Any:
        step = operation.step()
        while step[0] != "done":
            if step[0] == "wait":
                await self._turn(operation)
                step = operation.step()
                continue
            try:
                answer = await self._ask(*step)
            except Exception as error:
                step = operation.step(raised=error)
            else:
                step = operation.step(answer)
        return step[1]

    async def _turn(self, operation: _native.Operation) -> None:
        """Until another operation, which this one waits for, has ended."""
        import asyncio

        loop = asyncio.get_running_loop()
        ready = loop.create_future()

        def wake() -> None:
            if not ready.done():
                ready.set_result(None)

        if operation.call_when_ready(lambda: loop.call_soon_threadsafe(wake)):
            await ready

    async def _ask(self, question: str, *arguments: Any) -> Any:
        method = self._load if question == "load" else getattr(self._adapter, question)
        answer = method(*arguments)
        if hasattr(answer, "__await__"):
            answer = await answer
        if question == "keys" and hasattr(answer, "__aiter__"):
            answer = [key async for key in answer]
        return answer
