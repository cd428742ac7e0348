"""Frames encoded in their order, by more threads where cores are idle.

One thread then takes frames from their source, which is to decode them; the calling one
and the others encode. Idle threads take any waiting frame.
"""

from __future__ import annotations

import contextlib
import threading
from itertools import chain
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from gulpio2.codecs.jpeg import encode_frame
from gulpio2.types import DeferredImage

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from gulpio2.codecs.jpeg import EncoderSettings
    from gulpio2.types import EncodableFrame, StoredFrame

__all__ = ["MAX_HELPERS", "EncodedFrame", "FrameEncoder"]

# Threads beside the calling one. More have nothing to do: one thread takes the frames
# out of the source for all of them.
MAX_HELPERS = 8
# Frames under way per thread, so that none waits for the slowest of them.
_AHEAD = 2

EncodedFrame = tuple["int | None", bytes]
"""Presentation time in ticks, None where unknown, and the bytes of the JPEG."""


_DROPPED = object()


def _encode(image: EncodableFrame, settings: EncoderSettings) -> bytes:
    if type(image) is DeferredImage:
        image = image.make()
    return encode_frame(image, settings)


class _Job:
    """One frame on its way through a thread."""

    __slots__ = ("_finished", "_image", "_settings", "error", "jpeg", "pts", "ready")

    def __init__(self, frame: StoredFrame, settings: EncoderSettings) -> None:
        self._image: EncodableFrame = frame.image
        self._settings = settings
        self.pts = frame.pts
        self.jpeg = b""
        self.error: BaseException | None = None
        self.ready = False
        self._finished = threading.Lock()
        self._finished.acquire()

    def work(self) -> None:
        image, self._image = self._image, _DROPPED
        if image is not _DROPPED:
            try:
                self.jpeg = _encode(image, self._settings)
            except KeyboardInterrupt:  # of the calling thread, which waits no more
                raise
            except BaseException as error:  # noqa: BLE001  # raised by `result`
                self.error = error
        self.ready = True
        self._finished.release()

    def drop(self) -> None:
        """Let go of the frame, whose turn will not come."""
        self._image = _DROPPED

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

    @property
    def is_helped(self) -> Callable[[], bool] | None:
        """Says whether other threads would help now; None where none ever do."""
        return None if self._helpers is None else self._has_help

    def _has_help(self) -> bool:
        return self._helpers is not None and self._helpers() > 0

    def encode(
        self, frames: Iterable[StoredFrame], settings: Callable[[], EncoderSettings]
    ) -> Generator[EncodedFrame, None, None]:
        """Encode frames while they come in.

        Parameters
        ----------
        frames : iterable of StoredFrame
            Where threads help, a frame must stay as it is after the next one came, and
            the iterator is taken on by another thread.
        settings : callable
            Asked at every frame.

        Yields
        ------
        EncodedFrame
            In the order of `frames`.

        Raises
        ------
        BaseException
            What `frames`, a frame or the encoder raises, after all frames before were
            yielded.
        """
        source = iter(frames)
        for number, frame in enumerate(source):
            # Not for the first: of an item of one frame, such as an image, nothing is
            # left to do by others, and starting a thread takes longer than storing it.
            if number and self._has_help():
                feeder = _Feeder(chain((frame,), source), settings, self._jobs)
                if feeder.start():
                    yield from self._encode_fed(feeder)
                    return
            yield frame.pts, _encode(frame.image, settings())

    def _encode_fed(self, feeder: _Feeder) -> Iterator[EncodedFrame]:
        """Encode what a feeder hands over."""
        try:
            while (job := feeder.take()) is not None:
                helpers = 0 if self._helpers is None else self._helpers()
                # The feeder is one of them.
                self._begin_threads(min(helpers, MAX_HELPERS) - 1)
                feeder.hold(_AHEAD * (len(self._threads) + 2))
                _help_until(job, self._jobs)
                yield job.result()
        finally:
            feeder.stop()

    def close(self) -> None:
        """End the threads."""
        threads, self._threads = self._threads, []
        for _ in threads:
            self._jobs.put(None)
        for thread in threads:
            thread.join()

    def _begin_threads(self, number: int) -> None:
        while len(self._threads) < number:
            thread = threading.Thread(
                target=_serve, args=(self._jobs,), name="gulpio2-encoder", daemon=True
            )
            try:
                thread.start()
            except RuntimeError:  # the system gives no more: go on without
                break
            self._threads.append(thread)


class _Feeder:
    """Takes frames from their source in a thread of its own, a few ahead.

    Parameters
    ----------
    source : iterator of StoredFrame
        Used by that thread alone.
    settings : callable
        Asked at every frame.
    jobs : SimpleQueue
        Where others look for work.
    """

    def __init__(
        self,
        source: Iterator[StoredFrame],
        settings: Callable[[], EncoderSettings],
        jobs: SimpleQueue[_Job | None],
    ) -> None:
        self._source = source
        self._settings = settings
        self._jobs = jobs
        self._order: SimpleQueue[_Job | None] = SimpleQueue()
        self._failure: BaseException | None = None
        # A thing for each frame that there is room for. No semaphore, which is made of
        # functions of Python: an interrupt in one leaves its lock taken.
        self._room: SimpleQueue[None] = SimpleQueue()
        self._held = 0
        self.hold(2 * _AHEAD)
        self._stopped = False
        self._thread = threading.Thread(
            target=self._feed, name="gulpio2-feeder", daemon=True
        )

    def start(self) -> bool:
        """Begin; False where the system gives no thread."""
        try:
            self._thread.start()
        except RuntimeError:
            return False
        return True

    def hold(self, frames: int) -> None:
        """Hold at least so many frames; asked for by the thread that takes them."""
        while self._held < frames:
            self._room.put(None)
            self._held += 1

    def take(self) -> _Job | None:
        """Give the next frame, encoded or not; None at the end.

        Raises
        ------
        BaseException
            What the source raised, in its turn.
        """
        job = self._order.get()
        if job is None and self._failure is not None:
            raise self._failure
        self._room.put(None)
        return job

    def stop(self) -> None:
        """End the thread, and forget what nobody took."""
        self._stopped = True
        self._room.put(None)
        self._thread.join()
        with contextlib.suppress(Empty):
            while (job := self._order.get_nowait()) is not None:
                job.drop()

    def _feed(self) -> None:
        try:
            for frame in self._source:
                job = _Job(frame, self._settings())
                del frame
                # In this order: who waits for a job must be able to do it itself, for
                # this thread may come to its end before anybody else takes it.
                self._jobs.put(job)
                self._order.put(job)
                while self._room.empty() and _help(self._jobs):
                    pass
                self._room.get()
                if self._stopped:
                    break
        except BaseException as error:  # noqa: BLE001  # raised in its turn
            self._failure = error
        # What it has open is closed by this thread.
        del self._source
        self._order.put(None)


def _help(jobs: SimpleQueue[_Job | None]) -> bool:
    """Work on a job that nobody has begun; False where there is none."""
    try:
        job = jobs.get_nowait()
    except Empty:
        return False
    if job is not None:
        job.work()
    return True


def _help_until(job: _Job, jobs: SimpleQueue[_Job | None]) -> None:
    """Wait for a job, and help meanwhile."""
    while not job.ready:
        if not _help(jobs):
            job.wait()
            return


def _serve(jobs: SimpleQueue[_Job | None]) -> None:
    """Work until None comes."""
    while (job := jobs.get()) is not None:
        job.work()
        # A frame must not live until the next one comes.
        del job
