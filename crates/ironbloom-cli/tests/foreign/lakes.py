"""Random histories of Delta and Iceberg tables, with all that their writers can do. After each step the index is refreshed, and
the program finds and shows what two other readers agree on.

    python lakes.py PROGRAM FOLDER delta|iceberg SEED STEPS

Readers of Delta are deltalake's engine and Polars, of Iceberg pyiceberg and Polars; with IRONBLOOM_LAKE_READERS, a folder that
holds DuckDB and its extensions as `make fuzz-lakes` installs them, DuckDB as well. A reader that says that it cannot read a table
is left out for that step: at least one must remain beside the writer. Deletion vectors and files of positions, which the writers
in Python do not write, are written by the specifications.
"""

import glob
import importlib.util
import json
import os
import pathlib
import random
import subprocess
import sys
import uuid
import zlib

import polars
import pyarrow as pa
import pyarrow.parquet as pq

program, folder = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
kind, seed, steps = sys.argv[3], int(sys.argv[4]), int(sys.argv[5])

from asking import Program, Rows, ask, plain, sorted_rows

r = random.Random(seed)
rows = Rows(seed)
counts = {}


class Unreadable(Exception):
    """A reader that does not support what is in the table."""


def duckdb_reader(question):
    """A separate process: it is another DuckDB than the one that compares conditions here."""
    place = os.environ.get("IRONBLOOM_LAKE_READERS")
    if not place:
        raise Unreadable("no DuckDB with extensions")
    extensions = sorted(glob.glob(f"{place}/duckdb_extension_*/**/*.duckdb_extension", recursive=True))
    out = folder / "duckdb.arrow"
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); import duckdb, pyarrow as pa\n"
        "c = duckdb.connect(config={'allow_unsigned_extensions': 'true'}); c.sql(\"set timezone = 'UTC'\")\n"
        "for e in sorted(sys.argv[4:], key=lambda e: 'avro' not in e): c.sql(f\"load '{e}'\")\n"
        "c.sql('set unsafe_enable_version_guessing = true') if 'iceberg' in sys.argv[2] else None\n"
        "t = c.sql(sys.argv[2]).to_arrow_table()\n"
        "w = pa.ipc.new_file(sys.argv[3], t.schema); w.write_table(t); w.close()\n"
    )
    done = subprocess.run([sys.executable, "-c", script, place, question, str(out), *extensions], capture_output=True, text=True)
    if done.returncode:
        raise Unreadable(done.stderr.splitlines()[-1])
    return pa.ipc.open_file(out).read_all()


def simple(table):
    """With types that every reader has."""
    def of(of_field):
        if pa.types.is_large_string(of_field) or of_field == pa.string_view():
            return pa.string()
        if pa.types.is_large_binary(of_field) or of_field == pa.binary_view():
            return pa.binary()
        if pa.types.is_timestamp(of_field):
            return pa.timestamp("us", of_field.tz and "UTC")
        if pa.types.is_large_list(of_field) or pa.types.is_list(of_field):
            return pa.list_(of(of_field.value_type))
        if pa.types.is_struct(of_field):
            return pa.struct([pa.field(f.name, of(f.type)) for f in of_field])
        return of_field

    return table.cast(pa.schema([pa.field(field.name, of(field.type)) for field in table.schema]))


def agreed(what, readers):
    """What all readers that can read it find."""
    found = {}
    for name, read in readers.items():
        try:
            found[name] = simple(read())
        except Unreadable as error:
            counts[f"{name} left out"] = counts.get(f"{name} left out", 0) + 1
            if os.environ.get("IRONBLOOM_LAKE_VERBOSE"):
                print(f"{what}: {name}: {error}", file=sys.stderr)
    shown = lambda table: sorted_rows([{k: plain(v) for k, v in row.items()} for row in table.to_pylist()])
    by_rows = {}
    for name, table in found.items():
        by_rows.setdefault(json.dumps(shown(table)), []).append(name)
    most = max(by_rows.values(), key=len)
    if len(most) < 2:
        sys.exit(f"{what}: no two readers agree: {[(names, len(json.loads(rows))) for rows, names in by_rows.items()]}")
    # A third one may be wrong.
    for name in set(found) - set(most):
        counts[f"{name} disagrees"] = counts.get(f"{name} disagrees", 0) + 1
    return found[most[0]]


