"""The entries of a map one after the other, with the place of each in the file.

`gulpio2.format.gmeta.load_gmeta` gives a whole map as objects, two hundred bytes for
each frame. Here an entry is at hand at a time, its spans as an array, so that an index
can be built of maps of any size.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gulpio2.errors import MetaFileError
from gulpio2.format.entry import EXTRAS_KEY
from gulpio2.format.gmeta import load_gmeta, validate_entry

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

__all__ = ["ScannedEntry", "UnusualMapError", "scan_gmeta"]

# Of the standard library: its stubs leave them out.
_make_scanner: Any = json.scanner.make_scanner  # type: ignore[attr-defined]
_scan_string: Any = json.decoder.scanstring  # type: ignore[attr-defined]

# As json.dumps writes a list of triplets. At most 18 digits: it fits 64 bits.
_NUMBER = r"(?:0|[1-9][0-9]{0,17})"
_TRIPLET = rf"\[{_NUMBER}, {_NUMBER}, {_NUMBER}\]"
_TRIPLETS = re.compile(rf"\[(?:{_TRIPLET}(?:, {_TRIPLET})*)?\]")
_BLANK = re.compile(r"[ \t\n\r]*")
_SEPARATORS = bytes.maketrans(b"[]", b"  ")
# The keys of an entry in their order, with which nothing needs to be looked up again.
_REGULAR = (("frame_info", "meta_data"), ("frame_info", "meta_data", EXTRAS_KEY))


class UnusualMapError(Exception):
    """A map that is right, but in a form that only a full load understands."""


@dataclass(frozen=True, slots=True, eq=False)
class ScannedEntry:
    """One entry of a map."""

    id_: str
    """The item."""
    start: int
    """First byte of the entry in the file: the quote before its id."""
    stop: int
    """Byte after the last one."""
    frame_info: npt.NDArray[np.int64]
    """``(n, 3)``: loc, pad, length."""
    meta_data: list[Any]
    """Its metadata."""
    meta_text: str
    """The JSON of it, as it stands in the file."""
    extras: Any
    """The value of the ``gulp2`` key; None where there is none."""
    regular: bool
    """Whether there are no further keys, and these in the usual order."""


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
        It is no map; as `load_gmeta`.
    UnusualMapError
        It is a map that `load_gmeta` reads, and not one that is read here: in another
        encoding than UTF-8, or with ids that are no text.
    """
    try:
        yield from _Scanner(data).entries()
    except (ValueError, IndexError, RecursionError) as cause:
        load_gmeta(data, where=where)  # which says what is wrong, in its own words
        raise UnusualMapError(f"{where}: {cause}") from cause


class _Scanner:
    """A position in the text of a map."""

    def __init__(self, data: bytes) -> None:
        self.text = data.decode("utf-8")
        self.ascii = data.isascii()
        self._ordered = _make_scanner(json.JSONDecoder(object_pairs_hook=OrderedDict))
        self._at = 0
        self._key_at = 0  # where the key begins that was read last
        # Text position and byte position of the same place, where they differ.
        self._known = (0, 0)

    def entries(self) -> Iterator[ScannedEntry]:
        seen: set[str] = set()
        self._blank()
        for id_ in self._object():
            if id_ in seen:
                raise ValueError(f"{id_!r} stands there twice")
            seen.add(id_)
            id_.encode("utf-8")
            yield self._entry(id_, self._key_at)
        self._blank()
        if self._at != len(self.text):
            raise ValueError(f"more than one value, at {self._at}")

    def _object(self) -> Iterator[str]:
        """Give each key of an object; the position is then that of its value."""
        self._expect("{")
        self._blank()
        if self.text.startswith("}", self._at):
            self._at += 1
            return
        while True:
            self._blank()
            begin = self._at
            self._expect('"')
            key, self._at = _scan_string(self.text, self._at)
            self._blank()
            self._expect(":")
            self._blank()
            self._key_at = begin
            yield key
            self._blank()
            mark = self.text[self._at]
            self._at += 1
            if mark == "}":
                return
            if mark != ",":
                raise ValueError(f"{mark!r} after a value, at {self._at}")

    def _entry(self, id_: str, begin: int) -> ScannedEntry:
        keys: list[str] = []
        infos: npt.NDArray[np.int64] | None = None
        entry: dict[str, Any] = {}
        meta_text = "[]"
        for key in self._object():
            value_at = self._at
            if key == "frame_info" and (found := self._triplets()) is not None:
                infos = found
            else:
                entry[key] = self._value()
                if key == "meta_data":
                    meta_text = self.text[value_at : self._at]
            if key in keys:
                raise ValueError(f"the entry of {id_!r} has {key!r} twice")
            keys.append(key)
        fault = validate_entry({"frame_info": [], **entry})
        if fault or (infos is None and "frame_info" not in entry):
            raise MetaFileError(fault or "no frame_info")
        if infos is None:
            infos = np.array(entry["frame_info"], np.int64).reshape(-1, 3)
        elif (infos[:, 1] > 3).any() or (infos[:, 2] < infos[:, 1]).any():
            raise MetaFileError("no [loc, pad, length]")
        return ScannedEntry(
            id_,
            self._byte_position(begin),
            self._byte_position(self._at),
            infos,
            entry["meta_data"],
            meta_text,
            entry.get(EXTRAS_KEY),
            tuple(keys) in _REGULAR,
        )

    def _value(self) -> Any:
        """Read any value."""
        try:
            value, self._at = self._ordered(self.text, self._at)
        except StopIteration as cause:  # which would end a generator
            raise ValueError(f"no value at {cause.value}") from cause
        return value

    def _triplets(self) -> npt.NDArray[np.int64] | None:
        """Read spans in the usual form, at a fifth of the time of a full parse."""
        text, begin = self.text, self._at
        if text.startswith("[]", begin):
            end = begin + 2
        else:
            end = text.find("]]", begin) + 2
        if not _TRIPLETS.fullmatch(text, begin, end):
            return None
        self._at = end
        numbers = text[begin + 1 : end - 1].encode("ascii").translate(_SEPARATORS)
        return np.fromstring(numbers, np.int64, sep=",").reshape(-1, 3)

    def _byte_position(self, at: int) -> int:
        """Turn a text position, not before the last one, into one in the file."""
        if self.ascii:
            return at
        text_at, byte_at = self._known
        byte_at += len(self.text[text_at:at].encode("utf-8"))
        self._known = (at, byte_at)
        return byte_at

    def _blank(self) -> None:
        match = _BLANK.match(self.text, self._at)
        self._at = match.end() if match else self._at

    def _expect(self, mark: str) -> None:
        if not self.text.startswith(mark, self._at):
            raise ValueError(f"no {mark!r} at {self._at}")
        self._at += 1
