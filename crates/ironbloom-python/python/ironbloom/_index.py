"""Rows of tables by any of their columns."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from . import _native
from ._filters import natural
from ._mirror import as_table
from ._native import Batches, Column, Expr, Table, col

if TYPE_CHECKING:
    AnyPath = str | os.PathLike[str]
    Condition = str | Expr
    Progress = Callable[[int], object] | bool | None


class Index:
    """An index on columns of Parquet and CSV tables: which rows hold these values?

    It knows, at about twelve bits per cell, which blocks of rows may hold a value; only those are read from the tables and
    compared, so answers are exact. The tables stay where they are.

    >>> import ironbloom as ib, os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> with open(os.path.join(folder, "people.csv"), "w") as table:
    ...     _ = table.write("name,age\\nalice,31\\nbob,47\\n")
    >>> index = ib.Index.build(os.path.join(folder, "*.csv"), os.path.join(folder, "people.ibx"))
    >>> index.find("name = 'bob'").num_rows
    1
    >>> index.find((ib.col("name") == "bob") & (ib.col("age") > 50)).num_rows
    0
    """

    def __init__(self, path: AnyPath) -> None:
        """Open an index. Its tables are opened when a question needs them."""
        self._native = _native.Index(os.fspath(path))

    @classmethod
    def build(
        cls,
        tables: Any,
        path: AnyPath,
        *,
        columns: Sequence[str] | None = None,
        block_rows: int | None = None,
        selectivity: int | None = None,
        csv: dict[str, Any] | None = None,
        hive: bool | None = None,
        parquet: AnyPath | None = None,
        memory: int | None = None,
        threads: int | None = None,
        progress: Progress = None,
    ) -> Index:
        """Index these columns (all that can be, if none are named) of tables, and save the index as `path`.

        `tables` is a path, a pattern (`"logs/**/*.parquet"`), a folder, or several of these; also in buckets (`s3://bucket/key`,
        `gs://`, `az://`, `https://`). A folder that is an Iceberg or Delta table, or the metadata file of an Iceberg table, is
        indexed in its current snapshot, which `refresh` then follows. Or it is a table or a stream that speaks Arrow (of
        pyarrow, polars or DuckDB): its rows are then written to a Parquet file first, `parquet` or beside the index under
        its name, because an index reads rows from its tables. That file must not exist yet.

        `block_rows` and `selectivity` trade size for speed. At most `memory` bytes (1 GiB) and `threads` (as many as there are
        processors) are used; the index does not depend on them. `csv` says how CSV is read: `delimiter`, `quote`, `header`,
        `types` (from names to "int", "text", …), `nulls`, `all_text`, `skip_bad_rows`. If all tables are in folders such as
        `country=SE/`, these are columns, too; with `hive=False` they are not. `progress` is called with the number of rows
        read; by default there is a line on a terminal, and with False none.

        Ctrl-C ends it, and no index is written.
        """
        path = os.fspath(path)
        shape = (_limit(block_rows, "block_rows", 32), _limit(selectivity, "selectivity", 32))
        limits = (_limit(memory, "memory"), _limit(threads, "threads"))
        with _Files(tables, path, parquet) as files, _Told(progress) as told:
            _native.build_index(
                files,
                path,
                None if columns is None else list(columns),
                shape,
                csv,
                hive,
                limits,
                told,
            )
        return cls(path)

    @property
    def path(self) -> str:
        """The file."""
        return self._native.path

    @property
    def columns(self) -> list[str]:
        """The indexed columns."""
        return list(self._native._info()["columns"])

    @property
    def tables(self) -> list[str]:
        """The tables, as the index names them: relative to its folder if they are in it."""
        return list(self._native._info()["tables"])

    @property
    def schema(self) -> Table:
        """Names and types of all columns of the tables, as a table without rows."""
        return self._native._schema()

    def find(
        self,
        condition: Condition,
        select: Sequence[str] | str | None = None,
        *,
        skip_changed: bool = False,
    ) -> Table:
        """The rows that match, with these columns (all, if none are named), in the order of tables and rows.

        A condition is a text as in SQL's WHERE, `"user_id = 7 and country in ('SE', 'NO')"`, or made with `col`. Columns
        that are not indexed may be in it, too: they are compared, but exclude no blocks.

        The result is a table of Arrow: `.to_pyarrow()`, `.to_pandas()`, `.to_polars()`, or give it to whoever reads Arrow.

        A table that is missing or has changed since it was indexed is an error (`TableChanged`) for the conditions whose
        rows may be in it, and for no others. With `skip_changed`, it is left out, and `.skipped` of the result says why.
        """
        return self._native._find(condition, _names(select), skip_changed)

    def find_batches(
        self,
        condition: Condition,
        select: Sequence[str] | str | None = None,
        *,
        skip_changed: bool = False,
    ) -> Batches:
        """As `find`, but batch by batch as rows are found, for results that need not fit into memory.

        Iterate over it, or give it to whoever reads a stream of Arrow: `pyarrow.RecordBatchReader.from_stream(batches)`.
        """
        return self._native._find_batches(condition, _names(select), skip_changed)

    def explain(
        self, condition: Condition, select: Sequence[str] | str | None = None
    ) -> dict[str, Any]:
        """What `find` does: blocks, how many of them are candidates, row groups that the filters in Parquet files exclude, rows
        compared, bytes read, and times."""
        return self._native._explain(condition, _names(select))

    def candidates(self, condition: Condition) -> dict[str, list[tuple[int, int]]]:
        """Ranges of rows that may match, for each table that has any. There are none elsewhere.

        Nothing is read from the tables. A range is the number of its first row in the file, counted from 0, and of the
        row after its last.
        """
        return dict(self._native._candidates(condition))

    def row_groups(self, condition: Condition) -> dict[str, list[int]]:
        """The row groups of Parquet files that may hold matching rows, for each file that has any."""
        return {path: groups for path, groups, _ in self._native._row_groups(condition)}

    def dataset(self, condition: Condition) -> Any:
        """A dataset of pyarrow with only the row groups that may hold matching rows.

        Everything that reads datasets of pyarrow then reads only those: pyarrow itself, DuckDB (by its name in SQL) and
        polars (`polars.scan_pyarrow_dataset`). They still have to compare the rows: give them the same condition.
        """
        from pyarrow import dataset, fs

        format, files = dataset.ParquetFileFormat(), fs.LocalFileSystem()
        fragments = []
        for path, groups, constants in self._native._row_groups(condition):
            # What the names of folders say is in no file.
            equal = dataset.scalar(True)
            for name, values in constants.to_pyarrow().to_pydict().items():
                column = dataset.field(name)
                equal &= column.is_null() if values[0] is None else column == values[0]
            fragments.append(format.make_fragment(path, files, equal, row_groups=groups))
        schema = self.schema.to_pyarrow().schema
        return dataset.FileSystemDataset(fragments, schema, format, files)

    def append(
        self,
        tables: Any,
        *,
        csv: dict[str, Any] | None = None,
        parquet: AnyPath | None = None,
        progress: Progress = None,
    ) -> None:
        """Add tables, or the new rows of CSV tables that have grown. `tables` is as of `build`; a table that speaks Arrow
        needs the name of a new Parquet file.

        Several processes may change an index at the same time: they take turns, and no change is lost.
        """
        with _Files(tables, None, parquet) as files, _Told(progress) as told:
            self._native._append(files, csv, told)

    def compact(self, *, memory: int | None = None, threads: int | None = None) -> None:
        """Merge the segments of each table into one. Every segment adds to the time of a lookup.

        Segments that are too large to be merged in `memory` bytes (1 GiB) stay as they are.
        """
        self._native._compact((_limit(memory, "memory"), _limit(threads, "threads")))

    def refresh(
        self, table: AnyPath | None = None, *, check: bool = False, progress: Progress = None
    ) -> dict[str, Any]:
        """Bring the index up to date with the Iceberg or Delta table that it was built from, and say what has changed.

        Files that are new are read, those that are gone are dropped, and rows that were deleted are not found any more.
        `table` is where the table, or its metadata file, is now, if it is no longer where it was. With `check`, nothing is
        changed.
        """
        with _Told(progress) as told:
            return self._native._refresh(None if table is None else os.fspath(table), check, told)

    def drop(self, *tables: AnyPath) -> None:
        """Remove tables from the index, by their paths or as `tables` shows them. The files are not touched."""
        self._native._drop([os.fspath(table) for table in tables])

    def verify(self, *, tables: bool = False, progress: Progress = None) -> list[str]:
        """Everything that is wrong with the index; with `tables`, all tables are read and compared, too. An empty list if
        everything is as it was written."""
        with _Told(progress) as told:
            said = self._native._verify(tables, told)
        errors: list[str] = said["errors"]
        return errors

    def info(self) -> dict[str, Any]:
        """Rows, blocks, segments, bytes, and what each column and table has of them."""
        return self._native._info()

    def __repr__(self) -> str:
        info = self.info()
        return (
            f"<Index {self.path!r}: {info['rows']:,} rows of {len(info['tables'])} tables, "
            f"{len(info['columns'])} columns, {info['bytes']:,} bytes>"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        path = self.path
        return type(self), (path if "://" in path else os.path.abspath(path),)


def _names(select: Sequence[str] | str | None) -> list[str] | None:
    return [select] if isinstance(select, str) else None if select is None else list(select)


def _limit(number: int | None, what: str, bits: int = 64) -> int | None:
    return None if number is None else natural(number, what, bits)


class _Files:
    """The files, folders and patterns that are meant. One that was written for the index goes away with an error."""

    def __init__(self, tables: Any, index: str | None, parquet: AnyPath | None) -> None:
        self._written: str | None = None
        if hasattr(tables, "__arrow_c_stream__") or hasattr(tables, "__arrow_c_array__"):
            if parquet is None:
                if index is None:
                    raise TypeError("rows to append need the name of a new Parquet file: parquet=")
                parquet = os.path.splitext(index)[0] + ".parquet"
            path = os.fspath(parquet)
            _native.write_parquet(as_table(tables), path)
            self._written, self._files = path, [path]
        elif isinstance(tables, (str, os.PathLike)):
            self._files = [os.fspath(tables)]
        else:
            self._files = [os.fspath(table) for table in tables]

    def __enter__(self) -> list[str]:
        return self._files

    def __exit__(self, failed: object, *_: object) -> None:
        if failed is not None and self._written is not None:
            os.unlink(self._written)


class _Told:
    """Chooses where progress goes: to a function, nowhere, or to a line on the terminal once it takes longer than a second."""

    def __init__(self, progress: Progress) -> None:
        self._shown = False
        self._start = time.monotonic()
        if callable(progress):
            self._told: Callable[[int], object] | None = progress
        elif progress or (progress is None and sys.stderr is not None and sys.stderr.isatty()):
            self._told = self._show
        else:
            self._told = None

    def _show(self, rows: int) -> None:
        passed = time.monotonic() - self._start
        if passed > 1:
            self._shown = True
            print(f"\r{rows:,} rows, {rows / passed:,.0f} rows/s ", end="", file=sys.stderr, flush=True)

    def __enter__(self) -> Callable[[int], object] | None:
        return self._told

    def __exit__(self, *_: object) -> None:
        if self._shown:
            print(file=sys.stderr)


__all__ = ["Batches", "Column", "Expr", "Index", "Table", "col"]
