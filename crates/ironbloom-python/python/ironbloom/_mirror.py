"""Columns of other libraries: in as they are, and answers out as the keys came.

No library is imported here that the caller has not imported: whose keys they are is seen from their class.
"""

from __future__ import annotations

import sys
from typing import Any

from ._native import Mask


def _library(keys: object) -> str:
    return type(keys).__module__.partition(".")[0]


def as_column(keys: Any) -> tuple[Any, Any]:
    """What the native code reads, and for pandas a numpy array that says which keys are missing (or None)."""
    if _library(keys) != "pandas":
        return keys, None
    if not hasattr(keys, "isna") or getattr(keys, "ndim", 1) != 1:
        return keys, None
    missing = keys.isna()
    missing = getattr(missing, "to_numpy", lambda: missing)()
    if missing.any():
        keys = keys[~missing]
    else:
        missing = None
    dtype = keys.dtype
    if getattr(dtype, "kind", "O") in "biufMm" and type(dtype).__module__.startswith("numpy"):
        return keys.to_numpy(), missing
    array = getattr(keys, "array", keys)
    if hasattr(array, "__arrow_array__") and "pyarrow" in sys.modules:
        return array.__arrow_array__(), missing
    if getattr(dtype, "tz", None) is not None and "pyarrow" in sys.modules:
        return sys.modules["pyarrow"].array(keys), missing
    if dtype == object or type(dtype).__name__ == "StringDtype":
        return _objects(keys), missing
    return keys.to_numpy(), missing


def _objects(keys: Any) -> Any:
    """Python objects, as a column if they are all texts."""
    values = keys.to_numpy(dtype=object)
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None and all(type(value) is str for value in values[:100]):
        try:
            return pyarrow.array(values, type=pyarrow.large_string())
        except (pyarrow.ArrowInvalid, pyarrow.ArrowTypeError):
            pass
    return values


def answers_like(keys: Any, mask: Mask, missing: Any) -> Any:
    """The answers in the form that the keys had."""
    library = _library(keys)
    if library == "numpy":
        return sys.modules["numpy"].asarray(mask)
    if library == "pyarrow":
        pyarrow = sys.modules["pyarrow"]
        array = pyarrow.array(mask)
        return pyarrow.chunked_array([array]) if isinstance(keys, pyarrow.ChunkedArray) else array
    if library == "polars":
        polars = sys.modules["polars"]
        return polars.Series(mask).alias(getattr(keys, "name", ""))
    if library == "pandas":
        return _pandas(keys, mask, missing)
    if hasattr(keys, "__arrow_c_array__") or hasattr(keys, "__arrow_c_stream__"):
        return mask
    return mask.tolist()


def _pandas(keys: Any, mask: Mask, missing: Any) -> Any:
    numpy, pandas = sys.modules["numpy"], sys.modules["pandas"]
    answers = numpy.asarray(mask)
    if missing is not None:
        every = numpy.zeros(len(missing), dtype=bool)
        every[~missing] = answers
        answers = pandas.arrays.BooleanArray(every, missing)
    if isinstance(keys, pandas.Series):
        return pandas.Series(answers, index=keys.index, name=keys.name)
    return answers
