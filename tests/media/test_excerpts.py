"""Excerpts of videos: exactly the frames of a whole decode at these times."""

from __future__ import annotations

import pickle
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.errors import SourceReadError
from gulpio2.media import opening
from gulpio2.media.decode import OpenVideo
from gulpio2.media.video import VideoFrames
from gulpio2.media.wholeness import look_through
from tests.written_once import written_once

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NUM_FRAMES = 60
OPEN_GOP = {"x264-params": "open-gop=1:keyint=15:bframes=3:b-pyramid=normal"}
CODECS: dict[str, tuple[str, dict[str, str]]] = {
    "h264": ("libx264", {"bf": "3", "g": "15"}),
    "h264 open": ("libx264", OPEN_GOP),
    "h264 refresh": ("libx264", {"x264-params": "intra-refresh=1:keyint=15"}),
    "h264 long": ("libx264", {"bf": "2", "g": "300"}),
    "hevc": ("libx265", {"x265-params": "log-level=none:keyint=15:bframes=3"}),
    "vp8": ("libvpx", {"auto-alt-ref": "1", "lag-in-frames": "16", "g": "15"}),
    "vp9": ("libvpx-vp9", {"auto-alt-ref": "1", "lag-in-frames": "16", "g": "15"}),
    "av1": ("libsvtav1", {"preset": "12", "g": "15"}),
    "mpeg4": ("mpeg4", {"g": "12"}),
    "mpeg4 b": ("mpeg4", {"g": "12", "bf": "2"}),
    "mpeg2": ("mpeg2video", {"g": "12", "bf": "2"}),
    "mjpeg": ("mjpeg", {}),
    "ffv1": ("ffv1", {"level": "3", "g": "8"}),
}
# Of each, whether some frames can be had without decoding from the beginning.
FILES = [
    *((name, ".mp4", name not in {"h264 long", "h264 refresh"}) for name in CODECS),
    *((name, ".mkv", name not in {"h264 long", "h264 refresh"}) for name in CODECS),
    ("vp8", ".webm", True),
    ("vp9", ".webm", True),
    ("mpeg4", ".avi", True),
    ("mpeg4 b", ".avi", False),
    ("mjpeg", ".avi", True),
    ("h264", ".avi", False),
    ("h264", ".mov", True),
    ("h264", ".ts", False),
    ("mpeg2", ".ts", False),
    ("mpeg2", ".mpg", False),
    ("h264", ".flv", False),
    ("h264", ".h264", False),
    ("h264", ".nut", False),
]
FILES.remove(("vp8", ".mp4", True))


@written_once
def encode(
    path: Path,
    codec: str,
    options: dict[str, str],
    *,
    num_frames: int = NUM_FRAMES,
    pts: list[int] | None = None,
    ticks: int = 1000,
    mux_options: dict[str, str] | None = None,
) -> Path:
    """Encode a noise that moves; `pts` are in ticks, so many a second."""
    if codec not in av.codecs_available:
        pytest.skip(f"this build of FFmpeg has no {codec}")
    rng = np.random.default_rng(0)
    picture = rng.integers(0, 256, (6, 8, 3), np.uint8).repeat(8, 0).repeat(8, 1)
    kind = "yuvj420p" if codec == "mjpeg" else "yuv420p"
    with av.open(str(path), "w", options=mux_options or {}) as container:
        stream: Any = container.add_stream(codec, rate=25, options=options)
        stream.width, stream.height, stream.pix_fmt = 64, 48, kind
        if pts is not None:
            stream.codec_context.time_base = Fraction(1, ticks)
        for number in range(num_frames):
            moved = np.roll(picture, (number, 2 * number), axis=(0, 1))
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(moved))
            frame = frame.reformat(format=kind)
            frame.pts = number if pts is None else pts[number]
            frame.time_base = Fraction(1, 25 if pts is None else ticks)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def write(path: Path, name: str, ending: str, **options: Any) -> Path:
    codec, settings = CODECS[name]
    return encode(path.with_suffix(ending), codec, settings, **options)


def stored(path: Path, **options: Any) -> list[tuple[Any, ...]]:
    return [
        (frame.pts, frame.image.y.tobytes(), frame.image.u.tobytes())
        for frame in VideoFrames(path, **options).stored()
    ]


