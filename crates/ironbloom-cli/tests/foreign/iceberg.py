"""Histories of Iceberg tables: after each change, and a refresh, the program finds and shows what pyiceberg reads.

    python iceberg.py PROGRAM FOLDER [URL]

With a URL, the tables and their indexes are in that bucket, on the server that the environment names.
"""

import json
import os
import pathlib
import random
import sys
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.avro.file import AvroOutputFile
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.expressions import EqualTo, GreaterThan, In
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestWriterV2,
    write_manifest_list,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable
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
from pyroaring import BitMap

from asking import Program, Rows, ask as ask_rows

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


class Deletes(ManifestWriterV2):
    """Writes manifests of delete files, which pyiceberg reads but does not write."""

    number = 2

    def content(self):
        return ManifestContent.DELETES

    @property
    def version(self):
        return self.number

    @property
    def _meta(self):
        return {**super()._meta, "content": "deletes"}


class Deletes3(Deletes):
    number = 3

    def new_writer(self):
        schema = self._with_partition(3)
        return AvroOutputFile(
            output_file=self._output_file,
            file_schema=schema,
            record_schema=schema,
            schema_name="manifest_entry",
            metadata=self._meta,
        )


def with_deletes(table, place, files, spec, version=2):
    """The metadata of a new snapshot of a table, with these delete files as well."""
    io, metadata = PyArrowFileIO(), table.metadata
    snapshot, new_id = table.current_snapshot(), random.getrandbits(50)
    sequence = metadata.last_sequence_number + 1
    writer = Deletes3 if version == 3 else Deletes
    with writer(table.specs()[spec], table.schema(), io.new_output(f"{place}/metadata/{uuid.uuid4()}-m0.avro"), new_id, "deflate") as manifest:
        for file in files:
            entry = ManifestEntry.from_args(
                status=ManifestEntryStatus.ADDED, snapshot_id=new_id, sequence_number=None, data_file=file
            )
            manifest.add_entry(entry)
    manifests = snapshot.manifests(io) + [manifest.to_manifest_file()]
    list_file = f"{place}/metadata/snap-{new_id}.avro"
    with write_manifest_list(2, io.new_output(list_file), new_id, snapshot.snapshot_id, sequence, "deflate") as written:
        written.add_manifests(manifests)
    last = sorted((place / "metadata").glob("*.metadata.json"))[-1]
    out = json.loads(metadata.model_dump_json())
    out["format-version"] = version
    out["last-sequence-number"] = sequence
    out["current-snapshot-id"] = new_id
    added = {
        "snapshot-id": new_id,
        "sequence-number": sequence,
        "timestamp-ms": metadata.last_updated_ms + 1,
        "manifest-list": list_file,
        "summary": {"operation": "delete"},
        "schema-id": metadata.current_schema_id,
    }
    if version == 3:
        out["next-row-id"] = 10**6
        added["first-row-id"] = 0
        added["added-rows"] = 0
    out["snapshots"] = [*out["snapshots"], added]
    out["refs"] = {"main": {"snapshot-id": new_id, "type": "branch"}}
    number = int(last.name.split("-")[0]) + 1
    path = place / "metadata" / f"{number:05}-{uuid.uuid4()}.metadata.json"
    path.write_text(json.dumps(out))
    return StaticTable.from_metadata(str(path))


def delete_file(path, content, data, format, **more):
    return DataFile.from_args(
        _table_format_version=3,
        content=content,
        file_path=str(path),
        file_format=format,
        partition=data["partition"],
        record_count=more.pop("rows"),
        file_size_in_bytes=path.stat().st_size,
        **more,
    )


def entries_of(table):
    return [
        {
            "path": task.file.file_path,
            "partition": task.file.partition,
            "rows": task.file.record_count,
            "spec": task.file.spec_id,
        }
        for task in table.scan().plan_files()
    ]


def positions(place, table, r, count):
    """A file that lists rows of all data files of one partition."""
    files = entries_of(table)
    chosen = r.choice(files)
    same = [file for file in files if (file["spec"], file["partition"]) == (chosen["spec"], chosen["partition"])]
    listed = sorted({(file["path"], r.randrange(file["rows"])) for file in same for _ in range(count)})
    field = lambda name, kind, id: pa.field(name, kind, False, {"PARQUET:field_id": str(id)})
    schema = pa.schema([field("file_path", pa.string(), 2147483546), field("pos", pa.int64(), 2147483545)])
    path = place / "data" / f"{uuid.uuid4()}-deletes.parquet"
    columns = [pa.array([path for path, _ in listed]), pa.array([row for _, row in listed], pa.int64())]
    pq.write_table(pa.table(columns, schema=schema), path)
    file = delete_file(path, DataFileContent.POSITION_DELETES, chosen, FileFormat.PARQUET, rows=len(listed))
    return [file], chosen["spec"]


def crc32(data):
    import zlib

    return zlib.crc32(data).to_bytes(4, "big")


def vectors(place, table, r, count):
    """A Puffin file with deletion vectors of some data files."""
    body, blobs, files = b"PFA1", [], []
    known = entries_of(table)
    spec = known[0]["spec"]
    for file in r.sample([file for file in known if file["spec"] == spec], 2):
        rows = BitMap(r.sample(range(file["rows"]), min(count, file["rows"])))
        rows = (1).to_bytes(8, "little") + (0).to_bytes(4, "little") + rows.serialize()
        vector = bytes.fromhex("d1d33964") + rows
        blob = len(vector).to_bytes(4, "big") + vector + crc32(vector)
        blobs.append(
            {
                "type": "deletion-vector-v1",
                "fields": [],
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": len(body),
                "length": len(blob),
                "properties": {"referenced-data-file": file["path"], "cardinality": "1"},
            }
        )
        files.append((file, len(body), len(blob)))
        body += blob
    footer = json.dumps({"blobs": blobs, "properties": {}}).encode()
    body += b"PFA1" + footer + len(footer).to_bytes(4, "little") + bytes(4) + b"PFA1"
    path = place / "data" / f"{uuid.uuid4()}-deletes.puffin"
    path.write_bytes(body)
    listed = [
        delete_file(
            path,
            DataFileContent.POSITION_DELETES,
            file,
            FileFormat.PUFFIN,
            rows=1,
            referenced_data_file=file["path"],
            content_offset=offset,
            content_size_in_bytes=length,
        )
        for file, offset, length in files
    ]
    return listed, spec


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
