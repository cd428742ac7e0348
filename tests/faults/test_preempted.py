"""Two programs at one directory: one stops before any operation, the other runs.

Or the first is killed there, the other runs, and the first is done again. What both
say is compared with what is there, to the last frame.
"""

import fcntl
import mmap
import os
import pickle
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from gulpio2 import GulpDirectory
from gulpio2.errors import GulpError
from gulpio2.format.layout import list_chunks
from gulpio2.sanity import check_directory
from gulpio2.storage import locks
from gulpio2.storage.leftovers import remove_partials
from gulpio2.storage.local import open_store
from tests.faults.beside import (
    OF_DAMAGE,
    PROGRAMS,
    Program,
    State,
    before_each,
    kind_of,
    outcome,
    prepare,
    read_all,
    state_before,
    told,
    without_chunk,
)
from tests.faults.operations import in_child

LONG = os.environ.get("GULPIO2_FAULTS") == "long"
# Who does not ask for the lock of the folder; of two that do, one is refused at once.
FREE = {"new", "replace", "improve", "extend", "edit", "index", "read", "check"}
LEFT_BY_A_KILL = {
    *("partial-file", "unfinished-ingest", "data-without-map", "empty-data-file"),
    *("data-too-long", "unreferenced-bytes", "not-erased", "unfinished-compaction"),
}

