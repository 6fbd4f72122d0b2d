"""Deleted rows of Iceberg tables, by position and by vectors: pyiceberg reads them and does not write them, so they are written here
by the specification."""

import json
import random
import uuid
import zlib

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.avro.file import AvroOutputFile
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
from pyiceberg.table import StaticTable
from pyroaring import BitMap


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


def vectors(place, table, r, count):
    """A Puffin file with deletion vectors of some data files."""
    body, blobs, files = b"PFA1", [], []
    known = entries_of(table)
    spec = known[0]["spec"]
    for file in r.sample([file for file in known if file["spec"] == spec], 2):
        rows = BitMap(r.sample(range(file["rows"]), min(count, file["rows"])))
        rows = (1).to_bytes(8, "little") + (0).to_bytes(4, "little") + rows.serialize()
        vector = bytes.fromhex("d1d33964") + rows
        blob = len(vector).to_bytes(4, "big") + vector + zlib.crc32(vector).to_bytes(4, "big")
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
