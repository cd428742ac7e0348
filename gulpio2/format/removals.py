"""``deleted.json``: items that are hidden, and bytes that were erased.

A deleted item is gone from its map at once. Its frames stay in the data file until the
chunk is compacted, and its entry is kept here, so that its bytes are still accounted
for. Compacting leaves holes of zeros where it was; those spans are kept here as well.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gulpio2.errors import MetaFileError
from gulpio2.format.checked_json import dump_checked, load_checked
from gulpio2.format.gmeta import validate_entry
from gulpio2.format.wording import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "Removals",
    "dump_removals",
    "entry_spans",
    "load_removals",
    "meets_spans",
    "merge_spans",
]

_ADVICE = (
    "Items that were deleted stay hidden without it, but the check can then no longer "
    "tell their bytes from damage"
)


@dataclass(slots=True)
class Removals:
    """What was removed from the chunks of a directory, by chunk number."""

    deleted: dict[int, list[tuple[str, dict[str, Any]]]] = field(default_factory=dict)
    """Id and entry of items whose frames are still in the data file."""
    erased: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """Start and stop, in bytes, of spans that hold zeros; ascending, apart."""

    def hidden_items(
        self, number: int, there: Iterable[tuple[str, list[list[int]]]]
    ) -> list[tuple[str, dict[str, Any]]]:
        """Give the deleted items of a chunk that its map does not have.

        An item that is in the map with the frames that it had was not deleted after
        all: the deletion was interrupted. One of the same id with other frames came
        later, and what it had before stays deleted.

        Parameters
        ----------
        number : int
            The chunk.
        there : iterable of (str, list)
            Each id of the map, and ``[offset, pad, length]`` of each of its frames;
            damaged maps have ids twice.
        """
        deleted = self.deleted.get(number, [])
        found: dict[str, list[list[list[int]]]] = {id_: [] for id_, _ in deleted}
        for id_, frames in there:
            if id_ in found:
                found[id_].append(frames)
        return [
            (id_, entry)
            for id_, entry in deleted
            if not any(
                frames[: len(entry["frame_info"])] == entry["frame_info"]
                for frames in found[id_]
            )
        ]


def entry_spans(entry: dict[str, Any]) -> list[tuple[int, int]]:
    """Give start and stop of every record of an entry."""
    return [(loc, loc + length) for loc, _, length in entry["frame_info"]]


def merge_spans(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join spans that touch or overlap.

    Examples
    --------
    >>> merge_spans([(8, 12), (0, 4), (4, 6)])
    [(0, 6), (8, 12)]
    """
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        elif stop > start:
            merged.append((start, stop))
    return merged


def meets_spans(span: tuple[int, int], others: Sequence[tuple[int, int]]) -> bool:
    """Tell whether a span shares bytes with others, which are ascending and apart.

    Examples
    --------
    >>> meets_spans((4, 8), [(0, 5), (8, 12)]), meets_spans((5, 8), [(0, 5), (8, 12)])
    (True, False)
    """
    # The last one that begins before the end of the span also ends last of these.
    at = bisect_left(others, (span[1],))
    return at > 0 and others[at - 1][1] > span[0]


def dump_removals(removals: Removals) -> bytes:
    """Write the file; chunks without anything are left out."""
    return dump_checked(
        {
            "deleted": {
                str(number): [list(pair) for pair in pairs]
                for number, pairs in sorted(removals.deleted.items())
                if pairs
            },
            "erased": {
                str(number): [list(span) for span in spans]
                for number, spans in sorted(removals.erased.items())
                if spans
            },
        }
    )


def load_removals(data: bytes, *, where: str) -> Removals:
    """Read the file.

    Raises
    ------
    MetaFileError
        It is damaged.
    """
    value = load_checked(data, where=where, advice=_ADVICE)
    try:
        removals = Removals(
            {
                int(number): [(str(id_), entry) for id_, entry in pairs]
                for number, pairs in value["deleted"].items()
            },
            {
                int(number): [_span(*span) for span in spans]
                for number, spans in value["erased"].items()
            },
        )
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as cause:
        raise MetaFileError(f"{where}: is malformed: {cause}. {_ADVICE}") from cause
    for pairs in removals.deleted.values():
        for id_, entry in pairs:
            if fault := validate_entry(entry):
                raise MetaFileError(f"{where}: item {id_!r}: {fault}. {_ADVICE}")
    return removals


def _span(start: Any, stop: Any) -> tuple[int, int]:
    if not (type(start) is int and type(stop) is int and 0 <= start <= stop < 2**63):
        raise ValueError(f"{shown([start, stop])} is no span of a file")
    return start, stop