class Whole:
    """All frames of a video, and what any excerpt of it has to be."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.base = VideoFrames(path).time_base
        self.frames = stored(path)
        origin = self.frames[0][0]
        self.times = [(frame[0] - origin) * self.base for frame in self.frames]

    def between(self, start: Fraction, end: Fraction) -> list[tuple[Any, ...]]:
        return [
            frame
            for frame, time in zip(self.frames, self.times, strict=True)
            if start <= time < end
        ]

    def check(self, start: Fraction, end: Fraction) -> None:
        expected = self.between(start, end)
        if expected:
            assert stored(self.path, start=start, end=end) == expected
            assert len(VideoFrames(self.path, start=start, end=end)) == len(expected)
        else:
            with pytest.raises(SourceReadError, match="has no excerpt from"):
                stored(self.path, start=start, end=end)

    def check_many(self) -> None:
        """Try many excerpts; those that hypothesis makes of the list of times."""
        moments = st.one_of(
            st.sampled_from(self.times),
            st.fractions(0, self.times[-1] + 1, max_denominator=1000),
        )

        @given(moments, moments)
        def check(one: Fraction, other: Fraction) -> None:
            if one != other:
                self.check(*sorted((one, other)))

        check()


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Count the frames that come out of decoders."""
    count: list[Any] = []
    coloured = OpenVideo.coloured

    def counted(self: OpenVideo, frames: Iterator[Any]) -> Iterator[Any]:
        for frame in coloured(self, frames):
            count.append(frame.pts)
            yield frame

    monkeypatch.setattr(OpenVideo, "coloured", counted)
    return count


@pytest.mark.parametrize(("name", "ending", "is_indexed"), FILES)
def test_an_excerpt_has_the_frames_of_a_whole_decode(
    tmp_path, decoded, name, ending, is_indexed
):
    whole = Whole(write(tmp_path / "a", name, ending))
    assert len(whole.frames) == NUM_FRAMES
    decoded.clear()
    last, behind = whole.times[-2], whole.times[-1] + 1
    assert stored(whole.path, start=last, end=behind) == whole.frames[-2:]
    # One is the first, which says when the video begins.
    assert (len(decoded) < NUM_FRAMES / 2) == is_indexed
    whole.check_many()


@pytest.mark.parametrize("ending", [".mp4", ".mkv", ".mov", ".nut"])
@pytest.mark.parametrize("first", [0, 70_000])
def test_so_it_has_where_the_frame_rate_varies(tmp_path, ending, first):
    steps = np.random.default_rng(1).integers(20, 400, NUM_FRAMES)
    pts = [first + int(time) for time in np.cumsum(steps)]
    whole = Whole(write(tmp_path / "a", "h264", ending, pts=pts))
    assert len({after - time for time, after in pairwise(whole.times)}) > 40
    whole.check_many()


