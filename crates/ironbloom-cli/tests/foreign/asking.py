"""What the scripts here share: making rows, running the program, asking it random questions, and comparing rows."""

import datetime
import decimal
import json
import pathlib
import random
import subprocess
import sys
import uuid

import duckdb
import pyarrow as pa


class Program:
    """The program under test, on one index."""

    def __init__(self, path, index):
        self.path = path
        self.index = str(index)

    def run(self, *args, status=(0,)):
        done = subprocess.run([self.path, "index", *map(str, args)], capture_output=True, text=True)
        if done.returncode not in status:
            sys.exit(f"{args}: exit status {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def find(self, condition, *more):
        done = self.run("find", self.index, condition, "--format", "jsonl", *more, status=(0, 1))
        return [json.loads(line) for line in done.stdout.splitlines()]

    def info(self):
        return json.loads(self.run("info", self.index, "--json").stdout)

    def refresh(self):
        """Brings the index up to date; what --check announces is what happens. Returns what was said."""
        here = pathlib.Path(self.index)
        before = here.read_bytes() if here.exists() else None
        said = self.run("refresh", self.index, "--check", status=(0, 1)).stdout
        assert before is None or here.read_bytes() == before, "a check changes nothing"
        done = self.run("refresh", self.index).stdout
        assert said == done, f"{said} instead of {done}"
        assert "up to date" in self.run("refresh", self.index, "--check", status=(1,)).stdout
        return done


class Rows:
    """Makes rows for whatever columns a table has; `id` is never used twice."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.next = 0

    def cell(self, kind):
        r = self.random
        if pa.types.is_struct(kind):
            return {field.name: self.cell(field.type) for field in kind}
        if pa.types.is_list(kind) or pa.types.is_large_list(kind):
            return [self.cell(kind.value_type) for _ in range(r.randrange(1, 4))]
        if pa.types.is_map(kind):
            return [(key, self.cell(kind.item_type)) for key in r.sample(["a", "b", "c"], r.randrange(1, 3))]
        if r.random() < 0.1:
            return None
        if pa.types.is_int64(kind):
            return r.choice([r.randrange(40), 2**40 + r.randrange(5)])
        if pa.types.is_integer(kind):
            return r.randrange(-5, 40)
        if pa.types.is_floating(kind):
            return r.choice([0.1, 0.25, 1.5, 3.0])
        if pa.types.is_decimal(kind):
            return decimal.Decimal(r.randrange(-500, 500)).scaleb(-2)
        if pa.types.is_date(kind):
            return datetime.date(2026, 1, 1) + datetime.timedelta(days=r.randrange(3))
        if pa.types.is_timestamp(kind):
            zone = datetime.timezone.utc if kind.tz else None
            return datetime.datetime(2026, 1, 1, tzinfo=zone) + datetime.timedelta(seconds=r.randrange(50) * 3600)
        if pa.types.is_boolean(kind):
            return r.random() < 0.5
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            return r.choice([b"\x00\xff", b"ab"])
        return r.choice(["SE", "NO", "å b/c=d%20", "O'Hara"])

    def make(self, schema, count):
        columns = [
            pa.array(range(self.next, self.next + count), field.type)
            if field.name == "id"
            else pa.array([self.cell(field.type) for _ in range(count)], field.type)
            for field in schema
        ]
        self.next += count
        return pa.table(columns, schema=schema)


def literal(value):
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, (int, decimal.Decimal)):
        return str(value)
    if isinstance(value, datetime.datetime):
        return f"'{value.strftime('%Y-%m-%d %H:%M:%S')}{'Z' if value.tzinfo else ''}'"
    if isinstance(value, datetime.date):
        return f"'{value.isoformat()}'"
    quoted = str(value).replace("'", "''")
    return f"'{quoted}'"


def ask(r, what, asked, known, questions=8):
    """Random conditions on the columns that a table has, with values that are in it: the program finds the rows that DuckDB
    finds in `known`."""
    rows = known.to_pylist()
    by_id = {row["id"]: row for row in rows}
    assert len(by_id) == len(rows)
    is_simple = lambda kind: not pa.types.is_nested(kind) and not pa.types.is_binary(kind) and not pa.types.is_large_binary(kind)
    simple = [field.name for field in known.schema if is_simple(field.type)]
    known_simple = known.select(simple)
    duckdb.sql("set timezone = 'UTC'")
    conditions = ["id >= 0"]
    for _ in range(questions):
        parts = []
        for _ in range(r.randrange(1, 3)):
            # By these, tables here are partitioned.
            name = r.choice(simple + [name for name in ("country", "day") if name in simple])
            value = r.choice([row[name] for row in rows[:200] if row[name] is not None] or [None])
            if value is None or r.random() < 0.1:
                parts.append(f'"{name}" is null')
                continue
            sign = "=" if isinstance(value, bool) else r.choice(["=", "=", "=", ">", "<="])
            parts.append(f'"{name}" {sign} {literal(value)}')
        conditions.append(f" {r.choice(['and', 'or'])} ".join(parts))
    for condition in conditions:
        ids = duckdb.sql(f"select id from known_simple where {condition}").fetchall()
        compare(f"{what}: {condition}", asked.find(condition), [by_id[id] for (id,) in ids])


def plain(value):
    """A value as the program shows it in JSON."""
    if isinstance(value, datetime.datetime):
        text = value.isoformat()
        return text.replace("+00:00", "Z")
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return f"{value:f}"
    if isinstance(value, uuid.UUID):
        return value.hex
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {str(key): plain(member) for key, member in value.items()}
    if isinstance(value, list):
        # Maps are lists of pairs in Python.
        if value and all(isinstance(item, tuple) for item in value):
            return {str(key): plain(member) for key, member in value}
        return [plain(item) for item in value]
    return value


def sorted_rows(rows):
    return sorted((json.dumps(row, sort_keys=True) for row in rows))


def compare(what, found, wanted):
    found, wanted = sorted_rows(found), sorted_rows([{k: plain(v) for k, v in row.items()} for row in wanted])
    if found != wanted:
        only = [row for row in found if row not in wanted][:5]
        missing = [row for row in wanted if row not in found][:5]
        sys.exit(f"{what}: {len(found)} rows instead of {len(wanted)}\nonly here: {only}\nmissing: {missing}")
