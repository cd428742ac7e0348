"""The stored bytes of the frames of a sample: where they are, and reading them."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from operator import itemgetter
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from gulpio2.blocks import verify_crc32
from gulpio2.codecs.jpeg import jpeg_bytes_to_img
from gulpio2.directory import GulpDirectory
from gulpio2.errors import CorruptFrameError
from gulpio2.format.checksum import crc32_of
from gulpio2.format.plan import cover_neighbours, first_empty, plan_apart
from gulpio2.view import GulpView

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gulpio2.codecs.decode import FrameDecoder
    from gulpio2.item import StoredItem
    from gulpio2.torch.ahead import ReadAhead
    from gulpio2.torch.profile import Clock

__all__ = [
    "Places",
    "ReadyClip",
    "StoredClip",
    "damaged_at",
    "locate_clip",
    "read_each",
]

# What reads as this package's directories do.
_OWN = (GulpDirectory.read_jpegs, GulpView.read_jpegs)


class Places(NamedTuple):
    """One read, and where the frames in it are."""

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


@dataclass(slots=True, eq=False)
class StoredClip:
    """Where the stored bytes of some frames of an item are."""

    item: StoredItem
    """The item."""
    reads: list[Places]
    """What is to be read of the data file."""
    blocks: list[bytes | bytearray] = field(default_factory=list)
    """What was read of it already, from the first on."""
    ahead: ReadAhead | None = None
    """Whose memory they lie in."""
    ready: ReadyClip | None = None
    """What is left to do, where there is only to decode."""

    def read_next(self, memory: bytearray, clock: Clock) -> None:
        """Read ahead the first block that is not there."""
        number = len(self.blocks)
        self.blocks.append(self._read(number, memory, clock))

    def block(self, number: int, clock: Clock) -> bytes | bytearray:
        """Give a block, which is to be used before the next one is asked for."""
        if number < len(self.blocks):
            return self.blocks[number]
        # Frames are decoded out of the block that was read, and that one read into
        # memory which is in the caches: a copy of each takes as long as reading it.
        return self._read(number, _MEMORY.block, clock)

    def _read(self, number: int, memory: bytearray, clock: Clock) -> bytes | bytearray:
        start = perf_counter()
        places = self.reads[number]
        block = self.item.read_into(places.offset, places.length, memory)
        clock.storage += perf_counter() - start
        clock.num_bytes += places.length
        return block

    def prepare(self, decoder: FrameDecoder) -> None:
        """Find the JPEGs in what was read ahead, where this decoder takes them all.

        To be called when they were just read: they are in the processor's caches. Where
        they lie is forgotten then, which is a tuple for each frame that Python's
        collector of garbage would go through.
        """
        if len(self.blocks) < len(self.reads):
            return
        found: list[memoryview] = []
        rows: list[int] = []
        for block, places in zip(self.blocks, self.reads, strict=True):
            jpegs = decoder.plain_jpegs(block, places.spans, places.offset)
            # One that differs is told of in its turn, when it is to be decoded.
            if jpegs is None or not self._is_sound(jpegs, places.crc32):
                return
            found += jpegs
            rows += places.rows
        if len(self.reads) > 1:  # else they are in order
            placed = sorted(zip(rows, found, strict=True), key=itemgetter(0))
            found = [jpeg for _, jpeg in placed]
        self.ready = ReadyClip(decoder, found)
        self.reads = []

    def verify(self, jpeg: memoryview, crc32: int) -> None:
        """Compare the checksum of a frame.

        Raises
        ------
        CorruptFrameError
            It is not the one that was stored.
        """
        verify_crc32(jpeg, crc32, self.item.is_edited_to)

    def _is_sound(self, jpegs: list[memoryview], crc32: Sequence[int] | None) -> bool:
        return crc32 is None or list(map(crc32_of, jpegs)) == crc32

    def drop(self) -> None:
        """Forget what was read ahead, and give back its memory."""
        self.ready = None
        blocks, self.blocks = self.blocks, []
        for block in blocks:
            if self.ahead is not None and isinstance(block, bytearray):
                self.ahead.give_back(block)


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
        return StoredClip(item, [Places(*whole, rows, spans, crc32)])
    reads, found = [], 0
    for offset, length, members in plan_apart(spans):
        own_rows = [rows[member] for member in members]
        own_spans = [spans[member] for member in members]
        own_crc32 = crc32 and [crc32[member] for member in members]
        reads.append(Places(offset, length, own_rows, own_spans, own_crc32))
        found += len(members)
    if found < len(spans):
        empty = first_empty(spans)
        raise CorruptFrameError(
            f"item {id_!r} of {reader!r}, frame {indices[empty]}: the record is empty"
        )
    return StoredClip(item, reads)


def read_each(
    reader: Any, id_: str, indices: Sequence[int], rows: Sequence[int], clock: Clock
) -> Iterator[tuple[bytes, Places]] | None:
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
    """
    decoder = getattr(reader, "jpeg_decoder", jpeg_bytes_to_img)
    if isinstance(reader, GulpView):
        decoder = reader.item(id_).decoder
    if not hasattr(reader, "read_jpegs") or decoder is not jpeg_bytes_to_img:
        return None
    start = perf_counter()
    jpegs = reader.read_jpegs(id_, list(indices))
    clock.storage += perf_counter() - start
    clock.num_bytes += sum(map(len, jpegs))
    return (
        (jpeg, Places(0, len(jpeg), (rows[position],), ((0, len(jpeg)),)))
        for position, jpeg in enumerate(jpegs)
    )


def damaged_at(place: str, cause: Exception) -> CorruptFrameError:
    """Say where a damaged frame is, and what tells of all others."""
    said, advice = f"{place}: {cause}", "Run `gulp2 check --deep` on the directory"
    # Of a checksum it is said already.
    return CorruptFrameError(said if advice in said else f"{said}. {advice}")
