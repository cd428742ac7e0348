"""A chunk that is written anew beside an index of which a row is damaged."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.errors import ItemNotFoundError, MapChangedError, MetaFileError
from gulpio2.storage.index.file import map_index, write_index
from gulpio2.storage.index.keeping import build_index
from gulpio2.storage.local import LocalStore

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

LEVELS = (("a", 0), ("b", 100), ("c", 200))


def write(folder: Path, levels: Iterable[tuple[str, int]]) -> None:
    """Write a chunk without checksums, as of GulpIO2, with frames of equal lengths."""
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open("wb"):
        for id_, level in levels:
            frame = np.full((16, 16, 3), level, np.uint8)
            chunk.append(id_, {"level": level}, [frame, frame])
    entries = json.loads((folder / "meta_0.gmeta").read_text())
    for entry in entries.values():
        del entry["gulp2"]
    (folder / "meta_0.gmeta").write_text(json.dumps(entries))


def damage(folder: Path, row: int) -> None:
    """Change an offset of one item in the index."""
    content = map_index(str(folder / "index.arrow"))
    offsets = content.columns.frame_offset.copy()
    offsets[2 * row + 1] ^= 8
    columns = replace(content.columns, frame_offset=offsets)
    write_index(LocalStore(folder), columns, content.lookup, content.chunks)


def level_of(source: GulpDirectory | GulpChunk, id_: str) -> int:
    """Read an item, and require that frames and metadata belong together."""
    frames, meta = source.read_frames(id_)
    assert [round(int(frame[0, 0, 0]), -1) for frame in frames] == [meta["level"]] * 2
    return int(meta["level"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write three items and an index whose first row is damaged."""
    write(tmp_path, LEVELS)
    build_index(tmp_path)
    damage(tmp_path, 0)
    return tmp_path


def test_frames_that_nothing_is_left_to_compare_with_are_refused_once(folder):
    directory = GulpDirectory(folder, indexed=True)
    write(folder, LEVELS[::-1])
    with pytest.raises(MapChangedError, match="index made anew meanwhile"):
        directory.read_frames("c")
    assert [level_of(directory, id_) for id_ in "cab"] == [200, 0, 100]


@pytest.mark.parametrize("others", ["xy", "c"])
def test_items_that_are_there_no_more_are_no_missing_keys(folder, others):
    directory = GulpDirectory(folder, indexed=True)
    write(folder, [(id_, 30) for id_ in others])
    with pytest.raises(MapChangedError, match="gulp"):
        directory.read_frames("c")
    if others == "c":
        assert level_of(directory, "c") == 30
    else:
        with pytest.raises(ItemNotFoundError):
            directory.read_frames("c")


@pytest.mark.parametrize("levels", [LEVELS[::-1], (("x", 30),)])
def test_a_chunk_that_outlives_its_directory_gives_no_frames_of_others(folder, levels):
    chunk = GulpDirectory(folder, indexed=True).chunk_objs_lookup[0]
    write(folder, levels)
    with pytest.raises(MetaFileError, match="written anew since its map was read"):
        level_of(chunk, "c")


@pytest.mark.parametrize("levels", [LEVELS[::-1], LEVELS[1:]], ids=["order", "gone"])
@pytest.mark.parametrize("is_read", [True, False])
@pytest.mark.parametrize("verb", ["read_frames", "read_clip", "read_jpegs"])
def test_an_item_found_before_closing_gives_no_frames_of_others(
    tmp_path, levels, is_read, verb
):
    write(tmp_path, LEVELS)
    directory = GulpDirectory(tmp_path, indexed=True)
    item = directory.item("a")
    directory.close()
    write(tmp_path, levels)
    if is_read:
        assert level_of(directory, "c") == 200
    with pytest.raises(MapChangedError, match=r"item 'a' .* Ask the directory for it"):
        getattr(item, verb)(None)


def test_an_item_found_before_closing_reads_on_where_its_frames_stay(tmp_path):
    write(tmp_path, LEVELS)
    directory = GulpDirectory(tmp_path, indexed=True)
    item = directory.item("b")
    directory.close()
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("ab"):
        chunk.append("b", {}, [np.full((16, 16, 3), 50, np.uint8)])
    for _ in range(2):
        assert [round(int(frame[0, 0, 0]), -1) for frame in item.read_frames(None)] == [
            100,
            100,
        ]
    assert directory.item("b").num_frames == 3
