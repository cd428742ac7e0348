"""Frame rates: how they are read, and which frames they show."""

from __future__ import annotations

import random
import subprocess
from fractions import Fraction
from typing import Any

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.format.rates import parse_frame_rate
from gulpio2.media.frame_rate import ConstantRate, rescale
from gulpio2.media.video import VideoFrames


@pytest.mark.parametrize(
    ("given_rate", "expected"),
    [
        (8, Fraction(8)),
        (0.5, Fraction(1, 2)),
        (29.97, Fraction(2997, 100)),
        ("30000/1001", Fraction(30000, 1001)),
        ("30000:1001", Fraction(30000, 1001)),
        (" 12.5 ", Fraction(25, 2)),
        (Fraction(24000, 1001), Fraction(24000, 1001)),
        ("29.97003", Fraction(979001, 32666)),
        (1000999.4, Fraction(1000999)),
        ("ntsc", Fraction(30000, 1001)),
        ("pal", Fraction(25)),
        ("film", Fraction(24)),
        ("ntsc-film", Fraction(24000, 1001)),
        (np.bool_(False), None),
        (np.int64(5), Fraction(5)),
        (np.float32(0.25), Fraction(1, 4)),
        (None, None),
        (0, None),
        (0.0, None),
        ("", None),
        (False, None),
    ],
)
def test_a_rate_is_read_as_ffmpeg_reads_it(given_rate, expected):
    assert parse_frame_rate(given_rate) == expected


@pytest.mark.parametrize(
    "rate",
    [
        *(-1, "-8", "fast", "1/0", "8/", "nan", float("inf"), 1e9, [8], True, 1e-12),
        *("9" * 400, np.bool_(True), "PAL"),
    ],
)
def test_what_is_no_rate_is_refused_by_its_name(rate):
    with pytest.raises(ValueError, match="frame_rate is") as error:
        parse_frame_rate(rate)
    assert repr(rate) in str(error.value)


def test_any_decimal_is_the_fraction_that_ffmpeg_makes_of_it():
    chance = random.Random(1)
    texts = [f"{chance.uniform(0.01, 120):.{digits % 9 + 1}f}" for digits in range(90)]
    texts += [f"{chance.uniform(1000, 1_001_000):.3f}" for _ in range(20)]
    for text in texts:
        source = f"testsrc=rate={text}:size=16x16:duration=0.01"
        with av.open(source, format="lavfi") as container:
            time_base = container.streams.video[0].time_base
        assert time_base is not None
        assert parse_frame_rate(text) == 1 / time_base, text


@pytest.mark.parametrize(
    ("ticks", "source", "target", "expected"),
    [
        (1, Fraction(1, 2), Fraction(1), 1),
        (-1, Fraction(1, 2), Fraction(1), -1),
        (3, Fraction(1, 2), Fraction(1), 2),
        (0, Fraction(1, 1000), Fraction(1, 8), 0),
        (1001, Fraction(1, 30000), Fraction(1, 1000), 33),
    ],
)
def test_ticks_are_rescaled_with_halves_away_from_zero(ticks, source, target, expected):
    assert rescale(ticks, source, target) == expected


def place_all(rate, times, durations, time_base, start=0, *, is_alone=False):
    """Give the indices of the source frames that are shown, one per output frame."""
    grid = ConstantRate(
        Fraction(rate), time_base=time_base, start=start, is_alone=is_alone
    )
    shown: list[int] = []
    for index, (pts, duration) in enumerate(zip(times, durations, strict=True)):
        placement = grid.place(pts, duration)
        shown += [max(index - 1, 0)] * placement.previous
        shown += [index] * placement.current
    return shown + [len(times) - 1] * grid.finish()


MILLISECOND = Fraction(1, 1000)
UNEVEN = [0, 40, 90, 400, 410, 1000, 1300, 1301]

