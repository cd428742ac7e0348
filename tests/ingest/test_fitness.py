"""What workers elsewhere are asked for, and say of themselves, without a cluster."""

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest

from gulpio2 import GulpIngestor
from gulpio2.adapters import TableAdapter
from gulpio2.errors import IngestError
from gulpio2.ingest.dispatch import Capacity
from gulpio2.ingest.fitness import choose_sources, refuse_other_version
from gulpio2.ingest.jobs import Task
from gulpio2.testing import FrameAdapter


class FromFiles(FrameAdapter):
    """Has a source for each item, by its position."""

    def __init__(self, sources, **options):
        super().__init__(num_items=len(sources), **options)
        self.sources = sources

    def item_source(self, position):
        return self.sources[position]


def tasks(*spans, **options):
    return [Task(n, span[0], span[1], **options) for n, span in enumerate(spans)]


@pytest.fixture(autouse=True)
def sources(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for n in range(9):
        (tmp_path / str(n)).touch()
    return [str(n) for n in range(9)]


def test_the_first_item_one_in_the_middle_and_the_last_are_looked_for(sources):
    adapter = FromFiles(sources)
    assert choose_sources(adapter, tasks((0, 9))) == ("0", "4", "8")
    assert choose_sources(adapter, tasks((1, 4), (4, 7), (7, 8))) == ("1", "5", "7")
    assert choose_sources(adapter, tasks((3, 4))) == ("3",)
    left_out = tasks((0, 9), left_out=frozenset([0, 8]))
    assert choose_sources(adapter, left_out) == ("1", "4", "7")
    nothing_left = tasks((3, 4), left_out=frozenset([3]))
    assert choose_sources(adapter, nothing_left) == ()


@pytest.mark.parametrize(
    "source", ["no such file", "row 7 of a table", "a\0null", "", None]
)
def test_what_is_not_there_for_this_process_is_not_looked_for(source):
    assert choose_sources(FromFiles([source, "1", "2"]), tasks((0, 3))) == ("1", "2")


def test_the_paths_of_a_table_are_looked_for_without_their_rows():
    Path("t (1).csv").write_text("path\n0\n1\n2\n")
    adapter = TableAdapter("t (1).csv", id_column=None)
    assert choose_sources(adapter, tasks((0, 3))) == ("0", "1", "2")


def test_an_adapter_that_tells_no_sources_is_asked_for_none():
    assert choose_sources(FrameAdapter(num_items=3), tasks((0, 3))) == ()


def test_a_worker_of_any_executor_that_does_not_see_the_sources_ends_the_run(
    tmp_path, sources
):
    (tmp_path / "elsewhere").mkdir()
    context = multiprocessing.get_context("spawn")
    message = r"the worker with process \d+ on .* does not see '0'.*--resume"
    with (
        ProcessPoolExecutor(1, context, os.chdir, (tmp_path / "elsewhere",)) as pool,
        pytest.raises(IngestError, match=message),
    ):
        GulpIngestor(FromFiles(sources), "out", 2, 1, executor=pool).run()
    assert GulpIngestor(FromFiles(sources), "out", 2, 1, resume=True).run().items == 9


def test_another_version_is_told_of_with_both():
    with pytest.raises(
        IngestError, match=r"of gulpio2 0\.9\.1, and the worker .* has "
    ):
        refuse_other_version("0.9.1")


def test_other_executors_have_as_many_tasks_as_are_given():
    with ThreadPoolExecutor(8) as pool:
        capacity = Capacity(pool, 2)
        assert (capacity.num_tasks(), capacity.seconds) == (2, 1.0)