def guarded(read):
    """Errors of a reader, which may not know something, are its own matter."""
    def reader():
        try:
            return read()
        except Unreadable:
            raise
        except BaseException as error:
            raise Unreadable(f"{type(error).__name__}: {str(error)[:200]}") from None

    return reader


# ----------------------------------------------------------------------------------------------------------------------- Delta


class Delta:
    from_schema = pa.schema(
        [("id", pa.int64()), ("n", pa.int32()), ("country", pa.string()), ("day", pa.date32()), ("x", pa.float64()), ("at", pa.timestamp("us")), ("who", pa.struct([("age", pa.int32())]))]
    )

    def __init__(self):
        from deltalake import write_deltalake

        self.path, self.schema = folder / "delta", self.from_schema
        self.number, self.has_vectors = 0, r.random() < 0.5
        # Polars does not find the vectors of files whose paths have unusual characters: a third reader must decide then.
        unusual = not self.has_vectors or os.environ.get("IRONBLOOM_LAKE_READERS")
        self.parts = r.choice([None, ["country"], ["country", "day"]] if unusual else [None, ["day"]])
        configuration = {"delta.enableDeletionVectors": "true"} if self.has_vectors else {}
        write_deltalake(self.path, rows.make(self.schema, 150), partition_by=self.parts, configuration=configuration)
        self.flag = "--delta"

    @property
    def table(self):
        from deltalake import DeltaTable

        return DeltaTable(self.path)

    def readers(self):
        from deltalake import QueryBuilder

        engine = lambda: pa.table(QueryBuilder().register("t", self.table).execute("select * from t").read_all())
        return {
            "deltalake": guarded(engine),
            "polars": guarded(lambda: polars.scan_delta(str(self.path)).collect().to_arrow()),
            "duckdb": guarded(lambda: duckdb_reader(f"select * from delta_scan('{self.path}')")),
        }

    def append(self):
        from deltalake import write_deltalake

        write_deltalake(self.path, rows.make(self.schema, r.randrange(1, 150)), mode="append")

    def overwrite(self):
        from deltalake import write_deltalake

        write_deltalake(self.path, rows.make(self.schema, r.randrange(1, 200)), mode="overwrite")

    def replace_where(self):
        from deltalake import write_deltalake

        more = rows.make(self.schema, 40)
        more = more.set_column(1, "n", pa.array([7] * 40, pa.int32()))
        write_deltalake(self.path, more, mode="overwrite", predicate="n = 7")

    def add_column(self):
        from deltalake import write_deltalake

        self.number += 1
        self.schema = self.schema.append(pa.field(f"new{self.number}", r.choice([pa.int64(), pa.string(), pa.float64()])))
        write_deltalake(self.path, rows.make(self.schema, 30), mode="append", schema_mode="merge")

    def alter(self):
        from deltalake import Field
        from deltalake.schema import PrimitiveType

        self.number += 1
        self.table.alter.add_columns([Field(f"new{self.number}", PrimitiveType("string"))])
        self.schema = self.schema.append(pa.field(f"new{self.number}", pa.string()))

    def other_schema(self):
        from deltalake import write_deltalake

        keep = {"id", "n", "country", "day"}
        self.schema = pa.schema([field for field in self.schema if field.name in keep or r.random() < 0.7])
        write_deltalake(self.path, rows.make(self.schema, 80), mode="overwrite", schema_mode="overwrite")

    def delete(self):
        self.table.delete(r.choice([f"n = {r.randrange(40)}", f"id % 7 = {r.randrange(7)}", "country = 'SE'", "x is null"]))

    def delete_all(self):
        self.table.delete()

    def update(self):
        self.table.update(updates={"n": "n + 1"}, predicate=f"id % 5 = {r.randrange(5)}")

    def merge(self):
        known = self.table.to_pyarrow_dataset().to_table(columns=["id"])["id"].to_pylist() if not self.has_vectors else []
        more = rows.make(self.schema, 30)
        ids = [id if not known or r.random() < 0.5 else r.choice(known) for id in more["id"].to_pylist()]
        ids = [id if id not in ids[:at] else more["id"][at].as_py() for at, id in enumerate(ids)]
        more = more.set_column(0, "id", pa.array(ids, pa.int64()))
        merger = self.table.merge(more, predicate="s.id = t.id", source_alias="s", target_alias="t")
        merger = r.choice([lambda m: m.when_matched_update_all(), lambda m: m.when_matched_delete()])(merger)
        merger.when_not_matched_insert_all().execute()

    def optimize(self):
        if r.random() < 0.5 or not self.schema.field("x"):
            self.table.optimize.compact()
        else:
            self.table.optimize.z_order(["id"])

    def checkpoint(self):
        self.table.create_checkpoint()
        if r.random() < 0.5:
            self.table.cleanup_metadata()

    def vacuum(self):
        self.table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
        self.oldest = self.table.version()

    def restore(self):
        now = self.table.version()
        back = max(getattr(self, "oldest", 0), now - r.randrange(1, 4))
        if back < now:
            self.table.restore(back)
            names = [field.name for field in self.table.schema().fields]
            made = pa.schema([self.schema.field(name) if name in self.schema.names else self.from_schema.field(name) for name in names])
            self.schema = made

    def property(self):
        self.table.alter.set_table_properties({"delta.logRetentionDuration": "interval 30 days"})

    def vectors(self):
        """Rows of some files are deleted by a vector, as other writers do it."""
        if not self.has_vectors:
            return self.append()
        live = self.live()
        lines = []
        for path in r.sample(sorted(live), min(2, len(live))):
            add = live[path]
            count = pq.ParquetFile(self.path / unquote(path)).metadata.num_rows
            deleted = self.deleted_of(add) | set(r.sample(range(count), r.randrange(1, count + 1)))
            lines += self.with_vector(add, deleted)
        if lines:
            version = self.table.version() + 1
            text = "".join(json.dumps(line) + "\n" for line in lines)
            (self.path / "_delta_log" / f"{version:020}.json").write_text(text)

    def live(self):
        files = {}
        log = self.path / "_delta_log"
        checkpoints = sorted(log.glob("*.checkpoint.parquet"))
        start = -1
        if checkpoints:
            start = int(checkpoints[-1].name.split(".")[0])
            for row in pq.read_table(checkpoints[-1]).to_pylist():
                if row.get("add"):
                    add = {key: value for key, value in row["add"].items() if key in ("path", "partitionValues", "size", "modificationTime", "dataChange", "stats", "deletionVector") and value is not None}
                    add["partitionValues"] = dict(add.get("partitionValues") or [])
                    files[add["path"]] = add
        for file in sorted(log.glob("*.json")):
            if not file.stem.isdigit() or int(file.stem) <= start:
                continue
            actions = [json.loads(line) for line in file.read_text().splitlines()]
            for action in actions:
                if "remove" in action:
                    files.pop(action["remove"]["path"], None)
            for action in actions:
                if "add" in action:
                    files[action["add"]["path"]] = action["add"]
        return files

    def deleted_of(self, add):
        return set(self.known_vectors.get(vector_id(add.get("deletionVector")), ())) if add.get("deletionVector") else set()

    known_vectors = {}

    def with_vector(self, add, deleted):
        from pyroaring import BitMap

        data = (1681511377).to_bytes(4, "little") + (1).to_bytes(8, "little") + (0).to_bytes(4, "little") + BitMap(deleted).serialize()
        name = uuid.UUID(int=r.getrandbits(128))
        place = self.path / f"deletion_vector_{name}.bin"
        place.write_bytes(bytes([1]) + len(data).to_bytes(4, "big") + data + zlib.crc32(data).to_bytes(4, "big"))
        vector = {"storageType": "u", "pathOrInlineDv": z85(name.bytes), "offset": 1, "sizeInBytes": len(data), "cardinality": len(deleted)}
        self.known_vectors[vector_id(vector)] = frozenset(deleted)
        remove = {"path": add["path"], "deletionTimestamp": 1, "dataChange": True, "extendedFileMetadata": True, "partitionValues": add["partitionValues"], "size": add["size"]}
        if add.get("deletionVector"):
            remove["deletionVector"] = add["deletionVector"]
        return [{"remove": remove}, {"add": {**add, "dataChange": True, "deletionVector": vector}}]

    operations = [append, append, append, overwrite, replace_where, add_column, alter, other_schema, delete, delete, delete_all, update, merge, optimize, checkpoint, vacuum, restore, property, vectors, vectors]


