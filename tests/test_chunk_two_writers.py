"""Two writers of a chunk, of which each edits the map that it has in memory."""

from __future__ import annotations

import json
import pickle
import random
from typing import TYPE_CHECKING, Any

import pytest

from gulpio2 import GulpDirectory
from gulpio2.errors import ChunkMismatchError, DuplicateIdError
from gulpio2.removal import compact_directory, delete_items
from gulpio2.sanity import check_directory
from tests.chunks import (
    JPEGS,
    LEFT,
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
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a folder with a chunk of "a", with times, "b" and "c"."""
    return make_labelled_items(tmp_path)


def append_elsewhere(folder: Path, *items: Any) -> None:
    """Append as another process would, which knows nothing of edits here."""
    write(folder, *items, flag="ab")


# --- what another process has done meanwhile ----------------------------------------


@pytest.mark.parametrize("indexed", [False, True])
def test_what_another_has_appended_is_taken_in_beside_the_edits(folder, indexed):
    directory = GulpDirectory(folder, indexed=indexed)
    (chunk,) = directory.chunks()
    entries = directory.merged_meta_dict
    label(entries, "a")
    first = entries["b"]["frame_info"][0]
    entries["b"]["frame_info"].reverse()
    append_elsewhere(
        folder,
        ("a", {"more": 1}, Timed([120])),  # edited here as well
        ("b", {}, JPEGS[6:7]),
        ("c", {"late": 1}, JPEGS[7:8]),  # not edited here
        ("d", {"label": "theirs"}, JPEGS[:1]),
    )
    with chunk.open("ab"):
        assert list(chunk.meta_dict) == ["a", "b", "c", "d"]
    assert labels(folder) == {"a": "new", "b": "old", "c": None, "d": "theirs"}
    assert entry_of(folder, "a")["meta_data"] == [{"label": "new"}, {"more": 1}]
    assert chunk.read_jpegs("a") == [*JPEGS[:3], JPEGS[0]]
    assert chunk.item("a").extras.pts == (0, 40, 80, 120)
    assert chunk.read_jpegs("b") == [JPEGS[4], JPEGS[3], JPEGS[6]]
    assert list(entry_of(folder, "b")["frame_info"][1]) == list(first)
    assert chunk.read_jpegs("c") == [JPEGS[5], JPEGS[7]]
    assert all(entries[id_] is chunk.meta_dict[id_] for id_ in entries)
    report = check_directory(folder, deep=True)
    assert (report.problems, report.frames_without_checksum) == ([], 0)


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize(
    ("here", "there", "expected"),
    [
        (lambda e: label(e, "a"), lambda e: label(e, "a", 1), {"a": "new"}),
        (lambda e: label(e, "a"), lambda e: label(e, "b", 1), {"a": "new", "b": 1}),
        (lambda e: label(e, "a", "old"), lambda e: label(e, "a", 1), {"a": 1}),
        (lambda e: label(e, "a"), lambda e: e.pop("a"), {"a": None}),
        (lambda e: e.pop("a"), lambda e: label(e, "b", 1), {"a": None, "b": 1}),
        (lambda e: rename(e, "a", "z"), lambda e: label(e, "b", 1), {"z": "old"}),
        (lambda e: rename(e, "a", "z"), lambda e: rename(e, "a", "z"), {"z": "old"}),
    ],
    ids=["both", "two", "there", "gone there", "gone here", "renamed", "alike"],
)
def test_edits_here_and_there_are_joined(folder, indexed, here, there, expected):
    (chunk,) = GulpDirectory(folder, indexed=indexed).chunks()
    here(chunk.meta_dict)
    other = new_chunk(folder)
    with other.open("ab"):
        there(other.meta_dict)
    with chunk.open("ab"):
        pass
    found = labels(folder)
    assert {id_: found.get(id_) for id_ in expected} == expected
    assert set(problems(folder)) <= LEFT
    for id_ in found:
        assert chunk.read_jpegs(id_) == new_chunk(folder).read_jpegs(id_)


@pytest.mark.parametrize("indexed", [False, True])
def test_what_was_deleted_here_and_grew_there_comes_back(folder, indexed):
    (chunk,) = GulpDirectory(folder, indexed=indexed).chunks()
    del chunk.meta_dict["b"]
    rename(chunk.meta_dict, "a", "z")
    append_elsewhere(folder, ("a", {}, JPEGS[6:7]), ("b", {}, JPEGS[7:8]))
    with chunk.open("ab"):
        pass
    assert chunk.read_jpegs("b") == [*JPEGS[3:5], JPEGS[7]]
    assert chunk.read_jpegs("a") == [*JPEGS[:3], JPEGS[6]]
    assert chunk.read_jpegs("z") == JPEGS[:3]


def closed(directory: GulpDirectory) -> GulpDirectory:
    """Close a directory, which goes on with what the maps say by then."""
    directory.close()
    return directory


def sent(directory: Any) -> Any:
    """Send a directory to another process."""
    return pickle.loads(pickle.dumps(directory))


def edit_metadata(entries: Any) -> None:
    """Edit an entry that stays in its place."""
    label(entries, "a")


def replace_entry(entries: Any) -> None:
    """Put another entry in the place of one."""
    entry = json.loads(json.dumps(entries["a"]))
    entry["meta_data"][0]["label"] = "new"
    entries["a"] = entry


def delete_entry(entries: Any) -> None:
    """Delete an entry that nobody has looked at."""
    del entries["a"]


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize(
    ("edit", "expected"),
    [(edit_metadata, "new"), (replace_entry, "new"), (delete_entry, "old")],
)
@pytest.mark.parametrize(
    "between",
    [closed, sent, lambda d: sent(closed(d)), lambda d: sent(sent(d))],
    ids=["closed", "sent", "both", "twice"],
)
@pytest.mark.parametrize("odd", [False, True], ids=["usual", "odd"])
def test_an_edit_is_joined_with_what_it_was_made_of_long_ago(
    folder, indexed, edit, expected, between, odd
):
    if odd:  # an entry of which the index keeps no more than where it is
        path = folder / "meta_0.gmeta"
        entries = json.loads(path.read_bytes())
        entries["a"]["more"] = "of another program"
        path.write_text(json.dumps(entries))
    directory = GulpDirectory(folder, indexed=indexed)
    (chunk,) = directory.chunks()
    edit(chunk.meta_dict)
    append_elsewhere(folder, ("a", {"more": 1}, Timed([120])))
    directory = between(directory)
    (chunk,) = directory.chunks()
    with chunk.open("ab"):
        pass
    assert labels(folder)["a"] == expected
    assert new_chunk(folder).read_jpegs("a") == [*JPEGS[:3], JPEGS[0]]
    assert len(entry_of(folder, "a")["meta_data"]) == 2
    # What did not fit its check before does not fit it now, whatever was added.
    known = {"unknown-key", "entry-check"} if odd else {"unknown-key"}
    assert set(problems(folder)) <= LEFT | known


@pytest.mark.parametrize("close", [False, True])
def test_an_edit_of_a_view_that_was_sent_is_joined(folder, close):
    view = GulpDirectory(folder, indexed=True).view(["b", "a"])
    (part,) = view.chunks()
    label(part.meta_dict, "b")
    append_elsewhere(folder, ("b", {"more": 1}, JPEGS[6:7]))
    if close:
        view.close()
    (part,) = sent(view).chunks()
    with part.open("ab"):
        pass
    assert labels(folder) == {"a": "old", "b": "new", "c": None}
    assert new_chunk(folder).read_jpegs("b") == [*JPEGS[3:5], JPEGS[6]]
    assert problems(folder) == []


def test_an_id_that_was_added_on_both_sides_is_refused(folder):
    chunk = new_chunk(folder)
    rename(chunk.meta_dict, "b", "d")
    append_elsewhere(folder, ("d", {}, JPEGS[:1]))
    expected = content(folder)
    with pytest.raises(DuplicateIdError, match="'d' was added"), chunk.open("ab"):
        pytest.fail("opened")
    assert content(folder) == expected
    assert list(chunk.meta_dict) == ["a", "c", "d"]


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("between", [lambda d: d, closed, sent])
def test_an_id_that_was_added_on_both_sides_long_ago_is_refused(
    folder, indexed, written, moved, between
):
    directory = GulpDirectory(folder, indexed=indexed)
    (chunk,) = directory.chunks()
    if written:
        with chunk.open("ab"):
            pass
    rename(chunk.meta_dict, "b", "d")
    if moved:
        chunk.meta_dict.move_to_end("d")
    append_elsewhere(folder, ("d", {}, JPEGS[:1]))
    directory = between(directory)
    (chunk,) = directory.chunks()
    expected = (folder / "meta_0.gmeta").read_bytes()
    with pytest.raises(DuplicateIdError, match="'d' was added"), chunk.open("ab"):
        pytest.fail("opened")
    assert (folder / "meta_0.gmeta").read_bytes() == expected
    # Without that of this side the other one comes in.
    del chunk.meta_dict["d"]
    with chunk.open("ab"):
        pass
    assert labels(folder) == {"a": "old", "c": None, "d": None}
    assert new_chunk(folder).read_jpegs("d") == JPEGS[:1]


def test_frames_that_the_chunk_has_no_more_are_not_spoken_of(folder):
    chunk = new_chunk(folder)
    label(chunk.meta_dict, "a")
    write(folder, ("a", {"label": 1}, JPEGS[6:8]))  # anew, in another place
    with chunk.open("ab"):
        pass
    assert chunk.read_jpegs("a") == JPEGS[6:8]
    assert labels(folder) == {"a": "new"}
    rename(chunk.meta_dict, "a", "z")
    write(folder, ("b", {}, JPEGS[:1]))
    expected = content(folder)
    with (
        pytest.raises(ChunkMismatchError, match=r"'z' was added .* any more"),
        chunk.open("ab"),
    ):
        pytest.fail("opened")
    assert content(folder) == expected
    assert list(chunk.meta_dict) == ["z"]


def take_the_place(entries: Any) -> None:
    """Have "b" stand for the frames of "a"."""
    del entries["b"]
    rename(entries, "a", "b")


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize(
    "edit",
    [
        take_the_place,
        lambda e: e["b"]["frame_info"].extend(e["a"]["frame_info"]),
        lambda e: e.update(b=e["a"]),
    ],
    ids=["renamed", "joined", "assigned"],
)
def test_frames_that_were_erased_are_not_spoken_of_under_another_id(
    folder, indexed, edit
):
    (chunk,) = GulpDirectory(folder, indexed=indexed).chunks()
    edit(chunk.meta_dict)
    ids = list(chunk.meta_dict)
    delete_items(folder, ["a"])
    compact_directory(folder)
    expected = content(folder)
    with (
        pytest.raises(ChunkMismatchError, match=r"'b' was changed .* any more"),
        chunk.open("ab"),
    ):
        pytest.fail("opened")
    assert content(folder) == expected
    assert list(chunk.meta_dict) == ids


@pytest.mark.parametrize("indexed", [False, True])
def test_edits_go_on_where_frames_were_moved(folder, indexed):
    (chunk,) = GulpDirectory(folder, indexed=indexed).chunks()
    label(chunk.meta_dict, "b")
    chunk.meta_dict["c"]["frame_info"].extend([])
    delete_items(folder, ["a"])
    compact_directory(folder)
    with chunk.open("ab"):
        pass
    assert labels(folder) == {"b": "new", "c": None}
    assert new_chunk(folder).read_jpegs("b") == JPEGS[3:5]
    assert set(problems(folder)) <= LEFT


def turn_round(entries: Any, id_: str) -> None:
    """Rename an item to "z", and play it backwards."""
    rename(entries, id_, "z")
    entries["z"]["frame_info"].reverse()


@pytest.mark.parametrize("part", [False, True], ids=["chunk", "part"])
@pytest.mark.parametrize("indexed", [False, True])
def test_a_renamed_item_keeps_the_checksums_of_one_that_grew(folder, indexed, part):
    directory = GulpDirectory(folder, indexed=indexed)
    (chunk,) = directory.view(["a", "b"]).chunks() if part else directory.chunks()
    turn_round(chunk.meta_dict, "a")
    append_elsewhere(folder, ("a", {}, Timed([120])))
    with chunk.open("ab"):
        pass
    stored = new_chunk(folder, verify=True)
    assert stored.read_jpegs("z") == JPEGS[2::-1]
    assert stored.read_jpegs("a") == [*JPEGS[:3], JPEGS[0]]
    extras = stored.item("z").extras
    if part and not indexed:  # nobody knows what its map was made of
        assert "gulp2" not in entry_of(folder, "z")
    else:
        assert (len(extras.crc32), extras.pts) == (3, (80, 40, 0))
    assert set(problems(folder)) <= LEFT | {"overlap"}


@pytest.mark.parametrize("part", [False, True], ids=["chunk", "part"])
@pytest.mark.parametrize("indexed", [False, True])
def test_an_edit_that_is_made_twice_at_once_keeps_right_checksums(
    folder, indexed, part
):
    directory = GulpDirectory(folder, indexed=indexed)
    (chunk,) = directory.view(["a", "b"]).chunks() if part else directory.chunks()
    other = new_chunk(folder)
    for one in (chunk, other):
        turn_round(one.meta_dict, "a")
    with other.open("ab"):
        pass
    with chunk.open("ab"):
        pass
    stored = new_chunk(folder, verify=True)
    assert stored.read_jpegs("z") == JPEGS[2::-1]
    extras = stored.item("z").extras
    assert (len(extras.crc32), extras.pts) == (3, (80, 40, 0))
    assert set(problems(folder)) <= LEFT


def test_a_chunk_of_a_view_keeps_what_the_view_has_not(folder):
    for indexed in (False, True):
        directory = GulpDirectory(folder, indexed=indexed)
        (part,) = directory.view(["b"]).chunks()
        append_elsewhere(folder, ("b", {}, JPEGS[6:7]))
        label(part.meta_dict, "b", indexed)
        with part.open("ab"):
            pass
        assert labels(folder) == {"a": "old", "b": indexed, "c": None}
    assert part.read_jpegs("b") == [*JPEGS[3:5], JPEGS[6], JPEGS[6]]
    assert problems(folder) == []


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("sent", [False, True])
def test_a_chunk_of_a_view_leaves_the_order_of_the_items(folder, indexed, sent):
    (part,) = GulpDirectory(folder, indexed=indexed).view(["c", "b"]).chunks()
    assert list(part.meta_dict) == ["c", "b"]
    if sent:
        part = pickle.loads(pickle.dumps(part))
    with pytest.raises(KeyError), part.open("ab"):
        raise KeyError
    assert list(part.meta_dict) == ["c", "b"]
    with part.open("ab"):
        part.append("new", {}, JPEGS[:1])
    assert list(new_chunk(folder).meta_dict) == ["a", "b", "c", "new"]  # rule 9
    assert problems(folder) == []


# --- two writers, each with a map of its own ----------------------------------------


def edit_somehow(rng: random.Random, entries: Any) -> None:
    """Do one thing that programs do to a map in memory."""
    ids = list(entries)
    id_ = rng.choice(ids) if ids else None
    what = rng.randrange(6)
    if id_ is None or what == 0:
        return
    if what == 1:
        del entries[id_]
    elif what == 2:
        rename(entries, id_, f"{rng.randrange(10**6)}")
    elif what == 3:
        rng.shuffle(entries[id_]["frame_info"])
    elif what == 4 and entries[id_]["frame_info"]:
        del entries[id_]["frame_info"][rng.randrange(len(entries[id_]["frame_info"]))]
    else:
        label(entries, id_, rng.randrange(100))


@pytest.mark.parametrize("seed", range(12))
def test_whatever_two_writers_do_every_frame_is_the_one_it_was(tmp_path, seed):
    rng = random.Random(seed)
    write(tmp_path, *((id_, {"label": 0}, JPEGS[:3]) for id_ in "abcd"))
    stored: dict[int, bytes] = {}  # by place; nothing is written anew
    made = 0

    def opened() -> Any:
        directory = GulpDirectory(tmp_path, indexed=rng.random() < 0.5)
        return next(directory.chunks())

    def note_new_frames() -> None:
        for id_, jpegs in ((i, new_chunk(tmp_path).read_jpegs(i)) for i in on_disk()):
            for info, jpeg in zip(on_disk()[id_]["frame_info"], jpegs, strict=True):
                assert stored.setdefault(info[0], jpeg) == jpeg

    def on_disk() -> Any:
        return json.loads((tmp_path / "meta_0.gmeta").read_bytes())

    writers = [opened(), opened()]
    for _ in range(15):
        number = rng.randrange(2)
        chunk = writers[number]
        for _ in range(rng.randrange(3)):
            edit_somehow(rng, chunk.meta_dict)
        grown: dict[str, list[bytes]] = {}
        before = content(tmp_path)
        try:
            with chunk.open("ab"):
                for _ in range(rng.randrange(3)):
                    edit_somehow(rng, chunk.meta_dict)
                for _ in range(rng.randrange(3)):
                    made += 1
                    id_ = rng.choice([*chunk.meta_dict, f"new{made}"])
                    jpegs = rng.sample(JPEGS, 2)
                    chunk.append(id_, {"label": made}, jpegs)
                    grown[id_] = grown.get(id_, []) + jpegs
        except ChunkMismatchError:  # of an item renamed here and deleted there
            assert content(tmp_path) == before
            writers[number] = opened()
            continue
        assert json.loads(json.dumps(chunk.meta_dict)) == on_disk()
        for id_, jpegs in grown.items():
            assert chunk.read_jpegs(id_)[-len(jpegs) :] == jpegs
        note_new_frames()
        assert set(problems(tmp_path)) <= LEFT | {"overlap"}
        if rng.random() < 0.1:
            writers[number] = opened()
