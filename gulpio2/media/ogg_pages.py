"""Ogg: whether all pages of its video are there, and sound.

FFmpeg passes over a page whose checksum is wrong, and says nothing: the frames in it
are missing. It goes on at the next page that is sound, and so does this. Pages of audio
may be lost; of a video, each has to have the number after the last one.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, NamedTuple

from gulpio2.format.checksum import crc32_of
from gulpio2.media.cut import Damage, cut, read_at

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["check_ogg", "turned_crc32"]

# RFC 3533, section 6: where the fields of a page are, in bytes; the last one of its
# header counts the parts behind it.
_NAME = b"OggS"
_HEADER = 27
_FLAGS_AT, _BEGINS = 5, 2
_TIME = slice(6, 14)
_SERIAL, _NUMBER, _CHECKSUM = slice(14, 18), slice(18, 22), slice(22, 26)
# How the first page of a video begins: Theora, VP8, Dirac, Daala, OGM.
_VIDEOS = (b"\x80theora", b"OVP80", b"BBCD\0", b"KW-DIRAC", b"\x80daala", b"\x01video")
# Each byte with its bits in the other order.
_TURNED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
_STRETCH = 1 << 16  # bytes that are looked through at a time


class _Page(NamedTuple):
    """What there is at a place where a page may be."""

    header: bytes
    content: bytes
    start: int
    end: int
    """Where it should end, by its header."""
    is_sound: bool
    is_cut: bool = False
    """Whether it goes on behind the end of the file, and no page follows."""


class _Video(NamedTuple):
    """What was read of one video."""

    next_number: int
    in_header: bool
    """Whether no page with frames has come."""


def check_ogg(file: IO[bytes], size: int) -> Damage | None:
    """Look at all pages of Ogg."""
    videos: dict[bytes, _Video] = {}
    others: set[bytes] = set()
    for page in _pages(file, size):
        serial = page.header[_SERIAL]
        if not page.is_sound:
            if page.is_cut:
                return cut("its last page", page.end, size)
            if serial not in others and _is_of_one(page, videos):
                return Damage(f"is damaged: its page at byte {page.start} is not sound")
            continue
        if page.header[_FLAGS_AT] & _BEGINS:  # again, where files were joined
            videos.pop(serial, None)
            others.discard(serial)
            if page.content.startswith(_VIDEOS):
                videos[serial] = _Video(0, in_header=True)
            else:
                others.add(serial)
        if serial not in videos:
            continue
        number = int.from_bytes(page.header[_NUMBER], "little")
        expected, in_header = videos[serial]
        # Whoever records from a station gets the header, and the pages from then on.
        if number > expected and expected and not in_header:
            return Damage(
                f"is damaged: of a video the pages {expected} to {number - 1} are "
                f"missing before byte {page.start}"
            )
        in_header = in_header and not any(page.header[_TIME])
        videos[serial] = _Video(number + 1, in_header)
    return None


def _pages(file: IO[bytes], size: int) -> Iterator[_Page]:
    """Give all sound pages, and what there is in the place of others."""
    position = 0
    while position < size:
        page = _page_at(file, position)
        if page.is_sound:
            yield page
            position = page.end
            continue
        begins_well = page.header[:4] == _NAME[: len(page.header)]
        position = _next_sound(file, position + 1, size)
        yield page._replace(is_cut=begins_well and page.end > size == position)


def _next_sound(file: IO[bytes], position: int, size: int) -> int:
    """Find the next page that is sound; the end of the file where there is none."""
    while position < size:
        stretch = read_at(file, position, _STRETCH)
        place = stretch.find(_NAME)
        while place >= 0:
            if _page_at(file, position + place).is_sound:
                return position + place
            place = stretch.find(_NAME, place + 1)
        if len(stretch) < len(_NAME):
            break
        position += len(stretch) - len(_NAME) + 1  # a name may be in two stretches
    return size


def _page_at(file: IO[bytes], position: int) -> _Page:
    """Read what may be a page."""
    header = read_at(file, position, _HEADER)
    is_named = header[:4] == _NAME
    num_parts = header[26] if is_named and len(header) == _HEADER else 0
    parts = file.read(num_parts)
    content = file.read(sum(parts))
    is_sound = (
        is_named
        and len(header) == _HEADER
        and len(parts) == num_parts
        and len(content) == sum(parts)
        and header[_CHECKSUM] == _checksum(header, parts + content)
    )
    end = position + _HEADER + num_parts + sum(parts)
    return _Page(header, content, position, end, is_sound)


def _checksum(header: bytes, rest: bytes) -> bytes:
    """Compute the checksum of a page as it is written: of all else in it."""
    return turned_crc32(header[:22] + bytes(4) + header[26:] + rest)


def turned_crc32(data: bytes) -> bytes:
    """Give zlib's CRC-32 with all bits in the other order, and nothing inverted."""
    crc = crc32_of(data.translate(_TURNED), 0xFFFF_FFFF) ^ 0xFFFF_FFFF
    return crc.to_bytes(4, "big").translate(_TURNED)


def _is_of_one(page: _Page, videos: dict[bytes, _Video]) -> bool:
    """Tell whether what is no sound page was the next one of a video.

    Two of three do: its name, its stream, its number. What follows the last page of a
    file has none.
    """
    is_named = page.header[:4] == _NAME
    number = int.from_bytes(page.header[_NUMBER], "little")
    return any(
        is_named + (page.header[_SERIAL] == serial) + (number == video.next_number) > 1
        for serial, video in videos.items()
    )
