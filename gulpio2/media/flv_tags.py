"""The tags of an FLV, one by one: where one is damaged, FFmpeg passes over some."""

from __future__ import annotations

from typing import IO

from gulpio2.media.cut import Damage, cut, read_at

__all__ = ["FLV", "check_flv"]

FLV = b"FLV\x01"
# Adobe's specification of FLV 10.1, annex E: the header of a tag, and behind the tag
# its length, of which some programs make something else. Types are of sound, video and
# data; a bit above them says that what is in it is encrypted.
_HEADER, _BEHIND = 11, 4
_TYPES = frozenset({8, 9, 15, 18})
_TYPE = 0x1F


def check_flv(file: IO[bytes], size: int) -> Damage | None:
    """Look at the headers of all tags of an FLV."""
    position = int.from_bytes(read_at(file, 5, 4), "big") + _BEHIND
    while position < size:
        header = read_at(file, position, _HEADER)
        if not any(header) and not _goes_on(file):
            return None  # what follows the last tag
        if len(header) < _HEADER:
            return cut("its last tag", position + _HEADER, size)
        if header[0] & _TYPE not in _TYPES or any(header[8:11]):
            return Damage(f"is damaged: at byte {position} no tag begins")
        position += _HEADER + int.from_bytes(header[1:4], "big")
        if position > size:
            return cut("its last tag", position, size)
        position += _BEHIND
    return None


def _goes_on(file: IO[bytes]) -> bool:
    while data := file.read(1 << 20):
        if data.strip(b"\0"):
            return True
    return False
