"""Print as JSON what GulpIO2 0.0.4 reads from a directory: ``describe.py DIR``."""

from __future__ import annotations

import hashlib
import json
import sys

import numpy as np

from gulpio2 import GulpDirectory


def describe_frame(frame):
    """Give shape and digest of a decoded frame."""
    frame = np.ascontiguousarray(frame)
    digest = hashlib.sha256(frame.tobytes()).hexdigest()
    return {"shape": list(frame.shape), "sha256": digest}


def describe(path):
    """Give ids in order, metadata and frames; every item by every form of access."""
    directory = GulpDirectory(path)
    items = []
    for _, chunk in sorted(directory.chunk_objs_lookup.items()):
        read = list(chunk)
        for id_, (frames, meta) in zip(chunk.meta_dict, read, strict=True):
            items.append(
                {
                    "id": id_,
                    "meta": meta,
                    "meta_data": chunk.meta_dict[id_]["meta_data"],
                    "frames": [describe_frame(frame) for frame in frames],
                    "by_id": [describe_frame(frame) for frame in directory[id_][0]],
                    "every_second": [
                        describe_frame(frame) for frame in directory[id_, ::2][0]
                    ],
                }
            )
    return {"items": items, "chunk_lookup": directory.chunk_lookup}


if __name__ == "__main__":
    json.dump(describe(sys.argv[1]), sys.stdout)
