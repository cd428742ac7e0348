"""What is done about a damaged sample: it is left out, or another one stands in."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from gulpio2.errors import CorruptFrameError, StorageError, UnreadablePlaceError
from gulpio2.tolerant import is_damage
from gulpio2.torch.damage import Damage, number_of, sample_of
from gulpio2.torch.seeding import SampleIndex, substitute_index
from gulpio2.torch.wrappers import find_sample

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["OnCorrupt", "log_damage", "require_rule", "stand_in", "try_twice"]

OnCorrupt = Literal["raise", "skip", "substitute"]

_logger = logging.getLogger(__name__)

# Other samples tried in the place of a damaged one. So many in a row means that more
# is wrong than a few items.
_NUM_SUBSTITUTES = 100


def require_rule(on_corrupt: OnCorrupt, error: Exception) -> None:
    """Raise what cannot be put up with."""
    if on_corrupt == "raise" or not is_damage(error):
        raise error


def try_twice(
    first: Callable[[], Any], again: Callable[[], Any], on_corrupt: OnCorrupt
) -> tuple[Any, Exception | None]:
    """Make a sample, and once more where a read of it has failed, as that may pass.

    The state would carry a sound sample as damaged into all that goes on from it.

    Parameters
    ----------
    first, again : callable
        Make it.
    on_corrupt : {"raise", "skip", "substitute"}
        The rule.

    Returns
    -------
    sample : object
        None where it is not made.
    error : CorruptFrameError, StorageError or None
        Why not.
    """
    try:
        return first(), None
    except (CorruptFrameError, StorageError) as cause:
        if on_corrupt == "raise" or not isinstance(cause, UnreadablePlaceError):
            return None, cause
    try:
        return again(), None
    except (CorruptFrameError, StorageError) as cause:
        return None, cause


def stand_in(
    dataset: Any,
    idx: Any,
    on_corrupt: OnCorrupt,
    error: Exception,
    make: Callable[[Any, Any], Any],
    damages: list[Damage],
) -> Any:
    """Do about a damaged sample what the rule says; None where it is left out.

    Parameters
    ----------
    dataset, idx : dataset, int
        What was asked for it, perhaps a wrapper, and the sample there; a `SampleIndex`
        where another one is to stand in.
    on_corrupt, error : {"raise", "skip", "substitute"}, Exception
        The rule, and why the sample could not be made.
    make : callable
        From the innermost dataset, and an index there, to a sample.
    damages : list of Damage
        What is come upon is added to it.

    Raises
    ------
    CorruptFrameError, StorageError
        It is not to be put up with, or all that could stand in are damaged as well.
    """
    leaf, asked = find_sample(dataset, idx)
    index, num_tried = asked, 0
    while True:
        require_rule(on_corrupt, error)
        damaged = sample_of(error, leaf, index)
        damages.append(Damage(number_of(dataset, leaf), damaged, str(error)))
        log_damage(idx, on_corrupt, str(error))
        if on_corrupt == "skip":
            return None
        if num_tried == _NUM_SUBSTITUTES:
            raise error
        num_tried += 1
        index = substitute_index(asked, num_tried, len(leaf))
        make_it = partial(make, leaf, index)
        sample, still = try_twice(make_it, make_it, on_corrupt)
        if still is None:
            return sample
        error = still


def log_damage(idx: int, on_corrupt: OnCorrupt, message: str) -> None:
    """Tell of a damaged sample that is put up with."""
    kind = "left out" if on_corrupt == "skip" else "replaced"
    if isinstance(idx, SampleIndex):
        place = idx.epoch, idx.position
        _logger.warning("epoch %d, position %d: sample %s: %s", *place, kind, message)
    else:
        _logger.warning("sample %d %s: %s", idx, kind, message)
