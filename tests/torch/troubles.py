"""Troubles that loaders are tested with: damaged items, and forks at a bad moment."""

from __future__ import annotations

import errno
import os
import signal
import threading

from gulpio2 import GulpDirectory
from tests.forking import forked, status_of


def damage(path, numbers, name="clip"):
    """Overwrite the beginning of every frame of some items."""
    with GulpDirectory(path) as directory:
        for number in numbers:
            entry = directory.merged_meta_dict[f"{name}{number}"]
            chunk = directory.chunk_lookup[f"{name}{number}"]
            with (path / f"data_{chunk}.gulp").open("r+b") as file:
                for loc, _, _ in entry["frame_info"]:
                    file.seek(loc)
                    file.write(b"\0" * 20)


def fail_reads(monkeypatch, *names, times, at=None):
    """Let some functions of the system fail with EIO, together so many times.

    With `at`, only reads that begin in this range of bytes.
    """
    left = iter(range(times))

    def failing(real):
        def call(*arguments, **options):
            is_meant = at is None or arguments[2] in at
            if is_meant and next(left, None) is not None:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return real(*arguments, **options)

        return call

    for name in names:
        monkeypatch.setattr(os, name, failing(getattr(os, name)))


def status_of_child_while_held(lock, work):
    """Fork while another thread has a lock; give what `work` gives in the child.

    255 where it raises, and -9 where it hangs.
    """
    held, done = threading.Event(), threading.Event()

    def hold():
        with lock:
            held.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(10)
    child = forked(work)
    killer = threading.Timer(30, os.kill, (child, signal.SIGKILL))
    killer.start()
    status = status_of(child)
    killer.cancel()
    done.set()
    thread.join()
    return status
