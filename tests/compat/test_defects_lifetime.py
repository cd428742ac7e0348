"""Defects 14 to 17 of GulpIO2 0.0.4, the life of open files: each shown gone.

The numbers are those of ``docs/compatibility.md``. Nothing here needs the original.
"""

from __future__ import annotations

import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gulpio2 import GulpDirectory, errors
from tests.chunks import open_files
from tests.compat.folders import chunk_in

if TYPE_CHECKING:
    from collections.abc import Callable


# ------------------------------------------------------------------ 14
def test_defect_14_a_read_inside_an_iteration_and_nested_opens_are_fine(folder):
    directory = GulpDirectory(folder)
    seen = []
    for one in directory:
        for frames, meta in one:
            again, _ = directory[meta["of"]]
            np.testing.assert_array_equal(np.stack(again), np.stack(frames))
            for _, inner in one:
                seen.append((meta["of"], inner["of"]))
    assert len(seen) == 2 * 2 + 3 * 3
    first = directory.chunk_objs_lookup[0]
    with first.open("rb"):
        with first.open("rb"):
            assert len(first.read_frames("a")[0]) == 8
        assert len(first.read_frames("b")[0]) == 3
        assert len(list(first)) == 2
        assert len(first["a", 2:4][0]) == 2


def test_defect_14_threads_read_through_one_object(folder):
    directory = GulpDirectory(folder)
    expected = {i: [f.copy() for f in directory[i][0]] for i in ("a", "b", "0", "1")}

    def read(number: int) -> bool:
        id_ = list(expected)[number % 4]
        positions = [number % 2, -1, 0]
        frames, _ = directory[id_, positions]
        wanted = [expected[id_][p] for p in positions]
        return all(map(np.array_equal, frames, wanted))

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(read, range(800)))
    assert results == [True] * 800


# ------------------------------------------------------------------ 15
def test_defect_15_a_chunk_is_closed_after_an_exception_in_its_body(folder):
    chunk = chunk_in(folder)
    with pytest.raises(RuntimeError, match="mine"), chunk.open("rb"):  # noqa: PT012  # what raises is the block
        chunk.read_frames("a")
        raise RuntimeError("mine")
    assert getattr(chunk.fp, "closed", True)
    del chunk
    assert open_files(folder) == []


@pytest.mark.parametrize("flag", ["wb", "ab"])
@pytest.mark.parametrize("fault", ["body", "frame"])
def test_defect_15_a_failed_write_publishes_nothing(folder, chunk, grey, flag, fault):
    index = (folder / "meta_0.gmeta").read_bytes()
    before = np.stack(GulpDirectory(folder)["a"][0])
    refused = pytest.raises((RuntimeError, ValueError, TypeError, errors.GulpError))
    with refused, chunk.open(flag):
        chunk.append("new", {}, [grey(1)])
        if fault == "body":
            raise RuntimeError("mine")
        chunk.append("worse", {}, ["no frame"])
    assert (folder / "meta_0.gmeta").read_bytes() == index
    after = GulpDirectory(folder)
    assert list(after.merged_meta_dict) == ["a", "b", "0", "1", "2"]
    np.testing.assert_array_equal(np.stack(after["a"][0]), before)
    assert [n for n in os.listdir(folder) if "partial" in n] == []  # noqa: PTH208  # names alone
    with chunk.open("ab"):
        chunk.append("later", {}, [grey(2)])
    assert len(GulpDirectory(folder)["later"][0]) == 1
    np.testing.assert_array_equal(np.stack(GulpDirectory(folder)["a"][0]), before)


# ------------------------------------------------------------------ 16
READS: dict[str, Callable[[GulpDirectory], Any]] = {
    "nothing": lambda directory: None,
    "an item": lambda directory: directory["a"],
    "a clip": lambda directory: directory.read_clip("a"),
    "a chunk": lambda directory: list(next(directory.chunks())),
    "half a chunk": lambda directory: next(iter(next(directory.chunks()))),
}


@pytest.mark.parametrize("read", READS)
def test_defect_16_a_directory_is_pickled_after_any_read(folder, read):
    directory = GulpDirectory(folder)
    kept = READS[read](directory)
    for copy in (
        pickle.loads(pickle.dumps(directory)),
        pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(directory)))),
    ):
        assert list(copy.merged_meta_dict) == list(directory.merged_meta_dict)
        for id_ in copy.merged_meta_dict:
            for ours, theirs in zip(copy[id_][0], directory[id_][0], strict=True):
                np.testing.assert_array_equal(ours, theirs)
    del kept


# ------------------------------------------------------------------ 17
def test_defect_17_frames_appended_after_a_read_are_seen(folder, chunk, frame):
    with chunk.open("rb"):
        assert len(chunk.read_frames("b")[0]) == 3
    with chunk.open("ab"):
        chunk.append("b", {"of": "second"}, [frame(77)])
    with chunk.open("rb"):
        frames, meta = chunk.read_frames("b")
        assert (len(frames), meta) == (4, {"of": "b"})
        assert len(chunk["b", -1:][0]) == 1
    directory = GulpDirectory(folder)
    assert len(directory["b"][0]) == 4
    np.testing.assert_array_equal(directory["b"][0][3], frames[3])
