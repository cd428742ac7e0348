"""``gulp2 ingest``: a source dataset into a gulp directory."""

from __future__ import annotations

import contextlib
import inspect
import logging
import os
import random
import traceback
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from gulpio2.cli.adapter_lookup import BUILT_IN, find_adapter
from gulpio2.cli.adapter_options import adapter_options, make_adapter
from gulpio2.cli.command import DocumentedCommand, DocumentedGroup
from gulpio2.cli.constructor import summary_of
from gulpio2.cli.dry_run import tell_plan
from gulpio2.cli.ingest_options import (
    SETTING_NAMES,
    Settings,
    ingest_options,
    make_ingestor,
)
from gulpio2.cli.options import verbosity_options
from gulpio2.cli.parameter_types import OutputFolder
from gulpio2.cli.report_stream import stdout_for_report
from gulpio2.cli.strict_json import write_json
from gulpio2.cli.terminal import count, escape, is_quiet, note, size

if TYPE_CHECKING:
    from gulpio2.ingest.report import IngestReport

__all__ = ["ingest"]

_logger = logging.getLogger(__name__)

EXAMPLES = {
    "video-folder": ["videos gulped", "videos gulped --frame-size 256 --num-workers 4"],
    "frame-folder": ["frames gulped", "frames gulped --id-rule path"],
    "gulp-directory": ["whole part --where 'num_frames >= 2'"],
    "image-folder": ["images gulped --file-extensions .png,.jpg"],
    "image-list": ["images.txt gulped --root-folder images --id-rule path"],
    "table": ["clips.csv gulped --id-column name --label-column label"],
    "20bn-json-videos": ["videos.json videos-by-id gulped --frame-rate 8"],
    "20bn-csv-webm": ["webm.csv webm gulped --remove-duplicate-ids"],
    "20bn-csv-jpeg": ["frames.csv frames gulped --frame-size 128"],
    "activitynet": ["activitynet.json activitynet gulped --phase validation"],
    "kinetics": ["kinetics.json kinetics gulped --id-rule clip"],
}


class AdapterGroup(DocumentedGroup):
    """A command for each adapter, made when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the built-in adapters."""
        return list(BUILT_IN)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Make the command of a built-in adapter, or of a user's."""
        name = cmd_name.replace("_", "-")
        if name not in BUILT_IN:
            if cmd_name.startswith("-"):
                return None
            name = cmd_name
        here = _from_here(Path())
        with stdout_for_report():  # a user's module may print
            cls = find_adapter(name)
        return adapter_command(name, cls, here)


@click.group(
    cls=AdapterGroup,
    subcommand_metavar="ADAPTER ... OUTPUT",
    examples=[
        "gulp2 ingest video-folder videos gulped",
        "gulp2 ingest table --help",
        "gulp2 ingest table clips.csv gulped --id-column name --dry-run",
        "gulp2 ingest my_adapters.py:MyAdapter source gulped",
    ],
)
@verbosity_options
def ingest() -> None:
    """Write the items of a source dataset into a gulp directory.

    ADAPTER is one of those below, module:Class, or file.py:Class. What its constructor
    takes becomes arguments and options. OUTPUT is made if it is missing; items are
    added to what is there, with a warning where that was ingested with another size,
    frame rate, quality or subsampling (gulp.json says so; GulpIO2 0.0.4 wrote none).

    An item that cannot be read is reported and left out, the rest is stored, and the
    exit status is 1; so it is where ADAPTER counts more items than it gives, or raises
    an error when it has given its last one, which may be a check of its own.
    OUTPUT/failures.jsonl lists all that failed, also in earlier ingests of another
    source, until they are stored; the first 20 are told on the way (with -vv all). With
    --allow-failures the exit status is 0 all the same.

    --dry-run ends with the status of the run, as far as its sample tells: with 1 where
    that would be refused or run out of space, and, without --allow-failures, where an
    item that it looked at will fail or be missing. Interrupted, it tells what it has
    found until then.
    """


