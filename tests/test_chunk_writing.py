"""Writing a chunk: all of it or nothing, and the bytes that the format asks for."""

from __future__ import annotations

import datetime
import json
import pickle
import pickletools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gulpio2 import ChunkWriter, GulpChunk
from gulpio2.errors import (
    AdapterContractError,
    ChunkMismatchError,
    StorageError,
)
from gulpio2.format.checksum import crc32_of
from gulpio2.format.entry import entry_check
from gulpio2.sanity import check_directory
from gulpio2.serializers import AbstractSerializer, JSONSerializer, pickle_serializer
from gulpio2.testing import make_frames
from tests.chunks import JPEGS, BrokenError, Timed, content, entry_of, new_chunk, write

if TYPE_CHECKING:
    from collections.abc import Iterator


def broken_after(num_frames: int) -> Iterator[bytes]:
    """Yield some frames, then fail."""
    yield from JPEGS[:num_frames]
    raise BrokenError("the source ends here")


# --- bytes --------------------------------------------------------------------------


def test_two_items_are_these_bytes(tmp_path):
    short = b"\xff\xd8\xff\xfe\0\x03c" + JPEGS[0][2:]  # one byte longer than a JPEG
    write(tmp_path, (7, {"label": "ü"}, [JPEGS[0], short]), ("b", {}, []))
    pads = [-len(JPEGS[0]) % 4, -len(short) % 4]
    lengths = [len(JPEGS[0]) + pads[0], len(short) + pads[1]]
    assert (tmp_path / "data_0.gulp").read_bytes() == (
        JPEGS[0] + b"\0" * pads[0]  # the first record
        + short + b"\0" * pads[1]  # the second one
    )  # fmt: skip
    meta = (tmp_path / "meta_0.gmeta").read_text()
    beginning = (
        f'{{"7": {{"frame_info": [[0, {pads[0]}, {lengths[0]}], '
        f"[{lengths[0]}, {pads[1]}, {lengths[1]}]], "
        '"meta_data": [{"label": "\\u00fc"}], "gulp2": {"crc32": "'
    )
    assert meta.startswith(beginning)
    assert '"b": {"frame_info": [], "meta_data": [{}], "gulp2": {"crc32": "",' in meta
    assert sorted(content(tmp_path)) == ["data_0.gulp", "meta_0.gmeta"]


def test_an_empty_chunk_is_an_empty_file_and_an_empty_object(tmp_path):
    write(tmp_path)
    assert content(tmp_path) == {"data_0.gulp": b"", "meta_0.gmeta": b"{}"}


def test_the_bytes_depend_on_nothing_but_what_is_written(tmp_path):
    items = [("a", {"n": np.int64(1)}, make_frames(3)), ("b", {}, JPEGS[:2])]
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write(tmp_path / name, *items)
    assert content(tmp_path / "one") == content(tmp_path / "two")


def test_each_frame_has_its_checksum_and_the_entry_its_check(tmp_path):
    chunk = write(tmp_path, ("a", {"n": 1}, JPEGS[:3]))
    assert list(chunk.item("a").extras.crc32) == [crc32_of(j) for j in JPEGS[:3]]
    entry = entry_of(tmp_path, "a")
    assert entry["gulp2"]["check"] == entry_check("a", entry)
    assert list(entry) == ["frame_info", "meta_data", "gulp2"]


def test_in_memory_new_frame_infos_are_triplets_with_names(tmp_path):
    chunk = write(tmp_path, ("a", {}, JPEGS[:1]))
    info = chunk.meta_dict["a"]["frame_info"][0]
    assert (info.loc, info.pad, info.length) == info
    assert list(info) == new_chunk(tmp_path).meta_dict["a"]["frame_info"][0]


# --- what may be a frame ------------------------------------------------------------


@pytest.mark.parametrize(
    "frames",
    [list, tuple, iter, lambda frames: (frame for frame in frames), np.stack],
    ids=["list", "tuple", "iterator", "generator", "array"],
)
def test_frames_are_taken_from_any_iterable(tmp_path, frames):
    chunk = write(tmp_path, ("a", {}, frames(make_frames(4))))
    assert len(chunk["a"][0]) == 4


