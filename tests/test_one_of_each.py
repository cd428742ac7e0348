"""What is said of one thing, where most have several."""

from __future__ import annotations

import pytest

from gulpio2 import GulpDirectory
from gulpio2.adapters.tables import Table
from gulpio2.errors import ItemNotFoundError
from gulpio2.media.images import ImageFrames
from gulpio2.order import RepeatedOrder
from gulpio2.removal import delete_items
from gulpio2.sampling import sample_window
from gulpio2.testing import make_gulp_directory
from gulpio2.torch import GulpClipDataset, GulpLoader


def test_texts_of_objects_speak_of_one(tmp_path):
    make_gulp_directory(tmp_path / "g", num_items=1, num_frames=1).close()
    directory = GulpDirectory(tmp_path / "g")
    path = str(tmp_path / "g")
    assert repr(directory) == f"GulpDirectory({path!r}, 1 item in 1 chunk)"
    (chunk,) = directory
    assert repr(chunk) == f"GulpChunk({chunk.data_file_path!r}, 1 item)"
    assert repr(directory.view(["item0"])) == f"GulpView({path!r}, 1 item)"
    assert repr(directory.item("item0")) == "StoredItem('item0', 1 frame)"
    assert repr(ImageFrames(["a.jpg"])) == "ImageFrames(1 file)"
    assert repr(Table({"id": ["a"]}, name="t")) == "Table('t', 1 row, columns ['id'])"
    text = repr(RepeatedOrder([1], seed=3))
    assert text == "RepeatedOrder(1 item, 1 position, seed=3)"


def test_messages_speak_of_one(tmp_path):
    make_gulp_directory(tmp_path / "g", num_items=1, num_frames=1).close()
    directory = GulpDirectory(tmp_path / "g")
    with pytest.raises(
        ValueError, match="a mask of 2 values cannot select from 1 item;"
    ):
        directory.query([True, False])
    with pytest.raises(ItemNotFoundError, match="'x' in a view of 1 item of "):
        directory.view(["item0"]).item("x")
    with pytest.raises(ItemNotFoundError, match=r"no item 'a' in .*, nor 1 other\. No"):
        delete_items(tmp_path / "g", ["a", "b"])


def test_a_loader_speaks_of_one(tmp_path):
    make_gulp_directory(tmp_path / "g", num_items=1, num_frames=1).close()
    dataset = GulpClipDataset(
        tmp_path / "g", lambda n: sample_window(n, clip_length=1), target="number"
    )
    loader = GulpLoader(dataset, batch_size=1)
    assert repr(loader).startswith("GulpLoader(GulpClipDataset of 1 sample, batch_")
