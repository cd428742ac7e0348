"""The entries of a map one after the other, with the place of each in the file.

`gulpio2.format.gmeta.load_gmeta` gives a whole map as objects, two hundred bytes for
each frame. Here an entry is at hand at a time, its spans as text, which `parse_spans`
makes an array of, so that an index can be built of maps of any size.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gulpio2.errors import MetaFileError
from gulpio2.format.entry import EXTRAS_KEY
from gulpio2.format.gmeta import load_gmeta, validate_entry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

__all__ = ["ScannedEntry", "UnusualMapError", "parse_spans", "scan_gmeta"]

# Of the standard library: its stubs leave them out.
_make_scanner: Any = json.scanner.make_scanner  # type: ignore[attr-defined]  # see above
_scan_string: Any = json.decoder.scanstring  # type: ignore[attr-defined]  # see above

_BLANK = r"[ \t\n\r]*"
_SPACE = re.compile(_BLANK)
_OPEN = re.compile(rf"{_BLANK}\{{{_BLANK}")
_QUOTE = re.compile(rf'{_BLANK}"')
_COLON = re.compile(rf"{_BLANK}:{_BLANK}")
_AFTER_VALUE = re.compile(rf"{_BLANK}(?:(,){_BLANK}|\}})")
# Spans as json.dumps writes them, and such that no more has to be checked: a pad of at
# most 3, a length of at least that, and sums that fit 64 bits.
_OFFSET = r"(?:0|[1-9][0-9]{0,17})"
_LENGTH = r"(?:[3-9]|[1-9][0-9]{1,17})"
_TRIPLET = rf"\[{_OFFSET}, [0-3], {_LENGTH}\]"
_TRIPLETS = rf"\[(?:{_TRIPLET}(?:, {_TRIPLET})*)?\]"
# An entry up to its metadata, and what is behind those, as they are written: most
# entries begin and go on so. Those that have no times end as in _SHORT, which looks
# first at what is behind the checksums, as these may be many; only whole groups of four
# characters are sure to be what base64 gives.
_WRITTEN = re.compile(
    rf'"([^"\\\x00-\x1f]*)": \{{"frame_info": ({_TRIPLETS}), "meta_data": '
)
_EXTRAS = f', "{EXTRAS_KEY}": '
_BASE64 = r"(?:[0-9A-Za-z+/]{4})*(?:[0-9A-Za-z+/]{2}==|[0-9A-Za-z+/]{3}=)?"
_SHORT = re.compile(
    rf'{_EXTRAS}\{{"crc32": "(?=[^"]*", "check": )({_BASE64})", '
    r'"check": "([0-9a-f]{8})"\}\}'
)
_SEPARATORS = str.maketrans("[]", "  ")
# The keys of an entry in their order, with which nothing needs to be looked up again.
_REGULAR = (("frame_info", "meta_data"), ("frame_info", "meta_data", EXTRAS_KEY))


class UnusualMapError(Exception):
    """A valid map in a form that the scanner does not read."""


class ScannedEntry(NamedTuple):
    """One entry of a map."""

    id_: str
    """The item."""
    start: int
    """First byte of the entry in the file: the quote before its id."""
    stop: int
    """Byte after the last one."""
    spans_text: str
    """JSON of ``frame_info``, as this package writes it; see `parse_spans`."""
    meta_text: str
    """The JSON of its metadata, as it stands in the file."""
    extras: Any
    """The value of the ``gulp2`` key; None where there is none."""
    only_checksums: bool
    """Whether the extras are ``crc32`` and ``check``, written as by this package."""
    regular: bool
    """Whether there are no further keys, and these in the usual order."""

    @property
    def num_frames(self) -> int:
        """Count its frames."""
        return self.spans_text.count("]") - 1


def parse_spans(texts: Iterable[str]) -> npt.NDArray[np.int64]:
    """Make one array of the spans of several entries, a row per frame.

    Parameters
    ----------
    texts : iterable of str
        Lists of triplets as `ScannedEntry.spans_text` has them.

    Examples
    --------
    >>> parse_spans(["[[0, 1, 8], [8, 0, 4]]", "[]", "[[12, 3, 4]]"]).tolist()
    [[0, 1, 8], [8, 0, 4], [12, 3, 4]]
    """
    numbers = ",".join(text for text in texts if text != "[]").translate(_SEPARATORS)
    if not numbers:
        return np.empty((0, 3), np.int64)
    return np.fromstring(numbers, np.int64, sep=",").reshape(-1, 3)


def scan_gmeta(data: bytes, *, where: str) -> Iterator[ScannedEntry]:
    """Go through the entries of a map.

    Parameters
    ----------
    data : bytes
        The whole file.
    where : str
        Its path, for messages.

    Raises
    ------
    MetaFileError
        It is not a valid map; as `load_gmeta`.
    UnusualMapError
        It is a map that `load_gmeta` reads, and not one that is read here: in another
        encoding than UTF-8, or with ids that are no text.
    """
    try:
        yield from _Scanner(data).entries()
    except (ValueError, IndexError, RecursionError) as cause:
        load_gmeta(data, where=where)  # which says what is wrong, in its own words
        raise UnusualMapError(f"{where}: {cause}") from cause


def _require_text(id_: str) -> None:
    try:
        id_.encode("utf-8")
    except UnicodeEncodeError as cause:
        raise ValueError(
            f"the id {id_!r} holds half a character, as that of a file whose name is "
            "no UTF-8. Rename such a file and ingest it again"
        ) from cause


class _Scanner:
    """A position in the text of a map."""

    def __init__(self, data: bytes) -> None:
        self.text = data.decode("utf-8")
        self.ascii = data.isascii()
        self._scan = _make_scanner(json.JSONDecoder())
        # Behind a byte order mark, with which some editors begin a file.
        self._at = int(self.text.startswith("\ufeff"))
        # Text position and byte position of the same place, where they differ.
        self._known = (0, 0)

    def entries(self) -> Iterator[ScannedEntry]:
        seen: set[str] = set()
        self._skip(_OPEN)
        is_last = self.text.startswith("}", self._at)
        self._at += is_last
        while not is_last:
            entry = self._written_entry() or self._entry()
            if entry.id_ in seen:
                raise ValueError(f"{entry.id_!r} appears twice")
            seen.add(entry.id_)
            yield entry
            is_last = self._skip(_AFTER_VALUE)[1] is None
        self._skip(_SPACE)
        if self._at != len(self.text):
            raise ValueError(f"more than one value, at {self._at}")

    def _key(self) -> tuple[int, str]:
        """Give where a key begins, and the key; the position is that of its value."""
        self._skip(_QUOTE)
        begin = self._at - 1
        key, self._at = _scan_string(self.text, self._at)
        self._skip(_COLON)
        return begin, key

    def _object(self) -> Iterator[str]:
        """Give each key of an object; the position is then that of its value."""
        self._skip(_OPEN)
        if self.text.startswith("}", self._at):
            self._at += 1
            return
        while True:
            yield self._key()[1]
            if self._skip(_AFTER_VALUE)[1] is None:
                return

    def _written_entry(self) -> ScannedEntry | None:
        """Read an entry in the form in which they are written; None for another."""
        text, begin = self.text, self._at
        match = _WRITTEN.match(text, begin)
        if match is None:
            return None
        metas, metas_end = self._value(match.end())
        if short := _SHORT.match(text, metas_end):
            packed, check = short.groups()
            extras, end = {"crc32": packed, "check": check}, short.end()
        else:
            extras, at = None, metas_end
            if has_extras := text.startswith(_EXTRAS, at):
                extras, at = self._value(at + len(_EXTRAS))
            if not text.startswith("}", at):
                return None
            end = at + 1
        is_usual = type(metas) is list and len(metas) == 1 and type(metas[0]) is dict
        if short is None or not is_usual:  # else there is nothing left to be wrong
            entry = {"frame_info": [], "meta_data": metas}
            if short is None and has_extras:
                entry[EXTRAS_KEY] = extras
            if fault := validate_entry(entry):
                raise MetaFileError(fault)
        self._at = end
        return ScannedEntry(
            match[1],
            self._byte_position(begin),
            self._byte_position(end),
            match[2],
            text[match.end() : metas_end],
            extras,
            only_checksums=short is not None,
            regular=True,
        )

    def _entry(self) -> ScannedEntry:
        """Read any entry."""
        begin, id_ = self._key()
        _require_text(id_)
        entry: dict[str, Any] = {}
        meta_text = "[]"
        for key in self._object():
            if key in entry:
                raise ValueError(f"the entry of {id_!r} has {key!r} twice")
            value_at = self._at
            entry[key], self._at = self._value(value_at)
            if key == "meta_data":
                meta_text = self.text[value_at : self._at]
        if fault := validate_entry(entry):
            raise MetaFileError(fault)
        return ScannedEntry(
            id_,
            self._byte_position(begin),
            self._byte_position(self._at),
            json.dumps(entry["frame_info"]),
            meta_text,
            entry.get(EXTRAS_KEY),
            only_checksums=False,
            regular=tuple(entry) in _REGULAR,
        )

    def _value(self, at: int) -> tuple[Any, int]:
        """Read any value at a place; give it and where it ends."""
        try:
            value, end = self._scan(self.text, at)
        except StopIteration as cause:  # which would end a generator
            raise ValueError(f"no value at {cause.value}") from cause
        return value, end

    def _byte_position(self, at: int) -> int:
        """Turn a text position, not before the last one, into one in the file."""
        if self.ascii:
            return at
        text_at, byte_at = self._known
        byte_at += len(self.text[text_at:at].encode("utf-8"))
        self._known = (at, byte_at)
        return byte_at

    def _skip(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """Go on behind what has to stand here."""
        match = pattern.match(self.text, self._at)
        if match is None:
            raise ValueError(f"no {pattern.pattern!r} at {self._at}")
        self._at = match.end()
        return match
