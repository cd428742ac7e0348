"""A directory in forked and spawned workers, loaders and threads of clients."""

from __future__ import annotations

import multiprocessing
import operator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gulpio2 import GulpDirectory

if TYPE_CHECKING:
    from pathlib import Path

HAS_FORK = "fork" in multiprocessing.get_all_start_methods()
needs_fork = pytest.mark.skipif(not HAS_FORK, reason="this system cannot fork")
# Python >= 3.12 warns of a fork with threads running; the client chose to fork.
threads_and_fork = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


@pytest.fixture
def rgb(make_directory: Any, frame: Any) -> Path:
    """Make a directory of two chunks with colour frames."""
    folder: Path = make_directory(
        {"P01_103_96": [frame(k) for k in range(6)], 7: [frame(k) for k in range(4)]},
        {"brush_hair/clip1": [frame(k + 20) for k in range(3)]},
    )
    return folder


# ------------------------------------------------------------------ workers
def read_in_child(directory: GulpDirectory, pipe: Any) -> None:
    """Read in a forked child, and send back what was read."""
    frames, meta = directory["P01_103_96", [4, 1]]
    pipe.send((np.stack(frames), meta))
    pipe.close()


@needs_fork
@threads_and_fork
@pytest.mark.parametrize("read_first", [False, True])
def test_a_forked_worker_reads_before_and_after_the_parent(rgb, read_first):
    directory = GulpDirectory(str(rgb))
    expected = np.stack(GulpDirectory(str(rgb))["P01_103_96", [4, 1]][0])
    if read_first:
        directory["P01_103_96"]
    context = multiprocessing.get_context("fork")
    ends = [context.Pipe() for _ in range(3)]
    workers = [
        context.Process(target=read_in_child, args=(directory, child))
        for _, child in ends
    ]
    for worker in workers:
        worker.start()
    for _ in range(20):  # the parent reads through the same object meanwhile
        np.testing.assert_array_equal(
            np.stack(directory["P01_103_96", [4, 1]][0]), expected
        )
    for parent, _ in ends:
        assert parent.poll(60), "a worker hangs"
        read, meta = parent.recv()
        np.testing.assert_array_equal(read, expected)
        assert meta == {"of": "P01_103_96"}
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0


@pytest.mark.parametrize("read_first", [False, True])
def test_a_spawned_worker_gets_the_directory_and_reads(rgb, read_first):
    directory = GulpDirectory(str(rgb))
    if read_first:
        directory["P01_103_96"]
        next(iter(next(directory.chunks())))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        frames, meta = pool.apply(operator.getitem, (directory, ("7", [3, 0])))
    for sent, here in zip(frames, directory["7", [3, 0]][0], strict=True):
        np.testing.assert_array_equal(sent, here)
    assert meta == {"of": "7"}


@pytest.mark.torch
@threads_and_fork
@pytest.mark.parametrize("read_first", [False, True])
@pytest.mark.parametrize("method", [pytest.param("fork", marks=needs_fork), "spawn"])
def test_a_torch_loader_reads_in_its_workers(rgb, client_code, method, read_first):
    from torch.utils.data import DataLoader

    dataset = client_code.RgbDataset(rgb)
    if read_first:
        dataset[0]
    loader = DataLoader(
        dataset, batch_size=3, num_workers=2, multiprocessing_context=method
    )
    ((clips, meta),) = list(loader)
    assert tuple(clips.shape) == (3, 2, 24, 32, 3)
    assert meta["of"] == ["P01_103_96", "7", "brush_hair/clip1"]
    for k in range(3):
        np.testing.assert_array_equal(clips[k].numpy(), dataset[k][0])


def test_threads_share_a_directory(rgb):
    directory = GulpDirectory(str(rgb))
    expected = {id_: np.stack(directory[id_][0]) for id_ in directory.merged_meta_dict}
    asked = list(expected) * 60

    with ThreadPoolExecutor(4) as pool:
        for id_, (frames, _) in zip(
            asked, pool.map(directory.__getitem__, asked), strict=False
        ):
            np.testing.assert_array_equal(np.stack(frames), expected[id_])
