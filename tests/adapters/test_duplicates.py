"""Leaving out ids that are taken."""

from __future__ import annotations

import json

import pytest

from gulpio2.adapters.duplicates import remove_entries_with_duplicate_ids
from gulpio2.errors import DuplicateIdError


@pytest.fixture
def directory(tmp_path):
    """Give a gulp directory with the ids v1 and 2."""
    entry: dict[str, list[object]] = {"frame_info": [], "meta_data": [{}]}
    (tmp_path / "data_0.gulp").touch()
    (tmp_path / "meta_0.gmeta").write_text(json.dumps({"v1": entry, "2": entry}))
    return tmp_path


def test_stored_ids_are_compared_as_text_and_repeats_as_they_are(directory, capsys):
    entries = [{"id": id_} for id_ in ("v1", 2, "3", 3, "3")]
    kept = remove_entries_with_duplicate_ids(directory, entries)
    assert [entry["id"] for entry in kept] == ["3", 3]
    assert capsys.readouterr().out.splitlines() == [
        "Id 3 more than once in json file, I skip it!",
        "Id v1 already in GulpDirectory, I skip it!",
        "Id 2 already in GulpDirectory, I skip it!",
    ]


def test_the_first_of_repeats_stays(tmp_path, capsys):
    entries = [{"id": 1, "n": 1}, {"id": 1, "n": 2}]
    kept = remove_entries_with_duplicate_ids(str(tmp_path / "missing"), entries)
    assert kept == [{"id": 1, "n": 1}]
    assert "Id 1 more than once" in capsys.readouterr().out
    assert not (tmp_path / "missing").exists()


def test_nothing_left_is_an_error(directory, capsys):
    with pytest.raises(DuplicateIdError, match="no items to add"):
        remove_entries_with_duplicate_ids(directory, [{"id": "v1"}])
    assert capsys.readouterr().out.endswith("no items to add... Abort\n")


def test_an_empty_list_is_said_to_be_one(tmp_path):
    with pytest.raises(DuplicateIdError, match="has no entries: no items to add"):
        remove_entries_with_duplicate_ids(str(tmp_path / "missing"), [])
