"""Directories to index, and what two ways of opening one must agree on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.storage.index import opening
from gulpio2.testing import make_frames

if TYPE_CHECKING:
    from pathlib import Path

METAS: list[dict[str, Any]] = [
    {"label": "waving", "fps": 25.0, "id": "x"},
    {"label": "jumping", "fps": 30, "n": 1, "tags": ["a", "b"]},
    {"label": "waving", "fps": float("nan"), "n": None, "box": {"x": 1}},
    {"label": "ünï", "n": 2**60, "size": [24, 32]},
    {},
]


def write_chunks(folder: Path, items_per_chunk: int = 2, *, first: int = 0) -> Path:
    """Write five items, of different numbers of frames, in chunks from a number on."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(range(0, len(METAS), items_per_chunk), first):
        chunk = GulpChunk(
            folder / f"data_{number}.gulp", folder / f"meta_{number}.gmeta"
        )
        with chunk.open("wb"):
            for item in range(start, min(start + items_per_chunk, len(METAS))):
                frames = make_frames(item, 16, 24, seed=10 * first + item)
                chunk.append(f"item {first}/{item}", METAS[item], frames)
    return folder


def plain(folder: Path) -> GulpDirectory:
    """Open without an index."""
    return GulpDirectory(folder, indexed=False)


def as_json(value: Any) -> str:
    """Write a value so that NaN equals NaN."""
    return json.dumps(value)


def assert_same(one: GulpDirectory, other: GulpDirectory) -> None:
    """Compare everything that a program can see of two directories."""
    assert list(one.merged_meta_dict) == list(other.merged_meta_dict)
    assert as_json(one.merged_meta_dict) == as_json(other.merged_meta_dict)
    assert dict(one.chunk_lookup) == dict(other.chunk_lookup)
    assert list(one.chunk_objs_lookup) == list(other.chunk_objs_lookup)
    assert [list(m) for m in one.all_meta_dicts] == [
        list(m) for m in other.all_meta_dicts
    ]
    assert len(one) == len(other)
    for id_ in other.merged_meta_dict:
        frames, meta = one[id_]
        wanted, wanted_meta = other[id_]
        assert as_json(meta) == as_json(wanted_meta)
        assert len(frames) == len(wanted)
        for frame, want in zip(frames, wanted, strict=True):
            np.testing.assert_array_equal(frame, want)
        assert one.item(id_).extras.crc32.tolist() == (
            other.item(id_).extras.crc32.tolist()
        )
    assert "nobody" not in one


@pytest.fixture
def all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have an index made of every directory."""
    monkeypatch.setattr(opening, "SMALL_MAPS_BYTES", 0)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write a directory without an index."""
    return write_chunks(tmp_path / "gulped")
