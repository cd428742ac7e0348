"""JPEG files that shrink much: the codec reduces them, within a stated error."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import simplejpeg

from gulpio2.codecs.jpeg import EncoderSettings, encode_frame
from gulpio2.media.image_files import decode_image, read_outline, reduction_for
from gulpio2.media.images import ImageFrames
from gulpio2.media.resize import resize_pixels, resized_shape


def jpeg_of(image, subsampling="420"):
    return simplejpeg.encode_jpeg(
        np.ascontiguousarray(image), quality=90, colorsubsampling=subsampling
    )


def encoded(image):
    """Encode as an ingest does, and decode exactly."""
    data = encode_frame(image, EncoderSettings(quality=90))
    return simplejpeg.decode_jpeg(data, fastdct=False, fastupsample=False)


def compare(path, data, edge, psnr, *, loss=0.5, at_least=40):
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
        exact = whole.astype(float)
        stored, best = psnr(encoded(frame.image), exact), psnr(encoded(whole), exact)
        assert stored > best - loss
        assert psnr(frame.image, exact) > at_least
        assert np.abs(difference.mean((0, 1))).max() < 0.5
    return divided_by


@pytest.mark.parametrize("subsampling", ["420", "444"])
@pytest.mark.parametrize(
    ("size", "edge", "divided_by"),
    [
        ((512, 768), 64, 2),
        ((512, 768), 32, 4),
        ((512, 768), 16, 4),
        ((512, 768), 65, 1),
        ((511, 768), 32, 1),
        ((514, 770), 32, 2),
    ],
)
def test_a_jpeg_is_reduced_while_it_is_decoded(
    tmp_path, pictures, psnr, subsampling, size, edge, divided_by
):
    image = pictures(1, *size)[0]
    data = jpeg_of(image, subsampling)
    assert compare(tmp_path / "a.jpg", data, edge, psnr) == divided_by


def print_on(paper, size=(768, 1024)):
    """Draw lines of small letters in dark colours."""
    rng = np.random.default_rng(0)
    image = np.full((*size, 3), paper, np.uint8)
    for y in range(10, size[0], 12):
        colour = [int(c) for c in rng.integers(0, 160, 3)]
        line = "".join(map(chr, rng.integers(65, 123, 200)))
        cv2.putText(image, line, (4, y), cv2.FONT_HERSHEY_PLAIN, 0.8, colour, 1)
    return image


def noise(size=(768, 1024)):
    return np.random.default_rng(0).integers(0, 256, (*size, 3)).astype(np.uint8)


def letters_on_noise():
    """Print on the upper tenth of an image of small blobs."""
    blobs = cv2.resize(noise((384, 512)), (1024, 768))
    blobs[:76] = print_on(255)[:76]
    return blobs


FINE = {
    "print": (print_on(255), 1),
    "print on near white": (print_on(250), 1),
    "white print on black": (255 - print_on(255), 1),
    "print on grey": (print_on(225), 4),
    "noise": (noise(), 4),
    "some print": (letters_on_noise(), 4),
}


@pytest.mark.parametrize("edge", [96, 48, 24])
@pytest.mark.parametrize("subsampling", ["420", "444"])
@pytest.mark.parametrize(("image", "divided_by"), FINE.values(), ids=FINE)
def test_fine_detail_is_within_the_stated_error(
    tmp_path, psnr, image, divided_by, subsampling, edge
):
    data = jpeg_of(image, subsampling)
    reduced = compare(tmp_path / "a.jpg", data, edge, psnr, loss=2, at_least=38)
    assert reduced == min(divided_by, 768 // edge // 4)


@pytest.mark.parametrize("subsampling", ["422", "440"])
def test_what_the_codec_does_not_average_is_decoded_whole(tmp_path, psnr, subsampling):
    data = jpeg_of(noise(), subsampling)
    assert reduction_for(768, 1024, 96) == 2
    assert compare(tmp_path / "a.jpg", data, 96, psnr) == 1


@pytest.mark.parametrize("edge", [16, 32, 50, 64])
def test_photographs_are_within_the_stated_error(tmp_path, shared_images, psnr, edge):
    reductions: list[int] = []
    for path in sorted(shared_images.glob("*.jpg")):
        data = path.read_bytes()
        if simplejpeg.decode_jpeg_header(data)[2] != "YCbCr":
            continue
        image = simplejpeg.decode_jpeg(data, "RGB")
        height, width = (side // 8 * 8 for side in image.shape[:2])
        reductions.extend(
            compare(
                tmp_path / "a.jpg",
                jpeg_of(image[:height, :width], subsampling),
                edge,
                psnr,
            )
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
def test_four_times_the_size_that_is_wanted_is_left(size, short_edge):
    reduction = reduction_for(size[0], size[1], short_edge)
    assert reduction in {1, 2, 4}
    if reduction > 1:
        assert min(size) / reduction >= 4 * short_edge
        assert size[0] % reduction == size[1] % reduction == 0
