#!/usr/bin/env python3
"""How much faster it is to build a filter here and load it than to send its keys.

Starts a server with the module on a free port of this machine and fills filters of KEYS keys at 0.1 %, ROUNDS times in
turns, each way:

    MADD x 100             one command of 100 keys after the other, as a client does that waits for its replies
    MADD x 100, pipelined  1000 such commands on their way at a time
    ironbloom redis load   a filter file of the same keys, which `ironbloom build` made before
    build + load           `ironbloom redis load --lines`: the keys are hashed here, too

The commands are put together before the clock starts, so that it does not measure Python. Prints Markdown.
Use: make bench-redis-load, or redis_load.py IRONBLOOM MODULE [SERVER]; KEYS=10000000, ROUNDS=3.
"""

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time

KEYS = int(os.environ.get("KEYS", "10000000"))
ROUNDS = int(os.environ.get("ROUNDS", "3"))
RATE = "0.001"
BATCH = 100
DEPTH = 1000


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def command(*words):
    parts = [b"*%d\r\n" % len(words)]
    for word in words:
        word = word if isinstance(word, bytes) else str(word).encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(word), word))
    return b"".join(parts)


class Connection:
    def __init__(self, port):
        self.sock = socket.create_connection(("127.0.0.1", port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def receive(self, replies):
        """Waits until this many lines have arrived; a reply to MADD has one per key, and one more."""
        seen = 0
        while seen < replies:
            data = self.sock.recv(1 << 20)
            if not data:
                raise SystemExit("error: the server is gone")
            if b"-ERR" in data:
                raise SystemExit(f"error: {data[:200]!r}")
            seen += data.count(b"\n")
        return data

    def call(self, *words):
        self.sock.sendall(command(*words))
        return self.receive(1)

    def madd(self, commands, depth):
        for start in range(0, len(commands), depth):
            some = commands[start : start + depth]
            self.sock.sendall(b"".join(some))
            self.receive(len(some) * (BATCH + 1))


def key(i):
    return b"https://ex.org/%08x/%07d" % (i * 2654435761 % (1 << 32), i)


def madd_commands(name):
    keys = range(0, KEYS, BATCH)
    return [command("BF.MADD", name, *(key(i) for i in range(start, start + BATCH))) for start in keys]


def timed(work):
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def count_present(ironbloom, url, name, lines):
    args = [ironbloom, "redis", "check", "--count", "--json", lines, "--key", name, "--url", url]
    return json.loads(subprocess.run(args, check=True, capture_output=True).stdout)["present"]


def main():
    if KEYS % BATCH:
        raise SystemExit(f"error: KEYS must be a multiple of {BATCH}")
    ironbloom, module = sys.argv[1:3]
    server = sys.argv[3] if len(sys.argv) > 3 else "redis-server"
    port = free_port()
    url = f"redis://127.0.0.1:{port}"
    with tempfile.TemporaryDirectory() as work:
        lines, file = f"{work}/lines", f"{work}/seen.ibf"
        with open(lines, "wb") as out:
            for start in range(0, KEYS, 10000):
                out.write(b"".join(key(i) + b"\n" for i in range(start, min(start + 10000, KEYS))))
        plan = ["--kind", "blocked", "--capacity", str(KEYS), "--rate", RATE]
        build = [ironbloom, "build", *plan, "-o", file, lines]
        load = [ironbloom, "redis", "load", file, "--key", "loaded", "--url", url]
        build_and_load = [ironbloom, "redis", "load", "--lines", *plan, lines, "--key", "loaded", "--url", url]
        quiet = {"check": True, "capture_output": True}
        process = subprocess.Popen(
            [server, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", work, "--loadmodule", module],
            stdout=subprocess.DEVNULL,
        )
        try:
            for _ in range(100):
                try:
                    connection = Connection(port)
                    break
                except OSError:
                    time.sleep(0.1)
            else:
                raise SystemExit("error: the server does not start")
            version = connection.call("INFO", "server").decode(errors="replace")
            layouts = [("RedisBloom's layout", []), ("LAYOUT BLOCKED", ["LAYOUT", "BLOCKED", "NONSCALING"])]
            times = {}
            built = timed(lambda: subprocess.run(build, **quiet))
            commands = madd_commands("sent")
            for _ in range(ROUNDS):
                for layout, options in layouts:
                    for how, depth in [("", 1), (", pipelined", DEPTH)]:
                        connection.call("DEL", "sent")
                        reply = connection.call("BF.RESERVE", "sent", RATE, KEYS, *options)
                        if not reply.startswith(b"+OK"):
                            raise SystemExit(f"error: {reply!r}")
                        took = timed(lambda: connection.madd(commands, depth))
                        times.setdefault(f"BF.MADD × {BATCH}{how}, {layout}", []).append(took)
                for name, args in [("`ironbloom redis load seen.ibf`", load), ("`ironbloom redis load --lines`", build_and_load)]:
                    connection.call("DEL", "loaded")
                    times.setdefault(name, []).append(timed(lambda: subprocess.run(args, **quiet)))
                    present = count_present(ironbloom, url, "loaded", lines)
                    if present != KEYS:
                        raise SystemExit(f"error: {present} of {KEYS} keys are found")
            size = os.path.getsize(file)
        finally:
            process.terminate()
            process.wait()
    medians = {name: statistics.median(all_times) for name, all_times in times.items()}
    loaded = medians["`ironbloom redis load seen.ibf`"]
    both = medians["`ironbloom redis load --lines`"]
    found = [line for line in version.splitlines() if line.startswith(("redis_version", "valkey_version"))]
    print(f"{KEYS:,} keys of {len(key(0))} bytes, rate {RATE}, file {size / 2**20:.1f} MiB; {' '.join(found)}; {ROUNDS} rounds in turns, medians.")
    print(f"`ironbloom build` alone: {built:.2f} s.\n")
    print("| way | seconds | lowest | highest | / load | / build + load |\n|---|---|---|---|---|---|")
    for name, median in medians.items():
        low, high = min(times[name]), max(times[name])
        print(f"| {name} | {median:.3f} | {low:.3f} | {high:.3f} | {median / loaded:.1f} | {median / both:.1f} |")


if __name__ == "__main__":
    main()
