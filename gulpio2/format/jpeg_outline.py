"""What a JPEG file is, by its markers: nothing is decoded."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from gulpio2.errors import AdapterContractError
from gulpio2.format.jpeg_markers import (
    COMMON,
    EOI,
    SEQUENTIAL,
    SOI,
    START_OF_FRAME,
    START_OF_SCAN,
    end_of_far_marker,
    end_of_next_marker,
)
from gulpio2.format.jpeg_remarks import Remarks
from gulpio2.format.jpeg_tables import Tables, goes_on

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["JpegOutline", "outline_jpeg"]

# Of a frame header, behind its length: precision, rows, columns, components.
_FRAME = struct.Struct(">BHHB")
_MARKERS = frozenset((*range(0x01, 0xD0), *range(0xD8, 0xFF)))
_WITHOUT_LENGTH = (0x01, SOI[1])
# Scans of an image at most. A progressive one can have any number of them, each of
# some hundred bytes and for all of its pixels; ten are usual, and encoders that try
# what is smallest come to some dozen.
_MOST_SCANS = 500
# The first of the segments that programs add to what is in T.81.
_APP0 = 0xE0
# The frame header of ITU-T T.87.
_JPEG_LS = 0xF7
_FILLING = b"\0\xff"


class JpegOutline(NamedTuple):
    """The structure of a JPEG."""

    height: int
    """Rows."""
    width: int
    """Columns."""
    num_components: int
    """1 for grey, 3 for YCbCr or RGB, 4 for CMYK."""
    precision: int
    """Bits of a value."""
    common: bool
    """Of a kind that every decoder reads; not lossless, arithmetic and so on."""
    end: int
    """Bytes up to the end of the image, its marker included."""
    remarks: tuple[tuple[int, bytes], ...] = ()
    """Bytes that the codec takes exception to, as offsets and what is to be there."""
    zeros: tuple[tuple[int, int], ...] = ()
    """Runs of zeros before markers, as offsets from and to; those before the end may
    be the last bits of the image, or what a camera fills its buffer with."""

    @property
    def storable(self) -> bool:
        """Whether its bytes can be a frame: grey or colour, eight bits, common."""
        return self.common and self.precision == 8 and self.num_components in (1, 3)


class _Head(NamedTuple):
    """What comes before the only scan of an image."""

    data: bytes
    """All of it."""
    outline: JpegOutline
    """Of the image that it was of."""
    ending: str
    """See `Tables.ending`."""


_LONGEST_HEAD = 1 << 13  # bytes; what a camera adds is of one image alone
# Bytes of data, from which on `end_of_far_marker` is quicker.
_FAR = 1 << 12
# The last one: most images of a dataset begin as the one before them, and walking
# through that takes longer than all the rest of an outline.
_RECENT: list[_Head] = []


def outline_jpeg(data: bytes) -> JpegOutline:
    """Walk through the markers of a JPEG.

    Parameters
    ----------
    data : bytes
        A file; there may be more after the image, such as zeros, a second image or
        what a camera adds.

    Raises
    ------
    AdapterContractError
        A ``ValueError``: JPEG-LS, which is of other data.
    ValueError
        Not a JPEG, one that is cut off, one with a scan of which tables or components
        are missing, or of so many scans that nobody could decode it in time; the
        message says where.

    Notes
    -----
    The end is found by walking, not from the back of the file: a preview in the header
    has an end of its own, and so may have what follows the image.
    """
    recent = _RECENT[:]
    if recent and (known := _of_same_head(data, *recent)) is not None:
        return known
    return _walked(data)


def _of_same_head(data: bytes, head: _Head) -> JpegOutline | None:
    """Outline an image of a head that is known; None where it is of another kind."""
    start = len(head.data)
    if not data.startswith(head.data):
        return None
    # Its data go to the end of the file, mostly.
    is_near = len(data) - start < _FAR
    end = (end_of_next_marker if is_near else end_of_far_marker)(data, start)
    if end is None or data[end - 1] != EOI[1]:
        return None
    zeros = _zeros_before(data, start, end - 2, lambda: head.ending)
    return head.outline._replace(end=end, zeros=tuple(zeros))


def _walked(data: bytes) -> JpegOutline:
    if data[:2] != SOI:
        raise ValueError("it does not begin as a JPEG does")
    header, kind, num_scans = b"", 0, 0
    data_start = 0  # of the first scan
    remarks, tables, zeros = Remarks(data), Tables(data), []
    position, size = 2, len(data)
    while True:
        searched_from = position
        # In a header the next marker is where the segment before it ends.
        if (
            position + 1 < size
            and data[position] == 0xFF
            and data[position + 1] in _MARKERS
        ):
            marker = data[position + 1]
            position += 2
        else:
            behind = end_of_next_marker(data, position)
            if behind is None:
                raise ValueError(
                    f"it is cut off: no end of the image in its {size} bytes"
                )
            zeros += _zeros_before(data, position, behind - 2, tables.ending)
            position = behind
            marker = data[position - 1]
        if marker == EOI[1]:
            break
        if marker in _WITHOUT_LENGTH:
            continue
        length = int.from_bytes(data[position : position + 2], "big")
        if length < 2 or position + length > size:
            raise ValueError(f"it is cut off or damaged at byte {position}")
        if marker == _JPEG_LS and not header:
            raise AdapterContractError(
                "it is JPEG-LS, which is not read here; convert it to PNG"
            )
        if marker in START_OF_FRAME:
            header, kind = data[position + 2 : position + 8], marker
            if len(header) < 6:
                raise ValueError(f"it is cut off or damaged at byte {position}")
            tables.frame(marker, position, length)
        elif marker == START_OF_SCAN:
            num_scans += 1
            if num_scans > _MOST_SCANS:
                raise ValueError(
                    f"it has more than {_MOST_SCANS} scans, which take very long"
                )
            tables.scan(position, length)
            data_start = data_start or position + length
            if kind in SEQUENTIAL:
                remarks.sequential_scan(position, length)
        elif marker >= _APP0:
            remarks.segment(marker, position, length, num_scans)
        else:
            tables.tables(marker, position, length)
        position += length
    if not header:
        raise ValueError("it has no image")
    precision, height, width, num_components = _FRAME.unpack(header)
    if not (height and width):  # no decoder here takes a height that comes later
        raise ValueError(f"it is {width}x{height} pixels large by its header")
    outline = JpegOutline(
        height,
        width,
        num_components,
        precision,
        kind in COMMON,
        position,
        remarks.all(num_components),
        tuple(zeros),
    )
    is_one_part = searched_from == data_start <= _LONGEST_HEAD
    if is_one_part and all(start >= data_start for start, _ in zeros):
        _RECENT[:] = [_Head(data[:data_start], outline, tables.ending())]
    return outline


def _zeros_before(
    data: bytes, start: int, end: int, ending: Callable[[], str]
) -> list[tuple[int, int]]:
    """Give the run of zeros at the end of a part, before what fills it; or none.

    Nor where it is one that is known to be a part of the data: most are.
    """
    if data[end - 1] not in _FILLING:
        return []
    part = data[start:end].rstrip(b"\xff")
    values = part.rstrip(b"\0")
    # The first one after an FF says that this is a value.
    kept = len(values) + values.endswith(b"\xff")
    num_zeros = len(part) - kept
    if not num_zeros or (num_zeros == 1 and goes_on(part[:kept], ending())):
        return []
    return [(start + kept, start + len(part))]
