"""Defects 14 to 17 of GulpIO2 0.0.4, the life of open files: each shown gone.

The numbers are those of ``docs/compatibility.md``. Nothing here needs the original.
"""

from __future__ import annotations

import gc
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gulpio2 import GulpDirectory, errors
from tests.compat.folders import chunk_in

if TYPE_CHECKING:
    from collections.abc import Callable

has_proc = pytest.mark.skipif(
    not Path("/proc/self/fd").is_dir(), reason="needs /proc to see open files"
)


def open_files(folder: Path) -> list[str]:
    """Name the files below a folder that this process holds open."""
    gc.collect()
    found = []
    for link in Path("/proc/self/fd").iterdir():
        try:
            target = os.readlink(link)  # noqa: PTH115  the link may be no path
        except OSError:
            continue
        if target.startswith(str(folder)):
            found.append(target)
    return found


def is_closed(chunk: Any) -> bool:
    """Tell whether a chunk's own file is closed."""
    return chunk.fp is None or bool(chunk.fp.closed)


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


def test_defect_14_threads_share_an_open_chunk(chunk):
    with chunk.open("rb"):
        expected = [frame.copy() for frame in chunk.read_frames("a")[0]]
        with ThreadPoolExecutor(4) as pool:
            read = pool.map(lambda k: chunk["a", [k % 8]][0][0], range(200))
            for k, frame in enumerate(read):
                np.testing.assert_array_equal(frame, expected[k % 8])


# ------------------------------------------------------------------ 15
@has_proc
def test_defect_15_a_chunk_is_closed_after_an_exception_in_its_body(folder):
    chunk = chunk_in(folder)
    with pytest.raises(RuntimeError, match="mine"), chunk.open("rb"):  # noqa: PT012
        chunk.read_frames("a")
        raise RuntimeError("mine")
    assert is_closed(chunk)
    del chunk
    assert open_files(folder) == []


@has_proc
@pytest.mark.parametrize("selector", [[99], [0, -9], np.array([8])])
def test_defect_15_no_file_stays_open_after_a_failed_read(folder, selector):
    with GulpDirectory(folder) as directory:
        with pytest.raises(IndexError):
            directory["a", selector]
        with pytest.raises(KeyError):
            directory["nobody"]
    assert open_files(folder) == []


@has_proc
def test_defect_15_an_abandoned_iteration_closes_its_file(folder):
    chunk = chunk_in(folder)
    iterator: Any = chunk.iter_all()
    next(iterator)
    iterator.close()
    abandoned = iter(chunk)
    next(abandoned)
    del abandoned, iterator
    assert is_closed(chunk)
    del chunk
    assert open_files(folder) == []


@has_proc
def test_defect_15_nothing_stays_open_when_a_directory_is_dropped(folder):
    directory = GulpDirectory(folder)
    directory["a"]
    directory[0]
    del directory
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
    assert [n for n in os.listdir(folder) if "partial" in n] == []  # noqa: PTH208
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


def test_defect_16_a_chunk_is_pickled_while_it_is_open(chunk):
    with chunk.open("rb"):
        expected = np.stack(chunk["a"][0])
        copy = pickle.loads(pickle.dumps(chunk))
    with copy.open("rb"):
        np.testing.assert_array_equal(np.stack(copy["a"][0]), expected)


def test_defect_16_a_pickle_does_not_hold_frames(make_directory):
    noise = np.random.default_rng(0).integers(255, size=(128, 128, 3), dtype=np.uint8)
    folder = make_directory({"a": [noise] * 20})
    directory = GulpDirectory(folder)
    directory.read_clip("a")
    directory["a"]
    assert len(pickle.dumps(directory)) < 10_000


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
