"""JPEG files that shrink much: the codec reduces them, within a stated error."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import simplejpeg

from gulpio2.media.image_files import decode_image, read_outline, reduction_for
from gulpio2.media.images import ImageFrames
from gulpio2.media.resize import resize_pixels, resized_shape


def jpeg_of(image, subsampling="420"):
    return simplejpeg.encode_jpeg(
        np.ascontiguousarray(image), quality=90, colorsubsampling=subsampling
    )


def compare(path, data, edge, psnr):
    """Check an image against itself decoded whole; give what it was divided by."""
    path.write_bytes(data)
    height, width = simplejpeg.decode_jpeg_header(data)[:2]
    (frame,) = ImageFrames([path], frame_size=edge).stored()
    whole = resize_pixels(
        simplejpeg.decode_jpeg(data, "RGB"), resized_shape(height, width, edge)
    )
    assert frame.image.shape == whole.shape
    reduced = decode_image(data, path, read_outline(data, path), short_edge=edge)
    divided_by = height // reduced.shape[0]
    if divided_by == 1:
        assert np.array_equal(frame.image, whole)
    else:
        difference = frame.image.astype(float) - whole
        assert psnr(frame.image, whole.astype(float)) > 40
        assert np.abs(difference.mean((0, 1))).max() < 0.5
    return divided_by


@pytest.mark.parametrize("subsampling", ["420", "422", "444"])
@pytest.mark.parametrize(
    ("size", "edge", "divided_by"),
    [
        ((512, 768), 128, 2),
        ((512, 768), 64, 4),
        ((512, 768), 32, 8),
        ((512, 768), 129, 1),
        ((511, 768), 64, 1),
        ((514, 770), 64, 2),
    ],
)
def test_a_jpeg_is_reduced_while_it_is_decoded(
    tmp_path, pictures, psnr, subsampling, size, edge, divided_by
):
    image = pictures(1, *size)[0]
    data = jpeg_of(image, subsampling)
    assert compare(tmp_path / "a.jpg", data, edge, psnr) == divided_by


@pytest.mark.parametrize("edge", [64, 100, 128, 224])
def test_photographs_are_within_the_stated_error(tmp_path, shared_images, psnr, edge):
    reductions: list[int] = []
    for path in sorted(shared_images.glob("*.jpg")):
        data = path.read_bytes()
        if simplejpeg.decode_jpeg_header(data)[2] != "YCbCr":
            continue
        image = simplejpeg.decode_jpeg(data, "RGB")
        sides = [8 * (side * 2 // 8) for side in image.shape[:2]]
        larger = cv2.resize(image, sides[::-1], interpolation=cv2.INTER_CUBIC)
        reductions.extend(
            compare(tmp_path / "a.jpg", jpeg_of(larger, subsampling), edge, psnr)
            for subsampling in ("420", "422", "444")
        )
    assert max(reductions) > 1


def test_iterating_gives_what_is_stored(tmp_path, pictures):
    path = tmp_path / "a.jpg"
    path.write_bytes(jpeg_of(pictures(1, 512, 768)[0]))
    frames = ImageFrames([path], frame_size=64)
    (stored,), (shown,) = frames.stored(), frames
    assert np.array_equal(stored.image, shown)


def test_grey_is_reduced_as_grey(tmp_path, pictures):
    path = tmp_path / "a.jpg"
    grey = pictures(1, 512, 768)[0][..., :1]
    path.write_bytes(
        simplejpeg.encode_jpeg(
            np.ascontiguousarray(grey), colorspace="GRAY", colorsubsampling="Gray"
        )
    )
    (frame,) = ImageFrames([path], frame_size=64).stored()
    assert frame.image.shape == (64, 96)


@pytest.mark.parametrize("short_edge", [1, 17, 64, 240])
@pytest.mark.parametrize("size", [(480, 640), (1080, 1920), (1081, 1920), (96, 4000)])
def test_twice_the_size_that_is_wanted_is_left(size, short_edge):
    reduction = reduction_for(size[0], size[1], short_edge)
    assert reduction in {1, 2, 4, 8}
    if reduction > 1:
        assert min(size) / reduction >= 2 * short_edge
        assert size[0] % reduction == size[1] % reduction == 0
