"""Stored frames against the exact decode of the source.

A stored frame is what `VideoFrames.stored` gives, encoded at quality 90 and decoded
exactly (accurate DCT, smooth chroma). The exact decode is `conftest.exact_rgb`, in
floating point, with the matrix and range that the file declares and chroma linear
between its samples. Beside it, that exact RGB is encoded with the same settings.
"""

from __future__ import annotations

from typing import Any

import av
import cv2
import numpy as np
import pytest
import simplejpeg

from gulpio2.codecs.jpeg import EncoderSettings, encode_frame
from gulpio2.media.video import VideoFrames

QUALITY = 90

# Every so many frames; the synthetic ones are drawings, whose fine lines suffer more.
CAMERA = {
    "arm_wrestling_h264_28fps.mp4": 14,
    "pancake_h264_audio.mkv": 15,
    "nasa_six_streams.mp4": 30,
    "mpeg4_audio_25fps.avi": 8,
    "vp8_audio_30fps.webm": 7,
    "h264_6fps.mp4": 3,
    "rotated_90.mov": 1,
}
DRAWN = {
    "odd_width_vp9.mp4": 3,
    "odd_width_vp9_10bit.mp4": 3,
    "bt709_full_range.mp4": 10,
}


def decoded(data):
    return simplejpeg.decode_jpeg(data, fastdct=False, fastupsample=False)


