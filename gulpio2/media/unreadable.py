"""Why OpenCV reads nothing of an image that other programs show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gulpio2.media.tiff import compression_of

if TYPE_CHECKING:
    from gulpio2.format.jpeg_outline import JpegOutline

__all__ = ["why_unreadable"]

# Of libtiff, by the number in the file: some builds of OpenCV have them.
_COMPRESSIONS = {34925: "LZMA", 50000: "ZSTD", 50001: "WebP"}


def why_unreadable(data: bytes, outline: JpegOutline | None) -> str:
    """Give a clause about a file that nothing was made of; empty where none is known.

    Parameters
    ----------
    data : bytes
        The file.
    outline : JpegOutline or None
        Of a JPEG.
    """
    if outline is not None and outline.precision != 8:
        return (
            f"it is a JPEG of {outline.precision} bits, and only those of 8 are read; "
            "convert it to PNG"
        )
    name = _COMPRESSIONS.get(compression_of(data))
    if name is not None:
        return (
            f"it is a TIFF with the compression {name}, which the OpenCV here has not; "
            "write it with another one, as LZW or Deflate"
        )
    return ""
