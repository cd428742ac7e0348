"""Image files as the frames of an item."""

from __future__ import annotations

import os
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gulpio2.arguments import whole_number
from gulpio2.codecs.jpeg import read_header
from gulpio2.codecs.whole_jpeg import WholeJpeg, without_padding, without_remarks
from gulpio2.errors import (
    AdapterContractError,
    CorruptFrameError,
    DamagedImageError,
    with_article,
)
from gulpio2.format.wording import counted
from gulpio2.media.image_files import decode_image, read_file, read_outline
from gulpio2.media.indexing import FramesByIndex
from gulpio2.media.resize import resize_pixels, resized_shape
from gulpio2.types import StoredFrame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from fractions import Fraction

    import numpy as np
    import numpy.typing as npt

    from gulpio2.format.jpeg_outline import JpegOutline
    from gulpio2.types import JsonValue, StrPath

__all__ = ["ImageFrames"]


class ImageFrames(FramesByIndex):
    """Image files as frames, read one at a time as they are asked for.

    Parameters
    ----------
    paths : iterable of str or path object
        One file per frame, in order.
    frame_size : int
        Length of the short edge in pixels; below 1 for no change.
    pts : iterable of int, optional
        When each image is shown, in ticks. Default: images have no times.
    time_base : Fraction, optional
        Seconds of a tick.
    read : callable, optional
        Gives the bytes of one of `paths`, which may be any texts then, as the names of
        files in an archive. Default: of a file.

    Raises
    ------
    TypeError
        `paths` is a single path.
    ValueError
        `pts` are not as many as `paths`, or are given without `time_base`.

    Notes
    -----
    Orientation in EXIF is not applied, transparency is dropped, and images of one item
    may differ in size and colour, all as in GulpIO2 0.0.4. An animated image is its
    first picture. Where `frame_size` is an eighth of a JPEG's or less, the codec may
    reduce it while it decodes, see `gulpio2.media.image_files.decode_image`.

    Examples
    --------
    >>> frames = ImageFrames(["a.jpg", "b.png"], frame_size=128)
    >>> frames, len(frames)
    (ImageFrames(2 files, frame_size=128), 2)
    """

    def __init__(
        self,
        paths: Iterable[StrPath],
        *,
        frame_size: int = -1,
        pts: Iterable[int] | None = None,
        time_base: Fraction | None = None,
        read: Callable[[str], bytes | bytearray | memoryview] | None = None,
    ) -> None:
        if isinstance(paths, (str, bytes, os.PathLike)):
            raise TypeError(
                f"paths is {paths!r}, a single one; give a list: a file for each frame"
            )
        self._names = tuple(os.fspath(path) for path in paths)
        self.frame_size = whole_number("frame_size", frame_size)
        self._pts = None if pts is None else tuple(pts)
        self._time_base = time_base
        self._read = partial(_bytes_of, read) if read else read_file
        if self._pts is None:
            return
        if len(self._pts) != len(self._names):
            raise ValueError(
                f"pts are {counted(len(self._pts), 'time')} for "
                f"{counted(len(self._names), 'file')}; give one for each"
            )
        if time_base is None:
            raise ValueError(
                "pts are ticks of which nothing says how long they are; give "
                "time_base, the seconds of one"
            )

    def __repr__(self) -> str:
        """Show how many files there are, and the size."""
        size = f", frame_size={self.frame_size}" if self.frame_size > 0 else ""
        return f"ImageFrames({counted(len(self._names), 'file')}{size})"

    def __len__(self) -> int:
        """Count the files."""
        return len(self._names)

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files, one per frame."""
        return tuple(map(Path, self._names))

    def __iter__(self) -> Iterator[npt.NDArray[np.uint8]]:
        """Yield each image as uint8, ``(H, W, 3)`` RGB or ``(H, W)`` grey.

        Raises
        ------
        ImageNotFoundError
            A file is missing, is no image, or a damaged one, such as one cut off
            (`DamagedImageError`).
        SourceReadError
            A file is too large, or cannot be read.
        """
        for path in self._names:
            data = self._read(path)
            yield self._decoded(data, path, read_outline(data, path))

    def stored(self) -> Iterator[StoredFrame]:
        """Yield each image in the form in which it is best stored.

        Yields
        ------
        StoredFrame
            The bytes of a JPEG as they are in the file, where it needs no resizing and
            is one that every decoder reads: grey, YCbCr or RGB, 8 bits, baseline or
            progressive. What follows the end of the image in the file is left out, and
            numbers of its header that no decoder needs, such as the revision of JFIF,
            become usual ones where they are none; so does the name of a colour profile
            that is none, and zeros behind its data are left out where the codec could
            not read them. Everything else, CMYK too, as an array.

        Raises
        ------
        ImageNotFoundError
            A file is missing, is no image, or a damaged one, such as one cut off
            (`DamagedImageError`).
        SourceReadError
            A file is too large, or cannot be read.

        Notes
        -----
        The bytes are checked by their structure, from the first marker to the last;
        they are not decoded, so damage inside of the image is stored as it is. Those
        with zeros behind a scan are, to learn whether they belong to it.
        """
        for path, pts in zip(self._names, self._pts or repeat(None), strict=False):
            data = self._read(path)
            outline = read_outline(data, path)
            data = without_remarks(data, outline)
            if outline is not None and self._is_kept(data, outline):
                yield StoredFrame(self._kept(data, path, outline), pts)
            else:
                yield StoredFrame(self._decoded(data, path, outline), pts)

    @property
    def time_base(self) -> Fraction | None:
        """Seconds per tick, as it was given; None where images have no times."""
        return self._time_base

    def source_info(self) -> dict[str, JsonValue]:
        """Give nothing: the facts of a file belong to one frame, not to the item."""
        return {}

    def _is_kept(self, data: bytes, outline: JpegOutline) -> bool:
        """Tell whether a JPEG can be stored byte for byte."""
        size = (outline.height, outline.width)
        if not outline.storable or resized_shape(*size, self.frame_size) != size:
            return False
        try:
            read_header(data)
        except CorruptFrameError:
            return False
        return True

    def _kept(self, data: bytes, path: str, outline: JpegOutline) -> WholeJpeg:
        """Give what is stored of a JPEG that can be."""
        data = data if outline.end == len(data) else data[: outline.end]
        try:
            return WholeJpeg(without_padding(data, outline))
        except ValueError as cause:
            raise DamagedImageError(
                f"Image {path!r} is a damaged JPEG: {cause}. Get a whole copy of it, "
                "or leave it out."
            ) from cause

    def _decoded(
        self, data: bytes, path: str, outline: JpegOutline | None
    ) -> npt.NDArray[np.uint8]:
        """Decode an image, no larger than it has to be, and resize it."""
        pixels = decode_image(data, path, outline, short_edge=self.frame_size)
        height, width = pixels.shape[:2]
        return resize_pixels(pixels, resized_shape(height, width, self.frame_size))


def _bytes_of(read: Callable[[str], Any], path: str) -> bytes:
    data = read(path)
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise AdapterContractError(
            f"read gives {with_article(type(data).__name__)} for {path!r}; it must "
            "give the bytes of the image"
        )
    return bytes(data)
