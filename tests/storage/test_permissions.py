"""Nobody may read what is made of maps who may not read the maps."""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.merge import merge_directories
from gulpio2.removal import compact_directory, delete_items
from gulpio2.repair import repair_directory
from gulpio2.storage.index.keeping import build_index
from gulpio2.storage.local import LocalStore
from gulpio2.testing import make_frames, make_gulp_directory
from tests.faults.operations import in_child

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MADE = ["deleted.json", "index.arrow"]
ALICE, BOB, TEAM, OTHERS = 12345, 12346, 12347, 12348

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write a directory of three chunks with two items each, as all may read it."""
    path = tmp_path / "out"
    make_gulp_directory(path, num_items=6, num_frames=2).close()
    path.chmod(0o777)
    for file in path.iterdir():
        file.chmod(0o644)
    return path


@contextmanager
def usual_umask() -> Iterator[None]:
    """Let files be made that all may read, whatever who runs the tests has set."""
    before = os.umask(0o022)
    try:
        yield
    finally:
        os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def owner_of(path: Path) -> tuple[int, int]:
    return path.stat().st_uid, path.stat().st_gid


def maps(folder: Path) -> list[Path]:
    return sorted(folder.glob("meta_*.gmeta"))


def delete_and_index(folder: Path) -> None:
    """Have an item of each chunk deleted, and the directory indexed."""
    delete_items(folder, ["item0", "item2", "item4"])
    build_index(folder)


def read_by_index(folder: Path) -> None:
    """Have a reader index the directory, and something deleted before that."""
    delete_items(folder, ["item0", "item2", "item4"])
    with GulpDirectory(folder, indexed=True) as directory:
        directory["item1"]


@pytest.mark.parametrize("make", [delete_and_index, read_by_index])
@pytest.mark.parametrize(
    ("modes", "expected"),
    [
        ((0o644, 0o644, 0o644), 0o644),
        ((0o600, 0o600, 0o600), 0o600),
        ((0o640, 0o640, 0o640), 0o640),
        ((0o644, 0o600, 0o644), 0o600),
        ((0o640, 0o604, 0o644), 0o600),
        ((0o666, 0o664, 0o777), 0o644),  # no more than is usual
    ],
)
def test_what_is_made_of_maps_may_be_read_as_all_of_them(folder, make, modes, expected):
    for path, mode in zip(maps(folder), modes, strict=True):
        path.chmod(mode)
    with usual_umask():
        make(folder)
    assert [mode_of(folder / name) for name in MADE] == [expected] * 2


def test_a_map_that_is_a_link_counts_as_what_it_leads_to(folder, tmp_path):
    first = maps(folder)[0]
    shutil.move(first, tmp_path / "map")
    (tmp_path / "map").chmod(0o600)
    first.symlink_to(tmp_path / "map")
    build_index(folder)
    assert mode_of(folder / "index.arrow") == 0o600


def test_what_is_there_already_gets_stricter_and_never_wider(folder):
    delete_and_index(folder)
    for name, mode in zip(MADE, (0o644, 0o400), strict=True):
        (folder / name).chmod(mode)
    for path in maps(folder):
        path.chmod(0o600)
    delete_items(folder, ["item1"])
    build_index(folder)
    assert [mode_of(folder / name) for name in MADE] == [0o600, 0o400]


def test_only_the_maps_of_deleted_items_count(folder):
    maps(folder)[0].chmod(0o600)
    delete_items(folder, ["item2"])
    assert mode_of(folder / "deleted.json") == 0o644
    delete_items(folder, ["item0"])
    assert mode_of(folder / "deleted.json") == 0o600
    compact_directory(folder)
    assert mode_of(folder / "deleted.json") == 0o600


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o444])
@pytest.mark.parametrize("is_link", [False, True])
def test_a_chunk_that_is_written_anew_keeps_its_permissions(
    folder, tmp_path, mode, is_link
):
    if is_link:
        shutil.move(folder / "meta_0.gmeta", tmp_path / "map")
        (folder / "meta_0.gmeta").symlink_to(tmp_path / "map")
    paths = [folder / "data_0.gulp", folder / "meta_0.gmeta"]
    for path in paths:
        path.chmod(mode)
    for flag in ("wb", "wb", "ab"):
        chunk = GulpChunk(*paths)
        with chunk.open(flag):
            chunk.append(flag, {}, make_frames(1))
            under_way = [*folder.glob("*.partial")]
            assert len(under_way) == (flag == "wb")
            assert not any(mode_of(path) & ~(mode | 0o600) for path in under_way)
            chunk.flush()
        assert [mode_of(path) for path in paths] == [mode] * 2


@pytest.fixture
def synced_modes(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """Note the permissions that each file has when it is brought to the disk."""
    modes = set()
    fsync = os.fsync

    def note_and_sync(fd: int) -> None:
        if stat.S_ISREG(os.fstat(fd).st_mode):
            modes.add(stat.S_IMODE(os.fstat(fd).st_mode))
        fsync(fd)

    monkeypatch.setattr(os, "fsync", note_and_sync)
    return modes


def test_it_may_not_be_read_while_it_is_written_either(folder, synced_modes):
    for path in maps(folder):
        path.chmod(0o600)
    delete_and_index(folder)
    assert synced_modes == {0o600}


@pytest.mark.parametrize(("mode", "expected"), [(0o600, 0o600), (0o444, 0o644)])
def test_a_copy_of_a_data_file_may_be_read_as_that_one(
    folder, tmp_path, mode, expected
):
    for path in folder.glob("data_*.gulp"):
        path.chmod(mode)
    with usual_umask():
        merge_directories([folder], tmp_path / "merged", link=False)
    copies = [*(tmp_path / "merged").glob("data_*.gulp")]
    assert [mode_of(path) for path in copies] == [expected] * 3


@pytest.mark.parametrize("link", [False, True])
def test_a_map_that_a_merge_brings_may_be_read_as_that_of_the_part(
    folder, tmp_path, link
):
    modes = [0o600, 0o444, 0o640]
    for path, mode in zip(maps(folder), modes, strict=True):
        path.chmod(mode)
    with usual_umask():
        merge_directories([folder], tmp_path / "merged", link=link)
    assert [mode_of(path) for path in maps(tmp_path / "merged")] == modes


def test_what_a_repair_takes_out_may_be_read_as_what_it_is_taken_from(folder, tmp_path):
    first, second, third = maps(folder)
    first.chmod(0o600)
    second.chmod(0o444)
    build_index(folder)  # of all maps
    third.unlink()
    for path, mode in zip(
        sorted(folder.glob("data_*.gulp")), (0o444, 0o600, 0o640), strict=True
    ):
        path.chmod(mode)
    with usual_umask():
        repair_directory(folder, tmp_path / "repaired")
    copies = sorted((tmp_path / "repaired").glob("data_*.gulp"))
    assert [mode_of(path) for path in copies] == [0o644, 0o600, 0o640]
    assert [mode_of(path) for path in maps(tmp_path / "repaired")] == [
        0o600,
        0o444,
        0o400,
    ]


def test_nor_may_a_data_file_that_is_no_longer_shared(folder, tmp_path, synced_modes):
    for path in folder.iterdir():
        path.chmod(0o600)
    os.link(folder / "data_0.gulp", tmp_path / "another name")
    with GulpDirectory(folder) as directory:
        chunk = directory.chunk_objs_lookup[0]
        with chunk.open("ab"):
            chunk.append("more", {}, make_frames(1))
    assert (folder / "data_0.gulp").stat().st_nlink == 1
    assert synced_modes == {0o600}


@pytest.mark.usefixtures("permissions")
def test_an_index_that_may_not_be_read_is_none_that_is_needed(folder):
    build_index(folder)
    (folder / "index.arrow").chmod(0)
    folder.chmod(0o555)
    with GulpDirectory(folder, indexed=True) as directory:
        assert len(directory["item1"][0]) == 2
    folder.chmod(0o777)


# --- owners and groups --------------------------------------------------------------


def give(paths: list[Path], owner: int, group: int, mode: int) -> None:
    """Give files away."""
    for path in paths:
        os.chown(path, owner, group)
        path.chmod(mode)


def as_user(user: int, groups: list[int], work: Callable[[], None]) -> None:
    """Do something in a process of another user, whose first group is that of BOB."""

    def become_and_work() -> None:
        os.setgroups(groups)
        os.setgid(groups[0])
        os.setuid(user)
        os.umask(0o022)
        work()

    assert in_child(become_and_work) == 0


@pytest.fixture
def reachable(folder: Path) -> Path:
    """Let other users into the folders above."""
    for path in [folder, *folder.parents][:-1]:
        if path.stat().st_uid == os.geteuid() and path.name:
            path.chmod(path.stat().st_mode | 0o011)
    return folder


@as_root
def test_root_gives_them_to_the_owner_of_the_maps(folder):
    give(maps(folder), ALICE, TEAM, 0o640)
    delete_and_index(folder)
    for name in MADE:
        assert owner_of(folder / name) == (ALICE, TEAM)
        assert mode_of(folder / name) == 0o640


@as_root
def test_and_a_chunk_that_it_writes_anew_stays_that_of_its_owner(folder):
    paths = [folder / "data_0.gulp", folder / "meta_0.gmeta"]
    give(paths, ALICE, TEAM, 0o640)
    with GulpChunk(*paths).open("wb"):
        pass
    assert [(owner_of(path), mode_of(path)) for path in paths] == [
        ((ALICE, TEAM), 0o640)
    ] * 2


@as_root
def test_maps_of_several_owners_and_groups_are_nobodys(folder):
    first, *others = maps(folder)
    give([first], ALICE, TEAM, 0o640)
    give(others, BOB, OTHERS, 0o644)
    delete_and_index(folder)
    for name in MADE:
        assert owner_of(folder / name) == (os.geteuid(), os.getegid())
        assert mode_of(folder / name) == 0o600  # of another group: as everybody
    first.chmod(0o644)
    (folder / "index.arrow").unlink()
    build_index(folder)
    assert mode_of(folder / "index.arrow") == 0o644


@as_root
@pytest.mark.parametrize(
    ("groups", "group", "expected"),
    [([OTHERS, TEAM], TEAM, 0o640), ([OTHERS], OTHERS, 0o604)],
    ids=["member", "not a member"],
)
def test_a_reader_gives_the_index_to_the_group_or_keeps_it(
    reachable, groups, group, expected
):
    # Who is in no group of theirs reads them as everybody does.
    give(maps(reachable), ALICE, TEAM, 0o644 if group == OTHERS else 0o640)
    if group == OTHERS:
        maps(reachable)[0].chmod(0o604)

    def read() -> None:
        with GulpDirectory(reachable, indexed=True) as directory:
            directory["item1"]

    as_user(BOB, groups, read)
    index = reachable / "index.arrow"
    assert owner_of(index) == (BOB, group)
    assert mode_of(index) == expected


@as_root
def test_a_group_that_is_not_that_of_the_maps_may_no_more_than_everybody(reachable):
    give(maps(reachable), BOB, TEAM, 0o640)
    as_user(BOB, [OTHERS], lambda: delete_and_index(reachable))
    for path in [*maps(reachable), *(reachable / name for name in MADE)]:
        assert owner_of(path) == (BOB, OTHERS)
        assert mode_of(path) == 0o600


def test_a_file_system_without_permissions_does_no_harm(folder, monkeypatch):
    for path in maps(folder):
        path.chmod(0o600)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    for name in ("chmod", "chown"):
        monkeypatch.setattr(os, name, refuse)
    monkeypatch.setattr(type(folder), "chmod", refuse)
    delete_and_index(folder)
    with GulpDirectory(folder, indexed=True, verify=True) as directory:
        assert set(directory.merged_meta_dict) == {"item1", "item3", "item5"}


def test_files_that_are_made_of_none_are_as_usual(tmp_path):
    store = LocalStore(tmp_path)
    before = os.umask(0o027)
    try:
        store.write_atomically("a", b"")
        store.write_atomically("b", b"", made_of=["missing"])
    finally:
        os.umask(before)
    assert [mode_of(tmp_path / name) for name in "ab"] == [0o640, 0o640]
