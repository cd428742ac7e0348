"""A directory: items over all chunks, by id."""

from __future__ import annotations

import itertools
import json
import logging
import os
import pickle
import resource
import shutil
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gulpio2 import GulpChunk, GulpDirectory, GulpIngestor
from gulpio2.adapters.duplicates import remove_entries_with_duplicate_ids
from gulpio2.codecs.jpeg import EncoderSettings, encode_frame, jpeg_bytes_to_img
from gulpio2.errors import (
    ChunkMismatchError,
    DuplicateIdError,
    FrameIndexError,
    FrameTimeError,
    ItemNotFoundError,
    MetaFileError,
    StorageNotFoundError,
    UnknownVersionError,
)
from gulpio2.format.checked_json import dump_checked, load_checked
from gulpio2.format.layout import MANIFEST_NAME
from gulpio2.format.manifest import Manifest, Run, dump_manifest
from gulpio2.merge import merge_directories
from gulpio2.removal import compact_directory, delete_items
from gulpio2.repair import repair_directory
from gulpio2.sanity import check_directory
from gulpio2.storage.index.keeping import build_index
from gulpio2.testing import FrameAdapter, make_frames, make_gulp_directory
from tests.chunks import open_files

if TYPE_CHECKING:
    from pathlib import Path

JPEGS = [encode_frame(frame, EncoderSettings()) for frame in make_frames(4)]


