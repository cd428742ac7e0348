"""A program that reads clips for as long as it is told: one process per reader.

    python bench/readers.py KIND FACTS

KIND is a key of `READERS`, FACTS the clips as JSON. To each line of standard input, a
task with the seconds that it is to go on, it answers one line of JSON: the frames that
it read and the seconds that it took. It runs in the environments of the programs that
are compared, and so needs the standard library and numpy only.
"""

from __future__ import annotations

import json
import sys

from reader_others import (
    Decord,
    FolderOpenCV,
    FolderSimpleJpeg,
    Original,
    SameBytes,
    TorchCodec,
)
from reader_ours import Bare, Limit, Ours

READERS = {
    "ours": Ours,
    "limit": Limit,
    "bare": Bare,
    "original": Original,
    "original, same bytes": SameBytes,
    "decord": Decord,
    "torchcodec": TorchCodec,
    "JPEG files, OpenCV": FolderOpenCV,
    "JPEG files, simplejpeg": FolderSimpleJpeg,
}


def main() -> None:
    """Answer tasks until standard input ends."""
    reader = READERS[sys.argv[1]](json.loads(sys.argv[2]))
    versions = {}
    names = ("gulpio2", "simplejpeg", "decord", "torchcodec", "torch", "cv2", "numpy")
    for name in names:
        if name in sys.modules:
            versions[name] = getattr(sys.modules[name], "__version__", "?")
    print(json.dumps(versions), flush=True)  # noqa: T201  # the answer
    for line in sys.stdin:
        answer = reader.run(json.loads(line))
        print(json.dumps(answer), flush=True)  # noqa: T201  # the answer


if __name__ == "__main__":
    main()
