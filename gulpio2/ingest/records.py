"""What a run writes beside the chunks: labels, failures, and the manifest."""

from __future__ import annotations

import contextlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING

from gulpio2.__version__ import __version__
from gulpio2.adapters.labels import merge_labels, read_label_file, write_label_file
from gulpio2.format.checksum import crc32_of
from gulpio2.format.layout import FAILURES_NAME, LABELS_NAME, MANIFEST_NAME
from gulpio2.format.manifest import Manifest, Run, dump_manifest, load_manifest
from gulpio2.ingest.report import dump_failures

if TYPE_CHECKING:
    from gulpio2.codecs.jpeg import EncoderSettings
    from gulpio2.ingest.facts import AdapterFacts
    from gulpio2.ingest.report import IngestReport
    from gulpio2.storage.base import Store
    from gulpio2.types import StrPath

__all__ = ["failed_positions", "write_labels", "write_records"]


def write_labels(facts: AdapterFacts, folder: StrPath) -> None:
    """Write the labels: before the first chunk, whose metadata rely on them."""
    if facts.labels is not None:
        existing = read_label_file(folder)
        merged = merge_labels(existing, facts.labels, where=str(folder))
        write_label_file(folder, merged)


def write_records(
    store: Store,
    adapter: str,
    facts: AdapterFacts,
    encoder: EncoderSettings,
    report: IngestReport,
    *,
    always: bool,
) -> None:
    """Write the list of failures and the manifest, at the end of a run.

    Parameters
    ----------
    store : Store
        The directory.
    adapter : str
        Name of the class of what was ingested.
    facts : AdapterFacts
        What that tells of itself.
    encoder : EncoderSettings
        How.
    report : IngestReport
        What became of it.
    always : bool
        Write a manifest also where there is nothing to tell.
    """
    if report.failures:
        store.write_atomically(FAILURES_NAME, dump_failures(report.failures))
    else:
        store.remove(FAILURES_NAME)
    where = store.path(MANIFEST_NAME)
    checksums = _checksums(store)
    has_something_to_tell = bool(report.chunks or report.failures or always)
    try:
        manifest = load_manifest(store.read(MANIFEST_NAME), where=where)
    except FileNotFoundError:
        if not has_something_to_tell:
            return
        manifest = Manifest()
    if not has_something_to_tell:
        # Everything was there already; but the list of failures of the run before is
        # gone, or there are new labels.
        if manifest.files != checksums:
            finished = replace(manifest, files=checksums)
            store.write_atomically(MANIFEST_NAME, dump_manifest(finished))
        return
    run = Run(
        adapter=adapter,
        options=facts.options,
        encoder=encoder.describe(),
        package=__version__,
        chunks=tuple(report.chunks),
    )
    # Not twice, where a run is resumed that had only its journal left to remove.
    others = [old for old in manifest.runs if not {*old.chunks} & {*run.chunks}]
    runs = (*others, run) if run.chunks else manifest.runs
    metainfo = {**manifest.metainfo, **facts.metainfo}
    finished = Manifest(runs, metainfo, checksums)
    store.write_atomically(MANIFEST_NAME, dump_manifest(finished))


def failed_positions(store: Store) -> frozenset[int]:
    """Give the positions in the adapter that the last ingest could not store."""
    try:
        lines = store.read(FAILURES_NAME).splitlines()
        return frozenset(int(json.loads(line)["position"]) for line in lines)
    except FileNotFoundError:
        return frozenset()
    except (ValueError, KeyError, TypeError, RecursionError):
        return frozenset()  # damaged, and the check says so


def _checksums(store: Store) -> dict[str, str]:
    """Compute the checksums of the files that cannot carry their own."""
    found = {}
    for name in (LABELS_NAME, FAILURES_NAME):
        with contextlib.suppress(FileNotFoundError):
            found[name] = f"{crc32_of(store.read(name)):08x}"
    return found