def test_frames_are_taken_one_at_a_time(tmp_path):
    alive: list[int] = []

    def frames() -> Iterator[np.ndarray]:
        # Each larger than what is gathered before it is written.
        for frame in np.random.default_rng(0).integers(
            0, 256, (3, 1000, 1000, 3), np.uint8
        ):
            size = Path(chunk.fp.path).stat().st_size  # type: ignore[union-attr]  # open
            alive.append(size)
            yield frame

    chunk = new_chunk(tmp_path)
    with chunk.open("wb"):
        chunk.append("a", {}, frames())
    assert alive[0] == 0
    assert alive == sorted(set(alive)), "each frame is written before the next is taken"


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (b"no jpeg", "item 'a', frame 2: .*not a JPEG"),
        (np.zeros((4, 4, 3)), r"item 'a', frame 2: .*float64.* cannot be stored"),
        (None, "item 'a', frame 2: "),
    ],
)
def test_a_bad_frame_is_named_and_leaves_the_chunk_as_it_was(tmp_path, frame, message):
    chunk = new_chunk(tmp_path)
    with chunk.open("wb"):
        chunk.append("first", {}, JPEGS[:2])
        with pytest.raises(AdapterContractError, match=message):
            chunk.append("a", {}, [*JPEGS[2:4], frame])
        assert list(chunk.meta_dict) == ["first"]
        chunk.append("last", {}, JPEGS[4:5])
    assert list(chunk.meta_dict) == ["first", "last"]
    assert chunk.read_jpegs("last") == JPEGS[4:5]
    assert check_directory(tmp_path, deep=True).problems == []


def test_an_error_of_a_source_comes_through_and_leaves_the_chunk_as_it_was(tmp_path):
    write(tmp_path, ("first", {}, JPEGS[:2]))
    expected = content(tmp_path)
    chunk = new_chunk(tmp_path)
    with chunk.open("wb"):
        chunk.append("first", {}, JPEGS[:2])
        for _ in range(3):
            with pytest.raises(BrokenError):
                chunk.append("a", {}, broken_after(3))
    assert content(tmp_path) == expected


def test_a_bad_frame_in_what_is_added_to_an_item_leaves_the_item_as_it_was(tmp_path):
    chunk = write(tmp_path, ("a", {"n": 1}, Timed([0, 40], codec="x")))
    expected = content(tmp_path)
    with chunk.open("ab"):
        with pytest.raises(BrokenError):
            chunk.append("a", {"n": 2}, broken_after(2))
        assert len(chunk.meta_dict["a"]["frame_info"]) == 2
        assert chunk.meta_dict["a"]["meta_data"] == [{"n": 1}]
    assert content(tmp_path) == expected
    with chunk.open("ab"):
        chunk.append("b", {}, JPEGS[:1])
        with pytest.raises(BrokenError):
            chunk.append("b", {}, broken_after(1))
        chunk.append("b", {"again": 1}, JPEGS[1:2])
    assert chunk.read_jpegs("b") == JPEGS[:2]
    assert check_directory(tmp_path, deep=True).problems == []


# --- metadata -----------------------------------------------------------------------


def test_metadata_that_json_cannot_hold_is_refused_before_anything_is_written(tmp_path):
    frames = iter(JPEGS)
    chunk = new_chunk(tmp_path)
    with chunk.open("wb"):
        message = r"item 'a' cannot be stored as JSON: .*\(at `\$\.x\.y`\)"
        with pytest.raises(AdapterContractError, match=message):
            chunk.append("a", {"x": {"y": {1}}}, frames)
    assert next(frames) is JPEGS[0]
    assert content(tmp_path) == {"data_0.gulp": b"", "meta_0.gmeta": b"{}"}


def test_metadata_may_change_until_the_chunk_is_closed(tmp_path):
    meta: dict[str, Any] = {"label": "a"}

    def frames() -> Iterator[bytes]:
        meta["frame_size"] = (24, 32)
        yield JPEGS[0]
        meta["num_frames"] = np.int64(1)

    chunk = new_chunk(tmp_path)
    with chunk.open("wb"):
        chunk.append("a", meta, frames())
        meta["late"] = True
    stored = {"label": "a", "frame_size": [24, 32], "num_frames": 1, "late": True}
    assert new_chunk(tmp_path)["a"][1] == stored
    assert chunk["a"][1]["late"] is True


