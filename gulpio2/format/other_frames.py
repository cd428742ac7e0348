"""Entries in memory of frames in the places of which the disk has others by now.

Who writes a chunk anew may put its frames where the old ones were: offsets and lengths
tell nothing then, and a map that was kept in memory would be stored over them.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from gulpio2.errors import ChunkMismatchError
from gulpio2.format.entry import EXTRAS_KEY, entry_check, stored_crc32
from gulpio2.format.gmeta import validate_entry

__all__ = ["settle_other_frames"]

_Place = tuple[int, ...]


def settle_other_frames(
    mine: MutableMapping[str, Any], disk: Mapping[str, Any]
) -> None:
    """Have entries whose frames are others on the disk be of those frames.

    One that nobody has edited since it was written, which its own check tells, becomes
    what the disk has. One that was edited keeps what was edited in it, and gets the
    extras of the disk; its check does not fit then.

    Parameters
    ----------
    mine : mutable mapping
        The map in memory; entries that change stay the same objects.
    disk : mapping
        What is on the disk.

    Raises
    ------
    ChunkMismatchError
        An item that the disk does not have, in places where it has other frames.
    """
    known: dict[_Place, int] | None = None
    for id_, entry in mine.items():
        there = disk.get(id_)
        if entry is there or _text(entry) is None or _text(entry) == _text(there):
            continue
        frames = _frames(entry)
        if there is not None:
            if not _contradicts(frames, _frames(there)) or not _is_sound(id_, there):
                continue
            if _is_sound(id_, entry):
                entry.clear()
                entry.update(there)
            else:
                entry[EXTRAS_KEY] = there[EXTRAS_KEY]
            continue
        if known is None:
            known = {}
            for each in disk.values():
                known.update(_frames(each))
        if _contradicts(frames, known):
            raise ChunkMismatchError(
                f"item {id_!r} is in the map in memory, and where its frames were the "
                "chunk on the disk has others: it was written anew. Remove the item, "
                "or open the directory again"
            )


def _text(entry: Any) -> str | None:
    """Give the checksums of an entry as they are stored; None where there are none."""
    if not isinstance(entry, MutableMapping) or EXTRAS_KEY not in entry:
        return None
    extras = entry[EXTRAS_KEY]
    text = extras.get("crc32") if isinstance(extras, Mapping) else None
    return text if isinstance(text, str) else None


def _frames(entry: Any) -> dict[_Place, int]:
    """Give the checksum of the frame in each place; nothing where it is not known."""
    if _text(entry) is None or validate_entry({**entry}):
        return {}
    infos = entry["frame_info"]
    sums = stored_crc32(entry, range(len(infos))) or ()
    return dict(zip(map(tuple, infos), sums, strict=False))


def _contradicts(frames: Mapping[_Place, int], known: Mapping[_Place, int]) -> bool:
    # Whoever edits may have put frames in another order, and left their checksums.
    sums = {*frames.values()}
    return any(known[place] not in sums for place in frames if place in known)


def _is_sound(id_: str, entry: Mapping[str, Any]) -> bool:
    check = entry[EXTRAS_KEY].get("check")
    return isinstance(check, str) and check == entry_check(id_, entry)
