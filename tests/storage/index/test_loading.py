"""An index that cannot be read is not taken for one that is damaged."""

from __future__ import annotations

import errno
import mmap
import os
from pathlib import Path
from typing import Any

import pytest

from gulpio2 import GulpDirectory
from gulpio2.errors import ChunkMismatchError, StorageError
from gulpio2.removal import delete_items
from gulpio2.storage.index import texts
from gulpio2.storage.index.keeping import build_index
from tests.storage.index.conftest import assert_same, plain

pytest.importorskip("pyarrow")
LASTING = 1 << 30


def fail(
    patch: pytest.MonkeyPatch,
    function: str,
    name: str,
    *,
    times: int = 1,
    after: int = 0,
    code: int = errno.EIO,
    module: Any = os,
) -> None:
    """Have a call of the system fail on a file of this name, once or several times."""
    real, left, good = getattr(module, function), [times], [after]

    def failing(path: Any, *rest: Any, **named: Any) -> Any:
        is_fd = isinstance(path, int)
        of = str(Path(f"/proc/self/fd/{path}").readlink() if is_fd else path)
        if not of.endswith(name) or not left[0]:
            return real(path, *rest, **named)
        if good[0]:
            good[0] -= 1
            return real(path, *rest, **named)
        left[0] -= 1
        if function == "close":
            real(path)
        raise OSError(code, os.strerror(code), *([] if is_fd else [path]))

    patch.setattr(module, function, failing)


@pytest.fixture
def alone(folder: Path) -> bytes:
    """Lose a map, so that the index alone tells of its chunk; give its bytes."""
    build_index(folder)
    (folder / "meta_1.gmeta").unlink()
    return (folder / "index.arrow").read_bytes()


@pytest.mark.parametrize("function", ["open", "fstat", "mmap", "close"])
@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE, errno.EACCES])
def test_a_reader_leaves_an_index_that_it_cannot_read(
    folder, alone, monkeypatch, caplog, function, code
):
    with monkeypatch.context() as patch:
        module = mmap if function == "mmap" else os
        fail(patch, function, "index.arrow", code=code, module=module)
        opened = GulpDirectory(folder, indexed=True)
        assert len(opened.merged_meta_dict) == 3
    assert_same(opened, plain(folder))
    assert f"cannot read {folder}/index.arrow: {os.strerror(code)}" in caplog.text
    assert "left as it is" in caplog.text
    assert (folder / "index.arrow").read_bytes() == alone


@pytest.mark.parametrize("thorough", [False, True])
def test_an_index_that_cannot_be_read_is_not_replaced(
    folder, alone, monkeypatch, thorough
):
    with monkeypatch.context() as patch:
        fail(patch, "open", "index.arrow")
        with pytest.raises(StorageError, match=r"try again.*--remove") as caught:
            build_index(folder, thorough=thorough)
    assert caught.value.errno == errno.EIO
    assert (folder / "index.arrow").read_bytes() == alone
    with pytest.raises(ChunkMismatchError):
        build_index(folder, thorough=thorough)


def test_nor_by_who_deletes(folder, alone, monkeypatch, caplog):
    with monkeypatch.context() as patch:
        fail(patch, "open", "index.arrow", times=LASTING)
        delete_items(folder, ["item 0/0"])
    assert "It is not replaced" in caplog.text
    assert (folder / "index.arrow").read_bytes() == alone
    assert len(GulpDirectory(folder, indexed=True)) == 2


def test_data_of_which_the_system_does_not_say_whether_they_are_there_count_as_there(
    folder, alone, monkeypatch
):
    with monkeypatch.context() as patch:
        fail(patch, "stat", "data_1.gulp", code=errno.ESTALE, times=LASTING)
        assert len(GulpDirectory(folder, indexed=True).merged_meta_dict) == 3
        with pytest.raises(ChunkMismatchError, match=r"nothing but index\.arrow"):
            build_index(folder)
    assert (folder / "index.arrow").read_bytes() == alone
    (folder / "data_1.gulp").unlink()
    assert build_index(folder) is not None


def _read(folder: Path, *, by_index: bool) -> list[Any] | None:
    """Give ids and numbers of frames; None where an error of the system is named."""
    try:
        with GulpDirectory(folder, indexed=by_index) as opened:
            return [(id_, len(opened[id_][0])) for id_ in opened.merged_meta_dict]
    except StorageError as cause:
        return None if "Stale file handle" in str(cause) else [cause]


@pytest.mark.parametrize("most_bytes", [1 << 24, 0], ids=["whole maps", "some entries"])
@pytest.mark.parametrize("changed", [False, True])
def test_an_index_is_not_of_other_maps_for_an_error_that_passes(
    folder, monkeypatch, caplog, most_bytes, changed
):
    build_index(folder)
    before = (folder / "index.arrow").read_bytes()
    monkeypatch.setattr(texts, "_MOST_BYTES", most_bytes)
    # As by a writer: so that nothing is replaced.
    (folder / "data_9.gulp.0a.partial").write_bytes(b"")
    if changed:  # so that rows of the others are taken over
        os.utime(folder / "meta_0.gmeta", (2, 2))
    expected, found = _read(folder, by_index=False), []
    for number in range(40):
        with monkeypatch.context() as patch:
            fail(patch, "stat", "meta_1.gmeta", code=errno.ESTALE, after=number)
            found.append(_read(folder, by_index=True))
    assert None in found
    assert all(each in (None, expected) for each in found)
    assert found[-1] == expected, "all of the calls have failed once"
    assert "other maps" not in caplog.text
    assert (folder / "index.arrow").read_bytes() == before


def test_no_row_is_believed_as_the_system_does_not_say_whether_its_map_changed(
    folder, monkeypatch
):
    build_index(folder)
    path = folder / "meta_1.gmeta"
    state = path.stat()
    path.write_bytes(path.read_bytes().replace(b"1: 3, ", b"1: 4, ")[:-2] + b" }")
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    opened = GulpDirectory(folder, indexed=True)
    fail(monkeypatch, "stat", "meta_1.gmeta", code=errno.ESTALE, times=LASTING)
    with pytest.raises(StorageError, match=r"cannot look at .*meta_1\.gmeta"):
        list(opened.merged_meta_dict)
