"""Pixel formats are read without changing a value, and planes shrink by their areas."""

from __future__ import annotations

import av
import numpy as np
import pytest
from av.video.reformatter import VideoReformatter

from gulpio2.media.planes import (
    PlaneReader,
    PlaneScaler,
    chroma_below,
    layout_of,
    plane_views,
)


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


# -------------------------------------------------------------- sizes
def area_weights(size, new_size):
    """Give the share that each old pixel has in each new one."""
    edges = np.arange(new_size + 1) * size / new_size
    pixels = np.arange(size)
    low = np.maximum(edges[:-1, None], pixels)
    high = np.minimum(edges[1:, None], pixels + 1)
    return np.maximum(high - low, 0) * new_size / size


@pytest.mark.parametrize("depth", [8, 10, 16])
@pytest.mark.parametrize(
    ("shape", "smaller"),
    [
        ((256, 340), (128, 170)),
        ((240, 320), (101, 133)),
        ((144, 256), (100, 199)),
        ((90, 120), (30, 40)),
        ((33, 65), (32, 64)),
        ((64, 64), (1, 1)),
    ],
)
def test_planes_shrink_by_the_areas_of_their_pixels(shape, smaller, depth):
    rng = np.random.default_rng(0)
    smooth = np.add.outer(np.arange(shape[0]), np.arange(shape[1])) % 200
    dtype = np.uint8 if depth == 8 else np.uint16
    unit = 2 ** (depth - 8)
    # Rows are padded, as in a decoder's frame.
    wide = np.zeros((shape[0], shape[1] + 64), dtype)
    plane = wide[:, : shape[1]]
    plane[:] = (smooth + rng.integers(0, 56, shape)) * unit
    small = PlaneScaler().shrink(plane, smaller, depth)
    rows, columns = (area_weights(a, b) for a, b in zip(shape, smaller, strict=True))
    exact = rows @ plane.astype(float) @ columns.T
    assert small.shape == smaller
    assert small.dtype == dtype
    error = (small - exact) / unit
    assert np.sqrt(np.mean(error**2)) < 0.5
    assert abs(error.mean()) < 0.3


def test_a_plane_of_the_right_size_is_the_same_object():
    plane = np.zeros((4, 6), np.uint8)
    assert PlaneScaler().shrink(plane, (4, 6), 8) is plane


@pytest.mark.parametrize(
    ("luma", "chroma", "new_luma", "expected"),
    [
        pytest.param((96, 128), (48, 64), (48, 64), (48, 64), id="even"),
        pytest.param((96, 128), (48, 64), (41, 54), (49, 64), id="to odd"),
        pytest.param((720, 1280), (360, 640), (256, 455), (360, 641), id="720p"),
        pytest.param((241, 321), (121, 161), (120, 160), (120, 160), id="from odd"),
        pytest.param((96, 128), (96, 64), (41, 33), (96, 66), id="4:2:2"),
        pytest.param((96, 128), (96, 128), (41, 33), (96, 128), id="4:4:4"),
    ],
)
def test_chroma_is_cut_or_continued_at_an_odd_edge(luma, chroma, new_luma, expected):
    plane = np.arange(chroma[0] * chroma[1], dtype=np.uint16).reshape(chroma)
    fitted = chroma_below(plane, luma, new_luma)
    assert fitted.shape == expected
    rows, columns = (min(a, b) for a, b in zip(chroma, expected, strict=True))
    assert np.array_equal(fitted[:rows, :columns], plane[:rows, :columns])
    assert fitted[-1, -1] == plane[rows - 1, columns - 1]
    assert (fitted is plane) == (chroma == expected)


@pytest.mark.parametrize("width", [453, 454, 455, 456])
def test_a_colour_edge_stays_at_its_place_when_planes_shrink(width):
    luma, new_luma = (720, 1280), (256, width)
    chroma = np.zeros((360, 640), np.uint8)
    chroma[:, 630:] = 200  # luma columns 1260 to 1280
    fitted = chroma_below(chroma, luma, new_luma)
    small = PlaneScaler().shrink(fitted, (128, (width + 1) // 2), 8)
    # Where the edge is, in luma columns of the small picture.
    edge = 2 * (small.shape[1] - small[0].astype(float).sum() / 200)
    assert abs(edge - 1260 * width / 1280) < 0.7
