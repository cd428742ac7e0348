"""The bar: when it is drawn, and what is on it."""

from __future__ import annotations

import contextlib
import gc
import json
import logging
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from tqdm import tqdm

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.cli.progress import ProgressBar
from gulpio2.cli.terminal import note, set_verbosity
from gulpio2.ingest.chunk_bar import chunk_bar
from gulpio2.testing import FrameAdapter, make_gulp_directory


class Items(FrameAdapter):
    """Three of them."""

    def __init__(self):
        super().__init__(num_items=3)


def test_quick_work_shows_no_bar(capsys):
    with ProgressBar(3) as bar:
        for _ in range(3):
            bar(items=1, frames=10, num_bytes=1000)
    assert capsys.readouterr() == ("", "")


def test_longer_work_shows_items_rates_and_failures_on_stderr(capsys):
    with ProgressBar(4, delay_seconds=0) as bar:
        bar(items=3, frames=30, num_bytes=3_000_000)
        bar(failures=1)
    out, err = capsys.readouterr()
    assert out == ""
    last = err.strip().split("\n")[-1]
    assert "4/4 items" in last
    assert "frames/s" in last
    assert "MB/s" in last
    assert "1 failed" in last


def test_bytes_can_be_what_is_counted(capsys):
    with ProgressBar(8_000_000, counted="num_bytes", delay_seconds=0) as bar:
        bar(items=3, num_bytes=4_000_000)
    assert "4.00M/8.00MB" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("done", "shown"),
    [({}, []), ({"num_bytes": 4}, ["MB/s"]), ({"frames": 4}, ["frames/s"])],
)
def test_a_rate_of_what_is_not_counted_is_not_shown(capsys, done, shown):
    with ProgressBar(2, delay_seconds=0) as bar:
        bar(items=1, **done)
    err = capsys.readouterr().err
    assert "1/2 items" in err
    assert [unit for unit in ("frames/s", "MB/s") if unit in err] == shown


def test_in_a_file_there_are_lines_at_the_beginning_and_the_end(capsys):
    with ProgressBar(30, delay_seconds=0) as bar:
        for _ in range(30):
            bar(items=1, frames=2)
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("1/30 items [00:00<")
    assert last.startswith("30/30 items [00:00<00:00, ")


def test_more_than_was_expected_is_all_of_it(capsys):
    with ProgressBar(2, delay_seconds=0) as bar:
        bar(items=2, failures=3)
    assert "2/2 items" in capsys.readouterr().err


def test_there_may_come_to_be_more(capsys, monkeypatch):
    for is_terminal in (False, True):
        monkeypatch.setattr(sys.stderr, "isatty", lambda is_it=is_terminal: is_it)
        with ProgressBar(2, delay_seconds=0) as bar:
            bar(items=2)
            bar.total = 5
            bar(items=1)
        assert "3/5 items" in capsys.readouterr().err


def test_a_quiet_command_draws_nothing(capsys):
    with click.Context(click.Command("x")) as ctx:
        set_verbosity(-1, ctx)
        with ProgressBar(2, delay_seconds=0) as bar:
            bar(items=2)
    assert capsys.readouterr().err == ""


def test_where_stderr_is_closed_nothing_is_drawn(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    with ProgressBar(2, delay_seconds=0) as bar:
        bar(items=2)
    assert bar.items == 2


def bad_descriptor(kind):
    """Open something that nothing can be written to."""
    if kind == "full":
        return os.open("/dev/full", os.O_WRONLY)
    if kind == "hung up":
        other, descriptor = os.openpty()
    else:
        other, descriptor = os.pipe()
    os.close(other)
    return descriptor


@pytest.mark.parametrize("kind", ["full", "hung up", "nobody reads"])
def test_a_bar_that_cannot_be_written_costs_no_work(tmp_path, monkeypatch, kind):
    set_verbosity(0)
    stream = os.fdopen(bad_descriptor(kind), "w", buffering=1)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", stream)
            with ProgressBar(2, delay_seconds=0) as bar:
                bar(items=1)
                note("a line")
                bar(items=1)
            GulpIngestor(Items(), tmp_path, 2, 1)()
    finally:
        with contextlib.suppress(OSError):
            stream.close()
    gc.collect()  # of such bars, here and not in another test
    assert bar.items == 2
    assert len(GulpDirectory(tmp_path)) == 3
    assert is_free(tqdm.get_lock())


def test_a_bar_that_cannot_be_drawn_any_more_lets_others_draw(tmp_path, monkeypatch):
    stream = (tmp_path / "log").open("w", buffering=1)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", stream)
            with chunk_bar(2) as advance:
                os.dup2(bad_descriptor("full"), stream.fileno())
                time.sleep(0.2)  # sooner it would not be drawn
                advance()
    finally:
        with contextlib.suppress(OSError):
            stream.close()
    assert is_free(tqdm.get_lock())


def is_free(lock):
    """Tell whether another thread gets it."""
    got = threading.Event()

    def take():
        with lock:
            got.set()

    threading.Thread(target=take, daemon=True).start()
    return got.wait(10)


def test_a_bar_is_drawn_where_nothing_can_be_flushed(monkeypatch):
    written: list[str] = []
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(write=written.append))
    with chunk_bar(1) as advance:
        advance()
    assert "1/1" in "".join(written)


