"""A disk that refuses: a clean stop, what was committed stays, resuming works."""

import contextlib
import errno
import fcntl
import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import gulpio2
from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.errors import StorageError
from gulpio2.storage.local_writer import LocalWriter
from gulpio2.testing import FrameAdapter
from tests.faults.operations import (
    content,
    fail_at_operation,
    in_child,
    shorten_write,
)

LONG = os.environ.get("GULPIO2_FAULTS") == "long"
# What a disk says: full, broken, over quota, read-only; and that a signal came. Python
# itself repeats what the system interrupted, so that the last is seen only where it
# does not; a real one is injected further down.
ERRORS = ["ENOSPC", "EIO", "EDQUOT", "EROFS", "EINTR"]


def ingest(folder, *, workers=1, resume=False, chunk_bytes=None):
    adapter = FrameAdapter(num_items=5, num_frames=2, bad=[3])
    return GulpIngestor(
        adapter, folder, 2, workers, resume=resume, chunk_bytes=chunk_bytes
    ).run()


def make_ext4(image):
    """Make a file system in a file, or skip the test where nothing can."""
    if (mkfs := shutil.which("mkfs.ext4", path="/usr/sbin:/sbin:/usr/bin")) is None:
        pytest.skip("there is no mkfs.ext4")
    with image.open("wb") as file:
        file.truncate(16_000_000)
    subprocess.run([mkfs, "-q", str(image)], check=True)
    return image


@pytest.mark.usefixtures("_fast_disk")
@pytest.mark.parametrize("for_good", [False, True], ids=["once", "for good"])
@pytest.mark.parametrize("name", ERRORS)
def test_the_nth_operation_fails(tmp_path, name, for_good):
    ingest(tmp_path / "whole")
    expected = content(tmp_path / "whole")
    failures = 0
    # The quick form takes every second operation for a full disk, and fewer for others.
    step = 1 if LONG else 2 if name == "ENOSPC" else 5
    for number in range(1 + ERRORS.index(name) % step, 1000, step):
        folder = tmp_path / str(number)

        def failing(folder=folder, number=number):
            fail_at_operation(number, getattr(errno, name), for_good=for_good)
            try:
                ingest(folder)
            except StorageError as error:
                if error.errno != getattr(errno, name):
                    raise
                os._exit(7)

        status = os.waitstatus_to_exitcode(in_child(failing))
        assert status in (0, 7), number
        failures += status == 7
        with GulpDirectory(folder) as directory:
            for id_ in directory.chunk_lookup:
                directory.read_clip(id_)
        ingest(folder, resume=True)
        assert content(folder) == expected, number
        if status == 0 and not for_good and number > 100:
            break
        if status == 0 and for_good:
            break
    assert failures > 40 / step


@pytest.mark.usefixtures("_fast_disk")
@pytest.mark.parametrize("for_good", [False, True], ids=["once", "for good"])
def test_the_nth_write_takes_a_part_only_and_is_gone_on_with(tmp_path, for_good):
    ingest(tmp_path / "whole")
    expected = content(tmp_path / "whole")
    for number in range(1, 200):
        folder = tmp_path / str(number)

        def shortened(folder=folder, number=number):
            written = count_writes()
            shorten_write(number, for_good=for_good)
            ingest(folder)
            os._exit(7 if written() < number else 0)

        status = os.waitstatus_to_exitcode(in_child(shortened))
        assert status in (0, 7), number
        assert content(folder) == expected, number
        if status == 7:
            break
    assert number > 20


def count_writes():
    """Count this process's writes from now on."""
    write, count = os.write, 0

    def counted(fd, data):
        nonlocal count
        count += 1
        return write(fd, data)

    os.write = counted
    return lambda: count


def test_writes_that_signals_interrupt_lose_and_repeat_nothing(tmp_path):
    # Into a pipe, for a regular file is written to without a break. A signal ends
    # such a write early, or with EINTR where it had not begun.
    reader, pipe = os.pipe()
    writer = LocalWriter(tmp_path / "file.partial")
    os.dup2(pipe, writer._descriptor())
    os.close(pipe)
    data = np.random.default_rng(0).bytes(8_000_000)
    received = bytearray()

    def read():
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
        while piece := os.read(reader, 50_000):
            received.extend(piece)
            time.sleep(0.001)

    signals = 0

    def note(*_):
        nonlocal signals
        signals += 1

    thread = threading.Thread(target=read)
    before = signal.signal(signal.SIGALRM, note)
    try:
        thread.start()
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
        writer.write(data)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        writer.close()
        thread.join()
        os.close(reader)
    assert received == data
    assert signals > 20
    assert writer.tell() == len(data)


