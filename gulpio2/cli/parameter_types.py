"""Values on the command line that are more than a word."""

from __future__ import annotations

import math
import re
import stat
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import click

from gulpio2.cli.terminal import escape
from gulpio2.errors import StorageError

if TYPE_CHECKING:
    import os

ParamType = click.ParamType[Any]

__all__ = [
    "Bounded",
    "ByteSize",
    "Duration",
    "FrameChoice",
    "InputFolder",
    "Items",
    "NamedFolder",
    "NumberOrText",
    "OrNone",
    "OutputFolder",
    "ParamType",
]

_UNITS = {
    "": 1, "b": 1,
    "k": 10**3, "kb": 10**3, "kib": 2**10,
    "m": 10**6, "mb": 10**6, "mib": 2**20,
    "g": 10**9, "gb": 10**9, "gib": 2**30,
    "t": 10**12, "tb": 10**12, "tib": 2**40,
}  # fmt: skip
# Digits that Python makes an int of are some thousand; no number here has as many.
_BYTES = re.compile(r"([0-9]{1,40}(?:\.[0-9]{1,40})?)\s*([a-z]*)")
_INDEX = re.compile(r"-?[0-9]{1,40}")


class ByteSize(ParamType):
    """A number of bytes, with a unit or without.

    Examples
    --------
    >>> [ByteSize().convert(text, None, None) for text in ("800", "512MB", "1.5GiB")]
    [800, 512000000, 1610612736]
    """

    name = "size"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Give the bytes."""
        match = _BYTES.fullmatch(str(value).strip().lower())
        if match is None or match[2] not in _UNITS:
            self.fail(f"{value!r} is no size; write 800000, 512MB or 1GiB.", param, ctx)
        # Exact, and of any length: a float would be infinite at some point.
        num_bytes = int(Fraction(match[1]) * _UNITS[match[2]])
        if num_bytes < 1:
            self.fail(
                f"{value!r} is less than one byte; write 800000, 512MB or 1GiB.",
                param,
                ctx,
            )
        return num_bytes


class Bounded(click.FloatRange):
    """A number between two bounds; no ``nan``, which is in no order to them."""

    expected: ClassVar[str] = "no number; write one, as 0.5"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Give the number."""
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is {self.expected}.", param, ctx)
        return number


class Duration(Bounded):
    """Seconds between two bounds."""

    name = "seconds"
    expected = "no time; write seconds, as 0.5"


class FrameChoice(ParamType):
    """Frames as Python writes them: an index, a slice, or several.

    Examples
    --------
    >>> convert = FrameChoice().convert
    >>> convert("0:16:2", None, None), convert("-1", None, None)
    ([slice(0, 16, 2)], [-1])
    """

    name = "frames"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[int | slice]:
        """Give indices and slices in order."""
        if isinstance(value, list):
            return value
        chosen: list[int | slice] = []
        for part in str(value).split(","):
            bounds = [bound.strip() for bound in part.split(":")]
            wrong = [b for b in bounds if b and not _INDEX.fullmatch(b)]
            numbers = [int(b) if b and not wrong else None for b in bounds]
            if wrong or len(bounds) > 3 or bounds == [""] or numbers[2:] == [0]:
                self.fail(
                    f"{part!r} chooses no frames; write an index, or start:stop:step "
                    "as in Python, or several with commas between.",
                    param,
                    ctx,
                )
            if len(numbers) == 1 and numbers[0] is not None:
                chosen.append(numbers[0])
            else:
                chosen.append(slice(*numbers))
        return chosen


class NumberOrText(ParamType):
    """An int or a float where the text is one, the text otherwise.

    Examples
    --------
    >>> [NumberOrText().convert(text, None, None) for text in ("8", "2.5", "30/1")]
    [8, 2.5, '30/1']
    """

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | float | str:
        """Give the number or the text."""
        for kind in (int, float):
            try:
                return kind(value)
            except (TypeError, ValueError):
                pass
        return str(value)


class Items(ParamType):
    """Values with commas between.

    Parameters
    ----------
    kind : click.ParamType
        Type of each value.
    """

    def __init__(self, kind: ParamType) -> None:
        self.kind = kind
        self.name = f"{kind.name},..."

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[Any]:
        """Give the values."""
        if not isinstance(value, str):
            return list(value)
        return [self.kind(part.strip(), param, ctx) for part in value.split(",")]


class OrNone(ParamType):
    """Nothing where the text is empty.

    Parameters
    ----------
    kind : click.ParamType
        Type of any other value.
    """

    def __init__(self, kind: ParamType) -> None:
        self.kind = kind
        self.name = kind.name

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Give the value or None."""
        return None if value == "" else self.kind(value, param, ctx)

    def get_metavar(self, *args: Any, **kwargs: Any) -> str | None:
        """Show what the other type shows."""
        return self.kind.get_metavar(*args, **kwargs)


class NamedFolder(click.Path):
    """A folder.

    Parameters
    ----------
    exists : bool, keyword-only
        Whether it has to be there.

    Notes
    -----
    An empty word is none: it is a shell's variable that was not set, and would mean the
    current folder.
    """

    def __init__(self, *, exists: bool = False) -> None:
        super().__init__(exists=exists, file_okay=False, path_type=Path)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Refuse an empty word, and what is there and no folder."""
        if value == "":
            self.fail(
                "It is empty: perhaps a variable of the shell is not set. The current "
                "folder is '.'.",
                param,
                ctx,
            )
        state = self._look_at(value, param, ctx)
        is_folder = state is not None and stat.S_ISDIR(state.st_mode)
        try:
            path = super().convert(value, param, ctx)
        except click.BadParameter:
            if not is_folder:
                raise
            # Click calls it missing, or not readable, also where the disk or network
            # has not answered for a moment.
            path = super().convert(value, param, ctx)
        # Click asks of files alone: this is a pipe, or a device.
        if state is not None and not is_folder:
            self.fail(f"{escape(path)!r} is no folder.", param, ctx)
        return path

    def _look_at(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> os.stat_result | None:
        """Look what is there; of what cannot be seen Click says that it is missing."""
        from gulpio2.storage.paths import look_at

        try:
            return look_at(value)
        except StorageError as cause:
            if self.exists:
                self.fail(escape(cause.strerror), param, ctx)
            return None  # told by what is to write there


class InputFolder(NamedFolder):
    """A folder that is there; of a URL it is said that it is one."""

    def __init__(self) -> None:
        super().__init__(exists=True)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Refuse what is not there, as the library does."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            _refuse_url(self, value, "read", param, ctx)
            raise


class OutputFolder(NamedFolder):
    """A folder to write to; no URL, which would mean one called ``s3:`` in here."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Refuse an empty word, and a URL."""
        folder = super().convert(value, param, ctx)
        _refuse_url(self, value, "write to", param, ctx)
        return folder


def _refuse_url(
    kind: ParamType,
    value: Any,
    what: str,
    param: click.Parameter | None,
    ctx: click.Context | None,
) -> None:
    from gulpio2.storage.refusals import local_path

    try:
        local_path(value, what)
    except StorageError as cause:
        kind.fail(str(cause.strerror), param, ctx)
