"""A JPEG of another program, such that the codec finds nothing to say of it.

Readers take all that it says for damage, and every other program shows such an image.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import simplejpeg

from gulpio2.errors import CorruptFrameError
from gulpio2.format.jpeg_outline import outline_jpeg

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gulpio2.format.jpeg_outline import JpegOutline

__all__ = ["EXTRANEOUS", "WholeJpeg", "mended", "without_padding", "without_remarks"]

EXTRANEOUS = "extraneous bytes before marker"
"""What the codec says of bytes behind entropy-coded data."""
_COLOURS = {1: "GRAY", 3: "RGB", 4: "CMYK"}
# Zeros that may belong to the last bits of an image: of a picture of one colour in
# 4:2:0, the last unit has half a dozen blocks that are of no bits but zeros.
_MOST_OF_DATA = 8


class WholeJpeg(bytes):
    """The bytes of a JPEG that were looked at already: they are stored as they are."""

    __slots__ = ()


def mended(data: bytes, *, max_pixels: int) -> bytes:
    """Look at all markers of a JPEG, and give what can be stored of it.

    Parameters
    ----------
    data : bytes
        One JPEG.
    max_pixels : int
        One that declares more is not decoded to learn what zeros behind it are.

    Returns
    -------
    bytes
        As they are, but for what the codec alone takes exception to.

    Raises
    ------
    CorruptFrameError
        Its markers do not lead to an end, or the codec could not read it.
    """
    try:
        outline = outline_jpeg(data)
        data = without_remarks(data, outline)
        if outline.height * outline.width <= max_pixels:
            data = without_padding(data, outline)
    except ValueError as cause:
        raise CorruptFrameError(f"not a readable JPEG: {cause}") from cause
    if outline.precision != 8:
        raise CorruptFrameError(
            f"not a readable JPEG: its values have {outline.precision} bits, and only "
            "those of 8 are read"
        )
    return data


def without_remarks(data: bytes, outline: JpegOutline | None) -> bytes:
    """Give a JPEG such that the codec takes no exception to numbers that nobody needs.

    Parameters
    ----------
    data : bytes
        Any file.
    outline : JpegOutline or None
        Of these bytes; None for no JPEG.
    """
    if outline is None or not outline.remarks:
        return data
    changed = bytearray(data)
    for at, right in outline.remarks:
        changed[at : at + len(right)] = right
    return bytes(changed)


def without_padding(data: bytes, outline: JpegOutline) -> bytes:
    """Give a JPEG without the zeros that some cameras write behind its scans.

    Parameters
    ----------
    data : bytes
        A JPEG.
    outline : JpegOutline
        Of these bytes.

    Returns
    -------
    bytes
        As they are where the codec finds nothing to say of the zeros.

    Raises
    ------
    ValueError
        The codec could not read it with these zeros, nor without them.

    Notes
    -----
    Entropy-coded data may end in zeros themselves, as those of one image in six of some
    videos do, so where there are some, the image is decoded: the codec says of a byte
    too many as of one that is missing. Files without any are not looked at.
    """
    if not outline.zeros or not outline.common:
        return data
    colours = _COLOURS.get(outline.num_components, "RGB")
    remark = _remark(data, colours)
    if EXTRANEOUS not in remark:
        return data
    for changed in _candidates(data, outline.zeros):
        if not _remark(changed, colours):
            return changed
    raise ValueError(f"there is something behind the data of its image: {remark}")


def _remark(data: bytes, colours: str) -> str:
    """Give what the codec says of an image; nothing of a sound one.

    At an eighth of the size it reads all of the data as well, in less than half of the
    time.
    """
    try:
        simplejpeg.decode_jpeg(
            data,
            colours,
            fastdct=True,
            fastupsample=True,
            min_height=1,
            min_width=1,
            min_factor=8,
        )
    except ValueError as cause:
        return str(cause)
    return ""


def _candidates(data: bytes, runs: tuple[tuple[int, int], ...]) -> Iterator[bytes]:
    """Give what it may be meant to be, the likeliest first."""
    for some in dict.fromkeys((runs[-1:], runs)):
        longest = max(end - start for start, end in some)
        for kept in range(min(longest, _MOST_OF_DATA)):
            yield _without(data, ((min(start + kept, end), end) for start, end in some))


def _without(data: bytes, spans: Iterable[tuple[int, int]]) -> bytes:
    parts, done = [], 0
    for start, end in spans:
        parts.append(data[done:start])
        done = end
    return b"".join([*parts, data[done:]])
