"""Random tables of several writers, random conditions on them, and what DuckDB finds.

    python fuzz.py FOLDER SEED TABLES CONDITIONS

FOLDER then holds the files and `expected.txt`, which tests/promises/fuzz.rs reads. A line `T` starts a table: rows per block, and
its files, separated by `;`. Each line `Q` that follows is a question: the condition, the columns to show, and every row that
DuckDB finds, in order, separated by `;`: its `id` and the values of these columns, separated by commas, in a form that says
everything (`canonical`). Fields are separated by tabs.

Some tables are in folders such as `p0=7/p1=a%20b`, which are columns, too. Files of a table have the same columns, and may differ in the width of floats and integers, the unit of timestamps, the scale of
decimals and the writer. DuckDB is asked file by file, because it would bring them all to one type.
"""

import datetime
import decimal
import math
import pathlib
import random
import sys
from urllib.parse import quote

import duckdb
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet as pq

from canonical import UTC, canonical

try:
    import polars
except ImportError:
    polars = None
try:
    import fastparquet
    import pandas
except ImportError:
    fastparquet = None

ZONES = ["UTC", "Europe/Oslo", "America/New_York", "Asia/Kolkata", "+05:30", "Pacific/Chatham"]
WORDS = ["", "a", "ab", "abc", "abd", "b", "O'Hara", "größer", "zürich", "x%y", "a_c", "the same beginning, 1",
         "the same beginning, 2", "日本", "10", "9"]


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


class Ints:
    def __init__(self, r):
        self.low, self.high = r.choice([(0, 5), (-20, 20), (0, 100_000), (-2**31, 2**31 - 1)])

    def cell(self, r):
        return r.randint(self.low, self.high)

    def type(self, r):
        fitting = [t for t, b in [(pa.int8(), 7), (pa.int16(), 15), (pa.int32(), 31), (pa.int64(), 63)]
                   if -(2**b) <= self.low and self.high < 2**b]
        return r.choice(fitting)

    def literal(self, r, value, _):
        value += r.choice([0, 0, 0, 1, -1])
        return str(value), str(value)


class Unsigned:
    def cell(self, r):
        return 2**64 - 1 - r.randrange(50) if r.random() < 0.5 else r.randrange(50)

    def type(self, r):
        return pa.uint64()

    def literal(self, r, value, _):
        return str(value), str(value)


class Floats:
    def cell(self, r):
        return r.choice([r.randrange(-50, 50) / 4, r.randrange(40) / 10, 0.0, -0.0, math.nan, math.inf, -math.inf, 1e30])

    def type(self, r):
        return r.choice([pa.float32(), pa.float64()])

    def literal(self, r, value, type_):
        text = repr(value + r.choice([0, 0, 0.1]))
        # Rounded to the width of the column, as we do.
        width = "FLOAT" if type_ == pa.float32() else "DOUBLE"
        return quoted(text), f"{quoted(text)}::{width}"


class Decimals:
    def __init__(self, r):
        self.places = r.choice([0, 2, 9])

    def cell(self, r):
        return decimal.Decimal(r.randrange(-3000, 3000)).scaleb(-self.places)

    def type(self, r):
        return pa.decimal128(r.choice([18, 30]), self.places + r.choice([0, 0, 3]))

    def literal(self, r, value, _):
        value += r.choice([0, 0, 0, decimal.Decimal("0.5").scaleb(-self.places)])
        text = format(value, "f")
        return text, f"{text}::DECIMAL(38, {self.places + 4})"


class Texts:
    def cell(self, r):
        return r.choice(WORDS) if r.random() < 0.7 else f"user-{r.randrange(300):04}"

    def type(self, r):
        return r.choice([pa.string(), pa.large_string(), pa.dictionary(pa.int16(), pa.string())])

    def literal(self, r, value, _):
        return quoted(value), quoted(value)


