"""Containers of parts that follow each other, looked at one by one.

A part that goes on behind the end of the file says that it was cut off.
"""

from __future__ import annotations

import re
from typing import IO, NamedTuple

from gulpio2.format.checksum import crc32_of
from gulpio2.media.cut import Damage, cut, read_at
from gulpio2.media.png import PNG

__all__ = [
    "KLV_KEY",
    "Unit",
    "check_dv",
    "check_ivf",
    "check_mxf",
    "check_png",
    "check_units",
    "check_y4m",
    "dv_unit",
    "transport_packet",
]

# How Y4M names its pixels, and by how much the width and the height of chroma are
# smaller. FFmpeg passes over a last frame that is cut.
_Y4M = re.compile(rb"(420|422|411|444|mono)(?:jpeg|mpeg2|paldv|(alpha)|p?(9|1[0246]))?")
_Y4M_CHROMA = {b"420": (2, 2), b"422": (2, 1), b"411": (4, 1), b"444": (1, 1)}
_Y4M_FRAME = b"FRAME"
_LONGEST_LINE = 256  # bytes: FFmpeg takes up to 128
# Bytes that are read at a time of what follows a last part.
_PIECE = 1 << 20
_IVF_HEADER = 12  # bytes: the length of a frame, and its time
_PNG_AROUND = 12  # bytes: length, type and checksum of a chunk
_PNG_MOVING = frozenset({b"acTL", b"fcTL", b"fdAT"})
# SMPTE 336: keys are labels of 16 bytes that begin alike. SMPTE 377-1, partition pack:
# the kind of partition in the key, and in the value where the footer is.
KLV_KEY = bytes.fromhex("060e2b34")
_KLV_KEY_BYTES = 16
_HEADER_PARTITION = b"\x02"
_FOOTER_AT = 24
# ISO/IEC 13818-1: packets, each with a byte to find them by. On discs each has a time
# before it.
_TS_BYTES, _M2TS_BYTES, _TS_SYNC = 188, 192, b"\x47"
# Bytes at the end of a file that make a packet: the header of one.
_LEAST_BEGUN = 4
# IEC 61834, SMPTE 314M: the header block of a frame, in its fourth byte the system, of
# ten or twelve sequences of 12,000 bytes; frames of a higher rate are several of them.
_DV_START = b"\x1f\x07\x00"
_DV_SEQUENCE = 12_000
_DV_BYTES = {b"\x3f": 120_000, b"\xbf": 144_000}


def check_y4m(file: IO[bytes], size: int) -> Damage | None:
    """Look at all frames of Y4M."""
    line, newline, _ = read_at(file, 0, _LONGEST_LINE).partition(b"\n")
    length = _y4m_frame_length(line) if newline else 0
    position = len(line) + 1
    while length and position < size:
        line, newline, _ = read_at(file, position, _LONGEST_LINE).partition(b"\n")
        if line[:5] != _Y4M_FRAME[: len(line)]:
            return None  # what follows the last frame
        end = position + len(line) + 1 + length
        if not newline or end > size:
            return cut("its last frame", end, size)
        position = end
    return None


