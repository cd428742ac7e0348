"""Frames encoded in their order, by more threads where cores are idle."""

from __future__ import annotations

import threading
from collections import deque
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from gulpio2.codecs.jpeg import encode_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gulpio2.codecs.jpeg import EncoderSettings
    from gulpio2.types import EncodableFrame, StoredFrame

__all__ = ["MAX_HELPERS", "EncodedFrame", "FrameEncoder"]

# Threads beside the calling one. One decoder cannot feed more: decoding takes 1.5 times
# as long as encoding.
MAX_HELPERS = 8
# Frames under way per thread, so that none waits for the slowest of them.
_AHEAD = 2

EncodedFrame = tuple["int | None", bytes]
"""Presentation time in ticks, None where unknown, and the bytes of the JPEG."""


_DROPPED = object()


class _Job:
    """One frame on its way through a thread."""

    __slots__ = ("_finished", "_image", "_settings", "error", "jpeg", "pts", "ready")

    def __init__(self, frame: StoredFrame, settings: EncoderSettings) -> None:
        self._image: EncodableFrame = frame.image
        self._settings = settings
        self.pts = frame.pts
        self.jpeg = b""
        self.error: Exception | None = None
        self.ready = False
        self._finished = threading.Lock()
        self._finished.acquire()

    def work(self) -> None:
        image, self._image = self._image, _DROPPED
        if image is not _DROPPED:
            try:
                self.jpeg = encode_frame(image, self._settings)
            except Exception as error:  # noqa: BLE001  # raised by `result`
                self.error = error
        self.ready = True
        self._finished.release()

    def drop(self) -> None:
        """Let go of the frame, whose turn will not come."""
        self._image = None

    def wait(self) -> None:
        """Return once another thread has finished it."""
        self._finished.acquire()

    def result(self) -> EncodedFrame:
        if self.error is not None:
            raise self.error
        return self.pts, self.jpeg


class FrameEncoder:
    """Encodes the frames of one item after another, in their order.

    Parameters
    ----------
    helpers : callable, optional
        Says how many more threads may work at this moment; asked at every frame. At
        most `MAX_HELPERS` are used. Default: none.

    Notes
    -----
    The bytes and the errors are the same for any number of threads. A few frames per
    thread are held at a time.
    """

    def __init__(self, helpers: Callable[[], int] | None = None) -> None:
        self._helpers = helpers
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []

    def encode(
        self, frames: Iterable[StoredFrame], settings: Callable[[], EncoderSettings]
    ) -> Iterator[EncodedFrame]:
        """Encode frames while they come in.

        Parameters
        ----------
        frames : iterable of StoredFrame
            Where threads help, a frame must stay as it is after the next one came.
        settings : callable
            Asked at every frame.

        Yields
        ------
        EncodedFrame
            In the order of `frames`.

        Raises
        ------
        Exception
            What `frames` or the encoder raises, after all frames before were yielded.
        """
        if self._helpers is None:
            for frame in frames:
                yield frame.pts, encode_frame(frame.image, settings())
            return
        pending: deque[_Job] = deque()
        failure: Exception | None = None
        source = iter(frames)
        try:
            while True:
                try:
                    frame = next(source)
                except StopIteration:
                    break
                except Exception as error:  # noqa: BLE001  # raised in its turn
                    failure = error
                    break
                helpers = min(self._helpers(), MAX_HELPERS)
                if helpers < 1 and not pending:
                    yield frame.pts, encode_frame(frame.image, settings())
                    continue
                job = _Job(frame, settings())
                pending.append(job)
                self._hand_out(job, helpers)
                most = _AHEAD * (len(self._threads) + 1)
                while pending and (pending[0].ready or len(pending) > most):
                    yield self._finish(pending.popleft())
            while pending:
                yield self._finish(pending.popleft())
        finally:
            for job in pending:
                job.drop()
        if failure is not None:
            raise failure

    def close(self) -> None:
        """End the threads."""
        threads, self._threads = self._threads, []
        for _ in threads:
            self._jobs.put(None)
        for thread in threads:
            thread.join()

    def _hand_out(self, job: _Job, helpers: int) -> None:
        while len(self._threads) < helpers:
            thread = threading.Thread(
                target=_serve, args=(self._jobs,), name="gulpio2-encoder", daemon=True
            )
            try:
                thread.start()
            except RuntimeError:  # the system gives no more: go on without
                break
            self._threads.append(thread)
        if self._threads:
            self._jobs.put(job)
        else:
            job.work()

    def _finish(self, job: _Job) -> EncodedFrame:
        """Wait for a job, and help meanwhile."""
        while not job.ready:
            try:
                other = self._jobs.get_nowait()
            except Empty:
                job.wait()
                break
            if other is not None:
                other.work()
        return job.result()


def _serve(jobs: SimpleQueue[_Job | None]) -> None:
    """Work until None comes."""
    while (job := jobs.get()) is not None:
        job.work()
        # A frame must not live until the next one comes.
        del job
