"""How large a directory will become, from a sample of its items."""

from __future__ import annotations

import contextlib
import errno
import logging
import multiprocessing
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from gulpio2.children import begin_child, starting
from gulpio2.codecs.jpeg import encode_frame
from gulpio2.errors import StorageError
from gulpio2.format.layout import list_chunks
from gulpio2.format.records import padded_length
from gulpio2.format.wording import counted
from gulpio2.frame_sources import stored_frames
from gulpio2.ingest.adapter_errors import as_failure
from gulpio2.ingest.facts import unsendable
from gulpio2.ingest.items import first_item
from gulpio2.ingest.lingering import watching_here
from gulpio2.ingest.sample_plan import plan_sample
from gulpio2.memory import Parcel
from gulpio2.storage.local import free_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.connection import Connection

    from gulpio2.codecs.jpeg import EncoderSettings
    from gulpio2.storage.base import Store
    from gulpio2.types import Adapter, StrPath

__all__ = [
    "LONG_RUN",
    "MAP_BYTES",
    "Estimate",
    "bytes_of_partials",
    "estimate",
    "refuse_above",
    "refuse_what_cannot_fit",
]

_logger = logging.getLogger(__name__)

# Items. A smaller run is over, or out of space, before an estimate would pay.
LONG_RUN = 200
# Frames of an item that are encoded; the rest is taken to be like them.
_FRAMES = 16
# Items at most whose files are asked for their size, before every long run.
_FILES = 1000
# Seconds after which an estimate in another process is given up: an item of it may
# never end. No item is begun after the first five.
_MOST_SECONDS = 300.0
# Bytes that an entry of the map needs for each frame: place, checksum, time.
MAP_BYTES = 32


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run will store, as far as a sample tells."""

    items: int
    """Items of the run."""
    sampled: int
    """Items that were looked at."""
    frames: int
    """Frames of the run, estimated."""
    num_bytes: int
    """Bytes of the data files and maps, estimated."""

    def __str__(self) -> str:
        """Give it on one line."""
        return (
            f"about {self.num_bytes / 1e6:.1f} MB and {counted(self.frames, 'frame')} "
            f"for {counted(self.items, 'item')}, judged by {self.sampled} of them"
        )


def estimate(
    adapter: Adapter,
    encoder: EncoderSettings,
    *,
    sample: int = 8,
    positions: Sequence[int] | None = None,
    max_seconds: float = 5.0,
) -> Estimate:
    """Estimate how much an ingest will store, from some items.

    Parameters
    ----------
    adapter : Adapter
        Where the items come from. It is asked for single positions.
    encoder : EncoderSettings
        As for the ingest.
    sample : int, optional
        Items to look at, spread evenly. Of each, the first 16 frames are encoded.
    positions : sequence of int, optional
        Positions that are to be stored. Default: all.
    max_seconds : float, optional
        No further item is begun after this time.

    Returns
    -------
    Estimate
        Zeros where no item of the sample could be read.

    Notes
    -----
    It is as good as the sample. Where what is stored of these items follows the sizes
    of their files, all are taken to do so. A dataset whose items differ much in length,
    and of which the adapter tells no files, can be off by as much as they do.

    Examples
    --------
    >>> from gulpio2.codecs.jpeg import EncoderSettings
    >>> from gulpio2.testing import FrameAdapter
    >>> found = estimate(FrameAdapter(num_items=50, num_frames=20), EncoderSettings())
    >>> found.items, found.sampled, found.frames
    (50, 8, 1000)
    """
    chosen = range(len(adapter)) if positions is None else positions
    plan = plan_sample(adapter, chosen, share=0, least=sample, most_files=_FILES)
    sizes = dict(zip(plan.places.tolist(), plan.sizes.tolist(), strict=True))
    places = sorted(sizes)
    count = min(sample, len(chosen))
    began = time.monotonic()
    looks: list[tuple[float, float]] = []
    looked_at: list[float] = []
    for turn in range(count):
        if turn and time.monotonic() - began > max_seconds:
            break
        place = places[(2 * turn + 1) * len(places) // (2 * count)]
        looked_at.append(sizes[place])
        try:
            look = _look_at(adapter, chosen[place], encoder, began + max_seconds)
        except BaseException as error:  # noqa: BLE001  # the item boundary
            as_failure(error)  # or the program is told to end
            _logger.debug("position %d of the sample: %r", chosen[place], error)
            look = 0, 0.0
        looks.append(look)
    frames, size = (
        len(chosen) * _mean([look[part] for look in looks], looked_at)
        for part in range(2)
    )
    return Estimate(
        items=len(chosen),
        sampled=len(looks),
        frames=round(frames),
        num_bytes=round(size),
    )


def _mean(values: list[float], sizes: list[float]) -> float:
    """Estimate the mean over all items from the values of some, with their sizes.

    Sizes are those of the files, in units of the mean file. Values are taken to be in
    proportion to them, or to be all alike, whichever fits better: else one long video
    among the few would stand for many.
    """
    mean = sum(values) / max(len(values), 1)
    ratio = sum(values) / (sum(sizes) or 1)
    by_size = sum((v - ratio * s) ** 2 for v, s in zip(values, sizes, strict=True))
    alike = sum((value - mean) ** 2 for value in values)
    return ratio if by_size <= alike else mean


def _estimate_apart(
    adapter: Adapter, encoder: EncoderSettings, positions: Sequence[int]
) -> Estimate | None:
    """Estimate in another process; None if that does not come to its end."""
    context = multiprocessing.get_context()
    receive, send = context.Pipe(duplex=False)
    parcel = Parcel(
        (adapter, encoder, positions), partial(unsendable, adapter, "another process")
    )
    process = context.Process(target=_send_estimate, args=(send, parcel))
    try:
        with starting():
            process.start()
        send.close()
        if not receive.poll(_MOST_SECONDS):  # the run tells which item it hangs at
            _logger.warning("no estimate of the space came: the run begins without one")
            return None
        found: Estimate | None = receive.recv()
    except EOFError:
        _logger.debug("the sample has ended the process that looked at it")
        return None
    finally:
        receive.close()
        if process.pid is not None:
            process.kill()  # it has nothing to clear away, and may not heed SIGTERM
            process.join()
    return found


def _send_estimate(send: Connection, parcel: Parcel) -> None:
    begin_child()
    adapter, encoder, positions = parcel.content
    send.send(estimate(adapter, encoder, positions=positions))


def _look_at(
    adapter: Adapter, position: int, encoder: EncoderSettings, deadline: float
) -> tuple[int, float]:
    """Give frames and bytes of one item; 0 of none."""
    with first_item(adapter, position) as item:
        if item is None:
            return 0, 0.0
        if item.error is not None:
            raise item.error
        encoded = num_frames = size = 0
        total = _count(item.frames)
        for frame in stored_frames(item.frames):
            num_frames += 1
            if encoded < _FRAMES:
                jpeg = encode_frame(frame.image, encoder)
                size += padded_length(len(jpeg)) + MAP_BYTES
                encoded += 1
            elif total is not None or time.monotonic() > deadline:
                break
        if not encoded:
            return 0, 0.0
        total = max(num_frames, total or 0)
        return total, total / encoded * size


def _count(frames: Any) -> int | None:
    """Count frames where they can be counted."""
    try:
        return len(frames)
    except TypeError:
        return None


def refuse_what_cannot_fit(
    adapter: Adapter,
    encoder: EncoderSettings,
    folder: StrPath,
    positions: Sequence[int],
    *,
    apart: bool,
    freed: int,
) -> None:
    """Refuse a long run that the disk has no room for.

    Parameters
    ----------
    adapter, encoder, folder
        Those of the run.
    positions : sequence of int
        What is to be stored. Of fewer than 200 no estimate is made.
    apart : bool
        Estimate in another process, unless this one may start none. A fault in a
        decoder ends that one, and nothing is refused then.
    freed : int
        Bytes of files that the run removes before it begins.

    Raises
    ------
    StorageError
        With ``ENOSPC``; nothing was written for these items.
    """
    if len(positions) < LONG_RUN:
        return
    free = free_bytes(folder)
    if free is None:
        return
    free += freed
    if apart and not multiprocessing.current_process().daemon:  # that may start none
        try:
            found = _estimate_apart(adapter, encoder, positions)
        except OSError as error:  # no process to be had; the workers say so
            _logger.debug("the run begins without an estimate: %r", error)
            return
    else:
        with watching_here():
            found = estimate(adapter, encoder, positions=positions)
    if found is not None:
        refuse_above(free, found, folder)


def refuse_above(free: int, needed: Estimate, folder: StrPath) -> None:
    """Refuse a run into a folder that needs more bytes than are free.

    Raises
    ------
    StorageError
        With ``ENOSPC``.
    """
    if needed.num_bytes > free:
        raise StorageError(
            errno.ENOSPC,
            f"{folder} has {free / 1e6:.1f} MB free, and the run needs {needed}. Make "
            "room, give another folder, or store less (quality, frame size); "
            "ignore_space=True (on the command line --ignore-space) begins all the "
            "same, and what does not fit can be resumed",
        )


def bytes_of_partials(store: Store) -> int:
    """Count the bytes of unfinished files, which a run removes or goes on with."""
    num_bytes = 0
    for name in list_chunks(store.names()).partials:
        with contextlib.suppress(OSError):
            num_bytes += store.size(name)
    return num_bytes
