"""Small items that are written together."""

import os
from collections import OrderedDict

import numpy as np
import pytest
import simplejpeg

from gulpio2 import GulpIngestor
from gulpio2.adapters import ImageFolderAdapter
from gulpio2.appending import ChunkAppender
from gulpio2.errors import StorageError
from gulpio2.format.entry import verify_entry
from gulpio2.format.gmeta import load_gmeta
from gulpio2.ingest import task as tasks
from gulpio2.media.image_files import read_file
from gulpio2.storage.base import WRITTEN_AT_ONCE
from gulpio2.storage.local import LocalStore
from gulpio2.storage.local_writer import LocalWriter
from tests.faults.operations import content

JPEG = simplejpeg.encode_jpeg(np.full((8, 8, 3), 90, np.uint8))
OTHER = simplejpeg.encode_jpeg(np.full((8, 8, 3), 190, np.uint8))


@pytest.fixture
def store(tmp_path):
    return LocalStore(tmp_path)


def appender(store, told=None, **options):
    writer = store.create("data.gulp")
    note = None if told is None else lambda *counts: told.append(counts)
    return ChunkAppender(writer, OrderedDict(), None, on_frames=note, **options)


def test_nothing_is_written_before_the_flush(store):
    told: list[tuple[int, int]] = []
    chunk = appender(store, told, gather=True)
    chunk.append("a", {}, [JPEG])
    chunk.append("b", {}, [JPEG, JPEG])
    size = chunk.tell()
    assert (store.size("data.gulp"), told) == (0, [])
    assert size > 0
    chunk.flush()
    assert store.size("data.gulp") == chunk.tell() == size
    assert told == [(3, size)]


