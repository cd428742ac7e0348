"""The items as an Arrow table: id, chunk, number of frames, and their metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gulpio2._optional import require
from gulpio2.storage.index.arrays import array_over, texts_over
from gulpio2.storage.index.file import (
    FIXED_COLUMNS,
    frames_column,
    is_json_text,
    json_crc32,
    named_columns,
    typed_crc32,
)
from gulpio2.storage.index.typed import typed_columns

if TYPE_CHECKING:
    from gulpio2.storage.index.columns import Columns, IndexContent

__all__ = ["FRAMES", "has_right_metadata", "make_table", "without_frames"]

FRAMES = "frames"
"""The column of spans and checksums, a list for each item."""


def make_table(content: IndexContent) -> Any | None:
    """Give the table; of a mapped index it is the file's own pages.

    Returns
    -------
    pyarrow.Table or None
        None if the file's columns of metadata, or the bounds of its frames, are
        damaged.
    """
    pa = require("pyarrow")
    columns = content.columns
    if not _has_right_frame_bounds(columns):
        return None  # Arrow trusts them, and would read outside of the file
    own = {
        "id": texts_over(columns.id_bounds, columns.id_text),
        "chunk": array_over(columns.chunk),
        "num_frames": array_over(columns.num_frames),
        FRAMES: frames_column(columns),
    }
    if content.source is None:
        fields, arrays = named_columns(own, typed_columns(columns))
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))
    typed = _typed_of_file(content)
    if typed is None:
        return None
    fields, arrays = named_columns(own, {})
    return pa.Table.from_arrays(
        [*arrays, *typed.columns], schema=pa.schema([*fields, *typed.schema])
    )


def _has_right_frame_bounds(columns: Columns) -> bool:
    """Tell whether the frames of each row are as many as it says, and lie inside."""
    bounds = columns.frame_bounds
    return (
        int(bounds[0]) == 0
        and int(bounds[-1]) == columns.total_frames
        and bool((columns.num_frames >= 0).all())
        and np.array_equal(np.diff(bounds), columns.num_frames)
    )


def without_frames(table: Any) -> Any:
    """Give the columns of a table that conditions can be about."""
    return table.select([name for name in table.column_names if name != FRAMES])


def has_right_metadata(content: IndexContent) -> bool:
    """Tell whether a file's columns of metadata are those of its exact JSON."""
    typed = _typed_of_file(content)
    if typed is None:
        return False
    fields, arrays = named_columns({}, typed_columns(content.columns))
    wanted = [(field.name, is_json_text(field)) for field in fields]
    found = [(field.name, is_json_text(field)) for field in typed.schema]
    return found == wanted and all(
        # By repr, NaN equals NaN.
        one.equals(other) or repr(one.to_pylist()) == repr(other.to_pylist())
        for one, other in zip(typed.columns, arrays, strict=True)
    )


def _typed_of_file(content: IndexContent) -> Any | None:
    """Give the columns of metadata of a file; None if they are damaged."""
    pa = require("pyarrow")
    try:
        reader = require("pyarrow.ipc").open_file(pa.py_buffer(content.source))
        batch = reader.get_batch(0)
        typed = batch.select(range(FIXED_COLUMNS, batch.num_columns))
        if typed_crc32(typed) != content.crc32.get("typed"):
            return None
        if json_crc32(typed) != content.crc32.get("json"):
            return None
    except (pa.ArrowException, OSError, ValueError, LookupError):
        return None
    return typed
