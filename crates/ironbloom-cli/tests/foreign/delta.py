"""Histories of Delta tables: after each change, and a refresh, the program finds and shows what deltalake reads.

    python delta.py PROGRAM FOLDER [URL]

With a URL, the tables and their indexes are in that bucket, and deltalake finds its server by the environment.
"""

import json
import pathlib
import random
import subprocess
import sys
import time
import uuid
import zlib
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from pyroaring import BitMap

from asking import Program, Rows, ask

program, folder = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
# Where the histories are written to.
lake = sys.argv[3] if len(sys.argv) > 3 else folder

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("n", pa.int32()),
        ("small", pa.int8()),
        ("country", pa.string()),
        ("day", pa.date32()),
        ("x", pa.float32()),
        ("price", pa.decimal128(9, 2)),
        ("at", pa.timestamp("us")),
        ("zoned", pa.timestamp("us", "UTC")),
        ("raw", pa.binary()),
        ("list", pa.list_(pa.int32())),
        ("who", pa.struct([("first", pa.string()), ("age", pa.int32())])),
    ]
)


def read(path):
    return DeltaTable(path).to_pyarrow_table()


def history(name, seed, steps, partition_by=None):
    r, rows = random.Random(seed), Rows(seed)
    path = f"{lake}/{name}"
    schema = SCHEMA
    write_deltalake(path, rows.make(schema, 200), partition_by=partition_by)
    asked = Program(program, f"{lake}/{name}.ibx")
    asked.run("build", "--delta", path, "-o", asked.index, "--block-rows", 64)
    ask(r, name, asked, read(path))
    names = iter(f"new{i}" for i in range(100))
    for step in range(steps):
        action = r.choice(["append", "append", "delete", "update", "overwrite", "schema", "optimize", "checkpoint", "part"])
        if action == "append":
            write_deltalake(path, rows.make(schema, r.randrange(30, 300)), mode="append")
        elif action == "delete":
            DeltaTable(path).delete(f"n = {r.randrange(40)} or id % 7 = {r.randrange(7)}")
        elif action == "update":
            DeltaTable(path).update(updates={"n": "n + 1"}, predicate=f"id % 5 = {r.randrange(5)}")
        elif action == "overwrite":
            write_deltalake(path, rows.make(schema, 100), mode="overwrite")
        elif action == "part" and partition_by:
            DeltaTable(path).delete("country = 'SE'")
        elif action == "schema":
            new = next(names)
            schema = schema.append(pa.field(new, r.choice([pa.int64(), pa.string(), pa.float64()])))
            write_deltalake(path, rows.make(schema, 90), mode="append", schema_mode="merge")
        elif action == "optimize":
            DeltaTable(path).optimize.compact()
        else:
            DeltaTable(path).create_checkpoint()
            if r.random() < 0.5:
                write_deltalake(path, rows.make(schema, 20), mode="append")
        asked.refresh()
        ask(r, f"{name}, step {step}, {action}", asked, read(path))
    # All columns other ones.
    other = pa.schema([("id", pa.int64()), ("n", pa.string())])
    if not partition_by:
        write_deltalake(path, rows.make(other, 50), mode="overwrite", schema_mode="overwrite")
    asked.refresh()
    ask(r, f"{name}, other columns", asked, read(path))
    asked.run("verify", asked.index, "--tables")
    # Files that the table no longer has are gone.
    table = DeltaTable(path)
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    ask(r, f"{name}, vacuumed", asked, read(path))
    return asked, path


Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def z85(data):
    text = ""
    for at in range(0, len(data), 4):
        number = int.from_bytes(data[at : at + 4], "big")
        digits = []
        for _ in range(5):
            number, digit = divmod(number, 85)
            digits.append(Z85[digit])
        text += "".join(reversed(digits))
    return text


def bitmap(rows):
    data = (1681511377).to_bytes(4, "little") + (1).to_bytes(8, "little") + (0).to_bytes(4, "little") + BitMap(rows).serialize()
    return data


def actions(path):
    log = sorted((path / "_delta_log").glob("*.json"))
    return [json.loads(line) for file in log for line in file.read_text().splitlines()]


def commit(path, lines):
    version = int(sorted((path / "_delta_log").glob("*.json"))[-1].stem) + 1
    (path / "_delta_log" / f"{version:020}.json").write_text("".join(json.dumps(line) + "\n" for line in lines))


