"""What of a TIFF file OpenCV would read otherwise than other images.

It multiplies colours by their transparency and turns the image; both are told by one
number in the file each, so both are prevented there; where who wrote it has multiplied
them, `gulpio2.media.misread` divides them. It gives the first of several
pages, black for a compression that it does not know and behind damage, and some values
as if they were others: such files are refused; damaged ones where they are compressed
by Deflate, which has a checksum.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Literal, NamedTuple

from gulpio2.errors import AdapterContractError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "as_stored",
    "compression_of",
    "has_multiplied_colours",
    "has_two_colours",
    "orientation_of",
    "size_of_tiff",
]

# Bytes of a value, by its kind: those of whole numbers, of which libtiff takes any.
_LENGTHS = {1: 1, 3: 2, 4: 4, 6: 1, 8: 2, 9: 4, 13: 4, 16: 8, 17: 8, 18: 8}
_LONG = 4
# Tags of TIFF 6.0.
_SUBFILE, _WIDTH, _HEIGHT, _BITS, _COMPRESSION = 254, 256, 257, 258, 259
_PHOTOMETRIC, _ORIENTATION, _SAMPLES, _PLANES, _EXTRA = 262, 274, 277, 284, 338
# Where the parts of an image are, strips or tiles, and how long.
_PARTS = ((273, 279), (324, 325))
# Which of them are tiles, and the tags of their width and height; of rows of a strip.
_TILES, _TILE, _ROWS = 1, (322, 323), 278
_DEFLATE = frozenset({8, 32946})
# Bytes that are inflated at a time, and that there may be beside the pixels.
_PIECE, _OVERHANG = 1 << 20, 1 << 24
_REDUCED_OR_MASK = 0b101
_WHITE_IS_ZERO = 0
_PALETTE = 3
_YCBCR = 6
_LAB = frozenset({8, 9, 10})
_SEPARATE = 2
_UNASSOCIATED, _ASSOCIATED = 2, 1
# Those that libtiff has a decoder for, or an error if it was built without.
_KNOWN_COMPRESSIONS = frozenset(
    {
        1, 2, 3, 4, 5, 6, 7, 8, 32766, 32771, 32773, 32809, 32909, 32946, 34661, 34676,
        34677, 34887, 34925, 50000, 50001,
    }
)  # fmt: skip
_MOST_PAGES = 10_000


class _Entry(NamedTuple):
    num_values: int
    kind: int
    place: int
    """Of the first value."""


_Entries = dict[int, _Entry]


class _Tiff:
    """The numbers of a TIFF, or of a BigTIFF, whose places have eight bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.order: Literal["little", "big"] = "little" if data[:1] == b"I" else "big"
        big = 43 in (data[2], data[3])
        # Bytes of a place, and of the number of entries.
        self._place, self._count = (8, 8) if big else (4, 2)

    @property
    def num_bytes(self) -> int:
        """Count the bytes of the file."""
        return len(self._data)

    def number(self, place: int, length: int) -> int:
        """Read a number; bytes behind the end are 0."""
        part = self._data[place : place + length]
        return int.from_bytes(part, self.order)

    def pages(self) -> Iterator[_Entries]:
        """Yield the entries of each page."""
        length = 4 + 2 * self._place
        start = self.number(self._place, self._place)
        seen: set[int] = set()
        # Entries that there is room for: pages that lie on one another have more.
        left = len(self._data) // length
        while (
            8 <= start < len(self._data)
            and start not in seen
            and len(seen) < _MOST_PAGES
            and left >= 0
        ):
            seen.add(start)
            first = start + self._count
            end = first + length * self.number(start, self._count)
            entries = range(first, min(end, len(self._data)), length)
            left -= len(entries)
            yield dict(map(self._entry, entries))
            start = self.number(end, self._place)

    def _entry(self, at: int) -> tuple[int, _Entry]:
        kind = self.number(at + 2, 2)
        num_values = self.number(at + 4, self._place)
        place = at + 4 + self._place
        if num_values * _LENGTHS.get(kind, _LONG) > self._place:
            place = self.number(place, self._place)
        return self.number(at, 2), _Entry(num_values, kind, place)

    def values(self, entry: _Entry | None) -> list[int]:
        """Give all values of an entry, as far as the file has them."""
        if entry is None:
            return []
        length = _LENGTHS.get(entry.kind, _LONG)
        end = min(entry.place + entry.num_values * length, len(self._data))
        return [self.number(at, length) for at in range(entry.place, end, length)]

    def inflate(self, place: int, num_bytes: int, room: int) -> int:
        """Inflate a part of the file, up to some bytes, and count them.

        Raises
        ------
        zlib.error
            It is damaged, or ends before its checksum.
        """
        stream, found = zlib.decompressobj(), 0
        rest = memoryview(self._data)[place : place + num_bytes]
        while not stream.eof and found < room:
            piece = stream.decompress(rest, _PIECE)
            found += len(piece)
            rest = memoryview(stream.unconsumed_tail)
            if not piece and not rest:
                raise zlib.error("a part of it ends before its checksum")
        return found

    def value(self, entry: _Entry | None, default: int = 0) -> int:
        """Give the first value of an entry."""
        if entry is None or entry.num_values < 1:
            return default
        return self.number(entry.place, _LENGTHS.get(entry.kind, _LONG))


