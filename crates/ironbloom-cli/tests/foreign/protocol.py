"""What the specifications of Delta and Iceberg say beyond the usual: properties that the protocol does not enable, features that
are listed and not used, metadata that is not the newest any more.

    python protocol.py PROGRAM FOLDER NAME
"""

import gzip
import json
import pathlib
import random
import shutil
import sys

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.memory import InMemoryCatalog

from asking import Program, Rows, ask

program, folder = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()

SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int32()), ("country", pa.string()), ("day", pa.date32())])


def log_of(path):
    return sorted((path / "_delta_log").glob("*.json"))


def commit(path, *actions):
    version = int(log_of(path)[-1].stem) + 1
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (path / "_delta_log" / f"{version:020}.json").write_text(text)


def first(path, kind):
    lines = [json.loads(line) for file in log_of(path) for line in file.read_text().splitlines()]
    return [line[kind] for line in lines if kind in line][-1]


def mapping_as_the_protocol_says():
    """deltalake sets delta.columnMapping.mode and physical names also where the protocol does not enable them, because it lists
    features (of timestamps without a zone) and this is not among them: files have the names of the columns then."""
    for mode in ["name", "id"]:
        for is_enabled, schema in [(True, SCHEMA), (False, SCHEMA.append(pa.field("at", pa.timestamp("us"))))]:
            for parts in [None, ["country"]]:
                name = f"{mode} {is_enabled} by {parts and parts[0]}"
                path, rows = folder / name, Rows(3)
                configuration = {"delta.columnMapping.mode": mode}
                write_deltalake(path, rows.make(schema, 200), partition_by=parts, configuration=configuration)
                protocol = first(path, "protocol")
                assert (protocol["minReaderVersion"] == 2) == is_enabled, protocol
                assert "columnMapping" not in protocol.get("readerFeatures", []), protocol
                asked = Program(program, folder / f"{name}.ibx")
                asked.run("build", "--delta", path, "-o", asked.index, "--block-rows", 64)
                ask(random.Random(1), name, asked, rows_of(path))
                write_deltalake(path, rows.make(schema, 50), mode="append")
                DeltaTable(path).delete("id % 5 = 1")
                asked.refresh()
                ask(random.Random(2), f"{name}, refreshed", asked, rows_of(path))


def mapping_enabled_later():
    """A table gets the feature: existing columns keep their names in files, new ones have others. The index follows."""
    path, rows = folder / "later", Rows(4)
    write_deltalake(path, rows.make(SCHEMA, 100))
    asked = Program(program, folder / "later.ibx")
    asked.run("build", "--delta", path, "-o", asked.index, "--block-rows", 64)
    metadata = first(path, "metaData")
    schema = json.loads(metadata["schemaString"])
    for number, field in enumerate(schema["fields"], 1):
        field["metadata"] = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": field["name"]}
    new = {"delta.columnMapping.id": 9, "delta.columnMapping.physicalName": "col-9"}
    schema["fields"][1]["name"] = "number"
    schema["fields"].append({"name": "n", "type": "string", "nullable": True, "metadata": new})
    metadata["schemaString"] = json.dumps(schema)
    metadata["configuration"] = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "9"}
    features = ["columnMapping"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
    before = DeltaTable(path).to_pyarrow_table()
    more = rows.make(pa.schema([*SCHEMA, ("col-9", pa.string())]), 60)
    pq.write_table(more, path / "more.parquet")
    add = {"path": "more.parquet", "partitionValues": {}, "size": 1, "modificationTime": 1, "dataChange": True}
    commit(path, {"protocol": protocol}, {"metaData": metadata}, {"add": add})
    asked.refresh()
    names = ["id", "number", "country", "day", "n"]
    before = before.append_column("n", pa.nulls(len(before), pa.string()))
    known = pa.concat_tables([table.rename_columns(names) for table in (before, more)])
    ask(random.Random(3), "mapping enabled later", asked, known, questions=25)


def features_not_used():
    """Features of columns of one type are listed on tables without such columns; those that are used, or not known, refuse."""
    path, rows = folder / "features", Rows(5)
    write_deltalake(path, rows.make(SCHEMA, 100), configuration={"delta.enableDeletionVectors": "true"})
    assert "variantType" in first(path, "protocol")["readerFeatures"]
    asked = Program(program, folder / "features.ibx")
    asked.run("build", "--delta", path, "-o", asked.index, "--block-rows", 64)
    ask(random.Random(4), "features", asked, rows_of(path))
    # A list of features belongs to version 3 of the protocol.
    commit(path, {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2, "readerFeatures": ["quantumRows"]}})
    asked.refresh()
    features = {"minReaderVersion": 3, "minWriterVersion": 7, "writerFeatures": []}
    for feature in ["quantumRows", "catalogManaged"]:
        commit(path, {"protocol": {**features, "readerFeatures": ["variantType", feature]}})
        said = asked.run("refresh", asked.index, status=(2,)).stderr
        assert feature in said and "not supported" in said and "damaged" not in said, said
    metadata = first(path, "metaData")
    schema = json.loads(metadata["schemaString"])
    schema["fields"].append({"name": "v", "type": "variant", "nullable": True, "metadata": {}})
    metadata["schemaString"] = json.dumps(schema)
    commit(path, {"protocol": {**features, "readerFeatures": ["variantType"]}}, {"metaData": metadata})
    said = asked.run("refresh", asked.index, status=(2,)).stderr
    assert "v" in said and "variant" in said and "not supported" in said and "damaged" not in said, said


