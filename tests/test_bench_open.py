"""The benchmark of opening makes directories that are right, and judges rightly."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gulpio2 import GulpDirectory
from gulpio2.sanity import check_directory
from tests.loading import load


@pytest.fixture
def bench(repository, monkeypatch) -> Any:
    """Import ``bench/open.py``, which is no module of a package."""
    monkeypatch.syspath_prepend(str(repository / "bench"))
    return load(repository / "bench" / "open.py")


@pytest.mark.parametrize("extras", [True, False])
def test_its_directories_are_whole(bench, tmp_path, extras):
    folder = tmp_path / "made"
    made = bench.make_directory(folder, 33, per_item=3, per_chunk=4, extras=extras)
    assert made == 11
    assert [
        str(problem)
        for problem in check_directory(folder, deep=True).problems
        if (
            problem.code != "data-too-long"  # the last chunk has the data of a full one
        )
    ] == []
    directory = GulpDirectory(folder)
    assert (len(directory), directory.num_chunks) == (11, 3)
    assert list(directory.merged_meta_dict)[10] == bench.item_id(10)
    first, last = (directory.item(bench.item_id(n)) for n in (0, 10))
    assert bool(len(first.extras.crc32)) is extras
    assert last.num_frames == 3
    assert last.read_clip(None).shape == (3, 256, 340, 3)


def test_a_process_that_opens_tells_what_it_took(bench, tmp_path):
    bench.make_directory(tmp_path / "made", 12, per_item=3, per_chunk=2)
    found = bench.measure(bench.OPEN, tmp_path / "made", bench.item_id(3))
    assert 0 < found["opening"] <= found["seconds"] < 60
    assert found["private"] == found["Private_Clean"] + found["Private_Dirty"]


@pytest.mark.parametrize(
    ("value", "target", "met"),
    [
        (49.9, "< 50 ms", True),
        (50, "< 50 ms", False),
        (20, "<= 20", True),
        (20.1, "<= 20", False),
        (50, ">= 50", True),
        (49, ">= 50", False),
        (1.019, "1 +- 0.02", True),
        (1.021, "1 +- 0.02", False),
    ],
)
def test_a_figure_is_compared_with_its_target(bench, value, target, met, capsys):
    report = bench.Report()
    report.add("case", [value] * 3, "ms", target)
    assert report.cases["case"]["met"] is met
    assert ("MISSED" in capsys.readouterr().out) is not met
    assert json.loads(json.dumps(report.cases))["case"]["median"] == value


def test_figures_of_another_machine_are_not_kept_beside_those_of_this_one(
    bench, tmp_path
):
    path = tmp_path / "figures.json"
    for name in ("one", "other"):
        report = bench.Report()
        report.add(name, [1.0], "ms")
        report.write(path, {})
    kept = json.loads(path.read_text("utf-8"))
    assert list(kept["cases"]) == ["one", "other"]  # of a run that was split
    kept["machine"]["processor"] = "another"
    path.write_text(json.dumps(kept), "utf-8")
    report.write(path, {})
    assert list(json.loads(path.read_text("utf-8"))["cases"]) == ["other"]