# What ``ffmpeg -fps_mode cfr -r`` (9.0) did with clips of these times, frame by frame.
FFMPEG = [
    pytest.param(
        8, range(0, 12800, 512), [512] * 25, Fraction(1, 12800),
        [0, 1, 2, 5, 9, 12, 15, 18, 21, 24],
        id="25 a second to 8",
    ),
    pytest.param(
        30, range(0, 5120, 512), [512] * 10, Fraction(1, 12800),
        [0, 1, 2, 2, 3, 4, 5, 6, 7, 7, 8, 9],
        id="25 a second to 30",
    ),
    pytest.param(
        12, range(0, 8192, 2048), [2048] * 4, Fraction(1, 12288),
        [0, 0, 1, 1, 2, 2, 3, 3],
        id="6 a second to 12",
    ),
    pytest.param(
        10, UNEVEN, [40] * 8, MILLISECOND,
        [0, 1, 2, 3, 4, 4, 4, 4, 4, 5, 5, 5, 6, 7, 7, 7],
        id="variable to 10, the last one repeated",
    ),
    pytest.param(
        30, [36, 70, 103, 400, 433, 466], [40] * 6, MILLISECOND,
        [0, 0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 4, 5],
        id="a late first frame and a gap",
    ),
    pytest.param(
        5, [16 * t for t in UNEVEN], [640, 800, 4960, 160, 9440, 4800, 16, 640],
        Fraction(1, 16000), [0, 1, 2, 3, 4, 5, 5, 6],
        id="variable with durations",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("rate", "times", "durations", "time_base", "expected"), FFMPEG
)
def test_frames_are_those_that_ffmpeg_shows(
    rate, times, durations, time_base, expected
):
    assert place_all(rate, times, durations, time_base) == expected


# What ``ffmpeg -r`` (7.0 and 9.0) did with AVI files of one stream: 12 frames at 24 a
# second, the first of them late by as many.
@pytest.mark.parametrize(
    ("rate", "late", "expected"),
    [
        (24, 1, range(12)),
        (24, 2, range(12)),
        (48, 1, [n // 2 for n in range(24)]),
        (12, 1, [0, 1, 2, 4, 6, 8, 10]),
        (12, 2, [0, 1, 2, 3, 5, 7, 9, 11]),
        (8, 1, [0, 1, 2, 4, 7, 10]),
        (8, 2, [0, 1, 3, 6, 9]),
    ],
)
def test_a_late_first_frame_of_the_only_stream_is_shown_once(rate, late, expected):
    times = range(late, 12 + late)
    shown = place_all(rate, times, [1] * 12, Fraction(1, 24), is_alone=True)
    assert shown == list(expected)


@pytest.mark.parametrize(
    ("rate", "times", "durations", "time_base", "expected"), FFMPEG
)
def test_a_first_frame_in_time_is_placed_the_same_where_its_stream_is_alone(
    rate, times, durations, time_base, expected
):
    del expected  # one of them begins late
    alone, beside = (
        place_all(rate, times, durations, time_base, times[0], is_alone=is_alone)
        for is_alone in (True, False)
    )
    assert alone == beside


def test_140_frames_of_a_webm_at_30_are_39_at_8():
    times = [36 + round(i * 1000 / 30) for i in range(140)]
    assert len(place_all(8, times, [33] * 140, MILLISECOND)) == 39


def test_the_start_of_the_file_is_where_frame_0_is():
    times = [90_000 + 3600 * i for i in range(25)]
    moved = place_all(8, times, [3600] * 25, Fraction(1, 90000), start=90_000)
    at_zero = [t - 90_000 for t in times]
    assert moved == place_all(8, at_zero, [3600] * 25, Fraction(1, 90000))


@given(
    rate=st.fractions(min_value=Fraction(1, 2), max_value=120, max_denominator=1001),
    steps=st.lists(st.integers(1, 400), min_size=1, max_size=60),
)
def test_frames_stay_in_order_and_near_their_time(rate, steps):
    times = np.cumsum([0, *steps[:-1]]).tolist()
    shown = place_all(rate, times, steps, MILLISECOND)
    assert shown == sorted(shown)
    assert set(shown) <= set(range(len(times)))
    # The grid never covers more than the clip and the drift that FFmpeg allows.
    assert len(shown) <= sum(steps) / 1000 * rate + 3


@given(rate=st.integers(1, 24), num_frames=st.integers(1, 200))
def test_at_most_two_frames_more_than_the_fps_filter_gives(rate, num_frames):
    times = range(0, num_frames * 40, 40)
    shown = place_all(rate, times, [40] * num_frames, MILLISECOND)
    filtered = fps_filter(rate, num_frames)
    assert 0 <= len(shown) - filtered <= 2


def fps_filter(rate, num_frames):
    """Count what libavfilter's fps filter makes of frames at 25 a second."""
    graph: Any = av.filter.Graph()
    source = graph.add_buffer(width=16, height=16, format="gray", time_base=MILLISECOND)
    fps, sink = graph.add("fps", f"fps={rate}"), graph.add("buffersink")
    source.link_to(fps)
    fps.link_to(sink)
    graph.configure()
    count = 0
    for index in [*range(num_frames), None]:
        if index is None:
            graph.push(None)
        else:
            frame = av.VideoFrame(16, 16, "gray")
            frame.pts, frame.time_base, frame.duration = index * 40, MILLISECOND, 40
            graph.push(frame)
        try:
            while True:
                graph.pull()
                count += 1
        except (av.BlockingIOError, av.EOFError):
            pass
    return count


def test_a_time_that_is_far_too_late_is_refused():
    grid = ConstantRate(Fraction(30), time_base=Fraction(1))
    grid.place(0, 1)
    with pytest.raises(ValueError, match="repeated 3000"):
        grid.place(100_000, 1)


@pytest.mark.parametrize("rate", ["8", "12", "25", "60", "30000/1001", "7.3", "0.5"])
def test_the_ffmpeg_program_shows_the_same_frames(
    ffmpeg_program, tmp_path, write_video, pictures, rate
):
    from gulpio2.media.decode import open_video

    path = write_video(
        tmp_path / "clip.mkv",
        pictures(40, 32, 48),
        time_base=MILLISECOND,
        pts=np.cumsum(np.arange(40) % 7 * 13 + 5).tolist(),
    )
    source, expected = frames_by_ffmpeg(ffmpeg_program, path, rate)
    with open_video(path) as video:
        shown = [when for _, when in video.frames()]
        indices = place_all(
            parse_frame_rate(rate),
            [when.pts for when in shown],
            [when.duration for when in shown],
            video.time_base,
            video.start,
        )
    assert [source[index] for index in indices] == expected


WITH_B_FRAMES = {
    "mpeg4": {"bf": "1"},
    "libx264": {"preset": "fast", "bf": "2"},
    "mpeg2video": {"bf": "0"},  # late nevertheless
}


@pytest.mark.parametrize("codec", WITH_B_FRAMES)
def test_an_avi_with_b_frames_shows_what_an_mp4_of_them_shows(
    tmp_path, write_video, pictures, codec
):
    shown = {}
    for name in ("a.avi", "a.mp4"):
        images = pictures(16, 48, 64)
        options = WITH_B_FRAMES[codec]
        path = write_video(tmp_path / name, images, codec=codec, options=options)
        times = [frame.pts for frame in VideoFrames(path).stored()]
        assert len(times) == 16
        shown[name] = [
            [times.index(frame.pts) for frame in frames.stored()]
            for frames in (VideoFrames(path, frame_rate=rate) for rate in (25, 50))
        ]
    # Its first frame was shown twice, and at 50 a second four times.
    assert shown["a.avi"] == shown["a.mp4"]
    assert shown["a.avi"] == [[*range(16)], [n // 2 for n in range(32)]]


def test_sound_that_begins_before_the_pictures_of_a_transport_stream_is_not_filled(
    tmp_path, write_video, pictures
):
    path = tmp_path / "a.ts"
    late = [n + 10 for n in range(16)]
    write_video(path, pictures(16, 48, 64), pts=late, with_audio=True)
    with av.open(str(path)) as container:
        pictures_start, sound_start = (s.start_time or 0 for s in container.streams)
        assert sound_start < pictures_start
    times = [frame.pts for frame in VideoFrames(path).stored()]
    frames = VideoFrames(path, frame_rate=50).stored()
    assert [times.index(frame.pts) for frame in frames] == [n // 2 for n in range(32)]


def test_frames_of_a_raw_stream_are_counted_from_the_first(
    tmp_path, write_video, pictures
):
    path = write_video(
        tmp_path / "a.m2v",
        pictures(16, 48, 64),
        codec="mpeg2video",
        options={"bf": "1", "g": "12"},
    )
    video = VideoFrames(path)
    times = [frame.pts or 0 for frame in video.stored()]
    assert [time * video.time_base for time in times] == [
        Fraction(n, 25) for n in range(16)
    ]
    frames = VideoFrames(path, frame_rate=50).stored()
    shown = [times.index(frame.pts or 0) for frame in frames]
    assert shown == [n // 2 for n in range(32)]


@pytest.mark.parametrize("with_audio", [False, True])
@pytest.mark.parametrize("ending", ["avi", "mp4"])
@pytest.mark.parametrize("codec", WITH_B_FRAMES)
def test_the_ffmpeg_program_shows_the_same_frames_of_a_late_stream(
    ffmpeg_program, tmp_path, write_video, pictures, codec, ending, with_audio
):
    path = write_video(
        tmp_path / f"a.{ending}",
        pictures(24, 48, 64),
        codec=codec,
        options=WITH_B_FRAMES[codec],
        with_audio=with_audio,
    )
    times = [frame.pts for frame in VideoFrames(path).stored()]
    for rate in ("25", "12.5", "50", "8", "7.3", "30"):
        source, expected = frames_by_ffmpeg(ffmpeg_program, path, rate, ())
        frames = VideoFrames(path, frame_rate=rate).stored()
        assert [source[times.index(frame.pts)] for frame in frames] == expected, rate


def frames_by_ffmpeg(program, path, rate, options=("-fps_mode", "cfr")):
    """Ask the program for the hashes of all frames, and of those that -r shows."""

    def hashes(*options):
        command = [program, "-v", "error", "-i", str(path), "-map", "0:v:0"]
        result = subprocess.run(
            [*command, *options, "-f", "framemd5", "-"],
            capture_output=True,
            text=True,
            check=True,
        )
        lines = result.stdout.splitlines()
        return [line.split(",")[-1].strip() for line in lines if line[0] != "#"]

    source = hashes("-fps_mode", "passthrough")
    return source, hashes(*options, "-r", rate)


@pytest.mark.parametrize("rate", ["1e99999999", "1e-99999999", "3/1E+99999999"])
def test_a_rate_with_a_large_exponent_is_refused_and_not_computed(rate):
    with pytest.raises(ValueError, match="give frames per second"):
        parse_frame_rate(rate)


@pytest.mark.parametrize("ending", [".mp4", ".mkv"])
def test_frames_that_are_reordered_are_placed_as_those_that_are_not(
    tmp_path, write_video, pictures, ending
):
    # Two seconds in which nothing changes, as when a screen is recorded. MP4 has as
    # durations the steps of decoding, by which a frame in the middle lasted so long.
    milliseconds = [0, 100, 200, 300, *range(2300, 3100, 100)]
    shown = {}
    excerpts: tuple[dict[str, Any], ...] = ({}, {"start": 2.3, "end": 3.1})
    for reordered in ("0", "2"):
        path = write_video(
            tmp_path / f"{reordered}{ending}",
            pictures(12, 32, 48),
            rate=10,
            time_base=Fraction(1, 1000),
            pts=milliseconds,
            options={"bf": reordered},
        )
        for excerpt in excerpts:
            video = VideoFrames(path, frame_rate=10, **excerpt)
            times = [
                round(float(Fraction(frame.pts or 0) * video.time_base), 1)
                for frame in video.stored()
            ]
            shown[reordered, bool(excerpt)] = times
    for (_, is_excerpt), times in shown.items():
        wanted = [2.3, 2.4, 2.5, 2.6, 2.7, 2.8, 2.9, 3.0]
        assert sorted(set(times)) == ([] if is_excerpt else [0, 0.1, 0.2, 0.3]) + wanted
        assert len(times) == (8 if is_excerpt else 31)