def rows_of(path):
    """What deltalake reads by its own engine, which knows deletion vectors."""
    from deltalake import QueryBuilder

    read = QueryBuilder().register("t", DeltaTable(path)).execute("select * from t").read_all()
    table = pa.table(read)
    return table.cast(pa.schema([pa.field(f.name, plain_type(f.type)) for f in table.schema]))


def plain_type(kind):
    return pa.string() if kind == pa.string_view() else kind


def newer_metadata():
    """An index that was built from a file of metadata: a refresh looks for a newer one."""
    catalog = InMemoryCatalog("test", warehouse=str(folder / "warehouse"))
    catalog.create_namespace("db")
    rows, r = Rows(6), random.Random(6)
    table = catalog.create_table("db.t", SCHEMA)
    table.append(rows.make(SCHEMA, 100))
    local = lambda: pathlib.Path(table.metadata_location.removeprefix("file://"))
    asked = Program(program, folder / "t.ibx")
    asked.run("build", "--iceberg", local(), "-o", asked.index, "--block-rows", 64)
    assert "up to date" in asked.run("refresh", asked.index).stdout
    for _ in range(2):
        table.append(rows.make(SCHEMA, 50))
        said = asked.refresh()
        assert "1 file added" in said, said
        ask(r, "newer metadata", asked, table.scan().to_arrow())
    # The file that was read last is gone, as writers remove old ones.
    before = local()
    table.delete("id < 20")
    before.unlink()
    asked.refresh()
    ask(r, "the old file is gone", asked, table.scan().to_arrow())
    # Which of two counts is known to the catalog alone.
    metadata = local()
    twin = metadata.with_name(metadata.name.split("-")[0] + "-0000.metadata.json")
    newer = json.loads(metadata.read_text())
    newer["last-updated-ms"] += 1
    twin.write_text(json.dumps(newer))
    said = asked.run("refresh", asked.index, status=(2,)).stderr
    assert "catalog" in said and "up to date" not in said, said
    twin.unlink()
    # A writer that has just begun, or failed, leaves an empty file, which no catalog names.
    for name in ["99999-0000.metadata.json", metadata.name.split("-")[0] + "-0000.metadata.json"]:
        begun = metadata.with_name(name)
        begun.touch()
        for place in (metadata, metadata.parents[1]):
            asked.run("build", "--iceberg", place, "-o", asked.index, "--block-rows", 64)
            assert "up to date" in asked.run("refresh", asked.index).stdout
            ask(r, "beside an empty file", asked, table.scan().to_arrow(), questions=2)
        begun.unlink()
    # One that its owner names is the one.
    asked.run("refresh", asked.index, "--table", metadata)
    assert "up to date" in asked.run("refresh", asked.index).stdout
    # A hint is written after the file, and another file may be newer.
    other = folder / "hadoop"
    shutil.copytree(metadata.parents[1], other)
    place = other / "metadata"
    files = sorted(place.glob("*.metadata.json"))
    for number, file in enumerate(files, 1):
        if number == len(files):
            (place / f"v{number}.gz.metadata.json").write_bytes(gzip.compress(file.read_bytes()))
            file.unlink()
        else:
            file.rename(place / f"v{number}.metadata.json")
    (place / "version-hint.text").write_text(str(len(files) - 1))
    asked = Program(program, folder / "hadoop.ibx")
    asked.run("build", "--iceberg", other, "-o", asked.index, "--block-rows", 64)
    ask(r, "after the hint", asked, table.scan().to_arrow())


