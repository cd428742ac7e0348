"""A repair of what the system refuses to read, wholly or in parts."""

from __future__ import annotations

import errno
import os
import random
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from gulpio2 import GulpChunk, GulpIngestor
from gulpio2.codecs.jpeg import EncoderSettings, encode_frame
from gulpio2.errors import StorageError
from gulpio2.format.gmeta import dump_gmeta, load_gmeta
from gulpio2.removal import compact_directory, delete_items
from gulpio2.repair import RepairReport, maps, repair_directory
from gulpio2.repair.data_file import DataFile
from gulpio2.repair.unread import UnreadBytes
from gulpio2.sanity import check_directory
from gulpio2.storage.index import lost
from gulpio2.storage.index.keeping import build_index
from gulpio2.storage.local import LocalStore
from gulpio2.testing import FrameAdapter, make_frames, make_gulp_directory
from gulpio2.types import no_progress
from tests.chunks import items_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from gulpio2.storage.index.columns import IndexContent

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


# --- where the map is lost ------------------------------------------------------------


def lose_map(folder: Path, number: int = 0) -> None:
    (folder / f"meta_{number}.gmeta").unlink()


@pytest.mark.parametrize(
    "bad",
    [
        [(10240, 10752)],
        [(0, 512)],
        [(10240, 10241), (51200, 55296), (56000, 56001)],
        [(70_000, 10**9)],
    ],
    ids=["sector", "first", "several", "end"],
)
def test_a_bad_sector_costs_the_frames_that_touch_it(tmp_path, bad):
    source = make(
        tmp_path / "in", num_items=40, items_per_chunk=40, height=64, width=64
    )
    frames = frames_of(source)
    size = (source / "data_0.gulp").stat().st_size
    lose_map(source)
    with pytest.MonkeyPatch.context() as patch:
        refusing(patch, "data_0.gulp", *bad)
        report = repair_directory(source, tmp_path / "out")
    sectors = [(a - a % 512, min(size, b + -b % 512)) for a, b in bad]
    whole = [
        jpeg
        for start, stop, jpeg in frames
        if not any(start < b and a < stop for a, b in sectors)
    ]
    assert jpegs_in(tmp_path / "out") == sorted(whole)
    lost = [loss for loss in report.lost if loss.file == "data_0.gulp"]
    unread = [loss for loss in lost if loss.reason == f"{NO_READ}. {KEEP}"]
    assert [(loss.start, loss.stop) for loss in unread] == sectors
    others = {loss.reason for loss in lost} - {f"{NO_READ}. {KEEP}"}
    assert others <= {"no frame was found"}
    # No byte is told of twice.
    spans = sorted((loss.start or 0, loss.stop or 0) for loss in lost)
    assert all(first[1] <= second[0] for first, second in pairwise(spans))


def test_where_all_can_be_read_nothing_is_read_for_the_errors_that_did_not_come(
    tmp_path, monkeypatch
):
    source = make(tmp_path / "in", num_items=2)
    lose_map(source)
    asked = refusing(monkeypatch, "data_0.gulp")
    repair_directory(source, tmp_path / "out", dry_run=True)
    size = (source / "data_0.gulp").stat().st_size
    assert asked == [(0, 0), (0, size)]


def test_unreadable_bytes_of_deleted_items_are_no_loss(tmp_path, monkeypatch):
    source = make(tmp_path / "in", num_items=4, items_per_chunk=4)
    frames = frames_of(source)
    delete_items(source, ["item1"])
    compact_directory(source)
    gone = frames[3][0], frames[5][1]
    refusing(monkeypatch, "data_0.gulp", (gone[0], gone[0] + 8), frames[0][:2])
    report = repair_directory(source, tmp_path / "out")
    assert [(loss.item, loss.frames) for loss in report.lost] == [("item0", (0,))]
    file = DataFile(LocalStore(source), 0, no_progress)
    file.open()
    assert not file.is_zero(*gone), "nobody knows"
    assert file.is_zero(gone[0] + 8, gone[1])


def cut_map(folder: Path, number: int = 0) -> None:
    """Cut a map within its last entry."""
    path = folder / f"meta_{number}.gmeta"
    path.write_bytes(path.read_bytes()[:-60])


