"""`VideoFrames`: what it gives of a healthy file."""

from __future__ import annotations

import itertools
import logging
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

from gulpio2.errors import SourceReadError
from gulpio2.media.images import ImageFrames
from gulpio2.media.video import VideoFrames
from gulpio2.types import DeferredImage, FrameSource, YuvFrame

# Frames that a full decode gives, by the README of the shared videos.
REAL = {
    "arm_wrestling_h264_28fps.mp4": 280,
    "pancake_h264_audio.mkv": 310,
    "nasa_six_streams.mp4": 390,
    "mpeg4_audio_25fps.avi": 164,
    "vp8_audio_30fps.webm": 140,
    "h264_6fps.mp4": 57,
    "rotated_90.mov": 3,
    "odd_width_vp9.mp4": 25,
    "odd_width_vp9_10bit.mp4": 25,
    "bt709_full_range.mp4": 30,
}


@pytest.fixture(params=list(REAL))
def real(request, shared_videos):
    return shared_videos / request.param, REAL[request.param]


def test_it_is_a_frame_source(clip):
    assert isinstance(VideoFrames(clip), FrameSource)


def test_every_frame_is_given_with_its_time(clip, decode_all):
    frames = list(VideoFrames(clip).stored())
    assert [frame.pts for frame in frames] == [f.pts for f in decode_all(clip)]
    assert len(frames) == 30
    assert {repr(frame.image) for frame in frames} == {"YuvFrame(48x64, 420)"}


def test_real_videos_have_the_frames_and_times_of_a_full_decode(real, decode_all):
    path, num_frames = real
    video = VideoFrames(path)
    times = [frame.pts for frame in video.stored()]
    reference: Any = decode_all(path)
    assert len(times) == len(reference) == len(video) == num_frames
    # AVI has no presentation times; PyAV makes them up in the order of decoding.
    assert times == sorted(frame.pts for frame in reference)
    assert video.time_base == reference[0].time_base


def test_real_videos_are_shown_upright(shared_videos):
    video = VideoFrames(shared_videos / "rotated_90.mov")
    assert next(video.stored()).image.y.shape == (568, 320)
    info = video.source_info()
    assert (info["width"], info["height"], info["rotation"]) == (320, 568, -90)


def test_the_best_stream_of_several_is_taken(shared_videos):
    path = shared_videos / "nasa_six_streams.mp4"
    assert VideoFrames(path).source_info()["stream"] == 3
    first = VideoFrames(path, stream=0)
    assert len(first) == 325
    assert first.source_info()["width"] == 320


def test_real_webm_at_8_a_second_has_the_39_frames_of_ffmpeg(shared_videos):
    video = VideoFrames(shared_videos / "vp8_audio_30fps.webm", frame_rate=8)
    pictures = {f.image.y.tobytes(): f.pts for f in VideoFrames(video.path).stored()}
    frames = list(video.stored())
    assert len(frames) == 39
    assert [frame.pts for frame in frames] == [
        pictures[frame.image.y.tobytes()] for frame in frames
    ]


def test_variable_times_are_exact(tmp_path, write_video, pictures):
    times = [0, 17, 40, 41, 99, 250, 251, 600]
    path = write_video(
        tmp_path / "variable.mkv",
        pictures(8, 48, 64),
        time_base=Fraction(1, 1000),
        pts=times,
    )
    video = VideoFrames(path)
    assert [frame.pts for frame in video.stored()] == times
    assert video.time_base == Fraction(1, 1000)


def test_frames_that_are_reordered_have_rising_times(tmp_path, write_video, pictures):
    path = write_video(
        tmp_path / "reordered.mp4",
        pictures(20, 48, 64),
        options={"bf": "3", "b_strategy": "0", "g": "12"},
    )
    with av.open(str(path)) as container:
        packets = [p.pts or 0 for p in container.demux(video=0) if p.size]
    assert packets != sorted(packets)
    assert [f.pts for f in VideoFrames(path).stored()] == sorted(packets)


def test_raw_streams_have_times_by_their_rate(tmp_path, write_video, pictures):
    path = write_video(tmp_path / "raw.h264", pictures(10, 48, 64))
    video = VideoFrames(path)
    seconds = [(frame.pts or 0) * video.time_base for frame in video.stored()]
    assert seconds == [Fraction(i, 25) for i in range(10)]


