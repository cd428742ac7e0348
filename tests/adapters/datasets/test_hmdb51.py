"""HMDB51, on a miniature of its archives."""

from __future__ import annotations

import json

import pytest

from gulpio2 import GulpDirectory
from gulpio2.errors import SourceReadError
from gulpio2.testing.adapters import AdapterTests

# Names of the dataset hold characters that patterns would stumble over.
SPLITS = {
    "wave": [("50_FIRST_DATES_wave_f_cm_np1_fr_med_36.avi", 1), ("w [2]#;!.avi", 2)],
    "brush_hair": [("April_09_brush_hair_u_nm_np1_ba_goo_0.avi", 2), ("b (1).avi", 0)],
}


@pytest.fixture
def root(tmp_path, make_video):
    """Give a folder of clips per class beside the splits."""
    folder = tmp_path / "testTrainMulti_7030_splits"
    folder.mkdir()
    for label, clips in SPLITS.items():
        for name, _ in clips:
            make_video(tmp_path / label / name, 5, height=24, width=32)
        lines = [f"{name} {mark} \n" for name, mark in clips]
        (folder / f"{label}_test_split1.txt").write_text("".join(lines))
    return tmp_path


@pytest.fixture
def make(load):
    """Give the class."""
    return load("hmdb51").Hmdb51Adapter


class TestHmdb51(AdapterTests):
    """The common tests."""

    @pytest.fixture
    def adapter(self, make, root):
        return make(root)


def test_clips_come_by_class_with_their_subset(make, root):
    adapter = make(root)
    first = "brush_hair/April_09_brush_hair_u_nm_np1_ba_goo_0"
    items = list(adapter.iter_data())
    assert items[0]["meta"] == {
        "id": first,
        "label": "brush_hair",
        "idx": 0,
        "subset": "test",
    }
    assert adapter.item_ids() == [
        first,
        "brush_hair/b (1)",
        "wave/50_FIRST_DATES_wave_f_cm_np1_fr_med_36",
        "wave/w [2]#;!",
    ]
    assert [item["meta"]["subset"] for item in items] == [
        "test",
        "unused",
        "train",
        "test",
    ]
    assert adapter.label_mapping() == {"brush_hair": 0, "wave": 1}
    assert adapter.item_source(3) == str(root / "wave" / "w [2]#;!.avi")
    assert len(list(items[3]["frames"])) == 5


@pytest.mark.parametrize(("subset", "count"), [("train", 1), ("test", 2), ("all", 4)])
def test_a_part_can_be_chosen(make, root, subset, count):
    assert len(make(root, subset=subset)) == count


def test_a_byte_order_mark_is_no_part_of_a_name(make, root):
    plain = make(root)
    for path in (root / "testTrainMulti_7030_splits").iterdir():
        path.write_text(path.read_text(), "utf-8-sig")
    assert make(root).item_ids() == plain.item_ids()


def test_the_splits_may_lie_elsewhere(make, root, tmp_path):
    moved = (root / "testTrainMulti_7030_splits").rename(tmp_path / "elsewhere")
    assert len(make(root, moved)) == 4
    with pytest.raises(SourceReadError, match=r"holds no <class>_test_split1\.txt"):
        make(root)


def test_wrong_choices_and_lines_are_answered(make, root):
    with pytest.raises(ValueError, match="allowed are train, test and all"):
        make(root, subset="dev")
    with pytest.raises(SourceReadError, match=r"holds no <class>_test_split2\.txt"):
        make(root, fold=2)
    path = root / "testTrainMulti_7030_splits" / "wave_test_split1.txt"
    path.write_text("a.avi 3\n\n")
    with pytest.raises(SourceReadError, match=r"'a\.avi 3' does not end in 0, 1 or 2"):
        make(root)
    path.write_bytes(b"\xff.avi 1\n")
    with pytest.raises(SourceReadError, match=r"_test_split1\.txt cannot be read \("):
        make(root)


def test_it_is_gulped_from_the_command_line(gulp, root, tmp_path):
    report = gulp("hmdb51:Hmdb51Adapter", root, "--subset", "test")
    assert report["items"] == 2
    frames, meta = GulpDirectory(tmp_path / "gulp")["wave/w [2]#;!"]
    assert len(frames) == 5
    labels = json.loads((tmp_path / "gulp" / "label2idx.json").read_text())
    assert labels[meta["label"]] == meta["idx"]
