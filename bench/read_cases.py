"""What the benchmark of reading compares: programs, and the ratios of their rates."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

# Programs by the environment that they run in; None is this one's.
ENVIRONMENTS = {
    "ours": None,
    "limit": None,
    "bare": None,
    "original": "original",
    "original, same bytes": "original",
    "decord": "decord",
    "torchcodec": "torchcodec",
    "JPEG files, OpenCV": None,
    "JPEG files, simplejpeg": None,
}
OTHERS = tuple(ENVIRONMENTS)[3:]


@dataclass(frozen=True, slots=True)
class Turn:
    """What a program is to do when it is its turn."""

    label: str
    """Its name in the results."""
    kind: str
    """The program."""
    task: dict[str, Any] = field(default_factory=dict)
    """What it is told."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """Two rates that are compared, round by round."""

    label: str
    over: str
    target: float | None = None
    """At least so much."""


@dataclass(frozen=True, slots=True)
class Case:
    """Programs that take turns."""

    about: str
    turns: tuple[Turn, ...]
    ratios: tuple[Ratio, ...]


def _pattern(pattern: str) -> Case:
    task = {"pattern": pattern, "threads": 2}
    batch = {**task, "call": "batch", "batch": 8}
    return Case(
        f"{pattern} frames of a clip, two threads",
        (
            Turn("ours", "ours", task),
            Turn("ours, 8 clips a call", "ours", batch),
            Turn("ours, new memory", "ours", {**task, "call": "new"}),
            Turn("ours, list of arrays", "ours", {**task, "call": "list"}),
            Turn("limit", "limit", task),
            Turn("limit, memory of 8 clips", "limit", {**task, "batch": 8}),
            Turn("limit, odd addresses", "limit", {**task, "odd": True}),
            Turn("bare", "bare", task),
            *(Turn(kind, kind, {"pattern": pattern}) for kind in OTHERS),
            *(
                Turn(f"{kind}, list", kind, {"pattern": pattern, "call": "list"})
                for kind in ("original", "original, same bytes")
            ),
        ),
        (
            Ratio("ours", "limit", 0.93),
            Ratio("ours, 8 clips a call", "limit, memory of 8 clips", 0.93),
            Ratio("ours", "limit, odd addresses"),
            Ratio("ours, new memory", "limit"),
            Ratio("ours, list of arrays", "limit"),
            Ratio("bare", "limit"),
            Ratio("ours", "bare"),
            Ratio("ours", "original", 2.4),
            Ratio("ours", "original, same bytes", 1.85),
            Ratio("ours", "decord", 9),
            Ratio("ours", "torchcodec", 9),
            Ratio("ours", "JPEG files, OpenCV"),
            Ratio("ours", "JPEG files, simplejpeg"),
            Ratio("ours, list of arrays", "original, list"),
            Ratio("ours, list of arrays", "original, same bytes, list"),
            *(Ratio(kind, "limit") for kind in OTHERS),
        ),
    )


def _single() -> Case:
    task = {"pattern": "random 16", "threads": 1}
    return Case(
        "random 16 frames of a clip, one thread",
        (Turn("ours", "ours", task), Turn("limit", "limit", task)),
        (Ratio("ours", "limit", 0.96),),
    )


def _scales() -> Case:
    turns, ratios = [], []
    for scale in (1, 2, 4, 8):
        task = {"pattern": "random 16", "threads": 2, "options": {"scale": scale}}
        batch = {**task, "call": "batch", "batch": 8}
        ours, limit = f"ours 1/{scale}", f"limit 1/{scale}"
        turns += [
            Turn(ours, "ours", task),
            Turn(f"{ours}, 8 clips a call", "ours", batch),
            Turn(limit, "limit", task),
            Turn(f"{limit}, memory of 8 clips", "limit", {**task, "batch": 8}),
        ]
        if scale > 1:
            ratios += [
                Ratio(ours, limit, 0.93),
                Ratio(f"{ours}, 8 clips a call", f"{limit}, memory of 8 clips", 0.93),
                Ratio(ours, "ours 1/1"),
                Ratio(limit, "limit 1/1"),
            ]
    return Case(
        "random 16 frames of a clip at a part of their size, two threads",
        tuple(turns),
        tuple(ratios),
    )


def _threads() -> Case:
    labels = {n: f"{n} threads" if n > 1 else "1 thread" for n in range(1, 9)}
    return Case(
        "random 16 frames of a clip, by number of threads",
        tuple(
            Turn(label, "ours", {"pattern": "random 16", "threads": n})
            for n, label in labels.items()
        ),
        tuple(Ratio(label, "1 thread", 1) for n, label in labels.items() if n > 1),
    )


def _parts() -> Case:
    options = {
        "whole": {},
        "upper half": {"crop": [0, 0, 128, 340]},
        "middle 224x224": {"crop": [16, 58, 224, 224]},
        "lower half": {"crop": [128, 0, 128, 340]},
        "grey": {"colorspace": "gray"},
    }
    return Case(
        "random 16 frames of a clip, a region or grey, two threads",
        tuple(
            Turn(
                label,
                "ours",
                {"pattern": "random 16", "threads": 2, "options": chosen},
            )
            for label, chosen in options.items()
        ),
        tuple(Ratio(label, "whole") for label in options if label != "whole"),
    )


def _overhead() -> Case:
    """Frames of 16x16, whose decoding takes next to nothing."""
    turns = []
    for pattern in ("random 16", "8 uniform", "32 at stride 2"):
        task = {"pattern": pattern, "threads": 1}
        turns += [
            Turn(f"{pattern}, ours", "tiny ours", task),
            Turn(f"{pattern}, codec", "tiny limit", task),
        ]
    return Case("what a frame costs beside the codec", tuple(turns), ())


CASES: dict[str, Callable[[], Case]] = {
    "random": lambda: _pattern("random 16"),
    "uniform": lambda: _pattern("8 uniform"),
    "stride": lambda: _pattern("32 at stride 2"),
    "single": _single,
    "scales": _scales,
    "threads": _threads,
    "parts": _parts,
    "overhead": _overhead,
}
