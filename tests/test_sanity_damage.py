"""Every fault that the check knows, in a directory that has it, and its place."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gulpio2.format.entry import entry_check
from gulpio2.format.gmeta import dump_gmeta
from gulpio2.format.manifest import Manifest, Run, dump_manifest
from gulpio2.sanity import check_directory
from gulpio2.testing import make_gulp_directory

if TYPE_CHECKING:
    from collections.abc import Callable

    Damage = Callable[[Path], Any]

DATA, META = "data_0.gulp", "meta_0.gmeta"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write item0 and item1, then item2 and item3, of three frames, with a manifest."""
    path: Path = tmp_path_factory.mktemp("whole")
    make_gulp_directory(path, num_frames=3, height=16, width=24).close()
    manifest = Manifest(runs=(Run("A", {}, {}, "1", chunks=(0, 1)),))
    (path / "gulp.json").write_bytes(dump_manifest(manifest))
    (path / "label2idx.json").write_text('{"a": 0, "b": 1}')
    return path


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """Copy the whole directory."""
    return Path(shutil.copytree(whole, tmp_path / "out"))


# --- damages ------------------------------------------------------------------------


def remove(*names: str) -> Damage:
    """Remove files."""

    def damage(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return damage


def put(name: str, data: bytes) -> Damage:
    """Write a file."""
    return lambda folder: (folder / name).write_bytes(data)


def add(name: str, data: bytes) -> Damage:
    """Add bytes to the end of a file."""
    return lambda folder: (folder / name).write_bytes(
        (folder / name).read_bytes() + data
    )


def swap(name: str, old: bytes, new: bytes) -> Damage:
    """Change bytes of a file, in one place."""
    return lambda folder: (folder / name).write_bytes(
        (folder / name).read_bytes().replace(old, new, 1)
    )


def cut(name: str, num_bytes: int) -> Damage:
    """Cut bytes off the end of a file."""
    return lambda folder: os.truncate(
        folder / name, (folder / name).stat().st_size - num_bytes
    )


def insert(data: bytes) -> Damage:
    """Put bytes between item0 and item1, and tell the map of item1's new place."""

    def damage(folder: Path) -> None:
        start = info_of(folder, "item1", 0)[0]
        content = (folder / DATA).read_bytes()
        (folder / DATA).write_bytes(content[:start] + data + content[start:])

        def move(meta_dict: dict[str, Any]) -> None:
            for info in meta_dict["item1"]["frame_info"]:
                info[0] += len(data)

        in_map(move)(folder)

    return damage


def in_map(change: Callable[[dict[str, Any]], Any], *, extras: bool = True) -> Damage:
    """Change a map; what is left is written as a map is written."""

    def damage(folder: Path) -> None:
        meta_dict = json.loads((folder / META).read_bytes())
        change(meta_dict)
        if not extras:
            for entry in meta_dict.values():
                entry.pop("gulp2")
        (folder / META).write_bytes(dump_gmeta(meta_dict))

    return damage


def info_of(folder: Path, id_: str, frame: int) -> list[int]:
    """Give loc, pad and length of a frame in chunk 0."""
    meta_dict = json.loads((folder / META).read_bytes())
    info: list[int] = meta_dict[id_]["frame_info"][frame]
    return info


def in_frame(frame: int, where: str, new: bytes) -> Damage:
    """Overwrite the start, the end, the middle or the padding of a frame of item1."""

    def damage(folder: Path) -> None:
        loc, pad, length = info_of(folder, "item1", frame)
        end = loc + length - pad
        place = {"start": loc, "end": end - 2, "middle": end - 40, "pad": end}[where]
        data = bytearray((folder / DATA).read_bytes())
        data[place : place + len(new)] = new
        (folder / DATA).write_bytes(data)

    return damage


def both(*damages: Damage) -> Damage:
    """Do one after the other."""
    return lambda folder: [damage(folder) for damage in damages]


def set_info(frame: int, place: int, change: int) -> Callable[[dict[str, Any]], None]:
    """Change loc (0), pad (1) or length (2) of a frame of item1."""

    def apply(meta_dict: dict[str, Any]) -> None:
        meta_dict["item1"]["frame_info"][frame][place] += change

    return apply


def copy_chunk(folder: Path) -> None:
    """Have chunk 1 once more, as chunk 12."""
    for name in ("data_{}.gulp", "meta_{}.gmeta"):
        shutil.copy(folder / name.format(1), folder / name.format(12))


def repeat_id(folder: Path) -> None:
    """Call item1 item0, so that the map has one id twice."""
    data = (folder / META).read_bytes().replace(b'"item1": ', b'"item0": ')
    (folder / META).write_bytes(data)


def overlapping(folder: Path) -> None:
    """Have frame 1 of item1 once more, as frame 2, in the place of which nothing is."""

    def change(meta_dict: dict[str, Any]) -> None:
        infos = meta_dict["item1"]["frame_info"]
        os.truncate(folder / DATA, infos[2][0])
        infos[2] = infos[1]

    in_map(change)(folder)


def without_checksums(damage: Damage) -> Damage:
    """Do it to a directory as 0.0.4 would have written it."""
    return both(in_map(lambda _: None, extras=False), damage)


def swap_frames(meta_dict: dict[str, Any]) -> None:
    """Exchange two frames, and make the check anew: only their checksums are left."""
    entry = meta_dict["item1"]
    entry["frame_info"][:2] = reversed(entry["frame_info"][:2])
    entry["gulp2"]["check"] = entry_check("item1", entry)


NO_JPEG = b"\0" * 30
# Name, what is done, and what an ordinary check finds: code, file, item, frame, and a
# part of the message.
ORDINARY: list[tuple[str, Damage, list[tuple[str, str, Any, Any, str]]]] = [
    ("a map is lost", remove(META), [
        ("data-without-map", DATA, None, None, "has no meta_0.gmeta and is passed")]),
    ("a data file is lost", remove(DATA), [
        ("map-without-data", META, None, None, "has no data_0.gulp: its frames are")]),
    ("a chunk is lost", remove("data_1.gulp", "meta_1.gmeta"), [
        ("missing-chunk", "data_1.gulp", None, None, "that the manifest tells of")]),
    ("a writer was killed", put("data_7.gulp.0a1b.partial", b"x"), [
        ("partial-file", "data_7.gulp.0a1b.partial", None, None, "was not finished")]),
    ("an ingest was killed", put("ingest.journal", b""), [
        ("unfinished-ingest", "ingest.journal", None, None, "or was interrupted")]),
    ("a stray name", put("data_01.gulp", b""), [
        ("stray-name", "data_01.gulp", None, None, "without leading zeros")]),
    # maps
    ("an empty map", put(META, b""), [
        ("empty-map-file", META, None, None, "is empty: nothing of its chunk")]),
    ("a cut map", cut(META, 1), [
        ("map-not-json", META, None, None, "is not JSON")]),
    ("a pickle as map", put(META, b"\x80\x04}."), [
        ("map-not-json", META, None, None, "is not JSON")]),
    ("a list as map", put(META, b"[]"), [
        ("map-not-object", META, None, None, "holds no JSON object but a list")]),
    ("a newline after the map", add(META, b"\n"), [
        ("map-not-canonical", META, None, None, "a byte has changed, or another")]),
    ("an id twice in a map", repeat_id, [
        ("duplicate-id", META, "item0", None, "stands in the map 2 times"),
        ("entry-check", META, "item0", None, "its check is not that of its content")]),
    ("an id in two maps", copy_chunk, [
        ("duplicate-id", "meta_12.gmeta", "item2", None, "is in meta_1.gmeta as well"),
        ("duplicate-id", "meta_12.gmeta", "item3", None, "is in meta_1.gmeta")]),
    # entries
    ("an entry that is none", in_map(lambda m: m["item1"].update(frame_info=0)), [
        ("bad-entry", META, "item1", None, "has no list (at `$.frame_info`)"),
        ("data-too-long", DATA, None, None, "of which the map knows")]),
    ("a frame info that is none", in_map(set_info(1, 1, 4)), [
        ("bad-entry", META, "item1", None, "(at `$.frame_info[1]`)"),
        ("data-too-long", DATA, None, None, "of which the map knows")]),
    ("no metadata", in_map(lambda m: m["item1"]["meta_data"].clear()), [
        ("no-metadata", META, "item1", None, "meta_data is empty"),
        ("entry-check", META, "item1", None, "something of the entry has changed")]),
    ("other metadata", in_map(lambda m: m["item1"]["meta_data"][0].update(n=7)), [
        ("entry-check", META, "item1", None, "something of the entry has changed")]),
    ("an unknown key", in_map(lambda m: m["item1"].update(gulp3=1)), [
        ("unknown-key", META, "item1", None, "'gulp3' is no key of this version"),
        ("entry-check", META, "item1", None, "something of the entry has changed")]),
    ("extras that are none", in_map(lambda m: m["item1"]["gulp2"].update(pts=[])), [
        ("bad-extras", META, "item1", None, "pts holds 0 times for 3 frames")]),
    ("a key without its other half",
     in_map(lambda m: m["item1"]["gulp2"].update(time_base=[1, 5])), [
        ("bad-extras", META, "item1", None, "pts is missing"),
        ("entry-check", META, "item1", None, "something of the entry has changed")]),
    # spans
    ("an empty data file", put(DATA, b""), [
        ("empty-data-file", DATA, None, None, "is empty, and the map speaks of"),
        *[("span-outside-file", DATA, f"item{i}", k, "the frame is lost")
          for i in (0, 1) for k in range(3)]]),
    ("a cut data file", cut(DATA, 5), [
        ("data-too-short", DATA, None, None, "it was cut"),
        ("span-outside-file", DATA, "item1", 2, "the frame is lost")]),
    ("a longer data file", add(DATA, b"\0"), [
        ("data-too-long", DATA, None, None, "an append goes on or was cut short")]),
    ("bytes between records", insert(b"\0" * 8), [
        ("entry-check", META, "item1", None, "something of the entry has changed"),
        ("unreferenced-bytes", DATA, None, None, "8 bytes that belong to no frame")]),
    ("records off their places", without_checksums(insert(b"\0" * 2)), [
        ("unreferenced-bytes", DATA, None, None, "2 bytes that belong to no frame"),
        *[("misaligned", DATA, "item1", k, "at a multiple of 4") for k in range(3)]]),
    ("a length that is no multiple of four",
     without_checksums(in_map(set_info(2, 2, -1))), [
        ("bad-pad", DATA, "item1", 2, "of padding and have"),
        ("data-too-long", DATA, None, None, "of which the map knows"),
        ("not-jpeg", DATA, "item1", 2, "and not with ff d9"),
        ("pad-not-zero", DATA, "item1", 2, "its padding is d9")]),
    ("records that overlap", without_checksums(overlapping), [
        ("overlap", DATA, "item1", 2, "with frame 1 of item 'item1'")]),
    ("a record of two bytes", without_checksums(in_map(
        lambda m: m["item1"]["frame_info"][1].__setitem__(slice(1, 3), [0, 2]))), [
        ("not-jpeg", DATA, "item1", 1, "2 bytes are too few for a JPEG"),
        ("bad-pad", DATA, "item1", 1, "2 bytes need 2 of padding and have 0"),
        ("unreferenced-bytes", DATA, None, None, "that belong to no frame")]),
    # records
    ("a zeroed frame", in_frame(1, "start", NO_JPEG), [
        ("not-jpeg", DATA, "item1", 1, "is no JPEG: it begins with 00 00")]),
    ("a broken header", in_frame(1, "start", b"\xff\xd8" + NO_JPEG), [
        ("not-jpeg", DATA, "item1", 1, "no marker at its byte 2")]),
    ("a frame without an end", in_frame(2, "end", b"\0\0"), [
        ("not-jpeg", DATA, "item1", 2, "it ends with 00 00 and not with ff d9")]),
    # the files beside
    ("a changed manifest", swap("gulp.json", b'"adapter"', b'"adaptor"'), [
        ("bad-manifest", "gulp.json", None, None, "does not fit its check")]),
    ("a manifest of another form", add("gulp.json", b" "), [
        ("bad-manifest", "gulp.json", None, None, "its form is not")]),
    ("labels with one index", put("label2idx.json", b'{"a": 0, "b": 0}'), [
        ("bad-labels", "label2idx.json", None, None, "both have index 0")]),
    ("failures that are none", put("failures.jsonl", b"{\n"), [
        ("bad-failures", "failures.jsonl", None, None, "line 1 is no JSON object")]),
]  # fmt: skip

# What a deep check finds beyond that.
DEEP: list[tuple[str, Damage, list[tuple[str, str, Any, Any, str]]]] = [
    ("changed pixels", in_frame(1, "middle", b"\x12\x34"), [
        ("crc-mismatch", DATA, "item1", 1, "bytes have changed since")]),
    ("frames swapped", in_map(swap_frames), [
        ("crc-mismatch", DATA, "item1", 0, "was stored"),
        ("crc-mismatch", DATA, "item1", 1, "was stored")]),
    ("pixels cut, no checksum",
     without_checksums(in_frame(1, "middle", b"\xff\xd9" * 19)), [
        ("not-decodable", DATA, "item1", 1, "cannot be decoded: a damaged or cut")]),
]  # fmt: skip


def assert_found(
    folder: Path, expected: list[tuple[str, str, Any, Any, str]], *, deep: bool
) -> None:
    """Compare what a check finds with what it has to find, in any order."""
    problems = check_directory(folder, deep=deep).problems
    places = [(p.code, p.file, p.item, p.frame) for p in problems]
    assert sorted(places, key=str) == sorted((e[:4] for e in expected), key=str)
    for code, file, item, frame, message in expected:
        assert any(
            (p.code, p.file, p.item, p.frame) == (code, file, item, frame)
            and message in p.message
            for p in problems
        ), f"{message!r} is in none of {[str(p) for p in problems]}"


def cases(table: list[Any]) -> list[Any]:
    """Give the rows of a table as cases with their names."""
    return [pytest.param(*row[1:], id=row[0].replace(" ", "-")) for row in table]


def test_the_directory_that_is_damaged_was_whole(folder):
    assert check_directory(folder, deep=True).problems == []


@pytest.mark.parametrize(("damage", "expected"), cases(ORDINARY))
def test_an_ordinary_check_names_the_fault(folder, damage, expected):
    damage(folder)
    assert_found(folder, expected, deep=False)


@pytest.mark.parametrize(("damage", "expected"), cases(ORDINARY))
def test_a_deep_check_names_it_too(folder, damage, expected):
    damage(folder)
    problems = check_directory(folder, deep=True).problems
    assert {e[:4] for e in expected} <= {
        (p.code, p.file, p.item, p.frame) for p in problems
    }


@pytest.mark.parametrize(("damage", "expected"), cases(DEEP))
def test_only_a_deep_check_names_what_is_inside_of_frames(folder, damage, expected):
    damage(folder)
    assert_found(folder, [], deep=False)
    assert_found(folder, expected, deep=True)


@pytest.mark.parametrize("deep", [False, True])
def test_padding_that_is_not_zero_is_named(folder, deep):
    padded = [k for k in range(3) if info_of(folder, "item1", k)[1]]
    assert padded, "no frame of item1 has padding: choose other sizes"
    in_frame(padded[0], "pad", b"\x07")(folder)
    (problem,) = check_directory(folder, deep=deep).problems
    loc, pad, length = info_of(folder, "item1", padded[0])
    assert (problem.code, problem.item, problem.frame, problem.offset) == (
        "pad-not-zero",
        "item1",
        padded[0],
        loc + length - pad,
    )
    assert "07" in problem.message
    assert "that harms no frame" in problem.message


def test_one_fault_does_not_hide_another(folder):
    both(
        in_frame(0, "start", NO_JPEG),
        put("data_01.gulp", b""),
        put("meta_1.gmeta", b""),
        put("label2idx.json", b"[]"),
        copy_chunk,
    )(folder)
    codes = {problem.code for problem in check_directory(folder).problems}
    assert codes == {"not-jpeg", "stray-name", "empty-map-file", "bad-labels"}


# --- every byte ---------------------------------------------------------------------


@pytest.mark.parametrize("step", [29, pytest.param(1, marks=pytest.mark.slow)])
def test_a_deep_check_finds_a_changed_byte_anywhere_and_names_its_file(folder, step):
    for path in sorted(folder.iterdir()):
        if path.name == "label2idx.json":  # its checksum is in the manifest of a run
            continue
        data = path.read_bytes()
        for place in range(0, len(data), step):
            damaged = bytearray(data)
            damaged[place] ^= 1 << (place % 8)
            path.write_bytes(damaged)
            problems = check_directory(folder, deep=True).problems
            assert path.name in {p.file for p in problems}, f"{path.name} at {place}"
        path.write_bytes(data)


def test_an_ordinary_check_finds_every_cut_and_names_its_file(folder):
    for path in (folder / DATA, folder / META, folder / "gulp.json"):
        data = path.read_bytes()
        for length in range(0, len(data), 13):
            path.write_bytes(data[:length])
            problems = check_directory(folder).problems
            assert path.name in {p.file for p in problems}, f"{path.name} to {length}"
        path.write_bytes(data)
