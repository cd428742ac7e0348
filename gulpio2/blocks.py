"""Blocks of frames: one read each, decoded by however many threads come.

A block's bytes lie in memory that is used again: new memory costs more than reading
into it, since the system has to give it page by page.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from gulpio2.errors import CorruptFrameError, FormatError, GulpError
from gulpio2.format.checksum import crc32_of
from gulpio2.format.plan import cover_neighbours, first_empty, plan_apart
from gulpio2.format.records import ALIGNMENT
from gulpio2.threads import work_together

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import numpy.typing as npt

    Targets = Sequence[Any] | npt.NDArray[Any]
    # Decodes frames of a block's bytes, each from start to stop into its target.
    Decode = Callable[[bytes | bytearray, Iterable[tuple[int, int, Any]]], object]

__all__ = ["Block", "FrameRequest", "Job", "plan_blocks", "verify_crc32"]

# Bytes of JPEG for which waking another thread pays: decoding them takes a tenth of a
# millisecond, waking a thread some twenty microseconds.
_SHARE_BYTES = 8 * 1024
# Bytes: the step of allocation, and the largest buffer that is kept; and how many each
# thread keeps. A clip of 32 ordinary frames has half a megabyte.
_STEP = 256 * 1024
_MAX_KEPT = 4 * 1024 * 1024
_MAX_KEPT_COUNT = 2

# Bytes. A read of more than this, with large gaps between the frames, is made in parts,
# by several threads at once.
_SPLIT_BYTES = 256 * 1024


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
    read_into: Callable[[int, int, bytearray], bytes | bytearray] | None = None
    """As `read_at`, where possible into the memory given."""
    distinct: bool = False
    """Whether it is known that no frame comes twice."""


class Block:
    """One read, and the frames in it; several threads may work at one."""

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
        "request",
        "shares",
    )

    def __init__(
        self,
        request: FrameRequest,
        offset: int,
        length: int,
        members: Sequence[int],
        first: int,
    ) -> None:
        self.request = request
        self.offset = offset
        self.length = length
        # Positions of its frames in the request, and in the job that of the request's
        # first one.
        self.members = members
        self.first = first
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
            request, length = self.request, self.length
            if request.read_into is None or length > _MAX_KEPT:
                self.data = request.read_at(self.offset, length)
                return self.data
            kept = self._home = _kept.memory
            memory = kept.pop() if kept else None
            if memory is None or len(memory) < length:
                memory = bytearray(-(-length // _STEP) * _STEP)
            self._memory = memory
            self.data = request.read_into(self.offset, length, memory)
            return self.data

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
        return [Block(request, *whole, range(len(spans)), first)]
    blocks: list[Block] = []
    planned = 0
    reads = plan_apart(spans)
    for offset, length, members in reads:
        planned += len(members)
        if skip:
            members = tuple(member for member in members if member not in skip)
        if (
            len(reads) < threads
            and length > _SPLIT_BYTES
            and _has_gaps(spans, members, length)
        ):
            blocks += _split(request, members, first, threads)
        else:
            blocks.append(Block(request, offset, length, members, first))
    if planned < len(spans):
        where = request.place(first_empty(spans))
        raise CorruptFrameError(f"{where}: the record is empty")
    return blocks


def _has_gaps(
    spans: Sequence[tuple[int, int]], members: Sequence[int], length: int
) -> bool:
    """Tell whether a read brings more than its frames and their padding."""
    return length > sum(spans[member][1] + ALIGNMENT for member in members)


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
        blocks.append(Block(request, offset, end - offset, part, first))
    return blocks


class Job:
    """Blocks, each to be read and its frames decoded, by whoever comes.

    Parameters
    ----------
    blocks : sequence of Block
        At least one.
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = blocks
        self.failures: list[tuple[int, BaseException]] = []
        self._is_open = False
        self._is_locked = False
        self._gate: threading.Lock
        self._others: Iterator[Block]
        self._decode: Decode
        self._targets: Targets

    def run(
        self,
        threads: int,
        prepare: Callable[[Block], tuple[Decode, Targets]],
    ) -> None:
        """Do all of it.

        Parameters
        ----------
        threads : int
            How many may work at the same time, at most.
        prepare : callable
            Gives, of the first block, what decodes frames, and their targets by the
            frames' positions in the job. The other threads have been woken by then.

        Raises
        ------
        CorruptFrameError, FormatError
            What went wrong; of several frames, with the first.
        """
        blocks = self.blocks
        if threads > 1:
            num_bytes = num_frames = 0
            for block in blocks:
                num_bytes += block.length
                num_frames += len(block.members)
            threads = min(threads, num_frames, num_bytes // _SHARE_BYTES)
        if threads < 2:
            self._prepare(prepare)
            for block in blocks:
                self._drain(block)
        elif len(blocks) == 1:
            # There is nothing to begin with before it is read: woken earlier, another
            # thread would fall asleep again.
            self._prepare(prepare)
            work_together(partial(self._drain, blocks[0]), threads - 1)
        else:
            self._others = islice(blocks, 1, None)
            self._gate = threading.Lock()
            self._gate.acquire()
            self._is_locked = True
            begin, open_gate = partial(self._begin, prepare), self._open_gate
            work_together(self._help, threads - 1, own=begin, let_go=open_gate)
        if self.failures:
            raise min(self.failures, key=_position)[1]

    def _prepare(self, prepare: Callable[[Block], tuple[Decode, Targets]]) -> None:
        self._decode, self._targets = prepare(self.blocks[0])
        self._is_open = True

    def _begin(self, prepare: Callable[[Block], tuple[Decode, Targets]]) -> None:
        """Prepare, let the others begin, and work; they read ahead meanwhile."""
        self._prepare(prepare)
        self._open_gate()
        self._drain(self.blocks[0])
        self._work(self._others)

    def _open_gate(self) -> None:
        """Let the others begin; or leave, if nothing was prepared for them."""
        if not self._is_open:
            self.failures.append((-1, GulpError("never begun")))
            self._is_open = True
        if self._is_locked:
            self._is_locked = False
            self._gate.release()

    def _help(self) -> None:
        """Take part, in another thread."""
        self._work(self._others)

    def _work(self, blocks: Iterable[Block]) -> None:
        """Take blocks until none is left, then frames of those that others took."""
        for block in blocks:
            self._drain(block)
        if not self._is_open:
            with self._gate:
                pass
        for block in self.blocks:
            if not block.done:
                self._drain(block)

    def _drain(self, block: Block) -> None:
        """Decode frames of a block until all are taken."""
        place = next(block.shares, None)
        if place is None or not self._goes_on(block.first + place):
            block.done = True  # and what nobody wants is not read
            return
        taken = [place]
        try:
            # The bytes stay while a frame of them is not finished, and ours is not.
            data = block.data or block.load()
            if not self._is_open:
                with self._gate:
                    pass
            if self._goes_on(block.first + place):
                self._decode(data, self._frames(block, data, taken))
                block.finish(len(taken))
        except BaseException as cause:
            error = _with_place(cause, block, taken[-1])
            self.failures.append((block.first + taken[-1], error))
            if not isinstance(cause, Exception):
                raise
        block.done = True

    def _frames(
        self, block: Block, data: bytes | bytearray, taken: list[int]
    ) -> Iterator[tuple[int, int, Any]]:
        """Give the frame that was taken, and then take one after the other."""
        first, base, targets = block.first, block.offset, self._targets
        spans, crc32 = block.request.spans, block.request.crc32
        shares, failures, place = block.shares, self.failures, taken[0]
        while True:
            offset, length = spans[place]
            start = offset - base
            if crc32 is not None:
                verify_crc32(data, start, start + length, crc32[place])
            yield start, start + length, targets[first + place]
            place = next(shares, -1)
            if place < 0:
                return
            taken.append(place)
            if failures and not self._goes_on(first + place):
                return

    def _goes_on(self, position: int) -> bool:
        """Tell whether a frame is wanted: what comes out is the first one's error."""
        failures = self.failures
        return not failures or min(failures, key=_position)[0] >= position


def _with_place(cause: BaseException, block: Block, place: int) -> BaseException:
    """Give an error that says at which frame it came; other kinds as they are."""
    error: BaseException
    if isinstance(cause, CorruptFrameError):
        error = CorruptFrameError(f"{block.request.place(place)}: {cause}")
    elif isinstance(cause, ValueError) and not isinstance(cause, GulpError):
        error = FormatError(
            f"{block.request.place(place)}: {cause}. The frames of a clip must be of "
            "one shape; read_frames gives a list of any"
        )
    else:
        return cause
    error.__cause__ = cause
    return error


def _position(failure: tuple[int, BaseException]) -> int:
    return failure[0]


def verify_crc32(data: bytes | bytearray, start: int, stop: int, crc32: int) -> None:
    """Compare the checksum of a frame's bytes with the one stored.

    Raises
    ------
    CorruptFrameError
        It is another.
    """
    found = crc32_of(memoryview(data)[start:stop])
    if found != crc32:
        raise CorruptFrameError(
            f"its checksum is {found:08x}, and {crc32:08x} was stored: the bytes have "
            "changed since. Run `gulp2 check --deep` on the directory"
        )
