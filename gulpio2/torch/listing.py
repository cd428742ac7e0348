"""The items of directories that were opened by an index, without an object for each."""

from __future__ import annotations

import bisect
import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

from gulpio2.directory import GulpDirectory
from gulpio2.errors import MetaFileError
from gulpio2.format.entry import EXTRAS_KEY, load_extras
from gulpio2.format.times import times_of
from gulpio2.storage.index.columns import arrays_crc32
from gulpio2.storage.index.in_blocks import ids_without_times
from gulpio2.view import GulpView

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

    from gulpio2.format.times import FrameTimes
    from gulpio2.storage.index.held import Held

__all__ = ["Listing", "frame_times", "ids_of_untimed", "look_at"]


class Listing:
    """Items by number, those of one reader after those of another.

    Parameters
    ----------
    readers : sequence of FrameReader
        Each a directory that was opened by its index, or a view of one.
    known : sequence of (int, int), optional
        The `fingerprints` of a listing, of which this one is to have the numbers, in
        another process. Items that have come behind those since are left out.

    Notes
    -----
    It holds the state of each index that its numbers are of, as a view does: a number
    means the same item whatever becomes of the directory.
    """

    def __init__(
        self, readers: Sequence[Any], known: Sequence[tuple[int, int]] | None = None
    ) -> None:
        self._parts = [_part_of(reader) for reader in readers]
        counts = [part.num_items for part in self._parts]
        self._changed: Any = None
        self._known = known
        if known is not None:
            counts = [count for count, _ in known]
            for reader, part, known_ in zip(readers, self._parts, known, strict=True):
                if part.fingerprint(known_[0]) != known_:
                    self._changed = reader
        self._ends = list(itertools.accumulate(counts))

    @staticmethod
    def is_of(readers: Sequence[Any]) -> bool:
        """Tell whether all of these were opened by an index."""
        return all(
            directory is not None and directory._index is not None
            for directory in map(_directory_of, readers)
        )

    def __len__(self) -> int:
        """Count the items."""
        return self._ends[-1]

    def find(self, position: int) -> tuple[int, str]:
        """Give the number of an item's reader, and its id there.

        Raises
        ------
        MetaFileError
            In another process the directory has other items by now.
        """
        # Raised here and not by `__init__`: what goes wrong while a worker is started
        # does not come to the process that starts it.
        if self._changed is not None:
            raise MetaFileError(
                f"{self._changed.output_dir} has changed since the dataset was made, "
                "whose samples would be other items in this process. Make the dataset "
                "anew"
            )
        number = bisect.bisect_right(self._ends, position)
        row = position - (self._ends[number - 1] if number else 0)
        return number, self._parts[number].id_at(row)

    def fingerprints(self) -> list[tuple[int, int]]:
        """Give number of items and a checksum of their ids, for each reader."""
        if self._known is None:
            self._known = [part.fingerprint(part.num_items) for part in self._parts]
        return list(self._known)


class _Part(NamedTuple):
    """The items of one reader."""

    held: Held
    rows: npt.NDArray[np.int64] | None
    """Those of a view; None for all."""

    @property
    def num_items(self) -> int:
        return len(self.held.columns if self.rows is None else self.rows)

    def id_at(self, row: int) -> str:
        if self.rows is not None:
            row = int(self.rows[row])
        return self.held.columns.id_at(row)

    def fingerprint(self, count: int) -> tuple[int, int]:
        """Give the number of the first so many items, and a checksum of their ids."""
        if self.rows is not None:
            return self.num_items, 0  # a view travels as its ids, or not at all
        count = min(count, self.num_items)
        bounds = self.held.columns.id_bounds[: count + 1]
        return count, arrays_crc32(bounds, self.held.columns.id_text[: bounds[-1]])


def _part_of(reader: Any) -> _Part:
    held = _directory_of(reader)._item_index.hold()
    if not isinstance(reader, GulpView):
        return _Part(held, None)
    reader._settle()
    return _Part(reader._held, reader._rows)


def _directory_of(reader: Any) -> Any:
    if isinstance(reader, GulpView):
        reader = reader.directory
    return reader if isinstance(reader, GulpDirectory) else None


def look_at(reader: Any, id_: str) -> Mapping[str, Any]:
    """Give an entry; a directory with an index keeps nothing of it."""
    entries = reader.merged_meta_dict
    entry: Mapping[str, Any] = getattr(entries, "peek", entries.__getitem__)(id_)
    return entry


def ids_of_untimed(reader: Any) -> set[str]:
    """Give the items whose frames have no times; of a view all of its directory's."""
    directory = _directory_of(reader)
    if directory is not None and directory._index is not None:
        return set(ids_without_times(directory._item_index.hold().columns))
    return {
        id_
        for id_, entry in reader.merged_meta_dict.items()
        if entry["frame_info"] and not (entry.get(EXTRAS_KEY) or {}).get("pts")
    }


def frame_times(reader: Any, id_: str, where: str) -> FrameTimes | None:
    """Give the times of an item's frames; None where it has none."""
    if isinstance(reader, (GulpDirectory, GulpView)):
        # By an index, without all else of the entry.
        return reader.item(id_).record.frame_times(where)
    return times_of(load_extras(look_at(reader, id_), where=where))
