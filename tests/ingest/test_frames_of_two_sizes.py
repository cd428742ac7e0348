"""Items whose frames differ in size: a run stores them, and tells of the first."""

import logging
from itertools import count

import cv2
import pytest

from gulpio2 import GulpChunk, GulpDirectory, GulpIngestor, appending
from gulpio2.media.images import ImageFrames
from gulpio2.testing import FrameAdapter, make_frames


class Folders(FrameAdapter):
    """Three items of pictures, the second of two sizes, and one of one picture."""

    def __init__(self, folder, ending):
        super().__init__(num_items=4)
        self.folder, self.ending = folder, ending
        sizes = [(24, 32)] * 3, [(24, 32)] * 2 + [(24, 18)], [(16, 16)] * 3, [(9, 9)]
        for number, item in enumerate(sizes):
            for frame, size in enumerate(item):
                path = str(folder / f"{number}-{frame}{ending}")
                cv2.imwrite(path, make_frames(1, *size)[0])

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            number = item["id"].removeprefix("item")
            paths = sorted(self.folder.glob(f"{number}-*{self.ending}"))
            yield {**item, "frames": ImageFrames(paths)}


@pytest.mark.parametrize("ending", [".jpg", ".png"])
def test_an_item_of_two_sizes_is_stored_and_told(tmp_path, caplog, monkeypatch, ending):
    monkeypatch.setattr(appending, "_items_of_sizes", count(1))
    source = tmp_path / "source"
    source.mkdir()
    adapter = Folders(source, ending)
    with caplog.at_level(logging.WARNING, "gulpio2"):
        GulpIngestor(adapter, tmp_path / "out", 2, 1)()
    told = [record.getMessage() for record in caplog.records]
    text = "item 'item1' has frames of 2 sizes (width x height): frame 0 is 32x24, "
    assert [line.startswith(f"{text}frame 2 18x24: ") for line in told] == [True]
    with GulpDirectory(tmp_path / "out") as directory:
        frames, _ = directory["item1", :]
        assert [frame.shape[:2] for frame in frames] == [(24, 32), (24, 32), (24, 18)]


def test_of_many_such_items_the_first_are_told(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(appending, "_items_of_sizes", count(1))
    frames = make_frames(1) + make_frames(1, 9, 9)
    for number in range(2):
        data, meta = (tmp_path / f"{kind}_{number}" for kind in ("data", "meta"))
        chunk = GulpChunk(data, meta)
        with chunk.open("wb"):
            for item in range(4):
                chunk.append(f"{number}-{item}", {}, frames)
    told = [record.getMessage() for record in caplog.records]
    assert [line[:10] for line in told] == ["item '0-0'", "item '0-1'", "item '0-2'"]
    ends = [line.endswith("`gulp2 check --deep` names them all") for line in told]
    assert ends == [False, False, True]
