"""Pixel formats are read without changing a value."""

from __future__ import annotations

import subprocess
import sys

import av
import numpy as np
import pytest
from av.video.reformatter import VideoReformatter

from gulpio2.media.planes import PlaneReader, layout_of, plane_views


def filled(name, height=32, width=48, seed=0):
    """Make a planar frame of random values."""
    frame = av.VideoFrame(width, height, name)
    bits = frame.format.components[0].bits
    dtype = np.uint16 if bits > 8 else np.uint8
    rng = np.random.default_rng(seed)
    for plane in frame.planes:
        count = plane.buffer_size // np.dtype(dtype).itemsize
        plane.update(rng.integers(0, 2**bits, count).astype(dtype).tobytes())
    return frame


def repacked(frame, name, *, full_range):
    range_ = 2 if full_range else 1
    return VideoReformatter().reformat(
        frame, format=name, src_color_range=range_, dst_color_range=range_
    )


def views(frame):
    return plane_views(frame, deep=frame.format.components[0].bits > 8)


def between(plane, axis, at):
    """Look up a plane between its samples, along one axis."""
    lines = plane.T if axis == 0 else plane
    found = np.array([np.interp(at, np.arange(line.size), line) for line in lines])
    return found.T if axis == 0 else found


@pytest.mark.parametrize("full_range", [False, True], ids=["limited", "full"])
@pytest.mark.parametrize(
    ("packed", "planar", "subsampling", "depth"),
    [
        ("nv12", "yuv420p", "420", 8),
        ("nv21", "yuv420p", "420", 8),
        ("nv16", "yuv422p", "422", 8),
        ("nv24", "yuv444p", "444", 8),
        ("yuyv422", "yuv422p", "422", 8),
        ("uyvy422", "yuv422p", "422", 8),
        ("yuva420p", "yuv420p", "420", 8),
        ("p010le", "yuv420p10le", "420", 10),
        ("yuv420p10be", "yuv420p10le", "420", 10),
        ("yuv420p9be", "yuv420p9le", "420", 9),
        ("yuv422p12be", "yuv422p12le", "422", 12),
        ("y210le", "yuv422p10le", "422", 10),
        ("p016le", "yuv420p16le", "420", 16),
    ],
)
def test_a_packed_format_gives_the_values_of_the_planar_one(
    packed, planar, subsampling, depth, full_range
):
    source = filled(planar)
    frame = repacked(source, packed, full_range=full_range)
    layout = layout_of(frame.format)
    assert (layout.kind, layout.subsampling, layout.depth) == (
        "yuv", subsampling, depth,
    )  # fmt: skip
    read = PlaneReader().yuv(frame, layout, full_range=full_range)
    for plane, expected in zip(read, views(source), strict=True):
        assert np.array_equal(plane, expected)


@pytest.mark.parametrize(
    "name",
    [
        "yuv420p", "yuv422p", "yuv444p", "yuvj420p", "yuvj422p", "yuvj444p",
        "yuv420p10le", "yuv422p12le", "yuv444p16le", "yuva444p",
    ],
)  # fmt: skip
def test_planar_formats_are_looked_at_in_place(name):
    frame = filled(name, 31, 47)
    layout = layout_of(frame.format)
    assert layout.read_as == name
    assert layout.full_range == name.startswith("yuvj")
    y, u, v = PlaneReader().yuv(frame, layout, full_range=layout.full_range)
    assert y.shape == (31, 47)
    assert u.shape == v.shape == layout.chroma_shape(31, 47)
    for view, plane in zip((y, u, v), frame.planes[:3], strict=True):
        dtype = np.uint16 if layout.depth > 8 else np.uint8
        assert np.shares_memory(view, np.frombuffer(plane, dtype))
        assert not view.flags.writeable


