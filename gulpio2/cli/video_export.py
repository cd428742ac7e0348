"""An item as a video that common players play."""

from __future__ import annotations

import itertools
import math
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from gulpio2.cli.export import BLOCK, new_file
from gulpio2.errors import FormatError, MissingDependencyError
from gulpio2.types import no_progress

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import numpy.typing as npt

    from gulpio2.item import StoredItem
    from gulpio2.types import Progress

    Frame = npt.NDArray[np.uint8]

__all__ = ["frame_times", "write_video"]

# MPEG-4 part 2 has 16 bits for the ticks of a second.
_MPEG4_MAX_TICKS = 65535
# What MPEG transport streams count in; finer times are rounded to it.
_MAX_TICKS = 90000
_WAYS_OUT = "--rate gives other times, --format png and jpg do without"
_ENCODERS = ("libx264", "libopenh264", "mpeg4")


def frame_times(item: StoredItem, indices: Sequence[int]) -> list[Fraction] | None:
    """Give the time of each chosen frame in seconds from the first of them.

    Returns
    -------
    list of Fraction or None
        None where the item has no times, or where they fall, as for frames that were
        chosen in another order. Where some are the same, as of frames that a higher
        rate has repeated, all are evenly spaced from the first to the last.
    """
    extras = item.extras
    if extras.time_base is None or not extras.pts:
        return None
    ticks = [extras.pts[index] for index in indices]
    steps = [b - a for a, b in itertools.pairwise(ticks)]
    if min(steps, default=1) > 0:
        return [(tick - ticks[0]) * extras.time_base for tick in ticks]
    if min(steps) < 0 or max(steps) == 0:
        return None
    step = Fraction(ticks[-1] - ticks[0], len(steps)) * extras.time_base
    return [number * step for number in range(len(ticks))]


def write_video(
    item: StoredItem,
    indices: Sequence[int],
    path: Path,
    times: Sequence[Fraction],
    *,
    overwrite: bool,
    progress: Progress = no_progress,
) -> None:
    """Write frames as an MP4 that common players play.

    Parameters
    ----------
    item : StoredItem
        The item.
    indices : sequence of int
        Its frames, at least one.
    path : Path
        The file. It appears when it is complete.
    times : sequence of Fraction
        When each frame is shown, in seconds, ascending.
    overwrite : bool
        A file that is there is replaced.
    progress : Progress, optional
        Called for each frame.

    Raises
    ------
    FormatError
        The frames differ in size, or no video can have them or their times.
    MissingDependencyError
        PyAV's libraries have no encoder for H.264 or MPEG-4.
    StorageError
        The file is there already, or cannot be written.
    """
    import av

    encoder = _encoder()
    most = _MPEG4_MAX_TICKS if encoder == "mpeg4" else _MAX_TICKS
    ticks = _ticks_per_second(times, most)
    shown = [round(time * ticks) for time in times]
    if any(two <= one for one, two in itertools.pairwise(shown)):
        raise FormatError(
            f"the times of item {item.id_!r} are too close for a video, which counts "
            f"1/{most} of a second; {_WAYS_OUT}"
        )
    stream: Any = None
    shape: tuple[int, ...] = ()
    with _refusing(item), new_file(path, overwrite=overwrite) as partial:
        # An explicit protocol: a folder may be called "a:b".
        with av.open(f"file:{partial}", "w", format="mp4") as container:
            for frame, pts in zip(_frames(item, indices), shown, strict=True):
                pixels = _even(frame)
                if stream is None:
                    shape = pixels.shape
                    stream = _add_stream(container, encoder, pixels, times, ticks)
                elif pixels.shape != shape:
                    raise FormatError(
                        f"the frames of item {item.id_!r} differ in size, and those of "
                        "a video may not; extract them with --format png or jpg"
                    )
                picture = av.VideoFrame.from_ndarray(pixels, format="rgb24")
                picture.pts = pts
                picture.time_base = Fraction(1, ticks)
                packets = stream.encode(picture)
                container.mux(packets)
                progress(frames=1, num_bytes=sum(packet.size for packet in packets))
            container.mux(stream.encode(None))
        if _times_in(partial) != [Fraction(pts, ticks) for pts in shown]:
            raise FormatError(
                f"item {item.id_!r} cannot be written as a video: its times are too "
                f"far apart; {_WAYS_OUT}"
            )


def _times_in(path: Path) -> list[Fraction]:
    """Read the times of a video's frames: FFmpeg lets some of them wrap around."""
    import av

    from gulpio2.media.demuxing import packets_of

    with av.open(f"file:{path}") as container:
        return sorted(
            packet.pts * packet.time_base
            for packet in packets_of(container, container.streams.video[0])
            if packet.pts is not None
        )


@contextmanager
def _refusing(item: StoredItem) -> Iterator[None]:
    """Have what the encoder or the container cannot hold be a message."""
    import av

    try:
        yield
    except (av.FFmpegError, OverflowError) as cause:
        if isinstance(cause, OSError):  # of the disk
            raise
        why = getattr(cause, "strerror", None) or cause
        raise FormatError(
            f"item {item.id_!r} cannot be written as a video ({why}): its frames are "
            f"too large, or its times too far apart; {_WAYS_OUT}"
        ) from cause


def _frames(item: StoredItem, indices: Sequence[int]) -> Iterator[Frame]:
    for start in range(0, len(indices), BLOCK):
        yield from item.read_frames(list(indices[start : start + BLOCK]))


def _add_stream(
    container: Any,
    encoder: str,
    pixels: Frame,
    times: Sequence[Fraction],
    ticks: int,
) -> Any:
    """Add a stream for frames like this one, shown at these times."""
    # The average rate, which the encoder plans with; the times themselves are exact.
    rate = (len(times) - 1) / times[-1] if len(times) > 1 else Fraction(25)
    stream = container.add_stream(encoder, rate=rate.limit_denominator(1001))
    stream.height, stream.width = pixels.shape[:2]
    stream.pix_fmt = "yuv420p"
    stream.time_base = stream.codec_context.time_base = Fraction(1, ticks)
    # What the conversion from RGB does; players guess otherwise, by the size.
    stream.codec_context.colorspace = 5  # BT.470 BG, the matrix of BT.601
    stream.codec_context.color_range = 1  # limited
    if encoder == "mpeg4":
        stream.codec_context.qscale = True
        stream.codec_context.global_quality = 3 * 118  # 3 of 31 in FFmpeg's lambda
    else:
        stream.options = {"crf": "18"}
    return stream


def _encoder() -> str:
    import av

    for name in _ENCODERS:
        try:
            av.Codec(name, "w")
        except ValueError:
            continue
        return name
    raise MissingDependencyError(
        "PyAV's libraries can encode neither H.264 nor MPEG-4. Install the wheel of "
        "PyAV (pip install --force-reinstall av), or extract with --format png"
    )


def _ticks_per_second(times: Sequence[Fraction], most: int) -> int:
    """Give the ticks in which all times are whole, or the most where there are none."""
    ticks = 1
    for time in times:
        ticks = math.lcm(ticks, time.denominator)
        if ticks > most:
            return most
    return ticks


def _even(frame: Frame) -> Frame:
    """Give RGB of even height and width, as 4:2:0 needs; the last row is repeated."""
    if frame.ndim == 2:
        frame = np.repeat(frame[..., np.newaxis], 3, axis=2)
    height, width = frame.shape[:2]
    return np.ascontiguousarray(
        np.pad(frame, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
    )
