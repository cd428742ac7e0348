"""Videos made where they are needed, and an exact decode that owes nothing to the code.

FFmpeg's libraries come with PyAV, so no program is needed to make any of this.
"""

from __future__ import annotations

import struct
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import av
import numpy as np
import pytest

from gulpio2.media.wholeness import look_through
from tests.written_once import written_once

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# Weights of red and blue, ITU-T H.273 table 4. FFmpeg's number -> weights.
WEIGHTS = {1: (0.2126, 0.0722), 4: (0.30, 0.11), 7: (0.212, 0.087), 9: (0.2627, 0.0593)}
BT601 = (0.299, 0.114)
# Lossless where the codec can, so that what is decoded is what was encoded.
OPTIONS = {"libx264": {"qp": "0", "preset": "ultrafast"}, "mpeg4": {"qscale": "2"}}


def find_damage(path: Any) -> Any:
    """Tell what a file itself says to be missing; None for nothing."""
    return look_through(path).damage


def pictures(num: int, height: int, width: int) -> list[Any]:
    """Draw smooth colours that move, with a little noise; ``(H, W, 3)`` uint8 RGB."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:height, :width]
    drawn = []
    for index in range(num):
        phase = 2 * np.pi * index / max(num, 1)
        red = 128 + 110 * np.sin(6.3 * x / width + phase)
        green = 128 + 110 * np.cos(6.3 * y / height - phase)
        blue = 128 + 110 * np.sin(6.3 * (x / width + y / height) + 2 * phase)
        noise = rng.normal(0, 2, (height, width, 1))
        image = np.stack([red, green, blue], -1) + noise
        drawn.append(np.clip(np.rint(image), 0, 255).astype(np.uint8))
    return drawn


def write_video(
    path: Path,
    images: list[Any],
    *,
    codec: str = "libx264",
    pix_fmt: str = "yuv420p",
    rate: int = 25,
    time_base: Fraction | None = None,
    pts: list[int] | None = None,
    full_range: bool | None = None,
    matrix: int | None = None,
    options: dict[str, str] | None = None,
    mux_options: dict[str, str] | None = None,
    with_audio: bool = False,
) -> Path:
    """Encode RGB images; `matrix` and `full_range` are what the file then declares."""
    range_ = {None: 0, False: 1, True: 2}[full_range]
    with av.open(str(path), "w", options=mux_options or {}) as container:
        stream: Any = container.add_stream(codec, rate=rate)
        stream.height, stream.width = images[0].shape[:2]
        stream.pix_fmt = pix_fmt
        stream.options = OPTIONS.get(codec, {}) if options is None else options
        if time_base is not None:
            stream.codec_context.time_base = time_base
        if matrix is not None:
            stream.codec_context.colorspace = matrix
        if range_:
            stream.codec_context.color_range = range_
        audio: Any = container.add_stream("aac", rate=8000) if with_audio else None
        for index, image in enumerate(images):
            frame = av.VideoFrame.from_ndarray(image, format="rgb24").reformat(
                format=pix_fmt, dst_color_range=range_ or 1, dst_colorspace=matrix
            )
            frame.color_range = range_
            frame.pts = index if pts is None else pts[index]
            frame.time_base = time_base or Fraction(1, rate)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
        if audio is not None:
            silence = av.AudioFrame.from_ndarray(
                np.zeros((1, 1024), np.float32), format="fltp", layout="mono"
            )
            silence.rate = 8000
            container.mux(audio.encode(silence))
            container.mux(audio.encode(None))
    return path


def turn(path: Path, matrix: tuple[int, int, int, int]) -> Path:
    """Write the four numbers that turn the picture into the header of an MP4 file."""
    a, b, c, d = (value << 16 for value in matrix)
    data = bytearray(path.read_bytes())
    box = data.index(b"tkhd") + 4
    start = box + (40 if data[box] == 0 else 52)
    data[start : start + 36] = struct.pack(">9i", a, b, 0, c, d, 0, 0, 0, 1 << 30)
    path.write_bytes(data)
    return path


def raw_planes(frame: Any) -> list[Any]:
    """Copy the planes of a planar YUV frame out of the decoder's memory."""
    dtype = np.uint16 if "le" in frame.format.name else np.uint8
    return [
        np.frombuffer(plane, dtype).reshape(plane.height, -1)[:, : plane.width].copy()
        for plane in frame.planes[:3]
    ]


