"""The packets of an MPEG program stream, one by one, up to the last."""

from __future__ import annotations

from typing import IO

from gulpio2.media.cut import Damage, cut, read_at

__all__ = ["PACK", "check_program"]

# ISO/IEC 11172-1 and 13818-1: start codes of a pack and of the end; those above have a
# length. A pack of MPEG-2 has two bits of its own, and says how much it is filled up.
_START, PACK, _END, _FIRST_WITH_LENGTH = b"\0\0\1", b"\0\0\1\xba", 0xB9, 0xBB
_OF_MPEG_1, _OF_MPEG_2, _MARK = 12, 14, 0x40


def check_program(file: IO[bytes], size: int) -> Damage | None:
    """See whether a program stream is cut inside of a packet.

    What is no packet is passed over, as it is by FFmpeg, whose decoders see to it.
    """
    position = 0
    while position < size:
        header = read_at(file, position, _OF_MPEG_2)
        code = header[3] if len(header) > 3 and header.startswith(_START) else 0
        if code == PACK[3] and len(header) >= _OF_MPEG_1:
            is_new = header[4] & _MARK and len(header) == _OF_MPEG_2
            end = position + (_OF_MPEG_2 + (header[13] & 7) if is_new else _OF_MPEG_1)
        elif code >= _FIRST_WITH_LENGTH and len(header) >= 6:
            end = position + 6 + int.from_bytes(header[4:6], "big")
            if end > size:
                return cut("its last packet", end, size)
        else:
            end = _next_start(file, position + (4 if code == _END else 1))
        position = end
    return None


def _next_start(file: IO[bytes], position: int) -> int:
    """Give where the next pack begins; behind all files where none does."""
    piece = 1 << 6  # mostly it is near: some bytes that fill a sector up
    while len(data := read_at(file, position, piece)) >= len(PACK):
        if (found := data.find(PACK)) >= 0:
            return position + found
        position += len(data) + 1 - len(PACK)
        piece = min(2 * piece, 1 << 16)
    return 1 << 64
