"""Ids that are taken, found before anything is written."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gulpio2.errors import DuplicateIdError
from gulpio2.format.wording import counted
from gulpio2.ingest.items import describe_failure, source_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from gulpio2.ingest.jobs import OnDuplicate
    from gulpio2.ingest.report import ItemFailure
    from gulpio2.types import Adapter

__all__ = ["Sifted", "advice_on_given", "name_places", "sift_ids", "warn_of_repeats"]

_logger = logging.getLogger(__name__)

# Ids named in a message; the rest is counted.
_NAMED = 3


@dataclass(slots=True)
class Sifted:
    """Positions that are not to be stored, and what is reported of them."""

    left_out: set[int] = field(default_factory=set)
    failures: list[ItemFailure] = field(default_factory=list)
    repeats: dict[int, int] = field(default_factory=dict)
    """Position of an item whose id repeats another's, to the position of that one."""


def sift_ids(
    adapter: Adapter,
    ids: Sequence[str],
    stored: Collection[str],
    on_duplicate: OnDuplicate,
) -> Sifted:
    """Find the items whose id is in the directory, or is that of an item before them.

    The `ids` are all that the adapter lists, by position; it is asked only where items
    come from.

    Raises
    ------
    DuplicateIdError
        There are some, and `on_duplicate` is "raise".
    """
    sifted = Sifted()
    first: dict[str, int] = {}
    found: list[tuple[int, str]] = []
    for position, id_ in enumerate(ids):
        if id_ in stored:
            found.append((position, f"the id {id_!r} is in the directory already"))
        elif id_ in first:
            sifted.repeats[position] = first[id_]
            earlier = _place(adapter, first[id_])
            found.append(
                (position, f"the id {id_!r} is that of another item as well, {earlier}")
            )
        else:
            first[id_] = position
    if found and on_duplicate == "raise":
        if all(ids[position] in stored for position, _ in found):
            raise DuplicateIdError(_all_stored(ids, [place for place, _ in found]))
        named = "; ".join(
            f"{message}: {_place(adapter, position)}"
            for position, message in found[:_NAMED]
        )
        more = f" (and {len(found) - _NAMED} more)" if len(found) > _NAMED else ""
        raise DuplicateIdError(
            f"{_of_items(len(found), len(ids), 'has', 'have')} an id that is taken: "
            f"{named}{more}. Nothing was written. {_advice(adapter)}, or choose to "
            "skip such items (on_duplicate='skip', on the command line --on-duplicate "
            "skip), and store the first of each id alone"
        )
    for position, message in found:
        sifted.left_out.add(position)
        if on_duplicate != "skip":
            error = DuplicateIdError(message)
            sifted.failures.append(
                describe_failure(adapter, position, ids[position], error)
            )
    return sifted


def _advice(adapter: Adapter) -> str:
    """Say how items get ids of their own."""
    text = "Give each item an id of its own"
    if getattr(adapter, "id_rule", None) == "label-name":
        text += " (id_rule='path', on the command line --id-rule path)"
    return text


def advice_on_given(skip: str) -> str:
    """Advise where items are given an id that is taken, which `skip` would skip."""
    return (
        f"Give each item an id of its own, or choose to skip such items ({skip}). If "
        "no two have the same: does iter_data give the items of its slice_element, "
        "and no others?"
    )


def warn_of_repeats(
    adapter: Adapter, ids: Sequence[str], repeats: Mapping[int, int]
) -> None:
    """Tell of items that are skipped for the id of another; see `Sifted.repeats`."""
    if repeats:
        position, earlier = next(iter(repeats.items()))
        _logger.warning(
            "%s skipped and not stored, for the id is that of one before it: %r is "
            "that of %s and of %s%s. %s to store them all",
            counted(len(repeats), "item"),
            ids[position],
            _place(adapter, earlier),
            _place(adapter, position),
            f" (and {len(repeats) - 1} more)" if len(repeats) > 1 else "",
            _advice(adapter),
        )


def _all_stored(ids: Sequence[str], positions: Sequence[int]) -> str:
    """Say that items were ingested before, which is no fault of their ids."""
    named = ", ".join(repr(ids[position]) for position in positions[:_NAMED])
    more = f" and {len(positions) - _NAMED} more" if len(positions) > _NAMED else ""
    return (
        f"{_of_items(len(positions), len(ids), 'is', 'are')} in the directory already: "
        f"{named}{more}. Nothing was written. To store the others alone, choose to "
        "skip these (on_duplicate='skip', on the command line --on-duplicate skip)"
    )


def _of_items(number: int, total: int, verb: str, plural: str) -> str:
    """Say how many of the items, with the verb that goes with that."""
    return f"{number} of {counted(total, 'item')} {verb if number == 1 else plural}"


def name_places(adapter: Adapter, ids: Sequence[str], positions: Sequence[int]) -> str:
    """Name some items with their places, and count the rest."""
    named = "; ".join(
        f"{ids[position]!r}, {_place(adapter, position)}"
        for position in positions[:_NAMED]
    )
    more = f" (and {len(positions) - _NAMED} more)" if len(positions) > _NAMED else ""
    return named + more


def _place(adapter: Adapter, position: int) -> str:
    source = source_of(adapter, position)
    return f"position {position}" + (f" ({source})" if source is not None else "")
