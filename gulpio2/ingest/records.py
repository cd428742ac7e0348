"""What a run writes beside the chunks: labels, failures, and the manifest."""

from __future__ import annotations

import hashlib
import json
import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from gulpio2.__version__ import __version__
from gulpio2.adapters.labels import (
    merge_labels,
    read_label_file,
    refuse_lost_labels,
    stored_labels,
    write_label_file,
)
from gulpio2.directory import GulpDirectory
from gulpio2.errors import MetaFileError
from gulpio2.format.failures import (
    INGEST_KEY,
    digest_of_source,
    id_of,
    is_mended,
    is_of,
    lines_of,
)
from gulpio2.format.joined_runs import join_runs
from gulpio2.format.layout import (
    FAILURES_NAME,
    LABELS_NAME,
    MANIFEST_NAME,
    list_chunks,
)
from gulpio2.format.manifest import (
    Manifest,
    Run,
    Shares,
    dump_manifest,
    load_manifest,
    without_chunks,
    without_complete_shares,
    without_lost_chunks,
)
from gulpio2.ingest.report import ItemFailure, dump_failures
from gulpio2.storage.base import (
    checks_of_files,
    read_if_there,
    read_manifest,
    read_unless_missing,
    require_failures_file,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from gulpio2.codecs.jpeg import EncoderSettings
    from gulpio2.ingest.facts import AdapterFacts
    from gulpio2.ingest.planning import RunPlan
    from gulpio2.ingest.report import IngestReport
    from gulpio2.ingest.shard import Shard
    from gulpio2.storage.base import Store
    from gulpio2.types import StrPath

__all__ = [
    "describe_run",
    "failed_positions",
    "known_failures",
    "refuse_other_labels",
    "warn_of_other_metainfo",
    "write_labels",
    "write_records",
]

_logger = logging.getLogger(__name__)


def describe_run(
    adapter: str,
    facts: AdapterFacts,
    encoder: EncoderSettings,
    plan: RunPlan,
    shard: Shard | None,
) -> Run:
    """Describe a run for the manifest, before it has written anything.

    The `adapter` is given by the name of its class.
    """
    digest = plan.undivided
    if plan.ids is None:
        # The plan is then one of counts alone, which another dataset may have as well.
        text = json.dumps([digest, adapter, facts.options])
        digest = hashlib.sha256(text.encode("ascii")).hexdigest()[: len(digest)]
    return Run(
        adapter=adapter,
        options=facts.options,
        encoder=encoder.describe(),
        package=__version__,
        chunks=(),
        plan=digest,
        shares=None if shard is None else Shares(shard.count, (shard.number,)),
    )


def refuse_other_labels(facts: AdapterFacts, folder: StrPath) -> None:
    """Refuse labels that contradict those of the directory.

    Raises
    ------
    IngestError
        They do, or those of the directory are lost.
    """
    if facts.labels is not None:
        refuse_lost_labels(folder)
        labels = read_label_file(folder)
        if labels:
            merge_labels(labels, facts.labels, where=str(folder))
            return
        stored = stored_labels(folder)
        merge_labels(
            stored,
            facts.labels,
            where=f"{folder}, where items have numbers of labels and {LABELS_NAME} is "
            "missing,",
            advice=f"put a {LABELS_NAME} there that has all of them, as "
            f"{json.dumps(dict([*stored.items()][:1]))} has one, by the metadata of "
            "the items (gulp2 ls --long), or ingest into another folder",
        )


def write_labels(facts: AdapterFacts, folder: StrPath) -> None:
    """Write the labels: before the first chunk, whose metadata rely on them."""
    if facts.labels is not None:
        # Those of items that came without the file, too: the next run asks it alone.
        known = read_label_file(folder) or stored_labels(folder)
        write_label_file(folder, {**known, **facts.labels})


def write_records(
    store: Store,
    run: Run,
    facts: AdapterFacts,
    report: IngestReport,
    positions: Collection[int],
) -> None:
    """Write the list of failures and the manifest, at the end of a run.

    The `run` is as `describe_run` gave it, and `positions` are its share. A share is
    noted even if it stored nothing.
    """
    source = digest_of_source(run)
    earlier = _lines_of_earlier(
        store,
        source,
        share=None if run.shares is None else positions,
        failed={failure.id for failure in report.failures},
    )
    if lines := earlier + dump_failures(report.failures, source):
        store.write_atomically(FAILURES_NAME, lines)
    else:
        store.remove(FAILURES_NAME)
    has_news = bool(report.chunks or report.failures or run.shares is not None)
    before = read_unless_missing(store, MANIFEST_NAME)
    if before is None and not has_news:
        return
    manifest = Manifest()
    if before is not None:
        manifest = load_manifest(before, where=store.path(MANIFEST_NAME))
    runs, metainfo = manifest.runs, manifest.metainfo
    if not report.not_given:
        runs = without_lost_chunks(runs, run, list_chunks(store.names()).numbers)
    if has_news:
        run = replace(run, chunks=tuple(sorted(report.chunks)))
        runs = without_chunks(runs, run.chunks)
        if run.shares is not None:
            # Shares that go into one directory are one run there, once all have.
            runs = without_complete_shares(join_runs(runs, [run]))
        elif run.chunks:
            runs = (*runs, run)
        metainfo = {**metainfo, **facts.metainfo}
    finished = Manifest(runs, metainfo, checks_of_files(store))
    # Without news, failures listed before may be gone, and labels be new.
    if has_news or finished != manifest:
        store.write_atomically(MANIFEST_NAME, dump_manifest(finished))


def _lines_of_earlier(
    store: Store,
    source: str,
    *,
    share: Collection[int] | None,
    failed: Collection[str | None],
) -> bytes:
    """Give what earlier ingests told of items that this one has not tried.

    Else nothing would say that they are missing. Those that are stored by now are not,
    and of those that have `failed` again this ingest tells.
    """
    lines = lines_of(read_if_there(store, FAILURES_NAME) or b"")
    lines = [line for line in lines if not is_of(line, source, share)]
    mended = {id_ for line in lines if (id_ := id_of(line)) in failed}
    # Opening a folder without a chunk would warn that it is no gulp directory.
    if lines and list_chunks(store.names()).chunks:
        with GulpDirectory(store.path("")) as directory:
            mended |= {id_ for line in lines if (id_ := id_of(line)) in directory}
    return b"".join(line for line in lines if not is_mended(line, mended))


def warn_of_other_metainfo(store: Store, facts: AdapterFacts) -> None:
    """Warn of metainfo of the stored items that this run will replace."""
    before = read_manifest(store).metainfo
    # As JSON, as a merge compares them.
    other = [
        key
        for key, value in facts.metainfo.items()
        if key in before
        and json.dumps(value, sort_keys=True) != json.dumps(before[key], sort_keys=True)
    ]
    if other:
        _logger.warning(
            "%s has another %s in its metainfo than the adapter gives now. What it "
            "gives now takes its place, also for the items that are stored: names of "
            "classes may say what their numbers mean. If that is not meant, give the "
            "value of before, or another folder",
            store.path(MANIFEST_NAME),
            " and ".join(map(repr, other)),
        )


def known_failures(store: Store, plan: RunPlan, run: Run) -> list[ItemFailure]:
    """Give the items of a plan that its run could not store.

    Raises
    ------
    MetaFileError
        The list of them is damaged, or gone.
    """
    require_failures_file(store, read_manifest(store))
    try:
        found = _listed_failures(store, run)
    except (ValueError, TypeError, RecursionError) as cause:
        raise MetaFileError(
            f"{store.path(FAILURES_NAME)} is damaged: {cause}. `gulp2 check` tells more"
        ) from cause
    return [failure for failure in found if failure.position in plan.share]


def failed_positions(store: Store, run: Run) -> frozenset[tuple[int, str | None]]:
    """Give position and id of each item of a run's source that was not stored.

    The id is None where the adapter failed before it gave one.
    """
    try:
        found = _listed_failures(store, run)
    except (ValueError, TypeError, RecursionError):
        return frozenset()  # damaged, and the check says so
    return frozenset((each.position, each.id) for each in found)


def _listed_failures(store: Store, run: Run) -> list[ItemFailure]:
    """Give the failures of the source of a run: those of others have its positions."""
    source = digest_of_source(run)
    found = []
    for line in (read_if_there(store, FAILURES_NAME) or b"").splitlines():
        failure = json.loads(line)
        if isinstance(failure, dict) and failure.pop(INGEST_KEY, source) != source:
            continue
        found.append(ItemFailure.load(failure))
    return found
