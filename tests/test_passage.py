"""Forks and ends of a process, while other threads ask a directory with conditions."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

import pytest

from gulpio2 import GulpDirectory
from gulpio2.passage import Passage
from gulpio2.storage.index.keeping import build_index
from gulpio2.storage.index.table import make_table
from gulpio2.testing import make_gulp_directory
from tests.forking import forked, status_of
from tests.interrupts import interrupted


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_waits_for_the_calls_of_others_and_lets_them_in_again():
    passage, entered, order = Passage(), threading.Event(), []

    def call():
        with passage.through(), passage.through():
            entered.set()
            time.sleep(0.3)
            order.append("out")

    def enter() -> int:
        with passage.through():
            return 7

    thread = threading.Thread(target=call)
    thread.start()
    assert entered.wait(10)
    status = status_of(forked(enter))
    order.append("forked")
    thread.join()
    assert (status, order) == (7, ["out", "forked"])
    again = threading.Thread(target=enter)
    again.start()
    again.join(10)
    assert not again.is_alive()


def test_an_interrupt_on_the_way_in_or_out_leaves_the_way_free():
    passage = Passage()

    def go_through() -> None:
        with passage.through():
            pass

    number = 0
    for number in interrupted(go_through):
        assert passage._inside == {}
        other = threading.Thread(target=go_through, daemon=True)
        other.start()
        other.join(10)
        assert not other.is_alive(), number
    assert number > 5


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_thread_inside_may_fork():
    passage = Passage()

    def enter() -> int:
        with passage.through():
            return 7

    start = time.monotonic()
    with passage.through():
        assert status_of(forked(enter)) == 7
    assert time.monotonic() - start < 5

    def fork_inside() -> int:
        with passage.through():
            child = os.fork()
        # The child comes out of what it has not gone into.
        if not child:
            os._exit(enter())
        return status_of(child)

    assert status_of(forked(fork_inside)) == 7


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("indexed", [False, True])
def test_a_fork_waits_for_a_table_that_is_made(tmp_path, monkeypatch, indexed):
    make_gulp_directory(tmp_path / "gulped", num_items=3, num_frames=4)
    build_index(tmp_path / "gulped")
    directory = GulpDirectory(tmp_path / "gulped", indexed=indexed)
    begun, order = threading.Event(), []

    def slowly(*content):
        begun.set()
        time.sleep(0.3)
        table = make_table(*content)
        order.append("made")
        return table

    monkeypatch.setattr("gulpio2.storage.index.index.make_table", slowly)
    thread = threading.Thread(target=lambda: directory.table)
    thread.start()
    assert begun.wait(10)
    assert status_of(forked(lambda: 7)) == 7
    order.append("forked")
    thread.join()
    assert order == ["made", "forked"]


PROGRAM = """
import faulthandler, os, sys, threading, time
from gulpio2 import GulpDirectory

directory = GulpDirectory(sys.argv[1])
asked = threading.Semaphore(0)

def ask():
    while True:
        assert len(directory.query("num_frames >= 2")) == 3
        asked.release()

for _ in range(3):
    threading.Thread(target=ask, daemon=True).start()
for _ in range(20):
    assert asked.acquire(timeout=30)
if sys.argv[2] == "fork":
    child = os.fork()
    if not child:
        faulthandler.dump_traceback_later(20, exit=True)
        os._exit(0 if len(directory.query("num_frames >= 2")) == 3 else 3)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


@pytest.mark.parametrize("how", ["end", "fork"])
def test_a_process_ends_and_forks_while_threads_ask(tmp_path, how):
    path = tmp_path / "gulped"
    make_gulp_directory(path, num_items=3, num_frames=4)
    # Before they waited, eleven of twelve forks hung, and two of twelve ends.
    for _ in range(4):
        command = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(path), how]
        done = subprocess.run(command, capture_output=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, b"")


FIRST_QUERY = """
import faulthandler, os, sys, threading
from gulpio2 import GulpDirectory

directory = GulpDirectory(sys.argv[1], indexed=sys.argv[2] == "indexed")
assert "pyarrow" not in sys.modules

def ask():
    assert len(directory.query("num_frames >= 2")) == 3

thread = threading.Thread(target=ask)
thread.start()
while "pyarrow" not in sys.modules:  # it is being imported
    pass
child = os.fork()
if not child:
    faulthandler.dump_traceback_later(20, exit=True)
    ask()
    os._exit(0)
thread.join()
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


@pytest.mark.parametrize("how", ["indexed", "plain"])
def test_a_process_forks_while_a_thread_asks_for_the_first_time(tmp_path, how):
    path = tmp_path / "gulped"
    make_gulp_directory(path, num_items=3, num_frames=4)
    build_index(path)
    command = [sys.executable, "-W", "ignore", "-c", FIRST_QUERY, str(path), how]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
