"""What is written to a chunk goes where its links lead, as with GulpIO2 0.0.4."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.errors import StorageError
from gulpio2.format.layout import REMOVALS_NAME
from gulpio2.format.removals import Removals
from gulpio2.removal import delete_items
from gulpio2.sanity import check_directory
from gulpio2.storage.local import LocalStore
from gulpio2.storage.paths import follow_link
from gulpio2.storage.removals_file import read_removals
from gulpio2.testing import make_frames

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ["data_0.gulp", "meta_0.gmeta"]


def write(folder: Path, flag: str, id_: str, num_frames: int = 2) -> None:
    """Write an item to the chunk in a folder."""
    chunk = GulpChunk(folder / NAMES[0], folder / NAMES[1])
    with chunk.open(flag):
        chunk.append(id_, {}, make_frames(num_frames))


def ids_in(folder: Path) -> list[str]:
    with GulpDirectory(folder, verify=True) as directory:
        for id_ in directory.merged_meta_dict:
            directory.read_clip(id_)
        return [*directory.merged_meta_dict]


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """Make a directory of one chunk with one item."""
    (tmp_path / "disk").mkdir()
    write(tmp_path / "disk", "wb", "old")
    return tmp_path / "disk"


@pytest.fixture
def linked(tmp_path: Path, disk: Path) -> Path:
    """Make a directory of links to the files of the other."""
    (tmp_path / "linked").mkdir()
    for name in NAMES:
        (tmp_path / "linked" / name).symlink_to(f"../{disk.name}/{name}")
    return tmp_path / "linked"


# --- chunks -------------------------------------------------------------------------


@pytest.mark.parametrize(("flag", "ids"), [("ab", ["old", "new"]), ("wb", ["new"])])
def test_what_is_written_is_where_the_links_lead(disk, linked, flag, ids):
    write(linked, flag, "new")
    for folder in (disk, linked):
        assert ids_in(folder) == ids
        assert check_directory(folder, deep=True).problems == []
        assert sorted(path.name for path in folder.iterdir()) == NAMES
    assert all((linked / name).is_symlink() for name in NAMES)


@pytest.mark.parametrize("flag", ["ab", "wb"])
def test_a_map_whose_link_leads_nowhere_yet_is_made_there(disk, linked, flag):
    for name in NAMES:
        (disk / name).unlink()
    write(linked, flag, "new")
    assert ids_in(disk) == ids_in(linked) == ["new"]
    assert all((linked / name).is_symlink() for name in NAMES)


@pytest.mark.parametrize("is_noted_there", [False, True], ids=["here", "both"])
def test_a_chunk_behind_links_that_is_written_anew_has_no_deleted_items(
    disk, linked, is_noted_there
):
    write(disk, "ab", "gone")
    delete_items(disk, ["gone"])
    notes = disk / REMOVALS_NAME
    (linked / REMOVALS_NAME).write_bytes(notes.read_bytes())
    if not is_noted_there:
        notes.unlink()
    write(linked, "wb", "new")
    for folder in (disk, linked):
        assert read_removals(LocalStore(folder)) == Removals()
        assert check_directory(folder, deep=True).problems == []
    assert all((linked / name).is_symlink() for name in NAMES)


def test_a_folder_that_is_a_link_is_written_to_as_any(tmp_path, disk):
    (tmp_path / "link").symlink_to(disk)
    write(tmp_path / "link", "ab", "new")
    assert ids_in(disk) == ["old", "new"]
    assert (tmp_path / "link").is_symlink()


@pytest.mark.parametrize("flag", ["ab", "wb"])
def test_the_folders_that_the_links_lead_to_are_synced(disk, linked, monkeypatch, flag):
    fsync, synced = os.fsync, []

    def note(fd):
        synced.append(os.readlink(f"/proc/self/fd/{fd}"))  # noqa: PTH115  # a link
        fsync(fd)

    monkeypatch.setattr(os, "fsync", note)
    write(linked, flag, "new")
    assert synced[-1] == str(disk)
    assert str(linked) not in synced


@pytest.mark.parametrize("flag", ["ab", "wb"])
def test_what_fails_leaves_what_was_there_and_nothing_else(
    disk, linked, monkeypatch, flag
):
    def fail(*_):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(StorageError):
            write(linked, flag, "new")
    for folder in (disk, linked):
        assert ids_in(folder) == ["old"]
        assert sorted(path.name for path in folder.iterdir()) == NAMES
    assert all((linked / name).is_symlink() for name in NAMES)


# --- permissions --------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o664, 0o600])
def test_a_map_keeps_its_permissions(disk, linked, mode):
    for name in NAMES:
        (disk / name).chmod(mode)
    for folder in (disk, linked):
        write(folder, "ab", f"in {folder.name}")
        assert [mode_of(disk / name) for name in NAMES] == [mode, mode]
    write(disk, "wb", "new")
    assert mode_of(disk / NAMES[0]) == mode


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_map_keeps_its_owner(disk):
    os.chown(disk / NAMES[1], 12345, 12346)
    write(disk, "ab", "more")
    state = (disk / NAMES[1]).stat()
    assert NAMES[1].startswith("meta")
    assert (state.st_uid, state.st_gid) == (12345, 12346)


def test_what_replaces_nothing_or_a_link_has_the_usual_permissions(tmp_path):
    store = LocalStore(tmp_path)
    store.write_atomically("usual", b"")
    (tmp_path / "link").symlink_to("usual")
    store.write_atomically("link", b"1")
    assert not (tmp_path / "link").is_symlink()
    assert mode_of(tmp_path / "link") == mode_of(tmp_path / "usual") != 0o777
    assert store.read("usual") == b""


def test_a_file_system_without_permissions_does_no_harm(tmp_path, monkeypatch):
    store = LocalStore(tmp_path)
    store.write_atomically("a", b"old")

    def refuse(*_, **__):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "chmod", refuse)
    monkeypatch.setattr(type(tmp_path), "chmod", refuse)
    store.write_atomically("a", b"new")
    assert store.read("a") == b"new"


# --- where a link leads -------------------------------------------------------------


def test_a_link_is_followed_to_its_end_and_other_paths_stay_as_they_are(tmp_path):
    real = tmp_path / "real"
    real.mkdir()
    (real / "file").write_bytes(b"")
    (tmp_path / "first").symlink_to("second")
    (tmp_path / "second").symlink_to("real/file")
    (tmp_path / "nowhere").symlink_to("real/missing")
    (tmp_path / "folder").symlink_to("real")
    assert follow_link(tmp_path / "first") == real / "file"
    assert follow_link(str(tmp_path / "nowhere")) == real / "missing"
    for name in ("real/file", "missing", "folder/file", "none/file"):
        assert follow_link(tmp_path / name) == tmp_path / name


def test_a_link_to_itself_leads_to_itself(tmp_path):
    (tmp_path / "circle").symlink_to("circle")
    assert follow_link(tmp_path / "circle") == tmp_path / "circle"


def test_a_link_to_nothing_in_the_place_of_a_folder_is_told_as_such(tmp_path):
    (tmp_path / "link").symlink_to("gone")
    with pytest.raises(StorageError, match="or a link that leads nowhere"):
        LocalStore(tmp_path / "link").make()
