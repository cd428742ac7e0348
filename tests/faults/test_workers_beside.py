"""An ingest with workers beside other programs: workers are stopped, or killed.

Each worker stands still before some of its operations, as do the process that began
them and the programs beside them, while the others go on; they act in turns, as in
`test_interleaved`. Or a worker is killed where it stands, or the process that began
it: then its workers outlive it, while the same ingest is begun again.
"""

import functools
import os
import pickle
import random
import shutil
import signal
import time
from pathlib import Path

import pytest

from gulpio2.ingest import pool as pool_module
from gulpio2.ingest import task as task_module
from gulpio2.merge import merge_directories
from gulpio2.sanity import check_directory
from gulpio2.storage import locks
from tests.faults.beside import (
    BASE,
    INGESTS,
    PROGRAMS,
    WITH_WORKERS,
    is_resuming,
    kind_of,
    outcome,
    prepare,
    read_all,
    told,
)
from tests.faults.families import Family, send
from tests.faults.operations import in_child
from tests.faults.test_interleaved import PATIENCE, Several
from tests.faults.test_preempted import FREE, LONG

# Seconds for which a process may go on in its turn, as it may wait for others.
TURN = 0.02
# Seconds in which all have come to their end.
ALL = 60
# What is said of a chunk of which the ingest was killed before it had its map.
UNCOMMITTED = "or its chunk was never committed"

