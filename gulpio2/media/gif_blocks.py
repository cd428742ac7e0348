"""The blocks of a GIF, up to its trailer: some bytes less, and frames are passed over.

What is in an image or an extension are blocks that each say how long they are, up to
an empty one. Where bytes are missing, what follows is taken for lengths, and the
headers of further frames for content.
"""

from __future__ import annotations

import os
import re
from typing import IO, NamedTuple

from gulpio2.media.cut import Damage, read_at

__all__ = ["check_gif"]

_PIECE = 1 << 16  # bytes that are read at a time
_CONTROL = b"\xf9"  # an extension of one block of four bytes
# With what a frame begins: that extension, and behind it an image.
_FRAME = re.compile(rb"!\xf9\x04.{4}\0,", re.DOTALL)


class _Blocks(NamedTuple):
    """Blocks up to an empty one."""

    end: int
    """0 where there is none."""
    first: int
    """The length of the first."""
    has_several: bool
    is_odd: bool
    """Whether one but the last is of another length than the first, or that longer."""


def check_gif(file: IO[bytes]) -> Damage | None:
    """Look at all blocks of a GIF.

    All programs that are known fill each block of an image but its last, with 254 bytes
    or 255. A file of which most images are otherwise is taken as it is.
    """
    screen = read_at(file, 0, 13)
    _skip_colours(file, screen[10:11])
    num_even = 0
    odd: list[int] = []
    while kind := file.read(1):
        if kind == b";":
            if odd and len(odd) < num_even:
                return Damage(
                    f"is damaged: bytes of its image at byte {odd[0]} are missing, or "
                    "too many"
                )
            return None
        start = file.tell()
        label = b""
        if kind == b"!":
            label = file.read(1)
        elif kind == b",":
            _skip_colours(file, file.read(9)[8:])
            file.read(1)  # bits of the first codes
        else:
            return Damage(f"is damaged at byte {start - 1}")
        blocks = _blocks_at(file, file.tell())
        if not blocks.end:
            break
        is_odd = blocks.is_odd or kind == b"!"
        if label == _CONTROL and (blocks.first != 4 or blocks.has_several):
            return Damage(f"is damaged: its control block at byte {start - 1}")
        if is_odd and _FRAME.search(read_at(file, start, blocks.end - start)):
            return Damage(f"is damaged: a frame is lost behind byte {start - 1}")
        if kind == b"," and blocks.is_odd:
            odd.append(start - 1)
        num_even += kind == b"," and blocks.has_several and not blocks.is_odd
        file.seek(blocks.end)
    return Damage("is cut off: it has no trailer")


def _skip_colours(file: IO[bytes], flags: bytes) -> None:
    if flags and flags[0] & 0x80:
        file.seek(3 << ((flags[0] & 7) + 1), os.SEEK_CUR)


def _blocks_at(file: IO[bytes], position: int) -> _Blocks:
    first = last = count = at = 0
    is_odd = False
    data = read_at(file, position, _PIECE)
    while True:
        if at >= len(data):
            position += at
            at = 0
            data = read_at(file, position, _PIECE)
            if not data:
                return _Blocks(0, first, count > 1, is_odd)
        length = data[at]
        at += length + 1
        if not length:
            return _Blocks(position + at, first, count > 1, is_odd)
        first = first or length
        is_odd = is_odd or last not in (0, first) or length > first
        last = length
        count += 1
