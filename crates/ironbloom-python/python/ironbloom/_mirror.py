"""Columns of other libraries: in as they are, and answers out as the keys came.

No library is imported here that the caller has not imported: whose keys they are is seen from their class.

A column is read as Arrow or as memory of numpy only if its values there are those that the library shows in Python. Others
are taken one by one, as the objects that they are.
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from ._errors import InvalidColumn, InvalidKey, UnknownName
from ._native import Mask

# Types of DuckDB that are something else in Arrow: a UUID is a text there, bits are packed, a time is without its zone, and
# integers of 128 bits without a sign have one.
_OBJECTS_OF_DUCKDB = {"uuid", "bit", "time with time zone", "uhugeint"}

# Types of polars that are pointers in Arrow, or that Arrow does not have, or writes in another way.
_OBJECTS_OF_POLARS = {"Object", "Int128", "UInt128", "Null"}


# Types of pandas that may say that they are objects, and are columns of Arrow.
_NOT_OBJECTS = {"ArrowDtype", "CategoricalDtype", "DatetimeTZDtype"}


def _library(keys: object) -> str:
    return type(keys).__module__.partition(".")[0].lstrip("_")


def as_column(keys: Any) -> tuple[Any, Any]:
    """What the native code reads without nulls, and which keys are null (or None, if the native code finds out itself)."""
    library = _library(keys)
    if library == "pandas":
        return _column_of_pandas(keys)
    if library == "polars":
        return _column_of_polars(keys)
    if library == "duckdb" and hasattr(keys, "types") and keys.types[0].id in _OBJECTS_OF_DUCKDB:
        return _objects([row[0] for row in keys.fetchall()]) if len(keys.types) == 1 else (keys, None)
    if library == "pyarrow" and hasattr(keys, "type") and sys.modules["pyarrow"].types.is_struct(keys.type):
        raise InvalidKey("a column of structs is not a column of keys: select one of its fields")
    return keys, None


def as_rows(table: Any, names: Sequence[str]) -> Any:
    """A table whose columns of these names the native code reads, or its rows as tuples of objects."""
    library = _library(table)
    if library == "pandas" and hasattr(table, "columns"):
        columns = columns_of_pandas(table, names)
        for name, column in zip(names, columns, strict=True):
            if column.isna().any():
                raise InvalidKey(f"column {name} has nulls, which are no values: fill or drop them first")
        read = table_of_pandas(columns, names)
        return zip(*columns, strict=True) if read is None else read
    refuse_unread(table)
    return table


def as_table(table: Any) -> Any:
    """A table that is written as Arrow has it. In an object column of pandas, Arrow makes one type of several without a word."""
    refuse_unread(table)
    if _library(table) == "pandas" and hasattr(table, "columns"):
        for name, column in zip(table.columns, columns_of_pandas(table, None), strict=True):
            if column.dtype.kind == "O" and type(column.dtype).__name__ not in _NOT_OBJECTS:
                values = column.to_numpy(dtype=object)[~column.isna().to_numpy()]
                types = {(type(value), getattr(value, "tzinfo", None) is None) for value in values}
                if len(types) > 1 or any(one is datetime.time and not naive for one, naive in types):
                    raise InvalidColumn(f"column {name} holds objects of several types, or times with a zone: convert it first")
    return table


def refuse_unread(table: Any) -> None:
    """An error for a column that is something else in Arrow."""
    library = _library(table)
    unread: list[str] = []
    if library == "polars" and hasattr(table, "schema"):
        unread = [name for name, dtype in table.schema.items() if _name_of_polars(dtype) in _OBJECTS_OF_POLARS]
    elif library == "duckdb" and hasattr(table, "types"):
        columns = zip(table.columns, table.types, strict=True)
        unread = [name for name, dtype in columns if dtype.id in _OBJECTS_OF_DUCKDB]
    if unread:
        raise InvalidKey(f"the values of column {unread[0]} are not what Arrow has for them: cast it to text first")


def columns_of_pandas(frame: Any, names: Sequence[Any] | None) -> list[Any]:
    """The columns of a DataFrame with these names, or all."""
    if names is None:
        return [frame.iloc[:, place] for place in range(frame.shape[1])]
    known = list(frame.columns)
    columns = []
    for name in names:
        places = [place for place, other in enumerate(known) if other == name]
        if not places:
            raise UnknownName(f"the table has no column {name}")
        if len(places) > 1:
            raise InvalidColumn(f"the table has {len(places)} columns {name}: rename all but one")
        columns.append(frame.iloc[:, places[0]])
    return columns


def table_of_pandas(columns: Sequence[Any], names: Sequence[str]) -> Any:
    """The columns as a table of Arrow; None if one of them holds objects that are not all texts, or pyarrow is not imported."""
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is None:
        return None
    arrays = []
    for column in columns:
        array = _arrow_of_pandas(column, pyarrow)
        if array is None:
            return None
        arrays.append(array)
    return pyarrow.Table.from_arrays(arrays, names=list(names))


def _arrow_of_pandas(column: Any, pyarrow: Any) -> Any:
    try:
        if column.dtype.kind == "O" and type(column.dtype).__name__ not in _NOT_OBJECTS:
            missing, values = column.isna().to_numpy(), column.to_numpy(dtype=object)
            if all(type(value) is str for value in values[~missing]):
                return pyarrow.array(values, type=pyarrow.large_string(), mask=missing)
            return None
        values = _values_of_pandas(column)
        if isinstance(values, (pyarrow.Array, pyarrow.ChunkedArray)):
            return values
        return None if values.dtype.kind == "O" else pyarrow.array(values)
    except (pyarrow.ArrowException, TypeError, ValueError, OverflowError):
        return None


def as_objects(keys: Any) -> tuple[Iterable[Any], bool]:
    """The keys as objects of Python, and whether None stands for a null among them."""
    library = _library(keys)
    if library == "pyarrow" and hasattr(keys, "to_pylist"):
        return keys.to_pylist(), True
    if library == "polars" and hasattr(keys, "to_list"):
        return keys.to_list(), True
    if library == "pandas" and hasattr(keys, "isna"):
        return [None if gone else key for key, gone in zip(keys, keys.isna(), strict=True)], True
    return keys, False


def _objects(values: list[Any]) -> tuple[Any, Any]:
    missing = [value is None for value in values]
    return [value for value in values if value is not None], missing if any(missing) else None


def _name_of_polars(dtype: Any) -> str:
    return str(dtype.base_type().__name__)


def _column_of_polars(keys: Any) -> tuple[Any, Any]:
    if hasattr(keys, "get_columns") and keys.width == 1:
        (column,) = keys.get_columns()
    else:
        column = keys
    name = _name_of_polars(column.dtype) if hasattr(column, "dtype") else ""
    if column is keys and name == "Struct":
        raise InvalidKey("a column of structs is not a column of keys: select one of its fields")
    return _objects(column.to_list()) if name in _OBJECTS_OF_POLARS else (keys, None)


def _column_of_pandas(keys: Any) -> tuple[Any, Any]:
    if not hasattr(keys, "isna") or getattr(keys, "ndim", 1) != 1 or hasattr(keys, "levels"):
        return keys, None
    missing = keys.isna()
    missing = getattr(missing, "to_numpy", lambda: missing)()
    if missing.any():
        keys = keys[~missing]
    else:
        missing = None
    return _values_of_pandas(keys), missing


def _values_of_pandas(keys: Any) -> Any:
    dtype, array = keys.dtype, getattr(keys, "array", keys)
    pyarrow = sys.modules.get("pyarrow")
    name = type(dtype).__name__
    if type(dtype).__module__.startswith("numpy") and dtype.kind in "biufMm":
        return keys.to_numpy()
    if pyarrow is not None and name == "DatetimeTZDtype":
        return pyarrow.array(keys)
    if name in _NULLABLE_OF_PANDAS:
        # They have a mask, which is empty here; in pyarrow they need no copy.
        return array.__arrow_array__() if pyarrow is not None else keys.to_numpy(dtype.numpy_dtype)
    if name == "ArrowDtype":
        return array.__arrow_array__()
    if name == "CategoricalDtype" and len(keys) > 0:
        categories = _values_of_pandas(dtype.categories)
        if pyarrow is not None and isinstance(categories, (pyarrow.Array, pyarrow.ChunkedArray)):
            combined = categories.combine_chunks() if hasattr(categories, "combine_chunks") else categories
            return pyarrow.DictionaryArray.from_arrays(pyarrow.array(array.codes, mask=array.codes < 0), combined)
    values = keys.to_numpy(dtype=object)
    if pyarrow is not None and all(type(value) is str for value in values[:100]):
        try:
            return pyarrow.array(values, type=pyarrow.large_string())
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError, UnicodeError):
            pass
    return values


_NULLABLE_OF_PANDAS = {
    *(f"{sign}Int{bits}Dtype" for sign in ("", "U") for bits in (8, 16, 32, 64)),
    "Float32Dtype",
    "Float64Dtype",
    "BooleanDtype",
}


def answers_like(keys: Any, mask: Mask, missing: Any) -> Any:
    """The answers in the form that the keys had."""
    library = _library(keys)
    if library == "pandas":
        return _pandas(keys, mask, missing)
    if missing is not None:
        answers = iter(mask.tolist())
        mask = Mask([None if gone else next(answers) for gone in missing])
    if library == "numpy":
        return sys.modules["numpy"].asarray(mask)
    if library == "pyarrow":
        pyarrow = sys.modules["pyarrow"]
        array = pyarrow.array(mask)
        return pyarrow.chunked_array([array]) if isinstance(keys, pyarrow.ChunkedArray) else array
    if library == "polars":
        polars = sys.modules["polars"]
        return polars.Series(mask).alias(getattr(keys, "name", ""))
    if hasattr(keys, "__arrow_c_array__") or hasattr(keys, "__arrow_c_stream__"):
        return mask
    return mask.tolist()


def _pandas(keys: Any, mask: Mask, missing: Any) -> Any:
    numpy, pandas = sys.modules["numpy"], sys.modules["pandas"]
    answers = numpy.asarray(mask)
    if missing is None and mask.null_count:
        missing = ~numpy.asarray(mask.is_valid())
        answers = answers[~missing]
    if missing is not None:
        every = numpy.zeros(len(missing), dtype=bool)
        every[~missing] = answers
        answers = pandas.arrays.BooleanArray(every, missing)
    if isinstance(keys, pandas.Series):
        return pandas.Series(answers, index=keys.index, name=keys.name)
    return answers
