#!/usr/bin/env python3
"""Time the server takes for BF.* and CF.* commands, by layout, module and server, from INFO commandstats.

Starts each server with each module on a loopback port, fills one filter of each layout, and sends the same commands to all of them in
turns, round by round. Called by `make bench-redis`; prints Markdown. Nothing but Python's own library is needed, and a C compiler
for the floor: a command that opens a key, asks what it is, and replies 0.

    redis.py MODULE SERVER [SERVER ...]
    redis.py --pauses MODULE SERVER [SERVER ...]

KEYS (10000000) is the capacity of the filters, ROUNDS (7) the number of rounds, CALLS (1000) the calls of each command and round.
BESIDE names further modules, paths separated by colons, such as RedisBloom itself; layouts that one lacks are left out there.

--pauses measures how long the longest commands hold a server: on filters of BYTES (536870912), in which every page was written to.
Three of them are in memory at once, and a DUMP, twice. ROUNDS (3) is the number of rounds. Of commands that work in slices while their
client waits, the server's own figure is that of the first slice; so another client sends PINGs meanwhile, and the slowest of them is
taken, beside the time until the reply.
"""

import os
import platform
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

KEYS = int(os.environ.get("KEYS", 10_000_000))
ROUNDS = int(os.environ.get("ROUNDS", 7))
CALLS = int(os.environ.get("CALLS", 1000))
RATE = "0.001"
BATCH = 100
# Room for the keys that the rounds add: a filter that grows in between would not be the same.
FILLED = KEYS - (ROUNDS + 1) * CALLS * BATCH - (ROUNDS + 1) * CALLS
LAYOUTS = [("redisbloom", []), ("blocked", ["LAYOUT", "BLOCKED"])]
CUCKOOS = [("cuckoo", []), ("cuckoo, ERROR", ["ERROR", RATE])]

# The cost of any module command that looks at a key: the bars are shares of it.
FLOOR = """
typedef int (*Find)(const char *, void *);
typedef void *Ctx;
static void *(*open_key)(Ctx, void *, int);
static void (*close_key)(void *);
static void *(*type_of)(void *);
static void *(*value_of)(void *);
static int (*reply)(Ctx, long long);

static int run(Ctx ctx, void **argv, int argc) {
    void *key = open_key(ctx, argv[1], 1);
    (void)argc;
    if (key) {
        if (type_of(key)) value_of(key);
        close_key(key);
    }
    return reply(ctx, 0);
}

int RedisModule_OnLoad(void **ctx, void **argv, int argc) {
    Find find = (Find)ctx[0];
    void (*attribs)(void *, const char *, int, int);
    int (*create)(void *, const char *, void *, const char *, int, int, int);
    (void)argv;
    (void)argc;
    if (find("RedisModule_SetModuleAttribs", &attribs) || find("RedisModule_CreateCommand", &create) ||
        find("RedisModule_OpenKey", &open_key) || find("RedisModule_CloseKey", &close_key) ||
        find("RedisModule_ModuleTypeGetType", &type_of) || find("RedisModule_ModuleTypeGetValue", &value_of) ||
        find("RedisModule_ReplyWithLongLong", &reply))
        return 1;
    attribs(ctx, "floor", 1, 1);
    return create(ctx, "floor.open", (void *)run, "readonly fast", 1, 1, 1);
}
"""


def command(*words):
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        word = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(parts)


class Client:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb", buffering=1 << 20)

    def read(self):
        line = self.file.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind == b"$":
            length = int(rest)
            return self.file.read(length + 2)[:-2] if length >= 0 else None
        if kind == b"*":
            return [self.read() for _ in range(int(rest))]
        return int(rest) if kind == b":" else rest

    def call(self, *words):
        self.socket.sendall(command(*words))
        return self.read()

    def many(self, commands, ahead=32):
        """Sends them a few ahead of their replies, which are discarded."""
        waiting = 0
        for one in commands:
            self.socket.sendall(one)
            waiting += 1
            if waiting >= ahead:
                self.read()
                waiting -= 1
        for _ in range(waiting):
            self.read()


