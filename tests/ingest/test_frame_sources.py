"""What sources of frames say of themselves, and when it is asked for."""

from __future__ import annotations

import errno
import json
import re
import zipfile
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.adapters import AbstractDatasetAdapter, DeferredFrames
from gulpio2.codecs.jpeg import EncoderSettings, encode_frame
from gulpio2.errors import StorageError
from gulpio2.ingest.estimate import estimate
from gulpio2.ingest.survey import survey
from gulpio2.sanity import check_directory
from gulpio2.testing import make_frames
from gulpio2.types import StoredFrame

NUM_FRAMES = 2


class Source:
    """A source of somebody's own, which says what it is told to."""

    def __init__(self, *, pts=(0, 40), time_base=Fraction(1, 1000), info=None):
        self.pts = pts
        self._time_base = time_base
        self.info = info

    @property
    def time_base(self) -> Any:
        if isinstance(self._time_base, Exception):
            raise self._time_base
        return self._time_base

    def __iter__(self):
        return (frame.image for frame in self.stored())

    def __len__(self):
        return NUM_FRAMES

    def stored(self):
        frames = make_frames(NUM_FRAMES, 16, 24)
        return (StoredFrame(f, t) for f, t in zip(frames, self.pts, strict=True))

    def source_info(self) -> Any:
        if isinstance(self.info, Exception):
            raise self.info
        return self.info or {}


class Sources(AbstractDatasetAdapter):
    """Three items, of which the one in the middle has frames that are given."""

    def __init__(self, frames, *, list_ids=True):
        self.frames = frames
        self.list_ids = list_ids

    def __len__(self):
        return 3

    def iter_data(self, slice_element=None):
        for n in range(3)[slice_element or slice(None)]:
            frames = self.frames if n == 1 else Source()
            yield {"id": f"i{n}", "meta": {}, "frames": frames}

    def item_ids(self):
        return [f"i{n}" for n in range(3)] if self.list_ids else None


BAD = [
    ({"pts": (0, 33.3)}, "frame 1: its pts is 33.3; it must be a whole number"),
    ({"pts": (0, Fraction(1, 2))}, r"frame 1: its pts is Fraction\(1, 2\)"),
    ({"pts": (True, 2)}, "frame 0: its pts is True"),
    ({"pts": (np.True_, 2)}, "frame 0: its pts is .*True"),
    ({"pts": ("0", "1")}, "frame 0: its pts is '0'"),
    ({"time_base": 0.001}, "the time_base of its frames is 0.001; it must be"),
    ({"time_base": (1, 1000)}, r"the time_base of its frames is \(1, 1000\)"),
    ({"time_base": Fraction(0)}, r"the time_base of its frames is Fraction\(0, 1\)"),
    ({"time_base": Decimal("0.001")}, "the time_base of its frames is Decimal"),
    ({"info": {"path": Path("a.mp4")}}, r"the source_info\(\) of item 'i1'"),
    ({"info": OSError(errno.EIO, "stat failed")}, "stat failed"),
    ({"time_base": OSError("no clock")}, "no clock"),
    (
        {"info": StorageError(errno.EIO, "the disk")},
        "the source cannot be read",
    ),
]


@pytest.mark.parametrize(("options", "told"), BAD, ids=str)
def test_what_cannot_be_stored_of_a_source_costs_its_item_and_no_other(
    tmp_path, options, told
):
    files = []
    for number, (list_ids, workers) in enumerate([(True, 1), (True, 2), (False, 1)]):
        folder = tmp_path / str(number)
        adapter = Sources(Source(**options), list_ids=list_ids)
        report = GulpIngestor(adapter, folder, 5, workers).run()
        (failure,) = report.failures
        assert failure.position == 1
        assert (report.items, report.frames) == (2, 2 * NUM_FRAMES)
        assert re.search(told, failure.message)
        with GulpDirectory(folder) as directory:
            assert list(directory.merged_meta_dict) == ["i0", "i2"]
        found = check_directory(folder, deep=True)
        assert found.ok, found.problems
        files.append((folder / "data_0.gulp").read_bytes())
    assert len({*files}) == 1


