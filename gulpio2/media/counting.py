"""How many packets a container promises, and how many of them gave no frame."""

from __future__ import annotations

from typing import Any

import av

__all__ = ["LostBeginning", "promised_packets"]

# Containers that count their frames: there, fewer packets than that are too few.
_MOV = "mov,mp4,m4a,3gp,3g2,mj2"
_COUNTED = frozenset({_MOV, "avi"})


def promised_packets(path: str, container: Any, stream: Any, *, max_pixels: int) -> int:
    """Count the packets that a stream must have, as it was opened; 0 for unknown.

    An edit list leaves out samples that MP4 and MOV count. What is missing from the
    index for it is none of the promise; what is missing for anything else is.
    """
    name = str(container.format.name)
    # Fragmented files raise their count as they are read.
    promised = int(stream.frames) if name in _COUNTED else 0
    indexed = len(stream.index_entries)
    if name != _MOV or not 0 < indexed < promised:
        return promised
    options = {"max_pixels": str(max_pixels)}
    whole = {"format_whitelist": name, "ignore_editlist": "1"}
    try:
        with av.open(
            f"file:{path}", options=options, container_options=whole
        ) as unedited:
            complete = len(unedited.streams[stream.index].index_entries) == promised
    except (av.FFmpegError, ValueError, IndexError):
        return promised
    return indexed if complete else promised


class LostBeginning:
    """Packets that are to be shown before the first frame that was decoded.

    They are those of a video that was cut between two key frames without encoding it:
    the decoder passes over what it cannot decode, and says nothing.

    Examples
    --------
    >>> lost = LostBeginning()
    >>> lost.see_packet(0)
    >>> lost.see_first_frame(2)
    >>> lost.see_packet(1)
    >>> lost.count
    2
    """

    def __init__(self) -> None:
        self.count = 0
        self._first: int | None = None
        self._waiting: list[int] = []
        self._is_unknown = False

    def see_packet(self, pts: int | None) -> None:
        """Take a packet that is to be shown, before it is decoded."""
        if pts is None or self._is_unknown:
            return
        if self._first is None:
            self._waiting.append(pts)
        elif pts < self._first:
            self.count += 1

    def see_first_frame(self, pts: int | None) -> None:
        """Take the first frame that was decoded."""
        if pts is None:
            self._is_unknown = True
            return
        self._first = pts
        self.count = sum(waiting < pts for waiting in self._waiting)
        self._waiting.clear()