class Server:
    def __init__(self, program, module, is_only_module):
        self.folder = tempfile.TemporaryDirectory(prefix="ironbloom-bench-")
        floor = os.path.join(self.folder.name, "floor.so")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-x", "c", "-", "-o", floor], input=FLOOR.encode(), check=True)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = self.port = probe.getsockname()[1]
        options = ["--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", self.folder.name, "--loglevel", "warning",
                   "--enable-debug-command", "yes", "--loadmodule", module, "--loadmodule", floor]
        self.process = subprocess.Popen([program, *map(str, options)], stdout=subprocess.DEVNULL)
        for _ in range(200):
            try:
                self.client = Client(port)
                break
            except OSError:
                time.sleep(0.05)
        else:
            self.stop()
            raise SystemExit(f"{program} does not start with {module}")
        info = self.client.call("INFO", "server").decode()
        fields = dict(line.split(":", 1) for line in info.split("\r\n") if ":" in line)
        self.name = f"Valkey {fields['valkey_version']}" if "valkey_version" in fields else f"Redis {fields['redis_version']}"
        if not is_only_module:
            self.name += ", " + os.path.basename(module)

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()

    def time_of(self, name, commands):
        """Microseconds per call, as counted by the server."""
        self.client.call("CONFIG", "RESETSTAT")
        self.client.many(commands)
        stats = self.client.call("INFO", "commandstats").decode()
        for line in stats.split("\r\n"):
            if line.startswith(f"cmdstat_{name}:"):
                fields = dict(pair.split("=") for pair in line.split(":", 1)[1].split(","))
                assert int(fields["calls"]) == CALLS, line
                return int(fields["usec"]) / CALLS
        raise SystemExit(f"no statistics of {name}")


def key(i):
    return b"user:%010d" % i


def make(server, layouts, *words):
    """The layouts that the module has, each made by these words and its own; the size of each and the bytes beyond."""
    sizes = {}
    for layout, options in layouts:
        name, key_words = words[0], words[1:]
        try:
            server.client.call(name, layout, *key_words, *options)
        except RuntimeError:
            continue
        sizes[layout] = None
    return sizes


