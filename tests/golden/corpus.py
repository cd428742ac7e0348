"""The cases of the golden corpus, and what is said of frames in it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gulpio2 import GulpChunk
from tests.loading import load

if TYPE_CHECKING:
    from collections.abc import Iterable

GOLDEN = Path(__file__).parent


# The original's interpreter loads this file, too.
INPUTS = load(GOLDEN / "inputs.py")


def described(frames: Iterable[np.ndarray]) -> list[dict[str, Any]]:
    """Describe frames as ``make_golden.py`` and ``in_original/describe.py`` do."""
    return [
        {
            "shape": list(frame.shape),
            "sha256": hashlib.sha256(np.ascontiguousarray(frame).tobytes()).hexdigest(),
        }
        for frame in frames
    ]


def write_case(folder: Path, chunks: list[Any]) -> None:
    """Write the chunks of a case with this package, as ``make_golden.py`` does."""
    for number, sessions in enumerate(chunks):
        for flag, appends in sessions:
            chunk = GulpChunk(
                str(folder / f"data_{number}.gulp"),
                str(folder / f"meta_{number}.gmeta"),
            )
            with chunk.open(flag):
                for id_, meta, frames in appends:
                    chunk.append(id_, meta, frames)
