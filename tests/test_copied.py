"""A directory that was copied with the means of the system, as the page says it is."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gulpio2 import GulpChunk, GulpDirectory, GulpIngestor
from gulpio2.removal import compact_directory, delete_items
from gulpio2.sanity import check_directory
from gulpio2.storage.index.keeping import build_index, index_state
from gulpio2.testing import FrameAdapter, make_frames

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Ingest six items into three chunks, delete one, and make the index."""
    folder = tmp_path / "source"
    GulpIngestor(FrameAdapter(num_items=6), folder, 2, 1).run()
    delete_items(folder, ["item1"])
    build_index(folder)
    return folder


def content(folder: Path) -> dict[str, list[np.ndarray]]:
    """Read everything, by the index."""
    with GulpDirectory(folder, indexed=True) as directory:
        assert set(directory.query("num_frames > 0").ids) == {*directory.chunk_lookup}
        return {id_: list(directory[id_][0]) for id_ in directory.merged_meta_dict}


def assert_same(one: dict[str, list[np.ndarray]], other: dict[str, list[np.ndarray]]):
    """Compare what was read."""
    assert list(one) == list(other)
    for id_, frames in one.items():
        np.testing.assert_array_equal(frames, other[id_])


def append(folder: Path) -> None:
    """Append an item to the first chunk."""
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open("ab"):
        chunk.append("more", {}, make_frames(2))


def codes(folder: Path) -> list[str]:
    """Give what a deep check finds."""
    return [problem.code for problem in check_directory(folder, deep=True).problems]


@pytest.mark.parametrize(
    ("command", "has_times"),
    [("cp -r", False), ("cp -aL", True), ("tar", False), ("tar --format=posix", True)],
)
def test_a_copy_of_all_files_is_the_same_directory(
    source, tmp_path, command, has_times
):
    copy = tmp_path / "copy"
    if command.startswith("tar"):
        copy.mkdir()
        packed = subprocess.run(
            [*command.split(), "-C", source, "-cf", "-", "."],
            stdout=subprocess.PIPE,
            check=True,
        )
        unpack = ["tar", "-C", copy, "-xf", "-"]
        subprocess.run(unpack, input=packed.stdout, check=True)
    else:
        subprocess.run([*command.split(), source, copy], check=True)
    if has_times:  # else they may be the same by chance, in a coarse file system
        assert index_state(copy).is_fresh
    report = check_directory(copy, deep=True)
    assert report.problems == []
    assert report.frames_without_checksum == 0
    assert_same(content(copy), content(source))
    assert "item1" not in content(copy)
    # Whoever opens a copy without times by the index has put it right.
    assert index_state(copy).is_fresh
    assert check_directory(copy, deep=True).notes == []


def test_times_spare_the_index_and_nothing_else(source, tmp_path):
    with_times, without = tmp_path / "with", tmp_path / "without"
    shutil.copytree(source, with_times)
    shutil.copytree(source, without, copy_function=shutil.copyfile)
    for path in without.glob("meta_*.gmeta"):
        os.utime(path, (1, 1))
    assert index_state(with_times).is_fresh
    assert not index_state(without).is_fresh
    assert codes(without) == []
    assert_same(content(without), content(source))


def test_the_index_may_stay_behind(source, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("index.arrow"))
    assert codes(copy) == []
    assert_same(content(copy), content(source))


def test_a_copy_that_lacks_something_is_told_by_the_check(source, tmp_path):
    def copy_of(name):
        shutil.copytree(source, tmp_path / name)
        return tmp_path / name

    for name, code in (
        ("data_1.gulp", "map-without-data"),
        ("meta_1.gmeta", "data-without-map"),
        ("deleted.json", "data-too-long"),
    ):
        copy = copy_of(f"no {name}")
        (copy / name).unlink()
        assert code in codes(copy)
    copy = copy_of("no chunk")
    (copy / "data_2.gulp").unlink()
    (copy / "meta_2.gmeta").unlink()
    assert "missing-chunk" in codes(copy)
    copy = copy_of("cut")
    os.truncate(copy / "data_2.gulp", 1000)
    assert "data-too-short" in codes(copy)
    copy = copy_of("changed")
    with (copy / "data_2.gulp").open("r+b") as file:
        file.seek(200)
        file.write(b"\xaa")
    assert codes(copy) == ["crc-mismatch"]


def test_a_copy_that_was_made_beside_a_writer_is_told_by_the_check(source, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(source, copy)
    append(source)  # after its data file was copied, and before its map is
    shutil.copy2(source / "meta_0.gmeta", copy / "meta_0.gmeta")
    assert "data-too-short" in codes(copy)


def test_hard_links_are_a_copy_that_no_change_goes_through(source, tmp_path):
    before = content(source)
    copy = shutil.copytree(source, tmp_path / "copy", copy_function=os.link)
    append(copy)
    delete_items(copy, ["item4"])
    compact_directory(copy)
    assert_same(content(source), before)
    assert codes(source) == codes(copy) == []
    assert [*content(copy)] == ["item0", "more", "item2", "item3", "item5"]


def test_symbolic_links_are_followed_by_what_writes_and_not_if_copied_as_files(
    source, tmp_path
):
    linked = tmp_path / "linked"
    linked.mkdir()
    for path in source.iterdir():
        (linked / path.name).symlink_to(path)
    copied = shutil.copytree(linked, tmp_path / "copied")  # as cp -L
    again = shutil.copytree(linked, tmp_path / "again", symlinks=True)  # as cp -a
    before = content(source)
    append(copied)
    assert_same(content(source), before)
    append(again)
    assert [*content(source)] == ["item0", "more", "item2", "item3", "item4", "item5"]