def files_listed_twice():
    """A file that a table lists twice has its rows twice for others: it is refused, when an index is built and when it follows."""
    catalog = InMemoryCatalog("test", warehouse=str(folder / "warehouse"))
    catalog.create_namespace("db")
    rows = Rows(9)
    table = catalog.create_table("db.twice", SCHEMA)
    pq.write_table(rows.make(SCHEMA, 30), folder / "x.parquet")
    table.add_files([f"file://{folder}/x.parquet"])
    place = pathlib.Path(table.location().removeprefix("file://"))
    asked = Program(program, folder / "twice.ibx")
    asked.run("build", "--iceberg", place, "-o", asked.index)
    table.add_files([f"file://{folder}/x.parquet"], check_duplicate_files=False)
    assert table.scan().to_arrow().num_rows == 60
    for command in [["refresh", asked.index], ["build", "--iceberg", place, "-o", folder / "other.ibx"]]:
        said = asked.run(*command, status=(2,)).stderr
        assert "lists" in said and "x.parquet twice" in said, said


def members_that_are_null():
    """A commit whose lines name all actions, with null for those that are not meant."""
    path = folder / "nulls"
    rows, r = Rows(10), random.Random(10)
    for _ in range(3):
        write_deltalake(path, rows.make(SCHEMA, 40), mode="append")
    names = ["add", "cdc", "commitInfo", "domainMetadata", "metaData", "protocol", "remove", "txn"]
    for file in log_of(path):
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        file.write_text("".join(json.dumps({name: line.get(name) for name in names}) + "\n" for line in lines))
    asked = Program(program, folder / "nulls.ibx")
    asked.run("build", "--delta", path, "-o", asked.index, "--block-rows", 64)
    ask(r, "null members", asked, rows_of(path))
    gone = first(path, "add")
    commit(path, {"cdc": None, "remove": {"path": gone["path"], "dataChange": True, "deletionTimestamp": 1}})
    left = pa.concat_tables(pq.read_table(path / json.loads(line)["add"]["path"]) for file in log_of(path)[:-1] for line in file.read_text().splitlines() if (json.loads(line)["add"] or gone)["path"] != gone["path"])
    asked.refresh()
    ask(r, "null members beside a removal", asked, left.cast(SCHEMA))


def stays_with(asked, version):
    """An index of one version says so, and is not refreshed."""
    before = pathlib.Path(asked.index).read_bytes()
    for more in [[], ["--check"]]:
        said = asked.run("refresh", asked.index, *more, status=(2,)).stderr
        assert f"version {version}" in said and "stays with it" in said, said
    assert pathlib.Path(asked.index).read_bytes() == before
    said = asked.run("info", asked.index).stdout
    assert "stays with the" in said and "follows" not in said, said