def test_a_file_that_starts_late_keeps_its_own_timeline(
    tmp_path, write_video, pictures
):
    path = write_video(
        tmp_path / "late.mkv", pictures(25, 48, 64), pts=list(range(250, 275))
    )
    video = VideoFrames(path, frame_rate=5)
    for frames in (video, VideoFrames(path)):
        assert (next(frames.stored()).pts or 0) * frames.time_base == 10


@pytest.mark.parametrize(
    ("rate", "num_different"), [(8, 10), (60, 30), ("30000/1001", 30)]
)
def test_frames_that_are_repeated_are_the_same_object(clip, rate, num_different):
    video = VideoFrames(clip, frame_rate=rate)
    frames = list(video.stored())
    assert len(video) == len(frames)
    assert len({id(frame.image) for frame in frames}) == num_different
    # The time of each is that of its picture in the source.
    pictures = {f.image.y.tobytes(): f.pts for f in VideoFrames(clip).stored()}
    assert len(pictures) == 30
    assert [frame.pts for frame in frames] == [
        pictures[frame.image.y.tobytes()] for frame in frames
    ]


@pytest.mark.parametrize(
    ("way", "method"), [("stored", "convert"), ("deferred", "convert_later")]
)
def test_frames_that_are_dropped_are_not_converted(clip, monkeypatch, way, method):
    from gulpio2.media.convert import FrameConverter

    converted = []
    convert = getattr(FrameConverter, method)

    def counting(self, frame):
        converted.append(frame.pts)
        return convert(self, frame)

    monkeypatch.setattr(FrameConverter, method, counting)
    frames = list(getattr(VideoFrames(clip, frame_rate=8), way)())
    assert len(converted) == len(frames) == 10


def test_iterating_gives_rgb_arrays(clip, exact_rgb, decode_all, psnr):
    arrays = list(VideoFrames(clip))
    for array, frame in zip(arrays, decode_all(clip), strict=True):
        assert array.shape == (48, 64, 3)
        assert array.dtype == np.uint8
        assert psnr(array, exact_rgb(frame)) > 48


def test_iterating_gives_rgb_sources_as_they_are(tmp_path, write_video, pictures):
    images = pictures(3, 48, 64)
    path = write_video(tmp_path / "a.mkv", images, codec="ffv1", pix_fmt="bgr0")
    for array, image in zip(VideoFrames(path), images, strict=True):
        assert np.array_equal(array, image)


def test_each_iteration_starts_afresh(clip):
    video = VideoFrames(clip)
    first = next(video.stored())
    again = next(video.stored())
    assert first.pts == again.pts
    assert np.array_equal(first.image.y, again.image.y)
    assert len(list(video.stored())) == len(list(video)) == 30


def test_two_iterations_at_once_do_not_disturb_each_other(clip):
    video = VideoFrames(clip)
    for one, other in zip(video.stored(), video.stored(), strict=True):
        assert np.array_equal(one.image.y, other.image.y)


def test_an_iteration_that_is_left_closes_its_file(clip):
    frames: Any = VideoFrames(clip).stored()
    next(frames)
    frames.close()
    open_files = {
        link.resolve() for link in Path("/proc/self/fd").iterdir() if link.exists()
    } if sys.platform == "linux" else set()  # fmt: skip
    assert clip not in open_files


@pytest.mark.parametrize("threads", [2, 0])
def test_threads_change_nothing(clip, threads):
    one = VideoFrames(clip).stored()
    many = VideoFrames(clip, threads=threads).stored()
    for a, b in zip(one, many, strict=True):
        assert a.pts == b.pts
        assert np.array_equal(a.image.y, b.image.y)


def test_it_survives_pickling_before_and_after_use(clip):
    video = VideoFrames(clip, frame_rate=5, frame_size=24)
    for _ in range(2):
        copy = pickle.loads(pickle.dumps(video))
        assert repr(copy) == repr(video)
        assert [f.pts for f in copy.stored()] == [f.pts for f in video.stored()]
    assert len(pickle.dumps(video)) < 2000