def _is_tiff(data: bytes) -> bool:
    return data[:4] in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")


def size_of_tiff(data: bytes) -> tuple[int, int] | None:
    """Give the width and the height of a TIFF, of its first page; None for others."""
    if not _is_tiff(data):
        return None
    tiff = _Tiff(data)
    first = next(tiff.pages(), {})
    return tiff.value(first.get(_WIDTH)), tiff.value(first.get(_HEIGHT))


def _number_in(data: bytes, tag: int, default: int) -> int:
    """Give a number of the first page; `default` without it, and for another file."""
    if not _is_tiff(data):
        return default
    tiff = _Tiff(data)
    return tiff.value(next(tiff.pages(), {}).get(tag), default)


def orientation_of(data: bytes) -> int:
    """Give the orientation that a TIFF, or a header of Exif, has; 1 without any."""
    return _number_in(data, _ORIENTATION, 1)


def compression_of(data: bytes) -> int:
    """Give the number of the compression of a TIFF; 1, for none, for another file."""
    return _number_in(data, _COMPRESSION, 1)


def has_two_colours(data: bytes) -> bool:
    """Tell a TIFF with a palette of one bit, which OpenCV makes grey if it may."""
    kind = _number_in(data, _PHOTOMETRIC, 0)
    return kind == _PALETTE and _number_in(data, _BITS, 1) == 1


def has_multiplied_colours(data: bytes) -> bool:
    """Tell a TIFF in whose colours transparency was multiplied by who wrote it."""
    return _number_in(data, _EXTRA, 0) == _ASSOCIATED


def as_stored(data: bytes) -> bytes:
    """Give a TIFF file such that OpenCV reads its values as they are stored.

    Parameters
    ----------
    data : bytes
        Any file; what is no TIFF comes back.

    Returns
    -------
    bytes
        Colours that transparency is not multiplied into, and an upright image.

    Raises
    ------
    AdapterContractError
        It has several pages, Lab colours, a compression that nothing here decodes, or
        more than 8 bits either as planes of their own or with 0 for white.
    ValueError
        It is damaged.
    """
    if not _is_tiff(data):
        return data
    tiff = _Tiff(data)
    first: _Entries | None = None
    num_pages = 0
    for entries in tiff.pages():
        first = entries if first is None else first
        num_pages += not tiff.value(entries.get(_SUBFILE)) & _REDUCED_OR_MASK
    if num_pages > 1:
        raise AdapterContractError(
            f"it is a TIFF of {num_pages} pages, and a frame is one; write each into a "
            "file of its own"
        )
    if first is None:
        return data
    _refuse_misread(tiff, first)
    _refuse_damaged(tiff, first)
    changed = bytearray(data)
    for tag, wrong, right in (
        (_EXTRA, {_UNASSOCIATED}, _ASSOCIATED),
        (_ORIENTATION, set(range(2, 9)), 1),
    ):
        entry = first.get(tag)
        length = 0 if entry is None else _LENGTHS.get(entry.kind, 0)
        if entry is None or not length or tiff.value(entry) not in wrong:
            continue
        end = entry.place + length
        if end <= len(changed):
            changed[entry.place : end] = right.to_bytes(length, tiff.order)
    return bytes(changed)


