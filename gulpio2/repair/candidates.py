"""Frames that may become an item of the target, with what the map says of them."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from gulpio2.errors import AdapterContractError
from gulpio2.format.metadata import plain_metadata
from gulpio2.format.salvage import placeholder_id

if TYPE_CHECKING:
    from gulpio2.format.entry import EntryExtras
    from gulpio2.repair.report import Loss

__all__ = [
    "Candidate",
    "ChunkSurvey",
    "Frame",
    "FramesOfFile",
    "can_be_stored",
    "origin",
]


class Frame(NamedTuple):
    """A frame that is to be moved."""

    chunk: int
    """Number of the data file that it is in."""
    loc: int
    """Offset in that data file."""
    num_bytes: int
    """Length of the JPEG without its padding."""
    crc32: int
    """Of the JPEG as it was read: when it is moved later, it must be the same."""
    pts: int | None = None
    """Its time, where it is known."""


class FramesOfFile(Sequence[Frame]):
    """Frames of one data file, kept in a sixth of the memory that a list takes.

    Parameters
    ----------
    frames : sequence of Frame
        At least one; all in the same data file, and with times or all without.

    Raises
    ------
    OverflowError
        A number has more than 63 bits.
    """

    __slots__ = ("_chunk", "_num", "_pts", "_rows")

    def __init__(self, frames: Sequence[Frame]) -> None:
        self._chunk = frames[0].chunk
        self._num = len(frames)
        self._rows = array("q", (n for frame in frames for n in frame[1:4]))
        self._pts = array("q", (it.pts for it in frames if it.pts is not None))

    def __len__(self) -> int:
        """Count them."""
        return self._num

    @overload
    def __getitem__(self, index: int) -> Frame: ...

    @overload
    def __getitem__(self, index: slice) -> list[Frame]: ...

    def __getitem__(self, index: int | slice) -> Frame | list[Frame]:
        """Give a frame, or some of them."""
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(self._num))]
        place = range(self._num)[index]
        loc, num_bytes, crc32 = self._rows[3 * place : 3 * place + 3]
        pts = self._pts[place] if self._pts else None
        return Frame(self._chunk, loc, num_bytes, crc32, pts)


@dataclass(slots=True)
class Candidate:
    """Frames that may become an item of the target."""

    chunk: int
    id: str
    """Its own id, or a placeholder."""
    frames: Sequence[Frame]
    metas: list[dict[str, Any]]
    extras: EntryExtras
    unverified: int = 0
    """Frames without a stored checksum."""
    item: str | None = None
    """Id of the item that the frames are a part of, if they are not all of it."""
    reason: str = ""
    """Why it is not whole; empty if it is."""

    @property
    def offset(self) -> int:
        """First byte in the source's data file."""
        return self.frames[0].loc if self.frames else 0

    def demoted(self, reason: str) -> Candidate:
        """Give the same frames under a placeholder id."""
        number = self.frames[0].chunk if self.frames else self.chunk
        return Candidate(
            self.chunk,
            placeholder_id(number, self.offset),
            self.frames,
            [origin(number, self.offset, self.item or self.id, self.metas)],
            self.extras,
            self.unverified,
            self.item or self.id,
            reason,
        )


@dataclass(slots=True)
class ChunkSurvey:
    """What one chunk holds."""

    candidates: list[Candidate] = field(default_factory=list)
    """Items, in the order of the map, then the rest, by offset."""
    lost: list[Loss] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_of_others: bool = False
    """Whether all that is in its data file belongs to other maps."""


def can_be_stored(metas: list[dict[str, Any]]) -> bool:
    """Tell whether metadata can be stored: GulpIO2 may have nested it too deeply."""
    try:
        for meta in metas:
            plain_metadata(meta, "metadata")
    except AdapterContractError:
        return False
    return True


def origin(
    number: int, offset: int, item: str | None, metas: list[dict[str, Any]]
) -> dict[str, Any]:
    """Make the metadata of a placeholder: where its frames come from."""
    salvaged: dict[str, Any] = {"chunk": number, "offset": offset, "id": item}
    if metas:
        salvaged["meta_data"] = metas
        if not can_be_stored([{"salvaged": salvaged}]):  # one level more is too many
            del salvaged["meta_data"]
    return {"salvaged": salvaged}
