"""Records of a data file, written some at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gulpio2.format.records import FrameInfo, pad_length, record_of
from gulpio2.storage.base import WRITTEN_AT_ONCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from gulpio2.storage.base import StoreWriter

__all__ = ["GatheredRecords"]

# Bytes. More that waits takes the processor's caches from the codecs: of the 580 us
# that a frame of 340x256 takes, writing costs 8 less than with four times as many, and
# 12 less than with a write per frame.
_BLOCK_BYTES = 1 << 16


class GatheredRecords:
    """Records that are written together; of one item, or of several small ones.

    Parameters
    ----------
    writer : StoreWriter
        The data file, to go on at its end.
    tell : callable or None
        Called with a number of frames and their bytes, each time some were written.
    """

    def __init__(
        self, writer: StoreWriter, tell: Callable[[int, int], None] | None
    ) -> None:
        self._writer = writer
        self._tell = tell
        self._start = self.position = writer.tell()
        self._parts: list[bytes] = []
        # Where the frames begin that nobody was told of.
        self._untold: list[int] = []

    def take(self, jpeg: bytes) -> FrameInfo:
        """Take a frame; say where it will be."""
        # None, but for the first one behind what another program left in the file.
        before = pad_length(self.position)
        info, padding = record_of(jpeg, self.position + before)
        self._parts += (bytes(before), jpeg, padding) if before else (jpeg, padding)
        self._untold.append(info.loc)
        self.position += before + info.length
        if self.position - self._start >= _BLOCK_BYTES:
            self._write(self.num_bytes - self.position % WRITTEN_AT_ONCE)
        return info

    def flush(self) -> None:
        """Write what was taken."""
        self._write(self.num_bytes)

    def _write(self, num_bytes: int) -> None:
        """Write so many bytes of what was taken."""
        if not num_bytes:
            return
        data = b"".join(self._parts)
        try:
            self._writer.write(memoryview(data)[:num_bytes])
        except BaseException:
            self._writer.truncate(self._start)  # some of it may be there
            raise
        self._parts = [data[num_bytes:]]
        self._start += num_bytes
        num_frames = len(self._untold)
        self._untold.clear()
        if self._tell is not None:  # last, as it may raise
            self._tell(num_frames, num_bytes)

    @property
    def num_bytes(self) -> int:
        """Count the bytes that wait."""
        return self.position - self._start

    def cut(self, position: int) -> None:
        """Drop the records from a place on, written or not."""
        while self._untold and self._untold[-1] >= position:
            self._untold.pop()
        if position < self._start:
            self._writer.truncate(position)
            self._start = position
        self._parts = [b"".join(self._parts)[: position - self._start]]
        self.position = position
