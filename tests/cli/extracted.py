"""Items for ``gulp2 extract``, and what it has written."""

from __future__ import annotations

import av

from gulpio2 import GulpChunk
from gulpio2.testing import make_frames


def files_below(folder):
    return sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()
    )


def decoded(path):
    """Give the frames of a video and their times."""
    with av.open(str(path)) as container:
        frames = list(container.decode(container.streams.video[0]))
        return [f.to_ndarray(format="rgb24") for f in frames], [f.time for f in frames]


def make_items(folder, *ids):
    """Make a directory of items with a frame each."""
    folder.mkdir()
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open("wb"):
        for id_ in ids:
            chunk.append(id_, {}, make_frames(1))
