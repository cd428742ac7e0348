"""Frames of one size, decoded into memory: whole, smaller, a part, or grey.

`DecodeOptions` says what is wanted; a `FrameDecoder` is made of the first frame of a
clip and then decodes every frame that begins with the same header without reading
that header again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import simplejpeg

from gulpio2.codecs.first_frame import TAIL_BYTES, look_at_first
from gulpio2.codecs.jpeg import read_header
from gulpio2.codecs.options import DecodeOptions
from gulpio2.codecs.pixels import cmyk_to_rgb
from gulpio2.codecs.scratch import scratch_frame
from gulpio2.codecs.whole_jpeg import EXTRANEOUS
from gulpio2.errors import CorruptFrameError
from gulpio2.format.jpeg_markers import EOI

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from gulpio2.codecs.first_frame import FirstFrame
    from gulpio2.codecs.options import Crop

__all__ = ["FrameDecoder"]

# Columns. In a frame of fewer, 3/8 of them may be as many as 1/2, and which of the two
# the codec takes depends on the rows, so that these are left.
_NARROW = 8


class FrameDecoder:
    """Decodes frames that look like a first one.

    Parameters
    ----------
    first : bytes
        A JPEG.
    options : DecodeOptions
        What to make of each.

    Attributes
    ----------
    shape : tuple of int
        ``(H, W, C)`` of a decoded frame.

    Raises
    ------
    CorruptFrameError
        `first` is no JPEG, or one above `MAX_PIXELS`.
    ValueError
        The crop reaches out of the frame.

    Notes
    -----
    Safe from many threads at once. Rows below a crop are not decoded where the JPEG is
    sequential and has one scan, as all are that this package writes, and damage there
    is for checksums to tell; rows above it are, since each depends on those before.
    """

    def __init__(self, first: bytes, options: DecodeOptions) -> None:
        self._set(look_at_first(first), options)

    def with_options(self, options: DecodeOptions) -> FrameDecoder:
        """Give a decoder of the same frames, without looking at the first one again.

        Raises
        ------
        ValueError
            The crop reaches out of the frame.
        """
        other = object.__new__(type(self))
        other._set(self._first, options)
        return other

    def _set(self, first: FirstFrame, options: DecodeOptions) -> None:
        self._first = first
        self.header = header = first.header
        self._prefix = first.prefix
        as_stored = options.colorspace == "source"
        # Axes in which a frame has to be like the first.
        self._num_alike = 3 if as_stored else 2
        grey = header.colorspace == "Gray"
        self._cmyk = header.colorspace in ("CMYK", "YCCK")
        as_grey = options.colorspace == "gray" or (grey and as_stored)
        self._as_grey = as_grey
        self._mode = "CMYK" if self._cmyk else "GRAY" if as_grey else "RGB"
        channels = 1 if as_grey else 3
        scale = options.scale_for(header)
        self._options = DecodeOptions(
            scale, None, options.crop, "gray" if as_grey else "rgb"
        )
        height, width = -(-header.height // scale), -(-header.width // scale)
        # 0: the codec is not asked to scale, and saves itself the search.
        self._min_size = (height, width) if scale > 1 else (0, 0)
        self._full = (height, width, channels)
        self._region: tuple[slice, slice] | None = None
        self._short_prefix = b""
        if options.crop is not None:
            rows, columns = self._set_crop(options.crop, scale)
            height, width = rows.stop - rows.start, columns.stop - columns.start
        self.shape = (height, width, channels)
        # What is like the first is decoded by one call of the codec.
        self._is_plain = bool(self._prefix) and options.crop is None and not self._cmyk

    def _set_crop(self, crop: Crop, scale: int) -> tuple[slice, slice]:
        """Note the region, and how to leave out the rows below it."""
        top, left, num_rows, num_columns = crop
        header, frame_header = self._first.header, self._first.at
        bottom, right = top + num_rows, left + num_columns
        if bottom > header.height or right > header.width:
            raise ValueError(
                f"crop {crop} reaches out of a frame of {header.height} rows and "
                f"{header.width} columns"
            )
        rows = slice(top // scale, -(-bottom // scale))
        columns = slice(left // scale, -(-right // scale))
        needed = min(rows.stop * scale, header.height)
        if (
            frame_header
            and frame_header.height_at
            and needed < header.height
            and (scale == 1 or header.width >= _NARROW)
            and not self._cmyk
        ):
            at = frame_header.height_at
            self._short_prefix = (
                self._prefix[:at] + needed.to_bytes(2, "big") + self._prefix[at + 2 :]
            )
            height = -(-needed // scale)
            self._full = (height, *self._full[1:])
            if scale > 1:
                self._min_size = (height, self._min_size[1])
        self._region = rows, columns
        return rows, columns

    def fits(self, block: bytes | bytearray, start: int) -> bool:
        """Tell whether a frame is known, by its first bytes, to be like the first."""
        return bool(self._prefix) and block.startswith(self._prefix, start)

    def decode(
        self,
        block: bytes | bytearray,
        start: int,
        stop: int,
        out: npt.NDArray[np.uint8],
        *,
        sound: bool = False,
    ) -> None:
        """Decode one frame; as `decode_each`."""
        self.decode_each(block, ((start, stop, out),), sound=sound)

    def decode_each(
        self,
        block: bytes | bytearray,
        frames: Iterable[tuple[int, int, npt.NDArray[np.uint8]]],
        *,
        sound: bool = False,
    ) -> None:
        """Decode frames, one after the other.

        Parameters
        ----------
        block : bytes
            Holds their JPEGs.
        frames : iterable of (start, stop, out)
            The JPEG is in ``block[start:stop]``; `out` is C-contiguous uint8 of the
            size of `shape`. The next one is asked for when a frame is decoded.
        sound : bool, optional
            Each was compared with its checksum before it was given. The codec is
            faster then (`TAIL_BYTES`).

        Raises
        ------
        CorruptFrameError
            Not a JPEG, or a damaged or cut one.
        ValueError
            A frame of another shape than the first.
        """
        # After a decode nothing of this code is in the processor's caches, so that each
        # step for a frame costs several times what it costs in a loop: there are few.
        view, decode, mode = memoryview(block), _decode_jpeg, self._mode
        begins, prefix, is_plain = block.startswith, self._prefix, self._is_plain
        whole, tail = (self._first.whole_header, TAIL_BYTES) if sound else (b"", 0)
        height, width = self._min_size
        for start, stop, out in frames:
            if is_plain and begins(prefix, start):
                end = stop
                if whole and begins(whole, start) and block.endswith(EOI, start, stop):
                    end += tail
                try:
                    # As `_call`, without calling it, and by position: names cost more.
                    decode(view[start:end], mode, True, True, height, width, 1, out)  # noqa: FBT003  # its own order
                except ValueError as cause:
                    if end == stop:
                        raise _damaged(cause) from cause
                    # The frame alone decides: of one that was stored with damage in it,
                    # the quick way may remark on what the slow one does not.
                else:
                    continue
            self._decode_other(block, start, view[start:stop], out)

    def plain_jpegs(
        self,
        block: bytes | bytearray,
        spans: Iterable[tuple[int, int]],
        base: int,
        *,
        sound: bool = False,
    ) -> list[memoryview] | None:
        """Give the bytes of frames, for `decode_plain`.

        Parameters
        ----------
        block : bytes
            Holds their JPEGs.
        spans : iterable of (int, int)
            Offset and length of each.
        base : int
            Offset of the block.
        sound : bool, optional
            As in `decode_each`.

        Returns
        -------
        list of memoryview or None
            None where one takes more than a call of the codec, or may.
        """
        if not self._is_plain:
            return None
        view, prefix = memoryview(block), self._prefix
        whole, tail = (self._first.whole_header, TAIL_BYTES) if sound else (b"", 0)
        jpegs: list[memoryview] = []
        begins, ends, add = block.startswith, block.endswith, jpegs.append
        for offset, length in spans:
            start = offset - base
            stop = start + length
            if not begins(prefix, start):
                return None
            if whole and begins(whole, start) and ends(EOI, start, stop):
                stop += tail
            add(view[start:stop])
        return jpegs

    def decode_plain(
        self, frames: Iterable[tuple[memoryview, npt.NDArray[np.uint8]]]
    ) -> None:
        """Decode frames of which this decoder gave the bytes, see `plain_jpegs`.

        Parameters
        ----------
        frames : iterable of (memoryview, numpy.ndarray)
            The JPEG, and where the pixels are to be, as in `decode_each`.

        Raises
        ------
        CorruptFrameError
            A damaged or cut JPEG.
        """
        decode, mode = _decode_jpeg, self._mode
        height, width = self._min_size
        try:
            for data, out in frames:
                decode(data, mode, True, True, height, width, 1, out)  # noqa: FBT003  # as in `decode_each`
        except ValueError as cause:
            raise _damaged(cause) from cause

    def decode_here(
        self,
        block: bytes | bytearray,
        start: int,
        stop: int,
        memory: npt.NDArray[np.uint8],
        *,
        sound: bool = False,
    ) -> npt.NDArray[np.uint8]:
        """Decode one frame for who wants to look at it once; as `decode`.

        Parameters
        ----------
        block, start, stop, sound
            As in `decode_each`.
        memory : numpy.ndarray
            To decode into, where that takes no copy.

        Returns
        -------
        numpy.ndarray
            `memory`; or a part of a larger frame, perhaps with gaps between its rows,
            in memory of this thread that is valid until it decodes the next frame.
        """
        if self._region is None or self._cmyk or not self.fits(block, start):
            self.decode(block, start, stop, memory, sound=sound)
            return memory
        try:
            return self._part(block, start, memoryview(block)[start:stop])
        except ValueError as cause:
            raise _damaged(cause) from cause

    def _decode_other(
        self,
        block: bytes | bytearray,
        start: int,
        data: memoryview,
        out: npt.NDArray[np.uint8],
    ) -> None:
        """Decode a frame that one call of the codec does not do, or not surely."""
        if not self.fits(block, start):
            header = read_header(data)
            # Of the grey and the coloured frames of an item, neither are made the other
            # unless somebody says so.
            found, must_be = (
                each.shape[: self._num_alike] for each in (header, self.header)
            )
            if found != must_be:
                text = f"a frame of shape {found} is not of the shape {must_be}"
                raise ValueError(f"{text} of the first")
            if self._short_prefix or (header.colorspace in ("CMYK", "YCCK")) != (
                self._cmyk
            ):
                self._decode_alone(data, out)
                return
        try:
            if self._region is None and not self._cmyk:
                self._call(data, out)
                return
            out.reshape(self.shape)[...] = self._part(block, start, data)
        except ValueError as cause:
            raise _damaged(cause) from cause

    def _call(
        self, data: memoryview, out: npt.NDArray[np.uint8] | None
    ) -> npt.NDArray[np.uint8]:
        """Call the codec, with the fast DCT and the fast chroma upsampling."""
        height, width = self._min_size
        frame: npt.NDArray[np.uint8] = simplejpeg.decode_jpeg(
            data,
            self._mode,
            fastdct=True,
            fastupsample=True,
            min_height=height,
            min_width=width,
            buffer=out,
        )
        return frame

    def _part(
        self, block: bytes | bytearray, start: int, data: memoryview
    ) -> npt.NDArray[np.uint8]:
        """Decode as much as is needed, and give what was asked for of it."""
        if self._cmyk:
            full = self._decode_cmyk(data)
        else:
            full = scratch_frame(self._full)
            if self._short_prefix:
                rest = memoryview(block)[start + len(self._prefix) : start + len(data)]
                data = memoryview(b"".join((self._short_prefix, rest)))
            try:
                self._call(data, full)
            except ValueError as cause:
                # So it speaks of the rows that were left.
                if not (self._short_prefix and EXTRANEOUS in str(cause)):
                    raise
        return full[self._region] if self._region else full

    def _decode_cmyk(self, data: memoryview) -> npt.NDArray[np.uint8]:
        """Turn Adobe's inverted CMYK, the only kind that occurs, into RGB or grey."""
        rgb = cmyk_to_rgb(self._call(data, None))
        if self._as_grey:  # the weights of JFIF, in 1/1000
            weights = np.array([299, 587, 114], np.uint32)
            rgb = ((rgb * weights).sum(-1, keepdims=True) + 500) // 1000
        return np.asarray(rgb, np.uint8)

    def _decode_alone(self, data: memoryview, out: npt.NDArray[np.uint8]) -> None:
        """Decode a frame of the right size that is stored in another way."""
        jpeg = bytes(data)
        FrameDecoder(jpeg, self._options).decode(jpeg, 0, len(jpeg), out)


def _damaged(cause: ValueError) -> CorruptFrameError:
    return CorruptFrameError(f"a damaged or cut JPEG: {cause}")


# Found once, not for each frame.
_decode_jpeg = simplejpeg.decode_jpeg
