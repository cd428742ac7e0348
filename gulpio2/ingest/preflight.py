"""What a run, or its dry run, warns of and refuses before anything is stored."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

from gulpio2.format.wording import counted
from gulpio2.ingest.duplicates import warn_of_repeats
from gulpio2.ingest.facts import ask_for_facts, count_items, warn_of_ids_beyond_utf8
from gulpio2.ingest.journal import RunJournal
from gulpio2.ingest.records import refuse_other_labels, warn_of_other_metainfo
from gulpio2.storage.removals_file import noted_removals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gulpio2.ingest.facts import AdapterFacts
    from gulpio2.ingest.ingestor import GulpIngestor
    from gulpio2.ingest.planning import RunPlan
    from gulpio2.storage.base import Store

__all__ = ["arguments_of", "tell_of_dry_run", "tell_of_run"]

_logger = logging.getLogger(__name__)

# Ids to name in a warning.
_NAMED = 3


def arguments_of(
    ingestor: GulpIngestor, facts: AdapterFacts, num_items: int
) -> dict[str, Any]:
    """Give what decides which bytes are written."""
    arguments = {
        "adapter": type(ingestor.adapter).__name__,
        "options": facts.options,
        "items": num_items,
        "encoder": ingestor.encoder.describe(),
        "videos_per_chunk": ingestor.videos_per_chunk,
        "chunk_bytes": ingestor.chunk_bytes,
        "on_duplicate": ingestor.on_duplicate,
    }
    if ingestor.shard is not None:
        arguments["shard"] = str(ingestor.shard)
    # As it will be when it has been read back.
    return dict(json.loads(json.dumps(arguments)))


def tell_of_run(
    ingestor: GulpIngestor, facts: AdapterFacts, plan: RunPlan, *, adds: bool
) -> None:
    """Warn of what a user may not expect of a run's items; refuse other labels.

    Whether the directory holds items already is said by `adds`.

    Raises
    ------
    IngestError, MetaFileError
        The labels contradict those of the directory, or these cannot be read.
    """
    if adds and plan.tasks:
        warn_of_other_metainfo(ingestor.output_store(), facts)
    if plan.ids is not None:
        if ingestor.on_duplicate == "skip":
            warn_of_repeats(ingestor.adapter, plan.ids, plan.repeats)
        ids = [plan.ids[n] for task in plan.tasks for n in task.positions()]
        warn_of_ids_beyond_utf8(ids)
        _warn_of_deleted(ingestor.output_store(), ids)
    refuse_other_labels(facts, ingestor.output_store().path(""))


def _warn_of_deleted(store: Store, ids: Sequence[str]) -> None:
    """Tell of items that come back: the source still has what was deleted here."""
    deleted = noted_removals(store).deleted
    known = {id_ for items in deleted.values() for id_, _ in items}
    back = [id_ for id_ in ids if id_ in known]
    if back:
        are, were, them = ("are", "were", "them") if back[1:] else ("is", "was", "it")
        _logger.warning(
            "%s %s stored again that %s deleted from %s: %s%s. To keep %s out, take "
            "%s out of the source as well",
            counted(len(back), "item"),
            are,
            were,
            store.path(""),
            ", ".join(map(repr, back[:_NAMED])),
            f" and {len(back) - _NAMED} more" if back[_NAMED:] else "",
            them,
            them,
        )


def tell_of_dry_run(ingestor: GulpIngestor, plan: RunPlan, *, adds: bool) -> None:
    """Warn and refuse as a run would, for a dry run; see `tell_of_run`."""
    facts = ask_for_facts(ingestor.adapter)
    tell_of_run(ingestor, facts, plan, adds=adds)
    if not ingestor.resume:
        arguments = arguments_of(ingestor, facts, count_items(ingestor.adapter))
        RunJournal(ingestor.output_store(), arguments).tell_of_other()
