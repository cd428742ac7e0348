"""The frames of a sample, decoded into their place in the batch's memory."""

from __future__ import annotations

import math
import threading
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from gulpio2.blocks import verify_crc32
from gulpio2.codecs.options import DecodeOptions
from gulpio2.codecs.output import empty_frames
from gulpio2.codecs.recent import decoder_for
from gulpio2.errors import CorruptFrameError, FormatError, GulpError, MetaFileError
from gulpio2.item import EditedChecksums
from gulpio2.torch.profile import Clock
from gulpio2.torch.source import read_frames
from gulpio2.torch.stored import damaged_at, read_each
from gulpio2.torch.views import choose_region, takes_info

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gulpio2.codecs.decode import FrameDecoder
    from gulpio2.torch.plan import Plan
    from gulpio2.torch.stored import Read
    from gulpio2.torch.views import FrameView, Region

__all__ = ["PixelMaker", "Rows"]

Rows = npt.NDArray[np.uint8]

# Fractions at which the codec decodes directly, the smallest result first.
_SCALES = (8, 4, 2, 1)


class PixelMaker:
    """Reads frames of an item and brings them to the batch's size, in any thread.

    Parameters
    ----------
    view : FrameView or None
        What to show of each frame; None for the whole, all frames being of one size.
    colorspace : {"rgb", "gray"}
        Channels of the batch.
    """

    def __init__(
        self, view: FrameView | None, colorspace: Literal["rgb", "gray"]
    ) -> None:
        self.view = view
        self._is_told = view is not None and takes_info(view)
        self._options = DecodeOptions(colorspace=colorspace)
        self._channels = 3 if colorspace == "rgb" else 1
        self._scratch = threading.local()
        # Decoded the sample before, and mostly fits the next one; none with a view.
        self.last: FrameDecoder | None = None

    def frame_shape(self, plan: Plan) -> tuple[int, int, int]:
        """Give the shape that a frame of a sample has in a batch.

        Raises
        ------
        CorruptFrameError, StorageError
            Only where there is no view, so that the size comes from the frame.
        """
        if self.view is not None:
            return (*self.view.shape, self._channels)
        reader, id_ = plan.reader, plan.id_
        # One that the sample needs: another may be damaged.
        frame = plan.indices[0] if plan.indices else 0
        jpegs = read_each(reader, id_, [frame], [0], Clock())
        if jpegs is None:
            height, width = read_frames(reader, id_, [frame]).shape[1:3]
            return (height, width, self._channels)
        jpeg, _ = next(jpegs)
        try:
            self.last = decoder_for(jpeg, 0, len(jpeg), self._options)
        except CorruptFrameError as cause:
            raise _at_frame(cause, plan, frame) from cause
        return self.last.shape

    def fill(self, plan: Plan, targets: Sequence[Rows], clock: Clock) -> Region | None:
        """Read the frames of a sample into their places.

        Parameters
        ----------
        plan : Plan
            Which frames, and where they are.
        targets : sequence of numpy.ndarray
            The places of all frames of the sample.
        clock : Clock
            Of this thread.

        Returns
        -------
        Region or None
            What the view has chosen to show of them; None without a view.

        Raises
        ------
        CorruptFrameError, StorageError
            A frame cannot be decoded, or read.
        FormatError
            The frames are not of the size that is needed.
        MetaFileError
            The chunk was written anew since its directory was opened.
        """
        reader, id_, indices, rows = plan.reader, plan.id_, plan.indices, plan.rows
        located = plan.located
        blocks: Iterator[tuple[Any, Read]] | None
        if located is not None:
            blocks = located.each(clock)
        else:
            blocks = read_each(reader, id_, indices, rows, clock)
            if blocks is None:
                start = perf_counter()
                frames = read_frames(reader, id_, list(indices))
                clock.decode += perf_counter() - start  # with storage: not told apart
                chosen = [targets[row] for row in rows]
                return self._show(frames, chosen, plan, clock)
        decoding = _Decoding(self, targets, plan, clock)
        try:
            for block, read in blocks:
                decoding.decode(block, read)
        except CorruptFrameError as cause:
            raise _at_frame(cause, plan, indices[rows.index(decoding.row)]) from cause
        except MetaFileError:  # of its map, and not of what it was to become
            raise
        except FormatError as cause:
            raise FormatError(f"item {id_!r} of {reader!r}: {cause}") from cause
        except ValueError as cause:
            # Without a decoder it is the view that raised, which may be anybody's.
            if isinstance(cause, GulpError) or decoding.decoder is None:
                raise
            first, other = (
                indices[rows.index(row)] for row in (decoding.first_row, decoding.row)
            )
            raise FormatError(
                f"item {id_!r} of {reader!r}, frame {other}: {cause}, which is "
                f"frame {first}. The frames of a clip must be of one size (height, "
                "width) with any view, and with any on_corrupt, which is for damage. "
                "Leave the item out, or bring its pictures to one size and ingest it "
                "again; `gulp2 check --deep` names all such items, and damaged ones"
            ) from cause
        finally:
            if located is not None:
                located.drop()
        return decoding.region

    def decoder(
        self,
        block: bytes | bytearray,
        start: int,
        stop: int,
        shape: tuple[int, ...],
        plan: Plan,
    ) -> tuple[FrameDecoder, Region | None]:
        """Give what decodes the frames of an item, and what the view shows of them.

        Parameters
        ----------
        block : bytes
            What was read of its frames.
        start, stop : int
            Where the JPEG of the first frame begins and ends in it.
        shape : tuple of int
            Of a frame in the batch.
        plan : Plan
            Of the sample.
        """
        whole = decoder_for(block, start, stop, self._options)
        if self.view is None:
            _require_size(whole.shape, shape)
            self.last = whole
            return whole, None
        header = whole.header
        region = self._choose(header.height, header.width, plan)
        scale = _scale_for(region.height, region.width, shape)
        crop = None
        if (region.height, region.width) != (header.height, header.width):
            crop = (region.top, region.left, region.height, region.width)
        elif scale == 1:
            return whole, region
        options = DecodeOptions(
            scale=scale, crop=crop, colorspace=self._options.colorspace
        )
        return whole.with_options(options), region

    def _show(
        self,
        frames: Rows,
        targets: Sequence[Rows],
        plan: Plan,
        clock: Clock,
    ) -> Region | None:
        """Bring frames that a reader decoded into the batch."""
        start, where = perf_counter(), f"item {plan.id_!r}"
        if frames.shape[-1] != self._channels:
            if frames.shape[-1] != 1:
                raise FormatError(
                    f"{where}: its reader gives frames of {frames.shape[-1]} channels, "
                    f"and the loader was asked for {self._channels}"
                )
            frames = np.broadcast_to(frames, (*frames.shape[:-1], 3))
        height, width = frames.shape[1:3]
        region = None
        if self.view is None:
            _require_size(frames.shape[1:], targets[0].shape)
            for frame, target in zip(frames, targets, strict=True):
                target[...] = frame
        else:
            try:
                region = self._choose(height, width, plan)
            except FormatError as cause:
                raise FormatError(f"{where}: {cause}") from cause
            bottom, right = region.top + region.height, region.left + region.width
            for frame, target in zip(frames, targets, strict=True):
                part = frame[region.top : bottom, region.left : right]
                part = np.ascontiguousarray(part)
                self.resize(part, target, mirrored=region.mirrored)
        clock.transform += perf_counter() - start
        return region

    def _choose(self, height: int, width: int, plan: Plan) -> Region:
        """Have the view, which there is, choose a region of frames of this size."""
        more = {"info": plan.info} if self._is_told else {}
        view: Any = self.view
        return choose_region(view, height, width, plan.rng, **more)

    def resize(self, frame: Rows, target: Rows, *, mirrored: bool) -> None:
        """Resize a frame into its place."""
        import cv2  # heavy, and not needed by every loader

        height, width = target.shape[:2]
        # Linear leaves pixels out where a frame shrinks to less than a half. It serves
        # up to there, as area takes six times as long, and the codec has halved already
        # what it could.
        reduction = max(frame.shape[0] / height, frame.shape[1] / width)
        method = cv2.INTER_AREA if reduction > 2 else cv2.INTER_LINEAR
        if target.shape[2] == 1:  # in OpenCV, grey has no axis for its channel
            frame, target = frame[..., 0], target[..., 0]
        into = self.memory("resized", target.shape) if mirrored else target
        cv2.resize(frame, (width, height), dst=into, interpolation=method)
        if mirrored:
            cv2.flip(into, 1, dst=target)

    def memory(self, name: str, shape: tuple[int, ...]) -> Rows:
        """Give memory of this thread, kept from sample to sample."""
        kept: Rows | None = getattr(self._scratch, name, None)
        size = math.prod(shape)
        if kept is None or kept.size < size:
            kept = empty_frames(shape).reshape(-1)
            setattr(self._scratch, name, kept)
        return kept[:size].reshape(shape)


