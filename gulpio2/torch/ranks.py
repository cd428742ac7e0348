"""Which of several training processes this one is."""

from __future__ import annotations

import logging
import os
import secrets
import sys
from typing import Any

__all__ = ["rank_and_count", "share_of", "shared_seed"]

_logger = logging.getLogger(__name__)


def _distributed() -> Any:
    """Give ``torch.distributed`` where it can run; it cannot before torch is there."""
    torch = sys.modules.get("torch")
    distributed: Any = getattr(torch, "distributed", None)
    available = distributed is not None and distributed.is_available()
    return distributed if available else None


def rank_and_count(asker: object, *, may_be_given: bool = True) -> tuple[int, int]:
    """Give this process's rank and how many there are; 0 and 1 without others.

    A warning tells of processes that were started together and do not know of each
    other yet: each would do all the work.

    Parameters
    ----------
    asker : object
        The loader or sampler that shares its samples out by it.
    may_be_given : bool, default True
        Whether it takes ``rank`` and ``num_ranks`` from its caller, too.
    """
    distributed = _distributed()
    if distributed is not None and distributed.is_initialized():
        return int(distributed.get_rank()), int(distributed.get_world_size())
    launched = os.environ.get("WORLD_SIZE", "")
    if launched.isdecimal() and int(launched) > 1:  # also before torch is there
        name = type(asker).__name__
        _logger.warning(
            "%s was made before torch.distributed was initialised, and WORLD_SIZE is "
            "%s: every rank gets all samples instead of its share. Make the %s after "
            "torch.distributed.init_process_group()%s",
            name,
            launched,
            name,
            ", or give it rank= and num_ranks=" if may_be_given else "",
        )
    return 0, 1


def share_of(asker: object, rank: int | None, num_ranks: int | None) -> tuple[int, int]:
    """Give a process's share as its caller says it, or else by `rank_and_count`.

    Raises
    ------
    ValueError
        Only one of the two is given.
    """
    if rank is not None and num_ranks is not None:
        return rank, num_ranks
    if rank is not None or num_ranks is not None:
        raise ValueError(f"rank is {rank} and num_ranks {num_ranks}: give both")
    return rank_and_count(asker)


def shared_seed() -> int:
    """Draw a seed on the first rank and give it to all."""
    drawn: list[Any] = [secrets.randbelow(2**31)]
    distributed = _distributed()
    if distributed is not None and distributed.is_initialized():
        distributed.broadcast_object_list(drawn, src=0)
    return int(drawn[0])
