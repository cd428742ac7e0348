"""Cores that are idle, lent to a task that decodes a video."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from gulpio2.codecs.encoding import MAX_HELPERS
from gulpio2.media.deferred import DeferredFrames
from gulpio2.media.video import VideoFrames

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["lent_cores"]


@contextlib.contextmanager
def lent_cores(frames: Any, idle_cores: Callable[[], int] | None) -> Iterator[None]:
    """Have an item's frames decoded with more threads where cores are idle.

    Parameters
    ----------
    frames : object
        What the adapter gave. Only videos are decoded by several threads.
    idle_cores : callable or None
        As `gulpio2.ingest.task.run_task` takes it.
    """
    video = frames
    idle = 0 if idle_cores is None else min(idle_cores(), MAX_HELPERS)
    if idle > 0 and isinstance(frames, DeferredFrames):
        with contextlib.suppress(Exception):  # it is raised again when they are read
            video = frames.found()
    if not (idle > 0 and isinstance(video, VideoFrames) and video.threads == 1):
        yield
        return
    # The thread that takes the frames can decode them, which keeps another busy with
    # the rest. Where they are made smaller, decoding is most of the work.
    video.threads = idle + (video.frame_size > 0)
    try:
        yield
    finally:
        video.threads = 1
