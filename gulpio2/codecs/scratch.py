"""Memory for a frame that is looked at once."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING

import numpy as np

from gulpio2.codecs.output import empty_frames

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["scratch_frame"]


class _Scratch(threading.local):
    """One frame per thread, kept from call to call."""

    def __init__(self) -> None:
        self.memory: npt.NDArray[np.uint8] = np.empty(0, np.uint8)
        self.frame = self.memory


_SCRATCH = _Scratch()


def scratch_frame(shape: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    """Give this thread's memory for a frame; what was in it is gone."""
    if _SCRATCH.frame.shape != shape:
        size = math.prod(shape)
        if _SCRATCH.memory.size < size:
            _SCRATCH.memory = empty_frames(shape).reshape(-1)
        _SCRATCH.frame = _SCRATCH.memory[:size].reshape(shape)
    return _SCRATCH.frame
