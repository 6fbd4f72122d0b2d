"""Which tables an index is built from: patterns, folders that are columns, Delta tables, and buckets."""

from __future__ import annotations

import multiprocessing
import os
import pathlib
import pickle
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import duckdb
import ironbloom as ib
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake


def rows(start: int, count: int = 100) -> pa.Table:
    numbers = range(start, start + count)
    return pa.table({"id": list(numbers), "name": [f"name {number % 7}" for number in numbers]})


def test_patterns_and_folders_stand_for_their_tables(tmp_path: pathlib.Path) -> None:
    for number, name in enumerate(["a/1.parquet", "a/2.parquet", "b/c/3.pq", "_temporary/4.parquet", ".hidden/5.parquet", "[6].parquet"]):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows(100 * number), tmp_path / name)

    def tables(*given: str) -> list[str]:
        built = ib.Index.build([tmp_path / name for name in given], tmp_path / "t.ibx")
        return sorted(built.tables)

    data = ["[6].parquet", "a/1.parquet", "a/2.parquet", "b/c/3.pq"]
    assert tables(".") == data
    assert tables("a") == tables("a/*") == tables("a/[12].parquet") == tables("a/?.parquet") == data[1:3]
    assert tables("**/*.p*q*") == data and tables("**/[!1].p*") == data[2:]
    assert tables("[6].parquet") == tables("[[]6].parquet") == data[:1]
    assert tables("a/1.parquet", "a") == data[1:3]  # each once
    for nothing in ("z*", "a/[34].parquet", "b/*.parquet"):
        with pytest.raises(FileNotFoundError, match="nothing matches"):
            tables(nothing)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="no table in this folder"):
        tables("empty")


def test_names_of_folders_are_columns_for_everybody(tmp_path: pathlib.Path) -> None:
    for number, country in enumerate(["SE", "NO", "__HIVE_DEFAULT_PARTITION__"]):
        folder = tmp_path / f"country={country}"
        folder.mkdir()
        pq.write_table(rows(100 * number), folder / "t.parquet", row_group_size=50)
    index = ib.Index.build(tmp_path, tmp_path / "t.ibx")
    assert index.find("country = 'NO' and name = 'name 3'", "id").num_rows == len([n for n in range(100, 200) if n % 7 == 3])
    assert index.find("country is null and id = 250").num_rows == 1
    assert len(index.row_groups("id = 110")) == 1
    dataset = index.dataset("id in (10, 110, 210)")
    found = dataset.to_table(filter=ds.field("id").isin([10, 110, 210])).to_pylist()
    assert sorted((row["id"], row["country"]) for row in found if row["country"]) == [(10, "SE"), (110, "NO")]
    assert [row["country"] for row in found if row["id"] == 210] == [None]
    assert dataset.to_table(filter=ds.field("country") == "SE").num_rows == 100
    lazy = pl.scan_pyarrow_dataset(dataset).filter((pl.col("country") == "NO") & (pl.col("id") == 110))
    assert lazy.collect().height == 1
    assert duckdb.sql("select id from dataset where country = 'SE' and id = 10").fetchall() == [(10,)]
    off = ib.Index.build(tmp_path, tmp_path / "off.ibx", hive=False)
    assert off.schema.column_names == ("id", "name")


def test_csv_has_no_row_groups(tmp_path: pathlib.Path) -> None:
    (tmp_path / "t.csv").write_text("id\n1\n")
    index = ib.Index.build(tmp_path / "t.csv", tmp_path / "t.ibx")
    with pytest.raises(ib.Refused, match="t.csv: has no row groups"):
        index.dataset("id = 1")


def test_texts_like_a_pattern(tmp_path: pathlib.Path) -> None:
    names = ["alice", "alina", "bob", "50% off", "50 off", "it's_5!"]
    index = ib.Index.build(pa.table({"name": names}), tmp_path / "t.ibx")

    def found(condition: Any) -> list[str]:
        both = [index.find(form).to_pyarrow()["name"].to_pylist() for form in (condition, repr(condition))]
        assert both[0] == both[1]
        return both[0]

    name = ib.col("name")
    assert found(name.like("al%")) == found(name.startswith("al")) == ["alice", "alina"]
    assert found(name.like("_ob")) == ["bob"]
    assert found(name.startswith("50%")) == ["50% off"]
    assert found(name.startswith("it's_5!")) == ["it's_5!"]
    assert found(~name.like("%o%")) == ["alice", "alina", "it's_5!"]


def test_a_delta_table_is_followed(tmp_path: pathlib.Path) -> None:
    lake = str(tmp_path / "lake")
    write_deltalake(lake, rows(0))
    index = ib.Index.build(lake, tmp_path / "t.ibx")
    assert index.find("id = 7").num_rows == 1 and index.info()["follows"]["format"] == "delta"
    write_deltalake(lake, rows(100), mode="append")
    DeltaTable(lake).delete("id = 7")
    # The index answers for its snapshot until it is told to follow.
    assert index.find("id = 7").num_rows == 1 and index.find("id = 105").num_rows == 0
    would = index.refresh(check=True)
    assert would["files_added"] == 2 and index.find("id = 105").num_rows == 0
    assert index.refresh(progress=False) == would
    assert index.find("id = 7").num_rows == 0 and index.find("id in (8, 105)").num_rows == 2
    assert index.refresh()["files_added"] == 0
    for refused in (lambda: index.dataset("id = 8"), lambda: index.drop("lake/x.parquet")):
        with pytest.raises(ib.Refused):
            refused()
    # Its files are more than the table: they are not taken for it.
    with pytest.raises(ib.Refused, match="Delta table"):
        ib.Index.build([lake, lake], tmp_path / "u.ibx")
    with pytest.raises(ib.Refused, match="nothing to follow"):
        ib.Index.build(rows(0), tmp_path / "v.ibx").refresh()


