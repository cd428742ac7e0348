"""Columns to ``index.arrow`` and back.

The file is an Arrow IPC file with a row per item, which any program that knows Arrow
can read. The schema's metadata has, under ``gulp2``, the maps that it was made from,
and checksums::

    {
        "version": 1,
        "items": n,
        "frames": n,
        "chunks": "<base64>",
        "crc32": {"ids": n, "lookup": n, "typed": n, "json": n},
        "check": n,
        "whole": "<8 hexadecimal digits>",
    }

``chunks`` are little-endian 64-bit integers, five for each map: chunk number, bytes,
time of the last change in nanoseconds, CRC-32, items. Each row has a CRC-32 of its own
in ``row_crc32``, so that no part of a large file has to be read before it is needed.
``whole`` is the CRC-32 of the file, with zeros for these digits in both places where
Arrow writes the schema; it is for whoever checks all of it.

A column of JSON text says so in its field's metadata, ``{"gulp2": "JSON text"}``.
"""

from __future__ import annotations

import base64
import errno
import json
import mmap
import os
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from gulpio2._optional import require
from gulpio2.format.checksum import crc32_of
from gulpio2.format.layout import INDEX_NAME, meta_name
from gulpio2.storage.descriptors import open_regular
from gulpio2.storage.index.arrays import array_over, texts_over
from gulpio2.storage.index.arrow_file import read_layout
from gulpio2.storage.index.columns import (
    DTYPES,
    Columns,
    IndexContent,
    Lookup,
    arrays_crc32,
    ids_crc32,
)
from gulpio2.storage.index.typed import typed_columns
from gulpio2.storage.index.whole import NO_SUM, ArrowSink, SummingFile

if TYPE_CHECKING:
    import numpy.typing as npt

    from gulpio2.storage.base import Store, StoreWriter
    from gulpio2.storage.index.typed import TypedColumn

__all__ = [
    "FIXED_COLUMNS",
    "NewerIndexError",
    "frames_column",
    "is_json_text",
    "json_crc32",
    "map_index",
    "named_columns",
    "typed_crc32",
    "write_index",
]

VERSION = 1
_JSON_TEXT = {b"gulp2": b"JSON text"}

# Columns in the file, and the arrays that their buffers are, depth first; None for the
# validity bitmaps, of which there are none.
_BUFFERS: dict[str, tuple[str | None, ...]] = {
    "id": (None, "id_bounds", "id_text"),
    "chunk": (None, "chunk"),
    "num_frames": (None, "num_frames"),
    "frames": (
        *(None, "frame_bounds", None),
        *(None, "frame_offset", None, "frame_length"),
        *(None, "frame_pad", None, "frame_crc32"),
    ),
    "entry_offset": (None, "entry_offset"),
    "entry_length": (None, "entry_length"),
    "entry_crc32": (None, "entry_crc32"),
    "flags": (None, "flags"),
    "extras": (None, "extras_bounds", "extras_text"),
    "meta_data": (None, "meta_bounds", "meta_text"),
    "row_crc32": (None, "row_crc32"),
    "id_hash": (None, "hashes"),
    "id_row": (None, "rows"),
}
_LOOKUP_DTYPES = {"hashes": "<u8", "rows": "<i4"}
FIXED_COLUMNS = len(_BUFFERS)
_MAX_ROWS = 2**31 - 1


class NewerIndexError(ValueError):
    """An index in a format that a later version of the package writes."""


# --- writing --------------------------------------------------------------------------


def frames_column(columns: Columns) -> Any:
    """Make the column of spans and checksums, a list for each item; nothing is copied.

    Its type is ``large_list<struct<offset, length, pad, crc32>>``.
    """
    pa = require("pyarrow")
    names = ("offset", "length", "pad", "crc32")
    frames = pa.StructArray.from_arrays(
        [array_over(getattr(columns, f"frame_{name}")) for name in names],
        fields=[
            pa.field(name, kind, nullable=False)
            for name, kind in zip(
                names, (pa.int64(), pa.uint32(), pa.uint8(), pa.uint32()), strict=True
            )
        ],
    )
    return pa.LargeListArray.from_arrays(array_over(columns.frame_bounds), frames)


def _make_batch(columns: Columns, lookup: Lookup) -> Any:
    """Make a ``pyarrow.RecordBatch`` of the columns, which are not copied."""
    pa = require("pyarrow")
    own: dict[str, Any] = {}
    for name, buffers in _BUFFERS.items():
        source = lookup if buffers[1] in _LOOKUP_DTYPES else columns
        arrays = [getattr(source, each) for each in buffers if each]
        if name == "frames":
            own[name] = frames_column(columns)
        else:
            own[name] = (texts_over if len(arrays) == 2 else array_over)(*arrays)
    fields, arrays = named_columns(own, typed_columns(columns))
    return pa.record_batch(arrays, schema=pa.schema(fields))


