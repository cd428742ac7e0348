"""A picture of what is in a gulp directory: some frames of some items."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gulpio2.cli.summary import refusal, spread
from gulpio2.errors import GulpError
from gulpio2.format.wording import counted
from gulpio2.tolerant import is_damage
from gulpio2.types import no_progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from gulpio2.item import StoredItem
    from gulpio2.types import Progress

    Image = npt.NDArray[np.uint8]

__all__ = ["draw_contact_sheet"]

# Pixels.
_GAP = 4
_CAPTION = 22
_BACKGROUND = 24
_TEXT = (232, 232, 232)
_DAMAGED = (200, 60, 60)


def draw_contact_sheet(
    items: Sequence[StoredItem],
    *,
    num_frames: int = 6,
    frame_height: int = 120,
    frame_width: int = 160,
    refused: dict[str, str] | None = None,
    progress: Progress = no_progress,
) -> Image:
    """Draw a row for each item: its id, and frames evenly spread over it.

    Parameters
    ----------
    items : sequence of StoredItem
        At least one.
    num_frames : int, optional
        Frames to a row.
    frame_height, frame_width : int, optional
        Box in pixels that each frame is shrunk or enlarged into, its shape kept.
    refused : dict, optional
        Takes the name of each data file that cannot be opened or read, and why, and the
        boxes of those frames are crossed. Without it, one that is not opened raises.
    progress : Progress, optional
        Called for each item, and for each of its frames.

    Returns
    -------
    numpy.ndarray
        ``(height, width, 3)`` uint8 RGB. A frame that cannot be decoded is a crossed
        box.
    """
    width = num_frames * (frame_width + _GAP) + _GAP
    row_height = _CAPTION + frame_height + _GAP
    sheet = np.full((row_height * len(items) + _GAP, width, 3), _BACKGROUND, np.uint8)
    for row, item in enumerate(items):
        top = row * row_height + _GAP
        _write(sheet, _caption(item), (_GAP, top + _CAPTION - 8), width - 2 * _GAP)
        for column, index in enumerate(spread(range(item.num_frames), num_frames)):
            left = _GAP + column * (frame_width + _GAP)
            box = sheet[
                top + _CAPTION : top + _CAPTION + frame_height,
                left : left + frame_width,
            ]
            _draw_frame(box, item, index, refused)
            progress(frames=1)
        progress(items=1)
    return sheet


def _caption(item: StoredItem) -> str:
    label = item.meta.get("label")
    text = f"{item.id_}  |  {counted(item.num_frames, 'frame')}"
    if label is not None:
        text += f"  |  {label}"
    return "".join(map(_shown, unicodedata.normalize("NFC", text)))


@lru_cache(maxsize=4096)
def _shown(letter: str) -> str:
    """Give a letter if OpenCV can draw it, and else as Python writes it.

    The letters of OpenCV 4 are those of ASCII. OpenCV 5 has those of many languages,
    and draws words from right to left, and accents by themselves, in wrong places.
    """
    is_plain = (
        not letter.isascii()
        and letter.isprintable()
        and unicodedata.bidirectional(letter) not in ("R", "AL", "NSM")
    )
    # OpenCV 4 draws a question mark for each byte.
    others = (" ", "?", "?" * len(letter.encode("utf-8", "replace")))
    if is_plain and _drawn(letter) not in map(_drawn, others):
        return letter
    return letter.encode("unicode_escape").decode("ascii")


def _drawn(letter: str) -> bytes:
    sheet = np.zeros((_CAPTION, 2 * _CAPTION, 3), np.uint8)
    _write(sheet, letter, (_GAP, _CAPTION - 8), 2 * _CAPTION)
    return sheet.tobytes()


def _write(sheet: Image, text: str, origin: tuple[int, int], room: int) -> None:
    import cv2

    font, scale = cv2.FONT_HERSHEY_SIMPLEX, 0.45

    def width(shown: str) -> int:
        return int(cv2.getTextSize(shown, font, scale, 1)[0][0])

    if width(text) > room:
        # By halves: a label may be a text of many pages.
        letters = range(len(text))
        cut = bisect_right(letters, room, key=lambda n: width(f"{text[:n]}..."))
        text = f"{text[: max(0, cut - 1)]}..."
    cv2.putText(sheet, text, origin, font, scale, _TEXT, 1, cv2.LINE_AA)


def _draw_frame(
    box: Image, item: StoredItem, index: int, refused: dict[str, str] | None
) -> None:
    import cv2

    height, width = box.shape[:2]
    try:
        frame = item.read_frames([index])[0]
    except GulpError as error:
        if refused is not None and (why := refusal(item, error)):
            refused[Path(item.data_path).name] = why
        elif not is_damage(error):
            raise
        cv2.rectangle(box, (0, 0), (width - 1, height - 1), _DAMAGED, 1)
        cv2.line(box, (0, 0), (width - 1, height - 1), _DAMAGED, 1)
        cv2.line(box, (0, height - 1), (width - 1, 0), _DAMAGED, 1)
        return
    if frame.ndim == 2:
        frame = cv2.cvtColor(frame, cv2.COLOR_GRAY2RGB)
    scale = min(height / frame.shape[0], width / frame.shape[1])
    shape = (
        max(1, min(width, round(frame.shape[1] * scale))),
        max(1, min(height, round(frame.shape[0] * scale))),
    )
    how = cv2.INTER_AREA if scale < 1 else cv2.INTER_NEAREST
    small = cv2.resize(frame, shape, interpolation=how)
    top, left = (height - shape[1]) // 2, (width - shape[0]) // 2
    box[top : top + shape[1], left : left + shape[0]] = small