def forget_first(folder: Path) -> None:
    """Take the first item out of a map, and have frames be looked for everywhere."""
    path = folder / "meta_0.gmeta"
    entries = load_gmeta(path.read_bytes(), where="")
    del entries["item0"]
    path.write_bytes(dump_gmeta(entries))
    data = bytearray((folder / "data_1.gulp").read_bytes())
    data[300] ^= 1
    (folder / "data_1.gulp").write_bytes(data)


def forget_what_was_deleted(folder: Path) -> None:
    lose_map(folder)
    (folder / "deleted.json").write_bytes(b"{")


@pytest.mark.parametrize(
    ("harm", "first", "last"),
    [
        (cut_map, -1, -1),  # a part of the item that has lost its entry
        (cut_map, -4, -1),  # that as a whole, and the last frame before it
        (forget_first, 0, 0),
        (forget_what_was_deleted, 4, 4),
    ],
    ids=["cut map", "cut map, more", "other map", "nothing known"],
)
def test_unreadable_bytes_of_unknown_owner_are_told(
    tmp_path, monkeypatch, harm, first, last
):
    source = make(tmp_path / "in", num_items=8, items_per_chunk=4)
    frames = frames_of(source)
    harm(source)
    start, stop = frames[first][0], frames[last][1]
    refusing(monkeypatch, "data_0.gulp", (start, stop))
    lost = repair_directory(source, tmp_path / "out").lost
    told = [loss for loss in lost if loss.reason == f"{NO_READ}. {KEEP}"]
    assert told[-1].file == "data_0.gulp"
    assert (told[-1].start or 0) < stop <= (told[-1].stop or 0)


