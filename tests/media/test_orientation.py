"""Turned and mirrored pictures."""

from __future__ import annotations

import io
import logging
import subprocess
import sys
from fractions import Fraction

import av
import cv2
import numpy as np
import pytest
from av.bitstream import BitStreamFilterContext
from PIL import Image, ImageCms

from gulpio2.media.orientation import UPRIGHT, Orientation, read_orientation
from gulpio2.media.video import VideoFrames
from gulpio2.types import YuvFrame

# a, b, c, d of the display matrix -> what it does to an image. ISO/IEC 14496-12, 6.2.2:
# x' = a x + c y, y' = b x + d y, so b = 1 puts columns where rows were.
TURNS = [
    pytest.param((1, 0, 0, 1), lambda i: i, 0, id="upright"),
    pytest.param((0, 1, -1, 0), lambda i: np.rot90(i, -1), -90, id="right"),
    pytest.param((-1, 0, 0, -1), lambda i: np.rot90(i, 2), -180, id="upside down"),
    pytest.param((0, -1, 1, 0), lambda i: np.rot90(i), 90, id="left"),
    pytest.param((-1, 0, 0, 1), lambda i: i[:, ::-1], -180, id="mirrored"),
    pytest.param((1, 0, 0, -1), lambda i: i[::-1], 0, id="upside down, mirrored"),
    pytest.param((0, 1, 1, 0), lambda i: i.swapaxes(0, 1), -90, id="transposed"),
    pytest.param(
        (0, -1, -1, 0), lambda i: np.rot90(i, 2).swapaxes(0, 1), 90, id="transverse"
    ),
]


@pytest.fixture
def turned(tmp_path, write_video, pictures, turn):
    def make(matrix, *, height=40, width=64, pix_fmt="yuv444p"):
        images = pictures(2, height, width)
        # x264 has no odd sizes.
        codec = "mpeg4" if height % 2 or width % 2 else "libx264"
        path = tmp_path / "turned.mp4"
        write_video(path, images, pix_fmt=pix_fmt, codec=codec)
        upright = [frame.image for frame in VideoFrames(path).stored()]
        return upright, turn(path, matrix)

    return make


@pytest.mark.parametrize(("matrix", "expected", "rotation"), TURNS)
def test_a_picture_is_turned_as_its_display_matrix_says(
    turned, matrix, expected, rotation
):
    upright, path = turned(matrix)
    video = VideoFrames(path)
    for before, after in zip(upright, video.stored(), strict=True):
        for name in ("y", "u", "v"):
            plane = getattr(after.image, name)
            assert np.array_equal(plane, expected(getattr(before, name)))
            assert plane.strides[1] == 1
    info = video.source_info()
    assert info["rotation"] == rotation
    height, width = expected(np.empty((40, 64))).shape
    assert (info["height"], info["width"]) == (height, width)


@pytest.mark.parametrize(("matrix", "expected", "rotation"), TURNS)
def test_rotation_is_that_of_ffprobe(turned, matrix, expected, rotation):
    _, path = turned(matrix)
    with av.open(str(path)) as container:
        assert next(container.decode(video=0)).rotation == rotation
    mirrored = VideoFrames(path).source_info().get("mirrored", False)
    assert mirrored == (np.linalg.det(np.reshape(matrix, (2, 2))) < 0)


@pytest.mark.parametrize("size", [(40, 64), (41, 65), (40, 65), (41, 64)])
@pytest.mark.parametrize(("matrix", "expected", "rotation"), TURNS)
def test_chroma_stays_with_its_luma(turned, matrix, expected, rotation, size, psnr):
    from gulpio2.media.colour import to_rgb

    upright, path = turned(matrix, height=size[0], width=size[1], pix_fmt="yuv420p")
    after = next(VideoFrames(path).stored()).image
    assert after.subsampling == "420"
    # Chroma half a sample off would give 27 to 34 dB.
    assert psnr(to_rgb(after), expected(to_rgb(upright[0]))) > 44


def test_4_2_2_turned_by_90_degrees_becomes_4_4_4(turned):
    upright, path = turned((0, 1, -1, 0), pix_fmt="yuv422p")
    frame = next(VideoFrames(path).stored()).image
    assert (upright[0].subsampling, frame.subsampling) == ("422", "444")
    assert frame.u.shape == frame.y.shape == (64, 40)
    assert np.abs(frame.u[::2].mean() - upright[0].u.mean()) < 0.5


@pytest.mark.parametrize("size", [(40, 64), (41, 65), (40, 65), (41, 64)])
@pytest.mark.parametrize(
    ("matrix", "expected", "rotation"),
    [turn for turn in TURNS if turn.values[2] in (90, -90)],
)
def test_4_2_2_keeps_its_colours_where_they_are_when_it_is_turned(
    size, matrix, expected, rotation, pictures, psnr
):
    from gulpio2.media.colour import to_rgb

    rgb = cv2.cvtColor(pictures(1, *size)[0], cv2.COLOR_RGB2YCrCb)
    y, v, u = (np.ascontiguousarray(rgb[..., i]) for i in range(3))
    frame = YuvFrame(y, *(np.ascontiguousarray(c[:, ::2]) for c in (u, v)))
    assert frame.subsampling == "422"
    a, b, c, d = matrix
    turned = Orientation(transpose=True, flip_x=c < 0, flip_y=b < 0)
    after = to_rgb(turned.apply_to_planes(frame))
    assert (turned.rotation, a, d) == (rotation, 0, 0)
    assert psnr(after, expected(to_rgb(frame))) > 44


