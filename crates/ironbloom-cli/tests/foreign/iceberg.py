"""Histories of Iceberg tables: after each change, and a refresh, the program finds and shows what pyiceberg reads.

    python iceberg.py PROGRAM FOLDER [URL]

With a URL, the tables and their indexes are in that bucket, on the server that the environment names.
"""

import json
import os
import pathlib
import random
import sys

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.expressions import EqualTo, GreaterThan, In
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
)

from asking import Program, Rows, ask as ask_rows
from iceberg_deletes import delete_file, entries_of, positions, vectors, with_deletes

program, folder = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
# Where the tables and indexes of the histories are.
lake = sys.argv[3] if len(sys.argv) > 3 else folder
store = {
    "s3.endpoint": os.environ.get("AWS_ENDPOINT_URL", ""),
    "s3.access-key-id": os.environ.get("AWS_ACCESS_KEY_ID", ""),
    "s3.secret-access-key": os.environ.get("AWS_SECRET_ACCESS_KEY", ""),
    "s3.region": os.environ.get("AWS_REGION", ""),
}
catalog = InMemoryCatalog("test", warehouse=f"{lake}/warehouse", **store if lake != folder else {})
catalog.create_namespace("db")

SCHEMA = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "n", IntegerType(), required=False),
    NestedField(3, "name", StringType(), required=False),
    NestedField(4, "x", FloatType(), required=False),
    NestedField(5, "price", DecimalType(9, 2), required=False),
    NestedField(6, "day", DateType(), required=False),
    NestedField(7, "at", TimestampType(), required=False),
    NestedField(8, "zoned", TimestamptzType(), required=False),
    NestedField(9, "flag", BooleanType(), required=False),
    NestedField(10, "list", ListType(20, IntegerType(), element_required=False), required=False),
    NestedField(
        11,
        "who",
        StructType(NestedField(21, "first", StringType()), NestedField(22, "age", IntegerType())),
        required=False,
    ),
    NestedField(12, "tags", MapType(23, StringType(), 24, LongType(), value_required=False), required=False),
)


def ask(r, what, asked, table, questions=8):
    ask_rows(r, what, asked, table.scan().to_arrow(), questions)


def location_of(table):
    return table.metadata.location.removeprefix("file://")


def path_of(table):
    return pathlib.Path(location_of(table))


def history(name, seed, steps, spec=None, properties=None):
    r = random.Random(seed)
    rows = Rows(seed)
    table = catalog.create_table(f"db.{name}", SCHEMA, partition_spec=spec or PartitionSpec(), properties=properties or {})
    asked = Program(program, f"{lake}/{name}.ibx")
    # Of no rows yet.
    asked.run("build", "--iceberg", location_of(table), "-o", asked.index, "--block-rows", 64)
    assert asked.find("n = 3") == []
    names = iter(f"new{i}" for i in range(100))
    widened = set()
    for step in range(steps):
        action = r.choice(["append", "append", "delete", "overwrite", "schema", "rows of a file", "two"]) if step else "append"
        if action == "append":
            table.append(rows.make(table.schema().as_arrow(), r.randrange(50, 400)))
        elif action == "two":
            table.append(rows.make(table.schema().as_arrow(), 30))
            table.delete(GreaterThan("id", rows.next - 10))
        elif action == "delete":
            table.delete(EqualTo("id", r.randrange(rows.next)))
            table.delete(In("id", set(r.sample(range(rows.next), min(20, rows.next)))))
        elif action == "overwrite":
            low = r.randrange(rows.next)
            table.overwrite(rows.make(table.schema().as_arrow(), 60), overwrite_filter=GreaterThan("id", low))
        elif action == "rows of a file" and lake == folder:
            entries = list(table.inspect.files().to_pylist())
            if entries:
                ids = pq.read_table(r.choice(entries)["file_path"].removeprefix("file://"))
                place = [field.name for field in ids.schema if field.metadata and field.metadata.get(b"PARQUET:field_id") == b"1"]
                table.delete(In("id", set(ids[place[0]].to_pylist())))
        elif action == "schema":
            columns = [field.name for field in table.schema().fields if field.name not in ("id", "name", "day")]
            with table.update_schema(allow_incompatible_changes=True) as update:
                change = r.choice(["add", "add", "rename", "drop", "widen", "member"])
                if change == "add":
                    update.add_column(next(names), r.choice([LongType(), StringType(), DoubleType(), DateType()]))
                elif change == "rename" and columns:
                    old = r.choice(columns)
                    update.rename_column(old, next(names))
                elif change == "drop" and len(columns) > 3:
                    update.delete_column(r.choice(columns))
                elif change == "member":
                    for field in table.schema().fields:
                        if field.field_id == 11:
                            update.add_column((field.name, next(names)), StringType())
                else:
                    wider = {IntegerType(): LongType(), FloatType(): DoubleType(), DecimalType(9, 2): DecimalType(18, 2)}
                    for field in table.schema().fields:
                        if field.field_type in wider:
                            update.update_column(field.name, wider[field.field_type])
                            break
            if r.random() < 0.5:
                table.append(rows.make(table.schema().as_arrow(), 80))
        asked.refresh()
        ask(r, f"{name}, step {step}, {action}", asked, table)
        if r.random() < 0.3:
            asked.run("compact", asked.index)
            ask(r, f"{name}, step {step}, compacted", asked, table, questions=3)
    asked.run("verify", asked.index, "--tables")
    return asked, table