@pytest.mark.parametrize("name", ["mpeg4", "mjpeg"])
def test_frames_that_were_dropped_in_avi_are_no_reason_to_decode_all(
    tmp_path, decoded, name
):
    pts = [number + number // 20 for number in range(NUM_FRAMES)]
    whole = Whole(write(tmp_path / "a", name, ".avi", pts=pts, ticks=25))
    assert [round(time * 25) for time in whole.times[18:22]] == [18, 19, 21, 22]
    decoded.clear()
    last, behind = whole.times[-2], whole.times[-1] + 1
    assert stored(whole.path, start=last, end=behind) == whole.frames[-2:]
    assert len(decoded) < NUM_FRAMES / 2
    whole.check_many()


@pytest.mark.parametrize(
    "movflags",
    [
        "frag_keyframe+empty_moov",
        "dash+global_sidx+frag_keyframe",
        "negative_cts_offsets",
        "faststart",
    ],
)
def test_so_it_has_in_all_kinds_of_mp4(tmp_path, movflags):
    options = {"movflags": movflags}
    Whole(write(tmp_path / "a", "h264", ".mp4", mux_options=options)).check_many()


@pytest.mark.parametrize("name", ["h264 open", "h264", "hevc", "mpeg4 b"])
@pytest.mark.parametrize("ending", [".mp4", ".mkv"])
@pytest.mark.parametrize("first", [7, 20])
def test_so_it_has_where_an_edit_list_or_a_copy_begins_between_key_frames(
    tmp_path, name, ending, first
):
    source = write(tmp_path / "a", name, ".mp4")
    path = tmp_path / f"copied{ending}"
    with av.open(str(source)) as original, av.open(str(path), "w") as copy:
        stream = original.streams.video[0]
        template = copy.add_stream_from_template(stream)
        begin = round(first / 25 / stream.time_base)
        original.seek(begin, stream=stream)
        for packet in original.demux(stream):
            if packet.size:
                # What comes before is there to be decoded, and not to be shown.
                packet.pts -= begin
                packet.dts -= begin
                packet.stream = template
                copy.mux(packet)
    Whole(path).check_many()


REAL = [
    "arm_wrestling_h264_28fps.mp4",
    "pancake_h264_audio.mkv",
    "nasa_six_streams.mp4",
    "mpeg4_audio_25fps.avi",
    "vp8_audio_30fps.webm",
    "h264_6fps.mp4",
    "rotated_90.mov",
    "odd_width_vp9.mp4",
]


@pytest.mark.parametrize("name", REAL)
def test_excerpts_of_real_videos_have_the_frames_of_a_whole_decode(shared_videos, name):
    whole = Whole(shared_videos / name)
    length = len(whole.times)
    for one, other in [(0, 1), (1, 3), (length // 2, -1), (-2, -1), (length // 3, 8)]:
        self_or_last = sorted((whole.times[one % length], whole.times[other % length]))
        if self_or_last[0] != self_or_last[1]:
            whole.check(*self_or_last)
    whole.check(whole.times[-1], whole.times[-1] + 5)
    whole.check(Fraction(0), whole.times[-1] + 5)


def test_ten_excerpts_near_the_end_of_a_long_recording_cost_ten_times_one(
    tmp_path, decoded
):
    """And not ten times what lies before them: counted in frames that are decoded."""
    settings = {"preset": "ultrafast", "g": "25"}
    path = encode(tmp_path / "a.mp4", "libx264", settings, num_frames=1500)
    costs = []
    for tenth in range(10):
        start = 50 + tenth
        assert len(stored(path, start=start, end=start + 0.4)) == 10
        costs.append(len(decoded))
        decoded.clear()
    # The first of the recording, the excerpt, the one behind it, and those since the
    # key frame, which is not half a second before.
    assert max(costs) <= 1 + 10 + 1 + 13
    assert sum(costs) <= 10 * 25 < 1250


def test_the_structure_of_a_recording_is_looked_at_once_while_it_is_the_same(
    tmp_path, monkeypatch
):
    """In Matroska that is a read for each block, and as much for each excerpt."""
    path = write(tmp_path / "a", "h264", ".mkv")
    looked_at = []

    def counted(name: str) -> Any:
        looked_at.append(name)
        return look_through(name)

    monkeypatch.setattr(opening, "look_through", counted)
    frames = [stored(path, start=second, end=second + 1) for second in (0, 1, 0)]
    assert frames[0] == frames[2]
    assert looked_at == [str(path)]
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.raises(SourceReadError, match="is cut off"):
        stored(path, start=0, end=1)
    assert looked_at == 2 * [str(path)]


@pytest.mark.parametrize("number", [1, 7, 29, 53])
@pytest.mark.parametrize("ticks", [15_360, 10_000_000])
def test_a_float_that_is_meant_as_the_time_of_a_frame_is_that_time(
    tmp_path, pictures, number, ticks
):
    path = tmp_path / "a.mp4"
    scale = {"video_track_timescale": str(ticks)}
    with av.open(str(path), "w", options=scale) as container:
        stream: Any = container.add_stream("libx264", rate=30)
        stream.width = stream.height = 16
        for picture in pictures(60, 16, 16):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture)))
        container.mux(stream.encode())
    assert VideoFrames(path).time_base == Fraction(1, ticks)
    for shift in (0.0, 4e-7, -4e-7):
        start, end = number / 30 + shift, (number + 5) / 30 - shift
        assert len(VideoFrames(path, start=start, end=end)) == 5
    late = VideoFrames(path, start=number / 30 + 2e-5, end=(number + 5) / 30)
    assert len(late) == 4


def test_times_are_counted_from_the_first_frame(tmp_path):
    pts = [1234 + 40 * number for number in range(NUM_FRAMES)]
    path = write(tmp_path / "late", "h264", ".mkv", pts=pts)
    frames = stored(path)
    assert frames[0][0] == 1234
    assert stored(path, start=1, end=1.5) == frames[25:38]
    assert [frame[0] for frame in stored(path, start=1, end=1.1)] == [2234, 2274, 2314]


