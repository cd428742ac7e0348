"""Items of an index are gone through by the thousand, and are what the maps say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.cli.summary import summarize
from gulpio2.errors import MetaFileError
from gulpio2.storage.index import in_blocks, texts
from gulpio2.storage.index.in_blocks import indexed_blocks
from gulpio2.storage.index.keeping import build_index
from gulpio2.testing import make_frames
from tests.chunks import Timed
from tests.faults.rot import rot
from tests.storage.index.conftest import as_json, plain

if TYPE_CHECKING:
    from pathlib import Path


def one_by_one(directory: GulpDirectory) -> list[Any]:
    """Give what blocks have, of each item as it is found by its id."""
    items = map(directory.item, directory.merged_meta_dict)
    return [(one.num_frames, one.num_bytes, one.meta, one.times) for one in items]


def in_order(directory: GulpDirectory) -> list[Any]:
    """Give the items of all blocks."""
    assert directory._index is not None
    blocks = indexed_blocks(directory._index)
    assert blocks is not None
    return [item for block in blocks for item in zip(*block, strict=True)]


def indexed(folder: Path, **options: Any) -> GulpDirectory:
    """Open with an index."""
    return GulpDirectory(folder, indexed=True, **options)


@pytest.mark.parametrize("items_of_a_block", [1, 2, 3, 4096])
def test_blocks_have_what_the_items_have(folder, monkeypatch, items_of_a_block):
    chunk = GulpChunk(folder / "data_7.gulp", folder / "meta_7.gmeta")
    with chunk.open("wb"):
        chunk.append("timed", {"a": 1}, Timed([0, 40, 90]))
        chunk.append("empty", {}, [])
        chunk.append("several", {"a": 2}, make_frames(2))
        chunk.append("several", {"a": 3}, make_frames(1))
    monkeypatch.setattr(in_blocks, "_BLOCK", items_of_a_block)
    build_index(folder)
    found = in_order(indexed(folder))
    assert as_json(found) == as_json(one_by_one(indexed(folder)))


@pytest.mark.parametrize("name", ["meta_1.gmeta", "index.arrow"])
def test_a_byte_that_has_changed_is_seen_and_counted_as_the_map_has_it(
    folder, monkeypatch, name
):
    build_index(folder)
    change = (b"u00fc", b"u00fd") if "gmeta" in name else (b"wavi", b"ravi")
    rot(folder / name, *change)
    monkeypatch.setattr(texts, "_MOST_BYTES", 0)
    monkeypatch.setattr(texts, "_MOST_CHUNKS", 1)
    monkeypatch.setattr(texts, "_MOST_TOUCHED_BYTES", 0)
    with indexed(folder) as one, plain(folder) as other:
        assert one._index is not None
        assert indexed_blocks(one._index) is None
        assert summarize(one) == summarize(other)


def test_edits_in_memory_are_counted(folder):
    found = []
    for directory in (indexed(folder), plain(folder)):
        del directory.chunk_lookup["item 0/0"], directory.merged_meta_dict["item 0/0"]
        directory.merged_meta_dict["item 0/1"]["meta_data"][0]["label"] = "edited"
        found.append(summarize(directory))
    assert found[0] == found[1]
    assert found[0].labels["edited"] == 1


def test_a_map_that_was_replaced_since_counts_as_it_was(folder):
    build_index(folder)
    directory = indexed(folder)
    before = summarize(indexed(folder))
    chunk = GulpChunk(folder / "data_1.gulp", folder / "meta_1.gmeta")
    with chunk.open("ab"):
        chunk.append("late", {"label": "late"}, make_frames(1))
    assert summarize(directory) == before


def test_entries_are_verified_where_that_is_asked_for(folder):
    path = folder / "meta_0.gmeta"
    path.write_bytes(path.read_bytes().replace(b"jumping", b"bumping"))
    with (
        indexed(folder, verify=True) as directory,
        pytest.raises(MetaFileError, match="item 0/1"),
    ):
        summarize(directory)


@pytest.mark.parametrize("wanted", [True, False])
def test_progress_is_told_of_every_item(folder, wanted):
    told = []
    with GulpDirectory(folder, indexed=wanted) as directory:
        summary = summarize(directory, progress=lambda **done: told.append(done))
    sums = {key: sum(done[key] for done in told) for key in told[0]}
    assert sums == {
        "items": summary.items,
        "frames": summary.frames,
        "num_bytes": summary.num_bytes,
    }
