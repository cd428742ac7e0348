"""The checks of GulpIO2 0.0.4, under their names there.

They take anything whose ``chunks()`` gives objects with ``meta_file_path``,
``data_file_path`` and ``meta_dict``. `gulpio2.sanity.check_directory` finds far more,
also in directories that cannot be opened.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gulpio2.types import StrPath

__all__ = [
    "check_data_file_size",
    "check_data_file_size_larger_zero",
    "check_for_duplicate_ids",
    "check_for_failures",
    "check_meta_file_size_larger_zero",
    "extract_all_ids",
    "get_duplicate_entries",
]


class _Chunk(Protocol):
    meta_file_path: Any
    data_file_path: Any
    meta_dict: Any


class _Directory(Protocol):
    def chunks(self) -> Iterable[_Chunk]: ...


def check_meta_file_size_larger_zero(gulp_directory: _Directory) -> list[StrPath]:
    """List the maps that are empty files."""
    paths = [chunk.meta_file_path for chunk in gulp_directory.chunks()]
    return [path for path in paths if _size(path) == 0]


def check_data_file_size_larger_zero(gulp_directory: _Directory) -> list[StrPath]:
    """List the data files that are empty."""
    paths = [chunk.data_file_path for chunk in gulp_directory.chunks()]
    return [path for path in paths if _size(path) == 0]


def check_data_file_size(gulp_directory: _Directory) -> list[StrPath]:
    """List the data files that do not end where the last record in them ends.

    The last one in the file, wherever its item stands in the map; items without frames,
    and chunks without items, are counted with the rest.
    """
    return [
        chunk.data_file_path
        for chunk in gulp_directory.chunks()
        if _size(chunk.data_file_path)
        != max(
            (
                info[0] + info[2]
                for entry in chunk.meta_dict.values()
                for info in entry["frame_info"]
            ),
            default=0,
        )
    ]


def check_for_duplicate_ids(gulp_directory: _Directory) -> list[str]:
    """List the ids that are in more than one chunk, in the order of first sight."""
    return get_duplicate_entries(extract_all_ids(gulp_directory))


def extract_all_ids(gulp_directory: _Directory) -> list[str]:
    """List every id of every chunk, repeats included."""
    return [id_ for chunk in gulp_directory.chunks() for id_ in chunk.meta_dict]


def get_duplicate_entries(list_: Iterable[Any]) -> list[Any]:
    """List what is in there more than once, in the order of first sight."""
    return [entry for entry, count in Counter(list_).items() if count > 1]


def check_for_failures(result: Mapping[str, Any]) -> None:
    """Print how a test went: its ``message``, and its ``failures`` if it has any."""
    print(f"Sanity Check: {result['message']}")  # noqa: T201  # contract of 0.0.4
    if result["failures"]:
        print(f"Test failed for: {result['failures']}")  # noqa: T201  # the same
    else:
        print("Test passed")  # noqa: T201  # the same


def _size(path: StrPath) -> int:
    """Give the size of a file; one that is missing holds nothing either."""
    try:
        return os.stat(path).st_size  # noqa: PTH116  # patched by tests of clients
    except FileNotFoundError:
        return 0