def test_either_time_may_be_left_out(tmp_path):
    path = write(tmp_path / "a", "h264", ".mp4")
    frames = stored(path)
    assert stored(path, start=1) == frames[25:]
    assert stored(path, end=1) == frames[:25]
    assert stored(path, start=0, end=100) == frames


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ({"start": -1}, "the start is -1, where seconds from its first frame"),
        ({"end": float("nan")}, "the end is nan"),
        ({"end": float("inf")}, "the end is inf"),
        ({"start": 10**400}, "the start is 1000"),
        ({"start": float("nan"), "end": 1}, "from nan s to 1 s: the start is nan"),
        ({"start": 2, "end": 1}, "from 2 s to 1 s: the end must be after the start"),
        ({"start": 1, "end": 1}, "the end must be after the start"),
        ({"end": 0}, "the end must be after the start"),
        (
            {"start": 7.5},
            "from 7.5 s to the end: .* its last one is at 2.36 s. Correct",
        ),
        ({"start": 7.5, "end": 9}, "its last one is at 2.36 s. Correct the times"),
        ({"start": 1.01, "end": 1.02}, "those around are at 1.0 s and 1.04 s"),
    ],
)
@pytest.mark.parametrize("ending", [".mkv", ".ts"])
def test_times_between_which_there_is_nothing_are_told_when_frames_are_wanted(
    tmp_path, times, message, ending
):
    frames = VideoFrames(write(tmp_path / "a", "h264", ending), **times)
    with pytest.raises(SourceReadError, match=message):
        list(frames.stored())
    with pytest.raises(SourceReadError, match=message):
        len(frames)


@pytest.mark.parametrize("time", ["1.5", b"1", [1]])
def test_a_time_that_is_no_number_is_refused_at_once(time):
    with pytest.raises(TypeError, match=r"^end is .*; give a number of seconds"):
        VideoFrames("a.mp4", end=time)


@pytest.mark.parametrize("rate", [5, 25, 60])
def test_an_excerpt_may_have_another_frame_rate(tmp_path, rate):
    path = write(tmp_path / "a", "h264", ".mp4")
    frames = stored(path, start=1, end=2, frame_rate=rate)
    assert len(frames) == pytest.approx(rate, abs=2)
    own = stored(path, start=1, end=2)
    assert [own.index(frame) for frame in frames] == sorted(map(own.index, frames))
    source_times = VideoFrames(path, start=1, end=2, frame_rate=rate).source_times()
    assert source_times == [frame[0] for frame in own]


def test_a_last_frame_is_not_repeated_beyond_the_end(tmp_path):
    pts = [*range(0, 1000, 40), *range(9000, 10400, 40)]
    path = write(tmp_path / "a", "h264", ".mp4", pts=pts)
    whole = stored(path, frame_rate=10)
    assert len(whole) > 90  # the one at 0.96 is shown for eight seconds
    assert len(stored(path, end=2, frame_rate=10)) in {20, 21}


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_and_forms_change_nothing(tmp_path, threads):
    path = write(tmp_path / "a", "h264", ".mp4")
    expected = stored(path)[30:40]
    frames = VideoFrames(path, start=1.2, end=1.6, threads=threads)
    assert repr(frames) == f"VideoFrames({str(path)!r}, start=1.2, end=1.6)"
    for source in (frames, pickle.loads(pickle.dumps(frames))):
        assert stored_of(source.deferred()) == expected
        assert stored_of(source.stored()) == expected
        assert len(list(source)) == len(source) == 10
        assert source.time_base == Fraction(1, 12800)
    assert frames.source_info() == VideoFrames(path).source_info()


def stored_of(frames: Any) -> list[tuple[Any, ...]]:
    found = []
    for frame in frames:
        image = frame.image
        image = image.make() if hasattr(image, "make") else image
        found.append((frame.pts, image.y.tobytes(), image.u.tobytes()))
    return found


def test_damage_elsewhere_costs_an_excerpt_nothing_and_inside_it_fails(tmp_path):
    path = write(tmp_path / "a", "h264", ".mp4")
    frames = stored(path)
    with av.open(str(path)) as container:
        packets: list[Any] = [p for p in container.demux(video=0) if p.size]
        hit = next(packet for packet in packets[31:] if packet.pts * 25 > 34 * 12800)
        place, size = hit.pos, hit.size
    data = bytearray(path.read_bytes())
    data[place + 4 : place + size] = b"\xff" * (size - 4)
    path.write_bytes(data)
    with pytest.raises(SourceReadError, match="cannot be read at frame"):
        stored(path)
    assert stored(path, start=1.8, end=2.4) == frames[45:]
    assert stored(path, start=0, end=1) == frames[:25]
    with pytest.raises(SourceReadError, match="cannot be read at frame"):
        stored(path, start=1.24, end=1.76)


def overwrite(path: Path, pts: int, first: int, value: bytes) -> None:
    """Write over the packet with a time, from a byte in it on."""
    with av.open(str(path)) as container:
        packets: list[Any] = [p for p in container.demux(video=0) if p.size]
        place, size = next((p.pos, p.size) for p in packets if p.pts == pts)
    data = bytearray(path.read_bytes())
    data[place + first : place + size] = value * (size - first)
    path.write_bytes(data)


