"""What the columns of a table of items have to hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gulpio2.adapters.cells import as_seconds
from gulpio2.adapters.settings import checked_frame_rate
from gulpio2.adapters.templates import fill_template, parse_template
from gulpio2.errors import (
    IngestSettingError,
    SourceFormatError,
    SourceReadError,
    with_article,
)

if TYPE_CHECKING:
    from gulpio2.adapters.path_sources import MediaKind
    from gulpio2.adapters.tables import Table
    from gulpio2.format.rates import FrameRate

__all__ = [
    "check_excerpts",
    "checked_column",
    "filled_paths",
    "rates_column",
    "seconds_column",
]


def check_excerpts(
    start_column: str | None,
    end_column: str | None,
    id_rule: str | None,
    media: MediaKind,
) -> None:
    """Refuse settings of excerpts that do not go together."""
    if (start_column is None) != (end_column is None):
        raise IngestSettingError(
            f"start_column is {start_column!r} and end_column is {end_column!r}: an "
            "excerpt has both. Name the other column too (on the command line "
            "--start-column, --end-column)."
        )
    if start_column is not None and media not in ("auto", "video"):
        raise IngestSettingError(
            f"start_column is {start_column!r}, but media is {media!r}: only of videos "
            "there are excerpts"
        )
    if start_column is None and id_rule == "clip":
        raise IngestSettingError(
            "id_rule is 'clip', which adds the times of an excerpt: name their columns "
            "in start_column and end_column, or leave it out"
        )


def seconds_column(content: Table, name: str, cells: list[Any]) -> list[float]:
    """Read a column of times."""
    times = []
    for position, cell in enumerate(cells):
        try:
            times.append(as_seconds(cell))
        except ValueError as cause:
            raise SourceFormatError(
                f"{content.name}: row {position + 1} has {cell!r:.80} as {name!r}, "
                f"which is no time: {cause}. Correct it, or name the right column."
            ) from cause
    return times


def filled_paths(content: Table, template: str) -> list[str]:
    """Make the paths of all rows."""
    pieces = parse_template(template)
    names = dict.fromkeys(piece.column for piece in pieces if piece.column)
    columns = {n: checked_column(content, "path_template", n, str, int) for n in names}
    return fill_template(pieces, columns, len(content))


def checked_column(content: Table, setting: str, name: str, *kinds: type) -> list[Any]:
    """Give a column of which every value is there and has one of these types."""
    option = f"--{setting.replace('_', '-')}"
    advice = f"Name the right one in {setting} (on the command line {option})"
    if setting == "id_column":
        advice = f"{advice}, or none ('' there) to take the path"
    if setting == "path_column":
        advice = f"{advice}, make paths of other columns (--path-template)"
    values = content._column(name, f"{advice}, or add it.")
    for position, value in enumerate(values):
        if value == "":
            raise SourceReadError(
                f"{content.name}: row {position + 1} has '' as {name!r}; it must not "
                "be empty. Fill it in, or take the row out."
            )
        if type(value) not in kinds:
            allowed = " or ".join(kind.__name__ for kind in kinds)
            raise SourceReadError(
                f"{content.name}: row {position + 1} has {value!r} as {name!r}; "
                f"{with_article(allowed)} is needed there."
            )
    return values


def rates_column(content: Table, name: str) -> list[FrameRate | None]:
    """Read a column of images a second; None where a row says none."""
    advice = (
        "Name the right one in image_rate_column (on the command line "
        "--image-rate-column), or add it."
    )
    rates: list[FrameRate | None] = []
    for position, cell in enumerate(content._column(name, advice)):
        try:
            rates.append(checked_frame_rate(None if cell == "" else cell, repr(name)))
        except IngestSettingError as cause:
            raise SourceFormatError(
                f"{content.name}: in row {position + 1}, {cause}"
            ) from cause
    return rates
