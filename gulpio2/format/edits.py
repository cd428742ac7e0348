"""A map that programs edit in memory, and what happens to it on the disk meanwhile.

Programs for GulpIO2 0.0.4 change metadata so: they edit the map of a chunk, and open
the chunk for appending, which writes it. Three states of the map meet then: `mine`, in
memory, edited or not; `base`, what it was made of; and `disk`, what is there now, since
another process may have appended.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, MutableMapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gulpio2.errors import (
    AdapterContractError,
    ChunkMismatchError,
    DuplicateIdError,
    MetaFileError,
)
from gulpio2.format.entry import (
    ENTRY_KEYS,
    EXTRAS_KEY,
    checked_extras,
    covered_part,
    dump_extras,
    load_extras,
)
from gulpio2.format.gmeta import validate_entry
from gulpio2.format.other_frames import settle_other_frames
from gulpio2.format.snapshot import replace_entry, same

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

__all__ = ["Origins", "check_ids", "renew_checks", "take_in", "warn_of_other_keys"]

_logger = logging.getLogger(__name__)


def check_ids(ids: Collection[Any]) -> None:
    """Refuse ids that are one in JSON, which makes strings of numbers.

    Raises
    ------
    AdapterContractError
        There are such, like 7 and "7": nobody could read the map any more.
    """
    odd = [id_ for id_ in ids if not isinstance(id_, str)]
    if not odd:
        return
    names = {id_ for id_ in ids if isinstance(id_, str)}
    for id_ in odd:
        (name,) = json.loads(json.dumps({id_: None}))
        if name in names:
            raise AdapterContractError(
                f"item {id_!r} of the map in memory: there is an item {name!r} as "
                "well, and in JSON both have this id. Rename one of them"
            )
        names.add(name)


def warn_of_other_keys(id_: Any, entry: Mapping[str, Any]) -> None:
    """Warn of what somebody has put beside an item's metadata, where nobody reads it.

    GulpIO2 0.0.4 stores it all the same.
    """
    if others := sorted(map(str, entry.keys() - ENTRY_KEYS)):
        _logger.warning(
            "item %r of the map in memory has %s beside its metadata, which no reader "
            "gives, and which `gulp2 check` calls a fault: metadata of an item is in "
            '["meta_data"][0] of its entry',
            id_,
            " and ".join(map(repr, others)),
        )


def take_in(
    mine: MutableMapping[str, Any],
    base: Mapping[str, Any],
    disk: Mapping[str, Any],
) -> None:
    """Bring a map in memory up to date, its edits kept.

    What others changed on the disk is taken over, what was edited here stays, and of an
    item to which both happened the frames of both are kept. What was deleted on the
    disk is deleted; what was deleted here comes back if it has changed on the disk.

    Parameters
    ----------
    mine : mutable mapping
        Is changed; an entry of it that changes stays the same object.
    base : mapping
        What `mine` was made of.
    disk : mapping
        What is on the disk. Its entries become part of `mine`.

    Raises
    ------
    DuplicateIdError
        An id was added on both sides, for different items.
    ChunkMismatchError
        What was added or edited here has frames that the map on the disk does not have
        any more.
    """
    for id_ in [id_ for id_ in mine if id_ in base and id_ not in disk]:
        del mine[id_]
    settle_other_frames(mine, disk)
    for id_, entry in disk.items():
        if id_ not in mine:
            if id_ not in base or not same(base[id_], entry):
                mine[id_] = entry
        elif id_ in base:
            _merge(mine[id_], base[id_], entry)
        elif not same(list(mine[id_]["frame_info"]), entry["frame_info"]):
            raise DuplicateIdError(
                f"item {id_!r} was added to the map in memory, and another one of that "
                "id to the chunk on the disk. Rename it in memory"
            )
    _check_places(mine, disk)


def _check_places(mine: Mapping[str, Any], disk: Mapping[str, Any]) -> None:
    """Refuse items whose places in the data file may hold something else by now."""
    known: set[tuple[int, ...]] | None = None
    for id_, entry in mine.items():
        there = disk.get(id_)
        if entry is there or not isinstance(entry, Mapping):
            continue
        if there is not None and entry.get("frame_info") == there["frame_info"]:
            continue
        plain = {**entry}
        if validate_entry(plain):  # which is said when it would be written
            continue
        if known is None:
            known = {_place(info) for e in disk.values() for info in e["frame_info"]}
        if not known.issuperset(map(_place, plain["frame_info"])):
            change = "added to" if there is None else "changed in"
            raise ChunkMismatchError(
                f"item {id_!r} was {change} the map in memory, and the chunk on the "
                "disk has changed: it does not have its frames any more. Remove it"
            )


def _place(info: Any) -> tuple[int, ...]:
    return tuple(info)


def _merge(
    mine: MutableMapping[str, Any], base: Mapping[str, Any], disk: Mapping[str, Any]
) -> None:
    """Bring an entry up to date."""
    if disk is base or same(disk, base) or same(mine, disk):
        return
    if same(mine, base):
        replace_entry(mine, disk)
        return
    parts = {
        key: _joined(*(list(entry[key]) for entry in (mine, base, disk)))
        for key in ("frame_info", "meta_data")
    }
    # Of two edits the one here wins; but frames are where the disk says they are.
    infos = disk["frame_info"] if parts["frame_info"] is None else parts["frame_info"]
    metas = parts["meta_data"]
    if metas is None:
        metas = _one_by_one(*(list(e["meta_data"]) for e in (mine, base, disk)))
    content = {**mine, "frame_info": list(infos), "meta_data": list(metas)}
    if EXTRAS_KEY in content:  # which `Origins` makes fit
        del content[EXTRAS_KEY]
        if EXTRAS_KEY in disk:
            content[EXTRAS_KEY] = disk[EXTRAS_KEY]
    replace_entry(mine, content)


def _joined(mine: list[Any], base: list[Any], disk: list[Any]) -> list[Any] | None:
    """Join changes of a list that others append to; None where both changed it."""
    if same(mine, base) or same(mine, disk):
        return disk
    if same(disk[: len(base)], base):
        # What was added alike is there once: a flush here may have written it.
        added = mine[len(base) :]
        alike = len(added) if same(disk[len(base) : len(mine)], added) else 0
        return mine + disk[len(base) + alike :]
    return None


def _one_by_one(mine: list[Any], base: list[Any], disk: list[Any]) -> list[Any]:
    """Join changes of a list that both have edited, and perhaps appended to.

    Of an element that both have edited, and where one has removed some, mine is taken.
    """
    count = len(base)
    if len(mine) < count or len(disk) < count:
        return mine
    first = [
        theirs if same(own, was) else own
        for own, was, theirs in zip(mine, base, disk, strict=False)
    ]
    joined = _joined(mine[count:], [], disk[count:])
    return first + (mine[count:] if joined is None else joined)


class Origins:
    """The entries of a map as they were read, to tell those that were edited since.

    Parameters
    ----------
    read : callable
        Reads the map; it is called if an entry does not fit its check.
    before : mapping, optional
        What entries were made of that the map has no more, or not so: others have
        changed it, and edited ones are still as they were before.
    """

    def __init__(
        self,
        read: Callable[[], Mapping[str, Any]],
        before: Mapping[str, Any] | None = None,
    ) -> None:
        self._read = read
        self._before = before or {}

    @cached_property
    def _entries(self) -> Mapping[str, Any]:
        return self._read()

    @cached_property
    def _by_check(self) -> dict[str, tuple[str, Mapping[str, Any]]]:
        return {
            str(entry[EXTRAS_KEY].get("check")): (id_, entry)
            for entries in (self._before, self._entries)
            for id_, entry in entries.items()
            if EXTRAS_KEY in entry
        }

    def fitting_extras(
        self, id_: str, entry: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """Give the extras with which an entry is to be stored.

        Parameters
        ----------
        id_ : str
            The item.
        entry : mapping
            Its entry, with extras.

        Returns
        -------
        dict or None
            Those that it has, where they fit or nobody has edited it: what was damaged
            on the disk stays marked so, until its check is taken out. Else with a check
            of its own, and with the checksums and times of its frames; None where these
            are not known. Where nothing was done to a sound entry but to take its check
            out, those of its first frames stay, with the check that they had.
        """
        extras: dict[str, Any] = entry[EXTRAS_KEY]
        fitting = checked_extras(id_, entry)
        if fitting is not None and fitting["check"] == extras.get("check"):
            return extras
        origin = self._origin(id_, extras)
        if origin is not None:
            old_id, old = origin
            if old_id == id_ and same(entry, old):
                return extras
            if not _is_sound(old_id, old):
                if "check" in extras or "check" not in old[EXTRAS_KEY]:
                    return extras
                # Taken out in memory: what the entry says is to count as it is.
                return fitting if _has_form(entry) else None
        moved = None if origin is None else _moved_extras(entry, origin[1])
        if moved is None:
            if origin is None or origin[0] != id_:
                return None
            # GulpIO2 has extended the item, which is no fault: see `covered_part`.
            was: dict[str, Any] = {**origin[1][EXTRAS_KEY]}
            unchecked = {key: value for key, value in was.items() if key != "check"}
            return was if same(entry, {**origin[1], EXTRAS_KEY: unchecked}) else None
        return checked_extras(id_, {**entry, EXTRAS_KEY: moved})

    def _origin(
        self, id_: str, extras: Mapping[str, Any]
    ) -> tuple[str, Mapping[str, Any]] | None:
        """Find what an entry was, by its check: it may have got another id."""
        own = self._entries.get(id_, {})
        check = extras.get("check")
        if EXTRAS_KEY in own and own[EXTRAS_KEY].get("check") == check:
            return id_, own
        if check is not None and str(check) in self._by_check:
            return self._by_check[str(check)]
        return (id_, own) if EXTRAS_KEY in own else None


def renew_checks(meta_dict: Any, before: Mapping[str, Any]) -> bool:
    """Make the checks of entries that were edited fit; say whether one did not.

    Parameters
    ----------
    meta_dict : object
        Nothing happens where it is no map.
    before : mapping
        The map that it is to replace.
    """
    if not isinstance(meta_dict, Mapping):
        return False
    known = {id_: entry for id_, entry in before.items() if not validate_entry(entry)}
    origins = Origins(lambda: known)
    has_changed = False
    for id_, entry in meta_dict.items():
        if not isinstance(entry, MutableMapping) or EXTRAS_KEY not in entry:
            continue
        if validate_entry({**entry}):
            continue
        extras = origins.fitting_extras(str(id_), entry)
        if extras is None:
            del entry[EXTRAS_KEY]
            has_changed = True
        elif extras is not entry[EXTRAS_KEY]:
            entry[EXTRAS_KEY] = extras
            has_changed = True
    return has_changed


def _has_form(entry: Mapping[str, Any]) -> bool:
    try:
        load_extras(entry, where="")
    except MetaFileError:
        return False
    return True


def _is_sound(id_: str, entry: Mapping[str, Any]) -> bool:
    return _has_form(entry) and covered_part(id_, entry) is not None


def _moved_extras(
    entry: Mapping[str, Any], old: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Give an entry the checksums and times that its frames have in another one."""
    try:
        known = load_extras(old, where="")
    except MetaFileError:
        return None
    before = [_place(info) for info in old["frame_info"]]
    frames = [_place(info) for info in entry["frame_info"]]
    if len(known.crc32) != len(before):
        return None
    own: dict[str, Any] = entry[EXTRAS_KEY]
    if frames == before and own.get("crc32") == old[EXTRAS_KEY].get("crc32"):
        return dict(own)
    index_of = {place: index for index, place in enumerate(before)}
    if not index_of.keys() >= set(frames):
        return None
    indices = [index_of[place] for place in frames]
    return dump_extras(
        crc32=[int(known.crc32[index]) for index in indices],
        time_base=known.time_base,
        pts=[known.pts[index] for index in indices] if known.pts else (),
        source=known.source,
    )
