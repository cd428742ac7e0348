"""The figures of a benchmark: printed as they come, and kept for `report`."""

from __future__ import annotations

import datetime
import json
import os
import platform
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

__all__ = ["Report", "refuse_unknown", "written"]


class Report:
    """The figures, by case."""

    def __init__(self) -> None:
        self.cases: dict[str, dict[str, Any]] = {}

    def add(
        self,
        name: str,
        values: Sequence[float],
        unit: str,
        target: str | None = None,
    ) -> None:
        """Take a case with the values of its rounds, and print it.

        Parameters
        ----------
        name : str
            Cases are put into one table where they have the same before the colon.
        values : sequence of float
            One of each round; the middle one counts.
        unit : str
            Theirs.
        target : str, optional
            What it should be: ``< 50 ms``, ``>= 0.93``, ``1 +- 0.02``.
        """
        middle = statistics.median(values)
        self.cases[name] = {
            "median": round(middle, 4),
            "least": round(min(values), 4),
            "largest": round(max(values), 4),
            "rounds": len(values),
            "unit": unit,
            "target": target,
            "met": None if target is None else _is_met(middle, target),
        }
        spread = f"{written(min(values))} to {written(max(values))}"
        missed = " MISSED" if self.cases[name]["met"] is False else ""
        sys.stdout.write(
            f"{name:58} {written(middle):>9} {unit:12} {spread:22} "
            f"{target or ''}{missed}\n"
        )
        sys.stdout.flush()

    def write(self, path: Path, versions: Mapping[str, str], **facts: Any) -> None:
        """Keep them in a file; what it has of other cases stays, if of this machine."""
        before, machine = {}, _machine()
        if path.exists():
            before = json.loads(path.read_text("utf-8"))
            known = before["machine"]
            if any(known[key] != machine[key] for key in ("processor", "cores")):
                before = {}
        kept = {
            "machine": machine,
            "versions": {**before.get("versions", {}), **versions},
            "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
            **facts,
            "load": round(os.getloadavg()[0], 1),
            "cases": {**before.get("cases", {}), **self.cases},
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")


def refuse_unknown(
    parser: argparse.ArgumentParser, given: Sequence[str], cases: Mapping[str, Any]
) -> None:
    """End with a word of the cases that there are, where another one was given."""
    unknown = set(given) - cases.keys()
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: give some of {', '.join(cases)}")


def written(value: float) -> str:
    """Write three digits or so."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return (
        f"{value:.3g}" if abs(value) >= 10 else f"{value:.3f}".rstrip("0").rstrip(".")
    )


def _is_met(value: float, target: str) -> bool:
    words = target.split()
    if words[1] == "+-":
        return abs(value - float(words[0])) <= float(words[2])
    limit = float(words[1])
    return {"<": value < limit, "<=": value <= limit, ">=": value >= limit}[words[0]]


def _machine() -> dict[str, Any]:
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    models = [line.partition(":")[2].strip() for line in lines if "model name" in line]
    return {
        "processor": models[0] if models else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "python": platform.python_version(),
    }