def refused(asked, table, *words):
    said = asked.run("refresh", asked.index, "--table", table, status=(2,)).stderr
    assert all(word in said for word in words), said


def name_mapping(r):
    """Files without ids, whose columns are found by the table's mapping of names, also after a column was renamed."""
    table, rows = catalog.create_table("db.mapped", SCHEMA), Rows(13)
    schema = table.schema().as_arrow()
    table.append(rows.make(schema, 100))
    for number in range(2):
        made = rows.make(schema, 150)
        file = folder / f"without ids {number}.parquet"
        plain = pa.schema([pa.field(field.name, field.type) for field in schema if not pa.types.is_nested(field.type)])
        pq.write_table(made.select(plain.names).cast(plain), file)
        table.add_files([str(file)])
    asked = Program(program, folder / "mapped.ibx")
    asked.run("build", "--iceberg", path_of(table), "-o", asked.index, "--block-rows", 64)
    ask(r, "mapping of names", asked, table, questions=15)
    with table.update_schema() as update:
        update.rename_column("n", "number")
        update.add_column("other", StringType())
    asked.refresh()
    ask(r, "mapping of names, renamed", asked, table, questions=15)


def another_table(r):
    """A table that was dropped and created again at the same place is another one, and is not followed."""
    rows, names = Rows(14), ["db.first", "db.second"]
    first, second = [catalog.create_table(name, SCHEMA) for name in names]
    for table in (first, second):
        table.append(rows.make(table.schema().as_arrow(), 50))
    here = path_of(first)
    asked = Program(program, folder / "another.ibx")
    asked.run("build", "--iceberg", here, "-o", asked.index)
    here.rename(folder / "first")
    path_of(second).rename(here)
    before = pathlib.Path(asked.index).read_bytes()
    for more in [[], ["--check"]]:
        said = asked.run("refresh", asked.index, *more, status=(2,)).stderr
        assert "another table" in said and "index build" in said, said
    assert pathlib.Path(asked.index).read_bytes() == before
    # The table itself is followed to where it was moved.
    asked.run("refresh", asked.index, "--table", folder / "first")
    assert len(asked.find("id >= 0")) == 50


