"""``gulp2 ingest``: a source dataset into a gulp directory."""

from __future__ import annotations

import contextlib
import inspect
import logging
import os
import random
import traceback
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from gulpio2.cli.adapter_lookup import BUILT_IN, find_adapter
from gulpio2.cli.adapter_options import adapter_options, make_adapter
from gulpio2.cli.command import DocumentedCommand, DocumentedGroup
from gulpio2.cli.constructor import summary_of
from gulpio2.cli.options import dry_run_option, json_option, verbosity_options
from gulpio2.cli.parameter_types import ByteSize, OutputFolder
from gulpio2.cli.strict_json import write_json
from gulpio2.cli.terminal import count, escape, is_quiet, note, size, write_lines
from gulpio2.ingest.jobs import MAX_WORKERS
from gulpio2.threads import usable_cores

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gulpio2.format.manifest import Run
    from gulpio2.ingest.ingestor import GulpIngestor
    from gulpio2.ingest.report import IngestReport
    from gulpio2.ingest.shard import Shard

__all__ = ["ingest"]

_logger = logging.getLogger(__name__)

# Items of a dry run that are listed.
_FIRST = 5

EXAMPLES = {
    "video-folder": ["videos gulped", "videos gulped --frame-size 256 --num-workers 4"],
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
        del ctx
        return list(BUILT_IN)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Make the command of a built-in adapter, or of a user's."""
        del ctx
        name = cmd_name.replace("_", "-")
        if name not in BUILT_IN:
            if cmd_name.startswith("-"):
                return None
            name = cmd_name
        return adapter_command(name, find_adapter(name))


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
    exit status is 1. OUTPUT/failures.jsonl lists those of the last ingest, all of them;
    the first 20 are told on the way (with -vv all). It is 1 as well where --dry-run
    finds that the run would be refused.
    """


def adapter_command(name: str, cls: type) -> click.Command:
    """Make the command of an adapter.

    Parameters
    ----------
    name : str
        As the user gave it.
    cls : type
        Its class.

    Returns
    -------
    click.Command
        Takes what the constructor takes, OUTPUT, and the options of every ingest.
    """

    @_common_options
    def body(**values: Any) -> None:
        ctx = click.get_current_context()
        given = {
            key: value
            for key, value in values.items()
            if ctx.get_parameter_source(key) is ParameterSource.COMMANDLINE
        }
        settings = Settings(**{k: v for k, v in values.items() if k in _SETTINGS})
        if settings.shard is not None:
            folder = settings.output / settings.shard.folder_name
            settings = replace(settings, output=folder)
        adapter = _adapter(cls, given, settings.output)
        if settings.dry_run:
            if not _plan(adapter, settings):
                ctx.exit(1)
        else:
            _ingest(ctx, adapter, settings)

    summary = summary_of(cls)
    common = click.command(
        name, cls=DocumentedCommand, help=summary, short_help=summary
    )(body)
    taken = {word[2:] for param in common.params for word in param.opts}
    own = adapter_options(cls, taken)
    output = click.Argument(
        ["output"],
        metavar="OUTPUT",
        type=OutputFolder(),
        help="The gulp directory.",
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


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of every ingest."""

    output: Path
    videos_per_chunk: int
    chunk_bytes: int | None
    num_workers: int
    quality: int
    subsampling: str
    on_duplicate: str
    allow_failures: bool
    resume: bool
    scheduler: str | None
    shard: Shard | None
    ignore_space: bool
    as_json: bool
    dry_run: bool


_SETTINGS = frozenset(Settings.__dataclass_fields__)


def _common_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of every ingest."""
    options = [
        click.option(
            "--videos-per-chunk",
            type=click.IntRange(min=1),
            metavar="N",
            default=100,
            show_default=True,
            help="Items in one chunk, which is also the unit of parallel work.",
        ),
        click.option(
            "--chunk-bytes",
            type=ByteSize(),
            help="Close a chunk also at this size: 512MB, 2GiB.",
        ),
        click.option(
            "--num-workers",
            type=click.IntRange(1, MAX_WORKERS),
            metavar="N",
            default=usable_cores,
            show_default="number of CPUs",
            help="Worker processes.",
        ),
        click.option(
            "--scheduler",
            metavar="ADDRESS",
            help="Ingest on a Dask cluster (tcp://host:8786) in place of processes of "
            "this machine. Paths must mean the same on its workers.",
        ),
        click.option(
            "--shard",
            metavar="K/N",
            callback=_shard,
            help="Ingest share K of N only, into OUTPUT/shard_K_of_N. `gulp2 merge` "
            "joins the shares.",
        ),
        click.option(
            "--quality",
            type=click.IntRange(1, 100),
            metavar="N",
            default=90,
            show_default=True,
            help="JPEG quality of what has to be encoded.",
        ),
        click.option(
            "--subsampling",
            type=click.Choice(["source", "444", "422", "420"]),
            default="source",
            show_default=True,
            help="How finely colour is stored: as in the source, or one for all.",
        ),
        click.option(
            "--on-duplicate",
            type=click.Choice(["raise", "skip", "report"]),
            default="raise",
            show_default=True,
            help="What to do about ids that are taken: refuse to begin, leave the item "
            "out, or report it as failed.",
        ),
        click.option(
            "--allow-failures",
            is_flag=True,
            help="Exit with 0 even if items failed.",
        ),
        click.option(
            "--resume",
            is_flag=True,
            help="Go on with a run that was interrupted; give the other arguments as "
            "they were.",
        ),
        click.option(
            "--ignore-space",
            is_flag=True,
            help="Begin even if an estimate says that the disk has no room for it.",
        ),
        dry_run_option,
        json_option("the report as JSON"),
        verbosity_options,
    ]
    for option in reversed(options):
        function = option(function)
    return function


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


def _shard(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> Shard | None:
    """Read a shard, or say what is wrong with it."""
    from gulpio2.errors import IngestSettingError
    from gulpio2.ingest.shard import Shard

    try:
        return None if value is None else Shard.parse(value)
    except IngestSettingError as cause:
        raise click.BadParameter(str(cause), ctx, param) from cause


def _ingest(ctx: click.Context, adapter: Any, settings: Settings) -> None:
    """Ingest with a bar, and report."""
    from gulpio2.cli.interrupts import insist_on_interrupts
    from gulpio2.cli.progress import ProgressBar
    from gulpio2.errors import LockedError, StorageError
    from gulpio2.format.layout import FAILURES_NAME, JOURNAL_NAME
    from gulpio2.ingest.facts import count_items
    from gulpio2.ingest.report import IngestReport

    num_workers, executor = settings.num_workers, None
    num_items = count_items(adapter)
    if settings.shard is not None:
        num_items = settings.shard.num_items(num_items, settings.videos_per_chunk)
    with contextlib.ExitStack() as stack:
        if settings.scheduler is not None:
            from gulpio2.ingest.cluster import connect

            executor, num_workers = stack.enter_context(connect(settings.scheduler))
        bar = stack.enter_context(ProgressBar(num_items))
        progress = stack.enter_context(insist_on_interrupts(bar))
        ingestor = _ingestor(
            adapter,
            settings,
            num_workers,
            executor=executor,
            ignore_space=settings.ignore_space,
            progress=progress,
        )
        try:
            report = ingestor.run()
        except (KeyboardInterrupt, StorageError) as cause:
            is_ours = not isinstance(cause, LockedError)  # the journal is another's
            journal = settings.output / JOURNAL_NAME
            if is_ours and os.path.exists(journal):  # noqa: PTH110  # Path's raises
                note(
                    "gulp2: what was stored is intact; --resume goes on with the rest: "
                    "give the same command with it"
                )
            raise
    if settings.as_json:
        write_json({"output": str(settings.output), **report.to_json()})
    elif settings.resume and report == IngestReport():
        note(f"gulp2: nothing to resume: {escape(settings.output)} is complete")
    elif not is_quiet():
        click.echo(_sentence(report, settings.output))
    if settings.shard is not None and not num_items:
        note(
            f"gulp2: shard {settings.shard} has no chunk: there are fewer chunks than "
            "shards. That loses no item; a smaller --videos-per-chunk, the same for "
            "all shards, would give each of them some"
        )
    if report.failures:
        note(
            f"gulp2: {count(len(report.failures), 'item')} failed; "
            f"{escape(settings.output / FAILURES_NAME)} lists them"
        )
        if not settings.allow_failures:
            ctx.exit(1)


def _ingestor(
    adapter: Any, settings: Settings, num_workers: int, **more: Any
) -> GulpIngestor:
    """Make the ingestor of a run, or of its dry run."""
    from gulpio2.codecs.jpeg import EncoderSettings
    from gulpio2.ingest.ingestor import GulpIngestor

    return GulpIngestor(
        adapter,
        settings.output,
        settings.videos_per_chunk,
        num_workers,
        shard=settings.shard,
        chunk_bytes=settings.chunk_bytes,
        encoder=EncoderSettings(settings.quality, settings.subsampling),  # type: ignore[arg-type]  # click checked it
        on_duplicate=settings.on_duplicate,  # type: ignore[arg-type]  # click checked it
        resume=settings.resume,
        **more,
    )


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


def _plan(adapter: Any, settings: Settings) -> bool:
    """Say what would be ingested, and whether it would be."""
    from gulpio2.codecs.jpeg import EncoderSettings
    from gulpio2.directory import GulpDirectory
    from gulpio2.errors import IngestError, MetaFileError
    from gulpio2.format.other_settings import changed_settings, warning_of
    from gulpio2.ingest.facts import ask_for_facts, require_items
    from gulpio2.ingest.planning import plan_run
    from gulpio2.storage.local import is_there

    require_items(adapter)
    encoder = EncoderSettings(settings.quality, settings.subsampling)  # type: ignore[arg-type]  # click checked it
    stored: frozenset[str] = frozenset()
    runs: tuple[Run, ...] = ()
    if is_there(settings.output):  # a run would make it
        with GulpDirectory(settings.output) as directory:
            stored = frozenset(directory.chunk_lookup)
            runs = directory.manifest.runs if stored else ()
    refused = None
    make_plan = partial(
        plan_run,
        adapter,
        stored,
        items_per_chunk=settings.videos_per_chunk,
        shard=settings.shard,
    )
    run = None
    try:
        if settings.resume:
            run = _ingestor(adapter, settings, settings.num_workers).left_to_resume()
        if run is None:
            run = make_plan(on_duplicate=settings.on_duplicate)  # type: ignore[arg-type]  # click checked it
    except (IngestError, MetaFileError) as error:
        refused = str(error)
        run = make_plan(on_duplicate="skip")
    options = ask_for_facts(adapter).options
    changes = changed_settings(runs if run.tasks else (), options, encoder.describe())
    ids, positions = run.ids, [n for task in run.tasks for n in task.positions()]
    num_items, names = len(positions), ids or []
    repeated = len(names) - len(set(names))
    present = len(stored.intersection(names[n] for n in run.share if names))
    plan = {
        "output": str(settings.output),
        "adapter": type(adapter).__name__,
        "items": num_items,
        "refused": refused,
        "first_ids": None if ids is None else [names[n] for n in positions[:_FIRST]],
        "repeated_ids": None if ids is None else repeated,
        "already_stored": None if ids is None else present,
        "chunks": len(run.tasks),
        "chunks_may_be_more": settings.chunk_bytes is not None,
        "other_settings": [asdict(change) for change in changes],
    }
    from gulpio2.cli.progress import ProgressBar
    from gulpio2.cli.survey import survey_lines
    from gulpio2.ingest.sampled import sample_positions
    from gulpio2.ingest.survey import survey

    with ProgressBar(len(sample_positions(num_items))) as bar:
        found = survey(
            adapter,
            encoder,
            positions=positions,
            stored=stored,
            progress=bar,
        )
    if settings.as_json:
        write_json({**plan, "estimate": found.to_json()})
        return refused is None
    at_least = "at least " if settings.chunk_bytes is not None else ""
    lines = [
        f"{escape(settings.output)}: {count(num_items, 'item')} of "
        f"{plan['adapter']} would be ingested into {at_least}"
        f"{count(len(run.tasks), 'new chunk')}; nothing was written"
    ]
    if refused is not None:
        lines.append(f"  as it stands, it would be refused: {escape(refused)}")
    elif settings.resume and not run.tasks:
        lines.append("  nothing to resume: it is complete")
    if changes:
        lines.append(f"  {escape(warning_of(changes, settings.output))}")
    if ids is None:
        lines.append("  ids are known only while ingesting: the adapter lists none")
    else:
        shown = ", ".join(escape(names[n]) for n in positions[:_FIRST])
        lines.append(
            f"  first ids        {shown}{', ...' if num_items > _FIRST else ''}"
        )
        lines.append(f"  repeated ids     {repeated:,}")
        lines.append(f"  already stored   {present:,}")
    if num_items:
        lines += survey_lines(found, settings.num_workers)
    write_lines(lines)
    return refused is None
