"""A number means one item, whatever becomes of the directories."""

from __future__ import annotations

import pickle
from functools import partial

import pytest

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.errors import ItemNotFoundError, MetaFileError
from gulpio2.removal import delete_items
from gulpio2.sampling import sample_window
from gulpio2.storage.index.file import map_index
from gulpio2.storage.index.keeping import build_index
from gulpio2.testing import make_frames, make_gulp_directory
from gulpio2.torch import GulpClipDataset, GulpDataset

torch = pytest.importorskip("torch")
pytest.importorskip("pyarrow")


def make(folder):
    make_gulp_directory(folder, num_items=8, num_frames=4, items_per_chunk=4).close()
    return folder


def numbers(dataset):
    return [dataset.get_data_info(index)["number"] for index in range(len(dataset))]


def add_chunk(folder, number=2, id_="fresh"):
    """Add an item in a chunk of its own."""
    chunk = GulpChunk(folder / f"data_{number}.gulp", folder / f"meta_{number}.gmeta")
    with chunk.open("wb"):
        chunk.append(id_, {"number": 100}, make_frames(4, 24, 32))


def add_frames(folder):
    """Add frames to an item, and so change its row of the index and its map."""
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open("ab"):
        chunk.append("item1", {}, make_frames(1, 24, 32))


def delete_third(folder):
    delete_items(folder, ["item2"])


def two_are_exchanged(folder):
    path = folder / "meta_0.gmeta"
    text = path.read_text("ascii").replace('"item2"', '"item9"')
    path.write_text(text.replace('"item3"', '"item2"').replace('"item9"', '"item3"'))


@pytest.fixture
def folder(tmp_path):
    return make(tmp_path / "gulped")


@pytest.mark.parametrize("change", [delete_third, add_chunk, add_frames])
@pytest.mark.parametrize("small", [False, True], ids=["index", "no index"])
def test_numbers_stay_when_the_directory_is_closed_and_changed(folder, change, small):
    directory = GulpDirectory(folder, indexed=True)
    dataset = GulpDataset(directory)
    if small:
        (folder / "index.arrow").unlink()
    directory.close()
    change(folder)
    if change is not delete_third:
        assert numbers(dataset) == [*range(8)]
        return
    listing = dataset._listing
    assert listing is not None
    found = [listing.find(position)[1] for position in range(8)]
    assert found == [f"item{number}" for number in range(8)]
    assert dataset.get_data_info(7)["number"] == 7


@pytest.mark.parametrize("change", [add_chunk, add_frames])
def test_a_pickled_dataset_has_the_items_that_it_had(folder, tmp_path, change):
    other = make(tmp_path / "other")
    both = [GulpDirectory(path, indexed=True) for path in (folder, other)]
    dataset = GulpDataset(both)
    subset = dataset.get_subset([7, 8])
    change(folder)
    for _ in range(2):  # and one that is pickled again there
        dataset = pickle.loads(pickle.dumps(dataset))
        assert numbers(dataset) == [*range(8), *range(8)]
        sources = [dataset.get_data_info(index)["source_idx"] for index in (7, 8)]
        assert sources == [0, 1]
    assert numbers(pickle.loads(pickle.dumps(subset))) == [7, 0]


@pytest.mark.parametrize("change", [delete_third, two_are_exchanged])
def test_a_pickled_dataset_says_that_its_items_would_be_others(folder, change):
    dataset = GulpDataset(GulpDirectory(folder, indexed=True))
    data = pickle.dumps(dataset)
    change(folder)
    again = pickle.loads(data)
    assert len(again) == 8
    for index in (0, 7):
        with pytest.raises(MetaFileError, match="Make the dataset anew") as caught:
            again.get_data_info(index)
        assert str(folder) in str(caught.value)
    with pytest.raises(MetaFileError):
        pickle.loads(pickle.dumps(again))[0]
    assert numbers(GulpDataset(GulpDirectory(folder, indexed=True)))[0] == 0


def test_a_directory_that_became_empty_says_so_too(folder):
    data = pickle.dumps(GulpDataset(GulpDirectory(folder, indexed=True)))
    delete_items(folder, [f"item{number}" for number in range(8)])
    with pytest.raises(MetaFileError, match="has changed since the dataset was made"):
        pickle.loads(data)[0]


def test_a_worker_of_a_later_epoch_tells_its_parent(folder):
    dataset = GulpClipDataset(
        GulpDirectory(folder, indexed=True),
        partial(sample_window, clip_length=2, stride=1),
        target="number",
    )
    loader = torch.utils.data.DataLoader(
        dataset, batch_size=None, num_workers=1, multiprocessing_context="spawn"
    )
    add_chunk(folder)
    assert [int(number) for _, number in loader] == [*range(8)]
    delete_third(folder)
    with pytest.raises(MetaFileError, match="Make the dataset anew"):
        list(loader)


@pytest.mark.parametrize("indexed", [True, False])
def test_a_worker_tells_its_parent_that_an_item_of_a_view_is_gone(folder, indexed):
    dataset = GulpClipDataset(
        GulpDirectory(folder, indexed=indexed).query("number in [1, 2]"),
        partial(sample_window, clip_length=2, stride=1),
        target="number",
    )
    loader = torch.utils.data.DataLoader(
        dataset, batch_size=None, num_workers=1, multiprocessing_context="spawn"
    )
    delete_third(folder)
    with pytest.raises((MetaFileError, ItemNotFoundError), match=str(folder)):
        list(loader)


def test_a_view_travels_as_its_items(folder):
    directory = GulpDirectory(folder, indexed=True)
    dataset = GulpDataset(directory.query("number >= 4"))
    data = pickle.dumps(dataset)
    delete_third(folder)
    assert numbers(dataset) == [4, 5, 6, 7]
    assert numbers(pickle.loads(data)) == [4, 5, 6, 7]


def test_a_view_whose_index_was_made_anew_since_gives_its_items(folder, caplog):
    build_index(folder)
    path = folder / "index.arrow"
    data = bytearray(path.read_bytes())
    place = data.find(map_index(str(path)).columns.frame_offset.tobytes())
    data[place + 8 * 31] ^= 4  # of a frame of item7
    path.write_bytes(data)
    directory = GulpDirectory(folder, indexed=True)
    view = directory.query("number >= 4")
    early = GulpDataset(view)
    delete_items(folder, ["item0"])
    assert early.get_data_info(3)["number"] == 7
    assert "is not what its map says" in caplog.text
    assert numbers(early) == numbers(GulpDataset(view)) == [4, 5, 6, 7]


def test_the_size_of_a_pickle_does_not_depend_on_the_items(tmp_path):
    sizes = []
    for count in (2, 50):
        path = tmp_path / str(count)
        make_gulp_directory(path, num_items=count, num_frames=1).close()
        dataset = GulpDataset(GulpDirectory(path, indexed=True))
        sizes.append(len(pickle.dumps(dataset)))
    assert sizes[1] - sizes[0] < 20