def named_columns(
    own: dict[str, Any], typed: dict[str, TypedColumn]
) -> tuple[list[Any], list[Any]]:
    """Add columns of metadata to those of the index, under names of their own.

    Metadata often has an ``id`` itself, which stands aside for the item's: as
    ``meta.id``, or with more of ``meta.`` where other metadata have that name.

    Returns
    -------
    fields, arrays : list
        Of Arrow, for each column.
    """
    pa = require("pyarrow")
    fields = [pa.field(name, array.type) for name, array in own.items()]
    for key, column in typed.items():
        name = key
        while name in _BUFFERS or (name != key and name in typed):
            name = f"meta.{name}"
        mark = _JSON_TEXT if column.is_json_text else None
        fields.append(pa.field(name, column.array.type, metadata=mark))
    return fields, [*own.values(), *(column.array for column in typed.values())]


def is_json_text(field: Any) -> bool:
    """Tell whether a column, by its ``pyarrow.Field``, is one of JSON text."""
    return (field.metadata or {}).items() >= _JSON_TEXT.items()


def _settled(batch: Any) -> Any:
    """Give the typed columns with the very buffers that a file will have."""
    ipc = require("pyarrow.ipc")
    return ipc.read_record_batch(batch.serialize(), batch.schema)


def typed_crc32(batch: Any) -> int:
    """Compute one CRC-32 over all typed columns of a batch, their types included."""
    parts: list[Any] = []
    for field, column in zip(batch.schema, batch.columns, strict=True):
        parts.append(f"{field.name!r} {field.type} {_lengths(column)}".encode())
        parts += [memoryview(part) for part in column.buffers() if part is not None]
    return arrays_crc32(*parts)


def json_crc32(batch: Any) -> int:
    """Compute the CRC-32 of the names of its columns of JSON text."""
    names = [field.name for field in batch.schema if is_json_text(field)]
    return arrays_crc32(repr(names).encode())


def _lengths(array: Any) -> list[int]:
    """Give lengths and numbers of nulls, of lists also those of what is in them."""
    own = [len(array), array.null_count]
    return own + (_lengths(array.values) if hasattr(array, "values") else [])


def write_index(
    store: Store, columns: Columns, lookup: Lookup, chunks: npt.NDArray[np.int64]
) -> None:
    """Put an index file in place, atomically.

    Parameters
    ----------
    store : Store
        The directory.
    columns, lookup : Columns, Lookup
        What goes into it.
    chunks : numpy.ndarray
        ``(k, 5)``; see `IndexContent`.
    """
    pa = require("pyarrow")
    batch = _make_batch(columns, lookup)
    typed = _settled(batch.select(range(FIXED_COLUMNS, batch.num_columns)))
    batch = pa.record_batch(
        [*batch.columns[:FIXED_COLUMNS], *typed.columns], schema=batch.schema
    )
    header: dict[str, Any] = {
        "version": VERSION,
        "items": len(columns),
        "frames": columns.total_frames,
        "chunks": base64.b64encode(chunks.astype("<i8").tobytes()).decode("ascii"),
        "crc32": {
            "ids": ids_crc32(columns),
            "lookup": arrays_crc32(lookup.hashes, lookup.rows),
            "typed": typed_crc32(typed),
            "json": json_crc32(typed),
        },
    }
    header["check"] = _check(header)
    header["whole"] = NO_SUM
    whole = SummingFile()
    _write_file(whole, batch.replace_schema_metadata({"gulp2": json.dumps(header)}))
    header["whole"] = f"{whole.crc32:08x}"
    batch = batch.replace_schema_metadata({"gulp2": json.dumps(header)})
    maps = [meta_name(number) for number in chunks[:, 0].tolist()]
    with store.replacing(INDEX_NAME, made_of=maps) as writer:
        _write_file(_Sink(writer), batch)


def _write_file(sink: Any, batch: Any) -> None:
    file = require("pyarrow").PythonFile(sink, "w")
    with require("pyarrow.ipc").new_file(file, batch.schema) as writer:
        writer.write_batch(batch)


class _Sink(ArrowSink):
    """A store's writer, as Arrow wants a file; whoever opened it closes it."""

    def __init__(self, writer: StoreWriter) -> None:
        self._writer = writer

    def tell(self) -> int:
        return self._writer.tell()

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        self._writer.write(view)
        return len(view)


