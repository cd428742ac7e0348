"""One sample of a batch: its frames decoded into their place in the batch's memory."""

from __future__ import annotations

import errno
import logging
import threading
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from gulpio2.codecs.decode import DecodeOptions, FrameDecoder, decoder_for
from gulpio2.codecs.jpeg import jpeg_bytes_to_img, read_header
from gulpio2.errors import CorruptFrameError, FormatError, ReadRangeError, StorageError
from gulpio2.order import Purpose, derive_seed
from gulpio2.torch.seeding import SampleIndex, sample_rng, substitute_index
from gulpio2.torch.wrappers import find_sample

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gulpio2.order import Draw
    from gulpio2.sampling import ClipIndices
    from gulpio2.torch.profile import Clock
    from gulpio2.torch.views import FrameView

__all__ = ["OnCorrupt", "Sample", "SampleMaker", "is_damage", "place_of"]

OnCorrupt = Literal["raise", "skip", "substitute"]
Rows = npt.NDArray[np.uint8]

_logger = logging.getLogger(__name__)

# Other samples tried in the place of a damaged one. So many in a row means that more
# is wrong than a few items.
_NUM_SUBSTITUTES = 100
# Fractions at which the codec decodes directly, the smallest result first.
_SCALES = (8, 4, 2, 1)


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """What a batch has of a sample beside its frames."""

    info: dict[str, Any]
    """What the dataset knows of it."""
    target: Any
    """As the dataset's ``target`` says; None without one."""
    chosen: ClipIndices
    """The frames, by their index in the item."""
    substituted: bool = False
    """Whether it stands in for a damaged one."""


