"""Adding to a chunk, and how what was written becomes visible."""

from __future__ import annotations

import errno
import json
import os
import resource
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gulpio2 import GulpDirectory
from gulpio2.errors import ChunkMismatchError, StorageError
from gulpio2.removal import delete_items
from gulpio2.repair import repair_directory
from gulpio2.sanity import check_directory
from tests.chunks import JPEGS, BrokenError, Timed, content, entry_of, new_chunk, write
from tests.faults.operations import fail_at_operation, in_child

if TYPE_CHECKING:
    from collections.abc import Iterator

# --- appending ----------------------------------------------------------------------


def test_the_same_id_again_adds_frames_and_a_second_metadata(tmp_path):
    chunk = write(
        tmp_path,
        ("a", {"n": 1}, JPEGS[:2]),
        ("b", {}, JPEGS[2:3]),
        ("a", {"n": 2}, JPEGS[3:5]),
    )
    assert chunk.read_jpegs("a") == [*JPEGS[:2], *JPEGS[3:5]]
    assert chunk["a"][1] == {"n": 1}
    assert entry_of(tmp_path, "a")["meta_data"] == [{"n": 1}, {"n": 2}]
    assert list(chunk.meta_dict) == ["a", "b"]
    assert check_directory(tmp_path, deep=True).problems == []


def test_appending_later_goes_on_at_the_end(tmp_path):
    write(tmp_path, ("a", {"n": 1}, JPEGS[:2]), ("b", {}, JPEGS[2:3]))
    before = content(tmp_path)["data_0.gulp"]
    chunk = write(tmp_path, ("a", {"n": 2}, JPEGS[3:4]), ("c", {}, []), flag="ab")
    assert content(tmp_path)["data_0.gulp"].startswith(before)
    assert chunk.read_jpegs("a") == [*JPEGS[:2], JPEGS[3]]
    assert list(new_chunk(tmp_path).meta_dict) == ["a", "b", "c"]
    assert check_directory(tmp_path, deep=True).problems == []


def test_in_one_session_or_in_several_the_bytes_are_the_same(tmp_path):
    items = [("a", {"n": 1}, Timed([0, 40], codec="x")), ("b", {}, JPEGS[2:4])]
    items += [("a", {"n": 2}, Timed([80, 120, 160])), ("c", {}, [])]
    (tmp_path / "one").mkdir()
    write(tmp_path / "one", *items)
    (tmp_path / "several").mkdir()
    for number, item in enumerate(items):
        write(tmp_path / "several", item, flag="ab" if number else "wb")
    assert content(tmp_path / "one") == content(tmp_path / "several")


def test_appending_to_a_chunk_that_is_not_there_begins_it(tmp_path):
    chunk = write(tmp_path, ("a", {}, JPEGS[:1]), flag="ab")
    assert chunk.read_jpegs("a") == JPEGS[:1]
    assert check_directory(tmp_path).ok


def test_writing_anew_starts_from_an_empty_map(tmp_path):
    write(tmp_path, ("old", {}, JPEGS[:3]))
    chunk = new_chunk(tmp_path)
    assert "old" in chunk
    with chunk.open("wb"):
        chunk.append("new", {}, JPEGS[3:4])
    assert list(new_chunk(tmp_path).meta_dict) == list(chunk.meta_dict) == ["new"]
    assert chunk.read_jpegs("new") == JPEGS[3:4]
    assert check_directory(tmp_path, deep=True).problems == []


def test_what_the_original_wrote_is_appended_to_without_inventing_checksums(tmp_path):
    meta_dict = {}
    data = b""
    for id_, jpeg in zip("ab", JPEGS, strict=False):
        pad = -len(jpeg) % 4
        infos = [[len(data), pad, len(jpeg) + pad]]
        meta_dict[id_] = {"frame_info": infos, "meta_data": [{}]}
        data += jpeg + b"\0" * pad
    (tmp_path / "data_0.gulp").write_bytes(data)
    (tmp_path / "meta_0.gmeta").write_text(json.dumps(meta_dict))
    chunk = write(tmp_path, ("a", {}, JPEGS[2:3]), ("c", {}, JPEGS[3:4]), flag="ab")
    assert chunk.read_jpegs("a") == [JPEGS[0], JPEGS[2]]
    assert "gulp2" not in entry_of(tmp_path, "a")
    assert "gulp2" not in entry_of(tmp_path, "b")
    assert "gulp2" in entry_of(tmp_path, "c")
    report = check_directory(tmp_path, deep=True)
    assert (report.problems, report.frames_without_checksum) == ([], 3)


