"""The check of directories that have many of something: steps in proportion to them."""

from __future__ import annotations

from dataclasses import replace

from gulpio2.format.checks import Record, check_names, check_spans
from gulpio2.sanity import check_directory
from gulpio2.testing import make_gulp_directory


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
    def check_names_once(names):
        listing, problems = check_names(names)
        return replace(listing, chunks=Sought(listing.chunks)), problems

    make_gulp_directory(tmp_path, num_items=9, items_per_chunk=1, num_frames=1).close()
    monkeypatch.setattr("gulpio2.sanity.directory.check_names", check_names_once)
    report = check_directory(tmp_path)
    assert (report.ok, report.chunks, Sought.times) == (True, 9, 0)


def test_no_hole_is_sought_among_all_of_them():
    number = 500
    records = [Record(16 * place, 0, 8, str(place), 0) for place in range(number)]
    holes = [Span((16 * place + 8, 16 * place + 16)) for place in range(number - 1)]
    size = 16 * number - 8
    assert check_spans(records, size, "data_0.gulp", holes) == (records, [])
    assert Span.times <= 2 * number