WAITING = """
import os, signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever starts tests in the background ignores it
import ironbloom as ib
index = ib.Index(sys.argv[1])
def later():
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=later).start()
print("waiting", flush=True)
try:
    getattr(index, sys.argv[2])(*sys.argv[3:])
except KeyboardInterrupt:
    print("interrupted")
"""

HOLDING = """
import fcntl, os, sys
lock = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(lock, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("change", [["append", "b.parquet"], ["compact"], ["drop", "a.parquet"]], ids=lambda change: change[0])
def test_ctrl_c_ends_the_wait_for_another_writer(tmp_path: pathlib.Path, change: list[str]) -> None:
    pq.write_table(rows(0), tmp_path / "a.parquet")
    pq.write_table(rows(100), tmp_path / "b.parquet")
    ib.Index.build(tmp_path / "a.parquet", tmp_path / "t.ibx")
    before = (tmp_path / "t.ibx").read_bytes()
    lock = str(tmp_path / ".t.ibx.lock")
    holder = subprocess.Popen([sys.executable, "-c", HOLDING, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        done = subprocess.run(
            [sys.executable, "-c", WAITING, "t.ibx", *change],
            cwd=tmp_path, capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
        )
        assert done.stdout.split() == ["waiting", "interrupted"], done.stdout + done.stderr
    finally:
        holder.communicate("")
    assert (tmp_path / "t.ibx").read_bytes() == before


# ------------------------------------------------------------------------------------------------------------- buckets


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A bucket of a server on this machine; what it needs is in the environment, as for every user."""
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    settings = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "somebody",
        "AWS_SECRET_ACCESS_KEY": "something",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "IRONBLOOM_CACHE_DIR": str(tmp_path_factory.mktemp("cache")),
    }
    before = dict(os.environ)
    os.environ.update(settings)
    try:
        s3 = boto3.client("s3")
        s3.create_bucket(Bucket="bucket")

        def put(key: str, table: pa.Table) -> str:
            written = pa.BufferOutputStream()
            pq.write_table(table, written)
            s3.put_object(Bucket="bucket", Key=key, Body=written.getvalue().to_pybytes())
            return f"s3://bucket/{key}"

        yield put
    finally:
        os.environ.clear()
        os.environ.update(before)
        server.stop()


def test_an_index_in_a_bucket(bucket: Any) -> None:
    for number in range(3):
        bucket(f"t/{number}.parquet", rows(100 * number))
    bucket("t/_temporary/9.parquet", rows(900))
    index = ib.Index.build("s3://bucket/t/", "s3://bucket/t/t.ibx")
    assert index.path == "s3://bucket/t/t.ibx"
    assert index.tables == ["0.parquet", "1.parquet", "2.parquet"]
    assert index.find("id in (5, 105, 205, 905)", "id").num_rows == 3
    assert list(index.candidates("id = 105")) == ["s3://bucket/t/1.parquet"]
    assert ib.Index.build("s3://bucket/t/[02].parquet", "s3://bucket/u.ibx").tables == ["t/0.parquet", "t/2.parquet"]
    index.append(bucket("t/more/3.parquet", rows(300)))
    index.drop("s3://bucket/t/0.parquet")
    index.compact()
    assert index.find("id in (5, 305)").num_rows == 1
    assert pickle.loads(pickle.dumps(index)).find("id = 305").num_rows == 1
    assert index.verify(tables=True) == []
    with pytest.raises(ib.Refused, match="in a bucket"):
        index.dataset("id = 105")
    with pytest.raises(FileNotFoundError, match="no table under this prefix"):
        ib.Index.build("s3://bucket/nothing/", "s3://bucket/v.ibx")
    with pytest.raises(OSError, match="none.ibx"):
        ib.Index("s3://bucket/none.ibx")


def test_the_files_of_a_delta_table_in_a_bucket_are_not_taken_for_it(bucket: Any) -> None:
    url, options = "s3://bucket/lake", {"AWS_S3_ALLOW_UNSAFE_RENAME": "true"}
    write_deltalake(url, rows(0), storage_options=options)
    write_deltalake(url, rows(100), mode="overwrite", storage_options=options)
    index = ib.Index.build(url, "s3://bucket/lake.ibx")
    assert index.find("id = 5").num_rows == 0 and index.find("id = 105").num_rows == 1


def change(path: str, name: str) -> None:
    index = ib.Index(path)
    index.drop(name)
    index.compact()


def test_two_writers_of_an_index_in_a_bucket_lose_nothing(bucket: Any) -> None:
    names = [f"{number}.parquet" for number in range(6)]
    for number, name in enumerate(names):
        bucket(f"w/{name}", rows(100 * number))
    ib.Index.build("s3://bucket/w/", "s3://bucket/w/t.ibx")
    spawn = multiprocessing.get_context("spawn")
    writers = [spawn.Process(target=change, args=("s3://bucket/w/t.ibx", name)) for name in names[1:5]]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
        assert writer.exitcode == 0
    index = ib.Index("s3://bucket/w/t.ibx")
    assert index.tables == [names[0], names[5]] and index.find("id in (5, 105, 505)").num_rows == 2
