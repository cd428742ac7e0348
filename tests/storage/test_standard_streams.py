"""What libraries of C say goes to no file of ours, also where stderr is closed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from gulpio2.sanity import check_directory

# Frames whose decoding makes a library of C complain, as libpng does about a profile.
LOUD = """
import os, time
from gulpio2.testing import make_frames

def loud(number=3):
    for frame in make_frames(number):
        for stream in (1, 2):
            try:
                os.write(stream, b"warning: iCCP: known incorrect profile\\n")
            except OSError:
                pass  # closed, as it may be
        yield frame
"""
CHUNK = f"""{LOUD}
from gulpio2 import GulpChunk

chunk = GulpChunk("data_0.gulp", "meta_0.gmeta")
with chunk.open("wb"):
    chunk.append("a", {{}}, loud())
"""
ADAPTER = f"""{LOUD}
from gulpio2.adapters import AbstractDatasetAdapter

class Loud(AbstractDatasetAdapter):
    '''Frames.'''

    def __init__(self):
        self.process = os.getpid()

    def __len__(self):
        return 8

    def iter_data(self, slice_element=None):
        for n in range(8)[slice_element or slice(None)]:
            yield {{"id": str(n), "meta": {{}}, "frames": loud()}}
            if n == 4:  # killed, so that what was written can be seen
                os.kill(self.process, 9)
                time.sleep(60)
"""
CLOSED = ["2>&-", "1>&- 2>&-", "<&- 2>&-", "<&- >&- 2>&-"]


def run(arguments, closed, folder):
    """Run Python as a shell does that closes streams."""
    command = f'exec "$@" {closed}'
    path = os.pathsep.join(sys.path)
    return subprocess.run(
        ["sh", "-c", command, "sh", sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        timeout=60,
    ).returncode


@pytest.mark.parametrize("closed", CLOSED)
def test_warnings_do_not_go_into_a_data_file(tmp_path, closed):
    assert run(["-c", CHUNK], closed, tmp_path) == 0
    report = check_directory(tmp_path, deep=True)
    assert report.ok, report.problems
    assert report.frames == 3


@pytest.mark.parametrize("closed", CLOSED)
def test_warnings_do_not_go_into_the_files_of_an_ingest(tmp_path, closed):
    (tmp_path / "loud.py").write_text(ADAPTER)
    program = ["-m", "gulpio2.cli.main", "ingest", "loud.py:Loud", "out"]
    options = ["--videos-per-chunk", "2", "--num-workers", "1"]
    assert run([*program, *options], closed, tmp_path) == -9
    left = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert "ingest.journal" in left
    assert [name for name, content in left.items() if b"warning" in content] == []
