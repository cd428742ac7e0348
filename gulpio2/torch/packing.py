"""A list of samples in two arrays, which forked workers share and do not copy."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["pack_samples", "take_packed", "unpack_sample"]

Bytes = npt.NDArray[np.uint8]
Ends = npt.NDArray[np.int64]


def pack_samples(samples: Sequence[dict[str, Any]]) -> tuple[Bytes, Ends]:
    """Pickle every sample into one array.

    Parameters
    ----------
    samples : sequence of dict
        Perhaps none.

    Returns
    -------
    data : numpy.ndarray of uint8
        All samples, one after the other.
    ends : numpy.ndarray of int64
        Where each ends in it.

    Notes
    -----
    A page with Python objects on it is copied in every worker as soon as it is looked
    at, because looking counts a reference; a page of bytes never is.
    """
    pickled = [pickle.dumps(sample, protocol=4) for sample in samples]
    ends = np.cumsum([len(data) for data in pickled], dtype=np.int64)
    return np.frombuffer(b"".join(pickled), dtype=np.uint8).copy(), ends


def unpack_sample(data: Bytes, ends: Ends, position: int) -> dict[str, Any]:
    """Make a new copy of the sample at a position in ``[0, len(ends))``."""
    start = ends.item(position - 1) if position else 0
    pickled = data[start : ends.item(position)].data
    sample: dict[str, Any] = pickle.loads(pickled)  # noqa: S301  packed by this object
    return sample


def take_packed(
    data: Bytes, ends: Ends, positions: npt.NDArray[np.int64]
) -> tuple[Bytes, Ends]:
    """Copy the samples at some positions, in this order, into arrays of their own."""
    starts = np.concatenate([np.zeros(1, np.int64), ends])[positions]
    stops = ends[positions]
    parts = [data[start:stop] for start, stop in zip(starts, stops, strict=True)]
    taken = np.concatenate([np.empty(0, np.uint8), *parts])
    return taken, np.cumsum(stops - starts, dtype=np.int64)
