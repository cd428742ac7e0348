"""Maps that are read while an ingest goes on."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from gulpio2 import GulpChunk, GulpIngestor
from gulpio2.storage.index import ahead, composing, opening, replacing
from gulpio2.storage.index.ahead import MapsAhead
from gulpio2.storage.index.keeping import build_index, check_index, refresh_index
from gulpio2.testing import FrameAdapter, make_frames
from tests.storage.index.conftest import write_chunks

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.usefixtures("all_are_large")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write five items in three chunks, some time ago."""
    folder = write_chunks(tmp_path / "out")
    settle(folder)
    return folder


def settle(folder: Path) -> None:
    earlier = time.time_ns() - 3_000_000_000
    for path in folder.glob("*.gmeta"):
        os.utime(path, ns=(earlier, earlier))


def read_all(folder: Path) -> MapsAhead:
    maps = MapsAhead(str(folder))
    for number in (2, 0, 1):
        maps.add(number)
    while maps.read_next():
        pass
    return maps


@pytest.mark.parametrize("large", [0, 1 << 20])
def test_maps_that_were_read_are_not_read_again(folder, monkeypatch, large):
    monkeypatch.setattr(ahead, "_LARGE", large)
    build_index(folder)
    wanted = (folder / "index.arrow").read_bytes()
    (folder / "index.arrow").unlink()
    maps = read_all(folder)
    assert sorted(maps.parts) == [0, 1, 2]

    def refuse(*_: object) -> None:
        raise AssertionError("a map is read once more")

    monkeypatch.setattr(composing, "read_map", refuse)
    refresh_index(folder, maps.parts)
    assert maps.parts == {}  # their memory is free again
    assert (folder / "index.arrow").read_bytes() == wanted
    monkeypatch.undo()
    assert check_index(folder) == []


def test_a_map_that_has_changed_since_is_read_again(folder):
    maps = read_all(folder)
    chunk = GulpChunk(folder / "data_1.gulp", folder / "meta_1.gmeta")
    with chunk.open("ab"):
        chunk.append("more", {}, make_frames(1, 16, 24))
    refresh_index(folder, maps.parts)
    assert check_index(folder) == []


def test_a_map_that_is_gone_or_damaged_is_left_for_the_end(folder):
    (folder / "meta_0.gmeta").write_bytes(b"{")
    settle(folder)
    maps = MapsAhead(str(folder))
    for number in (0, 1, 2, 7):
        maps.add(number)
    (folder / "meta_1.gmeta").unlink()
    assert [maps.read_next() for _ in range(4)] == [True, True, True, False]
    assert list(maps.parts) == [2]


def test_a_map_that_was_written_just_now_is_waited_for(folder):
    maps = MapsAhead(str(folder))
    maps.add(0)
    # A file system without fractions of a second: what is written in the same one has
    # the same time.
    second = 1_000_000_000
    while time.time_ns() % second > second // 2:
        time.sleep(0.05)
    now = time.time_ns() // second * second
    os.utime(folder / "meta_0.gmeta", ns=(now, now))
    assert not maps.read_next()
    assert maps.parts == {}
    while not maps.read_next():
        assert time.time_ns() < now + 10 * second
    assert time.time_ns() >= now + second
    assert list(maps.parts) == [0]


def test_small_maps_are_left_alone(folder, monkeypatch):
    monkeypatch.setattr(opening, "SMALL_MAPS_BYTES", 1 << 20)
    assert read_all(folder).parts == {}


class SlowAdapter(FrameAdapter):
    """Takes its time, so that maps can be read meanwhile."""

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            time.sleep(0.05)
            yield item


@pytest.mark.parametrize("chunk_bytes", [None, 4000])
def test_an_ingest_reads_maps_while_its_workers_are_busy(
    tmp_path, monkeypatch, chunk_bytes
):
    taken: list[set[int]] = []
    compose = composing.compose

    def watched(*args, ahead, **options):
        taken.append(set(ahead))
        return compose(*args, ahead=ahead, **options)

    monkeypatch.setattr(replacing, "compose", watched)
    adapter = SlowAdapter(num_items=24)
    report = GulpIngestor(
        adapter, tmp_path / "out", 4, 2, chunk_bytes=chunk_bytes
    ).run()
    (numbers,) = taken
    assert {report.chunks[0]} <= numbers <= set(report.chunks)
    assert check_index(tmp_path / "out") == []
