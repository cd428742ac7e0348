"""Frames that a lower rate drops: not converted, and where it can be, not decoded."""

from __future__ import annotations

from fractions import Fraction

import av
import numpy as np
import pytest

from gulpio2.errors import SourceReadError
from gulpio2.media import skipping
from gulpio2.media.clock import Shown
from gulpio2.media.convert import FrameConverter
from gulpio2.media.decode import OpenVideo
from gulpio2.media.frame_rate import ConstantRate
from gulpio2.media.skipping import NotAsPlacedError, PlacedFrames
from gulpio2.media.video import VideoFrames
from tests.written_once import written_once

CODECS = [
    ("libx264", {"bf": "3", "g": "30"}),
    ("libx264", {"bf": "0", "g": "30"}),
    ("libx265", {"x265-params": "log-level=none:bframes=3"}),
    ("mpeg2video", {"bf": "2", "g": "15"}),
    ("mpeg4", {"bf": "2", "g": "15"}),
    ("libvpx", {"auto-alt-ref": "1", "lag-in-frames": "16", "b": "500k"}),
    ("libvpx-vp9", {"b": "500k"}),
]


def write(path, codec, options, *, num_frames=75, ending=".mkv"):
    if codec not in av.codecs_available:
        pytest.skip(f"this build of FFmpeg has no {codec}")
    return encode(path.with_suffix(ending), codec, options, num_frames)


@written_once
def encode(path, codec, options, num_frames):
    rng = np.random.default_rng(0)
    picture = rng.integers(0, 256, (12, 16, 3), np.uint8).repeat(8, 0).repeat(8, 1)
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=25, options=options)
        stream.width, stream.height, stream.pix_fmt = 128, 96, "yuv420p"
        for number in range(num_frames):
            moved = np.roll(picture, (number, 2 * number), axis=(0, 1))
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(moved))
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def stored(path, **options):
    return [
        (frame.pts, frame.image.y.tobytes(), frame.image.u.tobytes())
        for frame in VideoFrames(path, **options).stored()
    ]


@pytest.fixture
def decoded(monkeypatch):
    """Count the frames that come out of decoders."""
    count = []
    frames = OpenVideo.frames

    def counted(self, **options):
        for pair in frames(self, **options):
            count.append(pair[1].pts)
            yield pair

    monkeypatch.setattr(OpenVideo, "frames", counted)
    return count


@pytest.mark.parametrize("rate", [1, 5, 8, Fraction(25, 3), 12, 16])
@pytest.mark.parametrize(("codec", "options"), CODECS)
def test_what_is_stored_is_the_same_with_and_without(
    tmp_path, monkeypatch, codec, options, rate
):
    path = write(tmp_path / "a", codec, options)
    ours = stored(path, frame_rate=rate)
    monkeypatch.setattr(skipping, "_CODECS", frozenset())
    assert ours == stored(path, frame_rate=rate)
    assert len(ours) == pytest.approx(3 * float(rate), abs=2)


@pytest.mark.parametrize("threads", [1, 3])
def test_frames_that_none_is_predicted_from_are_not_decoded(
    tmp_path, decoded, monkeypatch, threads
):
    path = write(tmp_path / "a", "libx264", {"bf": "3", "g": "30", "b-pyramid": "none"})
    ours = stored(path, frame_rate=5, threads=threads)
    assert len(decoded) < 75 * 0.6
    decoded.clear()
    monkeypatch.setattr(skipping, "_CODECS", frozenset())
    assert stored(path, frame_rate=5) == ours
    assert len(decoded) == 75


@pytest.mark.parametrize("codec", ["mpeg2video", "mpeg4"])
def test_a_cut_that_is_noticed_is_noticed_at_a_lower_rate(tmp_path, codec):
    path = write(tmp_path / "a", codec, {"bf": "2", "g": "15"}, ending=".ts")
    whole = path.read_bytes()
    cut, refused = path.with_name("cut.ts"), 0
    step = 188  # within a packet its structure tells
    for part in range(30, 100, 3):
        size = len(whole) * part // 100
        cut.write_bytes(whole[: size - size % step])
        try:
            stored(cut)
        except SourceReadError:
            refused += 1
            for rate in (5, 10):
                with pytest.raises(SourceReadError, match="cannot be read at frame"):
                    stored(cut, frame_rate=rate)
    assert refused > 5


def test_dropped_frames_are_not_converted(tmp_path, monkeypatch):
    path = write(tmp_path / "a", "libx264", {"bf": "0"})
    converted = []
    convert = FrameConverter.convert

    def counted(self, frame):
        converted.append(frame.pts)
        return convert(self, frame)

    monkeypatch.setattr(FrameConverter, "convert", counted)
    frames = stored(path, frame_rate=5)
    assert len(converted) == len(set(converted))
    assert len(converted) == len({(y, u) for _, y, u in frames}) < 20


@pytest.mark.parametrize("name", ["arm_wrestling_h264_28fps.mp4", "h264_6fps.mp4"])
@pytest.mark.parametrize("rate", [2, 8])
def test_real_videos_are_the_same(shared_videos, monkeypatch, name, rate):
    path = shared_videos / name
    ours = stored(path, frame_rate=rate, frame_size=64)
    monkeypatch.setattr(skipping, "_CODECS", frozenset())
    assert ours == stored(path, frame_rate=rate, frame_size=64)


def test_what_comes_otherwise_than_promised_is_decoded_in_full(tmp_path, monkeypatch):
    path = write(tmp_path / "a", "libx264", {"bf": "2"})
    ours = stored(path, frame_rate=8)
    whole = OpenVideo.packet_times

    def with_one_too_many(self):
        times = whole(self)
        assert times
        return [*times, Shown(times[-1].pts + 10 * times[-1].duration, 1)]

    monkeypatch.setattr(OpenVideo, "packet_times", with_one_too_many)
    assert stored(path, frame_rate=8) == ours
    with VideoFrames(path)._open() as video:
        placed = PlacedFrames.of(video, Fraction(8))
    assert placed is not None
    with (
        VideoFrames(path)._open() as video,
        pytest.raises(NotAsPlacedError, match="no frame came"),
    ):
        list(placed.shown(video))


def test_a_file_without_times_is_decoded_in_full(tmp_path, decoded):
    path = write(tmp_path / "a", "mpeg4", {}, ending=".avi")
    assert len(stored(path, frame_rate=5)) in {15, 16, 17}
    assert len(decoded) == 75


@pytest.mark.parametrize(
    ("is_alone", "dropped"), [(False, {8, 10}), (True, {6, 8, 10})]
)
def test_a_late_first_frame_is_placed_as_where_all_are_decoded(is_alone, dropped):
    times = [Shown(tick, 1) for tick in range(3, 12)]
    quarter = Fraction(1, 4)
    grid, other = (
        ConstantRate(Fraction(2), time_base=quarter, is_alone=is_alone)
        for _ in range(2)
    )
    placed = PlacedFrames(times, other)
    shown = [grid.place(*time) for time in times]
    assert {t.pts for t, n in zip(times, shown, strict=True) if n.current == 0} == (
        placed.dropped
    )
    assert placed.dropped == dropped
