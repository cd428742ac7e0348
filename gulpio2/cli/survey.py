"""What a dry run found, as lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gulpio2.cli.terminal import count, escape, size
from gulpio2.ingest.survey_result import ID_TAKEN, NOT_GIVEN, Survey
from gulpio2.threads import usable_cores

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["survey_lines"]

_EXAMPLES = 3  # of each kind of oddity, for people; --json gives all that a survey has


def survey_lines(
    survey: Survey,
    num_workers: int,
    on_duplicate: str = "raise",
    *,
    names_all: bool = False,
) -> Iterator[str]:
    """Write a survey for people.

    Parameters
    ----------
    survey : Survey
        Of the run.
    num_workers : int
        Workers of the run; its time is divided by them, as far as there are cores.
    on_duplicate : {"raise", "skip", "report"}, optional
        What the run does about ids that are taken.
    names_all : bool, optional
        Name each item of the sample that will fail, and not the first three alone.

    Yields
    ------
    str
        Lines, indented.
    """
    yield f"  judged by        {count(survey.sampled, 'item')}"
    if not survey.frames:
        yield "  none of them can be stored"
    else:
        error = f" (standard error {_share(survey.error)})" if survey.error else ""
        yield f"  frames           about {survey.frames:,}"
        yield f"  size             about {size(survey.num_bytes)}{error}"
        seconds = survey.seconds / min(num_workers, usable_cores())
        yield f"  time             about {_duration(seconds)}, workers: {num_workers}"
        if survey.unmet:
            yield (
                f"  not met          perhaps {_share(survey.unmet)} of the items, "
                "which may be far larger: the adapter tells no files of theirs"
            )
        yield "  quality  short edge  size        frames/s read by one thread"
        for variant in survey.variants:
            edge = (
                "this run's" if variant.short_edge is None else f"{variant.short_edge}"
            )
            yield (
                f"  {variant.quality:<7}  {edge:<10}  {size(variant.num_bytes):<10}  "
                f"{variant.read_frames_per_second:,.0f}"
            )
    for oddity in survey.oddities:
        fate = "will fail" if oddity.fails else "to be expected"
        if oddity.kind == NOT_GIVEN:
            fate = "will be missing"
        elif oddity.kind == ID_TAKEN and on_duplicate == "skip":
            fate = "will be skipped"
        yield (
            f"  {oddity.kind}: {oddity.sampled:,} of the sample, so about "
            f"{count(oddity.expected, 'item')} {fate}"
        )
        shown = None if names_all and oddity.fails else _EXAMPLES
        for example in oddity.examples[:shown]:
            yield f"    {escape(example)}"
        if more := len(oddity.examples) - len(oddity.examples[:shown]):
            yield f"    --json names {more:,} more"


def _share(value: float) -> str:
    if value > 1:
        return "above 100%"  # the estimate is hardly one, whatever the figure
    return "below 1%" if value < 0.01 else f"{value:.0%}"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 100 else f"{minutes / 60:.1f} h"