def vectors():
    """Deletion vectors in all their forms, written by the specification: deltalake writes none."""
    r, rows = random.Random(8), Rows(8)
    path = folder / "vectors"
    for _ in range(4):
        write_deltalake(path, rows.make(SCHEMA, 300), mode="append")
    asked = Program(program, folder / "vectors.ibx")
    asked.run("build", "--delta", path, "-o", asked.index, "--block-rows", 64)
    adds = {action["add"]["path"]: action["add"] for action in actions(path) if "add" in action}
    known = {file: pq.read_table(path / file, schema=SCHEMA) for file in adds}
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    commit(path, [{"protocol": protocol}])
    deleted = {file: set() for file in adds}
    for round in range(6):
        kind = ["u", "u", "i", "p", "prefix", "u"][round]
        file = r.choice(list(adds))
        old = adds[file]
        deleted[file] |= set(r.sample(range(300), 60))
        data = bitmap(deleted[file])
        if kind == "i":
            vector = {"storageType": "i", "pathOrInlineDv": z85(data + bytes(-len(data) % 4))}
        else:
            name, start = uuid.uuid4(), r.choice([1, 17])
            place = path / ("ab" if kind == "prefix" else "") / f"deletion_vector_{name}.bin"
            place.parent.mkdir(exist_ok=True)
            crc = zlib.crc32(data).to_bytes(4, "big")
            place.write_bytes(bytes([1]) + bytes(start - 1) + len(data).to_bytes(4, "big") + data + crc)
            text = f"file://{place}" if kind == "p" else ("ab" if kind == "prefix" else "") + z85(name.bytes)
            vector = {"storageType": "p" if kind == "p" else "u", "pathOrInlineDv": text, "offset": start}
        vector |= {"sizeInBytes": len(data), "cardinality": len(deleted[file])}
        new = {**old, "deletionVector": vector}
        remove = {"path": file, "deletionTimestamp": 1, "dataChange": True}
        if "deletionVector" in old:
            remove["deletionVector"] = old["deletionVector"]
        lines = [{"add": new}, {"remove": remove}]
        r.shuffle(lines)
        commit(path, lines)
        adds[file] = new
        assert "1 with other deletes" in asked.refresh()
        told = asked.info()
        assert told["rows"] == 1200 and told["deleted_rows"] == sum(map(len, deleted.values())), told
        by_table = {table["table"].split("/")[-1]: table["deleted_rows"] for table in told["tables"]}
        assert by_table == {file: len(rows) for file, rows in deleted.items()}, by_table
        left = [known[file].take([row for row in range(300) if row not in deleted[file]]) for file in adds]
        ask(r, f"vectors, round {round}, {kind}", asked, pa.concat_tables(left), questions=15)
    again = Program(program, folder / "again.ibx")
    again.run("build", "--delta", path, "-o", again.index)
    ask(r, "vectors, built at once", again, pa.concat_tables(left))
    # A damaged vector is an error, and the index stays as it was.
    place.write_bytes(place.read_bytes()[:-1] + b"?")
    commit(path, [{"add": {**new, "deletionVector": {**vector, "cardinality": 1}}}])
    (pathlib.Path(asked.index)).unlink()
    said = asked.run("build", "--delta", path, "-o", asked.index, status=(2,)).stderr
    assert "deletion vector is damaged" in said, said


