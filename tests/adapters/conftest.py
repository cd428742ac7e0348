"""Small source files for the tests of adapters, each made where it is needed."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import av
import numpy as np
import pytest
import simplejpeg

from tests.written_once import written_once

if TYPE_CHECKING:
    from collections.abc import Callable

# MPEG-4 part 2 is in every build of FFmpeg's libraries.
CODECS = {".webm": "libvpx", ".mp4": "mpeg4", ".avi": "mpeg4"}


@written_once
def write_video(path, num_frames=8, *, height=48, width=64, frame_rate=24):
    """Encode a video in which frame i is grey of 16 + 200 * i // num_frames."""
    with av.open(str(path), "w") as container:
        codec = CODECS[path.suffix]
        stream: Any = container.add_stream(codec, rate=Fraction(frame_rate))
        if codec == "libvpx":
            stream.options = {
                "deadline": "realtime",
                "cpu-used": "8",
            }  # ten times faster
        stream.height, stream.width, stream.pix_fmt = height, width, "yuv420p"
        for index in range(num_frames):
            value = 16 + 200 * index // num_frames
            image = np.full((height, width, 3), value, np.uint8)
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame.pts = index
            frame.time_base = 1 / Fraction(frame_rate)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def write_jpeg(path, value=128, *, height=48, width=64, grey=False):
    """Write a JPEG of one brightness."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    kind: dict[str, str] = {}
    if grey:
        kind = {"colorspace": "GRAY", "colorsubsampling": "Gray"}
    image = np.full((height, width, 1 if grey else 3), value, np.uint8)
    path.write_bytes(simplejpeg.encode_jpeg(image, **kind))
    return path


@pytest.fixture
def make_video() -> Callable[..., Path]:
    """Give a function that writes a small video and returns its path."""
    return write_video


@pytest.fixture
def make_jpeg() -> Callable[..., Path]:
    """Give a function that writes a small JPEG and returns its path."""
    return write_jpeg
