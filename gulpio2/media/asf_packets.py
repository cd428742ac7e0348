"""The packets of an ASF, and the parts of frames in them.

FFmpeg passes over a part that does not belong where it is, and over its frame.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, NamedTuple

from gulpio2.media.cut import WRITE_ANEW, Damage, cut, read_at

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ASF", "check_asf"]

# ASF specification, objects by GUID. Each begins with it and with its length; flags are
# in the properties of the file, which are looked for in so much of its header.
ASF = bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c")
_DATA = bytes.fromhex("3626b2758e66cf11a6d900aa0062ce6c")
_PROPERTIES = bytes.fromhex("a1dcab8c47a9cf118ee400c00c205365")
_OBJECT, _FLAGS_AT, _BROADCAST = 24, 88, 1
_HEADER = 1 << 20
# Properties of a stream: its kind is behind the length, and its number so far on.
_STREAM = bytes.fromhex("9107dcb7b7a9cf118ee600c00c205365")
_VIDEO = bytes.fromhex("c0ef19bc4d5bcf11a8fd00805f5c442b")
_NUMBER_AT, _NUMBER = 72, 0x7F
# The size of a packet in the properties, what is before the first one, and how one
# begins that is written with room for the correction of errors, as nearly all are.
# Those of others, as of GStreamer, begin with a number that is below this.
_SIZE_AT, _DATA_HEADER, _CORRECTION, _CORRECTED = 92, 50, b"\x82\0\0", 0x80
# Of no file: it stands for a length that was not known yet.
_UNKNOWN_LENGTH = (1 << 64) - 1
# Section 5.2.2: by two bits, how many bytes a number has.
_WIDTHS = (0, 1, 2, 4)
_TIMES = 6  # bytes: when a packet is sent, and how long it lasts
_WITH_SIZE, _COMPRESSED = 8, 1  # bytes that are repeated with each part of an object
# Where less of a packet is left, FFmpeg goes on to the next one (FRAME_HEADER_SIZE in
# ``libavformat/asfdec_f.c``).
_LEAST_PART = 6
# Numbers of objects that are missing. A greater jump may be where files were joined.
_FEW = 8


class _Part(NamedTuple):
    """A part of an object, which is a frame or some sound."""

    stream: int
    number: int
    offset: int
    size: int
    """Of the object; -1 for unknown."""
    length: int
    num_objects: int
    """More than one where several whole ones are together."""
    is_read: bool
    """Whether FFmpeg reads it."""


class _Begun(NamedTuple):
    """How far the objects of a stream have come."""

    number: int
    size: int
    done: int


def check_asf(file: IO[bytes], size: int) -> Damage | None:
    """Look at the header and all packets of an ASF, unless it is a broadcast."""
    length = int.from_bytes(read_at(file, 16, 8), "little")
    if length > size:
        return cut("its header", length, size)
    header = read_at(file, 0, min(length, _HEADER))
    place = header.find(_PROPERTIES)
    if place < 0 or place + _FLAGS_AT >= len(header):
        return None
    data = read_at(file, length, _OBJECT)
    if header[place + _FLAGS_AT] & _BROADCAST or data[:16] != _DATA:
        return None  # its lengths are of no meaning, or this is no data
    data_length = int.from_bytes(data[16:], "little")
    if data_length == _UNKNOWN_LENGTH:
        return None
    end = length + data_length
    if end > size:
        return cut("its data", end, size)
    step = int.from_bytes(header[place + _SIZE_AT : place + _SIZE_AT + 4], "little")
    places = range(length + _DATA_HEADER, end - step + 1, step or 1)
    return _check_packets(file, places, _videos_of(header))


def _videos_of(header: bytes) -> set[int]:
    """Find the numbers of the streams that are videos."""
    numbers = set()
    place = header.find(_STREAM)
    while 0 <= place < len(header) - _NUMBER_AT:
        if header.startswith(_VIDEO, place + _OBJECT):
            numbers.add(header[place + _NUMBER_AT] & _NUMBER)
        place = header.find(_STREAM, place + 1)
    return numbers


def _check_packets(file: IO[bytes], places: range, videos: set[int]) -> Damage | None:
    """See whether packets, which are of one size, begin where they have to."""
    step = places.step
    first = read_at(file, places.start, len(_CORRECTION))
    is_corrected = first == _CORRECTION
    if step < len(_CORRECTION) or not (is_corrected or first[:1] < b"\x80"):
        return None
    begun: dict[int, _Begun] = {}
    for position in places:
        packet = read_at(file, position, step)
        if is_corrected:
            is_begun = packet.startswith(_CORRECTION)
        else:
            is_begun = packet[0] < _CORRECTED
        if not is_begun:
            return Damage(f"is damaged: at byte {position} no packet begins")
        try:
            for part in _parts_of(packet, len(_CORRECTION) if is_corrected else 0):
                if part.stream in videos:
                    if not part.is_read:
                        return _unread(position)
                    _add(begun, part)
        except (IndexError, ValueError):
            return Damage(
                f"is damaged: parts of frames are missing in, or before, its packet at "
                f"byte {position}"
            )
    if any(stream.done < stream.size for stream in begun.values()):
        return Damage("is damaged: the end of its last frame is missing")
    return None


def _unread(position: int) -> Damage:
    return Damage(
        f"says of its packet at byte {position} that it is filled up more than there "
        "is room behind its parts, so that FFmpeg leaves out some",
        advice=WRITE_ANEW,
    )


def _add(begun: dict[int, _Begun], part: _Part) -> None:
    """Put a part behind those before it; ValueError where it cannot be there."""
    number, size, done = begun.get(part.stream, _Begun(-1, 0, 0))
    if part.size < 0 or (number < 0 and part.offset):
        return  # not known, or the rest of what is before the file
    if part.offset:
        if (part.number, part.size, part.offset) != (number, size, done):
            raise ValueError
        done += part.length
    else:
        # Numbers may be of one byte.
        missing = (part.number - number - 1) & 0xFF if number >= 0 else 0
        if done < size or 0 < missing <= _FEW:
            raise ValueError
        number, size, done = part.number, part.size, part.length
    if done > size:
        raise ValueError
    begun[part.stream] = _Begun(number + part.num_objects - 1, size, done)


def _parts_of(packet: bytes, at: int) -> Iterator[_Part]:
    """Give the parts in a packet, whose numbers begin at a byte.

    GStreamer gives some packets a length without what fills them up, and tells of that
    as well. FFmpeg has the last part that it begins end behind that place.
    """

    def number(kind: int) -> int:
        nonlocal at
        at += _WIDTHS[kind & 3]
        if at > len(packet):
            raise IndexError
        return int.from_bytes(packet[at - _WIDTHS[kind & 3] : at], "little")

    flags, properties = packet[at], packet[at + 1]
    at += 2
    end = number(flags >> 5) or len(packet)
    number(flags >> 1)
    end -= number(flags >> 3)
    at += _TIMES
    count, of_length = 1, 0
    if flags & 1:
        count, of_length = packet[at] & 0x3F, packet[at] >> 6
        at += 1
    is_read = at <= end
    for _ in range(count):
        is_read = is_read and at + _LEAST_PART <= end
        stream = packet[at] & _NUMBER
        at += 1
        object_number = number(properties >> 4)
        offset, repeated = number(properties >> 2), number(properties)
        size = int.from_bytes(packet[at : at + 4], "little")
        at += repeated
        length = number(of_length) if flags & 1 else end - at
        is_read = is_read and at <= end
        if length < 0 or at + length > len(packet):
            raise ValueError
        end = max(end, at + length)
        if repeated == _COMPRESSED:
            num_objects, done = 0, at
            while done < at + length:
                done += packet[done] + 1
                num_objects += 1
            yield _Part(stream, object_number, 0, length, length, num_objects, is_read)
        else:
            known = size if repeated >= _WITH_SIZE else -1
            yield _Part(stream, object_number, offset, known, length, 1, is_read)
        at += length
    if any(packet[at:end]):  # parts that are not counted
        raise ValueError