def test_numbers_of_numpy_are_taken_for_what_they_are(tmp_path):
    source = Source(
        pts=np.array([0, 40], np.int64),
        time_base=Fraction(1, 1000),
        info={"width": np.int32(24)},
    )
    report = GulpIngestor(Sources(source), tmp_path, 5, 1).run()
    assert report.failures == []
    with GulpDirectory(tmp_path) as directory:
        assert directory.item("i1").extras.pts == (0, 40)
        assert directory.item("i1").extras.source == {"width": 24}
    assert check_directory(tmp_path, deep=True).ok


def no_source() -> Any:
    """Give a list of frames."""
    return [*make_frames(NUM_FRAMES)]


class OfArrays(Source):
    """A source that gives arrays where it is asked for frames with their times."""

    def stored(self):
        return iter(make_frames(NUM_FRAMES, 16, 24))


@pytest.mark.parametrize(
    ("frames", "told"),
    [
        (DeferredFrames(no_source), "found for a DeferredFrames is a list"),
        (OfArrays(), r"OfArrays.stored\(\) gives a ndarray; it must give a Stored"),
    ],
    ids=["deferred", "stored"],
)
def test_what_is_no_source_is_told_with_what_to_give(tmp_path, frames, told):
    report = GulpIngestor(Sources(frames), tmp_path, 5, 1).run()
    assert re.search(told, report.failures[0].message)


def test_bytes_behind_the_end_of_a_jpeg_are_told(tmp_path):
    jpeg = encode_frame(make_frames(1)[0], EncoderSettings())
    for more, told in ((bytes(37), "FF D9, which is 37 bytes before"), (None, "FF D9")):
        frames = [jpeg[:-9]] if more is None else [jpeg + more]
        report = GulpIngestor(Sources(frames), tmp_path / str(more), 5, 1).run()
        assert report.failures[0].message.endswith(told)


class OfArchive(AbstractDatasetAdapter):
    """Images of an archive that is open while its items are given."""

    def __init__(self, archive):
        self.archive = archive
        with zipfile.ZipFile(archive) as opened:
            self.names = sorted(opened.namelist())

    def __len__(self):
        return len(self.names)

    def item_ids(self):
        return self.names

    def iter_data(self, slice_element=None):
        with zipfile.ZipFile(self.archive) as opened:
            for name in self.names[slice_element or slice(None)]:
                frames = (opened.read(each) for each in [name])
                yield {"id": name, "meta": {}, "frames": frames}


def test_a_look_ahead_takes_the_frames_while_the_adapter_waits(tmp_path):
    jpeg = encode_frame(make_frames(1)[0], EncoderSettings())
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for number in range(30):
            archive.writestr(f"{number}.jpg", jpeg)
    adapter = OfArchive(tmp_path / "a.zip")
    found = survey(adapter, EncoderSettings())
    assert found.oddities == ()
    assert found.frames == 30
    assert estimate(adapter, EncoderSettings()).frames == pytest.approx(30)
    report = GulpIngestor(adapter, tmp_path / "out", 10, 1).run()
    assert (report.items, report.failures) == (30, [])


class Late(AbstractDatasetAdapter):
    """Metadata of which a part is known once the frames have been taken."""

    def __init__(self, *, list_ids=False, passed_over=None):
        self.list_ids = list_ids
        self.passed_over = passed_over

    def __len__(self):
        return 10

    def item_ids(self):
        return [f"i{n}" for n in range(10)] if self.list_ids else None

    def iter_data(self, slice_element=None):
        for n in range(10)[slice_element or slice(None)]:
            if n == self.passed_over:
                continue
            meta = {"n": n, "late": None}
            yield {"id": f"i{n}", "meta": meta, "frames": make_frames(2, 16, 24)}
            meta["late"] = n


