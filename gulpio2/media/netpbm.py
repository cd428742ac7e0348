"""Reading PGM, PPM and PAM, whose values may reach up to any number.

OpenCV leaves values as they are where they reach to 100 or 1023, and takes PAM for BGR.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from gulpio2.codecs.jpeg import MAX_PIXELS
from gulpio2.codecs.pixels import to_eight_bits

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["decode_netpbm", "header_of"]

# What is between the numbers of a header, once or more, and one of them. As a single
# pattern they would take a hundred times the memory of a file that is all comments.
_GAP, _NUMBER = re.compile(rb"\s+|#[^\n]*\n"), re.compile(rb"0*\d{1,9}")
# Comments among the values of a text: more take as much memory.
_MOST_COMMENTS = 100_000
_PAM_END = re.compile(rb"^ENDHDR[ \t\r]*\n", re.MULTILINE)
_PAM_LINE = re.compile(rb"^(WIDTH|HEIGHT|DEPTH|MAXVAL)[ \t]+(0*\d{1,9})", re.MULTILINE)


def header_of(data: bytes, kinds: bytes, count: int) -> tuple[int, list[int], int]:
    """Read the header of an image of Netpbm, as far as it is a list of numbers.

    Parameters
    ----------
    data : bytes
        Any file.
    kinds : bytes
        Digits of those that are looked for.
    count : int
        How many numbers there are.

    Returns
    -------
    kind : int
        0 where it is none of them.
    numbers : list of int
        All of them, or none.
    end : int
        Where the header ends, with the space behind it.
    """
    if data[:1] != b"P" or not (data[1:2] and data[1:2] in kinds):
        return 0, [], 0
    numbers: list[int] = []
    place = 2
    while len(numbers) < count:
        start = place
        while gap := _GAP.match(data, place):
            place = gap.end()
        number = _NUMBER.match(data, place)
        if number is None or place == start:
            return 0, [], 0
        numbers.append(int(number[0]))
        place = number.end()
    if not data[place : place + 1].isspace():
        return 0, [], 0
    return int(data[1:2]), numbers, place + 1


def decode_netpbm(data: bytes) -> npt.NDArray[np.uint8] | None:
    """Decode an image of Netpbm that is no bitmap.

    Parameters
    ----------
    data : bytes
        A file.

    Returns
    -------
    numpy.ndarray or None
        uint8: ``(H, W, 3)`` RGB, or ``(H, W)`` grey, scaled to [0, 255] and without
        transparency; None where it is none of PGM, PPM and PAM.

    Raises
    ------
    ValueError
        It is a damaged one.

    Examples
    --------
    >>> decode_netpbm(b"P5 2 1 100 " + bytes([0, 100])).tolist()
    [[0, 255]]
    """
    if data[:3] == b"P7\n":
        end = _PAM_END.search(data)
        lines = _PAM_LINE.finditer(data, 0, end.start()) if end else ()
        facts = {line[1]: int(line[2]) for line in lines}
        if end is None or len(facts) < 4:
            raise ValueError("its header is damaged")
        width, height = facts[b"WIDTH"], facts[b"HEIGHT"]
        depth, most = facts[b"DEPTH"], facts[b"MAXVAL"]
        start, is_text = end.end(), False
    else:
        if data[:1] != b"P" or data[1:2] not in (b"2", b"3", b"5", b"6"):
            return None
        kind, numbers, start = header_of(data, b"2356", 3)
        if not kind:  # OpenCV would make something of it
            raise ValueError("its header is damaged")
        width, height, most = numbers
        depth, is_text = 3 if kind in (3, 6) else 1, kind < 5
    if not (width and height and 1 <= depth <= 4 and 1 <= most <= 65535):
        raise ValueError("its header is damaged")
    if width * height > MAX_PIXELS:
        raise ValueError(
            f"it has {width}x{height} pixels, above the limit of {MAX_PIXELS}"
        )
    count = width * height * depth
    values = _text(data, start, count) if is_text else _binary(data, start, count, most)
    shape = (height, width) if depth == 1 else (height, width, depth)
    pixels = values.reshape(shape)
    if depth > 1:
        pixels = pixels[..., 0] if depth == 2 else pixels[..., :3]
    if most == 255 and pixels.dtype == np.uint8:
        return np.array(pixels, np.uint8)  # not the bytes of the file
    return to_eight_bits(pixels, most)


def _text(data: bytes, start: int, count: int) -> npt.NDArray[np.uint32]:
    if data.count(b"#", start) > _MOST_COMMENTS:
        raise ValueError(f"it has more than {_MOST_COMMENTS:,} comments")
    words = re.sub(rb"#[^\n]*", b"", data[start:]).split(None, count)[:count]
    if len(words) < count:
        raise ValueError(f"it is cut off: it has {len(words)} of {count} values")
    return np.array([int(word) for word in words]).clip(0, 65535).astype(np.uint32)


def _binary(data: bytes, start: int, count: int, most: int) -> npt.NDArray[np.uint8]:
    dtype = np.dtype(np.uint8 if most < 256 else ">u2")
    there = (len(data) - start) // dtype.itemsize
    if there < count:
        raise ValueError(f"it is cut off: it has {there} of {count} values")
    return np.frombuffer(data, dtype, count, start)