def test_a_frame_with_an_unreadable_part_is_not_taken_though_it_can_be_decoded(
    tmp_path, monkeypatch
):
    image = make_frames(1)[0]
    jpeg = encode_frame(image, EncoderSettings())
    comment = b"\xff\xfe" + (2 + 5000).to_bytes(2, "big") + b"c" * 5000
    (tmp_path / "in").mkdir()
    chunk = GulpChunk(tmp_path / "in/data_0.gulp", tmp_path / "in/meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("a", {}, [jpeg[:2] + comment + jpeg[2:], jpeg])
    lose_map(tmp_path / "in")
    refusing(monkeypatch, "data_0.gulp", (1024, 1025))
    repair_directory(tmp_path / "in", tmp_path / "out")
    assert jpegs_in(tmp_path / "out") == [jpeg]


# --- narrowing down -------------------------------------------------------------------


def reader(
    size: int, is_bad: Callable[[int], bool]
) -> tuple[UnreadBytes, list[int], bytes]:
    """Give what reads a file with bad sectors, the reads it makes, and the bytes."""
    data = random.Random(size).randbytes(4096) * (-(-size // 4096))
    asked: list[int] = []

    def read(offset: int, length: int) -> bytes:
        asked.append(offset)
        if any(map(is_bad, range(offset // 512, -(-(offset + length) // 512)))):
            raise OSError(errno.EIO, "Input/output error")
        return data[offset : offset + length]

    return UnreadBytes(read), asked, data[:size]


@pytest.mark.parametrize("seed", range(40))
def test_what_is_not_called_unreadable_is_right(seed):
    rng = random.Random(seed)
    size = rng.randrange(1, 200_000)
    bad = set[int]()
    for _ in range(rng.randrange(5)):
        first = rng.randrange(size // 512 + 1)
        bad |= {*range(first, first + rng.choice([1, 1, 2, 8, 60]))}
    unread, _, data = reader(size, bad.__contains__)
    window = rng.randrange(2, size + 2)
    base = 0
    while base < size:  # overlapping by half, as a search does
        stop = min(size, base + window)
        found = bytearray(unread.read(base, stop))
        for span in unread.between(base, stop):
            part = slice(span.start - base, span.stop - base)
            assert not any(found[part])
            found[part] = data[span.start : span.stop]
        assert found == data[base:stop]
        base += -(-window // 2)
    called = {at // 512 for span in unread.spans for at in range(span.start, span.stop)}
    assert called >= {sector for sector in bad if sector * 512 < size}
    # A good sector may be passed over behind a long run of bad ones alone.
    if len(bad) <= 16:
        assert called <= bad
    ends = [at for span in unread.spans for at in span[:2]]
    assert ends == sorted(ends)


def test_where_nothing_can_be_read_few_reads_tell_so():
    size, window = 1 << 28, 1 << 20
    asked = []

    def read(offset: int, length: int) -> bytes:
        asked.append((offset, length))
        raise OSError(errno.EIO, "Input/output error")

    unread = UnreadBytes(read)
    for base in range(0, size, window // 2):
        assert unread.read(base, min(size, base + window)).count(0) > 0
    assert [span[:2] for span in unread.spans] == [(0, size)]
    assert len(asked) < 3 * size // (window // 2), "of half a million sectors"


def test_sectors_are_counted_together_where_very_many_are_bad(monkeypatch):
    monkeypatch.setattr("gulpio2.repair.unread._MOST_FAILURES", 64)
    size = 1 << 22
    unread, asked, _ = reader(size, lambda sector: sector % 2 == 0)
    unread.read(0, size)
    assert len(asked) < 64 * 20, "of 8192 sectors"


# --- whatever it is that cannot be read -----------------------------------------------


def refuse_frame(source: Path, patch: pytest.MonkeyPatch) -> None:
    at = frames_of(source)[1][0]
    refusing(patch, "data_0.gulp", (at, at + 1))


def refuse_window(source: Path, patch: pytest.MonkeyPatch) -> None:
    at = frames_of(source)[1][0]
    lose_map(source)
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
    "window": (refuse_window, "data_0.gulp", 2, -1),
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


def test_a_map_that_cannot_be_read_once_more_is_told_of(tmp_path, monkeypatch):
    source = make(tmp_path / "in", items_per_chunk=3)
    build_index(source)
    entries = load_gmeta((source / "meta_0.gmeta").read_bytes(), where="")
    del entries["item1"]
    (source / "meta_0.gmeta").write_bytes(dump_gmeta(entries))
    for name in ("meta_0.gmeta", "index.arrow"):
        with monkeypatch.context() as patch:
            fail_when_items_are_compared(patch, name)
            report = repair_directory(source, tmp_path / name)
        (loss,) = (loss for loss in report.lost if loss.file == name)
        assert "whether items of index.arrow are lost is not known" in loss.reason
        assert os.strerror(errno.EIO) in loss.reason
        assert not report.ok
        assert len(items_of(tmp_path / name)) == 4
    report = repair_directory(source, tmp_path / "out")
    assert [loss.item for loss in report.lost if loss.item] == ["item1"]


def fail_when_items_are_compared(patch: pytest.MonkeyPatch, name: str) -> None:
    """Have a file not be read by what compares maps with the index."""
    error = StorageError(errno.EIO, f"cannot read it: {os.strerror(errno.EIO)}")

    def refuse(folder: str) -> IndexContent:
        raise error

    def failing(store: LocalStore, asked_for: str) -> bytes:
        if asked_for == name:
            raise error
        return read(store, asked_for)

    def comparing(*arguments: Any) -> Iterator[tuple[int, str]]:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(LocalStore, "read", failing)
            if name == "index.arrow":
                inner.setattr(lost, "map_or_refuse", refuse)
            yield from lost_items(*arguments)

    read, lost_items = LocalStore.read, lost.lost_items
    patch.setattr(maps, "lost_items", comparing)


@pytest.mark.parametrize("has_index", [False, True])
def test_a_map_that_nobody_may_look_at_costs_no_other_chunk(
    tmp_path: Path, has_index: bool
) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    make_gulp_directory(source, num_items=4, num_frames=3).close()
    if has_index:
        build_index(source)
    path = source / "meta_0.gmeta"
    path.unlink()
    path.symlink_to(path.name)  # in a circle; as a link into a folder of somebody else
    dry = repair_directory(source, target, dry_run=True)
    report = repair_directory(source, target)
    assert {**dry.to_json(), "dry_run": False} == report.to_json()
    (loss,) = report.lost
    assert loss.reason.startswith(f"cannot be read: cannot read {path}: Too many level")
    assert (report.items, report.frames) == (4 if has_index else 2, 12)
    assert check_directory(target, deep=True).problems == []
