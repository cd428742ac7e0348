"""Leaving out items whose ids are taken, as the 20BN adapters offer."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from gulpio2.errors import DuplicateIdError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gulpio2.types import StrPath

__all__ = ["remove_entries_with_duplicate_ids"]


def remove_entries_with_duplicate_ids(
    output_directory: StrPath, meta_dict: Iterable[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Keep the entries whose ids are neither repeated nor in a directory already.

    Parameters
    ----------
    output_directory : str or path object
        A gulp directory; one that does not exist is empty.
    meta_dict : iterable of dict
        Entries with an ``id`` each. Of repeats, compared as they are, the first one
        stays; against the directory, ids are compared as strings.

    Returns
    -------
    list of dict
        What remains, in order.

    Raises
    ------
    DuplicateIdError
        Nothing remains.

    Notes
    -----
    Prints a line for each entry that is left out, which is what 0.0.4 promised.
    """
    from gulpio2.directory import GulpDirectory
    from gulpio2.storage.paths import is_there

    stored: set[str] = set()
    if is_there(output_directory):
        with GulpDirectory(output_directory) as directory:
            stored.update(directory.chunk_lookup)
    seen = set()
    remaining = []
    repeated = "Id {} more than once in json file, I skip it!"
    taken = "Id {} already in GulpDirectory, I skip it!"
    for entry in meta_dict:
        id_ = entry["id"]
        if id_ in seen:
            print(repeated.format(id_))  # noqa: T201 - the contract of 0.0.4
            continue
        seen.add(id_)
        remaining.append(entry)
    kept = []
    for entry in remaining:
        if str(entry["id"]) in stored:
            print(taken.format(entry["id"]))  # noqa: T201 - the contract of 0.0.4
        else:
            kept.append(entry)
    if not kept:
        print("no items to add... Abort")  # noqa: T201 - the contract of 0.0.4
        if not seen:
            raise DuplicateIdError("The list has no entries: no items to add.")
        all_ids = f"All {len(seen)} ids are" if len(seen) > 1 else "The only id is"
        raise DuplicateIdError(
            f"{all_ids} in {os.fspath(output_directory)!r} already: no items to add."
        )
    return kept
