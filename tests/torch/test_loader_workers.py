"""A loader with worker processes gives what one with threads does, however they end."""

from __future__ import annotations

import gc
import itertools
import logging
import multiprocessing
import os
import pickle
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gulpio2.errors import CorruptFrameError, WorkerEndedError
from gulpio2.sampling import sample_window
from gulpio2.testing import make_gulp_directory
from gulpio2.torch import (
    ConcatDataset,
    GulpClipDataset,
    GulpImageDataset,
    GulpLoader,
    RandomResizedCrop,
)
from gulpio2.torch.ring import Slot, share_memory, shared_arrays
from tests.forking import forked, status_of
from tests.torch.troubles import damage

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
window = partial(sample_window, clip_length=4)
NUM_ITEMS = 13


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Make a directory of items of 8 frames."""
    path = tmp_path_factory.mktemp("gulped")
    make_gulp_directory(path, num_items=NUM_ITEMS, num_frames=8)
    return path


@pytest.fixture
def dataset(folder):
    return GulpClipDataset(folder, window, target="id")


def make(dataset, **options) -> GulpLoader:
    return GulpLoader(
        dataset, **{"batch_size": 4, "seed": 7, "output": "numpy", **options}
    )


def told(batch) -> tuple[Any, ...]:
    """Say all that there is to say of a batch."""
    arrays = batch.clips, batch.frame_indices, batch.valid, batch.indices
    return (
        *(np.asarray(array).tolist() for array in arrays),
        *(batch.positions.tolist(), batch.seeds.tolist(), batch.epoch),
        *(
            batch.targets,
            batch.infos,
            batch.regions,
            batch.num_skipped,
            batch.num_substituted,
        ),
    )


def processes() -> list[int]:
    return [process.pid or 0 for process in multiprocessing.active_children()]


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"  # whoever reaps orphans here may not have come by


def all_end(numbers: list[int], seconds: float = 20) -> bool:
    latest = time.monotonic() + seconds
    while any(map(is_running, numbers)) and time.monotonic() < latest:
        time.sleep(0.02)
    return not any(map(is_running, numbers))


def all_end_or_are_killed(numbers: list[int]) -> bool:
    found = all_end(numbers)
    for number in filter(is_running, numbers):
        os.kill(number, signal.SIGKILL)
    return found


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch_size": 3, "drop_last": True, "keep": 2, "prefetch": 1},
        {"view": RandomResizedCrop(16), "layout": "TCHW"},
        {"colorspace": "gray", "shuffle": False},
        {"rank": 1, "num_ranks": 3},
        pytest.param({"output": "torch"}, marks=pytest.mark.torch),
    ],
    ids=str,
)
@pytest.mark.parametrize("num_workers", [1, 3])
def test_batches_are_those_of_threads(dataset, options, num_workers):
    threads = make(dataset, **options, threads=2)
    with make(dataset, **options, num_workers=num_workers) as loader:
        for _ in range(2):
            for mine, theirs in zip(loader, threads, strict=True):
                assert told(mine) == told(theirs)
        assert loader.state_dict() == threads.state_dict()
        assert len(processes()) == num_workers


def test_single_frames_and_datasets_of_datasets(folder, dataset):
    frames = GulpImageDataset(folder, frame="random", target="id")
    several = ConcatDataset([dataset, dataset.get_subset([0, 2])])
    for each in (frames, several):
        threads, loader = make(each, threads=1), make(each, num_workers=2)
        with loader:
            assert [*map(told, loader)] == [*map(told, threads)]


def test_a_spawned_script_without_a_guard_is_told_of_it(
    folder, repository, python, tmp_path
):
    script = tmp_path / "train.py"
    script.write_text(f"""
import multiprocessing
from functools import partial
from gulpio2.sampling import sample_window
from gulpio2.torch import GulpClipDataset, GulpLoader

multiprocessing.set_start_method("spawn", force=True)
clips = GulpClipDataset({str(folder)!r}, partial(sample_window, clip_length=2))
for _ in GulpLoader(clips, batch_size=2, num_workers=1, output="numpy"):
    pass
