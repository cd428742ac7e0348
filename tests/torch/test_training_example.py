"""The training example: killed and resumed, with two ranks, and that it learns."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from typing import TYPE_CHECKING, Any

import pytest

from gulpio2 import GulpDirectory

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.torch

SMALL = (
    "--videos-per-class",
    4,
    "--batch-size",
    4,
    "--save-every",
    3,
    "--device",
)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Give the folder into which the first run puts the videos for all of them."""
    return tmp_path_factory.mktemp("motions")


@pytest.fixture
def start(data, repository, python, tmp_path):
    """Start the example in a process group of its own."""
    running: list[subprocess.Popen[str]] = []

    def begin(output: str, *arguments: object, launcher: tuple[object, ...] = ()):
        program = repository / "examples" / "train_clip_classifier.py"
        place = ("--data", data, "--output", tmp_path / output)
        words = [python, *launcher, program, *place, *arguments]
        process = subprocess.Popen(
            [str(word) for word in words],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(repository), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        running.append(process)
        return process

    yield begin
    for process in running:
        process.kill()
        process.wait()
        process.stdout.close()  # type: ignore[union-attr]  # it is a pipe


def finish(process: Any) -> str:
    text, _ = process.communicate(timeout=280)
    assert process.returncode == 0, text
    return str(text)


def losses(path: Path) -> list[str]:
    return path.read_text().splitlines()


@pytest.mark.parametrize("option", ["--save-every", "--batch-size", "--epochs"])
def test_a_count_that_is_none_is_refused_by_name(start, tmp_path, option):
    process = start("none", *SMALL, "cpu", option, 0)
    text, _ = process.communicate(timeout=120)
    assert process.returncode == 2
    assert text.endswith(f"error: argument {option}: 0 is less than 1\n")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_killed_run_goes_on_to_the_same_losses(start, tmp_path, device):
    # Two epochs of six steps and a part of the third.
    options = (*SMALL, device, "--steps", 14, "--epochs", 4)
    finish(start("whole", *options))
    wanted = losses(tmp_path / "whole" / "losses.txt")
    assert len(wanted) == 14
    killed = start("killed", *options)
    log = tmp_path / "killed" / "losses.txt"
    deadline = time.monotonic() + 120
    while not log.exists() or len(losses(log)) < 8:  # past the checkpoint at 6
        assert time.monotonic() < deadline
        time.sleep(0.001)
    killed.kill()
    killed.communicate()
    log.write_text(log.read_text() + "999 0.0\n")  # what a resume has to replace
    text = finish(start("killed", *options, "--resume"))
    step = int(re.search(r"goes on at step (\d+), epoch [12]", text).group(1))  # type: ignore[union-attr]
    assert step in (6, 9, 12)
    assert losses(log) == wanted
    # Past the step at which it is to stop, it trains no more.
    finish(start("killed", *options[:-4], "--steps", 5, "--epochs", 4, "--resume"))
    assert losses(log) == wanted


def test_a_run_that_came_to_its_end_is_saved(start, tmp_path):
    options = (*SMALL, "cpu", "--save-every", 100, "--epochs", 1)
    finish(start("ended", *options))
    log = tmp_path / "ended" / "losses.txt"
    wanted = losses(log)
    assert len(wanted) == 6
    text = finish(start("ended", *options, "--resume"))
    assert "goes on at step 6, epoch 1" in text
    assert losses(log) == wanted  # and nothing was trained again
    anew = start("ended", *options)
    text, _ = anew.communicate(timeout=120)
    assert anew.returncode == 1
    assert "--resume goes on with it" in text
    assert losses(log) == wanted


def test_two_ranks_train_together(start, tmp_path):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    launcher: tuple[object, ...] = (
        "-m",
        "torch.distributed.run",
        "--nproc-per-node=2",
        "--master-addr=127.0.0.1",
        f"--master-port={port}",
    )
    options = (*SMALL, "cpu", "--epochs", 2)
    text = finish(start("two", *options, "--steps", 3, launcher=launcher))
    assert "accuracy on the test set" in text
    assert len(losses(tmp_path / "two" / "losses.txt")) == 3  # of 24 clips, 8 a step
    # One rank takes it up: the second epoch has six steps of four clips.
    text = finish(start("two", *options, "--resume"))
    assert "goes on at step 3, epoch 1" in text
    assert len(losses(tmp_path / "two" / "losses.txt")) == 9


KILLED_MEANWHILE = """
import os, signal, sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
import train_clip_classifier as example

whole = example.VideoFolderAdapter.iter_data

def killed(self, slice_element=None):
    for number, item in enumerate(whole(self, slice_element)):
        if number == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        yield item

if sys.argv[3] == "killed":
    example.VideoFolderAdapter.iter_data = killed
example.prepare(Path(sys.argv[2]), 2)
"""


def test_a_preparation_that_was_killed_is_made_again(python, repository, tmp_path):
    def prepare(how):
        examples = repository / "examples"
        command = [python, "-c", KILLED_MEANWHILE, examples, tmp_path, how]
        return subprocess.run(
            [str(word) for word in command],
            env={**os.environ, "PYTHONPATH": str(repository)},
            capture_output=True,
            text=True,
            check=False,
        )

    assert prepare("killed").returncode == -signal.SIGKILL
    assert list(tmp_path.glob("*/ingest.journal"))
    for _ in range(2):  # the second time there is nothing to do
        done = prepare("whole")
        assert done.returncode == 0, done.stderr
        for part, number in (("train", 12), ("test", 6)):
            with GulpDirectory(tmp_path / part) as directory:
                assert len(directory.merged_meta_dict) == number


@pytest.mark.slow
def test_it_learns_to_tell_motions_apart(start, tmp_path):
    begun = time.monotonic()
    text = finish(start("learned", "--data", tmp_path / "many"))
    assert time.monotonic() - begun < 300
    accuracy = re.search(r"accuracy on the test set: ([\d.]+)%", text)
    assert accuracy is not None
    assert float(accuracy.group(1)) >= 90, text
