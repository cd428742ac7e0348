"""Items that are chosen by a condition, as ``ls --where`` does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from gulpio2.cli.options import given_once, open_gulp_directory
from gulpio2.cli.terminal import escape, note, quoted
from gulpio2.errors import GulpError, MapChangedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from gulpio2.directory import GulpDirectory

__all__ = ["note_none", "open_and_ask", "require_ids_or_condition", "where_option"]

# How often a directory is opened whose maps a writer changes before it is asked.
_TRIES = 10

where_option = click.option(
    "--where",
    metavar="CONDITION",
    multiple=True,
    callback=given_once,
    help="Only items that meet it: columns are num_frames, chunk, id and the keys of "
    "the metadata; as in label == 'waving' and num_frames >= 16.",
)


def open_and_ask(path: Path, where: str | None) -> tuple[GulpDirectory, Iterable[str]]:
    """Open a directory, again if a writer has changed it meanwhile, and choose ids.

    Parameters
    ----------
    path : Path
        The folder.
    where : str or None
        The condition. Without one all items are chosen.

    Returns
    -------
    directory : GulpDirectory
        To be closed.
    ids : iterable of str
        Those of the items that meet the condition, in the directory's order.

    Raises
    ------
    click.BadParameter
        The condition is none, or does not fit the columns.
    """
    tries = _TRIES
    while True:
        opened = open_gulp_directory(path)
        try:
            return opened, _chosen(opened, where)
        except BaseException as cause:
            opened.close()
            tries -= 1
            if not (isinstance(cause, MapChangedError) and tries):
                raise


def _chosen(directory: GulpDirectory, where: str | None) -> Iterable[str]:
    if where is None:
        return directory.merged_meta_dict
    if not where.strip():
        raise click.BadParameter(
            "It is empty: perhaps a variable of the shell is not set. Write it as "
            "label == 'waving' and num_frames >= 16.",
            param_hint="--where",
        )
    try:
        return directory.query(where).ids
    except GulpError:  # of the directory, and not of the condition
        raise
    except ValueError as error:
        raise click.BadParameter(escape(error), param_hint="--where") from error


def require_ids_or_condition(ids: Sequence[str], where: str | None) -> None:
    """Refuse a command line that chooses no items: it does not mean all of them.

    Raises
    ------
    click.UsageError
        There are neither ids nor a condition.
    """
    if not ids and where is None:
        raise click.UsageError(
            "Missing argument 'ID...'. Name items, or give a condition that they meet "
            "(--where)."
        )


def note_none(path: Path, wanted: Sequence[str], undone: str = "") -> None:
    """Say that no item is as it was wanted, and where all of them are to be seen.

    Parameters
    ----------
    path : Path
        The directory.
    wanted : sequence of str
        What was asked of an item: "meets the condition".
    undone : str, optional
        What was not done therefore: "nothing was deleted".
    """
    told = f"no item {' and '.join(wanted)}" + (f", and {undone}" if undone else "")
    note(f"gulp2: {told}; all items are listed by: gulp2 ls {quoted(path)}")
