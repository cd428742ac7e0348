"""The blocks of a call, decoded by however many threads come."""

from __future__ import annotations

import threading
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol

from gulpio2.blocks import verify_crc32
from gulpio2.errors import CorruptFrameError, FormatError, GulpError
from gulpio2.format.checksum import crc32_of
from gulpio2.threads import work_together

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import numpy.typing as npt

    from gulpio2.blocks import Block

    Targets = Sequence[Any] | npt.NDArray[Any]

__all__ = ["Decode", "Job"]

# Bytes of JPEG for which waking another thread pays: decoding them takes a tenth of a
# millisecond, waking a thread some twenty microseconds.
_SHARE_BYTES = 8 * 1024


class Decode(Protocol):
    """Decodes frames of a block's bytes, as `FrameDecoder.decode_each`."""

    def __call__(
        self,
        block: bytes | bytearray,
        frames: Iterable[tuple[int, int, Any]],
        /,
        *,
        sound: bool,
    ) -> object:
        """Decode each from start to stop into its target."""


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
        self._own: Block
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
            # Of one block for each, the first is read here and decoded by another
            # thread, which wakes meanwhile. Who wakes last would end last, and waiting
            # for that takes longer than reading in its place.
            gives_first = (
                len(blocks) == threads
                and len(blocks[0].reads) > 1
                and len(blocks[0].members) == len(blocks[-1].members)
            )
            if gives_first:
                self._own, self._others = blocks[-1], islice(blocks, len(blocks) - 1)
            else:
                self._own, self._others = blocks[0], islice(blocks, 1, None)
            self._gate = threading.Lock()
            self._gate.acquire()
            self._is_locked = True
            begin, open_gate = partial(self._begin, prepare), self._open_gate
            help_ = partial(self._work, self._others)
            work_together(help_, threads - 1, own=begin, let_go=open_gate)
        if self.failures:
            raise min(self.failures, key=_position)[1]

    def _prepare(self, prepare: Callable[[Block], tuple[Decode, Targets]]) -> None:
        self._decode, self._targets = prepare(self.blocks[0])
        self._is_open = True

    def _begin(self, prepare: Callable[[Block], tuple[Decode, Targets]]) -> None:
        """Prepare, let the others begin, and work; they read ahead meanwhile."""
        self._prepare(prepare)
        self._open_gate()
        self._drain(self._own)
        self._work(self._others)

    def _open_gate(self) -> None:
        """Let the others begin; or leave, if nothing was prepared for them."""
        if not self._is_open:
            self.failures.append((-1, GulpError("never begun")))
            self._is_open = True
        if self._is_locked:
            self._is_locked = False
            self._gate.release()

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
                is_sound = block.request.crc32 is not None
                self._decode(data, self._frames(block, data, taken), sound=is_sound)
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
        spans, crc32 = block.spans, block.request.crc32
        view = memoryview(data)
        shares, failures, place = block.shares, self.failures, taken[0]
        while True:
            offset, length = spans[place]
            start = offset - base
            stop = start + length
            # Compared here first: a call takes as long as the checksum.
            if crc32 is not None and crc32_of(view[start:stop]) != crc32[place]:
                edited = block.request.is_edited_to
                verify_crc32(view[start:stop], crc32[place], edited)
            yield start, stop, targets[first + place]
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
            "one shape; read_frames gives a list of any, colorspace='rgb' makes grey "
            "ones like others, and `gulp2 check --deep` names the items whose frames "
            "differ"
        )
    else:
        return cause
    error.__cause__ = cause
    return error


def _position(failure: tuple[int, BaseException]) -> int:
    return failure[0]