# --- times --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("appends", "pts"),
    [
        ([Timed([0, 40, 90])], [0, 40, 90]),
        ([Timed([0, 40]), Timed([80])], [0, 40, 80]),
        ([Timed([5])], [5]),
        ([Timed([0, None])], []),
        ([Timed([0, 40], None)], []),
        ([Timed([0, 40]), JPEGS[:1]], []),
        ([JPEGS[:1], Timed([0, 40])], []),
        ([Timed([0, 40]), Timed([80], Fraction(1, 25))], []),
        ([Timed([0, 40]), []], [0, 40]),
        ([Timed([0, 40]), Timed([]), Timed([80])], [0, 40, 80]),
    ],
    ids=[
        "all",
        "two sources",
        "one frame",
        "one without",
        "no time base",
        "then frames without",
        "after frames without",
        "another time base",
        "then nothing",
        "nothing between",
    ],
)
@pytest.mark.parametrize("several", [False, True])
def test_times_are_stored_where_every_frame_has_one(tmp_path, appends, pts, several):
    write(tmp_path)
    for group in [[a] for a in appends] if several else [appends]:
        items: list[Any] = [("a", {}, frames) for frames in group]
        chunk = write(tmp_path, *items, flag="ab")
    extras = new_chunk(tmp_path).item("a").extras
    assert list(extras.pts) == pts
    assert extras.time_base == (Fraction(1, 1000) if pts else None)
    assert chunk.item("a").extras.pts == extras.pts
    assert check_directory(tmp_path, deep=True).problems == []


def test_facts_of_the_source_are_stored(tmp_path):
    source = Timed([0], width=340, rotation=90)
    write(tmp_path, ("a", {}, source), ("b", {}, JPEGS[:1]))
    assert new_chunk(tmp_path).item("a").extras.source == {"width": 340, "rotation": 90}
    assert "source" not in entry_of(tmp_path, "b")["gulp2"]


# --- publishing ---------------------------------------------------------------------


@pytest.mark.parametrize("flag", ["wb", "ab"])
def test_readers_see_the_old_chunk_until_the_block_ends(tmp_path, flag):
    write(tmp_path, ("old", {}, JPEGS[:2]))
    chunk = new_chunk(tmp_path)
    with chunk.open(flag):
        chunk.append("new", {}, JPEGS[2:3])
        during = new_chunk(tmp_path)
        assert list(during.meta_dict) == ["old"]
        assert during.read_jpegs("old") == JPEGS[:2]
    assert "new" in new_chunk(tmp_path)


def test_a_flush_makes_visible_what_came_before_it(tmp_path):
    chunk = new_chunk(tmp_path)

    def write_and_fail() -> None:
        with chunk.open("wb"):
            chunk.append("a", {}, JPEGS[:1])
            chunk.flush()
            assert new_chunk(tmp_path).read_jpegs("a") == JPEGS[:1]
            chunk.append("b", {}, JPEGS[1:2])
            raise BrokenError

    with pytest.raises(BrokenError):
        write_and_fail()
    assert list(new_chunk(tmp_path).meta_dict) == ["a"]
    assert check_directory(tmp_path, deep=True).problems == []


@pytest.mark.parametrize("flag", ["wb", "ab"])
@pytest.mark.parametrize("error", [BrokenError, KeyboardInterrupt, SystemExit])
def test_a_block_that_ends_with_an_error_leaves_the_files_as_they_were(
    tmp_path, flag, error
):
    write(tmp_path, ("old", {}, JPEGS[:2]))
    expected = content(tmp_path)
    chunk = new_chunk(tmp_path)

    def write_and_fail() -> None:
        with chunk.open(flag):
            chunk.append("new", {}, JPEGS[2:5])
            raise error

    with pytest.raises(error):
        write_and_fail()
    assert content(tmp_path) == expected
    assert list(chunk.meta_dict) == ["old"]
    assert chunk.fp is None
    assert chunk.read_jpegs("old") == JPEGS[:2]
    with chunk.open("ab"):
        chunk.append("new", {}, JPEGS[2:5])
    assert chunk.read_jpegs("new") == JPEGS[2:5]


@pytest.mark.parametrize("flag", ["wb", "ab"])
@pytest.mark.parametrize("for_good", [False, True], ids=["once", "for good"])
def test_what_the_map_names_can_be_read_whatever_operation_failed(
    tmp_path, flag, for_good
):
    visible = set()
    for number in range(1, 100):
        folder = tmp_path / str(number)
        folder.mkdir()
        write(folder, ("old", {}, JPEGS[:2]))

        def fail(folder=folder, number=number) -> None:
            chunk = new_chunk(folder)
            fail_at_operation(number, errno.EIO, for_good=for_good)
            with pytest.raises(StorageError), chunk.open(flag):
                chunk.append("new", {}, JPEGS[2:5])

        if in_child(fail) != 0:  # there is no operation of this number
            break
        found = new_chunk(folder)
        visible.add(tuple(found.meta_dict))
        wanted = {"old": JPEGS[:2], "new": JPEGS[2:5]}
        for id_ in found.meta_dict:
            assert found.read_jpegs(id_) == wanted[id_], (number, id_)
        assert flag == "wb" or "old" in found.meta_dict
    assert number > 5
    # The map of the last ones has its name: a sync of the folder failed after that.
    assert ("new",) in visible or ("old", "new") in visible