def versions_of_delta():
    """Any version that the log still has, before and after a checkpoint, with the columns that it had then."""
    path, rows, r = folder / "versions", Rows(7), random.Random(7)
    write_deltalake(path, rows.make(SCHEMA, 80), partition_by=["country"])
    for version in range(1, 9):
        if version % 3 == 0:
            DeltaTable(path).delete(f"id % 7 = {version % 7}")
        elif version == 4:
            more = rows.make(SCHEMA.append(pa.field("x", pa.float64())), 30)
            write_deltalake(path, more, mode="append", schema_mode="merge")
        else:
            write_deltalake(path, rows.make(SCHEMA, 20), mode="append", schema_mode="merge")
        if version == 5:
            DeltaTable(path).create_checkpoint()
    asked = Program(program, folder / "version.ibx")
    for version in range(9):
        asked.run("build", "--delta", path, "--at", version, "-o", asked.index, "--block-rows", 64)
        known = DeltaTable(path, version=version).to_pyarrow_table()
        assert ("x" in known.column_names) == (version >= 4)
        ask(r, f"version {version} of Delta", asked, known)
        stays_with(asked, version)
    before = pathlib.Path(asked.index).read_bytes()
    refused = [("9", "version 9"), ("-1", "numbers"), ("main", "numbers"), ("", "numbers")]
    for version, words in refused:
        said = asked.run("build", "--delta", path, "--at", version, "-o", asked.index, status=(2,)).stderr
        assert words in said and "damaged" not in said, said
    # Of what was cleaned up, only the checkpoint and what came after it can be known.
    for file in log_of(path)[:5]:
        file.unlink()
    for version in range(9):
        done = asked.run("build", "--delta", path, "--at", version, "-o", folder / "late.ibx", status=(0, 2))
        assert (done.returncode == 0) == (version >= 5), (version, done.stderr)
        assert done.returncode == 0 or "version" in done.stderr, done.stderr
    assert pathlib.Path(asked.index).read_bytes() == before


def versions_of_iceberg():
    """Any snapshot by its id, tag or branch, with the columns that it was written with."""
    catalog = InMemoryCatalog("versions", warehouse=str(folder / "versions"))
    catalog.create_namespace("db")
    table, rows, r = catalog.create_table("db.t", SCHEMA), Rows(8), random.Random(8)
    table.append(rows.make(SCHEMA, 60))
    table.append(rows.make(SCHEMA, 50))
    table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "2024").commit()
    table.delete("n > 30")
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "audit").commit()
    with table.update_schema() as update:
        update.rename_column("n", "number")
    with table.update_schema() as update:
        update.delete_column("day")
    wider = pa.schema([("id", pa.int64()), ("number", pa.int32()), ("country", pa.string())])
    table.append(rows.make(wider, 40))
    asked = Program(program, folder / "version.ibx")

    def check(at, known):
        asked.run("build", "--iceberg", table.metadata_location.removeprefix("file://"), "--at", at, "-o", asked.index, "--block-rows", 64)
        ask(r, f"{at} of Iceberg", asked, known)
        stays_with(asked, at)

    snapshots = [entry.snapshot_id for entry in table.history()]
    assert len(snapshots) >= 4
    for id in snapshots:
        check(id, table.scan(snapshot_id=id).to_arrow())
    tagged = table.scan(snapshot_id=table.snapshot_by_name("2024").snapshot_id).to_arrow()
    assert "n" in tagged.column_names
    check("2024", tagged)
    # A branch has the columns of the table.
    branch = table.scan(snapshot_id=table.snapshot_by_name("audit").snapshot_id).to_arrow()
    check("audit", branch.rename_columns({"n": "number"}).drop_columns(["day"]))
    for at, words in [("7", "no snapshot 7"), ("none", "no branch or tag")]:
        said = asked.run("build", "--iceberg", table.metadata_location.removeprefix("file://"), "--at", at, "-o", asked.index, status=(2,)).stderr
        assert words in said, said


if __name__ == "__main__":
    globals()[sys.argv[3]]()
