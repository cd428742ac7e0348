"""Which kind of worker a run has on one machine."""

import multiprocessing
import sys

import pytest

from gulpio2.ingest.local_workers import LocalWorkers


@pytest.mark.parametrize(("num_workers", "num_tasks"), [(1, 1), (2, 4), (3, 6)])
def test_two_tasks_keep_a_worker_busy_and_this_process_takes_one(
    num_workers, num_tasks
):
    assert LocalWorkers(num_workers).num_tasks == num_tasks


@pytest.mark.parametrize("has_debugger", [False, True])
def test_one_worker_apart_is_this_process_under_a_debugger_alone(has_debugger):
    trace = sys.gettrace()
    try:
        sys.settrace((lambda *_: None) if has_debugger else None)
        # Where workers are not forked, another process costs too much.
        is_here = has_debugger or multiprocessing.get_start_method() != "fork"
        assert LocalWorkers(1, apart=True).num_tasks == (1 if is_here else 2)
    finally:
        sys.settrace(trace)
