"""A share of an ingest for one of several machines, which need not know each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gulpio2.arguments import whole_number
from gulpio2.errors import IngestSettingError

if TYPE_CHECKING:
    from gulpio2.ingest.jobs import Task

__all__ = ["Shard"]

_MOST_DIGITS = 40


@dataclass(frozen=True, slots=True)
class Shard:
    """Share `number` of `count`, the first being 1.

    Shares are runs of whole chunks, so that the chunks of all shares, one share after
    the other, are the chunks of an undivided run.

    Raises
    ------
    IngestSettingError
        There is no such share.
    """

    number: int
    """Which one, from 1."""
    count: int
    """How many there are."""

    def __post_init__(self) -> None:
        """Refuse what is no share."""
        for name in ("number", "count"):
            try:
                number = int(whole_number(f"{name} of a shard", getattr(self, name)))
            except TypeError as cause:
                raise IngestSettingError(str(cause)) from None
            object.__setattr__(self, name, number)  # those of NumPy are no JSON
        if not 1 <= self.number <= self.count:
            count = max(self.count, 2)
            raise IngestSettingError(
                f"there is no shard {self.number} of {self.count}; of {count} they are "
                f"1/{count} to {count}/{count}"
            )

    @classmethod
    def parse(cls, text: str) -> Shard:
        """Read ``3/16``.

        Raises
        ------
        IngestSettingError
            Not two numbers, or no share.

        Examples
        --------
        >>> Shard.parse("3/16")
        Shard(number=3, count=16)
        """
        number, slash, count = text.partition("/")
        is_short = len(text) <= _MOST_DIGITS  # Python makes no int of any length
        if not (slash and number.isdecimal() and count.isdecimal() and is_short):
            raise IngestSettingError(
                f"{text[:_MOST_DIGITS]!r} is no shard; give its number and how many "
                "there are: 3/16 is the third of sixteen"
            )
        return cls(int(number), int(count))

    def __str__(self) -> str:
        """Write it as `parse` reads it."""
        return f"{self.number}/{self.count}"

    @property
    def folder_name(self) -> str:
        """Name of its folder; names of all shares sort in their order.

        Examples
        --------
        >>> Shard(3, 16).folder_name
        'shard_03_of_16'
        """
        return f"shard_{self.number:0{len(str(self.count))}}_of_{self.count}"

    def chunks(self, num_chunks: int) -> range:
        """Give the chunks of the whole run that are in the share.

        Examples
        --------
        >>> [Shard(number, 3).chunks(7) for number in (1, 2, 3)]
        [range(0, 2), range(2, 4), range(4, 7)]
        """
        return range(
            num_chunks * (self.number - 1) // self.count,
            num_chunks * self.number // self.count,
        )

    def num_items(self, num_items: int, items_per_chunk: int) -> int:
        """Count the items of the share, if none is left out of the whole run.

        Examples
        --------
        >>> [Shard(number, 2).num_items(13, 5) for number in (1, 2)]
        [5, 8]
        """
        chunks = self.chunks(-(-num_items // items_per_chunk))
        return min(num_items, chunks.stop * items_per_chunk) - min(
            num_items, chunks.start * items_per_chunk
        )

    def positions(self, tasks: list[Task], num_items: int) -> range:
        """Give the positions that are in the share, with those of repeated ids.

        Tasks and number of items are those of the whole run, as if nothing were stored.
        """

        def start_of(index: int) -> int:
            if index == 0:
                return 0
            return tasks[index].start if index < len(tasks) else num_items

        mine = self.chunks(len(tasks))
        return range(start_of(mine.start), start_of(mine.stop)) if mine else range(0)
