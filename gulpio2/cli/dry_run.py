"""``gulp2 ingest --dry-run``: what would be ingested, and whether it would be."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from gulpio2.cli.ingest_options import make_ingestor
from gulpio2.cli.report_stream import stdout_for_report
from gulpio2.cli.strict_json import write_json
from gulpio2.cli.survey import survey_lines
from gulpio2.cli.terminal import count, escape, one_line, size, write_lines
from gulpio2.ingest.survey_result import ID_TAKEN, Survey

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from gulpio2.cli.ingest_options import Settings
    from gulpio2.format.manifest import Run
    from gulpio2.format.other_settings import SettingChange
    from gulpio2.ingest.planning import RunPlan

__all__ = ["tell_plan"]

# Items of a dry run that are listed.
_FIRST = 5


def tell_plan(adapter: Any, settings: Settings) -> bool:
    """Say what would be ingested.

    Parameters
    ----------
    adapter : Adapter
        Where the items come from.
    settings : Settings
        Of the run.

    Returns
    -------
    bool
        Whether the run would end well, as far as can be known: it would not be refused
        nor run out of space, no item's id would be reported as taken, and no item of
        the sample would fail or be missing.

    Raises
    ------
    KeyboardInterrupt
        It came while items were looked at. What was found until then is told.
    """
    from gulpio2.format.other_settings import warning_of

    with stdout_for_report():
        plan, found, changes, is_good = _look_ahead(adapter, settings)
    if settings.as_json:
        write_json({**plan, "estimate": found.to_json()})
    else:
        warning = warning_of(changes, settings.output) if changes else None
        write_lines(_lines(plan, found, warning, settings))
    if found.unfinished:
        raise KeyboardInterrupt
    return is_good


def _look_ahead(
    adapter: Any, settings: Settings
) -> tuple[dict[str, Any], Survey, Sequence[SettingChange], bool]:
    """Find what would be ingested, what a sample of it says, and whether that is good.

    Other settings of runs before come with it.
    """
    from gulpio2.codecs.jpeg import EncoderSettings
    from gulpio2.directory import GulpDirectory
    from gulpio2.format.other_settings import changed_settings
    from gulpio2.ingest.duplicates import advice_on_given
    from gulpio2.ingest.facts import ask_for_facts, require_items
    from gulpio2.storage.paths import is_there

    require_items(adapter)
    encoder = EncoderSettings(settings.quality, settings.subsampling)  # type: ignore[arg-type]  # click checked it
    stored: frozenset[str] = frozenset()
    runs: tuple[Run, ...] = ()
    if is_there(settings.output):  # a run would make it
        with GulpDirectory(settings.output) as directory:
            stored = frozenset(directory.chunk_lookup)
            runs = directory.manifest.runs if stored else ()
    run, refused = _find_plan(adapter, settings, stored)
    options = ask_for_facts(adapter).options
    changes = changed_settings(runs if run.tasks else (), options, encoder.describe())
    ids, positions = run.ids, [n for task in run.tasks for n in task.positions()]
    num_items, names = len(positions), ids or []
    taken = [each for each in run.failures if each.error == "DuplicateIdError"]
    plan = {
        "output": str(settings.output),
        "adapter": type(adapter).__name__,
        "items": num_items,
        "refused": refused,
        "fits": None,
        "free_bytes": None,
        "first_ids": None if ids is None else [names[n] for n in positions[:_FIRST]],
        "repeated_ids": None if ids is None else len(names) - len(set(names)),
        "already_stored": None
        if ids is None
        else len(stored.intersection(names[n] for n in run.share)),
        "taken_ids": len(taken),
        "failed_before": len(run.failures) - len(taken),
        "chunks": len(run.tasks),
        "chunks_may_be_more": settings.chunk_bytes is not None,
        "other_settings": [asdict(change) for change in changes],
    }
    from gulpio2.cli.progress import ProgressBar
    from gulpio2.ingest.survey import survey

    with ProgressBar(0) as bar:
        found = survey(
            adapter,
            encoder,
            positions=positions,
            stored=stored,
            share=settings.sample_share,
            num_workers=settings.num_workers,
            apart=True,
            progress=bar,
            expect=partial(setattr, bar, "total"),
            keep_interrupted=True,  # it may come after hours
        )
    plan["to_look_at"] = bar.total
    # What the plan does not know of: ids that are not listed, or given for another.
    met = next((odd for odd in found.oddities if odd.kind == ID_TAKEN), None)
    if met and settings.on_duplicate == "raise" and refused is None:
        plan["refused"] = refused = (
            f"{met.examples[0]} has an id that is taken. "
            + advice_on_given("--on-duplicate skip")
        )
    is_out_of_space = False
    if refused is None and not found.unfinished:
        plan |= _judge_space(settings, found)
        is_out_of_space = plan["fits"] is False and not settings.ignore_space
    is_reported = met is not None and settings.on_duplicate == "report"
    is_bad = any(odd.fails for odd in found.oddities if odd is not met)
    fails = bool(run.failures or is_reported or is_bad)
    is_good = settings.allow_failures or not fails
    would_end = refused is None and not is_out_of_space
    return plan, found, changes, is_good and would_end


def _find_plan(
    adapter: Any, settings: Settings, stored: frozenset[str]
) -> tuple[RunPlan, str | None]:
    """Plan the run; say why it would be refused, where it would be."""
    from gulpio2.errors import IngestError, MetaFileError, StorageError
    from gulpio2.ingest.planning import plan_run
    from gulpio2.ingest.preflight import tell_of_dry_run

    make_plan = partial(
        plan_run,
        adapter,
        stored,
        items_per_chunk=settings.videos_per_chunk,
        shard=settings.shard,
    )
    run, is_complete = None, False
    try:
        _refuse_place(settings.output)
        ingestor = make_ingestor(adapter, settings, settings.num_workers)
        if settings.resume:
            run = ingestor.left_to_resume()
            is_complete = run is not None and not run.tasks
        if run is None:
            run = make_plan(on_duplicate=settings.on_duplicate)  # type: ignore[arg-type]  # click checked it
        if not is_complete:
            tell_of_dry_run(ingestor, run, adds=bool(stored))
    except (IngestError, MetaFileError, StorageError) as error:
        return make_plan(on_duplicate="skip"), one_line(error)
    return run, None


def _refuse_place(output: Path) -> None:
    """Refuse a folder that cannot be written to, or that holds what stops a run."""
    from gulpio2.ingest.resuming import refuse_misnamed_chunks
    from gulpio2.storage.local import open_store
    from gulpio2.storage.paths import is_folder
    from gulpio2.storage.refusals import refuse_unwritable
    from gulpio2.unfinished import refuse_unfinished_copying

    refuse_unwritable(output)
    if is_folder(output):
        store = open_store(output)
        refuse_unfinished_copying(store, "ingesting")
        refuse_misnamed_chunks(store)


def _judge_space(settings: Settings, found: Survey) -> dict[str, Any]:
    """Say whether the run would fit, and why it would be refused where it would be."""
    from gulpio2.errors import StorageError
    from gulpio2.ingest.estimate import (
        LONG_RUN,
        Estimate,
        bytes_of_partials,
        refuse_above,
    )
    from gulpio2.storage.local import free_bytes, open_store
    from gulpio2.storage.paths import is_folder
    from gulpio2.storage.refusals import nearest_there

    output = settings.output
    free = free_bytes(nearest_there(output))
    if free is None:
        return {}
    if is_folder(output):
        free += bytes_of_partials(open_store(output))
    try:
        refuse_above(
            free,
            Estimate(
                items=found.items,
                sampled=found.sampled,
                frames=found.frames,
                num_bytes=found.num_bytes,
            ),
            output,
        )
    except StorageError as error:
        # A run of fewer items is begun without an estimate.
        refuses = found.items >= LONG_RUN and not settings.ignore_space
        return {
            "fits": False,
            "free_bytes": free,
            "refused": one_line(error) if refuses else None,
        }
    return {"fits": True, "free_bytes": free}


def _lines(
    plan: dict[str, Any], found: Survey, warning: str | None, settings: Settings
) -> Iterator[str]:
    """Give the lines that people read."""
    at_least = "at least " if plan["chunks_may_be_more"] else ""
    yield (
        f"{escape(settings.output)}: {count(plan['items'], 'item')} of "
        f"{plan['adapter']} would be ingested into {at_least}"
        f"{count(plan['chunks'], 'new chunk')}; nothing was written"
    )
    if plan["refused"] is not None:
        yield f"  as it stands, it would be refused: {escape(plan['refused'])}"
    elif settings.resume and not plan["chunks"]:
        but = ", but for what failed" if plan["failed_before"] else ""
        yield f"  nothing to resume: it is complete{but}"
    elif plan["fits"] is False:
        free = size(plan["free_bytes"])
        yield f"  it would run out of space: {escape(settings.output)} has {free} free"
    if plan["first_ids"] is None:
        yield "  ids are known only while ingesting: the adapter lists none"
    else:
        shown = ", ".join(map(escape, plan["first_ids"]))
        more = ", ..." if plan["items"] > _FIRST else ""
        if shown:
            yield f"  first ids        {shown}{more}"
        yield f"  repeated ids     {plan['repeated_ids']:,}"
        yield f"  already stored   {plan['already_stored']:,}"
    if plan["failed_before"]:
        failed = f"{plan['failed_before']:,}"
        yield f"  failed before    {failed}, which resuming does not try again"
    if plan["taken_ids"]:
        yield (
            f"  {count(plan['taken_ids'], 'item')} will fail: the id is taken "
            "(--on-duplicate report)"
        )
    if found.unfinished:
        yield (
            f"  INTERRUPTED: {found.sampled:,} of {count(plan['to_look_at'], 'item')} "
            "were looked at. What follows is of these alone, which are no fair sample"
        )
    if found.sampled or (plan["items"] and not found.unfinished):
        yield from survey_lines(
            found,
            settings.num_workers,
            settings.on_duplicate,
            # To read all may take days, and nobody wants to do it again for the names.
            names_all=settings.sample_share == 1,
        )
    if warning is not None:
        yield f"  {escape(warning)}"
