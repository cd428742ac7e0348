"""The index: fresh or built anew, and never trusted over the maps."""

from __future__ import annotations

import base64
import errno
import json
import logging
import mmap
import multiprocessing
import os
import random
import re
import resource
import shutil
import subprocess
import time
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.errors import (
    CorruptFrameError,
    DuplicateIdError,
    ItemNotFoundError,
    MapChangedError,
    MetaFileError,
    ReadRangeError,
    StorageError,
)
from gulpio2.format.layout import list_chunks
from gulpio2.removal import delete_items
from gulpio2.storage.handles import read_once
from gulpio2.storage.index import composing, opening, texts
from gulpio2.storage.index.entries import load_entry
from gulpio2.storage.index.file import map_index, write_index
from gulpio2.storage.index.keeping import (
    build_index,
    check_index,
    index_state,
    refresh_index,
)
from gulpio2.storage.index.opening import open_index
from gulpio2.storage.local import LocalStore
from gulpio2.testing import make_frames, make_gulp_directory
from tests.faults.rot import rot
from tests.forking import forked, status_of
from tests.storage.index.conftest import (
    METAS,
    as_json,
    assert_same,
    plain,
    write_chunks,
)

LONG = os.environ.get("GULPIO2_FAULTS") == "long"


def summary_of(folder: Path) -> Any:
    """Bring the index up to date."""
    summary = build_index(folder)
    assert summary is not None
    return summary


def indexed(folder: Path) -> GulpDirectory:
    """Open with one."""
    directory = GulpDirectory(folder, indexed=True)
    assert directory._index is not None
    return directory


def mapped(directory: GulpDirectory) -> bool:
    """Tell whether the index is a file's."""
    assert directory._index is not None
    return directory._index.mapped


# ------------------------------------------------------------------ fresh or not
def test_a_directory_is_the_same_with_and_without_an_index(folder):
    assert_same(indexed(folder), plain(folder))
    directory = indexed(folder)  # by the file that was written
    assert mapped(directory)
    assert_same(directory, plain(folder))


def test_the_index_is_written_when_missing_and_then_used(folder):
    assert not (folder / "index.arrow").exists()
    assert mapped(indexed(folder))
    before = (folder / "index.arrow").stat()
    assert mapped(indexed(folder))
    after = (folder / "index.arrow").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert summary_of(folder).parsed == 0


def test_only_changed_maps_are_parsed_again(folder):
    assert summary_of(folder).parsed == 3
    write_chunks(folder, first=7)
    summary = summary_of(folder)
    assert (summary.parsed, summary.chunks, summary.items) == (3, 6, 10)
    assert_same(indexed(folder), plain(folder))
    (chunk,) = [c for n, c in plain(folder).chunk_objs_lookup.items() if n == 1]
    with chunk.open("ab"):
        chunk.append("one more", {"label": "z"}, make_frames(2))
    assert summary_of(folder).parsed == 1
    assert_same(indexed(folder), plain(folder))
    for name in ("data_8.gulp", "meta_8.gmeta"):
        (folder / name).unlink()
    assert summary_of(folder).parsed == 0
    assert_same(indexed(folder), plain(folder))


def test_a_map_of_another_time_and_the_same_content_is_not_parsed(folder):
    build_index(folder)
    for path in folder.glob("*.gmeta"):
        os.utime(path, ns=(1, 1))
    assert summary_of(folder).parsed == 0
    assert mapped(indexed(folder))


def test_a_copied_directory_keeps_its_index(folder, tmp_path):
    build_index(folder)
    shutil.copytree(folder, tmp_path / "copy")
    assert summary_of(tmp_path / "copy").parsed == 0
    assert_same(indexed(tmp_path / "copy"), plain(folder))


def test_a_map_of_the_same_size_and_time_and_another_content_is_noticed(folder):
    build_index(folder)
    rot(folder / "meta_0.gmeta", b'"jumping"', b'"running"')
    directory = indexed(folder)
    assert directory["item 0/1"][1]["label"] == "running"
    assert not mapped(directory)
    assert_same(directory, plain(folder))


def without_extras(folder: Path) -> None:
    """Turn the maps into those of 0.0.4, in which an entry does not know its id."""
    for path in folder.glob("*.gmeta"):
        meta_dict = json.loads(path.read_bytes())
        for entry in meta_dict.values():
            del entry["gulp2"]
        path.write_text(json.dumps(meta_dict))


def rewrite_map(path: Path, change: Any) -> None:
    """Change the text of a map, and neither its size nor its time."""
    state = path.stat()
    path.write_text(change(path.read_text("ascii")), "ascii")
    os.utime(path, ns=(state.st_mtime_ns, state.st_mtime_ns))
    assert path.stat().st_size == state.st_size


def test_two_ids_that_were_exchanged_in_a_map_are_noticed(folder):
    without_extras(folder)
    build_index(folder)

    def exchange(text: str) -> str:
        text = text.replace("item 0/2", "item ?/2").replace("item 0/3", "item 0/2")
        return text.replace("item ?/2", "item 0/3")

    rewrite_map(folder / "meta_1.gmeta", exchange)
    for id_ in ("item 0/2", "item 0/3"):
        directory = indexed(folder)
        frames, _ = directory[id_]
        assert len(frames) == len(plain(folder)[id_][0])
        assert not mapped(directory)
    assert summary_of(folder).parsed == 0, "size and time are what they were"
    summary = build_index(folder, thorough=True)
    assert summary is not None
    assert summary.parsed == 1
    assert mapped(indexed(folder))
    assert_same(indexed(folder), plain(folder))


