"""Copies the small files beside the chunks, as far as they are sound."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gulpio2.errors import MetaFileError
from gulpio2.format.label_checks import check_labels
from gulpio2.format.layout import LABELS_NAME, MANIFEST_NAME, data_name, meta_name
from gulpio2.format.manifest import (
    CHECKED_FILES,
    LOST_PLAN,
    Manifest,
    dump_manifest,
    file_check,
    load_manifest,
)
from gulpio2.format.map_checks import check_failures_file
from gulpio2.repair.report import Loss
from gulpio2.repair.unread import why_unread

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gulpio2.format.manifest import Run
    from gulpio2.repair.report import RepairReport
    from gulpio2.storage.base import Store

__all__ = ["take_over_files"]


def take_over_files(store: Store, output: Store | None, report: RepairReport) -> None:
    """Copy the small files that are sound, and tell of those that are not."""
    manifest: Manifest | None = None
    try:
        manifest = load_manifest(store.read(MANIFEST_NAME), where=MANIFEST_NAME)
    except FileNotFoundError:
        if MANIFEST_NAME in store.names():
            report.lost.append(Loss(MANIFEST_NAME, "is a link to what is not there"))
    except MetaFileError as cause:
        why = str(cause).removeprefix(f"{MANIFEST_NAME}: ")
        report.lost.append(Loss(MANIFEST_NAME, why))
    except OSError as cause:
        report.lost.append(Loss(MANIFEST_NAME, why_unread(cause)))
    checksums = {}
    for name in CHECKED_FILES:
        try:
            data = store.read(name)
        except FileNotFoundError:
            if manifest and name in manifest.files:
                report.lost.append(Loss(name, "is missing, and gulp.json tells of it"))
            continue
        except OSError as cause:
            report.lost.append(Loss(name, why_unread(cause)))
            continue
        checksum = file_check(data)
        problems = (
            check_labels(data) if name == LABELS_NAME else check_failures_file(data)[0]
        )
        expected = manifest.files.get(name) if manifest is not None else None
        if problems or expected not in (None, checksum):
            reason = problems[0].message if problems else "is not as it was written"
            report.lost.append(Loss(name, reason))
            continue
        checksums[name] = checksum
        report.files.append(name)
        if output is not None:
            output.write_atomically(name, data)
    if manifest is None:
        return
    report.files.append(MANIFEST_NAME)
    if output is not None:
        runs = _what_is_left(manifest.runs, report)
        whole = Manifest(runs, manifest.metainfo, checksums)
        output.write_atomically(MANIFEST_NAME, dump_manifest(whole))


def _what_is_left(runs: Iterable[Run], report: RepairReport) -> tuple[Run, ...]:
    """Give runs as they are in the target.

    A run that has lost anything must not pass for complete. Where the adapter does not
    list its items, nothing else would tell that some are gone.
    """
    kept = set(report.chunks)
    files = {loss.file for loss in report.lost}
    parts = {part.chunk for part in report.salvaged}
    left = []
    for run in runs:
        here = replace(run, chunks=tuple(n for n in run.chunks if n in kept))
        if any(n in parts or {data_name(n), meta_name(n)} & files for n in run.chunks):
            if run.shares is None:
                here = replace(here, plan=LOST_PLAN)
            else:  # nobody knows which share it was; the others still fit the plan
                here = replace(here, shares=replace(run.shares, present=()))
        left.append(here)
    return tuple(left)
