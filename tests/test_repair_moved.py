"""Salvaging data that are not where sound maps say."""

from __future__ import annotations

import json
import random
import shutil
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gulpio2 import GulpChunk, GulpDirectory, GulpIngestor
from gulpio2.errors import IngestError
from gulpio2.format.gmeta import dump_gmeta
from gulpio2.removal import compact_directory, delete_items
from gulpio2.repair import repair_directory
from gulpio2.sanity import check_directory
from gulpio2.testing import FrameAdapter, make_frames, make_gulp_directory
from tests.chunks import items_of
from tests.faults.operations import content

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gulpio2.repair import RepairReport

Items = dict[str, tuple[list[bytes], Any]]


def make(folder: Path, **more: Any) -> Path:
    given = {"num_items": 12, "num_frames": 5, "items_per_chunk": 4, **more}
    make_gulp_directory(folder, **given).close()
    return folder


def frames_of(items: Items) -> Counter[bytes]:
    return Counter(jpeg for jpegs, _ in items.values() for jpeg in jpegs)


def put_in(path: Path, at: int, data: bytes) -> None:
    old = path.read_bytes()
    path.write_bytes(old[:at] + data + old[at:])


def cut_out(path: Path, at: int, length: int) -> None:
    old = path.read_bytes()
    path.write_bytes(old[:at] + old[at + length :])


def turn(*paths: Path) -> None:
    """Give each file the name of the one before it, and the last that of the first."""
    contents = [path.read_bytes() for path in paths]
    for path, data in zip(paths, [*contents[1:], contents[0]], strict=True):
        path.write_bytes(data)


def rename(old: Path, new: Path) -> None:
    old.rename(new)


def join(first: Path, second: Path) -> None:
    """Put one file behind another."""
    first.write_bytes(first.read_bytes() + second.read_bytes())
    second.unlink()


RUBBISH = random.Random(5).randbytes(1000)


def data(folder: Path, number: int = 0) -> Path:
    return folder / f"data_{number}.gulp"


# What is done to which data files, and how many frames it costs.
DAMAGES: dict[str, tuple[list[Callable[[Path], None]], int]] = {
    "bytes before all": ([lambda f: put_in(data(f), 0, RUBBISH)], 0),
    "bytes in the middle": ([lambda f: put_in(data(f), 8000, RUBBISH)], 1),
    "three bytes in the middle": ([lambda f: put_in(data(f), 8000, b"abc")], 1),
    "zeros in the middle": ([lambda f: put_in(data(f), 8000, bytes(4096))], 1),
    "the first bytes cut out": ([lambda f: cut_out(data(f), 0, 100)], 1),
    "bytes cut out in the middle": ([lambda f: cut_out(data(f), 8000, 999)], 2),
    "put in twice and cut out once": (
        [
            lambda f: put_in(data(f), 9000, b"xy"),
            lambda f: cut_out(data(f), 5000, 20),
            lambda f: put_in(data(f), 2000, RUBBISH),
        ],
        3,
    ),
    "two data files swapped": ([lambda f: turn(data(f), data(f, 1))], 0),
    "three data files swapped": ([lambda f: turn(data(f), data(f, 1), data(f, 2))], 0),
    "swapped and bytes put in": (
        [
            lambda f: turn(data(f), data(f, 1)),
            lambda f: put_in(data(f), 0, b"abcd" * 50),
        ],
        0,
    ),
    "a data file of another name": ([lambda f: rename(data(f), data(f, 7))], 0),
    "one data file behind another": ([lambda f: join(data(f), data(f, 1))], 0),
    "two data files in turned order": (
        [
            lambda f: turn(data(f), data(f, 1)),
            lambda f: join(data(f), data(f, 1)),
        ],
        0,
    ),
}


def repaired(source: Path, target: Path) -> RepairReport:
    """Repair, and check what must hold whatever was damaged."""
    before = content(source)
    dry = repair_directory(source, target, dry_run=True)
    report = repair_directory(source, target)
    assert {**dry.to_json(), "dry_run": False} == report.to_json()
    assert content(source) == before
    if report.chunks:
        assert check_directory(target, deep=True).problems == []
    return report