def test_the_bar_of_a_call_does_without_stderr(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    GulpIngestor(Items(), tmp_path, 2, 1)()
    assert len(GulpDirectory(tmp_path)) == 3


def test_an_ingest_does_without_stderr(tmp_path):
    code = "import sys; from gulpio2.cli.main import gulp2; gulp2(sys.argv[1:])"
    adapter = f"{__file__}:Items"
    words = ["ingest", adapter, str(tmp_path / "out"), "--json", "--num-workers", "1"]
    done = subprocess.run(
        # Of a shell, since no other closes it.
        ["/bin/sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-c", code, *words],
        stdout=subprocess.PIPE,
        check=True,
    )
    assert json.loads(done.stdout)["items"] == 3


def test_lines_make_way_for_the_bar(capsys):
    set_verbosity(0)
    with ProgressBar(2, delay_seconds=0) as bar:
        bar(items=1)
        note("a line")
        logging.getLogger("gulpio2.x").warning("item %r is \x1b bad", "a")
    lines = capsys.readouterr().err.replace("\r", "\n").split("\n")
    assert "a line" in [line.strip() for line in lines]
    assert r"gulp2: warning: item 'a' is \x1b bad" in [line.strip() for line in lines]


def test_it_counts_right_from_many_threads():
    def work(bar):
        for _ in range(1000):
            bar(items=1, frames=2)

    with ProgressBar(8000, delay_seconds=0) as bar:
        threads = [threading.Thread(target=work, args=(bar,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (bar.items, bar.frames) == (8000, 16000)


def test_items_that_are_skipped_are_not_left_to_do(gulp2, images, monkeypatch):
    command = ["ingest", "image-folder", images, "out", "--num-workers", 1]
    gulp2(*command)
    for path in list((images / "cats").iterdir()):
        shutil.copy(path, path.with_name(f"new_{path.name}"))
    monkeypatch.setitem(ProgressBar.__init__.__kwdefaults__, "delay_seconds", 0)
    err = gulp2(*command, "--on-duplicate", "skip").stderr
    assert err.splitlines()[-1].startswith("5/5 items ["), err


def test_a_note_does_not_wait_for_who_draws_a_bar_and_was_killed(capsys):
    held, done = threading.Event(), threading.Event()

    def hold():
        with tqdm.get_lock():
            held.set()
            done.wait(30)

    holder = threading.Thread(target=hold, daemon=True)
    teller = threading.Thread(target=note, args=["told"], daemon=True)
    holder.start()
    assert held.wait(30)
    teller.start()
    teller.join(10)
    is_told = not teller.is_alive()
    done.set()
    holder.join()
    assert is_told
    assert "told\n" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["ls", "out"], ["sheet", "out", "--out", "a.png"]])
def test_opening_and_drawing_show_a_bar(gulp2, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(ProgressBar.__init__.__kwdefaults__, "delay_seconds", 0)
    make_gulp_directory("out", num_items=3, items_per_chunk=2).close()
    stderr = gulp2(*words).stderr
    size = sum(path.stat().st_size for path in Path("out").glob("*.gmeta"))
    assert f"/{size}B [" in stderr
    assert ("3/3 items" in stderr) == (words[0] == "sheet")
