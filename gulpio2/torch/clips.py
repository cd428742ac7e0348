"""Datasets whose samples are clips, or single images, as tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from gulpio2._optional import require
from gulpio2.arguments import callable_or
from gulpio2.errors import FormatError
from gulpio2.format.wording import counted
from gulpio2.sampling import NO_FRAME, ClipIndices
from gulpio2.sampling.clips import all_valid, require_chosen
from gulpio2.torch.base import BaseDataset
from gulpio2.torch.choosing import (
    ClipSampler,
    name_of_sampler,
    require_clip,
    sampler_of,
    takes_rng,
    warn_of_no_frames,
    warn_of_untimed,
)
from gulpio2.torch.gulp import GulpDataset
from gulpio2.torch.recycling import get_samples
from gulpio2.torch.registry import register
from gulpio2.torch.seeding import sample_rng
from gulpio2.torch.working import timed_sample, timed_transform

__all__ = ["GulpClipDataset", "GulpImageDataset"]

Info: TypeAlias = Mapping[str, Any]
Target: TypeAlias = str | Callable[[dict[str, Any]], Any] | None
Transform: TypeAlias = Callable[[Any], Any] | None


class _FrameDataset(GulpDataset):
    """Reads the chosen frames of an item, transforms them, and adds the target."""

    single_frame: ClassVar[bool] = False
    """Whether a sample is one frame, without an axis for time."""

    _NOTHING: ClassVar[str] = (
        "the pipeline gave None, or the transform, or the sampler found no clip,"
    )

    shape_of_clips: tuple[int, ...] | None = None
    """``([clips,] [T,] H, W, C)`` of the last sample that was read."""

    def __init__(
        self, source: Any, *, transform: Transform, target: Target, **options: Any
    ) -> None:
        self.transform: Transform = callable_or("transform", transform)
        self.target = target
        super().__init__(source, **options)

    @property
    def has_targets(self) -> bool:
        """Whether samples have one: by ``target``, or as a subclass says."""
        own = type(self).target_of is not _FrameDataset.target_of
        return own or self.target is not None

    def choose_frames(self, info: Info, rng: np.random.Generator | None) -> ClipIndices:
        """Choose frames of an item; for subclasses to say."""
        raise NotImplementedError

    def prepare_data(self, idx: int) -> Any:
        """Make a sample, once: read, transform, add the target, run the pipeline."""
        return self._prepare(idx)

    def _prepare(self, idx: int, out: npt.NDArray[np.uint8] | None = None) -> Any:
        """Make a sample, its frames in memory that is given, where they fit there."""
        # What is chosen is read one way or the other, and not chosen anew: the numbers
        # may have come from a generator that goes on.
        info, chosen = self.choose(idx)
        if not chosen.indices.size:
            return None  # the sampler found no clip, or no frame, in this item
        if out is None or not self._fits_into(info, chosen, out):
            out = self.source.read(info, chosen)
            if self.single_frame:
                out = out[0]
            self.shape_of_clips = out.shape
        frames = timed_transform(self._transformed, _to_tensor(out))
        if frames is None:
            return None
        target = self.target_of(info)
        if self.pipeline.transforms:
            place = {"frame_indices": chosen.indices, "valid": chosen.valid}
            sample = {**info, "frames": frames, "target": target, **place}
            return timed_transform(self.pipeline, sample)
        return (frames, target) if self.has_targets else frames

    @property
    def _makes_its_own_samples(self) -> bool:
        """Whether a subclass does more than to choose frames and a target."""
        return (
            type(self).__getitem__ is not BaseDataset.__getitem__
            or type(self).prepare_data is not _FrameDataset.prepare_data
        )

    def choose(self, idx: int) -> tuple[dict[str, Any], ClipIndices]:
        """Choose the frames of a sample, without reading them.

        Parameters
        ----------
        idx : int
            Which one; a `SampleIndex` says what its random choices come from.

        Returns
        -------
        info : dict
            What `get_data_info` gives.
        chosen : ClipIndices
            By `choose_frames`: at random, but not in test mode.

        Raises
        ------
        ValueError
            The item has no frames.
        """
        info = self.get_data_info(idx)
        if not info.get("num_frames"):
            if "num_frames" not in info:
                raise KeyError(
                    f"sample {info['sample_idx']} has no 'num_frames': what "
                    "parse_data_info gives keeps that, and the 'id', of what it gets"
                )
            raise ValueError(
                f"item {info['id']!r} has no frames: leave it out in filter_data"
            )
        rng = None if self.test_mode else sample_rng(idx)
        return info, self.choose_frames(info, rng)

    def make_into(self, idx: int, out: npt.NDArray[np.uint8]) -> Any:
        """Make a sample whose frames lie in memory that is given, where they fit.

        Parameters
        ----------
        idx : int
            Which one.
        out : numpy.ndarray
            Of the shape `shape_of_clips`.

        Returns
        -------
        object
            As of ``self[idx]``, whose frames are in memory of their own where they are
            of another shape or cannot be decoded to any. None where nothing was done:
            there are transforms, or a subclass makes samples in its own way.
        """
        if (
            self.transform is not None
            or self.pipeline.transforms
            or self._makes_its_own_samples
        ):
            return None
        return timed_sample(self._make, idx, partial(self._prepare, out=out))

    def _fits_into(
        self, info: Info, chosen: ClipIndices, out: npt.NDArray[np.uint8]
    ) -> bool:
        """Read frames into memory; tell whether they are there."""
        lead = () if self.single_frame else chosen.indices.shape
        try:
            return out.shape[:-3] == lead and self.source.read_into(info, chosen, out)
        except FormatError:  # of another size
            return False

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        """Make the samples of a batch, see `gulpio2.torch.recycling`."""
        return get_samples(self, indices, lambda itself, index: (itself, index))

    def _transformed(self, frames: Any) -> Any:
        if self.transform is None:
            return frames
        if frames.ndim <= 4:
            return self.transform(frames)
        clips = [self.transform(clip) for clip in frames]
        if any(clip is None for clip in clips):
            return None
        return require("torch", extra="torch").stack(clips)

    def target_of(self, info: dict[str, Any]) -> Any:
        """Give the target of a sample, from what `get_data_info` gave; None without."""
        if self.target is None:
            return None
        if callable(self.target):
            return self.target(info)
        if self.target not in info:
            raise KeyError(
                f"item {info['id']!r} has no metadata {self.target!r} to be the "
                f"target; it has {sorted(info)}"
            )
        return info[self.target]


@register
class GulpClipDataset(_FrameDataset):
    """Clips of the items of gulp directories.

    Parameters
    ----------
    source : path, FrameReader, or a sequence of them
        A gulp directory, something that can be read like one, or several.
    sampler : callable or mapping
        Chooses the frames, such as ``partial(sample_window, clip_length=16)`` with a
        function of `gulpio2.sampling`. It is called with the number of frames and the
        keyword ``rng``, a generator, or None in test mode. A config names such a
        function, ``{"type": "sample_window", "clip_length": 16}``.
    sample_by : {"index", "seconds"}, default "index"
        "seconds": the sampler gets the times of the frames instead of their number.
    sampler_arguments : callable, optional
        From what `get_data_info` gives to further keyword arguments of the sampler;
        for windows around a frame that the metadata names. One with a parameter ``rng``
        gets the generator, or None, for what it chooses at random.
    transform : callable, optional
        Applied to each clip, ``(T, C, H, W)`` uint8; None stands for another sample.
    target : str or callable, optional
        A key of what `get_data_info` gives, or a function of it.
    **options
        Those of `GulpDataset`. Transforms of a ``pipeline`` get a dict: what
        `get_data_info` gives, with ``frames``, ``target``, ``frame_indices`` and
        ``valid``; what the last one returns is the sample.

    Notes
    -----
    Without a pipeline a sample is ``(clip, target)``, or the clip alone without a
    target. A clip is a ``(T, C, H, W)`` uint8 tensor; ``(clips, T, C, H, W)`` where the
    sampler chooses several, each transformed on its own. Frames that the item does not
    have are zeros (border ``"mask"``).

    The memory behind is ``(T, H, W, C)``, and the tensor a view of it.

    Examples
    --------
    >>> from functools import partial
    >>> from gulpio2.sampling import sample_window
    >>> from gulpio2.testing import make_gulp_directory
    >>> _ = make_gulp_directory("train", num_items=3, num_frames=8)
    >>> sampler = partial(sample_window, clip_length=4, stride=2)
    >>> dataset = GulpClipDataset("train", sampler, target="id")
    >>> clip, target = dataset[0]
    >>> tuple(clip.shape), target
    ((4, 3, 24, 32), 'item0')
    """

    # Arguments of the sampler that were looked at last: do they take a generator?
    _is_random: tuple[Any, bool] = (None, False)
    # Whether a warning has told of a clip of which no frame is there.
    _has_told: bool = False

    def __init__(
        self,
        source: Any,
        sampler: ClipSampler | Mapping[str, Any] | None,
        *,
        sample_by: Literal["index", "seconds"] = "index",
        sampler_arguments: Callable[..., Mapping[str, Any]] | None = None,
        transform: Transform = None,
        target: Target = None,
        **options: Any,
    ) -> None:
        if sample_by not in ("index", "seconds"):
            raise ValueError(f"sample_by is {sample_by!r}, expected 'index', 'seconds'")
        # A subclass that chooses in its own way needs none.
        needed = type(self).choose_frames is GulpClipDataset.choose_frames
        given: Any = sampler_of(sampler) if needed or sampler is not None else None
        self.sampler: ClipSampler = given
        self.sample_by = sample_by
        self.sampler_arguments = callable_or("sampler_arguments", sampler_arguments)
        super().__init__(source, transform=transform, target=target, **options)

    def full_init(self) -> None:
        """Load, filter and select the samples; tell of those without times."""
        if self._fully_initialized:
            return
        super().full_init()
        own = type(self).choose_frames is not GulpClipDataset.choose_frames
        if self.sample_by == "seconds" and not own:
            items = map(self._item_at, range(self._num_samples()))
            warn_of_untimed(self.source.readers, items)

    def choose_frames(self, info: Info, rng: np.random.Generator | None) -> ClipIndices:
        """Choose the frames of a clip, or of several, by the sampler."""
        more: Mapping[str, Any] = {}
        if self.sampler_arguments is not None:
            if self._is_random[0] is not self.sampler_arguments:
                self._is_random = (
                    self.sampler_arguments,
                    takes_rng(self.sampler_arguments),
                )
            own = {"rng": rng} if self._is_random[1] else {}
            more = self.sampler_arguments(info, **own)
        if self.sample_by == "index":
            try:
                return require_clip(self.sampler(info["num_frames"], rng=rng, **more))
            except ValueError as cause:
                name = name_of_sampler(self.sampler, timed=True)
                if name is None:
                    raise
                raise ValueError(
                    f"the sampler {name} wants the times of the frames, and got their "
                    "number: give the dataset sample_by='seconds'"
                ) from cause
        times = self.source.times(info)
        # Samplers want ascending times; an item may be stored in another order.
        order = np.argsort(times, kind="stable")
        try:
            chosen = require_clip(self.sampler(times[order], rng=rng, **more))
        except (TypeError, ValueError) as cause:
            name = name_of_sampler(self.sampler, timed=False)
            if name is None:
                raise
            raise ValueError(
                f"the sampler {name} wants the number of frames, and got their times: "
                "give the dataset sample_by='index', or a sampler that goes by times"
            ) from cause
        require_chosen(chosen.indices.ravel().tolist())
        is_elsewhere = chosen.valid.size and not chosen.valid.any()
        if is_elsewhere and not self._has_told:
            self._has_told = True
            warn_of_no_frames(info["id"], times[order])
        indices = np.where(chosen.indices < 0, NO_FRAME, order[chosen.indices])
        return ClipIndices(indices, chosen.valid)


@register
class GulpImageDataset(_FrameDataset):
    """One frame of each item of gulp directories.

    Parameters
    ----------
    source : path, FrameReader, or a sequence of them
        A gulp directory, something that can be read like one, or several.
    frame : int or "random", default 0
        Which one, from the end if negative; "random" is the middle one in test mode.
    transform : callable, optional
        Applied to the image, ``(C, H, W)`` uint8; None stands for another sample.
    target : str or callable, optional
        A key of what `get_data_info` gives, or a function of it.
    **options
        Those of `GulpDataset`, see `GulpClipDataset`.

    Notes
    -----
    A sample is ``(image, target)``, or the image alone without a target.

    Examples
    --------
    >>> from gulpio2.testing import make_gulp_directory
    >>> _ = make_gulp_directory("images", num_items=3, num_frames=1)
    >>> tuple(GulpImageDataset("images")[0].shape)
    (3, 24, 32)
    """

    single_frame: ClassVar[bool] = True

    def __init__(
        self,
        source: Any,
        *,
        frame: int | Literal["random"] = 0,
        transform: Transform = None,
        target: Target = None,
        **options: Any,
    ) -> None:
        if isinstance(frame, str) and frame != "random":
            raise ValueError(f"frame is {frame!r}, expected an int or 'random'")
        if isinstance(frame, bool) or not isinstance(frame, (str, int, np.integer)):
            raise TypeError(f"frame is {frame!r}, expected an int or 'random'")
        self.frame: int | str = frame if isinstance(frame, str) else int(frame)
        super().__init__(source, transform=transform, target=target, **options)

    def choose_frames(self, info: Info, rng: np.random.Generator | None) -> ClipIndices:
        """Choose the frame."""
        count = info["num_frames"]
        if isinstance(self.frame, str):
            index = count // 2 if rng is None else int(rng.integers(count))
            return all_valid(np.array([index]))
        if not -count <= self.frame < count:
            raise ValueError(
                f"item {info['id']!r} has {counted(count, 'frame')}, and so no "
                f"frame {self.frame}"
            )
        return all_valid(np.array([self.frame % count]))


def _to_tensor(frames: npt.NDArray[np.uint8]) -> Any:
    """View ``(..., H, W, C)`` frames as a ``(..., C, H, W)`` tensor."""
    torch = require("torch", extra="torch")
    return torch.from_numpy(frames).movedim(-1, -3)
