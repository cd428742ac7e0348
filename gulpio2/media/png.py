"""What of a PNG OpenCV would read otherwise than other programs, or without bounds.

It gives the first picture of an animation, which need not be the one that the file
shows where nothing is animated. And it sets aside as much memory as a part of the file
says that it has, up to two gigabytes of a file of a few bytes.
"""

from __future__ import annotations

from gulpio2.format.checksum import crc32_of

__all__ = ["PNG", "without_animation"]

PNG = b"\x89PNG\r\n\x1a\n"
"""How a file begins."""
# Of a chunk: length and kind before its data, and a checksum behind.
_HEAD, _CHECKSUM = 8, 4


def without_animation(data: bytes) -> bytes:
    """Give a PNG such that it is its picture, which an animation need not begin with.

    Parameters
    ----------
    data : bytes
        Any file; what is no animated PNG comes back.

    Raises
    ------
    ValueError
        It is a PNG of which a chunk reaches beyond its end, or whose pixels are not
        those of their checksums: libpng prints that, and no name with it.
    """
    if data[:8] != PNG:
        return data
    view = memoryview(data)
    place, kind, animated = len(PNG), b"", slice(0)
    while kind != b"IEND" and place < len(data):
        kind = data[place + 4 : place + _HEAD]
        length = int.from_bytes(data[place : place + 4], "big")
        end = place + _HEAD + length + _CHECKSUM
        if end > len(data):
            raise ValueError(
                f"it is a damaged PNG: it is cut off at byte {len(data)}, or the "
                f"length at byte {place} is wrong"
            )
        is_whole = kind != b"IDAT" or crc32_of(view[place + 4 : end - _CHECKSUM]) == (
            int.from_bytes(data[end - _CHECKSUM : end], "big")
        )
        if not is_whole:
            raise ValueError(
                f"it is a damaged PNG: the checksum of what is at byte {place} is wrong"
            )
        if kind == b"acTL":  # without it, what belongs to the animation counts nothing
            animated = slice(place, end)
        place = end
    return data[: animated.start] + data[animated.stop :] if animated.start else data
