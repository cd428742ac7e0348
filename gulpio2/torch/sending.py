"""What a worker process of a loader can send to the trainer."""

from __future__ import annotations

import pickle
import sys
from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["cannot_be_sent", "is_in_torch_worker", "require_sendable"]

_PLAIN = (str, bytes, int, float, complex, bool, type(None), np.generic)


def is_in_torch_worker() -> bool:
    """Tell whether this is a worker of a ``torch.utils.data.DataLoader``."""
    torch: Any = sys.modules.get("torch")
    return torch is not None and torch.utils.data.get_worker_info() is not None


def require_sendable(values: Iterable[Any]) -> None:
    """Refuse what a worker of a ``DataLoader`` cannot send.

    Torch pickles a batch in a thread of the worker. What it raises there reaches
    nobody, and the trainer waits for the batch for ever.

    Parameters
    ----------
    values : iterable
        What samples have at one place.

    Raises
    ------
    TypeError
        One cannot be pickled.
    """
    for value in values:
        if isinstance(value, _PLAIN):
            continue
        if isinstance(value, np.ndarray) and not value.dtype.hasobject:
            continue
        if isinstance(value, sys.modules["torch"].Tensor):
            if value.requires_grad and not value.is_leaf:
                raise cannot_be_sent("it is computed from what requires a gradient")
            continue
        try:
            pickle.dumps(value)
        except Exception:  # noqa: BLE001  # of what somebody's own target gives
            try:  # what only torch's pickler knows
                ForkingPickler.dumps(value)
            except Exception as cause:
                raise cannot_be_sent(cause) from cause


def cannot_be_sent(cause: object) -> TypeError:
    """Say that something of a sample cannot be pickled, and what to do."""
    return TypeError(
        "the target of a sample, or what its dataset knows of it, cannot be sent from "
        f"a worker process ({cause}): give the loader no workers (a GulpLoader threads "
        "in their place), or targets that can be pickled"
    )
