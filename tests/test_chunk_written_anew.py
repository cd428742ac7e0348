"""Maps that a program keeps and assigns while another one writes the chunk anew.

The new frames lie where the old ones were. Where they are as long, nothing but their
checksums tells them apart.
"""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import pytest

from gulpio2 import GulpDirectory
from gulpio2.errors import ChunkMismatchError
from gulpio2.format.entry import EXTRAS_KEY
from gulpio2.storage.index.index import Index
from tests.chunks import JPEGS, label, labels, new_chunk, problems, rename, write

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gulpio2 import GulpChunk
    from gulpio2.storage.index.entries import IndexRecord

SIZE = max(map(len, JPEGS)) + 8


def filled(jpeg: bytes, size: int = SIZE) -> bytes:
    """Make a JPEG as long as all others, by a comment."""
    comment = b"x" * (size - len(jpeg) - 4)
    length = (len(comment) + 2).to_bytes(2, "big")
    return jpeg[:2] + b"\xff\xfe" + length + comment + jpeg[2:]


OLD, NEW = ([filled(jpeg) for jpeg in part] for part in (JPEGS[:4], JPEGS[4:8]))
SMALLER, LARGER = JPEGS[4:8], [filled(jpeg, 3 * SIZE) for jpeg in JPEGS[4:8]]


def store(folder: Path, ids: str, frames: list[bytes], name: str) -> None:
    """Write the chunk anew, two frames an item."""
    items = (
        (id_, {"label": name}, frames[2 * at : 2 * at + 2])
        for at, id_ in enumerate(ids)
    )
    write(folder, *items)


