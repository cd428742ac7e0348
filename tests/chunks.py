"""Chunks that tests write, and sources of frames that they write."""

from __future__ import annotations

import json
import os
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.codecs.jpeg import EncoderSettings, decode_frame, encode_frame
from gulpio2.sanity import check_directory
from gulpio2.testing import make_frames
from gulpio2.types import StoredFrame

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy as np

    from gulpio2.types import StrPath

# What the check finds where items were deleted from a map, or frames from an item; the
# last where an index still has them.
LEFT = {"unreferenced-bytes", "data-too-long", "lost-item"}
JPEGS = [encode_frame(frame, EncoderSettings()) for frame in make_frames(8)]


class BrokenError(Exception):
    """What a source of a client raises."""


class StopError(Exception):
    """What ends a block of writing."""


class Timed:
    """A frame source with times, as a video is one."""

    def __init__(
        self,
        pts: list[int] | list[int | None],
        time_base: Fraction | None = Fraction(1, 1000),
        **source: Any,
    ) -> None:
        self.pts = pts
        self.time_base = time_base
        self.source = source

    def __len__(self) -> int:
        return len(self.pts)

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter(make_frames(len(self.pts)))

    def stored(self) -> Iterator[StoredFrame]:
        """Give frames that are encoded already."""
        for index, tick in enumerate(self.pts):
            yield StoredFrame(JPEGS[index], tick)

    def source_info(self) -> dict[str, Any]:
        """Give what was said of the source."""
        return self.source


def new_chunk(folder: Path, number: int = 0, **options: Any) -> GulpChunk:
    """Give the chunk object of a number."""
    return GulpChunk(
        str(folder / f"data_{number}.gulp"),
        str(folder / f"meta_{number}.gmeta"),
        **options,
    )


def write(folder: Path, *items: tuple[Any, Any, Any], flag: str = "wb") -> GulpChunk:
    """Write items ``(id, metadata, frames)`` into chunk 0."""
    chunk = new_chunk(folder)
    with chunk.open(flag):
        for item in items:
            chunk.append(*item)
    return chunk


def make_chunk(
    folder: Path, items: dict[Any, tuple[Any, Any]], **options: Any
) -> GulpChunk:
    """Write a chunk of ``{id: (metadata, frames)}``."""
    write(folder, *((id_, meta, frames) for id_, (meta, frames) in items.items()))
    return new_chunk(folder, **options)


def make_three_items(folder: Path) -> GulpChunk:
    """Write a chunk of three items: "a", "7" (grey) and "empty"."""
    return make_chunk(
        folder,
        {
            "a": ({"label": "x", "inner": {"n": [1]}}, make_frames(6)),
            7: ({}, make_frames(2, grey=True)),
            "empty": ({"why": "no frames"}, []),
        },
    )


def make_labelled_items(folder: Path) -> Path:
    """Write a chunk of "a", with times, "b" and "c"."""
    write(
        folder,
        ("a", {"label": "old"}, Timed([0, 40, 80], codec="x")),
        ("b", {"label": "old", "deep": {"n": [1]}}, JPEGS[3:5]),
        ("c", {}, JPEGS[5:6]),
    )
    return folder


def label(entries: Any, id_: str, value: Any = "new") -> None:
    """Edit the label of an item."""
    entries[id_]["meta_data"][0]["label"] = value


def rename(entries: Any, id_: str, new_id: str) -> None:
    """Give an item another id."""
    entries[new_id] = entries.pop(id_)


def labels(folder: Path) -> dict[str, Any]:
    """Give the labels on the disk."""
    entries = json.loads((folder / "meta_0.gmeta").read_bytes())
    return {id_: e["meta_data"][0].get("label") for id_, e in entries.items()}


def problems(folder: Path) -> list[str]:
    """Name what the check finds, opening with it included."""
    found = sorted({p.code for p in check_directory(folder, deep=True).problems})
    if not found:
        with GulpDirectory(folder, verify=True, indexed=False) as directory:
            for id_ in directory.merged_meta_dict:
                directory[id_]
    return found


def content(folder: Path) -> dict[str, bytes]:
    """Give every file with its bytes."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def entry_of(folder: Path, id_: str) -> dict[str, Any]:
    """Give an entry of the map on the disk."""
    entry: dict[str, Any] = json.loads((folder / "meta_0.gmeta").read_bytes())[id_]
    return entry


def items_of(folder: StrPath) -> dict[str, tuple[list[bytes], Any]]:
    """Open the directory, which must work, and read all that it says it has."""
    with GulpDirectory(folder) as directory:
        return {
            id_: (directory.read_jpegs(id_), directory.item(id_).meta)
            for id_ in directory.chunk_lookup
        }


def decoded_frames(num_frames: int) -> list[np.ndarray]:
    """Give drawn frames as they come out of the decoder."""
    return [decode_frame(jpeg) for jpeg in JPEGS[:num_frames]]


def open_files(folder: Path) -> list[str]:
    """Name the files below a folder that this process has open."""
    names = []
    for fd in os.listdir("/proc/self/fd"):  # noqa: PTH208  # names are numbers
        try:
            target = os.readlink(f"/proc/self/fd/{fd}")  # noqa: PTH115  # a link
        except FileNotFoundError:  # of the listing itself
            continue
        if target.startswith(str(folder)):
            names.append(target)
    return sorted(names)
