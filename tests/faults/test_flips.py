"""One changed byte, or a file cut anywhere: found, named, and never read as data.

The quick form tries a sample of a directory of some kilobytes. ``bin/faults`` sets
``GULPIO2_FAULTS=long``: every byte and every length of one of 100 kB.
"""

import os
import random
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.errors import GulpError, StorageError
from gulpio2.removal import compact_directory, delete_items
from gulpio2.sanity import check_directory
from gulpio2.testing import FrameAdapter

LONG = os.environ.get("GULPIO2_FAULTS") == "long"


class LabelledAdapter(FrameAdapter):
    """With labels, so that every file of a directory is there."""

    metainfo: ClassVar = {"classes": ["jump", "rün"]}

    def label_mapping(self):
        return {"jump": 0, "rün": 1}


def make_directory(folder):
    """Make every kind of file; an item is deleted, another one erased."""
    side, num_frames = (144, 8) if LONG else (16, 2)
    adapter = LabelledAdapter(
        num_items=6, num_frames=num_frames, height=side, width=side, bad=[5]
    )
    GulpIngestor(adapter, folder, 3, 1).run()
    delete_items(folder, ["item1"])
    compact_directory(folder)
    delete_items(folder, ["item3"])
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_directory(tmp_path_factory.mktemp("flips") / "gulped")


@pytest.fixture(scope="module")
def expected(folder):
    with GulpDirectory(folder) as directory:
        return {
            id_: (
                directory.read_clip(id_),
                directory.read_jpegs(id_),
                directory.item(id_).meta,
            )
            for id_ in directory.chunk_lookup
        }


@pytest.fixture(scope="module")
def owners(folder):
    """Each byte of a data file: item and frame of the record that it is in."""
    from gulpio2.storage.local import open_store
    from gulpio2.storage.removals_file import read_removals

    found: dict[str, dict[int, tuple[str, int]]] = {}
    with GulpDirectory(folder) as directory:
        entries = [
            (directory.chunk_lookup[id_], id_, directory.item(id_).entry)
            for id_ in directory.chunk_lookup
        ]
    for number, pairs in read_removals(open_store(folder)).deleted.items():
        entries += [(number, id_, entry) for id_, entry in pairs]
    for number, id_, entry in entries:
        places = found.setdefault(f"data_{number}.gulp", {})
        for index, (loc, _, length) in enumerate(entry["frame_info"]):
            places.update(dict.fromkeys(range(loc, loc + length), (id_, index)))
    return found


FILES = [
    "data_0.gulp",
    "data_1.gulp",
    "meta_0.gmeta",
    "meta_1.gmeta",
    "gulp.json",
    "label2idx.json",
    "failures.jsonl",
    "deleted.json",
]


def places_in(size):
    """Offsets to try: all of them, or a sample that is the same every time."""
    if LONG:
        return range(size)
    return sorted(random.Random(size).sample(range(size), min(size, 90)))


def flipped(path: Path):
    """Change one byte after the other, and give the offset of each."""
    original = path.read_bytes()
    rng = random.Random(1)
    try:
        for offset in places_in(len(original)):
            data = bytearray(original)
            data[offset] ^= 1 << rng.randrange(8) if rng.random() < 0.8 else 0xFF
            path.write_bytes(data)
            yield offset
    finally:
        path.write_bytes(original)


def cut(path: Path):
    """Cut a file to one length after the other, and give each."""
    original = path.read_bytes()
    try:
        for length in places_in(len(original)):
            path.write_bytes(original[:length])
            yield length
    finally:
        path.write_bytes(original)


def read_all_verified(folder, expected, *, pixels):
    """Read everything: each answer is an error of ours, or right.

    As pixels, or as the stored bytes, which is faster where it is done for every byte.
    """
    try:
        directory = GulpDirectory(folder, verify=True)
    except GulpError:
        return
    with directory:
        for id_ in directory.chunk_lookup:
            try:
                found = (directory.read_clip if pixels else directory.read_jpegs)(id_)
                meta = directory.item(id_).meta
            except GulpError:
                continue
            assert id_ in expected
            clip, jpegs, right_meta = expected[id_]
            assert np.array_equal(found, clip) if pixels else found == jpegs
            assert meta == right_meta


def test_every_kind_of_file_is_there(folder):
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
    assert check_directory(folder, deep=True).problems == []
    if LONG:
        assert sum(path.stat().st_size for path in folder.iterdir()) > 100_000


@pytest.mark.parametrize("name", FILES)
def test_a_changed_byte_is_named_and_never_read_as_data(folder, expected, owners, name):
    for offset in flipped(folder / name):
        problems = check_directory(folder, deep=True).problems
        here = [problem for problem in problems if problem.file == name]
        assert here, offset
        if (owner := owners.get(name, {}).get(offset)) is not None:
            assert owner in [(problem.item, problem.frame) for problem in here]
        elif name in owners:
            assert [problem.code for problem in here] == ["not-erased"], offset
        read_all_verified(folder, expected, pixels=not LONG or offset % 10 == 0)


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_was_cut_is_named_and_never_read_as_data(folder, expected, name):
    for length in cut(folder / name):
        problems = check_directory(folder, deep=True).problems
        assert [problem for problem in problems if problem.file == name], length
        read_all_verified(folder, expected, pixels=not LONG or length % 10 == 0)


@pytest.mark.parametrize("name", ["data_0.gulp", "data_1.gulp"])
def test_a_verified_read_names_item_frame_file_and_offset(folder, owners, name):
    for number, offset in enumerate(flipped(folder / name)):
        if number % 10 and LONG:
            continue  # that it raises is seen above, for each byte
        id_, frame = owners[name].get(offset, (None, None))
        with GulpDirectory(folder, verify=True) as directory:
            if id_ not in directory:
                continue  # deleted
            loc, pad, length = directory.item(id_).entry["frame_info"][frame]
            if offset >= loc + length - pad:
                continue  # padding, which is no part of the frame
            for read in (directory.read_clip, directory.read_frames):
                with pytest.raises(GulpError) as caught:
                    read(id_)
                for part in (repr(id_), f"frame {frame}", name, f"byte {loc}"):
                    assert part in str(caught.value)


def test_a_cut_data_file_is_an_error_that_says_so(folder):
    path = folder / "data_0.gulp"
    original = path.read_bytes()
    try:
        path.write_bytes(original[:-10])
        with GulpDirectory(folder) as directory, pytest.raises(StorageError) as caught:
            directory.read_clip("item2")
        assert "it was cut" in str(caught.value)
    finally:
        path.write_bytes(original)
