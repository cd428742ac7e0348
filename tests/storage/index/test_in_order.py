"""Items that are asked for in order: checked together, and as well as one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.storage.handles import read_once
from gulpio2.storage.index import texts
from gulpio2.storage.index.keeping import build_index
from tests.chunks import Timed
from tests.faults.rot import rot

if TYPE_CHECKING:
    from pathlib import Path

ITEMS = 400
CHUNKS = [range(300), range(300, 350), range(350, ITEMS)]


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Write three chunks, one of more items than are checked together, and an index."""
    for number, items in enumerate(CHUNKS):
        path = tmp_path / f"meta_{number}.gmeta"
        chunk = GulpChunk(tmp_path / f"data_{number}.gulp", path)
        with chunk.open("wb"):
            for item in items:
                chunk.append(f"i{item}", {"number": item + 1000}, Timed([0]))
    # Its first entry begins behind that of the map before.
    path.write_bytes(b"{    " + path.read_bytes()[1:])
    build_index(tmp_path)
    return tmp_path


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note the length of each part of a map that is read."""
    lengths: list[int] = []

    def count(path: str, offset: int, length: int) -> bytes:
        lengths.append(length)
        return read_once(path, offset, length)

    monkeypatch.setattr(texts, "read_once", count)
    return lengths


def is_mapped(directory: GulpDirectory) -> bool:
    """Tell whether the index is that of the file."""
    assert directory._index is not None
    return directory._index.mapped


def numbers(directory: GulpDirectory) -> list[int]:
    """Go through the items, without a list of ids, for which whole maps are read."""
    return [directory.item(f"i{k}").meta["number"] for k in range(ITEMS)]


def test_maps_are_read_in_parts_and_no_byte_twice(many, reads):
    directory = GulpDirectory(many, indexed=True)
    assert numbers(directory) == list(range(1000, 1000 + ITEMS))
    assert len(reads) == 6
    size = sum(path.stat().st_size for path in many.glob("*.gmeta"))
    assert size - 2 * ITEMS <= sum(reads) <= size, "all but what is between entries"
    numbers(directory)
    assert sum(reads) <= size
    assert is_mapped(directory)


def test_items_in_another_order_are_read_one_by_one(many, reads):
    directory = GulpDirectory(many, indexed=True)
    for k in range(ITEMS - 1, -1, -1):
        assert directory.item(f"i{k}").meta == {"number": 1000 + k}
    assert len(reads) == ITEMS
    assert sum(reads) <= sum(path.stat().st_size for path in many.glob("*.gmeta"))


@pytest.mark.parametrize("item", [0, 1, 2, 128, 129, 130, 299, 300, 301, 399])
def test_an_entry_that_has_changed_in_the_map_is_noticed(many, item):
    (number,) = (n for n, items in enumerate(CHUNKS) if item in items)
    path = many / f"meta_{number}.gmeta"
    wanted = list(range(1000, 1000 + ITEMS))
    before, after = (b'"number": %d}' % (n + item) for n in (1000, 2000))
    assert path.read_bytes().count(before) == 1
    rot(path, before, after)
    wanted[item] += 1000
    directory = GulpDirectory(many, indexed=True)
    assert is_mapped(directory)
    assert numbers(directory) == wanted
    assert not is_mapped(directory)


@pytest.mark.parametrize("item", [0, 1, 2, 128, 129, 130, 299, 300, 301, 399])
def test_a_row_that_is_damaged_is_noticed(many, item):
    path = many / "index.arrow"
    before, after = (b'[{"number": %d}]' % (n + item) for n in (1000, 2000))
    assert path.read_bytes().count(before) == 1
    path.write_bytes(path.read_bytes().replace(before, after))
    directory = GulpDirectory(many, indexed=True)
    assert is_mapped(directory)
    assert numbers(directory) == list(range(1000, 1000 + ITEMS))
    assert not is_mapped(directory)


def test_of_a_map_that_was_replaced_each_entry_is_read_but_once_more(many, reads):
    directory = GulpDirectory(many, indexed=True)
    path = many / "meta_0.gmeta"
    path.write_bytes(b"{ " + path.read_bytes()[1:])  # each entry a byte further on
    assert numbers(directory) == list(range(1000, 1000 + ITEMS))
    assert is_mapped(directory)
    size = sum(path.stat().st_size for path in many.glob("*.gmeta"))
    assert sum(reads) < 2.1 * size
