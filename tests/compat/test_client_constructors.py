"""Subclasses of the adapters with constructors and hooks, as written for 0.0.4.

The classes of 0.0.4 had no hooks, so programs copied a constructor and changed a line.
What the adapters have got since then must have a value without it.
"""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.adapters import (
    ActivitynetAdapter,
    Custom20BNCsvWebmAdapter,
    Custom20BNJsonVideoAdapter,
    KineticsAdapter,
    VideoFolderAdapter,
)

if TYPE_CHECKING:
    from collections.abc import Callable


class Templates(Custom20BNJsonVideoAdapter):
    """Labels without brackets, under a key of its own."""

    def __init__(self, json_file: str, folder: str, output_folder: str) -> None:
        self.json_file = json_file
        self.data = self.read_json(json_file)
        self.label_name = "what"
        self.output_folder = output_folder
        self.labels2idx = self.create_label2idx_dict(self.label_name)
        self.folder = folder
        self.shuffle = False
        self.frame_size = -1
        self.frame_rate = 8
        self.all_meta = self.get_meta()


class Clips(KineticsAdapter):
    """The clips of a list."""

    def __init__(self, json_file: str, folder: str) -> None:
        self.json_file = json_file
        self.json_storage = self.read_json(json_file)
        self.folder = folder
        self.set_video_storage()
        self.frame_size = -1


class Phases(ActivitynetAdapter):
    """Videos of one phase, whose folder the reading of frames puts before the name."""

    def __init__(self, json_file: str, folder: str) -> None:
        self.json_file = json_file
        self.json_storage = self.read_json(json_file)
        self.folder = folder
        self.set_video_storage("testing")
        self.frame_size = -1

    def get_bursted_frames(self, vid_file: Any) -> Any:
        """Join as 0.0.4 does, and take what the class itself gives."""
        assert os.path.exists(os.path.join(self.folder, vid_file))  # noqa: PTH110, PTH118  # as its clients write it
        return super().get_bursted_frames(vid_file)


class Folders(VideoFolderAdapter):
    """Videos of one ending."""

    def __init__(self, folder: str, output_folder: str) -> None:
        self.file_extensions = [".mp4"]
        self.data = self.parse_folder(folder)
        self.output_folder = output_folder
        self.label2idx = self.create_label2idx_dict()
        self.folder = folder
        self.shuffle = False
        self.frame_size = -1
        self.all_meta = self.get_meta()


class OtherNames(Custom20BNCsvWebmAdapter):
    """Videos of another ending, and labels that begin anew."""

    def get_single_video_file_path(self, folder_name: Any, format_: str = "") -> str:
        """Name the video of a row."""
        del format_
        return super().get_single_video_file_path(folder_name, "mp4")

    def check_if_label2idx_exists(self) -> bool:
        """Pass over the labels that are there."""
        return False


@pytest.fixture
def sources(
    tmp_path: Path, make_video: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Make videos and the files that list them, in the current folder."""
    make_video(tmp_path / "kinetics" / "run" / "abc_000001_000011.mp4")
    make_video(tmp_path / "folders" / "abc" / "abc.mp4")
    (tmp_path / "folders" / "abc" / "def.mp4").mkdir()
    for name, content in (
        ("rows", [{"id": "abc", "what": "run"}]),
        ("records", {"abc": {"label": "run"}}),
        ("phases", {"database": {n: {"subset": "testing"} for n in ("abc", "def")}}),
    ):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("sources")
@pytest.mark.parametrize("copied", [False, True], ids=["as it is", "pickled"])
@pytest.mark.parametrize(
    ("kind", "arguments", "id_"),
    [
        (Templates, ("rows.json", "folders", "out"), "abc"),
        (Clips, ("records.json", "kinetics"), "abc"),
        (Phases, ("phases.json", "folders/abc"), "abc"),
        (Folders, ("folders", "out"), "abc-abc.mp4"),
    ],
)
def test_an_adapter_with_a_constructor_of_0_0_4_is_ingested(
    kind, arguments, id_, copied
):
    adapter = kind(*arguments)
    if copied:
        adapter = pickle.loads(pickle.dumps(adapter))
    assert len(adapter) == 1
    GulpIngestor(adapter, "out", 1, 1)()
    directory = GulpDirectory("out")
    assert list(directory.merged_meta_dict) == [id_]
    assert len(directory[id_][0]) > 0


@pytest.mark.usefixtures("sources")
def test_the_hooks_of_the_20bn_adapters_are_called():
    Path("rows.csv").write_text("abc;walk\ndef;run\n")
    Path("out").mkdir()
    Path("out", "label2idx.json").write_text('{"walk": 7}')
    adapter = OtherNames("rows.csv", "folders/abc", "out")
    assert adapter.labels2idx == {"run": 0, "walk": 1}
    items = adapter.iter_data()
    assert len(next(items)["frames"]) > 0
    with pytest.raises(
        AssertionError, match=r"There is no video 'folders/abc/def\.mp4"
    ):
        next(items)
