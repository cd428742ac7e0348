"""The elements of EBML, which Matroska is made of, and the frames in its blocks."""

from __future__ import annotations

from typing import IO, NamedTuple

__all__ = [
    "LACE_HEADER",
    "LACING",
    "LONGEST_NUMBER",
    "Element",
    "Inside",
    "are_laces_inside",
    "element_at",
]

# RFC 8794 and RFC 9559.
LONGEST_NUMBER = 8  # bytes
_LONGEST_HEADER = 12  # bytes: an id of 4, a size of 8
# Read with the header of a block: the number of its track, its time, its flags.
_LONGEST_BLOCK_HEADER = 8 + 2 + 1
LACING = 0x06  # bits of the flags
_XIPH, _FIXED = 0x02, 0x04
LACE_HEADER = 4096  # bytes, by far enough for the sizes of 256 small frames


class Element(NamedTuple):
    """Header of an EBML element."""

    id_: int
    position: int
    start: int
    """Where its content begins."""
    end: int | None
    """None where the size is unknown: up to the next element that cannot be inside."""
    head: bytes
    """The first bytes behind its header."""


class Inside(NamedTuple):
    """Header of an element that ends inside of the one that holds it."""

    id_: int
    position: int
    start: int
    end: int
    head: bytes


def element_at(file: IO[bytes], position: int) -> Element | None:
    """Read the header of an element; None where there is none."""
    try:
        file.seek(position)
    except (OSError, OverflowError):  # beyond what a file system has
        return None
    header = file.read(_LONGEST_HEADER + _LONGEST_BLOCK_HEADER)
    # Lengths are told by the zeros at the beginning.
    id_length = 9 - header[0].bit_length() if header else 9
    if id_length > 4 or id_length >= len(header):
        return None
    size_length = 9 - header[id_length].bit_length()
    header_length = id_length + size_length
    if size_length > 8 or header_length > len(header):
        return None
    id_ = header[0] if id_length == 1 else int.from_bytes(header[:id_length], "big")
    mask = (1 << (7 * size_length)) - 1
    length = int.from_bytes(header[id_length:header_length], "big") & mask
    start = position + header_length
    end = None if length == mask else start + length
    return Element(id_, position, start, end, header[header_length:])


def are_laces_inside(lacing: int, data: bytes, length: int) -> bool:
    """Tell whether the frames of a block, by the sizes it tells, are inside of it.

    Parameters
    ----------
    lacing : int
        How the sizes are told.
    data : bytes
        What is behind the flags, or the beginning of it.
    length : int
        Of all of that, in bytes.
    """
    if not data:
        return False
    others, at, total, size = data[0], 1, 0, 0
    if lacing == _FIXED:
        return (length - 1) % (others + 1) == 0
    for index in range(others):
        if lacing == _XIPH:
            size = 0
            while data[at : at + 1] == b"\xff":
                size += 255
                at += 1
            size += data[at] if at < len(data) else 0
            at += 1
        else:
            count = 9 - data[at].bit_length() if at < len(data) else 9
            if count > LONGEST_NUMBER:
                return at >= len(data) == LACE_HEADER
            value = int.from_bytes(data[at : at + count], "big")
            value &= (1 << (7 * count)) - 1
            # The first, and then by how much they differ.
            size = size + value - (1 << (7 * count - 1)) + 1 if index else value
            at += count
        total += size
        if size < 0:
            return False
    return at + total <= length
