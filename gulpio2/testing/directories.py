"""Small gulp directories, made at once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import default_rng

from gulpio2.adapters.base import AbstractDatasetAdapter
from gulpio2.chunk import GulpChunk
from gulpio2.directory import GulpDirectory
from gulpio2.errors import SourceReadError
from gulpio2.format.layout import data_name, meta_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from gulpio2.types import Item, StrPath

__all__ = ["FrameAdapter", "make_frames", "make_gulp_directory"]


class FrameAdapter(AbstractDatasetAdapter):
    """An adapter over frames that it draws: items ``item0``, ``item1``, ...

    Parameters
    ----------
    num_items, num_frames, height, width : int
        How much of it.
    bad : sequence of int
        Positions whose frames cannot be read.
    list_ids : bool
        Whether `item_ids` tells the ids in advance.
    """

    def __init__(
        self,
        *,
        num_items: int = 4,
        num_frames: int = 4,
        height: int = 24,
        width: int = 32,
        bad: Sequence[int] = (),
        list_ids: bool = True,
    ) -> None:
        self.num_items = num_items
        self.num_frames = num_frames
        self.height = height
        self.width = width
        self.bad = tuple(bad)
        self.list_ids = list_ids

    def __len__(self) -> int:
        """Count the items."""
        return self.num_items

    def item_ids(self) -> list[str] | None:
        """List the ids, if the adapter is to."""
        if not self.list_ids:
            return None
        return [f"item{number}" for number in range(self.num_items)]

    def iter_data(self, slice_element: slice | None = None) -> Iterator[Item]:
        """Yield items whose frames are drawn as they are taken."""
        for number in range(self.num_items)[slice_element or slice(None)]:
            yield {
                "meta": {"number": number},
                "frames": self._frames(number),
                "id": f"item{number}",
            }

    def _frames(self, number: int) -> Iterator[npt.NDArray[np.uint8]]:
        frames = make_frames(self.num_frames, self.height, self.width, seed=number)
        for index, frame in enumerate(frames):
            if number in self.bad and index == len(frames) // 2:
                raise SourceReadError(f"item{number} was made to fail")
            yield frame


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
    rng = default_rng(seed)
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
