#!/usr/bin/env python3
"""Time the server takes for BF.* commands, by layout and by server, from INFO commandstats.

Starts each server with the module on a loopback port, fills one filter of each layout, and sends the same commands to all of them in
turns, round by round. Called by `make bench-redis`; prints Markdown. Nothing but Python's own library is needed.

    redis.py MODULE SERVER [SERVER ...]

KEYS (10000000) is the capacity of the filters, ROUNDS (7) the number of rounds, CALLS (1000) the calls of each command and round.
"""

import os
import platform
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time

KEYS = int(os.environ.get("KEYS", 10_000_000))
ROUNDS = int(os.environ.get("ROUNDS", 7))
CALLS = int(os.environ.get("CALLS", 1000))
RATE = "0.001"
BATCH = 100
# Room for the keys that the rounds add: a filter that grows in between would be another one.
FILLED = KEYS - (ROUNDS + 1) * CALLS * BATCH - (ROUNDS + 1) * CALLS
LAYOUTS = [("redisbloom", []), ("blocked", ["LAYOUT", "BLOCKED"])]


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
        """Sends them a few ahead of their replies, which are thrown away."""
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
    def __init__(self, program, module):
        self.folder = tempfile.TemporaryDirectory(prefix="ironbloom-bench-")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        options = ["--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", self.folder.name, "--loglevel", "warning",
                   "--loadmodule", module]
        self.process = subprocess.Popen([program, *map(str, options)], stdout=subprocess.DEVNULL)
        for _ in range(200):
            try:
                self.client = Client(port)
                break
            except OSError:
                time.sleep(0.05)
        else:
            raise SystemExit(f"{program} does not start")
        info = self.client.call("INFO", "server").decode()
        fields = dict(line.split(":", 1) for line in info.split("\r\n") if ":" in line)
        self.name = f"Valkey {fields['valkey_version']}" if "valkey_version" in fields else f"Redis {fields['redis_version']}"

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()

    def time_of(self, name, commands):
        """Microseconds a call, as the server counts them."""
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


def fill(server):
    """All filters of a server, and the bytes that each takes beyond its bits."""
    sizes = {}
    for layout, options in LAYOUTS:
        server.client.call("BF.RESERVE", layout, RATE, KEYS, *options)
        adds = (command("BF.MADD", layout, *map(key, range(start, min(start + 1000, FILLED)))) for start in range(0, FILLED, 1000))
        server.client.many(adds)
        filters = server.client.call("BF.INFO", layout, "FILTERS")[0]
        assert filters == 1, f"{layout} grew"
        size = server.client.call("BF.INFO", layout, "SIZE")[0]
        sizes[layout] = (size, server.client.call("MEMORY", "USAGE", layout) - size)
    return sizes


def rounds(servers):
    times = {}
    random_keys = random.Random(1)
    new = FILLED
    for turn in range(ROUNDS + 1):
        present = [random_keys.randrange(FILLED) for _ in range(CALLS * BATCH)]
        absent = [KEYS + random_keys.randrange(1 << 33) for _ in range(CALLS * BATCH)]
        fresh = list(range(new, new + CALLS * BATCH))
        single = list(range(new + CALLS * BATCH, new + CALLS * BATCH + CALLS))
        new += CALLS * BATCH + CALLS
        for server in servers:
            def take(what, layout, name, commands):
                measured = server.time_of(name, commands)
                if turn > 0:  # the first warms up
                    times.setdefault((server.name, what, layout), []).append(measured)

            take("ECHO", "", "echo", [command("ECHO", key(i)) for i in present[:CALLS]])
            for layout, _ in LAYOUTS:
                def batches(name, keys):
                    return [command(name, layout, *map(key, keys[i:i + BATCH])) for i in range(0, len(keys), BATCH)]

                take("BF.CARD", layout, "bf.card", [command("BF.CARD", layout)] * CALLS)
                take("BF.EXISTS, present", layout, "bf.exists", [command("BF.EXISTS", layout, key(i)) for i in present[:CALLS]])
                take("BF.EXISTS, absent", layout, "bf.exists", [command("BF.EXISTS", layout, key(i)) for i in absent[:CALLS]])
                take("BF.ADD, new", layout, "bf.add", [command("BF.ADD", layout, key(i)) for i in single])
                take("BF.ADD, present", layout, "bf.add", [command("BF.ADD", layout, key(i)) for i in present[:CALLS]])
                take("BF.MEXISTS × 100, present", layout, "bf.mexists", batches("BF.MEXISTS", present))
                take("BF.MEXISTS × 100, absent", layout, "bf.mexists", batches("BF.MEXISTS", absent))
                take("BF.MADD × 100, new", layout, "bf.madd", batches("BF.MADD", fresh))
                take("BF.MADD × 100, present", layout, "bf.madd", batches("BF.MADD", present))
    return times


def processor():
    for line in open("/proc/cpuinfo", encoding="utf-8"):
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.processor()


def main():
    module, programs = sys.argv[1], sys.argv[2:]
    servers = [Server(program, module) for program in programs]
    try:
        sizes = [fill(server) for server in servers]
        times = rounds(servers)
        print(f"{time.strftime('%Y-%m-%d')}, {processor()}, {os.cpu_count()} cores; {FILLED:,} keys in filters for {KEYS:,} at {RATE};")
        print(f"{ROUNDS} rounds of {CALLS} calls, servers and layouts in turns; load average {os.getloadavg()[0]:.1f} at the end.")
        print("Microseconds a call by INFO commandstats: the least of the rounds, and the median.\n")
        print("| command | layout | " + " | ".join(server.name for server in servers) + " |")
        print("|---|---|" + "---|" * len(servers))
        for what, layout in dict.fromkeys((what, layout) for _, what, layout in times):
            cells = []
            for server in servers:
                measured = times[server.name, what, layout]
                cells.append(f"{min(measured):.2f} ({statistics.median(measured):.2f})")
            print(f"| {what} | {layout or '–'} | " + " | ".join(cells) + " |")
        print("\n| layout | bytes of the filter | beyond it, by MEMORY USAGE |\n|---|---|---|")
        for layout, (size, beyond) in sizes[0].items():
            print(f"| {layout} | {size:,} | {beyond:,} |")
    finally:
        for server in servers:
            server.stop()


main()