class Bytes:
    def cell(self, r):
        return bytes(r.choice([0, 1, 127, 128, 255]) for _ in range(r.randrange(4)))

    def type(self, r):
        return pa.binary()

    def literal(self, r, value, _):
        return f"x'{value.hex()}'", "'" + "".join(f"\\x{b:02X}" for b in value) + "'::BLOB"


class Bools:
    def cell(self, r):
        return r.random() < 0.3

    def type(self, r):
        return pa.bool_()

    def literal(self, r, value, _):
        text = "true" if value else "false"
        return text, text


class Dates:
    def cell(self, r):
        return datetime.date(2024, 1, 1) + datetime.timedelta(r.randrange(-400, 400))

    def type(self, r):
        return pa.date32()

    def literal(self, r, value, _):
        text = quoted((value + datetime.timedelta(r.choice([0, 0, 1]))).isoformat())
        return text, f"{text}::DATE"


class Moments:
    """Without a zone, or in one; in any unit."""

    def __init__(self, r):
        self.zone = r.choice([None, *ZONES])
        self.units = r.choice([["s", "ms", "us", "ns"], ["us"], ["ns", "ms"]])
        self.step = r.choice([1, 60, 86_400, 3600 * 7])

    def cell(self, r):
        moment = datetime.datetime(2024, 3, 30) + datetime.timedelta(seconds=self.step * r.randrange(400))
        return moment.replace(tzinfo=UTC) if self.zone else moment

    def type(self, r):
        return pa.timestamp(r.choice(self.units), self.zone)

    def literal(self, r, value, _):
        value += datetime.timedelta(microseconds=r.choice([0, 0, 0, 1, 500_000]))
        if not self.zone:
            text = quoted(value.isoformat(sep=" "))
            return text, f"{text}::TIMESTAMP"
        hours = r.choice([0, 2, -5])
        local = value.astimezone(datetime.timezone(datetime.timedelta(hours=hours)))
        text = quoted(local.isoformat(sep=r.choice(" T")))
        return text, f"{text}::TIMESTAMPTZ"


class FolderInts(Ints):
    def __init__(self, r):
        self.low, self.high = r.choice([(0, 3), (-5, 5), (2020, 2030)])


class FolderTexts(Texts):
    WORDS = ["a", "ab", "b c", "O'Hara", "größer", "x%y", "a=b", "01", "user-0007", "user-0100", "c/d"]

    def cell(self, r):
        return r.choice(self.WORDS)


class FolderDates(Dates):
    def cell(self, r):
        return datetime.date(2024, 1, 1) + datetime.timedelta(r.randrange(5))


KINDS = [Ints, Ints, Unsigned, Floats, Floats, Decimals, Texts, Texts, Bytes, Bools, Dates, Moments, Moments]
CSV_KINDS = [Ints, Texts, Dates, Bools]
FOLDER_KINDS = {FolderInts: "BIGINT", FolderTexts: "VARCHAR", FolderDates: "DATE"}


