"""Which kind of worker a run has on one machine."""

import sys

import pytest

from gulpio2.ingest.local_workers import LocalWorkers


@pytest.mark.parametrize(("num_workers", "num_tasks"), [(1, 1), (2, 4), (3, 6)])
def test_two_tasks_keep_a_worker_busy_and_this_process_takes_one(
    num_workers, num_tasks
):
    assert LocalWorkers(num_workers).num_tasks == num_tasks


def test_under_a_debugger_one_worker_is_this_process():
    trace = sys.gettrace()
    try:
        sys.settrace(lambda *_: None)
        assert LocalWorkers(1, apart=True).num_tasks == 1
    finally:
        sys.settrace(trace)