@pytest.mark.parametrize("gather", [False, True])
def test_an_item_that_could_not_be_told_of_is_cut_off(store, gather):
    told: list[int] = []

    def tell(num_frames: int, _: int) -> None:
        told.append(num_frames)
        raise ZeroDivisionError

    chunk = ChunkAppender(
        store.create("data.gulp"), OrderedDict(), None, on_frames=tell, gather=gather
    )
    many = [JPEG] * (1 + (1 << 16) // len(JPEG))  # more than wait to be written
    with pytest.raises(ZeroDivisionError):
        chunk.append("a", {}, many)
    assert len(told) == 1
    assert (store.size("data.gulp"), chunk.tell(), {**chunk.meta_dict}) == (0, 0, {})


def test_the_bytes_and_the_map_are_those_of_items_written_one_by_one(store, tmp_path):
    made = []
    for gather in (True, False):
        chunk = appender(store, gather=gather)
        for number in range(5):
            chunk.append(f"{number}", {"n": number}, [JPEG] * number)
        chunk.flush()
        if gather:
            for number in range(5):
                chunk.seal(f"{number}")
        made.append((store.read("data.gulp"), chunk.dump_map()))
        chunk.writer.close()
        store.remove("data.gulp")
    assert made[0] == made[1]
    for id_, entry in load_gmeta(made[0][1], where="map").items():
        verify_entry(id_, entry, where="map")


def test_what_is_written_while_more_comes_ends_at_a_whole_block(store):
    told: list[tuple[int, int]] = []
    chunk = appender(store, told, gather=True)
    sizes = []
    for number in range(400):
        chunk.append(f"{number}", {}, [JPEG, JPEG])
        sizes.append(store.size("data.gulp"))
    assert sizes[-1] > 1 << 16
    assert all(size % WRITTEN_AT_ONCE == 0 for size in sizes)
    chunk.flush()
    assert store.read("data.gulp") == (JPEG + b"\0" * (-len(JPEG) % 4)) * 800
    assert (sum(n for n, _ in told), sum(n for _, n in told)) == (800, chunk.tell())


def test_what_is_written_behind_something_else_ends_at_a_whole_block_too(tmp_path):
    (tmp_path / "data.gulp").write_bytes(bytes(40_000))
    writer = LocalWriter(tmp_path / "data.gulp", extend=True)
    chunk = ChunkAppender(writer, OrderedDict(), None, gather=True)
    sizes = set()
    for number in range(400):
        chunk.append(f"{number}", {}, [JPEG, JPEG])
        sizes.add(writer.tell())
    writer.close()
    assert len(sizes) > 2
    assert all(size % WRITTEN_AT_ONCE == 0 for size in sizes - {40_000})


def test_what_is_written_may_be_looked_at_for_longer(store, monkeypatch):
    """As by a profiler, which keeps a frame of the program for a while."""
    chunk = appender(store, gather=True)
    write, kept = chunk.writer.write, []

    def keep(data):
        kept.append(memoryview(data))
        write(data)

    monkeypatch.setattr(chunk.writer, "write", keep)
    for number in range(400):
        chunk.append(f"{number}", {}, [JPEG, JPEG])
    assert len(kept) > 1
    chunk.drop_last("399")
    chunk.flush()
    assert store.read("data.gulp") == (JPEG + b"\0" * (-len(JPEG) % 4)) * 798


def failing_after(num_frames):
    for _ in range(num_frames):
        yield OTHER
    raise ValueError("no more")


@pytest.mark.parametrize("num_frames", [0, 1, 1000])  # the last is more than a block
def test_an_item_that_fails_leaves_those_that_wait(store, num_frames):
    chunk = appender(store, gather=True)
    chunk.append("a", {}, [JPEG])
    before = chunk.tell()
    with pytest.raises(ValueError, match="no more"):
        chunk.append("b", {}, failing_after(num_frames))
    assert chunk.tell() == before
    assert list(chunk.meta_dict) == ["a"]
    chunk.append("c", {}, [JPEG])
    chunk.flush()
    assert store.read("data.gulp") == (JPEG + b"\0" * (-len(JPEG) % 4)) * 2


@pytest.mark.parametrize("size", [0, 1])  # the second has three zeros behind it
def test_nobody_is_told_of_a_frame_that_was_taken_back(tmp_path, size):
    (tmp_path / "data.gulp").write_bytes(bytes(size))
    told: list[int] = []
    writer = LocalWriter(tmp_path / "data.gulp", extend=True)
    chunk = ChunkAppender(
        writer,
        OrderedDict(),
        None,
        on_frames=lambda num_frames, _: told.append(num_frames),
        gather=True,
    )
    for _ in range(2):
        chunk.append("a", {}, [OTHER] * 3)
        chunk.drop_last("a")
    chunk.append("b", {}, [JPEG])
    chunk.flush()
    writer.close()
    assert told == [1]
    stored = (tmp_path / "data.gulp").read_bytes()
    assert stored == bytes(-(-size // 4) * 4) + JPEG + b"\0" * (-len(JPEG) % 4)


def test_a_write_that_fails_half_way_is_taken_back(store, monkeypatch):
    chunk = appender(store, gather=True)
    chunk.append("a", {}, [JPEG])
    write = os.write

    def half(file, data):
        monkeypatch.setattr(os, "write", full)
        return write(file, data[: len(data) // 2])

    def full(_file, _data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", half)
    with pytest.raises(StorageError):
        chunk.flush()
    assert store.size("data.gulp") == 0
    monkeypatch.setattr(os, "write", write)
    chunk.flush()
    assert store.size("data.gulp") == chunk.tell()


def test_a_sealed_entry_that_grows_is_made_anew(store):
    chunk = appender(store, gather=True)
    chunk.append("a", {}, [JPEG])
    first = chunk.seal("a")
    chunk.append("a", {}, [JPEG])
    assert chunk.seal("a") != first
    assert chunk.dump_map().decode() == f'{{"a": {chunk.seal("a")}}}'


def test_the_directory_is_the_same_whenever_items_are_written(tmp_path, monkeypatch):
    folder = tmp_path / "images" / "label"
    folder.mkdir(parents=True)
    for number in range(40):
        (folder / f"{number}.jpg").write_bytes(JPEG)
    (folder / "20.jpg").write_bytes(JPEG[:-9])
    made = []
    for seconds in (0.0, 60.0):
        monkeypatch.setattr(tasks, "_GATHERED_SECONDS", seconds)
        out = tmp_path / f"out{seconds}"
        adapter = ImageFolderAdapter(tmp_path / "images", out)
        report = GulpIngestor(adapter, out, 15, 1).run()
        assert (report.items, len(report.failures)) == (39, 1)
        made.append(content(out))
    assert made[0] == made[1]


def test_a_file_that_comes_in_pieces_is_read_whole(tmp_path, monkeypatch):
    path = tmp_path / "image.jpg"
    path.write_bytes(JPEG)
    read = os.read
    monkeypatch.setattr(os, "read", lambda file, size: read(file, min(size, 100)))
    assert read_file(path) == JPEG
