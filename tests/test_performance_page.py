"""The page on performance says what the figures say."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parents[1] / "bench"


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import the program that writes the page."""
    monkeypatch.syspath_prepend(str(BENCH))
    for name in ("report", "figures", "peers"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    module = importlib.import_module("report")
    yield module
    for name in ("report", "figures", "peers"):
        sys.modules.pop(name, None)


def test_what_is_missed_is_named_first_and_marked_in_its_table(report):
    case = {"median": 0.5, "least": 0.25, "largest": 12345.6, "unit": "ratio"}
    found: dict[str, Any] = {
        "machine": {"processor": "a processor", "cores": 2},
        "versions": {"gulpio2": "1"},
        "date": "2026-01-02",
        "notes": ["It rained."],
        "cases": {
            "random: a / b": {**case, "target": "at least 0.9", "met": False},
            "random: a / c": {**case, "target": "at least 0.4", "met": True},
            "d": {**case, "target": None, "met": None},
        },
    }
    text = report.page({"loader": found})
    assert "a processor, 2 cores" in text
    assert "Of 2 targets, missed: 1\n\n* random: a / b: 0.5 ratio, and it" in text
    assert "It rained." in text
    assert "### Random\n" in text
    assert (
        "| a / b | 0.5 | 0.25 to 12,346 | ratio | at least 0.9 | **missed** |" in text
    )
    assert "| a / c | 0.5 | 0.25 to 12,346 | ratio | at least 0.4 | met |" in text
    assert "| d | 0.5 | 0.25 to 12,346 | ratio |  |  |" in text
    del found["cases"]["random: a / b"]
    assert "All 1 targets are met." in report.page({"loader": found})


def test_the_page_and_the_readme_have_the_figures_that_were_measured(
    report, repository
):
    found = report.figures()
    page = (repository / "docs" / "performance.md").read_text("utf-8")
    assert page == report.page(found)
    readme = (repository / "README.md").read_text("utf-8")
    cases = found["read"]["cases"]
    for row, name in (
        ("the codec alone, bytes in memory", "limit"),
        ("`read_clips`, eight clips a call", "ours, 8 clips a call"),
        ("`read_clip`, a call per clip", "ours"),
        ("GulpIO2 0.0.4, its own files", "original"),
        ("JPEG files, simplejpeg", "JPEG files, simplejpeg"),
        ("torchcodec, H.264", "torchcodec"),
        ("decord, H.264", "decord"),
    ):
        patterns = ("random", "uniform", "stride")
        values = [cases[f"{pattern}: {name}"]["median"] for pattern in patterns]
        cells = " | ".join(f"{value:,.0f}" for value in values)
        assert f"| {row} | {cells} |\n" in readme
