"""An index beside the maps: damaged, torn or crafted, it gives nothing wrong.

What no byte of the file itself may do is in ``tests/storage/index``; here it lies in a
directory that is checked, verified, cut off from power and read by many.
"""

import logging
import os
import random
import shutil

import numpy as np
import pytest

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.errors import GulpError
from gulpio2.sanity import check_directory
from gulpio2.storage.index import opening
from gulpio2.storage.index.keeping import build_index
from gulpio2.testing import make_frames, make_gulp_directory
from tests.faults.killed import is_killed
from tests.faults.operations import content
from tests.faults.power import record_operations, state_after_cut

LONG = os.environ.get("GULPIO2_FAULTS") == "long"


@pytest.fixture
def folder(tmp_path, caplog):
    caplog.set_level(logging.ERROR, "gulpio2")
    make_gulp_directory(tmp_path / "gulped", num_items=4, num_frames=3).close()
    build_index(tmp_path / "gulped")
    return tmp_path / "gulped"


def seen(folder, **options):
    """Give everything that can be read: pixels, metadata and the table."""
    with GulpDirectory(folder, indexed=True, **options) as directory:
        clips = {
            id_: (directory.read_clip(id_).tobytes(), directory.item(id_).meta)
            for id_ in directory.chunk_lookup
        }
        rows = directory.table.select(["id", "chunk", "num_frames", "number"])
        return clips, rows.to_pylist()


def places_in(size, sample):
    return range(size) if LONG else random.Random(3).sample(range(size), sample)


def test_the_deep_check_has_nothing_against_a_sound_index(folder):
    report = check_directory(folder, deep=True)
    assert (report.problems, report.notes) == ([], [])


def test_a_changed_byte_of_the_index_is_named_and_gives_nothing_wrong(
    folder, monkeypatch
):
    monkeypatch.setattr(opening, "_write", lambda *_: False)
    path = folder / "index.arrow"
    data, right = path.read_bytes(), seen(folder)
    rng = random.Random(1)
    for at in places_in(len(data), 150):
        damaged = bytearray(data)
        damaged[at] ^= rng.choice([1, 16, 128, 255])
        path.write_bytes(damaged)
        problems = check_directory(folder, deep=True).problems
        assert {problem.file for problem in problems} == {"index.arrow"}, at
        assert seen(folder) == seen(folder, verify=True) == right, at


def test_the_deep_check_names_an_index_that_was_cut(folder):
    path = folder / "index.arrow"
    data = path.read_bytes()
    for length in places_in(len(data), 20):
        path.write_bytes(data[:length])
        (problem,) = check_directory(folder, deep=True).problems
        assert (problem.code, problem.file) == ("bad-index", "index.arrow"), length


def test_an_index_of_earlier_maps_is_a_note(folder):
    append(folder, 9)
    report = check_directory(folder, deep=True)
    assert report.problems == []
    (note,) = report.notes
    assert (note.code, note.file) == ("stale-index", "index.arrow")


def append(folder, number):
    """Add an item to the first chunk."""
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open("ab"):
        chunk.append(f"item{number}", {"number": number}, make_frames(3, seed=number))


@pytest.mark.parametrize("noticed", [False, True], ids=["same time", "later time"])
@pytest.mark.parametrize("name", ["meta_0.gmeta", "meta_1.gmeta", "data_0.gulp"])
def test_a_changed_byte_beside_a_fresh_index_is_never_read_as_data(
    folder, monkeypatch, name, noticed
):
    # A byte that changes on a disk does not change the file's time.
    monkeypatch.setattr(opening, "_write", lambda *_: False)
    with GulpDirectory(folder) as directory:
        right = {
            id_: (directory.read_clip(id_), directory.item(id_).meta)
            for id_ in directory.chunk_lookup
        }
    path = folder / name
    data, state = path.read_bytes(), path.stat()
    rng = random.Random(2)
    for at in places_in(len(data), 60):
        damaged = bytearray(data)
        damaged[at] ^= rng.choice([1, 16, 128, 255])
        path.write_bytes(damaged)
        if not noticed:
            os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
        try:
            directory = GulpDirectory(folder, indexed=True, verify=True)
            ids = list(directory.chunk_lookup)
        except GulpError:
            continue
        with directory:
            for id_ in ids:
                try:
                    clip, meta = directory.read_clip(id_), directory.item(id_).meta
                except GulpError:
                    continue
                assert id_ in right, at
                assert np.array_equal(clip, right[id_][0]), at
                assert meta == right[id_][1], at


def test_after_a_loss_of_power_the_index_gives_what_the_maps_say(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    whole, cut_off = tmp_path / "whole", tmp_path / "cut"
    make_gulp_directory(whole, num_items=4, num_frames=2).close()
    build_index(whole)
    with record_operations(whole) as recording:
        append(whole, 7)
        build_index(whole)
        append(whole, 8)
        build_index(whole)
    rng = random.Random(4)
    total = len(recording.operations)
    cuts = [n for n in range(total + 1) for _ in range(12)]
    for cut in cuts if LONG else rng.sample(cuts, 60):
        keep, page = rng.choice([0, 0.1, 0.5, 0.9, 1]), rng.choice([512, 4096])
        state = state_after_cut(recording, cut, rng, keep=keep, page=page)
        shutil.rmtree(cut_off, ignore_errors=True)
        cut_off.mkdir()
        for name, data in state.items():
            (cut_off / name).write_bytes(data)
        assert_same_with_and_without(cut_off)


def test_killed_at_every_operation_of_writing_it(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda fd: None)
    make_gulp_directory(tmp_path / "begun", num_items=4, num_frames=2).close()
    build_index(tmp_path / "begun")
    append(tmp_path / "begun", 7)
    for number in range(1, 100):
        folder = tmp_path / str(number)
        shutil.copytree(tmp_path / "begun", folder)
        came_so_far = is_killed(number, build_index, folder)
        assert_same_with_and_without(folder)
        build_index(folder)
        assert not [name for name in content(folder) if name.endswith(".partial")]
        if not came_so_far:
            break
    assert number > 4


def assert_same_with_and_without(folder):
    with GulpDirectory(folder, indexed=False) as plain:
        expected = {
            id_: (plain.read_jpegs(id_), plain.item(id_).meta)
            for id_ in plain.chunk_lookup
        }
    with GulpDirectory(folder, indexed=True) as directory:
        assert {
            id_: (directory.read_jpegs(id_), directory.item(id_).meta)
            for id_ in directory.chunk_lookup
        } == expected
