"""The benchmark's measure of how long the interpreter's lock is held."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CODE = Path(__file__).parents[1] / "bench" / "lock_share.c"
PROGRAM = """
import ctypes, os, threading, time
held_seconds = ctypes.CDLL(os.environ["LD_PRELOAD"]).held_seconds
held_seconds.restype = ctypes.c_double
over = threading.Event()

def look():
    while not over.wait(0.02):
        pass

for _ in range(3):
    threading.Thread(target=look, daemon=True).start()
time.sleep(0.01)
before, began = held_seconds(), time.perf_counter()
while time.perf_counter() < began + 0.1:
    pass
worked = time.perf_counter()
time.sleep(0.4)
print(held_seconds() - before, worked - began, time.perf_counter() - worked)
over.set()
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_threads_that_wait_do_not_hold_the_lock_of_one_that_works(tmp_path):
    library = tmp_path / "lock_share.so"
    command = ["cc", "-O2", "-shared", "-fPIC", str(CODE), "-o", str(library), "-ldl"]
    subprocess.run(command, check=True)
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "LD_PRELOAD": str(library)},
        check=True,
        capture_output=True,
        text=True,
    )
    held, worked, slept = map(float, ran.stdout.split())
    if not held:
        pytest.skip("this Python has its functions in the program itself")
    # Some of what lies between the two is counted with the work.
    assert worked - 0.01 < held < worked + slept / 2
