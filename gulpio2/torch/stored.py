"""The stored bytes of the frames of a sample: where they are, and reading them."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from itertools import zip_longest
from operator import itemgetter
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from gulpio2.codecs.jpeg import jpeg_bytes_to_img
from gulpio2.directory import GulpDirectory
from gulpio2.errors import CorruptFrameError, FormatError
from gulpio2.format.checksum import crc32_of
from gulpio2.format.plan import cover_neighbours, first_empty, plan_apart
from gulpio2.format.wording import counted
from gulpio2.view import GulpView

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gulpio2.codecs.decode import FrameDecoder
    from gulpio2.item import StoredItem
    from gulpio2.torch.profile import Clock

__all__ = [
    "Read",
    "ReadyClip",
    "StoredClip",
    "damaged_at",
    "locate_clip",
    "read_each",
]

# What reads as this package's directories do.
_OWN = (GulpDirectory.read_jpegs, GulpView.read_jpegs)


class Read(NamedTuple):
    """One read of a data file, and where the frames are in the block that it gives."""

    offset: int
    """First byte in the data file."""
    length: int
    """Bytes to read."""
    rows: Sequence[int]
    """Row in the sample, of each frame."""
    spans: Sequence[tuple[int, int]]
    """Offset in the data file and length of the JPEG, of each frame."""
    crc32: Sequence[int] | None = None
    """Checksum of each frame, where it is to be compared."""


class ReadyClip(NamedTuple):
    """A clip of which every frame is decoded by one call of the codec."""

    decoder: FrameDecoder
    """What does so."""
    jpegs: list[memoryview]
    """The bytes of each frame, by its row in the sample."""


class Lender(Protocol):
    """Has lent the memory that blocks lie in, as `gulpio2.torch.ahead` does."""

    def give_back(self, memory: bytearray) -> None:
        """Take memory that is not needed any more."""


@dataclass(slots=True, eq=False)
class StoredClip:
    """Where the stored bytes of some frames of an item are."""

    item: StoredItem
    """The item."""
    reads: list[Read]
    """What is to be read of the data file."""
    blocks: list[bytes | bytearray] = field(default_factory=list)
    """What was read of it already, from the first on."""
    ahead: Lender | None = None
    """Whose memory they lie in."""
    ready: ReadyClip | None = None
    """What is left to do, where there is only to decode."""

    def read_next(self, memory: bytearray, clock: Clock) -> None:
        """Read ahead the first block that is not there."""
        read = self.reads[len(self.blocks)]
        self.blocks.append(self._read(read, memory, clock))

    def each(self, clock: Clock) -> Iterator[tuple[bytes | bytearray, Read]]:
        """Give each block, to be used before the next one, and where its frames are."""
        for read, block in zip_longest(self.reads, self.blocks):
            # Frames are decoded out of the block that was read, and that one is read
            # into memory that is in the processor's caches: to copy each frame out of
            # it takes as long as to read it.
            yield block or self._read(read, _MEMORY.block, clock), read

    def _read(self, read: Read, memory: bytearray, clock: Clock) -> bytes | bytearray:
        start = perf_counter()
        block = self.item.read_into(read.offset, read.length, memory)
        clock.storage += perf_counter() - start
        clock.num_bytes += read.length
        return block

    def prepare(self, decoder: FrameDecoder) -> None:
        """Find the JPEGs in what was read ahead, where this decoder takes them all.

        To be called right after they were read, while they are in the processor's
        caches. Then `reads` is emptied: it has a tuple for each frame, and Python's
        collector of garbage would go through all of them.
        """
        if len(self.blocks) < len(self.reads):
            return
        found: list[memoryview] = []
        rows: list[int] = []
        for block, read in zip(self.blocks, self.reads, strict=True):
            # A frame that is not what was stored raises when its sample is made.
            is_compared = read.crc32 is not None
            if is_compared and _checksums(block, read) != read.crc32:
                return
            jpegs = decoder.plain_jpegs(
                block, read.spans, read.offset, sound=is_compared
            )
            if jpegs is None:
                return
            found += jpegs
            rows += read.rows
        if len(self.reads) > 1:  # else they are in order
            placed = sorted(zip(rows, found, strict=True), key=itemgetter(0))
            found = [jpeg for _, jpeg in placed]
        self.ready = ReadyClip(decoder, found)
        self.reads = []

    def drop(self) -> None:
        """Forget what was read ahead, and give back its memory."""
        self.ready = None
        blocks, self.blocks = self.blocks, []
        for block in blocks:
            if self.ahead is not None and isinstance(block, bytearray):
                self.ahead.give_back(block)


def _checksums(block: bytes | bytearray, read: Read) -> list[int]:
    """Compute the checksum of each frame of a block."""
    view, base = memoryview(block), read.offset
    return [
        crc32_of(view[offset - base : offset - base + length])
        for offset, length in read.spans
    ]


class _Memory(threading.local):
    """What one thread reads into, kept from read to read."""

    def __init__(self) -> None:
        self.block = bytearray()


_MEMORY = _Memory()


def locate_clip(
    reader: Any, id_: str, indices: Sequence[int], rows: Sequence[int]
) -> StoredClip | None:
    """Find the stored bytes of frames, without reading any.

    Parameters
    ----------
    reader : FrameReader
        Where the item is.
    id_ : str
        Its id there.
    indices : sequence of int
        Which frames.
    rows : sequence of int
        Where in the sample each is to be.

    Returns
    -------
    StoredClip or None
        None where the reader is to be asked for the bytes, or for the frames: it is
        not one of this package, or has a decoder of its own.

    Raises
    ------
    CorruptFrameError
        A record is empty.
    FrameIndexError
        The item has no such frame.
    ItemNotFoundError
        There is no such item.
    """
    if getattr(type(reader), "read_jpegs", None) not in _OWN:
        return None
    item: StoredItem = reader.item(id_)
    if item.decoder is not jpeg_bytes_to_img:
        return None
    try:
        spans = item.record.spans(indices)
    except IndexError:
        item.select(indices)  # says which frame there is not
        raise
    crc32 = item.checksums(indices)
    if (whole := cover_neighbours(spans)) is not None:
        return StoredClip(item, [Read(*whole, rows, spans, crc32)])
    reads, found = [], 0
    for offset, length, members in plan_apart(spans):
        own_rows = [rows[member] for member in members]
        own_spans = [spans[member] for member in members]
        own_crc32 = crc32 and [crc32[member] for member in members]
        reads.append(Read(offset, length, own_rows, own_spans, own_crc32))
        found += len(members)
    if found < len(spans):
        empty = first_empty(spans)
        raise CorruptFrameError(
            f"item {id_!r} of {reader!r}, frame {indices[empty]}: the record is empty"
        )
    return StoredClip(item, reads)


def read_each(
    reader: Any, id_: str, indices: Sequence[int], rows: Sequence[int], clock: Clock
) -> Iterator[tuple[bytes, Read]] | None:
    """Read the stored bytes of frames where `locate_clip` did not find them.

    Parameters
    ----------
    reader, id_, indices, rows
        As in `locate_clip`.
    clock : Clock
        Of this thread.

    Returns
    -------
    iterator or None
        A block for each frame, with its place. None where the reader gives frames only.

    Raises
    ------
    FormatError
        It gave more JPEGs than frames were asked for, or fewer.
    """
    decoder = getattr(reader, "jpeg_decoder", jpeg_bytes_to_img)
    if isinstance(reader, GulpView):
        decoder = reader.item(id_).decoder
    if not hasattr(reader, "read_jpegs") or decoder is not jpeg_bytes_to_img:
        return None
    start = perf_counter()
    jpegs = reader.read_jpegs(id_, list(indices))
    clock.storage += perf_counter() - start
    if len(jpegs) != len(indices):
        raise FormatError(
            f"item {id_!r} of {reader!r}: read_jpegs gave {len(jpegs)} JPEGs for "
            f"{counted(len(indices), 'frame')}, expected one for each"
        )
    clock.num_bytes += sum(map(len, jpegs))
    return (
        (jpeg, Read(0, len(jpeg), (row,), ((0, len(jpeg)),)))
        for row, jpeg in zip(rows, jpegs, strict=True)
    )


def damaged_at(place: str, cause: Exception) -> CorruptFrameError:
    """Say where a damaged frame is, and what tells of all others."""
    said, advice = f"{place}: {cause}", "Run `gulp2 check --deep` on the directory"
    # Of a checksum it is said already.
    return CorruptFrameError(said if advice in said else f"{said}. {advice}")