class SampleMaker:
    """Makes samples of a dataset, in any thread.

    Parameters
    ----------
    dataset : GulpClipDataset, GulpImageDataset, or a wrapper of such
        Without transforms of its own.
    view : FrameView or None
        What to show of each frame; None for the whole, all frames being of one size.
    colorspace : {"rgb", "gray"}
        Channels of the batch.
    on_corrupt : {"raise", "skip", "substitute"}
        What to do about damaged frames.
    max_corrupt : int
        Damaged samples of the dataset, each counted once, above which it raises.
    """

    def __init__(
        self,
        dataset: Any,
        view: FrameView | None,
        colorspace: Literal["rgb", "gray"],
        on_corrupt: OnCorrupt,
        max_corrupt: int,
    ) -> None:
        self.dataset = dataset
        self.view = view
        self.on_corrupt = on_corrupt
        self.max_corrupt = max_corrupt
        self._damaged: set[tuple[int, int]] = set()
        self._options = DecodeOptions(colorspace=colorspace)
        self._channels = 3 if colorspace == "rgb" else 1
        self._scratch = threading.local()

    def sample_shape(self, draw: Draw) -> tuple[int, ...]:
        """Give the shape that a sample has in a batch; reads one frame at most.

        Raises
        ------
        CorruptFrameError, StorageError
            Only where there is no view, so that the size comes from the frame.
        """
        leaf, place = find_sample(self.dataset, place_of(draw))
        info = _info_of(leaf, place)
        chosen = _choose(leaf, info, place)
        lead = () if leaf.single_frame else chosen.indices.shape
        if self.view is not None:
            return (*lead, *self.view.shape, self._channels)
        reader, id_ = leaf.source.find(info)
        if _gives_jpegs(reader):
            header = read_header(reader.read_jpegs(id_, [0])[0])
            return (*lead, header.height, header.width, self._channels)
        return (*lead, *reader.read_clip(id_, [0]).shape[1:3], self._channels)

    def make(self, draw: Draw, out: Rows, clock: Clock) -> Sample | None:
        """Make a sample.

        Parameters
        ----------
        draw : Draw
            Which one; everything random about it comes from its seed.
        out : numpy.ndarray
            Its place in the batch, of the shape that `sample_shape` gives.
        clock : Clock
            Of this thread; the time that each part takes is added to it.

        Returns
        -------
        Sample or None
            None where it is left out (``on_corrupt="skip"``).

        Raises
        ------
        CorruptFrameError, StorageError
            It is damaged, and so are too many that could stand in for it.
        """
        start = perf_counter()
        leaf, place = find_sample(self.dataset, place_of(draw))
        asked = place
        for attempt in range(1, _NUM_SUBSTITUTES + 2):
            try:
                sample = self._make(leaf, place, out, clock)
                break
            except (CorruptFrameError, StorageError) as error:
                if self.on_corrupt == "raise" or not is_damage(error):
                    raise
                self._damaged.add((id(leaf), int(place)))
                if len(self._damaged) > self.max_corrupt:
                    raise CorruptFrameError(
                        f"{error}. More than {self.max_corrupt} samples are damaged "
                        "(max_corrupt), so it is not a few items that are wrong"
                    ) from error
                if attempt > _NUM_SUBSTITUTES:
                    raise
                kind = "left out" if self.on_corrupt == "skip" else "replaced"
                _logger.warning(
                    "epoch %d, position %d: sample %s: %s",
                    draw.epoch,
                    draw.position,
                    kind,
                    error,
                )
                if self.on_corrupt == "skip":
                    return None
                place = substitute_index(asked, attempt, len(leaf))
        clock.samples += 1
        clock.busy += perf_counter() - start
        if place is asked:
            return sample
        return Sample(sample.info, sample.target, sample.chosen, substituted=True)

    def _make(self, leaf: Any, place: SampleIndex, out: Rows, clock: Clock) -> Sample:
        info = _info_of(leaf, place)
        chosen = _choose(leaf, info, place)
        lead = () if leaf.single_frame else chosen.indices.shape
        if out.shape[:-3] != lead:
            raise ValueError(
                f"the sampler chose frames of shape {lead} of item {info['id']!r}, and "
                f"{out.shape[:-3]} of an earlier one: a batch needs as many of each"
            )
        rows = out.reshape(-1, *out.shape[-3:])
        first: dict[int, int] = {}
        again: list[tuple[int, int]] = []
        for row, index in enumerate(chosen.indices.ravel().tolist()):
            if index < 0:
                rows[row] = 0
            elif first.setdefault(index, row) != row:
                again.append((row, first[index]))
        rng = None
        if self.view is not None and not leaf.test_mode:
            rng = np.random.default_rng(derive_seed(place.seed, Purpose.VIEW))
        if first:
            reader, id_ = leaf.source.find(info)
            self._read(reader, id_, first, rows, rng, clock)
        for row, earlier in again:
            rows[row] = rows[earlier]
        clock.frames += len(first)
        return Sample(info, leaf.target_of(info), chosen)

    # --- frames ------------------------------------------------------------------

    def _read(
        self,
        reader: Any,
        id_: str,
        first: dict[int, int],
        rows: Rows,
        rng: np.random.Generator | None,
        clock: Clock,
    ) -> None:
        """Read frames, by their index in the item, into these rows."""
        targets = [rows[row] for row in first.values()]
        start = perf_counter()
        if not _gives_jpegs(reader):
            frames = reader.read_clip(id_, list(first))
            clock.decode += perf_counter() - start  # with its storage: not told apart
            self._show(frames, targets, rng, clock, f"item {id_!r}")
            return
        jpegs = reader.read_jpegs(id_, list(first))
        clock.storage += perf_counter() - start
        clock.num_bytes += sum(map(len, jpegs))
        try:
            self._decode(jpegs, targets, rng, clock)
        except CorruptFrameError as cause:
            raise CorruptFrameError(
                f"item {id_!r} of {reader!r}, frames {min(first)} to {max(first)}: "
                f"{cause}. Run `gulp2 check --deep` on the directory"
            ) from cause
        except FormatError as cause:
            raise FormatError(f"item {id_!r} of {reader!r}: {cause}") from cause
        except ValueError as cause:
            raise FormatError(
                f"item {id_!r} of {reader!r}: {cause}; the frames of an item in a "
                "batch must be of one size"
            ) from cause

    def _decode(
        self,
        jpegs: Sequence[bytes],
        targets: Sequence[Rows],
        rng: np.random.Generator | None,
        clock: Clock,
    ) -> None:
        start = perf_counter()
        shape = targets[0].shape
        if self.view is None:
            decoder = decoder_for(jpegs[0], 0, len(jpegs[0]), self._options)
            _require_size(decoder.shape, shape)
            for jpeg, target in zip(jpegs, targets, strict=True):
                decoder.decode(jpeg, 0, len(jpeg), target)
            clock.decode += perf_counter() - start
            return
        header = read_header(jpegs[0])
        region = self.view.choose(header.height, header.width, rng)
        whole = (region.height, region.width) == (header.height, header.width)
        options = DecodeOptions(
            scale=_scale_for(region.height, region.width, shape),
            crop=None
            if whole
            else (region.top, region.left, region.height, region.width),
            colorspace=self._options.colorspace,
        )
        decoder = FrameDecoder(jpegs[0], options)
        if decoder.shape == shape and not region.mirrored:
            for jpeg, target in zip(jpegs, targets, strict=True):
                decoder.decode(jpeg, 0, len(jpeg), target)
            clock.decode += perf_counter() - start
            return
        frame = self._memory("frame", decoder.shape)
        for jpeg, target in zip(jpegs, targets, strict=True):
            decoder.decode(jpeg, 0, len(jpeg), frame)
            decoded = perf_counter()
            self._resize(frame, target, mirrored=region.mirrored)
            resized = perf_counter()
            clock.decode += decoded - start
            clock.transform += resized - decoded
            start = resized

    def _show(
        self,
        frames: Rows,
        targets: Sequence[Rows],
        rng: np.random.Generator | None,
        clock: Clock,
        where: str,
    ) -> None:
        """Bring frames that a reader decoded into the batch."""
        start = perf_counter()
        if frames.shape[-1] != self._channels:
            if self._channels == 1:
                raise FormatError(f"{where}: its reader gives colours, and not grey")
            frames = np.broadcast_to(frames, (*frames.shape[:-1], 3))
        height, width = frames.shape[1:3]
        if self.view is None:
            _require_size(frames.shape[1:], targets[0].shape)
            for frame, target in zip(frames, targets, strict=True):
                target[...] = frame
        else:
            region = self.view.choose(height, width, rng)
            bottom, right = region.top + region.height, region.left + region.width
            for frame, target in zip(frames, targets, strict=True):
                part = frame[region.top : bottom, region.left : right]
                part = np.ascontiguousarray(part)
                self._resize(part, target, mirrored=region.mirrored)
        clock.transform += perf_counter() - start

    def _resize(self, frame: Rows, target: Rows, *, mirrored: bool) -> None:
        import cv2  # heavy, and not needed by every loader

        height, width = target.shape[:2]
        # Linear up to a half, below which it would leave pixels out; area before that
        # takes six times as long, and the codec has halved already what it could.
        reduction = max(frame.shape[0] / height, frame.shape[1] / width)
        method = cv2.INTER_AREA if reduction > 2 else cv2.INTER_LINEAR
        if target.shape[2] == 1:  # in OpenCV, grey has no axis for its channel
            frame, target = frame[..., 0], target[..., 0]
        into = self._memory("resized", target.shape) if mirrored else target
        cv2.resize(frame, (width, height), dst=into, interpolation=method)
        if mirrored:
            cv2.flip(into, 1, dst=target)

    def _memory(self, name: str, shape: tuple[int, ...]) -> Rows:
        """Give memory of this thread, kept from sample to sample."""
        kept: Rows | None = getattr(self._scratch, name, None)
        size = int(np.prod(shape))
        if kept is None or kept.size < size:
            kept = np.empty(size, np.uint8)
            setattr(self._scratch, name, kept)
        return kept[:size].reshape(shape)