pytestmark = [
    pytest.mark.usefixtures("_fast_disk"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning"),
]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Make directories with an index: see `kind_of`."""
    root = Path(tmp_path_factory.mktemp("prepared"))
    prepare(root)
    return root


class Pair:
    """Two programs in a folder of their own."""

    def __init__(self, root, first, second, *, kill):
        self.folder = root / "all"
        self.names = first, second
        self.base = state_before(self.names, self.folder)
        self.programs = [PROGRAMS[first], PROGRAMS[second]]
        self.kill = kill
        self.said: list[tuple[str, Any, str]] = []
        self.is_waiting = False

    def run(self, operation, *, patient):
        """Tell whether the first came to the operation."""
        with GulpDirectory(self.folder) as self.reader:
            for id_ in self.base:
                self.reader.read_jpegs(id_)
            return self._run(operation, patient=patient)

    def _run(self, operation, *, patient):
        results = [self.folder.with_name(f"said{who}") for who in (0, 1)]
        shared = mmap.mmap(-1, 1)
        number = signal.SIGKILL if self.kill else signal.SIGSTOP

        def interrupted(count):
            if count == operation:
                os.kill(os.getpid(), number)

        def tell_of_waiting():
            real = fcntl.flock

            def flock(fd, kind):
                try:
                    return real(fd, kind)
                except BlockingIOError:
                    shared[0] = 1
                    raise

            fcntl.flock = flock
            if not patient:
                locks._PATIENCE = -1

        def start(who, work, prepare):
            if child := os.fork():
                return child
            try:
                prepare()
                results[who].write_bytes(outcome(work, self.folder, who))
            finally:
                os._exit(0)

        first, second = self.programs
        child = start(0, first.work, lambda: before_each(interrupted))
        _, status = os.waitpid(child, os.WUNTRACED)
        if not (os.WIFSTOPPED(status) or os.WIFSIGNALED(status)):
            return False
        other = start(1, second.work, tell_of_waiting)
        if self.kill:
            os.waitpid(other, 0)
            child = start(0, first.again, lambda: None)
        else:
            end = time.monotonic() + 2
            ended = 0
            while not ended and (time.monotonic() < end or not patient):
                ended, _ = os.waitpid(other, os.WNOHANG if patient else 0)
                if shared[0] and patient:
                    break
                time.sleep(0.001)
            os.kill(child, signal.SIGCONT)
            if not ended:
                os.waitpid(other, 0)
        os.waitpid(child, 0)
        self.said = [pickle.loads(result.read_bytes()) for result in results]
        self.is_waiting = bool(shared[0])
        self.verify(patient=patient)
        return True

    def states(self):
        """Give what may be there by what both have said: one did it after the other."""
        first, second = ((program, who) for who, program in enumerate(self.programs))
        done = [said[0] == "done" for said in self.said]
        of_second = [second] * done[1]
        if self.kill:
            orders = [[first, *of_second], [*of_second, first]]
            orders += [] if done[0] else [of_second]
            orders += [[first, *of_second, first]]
        else:
            of_first = [first] * done[0]
            orders = [[*of_first, *of_second], [*of_second, *of_first]]
        states = [self.after(order) for order in orders]
        if self.kill and not done[0] and self.replaces():  # the first, before its map
            states.append(self.after(of_second, without_chunk(self.base)))
        return states

    def after(
        self, order: list[tuple[Program, int]], state: State | None = None
    ) -> State:
        state = self.base if state is None else state
        for program, who in order:
            state = program.effect(state, who)
        return state

    def verify(self, *, patient):
        for kind, value, text in self.said:
            assert kind != "crashed", text
            if not self.kill:  # else there may be a torn append, or no map
                assert kind == "done" or not OF_DAMAGE.search(text), (value, text)
                assert kind != "done" or not value, value  # what a repair calls lost
        there = read_all(self.folder)
        states = self.states()
        is_half = any(
            said[0] == "refused" and name in ("ingest", "resume")
            for said, name in zip(self.said, self.names, strict=True)
        )
        if is_half:  # what it has committed stays
            both = self.after([(p, who) for who, p in enumerate(self.programs)])
            assert all(
                each in (told(both).get(id_), told(self.base).get(id_))
                for id_, each in there.items()
            )
            kept = {*self.base}  # of what neither of them takes away
            for who, program in enumerate(self.programs):
                kept &= self.after([(program, who)]).keys()
            if self.kill and self.replaces():  # but where a map may be gone
                kept &= without_chunk(self.base).keys()
            assert kept <= there.keys()
        else:
            assert there in [told(state) for state in states], self.said
        assert read_all(self.folder, indexed=True) == there
        is_begun = "resume" in self.names
        self.look_at_problems(self.folder, is_half=is_half or is_begun)
        self.look_at_old_reader(states)
        self.look_at_new_reader(patient=patient)
        for who, program in enumerate(self.programs):
            kind, value, _ = self.said[who]
            if program.copy and kind == "done" and not value:
                self.look_at_copy(self.folder.with_name(f"{program.copy}{who}"), states)
        store = open_store(self.folder)
        with store.lock():
            remove_partials(store)
        assert not list_chunks(store.names()).partials

    def look_at_problems(self, folder, *, is_half):
        problems = check_directory(folder, deep=True).problems
        allowed = LEFT_BY_A_KILL if self.kill else set()
        if is_half:
            allowed = allowed | {"partial-file", "unfinished-ingest"}
        assert {each.code for each in problems} <= allowed, [*map(str, problems)]

    def look_at_old_reader(self, states):
        """Who has opened the directory before has what was there, or is told."""
        before, after = told(self.base), [told(state) for state in states]
        for id_ in self.base:
            try:
                read = self.reader.read_jpegs(id_), self.reader.item(id_).meta
            except GulpError:
                is_same = all(state.get(id_) == before[id_] for state in after)
                assert not is_same or self.replaces()
            else:
                assert read in [before[id_], *(state.get(id_) for state in after)]

    def look_at_new_reader(self, *, patient):
        """Who reads all of it while the other is at work has each item, old or new.

        Who does not wait lacks those of a chunk that has no map at this moment.
        """
        for who, name in enumerate(self.names):
            if name != "read" or self.said[who][0] != "done" or self.kill:
                continue
            read = pickle.loads(self.folder.with_name(f"read{who}").read_bytes())
            before = told(self.base)
            after = told(self.after([(self.programs[1 - who], 1 - who)]))
            possible = [before, after]
            if self.is_waiting and not patient:
                possible.append(told(without_chunk(self.base)))
            for id_ in before.keys() | after.keys() | read.keys():
                assert read.get(id_) in [each.get(id_) for each in possible], id_

    def replaces(self):
        """Tell whether one of them writes a chunk anew."""
        return {*self.names} & {"replace", "improve"}

    def look_at_copy(self, copy, states):
        first, second = ((program, who) for who, program in enumerate(self.programs))
        possible = [told(self.after(order)) for order in ([], [first], [second])]
        if self.kill and self.replaces():
            # In the instant without a map; or what a merge has brought before it was
            # killed, which stays beside what is there now.
            possible.append(told(without_chunk(self.base)))
            possible.append(told(self.base | self.after([second])))
        assert read_all(copy) in [*possible, *map(told, states)]
        # Of a merge that was killed, and brings the chunk as it is now beside it.
        allowed = {"data-without-map"} if self.kill else set()
        problems = check_directory(copy, deep=True).problems
        assert {each.code for each in problems} <= allowed, [*map(str, problems)]


def count_operations(folder, program):
    """Say before how many operations a program can be stopped."""
    counted = mmap.mmap(-1, 8)

    def note(count):
        counted[:8] = count.to_bytes(8, "little")

    def work():
        before_each(note)
        program.work(folder, 0)

    assert in_child(work) == 0
    return int.from_bytes(counted[:8], "little")


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
@pytest.mark.parametrize("first", PROGRAMS)
def test_what_another_does_in_between_loses_nothing(
    tmp_path, prepared, record_property, first, kill
):
    if kill and not PROGRAMS[first].writes:
        pytest.skip("who is killed while it reads has done nothing")
    shutil.copytree(prepared / kind_of(first), tmp_path / "count")
    operations = count_operations(tmp_path / "count" / "all", PROGRAMS[first])
    moments = [
        (second, number)
        for second in PROGRAMS
        if (first in FREE or second in FREE)
        and (PROGRAMS[first].writes or PROGRAMS[second].writes)
        for number in range(1, operations + 1)
    ]
    runs = reached = 0
    for second, number in moments if LONG else moments[3 :: len(moments) // 6]:
        kind = kind_of(first, second)
        for patient in (False, True):
            root = tmp_path / f"{runs}"
            shutil.copytree(prepared / kind, root)
            pair = Pair(root, first, second, kill=kill)
            try:
                reached += pair.run(number, patient=patient)
            except AssertionError as error:
                moment = f"{first} before operation {number}, {second}"
                raise AssertionError(moment) from error
            shutil.rmtree(root)
            runs += 1
            if kill or not pair.is_waiting:
                break
    assert reached > 0.9 * runs  # the others come to their end before the moment
    record_property("pairs of programs", runs)
