"""The order in which ``gulp2 ls --sort`` lists items."""

from __future__ import annotations

import json
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import click

from gulpio2.cli.terminal import escape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gulpio2.directory import GulpDirectory
    from gulpio2.item import StoredItem

__all__ = ["sort_ids"]

# In front of a key of the metadata that is named like one of the columns.
_META = "meta."


def sort_ids(
    directory: GulpDirectory, ids: Iterable[str], column: str, *, reverse: bool
) -> list[str]:
    """Sort items by a column; those that have nothing there come last, either way.

    Parameters
    ----------
    directory : GulpDirectory
        It has the items.
    ids : iterable of str
        Items.
    column : str
        ``id``, ``num_frames``, ``chunk`` or ``bytes``, or a key of the metadata.
    reverse : bool
        The largest come first. Those that are equal keep their order.

    Raises
    ------
    click.BadParameter
        No item has such a key in its metadata.
    """
    of_item = _column(directory, column)
    found = [(id_, of_item(directory.item(id_))) for id_ in ids]
    known = [(id_, _rank(value)) for id_, value in found if value is not None]
    if found and not known:
        raise click.BadParameter(
            f"No item has {escape(repr(column))} in its metadata; there are also id, "
            "num_frames, chunk and bytes.",
            param_hint="--sort",
        )
    known.sort(key=itemgetter(1), reverse=reverse)
    return [id_ for id_, _ in known] + [id_ for id_, value in found if value is None]


def _column(directory: GulpDirectory, name: str) -> Callable[[StoredItem], Any]:
    of_items: dict[str, Callable[[StoredItem], Any]] = {
        "id": lambda item: item.id_,
        "num_frames": lambda item: item.num_frames,
        "chunk": lambda item: directory.chunk_lookup[item.id_],
        "bytes": lambda item: item.num_bytes,
    }
    key = name.removeprefix(_META)
    return of_items.get(name) or (lambda item: item.meta.get(name, item.meta.get(key)))


def _rank(value: Any) -> tuple[int, Any]:
    """Give what is compared: numbers come before texts, and these before all else."""
    if isinstance(value, int | float) and value == value:  # not NaN
        return 0, value
    return (1, value) if isinstance(value, str) else (2, json.dumps(value))
