"""The check of a directory: every fault has a directory that shows it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gulpio2 import GulpChunk, GulpDirectory, GulpIngestor
from gulpio2.codecs.jpeg import EncoderSettings, encode_frame
from gulpio2.errors import StorageError
from gulpio2.format.gmeta import dump_gmeta
from gulpio2.format.manifest import Manifest, Run, dump_manifest
from gulpio2.ingest.shard import Shard
from gulpio2.merge import merge_directories
from gulpio2.removal import compact_directory, delete_items
from gulpio2.repair import repair_directory
from gulpio2.sanity import check_directory, original_tests
from gulpio2.sanity.data_files import DataFileCheck
from gulpio2.storage.index.keeping import build_index
from gulpio2.storage.local import LocalStore
from gulpio2.testing import FrameAdapter, make_frames, make_gulp_directory
from tests.chunks import Timed, make_chunk

if TYPE_CHECKING:
    from collections.abc import Callable

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write four items of three frames in two chunks, with manifest and labels."""
    path = tmp_path / "out"
    make_gulp_directory(path, num_frames=3).close()
    manifest = Manifest(runs=(Run("A", {}, {}, "1", chunks=(0, 1)),))
    (path / "gulp.json").write_bytes(dump_manifest(manifest))
    (path / "label2idx.json").write_text('{"a": 0, "b": 1}')
    return path


def edit(path: Path, change: Callable[[bytearray], Any]) -> None:
    """Change the bytes of a file in place."""
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(data)


