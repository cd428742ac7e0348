"""What is asked of directories whose ingest was killed, and of the processes."""

import os
import signal
from pathlib import Path

from gulpio2 import GulpDirectory
from tests.faults.operations import (
    before_each_operation,
    in_child,
    kill_at_operation,
)


def committed_jpegs(folder):
    """Open the directory, which must work, and give the bytes of each frame."""
    with GulpDirectory(folder) as directory:
        return {id_: directory.read_jpegs(id_) for id_ in directory.chunk_lookup}


def children_of(pid):
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [int(child) for child in found.split()]


def is_killed(operation, work, *arguments, **options):
    """Do something in a process that is killed before one of its operations.

    Returns
    -------
    bool
        Whether it came so far; else it has ended well.
    """

    def killed():
        kill_at_operation(operation)
        work(*arguments, **options)

    status = in_child(killed)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def is_killed_when(condition, work):
    """Do something in a process that is killed once this holds, as `is_killed` does."""

    def kill(_):
        if condition():
            os.kill(os.getpid(), signal.SIGKILL)

    def killed():
        before_each_operation(kill)
        work()

    status = in_child(killed)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def kill_until_done(ingest, operations):
    """Kill an ingest, and each run that resumes it, until one comes to its end.

    Parameters
    ----------
    ingest : callable
        Takes whether to resume.
    operations : range
        Before which of its operations each run is killed, in turn: far enough, now
        and then, to come from one lasting step to the next.

    Returns
    -------
    int
        How many runs were killed.
    """
    for kills in range(300):
        operation = operations[kills % len(operations)]
        if not is_killed(operation, ingest, resume=kills > 0):
            return kills
    raise AssertionError("no run came to its end")
