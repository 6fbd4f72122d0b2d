"""What pyarrow reads in Parquet files.

    python files.py OUT FILE [FILE ...]

Writes to OUT, for each file, a line `F` with its path and its number of rows, or `E` with its path and an error; and for each of its
columns without nesting a line `C` with its name and its values (`canonical`), separated by `;`. Fields are separated by tabs.
"""

import sys

import pyarrow as pa
import pyarrow.parquet as pq

from canonical import canonical

UNITS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1000, "ns": 1}


def values(column):
    """Canonical values of a column; None if it is of a type that has no such form."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_timestamp(kind):
        # As numbers: Python has no year 10000.
        scale = UNITS[kind.unit]
        return ["null" if n is None else f"m{n * scale}" for n in column.cast(pa.int64()).to_pylist()]
    if pa.types.is_nested(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind):
        return None
    if pa.types.is_float16(kind):
        column = column.cast(pa.float32())
    return [canonical(value) for value in column.to_pylist()]


def main():
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        for path in sys.argv[2:]:
            try:
                table = pq.read_table(path, coerce_int96_timestamp_unit="us", partitioning=None)
                columns = [(name, values(table[i])) for i, name in enumerate(table.column_names)]
            except Exception as error:
                print("E", path, " ".join(str(error).split())[:200], sep="\t", file=out)
                continue
            print("F", path, table.num_rows, sep="\t", file=out)
            for name, column in columns:
                if column is not None and "\t" not in name:
                    print("C", name, ";".join(column), sep="\t", file=out)


main()