def test_metadata_that_changed_into_what_json_cannot_hold_publishes_nothing(tmp_path):
    meta: dict[str, Any] = {}
    chunk = new_chunk(tmp_path)

    def write_and_change() -> None:
        with chunk.open("wb"):
            chunk.append("a", meta, JPEGS[:1])
            meta["x"] = object()

    with pytest.raises(AdapterContractError, match=r"item 'a' .*\(at `\$\.x`\)"):
        write_and_change()
    assert content(tmp_path) == {}
    assert chunk.meta_dict == {}


# --- use ----------------------------------------------------------------------------


def test_appending_and_flushing_need_an_open_chunk(tmp_path):
    chunk = new_chunk(tmp_path)
    message = "is not open for writing; append inside of `with chunk.open"
    with pytest.raises(StorageError, match=message):
        chunk.append("a", {}, [])
    with pytest.raises(StorageError, match=message):
        chunk.flush()
    write(tmp_path)
    with chunk.open("rb"), pytest.raises(StorageError, match=message):
        chunk.append("a", {}, [])


def test_a_chunk_that_is_open_is_not_opened_for_writing(tmp_path):
    chunk = write(tmp_path)
    for flag in ("rb", "ab", "wb"):
        with chunk.open(flag):
            for inner in ("ab", "wb"):
                with (
                    pytest.raises(StorageError, match="is open already"),
                    chunk.open(inner),
                ):
                    pytest.fail("opened twice")


def test_nothing_is_appended_where_the_data_file_is_missing(tmp_path):
    chunk = write(tmp_path, ("a", {}, JPEGS))
    data, path = tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta"
    before = path.read_bytes()
    data.rename(tmp_path / "elsewhere")
    message = r"data_0.gulp is not there, and .*meta_0.gmeta lists 1 item of"
    with pytest.raises(ChunkMismatchError, match=message), chunk.open("ab"):
        pytest.fail("opened")
    assert (path.read_bytes(), data.exists()) == (before, False)
    with chunk.open("wb"):
        chunk.append("new", {}, [])
    data.unlink()
    path.write_text("{}")
    with chunk.open("ab"):
        chunk.append("first", {}, [])
    assert list(json.loads(path.read_bytes())) == ["first"]


def test_a_chunk_that_is_written_is_not_pickled(tmp_path):
    chunk = new_chunk(tmp_path)
    with chunk.open("wb"), pytest.raises(TypeError, match="open for writing"):
        pickle.dumps(chunk)


def test_a_missing_folder_is_a_storage_error_that_names_the_file(tmp_path):
    chunk = new_chunk(tmp_path / "missing")
    message = r"cannot open for writing .*No such"
    with pytest.raises(StorageError, match=message), chunk.open("wb"):
        pytest.fail("opened")
    assert not (tmp_path / "missing").exists()


class Lines(AbstractSerializer):
    """A serializer of a client."""

    def load(self, file_name: Any) -> Any:
        return JSONSerializer().load(file_name)

    def dump(self, thing: Any, file_name: Any) -> None:
        Path(file_name).write_text(json.dumps(thing, indent=1))


def test_a_serializer_of_ones_own_writes_the_map_and_it_appears_whole(tmp_path):
    paths = (str(tmp_path / "data_0.gulp"), str(tmp_path / "meta_0.gmeta"))
    chunk = GulpChunk(*paths, serializer=Lines())
    with chunk.open("wb"):
        chunk.append("a", {"n": 1}, JPEGS[:1])
    assert (tmp_path / "meta_0.gmeta").read_text().startswith('{\n "a": {')
    assert sorted(content(tmp_path)) == ["data_0.gulp", "meta_0.gmeta"]
    assert GulpChunk(*paths, serializer=Lines()).read_jpegs("a") == JPEGS[:1]