""")
    done = subprocess.run(
        [python, script],
        env={**os.environ, "PYTHONPATH": str(repository)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert "WorkerEndedError" in last
    assert '`if __name__ == "__main__":`' in last


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes_may_be_started_in_other_ways(folder, repository, python, method):
    program = f"""
import multiprocessing, sys, time
from functools import partial
from gulpio2.sampling import sample_window
from gulpio2.torch import GulpClipDataset, GulpLoader, RandomResizedCrop

if __name__ == "__main__":
    multiprocessing.set_start_method({method!r})
    dataset = GulpClipDataset(sys.argv[1], partial(sample_window, clip_length=4))
    options = dict(batch_size=4, output="numpy", view=RandomResizedCrop(16))
    one = GulpLoader(dataset, num_workers=2, **options)
    other = GulpLoader(dataset, threads=1, **options)
    pairs = []
    for pair in zip(one, other, strict=True):
        pairs.append(pair)
        time.sleep(1.5 * (len(pairs) == 1))  # as a trainer may that saves its model
    print(len(pairs), all((a.clips == b.clips).all() for a, b in pairs[-1:]))
"""
    done = subprocess.run(
        [python, "-c", program, folder],
        env={**os.environ, "PYTHONPATH": str(repository)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.stdout.split(), done.stderr) == (["4", "True"], "")


def test_a_trainer_may_have_used_threads_of_opencv(folder, repository, python):
    program = """
import os, sys
from functools import partial
import cv2
import numpy as np
from gulpio2.sampling import sample_window
from gulpio2.torch import GulpClipDataset, GulpLoader, RandomResizedCrop

cv2.setNumThreads(4)
alone = len(os.listdir("/proc/self/task"))
large = np.zeros((1080, 1920, 3), np.uint8)
while len(os.listdir("/proc/self/task")) == alone:
    cv2.cvtColor(cv2.resize(large, (1280, 960)), cv2.COLOR_RGB2GRAY)
dataset = GulpClipDataset(sys.argv[1], partial(sample_window, clip_length=4))
view = RandomResizedCrop(16)
options = dict(batch_size=4, output="numpy", view=view, num_workers=2)
with GulpLoader(dataset, **options) as loader:
    print(sum(map(len, loader)))
