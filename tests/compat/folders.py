"""What the tests look up in gulp directories and outputs, and put into folders."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import pytest

from gulpio2 import GulpChunk, GulpDirectory

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

__all__ = ["chunk_in", "counts_in", "ids_in", "printed_mapping", "save_image"]


def chunk_in(folder: Path, number: int = 0) -> GulpChunk:
    """Give the chunk of this number in a folder, not opened."""
    folder.mkdir(parents=True, exist_ok=True)
    return GulpChunk(
        str(folder / f"data_{number}.gulp"), str(folder / f"meta_{number}.gmeta")
    )


def ids_in(folder: Path) -> list[str]:
    """Give all ids of a directory."""
    return list(GulpDirectory(folder).merged_meta_dict)


def counts_in(folder: Path) -> dict[str, int]:
    """Give the number of frames of each item."""
    entries = GulpDirectory(folder).merged_meta_dict
    return {id_: len(entry["frame_info"]) for id_, entry in entries.items()}


def printed_mapping(out: str) -> dict[str, Any]:
    """Parse the argument mapping that an ingest script prints first."""
    text = out[out.index("{") : out.index("}") + 1]
    mapping: dict[str, Any] = ast.literal_eval(text)
    return mapping


def save_image(path: Path, pixels: np.ndarray) -> Path:
    """Write an image file."""
    image = pytest.importorskip("PIL.Image")
    path.parent.mkdir(parents=True, exist_ok=True)
    image.fromarray(pixels).save(path)
    return path
