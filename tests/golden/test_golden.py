"""Directories written by GulpIO2 0.0.4 read here as they read there.

``make_golden.py`` wrote them, and what 0.0.4 itself decodes from each. Pixels are
compared exactly: both sides decode with the same library and the same flags.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gulpio2 import GulpChunk, GulpDirectory, errors, utils
from gulpio2.fileio import ImgInfo, pickle_serializer
from tests.golden.corpus import GOLDEN, INPUTS, described, write_case

if TYPE_CHECKING:
    from collections.abc import Iterator

CASES = sorted(path.stem for path in GOLDEN.glob("*.json") if path.stem != "pickled")


def content_of(case: str) -> dict[str, Any]:
    """Give what 0.0.4 said about a directory."""
    content: dict[str, Any] = json.loads((GOLDEN / f"{case}.json").read_text("utf-8"))
    return content


def items_of(case: str) -> list[dict[str, Any]]:
    """Give every item of a directory, chunks by number."""
    return [item for chunk in content_of(case)["chunks"] for item in chunk["items"]]


def as_json(thing: Any) -> str:
    """Give the text that tells key order and NaN apart, which ``==`` does not."""
    return json.dumps(thing)


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> str:
    """Name every golden directory in turn."""
    name: str = request.param
    return name


@pytest.fixture
def directory(case: str) -> GulpDirectory:
    """Open the golden directory."""
    return GulpDirectory(str(GOLDEN / case))


def test_the_corpus_is_there_and_is_what_the_original_wrote(case):
    facts = content_of(case)["files"]
    assert sorted(p.name for p in (GOLDEN / case).iterdir()) == sorted(facts)
    for name, fact in facts.items():
        data = (GOLDEN / case / name).read_bytes()
        assert len(data) == fact["bytes"]
        assert hashlib.sha256(data).hexdigest() == fact["sha256"]


def test_ids_come_in_chunk_order_by_number_then_in_order_of_appending(case, directory):
    chunks = content_of(case)["chunks"]
    numbers = [chunk["number"] for chunk in chunks]
    assert list(directory.chunk_objs_lookup) == numbers == sorted(numbers)
    assert directory.num_chunks == len(numbers)
    per_chunk = [[item["id"] for item in chunk["items"]] for chunk in chunks]
    assert [list(meta_dict) for meta_dict in directory.all_meta_dicts] == per_chunk
    assert [list(chunk.meta_dict) for chunk in directory] == per_chunk
    assert list(directory.merged_meta_dict) == [i for ids in per_chunk for i in ids]


def test_each_id_is_found_in_its_chunk(case, directory):
    assert dict(directory.chunk_lookup) == content_of(case)["chunk_lookup"]


def test_metadata_reads_back_as_the_original_reads_it(case, directory):
    for item in items_of(case):
        _, meta = directory[item["id"], []]
        assert type(meta) is dict
        assert as_json(meta) == as_json(item["meta"])
        entry = directory.merged_meta_dict[item["id"]]
        assert list(entry) == ["frame_info", "meta_data"]
        assert as_json(entry["meta_data"]) == as_json(item["meta_data"])


def test_the_index_in_memory_is_the_file(case, directory):
    for number, chunk in directory.chunk_objs_lookup.items():
        text = (GOLDEN / case / f"meta_{number}.gmeta").read_text("ascii")
        assert as_json(chunk.meta_dict) == text


def test_every_frame_is_pixel_for_pixel_what_the_original_decodes(case, directory):
    for item in items_of(case):
        frames, _ = directory[item["id"]]
        assert type(frames) is list
        assert described(frames) == item["frames"], item["id"]
        for frame in frames:
            assert frame.dtype == np.uint8
            assert frame.flags.c_contiguous
            assert frame.flags.writeable


def test_iterating_over_a_chunk_gives_the_same_items(case, directory):
    for described_chunk in content_of(case)["chunks"]:
        chunk = directory.chunk_objs_lookup[described_chunk["number"]]
        items = described_chunk["items"]
        read = list(chunk)
        assert [described(frames) for frames, _ in read] == [i["frames"] for i in items]
        assert as_json([m for _, m in read]) == as_json([i["meta"] for i in items])


SLICES: list[slice] = [
    slice(None),
    slice(0, 1),
    slice(1, 10, 2),
    slice(None, None, -1),
    slice(-2, None),
    slice(None, -1),
    slice(5, 2),
    slice(5, 2, -1),
    slice(0, 10_000),
    slice(-10_000, 2),
    slice(3, 3),
    slice(np.int64(1), np.int64(3)),
]


def lists_for(count: int) -> Iterator[Any]:
    """Give list and array selectors that fit an item of this many frames."""
    yield []
    yield np.array([], dtype=np.int64)
    if count:
        yield [0]
        yield [count - 1, 0, count - 1]
        yield [-1, -count]
        yield [np.int64(count - 1), np.uint8(0)]
        yield np.arange(count)[::-1]
        yield np.zeros(3, dtype=np.int32)


def test_every_slice_selects_as_a_python_list_does(case, directory):
    for item in items_of(case):
        for selector in [None, *SLICES]:
            frames, meta = directory[item["id"], selector]
            expected = item["frames"][selector if selector else slice(None)]
            assert described(frames) == expected, (item["id"], selector)
            assert as_json(meta) == as_json(item["meta"])


def test_every_list_or_array_selects_in_its_order_with_repeats(case, directory):
    for item in items_of(case):
        for selector in lists_for(len(item["frames"])):
            frames, _ = directory[item["id"], selector]
            expected = [item["frames"][int(k)] for k in selector]
            assert described(frames) == expected, (item["id"], selector)


def test_a_position_outside_of_the_item_is_an_index_error(case, directory):
    for item in items_of(case):
        count = len(item["frames"])
        for selector in ([count], [-count - 1], np.array([0, count])):
            with pytest.raises(IndexError):
                directory[item["id"], selector]


def test_a_chunk_selects_as_its_directory_does(case):
    described_chunk = content_of(case)["chunks"][0]
    chunk = GulpChunk(GOLDEN / case / "data_0.gulp", GOLDEN / case / "meta_0.gmeta")
    with chunk.open("rb"):
        for item in described_chunk["items"]:
            assert item["id"] in chunk
            assert described(chunk[item["id"]][0]) == item["frames"]
            some, meta = chunk[item["id"], ::2]
            assert described(some) == item["frames"][::2]
            assert as_json(meta) == as_json(item["meta"])
            assert described(chunk.read_frames(item["id"])[0]) == item["frames"]


@pytest.mark.parametrize(
    ("case", "id_"), [("ids", 7), ("ids", 0), ("ids", -3), ("appended_twice", 9)]
)
def test_an_integer_id_is_its_text(case, id_):
    directory = GulpDirectory(GOLDEN / case)
    by_text = described(directory[str(id_)][0])
    assert described(directory[id_][0]) == by_text
    assert described(directory[np.int64(id_)][0]) == by_text
    assert described(directory[id_, 0:1][0]) == by_text[:1]
    with directory.chunk_objs_lookup[directory.chunk_lookup[str(id_)]].open() as none:
        assert none is None


def test_a_clip_is_the_stack_of_the_frames(case, directory):
    for item in items_of(case):
        shapes = {tuple(frame["shape"]) for frame in item["frames"]}
        if len(shapes) > 1:
            with pytest.raises(errors.FormatError, match="shape"):
                directory.read_clip(item["id"])
            continue
        frames, _ = directory[item["id"]]
        if not frames:
            assert len(directory.read_clip(item["id"])) == 0
            continue
        stacked = np.stack(frames)
        if stacked.ndim == 3:
            stacked = stacked[..., np.newaxis]
        clip = directory.read_clip(item["id"])
        assert clip.shape == stacked.shape
        np.testing.assert_array_equal(clip, stacked)


def test_frames_appended_later_are_read_although_they_are_not_neighbours():
    entry = GulpDirectory(GOLDEN / "appended_twice").merged_meta_dict["a"]
    ends = [(loc, loc + length) for loc, _, length in entry["frame_info"]]
    adjacent = [end == start for (_, end), (start, _) in pairwise(ends)]
    assert not all(adjacent), "the golden directory no longer shows the case"
    frames, meta = GulpDirectory(GOLDEN / "appended_twice")["a"]
    assert described(frames) == items_of("appended_twice")[0]["frames"]
    assert meta == {"part": 1}, "readers show the first metadata"


def test_a_pickled_map_is_read_with_the_pickle_serializer_only():
    chunk = GulpChunk(
        str(GOLDEN / "pickled" / "data_0.gulp"),
        str(GOLDEN / "pickled" / "meta_0.gmeta"),
        serializer=pickle_serializer,
    )
    (item,) = content_of("pickled")["chunks"][0]["items"]
    assert all(type(info) is ImgInfo for info in chunk.meta_dict["p"]["frame_info"])
    assert chunk.meta_dict["p"]["meta_data"] == [{"tuple": (1, 2), 3: "int key"}]
    with chunk.open("rb"):
        frames, meta = chunk["p"]
    assert described(frames) == item["frames"]
    assert meta == {"tuple": (1, 2), 3: "int key"}
    with pytest.raises(ValueError, match=r"meta_0\.gmeta"):
        GulpDirectory(str(GOLDEN / "pickled"))


def test_label_indices_are_read_back():
    expected = content_of("image_folder")["label2idx"]
    directory = GulpDirectory(str(GOLDEN / "image_folder"))
    assert directory._load_label_dict() == expected
    for item in items_of("image_folder"):
        assert expected[item["meta"]["label"]] == item["meta"]["idx"]


def part_of_the_original(gmeta: bytes) -> bytes:
    """Give a map without the keys that this package adds."""
    meta_dict = json.loads(gmeta)
    for entry in meta_dict.values():
        assert list(entry)[:2] == ["frame_info", "meta_data"]
        assert set(entry) <= {"frame_info", "meta_data", "gulp2"}
        entry.pop("gulp2", None)
    return json.dumps(meta_dict).encode("ascii")


@pytest.mark.parametrize("case", sorted(INPUTS.CASES))
def test_the_same_input_is_written_byte_for_byte(case, tmp_path):
    write_case(tmp_path, INPUTS.CASES[case]())
    names = sorted(path.name for path in (GOLDEN / case).iterdir())
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    for name in names:
        ours, golden = (
            (tmp_path / name).read_bytes(),
            (GOLDEN / case / name).read_bytes(),
        )
        if name.endswith(".gulp"):
            assert ours == golden, name
        else:
            assert json.dumps(json.loads(ours)).encode() == ours, "not json.dump's"
            assert part_of_the_original(ours) == golden, name


def test_the_quality_variable_is_obeyed(tmp_path, monkeypatch):
    monkeypatch.setattr(utils, "_JPEG_WRITE_QUALITY", 100)
    frames = [INPUTS.colour(24, 32, 7), INPUTS.grey(24, 32, 7)]
    write_case(tmp_path, [[("wb", [("best", {"quality": 100}, frames)])]])
    golden = (GOLDEN / "quality_100" / "data_0.gulp").read_bytes()
    assert (tmp_path / "data_0.gulp").read_bytes() == golden


@pytest.mark.parametrize("case", ["appended_twice", "ids", "many_chunks"])
def test_a_directory_of_the_original_can_be_extended(case, tmp_path):
    shutil.copytree(GOLDEN / case, tmp_path / "d")
    before = GulpDirectory(str(tmp_path / "d"))
    (new,) = before.new_chunks(1)
    with new.open("wb"):
        new.append("brand new", {"n": 1}, [INPUTS.colour(8, 8, 1)])
    last = max(before.chunk_objs_lookup)
    chunk = before.chunk_objs_lookup[last]
    kept = (tmp_path / "d" / f"data_{last}.gulp").read_bytes()
    with chunk.open("ab"):
        chunk.append("at the end", {"n": 2}, [INPUTS.grey(8, 8, 1)])
    assert (tmp_path / "d" / f"data_{last}.gulp").read_bytes().startswith(kept)
    after = GulpDirectory(str(tmp_path / "d"))
    assert list(after.chunk_objs_lookup)[-1] == last + 1
    ids = [item["id"] for item in items_of(case)]
    assert list(after.merged_meta_dict) == [*ids, "at the end", "brand new"]
    for item in items_of(case):
        assert described(after[item["id"]][0]) == item["frames"]
    assert after["brand new"][0][0].shape == (8, 8, 3)
    assert after["at the end"][0][0].shape == (8, 8)
