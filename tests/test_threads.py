"""A few threads per process: shared, kept, and not taken along by a fork."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import threading
import weakref
from functools import partial
from itertools import count

import pytest

from gulpio2 import threads
from gulpio2.threads import default_threads, work_together


def helpers() -> list[str]:
    """Name the threads that help."""
    return [t.name for t in threading.enumerate() if t.name.startswith("gulpio2-")]


def test_every_share_is_done_once_and_all_of_it_before_the_end():
    for number in (0, 1, 3, 7):
        take, done = count().__next__, list[int]()

        def work(take=take, done=done) -> None:
            while (share := take()) < 200:
                done.append(share)

        work_together(work, number)
        assert sorted(done) == list(range(200))


def test_the_threads_stay_for_the_next_call():
    work_together(lambda: None, 2)
    before = set(helpers())
    for _ in range(20):
        work_together(lambda: None, 2)
    assert set(helpers()) == before
    assert len(before) >= 2


def test_what_a_call_has_made_is_not_kept_for_helpers_that_are_busy():
    threads._pool.stop()  # so that there is one, which has something else to do
    begun, go_on = threading.Semaphore(0), threading.Event()

    def be_busy() -> None:
        begun.release()
        go_on.wait(20)

    other = threading.Thread(target=work_together, args=(be_busy, 1))
    other.start()
    try:
        assert begun.acquire(timeout=20)
        assert begun.acquire(timeout=20)  # the helper as well
        kept = []
        for _ in range(20):
            made = {1, 2, 3}
            kept.append(weakref.ref(made))
            work_together(partial(made.discard, 2), 1)
            del made
        assert not any(ref() for ref in kept)
    finally:
        go_on.set()
        other.join()


def test_calls_from_several_threads_all_end():
    ended = []

    def call() -> None:
        for _ in range(50):
            work_together(lambda: None, 3)
        ended.append(1)

    callers = [threading.Thread(target=call) for _ in range(5)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
    assert len(ended) == 5


def test_what_the_caller_raises_comes_out_after_the_helpers_have_left():
    inside, left = threading.Event(), []

    def work() -> None:
        if threading.current_thread() is threading.main_thread():
            inside.wait(10)
            raise KeyboardInterrupt
        inside.set()
        left.append(1)

    with pytest.raises(KeyboardInterrupt):
        work_together(work, 1)
    assert left == [1]


def test_what_a_helper_raises_comes_out():
    inside = threading.Event()

    def work() -> None:
        if threading.current_thread() is threading.main_thread():
            inside.wait(10)
            return
        inside.set()
        raise ZeroDivisionError("helper")

    with pytest.raises(ZeroDivisionError, match="helper"):
        work_together(work, 1)


FORK = """
import os, sys, threading, warnings
import numpy  # its own threads end before a fork as well
from gulpio2.threads import work_together

def helpers():
    return [t.name for t in threading.enumerate() if t.name.startswith("gulpio2-")]

