"""A directory made of another one."""

from __future__ import annotations

import json
import shutil
from fractions import Fraction
from typing import Any

import cv2
import numpy as np
import pytest
from click.testing import CliRunner

from gulpio2 import EncoderSettings, GulpDirectory, GulpIngestor
from gulpio2.adapters import GulpDirectoryAdapter, ImageFrames
from gulpio2.cli.main import gulp2
from gulpio2.errors import AdapterContractError
from gulpio2.sanity import check_directory
from gulpio2.testing import FrameAdapter, make_frames
from gulpio2.testing.adapters import AdapterTests


class Timed:
    """Frames with times, and a source."""

    time_base = Fraction(1, 25)

    def __init__(self, frames):
        self.frames = frames

    def __iter__(self):
        return iter(self.frames)

    def __len__(self):
        return len(self.frames)

    def stored(self):
        from gulpio2.types import StoredFrame

        for number, frame in enumerate(self.frames):
            yield StoredFrame(frame, pts=2 * number)

    def source_info(self):
        return {"codec": "h264"}


class Clips(FrameAdapter):
    """Items with times, labels and metainfo."""

    metainfo = {"task": "toy"}

    def label_mapping(self):
        return {"even": 0, "odd": 1, "never": 2}

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            number = item["meta"]["number"]
            meta = {"number": number, "label": ["even", "odd"][number % 2]}
            frames = make_frames(4, 48, 64, seed=number)
            yield {"id": item["id"], "meta": meta, "frames": Timed(frames)}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made") / "gulped"
    GulpIngestor(Clips(num_items=6, num_frames=4), folder, 2, 1).run()
    return folder


class TestGulpDirectory(AdapterTests):
    """The common tests."""

    @pytest.fixture
    def adapter(self, made):
        return GulpDirectoryAdapter(made, where="number < 4")


def test_a_part_has_all_that_the_items_have(made, tmp_path):
    adapter = GulpDirectoryAdapter(str(made), where="label == 'odd'")
    GulpIngestor(adapter, tmp_path / "part", 2, 1).run()
    with GulpDirectory(made) as whole, GulpDirectory(tmp_path / "part") as part:
        assert list(part.merged_meta_dict) == ["item1", "item3", "item5"]
        for id_ in part.merged_meta_dict:
            assert part.read_jpegs(id_) == whole.read_jpegs(id_)
            assert part.item(id_).meta == whole.item(id_).meta
            extras, before = part.item(id_).extras, whole.item(id_).extras
            assert (extras.pts, extras.time_base) == (before.pts, before.time_base)
            assert extras.source == before.source == {"codec": "h264"}
        assert part.metainfo == {"task": "toy"}
    labels = json.loads((tmp_path / "part" / "label2idx.json").read_text())
    assert labels == {"even": 0, "odd": 1, "never": 2}
    assert check_directory(tmp_path / "part", deep=True).ok


def test_smaller_frames_are_those_of_the_others_resized(made, tmp_path):
    adapter = GulpDirectoryAdapter(made, frame_size=24)
    encoder = EncoderSettings(95)
    GulpIngestor(adapter, tmp_path / "small", 100, 1, encoder=encoder).run()
    with GulpDirectory(made) as whole, GulpDirectory(tmp_path / "small") as small:
        assert len(small) == len(whole) == 6
        for id_ in whole.merged_meta_dict:
            frames = small.read_clip(id_)
            assert frames.shape == (4, 24, 32, 3)
            for frame, large in zip(frames, whole.read_clip(id_), strict=True):
                wanted = cv2.resize(large, (32, 24), interpolation=cv2.INTER_AREA)
                assert np.abs(frame.astype(int) - wanted).mean() < 4
            assert list(small.item(id_).extras.pts) == [0, 2, 4, 6]


def test_a_damaged_item_is_told_and_the_others_come(made, tmp_path):
    source = shutil.copytree(made, tmp_path / "damaged")
    data = bytearray((source / "data_0.gulp").read_bytes())
    data[200] ^= 255
    (source / "data_0.gulp").write_bytes(data)
    report = GulpIngestor(GulpDirectoryAdapter(source), tmp_path / "out", 2, 1).run()
    assert [failure.id for failure in report.failures] == ["item0"]
    assert report.items == 5
    (failure,) = report.failures
    assert failure.source == str(source / "data_0.gulp")
    assert GulpDirectoryAdapter(source).item_source(5) == str(source / "data_2.gulp")


def test_the_command_makes_a_part(made, tmp_path):
    words = ["ingest", "gulp-directory", str(made), str(tmp_path / "out"), "--where"]
    result = CliRunner().invoke(gulp2, [*words, "number > 2", "--frame-size", "24"])
    assert result.exit_code == 0, result.output
    with GulpDirectory(tmp_path / "out") as directory:
        assert list(directory.merged_meta_dict) == ["item3", "item4", "item5"]
        assert directory.item("item3").frame_shape == (24, 32, 3)
    refused = CliRunner().invoke(gulp2, [*words, "nosuch > 2"])
    assert refused.exit_code == 2
    assert "nosuch" in refused.stderr
    nothing = CliRunner().invoke(gulp2, [*words, "number > 99"])
    assert nothing.exit_code == 1
    missing = ["ingest", "gulp-directory", str(tmp_path / "no"), str(tmp_path / "o")]
    assert CliRunner().invoke(gulp2, missing).exit_code == 1


def test_images_may_be_read_from_anywhere(tmp_path, make_jpeg):
    """As from an archive."""
    files = {f"a/{n}.jpg": make_jpeg(tmp_path / f"{n}.jpg", 40 * n) for n in (1, 2)}
    frames = ImageFrames(files, read=lambda name: files[name].read_bytes())
    assert [round(frame.mean()) for frame in frames] == [40, 80]
    stored = [frame.image for frame in frames.stored()]
    assert stored == [path.read_bytes() for path in files.values()]
    views = ImageFrames(files, read=lambda name: memoryview(files[name].read_bytes()))
    assert [frame.image for frame in views.stored()] == stored
    nothing: Any = {}
    with pytest.raises(AdapterContractError, match="read gives a NoneType for 'a/1"):
        list(ImageFrames(files, read=nothing.get))


def test_a_part_of_what_is_unfinished_is_told_of(made, tmp_path, caplog):
    source = shutil.copytree(made, tmp_path / "unfinished")
    (source / "meta_1.gmeta").unlink()
    (source / "data_1.gulp").unlink()
    assert len(GulpDirectoryAdapter(source)) == 4
    (told,) = caplog.messages
    assert "data_1.gulp" in told


def test_a_second_condition_is_refused(made, tmp_path):
    words = ["--where", "number > 2", "--where", "number < 5"]
    source = ["ingest", "gulp-directory", str(made), str(tmp_path / "out")]
    for command in (source, ["ls", str(made)], ["delete", str(made)]):
        result = CliRunner().invoke(gulp2, [*command, *words])
        assert result.exit_code == 2
        assert "given 2 times, and one alone would count: join the" in result.stderr
    words = ["extract", str(made), "item1", "--frames", "0", "--frames", "1"]
    assert CliRunner().invoke(gulp2, words).exit_code == 2
    assert not (tmp_path / "out").exists()
