"""Memory is used again: a frame makes the system give no new pages."""

import platform
import subprocess
import sys

import av
import numpy as np
import pytest

# Prints the pages that the system had to give for each frame of argv[1]. For "kept",
# all frames are held, so that each needs memory of its own.
SCRIPT = """
import resource, sys
from gulpio2.codecs.encoding import FrameEncoder
from gulpio2.codecs.jpeg import EncoderSettings
from gulpio2.ingest.workers import _keep_freed_memory
from gulpio2.media.video import VideoFrames

_keep_freed_memory()

def frames():
    for frame in VideoFrames(sys.argv[1], frame_size=int(sys.argv[3])).stored():
        if sys.argv[2] == "kept":
            kept.append(frame)
        yield frame

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

settings, kept = EncoderSettings(), []
for number, _ in enumerate(FrameEncoder().encode(frames(), lambda: settings), 1):
    if number == 30:  # what is set up once is there
        before = faults()
print((faults() - before) / (number - 30))
"""

# A plane of luma alone has 225.
MOST = 25


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    path = tmp_path_factory.mktemp("buffers") / "video.mp4"
    rng = np.random.default_rng(0)
    picture = rng.integers(0, 256, (45, 80, 3), np.uint8).repeat(16, 0).repeat(16, 1)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=25, options={"preset": "fast"})
        stream.width, stream.height, stream.pix_fmt = 1280, 720, "yuv420p"
        for number in range(90):
            moved = np.ascontiguousarray(np.roll(picture, 2 * number, axis=1))
            container.mux(stream.encode(av.VideoFrame.from_ndarray(moved)))
        container.mux(stream.encode())
    return path


def pages_per_frame(video, kind, size):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(video), kind, str(size)],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="options of glibc")
@pytest.mark.parametrize("size", [-1, 256])
def test_a_worker_needs_no_new_memory_for_a_frame(video, size):
    assert pages_per_frame(video, "dropped", size) < MOST


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="options of glibc")
def test_the_pages_are_counted(video):
    assert pages_per_frame(video, "kept", -1) > 200
