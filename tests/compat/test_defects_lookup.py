"""Defects 18 to 22 of GulpIO2 0.0.4, finding items and frames: each shown gone.

The numbers are those of ``docs/compatibility.md``. Nothing here needs the original.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from gulpio2 import GulpDirectory, errors


# ------------------------------------------------------------------ 18
def test_defect_18_chunks_are_ordered_by_number(make_directory, grey):
    folder = make_directory(*({f"i{k}": [grey(k, 8, 8)]} for k in range(12)))
    directory = GulpDirectory(folder)
    ids = [f"i{k}" for k in range(12)]
    assert list(directory.chunk_objs_lookup) == list(range(12))
    assert list(directory.merged_meta_dict) == ids
    assert [meta["of"] for one in directory for _, meta in one] == ids
    assert [next(iter(meta_dict)) for meta_dict in directory.all_meta_dicts] == ids
    (new,) = directory.new_chunks(1)
    assert new.data_file_path == str(folder / "data_12.gulp")


# ------------------------------------------------------------------ 19
def test_defect_19_an_unknown_id_is_a_key_error(chunk):
    with chunk.open("rb"):
        for ask in (
            lambda: chunk.read_frames("nobody"),
            lambda: chunk["nobody"],
            lambda: chunk["nobody", 0:1],
            lambda: chunk.read_frames("nobody", []),
        ):
            with pytest.raises(KeyError, match="nobody") as caught:
                ask()
            assert isinstance(caught.value, errors.ItemNotFoundError)


def test_defect_19_a_chunk_that_is_not_open_reads_or_says_so(chunk):
    for _ in range(2):
        try:
            frames, _meta = chunk.read_frames("a")
        except errors.GulpError as error:
            assert "open" in str(error)  # noqa: PT017  either answer is right
        else:
            assert len(frames) == 8
        with chunk.open("rb"):
            assert len(chunk.read_frames("a")[0]) == 8


# ------------------------------------------------------------------ 20
def test_defect_20_every_sensible_subscript_selects(folder):
    directory = GulpDirectory(folder)
    every = directory["a"][0]
    mask = np.array([True, False] * 4)
    cases: list[tuple[Any, list[int]]] = [
        (3, [3]),
        (-1, [7]),
        (np.int64(2), [2]),
        (np.uint8(2), [2]),
        (range(1, 7, 2), [1, 3, 5]),
        ((4, 0), [4, 0]),
        (mask, [0, 2, 4, 6]),
        (mask.tolist(), [0, 2, 4, 6]),
        (np.zeros(8, bool), []),
        (np.array([], np.int64), []),
        (slice(np.int64(1), np.int64(3)), [1, 2]),
    ]
    with directory.chunk_objs_lookup[0].open("rb"):
        for selector, expected in cases:
            for source in (directory, directory.chunk_objs_lookup[0]):
                frames, meta = source["a", selector]
                assert type(frames) is list, selector
                assert len(frames) == len(expected), selector
                for frame, position in zip(frames, expected, strict=True):
                    np.testing.assert_array_equal(frame, every[position])
                assert meta == {"of": "a"}


@pytest.mark.parametrize(
    "selector", [8, -9, [8], [0, -9], range(7, 9), np.int64(8)], ids=repr
)
def test_defect_20_a_position_outside_is_an_index_error_with_the_number_of_frames(
    folder, selector
):
    with pytest.raises(IndexError, match="8") as caught:
        GulpDirectory(folder)["a", selector]
    assert isinstance(caught.value, errors.FrameIndexError)
    assert "a" in str(caught.value)


# ------------------------------------------------------------------ 21
@pytest.mark.parametrize(
    "stray",
    [
        "data.gulp",
        "meta.gmeta",
        "data_x.gulp",
        "data_1.gulp.bak",
        "xdata_1.gulp",
        "data_-1.gulp",
        "data_1_2.gulp",
        "data_1.gulp~",
        "notes.txt",
        "meta_5.gmeta.tmp",
    ],
)
def test_defect_21_files_of_other_names_are_left_alone(folder, stray, grey):
    (folder / stray).write_bytes(b"not ours")
    directory = GulpDirectory(folder)
    assert list(directory.chunk_objs_lookup) == [0, 1]
    (new,) = directory.new_chunks(1)
    with new.open("wb"):
        new.append("new", {}, [grey()])
    assert (folder / stray).read_bytes() == b"not ours"
    assert list(GulpDirectory(folder).chunk_objs_lookup) == [0, 1, 2]


@pytest.mark.parametrize("flags", [(), ("-O",)])
def test_defect_21_files_are_paired_by_number_and_the_orphan_is_named(
    folder, fresh_python, flags
):
    (folder / "meta_1.gmeta").rename(folder / "meta_2.gmeta")
    code = "import sys, gulpio2; gulpio2.GulpDirectory(sys.argv[1])"
    result = fresh_python(code, folder, flags=flags)
    assert result.code == 1
    assert "ChunkMismatchError" in result.err
    assert "meta_2.gmeta" in result.err
    with pytest.raises(AssertionError):
        GulpDirectory(folder)


def test_defect_21_a_number_written_twice_is_not_mixed_up(folder):
    """``data_00`` is no second chunk 0: it is left alone, or named in an error."""
    expected = np.stack(GulpDirectory(folder)["a"][0])
    for name, twin in (
        ("data_1.gulp", "data_00.gulp"),
        ("meta_1.gmeta", "meta_00.gmeta"),
    ):
        (folder / twin).write_bytes((folder / name).read_bytes())
    try:
        directory = GulpDirectory(folder)
    except errors.FormatError as error:
        assert "_00." in str(error)  # noqa: PT017  either answer is right
    else:
        assert list(directory.chunk_objs_lookup) == [0, 1]
        np.testing.assert_array_equal(np.stack(directory["a"][0]), expected)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"x": 1}',
        b'{"x": {"frame_info": [[0, 0]], "meta_data": [{}]}}',
        b'{"x": {"frame_info": [["0", 0, 4]], "meta_data": [{}]}}',
        b'{"x": {"frame_info": []}}',
    ],
)
def test_defect_21_a_broken_index_is_an_error_that_names_it(folder, content):
    (folder / "meta_1.gmeta").write_bytes(content)
    with pytest.raises(errors.MetaFileError, match="meta_1"):
        GulpDirectory(folder)


# ------------------------------------------------------------------ 22
COUNT_OPENS = """
import json, sys
opened = []
def note(event, arguments):
    if event == "open" and str(arguments[0]).endswith(".gulp"):
        opened.append(str(arguments[0]))
sys.addaudithook(note)
import gulpio2
directory = gulpio2.GulpDirectory(sys.argv[1])
at_construction = len(opened)
for _ in range(25):
    directory["a", 1:3]
    directory["b"]
print(json.dumps([at_construction, len(opened)]))
"""


def test_defect_22_a_data_file_is_not_opened_anew_for_every_read(folder, fresh_python):
    result = fresh_python(COUNT_OPENS, folder)
    assert result.code == 0, result.err
    at_construction, after = json.loads(result.out)
    assert at_construction == 0, "construction opens no data file"
    assert after <= 2


COUNT_READS = """
import json, os, sys
import gulpio2
reads = []
for name in ("pread", "preadv", "read"):
    real = getattr(os, name)
    setattr(os, name, lambda *a, _real=real: reads.append(a[1:]) or _real(*a))
directory = gulpio2.GulpDirectory(sys.argv[1])
directory["a"]
print(json.dumps(len(reads)))
"""


def test_defect_22_neighbouring_frames_are_fetched_in_one_read(folder, fresh_python):
    result = fresh_python(COUNT_READS, folder)
    assert result.code == 0, result.err
    assert json.loads(result.out) == 1, "8 neighbours, one read"
