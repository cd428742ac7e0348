"""`gulpio2.storage.index.whole`: the checksum of an index file, taken in blocks."""

from __future__ import annotations

import contextlib

import pytest

from gulpio2.format.checksum import crc32_of
from gulpio2.storage.index import whole
from gulpio2.storage.index.keeping import build_index
from gulpio2.storage.index.whole import is_whole
from gulpio2.testing import make_gulp_directory


@pytest.fixture
def content(tmp_path):
    """Give the bytes of an index."""
    make_gulp_directory(tmp_path, num_items=40, items_per_chunk=9).close()
    build_index(tmp_path)
    return (tmp_path / "index.arrow").read_bytes()


def test_no_more_than_a_block_is_summed_up_at_once(content, monkeypatch):
    lengths = []

    def noted(data, crc32=0):
        lengths.append(len(data))
        return crc32_of(data, crc32)

    monkeypatch.setattr(whole, "_BLOCK", 1000, raising=False)
    monkeypatch.setattr(whole, "crc32_of", noted)
    assert is_whole(memoryview(content))
    assert max(lengths) <= 1000
    assert sum(lengths) == len(content)


def test_every_byte_counts(content):
    for place in range(0, len(content), 7):
        damaged = bytearray(content)
        damaged[place] ^= 1
        with contextlib.suppress(ValueError):  # it is not even understood
            assert not is_whole(memoryview(damaged))