def unquote(text):
    from urllib.parse import unquote

    return unquote(text)


def vector_id(vector):
    return (vector["pathOrInlineDv"], vector.get("offset"))


def z85(data):
    digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    words = [int.from_bytes(data[at : at + 4], "big") for at in range(0, len(data), 4)]
    return "".join(digits[word // 85**place % 85] for word in words for place in (4, 3, 2, 1, 0))


# --------------------------------------------------------------------------------------------------------------------- Iceberg


class Iceberg:
    def __init__(self):
        from pyiceberg.catalog.memory import InMemoryCatalog

        self.catalog = InMemoryCatalog("fuzz", warehouse=str(folder / "warehouse"))
        self.catalog.create_namespace("db")
        schema = pa.schema(
            [("id", pa.int64()), ("n", pa.int32()), ("name", pa.string()), ("day", pa.date32()), ("x", pa.float32()), ("at", pa.timestamp("us")), ("zoned", pa.timestamp("us", "UTC")), ("who", pa.struct([("age", pa.int32())]))]
        )
        version = r.choice(["1", "2", "2"])
        self.table = self.catalog.create_table("db.t", schema, properties={"format-version": version})
        self.number, self.flag = 0, "--iceberg"
        self.table.append(rows.make(self.made(), 150))
        # From a file of metadata, or from the folder: both are followed.
        local = lambda text: text.removeprefix("file://")
        self.path = local(self.table.metadata_location if r.random() < 0.5 else self.table.metadata.location)

    def made(self):
        return self.table.schema().as_arrow()

    def readers(self):
        where = self.table.metadata_location.removeprefix("file://")
        names = [field.name for field in self.table.schema().fields]
        return {
            "pyiceberg": guarded(lambda: self.table.scan().to_arrow()),
            "polars": guarded(lambda: polars.scan_iceberg(where).collect().to_arrow().select(names)),
            "duckdb": guarded(lambda: duckdb_reader(f"select * from iceberg_scan('{where}')")),
        }

    def append(self):
        self.table.append(rows.make(self.made(), r.randrange(1, 150)))

    def delete(self):
        from pyiceberg.expressions import EqualTo, GreaterThan, In

        self.table.delete(r.choice([EqualTo("name", "SE"), GreaterThan("id", rows.next - 20), In("id", set(r.sample(range(rows.next), 15)))]))

    def overwrite(self):
        from pyiceberg.expressions import GreaterThan

        self.table.overwrite(rows.make(self.made(), 60), overwrite_filter=GreaterThan("id", r.randrange(rows.next)))

    def overwrite_all(self):
        self.table.overwrite(rows.make(self.made(), 80))

    def overwrite_partitions(self):
        if self.table.spec().fields and all(str(f.transform) == "identity" for f in self.table.spec().fields):
            self.table.dynamic_partition_overwrite(rows.make(self.made(), 40))
        else:
            self.append()

    def upsert(self):
        flat = [f for f in self.made() if not pa.types.is_nested(f.type)]
        if len(flat) != len(self.made()):
            return self.append()
        known = self.table.scan(selected_fields=("id",)).to_arrow()["id"].to_pylist()
        more = rows.make(self.made(), 30)
        ids = more["id"].to_pylist()
        for at in range(0, 15):
            if known:
                ids[at] = known.pop(r.randrange(len(known)))
        self.table.upsert(more.set_column(more.schema.names.index("id"), more.schema.field("id"), pa.array(ids, pa.int64())), join_cols=["id"])

    def schema(self):
        from pyiceberg.types import DateType, DoubleType, FloatType, IntegerType, LongType, StringType

        spec = {field.source_id for field in self.table.spec().fields}
        free = [f for f in self.table.schema().fields if f.name not in ("id", "name", "day") and f.field_id not in spec]
        self.number += 1
        change = r.choice(["add", "add", "rename", "drop", "widen", "member", "move"])
        with self.table.update_schema(allow_incompatible_changes=True) as update:
            if change == "rename" and free:
                update.rename_column(r.choice(free).name, f"new{self.number}")
            elif change == "drop" and len(free) > 2:
                update.delete_column(r.choice(free).name)
            elif change == "move" and free:
                update.move_first(r.choice(free).name)
            elif change == "member" and any(f.field_type.is_struct for f in free):
                update.add_column((next(f.name for f in free if f.field_type.is_struct), f"new{self.number}"), StringType())
            elif change == "widen" and any(f.field_type in (IntegerType(), FloatType()) for f in free):
                field = next(f for f in free if f.field_type in (IntegerType(), FloatType()))
                update.update_column(field.name, LongType() if field.field_type == IntegerType() else DoubleType())
            else:
                update.add_column(f"new{self.number}", r.choice([LongType(), StringType(), DoubleType(), DateType()]))

    def spec(self):
        from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform, TruncateTransform

        choices = [("day", IdentityTransform()), ("name", IdentityTransform())]
        if importlib.util.find_spec("pyiceberg_core"):
            choices += [("id", BucketTransform(3)), ("name", TruncateTransform(1)), ("day", DayTransform())]

        fields = self.table.spec().fields
        with self.table.update_spec() as update:
            if fields and r.random() < 0.5:
                update.remove_field(r.choice(fields).name)
            else:
                self.number += 1
                column, transform = r.choice(choices)
                taken = {(field.source_id, str(field.transform)) for field in fields}
                source = self.table.schema().find_field(column).field_id
                if (source, str(transform)) not in taken:
                    update.add_field(column, transform, f"part{self.number}")

    def add_files(self):
        if self.table.spec().fields:
            return self.append()
        flat = pa.schema([pa.field(f.name, f.type) for f in self.made() if not pa.types.is_nested(f.type)])
        file = folder / f"added{self.number}-{rows.next}.parquet"
        pq.write_table(rows.make(flat, 40), file)
        self.table.add_files([str(file)])

    def rollback(self):
        """Time travel, for all readers."""
        history = [entry.snapshot_id for entry in self.table.history()]
        known = {snapshot.snapshot_id for snapshot in self.table.snapshots()}
        back = [id for id in history[-4:-1] if id in known]
        if back and hasattr(self.table.manage_snapshots(), "set_current_snapshot"):
            self.table.manage_snapshots().set_current_snapshot(r.choice(back)).commit()
        else:
            self.append()

    def branch(self):
        snapshot = self.table.current_snapshot()
        if snapshot is None or self.table.metadata.format_version == 1:
            return self.append()
        self.number += 1
        self.table.manage_snapshots().create_tag(snapshot.snapshot_id, f"tag{self.number}").create_branch(snapshot.snapshot_id, f"branch{self.number}").commit()
        self.table.append(rows.make(self.made(), 20), branch=f"branch{self.number}")

    def expire(self):
        old = [s.snapshot_id for s in self.table.snapshots() if s.snapshot_id != self.table.current_snapshot().snapshot_id]
        refs = {ref.snapshot_id for ref in self.table.metadata.refs.values()}
        old = [id for id in old if id not in refs]
        if old:
            self.table.maintenance.expire_snapshots().by_id(old[0]).commit()

    def property(self):
        with self.table.transaction() as change:
            change.set_properties(**{"write.metadata.delete-after-commit.enabled": "true", f"p{self.number}": "x"})

    def upgrade(self):
        with self.table.transaction() as change:
            change.upgrade_table_version(2)

    def positions(self):
        """Rows of the files of one partition are deleted by a file that lists them."""
        self.with_deletes("positions", 2)

    def vectors(self):
        """Rows of two files are deleted by vectors in a Puffin file: the table has version 3 from now on."""
        if r.random() < 0.7:
            return self.positions()
        self.with_deletes("vectors", 3)

    def with_deletes(self, how, version):
        import iceberg_deletes

        place = pathlib.Path(self.table.metadata.location.removeprefix("file://"))
        files = iceberg_deletes.entries_of(self.table)
        spec = files[0]["spec"] if files else None
        is_enough = [file["spec"] for file in files].count(spec) >= (2 if version == 3 else 1)
        if self.table.metadata.format_version not in (2, version) or not is_enough:
            return self.append()
        listed = getattr(iceberg_deletes, how)(place, self.table, r, 5)
        made = iceberg_deletes.with_deletes(self.table, place, *listed, version=version)
        self.catalog.drop_table("db.t")
        self.table = self.catalog.register_table("db.t", made.metadata_location)

    operations = [append, append, append, positions, positions, vectors, delete, delete, overwrite, overwrite_all, overwrite_partitions, upsert, schema, schema, spec, add_files, rollback, branch, expire, property, upgrade]


def main():
    lake = {"delta": Delta, "iceberg": Iceberg}[kind]()
    asked = Program(program, folder / "t.ibx")
    asked.run("build", lake.flag, lake.path, "-o", asked.index, "--block-rows", 64)
    ask(r, f"{kind}, seed {seed}, at first", asked, agreed("at first", lake.readers()), questions=3)
    for step in range(steps):
        operation = r.choice(lake.operations)
        what = f"{kind}, seed {seed}, step {step}, {operation.__name__}"
        try:
            operation(lake)
        except Exception as error:
            # The writer refuses it in this state of the table.
            if isinstance(error, (AssertionError, NameError, AttributeError, TypeError)):
                raise
            counts["refused by the writer"] = counts.get("refused by the writer", 0) + 1
            if os.environ.get("IRONBLOOM_LAKE_VERBOSE"):
                print(f"{what}: refused: {str(error)[:200]}", file=sys.stderr)
        known = agreed(what, lake.readers())
        asked.refresh()
        ask(r, what, asked, known, questions=3)
        counts[operation.__name__] = counts.get(operation.__name__, 0) + 1
        if r.random() < 0.2:
            asked.run("compact", asked.index)
            ask(r, f"{what}, compacted", asked, known, questions=1)
        if r.random() < 0.2:
            again = Program(program, folder / "again.ibx")
            again.run("build", lake.flag, lake.path if kind == "delta" else lake.table.metadata_location.removeprefix("file://"), "-o", again.index)
            ask(r, f"{what}, built again", again, known, questions=2)
    asked.run("verify", asked.index, "--tables")
    print(f"{kind}, seed {seed}: {steps} steps, {counts}")


if __name__ == "__main__":
    main()