"""
    done = subprocess.run(
        [python, "-W", "ignore::DeprecationWarning", "-c", program, folder],
        env={**os.environ, "PYTHONPATH": str(repository)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == (f"{NUM_ITEMS}\n", "")


def test_a_state_goes_from_threads_to_workers_and_back(dataset):
    whole = [told(batch) for batch in make(dataset, threads=1)]
    first = iter(make(dataset, threads=2))
    loader = make(dataset, threads=2)
    first = iter(loader)
    seen = [told(next(first))]
    with make(dataset, num_workers=2) as other:
        other.load_state_dict(loader.state_dict())
        second = iter(other)
        seen += [told(next(second)), told(next(second))]
        state = pickle.loads(pickle.dumps(other)).state_dict()
    last = make(dataset, threads=1)
    last.load_state_dict(state)
    assert seen + [told(batch) for batch in last] == whole


# ---------------------------------------------------------------- their lives
def test_they_stay_from_epoch_to_epoch_and_end_with_the_loader(dataset):
    loader = make(dataset, num_workers=2)
    assert processes() == []
    for _ in loader:
        pass
    first = processes()
    batches = iter(loader)
    kept = next(batches)
    before = kept.clips.copy()
    assert sorted(processes()) == sorted(first)
    loader.close()
    assert processes() == []
    assert len(list(loader)) == 3  # the rest of the epoch, by others
    assert np.array_equal(kept.clips, before)
    ended = processes()
    assert len(ended) == 2
    del loader, batches, kept
    gc.collect()
    assert all_end(ended)


def test_one_that_is_killed_is_told_of_and_nothing_is_lost(dataset):
    wanted = [batch.targets for batch in make(dataset, threads=1, batch_size=1)]
    loader = make(dataset, num_workers=2, batch_size=1, prefetch=1)
    batches = iter(loader)
    seen = [next(batches).targets]
    victim = processes()[0]
    os.kill(victim, signal.SIGKILL)
    message = rf"worker \d of the loader \(process {victim}\) was killed by signal 9"
    with pytest.raises(WorkerEndedError, match=message):
        seen.extend(batch.targets for batch in batches)
    others = processes()
    seen += [batch.targets for batch in loader]
    assert seen == wanted
    assert victim not in processes()
    assert not set(others) & set(processes())
    loader.close()


@pytest.mark.parametrize("end", ["closed", "killed"])
def test_kept_batches_of_ended_workers_are_never_filled_again(dataset, end):
    options: dict[str, Any] = {"batch_size": 1, "keep": 3, "prefetch": 1}
    wanted = [batch.clips.copy() for batch in make(dataset, threads=1, batch_size=1)]
    with make(dataset, num_workers=1, **options) as loader:
        batches = iter(loader)
        kept = [next(batches) for _ in range(3)]
        seen = [batch.clips.copy() for batch in kept]
        if end == "closed":
            loader.close()
        else:
            os.kill(processes()[0], signal.SIGKILL)
            with pytest.raises(WorkerEndedError):
                seen.extend(batch.clips.copy() for batch in batches)
        seen.extend(batch.clips.copy() for batch in loader)
        assert np.array_equal(seen, wanted)
        assert np.array_equal([batch.clips for batch in kept], wanted[:3])


def test_loaders_that_start_at_once_see_what_ends(dataset, monkeypatch):
    make_pipe = multiprocessing.Pipe

    def make_slowly():
        ends = make_pipe()
        time.sleep(0.2)  # the other thread makes, and forks, meanwhile
        return ends

    monkeypatch.setattr(multiprocessing, "Pipe", make_slowly)
    loaders = [make(dataset, num_workers=1, batch_size=1) for _ in range(2)]
    iterators: list[Any] = [iter(loader) for loader in loaders]
    with ThreadPoolExecutor(2) as pool:
        assert len(list(pool.map(next, iterators))) == 2
        first, second = sorted(processes())
        os.kill(second, signal.SIGKILL)  # of which the first might have an end
        futures = [pool.submit(list, iterator) for iterator in iterators]
        try:
            errors = [future.exception(20) for future in futures]
        finally:
            os.kill(first, signal.SIGKILL)
    (error,) = [error for error in errors if error is not None]
    assert f"(process {second}) was killed" in str(error)


PROGRAM = """
import multiprocessing, os, sys, time
from functools import partial
from gulpio2.sampling import sample_window
from gulpio2.torch import GulpClipDataset, GulpLoader

dataset = GulpClipDataset(sys.argv[1], partial(sample_window, clip_length=4))
loader = GulpLoader(dataset, batch_size=2, num_workers=3, output="numpy")
held = iter(loader)
next(held)
print(*[process.pid for process in multiprocessing.active_children()], flush=True)
"""


@pytest.mark.parametrize(
    ("end", "status", "said"),
    [
        ("", 0, ""),
        ("for _ in held: pass", 0, ""),
        ("raise KeyError('mine')", 1, "KeyError: 'mine'"),
        ("os.kill(os.getpid(), 9)", -signal.SIGKILL, ""),
        ("os.killpg(0, 2); time.sleep(30)", -signal.SIGINT, "KeyboardInterrupt"),
        # A sibling has the trainer's ends of all connections, and lives on.
        ("if os.fork(): os.kill(os.getpid(), 9)\ntime.sleep(15)", -9, ""),
    ],
    ids=["held", "end", "error", "kill", "interrupt", "kill beside a fork"],
)
def test_a_program_leaves_no_process_behind(
    folder, repository, python, end, status, said
):
    process = subprocess.Popen(
        # Of the fork beside threads, which is the program's own, Python 3.12 warns.
        [python, "-W", "ignore::DeprecationWarning", "-c", PROGRAM + end, folder],
        env={**os.environ, "PYTHONPATH": str(repository)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    numbers = [int(word) for word in process.stdout.readline().split()]  # type: ignore[union-attr]  # a pipe
    assert len(numbers) == 3
    assert process.wait(60) == status
    assert all_end(numbers)
    if "fork" in end:  # the sibling is there still
        os.killpg(process.pid, signal.SIGKILL)
    _, errors = process.communicate()
    assert errors.splitlines()[-1:] == ([said] if said else [])
    assert errors.count("Traceback") == bool(said)


ANSWERING = """
import multiprocessing, os, sys
from functools import partial
from gulpio2.sampling import sample_window
from gulpio2.torch import GulpClipDataset, GulpLoader