class Comparison:
    """PSNR of stored frames and of their re-encoded exact decode, and mean shifts."""

    def __init__(self, path, exact_rgb, psnr, *, every=1):
        self.stored, self.encoded, self.shifts = [], [], []
        with av.open(str(path)) as container:
            stream: Any = container.streams.best("video")
            frames: Any = container.decode(stream)
            for index, (source, frame) in enumerate(
                zip(frames, VideoFrames(path).stored(), strict=True)
            ):
                if index % every:
                    continue
                exact = exact_rgb(source)
                exact = np.rot90(exact, source.rotation // 90)
                image = frame.image
                ours = decoded(
                    simplejpeg.encode_jpeg_yuv_planes(
                        image.y, image.u, image.v, quality=QUALITY
                    )
                )
                theirs = decoded(
                    simplejpeg.encode_jpeg(
                        np.ascontiguousarray(np.rint(exact).astype(np.uint8)),
                        quality=QUALITY,
                        colorsubsampling=image.subsampling,
                    )
                )
                self.stored.append(psnr(ours, exact))
                self.encoded.append(psnr(theirs, exact))
                self.shifts.append((ours - exact).mean((0, 1)))

    def check(self):
        assert np.mean(self.stored) > np.mean(self.encoded) - 1
        assert np.abs(np.mean(self.shifts, axis=0)).max() <= 1


@pytest.mark.parametrize(("name", "every"), CAMERA.items(), ids=CAMERA)
def test_camera_videos(shared_videos, exact_rgb, psnr, name, every):
    comparison = Comparison(shared_videos / name, exact_rgb, psnr, every=every)
    assert np.mean(comparison.stored) >= 37
    comparison.check()


@pytest.mark.parametrize(("name", "every"), DRAWN.items(), ids=DRAWN)
def test_drawn_videos(shared_videos, exact_rgb, psnr, name, every):
    Comparison(shared_videos / name, exact_rgb, psnr, every=every).check()


# What is declared: nothing, or a matrix by FFmpeg's number and a range.
DECLARED = {
    "nothing": (None, None),
    "601-limited": (6, False),
    "601-full": (6, True),
    "709-limited": (1, False),
    "709-full": (1, True),
    "2020-limited": (9, False),
}
KINDS = [
    pytest.param(pix_fmt, *declared, id=f"{pix_fmt}-{name}")
    for pix_fmt in ("yuv420p", "yuv422p", "yuv444p", "yuv420p10le", "yuv444p10le")
    for name, declared in DECLARED.items()
]


@pytest.mark.parametrize(("pix_fmt", "matrix", "full_range"), KINDS)
def test_matrices_ranges_depths_and_subsamplings(
    tmp_path, write_video, pictures, exact_rgb, psnr, pix_fmt, matrix, full_range
):
    path = write_video(
        tmp_path / "a.mkv",
        pictures(3, 96, 128),
        pix_fmt=pix_fmt,
        matrix=matrix,
        full_range=full_range,
    )
    info = VideoFrames(path).source_info()
    assert info["range"] == ("full" if full_range else "limited")
    names = {None: "bt601", 6: "bt601", 1: "bt709", 9: "bt2020nc"}
    assert info["matrix"] == names[matrix]
    comparison = Comparison(path, exact_rgb, psnr)
    comparison.check()
    assert np.mean(comparison.stored) > 37


@pytest.mark.parametrize("pix_fmt", ["yuv420p", "yuv422p", "yuv444p"])
@pytest.mark.parametrize(
    ("size", "short_edge"),
    [
        pytest.param((96, 128), 48, id="half"),
        pytest.param((96, 127), 64, id="from odd to even"),
        pytest.param((96, 128), 64, id="to odd"),
        pytest.param((48, 48), 47, id="slightly smaller"),
        pytest.param((34, 272), 33, id="slightly smaller, wide"),
        pytest.param((60, 80), 64, id="larger and odd"),
        pytest.param((54, 245), 101, id="larger, from odd to even"),
        pytest.param((95, 127), 101, id="larger, from odd to odd"),
    ],
)
def test_resized_frames(
    tmp_path, write_video, pictures, exact_rgb, decode_all, psnr, pix_fmt, size,
    short_edge,
):  # fmt: skip
    drawn = pictures(1, *size)
    # Edges of strong colours beside what is smooth: they show where chroma is.
    drawn[0][:, size[1] * 3 // 4 :, 0] //= 4
    path = write_video(
        tmp_path / "a.mkv", drawn, codec="ffv1", pix_fmt=pix_fmt, full_range=False
    )
    image: Any = next(iter(VideoFrames(path, frame_size=short_edge).stored())).image
    height, width = image.y.shape
    smaller = height <= size[0] and width <= size[1]
    wanted = cv2.resize(
        exact_rgb(decode_all(path)[0]),
        (width, height),
        interpolation=cv2.INTER_AREA if smaller else cv2.INTER_LINEAR,
    )
    ours = decoded(encode_frame(image, EncoderSettings(quality=QUALITY)))
    theirs = decoded(
        simplejpeg.encode_jpeg(
            np.rint(wanted).astype(np.uint8),
            quality=QUALITY,
            colorsubsampling=image.subsampling,
        )
    )
    assert psnr(ours, wanted) > psnr(theirs, wanted) - 1
    assert np.abs((ours - wanted).mean((0, 1))).max() <= 1


@pytest.mark.parametrize("matrix", [1, 6])
def test_the_colours_are_those_that_were_filmed(
    tmp_path, write_video, pictures, psnr, matrix
):
    images = pictures(3, 96, 128)
    for full_range in (False, True):
        path = write_video(
            tmp_path / f"{full_range}.mkv",
            images,
            pix_fmt="yuv444p",
            matrix=matrix,
            full_range=full_range,
        )
        for image, rgb in zip(images, VideoFrames(path), strict=True):
            assert psnr(rgb, image) > 45


@pytest.mark.parametrize(
    "name", ["mpeg2video", "mpeg4", "libvpx", "libvpx-vp9", "ffv1"]
)
def test_codecs(tmp_path, write_video, pictures, exact_rgb, psnr, name):
    path = write_video(
        tmp_path / "a.mkv", pictures(4, 96, 128), codec=name, options={"b": "4M"}
    )
    Comparison(path, exact_rgb, psnr).check()


@pytest.mark.parametrize("pix_fmt", ["yuv420p", "yuv420p10le", "yuv444p"])
@pytest.mark.parametrize("matrix", [1, 6])
@pytest.mark.parametrize("size", [(36, 48), (41, 54), (120, 160)])
def test_resized_frames_are_the_resized_exact_decode(
    tmp_path, write_video, pictures, exact_rgb, psnr, decode_all, pix_fmt, matrix, size
):
    import cv2

    from gulpio2.media.colour import to_rgb

    path = write_video(
        tmp_path / "a.mkv", pictures(2, 96, 128), pix_fmt=pix_fmt, matrix=matrix
    )
    shrinks = size[0] < 96
    for source, frame in zip(
        decode_all(path),
        VideoFrames(path, frame_size=min(size)).stored(),
        strict=True,
    ):
        exact = cv2.resize(
            exact_rgb(source),
            size[::-1],
            interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR,
        )
        assert psnr(to_rgb(frame.image), exact) > 41
        assert np.abs((to_rgb(frame.image) - exact).mean((0, 1))).max() < 0.5
