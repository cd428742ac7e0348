"""Items whose frames differ in size: a deep check names them."""

from __future__ import annotations

import pytest

from gulpio2 import GulpChunk
from gulpio2.removal import delete_items
from gulpio2.sanity import check_directory
from gulpio2.testing import make_frames


@pytest.fixture
def folder(tmp_path):
    """Write an item of one size, one of two, and one of six."""
    path = tmp_path / "out"
    path.mkdir()
    chunk = GulpChunk(path / "data_0.gulp", path / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("one", {"a": 1}, make_frames(4, 24, 32))
        two = [
            *make_frames(3, 24, 32),
            *make_frames(2, 24, 18),
            *make_frames(1, 24, 32),
        ]
        chunk.append("two", {"a": 1}, two)
        six = [make_frames(1, 16, width)[0] for width in (64, 56, 48, 40, 32, 24)]
        chunk.append("six", {"a": 1}, six)
    return path


def notes_of(path, **how):
    report = check_directory(path, **how)
    assert report.ok
    return [note for note in report.notes if note.code == "mixed-sizes"]


@pytest.mark.parametrize("how", [{"deep": True}, {"decode": True}])
def test_items_of_several_sizes_are_named_with_them(folder, how):
    two, six = notes_of(folder, **how)
    assert (two.file, two.item) == ("data_0.gulp", "two")
    text = "has frames of 2 sizes (width x height): frame 0 is 32x24, frame 3 18x24: "
    assert two.message.startswith(text)
    assert six.item == "six"
    assert "6 sizes" in six.message
    assert "frame 3 40x16, and 2 more: " in six.message


def test_only_a_deep_check_looks_at_sizes(folder):
    assert not notes_of(folder)


def test_where_the_frames_lie_changes_nothing(folder):
    """Frames in another order than they are stored in, as an edit may leave them."""
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open("ab"):
        entry = chunk.meta_dict["two"]
        entry["frame_info"].reverse()
        del entry["gulp2"]
    (two, _) = notes_of(folder, deep=True)
    assert "frame 0 is 32x24, frame 1 18x24: " in two.message


def test_deleted_items_are_not_named(folder):
    delete_items(folder, ["two"])
    assert [note.item for note in notes_of(folder, deep=True)] == ["six"]


def test_a_damaged_header_is_no_other_size(folder):
    """It is told by its checksum, and what it says is of no use."""
    data = bytearray((folder / "data_0.gulp").read_bytes())
    at = data.index(b"\xff\xc0")
    data[at + 5 : at + 9] = b"\0\x09\0\x09"
    (folder / "data_0.gulp").write_bytes(data)
    report = check_directory(folder, deep=True)
    assert [(each.code, each.item) for each in report.problems] == [
        ("crc-mismatch", "one")
    ]
    assert {note.item for note in report.notes} == {"two", "six"}


def test_grey_frames_beside_others_are_named(tmp_path):
    frames = make_frames(4, 24, 32)
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("grey", {}, [frame[..., 0] for frame in frames])
        chunk.append("both", {}, [frames[0], frames[1][..., 0], frames[2]])
    (note,) = notes_of(tmp_path, deep=True)
    assert note.item == "both"
    text = "grey and not: frame 0 is 32x24, frame 1 32x24 grey: a clip with grey frames"
    assert text in note.message
