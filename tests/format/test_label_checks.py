"""``label2idx.json``, and the numbers of labels in the maps."""

import pytest

from gulpio2.format.label_checks import check_labels, note_label_numbers
from gulpio2.format.labels import numbered_label


@pytest.mark.parametrize(
    ("meta_data", "expected"),
    [
        ([{"label": "walk", "idx": 3}], ("walk", 3)),
        ([{"id": "a"}, {"label": "walk", "idx": 3}], ("walk", 3)),
        ([{"label": 7, "idx": 0}], ("7", 0)),
        ([{"label": True, "idx": 0}], ("true", 0)),
        ([{"label": 0.5, "idx": 0}], ("0.5", 0)),
        ([{"label": "walk"}], None),
        ([{"label": "walk", "idx": True}], None),
        ([{"label": "walk", "idx": -1}], None),
        ([{"label": "walk", "idx": 1.0}], None),
        ([{"label": None, "idx": 1}], None),
        ([{"label": ["walk"], "idx": 1}], None),
        ([], None),
    ],
)
def test_a_label_is_found_with_its_number(meta_data, expected):
    assert numbered_label(meta_data) == expected


def test_items_that_contradict_the_file_are_told_of_once():
    found = {("walk", 0): ["a"], ("run", 1): ["b", "c"], ("jump", 5): ["d"]}
    labels = {"walk": 0, "run": 2}
    (note,) = note_label_numbers(found, labels, "meta_3.gmeta")
    assert (note.code, note.file, note.item) == ("label-number", "meta_3.gmeta", "b")
    assert "'run' with the number 1" in note.message
    assert "has 2 in label2idx.json" in note.message
    assert "3 such items" in note.message
    (note,) = note_label_numbers({("jump", 5): ["d"]}, labels, "meta_3.gmeta")
    assert "is not in label2idx.json." in note.message
    assert "such" not in note.message
    assert note_label_numbers({("walk", 0): ["a"]}, labels, "meta_3.gmeta") == []


@pytest.mark.parametrize(
    "data", [b"{}", b'{"a": 0, "b": 1}', b'{"b": 3, "a": 0}', b'{"\\u00fc": 0}']
)
def test_whole_labels_have_no_problem(data):
    assert check_labels(data) == []


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is not JSON"),
        (b'{"a": 0', "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"[0, 1]", "holds no JSON object of labels"),
        (b"[]", "holds no JSON object of labels"),
        (b"3", "holds no JSON object of labels"),
        (b'{"a": "0"}', "label 'a' has '0', and no whole number from 0"),
        (b'{"a": -1}', "label 'a' has -1, and no whole number"),
        (b'{"a": true}', "label 'a' has True, and no whole number"),
        (b'{"a": [0]}', "label 'a' has [0], and no whole number"),
        (b'{"a": {"b": 0}}', "label 'a' has (('b', 0),), and no whole number"),
        (b'{"a": 0, "b": 0}', "labels 'a' and 'b' both have index 0"),
        (b'{"a": 0, "a": 1}', "label 'a' stands there 2 times"),
    ],
)
def test_damaged_labels_are_named(data, message):
    (problem,) = check_labels(data)
    assert (problem.code, problem.file) == ("bad-labels", "label2idx.json")
    assert message in problem.message
