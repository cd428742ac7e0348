"""The frames of a video file, as they are to be stored.

This module is light: FFmpeg and OpenCV are loaded when a file is opened.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsFloat

from gulpio2.arguments import require_number, whole_number
from gulpio2.errors import SourceReadError
from gulpio2.format.rates import parse_frame_rate
from gulpio2.media.indexing import FramesByIndex
from gulpio2.media.limits import MAX_VIDEO_PIXELS
from gulpio2.types import StoredFrame, YuvFrame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from fractions import Fraction

    import numpy as np
    import numpy.typing as npt

    from gulpio2.format.rates import FrameRate
    from gulpio2.media.convert import Way
    from gulpio2.media.decode import OpenVideo
    from gulpio2.media.excerpts import ExcerptFrames
    from gulpio2.types import JsonValue, StrPath

__all__ = ["VideoFrames"]

_log = logging.getLogger(__name__)


class VideoFrames(FramesByIndex):
    """The frames of a video file, decoded one at a time as they are asked for.

    Nothing is opened before it is needed, so the object is small, picklable and cheap
    to make for a file that may not be readable.

    Parameters
    ----------
    path : str or path object
        The file, in any format that FFmpeg reads.
    frame_rate : int, float, str or Fraction, optional
        Frames per second to resample to by the rule of ``ffmpeg -r``, see
        `ConstantRate`; also ``"30000/1001"``. Default, and for 0: the source's own.
    frame_size : int
        Length of the short edge as shown, in pixels; below 1 for no change.
    stream : int, optional
        Number of the stream in the file. Default: FFmpeg's best video stream.
    threads : int
        Threads of the decoder; 0 for as many as there are cores. Frames and errors are
        the same for any number. One decodes where several could tell other than one,
        as of HEVC, VP8, H.264 with B-frames or a video with gaps, where two would be no
        faster, and of an excerpt.
    max_pixels : int
        Larger frames are refused before memory is set aside for them.
    start, end : number, optional
        Of an excerpt, in seconds from the first frame of the video: its frames are
        those from `start` on and before `end`. Default: all. Where there are none,
        iterating tells.

    Raises
    ------
    ValueError
        A frame rate that is none, `threads` below 0, or `max_pixels` below 1.
    TypeError
        A time that is no number, or another setting that is no whole number.

    Notes
    -----
    Frames are turned as the display matrix says. Colours come from the matrix and range
    that the frames declare, or else from the matrix of the container; what neither
    declares is taken for BT.601, also for HD, and for limited range, as FFmpeg does.
    Interlaced frames stay so, and pixels that are not square stay so. What only the
    container says is to be cut off, as ``clap`` of MP4, is kept.

    An excerpt is decoded from a key frame before it, where the container has an index
    and that gives exactly what decoding from the beginning gives. Otherwise it is
    decoded from there.

    One decoded frame is held at a time, and those that the decoder itself keeps. Frames
    that a lower rate drops are not converted, and not decoded either where the times in
    the file tell beforehand which they are and the codec predicts no other from them.

    Examples
    --------
    >>> frames = VideoFrames("clip.mp4", frame_rate=8, frame_size=256)
    >>> frames
    VideoFrames('clip.mp4', frame_rate=8, frame_size=256)
    """

    def __init__(
        self,
        path: StrPath,
        *,
        frame_rate: FrameRate | None = None,
        frame_size: int = -1,
        stream: int | None = None,
        threads: int = 1,
        max_pixels: int = MAX_VIDEO_PIXELS,
        start: SupportsFloat | None = None,
        end: SupportsFloat | None = None,
    ) -> None:
        self.path = Path(path)
        self.frame_rate = parse_frame_rate(frame_rate)
        self.frame_size = whole_number("frame_size", frame_size)
        self.stream = None if stream is None else whole_number("stream", stream)
        self.threads = require_number("threads", threads, 0)
        self.max_pixels = require_number("max_pixels", max_pixels, 1)
        self.start = _seconds("start", start)
        self.end = _seconds("end", end)
        # Facts of the file, once known: they cost an opening or a decoding.
        self._num_frames: int | None = None
        self._time_base: Fraction | None = None
        self._info: dict[str, JsonValue] | None = None

    def __repr__(self) -> str:
        """Show the file and what differs from the defaults."""
        options = {
            "frame_rate": self.frame_rate and str(self.frame_rate),
            "frame_size": self.frame_size if self.frame_size > 0 else None,
            "stream": self.stream,
            "start": self.start,
            "end": self.end,
        }
        given = "".join(f", {k}={v}" for k, v in options.items() if v is not None)
        return f"VideoFrames({str(self.path)!r}{given})"

    def __iter__(self) -> Iterator[npt.NDArray[np.uint8]]:
        """Yield each frame as ``(H, W, 3)`` uint8 RGB.

        Raises
        ------
        SourceReadError
            As `stored`.
        """
        from gulpio2.media.colour import to_rgb

        for frame in self.stored():
            image = frame.image
            yield to_rgb(image) if isinstance(image, YuvFrame) else image

    def __len__(self) -> int:
        """Count the frames, after resampling.

        Raises
        ------
        SourceReadError
            As `stored`.

        Notes
        -----
        What containers say about it is not exact, so this decodes the file, once, if
        `stored` has not come to its end before.
        """
        if self._num_frames is None:
            self._num_frames = sum(1 for _ in self._decoded())
        return self._num_frames

    @property
    def time_base(self) -> Fraction:
        """Seconds per tick of `StoredFrame.pts`; opens the file if it must."""
        if self._time_base is None:
            with self._open() as video:
                return video.time_base
        return self._time_base

    def source_times(self) -> list[int] | None:
        """Read the times of all frames of the file, without decoding or resampling.

        Returns
        -------
        list of int or None
            In ticks and in order; None where the packets do not say them. Of an excerpt
            they are those of its frames, which are decoded for it.

        Raises
        ------
        SourceReadError
            As `stored`, where the file cannot be opened.
        """
        with self._open() as video:
            if self._is_excerpt:
                return [shown.pts for _, shown in self._excerpt_of(video)]
            times = video.packet_times()
        return None if times is None else [shown.pts for shown in times]

    def source_info(self) -> dict[str, JsonValue]:
        """Tell what the file says about itself; decodes a frame if none was before.

        Returns
        -------
        dict
            ``width`` and ``height`` as shown; ``rotation`` in degrees counterclockwise
            by which the stored picture was turned, as ffprobe gives it, and
            ``mirrored`` where it was that too; ``frame_rate`` as numerator and
            denominator, the average, or None; ``codec``; ``pix_fmt``; ``matrix`` and
            ``range`` (``"limited"``, ``"full"``) as they were taken; ``stream``.

        Raises
        ------
        SourceReadError
            As `stored`.
        """
        if self._info is None:
            from gulpio2.media.convert import FrameConverter

            with self._open() as video:
                converter = FrameConverter(self.frame_size, name=str(self.path))
                frame, _ = next(video.frames())
                converter.convert(frame)
                self._info = _describe(converter.look_at(frame), video)
        return dict(self._info)

    def stored(self) -> Iterator[StoredFrame]:
        """Yield each frame as planes for the JPEG encoder, with its time.

        Yields
        ------
        StoredFrame
            A `YuvFrame` of the source's subsampling; RGB sources give ``(H, W, 3)``
            arrays. Each keeps its own memory and stays valid; it may be read-only,
            and a frame that is repeated is the same object.

        Raises
        ------
        SourceReadError
            The file is missing, no video, damaged or cut off, or its frames are above
            `max_pixels`; the message gives the file, the frame reached and the cause.
            There is no excerpt between these times.
        """
        return self._stored()

    def deferred(
        self, is_wanted: Callable[[], bool] | None = None
    ) -> Iterator[StoredFrame]:
        """Yield what `stored` does, but for what another thread can do as well.

        Parameters
        ----------
        is_wanted : callable, optional
            Asked at every frame whether another thread could do it. Default: yes.

        Yields
        ------
        StoredFrame
            With a `DeferredImage`; with the image itself where that is not wanted, or
            where the decoder does not notice damage, and so must not go on before it
            is looked at.

        Raises
        ------
        SourceReadError
            As `stored`.
        """
        return self._stored(is_wanted or (lambda: True))

    def _stored(self, later: Callable[[], bool] | None = None) -> Iterator[StoredFrame]:
        from gulpio2.media.convert import FrameConverter
        from gulpio2.media.thread_choice import notices_damage

        converter = FrameConverter(self.frame_size, name=str(self.path))
        last: Any = None
        image: Any = None
        count = 0
        opened: OpenVideo | None = None
        is_noticed = False
        for video, frame, pts in self._decoded():
            if frame is not last:
                last = frame
                if video is not opened:  # not for each frame: it takes PyAV some time
                    opened, is_noticed = video, notices_damage(video)
                    converter.turn_as(video.first_frame)
                if later is None:
                    image = converter.convert(frame)
                elif not is_noticed:
                    image = _of_its_own(converter.convert(frame))
                else:  # where nobody helps, what is done at once costs less
                    convert = converter.convert_later if later() else converter.convert
                    image = convert(frame)
                if self._info is None:
                    self._info = _describe(converter.look_at(frame), video)
            count += 1
            yield StoredFrame(image, pts)
        self._num_frames = count

    def _decoded(self) -> Iterator[tuple[OpenVideo, Any, int]]:
        """Give frames and times: those of one thread, whoever decodes them."""
        given = 0
        if self.threads != 1 and not self._is_excerpt and self._suits_threads():
            with self._open(self.threads) as video:
                try:
                    for timed in self._timed(video):
                        yield video, *timed
                        given += 1
                except SourceReadError as cause:
                    _log.debug("%s: %s; the rest with one thread", self.path, cause)
                else:
                    return
        with self._open() as video:
            for timed in itertools.islice(self._timed(video), given, None):
                yield video, *timed

    def _suits_threads(self) -> bool:
        from gulpio2.media.thread_choice import suits_threads

        with self._open() as looked_at:
            return suits_threads(looked_at, self.threads)

    @contextlib.contextmanager
    def _open(self, threads: int = 1) -> Iterator[OpenVideo]:
        """Open the file, and note the time base."""
        from gulpio2.media.decode import open_video

        with open_video(
            self.path,
            stream=self.stream,
            threads=threads,
            max_pixels=self.max_pixels,
            cached_damage=self._is_excerpt,
        ) as video:
            self._time_base = video.time_base
            yield video

    def _timed(self, video: OpenVideo) -> Iterator[tuple[Any, int]]:
        """Give decoded frames and their times, repeated and dropped as asked.

        A time is that of the picture: the grid of a rate may be off by a tick, and
        whoever asks for a moment of the video is to get what was shown then.
        """
        from gulpio2.media.resampling import placed_one_by_one, resampled

        if not self._is_excerpt:
            if self.frame_rate is not None:
                return resampled(video, self.frame_rate, self._open)
            return ((frame, shown.pts) for frame, shown in video.frames())
        excerpt = self._excerpt_of(video)
        if self.frame_rate is not None:
            grid = video.grid(self.frame_rate, start=excerpt.start)
            return placed_one_by_one(excerpt, grid, name=video.path)
        return ((frame, shown.pts) for frame, shown in excerpt)

    @property
    def _is_excerpt(self) -> bool:
        return self.start is not None or self.end is not None

    def _excerpt_of(self, video: OpenVideo) -> ExcerptFrames:
        from gulpio2.media.excerpts import Excerpt, ExcerptFrames

        excerpt = Excerpt(str(self.path), self.start, self.end)
        return ExcerptFrames(excerpt, video, self._open)


def _seconds(name: str, value: SupportsFloat | None) -> SupportsFloat | None:
    """Give a time; of numbers that cannot be times, iterating tells."""
    if not isinstance(value, SupportsFloat | None):  # no text is one
        raise TypeError(f"{name} is {value!r}; give a number of seconds")
    return value


def _of_its_own(
    image: YuvFrame | npt.NDArray[np.uint8],
) -> YuvFrame | npt.NDArray[np.uint8]:
    """Copy what is in the memory of the decoder: planes there are read-only."""
    if not isinstance(image, YuvFrame):
        return image.copy()
    planes = (image.y, image.u, image.v)
    if all(plane.flags.writeable for plane in planes):
        return image
    return YuvFrame(*(plane.copy() for plane in planes))


def _describe(way: Way, video: OpenVideo) -> dict[str, JsonValue]:
    """Gather the facts of the file as plain JSON values."""
    picture, orientation = way.picture, way.orientation
    height, width = orientation.shown(picture.height, picture.width)
    rate = video.frame_rate
    info: dict[str, JsonValue] = {
        "width": width,
        "height": height,
        "rotation": orientation.rotation,
        "frame_rate": [rate.numerator, rate.denominator] if rate else None,
        "codec": video.stream.codec.canonical_name,
        "pix_fmt": picture.pix_fmt,
        "matrix": "rgb" if picture.layout.kind == "rgb" else picture.matrix.name,
        "range": "full" if picture.full_range else "limited",
        "stream": video.stream.index,
    }
    if orientation.mirrored:
        info["mirrored"] = True
    return info
