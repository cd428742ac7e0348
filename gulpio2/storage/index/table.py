"""The items as an Arrow table: id, chunk, number of frames, and their metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gulpio2._optional import require
from gulpio2.storage.index.file import FIXED_COLUMNS, named_columns, typed_crc32
from gulpio2.storage.index.typed import typed_columns

if TYPE_CHECKING:
    from gulpio2.storage.index.columns import IndexContent

__all__ = ["make_table"]


def make_table(content: IndexContent) -> Any | None:
    """Give the table; of a mapped index it is the file's own pages.

    Returns
    -------
    pyarrow.Table or None
        None if the file's columns of metadata are damaged.
    """
    pa = require("pyarrow")
    columns = content.columns
    own = {
        "id": pa.LargeStringArray.from_buffers(
            len(columns), pa.py_buffer(columns.id_bounds), pa.py_buffer(columns.id_text)
        ),
        "chunk": pa.array(columns.chunk),
        "num_frames": pa.array(columns.num_frames),
    }
    if content.source is None:
        return pa.table(named_columns(own, typed_columns(columns)))
    try:
        reader = require("pyarrow.ipc").open_file(pa.py_buffer(content.source))
        batch = reader.get_batch(0)
        typed = batch.select(range(FIXED_COLUMNS, batch.num_columns))
        if typed_crc32(typed) != content.crc32.get("typed"):
            return None
    except (pa.ArrowException, OSError, ValueError, LookupError):
        return None
    return pa.table(
        {**own, **dict(zip(typed.schema.names, typed.columns, strict=True))}
    )
