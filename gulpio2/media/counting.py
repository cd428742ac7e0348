"""How many packets a container promises."""

from __future__ import annotations

from typing import Any

import av

__all__ = ["promised_packets"]

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
