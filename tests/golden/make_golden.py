"""Write the golden directories with GulpIO2 0.0.4.

Run by the original's own interpreter, from the root of the repository::

    bin/original
    .original-env/bin/python tests/golden/make_golden.py

Each directory ``tests/golden/<case>`` holds what 0.0.4 wrote, and ``<case>.json``
beside it says what 0.0.4 reads from it: ids in order, shapes, SHA-256 of the pixels of
every frame, and metadata. Nothing here is written by this package.
"""

from __future__ import annotations

import collections
import hashlib
import importlib.metadata
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import inputs  # noqa: E402  the directory had to come first
import numpy as np  # noqa: E402  # behind that
from gulpio2 import GulpChunk, GulpDirectory, utils  # noqa: E402  # behind that
from gulpio2.fileio import pickle_serializer  # noqa: E402  # behind that
from PIL import Image  # noqa: E402  # behind that


def write_chunk(folder, number, sessions, **arguments):
    """Write one chunk: a `GulpChunk` per session, as separate programs would."""
    for flag, appends in sessions:
        chunk = GulpChunk(
            str(folder / f"data_{number}.gulp"),
            str(folder / f"meta_{number}.gmeta"),
            **arguments,
        )
        with chunk.open(flag):
            for id_, meta, frames in appends:
                chunk.append(id_, meta, frames)


def fresh(name):
    """Give an empty folder for a case."""
    folder = HERE / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def describe_frame(frame):
    """Give shape and digest of a decoded frame."""
    frame = np.ascontiguousarray(frame)
    assert frame.dtype == np.uint8, frame.dtype
    return {
        "shape": list(frame.shape),
        "sha256": hashlib.sha256(frame.tobytes()).hexdigest(),
    }


def describe_chunk(chunk, number):
    """Give what 0.0.4 reads from a chunk."""
    items = []
    with chunk.open("rb"):
        for id_ in chunk.meta_dict:
            frames, meta = chunk.read_frames(id_)
            items.append(
                {
                    "id": id_,
                    "meta": meta,
                    "meta_data": chunk.meta_dict[id_]["meta_data"],
                    "frames": [describe_frame(frame) for frame in frames],
                }
            )
    return {"number": number, "items": items}


def file_facts(folder):
    """Give size and digest of each file."""
    return {
        path.name: {
            "bytes": path.stat().st_size,
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        }
        for path in sorted(folder.iterdir())
    }


def write_content(name, chunks, **more):
    """Write ``<case>.json``."""
    folder = HERE / name
    content = {
        "written_by": {
            "gulpio2": importlib.metadata.version("gulpio2"),
            "numpy": np.__version__,
            "simplejpeg": importlib.metadata.version("simplejpeg"),
            "python": platform.python_version(),
            "machine": platform.machine(),
        },
        "files": file_facts(folder),
        "chunks": chunks,
        **more,
    }
    (HERE / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n")


def describe_directory(name, **more):
    """Read a whole directory with 0.0.4 and write what it gave."""
    directory = GulpDirectory(str(HERE / name))
    # 0.0.4 orders chunks by file name; the contract is by number.
    chunks = [
        describe_chunk(chunk, number)
        for number, chunk in sorted(directory.chunk_objs_lookup.items())
    ]
    write_content(name, chunks, chunk_lookup=directory.chunk_lookup, **more)


def make_cases():
    """Write the directories of `inputs.CASES`."""
    for name, case in inputs.CASES.items():
        folder = fresh(name)
        for number, sessions in enumerate(case()):
            write_chunk(folder, number, sessions)
        describe_directory(name)


def make_quality_100():
    """Write with the module's quality variable changed, as upstream's tests do."""
    folder = fresh("quality_100")
    before, utils._JPEG_WRITE_QUALITY = utils._JPEG_WRITE_QUALITY, 100
    try:
        frames = [inputs.colour(24, 32, 7), inputs.grey(24, 32, 7)]
        write_chunk(folder, 0, [("wb", [("best", {"quality": 100}, frames)])])
    finally:
        utils._JPEG_WRITE_QUALITY = before
    describe_directory("quality_100")


def make_pickled():
    """Write a map with the pickle serializer, which names classes of `gulpio2`."""
    folder = fresh("pickled")
    frames = [inputs.colour(8, 8, 1), inputs.grey(8, 8, 2)]
    sessions = [("wb", [("p", {"tuple": (1, 2), 3: "int key"}, frames)])]
    write_chunk(folder, 0, sessions, serializer=pickle_serializer)
    chunk = GulpChunk(
        str(folder / "data_0.gulp"),
        str(folder / "meta_0.gmeta"),
        serializer=pickle_serializer,
    )
    assert isinstance(chunk.meta_dict, collections.OrderedDict)
    write_content("pickled", [describe_chunk(chunk, 0)])


def make_image_folder():
    """Write with the original's own script, from JPEG and PNG files, resized."""
    folder = HERE / "image_folder"
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch:
        source = pathlib.Path(scratch) / "images"
        for number, label in enumerate(["zebra", "ant", "ünder score"]):
            (source / label).mkdir(parents=True)
            for k, (height, width) in enumerate([(60, 80), (80, 60)]):
                image = Image.fromarray(inputs.colour(height, width, 10 * number + k))
                image.save(
                    source / label / f"photo{k}.jpg", quality=75 + k, subsampling=k * 2
                )
            Image.fromarray(inputs.grey(50, 50, number)).save(
                source / label / "scan.png"
            )
        script = pathlib.Path(sys.executable).parent / "gulp2_image_folder"
        subprocess.run(
            [
                str(script),
                "--images_per_chunk=4",
                "--num_workers=1",
                "--image_size=24",
                f"images{os.sep}",
                str(folder),
            ],
            check=True,
            cwd=scratch,
            stdout=subprocess.DEVNULL,
        )
    labels = json.loads((folder / "label2idx.json").read_text())
    describe_directory("image_folder", label2idx=labels)


if __name__ == "__main__":
    make_cases()
    make_quality_100()
    make_pickled()
    make_image_folder()
