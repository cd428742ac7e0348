"""Which stream of a video file is decoded, and what its container says of times."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import av
from av.format import Flags
from av.stream import Disposition

from gulpio2.errors import SourceReadError
from gulpio2.media.frame_rate import rescale

__all__ = ["choose_stream", "declared_size", "has_times", "start_of", "videos_of"]

# Demuxers that take any text file for a picture made of letters.
_TEXT_ART = frozenset({"tty", "bin", "idf", "xbin", "adf"})
# The flag of an animation in a WebP (RFC 9649, section 2.7), behind its first names.
_WEBP, _FLAGS_AT, _ANIMATION = b"WEBPVP8X", 20, 0x02
_MICROSECOND = Fraction(1, 1_000_000)


def choose_stream(container: Any, name: str, number: int | None) -> Any:
    """Choose the stream with this number, or FFmpeg's best video stream.

    Raises
    ------
    SourceReadError
        There is none, or none that can be decoded.
    """
    if container.format.name in _TEXT_ART:
        raise SourceReadError(f"Video {name!r} is no video. Leave it out.")
    if container.format.name == "webp_pipe" and _is_animated(name):
        raise SourceReadError(
            f"Video {name!r} is an animated WebP, which FFmpeg cannot decode. Convert "
            "it, as to GIF or MP4, or leave it out."
        )
    videos = videos_of(container)
    if not videos:
        raise SourceReadError(f"Video {name!r} has no video stream. Leave it out.")
    if number is None:
        chosen = container.streams.best("video")
        chosen = chosen if chosen in videos else videos[0]
    else:
        by_number = {stream.index: stream for stream in videos}
        if number not in by_number:
            raise SourceReadError(
                f"Video {name!r} has no video stream {number}; it has "
                f"{sorted(by_number)}."
            )
        chosen = by_number[number]
    if chosen.codec_context is None:
        raise SourceReadError(
            f"Video {name!r} has a codec that this FFmpeg cannot decode. Re-encode it."
        )
    return chosen


def videos_of(container: Any) -> list[Any]:
    """List the video streams, without the cover of a song."""
    return [
        stream
        for stream in container.streams.video
        if not stream.disposition & Disposition.attached_pic
    ]


def _is_animated(name: str) -> bool:
    with Path(name).open("rb") as file:
        start = file.read(_FLAGS_AT + 1)
    return start[8:16] == _WEBP and bool(start[_FLAGS_AT:] and start[-1] & _ANIMATION)


def declared_size(path: str, container: Any, stream: Any) -> tuple[int, int]:
    """Give width and height of a stream before it is decoded; 0 where unknown.

    Of frames above the limit with which the file was opened, some decoders have left
    nothing of what the container says. Then it is asked again, without any decoder.
    """
    if stream.width and stream.height:
        return stream.width, stream.height
    options = {"codec_whitelist": "none"}
    of_container = {"format_whitelist": container.format.name, "pattern_type": "none"}
    try:
        with av.open(
            f"file:{path}", options=options, container_options=of_container
        ) as unread:
            found = unread.streams[stream.index]
            return getattr(found, "width", 0) or 0, getattr(found, "height", 0) or 0
    except (av.FFmpegError, ValueError, IndexError):
        return 0, 0


def has_times(container: Any) -> bool:
    """Tell whether times are in the file, and not made up by FFmpeg as it reads.

    Raw streams have none: what FFmpeg makes up there is the order of decoding, which
    puts a first frame as late as its decoder holds frames back.
    """
    return not container.format.flags & Flags.no_timestamps.value


def start_of(container: Any, stream: Any) -> int:
    """Give where the file starts for a stream, in its ticks; ``ffmpeg -r`` counts on.

    Notes
    -----
    That is where the first of all streams starts. In formats that are joined midway, as
    MPEG-TS, ``ffmpeg`` counts from the first of the streams that it takes instead
    (``ts_discontinuity_process`` and its like in ``fftools/ffmpeg_demux.c``).
    """
    if not has_times(container):
        return 0
    base = stream.time_base
    microseconds = container.start_time or 0
    is_of_its_own = container.format.flags & Flags.ts_discont.value
    if is_of_its_own and stream.start_time is not None:
        microseconds = rescale(stream.start_time, base, _MICROSECOND)
    return rescale(microseconds, _MICROSECOND, base)
