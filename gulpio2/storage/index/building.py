"""Maps to columns."""

from __future__ import annotations

import json
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from gulpio2.errors import DuplicateIdError, MetaFileError
from gulpio2.format.entry import EXTRAS_KEY, load_extras
from gulpio2.format.layout import data_name
from gulpio2.format.scan import UnusualMapError, scan_gmeta
from gulpio2.storage.index.columns import (
    DTYPES,
    HAS_CRC32,
    IRREGULAR,
    Columns,
    Lookup,
)

if TYPE_CHECKING:
    from gulpio2.format.scan import ScannedEntry

__all__ = ["check_ids", "columns_of_map"]

# Largest values of the columns' types.
_MAX_CHUNK = _MAX_FRAMES = 2**31 - 1
_MAX_LENGTH = 2**32 - 1


def columns_of_map(data: bytes, number: int, *, where: str) -> Columns:
    """Make the columns of one chunk.

    Parameters
    ----------
    data : bytes
        The whole map.
    number : int
        Of the chunk.
    where : str
        The map's path, for messages.

    Raises
    ------
    MetaFileError
        It is no map.
    UnusualMapError
        It is one, and cannot be put into columns.
    """
    if number > _MAX_CHUNK:
        raise UnusualMapError(f"{where}: the number of the chunk is too large")
    ids, extras, metas = _Texts(), _Texts(), _Texts()
    frame_bounds = [0]
    infos: list[Any] = []
    crc32: list[Any] = []
    entries: list[tuple[int, int, int, int]] = []
    for entry in scan_gmeta(data, where=where):
        flags = 0 if entry.regular else IRREGULAR
        checksums, extras_text = None, b""
        if entry.regular and entry.extras is not None:
            try:
                checksums, extras_text = _split_extras(entry, where)
            except MetaFileError:
                flags = IRREGULAR  # told when somebody asks for them, as ever
        if checksums is None or len(checksums) == 0:
            checksums = np.zeros(len(entry.frame_info), "<u4")
        else:
            flags |= HAS_CRC32
        ids.add(entry.id_.encode("utf-8"))
        extras.add(extras_text)
        metas.add(entry.meta_text.encode("utf-8", "surrogatepass"))
        frame_bounds.append(frame_bounds[-1] + len(entry.frame_info))
        infos.append(entry.frame_info)
        crc32.append(checksums)
        text = memoryview(data)[entry.start : entry.stop]
        entries.append((entry.start, len(text), zlib.crc32(text), flags))
    spans = np.concatenate(infos) if infos else np.empty((0, 3), np.int64)
    counts = np.diff(np.array(frame_bounds, np.int64))
    if (spans[:, 2] > _MAX_LENGTH).any() or (counts > _MAX_FRAMES).any():
        raise UnusualMapError(f"{where}: a record of 4 GB or more")
    rows = np.array(entries, np.int64).reshape(-1, 4)
    values: dict[str, Any] = {
        "id_bounds": ids.bounds,
        "id_text": np.frombuffer(ids.text, np.uint8),
        "chunk": np.full(len(entries), number),
        "num_frames": counts,
        "frame_bounds": frame_bounds,
        "frame_offset": spans[:, 0],
        "frame_length": spans[:, 2],
        "frame_pad": spans[:, 1],
        "frame_crc32": np.concatenate(crc32) if crc32 else [],
        "entry_offset": rows[:, 0],
        "entry_length": rows[:, 1],
        "entry_crc32": rows[:, 2],
        "flags": rows[:, 3],
        "extras_bounds": extras.bounds,
        "extras_text": np.frombuffer(extras.text, np.uint8),
        "meta_bounds": metas.bounds,
        "meta_text": np.frombuffer(metas.text, np.uint8),
        "row_crc32": np.zeros(len(entries)),
    }
    columns = Columns(
        **{
            name: np.ascontiguousarray(value, DTYPES[name])
            for name, value in values.items()
        }
    )
    columns.row_crc32[:] = [columns.row_check(row) for row in range(len(columns))]
    return columns


class _Texts:
    """Byte strings, one after another."""

    def __init__(self) -> None:
        self.text = bytearray()
        self.bounds = [0]

    def add(self, text: bytes) -> None:
        self.text += text
        self.bounds.append(len(self.text))


def _split_extras(entry: ScannedEntry, where: str) -> tuple[Any, bytes]:
    """Take the checksums out of an entry's extras.

    Returns
    -------
    checksums : numpy.ndarray of uint32
        One per frame, or none.
    text : bytes
        JSON of the extras with ``true`` in place of the checksums.

    Raises
    ------
    MetaFileError
        The extras are damaged, or not written as this package writes them.
    """
    pseudo = {"frame_info": entry.frame_info, EXTRAS_KEY: entry.extras}
    checksums = load_extras(pseudo, where=where).crc32
    extras = dict(entry.extras)
    if "crc32" in extras:
        if len(checksums) != len(entry.frame_info):
            # Frames were added by a program that knows nothing of the extras.
            raise MetaFileError("checksums for fewer frames than there are")
        extras["crc32"] = True
    return checksums, json.dumps(extras).encode("ascii")


def check_ids(columns: Columns, lookup: Lookup, *, where: str) -> None:
    """Check that no id is there twice.

    Raises
    ------
    DuplicateIdError
        One is, in two chunks.
    """
    same = np.flatnonzero(lookup.hashes[1:] == lookup.hashes[:-1])
    for at in same.tolist():
        # Neighbours in order of hash; of equal hashes the first row stands first.
        one, two = lookup.rows[at : at + 2].tolist()
        id_ = columns.id_at(two)
        if columns.id_at(one) == id_:
            raise DuplicateIdError(
                f"item {id_!r} is in {data_name(int(columns.chunk[one]))} and in "
                f"{data_name(int(columns.chunk[two]))} of {where}. Run `gulp2 check` "
                "on the directory to list duplicates"
            )