class _Decoding:
    """The frames of one sample, decoded block by block."""

    def __init__(
        self,
        maker: PixelMaker,
        targets: Sequence[Rows],
        plan: Plan,
        clock: Clock,
    ) -> None:
        self._maker = maker
        self._targets = targets
        self._plan = plan
        self._clock = clock
        self.decoder: FrameDecoder | None = None
        self.region: Region | None = None
        self.row = self.first_row = 0

    def decode(self, block: Any, read: Read) -> None:
        """Decode the frames of a block."""
        start = perf_counter()
        is_sound = self._verify(block, read)
        shape = self._targets[0].shape
        if self.decoder is None:
            self.row = self.first_row = read.rows[0]
            first, last = read.spans[0][0] - read.offset, self._maker.last
            if last is not None and last.shape == shape and last.fits(block, first):
                self.decoder = last
            else:
                self.decoder, self.region = self._maker.decoder(
                    block, first, first + read.spans[0][1], shape, self._plan
                )
        clock = self._clock
        mirrored = self.region is not None and self.region.mirrored
        if self.decoder.shape == shape and not mirrored:
            self.decoder.decode_each(block, self._frames(read), sound=is_sound)
            clock.decode += perf_counter() - start
            return
        decode = self.decoder.decode_here
        memory = self._maker.memory("frame", self.decoder.shape)
        for begin, end, target in self._frames(read):
            frame = decode(block, begin, end, memory, sound=is_sound)
            decoded = perf_counter()
            self._maker.resize(frame, target, mirrored=mirrored)
            resized = perf_counter()
            clock.decode += decoded - start
            clock.transform += resized - decoded
            start = resized

    def _verify(self, block: Any, read: Read) -> bool:
        """Compare the checksums of the frames of a block, which was just read.

        Returns
        -------
        bool
            Whether there were any.
        """
        located = self._plan.located
        if located is None or read.crc32 is None:
            return False
        view = memoryview(block)
        frames = zip(self._frames(read), read.crc32, strict=True)
        edited = EditedChecksums(located.item)
        for (start, stop, _), crc32 in frames:
            verify_crc32(view[start:stop], crc32, edited)
        return True

    def _frames(self, read: Read) -> Iterator[tuple[int, int, Rows]]:
        """Give where each JPEG begins and ends in its block, and the frame's place.

        `row` is that of the frame which was given last, for an error to name it.
        """
        targets, base = self._targets, read.offset
        for self.row, (offset, length) in zip(read.rows, read.spans, strict=True):
            start = offset - base
            yield start, start + length, targets[self.row]


def _at_frame(cause: Exception, plan: Plan, frame: int) -> CorruptFrameError:
    return damaged_at(f"item {plan.id_!r} of {plan.reader!r}, frame {frame}", cause)


def _scale_for(height: int, width: int, shape: tuple[int, ...]) -> int:
    """Choose the smallest size to decode at from which nothing has to grow."""
    for scale in _SCALES:
        if height // scale >= shape[0] and width // scale >= shape[1]:
            return scale
    return 1


def _require_size(found: tuple[int, ...], needed: tuple[int, ...]) -> None:
    if found != needed:
        raise FormatError(
            f"its frames are {found[0]}x{found[1]}, those of the batch "
            f"{needed[0]}x{needed[1]} (height x width). Give the loader a view, such "
            "as view=CenterCrop(224), to bring all to one size (on the command line "
            "--size 224); if only this one differs, run `gulp2 check --deep`"
        )