def test_the_short_edge_is_that_of_the_picture_as_shown(turned):
    _, path = turned((0, 1, -1, 0), height=40, width=64)
    frame = next(VideoFrames(path, frame_size=20).stored()).image
    assert frame.y.shape == (32, 20)


def test_an_odd_angle_is_not_turned_and_logged(tmp_path, turned, caplog):
    upright, path = turned((1, 0, 0, 1))
    data = bytearray(path.read_bytes())
    start = data.index(b"tkhd") + 44
    # 30 degrees: cos 0.866, sin 0.5 in 16.16.
    for place, value in ((0, 56756), (4, 32768), (12, -32768), (16, 56756)):
        data[start + place : start + place + 4] = value.to_bytes(4, "big", signed=True)
    path.write_bytes(data)
    with caplog.at_level(logging.WARNING, "gulpio2"):
        frames = [frame.image for frame in VideoFrames(path).stored()]
    assert np.array_equal(frames[0].y, upright[0].y)
    assert f"video {str(path)!r} is turned by" in caplog.text
    assert "no multiple of 90" in caplog.text


def test_an_excerpt_is_turned_as_the_first_frame_of_its_video_says(
    tmp_path, write_video, pictures
):
    options = {"g": "6", "bf": "0"}
    path = write_video(tmp_path / "a.mp4", pictures(20, 40, 64), options=options)
    turned = tmp_path / "turned.mp4"
    with av.open(str(path)) as source, av.open(str(turned), "w") as target:
        stream = target.add_stream_from_template(source.streams.video[0])
        # It says so before the first frame only, and means all.
        orientation = "h264_metadata=display_orientation=insert:rotate=90"
        filter_ = BitStreamFilterContext(orientation, source.streams.video[0])
        for packet in source.demux(video=0):
            for filtered in filter_.filter(packet if packet.size else None):
                filtered.stream = stream
                target.mux(filtered)
    frames = [frame.image.y for frame in VideoFrames(turned).stored()]
    assert frames[0].shape == (64, 40)
    for number, rate in ((3, None), (13, None), (13, 25)):
        excerpt = VideoFrames(turned, start=number / 25, end=0.7, frame_rate=rate)
        found = [frame.image.y for frame in excerpt.stored()]
        assert np.array_equal(found, frames[number:18])
        assert excerpt.source_info() == VideoFrames(turned).source_info()


def test_a_frame_without_a_matrix_is_upright():
    assert read_orientation(av.VideoFrame(16, 16, "yuv420p"), "a.mp4") == UPRIGHT


def test_upright_planes_are_the_same_object():
    plane = np.zeros((4, 4), np.uint8)
    frame = YuvFrame(plane, plane, plane)
    assert UPRIGHT.apply_to_planes(frame) is frame
    assert UPRIGHT.apply(plane) is plane


def test_sizes_are_given_both_ways():
    right = Orientation(transpose=True, flip_x=True)
    assert right.shown(10, 20) == (20, 10)
    assert UPRIGHT.shown(10, 20) == (10, 20)


def write_pictures(path, codec, pix_fmt, kind, **options):
    """Write a video whose frames are image files of Pillow's, with what they carry."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, pix_fmt
        for number in range(5):
            file = io.BytesIO()
            pixels = np.full((48, 64, 3), 40 * number, np.uint8)
            Image.fromarray(pixels).save(file, kind, **options)
            packet = av.Packet(file.getvalue())
            packet.pts = packet.dts = number
            packet.time_base, packet.duration = Fraction(1, 10), 1
            packet.is_keyframe, packet.stream = True, stream
            container.mux(packet)
    return path


def test_an_icc_profile_in_the_frames_does_not_kill_the_process(tmp_path):
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    path = write_pictures(
        tmp_path / "a.mov", "png", "rgb24", "PNG", icc_profile=profile
    )
    program = (
        "import gc, sys\n"
        "from gulpio2.media.video import VideoFrames\n"
        "for _ in range(20):\n"
        "    print(sum(1 for _ in VideoFrames(sys.argv[1]).stored()))\n"
        "    gc.collect()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, path], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["5"] * 20


@pytest.mark.parametrize(("turned", "rotation"), [(1, 0), (6, -90), (4, 0)])
def test_exif_in_the_frames_of_motion_jpeg_is_passed_over(tmp_path, turned, rotation):
    exif = Image.Exif()
    exif[271] = "Camera"
    exif[274] = turned
    path = write_pictures(tmp_path / "a.avi", "mjpeg", "yuvj420p", "JPEG", exif=exif)
    video = VideoFrames(path)
    assert sum(1 for _ in video.stored()) == 5
    info = video.source_info()
    assert (info["rotation"], info.get("mirrored", False)) == (rotation, turned == 4)
