"""Salvaging what is whole of a damaged directory."""

import errno
import json
import os
import random
import shutil
import tracemalloc
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from gulpio2 import GulpChunk, GulpDirectory, GulpIngestor, fileio
from gulpio2.codecs.jpeg import EncoderSettings, encode_frame
from gulpio2.codecs.whole_jpeg import WholeJpeg
from gulpio2.errors import (
    FormatError,
    IngestError,
    LockedError,
    MetaFileError,
    StorageError,
    UnknownVersionError,
)
from gulpio2.format.checked_json import dump_checked
from gulpio2.format.gmeta import dump_gmeta, load_gmeta
from gulpio2.format.removals import Removals
from gulpio2.ingest.shard import Shard
from gulpio2.merge import merge_directories
from gulpio2.removal import compact_directory, delete_items
from gulpio2.repair import repair_directory
from gulpio2.repair.candidates import Frame, FramesOfFile
from gulpio2.repair.data_file import DataFile
from gulpio2.repair.survey import survey_chunks
from gulpio2.sanity import check_directory
from gulpio2.serializers import pickle_serializer
from gulpio2.storage.index.keeping import build_index
from gulpio2.storage.local import LocalStore, open_store
from gulpio2.testing import FrameAdapter, make_frames, make_gulp_directory
from gulpio2.types import no_progress
from tests.chunks import Timed, items_of
from tests.faults.killed import is_killed
from tests.faults.operations import (
    before_each_operation,
    content,
    in_child,
    open_files,
)


def make(folder, **more):
    make_gulp_directory(folder, **{"num_items": 5, "num_frames": 3, **more}).close()
    return folder


def repaired(source, target, **counts):
    """Repair, and check what must hold whatever was damaged."""
    before = content(source)
    dry = repair_directory(source, target, dry_run=True)
    assert not target.exists()
    report = repair_directory(source, target)
    assert {**dry.to_json(), "dry_run": False} == report.to_json()
    assert content(source) == before
    if report.chunks:
        assert check_directory(target, deep=True).problems == []
    for name, value in counts.items():
        assert getattr(report, name) == value, name
    return report


def change(path, at, byte=None):
    data = bytearray(path.read_bytes())
    data[at] = data[at] ^ 1 if byte is None else byte
    path.write_bytes(data)


def test_an_undamaged_directory_comes_out_with_the_same_bytes(tmp_path):
    adapter = FrameAdapter(num_items=5, bad=[3])
    GulpIngestor(adapter, tmp_path / "in", 2, 1).run()
    report = repaired(tmp_path / "in", tmp_path / "out", items=4, lost=[], salvaged=[])
    assert report.ok
    assert report.files == ["failures.jsonl", "gulp.json"]
    assert content(tmp_path / "in") == content(tmp_path / "out")


def test_no_folder_is_listed_for_each_chunk(tmp_path, monkeypatch):
    names, listed = LocalStore.names, []

    def counted(store):
        listed.append(store)
        return names(store)

    monkeypatch.setattr(LocalStore, "names", counted)
    counts = []
    for num_items in (2, 9):
        source = make(tmp_path / f"a{num_items}", num_items=num_items, num_frames=1)
        listed.clear()
        repair_directory(source, tmp_path / f"b{num_items}")
        counts.append(len(listed))
    assert counts[0] == counts[1]


def test_times_facts_and_repeated_metadata_are_kept(tmp_path):
    (tmp_path / "in").mkdir()
    chunk = next(GulpDirectory(tmp_path / "in").new_chunks(1))
    with chunk.open("wb"):
        chunk.append(
            "timed",
            {"a": 1},
            Timed([0, 20, 40, 61, 81], Fraction(1, 600), width=32, rate=[30, 1]),
        )
        chunk.append("timed", {"b": [2, None]}, [])
        chunk.append("grey", {}, make_frames(2, grey=True))
        chunk.append("empty", {"e": "é"}, [])
    repaired(tmp_path / "in", tmp_path / "out", items=3, lost=[])
    assert content(tmp_path / "in") == content(tmp_path / "out")


def test_a_damaged_frame_costs_its_item_and_the_other_frames_are_kept(tmp_path):
    source = make(tmp_path / "in")
    expected = items_of(source)
    with GulpDirectory(source) as directory:
        loc = directory.item("item1").entry["frame_info"][1][0]
    change(source / "data_0.gulp", loc + 300)
    report = repaired(source, tmp_path / "out", items=4, frames=14)
    (loss,) = report.lost
    assert (loss.item, loss.frames, loss.file) == ("item1", (1,), "data_0.gulp")
    found = items_of(tmp_path / "out")
    (part,) = report.salvaged
    frames, meta = found.pop(part.id)
    assert found == {k: v for k, v in expected.items() if k != "item1"}
    assert part.item == "item1"
    assert frames == [expected["item1"][0][0], expected["item1"][0][2]]
    assert meta["salvaged"]["id"] == "item1"
    assert meta["salvaged"]["frames"] == [0, 2]
    assert meta["salvaged"]["meta_data"] == [{"number": 1}]