class Indented(JSONSerializer):
    """A serializer of a client that writes dates too."""

    def dump(self, thing: Any, file_name: Any) -> None:
        Path(file_name).write_text(json.dumps(thing, indent=1, default=str))


class Same(JSONSerializer):
    """A serializer of a client that changes nothing."""


DAY = datetime.date(2020, 1, 1)


@pytest.mark.parametrize(
    ("serializer", "meta", "stored"),
    [
        (Indented(), {"day": DAY}, {"day": "2020-01-01"}),
        (Same(), {"n": np.int64(1)}, {"n": 1}),
        (pickle_serializer, {"day": DAY}, {"day": DAY}),
        (pickle_serializer, {"s": {1, 2}, (1, 2): b"x"}, {"s": {1, 2}, (1, 2): b"x"}),
    ],
)
def test_a_serializer_of_ones_own_holds_what_it_can(tmp_path, serializer, meta, stored):
    chunk = new_chunk(tmp_path, serializer=serializer)
    for flag, id_, more in (("wb", "a", meta), ("wb", "a", meta), ("ab", "b", {})):
        with chunk.open(flag):
            chunk.append(id_, more, JPEGS[:2])
    again = new_chunk(tmp_path, serializer=serializer, verify=True)
    assert again["a", []][1] == stored
    assert len(again["a"][0]) == 2
    assert "gulp2" in again.meta_dict["b"]
    with again.open("ab"):
        again.meta_dict["b"]["meta_data"][0]["day"] = 1
        again.append("a", {}, JPEGS[2:3])
    last = new_chunk(tmp_path, serializer=serializer, verify=True)
    assert last["b", []][1] == {"day": 1}
    assert last.read_jpegs("a") == JPEGS[:3]
    assert sorted(content(tmp_path)) == ["data_0.gulp", "meta_0.gmeta"]


@pytest.mark.parametrize("flag", ["wb", "ab"])
def test_what_a_serializer_cannot_write_leaves_the_chunk_as_it_was(tmp_path, flag):
    write(tmp_path, ("old", {}, JPEGS[:2]))
    expected = content(tmp_path)
    chunk = new_chunk(tmp_path, serializer=Lines())
    with pytest.raises(TypeError, match="not JSON serializable"), chunk.open(flag):
        chunk.append("new", {"day": DAY}, JPEGS[2:3])
    assert content(tmp_path) == expected
    assert chunk.read_jpegs("old") == JPEGS[:2]


def test_metadata_that_is_no_mapping_is_refused_whatever_the_serializer(tmp_path):
    chunk = new_chunk(tmp_path, serializer=pickle_serializer)
    with chunk.open("wb"), pytest.raises(AdapterContractError, match="must be a dict"):
        chunk.append("a", None, [])  # type: ignore[arg-type]


def test_a_pickled_map_names_only_what_the_original_has(tmp_path):
    chunk = new_chunk(tmp_path, serializer=pickle_serializer)
    with chunk.open("wb"):
        chunk.append("a", {}, JPEGS[:1])
    opcodes = pickletools.genops((tmp_path / "meta_0.gmeta").read_bytes())
    names = {arg for _, arg, _ in opcodes if isinstance(arg, str) and "gulp" in arg}
    assert names == {"gulpio2.fileio", "gulp2"}


# --- a slice of an adapter ----------------------------------------------------------


class Listed:
    """An adapter that takes whatever it is asked for."""

    def __len__(self) -> int:
        return 4

    def iter_data(self, slice_element: Any = None) -> Iterator[dict[str, Any]]:
        positions = (
            range(4)[slice_element]
            if isinstance(slice_element, slice)
            else (range(4) if slice_element is None else slice_element)
        )
        for position in positions:
            yield {"id": position, "meta": {}, "frames": JPEGS[:1]}


@pytest.mark.parametrize(
    ("asked", "ids"),
    [(None, "0123"), ([3, 1], "31"), (slice(None, 2), "01"), (slice(2, None), "23")],
)
def test_the_adapter_is_asked_for_what_the_writer_is(tmp_path, asked, ids):
    chunk = new_chunk(tmp_path)
    ChunkWriter(Listed()).write_chunk(chunk, asked)
    assert list(chunk.meta_dict) == list(ids)
