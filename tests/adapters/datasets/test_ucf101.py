"""UCF101, on a miniature of its archives."""

from __future__ import annotations

import json

import pytest

from gulpio2 import GulpDirectory
from gulpio2.errors import SourceReadError
from gulpio2.testing.adapters import AdapterTests

TRAIN = ["ApplyEyeMakeup/v_ApplyEyeMakeup_g08_c01.avi", "YoYo/v_YoYo_g09_c02.avi"]
TEST = ["ApplyEyeMakeup/v_ApplyEyeMakeup_g01_c03.avi"]


@pytest.fixture
def root(tmp_path, make_video):
    """Give UCF-101 and ucfTrainTestlist, with the Windows line ends of the lists."""
    for number, path in enumerate([*TRAIN, *TEST]):
        make_video(tmp_path / "UCF-101" / path, 4 + number, height=24, width=32)
    lists = tmp_path / "ucfTrainTestlist"
    lists.mkdir()
    (lists / "classInd.txt").write_bytes(b"1 ApplyEyeMakeup\r\n101 YoYo\r\n")
    numbered = [f"{TRAIN[0]} 1", f"{TRAIN[1]} 101"]
    (lists / "trainlist01.txt").write_bytes(("\r\n".join(numbered) + "\r\n").encode())
    (lists / "testlist01.txt").write_bytes(("\r\n".join(TEST) + "\r\n").encode())
    (lists / "trainlist02.txt").write_text(f"{TEST[0]} 1\n")
    (lists / "testlist02.txt").write_text(f"{TRAIN[0]}\n")
    return tmp_path


@pytest.fixture
def make(load):
    """Give the class."""
    return load("ucf101").Ucf101Adapter


class TestUcf101(AdapterTests):
    """The common tests."""

    @pytest.fixture
    def adapter(self, make, root):
        return make(root)


def test_clips_have_the_published_numbers_and_their_subset(make, root):
    adapter = make(str(root))
    assert [item["meta"] for item in adapter.iter_data()] == [
        {
            "id": "v_ApplyEyeMakeup_g08_c01",
            "label": "ApplyEyeMakeup",
            "idx": 0,
            "subset": "train",
            "group": 8,
            "clip": 1,
        },
        {
            "id": "v_YoYo_g09_c02",
            "label": "YoYo",
            "idx": 100,
            "subset": "train",
            "group": 9,
            "clip": 2,
        },
        {
            "id": "v_ApplyEyeMakeup_g01_c03",
            "label": "ApplyEyeMakeup",
            "idx": 0,
            "subset": "test",
            "group": 1,
            "clip": 3,
        },
    ]
    assert [len(list(item["frames"])) for item in adapter.iter_data()] == [4, 5, 6]
    assert adapter.label_mapping() == {"ApplyEyeMakeup": 0, "YoYo": 100}
    assert adapter.item_source(0) == str(root / "UCF-101" / TRAIN[0])


def test_a_part_of_another_split_can_be_chosen(make, root):
    assert make(root, fold=2, subset="test").item_ids() == ["v_ApplyEyeMakeup_g08_c01"]
    assert make(root, fold=2, subset="train").item_ids() == ["v_ApplyEyeMakeup_g01_c03"]


def test_wrong_choices_and_missing_lists_are_answered(make, root):
    with pytest.raises(ValueError, match=r"allowed are \['train', 'test', 'all'\]"):
        make(root, subset="dev")
    with pytest.raises(SourceReadError, match=r"trainlist03\.txt cannot be read"):
        make(root, fold=3)
    (root / "ucfTrainTestlist" / "classInd.txt").write_text("1 Other\n")
    with pytest.raises(SourceReadError, match="has no class 'ApplyEyeMakeup'"):
        make(root)


@pytest.mark.parametrize("line", [b"ApplyEyeMakeup", b"1 Apply Eye", b"x Yo", b"0 Yo"])
def test_a_line_that_is_no_class_is_named(make, root, line):
    (root / "ucfTrainTestlist" / "classInd.txt").write_bytes(b"101 YoYo\n" + line)
    with pytest.raises(SourceReadError, match=f"classInd.txt: '{line.decode()}' is no"):
        make(root)


def test_a_byte_order_mark_is_no_part_of_a_list(make, root):
    plain = make(root)
    for path in (root / "ucfTrainTestlist").iterdir():
        path.write_text(path.read_text(), "utf-8-sig")
    marked = make(root)
    assert marked.paths == plain.paths
    assert marked.label_mapping() == plain.label_mapping()


def test_a_list_that_is_no_text_is_named(make, root):
    (root / "ucfTrainTestlist" / "classInd.txt").write_bytes(b"1 \xff\n")
    with pytest.raises(SourceReadError, match=r"classInd\.txt cannot be read \('utf-8"):
        make(root)


def test_it_is_gulped_from_the_command_line(gulp, root, tmp_path):
    report = gulp("ucf101:Ucf101Adapter", root, "--subset", "train")
    assert report["items"] == 2
    frames, meta = GulpDirectory(tmp_path / "gulp")["v_YoYo_g09_c02"]
    assert len(frames) == 5
    labels = json.loads((tmp_path / "gulp" / "label2idx.json").read_text())
    assert labels[meta["label"]] == meta["idx"]
