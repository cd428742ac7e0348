"""What a check finds: each fault with its code and its place."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gulpio2.types import JsonValue

__all__ = ["Problem", "Tally"]


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

    def to_json(self) -> dict[str, JsonValue]:
        """Give the problem as JSON values; what does not apply is null."""
        return asdict(self)

    def __str__(self) -> str:
        """Give place, message and code on one line that is safe to print."""
        place = "this directory" if self.file == "." else _printable(self.file)
        if self.item is not None:
            place += f", item {self.item!r}"
        if self.frame is not None:
            place += f", frame {self.frame}"
        if self.offset is not None:
            place += f", byte {self.offset}"
        return f"{place}: {self.message} [{self.code}]"


class Tally:
    """Lets through the first problems of a kind in a file, and counts the rest.

    A crafted map makes several problems of a few bytes, and a broken disk one of each
    frame.

    Parameters
    ----------
    most : int
        How many of a kind to let through.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._counts: Counter[tuple[str, str]] = Counter()

    def admit(self, problems: Iterable[Problem]) -> list[Problem]:
        """Give those that are to be listed."""
        listed = []
        for problem in problems:
            kind = problem.file, problem.code
            self._counts[kind] += 1
            if self._counts[kind] <= self._most:
                listed.append(problem)
        return listed

    def rest(self) -> list[Problem]:
        """Give a problem for each kind of which some were not let through."""
        return [
            Problem(code, f"and {count - self._most:,} more of these", file)
            for (file, code), count in self._counts.items()
            if count > self._most
        ]


def _printable(name: str) -> str:
    """Keep a name that comes from the disk from doing things to a terminal."""
    return name if name.isprintable() else repr(name)
