"""Draw the figures of docs/performance/*.json; runs where matplotlib is.

python bench/plot.py FOLDER VERB...
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt

OURS, LIMIT, OTHER = "#1f6fb4", "#444444", "#b9c4cf"
_MAX_BARS = 24
_TARGETS = "a black line is what was aimed at"


def read_figure(cases: dict[str, dict[str, Any]]) -> Any:
    """Draw frames per second of every program, for each way of choosing frames."""
    groups = {
        "random": "16 frames in a row",
        "uniform": "8 uniform frames",
        "stride": "32 frames at stride 2",
    }
    shown = [g for g in groups if f"{g}: ours" in cases]
    figure, axes = plt.subplots(
        1, len(shown), figsize=(4.2 * len(shown), 3.6), sharey=True, squeeze=False
    )
    order: list[str] = []
    for axis, group in zip(axes[0], shown, strict=True):
        rates = {
            name.partition(": ")[2]: case
            for name, case in cases.items()
            if name.startswith(f"{group}: ") and case["unit"] == "frames/s"
        }
        skipped = {"ours, new memory", "limit, memory of 8 clips"}
        names = [n for n in rates if n not in skipped and not n.endswith(", list")]
        # One order for all: they share the names at the left.
        order = order or sorted(names, key=lambda name: rates[name]["median"])
        names = [name for name in order if name in rates]
        _bars(axis, names, [rates[name] for name in names])
        axis.set_title(f"{groups[group]}, frames/s")
    figure.suptitle("Clips of 340x256 read on two cores", fontsize=11)
    return figure


def open_figure(cases: dict[str, dict[str, Any]]) -> Any:
    """Draw how long opening takes, and how much memory, by what is opened."""
    panels = {
        "to the first frame's bytes, ms": (
            "open to the first frame's bytes",
            "8 processes at once, each: open",
            "GulpIO2 0.0.4: open",
        ),
        "private memory, MB": (
            "private memory",
            "8 processes at once, each: private memory",
            "GulpIO2 0.0.4: private memory",
        ),
    }
    sizes = dict.fromkeys(name.partition(": ")[0] for name in cases)
    figure, axes = plt.subplots(1, 2, figsize=(11, 2.6), sharey=True)
    for axis, (title, kinds) in zip(axes, panels.items(), strict=True):
        found = {
            f"{size}{what}": cases[f"{size}: {kind}"]
            for size in sizes
            for kind, what in zip(
                kinds, ("", ", 8 processes at once", ", GulpIO2 0.0.4"), strict=True
            )
            if f"{size}: {kind}" in cases
        }
        names = list(found)[::-1]
        _bars(axis, names, [found[name] for name in names])
        axis.set_xscale("log")
        axis.set_title(f"{title}; {_TARGETS}", fontsize=9)
    return figure


def cores_figure(cases: dict[str, dict[str, Any]]) -> Any:
    """Draw frames per second over the cores, of everything that was measured."""
    series: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for name, case in cases.items():
        found = re.fullmatch(r"(\w+): (.*), (\d+) cores?", name)
        if found and case["unit"] == "frames/s":
            group, label, count = found.groups()
            points = series.setdefault(group, {}).setdefault(label, [])
            points.append((int(count), case["median"]))
    figure, axes = plt.subplots(
        1, len(series), figsize=(5.4 * len(series), 4.2), squeeze=False
    )
    for axis, (group, lines) in zip(axes[0], series.items(), strict=True):
        for label, points in lines.items():
            colour = LIMIT if "codec" in label else None
            dashes = "--" if "processes" in label or "DataLoader" in label else "-"
            axis.plot(*zip(*sorted(points), strict=True), dashes, c=colour, label=label)
        axis.set_xlabel("cores")
        axis.set_title(f"{group}, frames/s")
        axis.set_ylim(0)
        axis.legend(fontsize=7)
        axis.spines[["top", "right"]].set_visible(False)
    return figure


FIGURES = {"read": read_figure, "open": open_figure, "cores": cores_figure}


def any_figure(cases: dict[str, dict[str, Any]]) -> Any:
    """Draw the ratios, and where they should be; else the values, by unit."""
    chosen = {n: c for n, c in cases.items() if c["unit"] == "ratio"} or cases
    names = list(chosen)[:_MAX_BARS][::-1]
    figure, axis = plt.subplots(figsize=(8, 0.28 * len(names) + 1.2))
    _bars(axis, names, [chosen[name] for name in names])
    if max(c["median"] for c in chosen.values()) > 50:
        axis.set_xscale("log")
    units = {case["unit"] for case in chosen.values()}
    axis.set_title(f"{', '.join(sorted(units))}; {_TARGETS}", fontsize=9)
    return figure


def _bars(axis: Any, names: list[str], cases: list[dict[str, Any]]) -> None:
    values = [case["median"] for case in cases]
    errors = [
        [v - c["least"] for v, c in zip(values, cases, strict=True)],
        [c["largest"] - v for v, c in zip(values, cases, strict=True)],
    ]
    colours = [
        LIMIT if name.startswith("limit") else OURS if _is_ours(name) else OTHER
        for name in names
    ]
    axis.barh(names, values, xerr=errors, color=colours, ecolor="#888888", height=0.7)
    for place, (value, case) in enumerate(zip(values, cases, strict=True)):
        text = f"{value:,.0f}" if value >= 50 else f"{value:.2f}"
        # Beside all bars, where no line is.
        at = axis.get_yaxis_transform()
        axis.text(1, place, f" {text}", va="center", fontsize=7, transform=at)
        if target := re.search(r"[0-9.]+", case["target"] or ""):
            wanted = [float(target[0])] * 2
            axis.plot(wanted, [place - 0.4, place + 0.4], color="black", lw=1.5)
    axis.tick_params(labelsize=8)
    axis.spines[["top", "right"]].set_visible(False)


def _is_ours(name: str) -> bool:
    return "ours" in name or (" M frames" in name and "0.0.4" not in name)


def main() -> None:
    """Draw a picture for each benchmark."""
    folder = Path(sys.argv[1])
    for verb in sys.argv[2:]:
        cases = json.loads((folder / f"{verb}.json").read_text("utf-8"))["cases"]
        figure = FIGURES.get(verb, any_figure)(cases)
        figure.tight_layout()
        figure.savefig(folder / f"{verb}.png", dpi=110, metadata={"Software": None})
        plt.close(figure)


if __name__ == "__main__":
    main()
