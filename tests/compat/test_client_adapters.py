"""Adapters as clients write them (``client_code.py``) and their ingest."""

from __future__ import annotations

import json
import math
import multiprocessing
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gulpio2 import GulpChunk, GulpDirectory, GulpIngestor

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def segments(tmp_path: Path, frame: Any) -> tuple[Path, list[dict[str, Any]]]:
    """Make folders of images, and a table of them as it comes from a data frame."""
    pil = pytest.importorskip("PIL.Image")
    table = []
    for uid in range(5):
        folder = tmp_path / "frames" / f"P01_{uid:02d}"
        folder.mkdir(parents=True)
        for k in range(uid + 1):
            pil.fromarray(frame(uid + k)).save(folder / f"frame_{k:010d}.jpg")
        table.append(
            {
                "uid": np.int64(uid),
                "folder": folder.name,
                "start": np.float32(0.5),
                "verb_class": np.int32(3),
                "is_test": np.bool_(True),
                "narration": math.nan,
                "nouns": ["a", "b"],
                "counts": np.array([1, 2]),
            }
        )
    return tmp_path / "frames", table


@pytest.mark.parametrize("num_workers", [1, 2])
def test_an_adapter_of_the_client_is_ingested_with_its_table(
    client_code, segments, tmp_path, num_workers
):
    root, table = segments
    adapter = client_code.SegmentAdapter(str(root), table, frame_size=12)
    assert GulpIngestor(adapter, str(tmp_path / "out"), 2, num_workers)() is None
    directory = GulpDirectory(str(tmp_path / "out"))
    assert list(directory.merged_meta_dict) == ["0", "1", "2", "3", "4"]
    assert directory.num_chunks == 3
    for uid in range(5):
        frames, meta = directory[uid]
        assert meta["num_frames"] == len(frames) == uid + 1
        assert meta["frame_size"] == [12, 16, 3] == list(frames[0].shape)
        assert (meta["uid"], meta["start"], meta["verb_class"]) == (uid, 0.5, 3)
        assert {type(meta[key]) for key in ("uid", "verb_class")} == {int}
        assert type(meta["start"]) is float
        assert meta["is_test"] is True
        assert math.isnan(meta["narration"])
        assert (meta["nouns"], meta["counts"]) == (["a", "b"], [1, 2])


def test_what_an_adapter_notes_after_the_yield_is_stored(client_code, tmp_path, grey):
    items: list[Any] = [(k, {"k": k}, [grey(k)]) for k in range(3)]
    adapter = client_code.ArrayAdapter(items, note_afterwards=True)
    GulpIngestor(adapter, str(tmp_path / "out"), 2, 1)()
    directory = GulpDirectory(str(tmp_path / "out"))
    for k in range(3):
        assert directory[k][1] == {"k": k, "noted_after_the_yield": True}


@pytest.mark.parametrize("num_workers", [1, 2])
def test_an_exception_of_the_adapter_reaches_the_caller(
    client_code, tmp_path, grey, num_workers
):
    items: list[Any] = [(k, {}, [grey(k)]) for k in range(6)]
    adapter = client_code.FailingAdapter(items, fails_at=3)
    with pytest.raises(client_code.MissingFramesError, match="folder3") as caught:
        GulpIngestor(adapter, str(tmp_path / "out"), 2, num_workers)()
    assert caught.value.folder == "folder3" or caught.value.folder.endswith("folder3")
    stored = GulpDirectory(str(tmp_path / "out")).merged_meta_dict
    assert {"0", "1", "2", "4", "5"} >= set(stored) >= {"0", "1", "4", "5"}


def test_worker_counts_of_the_machine_and_text_are_taken(client_code, tmp_path, grey):
    adapter = client_code.ArrayAdapter([("a", {}, [grey()])])
    workers = str(multiprocessing.cpu_count())
    GulpIngestor(adapter, str(tmp_path / "deep" / "out"), "100", workers)()
    assert list(GulpDirectory(tmp_path / "deep" / "out").merged_meta_dict) == ["a"]


def test_a_second_ingest_continues_the_chunk_numbers(client_code, tmp_path, grey):
    for start in (0, 3):
        items: list[Any] = [(f"i{k}", {}, [grey(k)]) for k in range(start, start + 3)]
        GulpIngestor(client_code.ArrayAdapter(items), str(tmp_path / "out"), 2, 1)()
    directory = GulpDirectory(str(tmp_path / "out"))
    assert list(directory.chunk_objs_lookup) == [0, 1, 2, 3]
    assert list(directory.merged_meta_dict) == [f"i{k}" for k in range(6)]


def test_an_item_without_frames_is_named_and_not_stored(client_code, tmp_path, grey):
    from gulpio2 import ChunkWriter

    adapter = client_code.ArrayAdapter([("none", {}, []), ("one", {}, [grey()])])
    (chunk,) = GulpDirectory(str(tmp_path)).new_chunks(1)
    ChunkWriter(adapter).write_chunk(chunk, slice(0, 2))
    stored = json.loads((tmp_path / "meta_0.gmeta").read_text())
    assert list(stored) == ["one"]


def test_an_item_without_frames_is_printed_as_the_original_prints_it(
    client_code, tmp_path, capsys
):
    from gulpio2 import ChunkWriter

    adapter = client_code.ArrayAdapter([("none", {}, [])])
    (chunk,) = GulpDirectory(str(tmp_path)).new_chunks(1)
    ChunkWriter(adapter).write_chunk(chunk, slice(0, 1))
    expected = "Failed to write video with id: none; no frames"
    assert expected in capsys.readouterr().out
    assert (tmp_path / "meta_0.gmeta").read_bytes() == b"{}"
    assert (tmp_path / "data_0.gulp").read_bytes() == b""


class RenamingChunk(GulpChunk):
    """A chunk of the client's, which puts something before every id."""

    def append(self, id_: Any, meta_data: Any, frames: Any) -> None:
        """Store under another id."""
        super().append(f"flow/{id_}", meta_data, frames)


def test_a_chunk_class_of_the_client_may_store_other_ids(client_code, tmp_path, grey):
    from gulpio2 import ChunkWriter

    adapter = client_code.ArrayAdapter([("a", {}, [grey()]), ("b", {}, [grey(2)])])
    chunk = RenamingChunk(str(tmp_path / "data_0.gulp"), str(tmp_path / "meta_0.gmeta"))
    ChunkWriter(adapter).write_chunk(chunk, slice(0, 2))
    assert list(GulpDirectory(tmp_path).merged_meta_dict) == ["flow/a", "flow/b"]
