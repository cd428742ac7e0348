"""A disk or network that does not answer when it is asked what is there.

``Path.exists`` and the like raise a bare error then, or say that nothing is there.
"""

from __future__ import annotations

import errno
import itertools
import os
import pathlib
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.cli.main import gulp2
from gulpio2.errors import StorageError
from gulpio2.merge import merge_directories
from gulpio2.removal import compact_directory, delete_items
from gulpio2.sanity import check_directory
from gulpio2.storage.links import is_beginning, is_same_file
from gulpio2.storage.paths import is_folder, is_there, look_at
from gulpio2.storage.refusals import refuse_unwritable
from gulpio2.testing import make_gulp_directory

FRAME = np.zeros((8, 8, 3), np.uint8)


@pytest.fixture
def refuse(monkeypatch):
    """Give a function after which the system does not answer about a path.

    It fails at each call of this kind, or at the `nth` alone. What is called gives how
    many calls there were.
    """

    def begin(path, *, function="stat", nth=None, number=errno.ESTALE):
        monkeypatch.undo()
        real, calls = getattr(os, function), itertools.count(1)
        counted = 0

        def maybe(asked, *args, **kwargs):
            nonlocal counted
            if isinstance(asked, int):
                name = str(Path(f"/proc/self/fd/{asked}").readlink())
            else:
                name = os.fspath(asked)
            if name == str(path):
                counted = next(calls)
                if nth in (None, counted):
                    raise OSError(number, os.strerror(number), asked)
            return real(asked, *args, **kwargs)

        monkeypatch.setattr(os, function, maybe)
        if sys.version_info < (3, 11) and function == "stat":
            # Path.stat does not look it up in os there.
            accessor = pathlib._NormalAccessor
            monkeypatch.setattr(accessor, function, staticmethod(maybe))
        return lambda: counted

    return begin


def fail_at_each(refuse, path, action, function="stat"):
    """Do something again and again, where one call fails, and give what it raised."""
    raised = []
    for nth in itertools.count(1):
        count = refuse(path, function=function, nth=nth)
        try:
            action(nth)
        except StorageError as error:
            raised.append(str(error))
        if count() < nth:
            return raised
    raise AssertionError


@pytest.mark.parametrize("number", [errno.ESTALE, errno.EIO, errno.ETIMEDOUT])
@pytest.mark.parametrize("ask", [is_there, is_folder, look_at])
def test_what_does_not_answer_is_not_called_missing(tmp_path, refuse, ask, number):
    refuse(tmp_path, number=number)
    with pytest.raises(StorageError, match=f"cannot look at {tmp_path}") as caught:
        ask(tmp_path)
    assert caught.value.errno == number


def test_a_folder_is_one_by_what_a_link_leads_to(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path)
    names = ["", "link", "file", "none", "file/none"]
    found = [is_folder(tmp_path / name) for name in names]
    assert found == [True, True, False, False, False]
    assert look_at(tmp_path / "link") == tmp_path.stat()
    assert look_at(tmp_path / "link", follow=False) == (tmp_path / "link").lstat()


def test_a_check_says_that_it_cannot_look_at_the_directory(tmp_path, refuse):
    make_gulp_directory(tmp_path / "d")
    refuse(tmp_path / "d")
    with pytest.raises(StorageError, match=f"cannot look at {tmp_path / 'd'}: Stale"):
        check_directory(tmp_path / "d")


@pytest.mark.parametrize("name", ["gulp.json", "ingest.journal"])
def test_info_says_what_it_cannot_look_at(tmp_path, refuse, name):
    make_gulp_directory(tmp_path / "d")
    refuse(tmp_path / "d" / name)
    result = CliRunner().invoke(gulp2, ["info", str(tmp_path / "d")])
    assert result.exit_code == 1
    assert f"cannot look at {tmp_path / 'd' / name}: Stale" in result.stderr


@pytest.mark.parametrize(
    ("name", "link"), [("d", True), ("d/data_0.gulp", True), ("d/data_0.gulp", False)]
)
def test_a_merge_says_what_it_cannot_look_at(tmp_path, refuse, name, link):
    make_gulp_directory(tmp_path / "d")

    def merge(nth):
        merge_directories([tmp_path / "d"], tmp_path / f"m{nth}", link=link)

    raised = fail_at_each(refuse, tmp_path / name, merge)
    assert raised
    assert all(f"{tmp_path / name}: Stale" in error for error in raised)


def test_a_merge_that_goes_on_says_what_map_it_cannot_look_at(tmp_path, refuse):
    make_gulp_directory(tmp_path / "d", num_items=1)
    merge_directories([tmp_path / "d"], tmp_path / "m")
    (tmp_path / "m" / "meta_0.gmeta").unlink()  # it was killed before its commit
    (tmp_path / "m" / "gulp.json").unlink()
    refuse(tmp_path / "m" / "meta_0.gmeta")
    with pytest.raises(StorageError, match=r"cannot look at .*meta_0.gmeta: Stale"):
        merge_directories([tmp_path / "d"], tmp_path / "m")