def test_nothing_is_opened_before_it_is_needed(tmp_path):
    video = VideoFrames(tmp_path / "none.mp4", frame_rate="24000/1001")
    assert repr(video).endswith("frame_rate=24000/1001)")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "VideoFrames('a.mp4')"),
        (
            {"frame_rate": 12.5, "frame_size": 128, "stream": 1},
            "VideoFrames('a.mp4', frame_rate=25/2, frame_size=128, stream=1)",
        ),
    ],
)
def test_its_repr_shows_the_file_and_the_options(options, expected):
    assert repr(VideoFrames("a.mp4", **options)) == expected


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        pytest.param(
            {},
            {"pix_fmt": "yuv420p", "matrix": "bt601", "range": "limited"},
            id="nothing declared",
        ),
        pytest.param(
            {"matrix": 1, "full_range": True},
            {"pix_fmt": "yuvj420p", "matrix": "bt709", "range": "full"},
            id="709 full",
        ),
        pytest.param(
            {"codec": "ffv1", "pix_fmt": "gray"},
            {"pix_fmt": "gray", "range": "full", "codec": "ffv1"},
            id="grey",
        ),
        pytest.param(
            {"codec": "ffv1", "pix_fmt": "bgr0"},
            {"pix_fmt": "bgr0", "matrix": "rgb", "range": "full", "codec": "ffv1"},
            id="rgb",
        ),
    ],
)
def test_source_info_tells_what_the_file_is(
    tmp_path, write_video, pictures, settings, expected
):
    path = write_video(tmp_path / "a.mkv", pictures(5, 48, 64), **settings)
    info = VideoFrames(path, frame_size=24).source_info()
    assert info == {
        "width": 64,
        "height": 48,
        "rotation": 0,
        "frame_rate": [25, 1],
        "codec": "h264",
        "matrix": "bt601",
        "stream": 0,
        **expected,
    }


def test_facts_are_known_after_iterating_without_opening_again(clip):
    video = VideoFrames(clip)
    frames = list(video.stored())
    expected = VideoFrames(clip).source_info()
    clip.unlink()
    assert video.source_info() == expected
    assert video.time_base == Fraction(1, 15360)
    assert len(video) == len(frames)


@pytest.mark.parametrize("name", ["a:b.mp4", "http:x.mp4", "a b|c%d.mp4", "-r.mp4"])
def test_a_name_is_a_file_and_never_a_url(clip, name, monkeypatch):
    renamed = clip.rename(clip.with_name(name))
    assert len(VideoFrames(renamed)) == 30
    monkeypatch.chdir(clip.parent)
    assert len(VideoFrames(name)) == 30


def test_an_image_is_itself_whatever_pattern_its_name_is(tmp_path, pictures):
    own, other = pictures(2, 24, 32)
    Image.fromarray(own).save(tmp_path / "a%d.png")
    Image.fromarray(other).save(tmp_path / "a1.png")
    (frame,) = VideoFrames(tmp_path / "a%d.png")
    assert np.array_equal(frame, own)


@pytest.mark.parametrize("size", [(49, 65), (48, 65), (49, 64), (17, 16)])
@pytest.mark.parametrize("frame_size", [-1, 10, 33])
def test_odd_sizes(tmp_path, write_video, pictures, size, frame_size):
    from gulpio2.media.resize import resized_shape

    path = write_video(tmp_path / "odd.avi", pictures(3, *size), codec="mpeg4")
    for frame in VideoFrames(path, frame_size=frame_size).stored():
        image = frame.image
        assert isinstance(image, YuvFrame)
        height, width = size
        assert image.y.shape == resized_shape(height, width, frame_size)
        assert image.subsampling == "420"


@pytest.mark.parametrize("options", [{}, {"frame_size": 64}, {"frame_rate": 40}])
def test_deferred_frames_are_the_stored_ones(shared_videos, options):
    path = shared_videos / "h264_6fps.mp4"
    stored = list(VideoFrames(path, **options).stored())
    deferred = list(VideoFrames(path, **options).deferred())
    assert {type(frame.image) for frame in deferred} == {DeferredImage}
    assert len(deferred) == len(stored) > 0
    for now, later in zip(stored, deferred, strict=True):
        image = later.image.make()
        assert now.pts == later.pts
        for plane in "yuv":
            np.testing.assert_array_equal(
                getattr(now.image, plane), getattr(image, plane)
            )


@pytest.mark.parametrize("options", [{}, {"frame_size": 64}, {"frame_rate": 40}])
def test_only_frames_that_are_wanted_so_are_deferred(shared_videos, options):
    path = shared_videos / "h264_6fps.mp4"
    asked = itertools.cycle([False, True, True])
    mixed = list(VideoFrames(path, **options).deferred(lambda: next(asked)))
    assert {type(frame.image) for frame in mixed} == {YuvFrame, DeferredImage}
    stored = VideoFrames(path, **options).stored()
    for now, later in zip(stored, mixed, strict=True):
        image = later.image
        if isinstance(image, DeferredImage):
            image = image.make()
        assert now.pts == later.pts
        for plane in "yuv":
            np.testing.assert_array_equal(
                getattr(now.image, plane), getattr(image, plane)
            )