def adapter_command(name: str, cls: type, here: Path) -> click.Command:
    """Make the command of an adapter.

    Parameters
    ----------
    name : str
        As the user gave it.
    cls : type
        Its class.
    here : Path
        The folder that the command was started in: its module may have left it.

    Returns
    -------
    click.Command
        Takes what the constructor takes, OUTPUT, and the options of every ingest.
    """

    @ingest_options
    def body(**values: Any) -> None:
        ctx = click.get_current_context()
        given = {
            key: value
            for key, value in values.items()
            if ctx.get_parameter_source(key) is ParameterSource.COMMANDLINE
        }
        settings = Settings(**{k: v for k, v in values.items() if k in SETTING_NAMES})
        if "sample_share" in given and not settings.dry_run:
            raise click.UsageError("--sample-share is for --dry-run alone", ctx)
        if _from_here(Path()) != here:
            settings = replace(settings, output=here / settings.output)
        if settings.shard is not None:
            folder = settings.output / settings.shard.folder_name
            if not settings.dry_run:
                _number_alike(settings.output, folder)
            settings = replace(settings, output=folder)
        output = _from_here(settings.output)
        with stdout_for_report():
            adapter = _adapter(cls, given, settings.output)
        if _from_here(settings.output) != output:  # it has changed the current folder
            settings = replace(settings, output=output)
        if settings.dry_run:
            if settings.scheduler is not None:
                _refuse_address(settings.scheduler)
            if not tell_plan(adapter, settings):
                ctx.exit(1)
        else:
            if settings.scheduler is not None and "num_workers" in given:
                _logger.warning("--num-workers is not used: a cluster has its own")
            _ingest(ctx, adapter, settings)

    summary = summary_of(cls)
    common = click.command(
        name, cls=DocumentedCommand, help=summary, short_help=summary
    )(body)
    taken = {word[2:] for param in common.params for word in param.opts}
    taken.add("help")  # which click adds when it is asked for
    own = adapter_options(cls, taken)
    output = click.Argument(
        ["output"],
        metavar="OUTPUT",
        type=OutputFolder(),
        help="The gulp directory: made if it is missing, else added to. What is "
        "stored in it is not replaced.",
    )
    positionals = [p for p in own if isinstance(p, click.Argument)]
    common.params = [
        *positionals,
        output,
        *(p for p in own if p not in positionals),
        *common.params,
    ]
    lines = EXAMPLES.get(name) or [
        " ".join([*(p.human_readable_name for p in positionals), "OUTPUT"])
    ]
    common.sections = {"Options of the adapter": {p.name for p in own}}
    common.examples = tuple(f"gulp2 ingest {name} {line}" for line in lines)
    return common


def _number_alike(output: Path, share: Path) -> None:
    """Have a new share begin with the labels of what it is to be merged into."""
    from gulpio2.adapters.labels import (
        read_label_file,
        stored_labels,
        write_label_file,
    )
    from gulpio2.format.layout import JOURNAL_NAME, MANIFEST_NAME
    from gulpio2.storage.paths import is_there

    # Labels alone may be what a command left that was refused then.
    is_new = not any(is_there(share / name) for name in (JOURNAL_NAME, MANIFEST_NAME))
    # As a merge will: items of OUTPUT may have come without the file.
    if is_new and (labels := read_label_file(output) or stored_labels(output)):
        write_label_file(share, labels)


def _from_here(path: Path) -> Path:
    """Give the absolute path; where the current folder is gone, the run tells that."""
    from gulpio2.errors import StorageError
    from gulpio2.storage.refusals import absolute

    try:
        return absolute(path)
    except StorageError:
        return path


def _adapter(cls: type, given: dict[str, Any], output: Path) -> Any:
    """Make the adapter; a setting that it refuses is a wrong command line.

    What a user's own constructor raises is told on a line, with its place; that of the
    adapters here would be a defect, and comes through.
    """
    from gulpio2.errors import GulpError, IngestError, IngestSettingError

    # --shuffle: one order for all shares of a run, and for a run that is resumed.
    random.seed(0)
    try:
        return make_adapter(cls, given, output)
    except IngestSettingError as cause:
        raise click.UsageError(str(cause)) from cause
    except GulpError:
        raise
    except (Exception, SystemExit) as cause:
        if cls.__module__.partition(".")[0] == "gulpio2":
            raise
        frames = traceback.extract_tb(cause.__traceback__)
        own = [frame for frame in frames if frame.filename == inspect.getfile(cls)]
        place = (own or frames)[-1]
        raise IngestError(
            f"{cls.__name__} cannot be made: {type(cause).__name__}: {cause} "
            f"({place.filename}:{place.lineno}; -vv shows how it came there)"
        ) from cause


def _refuse_address(scheduler: str) -> None:
    """Refuse what a run would refuse, too; nothing is asked there."""
    from gulpio2.errors import IngestSettingError
    from gulpio2.ingest.cluster import refuse_other_addresses

    try:
        refuse_other_addresses(scheduler)
    except IngestSettingError as cause:
        raise click.UsageError(f"--scheduler: {cause}") from cause