def test_files_that_cannot_be_compared_are_named(tmp_path, refuse):
    for name in "ab":
        (tmp_path / name).write_bytes(b"12")
    refuse(tmp_path / "b")
    with pytest.raises(StorageError, match=f"cannot look at {tmp_path / 'b'}: Stale"):
        is_same_file(tmp_path / "a", tmp_path / "b")
    with pytest.raises(StorageError, match=f"cannot look at {tmp_path / 'b'}: Stale"):
        is_beginning(tmp_path / "b", tmp_path / "a", 2)
    with pytest.raises(StorageError, match=f"compare {tmp_path / 'a'} with .*none"):
        is_beginning(tmp_path / "a", tmp_path / "none", 2)


@pytest.mark.parametrize("there", ["nothing", "a file", "a circle"])
def test_an_index_answers_after_the_directory_is_gone(tmp_path, there):
    folder = tmp_path / "gulped"
    make_gulp_directory(folder, num_items=4).close()
    with GulpDirectory(folder, indexed=True) as directory:
        folder.rename(tmp_path / "moved")
        if there == "a file":
            folder.touch()
        elif there == "a circle":
            folder.symlink_to(folder)
        assert [*directory.query("number > 1").ids] == ["item2", "item3"]


@pytest.mark.parametrize("function", ["stat", "lstat"])
def test_a_compaction_says_what_it_cannot_look_at(tmp_path, refuse, function):
    make_gulp_directory(tmp_path)
    delete_items(tmp_path, ["item0"])
    path = tmp_path / "data_0.gulp"

    def compact(_):
        compact_directory(tmp_path, dry_run=True)

    raised = fail_at_each(refuse, path, compact, function)
    assert raised
    assert all(f"{path}: Stale" in error for error in raised)


def test_a_folder_to_write_to_that_does_not_answer_is_no_file(tmp_path, refuse):
    refuse(tmp_path)
    with pytest.raises(StorageError, match=f"cannot look at {tmp_path}: Stale"):
        refuse_unwritable(tmp_path)


@pytest.mark.parametrize("function", ["fstat", "lseek"])
def test_an_append_says_which_file_does_not_answer(tmp_path, refuse, function):
    make_gulp_directory(tmp_path)
    path = tmp_path / "data_0.gulp"
    chunk = GulpChunk(path, tmp_path / "meta_0.gmeta")
    with pytest.raises(StorageError, match=f"{path}: Stale"), chunk.open("ab"):  # noqa: PT012  # what fails is in the block
        refuse(path, function=function)
        chunk.append("new", {}, [FRAME])
        chunk.flush()


def test_an_append_says_that_it_cannot_ask_for_other_names(tmp_path, refuse):
    make_gulp_directory(tmp_path)
    path = tmp_path / "data_0.gulp"
    chunk = GulpChunk(path, tmp_path / "meta_0.gmeta")

    def append(_):
        with chunk.open("ab"):
            pass

    raised = fail_at_each(refuse, path, append)
    assert any(f"cannot look at {path}: Stale" in error for error in raised)


def test_a_new_chunk_says_which_file_it_cannot_look_at(tmp_path, refuse):
    path = tmp_path / "data_0.gulp"

    def write_new(_):
        for file in tmp_path.iterdir():
            file.unlink()
        chunk = GulpChunk(path, tmp_path / "meta_0.gmeta")
        with chunk.open("ab"):
            chunk.append("new", {}, [FRAME])

    raised = fail_at_each(refuse, path, write_new)
    assert raised
    assert all(f"{path}: Stale" in error for error in raised)


def test_a_map_that_cannot_be_looked_at_hides_no_other_error(tmp_path, refuse):
    """As the data file cannot get its name, it is asked whether its map is gone."""
    path, rename = tmp_path / "data_0.gulp", Path.replace

    def refuse_data(partial, target):
        if Path(target) == path:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return rename(partial, target)

    def write_anew(_):
        for file in tmp_path.iterdir():
            file.unlink()
        chunk = GulpChunk(path, map_path)
        with chunk.open("wb"):
            chunk.append("old", {}, [FRAME])
        with pytest.MonkeyPatch.context() as patch, chunk.open("wb"):
            chunk.append("new", {}, [FRAME])
            patch.setattr(Path, "replace", refuse_data)

    map_path = tmp_path / "meta_0.gmeta"
    raised = fail_at_each(refuse, map_path, write_anew)
    unnamed = [error for error in raised if "cannot rename to data_0.gulp" in error]
    assert len(unnamed) > 1
    assert all("its map is removed" in error for error in unnamed)


def test_a_folder_without_a_chunk_that_does_not_answer_is_not_called_missing(
    tmp_path, refuse
):
    refuse(tmp_path)
    with pytest.raises(StorageError, match=f"cannot look at {tmp_path}: Stale"):
        GulpDirectory(tmp_path)


@pytest.mark.usefixtures("permissions")
def test_the_closed_folder_is_named_also_from_inside_and_by_way_of_a_link(
    tmp_path, monkeypatch
):
    closed = tmp_path / "closed"
    (closed / "gulped").mkdir(parents=True)
    (tmp_path / "link").symlink_to(closed / "gulped")
    monkeypatch.chdir(closed)
    closed.chmod(0o600)
    try:
        for path in (".", tmp_path / "link"):
            with pytest.raises(StorageError, match=rf"look into {closed}: Permission"):
                look_at(path)
    finally:
        closed.chmod(0o700)
