"""The names of the files in a directory, and how they pair up."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gulpio2.errors import ChunkMismatchError
from gulpio2.format.wording import first_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gulpio2.types import StrPath

__all__ = [
    "FAILURES_NAME",
    "INDEX_NAME",
    "JOURNAL_NAME",
    "LABELS_NAME",
    "MANIFEST_NAME",
    "MAX_NUMBER",
    "REMOVALS_NAME",
    "Listing",
    "data_name",
    "data_number",
    "describe_shares",
    "in_two_chunks",
    "is_partial_of",
    "list_chunks",
    "meta_name",
    "partial_name",
]

LABELS_NAME = "label2idx.json"
MANIFEST_NAME = "gulp.json"
FAILURES_NAME = "failures.jsonl"
INDEX_NAME = "index.arrow"
JOURNAL_NAME = "ingest.journal"
REMOVALS_NAME = "deleted.json"

# No leading zeros: data_0.gulp and data_00.gulp must not both be chunk 0. No more
# digits than fit into 64 bits.
MAX_NUMBER = 10**18 - 1
_DATA = re.compile(r"data_(0|[1-9][0-9]{0,17})\.gulp")
_META = re.compile(r"meta_(0|[1-9][0-9]{0,17})\.gmeta")
_PARTIAL = re.compile(r"(.+)\.[0-9a-z]+\.partial")
_SHARE = re.compile(r"shard_[0-9]+_of_[0-9]+")
# But for what macOS puts beside each file, "._data_0.gulp".
_LIKE_CHUNK = re.compile(r"(?!\._).*\.(gulp|gmeta)", re.IGNORECASE)


def data_name(number: int) -> str:
    """Name the data file of a chunk."""
    return f"data_{number}.gulp"


def meta_name(number: int) -> str:
    """Name the map of a chunk."""
    return f"meta_{number}.gmeta"


def data_number(name: str) -> int | None:
    """Give the number of a data file; None of any other name.

    Examples
    --------
    >>> data_number("data_12.gulp"), data_number("data_012.gulp")
    (12, None)
    """
    match = _DATA.fullmatch(name)
    return int(match[1]) if match else None


def partial_name(name: str, token: str) -> str:
    """Name a file that is being written and will be called `name` once it is whole.

    Parameters
    ----------
    name : str
        The final name.
    token : str
        Lower-case letters and digits, unique to the writer, so that two attempts at
        one chunk never write into one file.
    """
    return f"{name}.{token}.partial"


def is_partial_of(partial: str, name: str) -> bool:
    """Tell of the name of a file whether it will be called `name` once it is whole.

    Examples
    --------
    >>> is_partial_of("data_1.gulp.0a.partial", "data_1.gulp")
    True
    """
    match = _PARTIAL.fullmatch(partial) if partial.startswith(name) else None
    return match is not None and match[1] == name


@dataclass(frozen=True, slots=True)
class Listing:
    """The names in a directory, sorted by what they are."""

    chunks: tuple[int, ...]
    """Numbers that have a data file and a map, ascending."""
    data_only: tuple[int, ...]
    """Numbers with a data file and no map: never committed, or the map was lost."""
    meta_only: tuple[int, ...]
    """Numbers with a map and no data file."""
    partials: tuple[str, ...]
    """Files that a writer had not finished."""
    strays: tuple[str, ...]
    """Names that end like a chunk's but are none, as ``data_00.gulp``."""
    names: tuple[str, ...] = field(repr=False, compare=False)
    """All that were found, also those that have nothing to do with chunks."""

    @property
    def numbers(self) -> frozenset[int]:
        """Every number that is taken, whole chunk or not."""
        return frozenset((*self.chunks, *self.data_only, *self.meta_only))

    def require_data(self, place: Callable[[str], str]) -> None:
        """Refuse a map without a data file.

        Parameters
        ----------
        place : callable
            Says where a name lies, for the message.

        Raises
        ------
        ChunkMismatchError
            There is one.
        """
        for number in self.meta_only[:1]:
            raise ChunkMismatchError(
                f"{place(meta_name(number))} has no {data_name(number)}: the frames "
                "are missing. Put the file back, or run `gulp2 check` for a full list"
            )

    def describe_lone_data(self) -> str:
        """Say which data files have no map; nothing where all have one."""
        if not self.data_only:
            return ""
        named = first_of([*map(data_name, self.data_only)], "data file")
        return (
            f"{named} {'have' if self.data_only[1:] else 'has'} no map: never "
            "committed, or the map is lost. Run `gulp2 check` on the directory"
        )

    def describe_strays(self) -> str:
        """Say that there are strays, and which; nothing where there are none."""
        if not self.strays:
            return ""
        named = first_of(self.strays, "file")
        return (
            f"{named} {'are' if self.strays[1:] else 'is'} named almost like files of "
            "a chunk, and passed over. The names are data_N.gulp and meta_N.gmeta, N "
            "without leading zeros: rename what belongs to the directory"
        )