def strace_command(tmp_path, calls, error, when, *more):
    """Make a command line that has system calls fail, or skip where that cannot be."""
    if (strace := shutil.which("strace")) is None:
        pytest.skip("strace is not installed")
    command = [
        *(strace, "-f", "-qq", "-o", str(tmp_path / "trace"), *more),
        *("-e", f"trace={calls}"),
        *("-e", f"inject={calls}:error={error}:when={when}", sys.executable, "-c"),
    ]
    if subprocess.run([*command, ""], check=False, capture_output=True).returncode:
        pytest.skip("processes cannot be traced here")
    return command


PROGRAM = """
import sys
from gulpio2 import GulpIngestor
from gulpio2.testing import FrameAdapter
adapter = FrameAdapter(num_items=5, num_frames=2, bad=[3])
GulpIngestor(adapter, sys.argv[1], 2, int(sys.argv[2])).run()
"""


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("when", ["1+2", "2+2"], ids=["odd", "even"])
def test_system_calls_that_are_interrupted_are_repeated(tmp_path, when, workers):
    ingest(tmp_path / "whole")
    calls = "write,fsync,ftruncate,flock"
    command = strace_command(tmp_path, calls, "EINTR", when)
    done = subprocess.run(
        [*command, PROGRAM, str(tmp_path / "cut"), str(workers)],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert content(tmp_path / "cut") == content(tmp_path / "whole")
    assert (tmp_path / "trace").read_text().count("(INJECTED)") > 15


REPAIR = """
import json, sys
from gulpio2.repair import repair_directory
print(json.dumps(repair_directory(*sys.argv[1:]).to_json()))
"""


@pytest.mark.parametrize("has_map", [True, False], ids=["", "map lost"])
@pytest.mark.parametrize("for_good", [False, True], ids=["once", "for good"])
def test_a_repair_tells_what_a_disk_refuses_and_salvages_all_else(
    tmp_path, for_good, has_map
):
    source, target = tmp_path / "in", tmp_path / "out"
    ingest(source)
    if not has_map:
        (source / "meta_0.gmeta").unlink()
    before = content(source)
    # The first read is of no bytes: it shows that the file can be opened.
    when = "2+1" if for_good else "2+1000"
    path = ("-P", str(source / "data_0.gulp"))
    command = strace_command(tmp_path, "pread64", "EIO", when, *path)
    done = subprocess.run(
        [*command, REPAIR, str(source), str(target)],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert "(INJECTED)" in (tmp_path / "trace").read_text()
    assert content(source) == before
    report = json.loads(done.stdout)
    unread = [loss for loss in report["lost"] if loss["file"] == "data_0.gulp"]
    assert {loss["reason"] for loss in unread} <= {
        "cannot be read: Input/output error. The error may pass: keep the source, and "
        "repair it again later"
    }
    assert bool(unread) == for_good
    assert report["frames"] == (4 if for_good else 8)
    assert report["ok"] == (has_map and not for_good)
    assert_what_is_there_is_right(target, source, but="salvaged_")


def environment():
    """Find the package that is tested here also in another process."""
    return {**os.environ, "PYTHONPATH": str(Path(gulpio2.__path__[0]).parent)}


def test_an_item_that_fails_half_way_leaves_no_byte(tmp_path):
    # Large enough that some of it was on its way to the disk.
    adapter = FrameAdapter(num_items=2, num_frames=300, height=400, width=400, bad=[0])
    GulpIngestor(adapter, tmp_path, 3, 1).run()
    with GulpDirectory(tmp_path) as directory:
        stored = sum(directory.item(id_).num_bytes for id_ in directory.chunk_lookup)
    assert (tmp_path / "data_0.gulp").stat().st_size == stored


@pytest.mark.parametrize("workers", [1, 2])
def test_a_file_size_limit_stops_the_run_and_leaves_what_was_committed(
    tmp_path, workers
):
    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        adapter = FrameAdapter(num_items=6, num_frames=8, height=64, width=64)
        GulpIngestor(adapter, tmp_path / "whole", 1, 1).run()
        sizes = [path.stat().st_size for path in (tmp_path / "whole").iterdir()]
        resource.setrlimit(resource.RLIMIT_FSIZE, (max(sizes) - 1, max(sizes) - 1))
        try:
            GulpIngestor(adapter, tmp_path / "cut", 1, workers).run()
        except StorageError as error:
            if "What was committed before is intact" in str(error):
                os._exit(7)
            raise

    assert os.waitstatus_to_exitcode(in_child(limited)) == 7
    with GulpDirectory(tmp_path / "cut") as directory:
        assert len(directory) < 6
        whole = GulpDirectory(tmp_path / "whole")
        for id_ in directory.chunk_lookup:
            assert np.array_equal(directory.read_clip(id_), whole.read_clip(id_))
    adapter = FrameAdapter(num_items=6, num_frames=8, height=64, width=64)
    GulpIngestor(adapter, tmp_path / "cut", 1, workers, resume=True).run()
    assert content(tmp_path / "cut") == content(tmp_path / "whole")


# --- real file systems ----------------------------------------------------------------


@contextlib.contextmanager
def mounted(folder, *arguments):
    """Mount something, or skip where that is not allowed."""
    folder.mkdir()
    command = ["mount", *arguments, str(folder)]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("there is no mount program")
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


ADAPTER = """
import os, time
from gulpio2.testing import FrameAdapter

class Frames(FrameAdapter):
    def __init__(self, wait: str = ""):
        super().__init__(num_items=12, num_frames=8, height=128, width=128)
        self.wait = wait

    def describe(self):
        return {}

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            if self.wait and item["id"] == "item7":
                open(self.wait + ".there", "w").close()
                while not os.path.exists(self.wait):
                    time.sleep(0.01)
            yield item
"""


def gulp2(folder, *arguments, adapter_folder):
    """Start the command as a user does."""
    (adapter_folder / "frames.py").write_text(ADAPTER)
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "gulpio2.cli.main", "ingest"),
            *(f"{adapter_folder}/frames.py:Frames", str(folder)),
            *("--videos-per-chunk", "3", *arguments),
        ],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def assert_what_is_there_is_right(folder, whole, *, but="no id"):
    with GulpDirectory(folder) as directory, GulpDirectory(whole) as right:
        for id_ in directory.chunk_lookup:
            if not id_.startswith(but):
                assert directory.read_jpegs(id_) == right.read_jpegs(id_)
        return len(directory)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_disk_that_is_really_full_stops_the_run_and_it_is_gone_on_with(
    tmp_path, workers
):
    run = gulp2(tmp_path / "whole", adapter_folder=tmp_path)
    assert (run.communicate(timeout=60), run.returncode)[1] == 0
    size = sum(map(len, content(tmp_path / "whole").values()))
    disk = tmp_path / "disk"
    with mounted(disk, "-t", "tmpfs", "-o", f"size={size * 6 // 10}", "tmpfs"):
        options = ("--num-workers", workers)
        run = gulp2(disk / "out", *options, adapter_folder=tmp_path)
        _, messages = run.communicate(timeout=60)
        assert run.returncode == 1
        assert "No space left on device" in messages
        assert "What was committed before is intact" in messages
        assert "--resume" in messages
        assert "Traceback" not in messages
        kept = assert_what_is_there_is_right(disk / "out", tmp_path / "whole")
        # Of two workers each can fill the disk before the other's chunk is whole.
        least = 1 if workers == "1" else 0
        assert least <= kept < 12
        larger = f"remount,size={size * 3}"
        subprocess.run(["mount", "-o", larger, str(disk)], check=True)
        run = gulp2(disk / "out", "--resume", *options, adapter_folder=tmp_path)
        assert (run.communicate(timeout=60), run.returncode)[1] == 0
        assert content(disk / "out") == content(tmp_path / "whole")