@pytest.mark.parametrize(("damage", "costs"), DAMAGES.values(), ids=DAMAGES)
def test_what_moved_is_found_with_its_ids(tmp_path, damage, costs):
    source = make(tmp_path / "in")
    expected = items_of(source)
    for step in damage:
        step(source)
    report = repaired(source, tmp_path / "out")
    found = items_of(tmp_path / "out")
    whole = {id_: found.pop(id_) for id_ in expected if id_ in found}
    assert whole == {id_: expected[id_] for id_ in whole}
    # Each item that is not whole is named, with the frames that it has lost.
    lost = {loss.item: loss.frames for loss in report.lost if loss.item is not None}
    assert lost.keys() == expected.keys() - whole.keys()
    assert sum(map(len, lost.values())) == costs
    assert report.frames == 60 - costs
    for part in report.salvaged:
        assert part.item is not None
        frames = list(expected[part.item][0])
        for index in reversed(lost[part.item]):
            del frames[index]
        assert found[part.id][0] == frames
    assert report.ok == (costs == 0 and not report.lost)


@pytest.mark.parametrize(("damage", "costs"), DAMAGES.values(), ids=DAMAGES)
def test_no_less_is_found_than_without_maps(tmp_path, damage, costs):
    del costs
    source = make(tmp_path / "in")
    known = frames_of(items_of(source))
    for step in damage:
        step(source)
    shutil.copytree(source, tmp_path / "bare")
    for path in (tmp_path / "bare").glob("*.gmeta"):
        path.unlink()
    repair_directory(source, tmp_path / "out")
    repair_directory(tmp_path / "bare", tmp_path / "bare-out")
    without = frames_of(items_of(tmp_path / "bare-out")) & known
    assert frames_of(items_of(tmp_path / "out")) & known >= without


def test_swapped_data_files_come_out_as_they_were(tmp_path):
    adapter = FrameAdapter(num_items=6, num_frames=3)
    GulpIngestor(adapter, tmp_path / "in", 2, 1).run()
    before = content(tmp_path / "in")
    turn(data(tmp_path / "in"), data(tmp_path / "in", 2))
    report = repaired(tmp_path / "in", tmp_path / "out")
    assert report.ok
    assert content(tmp_path / "out") == before
    assert report.notes == [
        "meta_0.gmeta: 6 frames not at the place in data_0.gulp that it says, and "
        "found in data_2.gulp by checksum",
        "meta_2.gmeta: 6 frames not at the place in data_2.gulp that it says, and "
        "found in data_0.gulp by checksum",
    ]


def test_bytes_that_were_put_in_are_named_where_nothing_else_is_lost(tmp_path):
    source = make(tmp_path / "in")
    put_in(data(source), 0, RUBBISH)
    report = repaired(source, tmp_path / "out")
    assert (report.items, report.salvaged, report.ok) == (12, [], False)
    (loss,) = report.lost
    assert (loss.file, loss.start, loss.stop) == ("data_0.gulp", 0, 1000)


def test_a_data_file_that_other_maps_speak_of_needs_none_of_its_own(tmp_path):
    source = make(tmp_path / "in")
    data(source).rename(data(source, 3))
    report = repaired(source, tmp_path / "out")
    assert (report.items, report.lost, report.chunks) == (12, [], [0, 1, 2])
    assert "data_3.gulp: all that is in it has other maps" in report.notes
    put_in(data(source, 3), 0, RUBBISH)
    report = repaired(source, tmp_path / "again")
    assert report.items == 12
    assert [loss.file for loss in report.lost] == ["meta_3.gmeta", "data_3.gulp"]


def test_foreign_frames_are_no_item_of_the_map(tmp_path):
    source = make(tmp_path / "in")
    other = make(tmp_path / "other", num_frames=4, num_items=3, height=30)
    expected, foreign = items_of(source), items_of(other)
    shutil.copy(data(other), data(source))
    report = repaired(source, tmp_path / "out")
    assert report.items == 8
    assert {loss.item for loss in report.lost} >= {"item0", "item1", "item2", "item3"}
    found = items_of(tmp_path / "out")
    (part,) = report.salvaged
    assert part.item is None
    assert Counter(found.pop(part.id)[0]) == frames_of(foreign)
    assert found == {id_: expected[id_] for id_ in found}


