"""Blocks of frames: bytes that are read at once, whoever decodes them.

A block's bytes lie in memory that is used again: new memory costs more than reading
into it, since the system has to give it page by page.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

from gulpio2.codecs.first_frame import TAIL_BYTES
from gulpio2.errors import CorruptFrameError, ReadRangeError, of_zeros
from gulpio2.format.checksum import crc32_of
from gulpio2.format.plan import Read, cover_neighbours, first_empty, plan_apart
from gulpio2.format.records import ALIGNMENT
from gulpio2.stopwatch import STOPWATCH

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["Block", "FrameRequest", "cut_at", "plan_blocks", "verify_crc32"]

# Bytes: the step of allocation, and the largest buffer that is kept; and how many each
# thread keeps. A clip of 32 ordinary frames has half a megabyte.
_STEP = 256 * 1024
_MAX_KEPT = 4 * 1024 * 1024
_MAX_KEPT_COUNT = 2

# Bytes. A read of more than this, with large gaps between the frames, is made in parts,
# by several threads at once.
_SPLIT_BYTES = 256 * 1024
# Reads that are put together: a block takes longer than a read of a frame does. No
# more, since frames are decoded when all of their block are read.
_MAX_JOINED = 16


class _Kept(threading.local):
    """Memory that this thread has read into, and may again.

    What another thread has worked at is in that one's caches, and fetching it from
    there costs more than the read does.
    """

    def __init__(self) -> None:
        self.memory: list[bytearray] = []


_kept = _Kept()


@dataclass(slots=True, eq=False)
class FrameRequest:
    """Records of one data file, in the order in which their frames are wanted."""

    read_at: Callable[[int, int], bytes]
    """Offset and length to bytes of the data file."""
    spans: Sequence[tuple[int, int]]
    """Offset and length of each JPEG, padding left out."""
    place: Callable[[int], str]
    """Position in `spans` to where that frame is, for messages."""
    crc32: Sequence[int] | None = None
    """Checksum of each JPEG where it is to be verified."""
    read_into: Callable[[Sequence[Read], bytearray], object] | None = None
    """Makes reads, one after the other, into memory that holds all."""
    distinct: bool = False
    """Whether it is known that no frame comes twice."""
    is_edited_to: Callable[[int], bool] | None = None
    """Says of a checksum that differs whether the map in memory was edited to it."""


class Block:
    """What is read at once, and the frames in it; several threads may work at one.

    Parameters
    ----------
    request : FrameRequest
        The frames, and how to read them.
    reads : sequence of Read
        Its bytes, which lie in it one after the other.
    members : sequence of int
        Positions in the request of its frames: those of the reads, or some of them.
    first : int
        Position in the job of the request's first frame.

    Attributes
    ----------
    length : int
        Its bytes.
    offset : int
        Of its first byte, where that of one read is in the data file; else 0.
    spans : sequence or mapping of int to (int, int)
        Offset, counted as `offset` is, and length of each frame, by its position.
    """

    __slots__ = (
        "_home",
        "_lock",
        "_memory",
        "_num_left",
        "data",
        "done",
        "first",
        "length",
        "members",
        "offset",
        "reads",
        "request",
        "shares",
        "spans",
    )

    def __init__(
        self,
        request: FrameRequest,
        reads: Sequence[Read],
        members: Sequence[int],
        first: int,
    ) -> None:
        self.request = request
        self.reads = reads
        self.members = members
        self.first = first
        self.spans: Sequence[tuple[int, int]] | Mapping[int, tuple[int, int]]
        if len(reads) == 1:
            self.offset, self.length, _ = reads[0]
            self.spans = request.spans
        else:
            self.offset, self.length = 0, sum(read.length for read in reads)
            self.spans = _spans_in(request, reads)
        self.shares = iter(members)
        self.data: bytes | bytearray | None = None
        self.done = False
        self._memory: bytearray | None = None
        self._home: list[bytearray]
        self._num_left = len(members)
        self._lock = threading.Lock()

    def load(self) -> bytes | bytearray:
        """Read the bytes if nobody has; not after all frames are finished."""
        with self._lock:
            if self.data is not None:
                return self.data
            start = perf_counter()
            self.data = self._read()
            if STOPWATCH.is_on:
                STOPWATCH.add_read(start)
            return self.data

    def _read(self) -> bytes | bytearray:
        try:
            return self._fetch()
        except ReadRangeError as cause:
            raise cut_at(self.request.place(self.members[0]), cause) from cause

    def _fetch(self) -> bytes | bytearray:
        request, length = self.request, self.length
        if request.read_into is None or length > _MAX_KEPT:
            return request.read_at(self.offset, length)
        kept = self._home = _kept.memory
        memory = kept.pop() if kept else None
        needed = length + TAIL_BYTES  # the last frame has one as well
        if memory is None or len(memory) < needed:
            memory = bytearray(-(-needed // _STEP) * _STEP)
        self._memory = memory
        request.read_into(self.reads, memory)
        return memory

    def finish(self, num_frames: int) -> None:
        """Note frames that were decoded; after the last the bytes are dropped."""
        with self._lock:
            self._num_left -= num_frames
            if self._num_left:
                return
            memory, self._memory, self.data = self._memory, None, None
        # To the thread that read into it, which reads again, and not to this one.
        if memory is not None and len(self._home) < _MAX_KEPT_COUNT:
            self._home.append(memory)


def _spans_in(
    request: FrameRequest, reads: Sequence[Read]
) -> dict[int, tuple[int, int]]:
    """Give where frames are in a block of several reads."""
    spans, found, start = request.spans, {}, 0
    for offset, length, members in reads:
        for member in members:
            at, size = spans[member]
            found[member] = start + at - offset, size
        start += length
    return found


def plan_blocks(
    request: FrameRequest, first: int, skip: dict[int, int], threads: int
) -> list[Block]:
    """Plan the reads of a request.

    Parameters
    ----------
    request : FrameRequest
        The frames.
    first : int
        Position of its first frame in the job.
    skip : dict of int to int
        Frames that are not to be decoded: position to another one's.
    threads : int
        How many there are to read at the same time.

    Raises
    ------
    CorruptFrameError
        A record is empty.
    """
    spans = request.spans
    if not skip and (whole := cover_neighbours(spans)) is not None:
        members: Sequence[int] = range(len(spans))
        return [Block(request, (Read(*whole, members),), members, first)]
    reads = plan_apart(spans)
    if sum(len(read.members) for read in reads) < len(spans):
        where = request.place(first_empty(spans))
        raise CorruptFrameError(f"{where}: the record is empty")
    if not skip and len(reads) > threads and _may_join(request, reads):
        return _join(request, reads, first, threads)
    blocks: list[Block] = []
    for read in reads:
        members = read.members
        if skip:
            members = tuple(member for member in members if member not in skip)
        if (
            len(reads) < threads
            and read.length > _SPLIT_BYTES
            and _has_gaps(spans, members, read.length)
        ):
            blocks += _split(request, members, first, threads)
        else:
            blocks.append(Block(request, (read,), members, first))
    return blocks


def _has_gaps(
    spans: Sequence[tuple[int, int]], members: Sequence[int], length: int
) -> bool:
    """Tell whether a read brings more than its frames and their padding."""
    return length > sum(spans[member][1] + ALIGNMENT for member in members)


def _may_join(request: FrameRequest, reads: Sequence[Read]) -> bool:
    """Tell whether all would go into memory that is kept."""
    length = sum(read.length for read in reads)
    return request.read_into is not None and length <= _MAX_KEPT


def _join(
    request: FrameRequest, reads: Sequence[Read], first: int, threads: int
) -> list[Block]:
    """Put reads together, some for each thread, by turns.

    Frames grow and shrink over a clip: one half of it may take longer than the other.
    """
    blocks = []
    count = min(_MAX_JOINED, -(-len(reads) // threads))
    num_blocks = -(-len(reads) // count)
    for turn in range(num_blocks):
        joined = reads[turn::num_blocks]
        members = [member for read in joined for member in read.members]
        blocks.append(Block(request, joined, members, first))
    return blocks


def _split(
    request: FrameRequest, members: Sequence[int], first: int, threads: int
) -> list[Block]:
    """Make several reads of one that has gaps, for threads to make at once."""
    members = sorted(members, key=request.spans.__getitem__)
    count = -(-len(members) // threads)
    blocks = []
    for start in range(0, len(members), count):
        part = members[start : start + count]
        spans = [request.spans[member] for member in part]
        offset = spans[0][0]
        end = max(start + length for start, length in spans)
        blocks.append(Block(request, (Read(offset, end - offset, part),), part, first))
    return blocks


def verify_crc32(
    jpeg: bytes | memoryview,
    crc32: int,
    is_edited_to: Callable[[int], bool] | None = None,
) -> None:
    """Compare the checksum of a frame's bytes with the one stored.

    Parameters
    ----------
    jpeg : bytes or memoryview
        What was read.
    crc32 : int
        What was stored.
    is_edited_to : callable, optional
        See `FrameRequest`.

    Raises
    ------
    CorruptFrameError
        It is another.
    """
    found = crc32_of(jpeg)
    if found == crc32 or (is_edited_to is not None and is_edited_to(found)):
        return
    raise CorruptFrameError(
        f"its checksum is {found:08x}, and {crc32:08x} was stored: the bytes have "
        f"changed since{of_zeros(bytes(jpeg[:2]))}. Run `gulp2 check --deep` on the "
        "directory; GulpDirectory(path, verify=False) gives what they decode to"
    )


def cut_at(place: str, cause: ReadRangeError) -> ReadRangeError:
    """Say of which frames bytes are missing."""
    *number, message = cause.args
    return ReadRangeError(*number, f"{place}: {message}")
