"""``gulp2 bench``: how fast clips can be loaded here, and what holds them up."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import click

from gulpio2.cli.command import DocumentedCommand
from gulpio2.cli.options import (
    directory_argument,
    json_option,
    number_option,
    open_gulp_directory,
    verbosity_options,
)
from gulpio2.cli.parameter_types import Duration
from gulpio2.cli.strict_json import write_json

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["bench"]

# Beyond these nothing is measured: numbers and memory come to an end.
_MOST_FRAMES = 100_000
_LONGEST_EDGE = 65_535  # of a JPEG
_MOST_AT_ONCE = 1_024


@click.command(
    cls=DocumentedCommand,
    examples=[
        "gulp2 bench gulped --seconds 0.3",
        "gulp2 bench gulped --clip-length 4 --size 112 --seconds 0.3 --json",
        "gulp2 bench gulped --clip-length 4 --size 112 --processes 2 --seconds 0.3",
        "gulp2 bench gulped --clip-length 4 --workers 2 --seconds 0.3",
    ],
)
@directory_argument
@number_option(
    "--clip-length",
    most=_MOST_FRAMES,
    default=16,
    help="Frames of a clip.",
)
@number_option(
    "--stride",
    most=_MOST_FRAMES,
    default=1,
    help="Frames of the item from one of a clip to the next.",
)
@number_option(
    "--batch-size",
    most=_MOST_FRAMES,
    default=8,
    help="Clips of a batch.",
)
@number_option(
    "--size",
    most=_LONGEST_EDGE,
    metavar="PIXELS",
    help="Crop at random and resize to this edge. Default: whole frames, which have to "
    "be of one size.",
)
@number_option(
    "--threads",
    most=_MOST_AT_ONCE,
    help="Threads of the loader. Default: one per core, 8 at most.",
)
@number_option(
    "--processes",
    most=_MOST_AT_ONCE,
    help="Worker processes of the loader, in place of threads.",
)
@number_option(
    "--workers",
    most=_MOST_AT_ONCE,
    help="Measure a DataLoader of torch, with so many worker processes, instead.",
)
@number_option(
    "--prefetch",
    most=_MOST_AT_ONCE,
    default=2,
    help="Batches made ahead; by each of the workers, if there are such.",
)
@click.option(
    "--seconds",
    type=Duration(0.01, 86400),
    metavar="SECONDS",
    default=3.0,
    show_default=True,
    help="How long to measure.",
)
@json_option("it as one JSON object")
@verbosity_options
def bench(
    directory: Path,
    clip_length: int,
    stride: int,
    batch_size: int,
    size: int | None,
    threads: int | None,
    processes: int | None,
    workers: int | None,
    prefetch: int,
    seconds: float,
    as_json: bool,
) -> None:
    """Measure how fast a training loop could load random clips.

    Loads shuffled batches with the loader of the package, without a trainer, in turn
    with decoding JPEGs from memory, which is the most that this machine can do. Says
    where the time went and which setting to change first.
    """
    own = size, threads, processes
    if workers is not None and any(given is not None for given in own):
        raise click.UsageError(
            "--workers is of a DataLoader, and --threads, --processes and --size are "
            "of the loader of the package: a DataLoader resizes in a transform of your "
            "own"
        )
    if threads is not None and processes is not None:
        raise click.UsageError(
            "--threads and --processes: give one of them, since a process has one "
            "thread"
        )
    from gulpio2.torch.measure import loader_to_measure, measure_loader

    with open_gulp_directory(directory) as opened:
        loader = loader_to_measure(
            opened,
            clip_length=clip_length,
            stride=stride,
            size=size,
            batch_size=batch_size,
            threads=threads,
            processes=processes,
            workers=workers,
            prefetch=prefetch,
        )
        measured = measure_loader(loader, seconds=seconds)
    if as_json:
        result = {
            "directory": str(directory),
            "loader_frames_per_second": measured.loader_median,
            "codec_frames_per_second": measured.codec_median,
            "ratio": measured.ratio,
            "profile": dataclasses.asdict(measured.profile),
            "change_first": measured.profile.advice,
        }
        write_json(result)
        return
    click.echo(f"loader       {measured.loader_median:>10,.0f} frames/s")
    click.echo(f"codec alone  {measured.codec_median:>10,.0f} frames/s")
    click.echo(f"ratio        {measured.ratio:>10.2f}")
    click.echo(measured.profile)
