"""Bytes of a data file that cannot be read, narrowed down to sectors."""

from __future__ import annotations

import errno
import os
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

from gulpio2.format.wording import cannot_be_read

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["UnreadBytes", "UnreadSpan", "why_unread", "why_unread_there"]

# Bytes. What a disk refuses are sectors, mostly of 512 or 4096 bytes.
_SECTOR = 512
# A run of unreadable bytes is felt along in steps of this part of its length: of up to
# 16 sectors none is passed over, and where nothing of a terabyte can be read, two reads
# of each window are enough.
_STEPS = 8
# Reads that fail until sectors are taken to be twice as long: each can take seconds,
# and a file may have millions of bad sectors between good ones.
_MOST_FAILURES = 4096
# What is wrong there stays so until somebody does something, and the error says what.
_LASTING = frozenset(
    {
        *(errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.EISDIR),
        *(errno.EINVAL, errno.ELOOP, errno.ENAMETOOLONG),
    }
)
_KEEP = "The error may pass: keep the source, and repair it again later"


def why_unread(cause: OSError) -> str:
    """Say why something could not be read, and whether it may be another time.

    What is unreadable is not known to be damaged. Of a failing disk or a server that is
    away it may be had another time, so nobody should remove the source.
    """
    said = cannot_be_read(cause)
    return said if cause.errno in _LASTING else f"{said.removesuffix('.')}. {_KEEP}"


def why_unread_there(cause: OSError) -> str:
    """As `why_unread`, without the place: then it is the same of all frames there."""
    if cause.errno is None:
        return why_unread(cause)
    return why_unread(OSError(cause.errno, os.strerror(cause.errno)))


class UnreadSpan(NamedTuple):
    """Bytes that cannot be read."""

    start: int
    stop: int
    reason: str
    """Why not."""


class UnreadBytes:
    """Reads one data file past what is unreadable, and notes where that is.

    Parameters
    ----------
    read : callable
        Gives the bytes from an offset on, by number; raises ``OSError``.

    Attributes
    ----------
    spans : list of UnreadSpan
        What was found to be unreadable, ascending and apart.
    """

    def __init__(self, read: Callable[[int, int], bytes]) -> None:
        self._read = read
        self._failures = 0
        self.spans: list[UnreadSpan] = []

    def between(self, start: int, stop: int) -> list[UnreadSpan]:
        """Give the unreadable parts of a span, as far as it was read."""
        first = bisect_right(self.spans, start, key=lambda span: span.stop)
        found = []
        for span in self.spans[first:]:
            if span.start >= stop:
                break
            found.append(
                span._replace(start=max(span.start, start), stop=min(span.stop, stop))
            )
        return found

    def read(self, start: int, stop: int) -> bytes:
        """Read a span, with zeros for what cannot be read.

        Where all can be, this is one read.
        """
        if not self.between(start, stop):
            try:
                return self._read(start, stop - start)
            except OSError:
                self._failures += 1
        data = bytearray(stop - start)
        longest = max(_SECTOR, 1 << (stop - start).bit_length() >> 2)
        step = longest
        at = start
        while at < stop:
            # What is known need not be tried again: windows overlap.
            known = self.between(at, stop)[:1]
            if known and known[0].start == at:
                at = known[0].stop
                step = self._grain  # it may go on
                continue
            limit = known[0].start if known else stop
            end = min(limit, (at // step + 1) * step)
            try:
                data[at - start : end - start] = self._read(at, end - at)
            except OSError as cause:
                self._failures += 1
                if step > self._grain:
                    step //= 2
                else:
                    at = self._follow(at, end, limit, why_unread_there(cause))
            else:
                at = end
                step = min(2 * step, longest)
        return bytes(data)

    @property
    def _grain(self) -> int:
        """Bytes that are not divided further."""
        return _SECTOR << (self._failures // _MOST_FAILURES)

    def _follow(self, start: int, bad: int, stop: int, reason: str) -> int:
        """Find where a run of unreadable bytes ends, note it, and give its end.

        All up to `bad` is known to be unreadable. The run may go on from one that was
        noted.
        """
        last = bisect_right(self.spans, start, key=lambda span: span.start) - 1
        first = start
        if last >= 0 and self.spans[last].stop == start:
            first = self.spans[last].start
        while bad < stop:
            grain = self._grain
            step = max(grain, (bad - first) // _STEPS // grain * grain)
            at = max(bad, (min(bad + step, stop) - 1) // grain * grain)
            if not self._can_read(at, stop):
                bad = min(stop, at + grain)
                continue
            while bad < at:  # or it ends somewhere before
                middle = bad + (at - bad) // 2 // grain * grain
                if self._can_read(middle, at):
                    at = middle
                else:
                    bad = min(at, middle + grain)
            break
        if first < start and self.spans[last].reason == reason:
            self.spans[last] = UnreadSpan(first, bad, reason)
        else:
            self.spans.insert(last + 1, UnreadSpan(start, bad, reason))
        return bad

    def _can_read(self, at: int, stop: int) -> bool:
        """Try to read the sector at a place."""
        try:
            self._read(at, min(self._grain, stop - at))
        except OSError:
            self._failures += 1
            return False
        return True
