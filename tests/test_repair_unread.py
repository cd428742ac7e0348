"""A repair of what the system refuses to read, wholly or in parts."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

import pytest

from gulpio2 import GulpIngestor
from gulpio2.errors import StorageError
from gulpio2.repair import RepairReport, repair_directory
from gulpio2.sanity import check_directory
from gulpio2.storage.index.keeping import build_index
from gulpio2.storage.local import LocalStore
from gulpio2.testing import FrameAdapter, make_gulp_directory
from tests.chunks import items_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KEEP = "The error may pass: keep the source, and repair it again later"
NO_READ = "cannot be read: Input/output error"


def make(folder: Path, **more: int) -> Path:
    make_gulp_directory(folder, **{"num_items": 5, "num_frames": 3, **more}).close()
    return folder


def jpegs_in(folder: Path) -> list[bytes]:
    return sorted(jpeg for jpegs, _ in items_of(folder).values() for jpeg in jpegs)


def frames_of(folder: Path, number: int = 0) -> list[tuple[int, int, bytes]]:
    """Give begin, end and bytes of all frames of a data file."""
    data = (folder / f"data_{number}.gulp").read_bytes()
    places = [(data.find(jpeg), jpeg) for jpeg in jpegs_in(folder)]
    return sorted((at, at + len(jpeg), jpeg) for at, jpeg in places if at >= 0)


def refusing(
    patch: pytest.MonkeyPatch, name: str, *spans: tuple[int, int], code: int = errno.EIO
) -> list[tuple[int, int]]:
    """Have reads fail that touch the spans of a file of a source; give its reads."""
    asked: list[tuple[int, int]] = []
    read_at, read = LocalStore.read_at, LocalStore.read

    def refuse(store: LocalStore) -> None:
        text = f"cannot read {store.path(name)}: {os.strerror(code)}"
        raise StorageError(code, text)

    def failing_at(
        store: LocalStore, asked_for: str, offset: int, length: int
    ) -> bytes:
        if asked_for == name and store.folder.name == "in":
            asked.append((offset, length))
            is_whole = (0, 10**9) in spans  # then not even opening it succeeds
            if is_whole or any(a < offset + length and offset < b for a, b in spans):
                refuse(store)
        return read_at(store, asked_for, offset, length)

    def failing(store: LocalStore, asked_for: str) -> bytes:
        if asked_for == name and spans and store.folder.name == "in":
            refuse(store)
        return read(store, asked_for)

    patch.setattr(LocalStore, "read_at", failing_at)
    patch.setattr(LocalStore, "read", failing)
    return asked


@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE])
def test_a_frame_that_cannot_be_read_is_not_called_damaged(tmp_path, code):
    source = make(tmp_path / "in")
    expected = items_of(source)
    at = frames_of(source)[1][0]
    with pytest.MonkeyPatch.context() as patch:
        refusing(patch, "data_0.gulp", (at + 50, at + 60), code=code)
        report = repair_directory(source, tmp_path / "out")
    (loss,) = report.lost
    assert (loss.item, loss.frames) == ("item0", (1,))
    assert loss.reason == f"cannot be read: {os.strerror(code)}. {KEEP}"
    assert (report.items, report.frames) == (4, 14)
    # As it says: the error has passed.
    assert repair_directory(source, tmp_path / "later").ok
    assert items_of(tmp_path / "later") == expected


def test_what_stays_unreadable_until_somebody_acts_is_no_error_that_passes(
    tmp_path, monkeypatch
):
    source = make(tmp_path / "in")
    at = frames_of(source)[1][0]
    refusing(monkeypatch, "data_0.gulp", (at, at + 1), code=errno.EACCES)
    (loss,) = repair_directory(source, tmp_path / "out").lost
    assert loss.reason == "cannot be read: Permission denied"


def test_damaged_and_unreadable_frames_of_an_item_are_told_apart(tmp_path, monkeypatch):
    source = make(tmp_path / "in")
    first, second, third = [at for at, _, _ in frames_of(source)[:3]]
    data = bytearray((source / "data_0.gulp").read_bytes())
    data[first + 300] ^= 1
    (source / "data_0.gulp").write_bytes(data)
    refusing(monkeypatch, "data_0.gulp", (second, second + 1), (third, third + 1))
    report = repair_directory(source, tmp_path / "out")
    lost = {loss.frames: loss.reason for loss in report.lost}
    assert lost == {(0,): "damaged, or not in the file", (1, 2): f"{NO_READ}. {KEEP}"}


def test_a_frame_that_can_be_read_the_second_time_is_in_its_place(tmp_path):
    source = make(tmp_path / "in")
    read_at = LocalStore.read_at
    failed: list[str] = []

    def failing_once(store: LocalStore, name: str, offset: int, length: int) -> bytes:
        if length and not failed:
            failed.append(name)
            raise StorageError(errno.EIO, "Input/output error")
        return read_at(store, name, offset, length)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalStore, "read_at", failing_once)
        report = repair_directory(source, tmp_path / "out")
    assert failed
    assert (report.ok, report.notes) == (True, [])
    assert items_of(tmp_path / "out") == items_of(source)


def lose_map(folder: Path, number: int = 0) -> None:
    (folder / f"meta_{number}.gmeta").unlink()


# --- whatever it is that cannot be read -----------------------------------------------


def refuse_frame(source: Path, patch: pytest.MonkeyPatch) -> None:
    at = frames_of(source)[1][0]
    refusing(patch, "data_0.gulp", (at, at + 1))


def refuse_file(name: str) -> Callable[[Path, pytest.MonkeyPatch], object]:
    return lambda _, patch: refusing(patch, name, (0, 10**9))


def refuse_index(source: Path, patch: pytest.MonkeyPatch) -> None:
    build_index(source)
    lose_map(source)

    def refuse(path: str) -> int:
        raise OSError(errno.EIO, "Input/output error", path)

    patch.setattr("gulpio2.storage.index.file.open_regular", refuse)


UNREAD: dict[str, tuple[Any, str, int, int]] = {
    # What is refused, the file told of, whole items, and frames in all.
    "frame": (refuse_frame, "data_0.gulp", 3, 11),
    "data file": (refuse_file("data_0.gulp"), "data_0.gulp", 2, 6),
    "map": (refuse_file("meta_0.gmeta"), "meta_0.gmeta", 2, 12),
    "manifest": (refuse_file("gulp.json"), "gulp.json", 4, 12),
    "failures": (refuse_file("failures.jsonl"), "failures.jsonl", 4, 12),
    "deleted": (refuse_file("deleted.json"), "deleted.json", 4, 12),
    "index": (refuse_index, "index.arrow", 2, 12),
}


@pytest.mark.parametrize(
    ("refuse", "name", "items", "frames"), UNREAD.values(), ids=UNREAD
)
def test_an_error_of_the_disk_is_told_and_costs_nothing_else(
    tmp_path, refuse, name, items, frames
):
    source = tmp_path / "in"
    adapter = FrameAdapter(num_items=5, num_frames=3, bad=[4])
    GulpIngestor(adapter, source, 2, 1).run()
    expected = jpegs_in(source)
    with pytest.MonkeyPatch.context() as patch:
        refuse(source, patch)
        report: RepairReport = repair_directory(source, tmp_path / "out")
    told = [*map(str, report.lost), *report.notes]
    lines = [line for line in told if "Input/output error" in line]
    assert lines
    for line in lines:
        assert line.startswith(name)
        assert "cannot be read" in line
        assert line.endswith(KEEP)
    assert report.items == items
    found = jpegs_in(tmp_path / "out")
    if frames >= 0:
        assert len(found) == frames
    assert len(found) >= 6
    assert {*found} <= {*expected}
    assert check_directory(tmp_path / "out", deep=True).problems == []


def test_an_unreadable_map_of_which_the_index_has_all_is_only_noted(
    tmp_path, monkeypatch
):
    source = make(tmp_path / "in")
    expected = items_of(source)
    build_index(source)
    refusing(monkeypatch, "meta_0.gmeta", (0, 1))
    report = repair_directory(source, tmp_path / "out")
    assert report.ok
    (note,) = report.notes
    assert "Input/output error. index.arrow has all of it" in note
    monkeypatch.undo()
    assert items_of(tmp_path / "out") == expected
