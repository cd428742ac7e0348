"""Extend a directory with GulpIO2 0.0.4, in the three ways that it has.

``extend.py DIR``: appends frames to the item "a" of chunk 0, appends an item to the
last chunk, writes a new chunk, and ingests one more with its ingestor.
"""

from __future__ import annotations

import json
import sys

import numpy as np

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.adapters import AbstractDatasetAdapter


class OneItem(AbstractDatasetAdapter):
    """An adapter of one item."""

    def __len__(self):
        return 1

    def iter_data(self, slice_element=None):
        yield {"meta": {"by": "ingestor"}, "frames": [image(4)], "id": "ingested"}


def image(value):
    """Give a plain frame."""
    return np.full((16, 16, 3), value * 20, np.uint8)


if __name__ == "__main__":
    directory = GulpDirectory(sys.argv[1])
    chunks = directory.chunk_objs_lookup
    with chunks[0].open("ab"):
        chunks[0].append("a", {"by": "the original"}, [image(1)])
    with chunks[max(chunks)].open("ab"):
        chunks[max(chunks)].append("appended", {"by": "append"}, [image(2)])
    (new,) = GulpDirectory(sys.argv[1]).new_chunks(1)
    with new.open("wb"):
        new.append("new", {"by": "new_chunks"}, [image(3)])
    GulpIngestor(OneItem(), sys.argv[1], 1, 1)()
    json.dump(sorted(GulpDirectory(sys.argv[1]).merged_meta_dict), sys.stdout)
