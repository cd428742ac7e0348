"""Times of frames that go back, as where the same frames were appended twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gulpio2.format.entry import EXTRAS_KEY
from gulpio2.format.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

__all__ = ["note_times_back"]

_TEXT = (
    "has an earlier time than the frame before it: were the same frames appended "
    "twice? What reads by time goes by the times, what reads by index by the order "
    "here. Where that is not meant, `gulp2 delete` the item and ingest it again"
)


def note_times_back(id_: str, entry: Mapping[str, Any], file: str) -> list[Problem]:
    """Note the first frame of an item that is before the frame in front of it.

    Parameters
    ----------
    id_ : str
        The item.
    entry : mapping
        Its entry, with extras that are in order and of all of its frames.
    file : str
        Name of the map.

    Returns
    -------
    list of Problem
        One at most. Looked for by the runs of times, of which most items have one, and
        not frame by frame.
    """
    runs = entry[EXTRAS_KEY].get("pts", ())
    frame = _first_back(runs)
    if frame is None:
        return []
    return [Problem("times-go-back", _TEXT, file, id_, frame)]


def _first_back(runs: Sequence[Sequence[int]]) -> int | None:
    """Find the first frame whose time is before that of the frame in front of it."""
    frame, last = 0, runs[0][0] if runs else 0
    for start, step, count in runs:
        if start < last:
            return frame
        if step < 0 and count > 1:
            return frame + 1
        frame, last = frame + count, start + step * (count - 1)
    return None
