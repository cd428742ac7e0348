"""Where the time of a loader went, and what to change first."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

from gulpio2.format.wording import counted
from gulpio2.threads import MAX_DEFAULT, usable_cores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = [
    "Clock",
    "ConsumerClock",
    "LoaderProfile",
    "WorkersClock",
    "make_profile",
    "profile_of_workers",
]

T = TypeVar("T")

# Share of the wall time that waiting for data may take before it counts as waiting.
_KEEPS_UP = 0.05
# Share of the workers' time above which collating is the first to change: it takes one
# argument, and nothing has to be given up for it.
_COLLATES = 0.2
# Share of the threads' time in which they wait for memory, above which a trainer that
# waits as well asks for batches in bursts.
_BURSTS = 0.2


@dataclass(slots=True)
class Clock:
    """Seconds and counts of one thread, which alone adds to it."""

    storage: float = 0.0
    decode: float = 0.0
    transform: float = 0.0
    collate: float = 0.0
    busy: float = 0.0
    waiting: float = 0.0
    samples: int = 0
    measured: int = 0
    frames: int = 0
    num_bytes: int = 0

    def reset(self) -> None:
        """Set everything to zero."""
        self.__init__()  # type: ignore[misc]  # all fields have a default

    def add(self, other: Clock) -> None:
        """Take another one's in."""
        for field in fields(self):
            total = getattr(self, field.name) + getattr(other, field.name)
            setattr(self, field.name, total)


class WorkersClock:
    """Seconds and counts of worker processes, which come with their batches."""

    def __init__(self) -> None:
        self.total = Clock()
        self.num_workers = 0
        self.are_ended = False
        """Whether they end with an iteration."""
        self.are_single = False
        """Whether they give samples by themselves."""
        self.recycle = False
        """Whether they have a `RecyclingCollate`."""
        self.num_recycled = 0
        """Batches that came in memory that was used before, or will be."""
        self.first_busy = 0.0
        """Of an iteration's first batch."""
        self._known: set[int] = set()

    def begin(self, num_workers: int, *, are_ended: bool, are_single: bool) -> None:
        """Begin an iteration: what workers waited before was not for its consumer."""
        self.num_workers, self.are_ended = num_workers, are_ended
        self.are_single, self.first_busy = are_single, 0.0
        self._known.clear()

    def add(
        self, process: int, clock: Clock, *, recycles: bool, is_recycled: bool
    ) -> None:
        """Take in what went into a batch of the worker that is this process."""
        self.recycle = recycles
        self.num_recycled += is_recycled
        if not self._known:
            self.first_busy = clock.busy
        if process not in self._known:
            self._known.add(process)
            clock.waiting = 0.0
        if self.are_single:
            clock.samples = 1
        clock.measured = min(clock.measured, clock.samples)
        self.total.add(clock)

    def reset(self) -> None:
        """Forget what there was, but not the iteration that is under way."""
        self.total, self.num_recycled = Clock(), 0


@dataclass(slots=True)
class ConsumerClock:
    """Seconds and counts of who takes batches."""

    working: float = 0.0
    waiting: float = 0.0
    starting: float = 0.0
    batches: int = 0

    def wait_for(self, get: Callable[[], T], *, is_first: bool) -> T:
        """Get what an iteration, of which it may be the first, waits for."""
        start = perf_counter()
        got = get()
        seconds = perf_counter() - start
        self.waiting += seconds
        if is_first:
            self.starting += seconds
        return got


