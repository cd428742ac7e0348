"""Maps to columns."""

from __future__ import annotations

import binascii
import json
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from gulpio2.errors import DuplicateIdError, MetaFileError
from gulpio2.format.altered import is_altered
from gulpio2.format.checksum import crc32_of
from gulpio2.format.entry import EXTRAS_KEY, load_extras
from gulpio2.format.layout import in_two_chunks
from gulpio2.format.scan import UnusualMapError, parse_spans, scan_gmeta
from gulpio2.storage.index.columns import (
    ALTERED,
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
        raise UnusualMapError(
            f"{where}: the number of the chunk is above {_MAX_CHUNK}, the largest of a "
            "table or an index. `gulp2 merge` into a new directory numbers chunks anew"
        )
    ids: list[str] = []
    extras: list[str] = []
    metas: list[str] = []
    spans_texts: list[str] = []
    checksums: list[bytes] = []
    entries: list[tuple[int, int, int, int, int]] = []
    view = memoryview(data)
    for entry in scan_gmeta(data, where=where):
        num_frames = entry.num_frames
        flags = 0 if entry.regular else IRREGULAR
        packed, extras_text = b"", ""
        if entry.regular and entry.extras is not None:
            try:
                packed, extras_text = _split_extras(entry, where)
            except MetaFileError:
                flags = IRREGULAR  # told when somebody asks for them, as ever
        if packed:
            flags |= HAS_CRC32
        text = view[entry.start : entry.stop]
        if entry.extras is not None and is_altered(text, entry.id_):
            flags |= ALTERED
        ids.append(entry.id_)
        extras.append(extras_text)
        metas.append(entry.meta_text)
        spans_texts.append(entry.spans_text)
        checksums.append(packed or bytes(4 * num_frames))
        entries.append((num_frames, entry.start, len(text), crc32_of(text), flags))
    spans = parse_spans(spans_texts)
    rows = np.array(entries, np.int64).reshape(-1, 5)
    counts = rows[:, 0]
    if (spans[:, 2] > _MAX_LENGTH).any() or (counts > _MAX_FRAMES).any():
        raise UnusualMapError(f"{where}: a record of 4 GB or more")
    values: dict[str, Any] = {
        **_texts("id", ids),
        **_texts("extras", extras),
        **_texts("meta", metas),
        "chunk": np.full(len(entries), number),
        "num_frames": counts,
        "frame_bounds": np.concatenate(([0], np.cumsum(counts))),
        "frame_offset": spans[:, 0],
        "frame_length": spans[:, 2],
        "frame_pad": spans[:, 1],
        "frame_crc32": np.frombuffer(b"".join(checksums), "<u4"),
        "entry_offset": rows[:, 1],
        "entry_length": rows[:, 2],
        "entry_crc32": rows[:, 3],
        "flags": rows[:, 4],
        "row_crc32": np.zeros(len(entries)),
    }
    columns = Columns(
        **{
            name: np.ascontiguousarray(value, DTYPES[name])
            for name, value in values.items()
        }
    )
    columns.row_crc32[:] = columns.row_checks(0, len(columns))
    return columns


def _texts(name: str, texts: list[str]) -> dict[str, Any]:
    """Give the columns of texts: their bytes, one after another, and their bounds."""
    joined = "".join(texts)
    parts: list[Any] = texts
    if not joined.isascii():  # else they are as long as their bytes
        parts = [text.encode("utf-8", "surrogatepass") for text in texts]
    return {
        f"{name}_bounds": [0, *accumulate(map(len, parts))],
        f"{name}_text": np.frombuffer(
            joined.encode("utf-8", "surrogatepass"), np.uint8
        ),
    }


def _split_extras(entry: ScannedEntry, where: str) -> tuple[bytes, str]:
    """Take the checksums out of an entry's extras.

    Returns
    -------
    checksums : bytes
        Four for each frame, or none.
    text : str
        JSON of the extras with ``true`` in place of the checksums.

    Raises
    ------
    MetaFileError
        The extras are damaged, or not written as this package writes them.
    """
    if entry.only_checksums:
        packed = binascii.a2b_base64(entry.extras["crc32"])
        if len(packed) == 4 * entry.num_frames > 0:
            return packed, f'{{"crc32": true, "check": "{entry.extras["check"]}"}}'
    pseudo = {"frame_info": range(entry.num_frames), EXTRAS_KEY: entry.extras}
    checksums = load_extras(pseudo, where=where).crc32
    extras = dict(entry.extras)
    if "crc32" in extras:
        if len(checksums) != entry.num_frames:
            # Frames were added by a program that knows nothing of the extras.
            raise MetaFileError("checksums for fewer frames than there are")
        extras["crc32"] = True
    return checksums.tobytes(), json.dumps(extras)


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
            first, second = int(columns.chunk[one]), int(columns.chunk[two])
            raise DuplicateIdError(in_two_chunks(id_, first, second, where))