def test_a_frame_that_is_damaged_in_its_place_is_no_frame_of_unknown_owner(tmp_path):
    source = make(tmp_path / "in")
    with GulpDirectory(source) as directory:
        spans = directory.item("item1").entry["frame_info"]
    whole = bytearray(data(source).read_bytes())
    for loc, _, length in spans[1:3]:
        whole[loc + length // 2] ^= 1  # which the decoder makes something of
    data(source).write_bytes(b"abcd" * 10 + whole)
    report = repaired(source, tmp_path / "out")
    (part,) = report.salvaged
    assert (part.item, part.frames, report.frames) == ("item1", 3, 58)
    assert [(loss.item, loss.frames) for loss in report.lost] == [
        ("item1", (1, 2)),
        (None, ()),
    ]


def test_frames_that_do_not_end_as_a_jpeg_does_move_with_their_neighbours(tmp_path):
    jpegs = [*frames_of(items_of(make(tmp_path / "jpegs", num_items=5)))]
    pairs = [one + other for one, other in zip(jpegs[:12], jpegs[12:], strict=False)]
    (tmp_path / "in").mkdir()
    chunk = GulpChunk(data(tmp_path / "in"), tmp_path / "in" / "meta_0.gmeta")
    with chunk.open("wb"):
        for number in range(4):
            chunk.append(number, {}, pairs[3 * number : 3 * number + 3])
    expected = items_of(tmp_path / "in")
    assert expected["1"][0] == pairs[3:6]  # of two images, and stored as one
    put_in(data(tmp_path / "in"), 0, RUBBISH)
    report = repaired(tmp_path / "in", tmp_path / "out")
    assert (report.items, report.salvaged) == (4, [])
    assert items_of(tmp_path / "out") == expected


def test_equal_frames_are_told_apart_by_nothing_and_need_not_be(tmp_path):
    black, *others = make_frames(5)
    (tmp_path / "in").mkdir()
    chunk = GulpChunk(data(tmp_path / "in"), tmp_path / "in" / "meta_0.gmeta")
    with chunk.open("wb"):
        for number, other in enumerate(others):
            chunk.append(number, {"n": number}, [black, other, black, black])
    expected = items_of(tmp_path / "in")
    put_in(data(tmp_path / "in"), 0, b"\xff\xd8\xff junk")
    report = repaired(tmp_path / "in", tmp_path / "out")
    assert (report.items, report.salvaged) == (4, [])
    assert items_of(tmp_path / "out") == expected


def test_many_equal_frames_take_no_long_time(tmp_path):
    (tmp_path / "in").mkdir()
    chunk = GulpChunk(data(tmp_path / "in"), tmp_path / "in" / "meta_0.gmeta")
    first, *_ = make_frames(1, 8, 8)
    with chunk.open("wb"):
        for number in range(40):
            chunk.append(number, {}, [first] * 500)
    size = data(tmp_path / "in").stat().st_size
    for at in range(size - 100_000, 0, -100_000):  # so that there are many gaps
        put_in(data(tmp_path / "in"), at, b"ab")
    began = time.monotonic()
    report = repair_directory(tmp_path / "in", tmp_path / "out")
    assert time.monotonic() - began < 60
    assert report.items == 40


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize(("damage", "costs"), DAMAGES.values(), ids=DAMAGES)
def test_deleted_items_that_moved_stay_deleted(tmp_path, damage, costs, compacted):
    source = make(tmp_path / "in")
    everything = items_of(source)
    delete_items(source, ["item1", "item2", "item3", "item5"])
    if compacted:
        compact_directory(source)
    expected = items_of(source)
    for step in damage:
        step(source)
    report = repaired(source, tmp_path / "out")
    known, found = frames_of(expected), frames_of(items_of(tmp_path / "out"))
    assert not found.keys() & (frames_of(everything) - known).keys()
    assert found <= known
    assert found.total() >= known.total() - costs
    # Nothing but what is lost of items that are there, and of bytes of nobody.
    assert {loss.item for loss in report.lost} <= {*expected, None}


@pytest.mark.parametrize("compacted", [False, True])
def test_what_moved_to_where_all_items_were_deleted_is_found(tmp_path, compacted):
    source = make(tmp_path / "in")
    before = items_of(source)
    gone = [f"item{number}" for number in range(4)]  # all of data_0.gulp
    delete_items(source, gone)
    if compacted:
        compact_directory(source)
    turn(data(source), data(source, 1))
    put_in(data(source), 0, bytes(200))
    repaired(source, tmp_path / "out")
    expected = {id_: item for id_, item in before.items() if id_ not in gone}
    assert items_of(tmp_path / "out") == expected


def test_deleted_items_stay_deleted_where_others_are_looked_for_there(tmp_path):
    source = make(tmp_path / "in")
    before = items_of(source)
    delete_items(source, ["item1"])
    (source / "meta_0.gmeta").write_bytes(b"{")
    put_in(data(source, 1), 0, bytes(200))
    repaired(source, tmp_path / "out")
    found = frames_of(items_of(tmp_path / "out"))
    del before["item1"]
    assert found == frames_of(before)


def edit_map(folder: Path, number: int) -> None:
    """Have an entry of a map that its check does not fit."""
    path = folder / f"meta_{number}.gmeta"
    entries = json.loads(path.read_bytes())
    entries["item2"]["frame_info"].reverse()
    path.write_bytes(dump_gmeta(entries))


def rename_chunk(folder: Path, old: int, new: int) -> None:
    for name in ("data_{}.gulp", "meta_{}.gmeta"):
        (folder / name.format(old)).rename(folder / name.format(new))


def swap_chunks(folder: Path, one: int, other: int) -> None:
    rename_chunk(folder, one, 99)
    rename_chunk(folder, other, one)
    rename_chunk(folder, 99, other)


UNNAMED: dict[str, list[Callable[[Path], Any]]] = {
    "a copy": [lambda f: shutil.copy(data(f), data(f, 9))],
    "its map lost": [
        lambda f: (f / "meta_0.gmeta").unlink(),
        lambda f: rename(data(f), data(f, 7)),
    ],
    "swapped, and a map lost": [
        lambda f: swap_chunks(f, 0, 2),
        lambda f: (f / "meta_2.gmeta").unlink(),
    ],
    "its map edited": [
        lambda f: rename_chunk(f, 0, 7),
        lambda f: edit_map(f, 7),
    ],
}


@pytest.mark.parametrize("damage", UNNAMED.values(), ids=UNNAMED)
def test_deleted_items_stay_deleted_in_a_data_file_of_another_name(tmp_path, damage):
    source = make(tmp_path / "in")
    before = items_of(source)
    delete_items(source, ["item1"])
    for step in damage:
        step(source)
    report = repaired(source, tmp_path / "out")
    found = frames_of(items_of(tmp_path / "out"))
    del before["item1"]
    assert found.keys() == frames_of(before).keys()
    told = [loss.reason for loss in report.lost if "left behind" in loss.reason]
    assert [text.partition(":")[0] for text in told] == ["5 frames left behind"]


def test_an_item_that_was_deleted_and_stored_again_elsewhere_is_salvaged(tmp_path):
    source = make(tmp_path / "in")
    expected = frames_of(items_of(source))
    delete_items(source, ["item1"])
    adapter = FrameAdapter(num_items=12, num_frames=5)
    GulpIngestor(adapter, str(source), 4, 1, on_duplicate="skip").run()
    assert frames_of(items_of(source)) == expected
    (source / "meta_3.gmeta").unlink()
    report = repaired(source, tmp_path / "out")
    assert [part.id for part in report.salvaged] == ["salvaged_3_0"]
    assert frames_of(items_of(tmp_path / "out")) == expected


def test_an_item_stored_again_at_its_very_place_is_lost_and_told(tmp_path):
    source = make(tmp_path / "in")
    delete_items(source, ["item0"])
    adapter = FrameAdapter(num_items=12, num_frames=5)
    GulpIngestor(adapter, str(source), 4, 1, on_duplicate="skip").run()
    (source / "meta_3.gmeta").unlink()
    report = repaired(source, tmp_path / "out")
    assert report.salvaged == []
    assert "stored again there" in " ".join(loss.reason for loss in report.lost)


def without_checksums(folder: Path) -> None:
    for path in folder.glob("*.gmeta"):
        entries = json.loads(path.read_bytes())
        for entry in entries.values():
            del entry["gulp2"]  # as GulpIO2 0.0.4 has it
        path.write_bytes(dump_gmeta(entries))


def test_without_checksums_nothing_is_claimed_and_all_is_found(tmp_path):
    source = make(tmp_path / "in")
    without_checksums(source)
    expected = items_of(source)
    with GulpDirectory(source) as directory:
        loc, _, length = directory.item("item3").entry["frame_info"][3]
    cut_out(data(source), loc, length)  # so that the last one is where it was
    report = repaired(source, tmp_path / "out")
    found = items_of(tmp_path / "out")
    assert frames_of(found).total() == 59
    for part in report.salvaged:
        del found[part.id]
    assert found == {id_: expected[id_] for id_ in expected if id_ != "item3"}
    assert [(loss.item, loss.frames) for loss in report.lost] == [("item3", (3, 4))]


def test_deleted_items_without_checksums_are_not_brought_back(tmp_path):
    source = make(tmp_path / "in")
    without_checksums(source)
    delete_items(source, ["item1"])
    kept = frames_of(items_of(source))
    turn(data(source), data(source, 1))
    report = repaired(source, tmp_path / "out")
    assert frames_of(items_of(tmp_path / "out")) <= kept
    told = [str(loss) for loss in report.lost if loss.item is None]
    assert any("they may be those of deleted items" in line for line in told)


def test_a_cut_map_tells_of_what_moved_as_far_as_it_goes(tmp_path):
    source = make(tmp_path / "in")
    expected = items_of(source)
    path = source / "meta_0.gmeta"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    put_in(data(source), 0, RUBBISH)
    report = repaired(source, tmp_path / "out")
    found = items_of(tmp_path / "out")
    assert found["item0"] == expected["item0"]
    assert report.frames == 60
    assert frames_of(found) == frames_of(expected)


def test_an_entry_that_cannot_be_trusted_claims_nothing_that_moved(tmp_path):
    source = make(tmp_path / "in")
    path = source / "meta_0.gmeta"
    path.write_bytes(path.read_bytes().replace(b'"number": 1', b'"number": 9'))
    known = frames_of(items_of(source))
    put_in(data(source), 0, RUBBISH)
    report = repaired(source, tmp_path / "out")
    assert (report.items, report.frames) == (11, 60)
    found = items_of(tmp_path / "out")
    assert "item1" not in found
    assert frames_of(found) == known
    (loss,) = [loss for loss in report.lost if loss.file == "meta_0.gmeta"]
    assert loss.item == "item1"


def test_moved_data_in_any_form_leave_right_items_and_real_frames(tmp_path):
    source = make(tmp_path / "in", num_items=9, items_per_chunk=3)
    deleted = items_of(source)["item4"]
    delete_items(source, ["item4"])
    expected = items_of(source)
    known = frames_of(expected)
    rng = random.Random(7)
    for attempt in range(60):
        folder = tmp_path / f"damaged{attempt}"
        shutil.copytree(source, folder)
        for _ in range(rng.randrange(1, 5)):
            path = data(folder, rng.randrange(3))
            size = path.stat().st_size
            kind = rng.randrange(5)
            if kind == 0:
                length = rng.randrange(1, 900)
                put_in(path, rng.randrange(size), rng.randbytes(length))
            elif kind == 1:
                cut_out(path, rng.randrange(size), rng.randrange(1, 2000))
            elif kind == 2:
                turn(path, data(folder, rng.randrange(3)))
            elif kind == 3:  # a piece is moved to another place
                whole = path.read_bytes()
                first, last = sorted(rng.sample(range(size), 2))
                path.write_bytes(whole[:first] + whole[last:])
                put_in(path, rng.randrange(first + 1), whole[first:last])
            else:  # a piece is there twice
                whole = path.read_bytes()
                first, last = sorted(rng.sample(range(size), 2))
                put_in(path, rng.randrange(size), whole[first:last])
        bare = tmp_path / f"bare{attempt}"
        shutil.copytree(folder, bare)
        for path in bare.glob("*.gmeta"):
            path.unlink()
        report = repaired(folder, tmp_path / f"out{attempt}")
        repair_directory(bare, tmp_path / f"bare-out{attempt}")
        found = items_of(tmp_path / f"out{attempt}")
        for id_, item in found.items():
            if not id_.startswith("salvaged_"):
                assert item == expected[id_], attempt
        lost = {loss.item for loss in report.lost}
        assert expected.keys() - found.keys() <= lost, attempt
        assert not found.keys() & lost, attempt
        assert not frames_of(found).keys() & {*deleted[0]}, attempt
        without = frames_of(items_of(tmp_path / f"bare-out{attempt}"))
        assert without.keys() & known.keys() <= frames_of(found).keys(), attempt


def test_frames_between_damaged_ones_are_found_at_any_byte(tmp_path):
    source = make(tmp_path / "in", num_items=1, num_frames=9)
    jpegs = items_of(source)["item0"][0]
    with GulpDirectory(source) as directory:
        spans = directory.item("item0").entry["frame_info"]
    for loc, _, length in reversed(spans[1::2]):
        put_in(data(source), loc + length // 2, b"\xff\xd9 ")
    repaired(source, tmp_path / "out")
    ((found, meta),) = items_of(tmp_path / "out").values()
    assert found == jpegs[::2]
    assert meta["salvaged"]["frames"] == [0, 2, 4, 6, 8]


def test_what_was_not_committed_is_left_behind_where_data_moved_too(tmp_path):
    source = make(tmp_path / "in")
    expected = items_of(source)
    other = make(tmp_path / "other", num_items=1, height=40)
    put_in(data(source), 0, b"abcd")
    size = data(source).stat().st_size
    put_in(data(source), size, data(other).read_bytes())
    report = repaired(source, tmp_path / "out")
    assert items_of(tmp_path / "out") == expected
    assert [(loss.start, loss.stop) for loss in report.lost] == [(0, 4)]
    assert f"data_0.gulp, bytes {size} to " in report.notes[-1]
    assert "never committed" in report.notes[-1]


def test_another_frame_in_the_place_of_the_only_one_is_kept(tmp_path):
    source = make(tmp_path / "in", num_items=1, num_frames=1)
    other = make(tmp_path / "other", num_items=1, num_frames=1, height=40)
    shutil.copy(data(other), data(source))
    report = repaired(source, tmp_path / "out")
    assert [loss.item for loss in report.lost] == ["item0"]
    (part,) = report.salvaged
    found = items_of(tmp_path / "out")
    assert found[part.id][0] == items_of(other)["item0"][0]


class TwoOfOne(FrameAdapter):
    """Two items of the same frames, under ids that are not listed."""

    def __init__(self):
        super().__init__(num_items=2, num_frames=2)

    def item_ids(self):
        """Give none."""

    def iter_data(self, slice_element=None):
        """Give them."""
        for id_, label in [("a", "cat"), ("b", "dog")][slice_element or slice(None)]:
            yield {"id": id_, "meta": {"label": label}, "frames": make_frames(2)}


def test_of_two_files_of_the_same_frames_one_has_lost_its_map(tmp_path):
    source, target = tmp_path / "in", tmp_path / "out"
    GulpIngestor(TwoOfOne(), source, 1, 1).run()
    (source / "meta_1.gmeta").unlink()
    (source / "meta_0.gmeta").rename(source / "meta_50.gmeta")
    report = repair_directory(source, target)
    assert report.items == 1
    assert [loss.file for loss in report.lost] == ["meta_1.gmeta"]
    with pytest.raises(IngestError):
        GulpIngestor(TwoOfOne(), target, 1, 1, resume=True).run()


def test_a_file_of_which_one_frame_is_in_another_too_is_that_of_its_map(tmp_path):
    source = tmp_path / "in"
    pictures = [np.full((24, 32, 3), value, np.uint8) for value in (10, 20, 40)]

    class Shared(TwoOfOne):
        """Two items that begin with the same frame."""

        def iter_data(self, slice_element=None):
            """Give them."""
            for n in range(2)[slice_element or slice(None)]:
                frames = [pictures[0], pictures[1 + n]]
                yield {"id": "ab"[n], "meta": {}, "frames": frames}

    GulpIngestor(Shared(), source, 1, 1).run()
    (source / "data_0.gulp").rename(source / "data_7.gulp")
    report = repair_directory(source, tmp_path / "out")
    assert (report.items, report.salvaged) == (2, [])
    assert "meta_7.gmeta" not in [loss.file for loss in report.lost]


def copy_over(folder: Path) -> None:
    for name in ("data_{}.gulp", "meta_{}.gmeta"):
        shutil.copy(folder / name.format(1), folder / name.format(2))


def rename_over(folder: Path) -> None:
    (folder / "meta_2.gmeta").unlink()
    (folder / "data_1.gulp").rename(folder / "data_2.gulp")


@pytest.mark.parametrize("replace", [copy_over, rename_over])
def test_a_chunk_in_whose_place_another_is_counts_as_lost(tmp_path, replace):
    adapter = FrameAdapter(num_items=6, list_ids=False)
    GulpIngestor(adapter, tmp_path / "out", 2, 1).run()
    replace(tmp_path / "out")
    report = repair_directory(tmp_path / "out", tmp_path / "mended")
    assert not report.ok
    assert [loss.file for loss in report.lost] == ["data_2.gulp"]
    assert "what the run that wrote it stored there is gone" in report.lost[0].reason
    assert list(GulpDirectory(tmp_path / "mended").merged_meta_dict) == [
        f"item{number}" for number in range(4)
    ]
    # Nobody takes the run for complete.
    with pytest.raises(IngestError):
        GulpIngestor(adapter, tmp_path / "mended", 2, 1, resume=True).run()


def test_a_copy_under_a_number_of_no_run_is_no_loss(tmp_path):
    GulpIngestor(FrameAdapter(num_items=6), tmp_path / "out", 2, 1).run()
    for name in ("data_{}.gulp", "meta_{}.gmeta"):
        shutil.copy(
            tmp_path / "out" / name.format(1), tmp_path / "out" / name.format(7)
        )
    report = repair_directory(tmp_path / "out", tmp_path / "mended")
    assert (report.ok, report.items) == (True, 6)
    assert sum("a second copy" in note for note in report.notes) == 2


class Excerpts:
    """Two items to a chunk each, the second of which begins with the first's end."""

    def __init__(self, shared: int) -> None:
        frames = [np.full((16, 16, 3), 6 * number, np.uint8) for number in range(40)]
        self.items = {"a": frames[:10], "b": frames[10 - shared : 30]}

    def __len__(self) -> int:
        return len(self.items)

    def iter_data(self, slice_element=None):
        for id_ in list(self.items)[slice_element or slice(None)]:
            yield {"id": id_, "meta": {}, "frames": self.items[id_]}


@pytest.mark.parametrize("shared", [1, 2, 5, 9])
def test_frames_that_another_item_has_too_hide_nothing_behind_them(tmp_path, shared):
    folder = tmp_path / "made"
    GulpIngestor(Excerpts(shared), folder, 1, 1).run()
    lost = items_of(folder)["b"][0]
    entry = json.loads((folder / "meta_0.gmeta").read_text())["a"]
    data(folder, 0).write_bytes(
        data(folder, 0).read_bytes()[: entry["frame_info"][10 - shared][0]]
    )
    (folder / "meta_1.gmeta").unlink()
    report = repaired(folder, tmp_path / "repaired")
    found = frames_of(items_of(tmp_path / "repaired"))
    assert not Counter(lost) - found, report
