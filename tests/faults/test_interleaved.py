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
    OF_DAMAGE,
    PROGRAMS,
    before_each,
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
    """Programs in a folder of their own, and the moments before which they stop."""

    def __init__(self, root, names, moments):
        self.folder = root / "all"
        self.names = names
        self.programs = [PROGRAMS[name] for name in names]
        self.moments = moments
        self.base = state_before(names, self.folder)

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
        results = [self.folder.with_name(f"said{who}") for who in range(len(children))]
        self.said = [pickle.loads(result.read_bytes()) for result in results]

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
                said = outcome(self.programs[who].work, self.folder, who)
                self.folder.with_name(f"said{who}").write_bytes(said)
            finally:
                os._exit(0)
        os.waitpid(child, os.WUNTRACED)
        return child

    def after(self, order):
        state = self.base
        for who in order:
            state = self.programs[who].effect(state, who)
        return told(state)

    def orders(self, programs):
        return map(self.after, itertools.permutations(programs))

    def verify(self):
        everyone = range(len(self.names))
        for kind, value, text in self.said:
            assert kind != "crashed", text
            assert kind == "done" or not OF_DAMAGE.search(text), (value, text)
            assert kind != "done" or not value, value  # what a repair calls lost
        done = [who for who in everyone if self.said[who][0] == "done"]
        halves = {"ingest", "resume"} & {
            self.names[who] for who in {*everyone} - {*done}
        }
        possible = [
            state
            for count in range(len(everyone) + 1)
            for some in itertools.combinations(everyone, count)
            for state in self.orders(some)
        ]
        there = read_all(self.folder)
        if halves:  # what one that was refused has committed stays
            self.look_at_items(there, possible)
        else:
            assert there in [*self.orders(done)], self.said
        assert read_all(self.folder, indexed=True) == there
        is_unfinished = halves or "resume" in self.names
        allowed = {"partial-file", "unfinished-ingest"} if is_unfinished else set()
        self.look_at_problems(self.folder, allowed)
        for who in done:
            if self.names[who] == "read":
                read = self.folder.with_name(f"read{who}").read_bytes()
                read = pickle.loads(read)
                if {"replace", "improve"} & {*self.names}:  # it may not have waited
                    read = self.after([]) | read
                self.look_at_items(read, possible)
            elif name := self.programs[who].copy:
                copy = self.folder.with_name(f"{name}{who}")
                self.look_at_items(read_all(copy), possible)
                self.look_at_problems(copy, set())

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
