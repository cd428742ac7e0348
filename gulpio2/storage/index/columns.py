"""The columns of an index: a row per item, and in each row its frames.

All of them are numpy arrays, over memory of this process or over a mapped file. Values
of a varying length lie one after another; the row's part is between two bounds.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from gulpio2.format.altered import describe_altered
from gulpio2.format.checksum import crc32_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

__all__ = [
    "ALTERED",
    "DTYPES",
    "HAS_CRC32",
    "IRREGULAR",
    "Columns",
    "GrowingColumns",
    "IndexContent",
    "Lookup",
    "arrays_crc32",
    "hash_id",
    "ids_crc32",
    "make_lookup",
]

# Bits of `Columns.flags`.
HAS_CRC32 = 1  # each frame has a checksum
IRREGULAR = 2  # the entry has to be read from the map itself
ALTERED = 4  # the entry is not what its own check says

# Every column, by what its values belong to, with the type in the file. Those of items
# have a value per row, those of frames one per frame, texts are bytes of UTF-8.
DTYPES: dict[str, str] = {
    "id_bounds": "<i8",
    "id_text": "u1",
    "chunk": "<i4",
    "num_frames": "<i4",
    "frame_bounds": "<i8",
    "frame_offset": "<i8",
    "frame_length": "<u4",
    "frame_pad": "u1",
    "frame_crc32": "<u4",
    "entry_offset": "<i8",
    "entry_length": "<i8",
    "entry_crc32": "<u4",
    "flags": "u1",
    "extras_bounds": "<i8",
    "extras_text": "u1",
    "meta_bounds": "<i8",
    "meta_text": "u1",
    "row_crc32": "<u4",
}
_BOUNDS = {
    "id_bounds": ("id_text",),
    "extras_bounds": ("extras_text",),
    "meta_bounds": ("meta_text",),
    "frame_bounds": ("frame_offset", "frame_length", "frame_pad", "frame_crc32"),
}
# Of a row: the lengths of its texts and frames, and these.
_ROW = struct.Struct("<qqqqiiqqIB")
_SCALARS = (
    *("chunk", "num_frames"),
    *("entry_offset", "entry_length", "entry_crc32", "flags"),
)


def hash_id(id_: bytes) -> int:
    """Hash an id to 64 bits, the same in every process and release."""
    return int.from_bytes(hashlib.blake2b(id_, digest_size=8).digest(), "little")


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """One array per column; see `DTYPES`."""

    id_bounds: npt.NDArray[np.int64]
    id_text: npt.NDArray[np.uint8]
    chunk: npt.NDArray[np.int32]
    """Number of the chunk."""
    num_frames: npt.NDArray[np.int32]
    """Frames of the item: for queries; `frame_bounds` says the same."""
    frame_bounds: npt.NDArray[np.int64]
    frame_offset: npt.NDArray[np.int64]
    """First byte of the record in the data file."""
    frame_length: npt.NDArray[np.uint32]
    """Bytes of the record, padding included."""
    frame_pad: npt.NDArray[np.uint8]
    """Bytes of padding."""
    frame_crc32: npt.NDArray[np.uint32]
    """Checksum of the JPEG; 0 where the item has none."""
    entry_offset: npt.NDArray[np.int64]
    """First byte of the entry in the map: the quote before its id."""
    entry_length: npt.NDArray[np.int64]
    """Bytes of the entry."""
    entry_crc32: npt.NDArray[np.uint32]
    """CRC-32 of those bytes."""
    flags: npt.NDArray[np.uint8]
    extras_bounds: npt.NDArray[np.int64]
    extras_text: npt.NDArray[np.uint8]
    """JSON of the ``gulp2`` key, the checksums left out."""
    meta_bounds: npt.NDArray[np.int64]
    meta_text: npt.NDArray[np.uint8]
    """JSON of ``meta_data`` as it stands in the map."""
    row_crc32: npt.NDArray[np.uint32]
    """CRC-32 of everything above that belongs to the row."""

    def __len__(self) -> int:
        """Count the items."""
        return len(self.chunk)

    def describe_altered(self) -> str:
        """Say which entries are not what their checks say; nothing if all are."""
        # The first look takes no memory of this process.
        if not len(self) or not np.bitwise_or.reduce(self.flags) & ALTERED:
            return ""
        rows = np.flatnonzero(self.flags & ALTERED)
        return describe_altered(self.id_at(int(rows[0])), len(rows))

    @property
    def total_frames(self) -> int:
        """Frames of all items."""
        return len(self.frame_offset)

    def rows(self, start: int, stop: int) -> Columns:
        """Give the part with these rows, as views; its bounds begin at 0."""
        parts: dict[str, npt.NDArray[Any]] = {}
        for bounds, bounded in _BOUNDS.items():
            part = getattr(self, bounds)[start : stop + 1]
            first, last = int(part[0]), int(part[-1])
            parts[bounds] = part - first
            for name in bounded:
                parts[name] = getattr(self, name)[first:last]
        for name in DTYPES.keys() - parts.keys():
            parts[name] = getattr(self, name)[start:stop]
        return Columns(**parts)

    def row_checks(self, start: int, stop: int) -> list[int]:
        """Compute the CRC-32 of these rows. It does not depend on where a row stands.

        Raises
        ------
        ValueError
            The bounds of a row are none.
        """
        bounds, texts = [], []
        for name, bounded in _BOUNDS.items():
            part = getattr(self, name)[start : stop + 1].tolist()
            first, last = part[0], part[-1]
            if first < 0 or any(two < one for one, two in pairwise(part)):
                raise ValueError(f"rows {start} to {stop} have bounds that are none")
            bounds.append([bound - first for bound in part])
            for column in bounded:
                values = getattr(self, column)[first:last]
                if len(values) != last - first:
                    raise ValueError(f"rows {start} to {stop} are beyond {column}")
                texts.append(values.tobytes())
        ids, extras, metas, offsets, lengths, pads, crcs = texts
        scalars = zip(
            *(pairwise(part) for part in bounds),
            *(getattr(self, name)[start:stop].tolist() for name in _SCALARS),
            strict=True,
        )
        checks = []
        for (i, j), (k, m), (p, q), (f, g), *rest in scalars:
            if g - f != rest[1]:
                raise ValueError(f"a row of {rest[1]} frames has {g - f}")
            row = (
                _ROW.pack(j - i, m - k, q - p, g - f, *rest),
                ids[i:j],
                extras[k:m],
                metas[p:q],
                offsets[8 * f : 8 * g],
                lengths[4 * f : 4 * g],
                pads[f:g],
                crcs[4 * f : 4 * g],
            )
            checks.append(crc32_of(b"".join(row)))
        return checks

    def is_sound(self, row: int) -> bool:
        """Tell whether a row is what its own CRC-32 says."""
        try:
            return self.row_checks(row, row + 1)[0] == self.row_crc32.item(row)
        except ValueError:
            return False

    def ids(self, start: int, stop: int) -> list[str]:
        """Give the ids of these rows."""
        bounds = self.id_bounds[start : stop + 1].tolist()
        text = self.id_text[bounds[0] : bounds[-1]].tobytes()
        base = bounds[0]
        return [
            text[first - base : last - base].decode("utf-8")
            for first, last in pairwise(bounds)
        ]

    def id_at(self, row: int) -> str:
        """Give the id of a row."""
        return self.ids(row, row + 1)[0]


class GrowingColumns:
    """Columns to which rows are added, part by part."""

    def __init__(self) -> None:
        self._arrays = {name: np.zeros(1, DTYPES[name]) for name in DTYPES}
        # The bounds begin with a 0.
        self._lengths = {name: int(name in _BOUNDS) for name in DTYPES}

    def add(self, part: Columns) -> None:
        """Add the rows of a part."""
        for name in DTYPES:
            values = getattr(part, name)
            length = self._lengths[name]
            if name in _BOUNDS:
                values = values[1:] + self._arrays[name][length - 1]
            self._lengths[name] = length + len(values)
            array = self._arrays[name]
            if len(array) < length + len(values):
                # An eighth more than is needed: growing in place costs next to
                # nothing, but what is there is memory in use.
                array.resize((length + len(values)) * 9 // 8, refcheck=False)
            array[length : length + len(values)] = values

    def finish(self) -> Columns:
        """Give all of them. Nothing can be added any more."""
        for name, array in self._arrays.items():
            array.resize(self._lengths[name], refcheck=False)
        return Columns(**self._arrays)


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """Rows by id: hashes in ascending order, and the row of each."""

    hashes: npt.NDArray[np.uint64]
    rows: npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class IndexContent:
    """All of an index."""

    columns: Columns
    lookup: Lookup
    chunks: npt.NDArray[np.int64]
    """``(k, 5)``: number, bytes, time, CRC-32 and items of each map."""
    crc32: dict[str, int] = field(default_factory=dict)
    """Checksums of what is read as a whole; none where it was just made."""
    source: memoryview | None = None
    """The file that it is mapped from."""

    def by_chunk(self) -> Iterator[tuple[list[int], range]]:
        """Give what `chunks` has of each map, and the rows of its items."""
        start = 0
        for known in self.chunks.tolist():
            yield known, range(start, start + known[4])
            start += known[4]


def arrays_crc32(*arrays: Any) -> int:
    """Compute one CRC-32 over several arrays or buffers."""
    crc32 = 0
    for array in arrays:
        crc32 = crc32_of(array, crc32)
    return crc32


def ids_crc32(columns: Columns) -> int:
    """Compute one CRC-32 over the columns that are read as a whole."""
    return arrays_crc32(
        columns.id_bounds, columns.id_text, columns.chunk, columns.num_frames
    )


def make_lookup(columns: Columns) -> Lookup:
    """Sort the ids by their hash."""
    text, bounds = columns.id_text.tobytes(), columns.id_bounds.tolist()
    hashes = np.fromiter(
        (hash_id(text[bounds[row] : bounds[row + 1]]) for row in range(len(columns))),
        "<u8",
        len(columns),
    )
    order = np.argsort(hashes, kind="stable").astype("<i4")
    return Lookup(hashes[order], order)