def _ingest(ctx: click.Context, adapter: Any, settings: Settings) -> None:
    """Ingest, and report."""
    from gulpio2 import errors
    from gulpio2.format.layout import FAILURES_NAME
    from gulpio2.ingest.report import IngestReport

    with stdout_for_report():
        report, num_items = _run(adapter, settings)
    if settings.as_json:
        write_json({"output": str(settings.output), **report.to_json()})
    elif settings.resume and replace(report, failures=[]) == IngestReport():
        but = ", but for what failed" if report.failures else ""
        note(f"gulp2: nothing to resume: {escape(settings.output)} is complete{but}")
        if report.failures:
            note(
                "gulp2: to try those again, ingest with --on-duplicate skip in the "
                "place of --resume"
            )
    elif not is_quiet():
        click.echo(_sentence(report, settings.output))
    if settings.shard is not None and not num_items and not is_quiet():
        note(
            f"gulp2: shard {settings.shard} has no chunk: there are fewer chunks than "
            "shards. That loses no item; a smaller --videos-per-chunk, the same for "
            "all shards, would give each of them some"
        )
    if report.failures:
        them = "it" if len(report.failures) == 1 else "them"
        note(
            f"gulp2: {count(len(report.failures), 'item')} failed; "
            f"{escape(settings.output / FAILURES_NAME)} lists {them}"
        )
        is_foreign = not all(hasattr(errors, each.error) for each in report.failures)
        if is_foreign and not _logger.isEnabledFor(logging.DEBUG):
            # Most likely a mistake in an adapter, whose author looks for its line.
            note("gulp2: -vv shows the lines of code that raised")
    if report.not_given and is_quiet():  # else a warning has told of them by name
        items = count(report.not_given, "item")
        note(f"gulp2: the adapter counts {items} that it did not give")
    if report.raised_behind:
        # A warning of it may be in the log of another machine, or of the run before.
        slices = report.raised_behind
        where = "its last item" if slices == 1 else f"the last item of {slices} slices"
        what = escape(report.error_behind)
        note(f"gulp2: behind {where} the adapter raised {what}")
    is_bad = report.failures or report.not_given or report.raised_behind
    if is_bad and not settings.allow_failures:
        ctx.exit(1)


def _run(adapter: Any, settings: Settings) -> tuple[IngestReport, int]:
    """Ingest with a bar; give what came of it, and how many items there were to do."""
    from gulpio2.cli.interrupts import insist_on_interrupts
    from gulpio2.cli.progress import ProgressBar
    from gulpio2.errors import LockedError, StorageError
    from gulpio2.format.layout import JOURNAL_NAME
    from gulpio2.ingest.facts import count_items

    journal = _from_here(settings.output / JOURNAL_NAME)  # also after a run that moves
    num_workers, executor = settings.num_workers, None
    num_items = count_items(adapter)
    if settings.shard is not None:
        num_items = settings.shard.num_items(num_items, settings.videos_per_chunk)
    with contextlib.ExitStack() as stack:
        if settings.scheduler is not None:
            from gulpio2.ingest.cluster import connect

            _refuse_address(settings.scheduler)
            executor, num_workers = stack.enter_context(connect(settings.scheduler))
        bar = stack.enter_context(ProgressBar(num_items))

        def tell(**counts: int) -> None:
            # What is skipped is told to nobody: there is less to do by as much.
            if ingestor.report is not None:
                bar.total = num_items - ingestor.report.skipped
            bar(**counts)

        progress = stack.enter_context(insist_on_interrupts(tell))
        ingestor = make_ingestor(
            adapter,
            settings,
            num_workers,
            executor=executor,
            ignore_space=settings.ignore_space,
            progress=progress,
        )
        try:
            report = ingestor.run()
            tell()
        except (KeyboardInterrupt, StorageError) as cause:
            is_ours = not isinstance(cause, LockedError)  # the journal is another's
            if is_ours and os.path.exists(journal):  # noqa: PTH110  # Path's raises
                note(
                    "gulp2: what was stored is intact; --resume goes on with the rest: "
                    "give the same command with it"
                )
            raise
    return report, num_items


def _sentence(report: IngestReport, output: Path) -> str:
    seconds = max(report.seconds, 1e-9)
    # What an interrupted run had stored was not done in this time.
    done = 1 - report.resumed / max(report.items, 1)
    parts = [
        count(report.items, "item"),
        count(report.frames, "frame"),
        f"{size(report.num_bytes)} in {count(len(report.chunks), 'chunk')}",
    ]
    if report.skipped:
        parts.append(f"{report.skipped:,} skipped")
    if report.resumed:
        parts.append(f"{report.resumed:,} of the items from the interrupted run")
    return (
        f"{escape(output)}: {', '.join(parts)}; {report.seconds:.1f} s, "
        f"{done * report.frames / seconds:,.0f} frames/s, "
        f"{done * report.num_bytes / seconds / 1e6:.1f} MB/s"
    )
