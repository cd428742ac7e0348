"""Where the time of a loader went, and what to change first."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from gulpio2.threads import usable_cores

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Clock", "LoaderProfile", "make_profile"]

# Share of the wall time that waiting for data may take before it counts as waiting.
_KEEPS_UP = 0.05
# Share of the threads' time in which they wait for memory, above which a trainer that
# waits as well asks for batches in bursts.
_BURSTS = 0.2


@dataclass(slots=True)
class Clock:
    """Seconds and counts of one thread, which alone adds to it."""

    storage: float = 0.0
    decode: float = 0.0
    transform: float = 0.0
    busy: float = 0.0
    waiting: float = 0.0
    samples: int = 0
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


@dataclass(frozen=True, slots=True)
class LoaderProfile:
    """What a loader did since it was made, or since the profile was last reset.

    Times of the threads are added up, so that two threads have two seconds in one;
    they go by the clock on the wall, with what other processes took of the cores.
    """

    num_threads: int
    """Threads of the loader."""
    num_batches: int
    """Batches given out."""
    num_samples: int
    """Samples made, those for batches that are still ahead too."""
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
    """Of the threads: resizing and mirroring."""
    other_seconds: float
    """Of the threads: metadata, choice of frames, targets."""
    waiting_for_consumer_seconds: float
    """Of the threads: all memory was full of batches that nobody had taken."""
    consumer_seconds: float
    """On the wall: the consumer was at work on its batches."""
    waiting_for_data_seconds: float
    """On the wall: the consumer waited for a batch."""

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
        parts = {
            "storage": self.storage_seconds,
            "decode": self.decode_seconds,
            "transform": self.transform_seconds,
            "other": self.other_seconds,
        }
        busy = sum(parts.values())
        idle = self.waiting_for_consumer_seconds
        if idle > _BURSTS * (busy + idle):
            return (
                "prefetch: the consumer waits at times, and the threads at others; "
                "a larger one evens that out"
            )
        largest = max(parts, key=lambda name: parts[name])
        if largest == "storage":
            return (
                f"threads: they mostly wait for storage, so more than "
                f"{self.num_threads} of them have more reads under way"
            )
        cores = usable_cores()
        if self.num_threads < cores:
            return (
                f"threads: {largest} takes most of their time, and {self.num_threads} "
                f"of {cores} cores are in use"
            )
        return {
            "decode": "frame_size of the ingest: all cores decode JPEGs, and smaller "
            "frames are decoded faster",
            "transform": "frame_size of the ingest: all cores resize, and frames of "
            "about the size of the batch need little of it",
            "other": "sampler and target of the dataset: all cores run them",
        }[largest]

    def __str__(self) -> str:
        """Show it as a table."""
        rows = [
            ("storage", self.storage_seconds),
            ("decode", self.decode_seconds),
            ("transform", self.transform_seconds),
            ("other", self.other_seconds),
            ("waiting for the consumer", self.waiting_for_consumer_seconds),
        ]
        total = sum(seconds for _, seconds in rows) or 1.0
        lines = [
            f"{self.num_frames} frames in {self.num_batches} batches and "
            f"{self.seconds:.2f} s: {self.frames_per_second:,.0f} frames/s",
            f"time of the threads ({self.num_threads})",
            *(f"  {name:<25}{part / total:>6.1%}" for name, part in rows),
            "time of the consumer",
            f"  {'waiting for data':<25}{self.waiting_share:>6.1%}",
            f"change first: {self.advice}",
        ]
        return "\n".join(lines)


def make_profile(
    clocks: Iterable[Clock],
    *,
    num_threads: int,
    num_batches: int,
    consumer_seconds: float,
    waiting_for_data_seconds: float,
) -> LoaderProfile:
    """Add up what the threads and the consumer measured."""
    total = Clock()
    for clock in clocks:
        total.add(clock)
    known = total.storage + total.decode + total.transform
    return LoaderProfile(
        num_threads=num_threads,
        num_batches=num_batches,
        num_samples=total.samples,
        num_frames=total.frames,
        num_bytes=total.num_bytes,
        seconds=consumer_seconds + waiting_for_data_seconds,
        storage_seconds=total.storage,
        decode_seconds=total.decode,
        transform_seconds=total.transform,
        other_seconds=max(0.0, total.busy - known),
        waiting_for_consumer_seconds=total.waiting,
        consumer_seconds=consumer_seconds,
        waiting_for_data_seconds=waiting_for_data_seconds,
    )