@dataclass(frozen=True, slots=True)
class LoaderProfile:
    """What a loader did since it was made, or since the profile was last reset.

    It is of a `GulpLoader`, made by threads, or of a ``torch.utils.data.DataLoader``,
    made by worker processes, which a `TimedCollate` measures. Times of the threads, or
    workers, are added up, so that two have two seconds in one; they go by the clock on
    the wall, with what other processes took of the cores.
    """

    num_threads: int
    """Threads of the loader, or its workers; 0 where the consumer's makes batches."""
    num_batches: int
    """Batches given out."""
    num_samples: int
    """Samples made; of threads, those for batches that are still ahead too."""
    num_frames: int
    """Frames decoded for them; one that comes twice in a clip is decoded once."""
    num_bytes: int
    """Bytes read: JPEGs, and what lies between those that come with one read."""
    seconds: float
    """On the wall, from asking for the first batch to now, pauses left out."""
    storage_seconds: float
    """Of the threads: reading bytes."""
    decode_seconds: float
    """Of the threads: JPEG to pixels."""
    transform_seconds: float
    """Of the threads: resizing and mirroring. Of workers: transforms and pipeline."""
    other_seconds: float
    """Of the threads: metadata, choice of frames, targets."""
    waiting_for_consumer_seconds: float
    """Of the threads: all memory was full of batches that nobody had taken. Of workers:
    no batch was asked of them."""
    consumer_seconds: float
    """On the wall: the consumer was at work on its batches."""
    waiting_for_data_seconds: float
    """On the wall: the consumer waited for a batch."""
    collate_seconds: float = 0.0
    """Of workers: samples to a batch, in memory that is sent."""
    starting_seconds: float = 0.0
    """Of waiting for data: for the first batch of iterations. Of workers it is without
    the time in which one made that."""
    num_unmeasured: int = 0
    """Samples of which only reading and collating are known: of datasets of others."""
    is_of_workers: bool = False
    """Whether the workers of a ``DataLoader`` made the batches."""
    are_processes: bool = False
    """Whether the threads are processes: the workers of a `GulpLoader`."""
    workers_end: bool = False
    """Whether these end with an iteration."""
    recycles: bool = False
    """Whether they have a `RecyclingCollate`."""
    num_recycled: int = 0
    """Batches that this gave memory that is used again."""

    @property
    def frames_per_second(self) -> float:
        """Frames decoded in each second on the wall."""
        return self.num_frames / self.seconds if self.seconds else 0.0

    @property
    def waiting_share(self) -> float:
        """Part of the time on the wall in which the consumer waited for data."""
        return self.waiting_for_data_seconds / self.seconds if self.seconds else 0.0

    @property
    def advice(self) -> str:
        """The one setting to change first."""
        if not self.num_batches:
            return "nothing was loaded yet"
        if self.waiting_share < _KEEPS_UP:
            return "none: the consumer hardly waits for data, so it sets the pace"
        if not self.num_samples:
            return (
                "collate_fn: a TimedCollate, with the one that there is now inside, "
                "tells what the workers do"
            )
        starting = 2 * self.starting_seconds > self.waiting_for_data_seconds
        if starting and self.workers_end and self.num_threads:
            return (
                "persistent_workers: the consumer mostly waits for workers, which are "
                "started anew for each iteration"
            )
        if 2 * self.num_unmeasured > self.num_samples:
            return (
                "unknown: of samples of another package's dataset only reading and "
                "collating are measured"
            )
        parts = self._parts
        busy = sum(parts.values())
        idle = self.waiting_for_consumer_seconds
        if idle > _BURSTS * (busy + idle):
            if starting:
                return (
                    "none: the consumer mostly waits for the first batch of an epoch, "
                    "which is not made in the one before; longer epochs, as of a "
                    "RepeatedOrder, begin less often"
                )
            return (
                f"{'prefetch_factor' if self.is_of_workers else 'prefetch'}: the "
                f"consumer waits at times, and the {self._who} at others; a larger one "
                "evens that out"
            )
        largest = max(parts, key=lambda name: parts[name])
        if self.num_threads and parts.get("collate", 0.0) > _COLLATES * busy:
            if not self.recycles:
                return _ADVICE_OF_WORKERS["collate"]
            is_used = 2 * self.num_recycled > self.num_batches
            return _ADVICE_OF_WORKERS["copies" if is_used else "slots"]
        setting = "threads" if self._who == "threads" else "num_workers"
        if largest == "storage":
            return (
                f"{setting}: they mostly wait for storage, so more than "
                f"{self.num_threads} of them have more reads under way"
            )
        cores = usable_cores()
        if self._who == "threads" and MAX_DEFAULT <= self.num_threads < cores:
            return (
                f"num_workers, in place of threads: {largest} takes most of their "
                f"time, {self.num_threads} of {cores} cores are in use, and more "
                "threads would wait for the interpreter that they share"
            )
        if self.num_threads < cores:
            return (
                f"{setting}: {largest} takes most of their time, and "
                f"{self.num_threads} of {cores} cores are in use"
            )
        return _ADVICE_OF_WORKERS[largest] if self.is_of_workers else _ADVICE[largest]

    @property
    def _parts(self) -> dict[str, float]:
        parts = {
            "storage": self.storage_seconds,
            "decode": self.decode_seconds,
            "transform": self.transform_seconds,
        }
        if self.is_of_workers:
            parts["collate"] = self.collate_seconds
        return {**parts, "other": self.other_seconds}

    @property
    def _who(self) -> str:
        return "workers" if self.is_of_workers or self.are_processes else "threads"

    def __str__(self) -> str:
        """Show it as a table."""
        of_consumer = self.waiting_for_consumer_seconds
        rows = [*self._parts.items(), ("waiting for the consumer", of_consumer)]
        total = sum(seconds for _, seconds in rows)
        batches = counted(self.num_batches, "batch", "batches")
        lines = [f"{batches} in {self.seconds:.2f} s"]
        if self.num_samples:
            lines = [
                f"{counted(self.num_frames, 'frame')} in {batches} and "
                f"{self.seconds:.2f} s: {self.frames_per_second:,.0f} frames/s",
                f"time of the {self._who} ({self.num_threads})",
                *(f"  {name:<25}{part / (total or 1.0):>6.1%}" for name, part in rows),
            ]
        if self.num_unmeasured:
            lines.append(
                f"  of {self.num_unmeasured} of {self.num_samples} samples only "
                "reading and collating are known"
            )
        lines += [
            "time of the consumer",
            f"  {'waiting for data':<25}{self.waiting_share:>6.1%}",
            f"change first: {self.advice}",
        ]
        return "\n".join(lines)


