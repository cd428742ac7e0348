"""Small gulp directories, made at once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gulpio2.chunk import GulpChunk
from gulpio2.directory import GulpDirectory
from gulpio2.format.layout import data_name, meta_name

if TYPE_CHECKING:
    import numpy.typing as npt

    from gulpio2.types import StrPath

__all__ = ["make_frames", "make_gulp_directory"]


def make_frames(
    num_frames: int,
    height: int = 24,
    width: int = 32,
    *,
    grey: bool = False,
    seed: int = 0,
) -> list[npt.NDArray[np.uint8]]:
    """Draw smooth frames, each different from every other.

    Returns
    -------
    list of numpy.ndarray
        ``(height, width, 3)`` uint8 RGB, or ``(height, width)``.
    """
    rng = np.random.default_rng(seed)
    rows = np.linspace(0, 1, height)[:, None, None]
    columns = np.linspace(0, 1, width)[None, :, None]
    frames = []
    for _ in range(num_frames):
        slopes = rng.uniform(-120, 120, (2, 1, 1, 3))
        frame = 128 + slopes[0] * (rows - 0.5) + slopes[1] * (columns - 0.5)
        pixels = np.clip(frame, 0, 255).astype(np.uint8)
        frames.append(pixels[..., 0].copy() if grey else pixels)
    return frames


def make_gulp_directory(
    folder: StrPath,
    *,
    num_items: int = 4,
    num_frames: int = 6,
    items_per_chunk: int = 2,
    height: int = 24,
    width: int = 32,
) -> GulpDirectory:
    """Write items ``item0``, ``item1``, ... with metadata ``{"number": n}``.

    Returns
    -------
    GulpDirectory
        Opened.
    """
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    for number, first in enumerate(range(0, num_items, items_per_chunk)):
        chunk = GulpChunk(path / data_name(number), path / meta_name(number))
        with chunk.open("wb"):
            for item in range(first, min(first + items_per_chunk, num_items)):
                frames = make_frames(num_frames, height, width, seed=item)
                chunk.append(f"item{item}", {"number": item}, frames)
    return GulpDirectory(folder)
