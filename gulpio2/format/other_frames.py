"""Entries in memory of frames in the places of which the disk has others by now.

Who writes a chunk anew puts its frames where the old ones were. Where these have other
lengths they lie on parts of them; else offsets and lengths tell nothing, and checksums
do. A map that was kept in memory would be stored over them.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from gulpio2.errors import ChunkMismatchError
from gulpio2.format.entry import EXTRAS_KEY, entry_check, stored_crc32
from gulpio2.format.gmeta import validate_entry
from gulpio2.format.removals import entry_spans, meets_spans, merge_spans

__all__ = ["known_crc32", "settle_other_frames"]

_Place = tuple[int, ...]


def settle_other_frames(
    mine: MutableMapping[str, Any], disk: Mapping[str, Any], size: int | None = None
) -> None:
    """Have entries whose frames are others on the disk be of those frames.

    One that nobody has edited since it was written, which its own check tells, becomes
    what the disk has. One that was edited keeps what was edited in it, and gets the
    extras of the disk; its check does not fit then. Frames that the disk does not have
    are replaced by those that it has. Where the check is one that the disk has, the
    entry is of what is there now, and its frames are those that somebody gave it.

    Parameters
    ----------
    mine : mutable mapping
        The map in memory; entries that change stay the same objects.
    disk : mapping
        What is on the disk.
    size : int, optional
        Bytes of the data file, where `mine` is to be stored as it is: records are
        looked at, too, that lie on parts of those of the disk, or end behind the file.

    Raises
    ------
    ChunkMismatchError
        An item in places where the disk has other frames, which the disk does not have
        or which has no check to tell whether it was edited.
    """
    records: _Records | None = None
    for id_, entry in mine.items():
        there = disk.get(id_)
        if entry is there or _is_alike(entry, there):
            continue
        if not isinstance(entry, MutableMapping) or validate_entry({**entry}):
            continue  # which is said when it would be written
        if there is not None and (
            # Without checksums nothing more can be told.
            (not known_crc32(entry) and _are_places_of(there, entry))
            or _is_altered(id_, there)  # damaged: of its frames nothing is sure
        ):
            continue
        records = records or _Records(disk, size)
        if records.has_origin_of(entry) or not records.contradict(entry):
            continue
        if there is None or EXTRAS_KEY not in entry:
            raise ChunkMismatchError(
                f"item {id_!r} is in the map in memory, and where its frames were the "
                "chunk on the disk has others: it was written anew. Remove the item, "
                "or open the directory again"
            )
        new = dict(there)
        if _is_altered(id_, entry):  # it was edited
            # Frames may have been put in another order.
            is_kept = _are_places_of(there, entry)
            of_disk = (EXTRAS_KEY,) if is_kept else (EXTRAS_KEY, "frame_info")
            new |= {key: part for key, part in entry.items() if key not in of_disk}
        entry.clear()
        entry.update(new)


def _is_alike(entry: Any, there: Any) -> bool:
    """Tell whether an entry of the disk has the same frames, as far as they say."""
    if not (isinstance(entry, Mapping) and isinstance(there, Mapping)):
        return False
    if _extra(entry, "crc32") != _extra(there, "crc32"):
        return False
    mine, others = entry.get("frame_info"), there["frame_info"]
    try:
        return bool(mine == others) or (  # of tuples, which no list equals
            isinstance(mine, list) and [*map(tuple, mine)] == [*map(tuple, others)]
        )
    except (TypeError, ValueError):  # no places, but numbers, or arrays
        return False


class _Records:
    """Where the frames of a map are, and their checksums.

    Parameters
    ----------
    entries : mapping
        The map. Of an entry that is damaged nothing holds.
    size : int or None
        As for `settle_other_frames`.
    """

    def __init__(self, entries: Mapping[str, Any], size: int | None) -> None:
        sound = [entry for id_, entry in entries.items() if not _is_altered(id_, entry)]
        self._size = size
        self._checks = {_extra(entry, "check") for entry in sound} - {None}
        self._crc32: dict[_Place, int] = {}
        for entry in sound:
            self._crc32.update(known_crc32(entry))
        self._places = {place for entry in sound for place in _places(entry)}
        self._spans = merge_spans(span for each in sound for span in entry_spans(each))

    def has_origin_of(self, entry: Mapping[str, Any]) -> bool:
        """Tell whether an entry was one of these before it was edited.

        Its check, which whoever edits leaves as it is, is of the frames that it had.
        """
        return _extra(entry, "check") in self._checks

    def contradict(self, entry: Mapping[str, Any]) -> bool:
        """Tell whether an entry has frames where there are others, or none."""
        frames, known = known_crc32(entry), self._crc32
        # Whoever edits may have put frames in another order, and left their checksums.
        sums = {*frames.values()}
        if any(known[place] not in sums for place in frames if place in known):
            return True
        places = {*_places(entry)} - self._places
        return self._size is not None and any(map(self._is_none, places))

    def _is_none(self, place: _Place) -> bool:
        """Tell of a record that is none of these whether it can be none at all."""
        start, stop = place[0], place[0] + place[2]
        return stop > (self._size or 0) or meets_spans((start, stop), self._spans)


def _extra(entry: Mapping[str, Any], key: str) -> str | None:
    """Give the text of one of an entry's extras; None where it has none."""
    extras = entry.get(EXTRAS_KEY)
    text = extras.get(key) if isinstance(extras, Mapping) else None
    return text if isinstance(text, str) else None


def _are_places_of(there: Mapping[str, Any], entry: Mapping[str, Any]) -> bool:
    """Tell whether an entry has no frames in other places than that of the disk."""
    return {*_places(there)}.issuperset(_places(entry))


def _places(entry: Mapping[str, Any]) -> list[_Place]:
    return [tuple(info) for info in entry["frame_info"]]


def known_crc32(entry: Mapping[str, Any]) -> dict[_Place, int]:
    """Give the checksum of the frame in each place; nothing where it is not known."""
    places = _places(entry)
    return dict(
        zip(places, stored_crc32(entry, range(len(places))) or (), strict=False)
    )


def _is_altered(id_: str, entry: Mapping[str, Any]) -> bool:
    """Tell whether an entry is not what its check says; one without extras has none."""
    if EXTRAS_KEY not in entry:
        return False
    return _extra(entry, "check") != entry_check(id_, entry)