@pytest.mark.parametrize(
    ("name", "subsampling"),
    [("yuv411p", "422"), ("yuv410p", "420"), ("yuv440p", "444"), ("yuvj440p", "444")],
)
def test_unusual_grids_keep_all_of_their_chroma(name, subsampling):
    frame = filled(name)
    layout = layout_of(frame.format)
    y, u, v = PlaneReader().yuv(frame, layout, full_range=layout.full_range)
    luma, *chroma = views(frame)
    assert np.array_equal(y, luma)
    assert layout.subsampling == subsampling
    for read, stored in zip((u, v), chroma, strict=True):
        assert read.shape == layout.chroma_shape(32, 48)
        assert abs(read.mean() - stored.mean()) < 1


@pytest.mark.parametrize(("height", "width"), [(65, 66), (63, 61), (3, 5), (1, 1)])
@pytest.mark.parametrize(
    ("name", "down", "across"),
    [("yuv411p", 1, 4), ("yuv410p", 4, 4), ("yuv440p", 2, 1), ("yuv440p10le", 2, 1)],
)
def test_chroma_of_unusual_grids_stays_at_its_place(name, down, across, height, width):
    frame = filled(name, height, width)
    luma, *chroma = views(frame)
    deep = name.endswith("le")
    layout = layout_of(frame.format)
    # Samples over the edge of the picture count: the middle of each pixel is looked up
    # between the middles of the samples.
    y, *read = PlaneReader().yuv(frame, layout, full_range=layout.full_range)
    assert np.array_equal(y, luma)
    rows, columns = layout.chroma_shape(height, width)
    steps = (
        (2 if layout.subsampling == "420" else 1),
        (1 if layout.subsampling == "444" else 2),
    )
    for got, stored in zip(read, chroma, strict=True):
        expected = stored.astype(float)
        for axis, (count, step, size) in enumerate(
            zip((rows, columns), steps, (down, across), strict=True)
        ):
            middles = (np.arange(count) + 0.5) * step / size - 0.5
            expected = between(expected, axis, middles)
        assert got.shape == (rows, columns)
        assert got.dtype == (np.uint16 if deep else np.uint8)
        assert np.abs(got - expected).max() < 1


@pytest.mark.parametrize(
    "name",
    ["rgb24", "bgr24", "gbrp", "rgba", "bgra", "argb", "abgr", "rgb0", "bgr0", "gbrap"],
)
def test_rgb_of_any_order_is_read_exactly(name):
    rgb = np.random.default_rng(0).integers(0, 256, (32, 48, 3)).astype(np.uint8)
    frame = av.VideoFrame.from_ndarray(rgb, "rgb24").reformat(format=name)
    layout = layout_of(frame.format)
    assert layout.kind == "rgb"
    read = PlaneReader().rgb(frame, layout)
    assert read.dtype == np.uint8
    assert np.array_equal(read, rgb)


@pytest.mark.parametrize(
    ("name", "highest"), [("gbrp10le", 1023), ("gbrp12le", 4095), ("rgb48le", 65535)]
)
def test_deep_rgb_is_rounded_not_cut(name, highest):
    rng = np.random.default_rng(0)
    rgb = rng.integers(0, highest + 1, (32, 48, 3)).astype(np.uint16)
    frame = av.VideoFrame.from_ndarray(rgb, name)
    read = PlaneReader().rgb(frame, layout_of(frame.format))
    assert np.abs(read - rgb * (255 / highest)).max() <= 0.51


