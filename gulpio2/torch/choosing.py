"""The sampler of a dataset of clips: what is taken for one, and what it may give."""

from __future__ import annotations

import functools
import inspect
import logging
import reprlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from gulpio2 import sampling
from gulpio2.format.wording import first_of
from gulpio2.sampling import NO_FRAME, ClipIndices, by_index, by_time
from gulpio2.torch.listing import ids_of_untimed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gulpio2.torch.source import FrameReader

__all__ = [
    "ClipSampler",
    "name_of_sampler",
    "require_clip",
    "sampler_of",
    "takes_rng",
    "warn_of_no_frames",
    "warn_of_untimed",
]

_logger = logging.getLogger(__name__)

# Number of frames, or their times, and the keyword rng, None in test mode.
ClipSampler: TypeAlias = Callable[..., ClipIndices]

# The functions that a config may name.
_BY_INDEX, _BY_TIME = by_index.__all__, by_time.__all__


def sampler_of(sampler: Any) -> ClipSampler:
    """Take a sampler as it is, or bind the arguments of a config to the one it names.

    Raises
    ------
    KeyError
        The config names none.
    TypeError
        It is neither, or something is bound in the place of an item's frames.
    """
    found: ClipSampler = sampler
    if isinstance(sampler, Mapping):
        arguments = dict(sampler)
        name = arguments.pop("type", None)
        if name not in (known := sorted([*_BY_INDEX, *_BY_TIME])):
            raise KeyError(f"sampler type is {name!r}, expected one of {known}")
        return functools.partial(getattr(sampling, name), **arguments)
    if not callable(sampler):
        raise TypeError(
            f"sampler is {sampler!r}, expected a function such as "
            "partial(sample_window, clip_length=16), or a config of one"
        )
    if isinstance(sampler, functools.partial) and sampler.args:
        name = name_of_sampler(found, timed=False) or name_of_sampler(found, timed=True)
        if name is not None:  # which would take the frames of an item for another thing
            bound = ", ".join(map(reprlib.repr, sampler.args))
            raise TypeError(
                f"sampler is {name} with {bound} in the place of the frames, or their "
                "times, which the dataset gives: bind arguments by name, as in "
                "partial(sample_window, clip_length=16)"
            )
    return found


def takes_rng(function: Any) -> bool:
    """Tell whether a function wants a generator, and has none of its own."""
    try:
        parameter = inspect.signature(function).parameters.get("rng")
    except (TypeError, ValueError):  # one that does not say
        return False
    return parameter is not None and parameter.default in (parameter.empty, None)


def require_clip(chosen: Any) -> ClipIndices:
    """Refuse what a sampler of somebody's own must not give."""
    clip: ClipIndices = chosen
    # Of such a clip nothing is looked at: that would make its arrays.
    if type(chosen) is ClipIndices and chosen.steps is not None:
        return clip
    if not isinstance(getattr(chosen, "indices", None), np.ndarray):
        raise TypeError(
            f"the sampler gave {reprlib.repr(chosen)}, expected a ClipIndices of "
            "gulpio2.sampling: two arrays, the frames and which of them are valid"
        )
    if ((clip.indices == NO_FRAME) & clip.valid).any():
        raise ValueError(
            f"the sampler chose frame {NO_FRAME} and calls it valid: frames are "
            f"counted from 0, and {NO_FRAME} stands for none"
        )
    return clip


def name_of_sampler(sampler: ClipSampler, *, timed: bool) -> str | None:
    """Name the function of `gulpio2.sampling` that it is, by times or by index."""
    while isinstance(sampler, functools.partial):
        sampler = sampler.func
    names = _BY_TIME if timed else _BY_INDEX
    return next((name for name in names if sampler is getattr(sampling, name)), None)


def warn_of_no_frames(id_: str, times: npt.NDArray[np.float64]) -> None:
    """Warn of a clip of which every frame stands for one that is not there.

    Parameters
    ----------
    id_ : str
        The item.
    times : numpy.ndarray
        When its frames are shown, in seconds, ascending.
    """
    _logger.warning(
        "of the clip that the sampler chose no frame is in item %r, whose frames are "
        "at %g to %g seconds: see whether its seconds count from the same beginning. "
        "Further ones are not told, and `valid` is False for each of their frames",
        id_,
        times[0],
        times[-1],
    )


def warn_of_untimed(
    readers: Sequence[FrameReader], items: Iterable[tuple[int, str]]
) -> None:
    """Warn of samples by seconds whose items have no times.

    Parameters
    ----------
    readers : sequence of FrameReader
        What is read from.
    items : iterable of (int, str)
        The number of its reader and the id of each sample's item. Gone through only
        where a reader has items without times, however many that are.
    """
    untimed = [ids_of_untimed(reader) for reader in readers]
    if not any(untimed):
        return
    # Each once, in order: an item may have several samples.
    found = dict.fromkeys(item for item in items if item[1] in untimed[item[0]])
    if found:
        names = [*map(repr, readers)]
        _logger.warning(
            "%s: no times are stored with the frames, so that a sample by seconds ends "
            "in FrameTimeError. Leave these items out (indices=), or sample by index",
            first_of([f"{id_!r} of {names[n]}" for n, id_ in found], "item"),
        )