# --- reading --------------------------------------------------------------------------


def map_index(path: str) -> IndexContent:
    """Map an index file. What is in it is not read before it is needed.

    Raises
    ------
    FileNotFoundError
        There is none.
    NewerIndexError
        It is for a later version.
    ValueError
        It is no index that can be used: damaged, or none.
    OSError
        It cannot be read.
    """
    if sys.byteorder != "little":
        raise ValueError("the file is little-endian")
    fd = open_regular(path)
    try:
        if os.fstat(fd).st_size == 0:
            raise ValueError("empty")
        data = _mapped(fd)
    finally:
        os.close(fd)
    layout = read_layout(data)
    header = _read_header(layout.metadata.get("gulp2", "null"))
    num_rows = layout.num_rows
    if (
        layout.field_names[: len(_BUFFERS)] != tuple(_BUFFERS)
        or num_rows != header["items"]
        or not 0 < num_rows <= _MAX_ROWS
    ):
        raise ValueError("its columns are others")
    arrays = _arrays(data, layout.buffers, num_rows, header["frames"])
    chunks = np.frombuffer(base64.b64decode(header["chunks"]), "<i8").reshape(-1, 5)
    items = chunks[:, 4]
    if ((items < 0) | (items > num_rows)).any() or items.sum() != num_rows:
        raise ValueError("its chunks have not as many items as it has rows")
    lookup = Lookup(arrays.pop("hashes"), arrays.pop("rows"))
    return IndexContent(Columns(**arrays), lookup, chunks, header["crc32"], data)


def _mapped(fd: int) -> memoryview:
    """Map a file; read it, where its file system maps none."""
    try:
        # Of what is only read, more file systems map a private view than a shared one,
        # and its pages are shared all the same.
        mapped = mmap.mmap(fd, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)
    except OSError as cause:
        if cause.errno != errno.ENODEV:
            raise
        with os.fdopen(fd, "rb", closefd=False) as file:
            return memoryview(file.read())
    # Else megabytes are read ahead of each number that is looked at, and mapped.
    mapped.madvise(mmap.MADV_RANDOM)
    return memoryview(mapped)


def _read_header(text: str) -> dict[str, Any]:
    """Read what the schema says of the index, and check its form.

    Raises
    ------
    ValueError
        It is damaged, or of a later version.
    """
    try:
        header: Any = json.loads(text)
    except RecursionError:
        header = None
    version = header.get("version") if isinstance(header, dict) else None
    if type(version) is int and version > VERSION:
        # Its other parts may have another form.
        raise NewerIndexError(f"version {version} is of a later gulpio2")
    if (
        version != VERSION
        or header.get("check") != _check(header)
        or type(header.get("items")) is not int
        or type(header.get("frames")) is not int
        or header["frames"] < 0
        or not isinstance(header.get("chunks"), str)
        or not isinstance(header.get("crc32"), dict)
    ):
        raise ValueError("its header is damaged")
    return dict(header)


def _arrays(
    data: memoryview,
    buffers: tuple[tuple[int, int], ...],
    num_rows: int,
    num_frames: int,
) -> dict[str, Any]:
    """Make arrays over the buffers, each of the length that it has to have."""
    names = [name for column in _BUFFERS.values() for name in column]
    if len(buffers) < len(names):
        raise ValueError("a column is missing")
    dtypes = {**DTYPES, **_LOOKUP_DTYPES}
    arrays: dict[str, Any] = {}
    for name, (start, length) in zip(names, buffers, strict=False):
        if name is None:
            continue
        dtype = np.dtype(dtypes[name])
        count = length // dtype.itemsize
        if name.startswith("frame_") and name != "frame_bounds":
            wanted = num_frames
        elif name.endswith("_bounds"):
            wanted = num_rows + 1
        else:
            wanted = count if name.endswith("_text") else num_rows
        if count < wanted or start % dtype.itemsize:
            raise ValueError(
                f"column {name} has {count} of {wanted} values, at byte {start}"
            )
        arrays[name] = np.frombuffer(data, dtype, wanted, start)
    for name in ("id", "extras", "meta"):
        bounded = f"{name}_text"
        end = int(arrays[f"{name}_bounds"][-1])
        if not 0 <= end <= len(arrays[bounded]):
            raise ValueError(f"column {bounded} ends at {end}")
        arrays[bounded] = arrays[bounded][:end]
    return arrays


def _check(header: dict[str, Any]) -> int:
    body = {key: header[key] for key in header if key not in ("check", "whole")}
    return crc32_of(json.dumps(body).encode("ascii"))