def refused_deletes(r):
    """Rows that are deleted by their values: the table is refused, and its index stays as it was."""
    table, rows = catalog.create_table("db.equality", SCHEMA), Rows(15)
    table.append(rows.make(table.schema().as_arrow(), 50))
    here = path_of(table)
    asked = Program(program, folder / "equality.ibx")
    asked.run("build", "--iceberg", here, "-o", asked.index)
    path = here / "data" / "equality.parquet"
    field = pa.field("id", pa.int64(), True, {"PARQUET:field_id": "1"})
    pq.write_table(pa.table([pa.array([7])], schema=pa.schema([field])), path)
    (entry,) = entries_of(table)
    deletes = delete_file(path, DataFileContent.EQUALITY_DELETES, entry, FileFormat.PARQUET, rows=1, equality_ids=[1])
    with_deletes(table, here, [deletes], entry["spec"])
    said = asked.run("refresh", asked.index, status=(2,)).stderr
    assert "equality deletes" in said and "not supported" in said, said
    assert len(asked.find("id >= 0")) == 50
    said = asked.run("build", "--iceberg", here, "-o", folder / "none.ibx", status=(2,)).stderr
    assert "equality deletes" in said and not (folder / "none.ibx").exists(), said


def main():
    if lake != folder:
        by_day = PartitionSpec(PartitionField(6, 1000, IdentityTransform(), "day"))
        history("plain", 21, 5)
        _, table = history("partitioned", 22, 5, by_day)
        said = Program(program, "").run("build", location_of(table) + "/", "-o", f"{lake}/other.ibx", status=(2,)).stderr
        assert "--iceberg" in said, said
        return
    by_country = PartitionSpec(
        PartitionField(6, 1000, IdentityTransform(), "day"), PartitionField(3, 1001, IdentityTransform(), "name")
    )
    history("plain", 1, 14)
    v1 = {"format-version": "1"}
    history("first_version", 4, 5, properties=v1)
    asked, table = history("partitioned", 3, 10, by_country)
    before = pathlib.Path(asked.index).read_bytes()
    said = asked.run("drop", asked.index, "--where", "name = 'SE'", status=(2,)).stderr
    assert "index refresh" in said and pathlib.Path(asked.index).read_bytes() == before, said

    # By another spec from now on.
    r = random.Random(5)
    rows = Rows(5)
    rows.next = 10**6
    with table.update_spec() as update:
        update.remove_field("name")
    table.append(rows.make(table.schema().as_arrow(), 200))
    asked.run("refresh", asked.index)
    ask(r, "another spec", asked, table)

    # Rows deleted by position, and then by vectors.
    place = path_of(table)
    asked.run("build", "--iceberg", place, "-o", asked.index, "--block-rows", 64)
    for round in range(3):
        table = with_deletes(table, place, *positions(place, table, r, 5))
        assert "with other deletes" in asked.run("refresh", asked.index).stdout
        ask(r, f"positions, round {round}", asked, table, questions=20)
    table = with_deletes(table, place, *vectors(place, table, r, 40), version=3)
    assert "with other deletes" in asked.run("refresh", asked.index).stdout
    ask(r, "vectors", asked, table, questions=20)
    told = asked.info()
    assert told["deleted_rows"] > 0 and told["rows"] - told["deleted_rows"] == table.scan().to_arrow().num_rows, told
    again = Program(program, folder / "again.ibx")
    again.run("build", "--iceberg", place, "-o", again.index)
    ask(r, "vectors, built at once", again, table, questions=20)
    again.run("verify", again.index, "--tables")

    # A moved table is found where it is.
    wanted = table.scan().to_arrow().num_rows
    moved = folder / "moved"
    place.rename(moved)
    again.run("build", "--iceberg", moved, "-o", again.index)
    assert len(again.find("id >= 0")) == wanted

    name_mapping(r)
    another_table(r)

    # What is not supported is refused by name.
    last = sorted((moved / "metadata").glob("*.metadata.json"))[-1]
    metadata = json.loads(last.read_text())
    other = moved / "metadata" / "other.metadata.json"
    other.write_text(json.dumps({**metadata, "format-version": 4}))
    refused(again, other, "version 4")
    for schema in metadata["schemas"]:
        schema["fields"] = [*schema["fields"], {"id": 99, "name": "place", "required": False, "type": "geometry"}]
    other.write_text(json.dumps(metadata))
    refused(again, other, "place", "geometry")
    refused_deletes(r)


if __name__ == "__main__":
    main()
