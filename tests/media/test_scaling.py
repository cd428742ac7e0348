"""Planes shrink by their areas, and chroma at the pace of its luma."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.media.planes import Layout
from gulpio2.media.scaling import PlaneScaler, resize_chroma


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
        ((3, 30), (1, 8)),
        ((3, 60), (2, 50)),
        ((50, 9), (30, 2)),
        ((720, 60), (4, 50)),
        ((60, 720), (50, 4)),
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


# -------------------------------------------------------------- chroma
def by_opencv(plane, luma, new_luma, shape):
    return resize_chroma(plane, luma, new_luma, shape)


def by_swscale(plane, luma, new_luma, shape):
    return PlaneScaler().shrink_chroma(plane, luma, new_luma, shape, 16)


def drift_of(resize, luma, new_luma, subsampling="420"):
    """Resize the places of chroma samples; give how far the new ones are off at most.

    In new samples, down and across, without those at the edges, which may mean samples
    that there are not.
    """
    layout = Layout("yuv", 16, "yuv420p16le", full_range=True, subsampling=subsampling)
    have, shape = layout.chroma_shape(*luma), layout.chroma_shape(*new_luma)
    drifts = []
    for axis in (0, 1):
        pace = luma[axis] / new_luma[axis]
        unit = 60000 // have[axis]
        lines = np.arange(have[axis]) * unit
        wide = np.zeros((have[0], have[1] + 32), np.uint16)  # as a decoder has it
        plane = wide[:, : have[1]]
        plane[:] = lines[:, None] if axis == 0 else lines
        resized = resize(plane, luma, new_luma, shape)
        assert resized.shape == shape
        assert resized.dtype == np.uint16
        found = (resized / unit + 0.5).mean(1 - axis) / pace
        edge = int(np.ceil(1 / pace)) + 1
        off = found - (np.arange(shape[axis]) + 0.5)
        drifts.append(np.abs(off[edge:-edge]).max(initial=0))
    return drifts


SMALLER = [
    pytest.param((256, 340), (128, 170), "420", id="even"),
    pytest.param((96, 128), (41, 54), "420", id="to odd"),
    pytest.param((270, 480), (256, 455), "420", id="to odd, slightly"),
    pytest.param((720, 1280), (256, 455), "420", id="720p"),
    pytest.param((241, 321), (120, 160), "420", id="from odd"),
    pytest.param((241, 321), (121, 161), "420", id="odd to odd"),
    pytest.param((48, 48), (47, 47), "420", id="as many samples"),
    pytest.param((256, 340), (255, 339), "420", id="by little"),
    pytest.param((34, 272), (33, 264), "420", id="as many rows"),
    pytest.param((96, 128), (41, 33), "422", id="4:2:2"),
    pytest.param((96, 128), (41, 33), "444", id="4:4:4"),
]
LARGER = [
    pytest.param((240, 320), (256, 342), "420", id="even"),
    pytest.param((240, 320), (256, 341), "420", id="to odd"),
    pytest.param((241, 321), (256, 340), "420", id="from odd"),
    pytest.param((55, 245), (101, 449), "420", id="odd to odd"),
    pytest.param((47, 47), (48, 48), "420", id="as many samples"),
    pytest.param((96, 127), (141, 186), "422", id="4:2:2"),
    pytest.param((96, 127), (141, 187), "444", id="4:4:4"),
]


@pytest.mark.parametrize("resize", [by_opencv, by_swscale])
@pytest.mark.parametrize(("luma", "new_luma", "subsampling"), SMALLER)
def test_chroma_shrinks_at_the_pace_of_its_luma(resize, luma, new_luma, subsampling):
    assert max(drift_of(resize, luma, new_luma, subsampling)) < 0.06


@pytest.mark.parametrize(("luma", "new_luma", "subsampling"), LARGER)
def test_chroma_grows_at_the_pace_of_its_luma(luma, new_luma, subsampling):
    assert max(drift_of(by_opencv, luma, new_luma, subsampling)) < 0.06


sides = st.integers(1, 200)


@given(sides, sides, sides, sides, st.sampled_from(["420", "422", "444"]))
def test_chroma_of_any_size_goes_at_the_pace_of_its_luma(a, b, c, d, subsampling):
    luma = max(a, b), max(c, d)
    new_luma = min(a, b), min(c, d)
    assert max(drift_of(by_swscale, luma, new_luma, subsampling)) < 0.2
    assert max(drift_of(by_opencv, luma, new_luma, subsampling)) < 0.15
    assert max(drift_of(by_opencv, new_luma, luma, subsampling)) < 0.02


def test_chroma_that_is_continued_is_not_kept_for_the_next_plane():
    scaler = PlaneScaler()
    planes = [np.full((48, 64), value, np.uint8) for value in (20, 200)]
    small = [scaler.shrink_chroma(p, (96, 128), (41, 54), (21, 27), 8) for p in planes]
    assert [(plane.min(), plane.max()) for plane in small] == [(20, 20), (200, 200)]