@pytest.mark.parametrize("name", ["id_row", "label", "frames"])
def test_a_thorough_build_replaces_what_is_damaged_and_nothing_else(folder, name):
    build_index(folder)
    expected = (folder / "index.arrow").read_bytes()
    summary = build_index(folder, thorough=True)
    assert summary is not None
    assert (summary.parsed, (folder / "index.arrow").read_bytes()) == (0, expected)
    make = {
        "id_row": lambda c: pa.array([-1] * 5, c.type),
        "label": lambda c: pa.array(["waving"] * 5, c.type),
        "frames": shifted_frames,
    }[name]
    rewrite(folder, replaced(name, make))
    assert check_index(folder) != []
    build_index(folder, thorough=True)
    assert check_index(folder) == []
    assert_same(indexed(folder), plain(folder))


def test_an_id_that_was_renamed_in_a_map_is_noticed(folder):
    without_extras(folder)
    build_index(folder)
    rewrite_map(
        folder / "meta_1.gmeta", lambda text: text.replace("item 0/3", "item x/3")
    )
    directory = indexed(folder)
    with pytest.raises(ItemNotFoundError):
        directory["item 0/3"]
    assert len(directory["item x/3"][0]) == 3


@pytest.mark.skipif(not hasattr(resource, "RUSAGE_THREAD"), reason="Linux alone tells")
def test_maps_of_earlier_are_read_without_giving_up_the_processor(folder):
    path = folder / "meta_0.gmeta"
    long_ago = path.stat().st_mtime_ns - 10**11
    os.utime(path, ns=(long_ago, long_ago))
    composing.read_map(str(folder), 0)
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
    for _ in range(200):
        composing.read_map(str(folder), 0)
    assert resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - before < 100


def test_a_map_that_was_written_just_now_is_indexed_once_the_clock_has_moved(folder):
    path = folder / "meta_1.gmeta"
    for label in (b'"label"', b'"LABEL"') * 10:
        # The same size, and without a pause in between.
        path.write_bytes(re.sub(rb'"label"', label, path.read_bytes(), flags=re.I))
        summary = summary_of(folder)
        changed = path.stat().st_mtime_ns
        assert time.time_ns() > changed + 10_000_000
        assert indexed(folder).table.num_rows == summary.items == 5
        found = indexed(folder).table.column_names
        assert (label.decode().strip('"') in found) is True


def test_times_of_whole_seconds_are_waited_for(folder):
    path = folder / "meta_1.gmeta"
    now = time.time_ns() // (2 * 10**9) * 2 * 10**9
    os.utime(path, ns=(now, now))  # as FAT has it, which knows even seconds alone
    build_index(folder)
    assert time.time_ns() >= now + 2 * 10**9
    now += 10**9
    os.utime(path, ns=(now, now))  # maybe to come: as of another machine's clock
    build_index(folder)
    assert time.time_ns() >= now + 10**9
    os.utime(path, ns=(now + 10**15, now + 10**15))  # a clock that is wrong
    assert summary_of(folder).parsed == 0


def test_a_map_that_vanishes_while_the_directory_is_opened_is_left_out(folder):
    build_index(folder)
    listed = list_chunks(path.name for path in folder.iterdir()).chunks
    (folder / "meta_1.gmeta").unlink()
    index = open_index(folder, listed, wanted=True, may_write=False)
    assert index is not None
    assert index.numbers == [0, 2]
    assert list(index.ids()) == ["item 0/0", "item 0/1", "item 0/4"]


def test_a_map_that_vanishes_while_the_index_is_made_is_left_out(folder, monkeypatch):
    opened = GulpDirectory(folder, indexed=False)
    read_map = composing.read_map

    def reading(path: str, number: int) -> Any:
        (folder / "meta_1.gmeta").unlink(missing_ok=True)
        return read_map(path, number)

    monkeypatch.setattr(composing, "read_map", reading)
    with pytest.raises(MetaFileError, match="has changed since it was opened"):
        opened.query("num_frames > 0")
    shutil.copy(folder / "meta_2.gmeta", folder / "meta_1.gmeta")
    assert indexed(folder).query("num_frames >= 0").num_chunks == 2
    (folder / "index.arrow").unlink(missing_ok=True)
    shutil.copy(folder / "meta_2.gmeta", folder / "meta_1.gmeta")
    assert (summary_of(folder).chunks, *indexed(folder).chunk_objs_lookup) == (2, 0, 2)


def test_the_index_of_another_directory_gives_no_wrong_frames(tmp_path):
    # The same names, sizes and times; every span and checksum another.
    one, other = tmp_path / "one", tmp_path / "other"
    make_gulp_directory(one, num_items=3, num_frames=4)
    shutil.copytree(one, other)
    swapped = json.loads((other / "meta_0.gmeta").read_bytes())
    infos = [entry["frame_info"] for entry in swapped.values()]
    infos[0][0], infos[0][1] = infos[0][1], infos[0][0]
    (other / "meta_0.gmeta").write_text(json.dumps(swapped))
    build_index(one)
    shutil.copy(one / "index.arrow", other / "index.arrow")
    for path in one.glob("*.gmeta"):
        ns = path.stat().st_mtime_ns
        os.utime(other / path.name, ns=(ns, ns))
        assert (other / path.name).stat().st_size == path.stat().st_size
    assert_same(GulpDirectory(other, indexed=True), plain(other))


def test_a_map_that_was_replaced_after_opening_does_not_disturb_what_was_opened(folder):
    build_index(folder)
    directory = indexed(folder)
    expected = plain(folder)
    chunk = GulpChunk(folder / "data_1.gulp", folder / "meta_1.gmeta")
    with chunk.open("ab"):
        chunk.append("later", {}, make_frames(1))
    assert_same(directory, expected)
    assert mapped(directory)
    assert "later" in indexed(folder)


# ------------------------------------------------------------------ when there is one
def test_a_small_directory_has_no_index_unless_asked(folder, monkeypatch):
    directory = GulpDirectory(folder)
    assert directory._index is None
    assert type(directory.merged_meta_dict) is dict
    assert not (folder / "index.arrow").exists()
    refresh_index(folder)
    assert not (folder / "index.arrow").exists()
    monkeypatch.setattr(opening, "SMALL_MAPS_BYTES", 10)
    assert mapped(GulpDirectory(folder))
    monkeypatch.undo()
    write_chunks(folder, first=5)
    refresh_index(folder)
    assert index_state(folder).is_fresh, "brought up to date"


