"""Writes tables with pyarrow and DuckDB, and what DuckDB finds in them.

    python write.py FOLDER

FOLDER then holds the tables and `expected.txt`: a line for each question, with the file, the condition, and the `id` (which is
the number of the row) of every row that DuckDB finds, separated by tabs and commas. tests/promises/foreign_writers.rs asks us the same.
"""

import datetime
import decimal
import pathlib
import random
import sys

import duckdb
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

ROWS = 20_000

CONDITIONS = [
    "i64 = 4242",
    "i64 = -1",
    "i32 = 77 and text = 'v13'",
    "u64 = 18446744073709551615",
    "i8 in (1, 2, 3) and bool = true",
    "f64 = 0.25 or f64 = 1000000.5",
    "f64 > 1e300",
    "f32 = 0.1",
    "text = 'O''Hara'",
    "text between 'v2' and 'v21' and i8 < 0",
    "text is null and i8 = 5",
    "text is not null and not (i32 >= 3) and i8 = 5",
    "day = '2024-02-29'",
    "moment = '2024-01-01 00:00:07.5'",
    "moment >= '2024-01-01T00:30:00' and i8 = 9",
    "price = 12.50",
    "price between -0.02 and 0.02",
    "tag = 'c' and i32 = 12",
    "i32 <> 5 and i64 < 10",
    "long = 'none of these'",
]

# What CSV cannot say: an empty text is null there, and it has no types but those inferred.
CSV_CONDITIONS = [c for c in CONDITIONS if "u64" not in c and "f32" not in c]


def table(seed):
    r = random.Random(seed)

    def cells(make, nulls=0.1):
        return [None if r.random() < nulls else make() for _ in range(ROWS)]

    start = datetime.datetime(2024, 1, 1)
    columns = {
        "id": pa.array(range(ROWS), pa.int64()),
        "i8": pa.array(cells(lambda: r.randrange(-20, 20)), pa.int8()),
        "i32": pa.array(cells(lambda: r.randrange(100)), pa.int32()),
        "i64": pa.array(cells(lambda: r.randrange(10_000)), pa.int64()),
        "u64": pa.array(cells(lambda: 2**64 - 1 - r.randrange(50)), pa.uint64()),
        "f32": pa.array(cells(lambda: r.randrange(20) / 10), pa.float32()),
        "f64": pa.array(
            cells(lambda: r.choice([r.randrange(80) / 4, float("inf"), 0.0, -0.0, 1000000.5])),
            pa.float64(),
        ),
        "bool": pa.array(cells(lambda: r.random() < 0.5), pa.bool_()),
        "text": pa.array(cells(lambda: r.choice(["O'Hara", "v%d" % r.randrange(60)])), pa.string()),
        "long": pa.array(cells(lambda: "x" * r.randrange(80) + str(r.random())), pa.large_string()),
        "tag": pa.array(cells(lambda: r.choice("abcde")), pa.string()).dictionary_encode(),
        "day": pa.array(
            cells(lambda: datetime.date(2024, 1, 1) + datetime.timedelta(r.randrange(300))), pa.date32()
        ),
        "moment": pa.array(
            cells(lambda: start + datetime.timedelta(milliseconds=500 * r.randrange(5_000))),
            pa.timestamp("us"),
        ),
        "price": pa.array(
            cells(lambda: decimal.Decimal(r.randrange(-3000, 3000)) / 100), pa.decimal128(12, 2)
        ),
    }
    return pa.table(columns)


def nested(flat):
    """Columns that are not searched, but lie between the others and may be selected."""
    lists = pa.array([[i % 7] * (i % 4) for i in range(ROWS)], pa.list_(pa.int64()))
    structs = pa.array([{"x": i, "y": str(i)} for i in range(ROWS)])
    return flat.add_column(3, "list", lists).append_column("struct", structs)


def write_pyarrow(folder):
    flat = table(1)
    deep = nested(flat)
    options = {
        "default": {},
        "no-dictionary": {"use_dictionary": False},
        "tiny-pages": {"data_page_size": 512, "write_batch_size": 50},
        "tiny-dictionaries": {"dictionary_pagesize_limit": 256, "data_page_size": 2048, "write_batch_size": 64},
        "page-index": {"write_page_index": True, "data_page_size": 4096},
        "small-groups": {"row_group_size": 777},
        "version-2": {"data_page_version": "2.0", "data_page_size": 4096},
        "checksums": {"write_page_checksum": True, "data_page_size": 4096},
        "delta": {
            "use_dictionary": False,
            "data_page_size": 4096,
            "column_encoding": {
                "i64": "DELTA_BINARY_PACKED",
                "i32": "DELTA_BINARY_PACKED",
                "text": "DELTA_BYTE_ARRAY",
                "long": "DELTA_LENGTH_BYTE_ARRAY",
                "f64": "BYTE_STREAM_SPLIT",
            },
        },
        "no-arrow-schema": {"store_schema": False},
    }
    for compression in ["none", "snappy", "gzip", "brotli", "zstd", "lz4"]:
        options["c-" + compression] = {"compression": compression, "data_page_size": 8192}
    for name, how in options.items():
        # pyarrow has no delta encoding for what it makes of lists and structs.
        pq.write_table(flat if name == "delta" else deep, folder / f"pyarrow-{name}.parquet", **how)
    # CSV that quotes what needs it, without the types it cannot say.
    plain = flat.drop_columns(["u64", "f32"])
    plain = plain.set_column(plain.column_names.index("tag"), "tag", plain["tag"].combine_chunks().dictionary_decode())
    pa.csv.write_csv(plain, folder / "pyarrow.csv")


def write_duckdb(folder, connection):
    rows = nested(table(2)).drop_columns(["tag"])
    tags = pa.array(["abcde"[i * 7 % 5] for i in range(ROWS)])
    rows = rows.append_column("tag", tags)
    connection.register("rows", rows)
    options = {
        "default": "",
        "zstd": ", COMPRESSION zstd",
        "uncompressed": ", COMPRESSION uncompressed",
        "lz4": ", COMPRESSION lz4_raw",
        "small-groups": ", ROW_GROUP_SIZE 2048",
        "version-2": ", PARQUET_VERSION v2",
        "no-dictionary": ", DICTIONARY_SIZE_LIMIT 1",
    }
    for name, how in options.items():
        path = folder / f"duckdb-{name}.parquet"
        connection.execute(f"COPY (FROM rows ORDER BY id) TO '{path}' (FORMAT parquet{how})")
    columns = "id, i8, i32, i64, f64, bool, text, long, day, moment, price, tag"
    connection.execute(f"COPY (SELECT {columns} FROM rows ORDER BY id) TO '{folder}/duckdb.csv' (FORMAT csv)")


def main():
    folder = pathlib.Path(sys.argv[1])
    connection = duckdb.connect()
    write_pyarrow(folder)
    write_duckdb(folder, connection)
    with open(folder / "expected.txt", "w") as out:
        for path in sorted(folder.iterdir()):
            if path.suffix not in (".parquet", ".csv"):
                continue
            for condition in CSV_CONDITIONS if path.suffix == ".csv" else CONDITIONS:
                found = connection.execute(f"SELECT id FROM '{path}' WHERE {condition} ORDER BY id").fetchall()
                print(path.name, condition, ",".join(str(row[0]) for row in found), sep="\t", file=out)


main()
