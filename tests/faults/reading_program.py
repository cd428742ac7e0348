"""Reads at random while somebody writes; started by test_readers.py in many ways.

As a program: ``python reading_program.py PICKLE COUNT SEED``, where the pickle holds a
directory that was opened elsewhere and what its items must be.
"""

import logging
import pickle
import random
import sys
from functools import cache
from pathlib import Path

import numpy as np

from gulpio2 import GulpDirectory
from gulpio2.codecs.jpeg import EncoderSettings, decode_frame, encode_frame
from gulpio2.testing import make_frames


@cache
def right_clip(seed, num_frames=3):
    """Give what an item that was drawn with this seed must read as."""
    settings = EncoderSettings()
    frames = make_frames(num_frames, seed=seed)
    return np.stack([decode_frame(encode_frame(frame, settings)) for frame in frames])


def read_many(directory, count, seed):
    """Read one frame after the other; now and then open the directory anew."""
    rng = random.Random(seed)
    for number in range(count):
        if number % 40 == 39:
            directory = GulpDirectory(directory.output_dir, indexed=directory.indexed)
        ids = [id_ for id_ in directory.chunk_lookup if not id_.startswith("temp")]
        id_ = rng.choice(ids)
        index = rng.randrange(3)
        (frame,) = directory.read_clip(id_, [index])
        if not np.array_equal(frame, right_clip(int(id_[4:]))[index]):
            raise AssertionError(f"wrong pixels in frame {index} of {id_}")


if __name__ == "__main__":
    logging.disable(logging.WARNING)  # of an index that a writer has made stale
    opened = pickle.loads(Path(sys.argv[1]).read_bytes())
    read_many(opened, int(sys.argv[2]), int(sys.argv[3]))