def test_damage_to_a_later_frame_that_those_before_it_lean_on_fails(tmp_path):
    parameters = "bframes=3:b-adapt=0:b-pyramid=none:scenecut=0:keyint=60"
    path = encode(tmp_path / "a.mp4", "libx264", {"x264-params": parameters})
    frames = stored(path)
    overwrite(path, frames[24][0], 50, b"\xff")
    with pytest.raises(SourceReadError, match="marks it as damaged"):
        stored(path)
    # Of the frames 20 to 24 the last was decoded second.
    for start, end in ((0.4, 0.88), (0, 0.88)):
        with pytest.raises(SourceReadError, match="marks it as damaged"):
            stored(path, start=start, end=end)
    assert stored(path, start=0.4, end=0.8) == frames[10:20]


def test_a_frame_behind_a_key_frame_that_does_not_come_fails(tmp_path):
    path = write(tmp_path / "a", "mpeg2", ".mp4")
    frames = stored(path)
    with av.open(str(path)) as container:
        packets: list[Any] = [p for p in container.demux(video=0) if p.size]
        key = [n for n, packet in enumerate(packets) if packet.is_keyframe][2]
        # The first that is shown behind it.
        lost = next(p.pts for p in packets[key + 1 :] if p.pts > packets[key].pts)
        start = float((packets[key].pts - frames[0][0]) * packets[key].time_base)
    overwrite(path, lost, 0, b"\0")
    for times in ({}, {"start": start, "end": start + 0.4}, {"start": start + 0.3}):
        with pytest.raises(SourceReadError, match="1 of its packets gave no frame"):
            stored(path, **times)


def test_last_frames_that_do_not_come_fail(tmp_path):
    path = write(tmp_path / "a", "hevc", ".mp4")
    overwrite(path, stored(path)[-1][0], 5, b"\0")
    for times in ({}, {"start": 2.2}, {"start": 2.2, "end": 3}):
        with pytest.raises(SourceReadError, match="of its packets gave no frame"):
            stored(path, **times)


@pytest.mark.parametrize("length_of_box", [0, None])
def test_of_a_recording_that_is_cut_off_nothing_that_is_missing_is_stored(
    tmp_path, length_of_box
):
    options = {"movflags": "faststart"}
    path = write(tmp_path / "a", "h264", ".mp4", mux_options=options)
    frames = stored(path)
    data = bytearray(path.read_bytes())
    if length_of_box is not None:  # up to the end of the file, so nothing tells of it
        place = data.index(b"mdat") - 4
        data[place : place + 4] = length_of_box.to_bytes(4, "big")
    path.write_bytes(data[: len(data) * 3 // 4])
    with pytest.raises(SourceReadError):
        stored(path)
    with pytest.raises(SourceReadError):
        stored(path, start=1.2, end=2.4)
    if length_of_box is None:  # as for a whole video
        with pytest.raises(SourceReadError):
            stored(path, start=0.4, end=0.8)
    else:
        assert stored(path, start=0.4, end=0.8) == frames[10:20]


def test_what_fails_on_the_way_goes_on_from_the_beginning(tmp_path, decoded):
    """An index that ends too late is noticed at the end, when frames were given."""
    path = write(tmp_path / "a", "mpeg4", ".avi")
    frames = stored(path)
    data = path.read_bytes()
    decoded.clear()
    assert stored(path, start=1.2) == frames[30:]
    assert len(decoded) < NUM_FRAMES
    place = data.rindex(b"00dc", 0, data.index(b"idx1"))
    damaged = bytearray(data)
    damaged[place + 8 : place + 12] = b"\xff" * 4
    path.write_bytes(damaged)
    decoded.clear()
    with pytest.raises(SourceReadError, match=r"cannot be read at frame 5[0-9]"):
        stored(path, start=1.2)
    assert len(decoded) > NUM_FRAMES


@pytest.mark.parametrize("times", [{"start": 0.5}, {"start": 0.5, "end": 0.7}])
@pytest.mark.parametrize("rate", [None, 5])
def test_frames_that_the_container_promises_are_not_called_a_wrong_time(
    tmp_path, write_video, pictures, times, rate
):
    path = write_video(
        tmp_path / "a.mp4", pictures(20, 48, 64), options={"g": "5", "bf": "0"}
    )
    data = bytearray(path.read_bytes())
    in_chunk = data.index(b"stsc") + 4 + 4 + 4 + 4
    assert data[in_chunk : in_chunk + 4] == (20).to_bytes(4, "big")
    data[in_chunk : in_chunk + 4] = (10).to_bytes(4, "big")
    path.write_bytes(data)
    with pytest.raises(SourceReadError, match="promises 20 frames and has 10"):
        list(VideoFrames(path, frame_rate=rate, **times).stored())
