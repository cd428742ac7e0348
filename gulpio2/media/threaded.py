"""Decoding by several threads, where that gives what one thread gives.

With several threads FFmpeg sees damage late, and some of it never: a frame is handed
out before the thread that decodes one it is predicted from has found the fault, frames
that are missing are made up from others, and PyAV drops an error that comes while the
decoder is emptied. So only videos without a gap are decoded so, which `thread_choice`
tells, by stricter rules: what could be mended is an error, each packet has to give its
frame, and frames are held back until those decoded before them are known to be sound.
After an error the rest comes from one thread. What is told of a file, and what is
stored, never depends on threads.
"""

from __future__ import annotations

import contextlib
from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["REORDERED", "awaited", "held_back", "set_threads", "with_last"]

# An error where a frame would else be mended, and where something can be checked.
_STRICT = "crccheck+bitstream+buffer+explode"
# Threads at most where FFmpeg chooses how many.
_MOST = 16
# So many frames at most come before one that was decoded before them; fewer where they
# are large (ITU-T H.264, table A-1, level 5.2: pixels of all together).
REORDERED, _REORDERED_PIXELS = 16, 184_320 * 256


def set_threads(codec: Any, threads: int) -> int:
    """Have a decoder use so many threads.

    Parameters
    ----------
    codec : av.VideoCodecContext
        Not open yet.
    threads : int
        0 for as many as there are cores.

    Returns
    -------
    int
        How many there may be.
    """
    codec.thread_count = threads
    if threads == 1:
        codec.thread_type = "NONE"
        return 1
    codec.thread_type = "FRAME"
    codec.options = {**codec.options, "err_detect": _STRICT}
    return threads or _MOST


@contextlib.contextmanager
def awaited(codec: Any, threads: int) -> Iterator[None]:
    """Wait at the end of the block for what a decoder's threads have begun.

    PyAV does so too when it frees a decoder, but holds the interpreter's lock then.
    Where a program has the messages of FFmpeg logged, a thread that has one to tell
    waits for that lock, and both for ever.

    Parameters
    ----------
    codec : av.VideoCodecContext
        Used in the block.
    threads : int
        How many it may have.
    """
    try:
        yield
    finally:
        if threads > 1:
            codec.flush_buffers()


def with_last(packets: Iterable[Any], number: int) -> Iterator[tuple[Any, bool]]:
    """Say of each packet whether it is among the last of them.

    Examples
    --------
    >>> list(with_last("abc", 2))
    [('a', False), ('b', True), ('c', True)]
    """
    waiting: deque[Any] = deque()
    for packet in packets:
        waiting.append(packet)
        if len(waiting) > number:
            yield waiting.popleft(), False
    for packet in waiting:
        yield packet, True


def held_back(frames: Iterable[Any]) -> Iterator[Any]:
    """Give frames once those that they may be predicted from have come too."""
    waiting: deque[Any] = deque()
    for frame in frames:
        waiting.append(frame)
        most = _REORDERED_PIXELS // (frame.width * frame.height)
        if len(waiting) > min(REORDERED, most):
            yield waiting.popleft()
    yield from waiting
