"""What several commands take."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING, Any

import click

from gulpio2.cli.parameter_types import InputFolder
from gulpio2.cli.terminal import set_verbosity
from gulpio2.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from gulpio2.directory import GulpDirectory

__all__ = [
    "directory_argument",
    "dry_run_option",
    "given_once",
    "ids_like",
    "json_option",
    "limit_option",
    "number_option",
    "open_gulp_directory",
    "overwrite_option",
    "pattern_argument",
    "require_gulp_directory",
    "verbosity_options",
]


def given_once(ctx: click.Context, param: click.Parameter, values: Any) -> Any:
    """Give the one value of an option that is `multiple`, to refuse a second.

    Of two conditions the last alone would count, and a command would take, or delete,
    more than was meant.
    """
    if len(values) > 1:
        name = param.opts[0]
        text = f"it is given {len(values)} times, and one alone would count"
        if name == "--where":
            text += ": join the conditions by and"
        raise click.BadParameter(text, ctx=ctx, param=param)
    return values[0] if values else None


directory_argument = click.argument(
    "directory",
    metavar="DIR",
    type=InputFolder(),
    help="A gulp directory.",
)

pattern_argument = click.argument(
    "pattern",
    metavar="[PATTERN]",
    required=False,
    help="Only ids like this: with *, ? and [abc] as in a shell, but for / too.",
)

overwrite_option = click.option(
    "--overwrite", is_flag=True, help="Replace files that are there already."
)

dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Say what would be written, and write nothing."
)


def ids_like(ids: Iterable[str], pattern: str | None) -> list[str]:
    """Give the ids that a pattern names; all of them where there is none.

    An id is like itself, too: it may have brackets.
    """
    if pattern is None:
        return list(ids)
    return [id_ for id_ in ids if id_ == pattern or fnmatch.fnmatchcase(id_, pattern)]


def json_option(what: str) -> Callable[[Any], Any]:
    """Add ``--json``, which arrives as ``as_json``.

    Parameters
    ----------
    what : str
        What is printed as JSON, for the help.
    """
    return click.option("--json", "as_json", is_flag=True, help=f"Print {what}.")


def limit_option(what: str) -> Callable[[Any], Any]:
    """Add ``--limit``, for `gulpio2.cli.terminal.write_some`.

    Parameters
    ----------
    what : str
        What the lines are, for the help.
    """
    return click.option(
        "--limit",
        type=click.IntRange(min=0),
        default=100,
        show_default=True,
        help=f"Lines of {what} to print at most; 0 for all of them.",
    )


def number_option(
    *names: str, least: int = 1, most: int | None = None, **attrs: Any
) -> Callable[[Any], Any]:
    """Add an option of a whole number, whose default is shown."""
    attrs = {"metavar": "N", "show_default": "default" in attrs, **attrs}
    numbers = click.IntRange(least, most)
    numbers.name = "whole number"  # what click's message says that 'x' is not
    return click.option(*names, type=numbers, **attrs)


def verbosity_options(command: Callable[..., Any]) -> Any:
    """Add ``-q`` and ``-v``, which work before and after a subcommand's name.

    Parameters
    ----------
    command : callable
        The function that becomes a command. It gets neither as an argument.
    """

    def be_quiet(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
        if value:
            set_verbosity(-1, ctx)

    def be_verbose(ctx: click.Context, _param: click.Parameter, value: int) -> None:
        if value:
            set_verbosity(value, ctx)

    command = click.option(
        "-v",
        "--verbose",
        count=True,
        expose_value=False,
        callback=be_verbose,
        help="Say what is done; twice: everything.",
    )(command)
    return click.option(
        "-q",
        "--quiet",
        is_flag=True,
        expose_value=False,
        callback=be_quiet,
        help="No bar and no warnings: only results and errors.",
    )(command)


_OTHER_FOLDER = "Give the folder that was ingested into"


def require_gulp_directory(path: Path) -> None:
    """Refuse a folder that is no gulp directory.

    Raises
    ------
    FormatError
        It holds neither a map nor a manifest.
    """
    from gulpio2.format.layout import MANIFEST_NAME, describe_shares, list_chunks
    from gulpio2.storage import open_store
    from gulpio2.unfinished import describe_begun

    store = open_store(path)
    names = store.names()
    found = list_chunks(names)
    if not (found.chunks or found.meta_only or MANIFEST_NAME in names):
        if begun := describe_begun(store):
            raise FormatError(f"{path} {begun}")
        advice = (
            found.describe_lone_data()
            or found.describe_strays()
            or describe_shares(names)
            or _OTHER_FOLDER
        )
        raise FormatError(
            f"{path} is no gulp directory: it holds no chunk, that is no data_N.gulp "
            f"with its meta_N.gmeta. {advice}"
        )


def open_gulp_directory(path: Path) -> GulpDirectory:
    """Open a folder that must be a gulp directory; see `require_gulp_directory`."""
    from gulpio2.cli.progress import ProgressBar, indexed_bytes
    from gulpio2.directory import GulpDirectory

    require_gulp_directory(path)
    with ProgressBar(indexed_bytes(path), counted="num_bytes") as bar:
        return GulpDirectory(path, progress=bar)