warnings.simplefilter("error")
for _ in range(50):
    work_together(lambda: None, 2)
    assert len(helpers()) == 2
    child = os.fork()
    if child == 0:
        begun = helpers()
        work_together(lambda: None, 2)
        os._exit(0 if begun == [] and len(helpers()) == 2 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def test_a_fork_takes_no_threads_along_and_is_not_warned_of(python):
    # In a process of its own: pytest has threads, of which Python 3.12 warns.
    subprocess.run([python, "-c", FORK], check=True, timeout=120)


FORK_BESIDE_CALLERS = """
import os, threading
from gulpio2.threads import work_together

def call():
    while True:
        work_together(lambda: None, 2)

for _ in range(4):
    threading.Thread(target=call, daemon=True).start()
for _ in range(10):
    child = os.fork()
    if child == 0:
        work_together(lambda: None, 2)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print("forked", flush=True)
os._exit(0)
"""


def test_a_fork_waits_for_no_thread_that_another_caller_keeps_at_work(python):
    # Threads that are started while others are to end must not end in their place.
    run = subprocess.run(
        [python, "-c", FORK_BESIDE_CALLERS], stdout=subprocess.PIPE, timeout=60
    )
    assert run.stdout == b"forked\n"


def _defaults(queue) -> None:
    queue.put((default_threads(), multiprocessing.current_process().daemon))


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("daemon", [True, False])
def test_a_daemonic_worker_has_one_thread_by_default(method, daemon):
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    worker = context.Process(target=_defaults, args=(queue,), daemon=daemon)
    worker.start()
    number, was_daemon = queue.get(timeout=60)
    worker.join()
    assert was_daemon is daemon
    assert number == (1 if daemon else threads._count_default())


EARLY_READER = """
import multiprocessing, sys
from gulpio2.threads import default_threads

EARLY = default_threads()  # as a read outside of the guard below asks for it

def tell(queue):
    queue.put(default_threads())

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[1])
    queue = context.Queue()
    context.Process(target=tell, args=(queue,), daemon=True).start()
    print(queue.get(timeout=60))
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_worker_whose_script_reads_when_it_is_imported_has_one_thread(
    method, python, tmp_path
):
    script = tmp_path / "script.py"
    script.write_text(EARLY_READER)
    run = subprocess.run(
        [python, script, method], stdout=subprocess.PIPE, timeout=60, check=True
    )
    assert run.stdout == b"1\n"


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_worker_of_a_torch_loader_has_one_thread_by_default():
    from torch.utils.data import DataLoader

    loader = DataLoader(_Numbers(), batch_size=None, num_workers=2)
    assert set(loader) == {1}


class _Numbers:
    """A dataset of how many threads there are by default."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        if index >= len(self):
            raise IndexError(index)
        return default_threads()


class TimeIsUpError(Exception):
    """What a program's own handler of signals raises."""


def test_what_a_handler_of_signals_raises_comes_out_after_the_helpers_have_left():
    inside, raised, left = threading.Event(), threading.Event(), []

    def raise_it(*_: object) -> None:
        raised.set()
        raise TimeIsUpError

    def work() -> None:
        if threading.current_thread() is threading.main_thread():
            inside.wait(10)
            signal.setitimer(signal.ITIMER_REAL, 0.1)  # when it waits for the helper
            return
        inside.set()
        raised.wait(10)
        left.append(1)

    before = signal.signal(signal.SIGALRM, raise_it)
    try:
        with pytest.raises(TimeIsUpError):
            work_together(work, 1)
    finally:
        signal.signal(signal.SIGALRM, before)
    assert left == [1]


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_handler_of_signals_may_fork_in_the_midst_of_a_call():
    begun, go_on = threading.Semaphore(0), threading.Event()
    waited, ended = [], []

    def fork(*_: object) -> None:
        if not (child := os.fork()):
            os._exit(7)
        ended.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    def own() -> None:
        assert begun.acquire(timeout=20)
        signal.raise_signal(signal.SIGUSR1)
        go_on.set()

    def work() -> None:
        begun.release()
        waited.append(go_on.wait(5))

    before = signal.signal(signal.SIGUSR1, fork)
    try:
        work_together(work, 1, own=own)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert (waited, ended) == ([True], [7])
    # And the next fork is one without threads again.
    threads._before_fork()
    assert helpers() == []


def test_an_interrupt_while_a_thread_is_started_keeps_nothing_from_ending(monkeypatch):
    start, num_left = threading.Thread.start, 5
    threads._pool.stop()

    def interrupted(thread: threading.Thread) -> None:
        nonlocal num_left
        start(thread)
        num_left -= 1
        if num_left >= 0:
            raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "start", interrupted)
    for _ in range(5):
        with pytest.raises(KeyboardInterrupt):
            work_together(lambda: None, 1)
    work_together(lambda: None, 1)
    monkeypatch.undo()
    unknown = [t for t in threading.enumerate() if t.name == "gulpio2-0"]
    stopping = threading.Thread(target=threads._pool.stop, daemon=True)
    stopping.start()
    for thread in (*unknown, stopping):
        thread.join(10)
        assert not thread.is_alive()
