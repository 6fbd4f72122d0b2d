"""Every short text as a table of CSV and of TSV, beside the strict readers of Python and of DuckDB: tables.py PROGRAM FOLDER.

What the program reads, Python's `csv` reads the same way, and DuckDB too, or not at all. What others read as a table of rows of one
length is read, and everything else is an error with its line. Exceptions: blank lines are no rows, where DuckDB takes them for empty
values of a table with one column; and a carriage return ends a line only before a line feed, or at the end of the text. In TSV a
quote is a character like others.
"""

from __future__ import annotations

import csv
import io
import itertools
import pathlib
import re
import subprocess
import sys
from dataclasses import dataclass

import duckdb

program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
TABLE, NOTHING = folder / "table.csv", folder / "nothing.ibf"

Rows = list[list[str]]


@dataclass(frozen=True)
class Dialect:
    """One way to write tables as text."""

    option: str
    delimiter: str
    quote: str
    # How many outcomes there are: without quotes, nothing is wrong with them.
    outcomes: int
    # Pieces of the longest text.
    longest: int

    def pieces(self) -> list[str]:
        return ["a", self.delimiter, '"', "\n", "\r\n", "\r"]

    def reader(self, text: str, strict: bool) -> csv._reader:
        quoting = csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE
        return csv.reader(io.StringIO(text, newline=""), strict=strict, delimiter=self.delimiter, quoting=quoting)


DIALECTS = [Dialect("--csv", ",", '"', 6, 4), Dialect("--tsv", "\t", "", 5, 3)]


def of_python(dialect: Dialect, text: str) -> tuple[Rows, list[int]] | None:
    """The rows and the lines that they begin on."""
    rows, lines, before = [], [], 0
    reader = dialect.reader(text, strict=True)
    try:
        for row in reader:
            if row:
                rows.append(row)
                lines.append(before + 1)
            before = reader.line_num
    except csv.Error:
        return None
    return rows, lines


def of_duckdb(dialect: Dialect, columns: int) -> Rows | None:
    names = {f"c{number}": "VARCHAR" for number in range(columns)}
    quotes = {"quotechar": dialect.quote, "escapechar": dialect.quote}
    options = {"header": False, "columns": names, "sep": dialect.delimiter, **quotes, "strict_mode": True, "auto_detect": False}
    try:
        rows = duckdb.read_csv(str(TABLE), **options).fetchall()
    except duckdb.Error:
        return None
    return [[field or "" for field in row] for row in rows]


def of_program(dialect: Dialect, columns: int) -> list[str] | str:
    """Each column as lines, all of whose keys are absent from a filter of nothing; or the error."""
    found = []
    for column in range(1, columns + 1):
        args = [program, "check", NOTHING, "--absent", dialect.option, str(column), "--no-header", TABLE]
        run = subprocess.run(args, capture_output=True, check=False)
        if run.returncode == 2:
            return run.stderr.decode()
        found.append(run.stdout.decode())
    return found


def columns_of(rows: Rows, columns: int) -> list[str]:
    return ["".join(row[column] + "\n" for row in rows) for column in range(columns)]


def check(dialect: Dialect, text: str) -> str:
    """The outcome, for a count of how many there were of each."""
    TABLE.write_bytes(text.encode())
    forgiving = [row for row in dialect.reader(text, strict=False) if row]
    columns = len(forgiving[0]) if forgiving else 1
    ours, python, duck = of_program(dialect, columns), of_python(dialect, text), of_duckdb(dialect, columns)
    is_even = python is not None and all(len(row) == columns for row in python[0])
    is_odd_return = re.search(r"\r(?!\n|$)", text) is not None
    has_blank = re.search(r"(^|\n)\r?(\n|$)", text) is not None
    if isinstance(ours, str):
        line = re.match(r"error: [^:]*table.csv: line (\d+): ", ours)
        assert line and 1 <= int(line[1]) <= text.count("\n") + 1, (text, ours)
        if is_odd_return:
            return "refused: a carriage return that ends no line"
        assert not is_even, (text, ours, python)
        if python is not None:
            first_odd = next(start for row, start in zip(*python) if len(row) != columns)
            assert int(line[1]) == first_odd, (text, ours)
            return "refused: rows of different lengths"
        return "refused: quotes"
    assert is_even and python is not None and ours == columns_of(python[0], columns), (text, ours, python)
    if duck is None:
        return "read, and refused by DuckDB"
    if columns_of(duck, columns) == ours:
        return "read by all"
    assert has_blank and columns == 1, (text, ours, duck)
    return "read, without blank lines"


subprocess.run([program, "build", "-o", NOTHING, "--capacity", "10", "--rate", "1e-9"], input=b"\xff\n", check=True, capture_output=True)
for dialect in DIALECTS:
    counts: dict[str, int] = {}
    for length in range(1, dialect.longest + 1):
        for pieces in itertools.product(dialect.pieces(), repeat=length):
            # A return before a line feed is the piece of both.
            if ("\r", "\n") in itertools.pairwise(pieces):
                continue
            outcome = check(dialect, "".join(pieces))
            counts[outcome] = counts.get(outcome, 0) + 1
    print(dialect.option, counts)
    assert len(counts) == dialect.outcomes and all(counts.values()), counts
