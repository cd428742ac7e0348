"""Whether a directory holds all that a run would store."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from typing import TYPE_CHECKING

from gulpio2.directory import GulpDirectory
from gulpio2.format.layout import REMOVALS_NAME, list_chunks
from gulpio2.format.manifest import source_of
from gulpio2.format.wording import counted
from gulpio2.ingest.duplicates import name_places
from gulpio2.ingest.records import failed_positions
from gulpio2.ingest.resuming import refuse_lost_chunks
from gulpio2.storage.local import open_store
from gulpio2.unfinished import open_settled

if TYPE_CHECKING:
    from gulpio2.format.manifest import Run
    from gulpio2.ingest.planning import RunPlan
    from gulpio2.ingest.report import IngestReport
    from gulpio2.types import Adapter, StrPath

__all__ = ["is_complete", "settle_not_given"]

_logger = logging.getLogger(__name__)


def is_complete(folder: StrPath, run: Run, plan: RunPlan) -> bool:
    """Tell whether the last run of a directory was this one, and left nothing out.

    Of `run` the chunks do not matter. The `plan` is made as if nothing were stored.

    Raises
    ------
    IngestError
        It was this one, and a chunk or a part of one is lost.
    """
    with open_settled(folder) as directory:
        last = next(reversed(directory.manifest.runs), None)
        now = source_of(run), run.encoder
        if last is None or (source_of(last), last.encoder) != now:
            return False
        refuse_lost_chunks(directory)
        same_plan = last.plan == run.plan
        was_planned = same_plan and _has_share(last, run)
        if plan.ids is None:  # nobody can say which items are missing
            return was_planned
        if run.shares is not None and last.plan is not None and not was_planned:
            return False  # it would not fit the other shares
        if REMOVALS_NAME in open_store(folder).names():
            # What was deleted is not missing; once erased, nothing names it any more.
            return last.plan is None or same_plan
        return not _lacks_any(directory, run, plan, same_ids=same_plan)


def settle_not_given(
    adapter: Adapter, folder: StrPath, plan: RunPlan, report: IngestReport
) -> None:
    """Warn of items that an adapter lists and did not give, and count them anew.

    A task counts an item as not given that another task was given, where it failed.
    """
    if plan.ids is None or not report.not_given:
        return
    # An item whose id repeats another's says nothing of that one, which may be missing.
    repeats = {each.position for each in plan.failures}
    failed = {each.id for each in report.failures if each.position not in repeats}
    positions = {each.position for each in report.failures if each.id is None}
    # Opening a folder without a chunk would warn that it is no gulp directory.
    is_empty = not list_chunks(open_store(folder).names()).chunks
    with nullcontext(()) if is_empty else GulpDirectory(folder) as stored:
        missing = [
            position
            for task in plan.tasks
            for position in task.positions()
            if position not in positions
            and plan.ids[position] not in failed
            and plan.ids[position] not in stored
        ]
    report.not_given = len(missing)
    if missing:
        _logger.warning(
            "the adapter %s lists %s that it did not give: %s; what it gave is "
            "stored. Its item_ids() and its iter_data() should agree, and iter_data "
            "give the items of its slice_element alone",
            type(adapter).__name__,
            counted(len(missing), "item"),
            name_places(adapter, plan.ids, missing),
        )


def _has_share(old: Run, new: Run) -> bool:
    if old.shares is None:
        return True
    return (
        new.shares is not None
        and new.shares.count == old.shares.count
        and {*new.shares.present} <= {*old.shares.present}
    )


def _lacks_any(
    directory: GulpDirectory, run: Run, plan: RunPlan, *, same_ids: bool
) -> bool:
    """Tell whether an id is neither stored nor known to have failed."""
    failed = failed_positions(open_store(directory.output_dir), run)
    # At the position of an item that failed may be another one now, unless all ids are
    # those of the run: then the adapter gave an id that it does not list.
    positions = {position for position, id_ in failed if same_ids or id_ is None}
    ids = plan.ids or ()
    return any(
        ids[position] not in directory
        and position not in positions
        and (position, ids[position]) not in failed
        for task in plan.tasks
        for position in task.positions()
    )