def without_extras(folder: Path) -> None:
    """Leave the map as GulpIO2 0.0.4 would have written it."""
    chunk = new_chunk(folder)
    with chunk.open("ab"):
        for entry in chunk.meta_dict.values():
            del entry[EXTRAS_KEY]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write items "a" and "b"."""
    store(tmp_path, "ab", OLD, "old")
    return tmp_path


@pytest.fixture
def indexed(folder: Path) -> Iterator[GulpDirectory]:
    """Open it with an index."""
    with GulpDirectory(folder, indexed=True) as directory:
        yield directory


def commit(chunk: GulpChunk) -> None:
    with chunk.open("ab"):
        pass


def is_new(folder: Path, ids: str, new: list[bytes] = NEW) -> bool:
    """Tell whether the directory has what was written last, and nothing else."""
    chunk = new_chunk(folder, verify=True)
    frames = {id_: chunk.read_jpegs(id_) for id_ in chunk.meta_dict}
    return (
        frames == {id_: new[2 * at : 2 * at + 2] for at, id_ in enumerate(ids)}
        and set(labels(folder).values()) == {"new"}
        and problems(folder) == []
    )


def in_chunk(directory: GulpDirectory) -> GulpChunk:
    return directory.chunk_objs_lookup[0]


def in_view(directory: GulpDirectory) -> GulpChunk:
    (chunk,) = directory.view(["b", "a"])
    return chunk


@pytest.mark.parametrize("ids", ["ab", "cd"], ids=["same ids", "other ids"])
@pytest.mark.parametrize("is_bare", [False, True], ids=["checksums", "as 0.0.4"])
@pytest.mark.parametrize("is_edited", [False, True], ids=["kept", "edited"])
@pytest.mark.parametrize("is_late", [False, True], ids=["at once", "after close"])
@pytest.mark.parametrize("chunk_of", [in_chunk, in_view])
def test_after_a_close_an_old_map_is_refused(
    folder, ids, is_bare, is_edited, is_late, chunk_of
):
    if is_bare:
        without_extras(folder)
    directory = GulpDirectory(folder, indexed=True)
    chunk = chunk_of(directory)
    kept = OrderedDict(copy.deepcopy(dict(chunk.meta_dict)))
    if is_edited:
        label(kept, "a")
    if not is_late:
        chunk.meta_dict = kept
    store(folder, ids, NEW, "new")
    if is_bare:
        without_extras(folder)
    directory.close()
    chunk.meta_dict = kept
    with pytest.raises(ChunkMismatchError, match="Open the directory again"):
        commit(chunk)
    assert is_new(folder, ids)
    assert chunk.meta_dict is kept  # nobody's edits are lost
    assert kept["a"]["meta_data"][0]["label"] == ("new" if is_edited else "old")
    with pytest.raises(ChunkMismatchError):
        commit(pickle.loads(pickle.dumps(chunk)))
    assert is_new(folder, ids)


def test_a_map_of_what_is_there_now_may_be_assigned_after_a_close(folder, indexed):
    chunk = in_chunk(indexed)
    store(folder, "ab", NEW, "new")
    indexed.close()
    chunk.meta_dict = OrderedDict(chunk.meta_dict)
    commit(chunk)
    assert is_new(folder, "ab")


@pytest.mark.parametrize("is_deep", [False, True], ids=["entries", "copies"])
def test_a_map_that_was_written_as_it_was_is_no_other_one(folder, indexed, is_deep):
    chunk = in_chunk(indexed)
    kept = copy.deepcopy(dict(chunk.meta_dict)) if is_deep else chunk.meta_dict
    chunk.meta_dict = OrderedDict(kept)
    label(chunk.meta_dict, "a")
    commit(new_chunk(folder))  # of another program, which changes nothing
    indexed.close()
    commit(chunk)
    assert labels(folder) == {"a": "new", "b": "old"}


@pytest.mark.parametrize("chunk_of", [in_chunk, in_view])
def test_a_close_alone_forgets_no_edit(folder, indexed, chunk_of):
    chunk = chunk_of(indexed)
    chunk.meta_dict = OrderedDict(copy.deepcopy(dict(chunk.meta_dict)))
    label(chunk.meta_dict, "a")
    del chunk.meta_dict["b"]
    indexed.close()
    commit(chunk)
    assert labels(folder) == {"a": "new"}
    assert new_chunk(folder, verify=True).read_jpegs("a") == OLD[:2]


def test_an_entry_that_is_made_during_a_close_is_of_the_new_map(folder, indexed):
    class Slow(Index):
        """Gives another thread time to close it, once the old row was found."""

        def record(self, id_: str) -> IndexRecord | None:
            found = super().record(id_)
            if not is_new(folder, "ab"):
                store(folder, "ab", NEW, "new")
                indexed.close()
                assert len(indexed) == 2  # of the map of now
            return found

    indexed._index.__class__ = Slow
    assert indexed.merged_meta_dict["a"]["meta_data"][0]["label"] == "new"
    assert indexed.read_jpegs("a") == NEW[:2]


@pytest.mark.parametrize("is_late", [False, True], ids=["at once", "after close"])
@pytest.mark.parametrize("at_once", [False, True], ids=["one by one", "all"])
def test_what_was_deleted_comes_back_if_it_was_written_anew(
    folder, indexed, is_late, at_once
):
    chunk = in_chunk(indexed)
    if at_once:
        chunk.meta_dict.clear()
    else:
        for id_ in "ab":
            del chunk.meta_dict[id_]
    store(folder, "ab", NEW, "new")
    if is_late:
        indexed.close()
    commit(chunk)
    assert is_new(folder, "ab")


def kept_over_an_append(
    folder: Path, ids: str, new: list[bytes], *, is_indexed: bool
) -> GulpChunk:
    """Have a chunk that has read what is new, and gets a map from before that."""
    with GulpDirectory(folder, indexed=is_indexed) as directory:
        chunk = in_chunk(directory)
        kept = OrderedDict(copy.deepcopy(dict(chunk.meta_dict)))
        store(folder, ids, new, "new")
        commit(chunk)
        chunk.meta_dict = kept
    return chunk


both = pytest.mark.parametrize("is_indexed", [False, True], ids=["plain", "indexed"])
of_sizes = pytest.mark.parametrize(
    "new", [NEW, SMALLER, LARGER], ids=["as long", "smaller", "larger"]
)


@both
@of_sizes
def test_of_an_old_map_what_nobody_edited_becomes_new(folder, is_indexed, new):
    chunk = kept_over_an_append(folder, "ab", new, is_indexed=is_indexed)
    commit(chunk)
    assert is_new(folder, "ab", new)
    assert chunk.read_jpegs("b") == new[2:]


@both
@of_sizes
def test_of_an_old_map_an_edit_is_one_of_the_new_frames(folder, is_indexed, new):
    chunk = kept_over_an_append(folder, "ab", new, is_indexed=is_indexed)
    label(chunk.meta_dict, "a", "mine")
    commit(chunk)
    assert labels(folder) == {"a": "mine", "b": "new"}
    assert new_chunk(folder, verify=True).read_jpegs("a") == new[:2]
    assert problems(folder) == []


@both
@of_sizes
def test_an_old_item_is_not_put_over_the_frames_of_another(folder, is_indexed, new):
    chunk = kept_over_an_append(folder, "cd", new, is_indexed=is_indexed)
    kept = chunk.meta_dict
    with pytest.raises(ChunkMismatchError, match=r"item 'a'.*written anew"):
        commit(chunk)
    assert is_new(folder, "cd", new)
    assert chunk.meta_dict is kept
    assert list(kept) == ["a", "b"]


@both
@of_sizes
def test_an_old_item_under_another_id_is_not_either(folder, is_indexed, new):
    chunk = kept_over_an_append(folder, "ab", new, is_indexed=is_indexed)
    rename(chunk.meta_dict, "a", "A")
    with pytest.raises(ChunkMismatchError, match=r"item 'A'.*written anew"):
        commit(chunk)
    assert is_new(folder, "ab", new)


@both
@pytest.mark.parametrize("new", [SMALLER, LARGER], ids=["smaller", "larger"])
@pytest.mark.parametrize("is_edited", [False, True], ids=["kept", "edited"])
def test_what_has_no_check_is_refused_where_its_frames_cannot_be(
    folder, is_indexed, new, is_edited
):
    without_extras(folder)
    chunk = kept_over_an_append(folder, "ab", new, is_indexed=is_indexed)
    if is_edited:
        label(chunk.meta_dict, "a")
    with pytest.raises(ChunkMismatchError, match=r"item 'a'.*written anew"):
        commit(chunk)
    assert is_new(folder, "ab", new)


@both
def test_of_an_old_map_items_go_to_where_their_frames_are_now(folder, is_indexed):
    with GulpDirectory(folder, indexed=is_indexed) as directory:
        chunk = in_chunk(directory)
        kept = OrderedDict(copy.deepcopy(dict(chunk.meta_dict)))
        store(folder, "ba", OLD[2:] + OLD[:2], "old")
        commit(chunk)
        chunk.meta_dict = kept
    label(kept, "a", "mine")
    commit(chunk)
    there = new_chunk(folder, verify=True)
    assert there.read_jpegs("a") == OLD[:2]
    assert there.read_jpegs("b") == OLD[2:]
    assert labels(folder) == {"a": "mine", "b": "old"}
    assert problems(folder) == []


@both
def test_an_item_that_was_deleted_may_be_put_back(folder, is_indexed):
    with GulpDirectory(folder, indexed=is_indexed) as directory:
        chunk = in_chunk(directory)
        kept = chunk.meta_dict["b"]
        del chunk.meta_dict["b"]
        commit(chunk)
        chunk.meta_dict["b"] = kept
        commit(chunk)
    assert new_chunk(folder, verify=True).read_jpegs("b") == OLD[2:]
    assert problems(folder) == []


def test_a_damaged_map_is_not_taken_for_one_that_was_written_anew(folder):
    chunk = new_chunk(folder)
    kept = copy.deepcopy(chunk.meta_dict)
    path = folder / "meta_0.gmeta"
    extras: dict[str, Any] = kept["a"][EXTRAS_KEY]
    text = extras["crc32"]
    other = text[:2] + ("A" if text[2] != "A" else "B") + text[3:]
    path.write_text(path.read_text().replace(text, other))
    again = new_chunk(folder)
    again.meta_dict = kept
    commit(again)
    assert new_chunk(folder, verify=True).read_jpegs("a") == OLD[:2]
