"""What a repair found, copied and lost."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from gulpio2.format.wording import counted

if TYPE_CHECKING:
    from gulpio2.types import JsonValue

__all__ = ["Loss", "RepairReport", "Salvaged"]


@dataclass(frozen=True, slots=True)
class Salvaged:
    """Frames that are kept under a placeholder id, as no whole item is left of them."""

    id: str
    """The placeholder, ``salvaged_<chunk>_<offset of the first frame>``, both of the
    data file that this is in."""
    chunk: int
    """Number of the chunk in the target: that of its map, or data file, before."""
    frames: int
    """Frames kept."""
    item: str | None
    """Id of the item that they are a part of; None where nothing says so."""
    reason: str
    """Why they are no item any more."""

    def __str__(self) -> str:
        """Give it on one line."""
        whose = "of unknown items" if self.item is None else f"of item {self.item!r}"
        return f"{self.id}: {counted(self.frames, 'frame')} {whose}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Loss:
    """Something that could not be salvaged."""

    file: str
    """Name of the file that it was in."""
    reason: str
    """What is wrong with it."""
    item: str | None = None
    """Id of the item, where it is known."""
    frames: tuple[int, ...] = ()
    """Indices of the frames of the item that are lost."""
    start: int | None = None
    """First byte concerned, where no item is known."""
    stop: int | None = None
    """Behind the last byte concerned."""

    def __str__(self) -> str:
        """Give it on one line."""
        place = self.file
        if self.item is not None:
            place += f", item {self.item!r}"
        if self.frames:
            shown = ", ".join(str(frame) for frame in self.frames[:10])
            more = len(self.frames) - 10
            what = "frame" if len(self.frames) == 1 else "frames"
            place += f", {what} {shown}" + (f" and {more} more" if more > 0 else "")
        if self.start is not None:
            place += f", bytes {self.start} to {self.stop}"
        return f"{place}: {self.reason}"


@dataclass(slots=True)
class RepairReport:
    """What a repair did, or would do."""

    source: str
    """The damaged directory."""
    target: str
    """The clean one."""
    dry_run: bool
    """Whether nothing was written."""
    items: int = 0
    """Items that were copied whole, under their own ids."""
    frames: int = 0
    """Frames that were copied, those under placeholder ids included."""
    num_bytes: int = 0
    """Bytes of their records."""
    frames_without_checksum: int = 0
    """Of these, frames that only the decoder could vouch for."""
    chunks: list[int] = field(default_factory=list)
    """Numbers of the chunks of the target: those of the source."""
    files: list[str] = field(default_factory=list)
    """Names of the other files that were taken over."""
    salvaged: list[Salvaged] = field(default_factory=list)
    """What is kept under placeholder ids."""
    lost: list[Loss] = field(default_factory=list)
    """What could not be salvaged."""
    notes: list[str] = field(default_factory=list)
    """What was left behind on purpose, and what was found elsewhere."""

    @property
    def ok(self) -> bool:
        """Whether nothing was lost, and no item came apart."""
        return not self.lost and not self.salvaged

    def to_json(self) -> dict[str, JsonValue]:
        """Give the report as JSON values."""
        return {**asdict(self), "ok": self.ok}

    def __str__(self) -> str:
        """Sum it up on one line."""
        verb = "can be copied" if self.dry_run else "copied"
        text = (
            f"{counted(self.items, 'whole item')} {verb}, "
            f"{counted(self.frames, 'frame')} ({self.num_bytes / 1e6:.1f} MB) in "
            f"{counted(len(self.chunks), 'chunk')}"
        )
        if self.salvaged:
            frames = sum(part.frames for part in self.salvaged)
            ids = counted(len(self.salvaged), "placeholder id")
            text += f"; {frames} of the frames under {ids}"
        return f"{text}; {counted(len(self.lost), 'loss', 'losses')}"