def test_a_folder_that_may_not_be_written_is_indexed_in_memory(folder, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    directory = indexed(folder)
    assert not mapped(directory)
    assert not (folder / "index.arrow").exists()
    assert_same(directory, plain(folder))


def test_nothing_is_written_beside_partial_files(folder):
    (folder / "data_9.gulp.0a1b.partial").write_bytes(b"")
    assert not mapped(indexed(folder))
    assert not (folder / "index.arrow").exists()


def test_a_partial_index_of_a_killed_process_keeps_nobody_from_writing(folder):
    partial = folder / "index.arrow.0a1b.partial"
    partial.write_bytes(b"half")
    assert not mapped(indexed(folder)), "somebody is writing it"
    os.utime(partial, (1, 1))
    assert mapped(indexed(folder))
    build_index(folder)
    assert not partial.exists()


def test_the_index_of_a_later_version_is_left_alone_by_readers(folder, caplog):
    build_index(folder)
    rewrite_header(folder, version=2, check=None, chunks=None)
    later = (folder / "index.arrow").read_bytes()
    for _ in range(2):
        directory = indexed(folder)
        assert not mapped(directory)
        assert_same(directory, plain(folder))
    assert (folder / "index.arrow").read_bytes() == later
    assert "version 2 is of a later gulpio2. It is left as it is" in caplog.text
    assert summary_of(folder).parsed == 3, "gulp2 index replaces it"
    assert mapped(indexed(folder))


@pytest.mark.parametrize(
    "change",
    [
        {"version": None},
        {"version": True},
        {"items": "5"},
        {"frames": -1},
        {"frames": 1.5},
        {"chunks": None},
        {"chunks": "AAAA"},
        {"chunks": "ü"},
        {"crc32": None},
        {"crc32": {}},
    ],
    ids=str,
)
def test_a_crafted_header_is_refused_or_harmless(folder, change, caplog):
    caplog.set_level(logging.CRITICAL)
    build_index(folder)
    rewrite_header(folder, **change)
    assert_right_or_refused(folder, plain(folder))


@pytest.mark.parametrize("items", [(1000, 2, 1), (-1, 4, 2), (2, 2, 2**62)])
def test_an_index_of_chunks_that_have_other_items_is_not_used(folder, items, caplog):
    caplog.set_level(logging.CRITICAL)
    build_index(folder)
    chunks = map_index(str(folder / "index.arrow")).chunks.copy()
    chunks[:, 4] = items
    rewrite_header(folder, chunks=base64.b64encode(chunks.tobytes()).decode())
    (fault,) = check_index(folder)
    assert "have not as many items as it has rows" in fault
    assert_right_or_refused(folder, plain(folder))


def test_an_index_whose_header_is_nested_too_deeply_is_not_used(folder, caplog):
    caplog.set_level(logging.CRITICAL)
    build_index(folder)
    header = {"gulp2": "[" * 100_000}
    rewrite(folder, lambda batch: batch.replace_schema_metadata(header))
    assert check_index(folder) == ["it cannot be used: its header is damaged"]
    assert_right_or_refused(folder, plain(folder))


def test_a_disk_that_refuses_leaves_the_index_in_memory(folder, monkeypatch):
    def refuse(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", refuse)
    directory = indexed(folder)
    monkeypatch.undo()
    assert not mapped(directory)
    assert (
        sorted(path.suffix for path in folder.iterdir())
        == [".gmeta"] * 3 + [".gulp"] * 3
    )
    assert_same(directory, plain(folder))


def test_an_index_that_cannot_be_written_stays_in_memory(folder, monkeypatch, caplog):
    def refuse(*_: Any) -> None:
        raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "whatever")

    monkeypatch.setattr(opening, "write_index", refuse)
    directory = indexed(folder)
    assert not mapped(directory)
    assert "stays in memory" in caplog.text
    assert_same(directory, plain(folder))


def test_a_map_that_cannot_be_read_is_told_and_says_nothing_of_the_index(
    folder, monkeypatch
):
    build_index(folder)
    directory = indexed(folder)

    def refuse(*_: Any) -> bytes:
        raise StorageError(5, "Input/output error")

    monkeypatch.setattr(texts, "read_once", refuse)
    with pytest.raises(StorageError, match="Input/output error"):
        directory.read_clip("item 0/1")
    monkeypatch.undo()
    assert directory.read_clip("item 0/1").shape[0] == 1
    assert mapped(directory)


def test_an_empty_directory_can_be_asked(tmp_path):
    assert build_index(tmp_path) is None
    directory = GulpDirectory(tmp_path, indexed=True)
    assert (len(directory), directory.merged_meta_dict) == (0, {})
    assert len(GulpDirectory(tmp_path).query("num_frames > 3")) == 0


def test_faults_of_maps_are_those_of_a_directory_without_an_index(folder):
    shutil.copy(folder / "data_0.gulp", folder / "data_3.gulp")
    shutil.copy(folder / "meta_0.gmeta", folder / "meta_3.gmeta")
    messages = []
    for open_it in (plain, indexed, build_index):
        with pytest.raises(DuplicateIdError, match=r"item 'item 0/0' is in ") as twice:
            open_it(folder)
        messages.append(str(twice.value))
    assert len(set(messages)) == 1
    (folder / "meta_3.gmeta").write_bytes(b'{"a": 3}')
    messages = []
    for open_it in (plain, indexed, build_index):
        with pytest.raises(MetaFileError, match=r"meta_3\.gmeta") as error:
            open_it(folder)
        messages.append(str(error.value).replace("its directory", "the directory"))
    assert len(set(messages)) == 1


def test_a_map_that_cannot_be_put_into_columns_is_opened_all_the_same(folder):
    data = (folder / "meta_0.gmeta").read_text("ascii")
    (folder / "meta_0.gmeta").write_text(data, "utf-16")
    directory = GulpDirectory(folder, indexed=True)
    assert directory._index is None
    assert len(directory["item 0/1"][0]) == 1
    with pytest.raises(
        MetaFileError, match=r"cannot be asked like a table: .*meta_0\.gmeta: "
    ):
        directory.query("num_frames > 1")


def test_a_map_behind_a_byte_order_mark_is_put_into_columns(folder):
    want = GulpDirectory(folder, indexed=False).query("num_frames > 1").ids
    data = (folder / "meta_0.gmeta").read_text("ascii")
    (folder / "meta_0.gmeta").write_text(data, "utf-8-sig")
    directory = GulpDirectory(folder, indexed=True)
    assert directory._index is not None
    assert list(directory.query("num_frames > 1").ids) == list(want)
    assert [directory[id_][1] for id_ in json.loads(data)] == [
        entry["meta_data"][0] for entry in json.loads(data).values()
    ]


def test_entries_of_an_unusual_form_are_read_from_the_map(folder):
    path = folder / "meta_2.gmeta"
    meta_dict = json.loads(path.read_bytes())
    entry = meta_dict["item 0/4"]
    turned = {"mine": [1], **dict(reversed(entry.items()))}
    path.write_text(json.dumps({"item 0/4": turned}, indent=2))
    build_index(folder)
    directory = indexed(folder)
    assert list(directory.merged_meta_dict["item 0/4"]) == list(turned)
    assert_same(directory, plain(folder))
    assert GulpDirectory(folder, indexed=True, verify=True)["item 0/2"][0]


def test_damaged_extras_are_told_when_they_are_needed(folder):
    path = folder / "meta_2.gmeta"
    meta_dict = json.loads(path.read_bytes())
    meta_dict["item 0/4"]["gulp2"]["crc32"] = "?"
    path.write_text(json.dumps(meta_dict))
    directory = indexed(folder)
    for each in (directory, GulpDirectory(folder, indexed=False)):
        with pytest.raises(CorruptFrameError, match="checksums of its frames are dam"):
            each["item 0/4"]
        with GulpDirectory(folder, indexed=each is directory, verify=False) as other:
            assert len(other["item 0/4"][0]) == 4
    with pytest.raises(MetaFileError, match="'gulp2' part of the entry is damaged"):
        _ = directory.item("item 0/4").extras


def test_a_verified_directory_compares_each_entry_when_it_is_first_used(folder):
    path = folder / "meta_0.gmeta"
    path.write_bytes(path.read_bytes().replace(b'"jumping"', b'"running"'))
    directory = GulpDirectory(folder, indexed=True, verify=True)
    assert len(directory["item 0/2"][0]) == 2
    for _ in range(2):
        with pytest.raises(MetaFileError, match="'item 0/1': its check is not that"):
            directory["item 0/1"]


# ------------------------------------------------------------------ size and cost
def test_the_file_has_less_than_20_bytes_for_each_frame(tmp_path):
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    jpeg = GulpDirectory(
        make_gulp_directory(tmp_path / "x", num_items=1).output_dir
    ).read_jpegs("item0", 0)
    with chunk.open("wb"):
        for item in range(20):
            chunk.append(f"class_7/video_{item:06}", {"label": 7}, jpeg * 300)
    summary = build_index(tmp_path)
    assert summary is not None
    assert summary.frames == 6000
    assert summary.num_bytes / summary.frames < 20


def test_opening_by_the_index_loads_no_arrow_and_reads_no_map(folder, python):
    build_index(folder)
    code = (
        "import sys, gulpio2; directory = gulpio2.GulpDirectory(sys.argv[1], "
        "indexed=True); frames, meta = directory['item 0/3']; "
        "print(len(frames), meta['label'] == 'ünï', 'pyarrow' in sys.modules)"
    )
    done = subprocess.run(
        [python, "-X", "utf8", "-c", code, str(folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["3", "True", "False"]


def test_any_program_that_knows_arrow_can_read_the_file(folder):
    build_index(folder)
    with pa.memory_map(str(folder / "index.arrow")) as source:
        table = pa.ipc.open_file(source).read_all()
        table.validate(full=True)
        assert table.column("id").to_pylist() == list(plain(folder).merged_meta_dict)
        assert table.column("label").to_pylist() == [m.get("label") for m in METAS]
        frames = table.column("frames").to_pylist()
    for spans, (id_, entry) in zip(
        frames, plain(folder).merged_meta_dict.items(), strict=True
    ):
        assert [[s["offset"], s["pad"], s["length"]] for s in spans] == (
            entry["frame_info"]
        ), id_


# ------------------------------------------------------------------ damage
def assert_right_or_refused(folder: Path, expected: GulpDirectory) -> None:
    """Open by whatever the index file is now; nothing wrong may come of it."""
    directory = GulpDirectory(folder, indexed=True)
    assert_same(directory, expected)
    assert directory.query("label == 'waving'").ids == ["item 0/0", "item 0/2"]
    assert directory.table.column("n").to_pylist() == [m.get("n") for m in METAS]


def keep_index(folder: Path) -> bytes:
    """Give the bytes of a fresh index."""
    build_index(folder)
    return (folder / "index.arrow").read_bytes()


def test_no_changed_byte_in_the_file_gives_anything_wrong(folder, monkeypatch, caplog):
    caplog.set_level(logging.ERROR)
    data, expected = keep_index(folder), plain(folder)
    monkeypatch.setattr(opening, "_write", lambda *_: False)
    rng = random.Random(4)
    places = range(len(data)) if LONG else rng.sample(range(len(data)), 250)
    for at in places:
        damaged = bytearray(data)
        damaged[at] ^= rng.choice([1, 16, 128, 255])
        (folder / "index.arrow").write_bytes(damaged)
        assert_right_or_refused(folder, expected)


def test_no_length_of_the_file_gives_anything_wrong(folder, monkeypatch, caplog):
    caplog.set_level(logging.ERROR)
    data, expected = keep_index(folder), plain(folder)
    monkeypatch.setattr(opening, "_write", lambda *_: False)
    lengths = range(len(data)) if LONG else range(0, len(data), len(data) // 40)
    for length in lengths:
        (folder / "index.arrow").write_bytes(data[:length])
        assert_right_or_refused(folder, expected)


@pytest.mark.parametrize(
    "content", [b"", b"index", b"\0" * 5000, b"ARROW1\0\0" + b"\0" * 100 + b"ARROW1"]
)
def test_a_file_that_is_no_index_is_replaced(folder, content, caplog):
    (folder / "index.arrow").write_bytes(content)
    assert mapped(indexed(folder))
    assert "cannot be used and is built anew" in caplog.text
    caplog.clear()
    assert_same(indexed(folder), plain(folder))
    assert caplog.text == ""


def rewrite(folder: Path, change: Any) -> None:
    """Write the index anew with Arrow, one column changed, header and all."""
    path = folder / "index.arrow"
    with pa.OSFile(str(path)) as source:
        batch = pa.ipc.open_file(source).get_batch(0)
    batch = change(batch)
    with pa.ipc.new_file(str(path), batch.schema) as file:
        file.write_batch(batch)


def rewrite_header(folder: Path, **changes: Any) -> None:
    """Change what the schema says of the index, with a check that fits."""

    def change(batch: Any) -> Any:
        header = json.loads(batch.schema.metadata[b"gulp2"])
        header = {**header, **changes}
        if "check" not in changes:
            covered = {k: v for k, v in header.items() if k not in ("check", "whole")}
            header["check"] = zlib.crc32(json.dumps(covered).encode("ascii"))
        return batch.replace_schema_metadata({"gulp2": json.dumps(header)})

    rewrite(folder, change)


def replaced(name: str, make: Any) -> Any:
    """Give a change of one column."""

    def change(batch: Any) -> Any:
        at = batch.schema.get_field_index(name)
        column = make(batch.column(at))
        columns = [*batch.columns[:at], column, *batch.columns[at + 1 :]]
        names = batch.schema.names
        made = pa.record_batch(columns, names=names)
        return made.replace_schema_metadata(batch.schema.metadata)

    return change


def shifted_frames(column: Any) -> Any:
    """Give each item the spans of the frames of the next."""
    items = column.to_pylist()
    flat = [span for item in items for span in item]
    flat = flat[1:] + flat[:1]
    counts = [len(item) for item in items]
    ends = np.cumsum(counts).tolist()
    moved = [flat[end - n : end] for n, end in zip(counts, ends, strict=True)]
    return pa.array(moved, column.type)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("frames", shifted_frames),
        ("chunk", lambda c: pa.array([2, 0, 0, 1, 1], c.type)),
        ("chunk", lambda c: pa.array([99] * 5, c.type)),
        ("num_frames", lambda c: pa.array([4, 3, 2, 1, 0], c.type)),
        ("entry_offset", lambda c: pa.array([2**62] * 5, c.type)),
        ("entry_length", lambda c: pa.array([-1] * 5, c.type)),
        ("entry_crc32", lambda c: pa.array([0] * 5, c.type)),
        ("meta_data", lambda c: pa.array(['[{"label": "no"}]'] * 5, c.type)),
        ("extras", lambda c: pa.array(["{"] * 5, c.type)),
        ("row_crc32", lambda c: pa.array([0] * 5, c.type)),
        ("id", lambda c: pa.array([f"item 0/{(k + 1) % 5}" for k in range(5)], c.type)),
        ("id_row", lambda c: pa.array([2**31 - 1] * 5, c.type)),
        ("id_row", lambda c: pa.array([-1] * 5, c.type)),
        ("id_hash", lambda c: pa.array([0] * 5, c.type)),
        ("label", lambda c: pa.array(["waving"] * 5, c.type)),
        ("n", lambda c: pa.array([None, 1, None, 3, None], pa.float64())),
    ],
)
def test_a_crafted_column_gives_nothing_wrong(folder, name, make, monkeypatch, caplog):
    caplog.set_level(logging.ERROR)
    keep_index(folder)
    expected = plain(folder)
    monkeypatch.setattr(opening, "_write", lambda *_: False)
    rewrite(folder, replaced(name, make))
    assert_right_or_refused(folder, expected)


def test_a_damaged_index_is_not_taken_over_into_the_next(folder, caplog):
    caplog.set_level(logging.ERROR)
    keep_index(folder)
    rewrite(folder, replaced("frames", shifted_frames))
    write_chunks(folder, first=7)  # so that it is stale, and rows would be reused
    summary = summary_of(folder)
    assert summary.parsed == 6
    assert_same(indexed(folder), plain(folder))


def test_spans_of_a_map_that_go_beyond_the_data_are_refused(folder):
    path = folder / "meta_1.gmeta"
    meta_dict = json.loads(path.read_bytes())
    meta_dict["item 0/3"]["frame_info"][0] = [2**40, 0, 2**31]
    path.write_text(json.dumps(meta_dict))
    with pytest.raises(ReadRangeError):
        indexed(folder)["item 0/3", 0]
    with pytest.raises(ItemNotFoundError, match="no item 'nobody'"):
        indexed(folder)["nobody"]


def test_records_of_four_gigabytes_are_left_to_the_maps(folder):
    path = folder / "meta_1.gmeta"
    meta_dict = json.loads(path.read_bytes())
    meta_dict["item 0/3"]["frame_info"][0] = [0, 0, 2**32]
    path.write_text(json.dumps(meta_dict))
    numbers = [0, 1, 2]
    assert open_index(folder, numbers, wanted=True, may_write=True) is None
    directory = GulpDirectory(folder, indexed=True)
    assert as_json(directory["item 0/2"][1]) == as_json(METAS[2])


@pytest.mark.parametrize("mapped", [True, False])
def test_an_item_is_verified_though_another_was_deleted_before_it(tmp_path, mapped):
    folder = tmp_path / "gulped"
    make_gulp_directory(folder, num_items=5, num_frames=2, items_per_chunk=5)
    path = folder / "meta_0.gmeta"
    meta_dict = json.loads(path.read_bytes())
    frame_info = meta_dict["item3"]["frame_info"]
    frame_info.append(frame_info[0])  # as GulpIO2 adds frames: read from the map
    meta_dict["item3"]["meta_data"].append({})
    path.write_text(json.dumps(meta_dict))
    if mapped:
        build_index(folder)
    else:
        (folder / "index.arrow").mkdir()
    directory = GulpDirectory(folder, indexed=True, verify=True)
    delete_items(folder, ["item0", "item4"])
    assert [len(directory[f"item{k}"][0]) for k in range(1, 5)] == [2, 2, 3, 2]
    assert len(directory.merged_meta_dict["item3"]["frame_info"]) == 3
    delete_items(folder, ["item3"])
    directory = GulpDirectory(folder, indexed=True, verify=True)
    path.write_bytes(path.read_bytes().replace(b'"number": 2', b'"number": 8'))
    with pytest.raises(MetaFileError, match="its check is not that"):
        GulpDirectory(folder, indexed=True, verify=True)["item2"]


def test_an_entry_that_is_gone_from_its_map_is_said_to_have_changed(folder):
    path = folder / "meta_2.gmeta"
    entry = json.loads(path.read_bytes())["item 0/4"]
    path.write_text(json.dumps({"item 0/4": {"mine": 1, **entry}}))
    directory = indexed(folder)
    path.write_bytes(b"{}")
    with pytest.raises(MetaFileError, match="'item 0/4' has changed since"):
        directory.merged_meta_dict["item 0/4"]["frame_info"]


def _foreign(tmp_path: Path, number: int = 40) -> Path:
    """Make a directory with the index of another whose maps look the same from afar."""
    for name, first in (("mine", "a"), ("other", "b")):
        folder = tmp_path / name
        folder.mkdir()
        for chunk_number in range(4):
            chunk = GulpChunk(
                folder / f"data_{chunk_number}.gulp",
                folder / f"meta_{chunk_number}.gmeta",
            )
            with chunk.open("wb"):
                for item in range(number // 4):
                    label = first if item % 2 else "c"
                    id_ = f"{first}{chunk_number}-{item}"
                    chunk.append(id_, {"label": label}, make_frames(1))
            os.utime(folder / f"meta_{chunk_number}.gmeta", (1, 1))
    build_index(tmp_path / "other")
    shutil.copy(tmp_path / "other" / "index.arrow", tmp_path / "mine")
    return tmp_path / "mine"


@pytest.mark.parametrize("most_bytes", [1 << 24, 0], ids=["whole maps", "some entries"])
@pytest.mark.parametrize(
    "ask",
    [
        lambda directory: directory.query("label == 'a'").ids,
        lambda directory: list(directory.merged_meta_dict),
        lambda directory: directory.table["id"].to_pylist(),
        lambda directory: ("a0-1" in directory, "b0-1" in directory),
        lambda directory: ("b0-1" in directory, "a0-1" in directory),
        lambda directory: ("b0-1" in directory.merged_meta_dict, len(directory)),
        lambda directory: (directory.chunk_lookup.get("a3-1"), "b3-1" in directory),
        lambda directory: (directory.merged_meta_dict.pop("b0-1", 5), len(directory)),
    ],
    ids=["query", "keys", "table", "there", "not there", "key", "chunk", "popped"],
)
def test_an_index_of_other_maps_of_the_same_sizes_and_times_is_put_aside(
    tmp_path, monkeypatch, caplog, most_bytes, ask
):
    folder = _foreign(tmp_path)
    monkeypatch.setattr(texts, "_MOST_BYTES", most_bytes)
    found = ask(indexed(folder))
    assert found
    assert found == ask(plain(folder))
    assert "it was made of other maps than these" in caplog.text


@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("last", ["a", "v"])
def test_no_item_is_read_by_an_index_of_the_same_items_in_another_order(
    tmp_path, caplog, changed, kept, last
):
    for name, ids in (("mine", ("xyzw", last)), ("other", ("yxzv", "b"))):
        folder = tmp_path / name
        folder.mkdir()
        for number, part in enumerate(ids):
            paths = folder / f"data_{number}.gulp", folder / f"meta_{number}.gmeta"
            chunk = GulpChunk(*paths)
            with chunk.open("wb"):
                for id_ in part:
                    chunk.append(id_, {"n": id_}, make_frames(1, seed=ord(id_)))
            os.utime(paths[1], (1, 1))
    build_index(tmp_path / "other")
    shutil.copy(tmp_path / "other" / "index.arrow", tmp_path / "mine")
    if changed:  # so that the rows of the other map are taken over
        os.utime(tmp_path / "mine" / "meta_1.gmeta", (2, 2))
    if kept:  # by a writer, so that the index is made in memory
        (tmp_path / "mine" / "data_2.gulp.0a.partial").write_bytes(b"")
    for wanted in (["x"], ["w", "y"]):
        view = indexed(tmp_path / "mine").view(wanted)
        assert view.ids == wanted
        assert [view[id_][1]["n"] for id_ in wanted] == wanted
        assert caplog.text.count("it was made of other maps than these") == 1
        caplog.clear()
    assert "b" not in indexed(tmp_path / "mine")


@pytest.mark.parametrize("change", ["times", "items"])
def test_an_index_keeps_what_a_map_said_before_it_rotted(tmp_path, monkeypatch, change):
    folder = tmp_path / "out"
    make_gulp_directory(folder, num_items=4).close()
    monkeypatch.setattr(opening, "SMALL_MAPS_BYTES", 0)
    build_index(folder)
    rot(folder / "meta_1.gmeta", b'"number"', b'"NUMBER"')
    if change == "times":
        os.utime(folder / "meta_0.gmeta")
    else:
        delete_items(folder, ["item0"])
    assert "NUMBER" in indexed(folder).table.column_names
    kept = map_index(str(folder / "index.arrow")).columns.meta_text.tobytes()
    assert b"NUMBER" not in kept
    assert kept.count(b"number") == 4 - (change == "items")


@pytest.mark.parametrize("column", ["entry_offset", "entry_length"])
def test_a_damaged_row_keeps_nobody_from_reading_those_before_it(folder, column):
    build_index(folder)
    content = map_index(str(folder / "index.arrow"))
    for row in range(len(content.columns)):
        places = getattr(content.columns, column).copy()
        places[row] ^= np.iinfo("i8").min
        columns = replace(content.columns, **{column: places})
        write_index(LocalStore(folder), columns, content.lookup, content.chunks)
        directory, wanted = indexed(folder), plain(folder)
        for id_ in wanted.merged_meta_dict:
            assert directory.item(id_).meta == wanted.item(id_).meta


@pytest.mark.parametrize("stale", [False, True])
@pytest.mark.parametrize("column", ["entry_offset", "entry_length"])
def test_a_damaged_row_of_a_large_directory_keeps_nobody_from_reading(
    folder, monkeypatch, column, stale
):
    build_index(folder)
    content = map_index(str(folder / "index.arrow"))
    places = getattr(content.columns, column) ^ np.iinfo("i8").min  # a bit of each
    columns = replace(content.columns, **{column: places})
    write_index(LocalStore(folder), columns, content.lookup, content.chunks)
    monkeypatch.setattr(texts, "_MOST_BYTES", 0)
    if stale:
        os.utime(folder / "meta_0.gmeta")
    assert_same(indexed(folder), plain(folder))


@pytest.mark.parametrize("empty", [2, 9])
def test_a_chunk_without_items_has_no_entry_to_be_compared(
    tmp_path, monkeypatch, caplog, empty
):
    for number in (0, 3, empty):
        paths = tmp_path / f"data_{number}.gulp", tmp_path / f"meta_{number}.gmeta"
        chunk = GulpChunk(*paths)
        with chunk.open("wb"):
            if number != empty:
                chunk.append(f"item {number}", {}, make_frames(1))
    build_index(tmp_path)
    monkeypatch.setattr(texts, "_MOST_BYTES", 0)
    assert indexed(tmp_path).query("num_frames == 1").ids == ["item 0", "item 3"]
    assert caplog.text == ""


def test_an_index_that_is_removed_once_it_is_open_goes_on_being_used(
    folder, monkeypatch
):
    build_index(folder)
    monkeypatch.setattr(texts, "_MOST_BYTES", 0)  # then its own time is asked for
    directory = indexed(folder)
    (folder / "index.arrow").unlink()
    assert directory.query("num_frames >= 0").ids == [*plain(folder).chunk_lookup]


@pytest.mark.parametrize("how", ["renamed", "in place", "by a link"])
def test_an_edit_of_one_of_many_entries_is_seen_although_the_time_was_set_back(
    tmp_path, monkeypatch, caplog, how
):
    folder = tmp_path / "many"
    make_gulp_directory(folder, num_items=40)
    path = folder / "meta_1.gmeta"
    build_index(folder)
    state, data = path.stat(), path.read_bytes()
    wanted = next(iter(json.loads(data)))
    edited = data.replace(b'"number": ', b'"number":-', 1)
    if how == "renamed":
        (folder / "new").write_bytes(edited)
        (folder / "new").replace(path)
    elif how == "by a link":
        (tmp_path / "link").hardlink_to(path)
        (tmp_path / "link").write_bytes(edited)
    else:
        path.write_bytes(edited)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    monkeypatch.setattr(texts, "_MOST_BYTES", 0)
    monkeypatch.setattr(texts, "_MOST_CHUNKS", 1)
    assert indexed(folder).query("number < 0").ids == [wanted]
    assert "it was made of other maps than these" in caplog.text
    # Of too many bytes that were touched, some entries are compared, as of all.
    monkeypatch.setattr(texts, "_MOST_TOUCHED_BYTES", 0)
    assert indexed(folder).query("number < 0").ids == []


@pytest.mark.parametrize("most_bytes", [1 << 24, 0], ids=["whole maps", "some entries"])
def test_a_map_that_is_replaced_while_it_is_compared_is_no_other_one(
    folder, monkeypatch, caplog, most_bytes
):
    build_index(folder)
    directory = indexed(folder)
    ids = list(plain(folder).merged_meta_dict)

    def reading(path: str, *span: int) -> bytes:
        monkeypatch.setattr(texts, "read_once", read_once)
        delete_items(folder, ["item 0/0"])
        return read_once(path, *span)

    monkeypatch.setattr(texts, "_MOST_BYTES", most_bytes)
    monkeypatch.setattr(texts, "read_once", reading)
    assert list(directory.merged_meta_dict) == ids
    assert "other maps" not in caplog.text


@pytest.mark.parametrize("most_bytes", [1 << 24, 0], ids=["whole maps", "some entries"])
def test_an_index_of_which_every_map_was_replaced_tells_what_there_was(
    folder, monkeypatch, most_bytes
):
    build_index(folder)
    directory = indexed(folder)
    wanted = list(plain(folder).merged_meta_dict)
    for number in directory.chunk_objs_lookup:
        chunk = GulpChunk(
            folder / f"data_{number}.gulp", folder / f"meta_{number}.gmeta"
        )
        with chunk.open("ab"):
            chunk.append(f"late {number}", {}, make_frames(1))
    monkeypatch.setattr(texts, "_MOST_BYTES", most_bytes)
    assert list(directory.merged_meta_dict) == wanted
    assert directory.query("num_frames >= 0").ids == wanted


def test_an_index_of_the_maps_is_compared_with_them_once(folder, monkeypatch):
    build_index(folder)
    directory = indexed(folder)
    asked = []
    compare = texts.MapTexts.are_those_of

    def count(self: Any, content: Any) -> bool:
        asked.append(content)
        return compare(self, content)

    monkeypatch.setattr(texts.MapTexts, "are_those_of", count)
    assert directory.read_clip("item 0/1").shape[0] == 1
    assert not asked  # each item that is read is compared by itself
    for _ in range(2):
        assert list(directory.merged_meta_dict) == list(plain(folder).merged_meta_dict)
        assert "nobody" not in directory
        assert len(directory.query("num_frames >= 0")) == len(directory)
    assert len(asked) == 1
    assert mapped(directory)


def test_an_index_is_read_where_the_file_system_maps_no_file(
    folder, monkeypatch, caplog
):
    build_index(folder)
    path = folder / "index.arrow"
    before, data = path.stat(), path.read_bytes()

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))

    monkeypatch.setattr(mmap, "mmap", refuse)
    with indexed(folder) as directory:
        assert_same(directory, plain(folder))
        assert directory.query("num_frames >= 2").ids
    assert check_index(folder) == []
    # It was made anew, and written, each time that the directory was opened.
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    assert caplog.text == ""
    path.write_bytes(data.replace(b"wav", b"rav"))
    assert_same(indexed(folder), plain(folder))


@pytest.mark.parametrize("ascii_only", [True, False])
def test_an_unusual_entry_is_found_where_it_has_moved_to_in_its_map(folder, ascii_only):
    path = folder / "meta_0.gmeta"
    entries = json.loads(path.read_bytes())
    entries["ünï"] = {**entries.pop("item 0/0"), "unknown": 1}
    del entries["ünï"]["gulp2"]
    path.write_text(json.dumps(entries, ensure_ascii=ascii_only), encoding="utf-8")
    with indexed(folder) as directory:
        assert "ünï" in list(directory.merged_meta_dict)
        more = {"new": {"frame_info": [], "meta_data": []}, **entries}
        path.write_text(json.dumps(more, ensure_ascii=ascii_only), encoding="utf-8")
        assert directory.merged_meta_dict["ünï"] == entries["ünï"]


@pytest.mark.parametrize(
    "text",
    [
        b'"a": {"frame_info": 3, "meta_data": []}',
        b'"b": {}',
        b'"a": {"frame_info"',
        b"",
    ],
)
def test_a_text_that_is_no_entry_any_more_is_told_to_have_changed(text):
    with pytest.raises(MapChangedError, match="has changed since the directory was"):
        load_entry(text, "a")


# ------------------------------------------------------------- several at once
@pytest.mark.parametrize(
    ("is_stale", "name", "times"),
    # The third look at what is there is the last before the file gets its name.
    [(False, "compose", 1), (True, "compose", 1), (False, "_identity_of", 3)],
    ids=["none", "stale", "last look"],
)
def test_processes_that_make_an_index_at_once_all_map_the_same_file(
    folder, is_stale, name, times, monkeypatch
):
    # By NFS a file that is replaced is gone for those who have it mapped elsewhere.
    if is_stale:
        build_index(folder)
        write_chunks(folder, first=7)
    processes = multiprocessing.get_context("fork")
    stepped, opened = processes.Barrier(6), processes.Barrier(6)
    said = processes.SimpleQueue()
    step, left = getattr(opening, name), list(range(times))

    def at_once(*args: Any, **options: Any) -> Any:
        done = step(*args, **options)
        if left:
            left.pop()
            stepped.wait(30)
        return done

    monkeypatch.setattr(opening, name, at_once)
    rename = LocalStore.rename

    def rename_slowly(*args: Any, **options: Any) -> None:
        time.sleep(0.02)  # in which another one may look at what is there
        rename(*args, **options)

    monkeypatch.setattr(LocalStore, "rename", rename_slowly)

    def open_it() -> int:
        directory = indexed(folder)
        opened.wait(30)
        files = Path("/proc/self/maps").read_text("utf-8").splitlines()
        files = [each for each in files if f"{folder}/" in each]
        said.put({each.split(maxsplit=4)[4] for each in files})
        return not mapped(directory)

    children = [forked(open_it) for _ in range(6)]
    monkeypatch.undo()
    found = [said.get() for _ in children]
    assert [status_of(child) for child in children] == [0] * 6
    (file,) = set.union(*found)
    assert int(file.split()[0]) == (folder / "index.arrow").stat().st_ino
    assert not list(folder.glob("*.partial"))
    assert_same(indexed(folder), plain(folder))


@pytest.mark.parametrize("may_write", [False, True])
def test_an_index_that_was_made_meanwhile_is_taken(folder, monkeypatch, may_write):
    compose = composing.compose

    def compose_slowly(*args: Any, **options: Any) -> Any:
        content = compose(*args, **options)
        assert status_of(forked(lambda: not build_index(folder))) == 0
        return content

    monkeypatch.setattr(opening, "compose", compose_slowly)
    index = open_index(folder, [0, 1, 2], wanted=True, may_write=may_write)
    assert index is not None
    assert index.mapped
    assert str(folder / "index.arrow") in Path("/proc/self/maps").read_text("utf-8")


def test_an_index_of_other_maps_that_was_made_meanwhile_is_left_alone(
    folder, monkeypatch
):
    compose = composing.compose

    def compose_slowly(*args: Any, **options: Any) -> Any:
        content = compose(*args, **options)
        write_chunks(folder, first=7)
        assert status_of(forked(lambda: not build_index(folder))) == 0
        return content

    monkeypatch.setattr(opening, "compose", compose_slowly)
    index = open_index(folder, [0, 1, 2], wanted=True, may_write=True)
    assert index is not None
    assert not index.mapped
    monkeypatch.undo()
    assert mapped(indexed(folder))
    assert summary_of(folder).parsed == 0
