"""Memory does not grow with the length of a video."""

import subprocess
import sys

import av
import numpy as np
import pytest

# Ingests the folder in argv[1] with argv[3] workers, and prints the peak in MB of the
# process that needed most: this one, or a worker.
SCRIPT = r"""
import multiprocessing, re, sys, threading
from pathlib import Path
from gulpio2 import GulpIngestor
from gulpio2.adapters import VideoFolderAdapter

def peak(process="self"):
    # Not ru_maxrss, which begins with what the parent had when it forked.
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) if found else 0

def watch():
    while not ended.wait(0.02):
        for worker in multiprocessing.active_children():
            peaks.append(peak(worker.pid))

peaks, ended = [], threading.Event()
threading.Thread(target=watch, daemon=True).start()
report = GulpIngestor(
    VideoFolderAdapter(sys.argv[1], sys.argv[2]), sys.argv[2], 1, int(sys.argv[3])
).run()
ended.set()
print(report.frames, max([peak(), *peaks]) / 1024, len(peaks))
"""


def make_video(path, seconds, *, rate):
    """Write a 720p video whose second second is repeated, without encoding again."""
    path.parent.mkdir(parents=True)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=rate)
        stream.width, stream.height, stream.pix_fmt = 1280, 720, "yuv420p"
        stream.codec_context.gop_size = rate
        stream.bit_rate = 4_000_000
        rng = np.random.default_rng(0)
        pixels = rng.integers(0, 255, (720, 1280 + rate, 3), np.uint8)
        packets = []
        for number in range(rate):
            view = np.ascontiguousarray(pixels[:, number : number + 1280])
            frame = av.VideoFrame.from_ndarray(view, format="rgb24")
            packets.extend(stream.encode(frame))
        packets.extend(stream.encode())
        contents = [bytes(packet) for packet in packets]
        for number in range(seconds * rate):
            packet = av.Packet(contents[number % rate])
            packet.stream = stream
            packet.pts = packet.dts = number
            packet.time_base = stream.codec_context.time_base
            packet.is_keyframe = number % rate == 0
            container.mux(packet)


def peak_megabytes(folder, seconds, *, rate, workers):
    make_video(folder / "videos" / "v.mp4", seconds, rate=rate)
    words = [str(folder / "videos"), str(folder / "out"), str(workers)]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *words],
        capture_output=True,
        text=True,
        check=True,
    )
    frames, peak, samples = done.stdout.split()
    assert int(frames) == seconds * rate
    assert (int(samples) > 0) == (workers > 1)
    return float(peak)


# One video for several workers: the cores without one help with its frames.
@pytest.mark.parametrize(
    ("rate", "workers"),
    [
        (1, 2),
        *(
            pytest.param(rate, workers, marks=pytest.mark.slow)
            for rate, workers in [(2, 1), (2, 2), (2, 6), (30, 1), (30, 2), (30, 6)]
        ),
    ],
)
def test_ten_minutes_of_720p_need_no_more_than_ten_seconds_of_it(
    tmp_path, rate, workers, record_property
):
    short = peak_megabytes(tmp_path / "short", 10, rate=rate, workers=workers)
    long = peak_megabytes(tmp_path / "long", 600, rate=rate, workers=workers)
    record_property("peaks", f"10 s: {short:.0f} MB, of 600 s: {long:.0f} MB")
    assert 40 < short < long + 40  # the figures are of the ingest
    assert long - short < 150
