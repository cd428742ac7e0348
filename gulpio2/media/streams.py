"""Which stream of a video file is decoded."""

from __future__ import annotations

from typing import Any

from av.stream import Disposition

from gulpio2.errors import SourceReadError

__all__ = ["choose_stream"]


def choose_stream(container: Any, name: str, number: int | None) -> Any:
    """Choose the stream with this number, or FFmpeg's best video stream.

    Raises
    ------
    SourceReadError
        There is none, or none that can be decoded.
    """
    videos = [
        stream
        for stream in container.streams.video
        if not stream.disposition & Disposition.attached_pic  # the cover of a song
    ]
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
