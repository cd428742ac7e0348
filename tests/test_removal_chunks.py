"""Deleting items in some chunks alone, as of an id that is in two."""

import numpy as np
import pytest

from gulpio2 import GulpChunk, GulpDirectory, GulpIngestor
from gulpio2.errors import ChunkMismatchError, DuplicateIdError, ItemNotFoundError
from gulpio2.merge import merge_directories
from gulpio2.removal import compact_directory, delete_items
from gulpio2.repair import repair_directory
from gulpio2.sanity import check_directory
from gulpio2.storage.index.keeping import build_index, index_state
from gulpio2.storage.local import open_store
from gulpio2.storage.removals_file import read_removals
from gulpio2.testing import FrameAdapter
from tests.faults.operations import content


@pytest.fixture
def folder(tmp_path):
    """Make a directory of six items in three chunks."""
    path = tmp_path / "gulped"
    GulpIngestor(FrameAdapter(num_items=6, num_frames=3), path, 2, 1).run()
    return path


def jpegs(folder):
    with GulpDirectory(folder) as directory:
        return {id_: directory.read_jpegs(id_) for id_ in directory.chunk_lookup}


@pytest.fixture
def twice(folder):
    """Add item0 of the first chunk to the second, with the same frames; give these."""
    before = jpegs(folder)
    build_index(folder)
    with GulpDirectory(folder) as directory:
        frames, meta = directory["item0"]
    chunk = GulpChunk(folder / "data_1.gulp", folder / "meta_1.gmeta")
    with chunk.open("ab"):
        chunk.append("item0", meta, frames)
    with pytest.raises(DuplicateIdError, match="gulp2 delete DIR ID --chunk 1"):
        GulpDirectory(folder)
    (problem,) = check_directory(folder).problems
    assert problem.code == "duplicate-id"
    assert "gulp2 delete DIR ID --chunk 1" in problem.message
    return before


def has_index(folder, **expected):
    """Tell whether the index is made, and finds these items in these chunks."""
    assert build_index(folder) is not None
    with GulpDirectory(folder, indexed=True) as directory:
        found = dict(directory.chunk_lookup)
        for id_ in found:
            directory.read_frames(id_)
    return expected.items() <= found.items()


@pytest.mark.parametrize("number", [0, 1])
def test_of_an_id_that_is_in_two_chunks_one_is_deleted(folder, twice, number):
    untouched = content(folder)
    would = delete_items(folder, ["item0"], chunks=[number], dry_run=True)
    assert content(folder) == untouched
    (deletion,) = delete_items(folder, ["item0"], chunks=[number])
    assert [deletion] == would
    assert (deletion.id, deletion.chunk, deletion.frames) == ("item0", number, 3)
    with GulpDirectory(folder) as directory:
        assert directory.chunk_lookup["item0"] == 1 - number
    assert {id_: len(it) for id_, it in jpegs(folder).items()} == dict.fromkeys(
        twice, 3
    )
    assert [id_ for id_, _ in read_removals(open_store(folder)).deleted[number]] == [
        "item0"
    ]
    assert check_directory(folder, deep=True).problems == []
    assert index_state(folder).is_fresh


@pytest.mark.parametrize("number", [0, 1])
def test_what_lives_on_in_another_chunk_outlives_all_that_follows(
    folder, twice, number, tmp_path
):
    delete_items(folder, ["item0"], chunks=[number])
    with GulpDirectory(folder) as directory:
        there = directory.read_jpegs("item0")
    assert has_index(folder, item0=1 - number, item2=1)

    assert repair_directory(folder, tmp_path / "mended").ok
    assert jpegs(tmp_path / "mended")["item0"] == there
    assert jpegs(tmp_path / "mended").keys() == twice.keys()

    size = (folder / f"data_{number}.gulp").stat().st_size
    (compaction,) = compact_directory(folder)
    assert (compaction.chunk, compaction.items) == (number, 1)
    assert (folder / f"data_{number}.gulp").stat().st_size == size
    assert jpegs(folder)["item0"] == there
    assert there[0][-64:] not in (folder / f"data_{number}.gulp").read_bytes()
    assert check_directory(folder, deep=True).problems == []
    assert has_index(folder, item0=1 - number, item2=1)

    merge_directories([folder], tmp_path / "merged")
    assert jpegs(tmp_path / "merged") == jpegs(folder)


def test_deleted_in_one_chunk_and_then_in_the_other_an_item_is_gone(folder, twice):
    delete_items(folder, ["item0"], chunks=[1])
    with pytest.raises(ItemNotFoundError, match=r"in data_1\.gulp of .*deleted alread"):
        delete_items(folder, ["item0"], chunks=[1])
    delete_items(folder, ["item0"])
    assert "item0" not in jpegs(folder)
    assert [each.chunk for each in compact_directory(folder)] == [0, 1]
    files = b"".join(content(folder).values())
    assert not any(jpeg[-64:] in files for jpeg in twice["item0"])


@pytest.mark.parametrize("chunks", [[0, 1], (1, 0), {np.int64(0), np.int64(1)}])
def test_several_chunks_are_looked_in(folder, twice, chunks):
    done = delete_items(folder, ["item0", "item2"], chunks=chunks)
    assert [(each.id, each.chunk) for each in done] == [
        ("item0", 0),
        ("item2", 1),
        ("item0", 1),
    ]
    assert jpegs(folder).keys() == twice.keys() - {"item0", "item2"}


@pytest.mark.parametrize(
    ("chunks", "error", "message"),
    [
        ([0], ItemNotFoundError, r"no item 'item2' in data_0\.gulp of .*Nothing was"),
        ([2, 0], ItemNotFoundError, r"'item2' in data_0\.gulp or data_2\.gulp of "),
        ([], ItemNotFoundError, r"no item 'item2' in no chunk of "),
        ([1, 7], ItemNotFoundError, r"there is no chunk 7 in .*Nothing was deleted"),
        (["1"], TypeError, "str"),
        ([1.0], TypeError, "float"),
    ],
)
def test_what_is_not_in_the_chunks_is_told_and_nothing_deleted(
    folder, chunks, error, message
):
    before = content(folder)
    with pytest.raises(error, match=message):
        delete_items(folder, ["item2"], chunks=chunks)
    assert content(folder) == before


def test_of_chunks_those_alone_must_have_their_data(folder):
    (folder / "data_1.gulp").unlink()
    with pytest.raises(ChunkMismatchError, match="'item2' is in"):
        delete_items(folder, ["item2"], chunks=[1])
    with pytest.raises(ItemNotFoundError, match=r"'item2' in data_0\.gulp of"):
        delete_items(folder, ["item2"], chunks=[0])
    (deletion,) = delete_items(folder, ["item0"], chunks=[0])
    assert deletion.chunk == 0
