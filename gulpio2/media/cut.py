"""What is missing from a file, as from one that was cut off, and what is there."""

from __future__ import annotations

from typing import IO, NamedTuple

__all__ = ["GET_WHOLE", "WRITE_ANEW", "Blocks", "Damage", "Found", "cut", "read_at"]

# What to do, without a stop.
GET_WHOLE = "Get a whole copy of it, or leave it out"
WRITE_ANEW = "Write it anew with another program than FFmpeg, or leave it out"


class Damage(NamedTuple):
    """What is missing from a file."""

    message: str
    """For an error: a clause without a subject, as "is cut ..."."""
    excusable: bool = False
    """All frames may be there nevertheless, if the container counted them."""
    advice: str = GET_WHOLE


class Blocks(NamedTuple):
    """The blocks of a video that each hold one packet."""

    start: int
    """Where what is in the first one begins, in bytes."""
    num_blocks: int


class Found(NamedTuple):
    """What is known of a file before it is opened."""

    damage: Damage | None
    blocks: tuple[Blocks | None, ...] = ()
    """Of its videos, in their order, where the container has such."""


def cut(what: str, promised: int, size: int, *, excusable: bool = False) -> Damage:
    """Say of a part that it goes on behind the end of the file."""
    return Damage(
        f"is cut off: {what} ends at byte {promised} and the file at {size}", excusable
    )


def read_at(file: IO[bytes], position: int, count: int) -> bytes:
    """Read up to so many bytes from a position on."""
    file.seek(position)
    return file.read(count)
