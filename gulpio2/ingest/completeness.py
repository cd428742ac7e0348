"""Whether a directory holds all that a run would store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gulpio2.directory import GulpDirectory
from gulpio2.format.layout import REMOVALS_NAME
from gulpio2.ingest.records import failed_positions
from gulpio2.storage.local import open_store

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gulpio2.format.manifest import Run
    from gulpio2.types import StrPath

__all__ = ["is_complete"]


def is_complete(
    folder: StrPath, arguments: Mapping[str, Any], ids: Sequence[str] | None
) -> bool:
    """Tell whether the last run of a directory was this one, and left nothing out.

    Parameters
    ----------
    folder : str or path
        The directory.
    arguments : mapping
        Those of the run, as its journal has them.
    ids : sequence of str or None
        Ids of its items, by position; None where they are not known.
    """
    with GulpDirectory(folder) as directory:
        runs = directory.manifest.runs
        if not runs or not _is_run_with(runs[-1], arguments):
            return False
        return ids is None or not _lacks_any(directory, ids)


def _is_run_with(run: Run, arguments: Mapping[str, Any]) -> bool:
    """Compare what a manifest keeps of a run's arguments: less than its journal had."""
    kept = {"adapter": run.adapter, "options": run.options, "encoder": run.encoder}
    return all(arguments[key] == value for key, value in kept.items())


def _lacks_any(directory: GulpDirectory, ids: Sequence[str]) -> bool:
    """Tell whether an id is neither stored nor known to have failed."""
    store = open_store(directory.output_dir)
    # What was deleted is not missing, and once it is erased has no name.
    if REMOVALS_NAME in store.names():
        return False
    failed = failed_positions(store)
    return any(
        id_ not in directory and position not in failed
        for position, id_ in enumerate(ids)
    )
