"""What is missing from a file that was cut off."""

from __future__ import annotations

from typing import IO, NamedTuple

__all__ = ["GET_WHOLE", "WRITE_ANEW", "Damage", "cut", "read_at"]

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


def cut(what: str, promised: int, size: int, *, excusable: bool = False) -> Damage:
    """Say of a part that it goes on behind the end of the file."""
    return Damage(
        f"is cut off: {what} ends at byte {promised} and the file at {size}", excusable
    )


def read_at(file: IO[bytes], position: int, count: int) -> bytes:
    """Read up to so many bytes from a position on."""
    file.seek(position)
    return file.read(count)
