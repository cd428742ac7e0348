"""What a check finds: each fault with its code and its place."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gulpio2.types import JsonValue

__all__ = ["Problem", "Tally", "runs_of_frames"]


_MORE = " more of these"


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is not as the format says, and where."""

    code: str
    """What kind of thing, in kebab-case; the list is in ``docs/format.md``."""
    message: str
    """What is wrong and what can be done, without the place."""
    file: str
    """Name of the file in the directory; ``"."`` for the directory itself."""
    item: str | None = None
    """Id of the item."""
    frame: int | None = None
    """Index of the frame in the item."""
    offset: int | None = None
    """First byte concerned, from the start of the file."""
    count: int = 1
    """How many of them it stands for, where not all are listed."""

    def to_json(self) -> dict[str, JsonValue]:
        """Give the problem as JSON values; what does not apply is null."""
        return asdict(self)

    def __str__(self) -> str:
        """Give place, message and code on one line that is safe to print."""
        place = self._place()
        if self.frame is not None:
            place += f", frame {self.frame}"
        if self.offset is not None:
            place += f", byte {self.offset}"
        return f"{place}: {self.message} [{self.code}]"

    @property
    def is_count(self) -> bool:
        """Whether it tells how many others there are, and is none itself."""
        return self.item is None and self.message.endswith(_MORE)

    def _place(self) -> str:
        place = "this directory" if self.file == "." else _printable(self.file)
        return place if self.item is None else f"{place}, item {self.item!r}"

    def likewise(self, last: int) -> str:
        """Say on a line that the frames after this one, up to `last`, have it too."""
        frames = f"frames {(self.frame or 0) + 1} to {last}"
        return f"{self._place()}, {frames}: likewise [{self.code}]"


def runs_of_frames(problems: Iterable[Problem]) -> Iterator[Sequence[Problem]]:
    """Put together what frames of an item that follow one another have in common.

    Yields
    ------
    sequence of Problem
        At least one; of several, each is of the frame after the one before.
    """
    runs: list[list[Problem]] = []
    # A run of each kind of fault goes on at the same time: a hole in a file is several
    # faults of each frame, which come by turns.
    last: dict[tuple[Any, ...], list[Problem]] = {}
    for problem in problems:
        words = _NUMBERS.sub(r"\1", problem.message)
        kind = problem.file, problem.item, problem.code, words
        run = last.get(kind)
        if run is not None and _follows(run[-1].frame, problem.frame):
            run.append(problem)
        else:
            last[kind] = run = [problem]
            runs.append(run)
    yield from runs


# What differs from frame to frame in a message: checksums, bytes, places; the ids of
# other items, in quotes, are kept.
_NUMBERS = re.compile(r"""('[^']*'|"[^"]*")|\b(?:[0-9a-f]{8}|[0-9a-f]{2})\b|\d+""")


def _follows(before: int | None, frame: int | None) -> bool:
    return before is not None and frame == before + 1


class Tally:
    """Lets through the first problems of a kind in a file, and counts the rest.

    A crafted map makes several problems of a few bytes, and a broken disk one of each
    frame. The first one of an item is let through even then: which items are damaged
    is what has to be known.

    Parameters
    ----------
    most : int
        How many of a kind to let through, and of how many items the first one.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._listed: Counter[tuple[str, str]] = Counter()
        self._left: Counter[tuple[str, str]] = Counter()
        self._items: defaultdict[tuple[str, str], set[str | None]] = defaultdict(set)

    def admit(self, problems: Iterable[Problem]) -> list[Problem]:
        """Give those that are to be listed."""
        listed = []
        for problem in problems:
            kind = problem.file, problem.code
            items = self._items[kind]
            is_first = len(items) < self._most and problem.item not in items
            if is_first:
                items.add(problem.item)
            if is_first or self._listed[kind] < self._most:
                self._listed[kind] += 1
                listed.append(problem)
            else:
                self._left[kind] += problem.count
        return listed

    def rest(self) -> list[Problem]:
        """Give a problem for each kind of which some were not let through."""
        return [
            Problem(code, f"and {more:,}{_MORE}", file, count=more)
            for (file, code), more in self._left.items()
        ]


def _printable(name: str) -> str:
    """Keep a name that comes from the disk from doing things to a terminal."""
    return name if name.isprintable() else repr(name)