def upsample(chroma: Any, shape: tuple[int, ...], *, left: bool = False) -> Any:
    """Bring chroma to the size of luma, linearly between its samples.

    They lie between two pixels, or, in a row, on the left one.
    """
    for axis in (0, 1):
        if chroma.shape[axis] == shape[axis]:
            continue
        rows = np.moveaxis(chroma, axis, 0)
        before = np.concatenate([rows[:1], rows[:-1]])
        after = np.concatenate([rows[1:], rows[-1:]])
        double = np.empty((2 * len(rows), *rows.shape[1:]))
        if left and axis == 1:
            double[0::2] = rows
            double[1::2] = 0.5 * rows + 0.5 * after
        else:
            double[0::2] = 0.75 * rows + 0.25 * before
            double[1::2] = 0.75 * rows + 0.25 * after
        chroma = np.moveaxis(double, 0, axis)
    return chroma[: shape[0], : shape[1]]


def exact_rgb(frame: Any, *, left: bool = False) -> Any:
    """Decode planar YUV into RGB in floating point, by the matrix and range declared.

    ITU-T H.273, 8.3. Chroma is upsampled linearly, see `upsample`; undeclared is BT.601
    and limited.
    """
    name = frame.format.name
    bits = frame.format.components[0].bits
    y, u, v = (plane.astype(float) for plane in raw_planes(frame))
    unit = 2 ** (bits - 8)
    if name.startswith("yuvj") or frame.color_range == 2:
        black, white, reach = 0, 2**bits - 1, 2**bits - 1
    else:
        black, white, reach = 16 * unit, 235 * unit, 224 * unit
    y = (y - black) / (white - black)
    u, v = (upsample((c - 128 * unit) / reach, y.shape, left=left) for c in (u, v))
    red, blue = WEIGHTS.get(int(frame.colorspace), BT601)
    green = 1 - red - blue
    r = y + 2 * (1 - red) * v
    b = y + 2 * (1 - blue) * u
    g = (y - red * r - blue * b) / green
    return np.clip(255 * np.stack([r, g, b], -1), 0, 255)


def decode_all(path: Path, stream: int | None = None) -> list[Any]:
    """Decode every frame with PyAV alone."""
    with av.open(str(path)) as container:
        chosen: Any = (
            container.streams.best("video")
            if stream is None
            else container.streams[stream]
        )
        return list(container.decode(chosen))


def psnr(a: Any, b: Any) -> float:
    """Peak signal to noise ratio in dB, capped at 99."""
    error = float(np.mean((np.asarray(a, float) - np.asarray(b, float)) ** 2))
    return 99.0 if error == 0 else float(min(10 * np.log10(255**2 / error), 99.0))


@pytest.fixture(name="pictures")
def pictures_fixture() -> Callable[..., list[Any]]:
    """Give `pictures`."""
    return pictures


@pytest.fixture(name="write_video")
def write_video_fixture() -> Callable[..., Path]:
    """Give `write_video`."""
    return write_video


@pytest.fixture(name="turn")
def turn_fixture() -> Callable[..., Path]:
    """Give `turn`."""
    return turn


@pytest.fixture(name="exact_rgb")
def exact_rgb_fixture() -> Callable[[Any], Any]:
    """Give `exact_rgb`."""
    return exact_rgb


@pytest.fixture(name="raw_planes")
def raw_planes_fixture() -> Callable[[Any], list[Any]]:
    """Give `raw_planes`."""
    return raw_planes


@pytest.fixture(name="decode_all")
def decode_all_fixture() -> Callable[..., list[Any]]:
    """Give `decode_all`."""
    return decode_all


@pytest.fixture(name="psnr")
def psnr_fixture() -> Callable[[Any, Any], float]:
    """Give `psnr`."""
    return psnr


@written_once
def draw_clip(path: Path) -> Path:
    """Encode the frames of `clip`."""
    return write_video(path, pictures(30, 48, 64), rate=30)


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    """Make 30 frames of 64x48 at 30/s, H.264, nothing declared."""
    return draw_clip(tmp_path / "clip.mp4")