def shut_down(disk):
    """Have an ext4 take nothing any more, as if its disk were gone."""
    fd = os.open(disk, os.O_RDONLY)
    try:
        fcntl.ioctl(fd, 0x8004587D, struct.pack("I", 1))  # EXT4_IOC_SHUTDOWN
    except OSError as error:
        pytest.skip(f"this kernel does not shut an ext4 down: {error}")
    finally:
        os.close(fd)


def make_read_only(disk):
    """Have an ext4 meet an error, after which it is read-only.

    (A remount is refused by the kernel as long as a file is open for writing.)
    """
    lines = Path("/proc/mounts").read_text().splitlines()
    (device,) = [line.split()[0] for line in lines if line.split()[1] == str(disk)]
    trigger = Path("/sys/fs/ext4", Path(device).name, "trigger_fs_error")
    try:
        trigger.write_text("a test")
    except OSError as error:
        pytest.skip(f"this kernel does not make an ext4 read-only: {error}")


@pytest.mark.parametrize(
    "harm", [shut_down, make_read_only], ids=["shut down", "read-only"]
)
@pytest.mark.parametrize("workers", ["1", "2"] if LONG else ["2"])
def test_a_disk_that_breaks_while_it_is_written_to_stops_the_run(
    tmp_path, harm, workers
):
    run = gulp2(tmp_path / "whole", adapter_folder=tmp_path)
    assert (run.communicate(timeout=60), run.returncode)[1] == 0
    image, disk = make_ext4(tmp_path / "image"), tmp_path / "disk"
    wait = tmp_path / "wait"
    with mounted(disk, "-o", "loop,errors=remount-ro", str(image)):
        options = ("--num-workers", workers, "--wait", str(wait))
        run = gulp2(disk / "out", *options, adapter_folder=tmp_path)
        try:
            there = [wait.with_name("wait.there"), disk / "out" / "meta_0.gmeta"]
            # Its name is on the disk once its journal is gone, and not before.
            while not all(path.exists() for path in there) or any(
                (disk / "out").glob("chunk_0.journal.*")
            ):
                assert run.poll() is None, run.communicate()
                time.sleep(0.01)
            harm(disk)
            wait.touch()
            _, messages = run.communicate(timeout=60)
        finally:
            run.kill()
        assert run.returncode == 1, messages
        assert "Input/output error" in messages or "Read-only file" in messages
        assert "What was committed before is intact" in messages
        assert "Traceback" not in messages
    disk.rmdir()
    with mounted(disk, "-o", "loop", str(image)):  # the disk is well again
        kept = assert_what_is_there_is_right(disk / "out", tmp_path / "whole")
        assert 3 <= kept < 12
        again = ("--resume", "--num-workers", workers)
        run = gulp2(disk / "out", *again, adapter_folder=tmp_path)
        assert (run.communicate(timeout=60), run.returncode)[1] == 0
        assert content(disk / "out") == content(tmp_path / "whole")