@pytest.mark.parametrize("flag", ["wb", "ab"])
def test_where_there_is_no_room_for_the_new_map_the_old_chunk_stays(tmp_path, flag):
    write(tmp_path, ("old", {}, JPEGS[:2]))
    expected = content(tmp_path)

    def fail() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        chunk = new_chunk(tmp_path)
        with pytest.raises(StorageError, match="before is intact"), chunk.open(flag):
            chunk.append("new", {"text": 200_000 * "x"}, JPEGS[2:5])
        assert chunk.read_jpegs("old") == JPEGS[:2]

    assert in_child(fail) == 0
    assert content(tmp_path) == expected


def test_where_there_is_no_room_for_the_list_of_deleted_items_the_chunk_stays(tmp_path):
    write(tmp_path, ("old", {}, JPEGS[:2]), ("gone", {}, JPEGS[2:3]))
    other = new_chunk(tmp_path, 1)
    with other.open("wb"):
        other.append("large", {"text": 200_000 * "x"}, JPEGS[:1])
    delete_items(tmp_path, ["gone", "large"])
    expected = content(tmp_path)

    def fail() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        with (
            pytest.raises(StorageError, match="before is intact"),
            new_chunk(tmp_path).open("wb"),
        ):
            pass

    assert in_child(fail) == 0
    assert content(tmp_path) == expected


@contextmanager
def maps_without_names(monkeypatch: Any, name: str = "meta_0.gmeta") -> Iterator[None]:
    """Have the system refuse to give a map its name."""
    rename = Path.replace

    def refuse_map(path: Path, target: Path) -> Path:
        if Path(target).name == name:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", refuse_map)
        yield


def test_frames_whose_map_cannot_get_its_name_are_there_to_be_salvaged(
    tmp_path, monkeypatch
):
    write(tmp_path, ("old", {}, JPEGS[:2]))
    with maps_without_names(monkeypatch), pytest.raises(StorageError):
        write(tmp_path, ("new", {}, JPEGS[2:5]))
    data = (tmp_path / "data_0.gulp").read_bytes()
    assert all(jpeg in data for jpeg in JPEGS[2:5])
    assert [path.name for path in tmp_path.iterdir()] == ["data_0.gulp"]


@pytest.mark.parametrize("was_there", [False, True])
def test_a_map_that_cannot_get_its_name_is_told_with_what_can_be_done(
    tmp_path, tmp_path_factory, monkeypatch, was_there
):
    if was_there:
        write(tmp_path, ("old", {}, JPEGS[:2]))
    chunk = new_chunk(tmp_path)

    def write_new() -> None:
        with chunk.open("wb"):
            chunk.append("new", {}, JPEGS[2:5])

    with maps_without_names(monkeypatch), pytest.raises(StorageError) as caught:
        write_new()
    assert caught.value.errno == errno.EIO
    told = str(caught.value)
    assert "before is intact" not in told
    assert f"{tmp_path / 'data_0.gulp'} has the new frames, and no map says" in told
    assert told.endswith("salvage the frames. Other chunks are intact")
    report = repair_directory(tmp_path, tmp_path_factory.mktemp("a") / "b")
    assert [salvaged.frames for salvaged in report.salvaged] == [3]
    write_new()
    assert new_chunk(tmp_path).read_jpegs("new") == JPEGS[2:5]


def test_an_old_map_that_is_removed_already_is_told_and_can_be_stored_again(
    tmp_path, monkeypatch
):
    write(tmp_path, ("old", {}, JPEGS[:2]))
    chunk = new_chunk(tmp_path)
    with (
        maps_without_names(monkeypatch, "data_0.gulp"),
        pytest.raises(StorageError) as caught,
        chunk.open("wb"),
    ):
        chunk.append("new", {}, JPEGS[2:5])
    told = str(caught.value)
    assert "before is intact" not in told
    assert f"{tmp_path / 'data_0.gulp'} is as it was, and its map is removed" in told
    assert [path.name for path in tmp_path.iterdir()] == ["data_0.gulp"]
    with chunk.open("ab"):
        pass
    assert new_chunk(tmp_path, verify=True).read_jpegs("old") == JPEGS[:2]


