"""The options of every ``gulp2 ingest``, and the ingestor that they ask for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from gulpio2.cli.options import (
    dry_run_option,
    json_option,
    number_option,
    verbosity_options,
)
from gulpio2.cli.parameter_types import Bounded, ByteSize
from gulpio2.ingest.jobs import MAX_WORKERS
from gulpio2.threads import usable_cores

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gulpio2.ingest.ingestor import GulpIngestor
    from gulpio2.ingest.shard import Shard

__all__ = ["SETTING_NAMES", "Settings", "ingest_options", "make_ingestor"]


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
    sample_share: float


SETTING_NAMES = frozenset(Settings.__dataclass_fields__)


def ingest_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options of every ingest."""
    options = [
        number_option(
            "--videos-per-chunk",
            default=100,
            help="Items in one chunk, which is also the unit of parallel work.",
        ),
        click.option(
            "--chunk-bytes",
            type=ByteSize(),
            help="Close a chunk also at this size: 512MB, 2GiB.",
        ),
        number_option(
            "--num-workers",
            most=MAX_WORKERS,
            default=usable_cores,
            show_default="number of CPUs",
            help="Worker processes of this machine. A cluster has its own.",
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
        number_option(
            "--quality",
            most=100,
            default=90,
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
        click.option(
            "--sample-share",
            type=Bounded(0, 1, min_open=True),
            default=0.01,
            show_default=True,
            help="Part of the items that --dry-run reads, 20 at least; 1 for all of "
            "them: then it names all that will fail.",
        ),
        json_option("the report as JSON"),
        verbosity_options,
    ]
    for option in reversed(options):
        function = option(function)
    return function


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


def make_ingestor(
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
        apart=True,
        **more,
    )
