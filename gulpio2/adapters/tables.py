"""Reading the tables and JSON files that list a dataset's items.

CSV and TSV with a header line, JSON (a list of objects) and JSON lines, each also
gzip-compressed. Read whole and kept by column, so that a million rows stay small.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import reprlib
import zlib
from collections import Counter
from collections.abc import Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, overload

from gulpio2.adapters.cells import as_float, parse_column
from gulpio2.errors import (
    IngestSettingError,
    SourceFieldError,
    SourceFormatError,
    SourceReadError,
    unreadable,
)
from gulpio2.format.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gulpio2.types import Meta, StrPath

__all__ = [
    "Table",
    "read_delimited",
    "read_json_file",
    "read_table",
    "records_by_id",
]

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_JSON_LINES = (".jsonl", ".ndjson")


class _Cell(Enum):
    """What a row of a JSON table has in a column that only other rows have."""

    ABSENT = 0


class Table(Sequence["Meta"]):
    """Rows of a table, each a fresh dict on every access.

    Parameters
    ----------
    columns : dict of str to list
        Column name to its values, all of one length.
    name : str
        The file, for messages.
    num_rows : int, optional
        Number of rows; needed where there are no columns.
    is_text : bool
        Whether all values are texts, since the file knows no other type.

    Examples
    --------
    >>> table = Table({"id": ["a", "b"], "frames": [3, 5]}, name="t.csv")
    >>> len(table), table[1]
    (2, {'id': 'b', 'frames': 5})
    """

    def __init__(
        self,
        columns: dict[str, list[Any]],
        *,
        name: str,
        num_rows: int | None = None,
        is_text: bool = False,
    ) -> None:
        self.columns = columns
        self.name = name
        self.is_text = is_text
        lengths = {len(values) for values in columns.values()}
        if num_rows is not None:
            lengths.add(num_rows)
        if len(lengths) > 1:
            raise ValueError(f"{name}: columns have different lengths {lengths}")
        self._length = max(lengths, default=0)

    def column(self, name: str) -> list[Any]:
        """Give the values of one column, one a row.

        Parameters
        ----------
        name : str
            Name of the column.

        Returns
        -------
        list
            The values themselves, not a copy.

        Raises
        ------
        SourceFieldError
            There is no such column, or a row lacks it.
        """
        return self._column(name, "Name the right column, or add it.")

    def _column(self, name: str, advice: str) -> list[Any]:
        if not (self.columns or self):  # JSON without rows names no columns
            return []
        if name not in self.columns:
            raise SourceFieldError(
                f"{self.name} has no column {name!r}; it has {list(self.columns)}. "
                f"{advice}"
            )
        values = self.columns[name]
        if _Cell.ABSENT in values:
            raise SourceFieldError(
                f"{self.name}: row {values.index(_Cell.ABSENT) + 1} has no {name!r}. "
                "Every row needs it."
            )
        return values

    @overload
    def __getitem__(self, index: int) -> Meta: ...
    @overload
    def __getitem__(self, index: slice) -> list[Meta]: ...
    def __getitem__(self, index: int | slice) -> Meta | list[Meta]:
        """Give a row, or a list of rows."""
        if isinstance(index, slice):
            return [self[position] for position in range(len(self))[index]]
        position = range(len(self))[index]
        return {
            name: values[position]
            for name, values in self.columns.items()
            if values[position] is not _Cell.ABSENT
        }

    def __len__(self) -> int:
        """Count the rows."""
        return self._length

    def __repr__(self) -> str:
        """Show the file, the size and the columns."""
        rows = counted(len(self), "row")
        return f"Table({self.name!r}, {rows}, columns {list(self.columns)})"


def read_table(
    path: StrPath, *, delimiter: str | None = None, parse_values: bool = True
) -> Table:
    r"""Read a CSV, TSV, JSON or JSON lines table.

    Parameters
    ----------
    path : str or path object
        ``.csv``, ``.tsv``, ``.json`` (a list of objects), ``.jsonl`` or ``.ndjson``,
        with or without a further ``.gz``; UTF-8.
    delimiter : str, optional
        What stands between the columns. Default: ``,`` for CSV, a tab for TSV. Given,
        it makes a file with any other ending a delimited table, too.
    parse_values : bool
        Whether the texts of a delimited table become numbers and booleans, a column at
        a time as `parse_column` does. JSON has its own types.

    Returns
    -------
    Table
        Rows in the order of the file.

    Raises
    ------
    SourceReadError
        The file is missing, is no table, or has a row that does not fit; the message
        gives the line.
    """
    name = os.fspath(path)
    ending = Path(name.removesuffix(".gz")).suffix.lower()
    separator = delimiter or _DELIMITERS.get(ending)
    if separator is not None:
        columns = _delimited_columns(name, separator)
        if parse_values:
            columns = {key: parse_column(values) for key, values in columns.items()}
        return Table(columns, name=name, is_text=not parse_values)
    if ending in _JSON_LINES:
        return _table_of([*_json_lines(name)], name)
    if ending == ".json":
        rows = read_json_file(path)
        if not isinstance(rows, list):
            raise SourceFormatError(f"{name!r} is not a list of objects, one an item.")
        return _table_of(rows, name)
    raise SourceReadError(
        f"{name!r} has no ending of a table; known are .csv, .tsv, .json, .jsonl and "
        ".ndjson, also with .gz. Rename it or save it as one of these, or give "
        "delimiter for a delimited table."
    )


def read_json_file(path: StrPath) -> Any:
    """Read a JSON file, compressed or not.

    Parameters
    ----------
    path : str or path object
        A name that ends in ``.gz`` is decompressed.

    Returns
    -------
    JSON value
        Whatever the file holds.

    Raises
    ------
    SourceNotFoundError, SourceFormatError
        The file is missing, or is no JSON.
    """
    with _open_text(path) as file:
        return _parse_json(file.read(), f"{os.fspath(path)!r}")


def _parse_json(text: str, where: str) -> Any:
    try:
        return json.loads(text, parse_float=as_float, object_pairs_hook=_once)
    except (ValueError, RecursionError) as cause:  # a number may be too long
        raise SourceFormatError(f"{where} is no JSON: {cause}.") from cause


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a key that comes twice, of which JSON would keep the last one."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = Counter(key for key, _ in pairs)
        ((twice, number),) = keys.most_common(1)
        raise ValueError(
            f"the key {reprlib.repr(twice)} is there {number} times in one object"
        )
    return found


def records_by_id(content: Any, refusal: str) -> dict[str, dict[str, Any]]:
    """Give the content of a JSON file that has to be an object of id to record.

    Parameters
    ----------
    content : JSON value
        What is there.
    refusal : str
        What to say where it is something else.

    Raises
    ------
    SourceFieldError
        It is something else.
    """
    if not isinstance(content, dict) or not all(
        isinstance(record, dict) for record in content.values()
    ):
        raise SourceFieldError(refusal)
    return content


def read_delimited(path: StrPath, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Read the rows of a delimited file, blank ones left out.

    Parameters
    ----------
    path : str or path object
        A UTF-8 file; a name that ends in ``.gz`` is decompressed.
    delimiter : str
        One character.

    Yields
    ------
    (int, list of str)
        Line number, from 1, of the row's end, and its cells.

    Raises
    ------
    SourceNotFoundError, SourceFormatError
        The file is missing, or cannot be parsed.
    IngestSettingError
        The delimiter is not one character.
    """
    delimiter = "\t" if delimiter == "\\t" else delimiter  # as a shell gives it
    if len(delimiter) != 1:
        raise IngestSettingError(
            f"delimiter is {delimiter!r}; it must be one character"
        )
    with _open_text(path) as file:
        # Strict: a quote that nobody closes would swallow all rows after it.
        reader = csv.reader(file, delimiter=delimiter, strict=True)
        try:
            for row in reader:
                if any(cell.strip() for cell in row):
                    yield reader.line_num, row
        except csv.Error as cause:
            text = f"{os.fspath(path)!r}, line {reader.line_num}: {cause}."
            if "field limit" in str(cause):
                text += " Save it as .jsonl, where a value may have any length."
            raise SourceFormatError(text) from cause


