"""What is ingested: clips as links, a long video, large ones, image files."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = [
    "link_clips",
    "link_frames",
    "link_images",
    "make_images",
    "make_large",
    "make_long",
]


def link_clips(folder: Path, sources: Iterable[Path]) -> Path:
    """Make a folder of clips of one label: links to files, one for each.

    They are called ``.webm``, since 0.0.4's command takes no others; FFmpeg looks at
    what is in a file.
    """
    (folder / "label").mkdir(parents=True)
    for number, source in enumerate(sources):
        link = folder / "label" / f"clip{number:04d}.webm"
        link.symlink_to(source.resolve())
    return folder


def make_long(path: Path, source: Path, times: int) -> Path:
    """Repeat the packets of a video, without encoding them again."""
    import av

    shift = 0
    with av.open(str(path), "w") as output:
        stream = None
        for _ in range(times):
            last = first = None
            with av.open(str(source)) as container:
                video = container.streams.video[0]
                if stream is None:
                    stream = output.add_stream_from_template(video)
                for packet in container.demux(video):
                    if packet.dts is None:
                        continue
                    first = packet.dts if first is None else first
                    last = packet.dts + (packet.duration or 1)
                    packet.dts += shift
                    packet.pts += shift
                    packet.stream = stream
                    output.mux(packet)
            shift += (last or 0) - (first or 0)
    return path


def make_large(path: Path, source: Path, num_frames: int) -> Path:
    """Encode a clip in 1920x1080."""
    import av

    with av.open(str(source)) as container, av.open(str(path), "w") as output:
        stream = output.add_stream("libx264", rate=28, options={"preset": "veryfast"})
        stream.width, stream.height, stream.pix_fmt = 1920, 1080, "yuv420p"
        for number, frame in enumerate(container.decode(video=0)):
            if number == num_frames:
                break
            larger = frame.reformat(1920, 1080, "yuv420p")
            larger.pts = number
            larger.time_base = Fraction(1, 28)
            for packet in stream.encode(larger):
                output.mux(packet)
        for packet in stream.encode():
            output.mux(packet)
    return path


def make_images(folder: Path, source: Path, count: int) -> Path:
    """Store frames of a video as JPEG files of one label."""
    from gulpio2.codecs.jpeg import EncoderSettings, encode_frame
    from gulpio2.media.video import VideoFrames

    (folder / "label").mkdir(parents=True)
    frames = list(VideoFrames(source).stored())
    for number in range(count):
        image = frames[number % len(frames)].image
        data = encode_frame(image, EncoderSettings())
        (folder / "label" / f"image{number:05d}.jpg").write_bytes(data)
    return folder


def link_images(folder: Path, source: Path, count: int) -> Path:
    """Link files of a folder of `make_images` again and again."""
    (folder / "label").mkdir(parents=True)
    files = sorted((source / "label").iterdir())
    for number in range(count):
        link = folder / "label" / f"image{number:06d}.jpg"
        link.hardlink_to(files[number % len(files)])
    return folder


def link_frames(folder: Path, source: Path, videos: int, frames: int) -> Path:
    """Link files of a folder of `make_images` as the frames of videos, a folder each.

    Returns
    -------
    pathlib.Path
        The table of the videos, beside their folders.
    """
    files = sorted((source / "label").iterdir())
    for video in range(videos):
        inside = folder / "frames" / f"{video:03d}"
        inside.mkdir(parents=True)
        for number in range(frames):
            link = inside / f"{number:010d}.jpg"
            link.hardlink_to(files[(video * frames + number) % len(files)])
    table = folder / "videos.csv"
    table.write_text("".join(f"{video:03d};label\n" for video in range(videos)))
    return table