def columns_of(r, kinds, rows):
    """Values by column, some of them in the order of one, so that blocks differ."""
    cells = {}
    for name, kind in kinds.items():
        nulls = r.choice([0, 0.1, 0.1, 0.6, 1.0 if r.random() < 0.1 else 0])
        cells[name] = [None if r.random() < nulls else kind.cell(r) for _ in range(rows)]
    if r.random() < 0.6:
        by = cells[r.choice(list(cells))]

        def place(row):
            value = by[row]
            return value is not None, "" if value is None else canonical(value) if isinstance(value, float) else value

        order = sorted(range(rows), key=place)
        for _ in range(rows // 40):
            a, b = r.randrange(rows), r.randrange(rows)
            order[a], order[b] = order[b], order[a]
        cells = {name: [column[row] for row in order] for name, column in cells.items()}
    return cells


def folders_of(r, kinds, count):
    """The values of the columns in the names of folders, for each file. The first value says the type."""
    return [{name: kind.cell(r) if number == 0 or r.random() < 0.85 else None for name, kind in kinds.items()}
            for number in range(count)]


def place_of(folder, values):
    """The path in which a file with these values is, which ends with a slash if there are any."""
    of = {name: "__HIVE_DEFAULT_PARTITION__" if value is None else quote(str(value), safe=" ") for name, value in values.items()}
    place = "".join(f"{name}={text}/" for name, text in of.items())
    (folder / place).mkdir(parents=True, exist_ok=True)
    return place


def write(r, folder, name, table):
    """A Parquet file, by one of the writers. Returns its name."""
    file = f"{name}.parquet"
    path = folder / file
    # pandas has no missing integers and dates, and fastparquet takes the type of text from the values.
    simple = (pa.types.is_floating, pa.types.is_string, pa.types.is_boolean, pa.types.is_signed_integer)
    plain = all(any(is_simple(c.type) for is_simple in simple) and c.null_count < max(1, table.num_rows)
                and (pa.types.is_floating(c.type) or pa.types.is_string(c.type) or c.null_count == 0) for c in table.columns)
    writers = ["pyarrow", "pyarrow", "duckdb"]
    # It has no zones without a name.
    named = all(t.tz != "+05:30" for t in table.schema.types if pa.types.is_timestamp(t))
    writers += ["polars"] if polars and named else []
    writers += ["fastparquet"] if fastparquet and plain else []
    writer = r.choice(writers)
    rows = table.num_rows
    if writer == "pyarrow":
        nanoseconds = all(t.unit == "ns" for t in table.schema.types if pa.types.is_timestamp(t))
        pq.write_table(
            table, path, compression=r.choice(["none", "snappy", "zstd", "gzip", "lz4", "brotli"]),
            use_dictionary=r.random() < 0.5, row_group_size=r.choice([rows or 1, 100, 777]),
            data_page_size=r.choice([256, 4096, 1 << 20]), data_page_version=r.choice(["1.0", "2.0"]),
            write_page_index=r.random() < 0.3, write_batch_size=r.choice([32, 1024]),
            use_deprecated_int96_timestamps=nanoseconds and r.random() < 0.5, write_page_checksum=r.random() < 0.3)
    elif writer == "duckdb":
        connection = duckdb.connect()
        connection.register("rows", table)
        # In version 2 it writes differences of INT32 that take 33 bits, which neither pyarrow nor the parquet crate reads.
        version = "v1" if pa.int32() in table.schema.types else r.choice(["v1", "v2"])
        connection.execute(
            f"COPY (FROM rows ORDER BY id) TO '{path}' (FORMAT parquet, COMPRESSION {r.choice(['snappy', 'zstd'])}, "
            f"ROW_GROUP_SIZE {r.choice([2048, 122880])}, PARQUET_VERSION {version})")
    elif writer == "polars":
        polars.from_arrow(table).write_parquet(
            path, compression=r.choice(["zstd", "snappy", "lz4", "uncompressed"]),
            row_group_size=r.choice([None, 100, 512]), data_page_size=r.choice([None, 512]), statistics=r.random() < 0.5)
    else:
        fastparquet.write(str(path), table.to_pandas(), compression=r.choice([None, "SNAPPY", "GZIP"]), write_index=False,
                          row_group_offsets=r.choice([100, 1_000_000]))
    return file


def leaf(r, kinds, cells, types):
    """A comparison, for us and for DuckDB."""
    name = r.choice(list(kinds))
    kind, type_ = kinds[name], types[name]
    values = [value for value in cells[name] if value is not None] or [kind.cell(r)]

    def literal():
        value = r.choice(values) if r.random() < 0.85 else kind.cell(r)
        return kind.literal(r, value, type_)

    form = r.randrange(12)
    if isinstance(kind, Texts) and form >= 6:
        value = r.choice(values)
        pattern = r.choice([value[: r.randrange(len(value) + 1)] + "%", value, "%" + value[1:], value[:1] + "_%",
                            value.replace("e", "_"), "user-01%", "%", "_%_", "user-0__" + value[-1:]])
        if form == 6:
            prefix = quoted(value[: r.randrange(len(value) + 1)])
            return 2 * [f"starts_with({name}, {prefix})"]
        if form == 7:
            escaped = pattern.replace("!", "!!").replace("_", "!_") + "%"
            return 2 * [f"{name} like {quoted(escaped)} escape '!'"]
        return 2 * [f"{name} {r.choice(['', 'not '])}like {quoted(pattern)}"]
    if form == 0:
        return 2 * [f"{name} is {r.choice(['', 'not '])}null"]
    if form in (1, 2):
        listed = [literal() for _ in range(r.randrange(1, 8))]
        word = r.choice(["in", "in", "not in"])
        return [f"{name} {word} ({', '.join(one[side] for one in listed)})" for side in (0, 1)]
    if form in (3, 4):
        low, high = literal(), literal()
        word = r.choice(["between", "between", "not between"])
        return [f"{name} {word} {low[side]} and {high[side]}" for side in (0, 1)]
    sign = r.choice(["=", "=", "<>", "<", "<=", ">", ">="])
    value = literal()
    # Between two integers; no integer equals that, and we say so instead of finding nothing.
    more = ".5" if isinstance(kind, Ints) and sign[0] in "<>" and sign != "<>" and r.random() < 0.1 else ""
    return [f"{name} {sign} {value[side]}{more}" for side in (0, 1)]


def combine(r, make, depth):
    """Combinations of comparisons, as functions of the file: the literals stay, only their types differ."""
    if depth == 0 or r.random() < 0.4:
        return make()
    parts = [combine(r, make, depth - 1) for _ in range(r.randrange(1, 4))]
    word = r.choice([" and ", " or "])
    negated = "not " if r.random() < 0.2 else ""
    return lambda types: [f"{negated}({word.join(side)})" for side in zip(*(part(types) for part in parts))]


def questions(r, kinds, all_cells, conditions):
    """Conditions, each as a function of the types of a file."""

    def make():
        seed, cells = r.random(), r.choice(all_cells)
        # Asked again for each file: the same choices, with its types.
        return lambda types: leaf(random.Random(seed), kinds, cells, types)

    return [combine(r, make, r.randrange(3)) for _ in range(conditions)]


def dataset(r, folder, number, conditions, out):
    is_csv = r.random() < 0.12
    kinds = {f"c{i}": r.choice(CSV_KINDS if is_csv else KINDS) for i in range(r.randrange(2, 7))}
    kinds = {name: kind(r) if kind.__init__ is not object.__init__ else kind() for name, kind in kinds.items()}
    folder_kinds = {}
    if r.random() < 0.3:
        folder_kinds = {f"p{i}": r.choice(list(FOLDER_KINDS)) for i in range(r.randrange(1, 3))}
        folder_kinds = {name: kind(r) if kind is FolderInts else kind() for name, kind in folder_kinds.items()}
    all_folders = folders_of(r, folder_kinds, r.randrange(1, 7) if folder_kinds else r.choice([1, 1, 2, 3]))
    # Of a column that is in the file as well, what the file has does not count.
    hidden = r.choice([*folder_kinds, None, None])
    files, all_cells, all_types, first = [], [], [], 0
    for part, values in enumerate(all_folders):
        rows = r.choice([1, 30, 400, 1500])
        cells = columns_of(r, kinds, rows)
        types = {name: kind.type(r) for name, kind in kinds.items()}
        if is_csv:
            # What CSV says without being told, and a value in each column, so that types can be seen.
            types = {name: {Ints: pa.int64(), Texts: pa.string(), Dates: pa.date32(), Bools: pa.bool_()}[type(kind)]
                     for name, kind in kinds.items()}
            for name, kind in kinds.items():
                sure = "word" if isinstance(kind, Texts) else kind.cell(r)
                cells[name] = [sure, *(None if value == "" else value for value in cells[name][1:])]
        arrays = {"id": pa.array(range(first, first + rows), pa.int64())}
        for name, column in cells.items():
            if pa.types.is_dictionary(types[name]):
                arrays[name] = pa.array(column, pa.string()).dictionary_encode()
            else:
                arrays[name] = pa.array(column, types[name])
        if hidden:
            arrays[hidden] = pa.array([r.randrange(3) for _ in range(rows)], pa.int64())
        table = pa.table(arrays)
        name = place_of(folder, values) + f"t{number}-{part}"
        if is_csv:
            file = f"{name}.csv"
            pa.csv.write_csv(table, folder / file)
        else:
            file = write(r, folder, name, table)
        files.append((file, table.schema))
        all_cells.append({**cells, **{name: [folders[name] for folders in all_folders] for name in folder_kinds}})
        all_types.append({**types, **dict.fromkeys(folder_kinds)})
        first += rows
    print("T", r.choice([16, 64, 512]), ";".join(file for file, _ in files), sep="\t", file=out)
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    # Copied first: asked for NaN, it skips row groups whose statistics, which do not count NaN, lie elsewhere.
    for (file, schema), values in zip(files, all_folders):
        source = quoted(str(folder / file))
        if is_csv:
            of = {"int64": "BIGINT", "string": "VARCHAR", "date32[day]": "DATE", "bool": "BOOLEAN"}
            columns = {field.name: of[str(field.type)] for field in schema}
            source = f"read_csv({source}, header = true, columns = {columns}, hive_partitioning = false)"
        else:
            # Its own columns of folders would be those of this file alone.
            source = f"read_parquet({source}, hive_partitioning = false)"
        # It has no comparison for some pairs of units; all values here are whole seconds.
        moments = {name: "TIMESTAMPTZ" if kind.zone else "TIMESTAMP"
                   for name, kind in kinds.items() if isinstance(kind, Moments)}
        if moments:
            replaced = ", ".join(f"{name}::{to} AS {name}" for name, to in moments.items())
            source = f"(SELECT * REPLACE ({replaced}) FROM {source})"
        more = ["NULL" if value is None else quoted(str(value)) for value in values.values()]
        more = [f"{value}::{FOLDER_KINDS[type(kind)]} AS {name}" for value, (name, kind) in zip(more, folder_kinds.items())]
        shown = f"* EXCLUDE ({hidden})" if hidden else "*"
        connection.execute(f'CREATE TEMP TABLE "{file}" AS SELECT {", ".join([shown, *more])} FROM {source}')
    kinds |= folder_kinds
    made = 0
    for question in questions(r, kinds, all_cells, conditions):
        shown = r.sample(list(kinds), r.randrange(1, len(kinds) + 1))
        found = []
        for (file, _), types in zip(files, all_types):
            condition, theirs = question(types)
            asked = f'SELECT id, {", ".join(shown)} FROM "{file}" WHERE {theirs} ORDER BY id'
            rows = connection.execute(asked).fetchall()
            found += [",".join(canonical(value) for value in row) for row in rows]
        print("Q", condition, ",".join(shown), ";".join(found), sep="\t", file=out)
        made += 1
    return made


def main():
    folder, seed, tables, conditions = pathlib.Path(sys.argv[1]), *map(int, sys.argv[2:5])
    r = random.Random(seed)
    with open(folder / "expected.txt", "w", encoding="utf-8") as out:
        made = sum(dataset(r, folder, number, conditions, out) for number in range(tables))
    writers = ["pyarrow", "duckdb"] + (["polars"] if polars else []) + (["fastparquet"] if fastparquet else [])
    print(f"{made} conditions on {tables} tables of {', '.join(writers)}")


main()
