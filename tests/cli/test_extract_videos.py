"""Videos that ``gulp2 extract`` writes."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.cli.video_export import frame_times, write_video
from gulpio2.errors import FormatError
from gulpio2.testing import make_frames
from tests.cli.extracted import decoded, files_below


def test_a_video_has_the_frames_and_plays_at_the_rate(gulp2, gulped):
    result = gulp2("extract", gulped, "item0", "--format", "mp4", "--rate", "12")
    assert result.stdout == "item0.mp4: 6 frames\n"
    frames, times = decoded("item0.mp4")
    assert times == pytest.approx([n / 12 for n in range(6)])
    for frame, stored in zip(frames, GulpDirectory(gulped)["item0"][0], strict=True):
        error = np.abs(frame.astype(int) - stored.astype(int))
        assert error.mean() < 4


def test_without_times_the_rate_is_25_and_that_is_said(gulp2, gulped):
    result = gulp2("extract", gulped, "item0", "--format", "mp4", "--frames", "1:4")
    assert "25 frames per second are taken (--rate sets it)" in result.stderr
    assert decoded("item0.mp4")[1] == pytest.approx([0, 0.04, 0.08])


def test_the_stored_times_are_kept_exactly_also_where_they_vary(gulp2, real_item):
    gulp2("extract", "gulped", real_item, "--format", "mp4", "--frames", "5:60")
    item = GulpDirectory("gulped").item(real_item)
    expected = frame_times(item, range(5, 60))
    assert expected is not None
    assert len({b - a for a, b in itertools.pairwise(expected)}) > 1
    with av.open(f"{real_item}.mp4") as container:
        stream = container.streams.video[0]
        ticks = [frame.pts or 0 for frame in container.decode(stream)]
        times = [tick * (stream.time_base or 0) for tick in ticks]
    assert times == expected


def test_odd_and_grey_frames_can_be_shown(gulp2, tmp_path):
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("odd", {}, make_frames(3, 23, 31))
        chunk.append("grey", {}, make_frames(3, 24, 32, grey=True))
        chunk.append("one", {}, make_frames(1))
    for id_, shape in (("odd", (24, 32)), ("grey", (24, 32)), ("one", (24, 32))):
        gulp2("extract", tmp_path, id_, "--format", "mp4")
        frames, _ = decoded(f"{id_}.mp4")
        assert frames[0].shape[:2] == shape


def test_frames_of_different_sizes_are_an_error_and_leave_no_file(gulp2, tmp_path):
    folder = tmp_path / "g"
    folder.mkdir()
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("a", {}, [*make_frames(1), *make_frames(1, 48, 32)])
    words = ("extract", folder, "a", "--format", "mp4", "--out")
    result = gulp2(*words, "o/deep", status=1)
    assert "differ in size" in result.stderr
    assert not Path("o").exists()
    Path("there").mkdir()
    gulp2(*words, "there/deep", status=1)
    assert [*Path("there").iterdir()] == []


def test_a_video_is_not_overwritten_without_being_asked(gulp2, gulped):
    Path("item0.mp4").write_text("mine")
    gulp2("extract", gulped, "item0", "--format", "mp4", status=1)
    assert Path("item0.mp4").read_text() == "mine"
    gulp2("extract", gulped, "item0", "--format", "mp4", "--overwrite", "-q")
    assert len(decoded("item0.mp4")[0]) == 6


def test_frames_that_a_rate_has_repeated_are_evenly_spaced(gulp2, make_video, tmp_path):
    make_video(tmp_path / "videos" / "a.mp4", num_frames=6, rate=12)
    gulp2("ingest", "video-folder", "videos", "gulped24", "--frame-rate", "24", "-q")
    (id_,) = (directory := GulpDirectory("gulped24")).chunk_lookup
    item = directory.item(id_)
    # Those that are repeated are the same moment of the source, asked for by time too.
    assert len(set(item.extras.pts)) == 6 < item.num_frames
    time_base = item.extras.time_base or Fraction(0)
    shown = [float(pts * time_base) for pts in item.extras.pts]
    assert sorted(set(shown)) == pytest.approx([n / 12 for n in range(6)])
    (index,) = item.frame_indices_at(3 / 12, "nearest")
    assert shown[index] == pytest.approx(3 / 12)
    result = gulp2("extract", "gulped24", id_, "--format", "mp4", "-o", "out")
    assert not result.stderr
    frames, times = decoded(f"out/{id_}")
    assert len(frames) == item.num_frames
    step = (5 / 12) / (item.num_frames - 1)
    assert times == pytest.approx([n * step for n in range(len(frames))], abs=1e-4)


def test_mpeg4_takes_over_where_there_is_no_h264(gulped, tmp_path, monkeypatch):
    monkeypatch.setattr("gulpio2.cli.video_export._ENCODERS", ("mpeg4",))
    times = [Fraction(0), Fraction(1, 90000), Fraction(1, 3)]
    item = GulpDirectory(gulped).item("item0")
    write_video(item, range(3), tmp_path / "x.mp4", times, overwrite=False)
    frames, shown = decoded(tmp_path / "x.mp4")
    assert len(frames) == 3
    assert shown == pytest.approx([float(time) for time in times], abs=1e-4)


@pytest.mark.parametrize("folder", ["12:30", "file:x", "pipe:", "http:"])
def test_a_video_is_written_into_a_folder_with_a_colon(gulp2, gulped, folder):
    gulp2("extract", gulped, "item0", "--format", "mp4", "--out", folder)
    assert len(decoded(Path(folder, "item0.mp4").absolute())[0]) == 6


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ([0, Fraction(1, 200_000), Fraction(1, 100_000)], "too close"),
        ([0, 5 * Fraction(1, 10**9), 10 * Fraction(1, 10**9)], "too close"),
        ([0, 10**6, 2 * 10**6], "too far apart"),
        # Only from the file itself: FFmpeg writes these, and they wrap around.
        ([0, 131_072], "too far apart"),
        ([0, 31_536_000], "too far apart"),
        ([0, 1, 131_072, 131_073], "too far apart"),
        ([0, 10**18, 2 * 10**18], "too far apart"),
        ([0, 2**70, 2**71], "too far apart"),
    ],
)
def test_times_that_no_video_has_are_an_error_and_leave_no_file(
    gulped, tmp_path, times, message
):
    item = GulpDirectory(gulped).item("item0")
    out = tmp_path / "o"
    out.mkdir()
    with pytest.raises(FormatError, match=f"'item0' .*{message}.*--rate"):
        write_video(
            item,
            range(len(times)),
            out / "x.mp4",
            [*map(Fraction, times)],
            overwrite=False,
        )
    assert files_below(out) == []


def test_frames_that_are_too_large_for_a_video_are_an_error(gulp2, tmp_path):
    folder = tmp_path / "g"
    folder.mkdir()
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("wide", {}, make_frames(2, 2, 20_000))
    words = ["extract", folder, "wide", "--format", "mp4", "--out", "o", "-q"]
    assert "'wide' cannot be written as a video" in gulp2(*words, status=1).stderr
    assert files_below(Path("o")) == []


@pytest.mark.parametrize(
    "rate", ["0", "-1", "fast", "1/0", "1e30", "1e-99999999", "nan", "", "."]
)
def test_what_is_no_rate_is_wrong_usage(gulp2, gulped, rate):
    words = ["extract", gulped, "item0", "--format", "mp4", f"--rate={rate}"]
    assert "is not a frame rate" in gulp2(*words, status=2).stderr
