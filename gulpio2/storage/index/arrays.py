"""Arrow arrays made of buffers, without ``pyarrow.array``.

That function loads pandas wherever it is installed, to see whether what it was given is
of pandas: a fifth of a second, and more memory than Arrow itself, in every ingest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gulpio2._optional import require

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["array_of", "array_over", "texts_over"]


def array_over(values: npt.NDArray[Any]) -> Any:
    """Make an Arrow array over the memory of a contiguous one of numbers."""
    pa = require("pyarrow")
    kind = pa.from_numpy_dtype(values.dtype)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def texts_over(bounds: npt.NDArray[np.int64], text: npt.NDArray[np.uint8]) -> Any:
    """Make an Arrow array over texts that lie one after another."""
    pa = require("pyarrow")
    return pa.LargeStringArray.from_buffers(
        len(bounds) - 1, pa.py_buffer(bounds), pa.py_buffer(text)
    )


def array_of(values: list[Any], kind: Any) -> Any:
    """Make an Arrow array of Python values, all of them of this type or None.

    Strings, integers and floats without a None are put into buffers here, and most
    metadata is no more than that. All else is left to Arrow, and so pandas is loaded.
    """
    pa = require("pyarrow")
    if None not in values:
        if kind in (pa.string(), pa.large_string()):
            texts = [value.encode("utf-8") for value in values]
            large = kind == pa.large_string()
            bounds = np.cumsum([0, *map(len, texts)]).astype("<i8" if large else "<i4")
            make = pa.LargeStringArray if large else pa.StringArray
            buffers = (bounds, b"".join(texts))
            return make.from_buffers(len(texts), *map(pa.py_buffer, buffers))
        elif kind == pa.int64():
            return array_over(np.array(values, "<i8"))
        elif kind == pa.float64():
            return array_over(np.array(values, "<f8"))
    return pa.array(values, kind)
