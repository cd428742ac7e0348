"""Two or three programs at one directory: each stops here and there, in any order.

Each goes on from one of its moments to the next while the others stand still at theirs.
Data files may be shared by hard links, as after a merge. What all say is compared with
what is there, as in `test_preempted`.
"""

import itertools
import os
import pickle
import random
import shutil
import signal
from pathlib import Path

import pytest

from gulpio2.merge import merge_directories
from gulpio2.sanity import check_directory
from gulpio2.storage import locks
from tests.faults.beside import (
    BASE,
    INGESTS,
    OF_DAMAGE,
    PROGRAMS,
    WITH_WORKERS,
    before_each,
    is_resuming,
    kind_of,
    outcome,
    prepare,
    read_all,
    state_before,
    told,
)
from tests.faults.test_preempted import LONG, count_operations

# Seconds that one waits for a lock, where those who have it stand still.
PATIENCE = 0.02
# What one says that was killed.
KILLED = "killed", None, ""

pytestmark = [
    pytest.mark.usefixtures("_fast_disk"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning"),
]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Make directories, and count the operations of each program."""
    root = Path(tmp_path_factory.mktemp("prepared"))
    prepare(root)
    counts = {}
    for name, program in PROGRAMS.items():
        shutil.copytree(root / kind_of(name), root / "count")
        counts[name] = count_operations(root / "count" / "all", program)
        shutil.rmtree(root / "count")
    return root, counts


class Several:
    """Programs in a folder of their own, and the moments before which they stop.

    Each has a number, which two have where one of them is the other, begun again.
    """

    def __init__(self, root, names, moments, numbers=None):
        self.folder = root / "all"
        self.names = names
        self.programs = [(PROGRAMS | WITH_WORKERS)[name] for name in names]
        self.moments = moments
        self.numbers = numbers or [*range(len(names))]
        self.base = state_before(names, self.folder)
        self.killed = set()

    def run(self, turns):
        """Have them act in turn, each up to its next moment, and all to their ends."""
        children = [self.start(who) for who in range(len(self.names))]
        running = {*range(len(children))}

        def go_on(who):
            os.kill(children[who], signal.SIGCONT)
            if not os.WIFSTOPPED(os.waitpid(children[who], os.WUNTRACED)[1]):
                running.remove(who)

        for who in turns:
            if who in running:
                go_on(who)
        for who in range(len(children)):
            while who in running:
                go_on(who)
        self.listen()

    def listen(self):
        """Take what they have said; who was killed has said nothing."""
        results = [self.result(who) for who in range(len(self.names))]
        self.said = [
            pickle.loads(result.read_bytes()) if result.exists() else KILLED
            for result in results
        ]

    def result(self, who):
        return self.folder.with_name(f"said{who}")

    def tell(self, who):
        """Do the work of one, in its process, and say how it went."""
        said = outcome(self.programs[who].work, self.folder, self.numbers[who])
        self.result(who).write_bytes(said)

    def start(self, who):
        """Start one, which stops before it does anything."""

        def stop(count):
            if count in self.moments[who]:
                os.kill(os.getpid(), signal.SIGSTOP)

        child = os.fork()
        if not child:
            try:
                locks._PATIENCE = PATIENCE
                os.kill(os.getpid(), signal.SIGSTOP)
                before_each(stop)
                self.tell(who)
            finally:
                os._exit(0)
        os.waitpid(child, os.WUNTRACED)
        return child

    def after(self, order):
        state = self.base
        for who in order:
            state = self.programs[who].effect(state, self.numbers[who])
        return told(state)

    def orders(self, programs):
        return map(self.after, itertools.permutations(programs))

    def may_be(self, done, others):
        """List the states that those give, in any order, and some of the others."""
        return [
            state
            for count in range(len(others) + 1)
            for some in itertools.combinations(others, count)
            for state in self.orders([*done, *some])
        ]

    def verify(self):
        everyone = range(len(self.names))
        for who, (kind, value, text) in enumerate(self.said):
            assert kind != "crashed", text
            assert kind != "killed" or who in self.killed
            assert kind == "done" or not OF_DAMAGE.search(text), (value, text)
            assert kind != "done" or not self.lost(value), value  # as a repair calls it
        done = [who for who in everyone if self.said[who][0] == "done"]
        halves = [who for who in everyone if self.said[who][0] != "done"]
        halves = [who for who in halves if self.names[who] in INGESTS]
        possible = self.may_be([], everyone)
        there = read_all(self.folder)
        if halves:  # what one that was refused has committed stays
            self.look_at_items(there, self.may_be(done, halves))
        else:
            assert there in [*self.orders(done)], self.said
        assert read_all(self.folder, indexed=True) == there
        is_unfinished = halves or is_resuming(self.names)
        allowed = {"partial-file", "unfinished-ingest"} if is_unfinished else set()
        self.look_at_problems(self.folder, allowed)
        for who in done:
            if self.names[who] == "read":
                read = self.folder.with_name(f"read{self.numbers[who]}").read_bytes()
                read = pickle.loads(read)
                if {"replace", "improve"} & {*self.names}:  # it may not have waited
                    read = self.after([]) | read
                self.look_at_items(read, possible)
            elif name := self.programs[who].copy:
                copy = self.folder.with_name(f"{name}{self.numbers[who]}")
                self.look_at_items(read_all(copy), possible)
                self.look_at_problems(copy, set())

    def lost(self, value):
        """Say what a program has told of as lost, and must not have."""
        return value

    def look_at_items(self, items, possible):
        """Each item that is there in any case has to be, as it may be."""
        for id_ in items.keys() | set().union(*possible):
            assert items.get(id_) in [state.get(id_) for state in possible], id_

    def look_at_problems(self, folder, allowed):
        problems = check_directory(folder, deep=True).problems
        assert {each.code for each in problems} <= allowed, [*map(str, problems)]


@pytest.mark.parametrize("is_shared", [False, True], ids=["own", "shared"])
@pytest.mark.parametrize("seed", range(100 if LONG else 3))
def test_what_several_do_in_between_loses_nothing(
    tmp_path, prepared, record_property, seed, is_shared
):
    folder, counts = prepared
    rng = random.Random(f"{seed} {is_shared}")
    runs = 8
    for run in range(runs):
        names = rng.choices([*PROGRAMS], k=rng.choice([2, 3]))
        if is_shared:
            names[0] = rng.choice(["replace", "improve"])
        root = tmp_path / f"{run}"
        shutil.copytree(folder / kind_of(*names), root)
        if is_shared and not {"compact", "resume"} & {*names}:
            merge_directories([root / "all"], root / "shared")
        moments = [rng.sample(range(1, counts[name] + 1), 2) for name in names]
        turns = [*range(len(names))] * 2
        rng.shuffle(turns)
        several = Several(root, names, moments)
        try:
            several.run(turns)
            several.verify()
        except Exception as error:
            raise AssertionError((names, moments, turns)) from error
        if (root / "shared").exists():
            assert read_all(root / "shared") == told(BASE)
        shutil.rmtree(root)
    record_property("several programs", runs)
