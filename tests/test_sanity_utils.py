"""The checks of 0.0.4: same results, without its crashes.

As upstream's tests do, these give anything whose ``chunks()`` has the three attributes.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from gulpio2 import GulpDirectory
from gulpio2.sanity_utils import (
    check_data_file_size,
    check_data_file_size_larger_zero,
    check_for_duplicate_ids,
    check_for_failures,
    check_meta_file_size_larger_zero,
    extract_all_ids,
    get_duplicate_entries,
)
from gulpio2.testing import make_gulp_directory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass
class Directory:
    """What the checks need of a directory."""

    folder: Path
    of: list[Any] = field(default_factory=list)

    def add(self, data: bytes, meta: bytes = b"{}", **entries: list[list[int]]) -> str:
        """Add a chunk with these files and frame infos; give its number."""
        number = str(len(self.of))
        chunk = SimpleNamespace(
            data_file_path=str(self.folder / f"data_{number}.gulp"),
            meta_file_path=str(self.folder / f"meta_{number}.gmeta"),
            meta_dict={
                id_: {"frame_info": infos, "meta_data": [{}]}
                for id_, infos in entries.items()
            },
        )
        (self.folder / f"data_{number}.gulp").write_bytes(data)
        (self.folder / f"meta_{number}.gmeta").write_bytes(meta)
        self.of.append(chunk)
        return number

    def chunks(self) -> Iterator[Any]:
        """Give the chunks."""
        return iter(self.of)


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    """Give a directory without chunks."""
    return Directory(tmp_path)


def test_no_chunks_have_no_failure(directory):
    assert check_meta_file_size_larger_zero(directory) == []
    assert check_data_file_size_larger_zero(directory) == []
    assert check_data_file_size(directory) == []
    assert check_for_duplicate_ids(directory) == []


def test_a_directory_of_ours_has_no_failure(tmp_path):
    directory = make_gulp_directory(tmp_path / "out", num_items=5)
    assert check_meta_file_size_larger_zero(directory) == []
    assert check_data_file_size_larger_zero(directory) == []
    assert check_data_file_size(directory) == []
    assert check_for_duplicate_ids(directory) == []


def test_empty_files_are_named_by_their_paths(directory):
    directory.add(b"", b"{}")
    directory.add(b"1234", b"")
    directory.add(b"1234", b"{}")
    first, second, _ = directory.of
    assert check_data_file_size_larger_zero(directory) == [first.data_file_path]
    assert check_meta_file_size_larger_zero(directory) == [second.meta_file_path]


def test_a_missing_file_counts_as_empty(directory):
    directory.add(b"1234", b"{}")
    (chunk,) = directory.of
    os.unlink(chunk.data_file_path)  # noqa: PTH108  # a string, as 0.0.4 gives it
    os.unlink(chunk.meta_file_path)  # noqa: PTH108  # the same
    assert check_data_file_size_larger_zero(directory) == [chunk.data_file_path]
    assert check_meta_file_size_larger_zero(directory) == [chunk.meta_file_path]


@pytest.mark.parametrize(
    ("data", "entries", "good"),
    [
        (b"12345678", {"a": [[0, 0, 4], [4, 0, 4]]}, True),
        (b"12345678", {"a": [[0, 0, 4]], "b": [[4, 0, 4]]}, True),
        (b"1234567", {"a": [[0, 0, 4], [4, 0, 4]]}, False),
        (b"123456789", {"a": [[0, 0, 4], [4, 0, 4]]}, False),
        # 0.0.4: the last item of the map is not the last one in the file
        (b"12345678", {"a": [[0, 0, 4], [4, 0, 4]], "b": [[0, 0, 4]]}, True),
        (b"12345678", {"b": [[4, 0, 4]], "a": [[0, 0, 4]]}, True),
        # 0.0.4: StopIteration
        (b"", {}, True),
        (b"1234", {}, False),
        # 0.0.4: IndexError
        (b"1234", {"a": [[0, 0, 4]], "b": []}, True),
        (b"", {"a": []}, True),
        (b"1234", {"a": []}, False),
    ],
)
def test_a_data_file_ends_where_its_last_record_does(directory, data, entries, good):
    directory.add(data, **entries)
    expected = [] if good else [directory.of[0].data_file_path]
    assert check_data_file_size(directory) == expected


def test_ids_in_several_chunks_are_named_in_the_order_of_first_sight(directory):
    directory.add(b"", b=[], a=[])
    directory.add(b"", a=[], c=[])
    directory.add(b"", b=[], c=[], a=[])
    assert extract_all_ids(directory) == ["b", "a", "a", "c", "b", "c", "a"]
    assert check_for_duplicate_ids(directory) == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("entries", "duplicates"),
    [
        ([], []),
        (["a", "b"], []),
        (["b", "a", "b", "c", "a", "b"], ["b", "a"]),
        ([1, 1, "1"], [1]),
        (iter("aba"), ["a"]),
    ],
)
def test_what_is_there_more_than_once_is_named_once(entries, duplicates):
    assert get_duplicate_entries(entries) == duplicates


@pytest.mark.parametrize(
    ("failures", "line"),
    [([], "Test passed"), (["x", 1], "Test failed for: ['x', 1]")],
)
def test_how_a_test_went_is_printed_in_two_lines(capsys, failures, line):
    check_for_failures({"message": "Check it", "failures": failures})
    assert capsys.readouterr().out == f"Sanity Check: Check it\n{line}\n"


def test_sizes_may_be_those_of_a_patched_system(tmp_path):
    make_gulp_directory(tmp_path / "out").close()
    directory = GulpDirectory(tmp_path / "out")
    with mock.patch("os.stat", return_value=SimpleNamespace(st_size=0)):
        assert len(check_meta_file_size_larger_zero(directory)) == 2
        assert len(check_data_file_size(directory)) == 2