def fill(server):
    """All filters of a server, and the bytes that each takes beyond its bits."""
    blooms = make(server, LAYOUTS, "BF.RESERVE", RATE, KEYS)
    cuckoos = make(server, CUCKOOS, "CF.RESERVE", KEYS)
    for layout in blooms:
        server.client.many(command("BF.MADD", layout, *map(key, group)) for group in groups(FILLED))
        assert server.client.call("BF.INFO", layout, "FILTERS")[0] == 1, f"{layout} grew"
        size = server.client.call("BF.INFO", layout, "SIZE")[0]
        blooms[layout] = (size, server.client.call("MEMORY", "USAGE", layout) - size)
    for layout in cuckoos:
        # At four slots in five: closer to full, the search for room would dominate.
        server.client.many(command("CF.INSERT", layout, "ITEMS", *map(key, group)) for group in groups(FILLED * 4 // 5))
        info = server.client.call("CF.INFO", layout)
        size = info[info.index(b"Size") + 1]
        cuckoos[layout] = (size, server.client.call("MEMORY", "USAGE", layout) - size)
    server.layouts, server.cuckoos = list(blooms), list(cuckoos)
    return {**blooms, **cuckoos}


def groups(count, size=1000):
    return (range(start, min(start + size, count)) for start in range(0, count, size))


def rounds(servers):
    times = {}
    random_keys = random.Random(1)
    new = FILLED
    for turn in range(ROUNDS + 1):
        present = [random_keys.randrange(FILLED * 4 // 5) for _ in range(CALLS * BATCH)]
        absent = [KEYS + random_keys.randrange(1 << 33) for _ in range(CALLS * BATCH)]
        fresh = list(range(new, new + CALLS * BATCH))
        single = list(range(new + CALLS * BATCH, new + CALLS * BATCH + CALLS))
        new += CALLS * BATCH + CALLS
        for server in servers:
            def take(what, layout, name, commands):
                measured = server.time_of(name, commands)
                if turn > 0:  # the first warms up
                    times.setdefault((server.name, what, layout), []).append(measured)

            def one_by_one(what, layout, keys):
                name = what.split(",")[0]
                take(what, layout, name.lower(), [command(name, layout, key(i)) for i in keys[:CALLS]])

            def batches(what, layout, keys, *words):
                name = what.split(" ")[0]
                commands = [command(name, layout, *words, *map(key, keys[i:i + BATCH])) for i in range(0, len(keys), BATCH)]
                take(what, layout, name.lower(), commands)

            take("ECHO", "", "echo", [command("ECHO", key(i)) for i in present[:CALLS]])
            for layout in server.layouts:
                one_by_one("FLOOR.OPEN", layout, present)
                take("BF.CARD", layout, "bf.card", [command("BF.CARD", layout)] * CALLS)
                one_by_one("BF.EXISTS, present", layout, present)
                one_by_one("BF.EXISTS, absent", layout, absent)
                one_by_one("BF.MEXISTS, one absent", layout, absent)
                one_by_one("BF.ADD, new", layout, single)
                one_by_one("BF.ADD, present", layout, present)
                batches("BF.MEXISTS × 100, present", layout, present)
                batches("BF.MEXISTS × 100, absent", layout, absent)
                batches("BF.MADD × 100, new", layout, fresh)
                batches("BF.MADD × 100, present", layout, present)
            for layout in server.cuckoos:
                one_by_one("FLOOR.OPEN", layout, present)
                one_by_one("CF.EXISTS, present", layout, present)
                one_by_one("CF.EXISTS, absent", layout, absent)
                one_by_one("CF.ADD, new", layout, single)
                one_by_one("CF.DEL, present", layout, single)
                batches("CF.MEXISTS × 100, present", layout, present)
                batches("CF.MEXISTS × 100, absent", layout, absent)
                batches("CF.INSERT × 100, new", layout, fresh, "ITEMS")
    return times


def steps(server):
    """The longest step of SCANDUMP and of LOADCHUNK of each filter, in milliseconds: the median of three times."""
    def used(name):
        stats = server.client.call("INFO", "commandstats").decode()
        lines = [line for line in stats.split("\r\n") if line.startswith(f"cmdstat_{name}:")]
        return int(dict(pair.split("=") for pair in lines[0].split(":", 1)[1].split(","))["usec"]) if lines else 0

    def once(family, layout):
        dumped, loaded, iterator = [], [], 0
        while True:
            before = used(f"{family}.scandump".lower())
            iterator, chunk = server.client.call(f"{family}.SCANDUMP", layout, iterator)
            dumped.append(used(f"{family}.scandump".lower()) - before)
            if not iterator:
                break
            before = used(f"{family}.loadchunk".lower())
            server.client.call(f"{family}.LOADCHUNK", "copy", iterator, chunk)
            loaded.append(used(f"{family}.loadchunk".lower()) - before)
        server.client.call("UNLINK", "copy")
        return max(dumped) / 1000, max(loaded) / 1000

    longest = {}
    for family, layouts in (("BF", server.layouts), ("CF", server.cuckoos)):
        for layout in layouts:
            # The first load may wait for memory from the system: the median of three.
            dumped, loaded = zip(*(once(family, layout) for _ in range(3)))
            longest[layout] = (statistics.median(dumped), statistics.median(loaded))
    return longest


def pauses(server, rounds):
    """Milliseconds of each command on large filters, by layout, a round each."""
    call = server.client.call
    bytes_of_filter = int(os.environ.get("BYTES", 512 << 20))
    for setting in (("proto-max-bulk-len", 4 * bytes_of_filter), ("client-query-buffer-limit", 4 * bytes_of_filter)):
        call("CONFIG", "SET", *setting)
    taken = {}

    def take(what, layout, *words):
        call("CONFIG", "RESETSTAT")
        reply = call(*words)
        name = words[0].lower()
        usec = re.search(rf"cmdstat_{re.escape(name)}[|:].*?usec=(\d+)", call("INFO", "commandstats").decode())
        taken.setdefault((what, layout), []).append(int(usec[1]) / 1000)
        return reply

    def take_waiting(what, layout, *words):
        """The slowest PING of another client in the meantime, and the time until the reply."""
        slowest, is_over = [0.0], threading.Event()

        def ping():
            client = Client(server.port)
            while not is_over.is_set():
                before = time.perf_counter()
                client.call("PING")
                slowest[0] = max(slowest[0], time.perf_counter() - before)

        beside = threading.Thread(target=ping)
        beside.start()
        time.sleep(0.05)
        before = time.perf_counter()
        reply = call(*words) if words else time.sleep(0.5)
        after = time.perf_counter()
        is_over.set()
        beside.join()
        taken.setdefault((f"{what}: slowest PING", layout), []).append(1000 * slowest[0])
        taken.setdefault((f"{what}: until the reply", layout), []).append(1000 * (after - before))
        return reply

    def fill_up(name, add, *words):
        """Enough items for every page of memory to hold some."""
        server.client.many(command(add, name, *words, *(b"%s:%d" % (name.encode(), i) for i in group))
                           for group in groups(bytes_of_filter // 1024))

    for _ in range(rounds):
        for layout, options, bits in (("redisbloom", [], 15.83), ("blocked", ["LAYOUT", "BLOCKED"], 17.9)):
            capacity = int(bytes_of_filter * 8 / bits)
            for name in ("one", "two"):
                take("BF.RESERVE", layout, "BF.RESERVE", name, RATE, capacity, *options)
                fill_up(name, "BF.MADD")
            take_waiting("nothing, for half a second", layout)
            take_waiting("BF.MERGE, new destination", layout, "BF.MERGE", "new", "one", "two")
            take_waiting("BF.MERGE, destination there", layout, "BF.MERGE", "new", "two")
            take_waiting("BF.INFO … FULL", layout, "BF.INFO", "new", "FULL")
            take("UNLINK", layout, "UNLINK", "new")
            take("COPY", layout, "COPY", "one", "new")
            take("DEL", layout, "DEL", "new")
            size = call("BF.INFO", "one", "SIZE")[0]
            last = 1 + size // (1 << 20) * (1 << 20)
            take_waiting("SCANDUMP, header", layout, "BF.SCANDUMP", "one", 0)
            take("SCANDUMP, a chunk", layout, "BF.SCANDUMP", "one", 1)
            take("SCANDUMP, last chunk", layout, "BF.SCANDUMP", "one", last)
            call("BF.ADD", "one", "another")
            take_waiting("SCANDUMP, last chunk after a write", layout, "BF.SCANDUMP", "one", last)
            call("UNLINK", "two")
            dump = take("DUMP", layout, "DUMP", "one")
            take("RESTORE", layout, "RESTORE", "two", 0, dump)
            del dump
            call("UNLINK", "two")
            take("SAVE (the whole server)", layout, "SAVE")
            take("DEBUG RELOAD (save and load)", layout, "DEBUG", "RELOAD")
            call("UNLINK", "one")
        for layout, capacity, options in (("cuckoo", bytes_of_filter, []),
                                          ("cuckoo, ERROR", bytes_of_filter * 2 // 5, ["ERROR", RATE])):
            take("CF.RESERVE", layout, "CF.RESERVE", "one", capacity, *options)
            fill_up("one", "CF.INSERT", "ITEMS")
            take("CF.COMPACT", layout, "CF.COMPACT", "one")
            take_waiting("SCANDUMP, header", layout, "CF.SCANDUMP", "one", 0)
            take("SCANDUMP, a chunk", layout, "CF.SCANDUMP", "one", 1)
            take("COPY", layout, "COPY", "one", "two")
            take("UNLINK", layout, "UNLINK", "one")
            take("DEL", layout, "DEL", "two")
    return taken


def print_pauses(servers):
    rounds = int(os.environ.get("ROUNDS", 3))
    taken = [pauses(server, rounds) for server in servers]
    bytes_of_filter = int(os.environ.get("BYTES", 512 << 20))
    print(f"{time.strftime('%Y-%m-%d')}, {processor()}, {os.cpu_count()} cores; filters of {bytes_of_filter >> 20} MiB; "
          f"{rounds} rounds; load average {os.getloadavg()[0]:.1f} at the end.")
    print("Milliseconds by INFO commandstats, or by the client where it says so: the least of the rounds, and the median.\n")
    print("| command | layout | " + " | ".join(server.name for server in servers) + " |")
    print("|---|---|" + "---|" * len(servers))
    for what, layout in taken[0]:
        cells = [f"{min(each[what, layout]):.1f} ({statistics.median(each[what, layout]):.1f})" for each in taken]
        print(f"| {what} | {layout} | " + " | ".join(cells) + " |")


def processor():
    for line in open("/proc/cpuinfo", encoding="utf-8"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def main():
    is_pauses = sys.argv[1] == "--pauses"
    module, *programs = sys.argv[1 + is_pauses:]
    modules = [module, *filter(None, os.environ.get("BESIDE", "").split(":"))]
    servers = []
    try:
        for program in programs:
            for each in modules:
                servers.append(Server(program, each, len(modules) == 1))
        if is_pauses:
            print_pauses(servers)
            return
        sizes = [fill(server) for server in servers]
        times = rounds(servers)
        longest = [steps(server) for server in servers]
        print(f"{time.strftime('%Y-%m-%d')}, {processor()}, {os.cpu_count()} cores; {FILLED:,} keys in filters for {KEYS:,} at {RATE};")
        print(f"{ROUNDS} rounds of {CALLS} calls, servers and layouts in turns; load average {os.getloadavg()[0]:.1f} at the end.")
        print("Microseconds a call by INFO commandstats: the least of the rounds, and the median; of single commands also the median as a")
        print("multiple of FLOOR.OPEN's, which opens the key, asks what it is, and replies 0.\n")
        head = " | ".join(server.name for server in servers)
        print(f"| command | layout | {head} |")
        print("|---|---|" + "---|" * len(servers))
        for what, layout in dict.fromkeys((what, layout) for _, what, layout in times):
            cells = []
            for server in servers:
                measured = times.get((server.name, what, layout))
                if measured is None:
                    cells.append("–")
                    continue
                cell = f"{min(measured):.2f} ({statistics.median(measured):.2f})"
                floor = times.get((server.name, "FLOOR.OPEN", layout))
                if floor and "×" not in what and what != "FLOOR.OPEN":
                    cell += f", {statistics.median(measured) / statistics.median(floor):.2f}×"
                cells.append(cell)
            print(f"| {what} | {layout or '–'} | " + " | ".join(cells) + " |")
        print("\nLongest step of SCANDUMP / of LOADCHUNK, ms, the median of three times:\n")
        print(f"| layout | {head} |\n|---|" + "---|" * len(servers))
        for layout in longest[0]:
            cells = [f"{each[layout][0]:.1f} / {each[layout][1]:.1f}" if layout in each else "–" for each in longest]
            print(f"| {layout} | " + " | ".join(cells) + " |")
        print("\n| layout | bytes of the filter | beyond it, by MEMORY USAGE |\n|---|---|---|")
        for layout, (size, beyond) in sizes[0].items():
            print(f"| {layout} | {size:,} | {beyond:,} |")
    finally:
        for server in servers:
            server.stop()


main()