def test_a_frame_that_is_too_long_to_be_decoded_is_told_by_its_checksum(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("gulpio2.repair.data_file._LONGEST", 1000)
    source = make(tmp_path / "in", height=64, width=64)
    expected = items_of(source)
    assert min(len(jpeg) for jpegs, _ in expected.values() for jpeg in jpegs) > 1000
    repaired(source, tmp_path / "out", items=5, frames=15)
    assert items_of(tmp_path / "out") == expected
    with GulpDirectory(source) as directory:
        loc, pad, length = directory.item("item1").entry["frame_info"][1]
    change(source / "data_0.gulp", loc + length - pad - 4)
    report = repaired(source, tmp_path / "again", items=4, frames=14)
    (loss,) = report.lost
    assert (loss.item, loss.frames) == ("item1", (1,))


def test_frames_of_more_pixels_than_are_read_come_as_they_are(tmp_path):
    """As of a program that has raised the limit."""
    jpeg = encode_frame(make_frames(1)[0], EncoderSettings())
    size = jpeg.index(b"\xff\xc0") + 5
    (tmp_path / "in").mkdir()
    large = jpeg[:size] + 2 * (20_000).to_bytes(2, "big") + jpeg[size + 4 :]
    with GulpDirectory(tmp_path / "in") as directory:
        (chunk,) = directory.new_chunks(1)
        with chunk.open("wb"):
            chunk.append("large", {}, [WholeJpeg(large)])
            chunk.append("usual", {}, [jpeg])
    repaired(tmp_path / "in", tmp_path / "out", items=2, lost=[])
    with GulpDirectory(tmp_path / "out") as directory:
        assert directory.read_jpegs("large") == [large]


def test_a_lost_map_leaves_all_frames_under_placeholder_ids(tmp_path):
    source = make(tmp_path / "in")
    expected = items_of(source)
    (source / "meta_0.gmeta").unlink()
    report = repaired(source, tmp_path / "out", items=3, frames=15)
    assert [part.id for part in report.salvaged] == ["salvaged_0_0"]
    frames, meta = items_of(tmp_path / "out")["salvaged_0_0"]
    assert frames == expected["item0"][0] + expected["item1"][0]
    assert meta["salvaged"] == {
        "chunk": 0,
        "offset": 0,
        "id": None,
        "shape": [24, 32, 3],
    }
    assert report.frames_without_checksum == 6
    assert "meta_0.gmeta" in str(report.lost[0])


def test_what_is_no_frame_between_those_of_a_lost_map_is_a_loss(tmp_path):
    source = make(tmp_path / "in", num_items=2, items_per_chunk=2)
    with GulpDirectory(source) as directory:
        first, (loc, _, length), _ = directory.item("item0").entry["frame_info"]
    path = source / "data_0.gulp"
    data = bytearray(path.read_bytes())
    data[loc : loc + length] = bytes(length)
    path.write_bytes(data)
    (source / "meta_0.gmeta").unlink()
    report = repaired(source, tmp_path / "out", items=0, frames=5)
    places = [(it.start, it.stop) for it in report.lost if it.file == path.name]
    assert places == [(loc - first[1], loc + length)]  # with the first one's pad
    assert [part.frames for part in report.salvaged] == [1, 4]
    assert "; 5 of the frames under 2 placeholder ids; 2 losses" in str(report)


@pytest.mark.parametrize("window", [2000, 4000, 5000])
def test_frames_are_found_across_the_windows_of_a_search(tmp_path, monkeypatch, window):
    monkeypatch.setattr("gulpio2.repair.data_file._WINDOW", window)
    source = make(tmp_path / "in", items_per_chunk=5)
    expected = [jpeg for jpegs, _ in items_of(source).values() for jpeg in jpegs]
    assert max(map(len, expected)) < window // 2
    assert (source / "data_0.gulp").stat().st_size > 2 * window
    (source / "meta_0.gmeta").unlink()
    repaired(source, tmp_path / "out", items=0, frames=15)
    ((jpegs, _),) = items_of(tmp_path / "out").values()
    assert jpegs == expected


def test_a_pickled_map_is_told_with_what_makes_it_readable(tmp_path):
    """It is whole: a repair would keep the frames, and no id and no metadata."""
    source = tmp_path / "old"
    source.mkdir()
    path = source / "meta_0.gmeta"
    chunk = GulpChunk(source / "data_0.gulp", path, serializer=pickle_serializer)
    with chunk.open("wb"):
        chunk.append("a", {"label": "x"}, make_frames(2))
    advice = (
        "It seems to be a pickle, which runs code when it is loaded. If you trust it, "
        "json_serializer.dump(pickle_serializer.load(path), path), both of "
        "gulpio2.fileio, writes the file anew as JSON"
    )
    (problem,) = check_directory(source).problems
    assert problem.code == "map-not-json"
    assert problem.message.endswith(f"of its chunk can be read. {advice}")
    with pytest.raises(MetaFileError) as caught:
        GulpDirectory(source)
    assert f"{advice}. Run `gulp2 check`" in str(caught.value)
    (loss,) = repair_directory(source, tmp_path / "new").lost
    assert loss.reason.endswith(f"; 0 entries can. {advice}: then repair again")

    fileio.json_serializer.dump(fileio.pickle_serializer.load(path), path)
    assert check_directory(source, deep=True).problems == []
    frames, meta = GulpDirectory(source)["a"]
    assert (len(frames), meta) == (2, {"label": "x"})


def test_frames_of_another_shape_begin_another_placeholder(tmp_path):
    (tmp_path / "in").mkdir()
    chunk = next(GulpDirectory(tmp_path / "in").new_chunks(1))
    with chunk.open("wb"):
        chunk.append("large", {}, make_frames(2, 32, 32))
        chunk.append("small", {}, make_frames(3, 16, 16))
    (tmp_path / "in" / "meta_0.gmeta").write_bytes(b"")
    report = repaired(tmp_path / "in", tmp_path / "out", items=0, frames=5)
    assert [part.frames for part in report.salvaged] == [2, 3]


@pytest.mark.parametrize("keep", [0.3, 0.6, 0.95])
def test_a_cut_map_gives_the_entries_before_the_cut(tmp_path, keep):
    source = make(tmp_path / "in", items_per_chunk=5)
    expected = items_of(source)
    path = source / "meta_0.gmeta"
    data = path.read_bytes()
    path.write_bytes(data[: int(keep * len(data))])
    report = repaired(source, tmp_path / "out", frames=15)
    assert report.items == int(keep * 5)
    found = items_of(tmp_path / "out")
    jpegs = [jpeg for frames, _ in found.values() for jpeg in frames]
    assert jpegs == [jpeg for frames, _ in expected.values() for jpeg in frames]
    for id_ in list(expected)[: report.items]:
        assert found[id_] == expected[id_]


@pytest.mark.parametrize("other", [b" ", b"|", b"]", b"\xfd"])
@pytest.mark.parametrize("which", [0, 1])
def test_a_lost_brace_at_the_end_of_an_entry_costs_no_item(tmp_path, other, which):
    source = make(tmp_path / "in", items_per_chunk=5)
    before = content(source)
    path = source / "meta_0.gmeta"
    data = path.read_bytes()
    for follows in ("item1", "item2", "item4"):
        at = data.index(f'}}}}, "{follows}"'.encode()) + which
        data = data[:at] + other + data[at + 1 :]
    path.write_bytes(data)
    report = repaired(source, tmp_path / "out", items=5, salvaged=[])
    assert [loss.item for loss in report.lost] == [None]
    assert "; 5 entries can" in report.lost[0].reason
    assert content(tmp_path / "out") == before


def test_a_changed_entry_is_not_trusted_though_its_map_is_json(tmp_path):
    source = make(tmp_path / "in")
    expected = items_of(source)
    path = source / "meta_0.gmeta"
    path.write_bytes(path.read_bytes().replace(b'"number": 0', b'"number": 7'))
    report = repaired(source, tmp_path / "out", items=4, frames=15)
    (part,) = report.salvaged
    assert (part.item, part.frames) == ("item0", 3)
    assert items_of(tmp_path / "out")[part.id][0] == expected["item0"][0]
    assert report.lost[0].item == "item0"


def with_key(path, id_, old, new, value=None):
    """Give another name to a key of an entry, or add one."""
    entries = json.loads(path.read_bytes())
    entry = entries[id_]
    if value is None:
        entries[id_] = {new if key == old else key: entry[key] for key in entry}
    else:
        entry[new] = value
    path.write_bytes(dump_gmeta(entries))


def timed(folder):
    """Write an item with times and facts of its source, and one of two metadata."""
    folder.mkdir()
    chunk = next(GulpDirectory(folder).new_chunks(1))
    with chunk.open("wb"):
        times = Timed([0, 20, 40], Fraction(1, 600), width=32)
        chunk.append("timed", {"a": 1}, times)
        chunk.append("twice", {"a": 1}, make_frames(2))
        chunk.append("twice", {"a": 2}, [])
    return content(folder)


@pytest.mark.parametrize("id_", ["timed", "twice"])
def test_extras_under_a_damaged_key_are_told_by_their_check(tmp_path, id_):
    before = timed(tmp_path / "in")
    with_key(tmp_path / "in/meta_0.gmeta", id_, "gulp2", "gulp3")
    report = repaired(tmp_path / "in", tmp_path / "out", items=2, lost=[])
    assert report.frames_without_checksum == 0
    assert report.notes == [
        f"meta_0.gmeta, item '{id_}': has its extras under a damaged key, and they are "
        "whole by their check"
    ]
    assert content(tmp_path / "out") == before


def test_frames_of_extras_under_a_damaged_key_are_compared(tmp_path):
    timed(tmp_path / "in")
    with_key(tmp_path / "in/meta_0.gmeta", "timed", "gulp2", "gulp3")
    change(tmp_path / "in/data_0.gulp", 200)  # in a table: it can still be decoded
    report = repaired(tmp_path / "in", tmp_path / "out", items=1)
    assert [(loss.item, loss.frames) for loss in report.lost] == [("timed", (0,))]


def test_a_key_that_was_added_to_an_entry_costs_no_item(tmp_path):
    before = timed(tmp_path / "in")
    with_key(tmp_path / "in/meta_0.gmeta", "timed", None, "note", "blurred")
    report = repaired(tmp_path / "in", tmp_path / "out", items=2, salvaged=[])
    assert [str(loss) for loss in report.lost] == [
        "meta_0.gmeta, item 'timed': not copied, as the format does not have such "
        "keys: 'note'"
    ]
    assert content(tmp_path / "out") == before


def test_a_key_that_was_added_to_an_entry_of_gulpio2_is_a_loss(tmp_path):
    source = make(tmp_path / "in", num_items=1)
    path = source / "meta_0.gmeta"
    entries = json.loads(path.read_bytes())
    del entries["item0"]["gulp2"]
    path.write_bytes(dump_gmeta(entries))
    with_key(path, "item0", None, "note", "blurred")
    report = repaired(source, tmp_path / "out", items=1, frames_without_checksum=3)
    assert [loss.item for loss in report.lost] == ["item0"]


def test_a_missing_data_file_is_a_loss_by_item(tmp_path):
    source = make(tmp_path / "in")
    (source / "data_1.gulp").unlink()
    report = repaired(source, tmp_path / "out", items=3, chunks=[0, 2])
    assert [loss.item for loss in report.lost] == ["item2", "item3"]


@pytest.mark.parametrize("numbers", [[0], [1, 2], [2]])
def test_chunks_of_which_nothing_is_left_are_losses(tmp_path, numbers):
    source = tmp_path / "source"
    GulpIngestor(FrameAdapter(num_items=5, num_frames=2), source, 2, 1)()
    for number in numbers:
        (source / f"data_{number}.gulp").unlink()
        (source / f"meta_{number}.gmeta").unlink()
    report = repaired(source, tmp_path / "target")
    assert [loss.file for loss in report.lost] == [f"data_{n}.gulp" for n in numbers]
    assert all("ingest its items again" in loss.reason for loss in report.lost)


def test_a_gap_between_chunks_is_noted_where_no_manifest_tells_of_one(tmp_path):
    source = make(tmp_path / "source", items_per_chunk=2)
    for name in ("data_1.gulp", "meta_1.gmeta"):
        (source / name).unlink()
    report = repaired(source, tmp_path / "target")
    assert report.lost == []
    (note,) = report.notes
    assert note.startswith("there is no chunk 1, and there are later ones")


def test_a_cut_data_file_keeps_what_is_before_the_cut(tmp_path):
    source = make(tmp_path / "in", items_per_chunk=5)
    path = source / "data_0.gulp"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    report = repaired(source, tmp_path / "out", items=2)
    assert [loss.item for loss in report.lost] == ["item2", "item3", "item4"]
    assert report.lost[1].frames == (0, 1, 2)


def test_deleted_items_stay_deleted(tmp_path):
    source = make(tmp_path / "in", items_per_chunk=5)
    delete_items(source, ["item1"])
    report = repaired(source, tmp_path / "whole", items=4, lost=[], frames=12)
    assert report.ok
    (source / "meta_0.gmeta").unlink()
    report = repaired(source, tmp_path / "out", items=0, frames=12)
    assert [part.frames for part in report.salvaged] == [3, 9]
    shutil.rmtree(tmp_path / "out")
    change(source / "deleted.json", 40)
    report = repaired(source, tmp_path / "out", items=0, frames=0, chunks=[])
    assert report.lost[-1].file != "data_0.gulp"
    assert "may be those of deleted items" in report.notes[0]


def test_deleted_frames_stay_so_where_their_id_was_given_again(tmp_path):
    source = make(tmp_path / "in", num_items=2, items_per_chunk=2)
    hidden = items_of(source)["item0"][0]
    delete_items(source, ["item0"])
    chunk = GulpChunk(source / "data_0.gulp", source / "meta_0.gmeta")
    with chunk.open("ab"):
        chunk.append("item0", {"again": 1}, make_frames(2, seed=77))
    path = source / "meta_0.gmeta"
    path.write_bytes(path.read_bytes().replace(b'"number": 1', b'"number": 7'))
    repaired(source, tmp_path / "out", items=1, frames=5)
    moved = [jpeg for jpegs, _ in items_of(tmp_path / "out").values() for jpeg in jpegs]
    assert not set(hidden) & set(moved)


def test_frames_of_an_interrupted_deletion_are_found_by_their_markers(tmp_path):
    source = make(tmp_path / "in", num_items=2, items_per_chunk=2)
    path = source / "meta_0.gmeta"
    before = path.read_bytes()
    delete_items(source, ["item0"])
    path.write_bytes(before.replace(b'"number": 0', b'"number": 7'))
    report = repaired(source, tmp_path / "out", items=1, frames=6)
    assert [part.frames for part in report.salvaged] == [3]


def test_frames_before_those_that_gulpio2_added_are_compared_with_their_sums(tmp_path):
    source = make(tmp_path / "in", num_items=2, items_per_chunk=2)
    path = source / "meta_0.gmeta"
    meta_dict = json.loads(path.read_bytes())
    frame_info = meta_dict["item0"]["frame_info"]
    frame_info.append(frame_info[-1])
    meta_dict["item0"]["meta_data"].append({})
    path.write_text(json.dumps(meta_dict))
    assert repaired(source, tmp_path / "whole", items=2, frames=7).ok
    loc, _, length = frame_info[0]
    change(source / "data_0.gulp", loc + length // 2)  # it can be decoded all the same
    report = repaired(source, tmp_path / "out", items=1, frames=6)
    assert [(loss.item, loss.frames) for loss in report.lost] == [("item0", (0,))]
    assert report.frames_without_checksum == 1


def test_erased_bytes_end_where_they_were_noted_to(tmp_path):
    (tmp_path / "data_0.gulp").write_bytes(b"\1\1\1\1" + bytes(8) + b"\1" * 20)
    file = DataFile(LocalStore(tmp_path), 0, no_progress)
    file.open()
    for start, stop, is_zero in [
        (4, 12, True),
        (8, 12, True),
        (4, 13, False),
        (3, 12, False),
        (24, 40, False),
        (32, 40, True),  # none of it is there
    ]:
        assert file.is_zero(start, stop) is is_zero, (start, stop)


def test_erased_bytes_are_no_loss(tmp_path):
    source = make(tmp_path / "in", items_per_chunk=5)
    delete_items(source, ["item1"])
    compact_directory(source)
    assert repaired(source, tmp_path / "out", items=4).ok
    (source / "meta_0.gmeta").unlink()
    shutil.rmtree(tmp_path / "out")
    report = repaired(source, tmp_path / "out", frames=12)
    assert [loss.file for loss in report.lost] == ["meta_0.gmeta"]


def test_the_first_of_two_items_keeps_the_id_and_copies_are_left_out(tmp_path):
    source = make(tmp_path / "in", num_items=2, items_per_chunk=1)
    make(tmp_path / "other", num_items=1, num_frames=2)
    for kind, folder, number in (("data", source, 2), ("meta", source, 2)):
        end = "gulp" if kind == "data" else "gmeta"
        shutil.copy(source / f"{kind}_0.{end}", folder / f"{kind}_{number}.{end}")
        shutil.copy(tmp_path / "other" / f"{kind}_0.{end}", source / f"{kind}_3.{end}")
    report = repaired(source, tmp_path / "out", items=2, frames=8, lost=[])
    assert report.salvaged[0].id == "salvaged_3_0"
    assert report.salvaged[0].reason == "another item in data_0.gulp has the id"
    assert "second copy of item 'item0'" in report.notes[0]


def test_items_of_one_place_get_ids_of_their_own(tmp_path):
    source = make(tmp_path / "in", num_items=1, num_frames=3)
    path = source / "meta_0.gmeta"
    (entry,) = json.loads(path.read_text()).values()
    damaged = json.dumps(dict.fromkeys("abc", entry))  # the check is of another id
    path.write_text(damaged)
    report = repaired(source, tmp_path / "out", items=0)
    ids = [part.id for part in report.salvaged]
    assert ids == ["salvaged_0_0", "salvaged_0_0_2", "salvaged_0_0_3"]


def test_a_whole_item_keeps_the_id_before_a_damaged_one(tmp_path):
    source = make(tmp_path / "in", num_items=1)
    shutil.copy(source / "data_0.gulp", source / "data_1.gulp")
    shutil.copy(source / "meta_0.gmeta", source / "meta_1.gmeta")
    frames = GulpChunk(source / "data_0.gulp", source / "meta_0.gmeta").read_jpegs(
        "item0"
    )
    change(source / "data_0.gulp", 200)
    report = repaired(source, tmp_path / "out", items=1)
    assert items_of(tmp_path / "out")["item0"][0] == frames
    assert report.salvaged[0].id.startswith("salvaged_0_")


def test_items_without_checksums_are_judged_by_the_decoder(tmp_path):
    source = make(tmp_path / "in", num_items=2)
    path = source / "meta_0.gmeta"
    entries = json.loads(path.read_bytes())
    for entry in entries.values():
        del entry["gulp2"]
    path.write_bytes(dump_gmeta(entries))
    with GulpDirectory(source) as directory:
        loc, pad, length = directory.item("item1").entry["frame_info"][2]
    change(source / "data_0.gulp", loc + length - pad - 1)
    report = repaired(source, tmp_path / "out", items=1, frames_without_checksum=5)
    assert report.lost[0].frames == (2,)


def test_items_that_share_frames_are_all_whole(tmp_path):
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("one", {}, make_frames(4))
    entry = json.loads((tmp_path / "meta_0.gmeta").read_text())["one"]
    del entry["gulp2"]  # as GulpIO2 0.0.4 has it
    entries = {f"item{number}": entry for number in range(5)}
    (tmp_path / "meta_0.gmeta").write_text(json.dumps(entries))
    report = repair_directory(tmp_path, tmp_path.parent / f"{tmp_path.name}-clean")
    assert (report.items, report.salvaged, report.lost) == (5, [], [])
    assert set(items_of(report.target)) == set(entries)


def test_bytes_that_were_never_committed_are_left_behind(tmp_path):
    source = make(tmp_path / "in")
    with (source / "data_0.gulp").open("ab") as file:
        file.write(b"\xff\xd8 never committed")
    report = repaired(source, tmp_path / "out", items=5)
    assert report.ok
    assert "never committed" in report.notes[0]


def test_unfinished_files_are_told_of(tmp_path):
    source = make(tmp_path / "in")
    (source / "ingest.journal").write_bytes(b"")
    (source / "chunk_4.gulp.abc.partial").write_bytes(b"")
    report = repaired(source, tmp_path / "out", items=5)
    assert [note.split(":")[0] for note in report.notes] == [
        "ingest.journal",
        "chunk_4.gulp.abc.partial",
    ]


def test_damaged_small_files_are_left_out_and_sound_ones_kept(tmp_path):
    GulpIngestor(FrameAdapter(num_items=2), tmp_path / "in", 2, 1).run()
    (tmp_path / "in" / "label2idx.json").write_bytes(b'{"a": 0, "b": 0}')
    (tmp_path / "in" / "failures.jsonl").write_bytes(b"[]\n")
    report = repaired(tmp_path / "in", tmp_path / "out", items=2, files=["gulp.json"])
    assert [loss.file for loss in report.lost] == ["label2idx.json", "failures.jsonl"]
    change(tmp_path / "in" / "gulp.json", 30)
    report = repaired(tmp_path / "in", tmp_path / "two", items=2, files=[])
    assert report.lost[0].file == "gulp.json"


def no_permission(path):
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    path.write_bytes(b"{}")
    path.chmod(0)


UNREADABLE = {
    "folder": lambda path: path.mkdir(),
    "fifo": os.mkfifo,
    "circular link": lambda path: path.symlink_to(path),
    "broken link": lambda path: path.symlink_to("nothing"),
    "no permission": no_permission,
}


@pytest.mark.parametrize("put", UNREADABLE.values(), ids=UNREADABLE)
def test_a_manifest_that_cannot_be_read_is_a_loss_and_costs_no_item(tmp_path, put):
    source = tmp_path / "in"
    GulpIngestor(FrameAdapter(num_items=4), source, 2, 1).run()
    (source / "gulp.json").unlink()
    put(source / "gulp.json")
    report = repair_directory(source, tmp_path / "out")
    assert (report.items, report.files) == (4, [])
    assert [loss.file for loss in report.lost] == ["gulp.json"]
    assert check_directory(tmp_path / "out", deep=True).problems == []


@pytest.mark.parametrize("put", UNREADABLE.values(), ids=UNREADABLE)
def test_what_was_deleted_cannot_be_told_where_that_cannot_be_read(tmp_path, put):
    source = make(tmp_path / "in")
    put(source / "deleted.json")
    report = repair_directory(source, tmp_path / "out")
    assert [loss.file for loss in report.lost] == ["deleted.json"]
    assert "what was deleted can no longer be told: " in report.lost[0].reason
    assert items_of(tmp_path / "out") == items_of(source)
    assert check_directory(tmp_path / "out", deep=True).problems == []


def test_a_directory_of_a_newer_version_is_not_repaired(tmp_path):
    source = make(tmp_path / "in")
    manifest = dump_checked({"format": "gulp2", "format_version": 2})
    (source / "gulp.json").write_bytes(manifest)
    with pytest.raises(UnknownVersionError, match="format version 2"):
        repair_directory(source, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_an_ingest_could_not_store_stays_listed_and_losses_are_not_added(tmp_path):
    GulpIngestor(FrameAdapter(num_items=5, bad=[3]), tmp_path / "in", 2, 1).run()
    listed = (tmp_path / "in" / "failures.jsonl").read_bytes()
    assert b'"item3"' in listed
    change(tmp_path / "in" / "data_0.gulp", 300)
    report = repaired(tmp_path / "in", tmp_path / "out", items=3)
    assert "item0" in {loss.item for loss in report.lost}
    assert (tmp_path / "out" / "failures.jsonl").read_bytes() == listed


@pytest.mark.usefixtures("permissions")
def test_a_source_below_a_folder_that_is_closed_is_not_told_as_missing(tmp_path):
    (tmp_path / "closed").mkdir(0o600)
    with pytest.raises(StorageError, match=r"cannot look into .*closed: Permission"):
        repair_directory(tmp_path / "closed" / "damaged", tmp_path / "repaired")
    (tmp_path / "closed").chmod(0o700)


def test_a_target_that_is_not_empty_is_refused(tmp_path):
    source = make(tmp_path / "in")
    with pytest.raises(StorageError, match="is not empty") as caught:
        repair_directory(source, make(tmp_path / "out"))
    assert caught.value.errno == errno.ENOTEMPTY
    with pytest.raises(StorageError, match="not to be changed"):
        repair_directory(source, source / "inside")
    with pytest.raises(StorageError, match="not to be changed"):
        repair_directory(source, source)
    with pytest.raises(StorageError, match="there is no directory"):
        repair_directory(tmp_path / "nothing", tmp_path / "new")
    with pytest.raises(StorageError, match="cannot read s3:/b/x: it is a URL"):
        repair_directory("s3://b/x", tmp_path / "new")


def test_a_repair_that_was_killed_is_told_by_a_check(tmp_path):
    source = make(tmp_path / "in")
    repair_directory(source, tmp_path / "whole")
    whole, told = content(tmp_path / "whole"), 0
    for operation in range(1, 100):
        target = tmp_path / str(operation)
        if not is_killed(operation, repair_directory, source, target):
            break
        if target.is_dir() and not whole.items() <= content(target).items():
            codes = {problem.code for problem in check_directory(target).problems}
            assert codes & {"unfinished-ingest", "no-chunks"}
            told += "no-chunks" not in codes
    assert content(target) == whole
    assert told > 2


def test_nothing_is_put_to_what_an_unfinished_repair_has_left(tmp_path):
    source, target = make(tmp_path / "in"), tmp_path / "out"
    operation = 1
    while not (target / "meta_0.gmeta").exists():
        shutil.rmtree(target, ignore_errors=True)
        assert is_killed(operation, repair_directory, source, target)
        operation += 1
    before = content(target)
    with pytest.raises(IngestError, match="a repair into this folder was not finished"):
        GulpIngestor(FrameAdapter(num_items=2), target, 2, 1).run()
    with pytest.raises(IngestError, match=r"the repair into .* before merging into it"):
        merge_directories([source], target)
    with pytest.raises(IngestError, match=r"the repair into .* before merging$"):
        merge_directories([target], tmp_path / "further")
    assert content(target) == before


def test_a_directory_that_is_written_to_is_not_repaired(tmp_path):
    source = make(tmp_path / "in")
    with open_store(source).lock(), pytest.raises(LockedError):
        repair_directory(source, tmp_path / "out")


def test_a_directory_is_repaired_and_merged_at_the_same_time(tmp_path):
    source = make(tmp_path / "in")
    meanwhile: list[object] = []

    def begin_another(**_):
        if not meanwhile:
            meanwhile.append(repair_directory(source, tmp_path / "other"))
            meanwhile.append(merge_directories([source], tmp_path / "merged"))
            with pytest.raises(LockedError, match="another process is copying from"):
                delete_items(source, ["item0"])

    first = repair_directory(source, tmp_path / "out", progress=begin_another)
    assert first.ok
    assert content(tmp_path / "out") == content(tmp_path / "other")
    assert len(meanwhile) == 2


def test_any_damage_leaves_only_right_items_and_real_frames(tmp_path):
    source = make(tmp_path / "in", num_items=4)
    expected = items_of(source)
    known = {jpeg for frames, _ in expected.values() for jpeg in frames}
    rng = random.Random(3)
    for attempt in range(60):
        folder = tmp_path / f"damaged{attempt}"
        shutil.copytree(source, folder)
        path = folder / rng.choice(sorted(content(source)))
        size = path.stat().st_size
        kind = rng.randrange(3)
        if kind == 0:
            change(path, rng.randrange(size), rng.randrange(256))
        elif kind == 1:
            path.write_bytes(path.read_bytes()[: rng.randrange(size)])
        else:
            start = rng.randrange(size)
            data = path.read_bytes()
            stop = start + rng.randrange(400)
            path.write_bytes(data[:start] + rng.randbytes(100) + data[stop:])
        repaired(folder, tmp_path / f"out{attempt}")
        for id_, item in items_of(tmp_path / f"out{attempt}").items():
            if id_.startswith("salvaged_"):
                assert set(item[0]) <= known, attempt
            else:
                assert item == expected[id_], attempt


def test_a_clip_of_a_salvaged_item_can_be_read(tmp_path):
    source = make(tmp_path / "in")
    (source / "meta_0.gmeta").unlink()
    repaired(source, tmp_path / "out")
    with GulpDirectory(tmp_path / "out") as directory:
        assert directory.read_clip("salvaged_0_0").shape == (6, 24, 32, 3)
        assert np.any(directory.read_clip("salvaged_0_0"))


def test_a_folder_of_shares_is_told_to_be_one(tmp_path):
    (tmp_path / "gulped" / "shard_1_of_2").mkdir(parents=True)
    why = "repaired. It holds shares of an ingest, shard_1_of_2: repair those that need"
    with pytest.raises(FormatError, match=why):
        repair_directory(tmp_path / "gulped", tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_folder_of_something_else_is_not_called_repaired(tmp_path):
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "cat.jpg").write_bytes(b"x")
    with pytest.raises(FormatError, match="pictures is no gulp directory"):
        repair_directory(tmp_path / "pictures", tmp_path / "clean")
    assert not (tmp_path / "clean").exists()


def test_metadata_that_cannot_be_nested_deeper_cost_no_other_item(tmp_path):
    deep: dict = {}
    for _ in range(99):
        deep = {"d": deep}
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("deep", deep, make_frames(2))
        chunk.append("flat", {}, make_frames(2, seed=1))
    with (tmp_path / "data_0.gulp").open("r+b") as file:
        file.seek(100)
        file.write(b"\1\2\3\4")
    report = repair_directory(tmp_path, tmp_path.parent / f"{tmp_path.name}-clean")
    assert (report.items, len(report.salvaged)) == (1, 1)
    clean = GulpDirectory(report.target)
    assert len(clean["flat"]) == 2


def test_a_target_that_is_filled_while_the_source_is_looked_at_stays_as_it_is(tmp_path):
    long, other = make(tmp_path / "long"), make(tmp_path / "other", num_frames=2)
    target = tmp_path / "target"

    def meanwhile(**counts):
        if not target.exists():
            repair_directory(other, target)

    with pytest.raises(StorageError, match="is not empty"):
        repair_directory(long, target, progress=meanwhile)
    assert items_of(target) == items_of(other)
    assert check_directory(target, deep=True).ok


def test_each_frame_is_told_of_when_it_is_looked_at_and_when_it_is_written(tmp_path):
    source, target = make(tmp_path / "in"), tmp_path / "out"
    size = sum(path.stat().st_size for path in source.glob("data_*.gulp"))
    told: list[dict[str, int]] = []
    repair_directory(source, target, dry_run=True, progress=lambda **c: told.append(c))
    assert sum(counts["frames"] for counts in told) == 15
    told.clear()
    repair_directory(source, target, progress=lambda **c: told.append(c))
    assert sum(counts["frames"] for counts in told) == 30
    assert all(counts["frames"] == 1 for counts in told[-15:]), "one after the other"
    assert sum(counts["num_bytes"] for counts in told[-15:]) == size


@pytest.mark.parametrize("depth", [101, 600, 900])
def test_metadata_that_is_too_deep_costs_its_item_and_not_the_repair(tmp_path, depth):
    source = make(tmp_path / "in")
    path = source / "meta_0.gmeta"
    entries = json.loads(path.read_bytes())
    for entry in entries.values():
        del entry["gulp2"]  # as of GulpIO2, which sets no limit
    text = json.dumps({**entries, "empty": {"frame_info": [], "meta_data": [{}]}})
    deep = '{"deep": ' + "[" * depth + "]" * depth + "}"
    assert text.count('{"number": 1}') == 1
    text = text.replace('{"number": 1}', deep).replace("[{}]", f"[{deep}]")
    path.write_text(text)
    frames = GulpDirectory(source).read_jpegs("item1")
    report = repair_directory(source, tmp_path / "out")
    assert {loss.item for loss in report.lost} == {"item1", "empty"}
    (part,) = report.salvaged
    assert (part.item, part.frames) == ("item1", 3)
    assert "nested too deeply" in part.reason
    found = items_of(tmp_path / "out")
    assert found.keys() == {"item0", "item2", "item3", "item4", part.id}
    assert found[part.id][0] == frames
    assert check_directory(tmp_path / "out", deep=True).ok


@pytest.mark.parametrize("lost", ["all", "first", "middle"])
def test_frames_that_a_whole_map_has_lost_are_a_loss(tmp_path, lost):
    make_gulp_directory(tmp_path / "source", num_items=6, items_per_chunk=3)
    path = tmp_path / "source" / "meta_1.gmeta"
    entries = load_gmeta(path.read_bytes(), where="")
    for id_ in {"all": [*entries], "first": ["item3"], "middle": ["item4"]}[lost]:
        del entries[id_]
    path.write_bytes(dump_gmeta(entries))
    report = repair_directory(tmp_path / "source", tmp_path / "target")
    assert not report.ok
    (loss,) = report.lost
    assert "no entry of the map speaks of what is there" in str(loss)
    assert len(GulpDirectory(tmp_path / "target")) == 3 + len(entries)


@pytest.mark.parametrize("list_ids", [True, False])
@pytest.mark.parametrize("damage", ["whole chunk", "both files", "one frame"])
def test_a_run_that_has_lost_items_is_not_complete_in_the_copy(
    tmp_path, damage, list_ids
):
    source, target = tmp_path / "in", tmp_path / "out"
    adapter = FrameAdapter(num_items=6, num_frames=2, list_ids=list_ids)
    GulpIngestor(adapter, source, 3, 1).run()
    if damage == "one frame":
        change(source / "data_0.gulp", 300)
    else:
        (source / "data_0.gulp").unlink()
    if damage == "both files":
        (source / "meta_0.gmeta").unlink()
    assert not repaired(source, target).ok
    delete_items(target, ["item5"])  # which says nothing of those that were lost
    # None: there is nothing to go on with, and it is not complete either.
    assert GulpIngestor(adapter, target, 3, 1, resume=True).left_to_resume() is None
    GulpIngestor(adapter, target, 3, 1, resume=True, on_duplicate="skip").run()
    assert {f"item{n}" for n in range(6)} <= {*items_of(target)}
    assert GulpIngestor(adapter, target, 3, 1, resume=True).run().items == 0


@pytest.mark.parametrize("list_ids", [True, False])
def test_a_run_of_which_all_is_whole_is_complete_in_the_copy(tmp_path, list_ids):
    source, target = tmp_path / "in", tmp_path / "out"
    adapter = FrameAdapter(num_items=6, num_frames=2, list_ids=list_ids)
    GulpIngestor(adapter, source, 3, 1).run()
    assert repaired(source, target).ok
    assert (target / "gulp.json").read_bytes() == (source / "gulp.json").read_bytes()
    assert GulpIngestor(adapter, target, 3, 1, resume=True).run().items == 0


def test_a_share_that_has_lost_items_is_missing_in_the_copy(tmp_path):
    def ingest(folder, share, **options):
        shard = Shard(share, 2)
        adapter = FrameAdapter(num_items=8, num_frames=2, list_ids=False)
        return GulpIngestor(adapter, folder, 2, 1, shard=shard, **options)

    for share in (1, 2):
        ingest(tmp_path / f"in{share}", share).run()
    (tmp_path / "in1" / "data_0.gulp").unlink()
    assert not repaired(tmp_path / "in1", tmp_path / "out").ok
    assert ingest(tmp_path / "out", 1, resume=True).left_to_resume() is None
    merged = tmp_path / "merged"
    report = merge_directories([tmp_path / "out", tmp_path / "in2"], merged)
    assert report.missing == ["1/2"]
    ingest(merged, 1, on_duplicate="skip").run()
    assert {*items_of(merged)} == {f"item{number}" for number in range(8)}
    assert check_directory(merged).notes == []


def test_frames_are_kept_in_little_memory(tmp_path):
    folder = tmp_path / "many"
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    folder.mkdir()
    jpeg = encode_frame(np.zeros((8, 8), np.uint8), EncoderSettings())
    num_items, num_frames = 40, 500
    with chunk.open("wb"):
        for number in range(num_items):
            chunk.append(f"item{number}", {}, [jpeg] * num_frames)
    store = open_store(folder)
    frames = num_items * num_frames
    list(survey_chunks(store, [0], Removals(), no_progress))  # imports
    tracemalloc.start()
    try:
        (survey,) = survey_chunks(store, [0], Removals(), no_progress)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        store.close()
    assert sum(len(it.frames) for it in survey.candidates) == frames
    assert kept < 64 * frames


def test_kept_frames_are_as_a_list_of_them():
    for times in ([None] * 3, [-5, 0, 2**40]):
        frames = [Frame(7, 8 * k, 5 + k, 2**32 - 1 - k, times[k]) for k in range(3)]
        kept = FramesOfFile(frames)
        assert list(kept) == frames
        assert len(kept) == 3
        assert kept[-1] == frames[-1]
        assert kept[1:] == frames[1:]
        with pytest.raises(IndexError):
            kept[3]
    with pytest.raises(OverflowError):
        FramesOfFile([Frame(0, 0, 1, 1, 2**63)])


def test_a_list_of_failures_that_is_gone_is_a_loss_wherever_it_is_asked_for(tmp_path):
    source = tmp_path / "in"

    def ingestor(**options):
        adapter = FrameAdapter(num_items=3, bad=[1], list_ids=False)
        return GulpIngestor(adapter, source, 1, 1, **options)

    ingestor().run()
    (source / "failures.jsonl").unlink()
    report = repair_directory(source, tmp_path / "out")
    assert [loss.file for loss in report.lost] == ["failures.jsonl"]
    told = "failures.jsonl is missing, which gulp.json tells of"
    with pytest.raises(MetaFileError, match=told):
        ingestor(resume=True).run()
    with pytest.raises(MetaFileError, match=told):
        merge_directories([source], tmp_path / "merged")


@pytest.mark.parametrize("kind", ["dangling", "below a file", "below a device"])
def test_a_target_that_cannot_be_made_is_refused_before_anything_is_read(
    tmp_path, kind
):
    source = make(tmp_path / "in", num_items=1)
    (tmp_path / "dangling").symlink_to("nowhere")
    target = {
        "dangling": tmp_path / "dangling",
        "below a file": source / "data_0.gulp" / "x",
        "below a device": Path("/dev/null/x"),
    }[kind]
    told = []
    for dry_run in (True, False):
        with pytest.raises(StorageError, match="cannot"):
            repair_directory(
                source, target, dry_run=dry_run, progress=lambda **n: told.append(n)
            )
    assert told == []


@pytest.mark.parametrize(
    "act",
    [
        lambda: repair_directory("", "out"),
        lambda: delete_items("", ["item0"]),
        lambda: compact_directory(""),
        lambda: check_directory(""),
        lambda: merge_directories([""], "out"),
        lambda: build_index(""),
    ],
    ids=["repair", "delete", "compact", "check", "merge", "index"],
)
def test_an_empty_path_is_not_the_current_folder(tmp_path, monkeypatch, act):
    make(tmp_path, num_items=1)
    monkeypatch.chdir(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(ValueError, match="empty"):
        act()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_an_interrupted_repair_leaves_no_file_open(tmp_path):
    source = make(tmp_path / "source")
    whole = 17  # of a repair that was not interrupted

    def interrupt(number):
        def act(count):
            if count == number:
                raise KeyboardInterrupt

        before_each_operation(act, ["stat"])
        try:
            repair_directory(source, tmp_path / f"target{number}")
        except KeyboardInterrupt:
            assert not [name for name in open_files() if ".partial" in name]
        else:
            os._exit(whole)

    number = 1
    while (end := in_child(partial(interrupt, number))) == 0:
        number += 1
    assert os.waitstatus_to_exitcode(end) == whole
    assert number > 10
