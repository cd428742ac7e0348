"""What a worker process of a loader can send to the trainer."""

from __future__ import annotations

import pickle
import sys
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

__all__ = ["cannot_be_sent", "require_sendable"]


class _Nowhere:
    """Takes what is written, and drops it."""

    def write(self, data: Any) -> int:
        return len(data)


class _Probe(ForkingPickler):
    """Pickles as torch does, but for what tensors and arrays hold."""

    def reducer_override(self, value: Any) -> Any:
        torch = sys.modules["torch"]
        if isinstance(value, torch.Tensor):
            if value.requires_grad and not value.is_leaf:
                raise pickle.PicklingError("a tensor that requires a gradient")
            is_plain = type(value) in (torch.Tensor, torch.nn.Parameter)
        else:
            is_plain = type(value) is np.ndarray and not value.dtype.hasobject
        return (_nothing, ()) if is_plain else NotImplemented


def _nothing() -> None:
    """Stand for what is not looked at."""


def require_sendable(batch: Any) -> None:
    """In a worker of a ``DataLoader``, refuse a batch that it cannot send.

    Torch pickles a batch in a thread of the worker. What it raises there reaches
    nobody, and the trainer waits for the batch for ever.

    Raises
    ------
    TypeError
        Something in it cannot be pickled.
    """
    torch: Any = sys.modules.get("torch")
    if torch is None or torch.utils.data.get_worker_info() is None:
        return
    try:
        _Probe(_Nowhere(), pickle.HIGHEST_PROTOCOL).dump(batch)
    except Exception as cause:
        raise cannot_be_sent(cause) from cause


def cannot_be_sent(cause: object) -> TypeError:
    """Say that something of a sample cannot be pickled, and what to do."""
    return TypeError(
        "the target of a sample, or what its dataset knows of it, cannot be sent from "
        f"a worker process ({cause}): give the loader no workers (a GulpLoader threads "
        "in their place), or targets that can be pickled, tensors without gradients"
    )