@pytest.mark.parametrize("options", [{}, {"frame_size": 20}])
def test_a_frame_that_a_rate_repeats_is_converted_once(clip, options):
    frames = list(VideoFrames(clip, frame_rate=100, **options).deferred())
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(lambda frame: frame.image.make(), frames))
    sources = {id(frame.image) for frame in frames}
    assert len({id(image) for image in made}) == len(sources) < len(frames)
    stored = VideoFrames(clip, frame_rate=100, **options).stored()
    for image, frame in zip(made, stored, strict=True):
        np.testing.assert_array_equal(image.y, frame.image.y)


def test_what_only_a_conversion_shows_names_the_video_in_any_thread(clip, monkeypatch):
    from gulpio2.media.scaling import PlaneScaler

    def refuse(*_: object):
        raise ValueError("no such size")

    monkeypatch.setattr(PlaneScaler, "shrink", refuse)
    frames = VideoFrames(clip, frame_size=20)
    told = r"Video '.*clip.mp4' has frames that cannot be converted: no such size\. Re"
    with pytest.raises(SourceReadError, match=told):
        next(frames.stored())
    later = next(frames.deferred()).image
    assert isinstance(later, DeferredImage)
    with (
        ThreadPoolExecutor(1) as thread,
        pytest.raises(SourceReadError, match=told),
    ):
        thread.submit(later.make).result()


def test_a_video_of_several_sizes_is_named_once(
    tmp_path, write_video, pictures, caplog
):
    path = tmp_path / "clip.mjpeg"
    parts = [
        write_video(
            tmp_path / f"{height}.mjpeg",
            pictures(2, height, 64),
            codec="mjpeg",
            pix_fmt="yuvj420p",
        ).read_bytes()
        for height in (48, 96)
    ]
    path.write_bytes(b"".join(parts * 3))
    with caplog.at_level(logging.WARNING, "gulpio2"):
        shapes = {frame.image.y.shape for frame in VideoFrames(path).stored()}
    assert shapes == {(48, 64)}
    messages = [record.getMessage() for record in caplog.records]
    assert messages == [
        f"video {str(path)!r} changes its size from 64x48 to 64x96; all frames are "
        "stored at the size of the first one"
    ]


def test_a_picture_that_is_cropped_at_the_left_has_its_own_columns(tmp_path):
    ramp = np.tile((np.arange(96) * 2).astype(np.uint8)[:, None], (64, 1, 3))
    options = {"x264-params": "crop-rect=2,4,6,8", "qp": "0"}
    with av.open(str(tmp_path / "a.mp4"), "w") as container:
        stream: Any = container.add_stream("libx264", rate=25, options=options)
        stream.width, stream.height, stream.pix_fmt = 96, 64, "yuv420p"
        for _ in range(3):
            frame = av.VideoFrame.from_ndarray(ramp, format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    stored: Any = next(iter(VideoFrames(tmp_path / "a.mp4")))
    assert stored.shape == (52, 88, 3)
    expected = ramp[4:56, 2:90].astype(int)
    assert np.abs(stored.astype(int) - expected).max() <= 6


@pytest.mark.parametrize("size", ["32", 32.0, 32.5, None])
def test_a_size_that_is_no_whole_number_is_refused_where_it_is_given(size):
    told = f"frame_size is {size!r}, expected a whole number"
    with pytest.raises(TypeError, match=told):
        VideoFrames("clip.mp4", frame_size=size)
    with pytest.raises(TypeError, match=told):
        ImageFrames(["a.jpg"], frame_size=size)


@pytest.mark.parametrize(
    ("option", "error", "told"),
    [
        ({"stream": "0"}, TypeError, "stream is '0', expected a whole number"),
        ({"threads": "2"}, TypeError, "threads is '2', expected a whole number"),
        ({"threads": -1}, ValueError, "threads is -1, expected at least 0"),
        ({"max_pixels": None}, TypeError, "max_pixels is None, expected a whole"),
        ({"max_pixels": 0}, ValueError, "max_pixels is 0, expected at least 1"),
    ],
)
def test_settings_that_cannot_be_are_told_where_they_are_given(option, error, told):
    with pytest.raises(error, match=told):
        VideoFrames("clip.mp4", **option)
    numpy: Any = np.uint8(4)
    frames = VideoFrames("clip.mp4", stream=numpy, max_pixels=numpy)
    assert (frames.stream, frames.threads, frames.max_pixels) == (4, 1, 4)