def is_damage(error: Exception) -> bool:
    """Tell damaged frames from a storage that refuses everything, and mistakes."""
    return isinstance(error, (CorruptFrameError, ReadRangeError)) or (
        isinstance(error, StorageError) and error.errno == errno.EIO
    )


def place_of(draw: Draw) -> SampleIndex:
    """Give a draw as the index that the datasets of this package take."""
    return SampleIndex(
        draw.index, seed=draw.seed, epoch=draw.epoch, position=draw.position
    )


def _info_of(leaf: Any, place: int) -> dict[str, Any]:
    info: dict[str, Any] = leaf.get_data_info(place)
    if not info["num_frames"]:
        raise ValueError(
            f"item {info['id']!r} has no frames: leave it out in filter_data"
        )
    return info


def _choose(leaf: Any, info: dict[str, Any], place: SampleIndex) -> ClipIndices:
    """Choose frames just as the dataset does for a DataLoader."""
    chosen: ClipIndices = leaf.choose_frames(
        info, None if leaf.test_mode else sample_rng(place)
    )
    return chosen


def _gives_jpegs(reader: Any) -> bool:
    """Tell whether a reader gives stored bytes, which are to be decoded as usual."""
    decoder = getattr(reader, "jpeg_decoder", jpeg_bytes_to_img)
    return hasattr(reader, "read_jpegs") and decoder is jpeg_bytes_to_img


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
            "as view=CenterCrop(224), to bring all to one size"
        )