pytestmark = [
    pytest.mark.usefixtures("_fast_disk"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning"),
]


def begin(family, act, *, gather=False):
    """Have this process be a program that is looked at."""
    pool_module._END_SECONDS = 0.5
    if not gather:  # each item by itself, which is more operations
        task_module._GATHERED_BYTES = 1
    family.begin(act)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Make directories, and count the operations of each process of a program."""
    root = Path(tmp_path_factory.mktemp("prepared"))
    prepare(root)
    counts = {}
    for name, program in (PROGRAMS | WITH_WORKERS).items():
        shutil.copytree(root / kind_of(name), root / "count")
        family = Family()

        def work(program=program, family=family):
            begin(family, lambda *_: None)
            program.work(root / "count" / "all", 0)

        assert in_child(work) == 0
        counts[name] = family.counts()
        shutil.rmtree(root / "count")
    return root, counts


class Together(Several):
    """Programs with worker processes; of the first, one may be killed.

    Parameters
    ----------
    victim : {"", "worker", "run"}
        Who is killed: a worker, or the process that began it.
    """

    def __init__(self, root, names, moments, numbers, victim, rng):
        super().__init__(root, names, moments, numbers)
        self.victim = victim
        self.rng = rng
        self.gather = rng.random() < 0.3
        self.families = [Family() for _ in names]
        self.children = []
        self.ended = set()

    def start(self, who):
        def stop(ordinal, count):
            if count in self.moments[who].get(min(ordinal, 2), ()):
                os.kill(os.getpid(), signal.SIGSTOP)

        child = os.fork()
        if not child:
            try:
                locks._PATIENCE = PATIENCE
                begin(self.families[who], stop, gather=self.gather)
                os.kill(os.getpid(), signal.SIGSTOP)
                self.tell(who)
            finally:
                os._exit(0)
        os.waitpid(child, os.WUNTRACED)
        return child

    def run(self, turns):
        """Have one process of theirs go on in each turn, and all to their ends."""
        everyone = [*range(len(self.names))]
        try:
            self.children += map(self.start, everyone)
            for number, who in enumerate(turns):
                self.kill(number)
                stopped = self.families[who].stopped()
                self.go_on(who, self.rng.sample(stopped, min(len(stopped), 1)))
            for who in self.rng.sample(everyone, len(everyone)):
                self.come_to_an_end(who)
            self.look_at_who_is_left()
        finally:
            for who, child in enumerate(self.children):
                for pid in self.families[who].living():
                    send(pid, signal.SIGKILL)
                if not self.has_ended(who):
                    os.waitpid(child, 0)
        self.listen()

    def kill(self, turn):
        """Kill who is to be killed, from the second turn on, if it stands there."""
        workers = {*self.families[0].stopped()} - {*self.children[:1]}
        if turn < 2 or not self.victim or self.killed or not workers:
            return
        pid = min(workers) if self.victim == "worker" else self.children[0]
        send(pid, signal.SIGKILL)
        self.killed.add(0)
        while pid in self.families[0].living():
            time.sleep(0.001)

    def go_on(self, who, processes):
        for pid in processes:
            send(pid, signal.SIGCONT)
        self.families[who].settle(TURN)

    def has_ended(self, who):
        if who not in self.ended and os.waitpid(self.children[who], os.WNOHANG)[0]:
            self.ended.add(who)
        return who in self.ended

    def come_to_an_end(self, who):
        """Have a program come to its end, and what its killed process has left."""
        deadline = time.monotonic() + ALL
        while not self.has_ended(who) or self.families[who].stopped():
            assert time.monotonic() < deadline, (self.names[who], "hangs")
            self.go_on(who, self.families[who].stopped())

    def look_at_who_is_left(self):
        """Workers end with their run; those of an executor need not."""
        deadline = time.monotonic() + ALL
        for who, name in enumerate(self.names):
            while self.families[who].living() and "processes" not in name:
                assert time.monotonic() < deadline, (name, "has left workers")
                time.sleep(0.001)

    def lost(self, value):
        if self.victim == "run":  # just before the map of a chunk was there
            return [each for each in value or () if UNCOMMITTED not in each]
        return value

    def look_at_problems(self, folder, allowed):
        if self.victim == "run":
            allowed = {*allowed, "data-without-map"}
        super().look_at_problems(folder, allowed)

    def verify(self):
        super().verify()
        for who, (kind, _, text) in enumerate(self.said):
            if "ended without a word" in text:  # else it goes on without the worker
                assert who in self.killed
                assert "processes" in self.names[who], text
            if kind != "done" and self.names[who] in INGESTS:
                self.do_again(who)

    def do_again(self, who):
        """Do an ingest once more that was not done, by itself and as it advises."""
        work = self.programs[who].work
        for again in (work, functools.partial(work, resume=False)):

            def alone(work=again):
                said = outcome(work, self.folder, self.numbers[who])
                self.result(who).write_bytes(said)

            assert in_child(alone) == 0
            kind, lost, text = pickle.loads(self.result(who).read_bytes())
            if kind == "done":
                break
            assert "resum" in text or "had other arguments" in text, text
        assert (kind, lost) == ("done", []), text
        done = [i for i, said in enumerate(self.said) if said[0] == "done"]
        halves = {*range(len(self.names))} - {who, *done}
        self.look_at_items(read_all(self.folder), self.may_be([*done, who], halves))
        problems = check_directory(self.folder, deep=True).problems
        assert {each.code for each in problems} <= {"data-without-map"}


def drawn_names(rng, victim):
    """Draw an ingest with workers, and one or two programs beside it."""
    may_be_first = [name for name in WITH_WORKERS if not (victim and "threads" in name)]
    first = rng.choice(may_be_first)
    names = [first]
    for _ in range(rng.choice([1, 1, 2])):
        free = rng.random() < 0.6
        names.append(rng.choice(sorted(FREE) if free else [*PROGRAMS, *WITH_WORKERS]))
    if victim == "run" and rng.random() < 0.5:
        names = [first]  # and itself
    # An item that was replaced is stored elsewhere, unseen by who improves its chunk.
    return [name for name in names if name != "improve" or "replace" not in names]


def drawn_moments(rng, counts):
    """Draw before which operations the first three processes of a program stop."""
    moments = {}
    for ordinal, count in enumerate(counts[:3]):
        last = count if rng.random() < 0.5 else min(count, 9)  # much begins there
        moments[ordinal] = rng.sample(range(1, last + 1), min(last, rng.choice([1, 3])))
    return moments


@pytest.mark.parametrize("victim", ["", "worker", "run"])
@pytest.mark.parametrize("seed", range(60 if LONG else 3))
def test_what_workers_and_others_do_at_once_loses_nothing(
    tmp_path, prepared, record_property, seed, victim
):
    folder, counts = prepared
    rng = random.Random(f"{seed} {victim}")
    runs, killed = 8, 0
    for run in range(runs):
        names = drawn_names(rng, victim)
        numbers = [*range(len(names))]
        moments = [drawn_moments(rng, counts[name]) for name in names]
        if victim == "run":
            del moments[0][0]
            moments.append(drawn_moments(rng, counts[names[0]]))
            names, numbers = [*names, names[0]], [*numbers, 0]
        root = tmp_path / f"{run}"
        shutil.copytree(folder / kind_of(*names), root)
        is_shared = rng.random() < 0.3 and not is_resuming(names)
        if is_shared and "compact" not in names:
            merge_directories([root / "all"], root / "shared")
        turns = [*range(len(names))] * 5
        rng.shuffle(turns)
        turns = [0, 0, *[len(names) - 1] * rng.choice([0, 4]), *turns]
        together = Together(root, names, moments, numbers, victim, rng)
        try:
            together.run(turns)
            together.verify()
        except Exception as error:
            raise AssertionError((names, moments, turns)) from error
        if (root / "shared").exists():
            assert read_all(root / "shared") == told(BASE)
        killed += bool(together.killed)
        shutil.rmtree(root)
    assert bool(killed) == bool(victim)
    record_property("programs with workers", runs)