# Where all cores are at it.
_ADVICE = {
    "decode": "frame_size of the ingest: all cores decode JPEGs, and smaller frames "
    "are decoded faster",
    "transform": "frame_size of the ingest: all cores resize, and frames of about the "
    "size of the batch need little of it",
    "other": "sampler and target of the dataset: all cores run them",
}
_ADVICE_OF_WORKERS = {
    **_ADVICE,
    "transform": "transform of the dataset: all cores run it, for sample after sample. "
    "They have less to do where the device of the model does it, to whole batches",
    "collate": "collate_fn: a RecyclingCollate writes batches into memory that is "
    "there already",
    "slots": "num_slots and slot_bytes of the RecyclingCollate: most batches found no "
    "memory there, or were too large for it",
    "copies": "transform of the dataset: what it gives is copied into the batch, and "
    "uint8, of the size that the model wants, is the least",
}


def make_profile(
    clocks: Iterable[Clock],
    consumer: ConsumerClock,
    *,
    num_threads: int,
    are_processes: bool = False,
) -> LoaderProfile:
    """Add up what the threads and the consumer measured."""
    total = Clock()
    for clock in clocks:
        total.add(clock)
    known = total.storage + total.decode + total.transform + total.collate
    return LoaderProfile(
        num_threads=num_threads,
        num_batches=consumer.batches,
        num_samples=total.samples,
        num_frames=total.frames,
        num_bytes=total.num_bytes,
        seconds=consumer.working + consumer.waiting,
        storage_seconds=total.storage,
        decode_seconds=total.decode,
        transform_seconds=total.transform,
        other_seconds=max(0.0, total.busy - known),
        waiting_for_consumer_seconds=total.waiting,
        consumer_seconds=consumer.working,
        waiting_for_data_seconds=consumer.waiting,
        starting_seconds=consumer.starting,
        are_processes=are_processes,
    )


def profile_of_workers(workers: WorkersClock, consumer: ConsumerClock) -> LoaderProfile:
    """Put together what came with batches, and what the consumer measured."""
    made = make_profile([workers.total], consumer, num_threads=workers.num_workers)
    return replace(
        made,
        collate_seconds=workers.total.collate,
        num_unmeasured=workers.total.samples - workers.total.measured,
        is_of_workers=True,
        workers_end=workers.are_ended,
        recycles=workers.recycle,
        num_recycled=workers.num_recycled,
    )