def _refuse_misread(tiff: _Tiff, page: _Entries) -> None:
    """Refuse what OpenCV reads without a word, and as something else."""
    if tiff.value(page.get(_PHOTOMETRIC)) in _LAB:
        raise AdapterContractError("it is a TIFF of Lab colours; convert it to RGB")
    compression = tiff.value(page.get(_COMPRESSION), 1)
    if compression not in _KNOWN_COMPRESSIONS:
        raise AdapterContractError(
            f"it is a TIFF with the compression {compression}, which cannot be decoded "
            "here; write it with another one, as LZW or Deflate"
        )
    samples = tiff.value(page.get(_SAMPLES), 1)
    is_together = tiff.value(page.get(_PLANES), 1) != _SEPARATE
    tiles = zip((_WIDTH, _HEIGHT), _TILE, strict=True)
    if (
        samples == 2
        and is_together
        and _TILE[0] in page
        and any(
            tiff.value(page.get(side)) % max(1, tiff.value(page.get(tile)))
            for side, tile in tiles
        )
    ):
        raise AdapterContractError(
            "it is a TIFF of grey and transparency in tiles that reach beyond its "
            "edges, and its rows would be mixed up; write it in strips"
        )
    bits = tiff.value(page.get(_BITS), 1)
    if bits <= 8:
        return
    if tiff.value(page.get(_PHOTOMETRIC), 1) == _WHITE_IS_ZERO:
        raise AdapterContractError(
            f"it is a TIFF of {bits} bits in which 0 is white, and would be read as "
            "its negative; convert it to one in which 0 is black"
        )
    if not is_together and samples > 1:
        raise AdapterContractError(
            f"it is a TIFF of {bits} bits with a plane for each colour, which would be "
            "mixed up; write it with the colours of a pixel together, or with 8 bits"
        )


def _refuse_damaged(tiff: _Tiff, page: _Entries) -> None:
    """Refuse what OpenCV would give as black rows, with a line on standard error."""
    if tiff.value(page.get(_COMPRESSION), 1) not in _DEFLATE:
        return
    samples, bits = tiff.value(page.get(_SAMPLES), 1), tiff.value(page.get(_BITS), 1)
    sides = tiff.value(page.get(_WIDTH)), tiff.value(page.get(_HEIGHT))
    # Tiles hang over the edges.
    room = 4 * sides[0] * sides[1] * samples * bits // 8 + _OVERHANG
    for kind, (places, lengths) in enumerate(_PARTS):
        both = tiff.values(page.get(places)), tiff.values(page.get(lengths))
        parts = [*zip(*both, strict=False)]
        # Parts that are alike may be one; of others, the file has not more than it has.
        inflated = dict.fromkeys(parts, 0)
        if sum(length for _, length in inflated) > tiff.num_bytes:
            raise ValueError("it is a damaged TIFF: its parts lie on one another")
        for place, length in inflated:
            try:
                found = tiff.inflate(place, length, room)
            except zlib.error as cause:
                raise ValueError(f"it is a damaged TIFF: {cause}") from cause
            inflated[place, length] = found
            room -= found
        _refuse_other_lengths(
            [inflated[part] for part in parts], _part_lengths(tiff, page, kind)
        )


def _part_lengths(
    tiff: _Tiff, page: _Entries, kind: int
) -> tuple[int, int, int] | None:
    """Give the bytes of a part, those of the last one below, and how many go down.

    None where they are not so simple: of chroma that is coarser, or of values of
    several lengths.
    """
    bits = tiff.values(page.get(_BITS)) or [1]
    if tiff.value(page.get(_PHOTOMETRIC), 1) == _YCBCR or len({*bits}) > 1:
        return None
    samples = tiff.value(page.get(_SAMPLES), 1)
    if tiff.value(page.get(_PLANES), 1) == _SEPARATE:
        samples = 1
    height = tiff.value(page.get(_HEIGHT))
    if kind == _TILES:
        width, rows = (tiff.value(page.get(tag)) for tag in _TILE)
        last = rows
    else:
        width = tiff.value(page.get(_WIDTH))
        rows = min(tiff.value(page.get(_ROWS), height), height)
        last = height - rows * ((height - 1) // rows) if rows else 0
    row = (width * samples * bits[0] + 7) // 8
    down = -(-height // rows) if rows else 0
    return row * rows, row * last, down


def _refuse_other_lengths(
    found: list[int], wanted: tuple[int, int, int] | None
) -> None:
    """Refuse parts of more or of less than the pixels that the header tells of."""
    if wanted is None:
        return
    full, last, down = wanted
    for i, num_bytes in enumerate(found):
        # Some write the last part as long as the others.
        is_last = down and i % down == down - 1
        if num_bytes != full and not (is_last and last <= num_bytes <= full):
            raise ValueError(
                f"it is a damaged TIFF: a part of it has {num_bytes} bytes, and its "
                f"pixels are {last if is_last else full} by its header"
            )