@pytest.mark.parametrize("num_workers", [1, 2])
@pytest.mark.parametrize("list_ids", [True, False], ids=["listed", "unlisted"])
@pytest.mark.parametrize("chunk_bytes", [None, 2000, 1])
def test_metadata_may_be_completed_until_the_next_item_comes(
    tmp_path, num_workers, list_ids, chunk_bytes
):
    adapter = Late(list_ids=list_ids, passed_over=1 if list_ids else None)
    GulpIngestor(adapter, tmp_path, 4, num_workers, chunk_bytes=chunk_bytes).run()
    with GulpDirectory(tmp_path) as directory:
        metas = [directory.item(id_).meta for id_ in directory.merged_meta_dict]
        num_chunks = directory.num_chunks
    assert [meta["late"] for meta in metas] == [meta["n"] for meta in metas]
    assert len(metas) == (9 if list_ids else 10)
    assert (num_chunks > 3) == (chunk_bytes is not None)


def test_a_failure_of_a_task_that_is_done_again_is_told_once(tmp_path):
    ids = ["a", "b", "a", None]

    class Repeating(Late):
        def __len__(self):
            return len(ids)

        def iter_data(self, slice_element=None):
            for id_ in ids[slice_element or slice(None)]:
                if id_ is None:
                    raise ValueError("broken")
                yield {"id": id_, "meta": {}, "frames": make_frames(1)}

    seen: list[Any] = []
    report = GulpIngestor(
        Repeating(), tmp_path, 2, 1, on_duplicate="skip", on_failure=seen.append
    ).run()
    assert seen == report.failures
    (line,) = (tmp_path / "failures.jsonl").read_text().splitlines()
    assert json.loads(line)["position"] == 3


class Clearing(AbstractDatasetAdapter):
    """It puts each item's frames into a folder, and removes that behind it."""

    def __init__(self, folder):
        self.folder = folder

    def __len__(self):
        return 60

    def iter_data(self, slice_element=None):
        for n in range(60)[slice_element or slice(None)]:
            made = self.folder / f"{n}"
            made.mkdir()
            frames = (f for f in make_frames(2, 16, 24) if made.exists())
            yield {"id": f"i{n}", "meta": {}, "frames": frames}
            made.rmdir()


def test_an_adapter_that_is_looked_at_may_clear_away_what_it_made(tmp_path):
    (tmp_path / "made").mkdir()
    adapter = Clearing(tmp_path / "made")
    assert survey(adapter, EncoderSettings()).frames == 120
    assert estimate(adapter, EncoderSettings()).frames == pytest.approx(120)
    assert list((tmp_path / "made").iterdir()) == []


class Plain(NamedTuple):
    """What has the attributes of a `StoredFrame`."""

    image: Any
    pts: Any


class Duck(Source):
    """A source that gives its own frames, by an iterator that has to be closed."""

    closed = 0

    def stored(self):
        try:
            for frame in super().stored():
                yield Plain(frame.image, frame.pts)
        finally:
            self.closed += 1


def test_frames_are_taken_by_what_they_have_and_their_iterator_is_closed(tmp_path):
    duck = Duck()
    report = GulpIngestor(Sources(duck), tmp_path / "good", 5, 1).run()
    assert (report.failures, duck.closed) == ([], 1)
    with GulpDirectory(tmp_path / "good") as directory:
        assert directory.item("i1").extras.pts == (0, 40)
    bad = Duck(pts=(0, "x"))
    assert GulpIngestor(Sources(bad), tmp_path / "bad", 5, 1).run().failures
    assert bad.closed == 1


@pytest.mark.parametrize("pts", [(0.0, 0.04), (True, False), ("a", None)], ids=str)
def test_without_a_time_base_there_are_no_times_to_be_whole(tmp_path, pts):
    frames: Any = [
        StoredFrame(frame, time)
        for frame, time in zip(make_frames(2, 16, 24), pts, strict=True)
    ]
    for number, given in enumerate((frames, Source(pts=pts, time_base=None))):
        folder = tmp_path / str(number)
        assert GulpIngestor(Sources(given), folder, 5, 1).run().failures == []
        with GulpDirectory(folder) as directory:
            assert directory.item("i1").extras.pts == ()
            assert len(directory.item("i1").extras.crc32) == 2