def mapped():
    """Columns that are called otherwise in files, renamed and dropped: by name, and by id."""
    for mode in ["name", "id"]:
        r, rows = random.Random(9), Rows(9)
        path = folder / f"mapped by {mode}"
        (path / "_delta_log").mkdir(parents=True)

        def field(name, kind, number):
            mapping = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number}"}
            return {"name": name, "type": kind, "nullable": True, "metadata": mapping}

        def metadata(fields, part):
            schema = json.dumps({"type": "struct", "fields": fields})
            configuration = {"delta.columnMapping.mode": mode}
            return {
                "metaData": {
                    "id": "x",
                    "format": {"provider": "parquet", "options": {}},
                    "schemaString": schema,
                    "partitionColumns": [part],
                    "configuration": configuration,
                }
            }

        def write(columns, count, part):
            made = rows.make(pa.schema([(name, kind) for name, _, kind in columns]), count)
            fields = []
            for name, number, kind in columns:
                stored = f"col-{number}" if mode == "name" else f"any-{number}-{rows.next}"
                fields.append(pa.field(stored, kind, True, {"PARQUET:field_id": str(number)}))
            file = f"{uuid.uuid4()}.parquet"
            pq.write_table(pa.table(made.columns, schema=pa.schema(fields)), path / file)
            add = {"path": file, "partitionValues": {"col-9": part}, "size": 1, "modificationTime": 1, "dataChange": True}
            return {"add": add}, made.append_column("part", pa.array([part] * count, pa.string()))

        fields = [field("id", "long", 1), field("n", "integer", 2), field("country", "string", 3), field("part", "string", 9)]
        columns = [("id", 1, pa.int64()), ("n", 2, pa.int32()), ("country", 3, pa.string())]
        add, first = write(columns, 200, "a")
        lines = [{"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}, metadata(fields, "part"), add]
        (path / "_delta_log" / f"{0:020}.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
        asked = Program(program, folder / f"mapped {mode}.ibx")
        asked.run("build", "--delta", path, "-o", asked.index, "--block-rows", 64)
        ask(r, f"mapped by {mode}", asked, first)
        # Renamed, dropped, and one of the old name that is another column; a partition column is renamed as well.
        fields = [field("id", "long", 1), field("count", "long", 2), field("country", "string", 4), field("shard", "string", 9)]
        columns = [("id", 1, pa.int64()), ("count", 2, pa.int64()), ("country", 4, pa.string())]
        add, second = write(columns, 150, None)
        commit(path, [metadata(fields, "shard"), add])
        asked.refresh()
        first = pa.table(
            {
                "id": first["id"],
                "count": first["n"].cast(pa.int64()),
                "country": pa.nulls(200, pa.string()),
                "shard": first["part"],
            }
        )
        known = pa.concat_tables([first, second.rename_columns(["id", "count", "country", "shard"])])
        ask(r, f"mapped by {mode}, renamed", asked, known, questions=30)


def killed():
    """A refresh that is killed leaves an index that answers for the old version or the new one."""
    r, rows = random.Random(10), Rows(10)
    path = folder / "killed"
    schema = pa.schema([("id", pa.int64()), ("n", pa.int32()), ("country", pa.string())])
    write_deltalake(path, rows.make(schema, 3000))
    asked = Program(program, folder / "killed.ibx")
    asked.run("build", "--delta", path, "-o", asked.index, "--block-rows", 64)
    ids = lambda: sorted(row["id"] for row in asked.find("id >= 0", "--select", "id"))
    known = ids()
    seen = set()
    for round in range(30):
        for _ in range(3):
            write_deltalake(path, rows.make(schema, 300), mode="append")
        DeltaTable(path).delete(f"id % 11 = {r.randrange(11)}")
        new = sorted(read(path)["id"].to_pylist())
        running = subprocess.Popen([program, "index", "refresh", asked.index], stdout=subprocess.DEVNULL)
        time.sleep(r.random() * 0.03)
        running.kill()
        running.wait()
        found = ids()
        assert found in (known, new), f"round {round}: {len(found)} rows, neither {len(known)} nor {len(new)}"
        seen.add(found == new)
        asked.run("refresh", asked.index)
        assert ids() == new, f"round {round}, refreshed"
        known = new
    left = [file.name for file in folder.iterdir() if file.name.startswith(".killed.ibx")]
    assert not left, f"a refresh cleans up: {left}"
    assert False in seen, "no refresh was killed before it was done"


def checkpoints():
    """All forms of checkpoints, by the specification: of one file, of several, and with lists of actions in other files. The
    commits before it are gone, so that nothing else says what the table has."""
    for form in ["one", "several", "parquet", "json"]:
        r, rows = random.Random(11), Rows(11)
        path = folder / f"checkpoint {form}"
        for _ in range(5):
            write_deltalake(path, rows.make(SCHEMA, 120), mode="append", partition_by=["country"])
        DeltaTable(path).delete("id % 5 = 1")
        DeltaTable(path).create_checkpoint()
        known, log = read(path), path / "_delta_log"
        (one,) = log.glob("*.checkpoint.parquet")
        version = one.name.split(".")[0]
        actions = pq.read_table(one)
        for old in log.glob("*.json"):
            old.unlink()
        (log / "_last_checkpoint").unlink()
        if form != "one":
            one.unlink()
        is_file = pa.array([row["add"] is not None or row["remove"] is not None for row in actions.to_pylist()])
        files, rest = actions.filter(is_file), actions.filter(pa.compute.invert(is_file))
        if form == "several":
            half = files.num_rows // 2
            for part, some in enumerate([pa.concat_tables([rest, files.slice(0, half)]), files.slice(half)], 1):
                pq.write_table(some, log / f"{version}.checkpoint.{part:010}.{2:010}.parquet")
        elif form != "one":
            (log / "_sidecars").mkdir()
            listed = []
            for half in [files.slice(0, files.num_rows // 2), files.slice(files.num_rows // 2)]:
                name = f"{uuid.uuid4()}.parquet"
                pq.write_table(half, log / "_sidecars" / name)
                size = (log / "_sidecars" / name).stat().st_size
                listed.append({"path": name, "sizeInBytes": size, "modificationTime": 1})
            protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["v2Checkpoint"], "writerFeatures": ["v2Checkpoint"]}
            (metadata,) = [row["metaData"] for row in rest.to_pylist() if row["metaData"]]
            metadata = {**metadata, "configuration": dict(metadata["configuration"] or [])}
            metadata["format"] = {"provider": "parquet", "options": {}}
            lines = [{"checkpointMetadata": {"version": int(version)}}, {"protocol": protocol}, {"metaData": metadata}]
            lines += [{"sidecar": one} for one in listed]
            if form == "json":
                text = "".join(json.dumps(line) + "\n" for line in lines)
                (log / f"{version}.checkpoint.{uuid.uuid4()}.json").write_text(text)
            else:
                metadata.pop("configuration")
                metadata["format"].pop("options")
                names = ["checkpointMetadata", "protocol", "metaData", "sidecar"]
                table = pa.table({name: pa.array([line.get(name) for line in lines]) for name in names})
                pq.write_table(table, log / f"{version}.checkpoint.{uuid.uuid4()}.parquet")
        asked = Program(program, folder / f"checkpoint {form}.ibx")
        asked.run("build", "--delta", path, "-o", asked.index, "--block-rows", 64)
        ask(r, f"checkpoint, {form}", asked, known)
        # A commit after it, which removes a file.
        gone = next(add["path"] for add in files["add"].to_pylist() if add)
        lines = json.dumps({"remove": {"path": gone, "deletionTimestamp": 1, "dataChange": True}})
        (log / f"{int(version) + 1:020}.json").write_text(lines + "\n")
        asked.refresh()
        left = {row["id"] for row in known.to_pylist()} - set(pq.read_table(path / unquote(gone), partitioning=None)["id"].to_pylist())
        assert {row["id"] for row in asked.find("id >= 0", "--select", "id")} == left, f"checkpoint, {form}, and a commit"


def another_table():
    """A table that was dropped and created again at the same place is another one, and is not followed."""
    path, schema = folder / "again", pa.schema([("id", pa.int64()), ("n", pa.int32())])
    rows = Rows(12)
    write_deltalake(path, rows.make(schema, 100))
    asked = Program(program, folder / "another.ibx")
    asked.run("build", "--delta", path, "-o", asked.index)
    moved = folder / "moved"
    path.rename(moved)
    for _ in range(2):
        write_deltalake(path, rows.make(schema, 100), mode="append")
    before = pathlib.Path(asked.index).read_bytes()
    for more in [[], ["--check"]]:
        said = asked.run("refresh", asked.index, *more, status=(2,)).stderr
        assert "another table" in said and "index build" in said, said
    assert pathlib.Path(asked.index).read_bytes() == before
    # The table itself is followed to where it was moved.
    write_deltalake(moved, rows.make(schema, 10), mode="append")
    DeltaTable(moved).create_checkpoint()
    asked.run("refresh", asked.index, "--table", moved)
    assert len(asked.find("id >= 0")) == 110
    # Built again, it is the other one's index.
    asked.run("build", "--delta", path, "-o", asked.index)
    assert len(asked.find("id >= 0")) == 200
    asked.refresh()


def refusals():
    path = folder / "refused"
    write_deltalake(path, Rows(1).make(SCHEMA, 10))
    asked = Program(program, folder / "refused.ibx")
    features = {"minReaderVersion": 3, "minWriterVersion": 7, "writerFeatures": []}
    for protocol, word in [
        ({"minReaderVersion": 4, "minWriterVersion": 7}, "version 4"),
        ({**features, "readerFeatures": ["v2Checkpoint", "quantumRows"]}, "quantumRows"),
    ]:
        commit(path, [{"protocol": protocol}])
        said = asked.run("build", "--delta", path, "-o", asked.index, status=(2,)).stderr
        assert word in said and "not supported" in said, said
    said = asked.run("build", path, "-o", asked.index, status=(2,)).stderr
    assert "--delta" in said, said


def main():
    if lake != folder:
        history("plain", 21, 5)
        history("partitioned", 22, 5, ["country", "day"])
        said = Program(program, "").run("build", f"{lake}/plain/", "-o", f"{lake}/other.ibx", status=(2,)).stderr
        assert "--delta" in said, said
        return
    history("plain", 1, 12)
    asked, path = history("partitioned", 2, 12, ["country", "day"])
    file = next(pathlib.Path(path).rglob("*.parquet"))
    before = pathlib.Path(asked.index).read_bytes()
    for change in [["append", asked.index, file], ["drop", asked.index, file], ["drop", asked.index, "--where", "country = 'SE'"]]:
        said = asked.run(*change, status=(2,)).stderr
        assert "index refresh" in said, said
    assert pathlib.Path(asked.index).read_bytes() == before
    vectors()
    mapped()
    checkpoints()
    another_table()
    killed()
    refusals()


if __name__ == "__main__":
    main()