def target(info):  # more than a connection holds
    return bytes(1 << 22)

if __name__ == "__main__":
    multiprocessing.set_start_method(sys.argv[2])
    sampler = partial(sample_window, clip_length=4)
    dataset = GulpClipDataset(sys.argv[1], sampler, target=target)
    loader = GulpLoader(
        dataset, batch_size=1, prefetch=8, num_workers=2, output="numpy"
    )
    held = iter(loader)
    next(held)
    print(*[process.pid for process in multiprocessing.active_children()], flush=True)
    while True:
        for _ in loader:
            pass
"""


@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_a_worker_that_answers_ends_with_a_trainer_that_is_killed(
    folder, repository, python, method, tmp_path
):
    program = tmp_path / "train.py"  # from where other processes import the target
    program.write_text(ANSWERING)
    process = subprocess.Popen(
        [python, program, folder, method],
        env={**os.environ, "PYTHONPATH": str(repository)},
        stdout=subprocess.PIPE,
        text=True,
    )
    numbers = [int(word) for word in process.stdout.readline().split()]  # type: ignore[union-attr]  # a pipe
    assert len(numbers) == 2
    time.sleep(0.3)
    process.kill()
    process.wait()
    process.stdout.close()  # type: ignore[union-attr]  # a pipe
    assert all_end_or_are_killed(numbers)


def test_a_handler_of_sigterm_is_the_trainers_alone(folder, repository, python):
    program = f"import signal\nsignal.signal(signal.SIGTERM, print)\n{PROGRAM}"
    process = subprocess.Popen(
        [python, "-c", program, folder],
        env={**os.environ, "PYTHONPATH": str(repository)},
        stdout=subprocess.PIPE,
        text=True,
    )
    numbers = [int(word) for word in process.stdout.readline().split()]  # type: ignore[union-attr]  # a pipe
    assert all_end_or_are_killed([process.pid, *numbers])
    assert process.communicate(timeout=20)[0] == ""
    assert process.returncode == 0


def test_a_worker_that_is_stopped_does_not_hold_up_the_end(dataset):
    loader = make(dataset, num_workers=2)
    for _ in loader:
        pass
    numbers = processes()
    os.kill(numbers[0], signal.SIGSTOP)
    try:
        loader.close()
        assert processes() == []
    finally:
        with suppress(ProcessLookupError):
            os.kill(numbers[0], signal.SIGKILL)


def test_a_worker_that_is_stopped_is_named_and_waited_for(dataset, monkeypatch, caplog):
    monkeypatch.setattr("gulpio2.torch.worker_pool._SLOW_SECONDS", 0.2)
    # Small ones: some are not begun yet when the worker is stopped.
    wanted = [batch.targets for batch in make(dataset, batch_size=2, threads=1)]
    loader = make(dataset, batch_size=2, num_workers=2)
    batches = iter(loader)
    seen = [next(batches).targets]
    (victim, *_) = processes()
    os.kill(victim, signal.SIGSTOP)
    # Not before the warning is there; so late at most that the test ends.
    latest = time.monotonic() + 20
    with ThreadPoolExecutor(1) as others:

        def wake() -> None:
            while not caplog.records and time.monotonic() < latest:
                time.sleep(0.01)
            os.kill(victim, signal.SIGCONT)

        woken = others.submit(wake)
        seen += [batch.targets for batch in batches]
        woken.result()
    assert seen == wanted
    (said,) = {record.getMessage() for record in caplog.records}
    assert f"(process {victim}) has been at samples" in said
    assert "for 0.2 s" in said
    assert said.endswith("and the next one starts others")
    loader.close()


@pytest.mark.parametrize("error", [BlockingIOError, KeyboardInterrupt])
def test_where_not_all_can_be_started_none_stays(dataset, monkeypatch, error):
    forks, fork = itertools.count(1), os.fork

    def fork_twice():
        if next(forks) == 3:
            raise error("no more")
        return fork()

    monkeypatch.setattr(
        multiprocessing, "Process", multiprocessing.get_context("fork").Process
    )
    monkeypatch.setattr(os, "fork", fork_twice)
    loader = make(dataset, num_workers=3)
    with pytest.raises(error, match="no more") as held:  # and with it all frames
        next(iter(loader))
    assert processes() == []
    del held
    assert len(list(loader)) == 4
    assert len(processes()) == 3
    loader.close()


def test_a_fork_of_the_trainer_has_workers_of_its_own(dataset):
    wanted = [told(batch) for batch in make(dataset, threads=1)]
    loader = make(dataset, num_workers=2)
    batches = iter(loader)
    seen = [told(next(batches))]

    def train() -> int:
        mine = [told(batch) for batch in loader]
        loader.close()
        return 0 if mine == wanted[1:] else 1

    assert status_of(forked(train)) == 0
    assert seen + [told(batch) for batch in batches] == wanted
    loader.close()


def test_a_worker_may_not_have_workers(dataset):
    ours, theirs = multiprocessing.Pipe()

    def train() -> None:
        try:
            next(iter(make(dataset, num_workers=1)))
        except ValueError as error:
            theirs.send(str(error))

    process = multiprocessing.get_context("fork").Process(target=train, daemon=True)
    process.start()
    assert "give the loader threads in place of workers" in ours.recv()
    process.join()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"num_workers": 2, "threads": 2},
            ValueError,
            "threads=2 and num_workers=2: give one",
        ),
        (
            {"num_workers": 2, "threads": 0},
            ValueError,
            "threads=0 and num_workers=2: give one",
        ),
        ({"num_workers": -1}, ValueError, "num_workers is -1"),
        ({"num_workers": 1.5}, TypeError, "num_workers is 1.5"),
    ],
)
def test_settings_that_cannot_be(dataset, options, error, message):
    with pytest.raises(error, match=message):
        make(dataset, **options)


# ---------------------------------------------------------------- troubles
class OddError(Exception):
    """An exception that cannot be pickled, also not as Dask would have it."""

    def __reduce__(self):
        raise TypeError("not to be pickled")


def troubled(info):
    if info["id"] == "item3":
        raise OverflowError("of my own")
    if info["id"] == "item5":
        raise OddError("strange")
    if info["id"] == "item7":
        return lambda: None
    return info["id"]


@pytest.mark.parametrize(
    ("item", "error", "message"),
    [
        (3, OverflowError, "^of my own$"),
        (5, RuntimeError, "OddError: strange$"),
        (7, TypeError, "^the target of a sample, .* cannot be sent .*lambda"),
    ],
)
def test_what_a_target_raises_comes_in_its_turn(folder, item, error, message):
    dataset = GulpClipDataset(folder, window, target=troubled)
    dataset = dataset.get_subset([item - 1, item, item + 1])
    with make(dataset, num_workers=2, batch_size=1, shuffle=False) as loader:
        batches = iter(loader)
        assert next(batches).targets == [f"item{item - 1}"]
        with pytest.raises(error, match=message) as caught:
            next(batches)
        cause = caught.value.__cause__
        assert "in a worker process of the loader" in str(cause)
        assert item == 7 or "in troubled" in str(cause)
        assert loader.state_dict()["position"] == 1


@pytest.mark.parametrize("how", ["skip", "substitute"])
def test_damage_is_counted_and_logged_here(make_directory, caplog, how):
    path = make_directory(counts=(8,) * 9)
    damage(path, (1, 4))
    dataset = GulpClipDataset(path, window, target="id")

    def run(**options):
        caplog.clear()
        loader = make(dataset, on_corrupt=how, **options)
        with caplog.at_level(logging.WARNING, logger="gulpio2"), loader:
            batches = [told(batch) for batch in loader]
        records = sorted(record.getMessage() for record in caplog.records)
        return batches, records, loader.state_dict(), loader.num_skipped

    found = run(num_workers=2)
    assert found == run(threads=1)
    assert len(found[1]) == (2 if how == "skip" else 3)  # one stood in for another
    assert found[3] == (2 if how == "skip" else 0)


def odd_sampler(num_frames, rng=None):
    raise odd_sampler.error("of my own")  # type: ignore[attr-defined]


@pytest.mark.parametrize("error", [KeyError, OSError, EOFError, SystemExit])
def test_what_a_sampler_raises_at_first_does_not_end_the_worker(folder, dataset, error):
    odd_sampler.error = error  # type: ignore[attr-defined]
    bad = GulpClipDataset(folder, odd_sampler, target="id")
    both = ConcatDataset([dataset.get_subset([0]), bad])
    with make(both, num_workers=2, batch_size=1, shuffle=False) as loader:
        batches = iter(loader)
        assert next(batches).targets == ["item0"]
        with pytest.raises(error, match="of my own"):
            next(batches)


def test_damage_raises(make_directory):
    path = make_directory(counts=(8,) * 9)
    damage(path, (4,))
    dataset = GulpClipDataset(path, window, target="id")
    with make(dataset, num_workers=2, shuffle=False, batch_size=2) as loader:
        batches = iter(loader)
        assert next(batches).targets == ["clip0", "clip1"]
        assert next(batches).targets == ["clip2", "clip3"]
        with pytest.raises(CorruptFrameError, match=r"item 'clip4' of .*gulp2 check"):
            next(batches)


# ---------------------------------------------------------------- the rest
def drawn(info):
    time.sleep(0.005)  # so that each worker makes some
    return int(np.random.randint(1 << 30))  # of somebody's own


def test_workers_do_not_draw_the_same_from_global_generators(folder):
    dataset = GulpClipDataset(folder, window, target=drawn)
    with make(dataset, num_workers=3, batch_size=1, prefetch=3) as loader:
        numbers = [int(batch.targets[0]) for batch in loader]
        loader.close()
        numbers += [int(batch.targets[0]) for batch in loader]
    assert len(set(numbers)) == 2 * NUM_ITEMS


def test_the_profile_is_of_the_workers(dataset):
    with make(dataset, num_workers=2) as loader:
        for _ in loader:
            pass
        profile = loader.profile()
    assert (profile.num_threads, profile.num_samples) == (2, NUM_ITEMS)
    assert profile.num_frames == 4 * NUM_ITEMS
    assert profile.num_bytes > 0
    assert profile.decode_seconds > 0
    assert "time of the workers (2)" in str(profile)
    assert "num_workers=2" in repr(loader)


def test_memory_of_batches_is_shared_and_apart():
    shape = (2, 3, 5, 7, 3)
    shared = share_memory(3, shape)
    arrays = shared_arrays(shared, 3, shape)
    for number, array in enumerate(arrays):
        array.fill(number + 1)
    others = shared_arrays(shared, 3, shape)
    assert [np.unique(array).tolist() for array in others] == [[1], [2], [3]]
    slot = Slot(shape, tensor=False, pinned=False, memory=others[1])
    assert slot.array is others[1]
    slot.take_over([0, 1])
    assert np.unique(slot.array).tolist() == [2]


@pytest.mark.torch
def test_what_workers_made_is_copied_into_page_locked_memory(monkeypatch):
    import torch

    make = torch.empty  # as if it were locked, where no device is

    def make_unlocked(shape, *, dtype, pin_memory):
        assert pin_memory
        return make(shape, dtype=dtype)

    monkeypatch.setattr(torch, "empty", make_unlocked)
    shape = (3, 2, 5, 7, 3)
    (filled,) = shared_arrays(share_memory(1, shape), 1, shape)
    slot = Slot(shape, tensor=True, pinned=True, memory=filled)
    slot.array.fill(1)
    filled.fill(2)
    slot.take_over([0, 2])
    batch = slot.beginning(3)
    assert [row.unique().tolist() for row in batch] == [[2], [1], [2]]
    filled.fill(3)
    assert batch.max() == 2


@pytest.mark.gpu
def test_page_locked_batches_are_those_of_threads(dataset):
    threads = make(dataset, threads=1, output="torch")
    with make(dataset, num_workers=2, output="torch", pin_memory=True) as loader:
        for mine, theirs in zip(loader, threads, strict=True):
            assert mine.clips.is_pinned()
            assert told(mine) == told(theirs)
            mine.clips.to("cuda", non_blocking=True)