def edit_map(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change a map and write it as a map is written; the checks stay as they were."""
    meta_dict = json.loads(path.read_bytes())
    change(meta_dict)
    path.write_bytes(dump_gmeta(meta_dict))


# --- what is whole ------------------------------------------------------------------


@pytest.mark.parametrize("deep", [False, True])
def test_a_whole_directory_has_no_problem_and_is_counted(folder, deep):
    report = check_directory(folder, deep=deep)
    assert report.ok
    assert (report.problems, report.notes) == ([], [])
    assert (report.chunks, report.items, report.frames) == (2, 4, 12)
    assert report.num_bytes == sum(p.stat().st_size for p in folder.glob("*.gulp"))
    assert report.frames_without_checksum == 0
    assert report.deep is deep
    assert str(report).startswith("no problem in 12 frames of 4 items in 2 chunks (0.0")


def test_a_frame_that_was_damaged_before_it_was_stored_is_found_by_decoding(tmp_path):
    frames = make_frames(1, height=32, width=40)
    whole = encode_frame(frames[0], EncoderSettings())
    damaged = bytearray(whole)
    damaged[-60:-20] = b"\xff\xd9" * 20
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("good", {}, [whole] * 30)
        chunk.append("bad", {}, [whole, bytes(damaged), whole])
    assert check_directory(tmp_path, deep=True).ok
    report = check_directory(tmp_path, decode=True)
    (problem,) = report.problems
    assert (problem.code, problem.item, problem.frame) == ("stored-damaged", "bad", 1)
    assert "mend its source. `gulp2 delete` the item and ingest it" in problem.message
    assert report.deep
    assert report.decoded
    # One whose bytes have changed since is told as that alone.
    edit(tmp_path / "data_0.gulp", lambda data: data.__setitem__(-300, data[-300] ^ 1))
    found = check_directory(tmp_path, decode=True).problems
    assert [(problem.code, problem.frame) for problem in found] == [
        ("stored-damaged", 1),
        ("crc-mismatch", 2),
    ]


def test_a_report_as_json_says_everything(folder):
    edit(folder / "data_0.gulp", lambda data: data.append(0))
    report = check_directory(folder, deep=True)
    value = json.loads(json.dumps(report.to_json()))
    assert list(value) == [
        "path", "ok", "deep", "decoded", "chunks", "items", "frames", "bytes",
        "frames_without_checksum", "problems", "notes",
    ]  # fmt: skip
    assert (value["path"], value["ok"], value["deep"]) == (str(folder), False, True)
    assert value["problems"] == [report.problems[0].to_json()]
    assert value["problems"][0]["code"] == "data-too-long"
    assert str(report).startswith("1 problem in 12 frames")


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize(
    "case",
    sorted(p.stem for p in GOLDEN.glob("*.json") if p.stem != "pickled"),
)
def test_what_the_original_wrote_is_whole_and_what_is_not_known_is_said(case, deep):
    report = check_directory(GOLDEN / case, deep=deep)
    assert report.problems == []
    assert report.frames == report.frames_without_checksum
    codes = {note.code for note in report.notes}
    assert codes <= {"no-checksums", "empty-item", "mixed-sizes"}
    assert ("mixed-sizes" in codes) == (
        deep and case in ("colour_and_grey", "quality_100")
    )
    assert ("no-checksums" in codes) == (report.frames > 0)


def test_a_directory_to_which_the_original_appended_is_whole(folder):
    jpeg = encode_frame(make_frames(1)[0], EncoderSettings())
    pad = -len(jpeg) % 4
    loc = (folder / "data_0.gulp").stat().st_size
    edit(folder / "data_0.gulp", lambda data: data.extend(jpeg + b"\0" * pad))

    def append(meta_dict: dict[str, Any]) -> None:
        meta_dict["item0"]["frame_info"].append([loc, pad, len(jpeg) + pad])
        meta_dict["item0"]["meta_data"].append({"by": "the original"})

    edit_map(folder / "meta_0.gmeta", append)
    # Its ingest knows no manifest, and adds chunks that are not in it.
    for name in ("data_{}.gulp", "meta_{}.gmeta"):
        shutil.copy(GOLDEN / "flow" / name.format(0), folder / name.format(2))
    report = check_directory(folder, deep=True)
    assert report.problems == []
    assert report.frames_without_checksum == 1 + 12
    edit(folder / "data_0.gulp", lambda data: data.__setitem__(700, data[700] ^ 1))
    (problem,) = check_directory(folder, deep=True).problems
    assert (problem.code, problem.item) == ("crc-mismatch", "item0"), "still covered"


def test_progress_adds_up(folder):
    done = {"items": 0, "frames": 0, "num_bytes": 0, "failures": 0}

    def progress(**counts: int) -> None:
        for name, count in counts.items():
            done[name] += count

    for deep in (False, True):
        done.update(dict.fromkeys(done, 0))
        report = check_directory(folder, deep=deep, progress=progress)
        assert (done["items"], done["frames"]) == (report.items, report.frames)
        assert (done["num_bytes"], done["failures"]) == (report.num_bytes, 0)
    (folder / "data_1.gulp").unlink()
    check_directory(folder, progress=progress)
    assert done["failures"] == 1


# --- what is there at all -----------------------------------------------------------


def test_a_missing_directory_is_an_error_and_no_finding(tmp_path):
    message = rf"there is no directory {tmp_path}/missing to check"
    with pytest.raises(StorageError, match=message):
        check_directory(tmp_path / "missing")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="there is no directory"):
        check_directory(tmp_path / "file")
    with pytest.raises(StorageError, match="cannot check s3://b/x: it is a URL"):
        check_directory("s3://b/x")


def test_an_empty_directory_is_a_finding(tmp_path):
    (problem,) = check_directory(tmp_path).problems
    assert (problem.code, problem.file) == ("no-chunks", ".")


def test_labels_that_another_program_has_replaced_are_noted(tmp_path):
    class Walks(FrameAdapter):
        def label_mapping(self):
            return {"walk": 0}

    GulpIngestor(Walks(num_items=1), tmp_path, 1, 1).run()
    (chunk,) = GulpDirectory(tmp_path).new_chunks(1)
    with chunk.open("wb"):
        chunk.append("jump", {"label": "jump", "idx": 0}, make_frames(1, 8, 8))
    (note,) = check_directory(tmp_path).notes
    assert (note.code, note.item) == ("label-number", "jump")
    (tmp_path / "label2idx.json").write_text('{"jump": 0}')
    (note,) = check_directory(tmp_path).notes
    assert (note.code, note.file) == ("other-labels", "label2idx.json")


def test_a_label_that_was_corrected_without_its_number_is_noted(tmp_path):
    class Labelled(FrameAdapter):
        def label_mapping(self):
            return {"walk": 0, "run": 1}

        def iter_data(self, indices=slice(None)):
            for item in super().iter_data(indices):
                yield {**item, "meta": {"label": "walk", "idx": 0}}

    GulpIngestor(Labelled(num_items=3), tmp_path, 3, 1).run()
    assert check_directory(tmp_path).notes == []
    (chunk,) = GulpDirectory(tmp_path)
    with chunk.open("ab"):
        chunk.meta_dict["item1"]["meta_data"][0]["label"] = "run"
    report = check_directory(tmp_path)
    assert report.ok
    (note,) = report.notes
    assert (note.code, note.item, note.file) == (
        "label-number",
        "item1",
        "meta_0.gmeta",
    )
    with chunk.open("ab"):
        chunk.meta_dict["item1"]["meta_data"][0]["idx"] = 1
    assert check_directory(tmp_path).notes == []


def test_a_share_that_has_no_chunk_is_none(tmp_path):
    adapter, shard = FrameAdapter(num_items=2), Shard(1, 3)
    GulpIngestor(adapter, tmp_path, 2, 1, shard=shard).run()
    report = check_directory(tmp_path, deep=True)
    assert (report.ok, report.chunks) == (True, 0)
    assert [note.code for note in report.notes] == ["missing-shares"]
    # One whose items all failed, or that was interrupted, is a finding.
    for name in ("failures.jsonl", "ingest.journal"):
        (tmp_path / name).write_bytes(b"")
        assert "no-chunks" in {p.code for p in check_directory(tmp_path).problems}
        (tmp_path / name).unlink()


def test_a_manifest_that_is_lost_is_noted_where_anything_tells_of_it(folder):
    (folder / "gulp.json").unlink()
    (note,) = check_directory(folder).notes
    assert (note.code, note.file) == ("no-manifest", "gulp.json")
    (folder / "label2idx.json").unlink()
    assert check_directory(folder).notes == []


def test_a_copy_of_a_map_is_to_be_removed_and_its_items_are_not_there_twice(folder):
    for number in (7, 8):
        shutil.copy(folder / "meta_1.gmeta", folder / f"meta_{number}.gmeta")
    report = check_directory(folder, deep=True)
    assert {problem.code for problem in report.problems} == {"map-without-data"}
    for problem in report.problems:
        assert problem.message.startswith("is a copy of meta_1.gmeta without a data fi")
    assert report.items == 4
    # Another map without its data is still gone through.
    (folder / "data_0.gulp").unlink()
    named = {p.file: p.message for p in check_directory(folder).problems}
    assert "Put the data file back" in named["meta_0.gmeta"]


def test_deleted_items_are_not_lost_where_nothing_tells_what_was_deleted(tmp_path):
    make_gulp_directory(tmp_path, num_items=6, items_per_chunk=3)
    build_index(tmp_path)
    older = (tmp_path / "index.arrow").read_bytes()
    delete_items(tmp_path, ["item1"])
    (tmp_path / "index.arrow").write_bytes(older)
    (tmp_path / "deleted.json").write_bytes(b"{")
    codes = {problem.code for problem in check_directory(tmp_path, deep=True).problems}
    assert codes == {"bad-removals", "unreferenced-bytes"}


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (lambda data: data[:40], "40 bytes that are not JSON"),
        (lambda data: b'{"check": 1, "check": 2}', "key 'check' appears twice"),
    ],
)
def test_of_a_damaged_small_file_is_told_what_becomes_of_it(tmp_path, damage, what):
    GulpIngestor(FrameAdapter(num_items=3), tmp_path / "in", 2, 1).run()
    delete_items(tmp_path / "in", ["item1"])
    advice = {
        "gulp.json": "It can be removed: the frames do not depend on it",
        "deleted.json": "Items that were deleted stay hidden without it",
    }
    for name in advice:
        path = tmp_path / "in" / name
        path.write_bytes(damage(path.read_bytes()))
    found = {
        each.file: each.message for each in check_directory(tmp_path / "in").problems
    }
    lost = repair_directory(tmp_path / "in", tmp_path / "out").lost
    reasons = {loss.file: loss.reason for loss in lost}
    for name, text in advice.items():
        # The check itself must not send to the check, nor name the file twice.
        assert found[name].startswith(what)
        assert text in found[name]
        assert found[name] in reasons[name]
        assert f"{name}: " not in reasons[name]


def test_items_that_an_older_map_has_lost_are_named_by_the_index(tmp_path):
    make_gulp_directory(tmp_path, num_items=6, items_per_chunk=3)
    path = tmp_path / "meta_0.gmeta"
    older = path.read_bytes()
    chunk = GulpChunk(tmp_path / "data_0.gulp", path)
    with chunk.open("ab"):
        for number in (1, 2):
            chunk.append(f"new{number}", {}, make_frames(2, seed=90 + number))
    delete_items(tmp_path, ["item1"])
    build_index(tmp_path)
    newer = path.read_bytes()
    path.write_bytes(older)
    report = check_directory(tmp_path, deep=True)
    lost = [p for p in report.problems if p.code == "lost-item"]
    assert [(p.item, p.file) for p in lost] == [
        ("new1", "meta_0.gmeta"),
        ("new2", "meta_0.gmeta"),
    ]
    (note,) = (note for note in report.notes if note.code == "stale-index")
    assert "let it be until they are back" in note.message
    data = (tmp_path / "data_0.gulp").read_bytes()
    (tmp_path / "data_0.gulp").write_bytes(data[:-4])  # of one of them a frame is gone
    problems = check_directory(tmp_path, deep=True).problems
    assert [p.item for p in problems if p.code == "lost-item"] == ["new1"]
    (tmp_path / "data_0.gulp").write_bytes(data)
    path.write_bytes(newer)
    assert check_directory(tmp_path, deep=True).ok


def _refuse(path: Path, patch: pytest.MonkeyPatch) -> None:
    path.write_bytes(path.read_bytes().replace(b"item0", b"other"))
    read = LocalStore.read

    def refuse(self: LocalStore, name: str) -> bytes:
        if name == path.name:
            raise StorageError(5, "Input/output error")
        return read(self, name)

    patch.setattr(LocalStore, "read", refuse)


@pytest.mark.parametrize(
    ("harm", "code"),
    [
        (lambda path, _: path.write_bytes(path.read_bytes()[:-60]), "map-not-json"),
        (lambda path, _: path.write_bytes(b"[" * 100_000), "map-not-json"),
        (_refuse, "unreadable-file"),
    ],
    ids=["cut", "nested", "refused"],
)
def test_a_map_that_is_no_more_to_be_read_keeps_no_other_from_the_index(
    tmp_path, monkeypatch, harm, code
):
    make_gulp_directory(tmp_path, num_items=6, items_per_chunk=3).close()
    path = tmp_path / "meta_1.gmeta"
    older = path.read_bytes()
    chunk = GulpChunk(tmp_path / "data_1.gulp", path)
    with chunk.open("ab"):
        chunk.append("new", {}, make_frames(2, seed=90))
    build_index(tmp_path)
    path.write_bytes(older)
    harm(tmp_path / "meta_0.gmeta", monkeypatch)
    report = check_directory(tmp_path, deep=True)
    found = {(problem.code, problem.file) for problem in report.problems}
    assert (code, "meta_0.gmeta") in found
    assert ("lost-item", "meta_1.gmeta") in found
    assert "bad-index" not in {problem.code for problem in report.problems}
    assert "stale-index" in {note.code for note in report.notes}


def test_items_that_are_elsewhere_now_are_not_lost(tmp_path):
    make_gulp_directory(tmp_path, num_items=6, items_per_chunk=3)
    build_index(tmp_path)
    index = (tmp_path / "index.arrow").read_bytes()
    delete_items(tmp_path, ["item0", "item1"])
    compact_directory(tmp_path)
    delete_items(tmp_path, ["item2", "item3"])
    path = tmp_path / "meta_1.gmeta"
    path.write_bytes(path.read_bytes().replace(b'"item4"', b'"other"'))
    (tmp_path / "index.arrow").write_bytes(index)
    codes = {p.code for p in check_directory(tmp_path, deep=True).problems}
    assert codes == {"entry-check"}


@pytest.mark.parametrize("copy", ["merge", "repair"])
def test_a_copy_of_a_directory_whose_items_were_all_deleted_has_no_chunk(
    tmp_path, copy
):
    source, target = tmp_path / "in", tmp_path / "out"
    GulpIngestor(FrameAdapter(num_items=2), source, 2, 1).run()
    delete_items(source, ["item0", "item1"])
    compact_directory(source)
    assert check_directory(source, deep=True).ok
    if copy == "merge":
        merge_directories([source], target)
    else:
        repair_directory(source, target)
    report = check_directory(target, deep=True)
    assert (report.problems, report.chunks) == ([], 0)


def test_a_copy_of_which_all_was_lost_is_a_finding(tmp_path):
    source, target = tmp_path / "in", tmp_path / "out"
    GulpIngestor(FrameAdapter(num_items=2), source, 2, 1).run()
    (source / "data_0.gulp").write_bytes(b"")
    repair_directory(source, target)
    assert [p.code for p in check_directory(target).problems] == ["no-chunks"]


@pytest.mark.parametrize("shard", [None, Shard(1, 2)])
def test_a_directory_that_has_lost_all_of_its_chunks_has_none_by_no_right(
    tmp_path, shard
):
    GulpIngestor(FrameAdapter(num_items=4), tmp_path, 2, 1, shard=shard).run()
    for name in ("data_0.gulp", "meta_0.gmeta", "data_1.gulp", "meta_1.gmeta"):
        (tmp_path / name).unlink(missing_ok=True)
    codes = {problem.code for problem in check_directory(tmp_path).problems}
    assert codes == {"no-chunks", "missing-chunk"}


def test_a_folder_that_cannot_be_listed_is_an_error(folder, monkeypatch):
    def refuse(_: object) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "listdir", refuse)
    with pytest.raises(StorageError, match=rf"cannot list {folder}: Permission denied"):
        check_directory(folder)


@pytest.mark.parametrize("name", ["data_0.gulp", "meta_0.gmeta", "gulp.json"])
def test_a_file_that_is_a_folder_is_a_finding_and_the_rest_is_checked(folder, name):
    (folder / name).unlink()
    (folder / name).mkdir()
    os.truncate(folder / "data_1.gulp", 10)
    codes = {(p.code, p.file) for p in check_directory(folder, deep=True).problems}
    assert ("unreadable-file", name) in codes
    assert ("data-too-short", "data_1.gulp") in codes


@pytest.mark.parametrize(
    "name", ["data_0.gulp", "meta_0.gmeta", "gulp.json", "deleted.json"]
)
def test_a_link_that_leads_to_nothing_is_a_finding_that_says_so(folder, name):
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to("moved/away")
    found = [p for p in check_directory(folder).problems if p.file == name]
    assert [problem.code for problem in found] == ["unreadable-file"]
    assert str(found[0]).startswith(
        f"{name}: cannot be read: cannot read {folder / name}: it is a link to "
        "moved/away, which is not there. Bring back what it leads to"
    )


def test_a_map_that_cannot_be_read_says_nothing_about_its_data(folder, monkeypatch):
    read = LocalStore.read

    def refuse(self: LocalStore, name: str) -> bytes:
        if name == "meta_0.gmeta":
            raise StorageError(13, "Permission denied")
        return read(self, name)

    monkeypatch.setattr(LocalStore, "read", refuse)
    (problem,) = check_directory(folder, deep=True).problems
    assert (problem.code, problem.file) == ("unreadable-file", "meta_0.gmeta")


@pytest.mark.parametrize("deep", [False, True])
def test_a_disk_that_fails_is_a_finding_with_its_place(folder, monkeypatch, deep):
    read_at = LocalStore.read_at

    def fail(self: LocalStore, name: str, offset: int, length: int) -> bytes:
        if name == "data_0.gulp":
            raise StorageError(5, "Input/output error")
        return read_at(self, name, offset, length)

    monkeypatch.setattr(LocalStore, "read_at", fail)
    (problem,) = check_directory(folder, deep=deep).problems
    assert str(problem) == (
        "data_0.gulp, byte 0: cannot be read: Input/output error [unreadable-file]"
    )


@pytest.mark.parametrize("deep", [False, True])
def test_deleted_frames_that_cannot_be_read_are_not_taken_for_erased(
    folder, monkeypatch, deep
):
    with GulpDirectory(folder) as directory:
        id_ = next(iter(directory.chunk_lookup))
        loc = directory.item(id_).entry["frame_info"][0][0]
    delete_items(folder, [id_])
    read_at = LocalStore.read_at

    def fail(self: LocalStore, name: str, offset: int, length: int) -> bytes:
        if name == "data_0.gulp" and offset <= loc < offset + length:
            raise StorageError(5, "Input/output error")
        return read_at(self, name, offset, length)

    monkeypatch.setattr(LocalStore, "read_at", fail)
    (problem,) = check_directory(folder, deep=deep).problems
    assert (problem.code, problem.file) == ("unreadable-file", "data_0.gulp")


def test_no_file_stays_open(folder):
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208  # names are numbers
    for _ in range(3):
        check_directory(folder, deep=True)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208  # the same


# --- bounds -------------------------------------------------------------------------


def sizes_of_reads(folder: Path, monkeypatch: Any, *, deep: bool) -> list[int]:
    """Check a directory; give how many bytes were asked for at once."""
    sizes = []
    read_at = LocalStore.read_at

    def note(self: LocalStore, name: str, offset: int, length: int) -> bytes:
        sizes.append(length)
        return read_at(self, name, offset, length)

    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "read_at", note)
        assert check_directory(folder, deep=deep).problems == []
    return sizes


def long_jpeg(num_bytes: int) -> bytes:
    """Give a JPEG that is lengthened by comments."""
    jpeg = encode_frame(make_frames(1)[0], EncoderSettings())
    comment = b"\xff\xfe" + (2 + 65_000).to_bytes(2, "big") + b"c" * 65_000
    return jpeg[:2] + comment * (num_bytes // len(comment)) + jpeg[2:]


@pytest.mark.parametrize("deep", [False, True])
def test_data_is_read_in_blocks(tmp_path, monkeypatch, deep):
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("a", {}, [long_jpeg(700_000)] * 20)
    sizes = sizes_of_reads(tmp_path, monkeypatch, deep=deep)
    assert max(sizes) <= 4 * 1024 * 1024
    total = (tmp_path / "data_0.gulp").stat().st_size
    assert sum(sizes) == total if deep else sum(sizes) < total / 10


def test_a_frame_longer_than_a_block_is_checked_too(tmp_path, monkeypatch):
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("a", {}, [long_jpeg(5_000_000), make_frames(1)[0]])
    assert check_directory(tmp_path, deep=True).problems == []
    monkeypatch.setattr("gulpio2.sanity.data_files._LONGEST", 4 * 1024 * 1024)
    sizes = sizes_of_reads(tmp_path, monkeypatch, deep=True)
    assert max(sizes) <= 4 * 1024 * 1024, "longer ones go piece by piece"
    place = 4_500_000
    edit(tmp_path / "data_0.gulp", lambda d: d.__setitem__(place, d[place] ^ 1))
    (problem,) = check_directory(tmp_path, deep=True).problems
    assert (problem.code, problem.item, problem.frame) == ("crc-mismatch", "a", 0)


def test_a_map_whose_records_all_cover_the_file_costs_no_more_than_twice(
    folder, monkeypatch
):
    size = (folder / "data_0.gulp").stat().st_size

    def cover(meta_dict: dict[str, Any]) -> None:
        meta_dict["item0"] = {
            "frame_info": [[0, 0, size]] * 500,
            "meta_data": [{}],
        }

    edit_map(folder / "meta_0.gmeta", cover)
    asked = []
    read_at = LocalStore.read_at

    def note(self: LocalStore, name: str, offset: int, length: int) -> bytes:
        asked.append(length if name == "data_0.gulp" else 0)
        return read_at(self, name, offset, length)

    monkeypatch.setattr(LocalStore, "read_at", note)
    report = check_directory(folder, deep=True)
    assert sum(asked) <= 3 * size
    assert sum(problem.code == "overlap" for problem in report.problems) >= 499
    (note_of_it,) = [note for note in report.notes if note.code == "not-checked"]
    assert "were checked at their ends alone" in note_of_it.message


# --- the tests of the original ------------------------------------------------------


def test_a_whole_directory_passes_the_tests_of_the_original(folder):
    tests = original_tests(check_directory(folder))
    assert [(test["message"], test["failures"]) for test in tests] == [
        ("Check for empty meta files", []),
        ("Check for empty data files", []),
        ("Check data file size equals size in meta file", []),
        ("Check presence of duplicate ids", []),
    ]


def test_each_problem_is_in_one_of_the_tests_of_the_original_or_in_a_fifth(folder):
    (folder / "data_0.gulp").write_bytes(b"")
    os.truncate(folder / "data_1.gulp", 100)
    for name in ("data_{}.gulp", "meta_{}.gmeta"):
        shutil.copy(folder / name.format(1), folder / name.format(2))
    (folder / "data_3.gulp").write_bytes(b"")
    (folder / "meta_3.gmeta").write_bytes(b"")
    report = check_directory(folder)
    results: dict[str, Any] = {
        str(test["message"]): test["failures"] for test in original_tests(report)
    }
    assert results["Check for empty meta files"] == [str(folder / "meta_3.gmeta")]
    assert results["Check for empty data files"] == [str(folder / "data_0.gulp")]
    assert results["Check data file size equals size in meta file"] == [
        str(folder / f"data_{number}.gulp") for number in (0, 1, 2)
    ]
    assert results["Check presence of duplicate ids"] == ["item2", "item3"]
    others = results["Check everything else"]
    assert all("span-outside-file" in line for line in others)
    assert len(others) == 6 + 6 + 6


def test_the_fifth_test_counts_what_is_not_listed(tmp_path, monkeypatch):
    monkeypatch.setattr("gulpio2.sanity.report._MOST", 30)
    make_gulp_directory(tmp_path, num_items=1, num_frames=100).close()
    (tmp_path / "data_0.gulp").write_bytes(b"")
    counts: list[int] = []
    report = check_directory(
        tmp_path, progress=lambda failures=0, **_: counts.append(failures)
    )
    lines: Any = original_tests(report)[-1]["failures"]
    assert lines[-1] == "and 80 more (see `gulp2 check`)"
    assert sum(counts) == sum(problem.count for problem in report.problems) == 101


def test_a_chunk_that_is_changed_meanwhile_is_looked_at_again(tmp_path, monkeypatch):
    make_gulp_directory(tmp_path, num_items=3, num_frames=2)
    looked_at = DataFileCheck.run

    def delete_first(self, *arguments):
        if "item0" in GulpDirectory(tmp_path):
            delete_items(tmp_path, ["item0"])
            compact_directory(tmp_path)
        return looked_at(self, *arguments)

    monkeypatch.setattr(DataFileCheck, "run", delete_first)
    report = check_directory(tmp_path, deep=True)
    assert (report.problems, report.notes) == ([], [])
    assert report.items == 2


def test_what_is_found_in_a_chunk_that_goes_on_changing_is_told_as_such(
    tmp_path, monkeypatch
):
    make_gulp_directory(tmp_path, num_items=3, num_frames=2)
    looked_at = DataFileCheck.run

    def grow(self, *arguments):
        write_more()
        return looked_at(self, *arguments)

    def write_more():
        with (tmp_path / "data_0.gulp").open("ab") as data:
            data.write(bytes(4))

    write_more()
    monkeypatch.setattr(DataFileCheck, "run", grow)
    report = check_directory(tmp_path)
    assert {problem.code for problem in report.problems} == {"data-too-long"}
    assert [note.code for note in report.notes] == ["changing"]
    assert report.items == 3


def test_a_chunk_of_which_nothing_is_left_is_noted_where_no_manifest_tells_of_it(
    folder,
):
    for name in ("data_0.gulp", "meta_0.gmeta"):
        (folder / name).unlink()
    report = check_directory(folder)
    assert [problem.code for problem in report.problems] == ["missing-chunk"]
    assert report.notes == []
    for name in ("gulp.json", "label2idx.json"):
        (folder / name).unlink()
    report = check_directory(folder)
    assert report.ok
    assert [str(note) for note in report.notes] == [
        "this directory: there is no chunk 0, and there are later ones: was it removed "
        "or renamed, or not copied? An ingest leaves out only numbers of chunks of "
        "which it could store no item [number-gap]"
    ]
    # A run that is not finished may write it yet.
    (folder / "ingest.journal").write_bytes(b"")
    report = check_directory(folder)
    assert [problem.code for problem in report.problems] == ["unfinished-ingest"]
    assert report.notes == []


@pytest.mark.parametrize("has_checksums", [True, False])
def test_data_files_that_were_swapped_are_told_of_as_such(tmp_path, has_checksums):
    adapter = FrameAdapter(num_items=7)
    GulpIngestor(adapter, tmp_path, 2, 1).run()
    if not has_checksums:  # as GulpIO2 0.0.4 has them
        for path in tmp_path.glob("*.gmeta"):
            entries = json.loads(path.read_bytes())
            for entry in entries.values():
                del entry["gulp2"]
            path.write_bytes(dump_gmeta(entries))
        (tmp_path / "gulp.json").unlink()
    assert check_directory(tmp_path).ok
    names = [tmp_path / f"data_{n}.gulp" for n in (0, 3)]
    before = [path.read_bytes() for path in names]
    for path, data in zip(names, reversed(before), strict=True):
        path.write_bytes(data)
    report = check_directory(tmp_path)
    assert not report.ok
    notes = [note for note in report.notes if note.code == "changed-places"]
    assert [note.file for note in notes] == ["data_0.gulp"]
    assert "meta_3.gmeta speaks of, data_3.gulp that of meta_0" in notes[0].message
    delete_items(tmp_path, ["item6"])  # then nothing is known of its chunk's length
    told = {note.code for note in check_directory(tmp_path).notes}
    assert "changed-places" not in told


def test_frames_that_were_appended_twice_are_noted_and_no_problem(tmp_path):
    chunk = make_chunk(tmp_path, {"a": ({}, Timed([0, 40, 80])), "b": ({}, Timed([7]))})
    assert check_directory(tmp_path, deep=True).notes == []
    with chunk.open("ab"):
        chunk.append("a", {}, Timed([0, 40, 80]))
    report = check_directory(tmp_path)
    assert report.ok
    (note,) = report.notes
    assert (note.code, note.file, note.item, note.frame) == (
        *("times-go-back", "meta_0.gmeta", "a"),
        3,
    )
    assert "appended twice" in note.message
    delete_items(tmp_path, ["a"])
    assert check_directory(tmp_path, deep=True).notes == []
