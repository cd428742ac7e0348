"""The tags of an FLV, one by one: where one is damaged, FFmpeg passes over some."""

from __future__ import annotations

import re
from collections import Counter
from typing import IO

from gulpio2.media.cut import Damage, cut, read_at

__all__ = ["FLV", "check_flv"]

FLV = b"FLV\x01"
# Adobe's specification of FLV 10.1, annex E: the header of a tag, and behind the tag
# its length, of which some programs make something else. Types are of sound, video and
# data; a bit above them says that what is in it is encrypted.
_HEADER, _BEHIND = 11, 4
_TYPES = frozenset({8, 9, 15, 18})
_TYPE, _SOUND, _VIDEO = 0x1F, 8, 9
# From here on a first byte says the kind of a packet, and a name follows.
_ENHANCED = 0x80
# What may be the header of a tag.
_LIKE_A_TAG = re.compile(rb"[\x08\x09\x0f\x12].{7}\0\0\0", re.DOTALL)
_PIECE = 1 << 20
# Where so many lengths behind a tag are right to one that is not, that one is damage.
_RARE = 8


def check_flv(file: IO[bytes], size: int) -> Damage | None:
    """Look at the headers of all tags of an FLV, and at their first bytes."""
    position = int.from_bytes(read_at(file, 5, 4), "big") + _BEHIND
    kinds: dict[int, Counter[int]] = {_SOUND: Counter(), _VIDEO: Counter()}
    places: dict[int, int] = {}
    num_told = last = 0
    stream = b""  # zeros by the specification, but FFmpeg takes any
    untold: list[int] = []
    while position < size:
        read = read_at(file, position - _BEHIND, _BEHIND + _HEADER + 1)
        behind, header = read[:_BEHIND], read[_BEHIND:]
        if last and int.from_bytes(behind, "big") == last:
            num_told += 1
        elif last:
            untold.append(position)
        type_ = header[0] & _TYPE
        stream = stream or header[8:11]
        if type_ not in _TYPES or header[8:11] != stream[: len(header[8:11])]:
            if _has_tags(file, position, size):
                return Damage(f"is damaged: at byte {position} no tag begins")
            break  # what follows the last tag
        if len(header) < _HEADER:
            return cut("its last tag", position + _HEADER, size)
        length = int.from_bytes(header[1:4], "big")
        if type_ in kinds and length and header[_HEADER:]:
            kinds[type_][header[_HEADER]] += 1
            if type_ == _SOUND:
                places[header[_HEADER]] = position
        last = _HEADER + length if type_ in kinds else 0
        position += _HEADER + length
        if position > size:
            return cut("its last tag", position, size)
        position += _BEHIND
    if untold and _RARE * len(untold) < num_told:
        return Damage(f"is damaged: before byte {untold[0]} a tag ends elsewhere")
    return _check_sounds(kinds, places)


def _check_sounds(
    kinds: dict[int, Counter[int]], places: dict[int, int]
) -> Damage | None:
    """See whether a tag of sound is one of video, which one bit makes of it.

    It has its own first byte, and all of sound have another one alike.
    """
    sounds = kinds[_SOUND]
    for first, count in sounds.items():
        is_rare = count == 1 or 2 * count < sum(sounds.values())
        if first < _ENHANCED and first in kinds[_VIDEO] and is_rare:
            return Damage(f"is damaged: its tag at byte {places[first]} holds no sound")
    return None


def _has_tags(file: IO[bytes], position: int, size: int) -> bool:
    """Tell whether a tag is in what begins otherwise, or was.

    Of a whole one the length is behind it again. Zeros are what a recorder has set
    aside, and other bytes are what other programs have added.
    """
    last = int.from_bytes(read_at(file, size - _BEHIND, _BEHIND), "big")
    if last >= _HEADER and position <= size - _BEHIND - last:
        return True
    while data := read_at(file, position, _PIECE):
        for found in _LIKE_A_TAG.finditer(data):
            length = int.from_bytes(data[found.start() + 1 : found.start() + 4], "big")
            behind = position + found.start() + _HEADER + length
            written = read_at(file, behind, _BEHIND)
            if written == (_HEADER + length).to_bytes(_BEHIND, "big"):
                return True
        if len(data) < _PIECE:
            return False
        position += len(data) - _HEADER
    return False