def _y4m_frame_length(header: bytes) -> int:
    """Count the bytes of a frame; 0 where the header does not say it."""
    words = {word[:1]: word[1:] for word in header.split()[1:] if word[:1] != b"X"}
    # Some programs name the pixels in a comment of their own only.
    default = b"" if b" XYSCSS" in header else b"420"
    pixels = _Y4M.fullmatch(words.get(b"C", default))
    width, height = words.get(b"W", b""), words.get(b"H", b"")
    if pixels is None or not (width.isdigit() and height.isdigit()):
        return 0
    w, h = int(width), int(height)
    samples = w * h * (2 if pixels[2] else 1)
    if pixels[1] in _Y4M_CHROMA:
        across, down = _Y4M_CHROMA[pixels[1]]
        samples += 2 * -(-w // across) * -(-h // down)
    return samples * (2 if pixels[3] else 1)


def _is_filled(file: IO[bytes]) -> bool:
    """Tell whether anything but zeros follows."""
    return any(data.strip(b"\0") for data in iter(lambda: file.read(_PIECE), b""))


def check_ivf(file: IO[bytes], size: int) -> Damage | None:
    """Look at all frames of IVF; how many there are its header says in its own way."""
    position = int.from_bytes(read_at(file, 6, 2), "little")
    while position < size:
        header = read_at(file, position, _IVF_HEADER)
        length = int.from_bytes(header[:4], "little")
        if not any(header):
            if _is_filled(file):
                return Damage(f"is damaged: at byte {position} no frame begins")
            return None  # what follows the last frame
        end = position + _IVF_HEADER + length
        if end > size:
            return cut("its last frame", end, size)
        position = end
    return None


def check_png(file: IO[bytes], size: int) -> Damage | None:
    """Look at all chunks of a PNG, up to the one that ends it.

    Of one that moves also at their checksums: FFmpeg leaves out a frame whose chunk has
    another name. Of a picture its decoder sees to what matters.
    """
    position = len(PNG)
    moves, unsound = False, None
    while position < size:
        header = read_at(file, position, 8)
        end = position + _PNG_AROUND + int.from_bytes(header[:4], "big")
        if end > size:
            return unsound or cut("a chunk", end, size)
        moves = moves or header[4:] in _PNG_MOVING
        rest = file.read(end - position - 8)
        if crc32_of(header[4:] + rest[:-4]) != int.from_bytes(rest[-4:], "big"):
            unsound = unsound or Damage(
                f"is damaged: the checksum of its chunk at byte {position} is wrong"
            )
        if header[4:] == b"IEND":
            return unsound if moves else None
        position = end
    return unsound or Damage("is cut off: it has no 'IEND' chunk")


def _has_further(file: IO[bytes], position: int, what: bytes) -> bool:
    """Tell whether something comes again in the rest of a file."""
    kept = b""
    file.seek(position)
    while data := file.read(_PIECE):
        if what in kept + data:
            return True
        kept = data[1 - len(what) :]
    return False


def check_mxf(file: IO[bytes], size: int) -> Damage | None:
    """Look at all triplets of MXF (key, length, value), and for its footer."""
    position = 0
    while position < size:
        header = read_at(file, position, _KLV_KEY_BYTES + 9)
        if header[:4] != KLV_KEY[: len(header)]:
            if _has_further(file, position, KLV_KEY):
                return Damage(f"is damaged: at byte {position} no triplet begins")
            return None  # what follows the last triplet
        sizes = header[_KLV_KEY_BYTES:]
        # Short, or how many bytes of it follow.
        count = sizes[0] & 0x7F if sizes[:1] >= b"\x80" else 0
        length = int.from_bytes(sizes[1 : 1 + count] if count else sizes[:1], "big")
        start = position + _KLV_KEY_BYTES + 1 + count
        if start + length > size:
            return cut("its last triplet", start + length, size)
        if position == 0:
            # SMPTE 377-1, partition pack; 0 where it is open.
            footer = int.from_bytes(read_at(file, start + _FOOTER_AT, 8), "big")
            if footer >= size and header[13:14] == _HEADER_PARTITION:
                return cut("what is before its footer", footer, size)
        position = start + length
    return None


class Unit(NamedTuple):
    """What a file is a number of."""

    name: str
    num_bytes: int
    start: bytes
    """Bytes that each has, at `at`."""
    at: int = 0


def dv_unit(start: bytes) -> Unit | None:
    """Tell by the first bytes whether it is DV, and of which system."""
    if start[:3] != _DV_START or start[3:4] not in _DV_BYTES:
        return None
    return Unit("frame", _DV_BYTES[start[3:4]], _DV_START)


def transport_packet(file: IO[bytes]) -> Unit | None:
    """Tell by its first bytes whether a file is an MPEG transport stream."""
    start = read_at(file, 0, 3 * _M2TS_BYTES)
    for num_bytes, at in ((_TS_BYTES, 0), (_M2TS_BYTES, _M2TS_BYTES - _TS_BYTES)):
        if start[at::num_bytes][:3] == 3 * _TS_SYNC:
            return Unit("transport packet", num_bytes, _TS_SYNC, at)
    return None


def check_dv(file: IO[bytes], size: int, unit: Unit) -> Damage | None:
    """See whether all frames of DV are where they have to be, and the last is whole.

    FFmpeg reads so many bytes as a frame has, whatever is in them.
    """
    astray = None
    for position in range(0, size - unit.num_bytes + 1, unit.num_bytes):
        first, second, third = read_at(file, position, len(_DV_START))
        # The second has the sequence and the channel.
        if (first, second & 7, third) == tuple(_DV_START):
            astray = None
        elif astray is not None:
            break
        else:
            astray = position
    rest = size % unit.num_bytes
    begun = read_at(file, size - rest, len(_DV_START))
    if astray is None and rest >= _DV_SEQUENCE and begun != _DV_START:
        astray = size - rest
    if astray is not None:
        return Damage(f"is damaged: at byte {astray} no frame begins")
    return check_units(file, size, unit)


def check_units(file: IO[bytes], size: int, unit: Unit) -> Damage | None:
    """See whether a file ends between two units."""
    last = size - size % unit.num_bytes
    begun = read_at(file, last + unit.at, _LEAST_BEGUN)
    if len(begun) < _LEAST_BEGUN or not begun.startswith(unit.start):
        return None  # nothing, or what follows the last one
    return cut(f"its last {unit.name}", last + unit.num_bytes, size)
