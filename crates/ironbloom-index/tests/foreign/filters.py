"""Tables with Bloom filters by pyarrow and DuckDB, of every type that both write, for the index to ask.

    python filters.py FOLDER

Values come in runs, so that each is in one row group or two, and a filter can exclude the others.
"""

import datetime
import decimal
import pathlib
import sys
import uuid

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 6_000
RUN = 150


def column(value, kind):
    return pa.array([None if i % 17 == 0 else value(i // RUN) for i in range(ROWS)], kind)


def table():
    day, moment = datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, 12)
    text = lambda n: "größer %d" % n
    columns = {
        "id": pa.array(range(ROWS), pa.int64()),
        "i8": column(lambda n: n - 20, pa.int8()),
        "i16": column(lambda n: 700 * n - 14_000, pa.int16()),
        "i32": column(lambda n: 100_000_000 * (n - 20), pa.int32()),
        "i64": column(lambda n: 400_000_000_000_000_000 * (n - 20), pa.int64()),
        "u8": column(lambda n: 6 * n, pa.uint8()),
        "u16": column(lambda n: 1600 * n, pa.uint16()),
        "u32": column(lambda n: 100_000_000 * n, pa.uint32()),
        "u64": column(lambda n: 2**64 - 1 - n, pa.uint64()),
        "f32": column(lambda n: (n - 20) / 10, pa.float32()),
        "f64": column(lambda n: [0.0, -0.0, float("nan"), float("inf"), n / 7][n % 5], pa.float64()),
        "bool": column(lambda n: n % 2 == 0, pa.bool_()),
        "text": column(text, pa.string()),
        "large text": column(text, pa.large_string()),
        "binary": column(lambda n: bytes([n, 0, 255]), pa.binary()),
        "fixed": column(lambda n: bytes([n, 0, 255, 7]), pa.binary(4)),
        "uuid": column(lambda n: uuid.UUID(int=n << 64).bytes, pa.binary(16)),
        "day": column(lambda n: day + datetime.timedelta(n), pa.date32()),
        "day64": column(lambda n: day + datetime.timedelta(n), pa.date64()),
        "price": column(lambda n: decimal.Decimal(n - 20) / 100, pa.decimal128(12, 2)),
        "wide price": column(lambda n: decimal.Decimal(n - 20) / 100, pa.decimal128(38, 2)),
    }
    for unit in ["s", "ms", "us", "ns"]:
        columns[unit] = column(lambda n: moment + datetime.timedelta(minutes=n), pa.timestamp(unit))
    columns["zone"] = column(lambda n: moment + datetime.timedelta(minutes=n), pa.timestamp("us", "Europe/Oslo"))
    columns["tag"] = column(lambda n: "tag %d" % n, pa.string()).dictionary_encode()
    return pa.table(columns)


def write_pyarrow(folder, rows):
    filtered = [name for name in rows.column_names if rows[name].type != pa.bool_()]
    # Filters of dictionaries of Arrow are not written.
    filtered = [name for name in filtered if not pa.types.is_dictionary(rows[name].type)]
    options = {name: {"ndv": 1000, "fpp": 0.01} for name in filtered}
    how = {
        "default": {},
        "no-schema": {"store_schema": False},
        "plain": {"use_dictionary": False, "compression": "none"},
        "integers": {"store_decimal_as_integer": True},
        "int96": {"use_deprecated_int96_timestamps": True},
        "version-1": {"version": "1.0"},
    }
    for name, how in how.items():
        path = folder / f"pyarrow-{name}.parquet"
        pq.write_table(rows, path, row_group_size=750, bloom_filter_options=options, **how)


def write_duckdb(folder, rows):
    connection = duckdb.connect()
    connection.register("rows", rows)
    more = """*, (id // 150)::hugeint as huge, ('a' || id // 150)::varchar as short, md5((id // 150)::varchar)::uuid as id16,
        ('v' || (id // 1500))::enum('v0', 'v1', 'v2', 'v3') as kind, make_time(id // 150 % 24, 1, 2.5) as time"""
    for name, how in {"default": "", "version-2": ", PARQUET_VERSION v2"}.items():
        path = folder / f"duckdb-{name}.parquet"
        connection.execute(f"COPY (SELECT {more} FROM rows ORDER BY id) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048{how})")


folder = pathlib.Path(sys.argv[1])
write_pyarrow(folder, table())
write_duckdb(folder, table())
