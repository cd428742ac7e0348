"""The check of directories that have many of something: steps in proportion to them."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from gulpio2 import GulpChunk
from gulpio2.format.checks import Record, check_spans
from gulpio2.removal import compact_directory, delete_items
from gulpio2.sanity import check_directory
from gulpio2.storage.beside_writers import listing_to_read
from gulpio2.testing import make_frames, make_gulp_directory


class Sought(tuple):
    """Counts how often it is gone through for something."""

    times = 0

    def __contains__(self, value):
        type(self).times += 1
        return super().__contains__(value)


class Span(tuple):
    """Counts how often it is compared."""

    __hash__ = tuple.__hash__
    times = 0

    def __eq__(self, other):
        type(self).times += 1
        return tuple.__eq__(self, other)


def test_no_chunk_is_sought_among_all_of_them(tmp_path, monkeypatch):
    def listing_of(store):
        listing, is_settled = listing_to_read(store)
        return replace(listing, chunks=Sought(listing.chunks)), is_settled

    make_gulp_directory(tmp_path, num_items=9, items_per_chunk=1, num_frames=1).close()
    monkeypatch.setattr("gulpio2.sanity.directory.listing_to_read", listing_of)
    report = check_directory(tmp_path)
    assert (report.ok, report.chunks, Sought.times) == (True, 9, 0)


def test_no_hole_is_sought_among_all_of_them():
    number = 500
    records = [Record(16 * place, 0, 8, str(place), 0) for place in range(number)]
    holes = [Span((16 * place + 8, 16 * place + 16)) for place in range(number - 1)]
    size = 16 * number - 8
    assert check_spans(records, size, "data_0.gulp", holes) == (records, [])
    assert Span.times <= 2 * number


@pytest.mark.parametrize("is_zero", [True, False])
def test_the_progress_goes_on_within_what_was_erased(tmp_path, is_zero):
    size = 40 << 20
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("gone", {}, make_frames(2))
    os.truncate(tmp_path / "data_0.gulp", size)
    with chunk.open("ab"):
        chunk.append("kept", {}, make_frames(3))
    delete_items(tmp_path, ["gone"])
    compact_directory(tmp_path)
    if not is_zero:
        with (tmp_path / "data_0.gulp").open("r+b") as file:
            file.seek(size // 2 + 7)
            file.write(b"x")
    told: list[dict[str, int]] = []
    report = check_directory(
        tmp_path, deep=True, progress=lambda **counts: told.append(counts)
    )
    assert [problem.offset for problem in report.problems] == (
        [] if is_zero else [size // 2 + 7]
    )
    first = next(place for place, counts in enumerate(told) if "frames" in counts)
    assert first >= (10 if is_zero else 5)
    parts = [counts.get("num_bytes", 0) for counts in told]
    assert max(parts[:first]) == 4 << 20
    assert sum(parts) == (tmp_path / "data_0.gulp").stat().st_size
    assert min(parts) >= 0