def test_a_dry_run_names_a_file_system_that_is_mounted_for_reading(tmp_path):
    disk = tmp_path / "disk"
    with mounted(disk, "-t", "tmpfs", "-o", "ro", "tmpfs"):
        words = ["ingest", "gulpio2.testing:FrameAdapter", disk / "new"]
        told = [
            subprocess.run(
                [sys.executable, "-m", "gulpio2.cli.main", *words, *more],
                capture_output=True,
                text=True,
                check=False,
            )
            for more in ([], ["--dry-run"])
        ]
    for done in told:
        assert done.returncode == 1, done.stderr
        assert "Read-only file system. It is mounted for reading only" in (
            done.stdout + done.stderr
        )


def test_a_repair_of_a_disk_that_is_gone_says_so_and_loses_nothing(tmp_path):
    image, disk = make_ext4(tmp_path / "image"), tmp_path / "disk"
    words = [sys.executable, "-m", "gulpio2", "repair", disk / "in", tmp_path / "out"]
    for is_gone in (True, False):
        with mounted(disk, "-o", "loop", str(image)):
            if is_gone:
                ingest(disk / "in")
                subprocess.run(["sync"], check=True)
                shut_down(disk)
            done = subprocess.run(
                words, env=environment(), capture_output=True, text=True, check=False
            )
            assert (done.returncode, done.stderr) == (int(is_gone), "")
            if is_gone:
                *lost, end = done.stdout.splitlines()
                assert "; 8 losses" in end
                for line in lost:
                    assert "Input/output error" in line
                    assert "keep the source, and repair it again later" in line
            else:
                assert content(tmp_path / "out") == content(disk / "in")
        disk.rmdir()