@pytest.mark.parametrize("order", ["be", "le"])
@pytest.mark.parametrize("name", ["rgb555", "bgr555", "rgb565", "bgr565"])
def test_rgb_of_sixteen_bits_is_read_in_its_byte_order(name, order):
    """Against values by hand: swscale takes those of another order for this one's."""
    green = 6 if name.endswith("565") else 5
    values = np.array([(31, 0, 0), (0, 2**green - 1, 0), (0, 0, 31), (31, 0, 31)])
    first, middle, last = values.T if name.startswith("rgb") else values.T[::-1]
    words = first << (5 + green) | middle << 5 | last
    pixels = np.tile(words, (4, 4)).astype(">u2" if order == "be" else "<u2")
    frame = av.VideoFrame(16, 4, f"{name}{order}")
    rows = np.zeros((4, frame.planes[0].line_size // 2), pixels.dtype)
    rows[:, :16] = pixels
    frame.planes[0].update(rows.tobytes())
    layout = layout_of(frame.format)
    read = PlaneReader().rgb(frame, layout)
    wanted = np.array([(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 0, 255)], np.uint8)
    assert read.tolist() == np.tile(wanted, (4, 4, 1)).tolist()


def test_a_palette_is_looked_up():
    frame = av.VideoFrame(16, 16, "pal8")
    indices = np.zeros((16, frame.planes[0].line_size), np.uint8)
    indices[:, 8:] = 1
    frame.planes[0].update(indices.tobytes())
    palette = np.zeros((256, 4), np.uint8)
    palette[:2] = [[10, 20, 30, 255], [200, 100, 50, 0]]  # B, G, R, A
    frame.planes[1].update(palette.tobytes())
    read = PlaneReader().rgb(frame, layout_of(frame.format))
    assert read[0, 0].tolist() == [30, 20, 10]
    assert read[0, 15].tolist() == [50, 100, 200]


@pytest.mark.parametrize("name", ["gray", "gray10le", "gray16be", "ya8"])
def test_grey_of_any_depth_is_read_exactly(name):
    planar = {"ya8": "gray", "gray16be": "gray16le"}.get(name, name)
    source = filled(planar)
    frame = repacked(source, name, full_range=True) if name != planar else source
    layout = layout_of(frame.format)
    assert layout.kind == "grey"
    read = PlaneReader().grey(frame, layout, full_range=True)
    assert np.array_equal(read, views(source)[0])


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("yaf16le", "<f2"), ("yaf16be", ">f2"), ("yaf32le", "<f4"), ("yaf32be", ">f4")],
)
def test_luma_and_alpha_as_floats_are_taken_without_the_scaler(name, dtype):
    frame = av.VideoFrame(7, 3, name)
    plane = frame.planes[0]
    rows = np.zeros((3, plane.line_size // np.dtype(dtype).itemsize), dtype)
    rows[:, :14:2] = [-1.0, 0.0, 0.25, 0.5, 1.0, 2.0, np.nan]
    rows[:, 1:14:2] = 0.75
    plane.update(rows.tobytes())
    layout = layout_of(frame.format)
    assert (layout.kind, layout.depth) == ("grey", 16)
    read = PlaneReader().grey(frame, layout, full_range=True)
    assert read.dtype == np.uint16
    assert read.tolist() == [[0, 0, 16384, 32768, 65535, 65535, 0]] * 3


def test_one_bit_is_black_or_white():
    frame = av.VideoFrame(16, 2, "monob")
    frame.planes[0].update(bytes([0xF0]) * frame.planes[0].buffer_size)
    read = PlaneReader().grey(frame, layout_of(frame.format), full_range=True)
    assert read[0].tolist() == ([255] * 4 + [0] * 4) * 2


def test_views_keep_the_memory_of_their_frame():
    frame = filled("yuv420p")
    y = views(frame)[0]
    before = y.copy()
    del frame
    filled("yuv420p", seed=1)
    assert np.array_equal(y, before)


def test_one_row_of_a_bayer_pattern_is_refused():
    program = """
import av
from gulpio2.errors import SourceReadError
from gulpio2.media.convert import FrameConverter

for name in ("bayer_bggr8", "bayer_rggb16le", "bayer_gbrg16be"):
    for width in (1, 2, 17):
        try:
            FrameConverter().convert(av.VideoFrame(width, 1, name))
        except SourceReadError as refused:
            assert name in str(refused)
        else:
            raise SystemExit(f"{name} of one row is taken")
"""
    # In a process of its own: it would be ended otherwise.
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


@pytest.mark.parametrize("name", ["bayer_bggr8", "bayer_rggb16le"])
@pytest.mark.parametrize(("height", "width"), [(2, 1), (3, 1), (2, 2), (3, 3)])
def test_two_rows_of_a_bayer_pattern_are_read(name, height, width):
    frame = av.VideoFrame(width, height, name)
    frame.planes[0].update(b"\x80" * frame.planes[0].buffer_size)
    pixels = PlaneReader().rgb(frame, layout_of(frame.format))
    assert pixels.shape == (height, width, 3)
    assert np.all(pixels == 128)