def describe_shares(
    names: Iterable[str], advice: str = "`gulp2 merge` makes one directory"
) -> str:
    """Say what to do with the shares of an ingest in a folder; nothing without any.

    Examples
    --------
    >>> describe_shares(["shard_1_of_1", "notes.txt"])
    'It holds shares of an ingest, shard_1_of_1: `gulp2 merge` makes one directory'
    """
    shares = sorted(name for name in names if _SHARE.fullmatch(name))
    if not shares:
        return ""
    some = shares[0] if len(shares) == 1 else f"from {shares[0]} to {shares[-1]}"
    return f"It holds shares of an ingest, {some}: {advice}"


def list_chunks(names: Iterable[str]) -> Listing:
    """Sort the names found in a directory.

    Parameters
    ----------
    names : iterable of str
        Plain file names.

    Returns
    -------
    Listing
        Numbers in numeric order: chunk 10 comes after chunk 9.
    """
    found = tuple(names)
    rest = set(found)
    first = _take_first(rest)
    data: set[int] = set()
    meta: set[int] = set()
    partials: list[str] = []
    strays: list[str] = []
    for name in rest:
        if match := _DATA.fullmatch(name):
            data.add(int(match[1]))
        elif match := _META.fullmatch(name):
            meta.add(int(match[1]))
        elif _PARTIAL.fullmatch(name):
            partials.append(name)
        elif _LIKE_CHUNK.fullmatch(name):
            strays.append(name)
    return Listing(
        chunks=(*first, *sorted(data & meta)),
        data_only=tuple(sorted(data - meta)),
        meta_only=tuple(sorted(meta - data)),
        partials=tuple(sorted(partials)),
        strays=tuple(sorted(strays)),
        names=found,
    )


def _take_first(names: set[str]) -> range:
    """Take out the files of the chunks from 0 on, where none of them is missing.

    So it is in most directories. It spares taking the names of thousands of files
    apart: opening is made of such loops.
    """
    count = len(names) // 2
    while count and f"meta_{count - 1}.gmeta" not in names:
        count -= 1  # there are few other files
    data = [f"data_{number}.gulp" for number in range(count)]
    meta = [f"meta_{number}.gmeta" for number in range(count)]
    if not (names.issuperset(data) and names.issuperset(meta)):
        return range(0)
    names.difference_update(data, meta)
    return range(count)


def in_two_chunks(id_: str, one: int, other: int, where: StrPath) -> str:
    """Say that an id is in two chunks of a directory, and how one of them goes.

    Examples
    --------
    >>> print(in_two_chunks("a", 0, 3, "gulped"))  # doctest: +NORMALIZE_WHITESPACE
    item 'a' is in data_0.gulp and in data_3.gulp of gulped. `gulp2 delete DIR ID
    --chunk 3` takes the second away; `gulp2 check` lists all such items
    """
    return (
        f"item {id_!r} is in {data_name(one)} and in {data_name(other)} of {where}. "
        f"`gulp2 delete DIR ID --chunk {other}` takes the second away; `gulp2 check` "
        "lists all such items"
    )
