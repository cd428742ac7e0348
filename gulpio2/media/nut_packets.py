"""The packets and frames of a NUT, one by one: FFmpeg passes over damaged ones.

It goes on at the next point to begin at, and says nothing. The frames between two such
points lead to each other by their lengths, other packets have checksums, and an
index at the end lists the points.
"""

from __future__ import annotations

from typing import IO, NamedTuple

from gulpio2.media.cut import Damage, cut, read_at
from gulpio2.media.ogg_pages import turned_crc32

__all__ = ["NUT", "check_nut"]

# The NUT open container format: how a file begins, and its kinds of packets.
NUT = b"nut/multimedia container\0"
_MAIN = b"NM\x7a\x56\x1f\x5f\x04\xad"
_SYNCPOINT = b"NK\xe4\xad\xee\xca\x45\x69"
_INDEX = b"NX\xdd\x67\x2f\x23\xe6\x4e"
_CODE = 8
# Packets that are longer have a checksum of their beginning too.
_LONG = 4096
_LONGEST_HEADER = 256  # bytes of a frame, which has some numbers and mostly ten bytes
# Flags of a frame that say which numbers it has, and one of the file: no points.
_CODED_PTS, _STREAM_ID, _SIZE_MSB, _CHECKSUM, _RESERVED = 8, 16, 32, 64, 128
_HEADER_IDX, _MATCH_TIME, _CODED, _INVALID = 1024, 2048, 4096, 8192
_KEY_AND_END, _WITH_DATA = 3, 256
_KNOWN = _CODED_PTS | _STREAM_ID | _SIZE_MSB | _CHECKSUM | _RESERVED | _HEADER_IDX
_KNOWN |= _MATCH_TIME | _CODED | _KEY_AND_END | _WITH_DATA
_WITHOUT_POINTS = 2
_NUM_FRAME_CODES = 256


class _FrameCode(NamedTuple):
    """What the first byte of a frame stands for."""

    flags: int
    factor: int
    size: int
    num_reserved: int
    elided: int


_NO_FRAME = _FrameCode(_INVALID, 1, 0, 0, 0)


class _Main(NamedTuple):
    """What the main header says of all frames."""

    max_distance: int
    has_points: bool
    frame_codes: list[_FrameCode]
    elided: list[int]
    """How many bytes the frames of each kind have elsewhere."""

    def is_too_far(self, position: int, points: list[int]) -> bool:
        """Tell whether there has to be a point between the last one and a frame."""
        return self.has_points and (
            not points or position - points[-1] > self.max_distance
        )


