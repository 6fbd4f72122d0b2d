"""Finding logs by the blooms of headers, and by an index on the logs themselves, on the same synthetic chain.

    python logs.py IRONBLOOM [BLOCKS [LOGS]]

Contracts and events are as skewed as on a real chain (a few of them emit most logs), users are not. Prints Markdown.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from Crypto.Hash import keccak

CONTRACTS, EVENTS, USERS = 20_000, 2_000, 5_000_000
ROUNDS = 5


def skewed(random, size, of):
    """Numbers below `of`, a few of them frequent."""
    return (of ** random.random(size) - 1).astype(np.int64)


def address(number):
    return "0x%040x" % (number * 0x9E3779B97F4A7C15 + 7)


def topic(number):
    return "0x%064x" % (number * 0x9E3779B97F4A7C15 + 7)


def chain(blocks, logs):
    """The columns of all logs."""
    random = np.random.default_rng(19)
    rows = blocks * logs
    keep = lambda values, share: [value if kept else None for value, kept in zip(values, random.random(rows) < share)]
    users = lambda: [topic(int(user)) for user in random.integers(0, USERS, rows)]
    return {
        "block": np.repeat(np.arange(blocks), logs),
        "address": [address(int(number)) for number in skewed(random, rows, CONTRACTS)],
        "topic0": [topic(10**9 + int(number)) for number in skewed(random, rows, EVENTS)],
        "topic1": keep(users(), 0.95),
        "topic2": keep(users(), 0.85),
        "topic3": keep(users(), 0.3),
    }


def headers(path, columns, blocks, logs):
    """The headers' blooms, and how many keys each has on average."""
    known, keys = {}, 0
    with open(path, "w") as out:
        for block in range(blocks):
            rows = slice(block * logs, (block + 1) * logs)
            inside = {value for name in list(columns)[1:] for value in columns[name][rows] if value}
            keys += len(inside)
            bloom = 0
            for key in inside:
                if key not in known:
                    digest = keccak.new(digest_bits=256, data=bytes.fromhex(key[2:])).digest()
                    at = [int.from_bytes(digest[i : i + 2], "big") & 2047 for i in (0, 2, 4)]
                    known[key] = sum({1 << bit for bit in at})
                bloom |= known[key]
            print(json.dumps({"number": hex(block), "logsBloom": "0x%0512x" % bloom}), file=out)
    return keys / blocks


def run(*command):
    """Standard output and error, and the best time of some rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True)
        best = min(best, time.perf_counter() - start)
        assert done.returncode in (0, 1), done.stderr
    return done.stdout, done.stderr, best


def main():
    program = sys.argv[1]
    blocks, logs = (int(number) for number in sys.argv[2:4] or [5000, 200])
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        columns = chain(blocks, logs)
        keys = headers(folder / "headers.jsonl", columns, blocks, logs)
        pq.write_table(pa.table(columns), folder / "logs.parquet", compression="zstd")
        start = time.perf_counter()
        subprocess.run([program, "eth", "index", folder / "headers.jsonl", "-o", folder / "chain.ibe"], check=True, capture_output=True)
        blooms_time = time.perf_counter() - start
        start = time.perf_counter()
        names = "address,topic0,topic1,topic2,topic3"
        subprocess.run([program, "index", "build", folder / "logs.parquet", "-o", folder / "logs.ibx", "--columns", names], check=True, capture_output=True)
        index_time = time.perf_counter() - start
        size = lambda name: (folder / name).stat().st_size / 1e6
        print(f"{blocks} blocks of {logs} logs, {keys:.0f} distinct addresses and topics in a block.\n")
        print("| | blooms, `eth index` | logs, `index build` |\n|---|---|---|")
        print(f"| size | {size('chain.ibe'):.1f} MB | {size('logs.ibx'):.1f} MB, and the table of logs {size('logs.parquet'):.1f} MB |")
        print(f"| time to build | {blooms_time:.2f} s | {index_time:.2f} s |")
        counts = dict(zip(*np.unique(columns["address"], return_counts=True)))
        rare = min(counts, key=lambda value: (abs(counts[value] - 5), value))
        event = columns["topic0"][columns["address"].index(rare)]
        user = next(value for value in columns["topic1"] if value)
        questions = {
            "a rare contract": {"address": rare},
            "a rare contract and an event": {"address": rare, "topic0": event},
            "a user as the first topic": {"topic1": user},
            "a contract that is not there": {"address": address(10**12)},
        }
        print("\n| question | blocks with such logs | blooms: candidates | time | logs: blocks of 512 rows read | rows found | time |")
        print("|---|---|---|---|---|---|---|")
        for name, asked in questions.items():
            options = []
            for column, value in asked.items():
                options += ["--address", value] if column == "address" else ["--topic", value]
            if "address" not in asked and "topic1" in asked:
                options = ["--topic", "any", "--topic", asked["topic1"]]
            found, _, blooms_time = run(program, "eth", "find", folder / "chain.ibe", *options)
            conditions = [f"{column} = '{value}'" for column, value in asked.items()]
            rows, said, index_time = run(program, "index", "find", folder / "logs.ibx", *conditions, "--select", "block", "--format", "csv", "--explain")
            right = sorted({int(row) for row in rows.split()[1:]})
            candidates = [int(block) for block in found.split()]
            assert set(right) <= set(candidates), "a block is missing"
            read = re.search(r"considered, ([\d,]+) candidate", said).group(1)
            print(
                f"| {name} | {len(right)} | {len(candidates)} | {blooms_time * 1e3:.0f} ms "
                f"| {read} | {len(rows.split()) - 1} | {index_time * 1e3:.0f} ms |"
            )


main()
