"""The ten programs where a stream is full, closed, or read by nobody any more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gulpio2 import GulpDirectory
from tests.cli.conftest import REPOSITORY

pytestmark = pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="no /dev/full here"
)

INGEST = ["gulp2_image_folder", "--num_workers=2", "images", "out"]
FULL = "cannot write the output: No space left on device\n"


def run(words, streams, folder, stdout=subprocess.PIPE):
    """Run a program as its console script does, by a shell that sets its streams."""
    code = "from gulpio2.cli import legacy; import sys; sys.exit(legacy.{}())"
    program = [sys.executable, "-c", code.format(words[0]), *words[1:]]
    return subprocess.run(
        ["sh", "-c", f'"$@" {streams}', "sh", *program],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize(
    "words",
    [
        ["gulp2_sanity_check", "gulped"],
        ["gulp2_sanity_check", "--help"],
        ["gulp2_image_folder", "--version"],
        ["gulp2_video_folder", "--help"],
    ],
)
def test_a_full_stdout_is_a_message_and_1(gulped, words):
    done = run(words, ">/dev/full", gulped.parent)
    assert (done.returncode, done.stderr) == (1, f"{words[0]}: {FULL}")
    done = run(words, ">&-", gulped.parent)
    assert (done.returncode, done.stderr) == (0, "")
    done = run(words, ">/dev/full 2>/dev/full", gulped.parent)
    assert done.returncode == 1


def test_a_check_of_a_damaged_directory_says_that_its_output_is_lost(gulped):
    (gulped / "data_1.gulp").write_bytes(b"")
    done = run(["gulp2_sanity_check", "gulped"], ">/dev/full", gulped.parent)
    assert (done.returncode, done.stderr) == (1, f"gulp2_sanity_check: {FULL}")


@pytest.mark.parametrize(
    ("streams", "status"),
    [(">/dev/full", 1), (">&-", 0), (">&- 2>&-", 0)],
)
def test_an_ingest_is_done_whatever_takes_its_output(images, streams, status):
    done = run(INGEST, streams, images.parent)
    assert done.returncode == status
    assert "Traceback" not in done.stderr
    assert (FULL in done.stderr) == (status == 1)
    with GulpDirectory(images.parent / "out") as directory:
        assert len(directory.merged_meta_dict) == 10


def test_an_ingest_that_fails_keeps_its_traceback(images):
    done = run([*INGEST[:2], "nowhere", "out"], ">/dev/full", images.parent)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "Exception ignored" not in done.stderr


def test_a_program_is_written_though_nobody_is_told(adapter_file):
    words = ["gulp2_register_adapter", "my_adapters", "MyAdapter"]
    done = run(words, ">/dev/full", adapter_file.parent)
    assert done.returncode == 1
    assert done.stderr == (
        f"gulp2_register_adapter: wrote my_adapter\ngulp2_register_adapter: {FULL}"
    )


def test_a_pipe_that_nobody_reads_is_1_without_a_message(gulped):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        words = ["gulp2_sanity_check", "gulped"]
        done = run(words, "", gulped.parent, stdout=writing)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (1, "")