class _Numbers:
    """Numbers of seven bits a byte, one after the other."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def next(self) -> int:
        """Raise IndexError behind the last."""
        number = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            number = number << 7 | byte & 0x7F
            if byte < 0x80:
                return number


def check_nut(file: IO[bytes], size: int) -> Damage | None:
    """Look at all packets of a NUT, and at the headers of all frames."""
    position, main = len(NUT), None
    points: list[int] = []
    while position < size:
        begun = read_at(file, position, _LONGEST_HEADER)
        is_packet = begun[:1] == b"N"
        start = position
        try:
            if is_packet:
                start, end = _packet_at(begun, position)
            elif main is None:
                return _astray(position)
            else:
                end = position + _frame_length(begun, main)
        except IndexError:
            end = position + len(begun) + 1
            if end <= size:
                return _astray(position)
        except ValueError:
            return _astray(position)
        if end > size:
            return cut("its last packet", end, size)
        if is_packet:
            content = read_at(file, start, end - start)
            if not _is_sound(content):
                return _astray(position)
            code = begun[:_CODE]
            if code == _MAIN:
                main = _main_of(content)
            elif code == _SYNCPOINT:
                points.append(position)
            elif code == _INDEX and main is not None:  # what is behind it is of others
                return _check_index(content, points) if main.has_points else None
        elif main is not None and main.is_too_far(position, points):
            return _astray(position)
        position = end
    return None


def _astray(position: int) -> Damage:
    return Damage(f"is damaged: at byte {position} no packet begins")


def _packet_at(begun: bytes, position: int) -> tuple[int, int]:
    """Give where the content of a packet begins and ends, with its checksum."""
    numbers = _Numbers(begun, _CODE)
    length = numbers.next()
    start = numbers.at + (4 if length > _LONG else 0)
    if length > _LONG and not _is_sound(begun[:start]):
        raise ValueError
    return position + start, position + start + length


def _is_sound(data: bytes) -> bool:
    """Compare what ends with a checksum with it."""
    return turned_crc32(data[:-4])[::-1] == data[-4:]


def _frame_length(begun: bytes, main: _Main) -> int:
    flags, factor, length, num_reserved, elided = main.frame_codes[begun[0]]
    if flags & _INVALID:
        raise ValueError
    numbers = _Numbers(begun, 1)
    if flags & _CODED:
        flags ^= numbers.next()
        if flags & ~_KNOWN:
            raise ValueError
    for flag in (_STREAM_ID, _CODED_PTS):
        if flags & flag:
            numbers.next()
    if flags & _SIZE_MSB:
        length += factor * numbers.next()
    if flags & _MATCH_TIME:
        numbers.next()
    if flags & _HEADER_IDX:
        elided = numbers.next()
    if flags & _RESERVED:
        num_reserved = numbers.next()
    for _ in range(num_reserved):
        numbers.next()
    if elided >= len(main.elided):
        raise ValueError
    if length <= _LONG:
        length -= main.elided[elided]
    if flags & _CHECKSUM:
        numbers.at += 4
        if numbers.at > len(begun):
            raise IndexError
        if not _is_sound(begun[: numbers.at]):
            raise ValueError
    if length < 0:
        raise ValueError
    return numbers.at + length


def _main_of(content: bytes) -> _Main | None:
    numbers = _Numbers(content[:-4])
    try:
        version = numbers.next()
        if version > 3:
            numbers.next()
        numbers.next()  # streams
        max_distance = numbers.next()
        for _ in range(2 * numbers.next()):
            numbers.next()
        codes = _frame_codes(numbers)
        elided = [0]
        for _ in range(numbers.next()):
            elided.append(numbers.next())
            numbers.at += elided[-1]
        flags = 0
        if version > 3 and numbers.at < len(numbers.data):
            flags = numbers.next()
    except IndexError:
        return None
    return _Main(max_distance, not flags & _WITHOUT_POINTS, codes, elided)


def _frame_codes(numbers: _Numbers) -> list[_FrameCode]:
    codes: list[_FrameCode] = []
    factor, elided = 1, 0
    while len(codes) < _NUM_FRAME_CODES:
        flags, num_fields = numbers.next(), numbers.next()
        # Time, factor, stream, size, reserved, count, time to match, header.
        fields = [numbers.next() for _ in range(num_fields)]
        if num_fields > 1:
            factor = fields[1]
        size = fields[3] if num_fields > 3 else 0
        num_reserved = fields[4] if num_fields > 4 else 0
        count = fields[5] if num_fields > 5 else factor - size
        if num_fields > 7:
            elided = fields[7]
        done = 0
        while done < count and len(codes) < _NUM_FRAME_CODES:
            if len(codes) == ord("N"):
                codes.append(_NO_FRAME)
                continue
            code = _FrameCode(flags, factor, size + done, num_reserved, elided)
            codes.append(code)
            done += 1
        if count <= 0:
            raise IndexError
    return codes


def _check_index(content: bytes, points: list[int]) -> Damage | None:
    """Compare the points that there are with those that an index lists."""
    numbers = _Numbers(content[:-4])
    try:
        numbers.next()  # the last time
        listed, place = [], 0
        for _ in range(numbers.next()):
            place += numbers.next()
            listed.append(place)
    except IndexError:
        return None
    if listed != [point >> 4 for point in points]:
        return Damage("is damaged: its index lists other packets than there are")
    return None
