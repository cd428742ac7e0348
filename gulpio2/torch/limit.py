"""What the codec alone can do: the limit of every loader."""

from __future__ import annotations

import itertools
import threading
from contextlib import suppress
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gulpio2.codecs.options import DecodeOptions
from gulpio2.codecs.output import empty_frames
from gulpio2.codecs.recent import decoder_for
from gulpio2.errors import CorruptFrameError
from gulpio2.torch.stored import damaged_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from gulpio2.codecs.decode import FrameDecoder

__all__ = ["decode_for"]

# Frames of memory that each thread decodes into, in turn: more than fit into caches.
_NUM_MEMORY_FRAMES = 64
# Frames that are decoded before the clock is looked at.
_RUN_LENGTH = 16


def decode_for(
    jpegs: Sequence[bytes],
    seconds: float,
    num_threads: int,
    *,
    places: Sequence[str] | None = None,
    at_odd_addresses: bool = True,
) -> float:
    """Measure the codec: decode JPEGs from memory into memory that is used again.

    Parameters
    ----------
    jpegs : sequence of bytes
        Gone through by each thread, from a place of its own on.
    seconds : float
        How long.
    num_threads : int
        How many threads do so.
    places : sequence of str, optional
        Where each JPEG is from, to name it by in an error. Default: its number.
    at_odd_addresses : bool, default True
        Decode into memory as this package makes it, where the codec is fastest, see
        `empty_frames`. False: as it comes.

    Returns
    -------
    float
        Frames per second of all threads.

    Raises
    ------
    CorruptFrameError
        One of them cannot be decoded.
    """
    if places is None:
        places = [f"JPEG {number}" for number in range(len(jpegs))]
    options = DecodeOptions(colorspace="rgb")
    decoders = []
    # Here, where an error has somewhere to go; threads may share them.
    for place, jpeg in zip(places, jpegs, strict=True):
        try:
            decoders.append(decoder_for(jpeg, 0, len(jpeg), options))
        except CorruptFrameError as cause:
            raise damaged_at(place, cause) from cause
    shapes = {decoder.shape for decoder in decoders}
    begin = threading.Barrier(num_threads)
    rates = [0.0] * num_threads
    errors: list[BaseException] = []

    def decode(number: int) -> None:
        make = empty_frames if at_odd_addresses else partial(np.empty, dtype=np.uint8)
        memory = {shape: make((_NUM_MEMORY_FRAMES, *shape)) for shape in shapes}
        for frames in memory.values():
            frames.fill(1)  # else they are mapped when they are written to
        work = [
            _Frame(
                places[at],
                decoder,
                jpeg,
                memory[decoder.shape][at % _NUM_MEMORY_FRAMES],
            )
            for at, (decoder, jpeg) in enumerate(zip(decoders, jpegs, strict=True))
        ]
        # Each thread begins elsewhere: else one would read what another has just read.
        first = len(work) * number // num_threads
        runs = _runs_of(work[first:] + work[:first])
        begin.wait()
        start = perf_counter()
        stop, count = start + seconds, 0
        for run in itertools.cycle(runs):
            run.decode()
            count += len(run.frames)
            if (now := perf_counter()) > stop:
                break
        rates[number] = count / (now - start)

    def run(number: int) -> None:
        try:
            decode(number)
        except threading.BrokenBarrierError:
            return  # another thread, or the caller, says why
        except BaseException as error:  # noqa: BLE001  # raised by the caller's thread
            errors.append(error)
            begin.abort()

    threads = [
        threading.Thread(target=run, args=(number,)) for number in range(num_threads)
    ]
    started: list[threading.Thread] = []
    try:
        for thread in threads:
            thread.start()
            started.append(thread)
    except BaseException:  # no more threads: those that run wait for all of them
        begin.abort()
        raise
    finally:
        for thread in started:
            thread.join()
    if errors:
        raise errors[0]
    return sum(rates)


class _Frame(NamedTuple):
    """A JPEG to decode."""

    place: str
    """Where it is from."""
    decoder: FrameDecoder
    """Of frames like it."""
    jpeg: bytes
    """Its bytes."""
    out: npt.NDArray[np.uint8]
    """Memory for its pixels."""


class _Run:
    """JPEGs that are decoded one after the other, with as little between as may be."""

    def __init__(self, frames: list[_Frame]) -> None:
        self.frames = frames
        self._decoder = decoder = frames[0].decoder
        self._plain = []
        for frame in frames:
            jpegs = decoder.plain_jpegs(frame.jpeg, ((0, len(frame.jpeg)),), 0)
            if jpegs is not None:
                self._plain.append((jpegs[0], frame.out))

    def decode(self) -> None:
        """Decode them.

        Raises
        ------
        CorruptFrameError
            One is damaged; the message says where it is from.
        """
        if len(self._plain) == len(self.frames):
            with suppress(CorruptFrameError):  # which one, is found out below
                self._decoder.decode_plain(self._plain)
                return
        for place, decoder, jpeg, out in self.frames:
            try:
                decoder.decode(jpeg, 0, len(jpeg), out)
            except CorruptFrameError as cause:
                raise damaged_at(place, cause) from cause


def _runs_of(frames: list[_Frame]) -> list[_Run]:
    """Put together what one decoder decodes, as many as a clip has."""
    runs = []
    for _, group in itertools.groupby(frames, lambda frame: id(frame.decoder)):
        alike = list(group)
        runs += [
            _Run(alike[first : first + _RUN_LENGTH])
            for first in range(0, len(alike), _RUN_LENGTH)
        ]
    return runs
