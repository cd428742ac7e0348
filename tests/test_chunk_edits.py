"""A chunk whose map is edited in memory, and written by opening it for appending."""

from __future__ import annotations

import json
import pickle
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

from gulpio2 import GulpDirectory
from gulpio2.errors import (
    AdapterContractError,
)
from gulpio2.format.entry import entry_check
from gulpio2.record import EntryRecord
from gulpio2.sanity import check_directory
from gulpio2.serializers import json_serializer
from gulpio2.storage.index.entries import IndexRecord
from tests.chunks import (
    JPEGS,
    LEFT,
    StopError,
    Timed,
    content,
    entry_of,
    label,
    labels,
    make_labelled_items,
    new_chunk,
    problems,
    rename,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Edit = Callable[[Any], Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a folder with a chunk of "a", with times, "b" and "c"."""
    return make_labelled_items(tmp_path)


# --- edits are written --------------------------------------------------------------


def test_metadata_that_is_put_beside_the_metadata_is_told_of(folder, caplog):
    (chunk,) = GulpDirectory(folder).chunks()
    with chunk.open("ab"):
        chunk.meta_dict["b"]["meta_data"][0]["seconds"] = [1]
    assert caplog.messages == []
    with chunk.open("ab"):
        chunk.meta_dict["b"]["seconds"] = [1]
    (told,) = caplog.messages
    assert told.startswith("item 'b' of the map in memory has 'seconds' beside its")
    assert [problem.code for problem in check_directory(folder).problems] == [
        "unknown-key"
    ]


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("through", ["the chunk", "the directory"])
def test_edited_metadata_is_written_and_stays_shared(folder, indexed, inside, through):
    directory = GulpDirectory(folder, indexed=indexed)
    (chunk,) = directory.chunks()
    entries = directory.merged_meta_dict
    edited = chunk.meta_dict if through == "the chunk" else entries
    entry = entries["a"]
    if not inside:
        label(edited, "a")
    with chunk.open("ab"):
        if inside:
            label(edited, "a")
        chunk.append("b", {}, JPEGS[6:7])
        chunk.append("d", {}, JPEGS[7:8])
    assert labels(folder) == {"a": "new", "b": "old", "c": None, "d": None}
    assert directory["a", []][1] == {"label": "new"}
    assert directory.read_jpegs("b") == [*JPEGS[3:5], JPEGS[6]]
    assert entries["a"] is chunk.meta_dict["a"] is entry
    assert all(entries[id_] is chunk.meta_dict[id_] for id_ in entries)
    label(entries, "b", "newer")
    assert directory["b", []][1]["label"] == "newer"
    with chunk.open("ab"):
        pass
    assert labels(folder)["b"] == "newer"
    assert problems(folder) == []


@pytest.mark.parametrize("indexed", [False, True])
def test_deleted_renamed_and_added_ids_are_written(folder, indexed):
    (chunk,) = GulpDirectory(folder, indexed=indexed).chunks()
    meta_dict = chunk.meta_dict
    del meta_dict["c"]
    rename(meta_dict, "a", "z")
    with chunk.open("ab"):
        rename(chunk.meta_dict, "b", "y")
    assert list(labels(folder)) == list(chunk.meta_dict) == ["z", "y"]
    assert (chunk.meta_dict is meta_dict) is not indexed
    assert chunk.read_jpegs("z") == JPEGS[:3]
    assert chunk.item("z").extras.pts == (0, 40, 80)
    report = check_directory(folder, deep=True)
    assert {problem.code for problem in report.problems} <= LEFT
    assert report.frames_without_checksum == 0


@pytest.mark.parametrize("flag", ["wb", "ab"])
def test_a_map_that_is_assigned_in_the_block_is_written(folder, flag):
    chunk = new_chunk(folder)
    with chunk.open(flag):
        chunk.append("d", {}, JPEGS[:1])
        assigned = {id_: e for id_, e in chunk.meta_dict.items() if id_ != "b"}
        chunk.meta_dict = assigned  # type: ignore[assignment]  # as clients do
        chunk.append("e", {}, JPEGS[1:2])
    assert chunk.meta_dict is assigned
    assert list(labels(folder)) == [*("ac" if flag == "ab" else ""), "d", "e"]
    assert new_chunk(folder).read_jpegs("e") == JPEGS[1:2]
    assert set(problems(folder)) <= LEFT


def test_what_is_edited_after_a_flush_is_written_too(folder):
    chunk = new_chunk(folder)
    with chunk.open("ab"):
        chunk.append("d", {"label": 1}, JPEGS[:1])
        label(chunk.meta_dict, "a", "first")
        chunk.flush()
        assert (labels(folder)["a"], labels(folder)["d"]) == ("first", 1)
        label(chunk.meta_dict, "a", "second")
        label(chunk.meta_dict, "d", True)
        rename(chunk.meta_dict, "d", "e")
    assert labels(folder) == {"a": "second", "b": "old", "c": None, "e": True}
    assert problems(folder) == []


def test_nothing_of_an_index_is_made_where_nothing_was_edited(folder, monkeypatch):
    directory = GulpDirectory(folder, indexed=True)
    (chunk,) = directory.chunks()
    monkeypatch.delattr(IndexRecord, "entry")
    with chunk.open("ab"):
        chunk.append("d", {}, JPEGS[:1])
    assert list(labels(folder)) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("meanwhile", [False, True], ids=["alone", "meanwhile"])
@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda e: e["a"].update(frame_info="none"), r"'a' .*has no list"),
        (lambda e: e["a"].update(frame_info=[7]), r"'a' .*7 is no \[loc, pad, len"),
        (lambda e: e["a"]["frame_info"].append([0, 9, 4]), r"is no \[loc, pad, len"),
        (lambda e: e["a"].pop("meta_data"), "cannot be written as JSON: 'meta_data'"),
        (lambda e: e.update(a=None), "cannot be written as JSON"),
        (lambda e: label(e, "a", {1}), r"item 'a' .*\(at `\$\.label`\)"),
        (lambda e: e.update({"7": e["b"], 7: e["a"]}), "item 7 .* an item '7' as well"),
        (lambda e: e.update({True: e["b"], "true": e["a"]}), "item True .* 'true' as"),
        (lambda e: e.update({(7,): e["b"]}), "cannot be written as JSON: keys must"),
    ],
)
def test_what_nobody_could_read_is_refused_before_it_is_written(
    folder, edit, message, meanwhile
):
    chunk = new_chunk(folder)
    edit(chunk.meta_dict)
    if meanwhile:
        write(folder, ("d", {}, JPEGS[:1]), flag="ab")
    expected = content(folder)
    ids = list(chunk.meta_dict)
    with pytest.raises(AdapterContractError, match=message), chunk.open("ab"):
        pass
    assert content(folder) == expected
    assert list(chunk.meta_dict) == ids


@pytest.mark.parametrize("edit", ["swapped", "one", "copied"])
@pytest.mark.parametrize("meanwhile", [False, True], ids=["alone", "meanwhile"])
def test_frames_of_another_item_may_be_given_to_one(folder, edit, meanwhile):
    # As many as it had: the checksums that are left in the entry are of other frames.
    write(folder, ("a", {}, JPEGS[:2]), ("b", {}, JPEGS[2:4]))
    chunk = new_chunk(folder)
    a, b = (chunk.meta_dict[id_] for id_ in "ab")
    if meanwhile:
        write(folder, ("c", {}, JPEGS[4:5]), flag="ab")
    expected = {"a": JPEGS[:2], "b": JPEGS[2:4]}
    if edit == "swapped":
        a["frame_info"], b["frame_info"] = b["frame_info"], a["frame_info"]
        expected = {"a": JPEGS[2:4], "b": JPEGS[:2]}
    elif edit == "one":
        a["frame_info"][1] = b["frame_info"][0]
        expected["a"] = [JPEGS[0], JPEGS[2]]
    else:
        chunk.meta_dict["new"] = {**a, "frame_info": list(b["frame_info"])}
        expected["new"] = JPEGS[2:4]
    with chunk.open("ab"):
        pass
    there = new_chunk(folder, verify=True)
    assert {id_: there.read_jpegs(id_) for id_ in expected} == expected


@pytest.mark.parametrize("indexed", [False, True], ids=["plain", "indexed"])
def test_edited_frames_go_along_with_a_chunk_that_is_pickled(folder, indexed):
    write(folder, ("a", {}, JPEGS[:2]), ("b", {}, JPEGS[2:4]))
    with GulpDirectory(folder, indexed=indexed) as directory:
        (chunk,) = directory.chunks()
        chunk.meta_dict["a"]["frame_info"].reverse()
        chunk.meta_dict["b"]["frame_info"].pop()
        other = pickle.loads(pickle.dumps(chunk))
    with other.open("ab"):
        pass
    there = new_chunk(folder, verify=True)
    assert there.read_jpegs("a") == JPEGS[1::-1]
    assert there.read_jpegs("b") == JPEGS[2:3]


def test_ids_that_are_numbers_are_strings_on_the_disk(folder):
    chunk = new_chunk(folder)
    rename(chunk.meta_dict, "a", 7)  # type: ignore[arg-type]  # as clients do
    with chunk.open("ab"):
        chunk.append("8", {}, JPEGS[:1])
    assert list(labels(folder)) == ["b", "c", "7", "8"]
    assert new_chunk(folder).read_jpegs("7") == JPEGS[:3]
    assert problems(folder) == []


# --- a block that fails -------------------------------------------------------------


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("changed", [False, True], ids=["same disk", "another"])
def test_after_an_error_memory_is_what_it_was(folder, indexed, changed):
    directory = GulpDirectory(folder, indexed=indexed)
    (chunk,) = directory.chunks()
    label(chunk.meta_dict, "a")
    entries = {id_: chunk.meta_dict[id_] for id_ in "abc"}
    expected = json.dumps(entries)
    meta_dict = chunk.meta_dict
    if changed:
        write(folder, ("d", {}, JPEGS[:1]), ("c", {}, JPEGS[1:2]), flag="ab")
    before = content(folder)

    def write_and_fail() -> None:
        with chunk.open("ab"):
            label(chunk.meta_dict, "a", "in vain")
            entries["b"]["meta_data"][0]["deep"]["n"].append(2)
            chunk.append("c", {}, JPEGS[2:3])
            chunk.append("e", {}, JPEGS[2:3])
            rename(chunk.meta_dict, "b", "f")
            raise StopError

    with pytest.raises(StopError):
        write_and_fail()
    assert content(folder) == before
    assert chunk.meta_dict is meta_dict
    assert list(meta_dict) == ["a", "b", "c"]
    assert all(meta_dict[id_] is entry for id_, entry in entries.items())
    assert json.dumps(entries) == expected
    with chunk.open("ab"):
        pass
    assert labels(folder) == {"a": "new", "b": "old", "c": None} | (
        {"d": None} if changed else {}
    )
    assert problems(folder) == []


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("more", [False, True], ids=["same", "edited again"])
def test_an_edit_that_was_flushed_before_an_error_is_not_doubled(folder, indexed, more):
    (chunk,) = GulpDirectory(folder, indexed=indexed).chunks()
    entry = chunk.meta_dict["b"]
    entry["meta_data"].append({"note": 1})
    entry["frame_info"].append(entry["frame_info"][0])

    def flush_and_fail() -> None:
        with chunk.open("ab"):
            chunk.flush()
            raise StopError

    with pytest.raises(StopError):
        flush_and_fail()
    if more:
        label(chunk.meta_dict, "b")
    with chunk.open("ab"):
        pass
    assert new_chunk(folder).read_jpegs("b") == [*JPEGS[3:5], JPEGS[3]]
    assert [meta.get("label") for meta in entry_of(folder, "b")["meta_data"]] == [
        "new" if more else "old",
        None,
    ]
    assert set(problems(folder)) <= LEFT | {"overlap"}


def test_that_frames_were_put_into_another_order_is_looked_for_once(
    folder, monkeypatch
):
    asked = []
    is_edited = EntryRecord.is_edited

    def counting(record: EntryRecord, id_: str) -> bool:
        asked.append(id_)
        return is_edited(record, id_)

    monkeypatch.setattr(EntryRecord, "is_edited", counting)
    chunk = GulpDirectory(folder)._chunk(0)
    jpegs = chunk.read_jpegs("a")
    chunk.meta_dict["a"]["frame_info"].reverse()
    assert len(jpegs) > 1
    assert chunk.read_jpegs("a") == jpegs[::-1]
    assert asked == ["a"]


# --- checks of edited entries -------------------------------------------------------


@pytest.mark.parametrize(
    ("edit", "frames", "pts"),
    [
        (lambda e: label(e, "a"), [0, 1, 2], [0, 40, 80]),
        (lambda e: label(e, "a", 1.0), [0, 1, 2], [0, 40, 80]),
        (lambda e: e["a"]["meta_data"].append({"n": 1}), [0, 1, 2], [0, 40, 80]),
        (lambda e: e["a"]["frame_info"].reverse(), [2, 1, 0], [80, 40, 0]),
        (lambda e: e["a"]["frame_info"].pop(0), [1, 2], [40, 80]),
        (lambda e: e["a"]["frame_info"].clear(), [], []),
        (lambda e: e["a"]["frame_info"].extend(e["b"]["frame_info"]), None, []),
        (lambda e: e.update(a=e["b"], b=e["a"]), [3, 4], []),
        (lambda e: e["a"].pop("gulp2"), None, []),
        (lambda e: e["a"]["gulp2"].pop("check"), [0, 1, 2], [0, 40, 80]),
    ],
)
@pytest.mark.parametrize("append", [False, True])
def test_an_edited_entry_fits_its_check(folder, edit, frames, pts, append):
    chunk = new_chunk(folder)
    edit(chunk.meta_dict)
    jpegs = list(chunk.read_jpegs("a"))
    with chunk.open("ab"):
        if append:
            chunk.append("a", {}, JPEGS[7:])
            frames = None if frames is None else [*frames, 7]
    entry = entry_of(folder, "a")
    assert chunk.read_jpegs("a") == jpegs + (JPEGS[7:] if append else [])
    if frames is None:
        assert "gulp2" not in entry
    else:
        assert entry["gulp2"]["check"] == entry_check("a", entry)
        extras = new_chunk(folder).item("a").extras
        assert chunk.read_jpegs("a") == [JPEGS[index] for index in frames]
        assert list(extras.pts) == ([] if append else pts)
        assert extras.time_base == (Fraction(1, 1000) if extras.pts else None)
    assert set(problems(folder)) <= LEFT | {"overlap"}  # of frames that two items have


@pytest.mark.parametrize("edit", [lambda e: e["frame_info"].reverse(), dict.clear])
def test_what_is_appended_and_edited_in_one_block_fits_its_check(tmp_path, edit):
    chunk = new_chunk(tmp_path)
    with chunk.open("wb"):
        chunk.append("a", {}, Timed([0, 40]))
        edit(chunk.meta_dict["a"])
        chunk.meta_dict["a"].setdefault("meta_data", [{}])
        chunk.meta_dict["a"].setdefault("frame_info", [])
        chunk.append("a", {}, JPEGS[2:3])
        del chunk.meta_dict["a"]
        chunk.append("a", {}, JPEGS[3:5])
        chunk.append("b", {}, JPEGS[5:7])
        edit(chunk.meta_dict["b"])
        chunk.meta_dict["b"].update(meta_data=[{}], frame_info=[])
    assert chunk.read_jpegs("a") == JPEGS[3:5]
    assert "gulp2" in entry_of(tmp_path, "a")
    assert "gulp2" not in entry_of(tmp_path, "b")
    assert set(problems(tmp_path)) <= LEFT


@pytest.mark.parametrize(
    "edit",
    [
        lambda e: None,
        lambda e: label(e, "b"),
        lambda e: label(e, "a", "newer"),
        lambda e: rename(e, "a", "z"),
        lambda e: e["a"]["frame_info"].reverse(),
    ],
)
def test_damage_of_the_disk_stays_marked(folder, edit):
    path = folder / "meta_0.gmeta"
    path.write_bytes(path.read_bytes().replace(b'"old"', b'"odd"', 1))
    chunk = new_chunk(folder)
    edit(chunk.meta_dict)
    with chunk.open("ab"):
        chunk.append("c", {}, JPEGS[:1])
    item = "z" if "z" in chunk.meta_dict else "a"
    found = check_directory(folder).problems
    assert [(p.code, p.item) for p in found] == [("entry-check", item)]


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("nothing", [None, [], ""])
def test_what_0_0_4_wrote_for_no_metadata_is_an_empty_dict(folder, indexed, nothing):
    def edit(entries):
        for entry in entries.values():
            del entry["gulp2"]
        entries["b"]["meta_data"] = [nothing]

    resave(folder, edit)
    assert problems(folder) == []
    directory = GulpDirectory(folder, indexed=indexed)
    assert directory["b"][1] == directory.item("b").meta == {}
    assert list(directory.query("label == 'old'").merged_meta_dict) == ["a"]
    (chunk,) = directory.chunks()
    with chunk.open("ab"):
        chunk.append("b", {"n": 1}, JPEGS[6:7])
    assert entry_of(folder, "b")["meta_data"] == [{}, {"n": 1}]
    assert problems(folder) == []


def resave(folder: Path, edit: Edit) -> None:
    """Edit a map as programs do that know nothing of checks."""
    path = folder / "meta_0.gmeta"
    entries = json.loads(path.read_bytes())
    edit(entries)
    path.write_text(json.dumps(entries, indent=2))


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize(
    ("edit", "pts"),
    [
        (lambda e: label(e, "a"), [0, 40, 80]),
        (lambda e: rename(e, "a", "z"), [0, 40, 80]),
        (lambda e: e["a"]["frame_info"].pop(), []),  # nobody knows any more which
        (lambda e: e["a"]["frame_info"].extend(e["c"]["frame_info"]), []),
    ],
)
def test_what_another_program_has_edited_counts_without_its_check(
    folder, indexed, edit, pts
):
    resave(folder, edit)
    assert not {"entry-check", "bad-extras"}.isdisjoint(problems(folder))
    (chunk,) = GulpDirectory(folder, indexed=indexed).chunks()
    before = {id_: chunk.read_jpegs(id_) for id_ in chunk.meta_dict}
    for entry in chunk.meta_dict.values():
        entry["gulp2"].pop("check")
    with chunk.open("ab"):
        pass
    assert set(problems(folder)) <= LEFT | {"overlap"}
    after = new_chunk(folder, verify=True)
    assert {id_: after.read_jpegs(id_) for id_ in after.meta_dict} == before
    item = after.item("z" if "z" in after.meta_dict else "a")
    assert list(item.extras.pts) == pts


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize(
    ("edit", "pts"),
    [
        (lambda e: label(e, "a"), [0, 40, 80]),
        (lambda e: rename(e, "a", "z"), [0, 40, 80]),
        (lambda e: e["a"]["frame_info"].pop(0), [40, 80]),
    ],
)
def test_the_serializer_of_a_chunk_makes_the_checks_of_what_was_edited(
    folder, indexed, edit, pts
):
    (chunk,) = GulpDirectory(folder, indexed=indexed).chunks()
    edit(chunk.meta_dict)
    chunk.serializer.dump(chunk.meta_dict, chunk.meta_file_path)
    assert set(problems(folder)) <= LEFT
    after = new_chunk(folder)
    assert after.meta_dict == chunk.meta_dict
    item = after.item("z" if "z" in after.meta_dict else "a")
    assert list(item.extras.pts) == pts
    with chunk.open("ab"):
        chunk.append("d", {}, JPEGS[7:8])
    assert set(problems(folder)) <= LEFT


def test_the_serializer_leaves_damage_marked_and_other_files_as_they_are(folder):
    path = folder / "meta_0.gmeta"
    path.write_bytes(path.read_bytes().replace(b'"old"', b'"odd"', 1))
    chunk = new_chunk(folder)
    label(chunk.meta_dict, "b")
    json_serializer.dump(chunk.meta_dict, folder / "copy.json")
    assert (folder / "copy.json").read_text() == json.dumps(chunk.meta_dict)
    json_serializer.dump(chunk.meta_dict, path)
    found = check_directory(folder).problems
    assert [(p.code, p.item) for p in found] == [("entry-check", "a")]
    path.write_text("[]")
    for thing in (chunk.meta_dict, [1], {"x": {"gulp2": 1}}):
        json_serializer.dump(thing, path)
        assert path.read_text() == json.dumps(thing)


def test_what_is_appended_elsewhere_stays_where_both_have_edited_an_item(tmp_path):
    mine = new_chunk(tmp_path)
    with mine.open("wb"):
        mine.append("a", {"m": 1}, JPEGS[:1])
        mine.append("a", {"n": 1}, JPEGS[:1])
    other = new_chunk(tmp_path)
    other.meta_dict["a"]["meta_data"][0]["o"] = 1
    other.meta_dict["a"]["meta_data"][1]["o"] = 1
    with other.open("ab"):
        other.append("a", {"second": 1}, JPEGS[:1])
    mine.meta_dict["a"]["meta_data"][0]["label"] = "x"
    with mine.open("ab"):
        mine.append("a", {"third": 1}, JPEGS[:1])
    metas = [{"m": 1, "label": "x"}, {"n": 1, "o": 1}, {"second": 1}, {"third": 1}]
    assert entry_of(tmp_path, "a")["meta_data"] == metas
    assert len(entry_of(tmp_path, "a")["frame_info"]) == 4
    assert problems(tmp_path) == []


@pytest.mark.parametrize("again", [1, 2])
@pytest.mark.parametrize("indexed", [True, False], ids=["indexed", "plain"])
def test_a_chunk_that_was_pickled_leaves_what_others_have_edited(
    folder, indexed, again
):
    chunk = GulpDirectory(folder, indexed=indexed).chunk_objs_lookup[0]
    for _ in range(again):
        chunk = pickle.loads(pickle.dumps(chunk))
    other = GulpDirectory(folder).chunk_objs_lookup[0]
    label(other.meta_dict, "b", "edited there")
    with other.open("ab"):
        other.append("b", {"more": 1}, JPEGS[:1])
    label(chunk.meta_dict, "a", "edited here")
    with chunk.open("ab"):
        chunk.append("z", {}, JPEGS[:1])
    entries = GulpDirectory(folder).merged_meta_dict
    assert entries["a"]["meta_data"][0]["label"] == "edited here"
    assert entries["b"]["meta_data"][0]["label"] == "edited there"
    assert entries["b"]["meta_data"][1] == {"more": 1}
    assert "z" in entries
    assert problems(folder) == []


@pytest.mark.parametrize("kind", ["none", "another", "same"])
def test_frames_that_take_the_times_of_an_item_away_are_told(folder, caplog, kind):
    chunk = GulpDirectory(folder).chunk_objs_lookup[0]
    before = GulpDirectory(folder).item("a").extras
    kinds: dict[str, Any] = {
        "none": JPEGS[:1],
        "another": Timed([7], Fraction(1, 7)),
        "same": Timed([before.pts[-1] + 1], before.time_base),
    }
    with chunk.open("ab"):
        chunk.append("a", {}, kinds[kind])
        chunk.append("b", {}, JPEGS[:1])  # which has none
    after = GulpDirectory(folder).item("a").extras
    told = [r.getMessage() for r in caplog.records if "lose their times" in r.message]
    if kind == "same":
        assert after.pts[:-1] == before.pts
        assert told == []
    else:
        assert after.pts == ()
        (line,) = told
        assert line.startswith("the frames of item 'a' lose their times")


@pytest.mark.parametrize("ticks", [[0, None, 2], [None, None], [0, 1]])
def test_an_item_with_times_of_some_frames_is_told_to_have_none(
    tmp_path, caplog, ticks
):
    with (chunk := new_chunk(tmp_path)).open("wb"):
        chunk.append("a", {}, Timed(ticks, Fraction(1, 25)))
    told = ["lose their times" in message for message in caplog.messages]
    some = len({tick is None for tick in ticks}) == 2
    assert told == ([True] if some else [])
    kept = GulpDirectory(tmp_path).item("a").extras.pts
    assert list(kept) == ([0, 1] if None not in ticks else [])