@contextmanager
def _open_text(path: StrPath) -> Iterator[TextIO]:
    name = os.fspath(path)
    try:
        # utf-8-sig: spreadsheet programs put a byte order mark in front.
        with (
            gzip.open(name, "rt", encoding="utf-8-sig", newline="")
            if name.endswith(".gz")
            else Path(name).open(encoding="utf-8-sig", newline="")
        ) as file:
            yield file
    except UnicodeDecodeError as cause:
        raise SourceFormatError(
            f"{name!r} is not UTF-8 text ({cause}). Convert it to UTF-8."
        ) from cause
    except (OSError, EOFError, zlib.error) as cause:
        reason = getattr(cause, "strerror", None) or cause  # the name is told already
        raise unreadable(
            cause,
            f"{name!r} cannot be read ({reason}). Give the path of a file that can"
            f"{', and is what its ending says' if name.endswith('.gz') else ''}.",
        ) from cause


def _delimited_columns(name: str, delimiter: str) -> dict[str, list[Any]]:
    rows = read_delimited(name, delimiter)
    _, header = next(rows, (0, []))
    names = [cell.strip() for cell in header]
    if not names:
        raise SourceFormatError(f"{name!r} is empty; its first line must name columns.")
    if len(set(names)) < len(names):
        raise SourceFormatError(
            f"{name!r} names a column twice: {names}. Rename one of them."
        )
    others = [mark for mark in ";\t|," if mark != delimiter and mark in names[0]]
    if len(names) == 1 and others:
        text = f"{name!r} has no {delimiter!r} between columns, but one {names[0]!r}."
        raise SourceFormatError(f"{text} Give delimiter={others[0]!r} (--delimiter).")
    columns: list[list[Any]] = [[] for _ in names]
    for line, row in rows:
        if len(row) != len(names):
            advice = f"Quote a cell that holds the delimiter {delimiter!r}"
            if len(row) < len(names):
                advice = "Add those that are missing, empty ones too"
            raise SourceFormatError(
                f"{name!r}, line {line}: {counted(len(row), 'cell')} for "
                f"{counted(len(names), 'column')} {names}. {advice}."
            )
        for column, cell in zip(columns, row, strict=True):
            column.append(cell)
    return dict(zip(names, columns, strict=True))


def _json_lines(name: str) -> Iterator[Any]:
    with _open_text(name) as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield _parse_json(line, f"{name!r}, line {number},")


def _table_of(rows: list[Any], name: str) -> Table:
    """Make a table of what JSON has of each row."""
    return Table(_columns_of(rows, name), name=name, num_rows=len(rows))


def _columns_of(rows: Iterable[Any], name: str) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {}
    for position, row in enumerate(rows):
        if not isinstance(row, dict):
            raise SourceFormatError(
                f"{name!r}: row {position + 1} is not an object but {row!r:.80}."
            )
        for key in row:
            if key not in columns:
                columns[key] = [_Cell.ABSENT] * position
        for key, values in columns.items():
            values.append(row.get(key, _Cell.ABSENT))
    return columns
