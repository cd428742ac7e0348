"""Videos that are folders of images."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np
import pytest

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.adapters import FrameFolderAdapter
from gulpio2.errors import IngestSettingError, SourceNotFoundError, SourceReadError
from gulpio2.sanity import check_directory
from gulpio2.testing.adapters import AdapterTests


@pytest.fixture
def frames(tmp_path, make_jpeg):
    """Give folders of ten, two and one image in class folders."""
    folder = tmp_path / "frames"
    for item, count in (("run/v1", 10), ("walk/v1", 2), ("walk/more/v2", 1)):
        for number in range(1, count + 1):
            make_jpeg(folder / item / f"img_{number}.jpg", 20 * number)
    return folder


class TestFrameFolder(AdapterTests):
    """The common tests."""

    @pytest.fixture
    def adapter(self, frames, tmp_path):
        return FrameFolderAdapter(frames, tmp_path / "out")


def test_each_folder_of_images_is_an_item(frames):
    adapter = FrameFolderAdapter(frames, "out")
    items = list(adapter.iter_data())
    assert [item["meta"] for item in items] == [
        {"id": "run-v1", "label": "run", "path": f"{frames}/run", "idx": 1},
        {"id": "more-v2", "label": "more", "path": f"{frames}/walk/more", "idx": 0},
        {"id": "walk-v1", "label": "walk", "path": f"{frames}/walk", "idx": 2},
    ]
    assert [len(list(item["frames"])) for item in items] == [10, 1, 2]
    assert adapter.item_source(1) == f"{frames}/walk/more/v2"


def test_the_frames_are_in_the_order_of_their_numbers(frames):
    first, *_ = FrameFolderAdapter(frames, "out").iter_data()
    grey = [int(image.mean()) for image in first["frames"]]
    assert grey == sorted(grey)
    assert len(set(grey)) == 10


def test_the_path_as_an_id_is_that_below_the_folder(frames):
    adapter = FrameFolderAdapter(f"{frames}/", "out", id_rule="path")
    assert adapter.item_ids() == ["run/v1", "walk/more/v2", "walk/v1"]
    assert adapter.item_source(2) == f"{frames}/walk/v1"


def test_the_current_folder_may_be_looked_through(frames, monkeypatch):
    monkeypatch.chdir(frames / "walk")
    adapter = FrameFolderAdapter(".", "out", id_rule="path")
    assert adapter.item_ids() == ["more/v2", "v1"]
    assert [row["label"] for row in adapter.all_meta] == ["more", "walk"]
    assert [len(list(item["frames"])) for item in adapter.iter_data()] == [1, 2]


def test_images_that_lie_above_such_folders_are_told_of(frames, make_jpeg, caplog):
    make_jpeg(frames / "cover.jpg", 1)
    make_jpeg(frames / "walk" / "a.jpg", 1)
    make_jpeg(frames / "walk" / "b.jpg", 1)
    adapter = FrameFolderAdapter(frames, "out")
    assert adapter.item_ids() == ["run-v1", "more-v2", "walk-v1"]
    assert [re.sub(" left out, .*", "", each) for each in caplog.messages] == [
        f"{frames}: 1 image",
        f"{frames / 'walk'}: 2 images",
    ]


def test_a_prefix_leaves_out_what_else_lies_there(frames, make_jpeg, caplog):
    for number in range(1, 11):
        make_jpeg(frames / "run" / "v1" / f"flow_x_{number}.jpg", 5)
    for item in FrameFolderAdapter(frames, "out").iter_data():
        list(item["frames"])
    (told,) = caplog.messages
    assert "run/v1 are named in several ways, flow_x_*.jpg (10), img_*.jpg (10)" in told
    caplog.clear()
    first, *_ = FrameFolderAdapter(frames, "out", prefix="img_").iter_data()
    images = list(first["frames"])
    assert (len(images), caplog.messages) == (10, [])
    assert min(image.mean() for image in images) > 15
    adapter = FrameFolderAdapter(frames, "out", prefix="flow_x_")
    assert adapter.item_ids() == ["run-v1"]
    (told,) = caplog.messages
    assert told == (
        "nothing is taken out of 2 folders, since these names do not begin with "
        f"'flow_x_' (prefix): {frames}/walk/more/v2: img_*.jpg (1); "
        f"{frames}/walk/v1: img_*.jpg (2)"
    )


@pytest.mark.parametrize("other", ["IMG_11.jpg", "11.jpg"])
def test_a_prefix_that_takes_a_part_of_a_series_is_told_of(
    other, tmp_path, make_jpeg, caplog
):
    prefix = "img_" if other.startswith("I") else "2"
    for name in (f"{prefix}1.jpg", f"{prefix}2.jpg", other):
        make_jpeg(tmp_path / "a" / "v" / name, 5)
    make_jpeg(tmp_path / "a" / "v" / "flow_1.jpg", 5)
    adapter = FrameFolderAdapter(tmp_path, "out", prefix=prefix)
    assert [len(item["frames"]) for item in adapter.iter_data()] == [2]
    (told,) = caplog.messages
    assert told.startswith("a part of the images is taken out of 1 folder, since")
    assert told.endswith(f"a/v: {'IMG_' if prefix == 'img_' else ''}*.jpg (1)")


def test_many_folders_that_a_prefix_leaves_out_are_counted(tmp_path, make_jpeg, caplog):
    for number in range(9):
        make_jpeg(tmp_path / "a" / f"v{number}" / "1.jpg", 5)
    assert not len(FrameFolderAdapter(tmp_path, "out", prefix="img_"))
    (told,) = caplog.messages
    assert "out of 9 folders" in told
    assert told.endswith(f"{tmp_path}/a/v3: *.jpg (1) (and 5 more)")


@pytest.mark.parametrize(
    "names", [["left.jpg", "right.jpg"], ["1.jpg", "2.jpeg", "3.JPG", "4.jpg"]]
)
def test_images_of_one_series_or_of_none_are_not_told_of(
    names, tmp_path, make_jpeg, caplog
):
    for name in names:
        make_jpeg(tmp_path / "a" / "v" / name, 5)
    endings = [".jpg", ".jpeg", ".JPG"]
    (item,) = FrameFolderAdapter(tmp_path, "o", file_extensions=endings).iter_data()
    assert (len(list(item["frames"])), caplog.messages) == (len(names), [])


def test_images_of_other_endings_are_told_of(frames, make_jpeg, caplog):
    make_jpeg(frames / "run" / "v2" / "1.JPG", 5)
    adapter = FrameFolderAdapter(frames, "out")
    assert "run-v2" not in adapter.item_ids()
    assert "left out for their endings: .JPG (1)" in caplog.text
    adapter = FrameFolderAdapter(frames, "out", file_extensions=".JPG")
    assert adapter.item_ids() == ["run-v2"]


def told_of(folder, make_jpeg, caplog, names):
    """Give what is told of a folder that has these images."""
    for name in names:
        make_jpeg(folder / "a" / "v" / name, 5)
    (item,) = FrameFolderAdapter(folder, "out").iter_data()
    assert len(item["frames"]) == len(names)
    return caplog.messages


@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        ([1, 2, 3, 5], "1 of 5: 4;"),
        ([1, 2, 4], "1 of 4: 3;"),
        ([7, 8, 12, 13, 14, 16], "4 of 10: 9 to 11, 15;"),
        ([10, 20, 30, 60, 70], "2 of 7: 40 to 50;"),
        (
            [n for n in range(20) if n % 4 != 2],
            "5 of 20: 2, 6, 10 and 2 more;",
        ),
    ],
)
def test_numbers_that_are_missing_are_told(numbers, told, tmp_path, make_jpeg, caplog):
    names = [f"v2_img_{number:05}.jpg" for number in numbers]
    (message,) = told_of(tmp_path, make_jpeg, caplog, names)
    assert f"missing in {tmp_path}/a/v by their numbers, {told} what is on" in message
    caplog.clear()
    (item,) = FrameFolderAdapter(tmp_path, "out", image_rate=25).iter_data()
    list(item["frames"])
    assert f"{told} at their times there is nothing." in caplog.messages[0]


@pytest.mark.parametrize("more", [["img_4.jpg"], ["img_5.jpg"]])
def test_numbers_that_come_twice_are_told(more, tmp_path, make_jpeg, caplog):
    """Also where as many are missing, so that first and last say nothing."""
    names = [f"img_{n:05}.jpg" for n in (1, 2, 3)] + ["img_2.jpg", *more]
    (message,) = told_of(tmp_path, make_jpeg, caplog, names)
    assert (
        "a/v have the same number, as img_00002.jpg and img_2.jpg (1 of 5)" in message
    )


@pytest.mark.parametrize(
    "names",
    [
        ["1.jpg", "2.jpg", "3.jpeg", "4.png"],
        ["0005.jpg", "0010.jpg", "0015.jpg"],  # every fifth
        ["33.jpg", "66.jpg", "100.jpg", "133.jpg"],  # milliseconds
        ["4.jpg", "8.jpg", "44.jpg", "80.jpg"],  # drawn at random
        ["1.jpg", "5.jpg"],
        ["a1b1.jpg", "a1b9.jpg", "a2b1.jpg", "a2b2.jpg"],
        ["1.jpg", "2.jpg", "3.jpg", "last9.jpg"],
    ],
)
def test_numbers_of_another_kind_are_no_gaps(names, tmp_path, make_jpeg, caplog):
    told = told_of(tmp_path, make_jpeg, caplog, names)
    assert not [message for message in told if "missing" in message]


@pytest.mark.parametrize(
    ("names", "pts"),
    [
        (["img_08.jpg", "img_09.jpg", "img_10.jpg", "img_12.jpg"], [0, 1, 2, 4]),
        (["img_008_rgb.jpg", "img_010_rgb.jpg", "img_011_rgb.jpg"], [0, 2, 3]),
        (["a.jpg", "b.jpg", "c7.jpg"], [0, 1, 2]),
        (["7.jpg"], [0]),
        (["0.04.jpg", "0.08.jpg", "0.16.jpg"], [0, 1, 2]),  # seconds
    ],
)
def test_with_their_rate_images_have_times(names, pts, tmp_path, make_jpeg, caplog):
    for name in names:
        make_jpeg(tmp_path / "in" / "a" / "v" / name, 5)
    out = tmp_path / "out"
    adapter = FrameFolderAdapter(tmp_path / "in", out, image_rate="30000/1001")
    GulpIngestor(adapter, out, 1, 1).run()
    with GulpDirectory(out) as directory:
        item = directory.item("a-v")
        times = list(item.extras.pts), item.extras.time_base
        assert times == (pts, Fraction(1001, 30000))
        assert item.frame_indices_at([pts[-1] * 1001 / 30000]) == [len(pts) - 1]
    told = [each for each in caplog.messages if "times go by their places" in each]
    assert len(told) == (names[0] in ("a.jpg", "0.04.jpg"))


def test_numbers_may_count_from_the_beginning_of_a_recording(
    tmp_path, make_jpeg, caplog
):
    """As those of AVA: of 25 images a second, at second 900."""
    for number in (22501, 22502, 22504):
        make_jpeg(tmp_path / "a" / "v" / f"img_{number:06}.jpg", 5)
    make_jpeg(tmp_path / "a" / "one" / "img_000003.jpg", 5)

    def ticks(**options):
        adapter = FrameFolderAdapter(tmp_path, "out", image_rate=25, **options)
        return [
            [frame.pts for frame in item["frames"].stored()]
            for item in adapter.iter_data()
        ]

    assert ticks(first_number=1) == [[2], [22500, 22501, 22503]]
    assert [each for each in caplog.messages if "begin with" in each] == []
    assert ticks() == [[0], [0, 1, 3]]
    told = [each for each in caplog.messages if "first_number, as 1" in each]
    assert len(told) == 2
    assert "a/v begin with number 22501, which is taken for the image at 0" in told[1]


@pytest.mark.parametrize(
    ("numbers", "is_late"),
    [
        ([0, 1], False),
        ([1, 2], False),
        ([2, 3], True),
        ([5, 10, 15], False),  # every fifth
        ([10, 15], True),
    ],
)
def test_first_numbers_that_are_late_are_told(
    numbers, is_late, tmp_path, make_jpeg, caplog
):
    for number in numbers:
        make_jpeg(tmp_path / "a" / "v" / f"{number:02}.jpg", 5)
    (item,) = FrameFolderAdapter(tmp_path, "out", image_rate=25).iter_data()
    list(item["frames"])
    assert ["begin with number" in each for each in caplog.messages] == [True] * is_late


def test_a_first_number_needs_numbers_and_a_rate(tmp_path, make_jpeg):
    for name in ("left.jpg", "right.jpg"):
        make_jpeg(tmp_path / "a" / "v" / name, 5)
    with pytest.raises(IngestSettingError, match="without image_rate images have no"):
        FrameFolderAdapter(tmp_path, "out", first_number=1)
    adapter = FrameFolderAdapter(tmp_path, "out", image_rate=25, first_number=1)
    (item,) = adapter.iter_data()
    with pytest.raises(SourceReadError, match="a/v' have no number each"):
        list(item["frames"])


def test_folders_without_images_are_told_of(frames, caplog):
    for number in range(5):
        (frames / "run" / f"empty{number}").mkdir()
    (frames / "run" / "empty0" / "img_1.jpg.part").write_bytes(b"")
    (frames / "run" / "other").mkdir()
    (frames / "run" / "other" / "1.JPG").write_bytes(b"")
    assert len(FrameFolderAdapter(frames, "out")) == 3
    (told,) = [each for each in caplog.messages if "without images" in each]
    assert told.startswith(f"5 folders without images: {frames}/run/empty0, ")
    assert "empty3 (and 1 more). Bring back" in told


def test_without_a_rate_images_have_no_times(frames, tmp_path):
    for rate in (None, 0, "0"):
        first, *_ = FrameFolderAdapter(frames, "out", image_rate=rate).iter_data()
        assert first["frames"].time_base is None
        assert {each.pts for each in first["frames"].stored()} == {None}
    with pytest.raises(
        IngestSettingError, match=r"image_rate is 'fast'; .* 0 for none"
    ):
        FrameFolderAdapter(frames, "out", image_rate="fast")


def test_a_folder_that_is_missing_is_refused(tmp_path):
    with pytest.raises(SourceNotFoundError, match="nosuch"):
        FrameFolderAdapter(tmp_path / "nosuch", "out")


def test_the_files_are_stored_as_they_are(frames, tmp_path):
    out = tmp_path / "out"
    (frames / "walk" / "v1" / "img_2.jpg").write_bytes(b"damaged")
    report = GulpIngestor(FrameFolderAdapter(frames, out), out, 2, 1).run()
    assert [failure.id for failure in report.failures] == ["walk-v1"]
    with GulpDirectory(out) as directory:
        jpegs = directory.read_jpegs("run-v1")
        files = [(frames / f"run/v1/img_{n}.jpg").read_bytes() for n in range(1, 11)]
        assert [bytes(jpeg) for jpeg in jpegs] == files
        assert np.ptp(directory.read_clip("run-v1", [0, 9]).mean((1, 2, 3))) > 100
    assert check_directory(out, deep=True).ok