def test_an_old_map_is_not_stored_over_frames_whose_map_could_not_get_its_name(
    tmp_path, monkeypatch
):
    write(tmp_path, ("old", {}, JPEGS[:2]))
    chunk = new_chunk(tmp_path)
    with (
        maps_without_names(monkeypatch),
        pytest.raises(StorageError),
        chunk.open("wb"),
    ):
        chunk.append("new", {}, JPEGS[2:7])
    assert list(chunk.meta_dict) == []
    with chunk.open("ab"):
        chunk.append("more", {}, JPEGS[7:8])
    again = new_chunk(tmp_path, verify=True)
    assert list(again.meta_dict) == ["more"]
    assert again.read_jpegs("more") == JPEGS[7:8]


@pytest.mark.parametrize("opened_as", ["chunk", "plain", "indexed"])
@pytest.mark.parametrize("is_new", [False, True], ids=["its own", "others"])
def test_a_map_that_is_gone_is_stored_again_over_its_own_frames_alone(
    tmp_path, opened_as, is_new
):
    write(tmp_path, ("a", {}, JPEGS[:2]), ("b", {}, JPEGS[2:4]))
    if opened_as == "chunk":
        chunk = new_chunk(tmp_path)
    else:
        directory = GulpDirectory(tmp_path, indexed=opened_as == "indexed")
        chunk = directory.chunk_objs_lookup[0]
    if is_new:  # and its writer was killed before the map had its name
        write(tmp_path, ("a", {}, JPEGS[1:8]))
    (tmp_path / "meta_0.gmeta").unlink()
    if is_new:
        with pytest.raises(ChunkMismatchError, match="no frame of item 'a'"):
            chunk.open("ab").__enter__()
        assert not (tmp_path / "meta_0.gmeta").exists()
        return
    with chunk.open("ab"):
        pass
    again = new_chunk(tmp_path, verify=True)
    assert again.read_jpegs("a") == JPEGS[:2]
    assert again.read_jpegs("b") == JPEGS[2:4]


def test_a_new_chunk_that_fails_leaves_no_file(tmp_path):
    with pytest.raises(BrokenError), new_chunk(tmp_path).open("wb"):
        raise BrokenError
    assert content(tmp_path) == {}


def test_data_is_on_the_disk_and_named_before_the_map_is(tmp_path, monkeypatch):
    write(tmp_path, ("old", {}, JPEGS[:1]))
    steps: list[str] = []
    fsync, replace, unlink = os.fsync, Path.replace, Path.unlink

    def note_sync(fd: int) -> None:
        target = Path(os.readlink(f"/proc/self/fd/{fd}"))  # noqa: PTH115  # a link
        name = "the folder" if target == tmp_path else target.name.split(".")[0]
        steps.append(f"sync {name}")
        fsync(fd)

    def note_replace(self: Path, target: Path) -> Path:
        steps.append(f"name {target.name}")
        return replace(self, target)

    def note_unlink(self: Path, missing_ok: bool = False) -> None:
        steps.append(f"remove {self.name}")
        unlink(self, missing_ok=missing_ok)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(Path, "replace", note_replace)
    monkeypatch.setattr(Path, "unlink", note_unlink)
    write(tmp_path, ("new", {}, JPEGS[:1]))
    assert steps == [
        "sync data_0",
        "sync meta_0",
        "remove meta_0.gmeta",
        "sync the folder",
        "name data_0.gulp",
        "sync the folder",
        "name meta_0.gmeta",
        "sync the folder",
    ]


@pytest.mark.usefixtures("permissions")
@pytest.mark.parametrize(
    "use",
    [
        lambda folder: new_chunk(folder).meta_dict,
        lambda folder: write(folder, ("b", {}, JPEGS[:1]), flag="ab"),
        lambda folder: write(folder, ("b", {}, JPEGS[:1]), flag="wb"),
    ],
    ids=["read", "ab", "wb"],
)
def test_a_chunk_in_a_folder_that_may_not_be_looked_into_is_refused(tmp_path, use):
    folder = tmp_path / "gulped"
    folder.mkdir()
    write(folder, ("a", {}, JPEGS[:1]))
    folder.chmod(0o600)
    try:
        with pytest.raises(StorageError, match=r"cannot look into .*gulped: Perm"):
            use(folder)
    finally:
        folder.chmod(0o700)
    assert list(new_chunk(folder).meta_dict) == ["a"]


def test_what_ends_the_writing_is_told_where_its_file_cannot_be_removed(tmp_path):
    chunk = new_chunk(tmp_path)

    def end():
        with chunk.open("wb"):
            chunk.append("a", {}, JPEGS[:1])
            (partial,) = tmp_path.glob("data_*.partial")
            partial.unlink()
            partial.mkdir()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        end()
    assert list(chunk.meta_dict) == []
