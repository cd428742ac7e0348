"""A chunk that is written anew while its directory is open gives no wrong frames."""

from __future__ import annotations

import copy
import pickle
import sys
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.errors import (
    CorruptFrameError,
    LockedError,
    MapChangedError,
    MetaFileError,
)
from gulpio2.removal import compact_directory, delete_items
from gulpio2.storage import handles
from gulpio2.storage.handles import HandlePool
from gulpio2.storage.map_file import MapFile

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def grey(level: int) -> list[Any]:
    """Make three frames of a level, all JPEGs of the same length."""
    return [np.full((16, 16, 3), level, np.uint8) for _ in range(3)]


def write(folder: Path, levels: Iterable[tuple[str, int]], flag: str = "wb") -> None:
    """Write a chunk as another program would: by paths, without the directory."""
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open(flag):
        for id_, level in levels:
            chunk.append(id_, {"level": level}, grey(level))


LEVELS = (("a", 0), ("b", 100), ("c", 200))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write three items into a chunk."""
    path = tmp_path / "gulped"
    path.mkdir()
    write(path, LEVELS)
    return path


@pytest.fixture(params=[False, True], ids=["maps", "index"])
def directory(request: Any, folder: Path) -> GulpDirectory:
    """Open it in both ways, with an entry looked at and nothing read."""
    opened = GulpDirectory(folder, indexed=request.param)
    assert len(opened.merged_meta_dict["a"]["frame_info"]) == 3
    return opened


def levels_in(
    source: GulpDirectory | GulpChunk, ids: Iterable[str] = "abc"
) -> list[int]:
    """Read the last frame of each; JPEG may be off by a level."""
    return [round(int(source.read_clip(id_)[2, 0, 0, 0]), -1) for id_ in ids]


OTHERS = {
    "in another order": (LEVELS[::-1], "the frames of item 'a' are others, or else"),
    "of the same sizes": (
        [("a", 200), ("b", 100), ("c", 0)],
        "the frames of item 'a' are others",
    ),
    "of other items": (
        [("d", 0), ("e", 90), ("f", 70)],
        "item 'a' is not in it any mo",
    ),
}


@pytest.mark.parametrize(("others", "why"), OTHERS.values(), ids=OTHERS)
def test_frames_of_a_chunk_that_was_written_anew_are_refused(
    directory, folder, others, why
):
    write(folder, others)
    for _ in range(2):  # and again, though it is not compared again
        for read in (directory.read_clip, directory.read_frames, directory.__getitem__):
            with pytest.raises(MetaFileError, match=why) as raised:
                read("b")
    assert "Open the directory again" in str(raised.value)
    ids = "".join(id_ for id_, _ in others)
    assert levels_in(GulpDirectory(folder), ids) == [level for _, level in others]


def test_a_data_file_that_is_open_stays_what_it_was(directory, folder):
    assert levels_in(directory) == [0, 100, 200]
    write(folder, LEVELS[::-1])
    assert levels_in(directory) == [0, 100, 200]
    assert directory.merged_meta_dict["c"]["meta_data"] == [{"level": 200}]


def test_a_directory_that_was_closed_reads_its_index_anew(folder):
    directory = GulpDirectory(folder, indexed=True)
    directory.merged_meta_dict["b"]["meta_data"][0]["mine"] = True
    assert len(directory.merged_meta_dict["a"]["frame_info"]) == 3
    write(folder, [*LEVELS[::-1], ("a", 50)])
    directory.close()
    # What was only looked at is what the map says now, as what was not looked at.
    assert levels_in(directory, "ac") == [0, 200]
    assert directory.item("a").num_frames == 6
    assert directory.merged_meta_dict["a"]["meta_data"] == [{"level": 0}, {"level": 50}]
    # An edit stays, as whoever made it has to know of it.
    assert directory.merged_meta_dict["b"]["meta_data"][0]["mine"]


def test_maps_that_are_in_memory_are_not_read_again(folder):
    directory = GulpDirectory(folder, indexed=False)
    write(folder, LEVELS[::-1])
    directory.close()
    with pytest.raises(MetaFileError, match="was written anew"):
        directory.read_clip("a")


def test_what_leaves_frames_in_their_places_is_no_matter(directory, folder):
    write(folder, [("d", 30), ("a", 40)], "ab")
    assert levels_in(directory) == [0, 100, 200]
    directory._handles.close()
    delete_items(folder, ["b", "d"])
    assert levels_in(directory) == [0, 100, 200]  # whose frames are still there
    directory._handles.close()
    compact_directory(folder)
    assert levels_in(directory, "ac") == [0, 200]
    assert directory.item("a").num_frames == 3


@pytest.mark.parametrize("others", [("d", "e", "f"), ("a", "e", "f")])
def test_items_that_were_deleted_after_a_chunk_was_written_anew_are_others(
    directory, folder, others
):
    write(folder, zip(others, (200, 100, 0), strict=True))
    delete_items(folder, others)  # whose frames lie where those of a, b and c were
    for id_ in "abc":
        with pytest.raises(MetaFileError, match="item 'a' is not in it any more"):
            directory.read_clip(id_)


def test_what_is_erased_in_one_file_is_not_in_another_of_its_number(
    directory, folder, tmp_path
):
    directory.verify = False
    delete_items(folder, [*"abc"])
    compact_directory(folder)
    (tmp_path / "other").mkdir()
    write(tmp_path / "other", [("d", 0), ("e", 90)])
    for name in ("meta_0.gmeta", "data_0.gulp"):
        (tmp_path / "other" / name).replace(folder / name)
    with pytest.raises(MapChangedError, match="item 'a' is not in it any more"):
        directory.read_clip("a")


def test_a_map_that_is_gone_is_told(directory, folder):
    (folder / "meta_0.gmeta").unlink()
    with pytest.raises(MetaFileError, match="item 'a' is not in it any more"):
        directory.read_clip("a")


def test_what_the_directory_itself_wrote_is_read(directory):
    (chunk,) = directory.chunks()
    with chunk.open("wb"):
        for id_, level in LEVELS[::-1]:
            chunk.append(id_, {}, grey(level + 10))
    directory._handles.close()
    assert levels_in(chunk) == levels_in(directory) == [10, 110, 210]


def half(entry: Any) -> dict[str, Any]:
    """Make an entry of every other frame, as programs do that need no more."""
    return {**entry, "frame_info": list(entry["frame_info"])[::2]}


def edit_entry(chunk: GulpChunk) -> None:
    chunk.meta_dict["b"] = half(chunk.meta_dict["b"])


def edit_in_place(chunk: GulpChunk) -> None:
    entry = chunk.meta_dict["b"]
    entry["frame_info"] = list(entry["frame_info"])[::2]


def add_names(chunk: GulpChunk) -> None:
    for id_ in "ac":
        chunk.meta_dict[f"{id_} again"] = chunk.meta_dict[id_]
    edit_entry(chunk)


def assign_map(chunk: GulpChunk) -> None:
    chunk.meta_dict = {id_: half(chunk.meta_dict[id_]) for id_ in "abc"}  # type: ignore[assignment]  # as programs do


EDITS = pytest.mark.parametrize(
    "edit", [edit_entry, edit_in_place, add_names, assign_map]
)


def append(chunk: GulpChunk) -> None:
    with chunk.open("ab"):
        chunk.append("d", {}, grey(40))


@EDITS
@pytest.mark.parametrize("by", ["nobody", "itself", "another"])
@pytest.mark.parametrize("first", ["the edit", "the other"])
def test_what_a_program_has_edited_is_no_chunk_written_anew(
    directory, folder, edit, by, first
):
    (chunk,) = directory.chunks()
    if first == "the edit" and by != "itself":  # which writes what was edited
        edit(chunk)
    if by == "itself":
        append(chunk)
    elif by == "another":
        append(of_its_own(folder))
    if first == "the other" or by == "itself":
        edit(chunk)
    frames, meta = directory["b"]
    assert [round(int(frame[0, 0, 0]), -1) for frame in frames] == [100, 100]
    assert meta == {"level": 100}
    assert [len(frames) for frames, _ in chunk][:2] in ([3, 2], [2, 2])


@EDITS
@pytest.mark.parametrize(
    "again", [copy.deepcopy, lambda source: pickle.loads(pickle.dumps(source))]
)
def test_what_was_edited_after_an_append_is_read_in_a_copy(directory, edit, again):
    (chunk,) = directory.chunks()
    append(chunk)
    edit(chunk)
    frames, _ = again(directory)["b"]
    assert [round(int(frame[0, 0, 0]), -1) for frame in frames] == [100, 100]


@EDITS
def test_what_was_edited_after_an_append_is_not_read_of_another_chunk(
    directory, folder, edit
):
    (chunk,) = directory.chunks()
    append(chunk)
    edit(chunk)
    sent = pickle.dumps(directory)
    write(folder, LEVELS[::-1])
    for source in (sent, pickle.dumps(directory)):
        with pytest.raises(MapChangedError, match="was written anew"):
            pickle.loads(source).read_frames("b")


@EDITS
@pytest.mark.parametrize("appended", [False, True])
def test_a_chunk_that_was_edited_and_written_anew_is_told(
    directory, folder, edit, appended
):
    (chunk,) = directory.chunks()
    if appended:
        append(chunk)
    edit(chunk)
    write(folder, LEVELS[::-1])
    for _ in range(2):
        with pytest.raises(MapChangedError, match="was written anew"):
            directory.read_frames("b")
        directory.close()  # the index is that of the new map then


@pytest.mark.parametrize("appended", [False, True])
def test_no_map_is_parsed_again_to_open_a_data_file(directory, monkeypatch, appended):
    (chunk,) = directory.chunks()
    if appended:
        append(chunk)
    parsed = []

    def noted(self, data):
        parsed.append(data)
        return parse(self, data)

    parse = MapFile.parse
    monkeypatch.setattr(MapFile, "parse", noted)
    for _ in range(2):
        directory._handles.close()
        assert levels_in(directory) == [0, 100, 200]
    assert parsed == []


@pytest.mark.parametrize("indexed", [False, True])
def test_it_is_noticed_in_another_process_too(folder, indexed):
    directory = pickle.loads(pickle.dumps(GulpDirectory(folder, indexed=indexed)))
    write(folder, LEVELS[::-1])
    with pytest.raises(MetaFileError, match="was written anew"):
        directory.read_clip("a")


def test_a_chunk_that_outlives_its_directory_is_read(folder):
    (chunk,) = GulpDirectory(folder).chunks()
    assert levels_in(chunk) == [0, 100, 200]


def of_it(source: GulpDirectory) -> GulpDirectory:
    return source


def of_a_view(source: GulpDirectory) -> Any:
    return source.view(["a", "c"])


@pytest.mark.parametrize("of", [of_it, of_a_view])
@pytest.mark.parametrize("again", [pickle.dumps, copy.deepcopy])
def test_an_entry_that_was_edited_is_not_taken_for_one_of_another_map(
    directory, folder, of, again
):
    directory.verify = False
    directory.merged_meta_dict["a"]["meta_data"][0]["mine"] = 1
    source = of(directory)
    same = pickle.loads(pickle.dumps(source))
    assert same["a"][1] == {"level": 0, "mine": 1}
    write(folder, [("d", 40)], "ab")
    more = pickle.loads(pickle.dumps(source))
    assert more["a"][1] == {"level": 0, "mine": 1}
    write(folder, LEVELS[::-1])
    other = again(source)
    if again is pickle.dumps:
        other = pickle.loads(other)
    for _ in range(2):
        with pytest.raises(MapChangedError, match="frames of item 'a' are others"):
            other.read_clip("a")


@pytest.mark.parametrize("of", [of_it, of_a_view])
def test_an_entry_that_was_only_looked_at_does_not_travel(folder, of):
    directory = GulpDirectory(folder, indexed=True, verify=False)
    assert directory.merged_meta_dict["a"]
    source = of(directory)
    write(folder, LEVELS[::-1])
    assert levels_in(pickle.loads(pickle.dumps(source)), "ac") == [0, 200]


def test_a_view_of_maps_travels_without_what_they_said_before(folder):
    view = GulpDirectory(folder, indexed=False, verify=False).view(["a", "c"])
    write(folder, LEVELS[::-1])
    assert levels_in(pickle.loads(pickle.dumps(view)), "ac") == [0, 200]


def test_an_edited_entry_is_not_used_with_an_index_of_other_maps(folder):
    directory = GulpDirectory(folder, indexed=True, verify=False)
    directory.merged_meta_dict["a"]["meta_data"][0]["mine"] = 1
    write(folder, [("d", 40)], "ab")
    directory.close()
    assert levels_in(directory) == [0, 100, 200]
    assert directory["a"][1] == {"level": 0, "mine": 1}
    write(folder, LEVELS[::-1])
    directory.close()
    with pytest.raises(MapChangedError, match="frames of item 'a' are others"):
        directory.read_clip("a")


def test_a_chunk_that_was_appended_to_is_not_used_with_an_index_of_other_maps(folder):
    directory = GulpDirectory(folder, indexed=True, verify=False)
    chunk = directory.chunk_objs_lookup[0]
    with chunk.open("ab"):
        chunk.append("d", {}, grey(40))
    assert levels_in(chunk, "abcd") == [0, 100, 200, 40]
    write(folder, LEVELS[::-1])
    directory.close()
    with pytest.raises(MapChangedError, match="frames of item 'a' are others"):
        directory.read_clip("a")


def of_its_own(folder: Path) -> GulpChunk:
    return GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")


def unpickled(folder: Path) -> GulpChunk:
    chunk: GulpChunk = pickle.loads(pickle.dumps(of_its_own(folder)))
    return chunk


def unpickled_of_a_directory(folder: Path) -> GulpChunk:
    chunks = list(GulpDirectory(folder, indexed=False).chunks())
    chunk: GulpChunk = pickle.loads(pickle.dumps(chunks))[0]
    return chunk


def unpickled_of_an_index(folder: Path) -> GulpChunk:
    directory = GulpDirectory(folder, indexed=True)
    (chunk,) = directory.chunks()
    for _ in range(2):  # and from there to another process
        chunk = pickle.loads(pickle.dumps(chunk))
    return chunk


def that_outlives_its_directory(folder: Path) -> GulpChunk:
    return next(iter(GulpDirectory(folder, indexed=False)))


def that_outlives_its_index(folder: Path) -> GulpChunk:
    return next(iter(GulpDirectory(folder, indexed=True)))


def that_outlives_its_view(folder: Path) -> GulpChunk:
    (chunk,) = GulpDirectory(folder).query("level >= 0").chunks()
    return chunk


def unpickled_of_a_view(folder: Path) -> GulpChunk:
    view = GulpDirectory(folder).view(["c", "b", "a"])
    (chunk,) = view.chunks()
    read: GulpChunk = pickle.loads(pickle.dumps(chunk))
    return read


def copied_of_one_that_outlives_its_view(folder: Path) -> GulpChunk:
    return copy.copy(that_outlives_its_view(folder))


def unpickled_of_one_that_outlives_its_index(folder: Path) -> GulpChunk:
    chunk = copy.copy(that_outlives_its_index(folder))
    read: GulpChunk = pickle.loads(pickle.dumps(chunk))
    return read


@pytest.mark.parametrize(
    "give",
    [
        of_its_own,
        unpickled,
        unpickled_of_a_directory,
        unpickled_of_an_index,
        unpickled_of_a_view,
        that_outlives_its_directory,
        that_outlives_its_index,
        that_outlives_its_view,
        copied_of_one_that_outlives_its_view,
        unpickled_of_one_that_outlives_its_index,
    ],
)
def test_a_chunk_without_its_directory_gives_no_frames_of_others(folder, give):
    chunk = give(folder)
    in_between = give(folder)
    assert levels_in(in_between) == [0, 100, 200]
    write(folder, LEVELS[::-1])
    item = chunk.item("b")
    for read in (
        lambda: chunk.read_clip("b"),
        lambda: chunk["b", 0],
        lambda: item.read_frames(None),
    ):
        with pytest.raises(MetaFileError, match=r"frames of item '[ac]' are others"):
            read()
    with pytest.raises(MetaFileError, match="Open the chunk again"):
        next(iter(chunk))
    assert levels_in(in_between) == [0, 100, 200]  # its file is still open
    assert levels_in(give(folder)) == [0, 100, 200]
    chunk.meta_dict = chunk._get_or_create_dict()  # as programs do for 0.0.4
    assert levels_in(chunk) == [0, 100, 200]


def test_a_chunk_without_its_directory_sees_what_is_no_matter(folder):
    chunk = of_its_own(folder)
    write(folder, [("d", 30), ("a", 40)], "ab")
    chunk.meta_dict["mine"] = chunk.meta_dict["b"]
    assert levels_in(chunk, ["a", "b", "mine"]) == [0, 100, 100]
    del chunk.meta_dict["mine"]
    chunk._handles.close()
    delete_items(folder, ["b"])
    compact_directory(folder)
    assert levels_in(chunk, "ac") == [0, 200]
    with chunk.open("ab"):
        chunk.append("e", {}, grey(60))
    assert levels_in(chunk, "ace") == [0, 200, 60]
    with chunk.open("wb"):
        chunk.append("c", {}, grey(90))
    assert levels_in(chunk, "c") == [90]
    (folder / "meta_0.gmeta").unlink()
    chunk._handles.close()
    with pytest.raises(MetaFileError, match="item 'c' is not in it any more"):
        chunk.read_clip("c")


def test_a_chunk_of_other_names_is_compared_too(tmp_path):
    paths = tmp_path / "frames.bin", tmp_path / "map.json"
    for levels in ((0, 100), (100, 0)):
        writer, reader = GulpChunk(*paths), GulpChunk(*paths)
        with writer.open("wb"):
            for id_, level in zip("ab", levels, strict=True):
                writer.append(id_, {}, grey(level))
    with pytest.raises(MetaFileError, match="the frames of item 'a' are others"):
        reader.read_clip("a")
    with writer.open("wb"):
        writer.append("c", {}, grey(0))
    with pytest.raises(MetaFileError, match="item 'a' is not in it any more"):
        reader.read_clip("a")


@pytest.mark.parametrize("is_elsewhere", [False, True], ids=["here", "elsewhere"])
def test_a_chunk_that_was_made_new_is_compared_too(tmp_path, directory, is_elsewhere):
    if is_elsewhere:
        directory.output_dir = tmp_path / "other"
        directory.output_dir.mkdir()
    (chunk,) = directory.new_chunks(1)
    writer = GulpChunk(chunk.data_file_path, chunk.meta_file_path)
    for each, levels in ((chunk, (0, 100)), (writer, (100, 0))):
        with each.open("wb"):
            for id_, level in zip("de", levels, strict=True):
                each.append(id_, {}, grey(level))
    with pytest.raises(MetaFileError, match="the frames of item 'd' are others"):
        chunk.read_clip("d")
    assert levels_in(directory) == [0, 100, 200]


def test_a_chunk_elsewhere_is_none_of_the_directory(tmp_path, folder, directory):
    directory.output_dir = tmp_path / "other"
    directory.output_dir.mkdir()
    (chunk,) = directory.new_chunks(1)
    with chunk.open("wb"):
        chunk.append("d", {}, grey(50))
    write(folder, LEVELS[::-1])  # which has the same number
    assert levels_in(chunk, "d") == [50]
    with pytest.raises(MapChangedError):
        directory.read_clip("a")


def test_a_chunk_that_a_program_has_taken_out_is_compared_too(folder, directory):
    chunk = directory.chunk_objs_lookup.pop(0)
    write(folder, LEVELS[::-1])
    with pytest.raises(MetaFileError, match=r"frames of item '[ac]' are others"):
        chunk.read_clip("a")


def test_chunks_may_be_added_while_another_thread_opens_a_file(folder):
    pool = HandlePool()

    def add() -> list[GulpChunk]:
        paths = folder / "data_0.gulp", folder / "meta_0.gmeta"
        return [
            GulpChunk(*paths, handles=pool, meta_dict=OrderedDict())
            for _ in range(2000)
        ]

    chunks = add()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(1) as threads:
            more = threads.submit(add)
            while not more.done():
                assert pool.on_open is not None
                pool.on_open("elsewhere", -1)
            assert len(chunks) == len(more.result())
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("is_alone", [False, True], ids=["directory", "chunk"])
def test_a_data_file_that_is_replaced_while_it_is_opened_is_opened_again(
    folder, directory, monkeypatch, is_alone
):
    paths = folder / "data_0.gulp", folder / "meta_0.gmeta"
    source = GulpChunk(*paths) if is_alone else directory
    really_open = handles._open
    opened: list[str] = []

    def open_meanwhile(path: str) -> Any:
        handle = really_open(path)
        if not opened:
            write(folder, LEVELS)  # whose map says what was read
        opened.append(path)
        return handle

    monkeypatch.setattr(handles, "_open", open_meanwhile)
    write(folder, LEVELS[::-1])
    assert levels_in(source) == [0, 100, 200]
    assert len(opened) > 1


@pytest.mark.parametrize("is_compacted", [False, True])
@pytest.mark.parametrize("is_alone", [False, True], ids=["directory", "chunk"])
def test_an_item_that_was_deleted_and_stored_again_is_no_hindrance_to_others(
    folder, directory, is_alone, is_compacted
):
    paths = folder / "data_0.gulp", folder / "meta_0.gmeta"
    source = GulpChunk(*paths) if is_alone else directory
    delete_items(folder, ["b"])
    if is_compacted:
        compact_directory(folder)
    write(folder, [("b", 50)], "ab")
    assert levels_in(source, "ac") == [0, 200]
    if is_compacted:
        with pytest.raises(CorruptFrameError, match="It is zeros"):
            source.read_clip("b")
    else:
        assert levels_in(source, "b") == [100]
    assert levels_in(GulpDirectory(folder)) == [0, 50, 200]


def test_a_data_file_that_is_replaced_again_and_again_is_not_opened_for_ever(tmp_path):
    path = tmp_path / "data_0.gulp"
    path.write_bytes(b"abcd")
    pool, looked = HandlePool(), []

    def never(path: str, fd: int) -> bool:
        looked.append(fd)
        assert len(looked) < 100
        return False

    pool.on_open = never
    with pytest.raises(LockedError, match=r"data_0.gulp is written anew again and"):
        pool.read_at(str(path), 0, 4)
    pool.on_open = None
    assert pool.read_at(str(path), 0, 4) == b"abcd"