def write_chunk(folder: Path, number: int, *ids: Any) -> None:
    """Write a chunk of items of one frame."""
    folder.mkdir(exist_ok=True)
    chunk = GulpChunk(folder / f"data_{number}.gulp", folder / f"meta_{number}.gmeta")
    with chunk.open("wb"):
        for id_ in ids:
            chunk.append(id_, {"id": id_}, JPEGS[:1])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write four items of six frames in two chunks."""
    make_gulp_directory(tmp_path / "out").close()
    return tmp_path / "out"


# --- opening ------------------------------------------------------------------------


@pytest.mark.parametrize("exists", [False, True])
def test_a_missing_or_empty_folder_holds_nothing_and_nothing_is_made(tmp_path, exists):
    path = tmp_path / "new"
    if exists:
        path.mkdir()
    directory = GulpDirectory(path)
    assert (len(directory), directory.num_chunks) == (0, 0)
    assert list(directory) == list(directory.chunks()) == []
    assert directory.merged_meta_dict == directory.chunk_lookup == {}
    assert directory.all_meta_dicts == []
    assert path.exists() == exists


def test_a_folder_that_does_not_exist_is_warned_of_once(tmp_path, caplog):
    (tmp_path / "empty").mkdir()
    GulpDirectory(tmp_path / "empty")
    assert caplog.records == []
    directory = GulpDirectory(str(tmp_path / "typo"))
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("gulpio2.directory", "WARNING")
    assert f"there is no folder {tmp_path / 'typo'}: " in record.getMessage()
    assert len(pickle.loads(pickle.dumps(directory))) == 0
    assert len(caplog.records) == 1


def test_a_folder_that_is_gone_when_its_index_is_opened_again_is_warned_of(
    tmp_path, caplog
):
    make_gulp_directory(tmp_path / "here").close()
    data = pickle.dumps(GulpDirectory(tmp_path / "here", indexed=True))
    (tmp_path / "here").rename(tmp_path / "there")
    caplog.clear()
    assert len(pickle.loads(data)) == 0
    assert [record.getMessage() for record in caplog.records] == [
        f"there is no folder {tmp_path / 'here'}: it is taken for an empty gulp "
        "directory. Check the path if it should hold items"
    ]


@pytest.mark.parametrize("num_workers", [1, 2])
def test_a_folder_that_is_yet_to_be_made_is_not_warned_of(
    tmp_path, caplog, num_workers
):
    adapter = FrameAdapter(num_items=2)
    GulpIngestor(adapter, tmp_path / "one", 1, num_workers).run()
    GulpIngestor(adapter, tmp_path / "two", 1, num_workers)()
    ids = [{"id": 1}]
    assert remove_entries_with_duplicate_ids(tmp_path / "three", ids) == ids
    parts = [tmp_path / "one"]
    assert merge_directories(parts, tmp_path / "four").items == 2
    assert [record.getMessage() for record in caplog.records] == []


@pytest.mark.parametrize(
    "form",
    [
        str,
        lambda path: path,
        lambda path: f"{path}/",
        lambda path: os.path.relpath(path),
    ],
    ids=["str", "Path", "trailing slash", "relative"],
)
def test_the_folder_is_named_in_any_form_and_kept_as_given(folder, form):
    given = form(folder)
    directory = GulpDirectory(given)
    assert directory.output_dir is given
    assert len(directory["item1"][0]) == 6


def test_a_relative_folder_may_not_be_this_one(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert len(GulpDirectory(".")) == 4
    monkeypatch.chdir(folder.parent)
    assert len(GulpDirectory("out")) == 4


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("given", [".", "./", "./inner", "../out", "../out/./inner/"])
def test_paths_of_chunks_begin_with_the_folder_as_it_is_given(
    folder, monkeypatch, given, indexed
):
    (folder / "inner").mkdir()
    for file in (*folder.glob("data_*"), *folder.glob("meta_*")):
        shutil.copy(file, folder / "inner")
    monkeypatch.chdir(folder)
    with GulpDirectory(given, indexed=indexed) as directory:
        chunks = [*directory.chunks(), next(directory.new_chunks(1))]
        prefix = given if given.endswith("/") else f"{given}/"
        for number, chunk in enumerate(chunks):
            assert chunk.data_file_path == f"{prefix}data_{number}.gulp"
            assert chunk.meta_file_path == f"{prefix}meta_{number}.gmeta"
        assert len(directory["item1"][0]) == len(chunks[0]["item1"][0]) == 6


def test_names_with_wildcards_are_taken_literally(tmp_path):
    for name in ("g[1]", "g*", "g?", " g", "ü"):
        write_chunk(tmp_path / name, 0, "a")
        assert list(GulpDirectory(tmp_path / name).chunk_lookup) == ["a"]


def test_opening_reads_maps_and_opens_no_data_file(folder, tmp_path):
    for path in folder.glob("*.gulp"):
        path.write_bytes(b"")
    directory = GulpDirectory(folder)
    assert len(directory) == 4
    assert open_files(tmp_path) == []


def test_an_empty_path_is_refused_and_a_dot_is_the_current_folder(folder, monkeypatch):
    monkeypatch.chdir(folder)
    with pytest.raises(ValueError, match=r"output_dir is '', which is empty; .*'\.'"):
        GulpDirectory("")
    assert len(GulpDirectory(".")) == 4


def test_the_attributes_are_those_of_the_original(folder):
    directory = GulpDirectory(folder)
    assert directory.jpeg_decoder is jpeg_bytes_to_img
    lookup = directory.chunk_objs_lookup
    assert isinstance(lookup, OrderedDict)
    assert list(lookup) == [0, 1]
    assert all(isinstance(chunk, GulpChunk) for chunk in lookup.values())
    assert directory.num_chunks == 2
    assert directory.chunk_lookup == {"item0": 0, "item1": 0, "item2": 1, "item3": 1}
    assert directory.all_meta_dicts == [chunk.meta_dict for chunk in lookup.values()]
    assert type(directory.merged_meta_dict) is dict
    assert list(directory.merged_meta_dict) == ["item0", "item1", "item2", "item3"]


def test_the_maps_are_shared_and_changes_in_them_are_read(folder):
    directory = GulpDirectory(folder)
    entry = directory.merged_meta_dict["item2"]
    assert entry is directory.chunk_objs_lookup[1].meta_dict["item2"]
    entry["meta_data"][0]["new"] = "x"
    del entry["meta_data"][0]["number"]
    assert directory["item2"][1] == {"new": "x"}


@pytest.mark.parametrize("indexed", [False, True])
def test_appended_items_show_in_the_mappings_that_the_docstring_says(folder, indexed):
    directory = GulpDirectory(folder, indexed=indexed)
    before = [*directory.all_meta_dicts]
    chunk = directory.chunk_objs_lookup[0]
    with chunk.open("ab"):
        chunk.append("new", {}, JPEGS[:1])
        assert ("new" in directory.all_meta_dicts[0]) is not indexed
    assert all(a is b for a, b in zip(directory.all_meta_dicts, before, strict=True))
    assert ("new" in before[0]) is not indexed
    assert (chunk.meta_dict is before[0]) is not indexed
    assert before[0]["item0"] is chunk.meta_dict["item0"]
    assert "new" not in directory.merged_meta_dict
    assert "new" not in directory
    with directory.chunk_objs_lookup[1].open("wb"):
        pass
    assert list(before[1]) == ["item2", "item3"]
    again = GulpDirectory(folder, indexed=indexed)
    assert list(again.all_meta_dicts[0]) == ["item0", "item1", "new"]
    assert "new" in again.merged_meta_dict


def test_chunks_are_in_the_order_of_their_numbers(tmp_path):
    for number in (10, 2, 0, 11, 1):
        write_chunk(tmp_path, number, f"i{number}")
    directory = GulpDirectory(tmp_path)
    assert list(directory.chunk_objs_lookup) == [0, 1, 2, 10, 11]
    assert list(directory.merged_meta_dict) == ["i0", "i1", "i2", "i10", "i11"]
    assert [next(iter(chunk.meta_dict)) for chunk in directory] == [
        "i0", "i1", "i2", "i10", "i11",
    ]  # fmt: skip


def test_chunks_are_iterated_afresh_each_time(folder):
    directory = GulpDirectory(folder)
    one, two = directory.chunks(), iter(directory)
    assert next(one) is next(two) is directory.chunk_objs_lookup[0]
    assert len(list(one)) == len(list(two)) == 1
    assert len(list(directory)) == 2


def test_membership_and_length_are_those_of_the_items(folder):
    write_chunk(folder, 2, 7)
    directory = GulpDirectory(folder)
    assert len(directory) == 5
    assert 7 in directory
    assert "7" in directory
    assert "item0" in directory
    assert 8 not in directory
    assert None not in directory


# --- damage -------------------------------------------------------------------------


def test_a_data_file_without_map_is_left_out_with_a_warning(folder, caplog):
    (folder / "meta_1.gmeta").unlink()
    with caplog.at_level(logging.WARNING, "gulpio2"):
        directory = GulpDirectory(folder)
    assert list(directory.merged_meta_dict) == ["item0", "item1"]
    (record,) = caplog.records
    assert record.getMessage().startswith(f"{folder / 'data_1.gulp'} has no map and is")
    assert [chunk.data_file_path for chunk in directory.new_chunks(1)] == [
        str(folder / "data_2.gulp")
    ]
    assert list(directory.new_chunks(0)) == []
    wrong: Any
    for wrong, error in ((None, TypeError), (1.5, TypeError), (-1, ValueError)):
        with pytest.raises(error, match=f"total_new_chunks is {wrong}, expected"):
            list(directory.new_chunks(wrong))


def test_a_map_without_data_file_is_refused_and_named(folder):
    (folder / "data_0.gulp").unlink()
    message = rf"{folder}/meta_0\.gmeta has no data_0\.gulp: the frames are missing"
    with pytest.raises(ChunkMismatchError, match=message):
        GulpDirectory(folder)
    with pytest.raises(AssertionError):
        GulpDirectory(folder)


@pytest.mark.parametrize("indexed", [None, True, False])
def test_a_map_that_is_a_link_to_nowhere_is_refused_and_named(folder, indexed):
    map_ = folder / "meta_1.gmeta"
    elsewhere = folder.parent / "elsewhere"
    map_.rename(elsewhere)
    map_.symlink_to(elsewhere)
    wanted = list(GulpDirectory(folder, indexed=indexed).merged_meta_dict)
    assert "item2" in wanted
    elsewhere.rename(folder.parent / "moved")
    with pytest.raises(
        StorageNotFoundError, match=rf"{map_} is a link to {elsewhere}, which is not"
    ):
        GulpDirectory(folder, indexed=indexed)


def test_an_id_in_two_chunks_is_refused_and_named(folder):
    for suffix in ("data_{}.gulp", "meta_{}.gmeta"):
        shutil.copy(folder / suffix.format(1), folder / suffix.format(12))
    message = r"item 'item2' is in data_1\.gulp and in data_12\.gulp of .*gulp2 check"
    with pytest.raises(DuplicateIdError, match=message):
        GulpDirectory(folder)
    with pytest.raises(AssertionError):
        GulpDirectory(folder)


def test_a_damaged_map_is_refused_and_named(folder):
    (folder / "meta_1.gmeta").write_bytes(b"")
    with pytest.raises(
        MetaFileError, match=r"meta_1\.gmeta: 0 bytes that are not JSON"
    ):
        GulpDirectory(folder)


def test_other_files_are_passed_over(folder):
    for name in ("data_00.gulp", "data.gulp", "notes.txt", "data_5.gulp.0a.partial"):
        (folder / name).write_bytes(b"x")
    (folder / "sub").mkdir()
    assert len(GulpDirectory(folder)) == 4


@pytest.mark.parametrize("rename", [str.upper, lambda n: n.replace("_", "_0")])
def test_chunks_of_other_names_are_named_in_a_warning(folder, caplog, rename):
    for name in sorted(path.name for path in folder.iterdir()):
        (folder / name).rename(folder / rename(name))
    first = min(path.name for path in folder.iterdir())
    assert len(GulpDirectory(folder)) == 0
    (record,) = caplog.records
    assert f"{folder}: {first} and " in record.message
    assert "N without leading zeros: rename" in record.message


def test_what_macos_puts_beside_files_is_no_chunk(folder, caplog):
    for name in ("._data_0.gulp", "._meta_0.gmeta", ".DS_Store"):
        (folder / name).write_bytes(b"x")
    assert len(GulpDirectory(folder)) == 4
    assert caplog.records == []
    assert check_directory(folder).problems == []


# --- reading ------------------------------------------------------------------------


def test_each_verb_reads_from_the_right_chunk(folder):
    directory = GulpDirectory(folder)
    for number, chunk in directory.chunk_objs_lookup.items():
        for id_ in (f"item{2 * number}", f"item{2 * number + 1}"):
            frames, meta = directory[id_, 1:5:2]
            expected = np.stack(chunk[id_, [1, 3]][0])
            assert meta == {"number": int(id_[4:])}
            assert np.array_equal(np.stack(frames), expected)
            assert np.array_equal(directory.read_clip(id_, [1, 3]), expected)
            again, _ = directory.read_frames(id_, [1, 3])
            assert np.array_equal(np.stack(again), expected)
            assert directory.read_jpegs(id_) == chunk.read_jpegs(id_)
            assert directory.item(id_).num_frames == 6


def test_a_clip_goes_into_the_callers_array(folder):
    directory = GulpDirectory(folder)
    out = np.zeros((6, 24, 32, 3), np.uint8)
    assert directory.read_clip("item3", out=out) is out
    assert np.array_equal(out, np.stack(directory["item3"][0]))


@pytest.mark.parametrize("read", ["read_frames", "read_clip", "read_jpegs", "item"])
def test_an_unknown_id_is_a_key_error_that_says_where(folder, read):
    directory = GulpDirectory(folder)
    message = rf"no item '9' in {folder} \(4 items; `gulp2 ls` lists them\)"
    with pytest.raises(ItemNotFoundError, match=message):
        getattr(directory, read)(9)
    with pytest.raises(KeyError):
        directory[9]


def test_one_item_is_called_one(tmp_path):
    make_gulp_directory(tmp_path, num_items=1, num_frames=1).close()
    directory = GulpDirectory(tmp_path)
    for ask in (directory.item, lambda id_: directory.view([id_])):
        with pytest.raises(ItemNotFoundError, match=r"\(1 item; `gulp2 ls` lists"):
            ask("9")


def test_items_without_times_are_not_read_by_time(folder):
    with pytest.raises(FrameTimeError, match=r"'item0' .* has no presentation times"):
        GulpDirectory(folder).read_frames_at("item0", 0.0)


@pytest.mark.parametrize("element", [1.5, None, ("item0", 0, 1), [0]])
def test_what_names_no_item_is_a_type_error(folder, element):
    with pytest.raises(TypeError, match="cannot look up"):
        GulpDirectory(folder)[element]


def test_the_decoder_goes_to_every_chunk(folder):
    directory = GulpDirectory(folder, jpeg_decoder=len)
    assert directory.jpeg_decoder is len
    frames, _ = directory["item3", 0:2]
    assert frames == [len(jpeg) for jpeg in directory.read_jpegs("item3", slice(0, 2))]
    assert all(chunk.jpeg_decoder is len for chunk in directory.new_chunks(2))


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("sent", [False, True])
def test_a_decoder_that_is_assigned_is_that_of_new_chunks(folder, indexed, sent):
    directory = GulpDirectory(folder, indexed=indexed)
    if sent:
        _ = directory.chunk_objs_lookup[0]
    directory.jpeg_decoder = len
    if sent:
        directory = pickle.loads(pickle.dumps(directory))
    for _ in range(2):  # and once there are objects of the chunks
        assert directory["item1", 0][0][0].shape == (24, 32, 3)
        assert {chunk.jpeg_decoder for chunk in directory} == {jpeg_bytes_to_img}
    assert next(directory.new_chunks(1)).jpeg_decoder is len


def test_an_item_is_read_inside_of_an_iteration_over_its_chunk(folder):
    directory = GulpDirectory(folder)
    seen = []
    for chunk in directory:
        with chunk.open("rb"):
            for frames, meta in chunk:
                again, _ = directory[f"item{meta['number']}"]
                assert np.array_equal(np.stack(frames), np.stack(again))
                other = directory["item0", -1:]
                assert len(other[0]) == 1
                seen.append(meta["number"])
    assert seen == [0, 1, 2, 3]


# --- new chunks ---------------------------------------------------------------------


def test_new_chunks_have_the_next_numbers_and_reserve_nothing(folder):
    directory = GulpDirectory(folder)
    before = sorted(folder.iterdir())
    for _ in range(2):
        chunks = list(directory.new_chunks(2))
        assert [chunk.data_file_path for chunk in chunks] == [
            str(folder / "data_2.gulp"),
            str(folder / "data_3.gulp"),
        ]
        assert [chunk.meta_file_path for chunk in chunks] == [
            str(folder / "meta_2.gmeta"),
            str(folder / "meta_3.gmeta"),
        ]
        assert all(chunk.meta_dict == {} for chunk in chunks)
    assert sorted(folder.iterdir()) == before
    assert list(directory.new_chunks(0)) == []


def test_new_chunks_are_lazy_and_begin_at_0(tmp_path):
    chunks = GulpDirectory(tmp_path / "new").new_chunks(10**9)
    names = [str(chunk.data_file_path) for chunk in itertools.islice(chunks, 2)]
    assert [name[-11:] for name in names] == ["data_0.gulp", "data_1.gulp"]
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("told_by", ["gulp.json", "deleted.json"])
def test_new_chunks_have_no_number_of_one_that_is_lost(tmp_path, told_by):
    folder = tmp_path / "out"
    GulpIngestor(FrameAdapter(num_items=4), folder, videos_per_chunk=2, num_workers=1)()
    if told_by == "deleted.json":
        delete_items(folder, ["item2"])
        (folder / MANIFEST_NAME).unlink()
    for name in ("data_1.gulp", "meta_1.gmeta"):
        (folder / name).unlink()
    found = sorted({problem.code for problem in check_directory(folder).problems})
    (chunk,) = GulpDirectory(folder).new_chunks(1)
    with chunk.open("wb"):
        chunk.append("new", {}, JPEGS)
    assert (folder / "data_2.gulp").exists()
    # Another chunk under its number would cover up the loss.
    assert {problem.code for problem in check_directory(folder).problems} >= {*found}
    assert "missing-chunk" in found or told_by == "deleted.json"


def test_new_chunks_come_after_the_highest_number_there_is(tmp_path):
    write_chunk(tmp_path, 41, "a")
    (chunk,) = GulpDirectory(tmp_path).new_chunks(1)
    with chunk.open("wb"):
        chunk.append("b", {}, JPEGS)
    assert GulpDirectory(tmp_path).chunk_lookup == {"a": 41, "b": 42}


# --- files beside the chunks --------------------------------------------------------


def test_the_labels_are_those_of_the_file(folder):
    directory = GulpDirectory(folder)
    with pytest.raises(FileNotFoundError):
        directory._load_label_dict()
    (folder / "label2idx.json").write_text('{"b": 0, "a": 1}')
    assert list(directory._load_label_dict().items()) == [("b", 0), ("a", 1)]


def test_the_manifest_is_read_when_it_is_asked_for(folder):
    directory = GulpDirectory(folder)
    assert directory.manifest == Manifest()
    assert directory.metainfo == {}
    manifest = Manifest(
        runs=(Run("A", {"x": 1}, {"quality": 90}, "1.0", (0, 1)),),
        metainfo={"classes": ["a"]},
    )
    (folder / "gulp.json").write_bytes(dump_manifest(manifest))
    assert directory.manifest == manifest
    directory.metainfo["classes"] = []
    assert directory.metainfo == {"classes": ["a"]}
    (folder / "gulp.json").write_text(json.dumps({"format": "gulp2"}))
    with pytest.raises(MetaFileError, match=r"gulp\.json: "):
        _ = directory.manifest
    assert len(directory["item0"][0]) == 6, "the frames do not depend on it"


# --- lifetime -----------------------------------------------------------------------


def test_files_are_opened_on_reading_and_closed_with_the_directory(folder, tmp_path):
    with GulpDirectory(folder) as directory:
        for id_ in ("item0", "item3", "item0"):
            directory[id_]
        assert open_files(tmp_path) == [
            str(folder / "data_0.gulp"),
            str(folder / "data_1.gulp"),
        ]
    assert open_files(tmp_path) == []
    assert len(directory["item0"][0]) == 6
    directory.close()
    assert open_files(tmp_path) == []


def test_nothing_stays_open_after_errors_and_without_the_directory(folder, tmp_path):
    directory = GulpDirectory(folder)
    for element in (("item0", [99]), "missing", ("item0", "x")):
        with pytest.raises((FrameIndexError, ItemNotFoundError, TypeError)):
            directory[element]
    assert open_files(tmp_path) == []
    iterator = next(directory.chunks()).iter_all()
    next(iterator)
    del iterator, directory
    assert open_files(tmp_path) == []


def test_no_more_files_are_open_than_the_limit(tmp_path):
    for number in range(140):
        write_chunk(tmp_path, number, f"i{number}")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, before[1]))
    try:
        directory = GulpDirectory(tmp_path)
        for number in range(140):
            directory[f"i{number}"]
        assert len(open_files(tmp_path)) == 128  # an eighth
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_a_directory_says_what_it_is(folder):
    assert repr(GulpDirectory(str(folder))) == (
        f"GulpDirectory({str(folder)!r}, 4 items in 2 chunks)"
    )


def test_an_unknown_id_is_the_argument_of_its_error(tmp_path):
    directory = make_gulp_directory(tmp_path, num_items=2)
    with pytest.raises(KeyError) as caught:
        directory[99]
    assert caught.value.args == ("99",)
    assert str(caught.value).startswith("no item '99' in ")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.args, str(again)) == (caught.value.args, str(caught.value))


def test_a_pickle_of_0_0_4_is_opened_again_from_the_disk(tmp_path):
    make_gulp_directory(tmp_path, num_items=3, num_frames=2)
    directory = GulpDirectory.__new__(GulpDirectory)
    # What its objects hold; of the chunks there is more in a real one.
    directory.__setstate__(
        {
            "output_dir": str(tmp_path),
            "jpeg_decoder": jpeg_bytes_to_img,
            "chunk_objs_lookup": {},
            "chunk_lookup": {"item0": 0},
            "merged_meta_dict": {},
            "all_meta_dicts": [],
            "num_chunks": 1,
        }
    )
    assert len(directory["item1"][0]) == 2
    assert len(pickle.loads(pickle.dumps(directory))) == 3


def _with_version(folder, version):
    body = load_checked(dump_manifest(Manifest()), where="", advice="")
    text = dump_checked({**body, "format_version": version})
    (folder / MANIFEST_NAME).write_bytes(text)


@pytest.mark.parametrize(
    "use",
    [
        GulpDirectory,
        lambda path: delete_items(path, ["item0"]),
        compact_directory,
        build_index,
        lambda path: repair_directory(path, f"{path}-repaired"),
    ],
    ids=["open", "delete", "compact", "index", "repair"],
)
def test_a_directory_of_a_newer_format_is_refused_and_left_as_it_is(tmp_path, use):
    folder = tmp_path / "gulp"
    make_gulp_directory(folder, num_items=2, num_frames=2)
    _with_version(folder, 2)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(
        UnknownVersionError, match=r"format version 2; .* Install a newer"
    ):
        use(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_damaged_manifest_keeps_nobody_from_reading(tmp_path):
    folder = tmp_path / "gulp"
    make_gulp_directory(folder, num_items=2, num_frames=2)
    text = dump_manifest(Manifest()).decode()
    manifest = folder / MANIFEST_NAME
    manifest.write_text(text.replace('"format_version": 1', '"format_version": 3'))
    assert len(GulpDirectory(folder)) == 2


@pytest.mark.parametrize(
    ("names", "warned"),
    [
        (["clip.mp4"], True),
        (["walk/clip.mp4"], True),
        (["label2idx.json"], False),
        (["gulp.json", "notes.txt"], False),
        (["data_0.gulp.abc.partial", "notes.txt"], False),
    ],
    ids=str,
)
def test_a_folder_of_other_things_is_warned_of(tmp_path, caplog, names, warned):
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"{}")
    assert len(GulpDirectory(tmp_path)) == 0
    found = [record.getMessage() for record in caplog.records]
    assert found == warned * [
        f"{tmp_path} holds no chunk, but other files or folders: it is taken for an "
        "empty gulp directory. Check the path if it should hold items"
    ]


def test_a_folder_whose_ingest_has_stored_nothing_yet_is_no_wrong_path(
    tmp_path, caplog
):
    (tmp_path / "ingest.journal").write_bytes(b"{}")
    assert len(GulpDirectory(tmp_path)) == 0
    assert [record.getMessage() for record in caplog.records] == [
        f"{tmp_path} holds no chunk yet: it is taken for an empty gulp directory. An "
        "ingest, a merge or a repair is at work there, or was interrupted"
    ]


def test_the_folder_of_shares_is_told_what_makes_one_directory_of_them(
    tmp_path, caplog
):
    for number in (1, 2):
        (tmp_path / f"shard_{number}_of_2").mkdir()
    assert len(GulpDirectory(tmp_path)) == 0
    (record,) = caplog.records
    assert record.getMessage().endswith(
        "It holds shares of an ingest, from shard_1_of_2 to shard_2_of_2: `gulp2 "
        "merge` makes one directory"
    )


@pytest.mark.parametrize("indexed", [False, True])
def test_another_folder_that_is_assigned_is_that_of_new_chunks_only(tmp_path, indexed):
    one, other = tmp_path / "one", tmp_path / "other"
    make_gulp_directory(one, num_items=4, num_frames=2, items_per_chunk=2)
    make_gulp_directory(other, num_items=1, num_frames=1)
    with GulpDirectory(one, indexed=indexed) as directory:
        expected = directory.read_clip("item3")
        directory.output_dir = other
        np.testing.assert_array_equal(directory.read_clip("item3"), expected)
        (part,) = directory.view(["item3"])
        assert part.data_file_path == str(one / "data_1.gulp")
        np.testing.assert_array_equal(part.read_clip("item3"), expected)
        (new,) = directory.new_chunks(1)
        assert new.data_file_path == str(other / "data_1.gulp")
        copy = pickle.loads(pickle.dumps(directory))
        assert copy.output_dir == other
        np.testing.assert_array_equal(copy.read_clip("item3"), expected)
        assert len(copy.query("number >= 0")) == 4


@pytest.mark.parametrize("indexed", [True, False])
def test_opening_tells_how_far_it_has_come(tmp_path, indexed):
    make_gulp_directory(tmp_path / "out", num_items=5, items_per_chunk=2).close()
    told: list[tuple[int, int]] = []

    def progress(*, items=0, frames=0, num_bytes=0, failures=0):
        told.append((items, num_bytes))

    GulpDirectory(tmp_path / "out", indexed=indexed, progress=progress).close()
    maps = sorted((tmp_path / "out").glob("*.gmeta"))
    assert told == [
        (items, path.stat().st_size)
        for items, path in zip([2, 2, 1], maps, strict=True)
    ]
    told.clear()
    GulpDirectory(tmp_path / "out", indexed=True, progress=progress).close()
    assert (told == []) == indexed, "an index that is there is not looked through"
