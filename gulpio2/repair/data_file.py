"""Reads a data file of a damaged directory: a frame at a place, or all it has."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from gulpio2.codecs.jpeg import check_jpeg, decode_frame
from gulpio2.errors import CorruptFrameError
from gulpio2.format.checksum import crc32_of
from gulpio2.format.layout import data_name
from gulpio2.format.records import ALIGNMENT
from gulpio2.format.salvage import JpegFinder
from gulpio2.repair.unread import UnreadBytes, why_unread, why_unread_there

if TYPE_CHECKING:
    from collections.abc import Callable

    from gulpio2.storage.base import Store
    from gulpio2.types import Progress

__all__ = ["DAMAGED", "DataFile"]

DAMAGED = "damaged, or not in the file"

# Bytes. No frame that is decoded is longer. A damaged map can speak of longer records:
# their checksum is computed piece by piece, and those without one are taken for none.
_LONGEST = 64 * 1024 * 1024
# Bytes of a data file that are searched at once; a frame of up to half of it is found.
_WINDOW = 64 * 1024 * 1024


class DataFile:
    """The data file of one chunk of a damaged directory; it may be missing."""

    def __init__(self, store: Store, number: int, progress: Progress) -> None:
        self.store = store
        self.number = number
        self.name = data_name(number)
        self.progress = progress
        self.size = 0
        self.fault = ""
        """Why it cannot be read; empty if it can."""
        # Bytes that may still be read for entries: a crafted map can speak of one frame
        # a million times.
        self._budget = 0
        # The result of `_look_at` for each place: items may share frames.
        self._looked_at: dict[tuple[int, int, int | None], int | None] = {}
        self._unread: dict[tuple[int, int, int | None], str] = {}
        self.unread = UnreadBytes(self._read)
        """What could not be read of what was searched."""
        self._untold = 0

    def open(self) -> None:
        """Find out how long it is, and whether it can be read."""
        try:
            self.size = self.store.size(self.name)
            self.store.read_at(self.name, 0, 0)  # opens it
        except FileNotFoundError:
            self.fault = "its data file is missing"
        except OSError as cause:
            self.fault = why_unread(cause)
        if self.fault:
            self.size = 0
        self._untold = self.size
        self.renew_budget()

    def grow(self) -> None:
        """Find out how long it is by now: others may append to it."""
        if self.fault:
            return
        with suppress(OSError):  # that is told where it is read
            size = max(self.size, self.store.size(self.name))
            self._untold += size - self.size
            self.size = size
            self.renew_budget()

    def renew_budget(self) -> None:
        """Allow that every byte is read twice more, and forget what was found."""
        self._budget = 2 * self.size
        self._looked_at.clear()  # or the results of all files would be kept
        self._unread.clear()

    def frame_at(self, loc: int, num_bytes: int, expected: int | None) -> int | None:
        """Give the checksum of a frame if it is what was stored, else None.

        It must have the checksum that is expected. Where none was stored, it must be
        decodable.
        """
        place = loc, num_bytes, expected
        if place not in self._looked_at:
            self._looked_at[place] = self._look_at(*place)
        return self._looked_at[place]

    def why_not(self, loc: int, num_bytes: int, expected: int | None) -> str:
        """Say why a frame that was just looked at is not what was stored."""
        return self._unread.get((loc, num_bytes, expected), DAMAGED)

    def tell(self, *, frames: int = 0, num_bytes: int = 0) -> None:
        """Tell the progress what was read, but no more bytes than the file has."""
        num_bytes = min(num_bytes, self._untold)
        self._untold -= num_bytes
        self.progress(frames=frames, num_bytes=num_bytes)

    def _look_at(self, loc: int, num_bytes: int, expected: int | None) -> int | None:
        if loc < 0 or num_bytes < 4 or loc + num_bytes > self.size:
            return None
        is_long = num_bytes > _LONGEST
        if is_long and expected is None:
            return None
        self._budget -= num_bytes
        if self._budget < 0:
            return None
        try:
            if is_long:
                crc32 = self._crc32_in_pieces(loc, num_bytes)
                # Beginning and end are enough to tell whether it is a JPEG.
                jpeg = self._read(loc, _LONGEST - 2)
                jpeg += self._read(loc + num_bytes - 2, 2)
            else:
                jpeg = self._read(loc, num_bytes)
                crc32 = crc32_of(jpeg)
        except OSError as cause:
            self._unread[loc, num_bytes, expected] = why_unread_there(cause)
            return None
        try:
            if expected is None:
                decode_frame(jpeg)
            check_jpeg(jpeg)
        except CorruptFrameError:
            return None
        return crc32 if expected is None or crc32 == expected else None

    def _crc32_in_pieces(self, loc: int, num_bytes: int) -> int:
        """Compute the checksum of a record that is too long to be read at once."""
        crc32 = 0
        for start in range(0, num_bytes, _LONGEST):
            length = min(_LONGEST, num_bytes - start)
            crc32 = crc32_of(self._read(loc + start, length), crc32)
        return crc32

    def is_zero(self, start: int, stop: int) -> bool:
        """Tell whether all bytes of a span are zero, as far as the file has them.

        Of those that cannot be read nobody knows.
        """
        for offset in range(start, min(stop, self.size), _LONGEST):
            length = min(_LONGEST, stop - offset, self.size - offset)
            try:
                if self._read(offset, length).count(0) < length:
                    return False
            except OSError:
                return False
        return True

    def search(
        self,
        start: int,
        stop: int,
        take: Callable[[int, bytes], bool],
        *,
        alignment: int = ALIGNMENT,
    ) -> None:
        """Find JPEGs by their markers, in windows that overlap by half.

        One of which a part cannot be read is none: the decoder may take what is there
        in its place.

        Parameters
        ----------
        start, stop : int
            Where to look.
        take : callable
            Gets offset and bytes of each. Gives False where they are no frame: then
            they are searched for frames, too.
        alignment : int, keyword-only
            Offsets of frames are multiples of this.
        """
        base = start - start % ALIGNMENT
        position = start
        while base < stop:
            length = min(_WINDOW, stop - base)
            last = base + length == stop
            window = self.unread.read(base, base + length)
            finder = JpegFinder(window, alignment)
            limit = length if last else length // 2
            at = position - base
            while at < limit and (found := finder.find(at, limit)) is not None:
                jpeg = finder.data[found.start : found.stop]
                is_torn = self.unread.between(base + found.start, base + found.stop)
                is_one = not is_torn and take(base + found.start, jpeg)
                at = found.stop if is_one else found.start + 1
            self.tell(num_bytes=limit)
            position = base + max(at, limit)
            base = stop if last else base + limit

    def _read(self, offset: int, length: int) -> bytes:
        return self.store.read_at(self.name, offset, length)
