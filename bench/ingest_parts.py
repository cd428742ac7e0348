"""What `bench/ingest.py` measures in processes of its own.

    python bench/ingest_parts.py PART [ARGUMENTS]

Each prints one line of JSON: the seconds that the part itself took, without the start
of Python and what is loaded once, and further facts.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from typing import Any

CORES = int(os.environ.get("GULPIO2_BENCH_CORES", "2"))


class Watch:
    """Measures the time, and how busy the cores are, from now on."""

    def __init__(self) -> None:
        os.sync()  # what was deleted and written before is not to be waited for
        self.times = os.times()
        self.began = time.perf_counter()

    def print_json(self, **facts: float) -> None:
        """Print what was measured, for the process that asked."""
        seconds = time.perf_counter() - self.began
        # Of ended processes too: those of a pool were waited for.
        cpu = sum(os.times()[:4]) - sum(self.times[:4])
        found = {"seconds": seconds, "busy": cpu / seconds / CORES, **facts}
        sys.stdout.write(json.dumps(found))


def decode_and_encode(path: str, *, converted: bool) -> int:
    """Decode a file and encode what the decoder gives, which is the limit of a core.

    Where it is to be `converted`, the planes get the range of a JPEG on the way.
    """
    import av
    import cv2
    import numpy as np
    import simplejpeg

    # Luma of 16 to 235, and chroma of 16 to 240 around 128, to 0 to 255.
    luma = np.array([[255 / 219, -16 * 255 / 219]])
    chroma = np.array([[255 / 224, 128 - 128 * 255 / 224]])
    count = 0
    with av.open(path) as container:
        stream = container.streams.video[0]
        stream.codec_context.thread_count = 1
        stream.codec_context.thread_type = "NONE"
        for frame in container.decode(stream):
            planes = [
                np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)
                for plane in frame.planes
            ]
            views = [
                rows[:, : plane.width]
                for rows, plane in zip(planes, frame.planes, strict=True)
            ]
            if converted:
                ways = (luma, chroma, chroma)
                views = [cv2.transform(*each) for each in zip(views, ways, strict=True)]
            simplejpeg.encode_jpeg_yuv_planes(*views, quality=90)
            count += 1
    return count


def _share_out(paths: tuple[str, ...], *, converted: bool) -> None:
    """Decode and encode files in as many processes as there are cores."""
    import multiprocessing

    def work(turn: int) -> None:
        for path in paths[turn::CORES]:
            decode_and_encode(path, converted=converted)

    context = multiprocessing.get_context("fork")
    # It loads what is loaded once.
    frames = decode_and_encode(paths[0], converted=converted)
    watch = Watch()
    workers = [context.Process(target=work, args=(turn,)) for turn in range(CORES)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    watch.print_json(frames=frames * len(paths))


def limit(*paths: str) -> None:
    """Run the limit: nothing between the decoder and the encoder."""
    _share_out(paths, converted=False)


def bare(*paths: str) -> None:
    """Run the least that gives what is stored: with the conversion, and no more."""
    _share_out(paths, converted=True)


def _ingestor(source: str, output: str, *, workers: int, per_chunk: int) -> Any:
    """Make an ingestor, with everything loaded that it will need."""
    import gulpio2.media.convert
    import gulpio2.media.decode  # noqa: F401  # to have it loaded
    from gulpio2 import GulpIngestor
    from gulpio2.adapters import VideoFolderAdapter

    shutil.rmtree(output, ignore_errors=True)
    adapter = VideoFolderAdapter(source, output, file_extensions=(".mp4", ".webm"))
    return GulpIngestor(adapter, output, per_chunk, workers)


def ingest(source: str, output: str, workers: str, per_chunk: str) -> None:
    """Ingest, and measure `run` alone."""
    ingestor = _ingestor(source, output, workers=int(workers), per_chunk=int(per_chunk))
    watch = Watch()
    report = ingestor.run()
    watch.print_json(frames=report.frames, num_bytes=report.num_bytes)


def held(source: str, output: str) -> None:
    """Measure the share of time in which the interpreter's lock is held.

    `bench/lock_share.c`, which is preloaded, sees each time that it is let go of.
    One that is taken away after a switch interval counts as held, until it is back.
    """
    import ctypes

    held_seconds = ctypes.CDLL(os.environ["LD_PRELOAD"]).held_seconds
    held_seconds.restype = ctypes.c_double
    ingestor = _ingestor(source, output, workers=1, per_chunk=100)
    watch, before = Watch(), held_seconds()
    report = ingestor.run()
    seconds = time.perf_counter() - watch.began
    spent = held_seconds() - before
    if not spent:
        # A program finds its own functions before those of a preloaded library, and
        # so do the extension modules that it loads.
        watch.print_json(frames=report.frames, unseen=1)
        return
    watch.print_json(frames=report.frames, held=spent / seconds)


def overhead(output: str, chunks: str, engine: str) -> None:
    """Ingest chunks of one tiny frame, so that only what a chunk costs is left."""
    import contextlib

    from gulpio2 import GulpIngestor
    from gulpio2.testing import FrameAdapter

    shutil.rmtree(output, ignore_errors=True)
    adapter = FrameAdapter(num_items=int(chunks), num_frames=1, height=8, width=8)
    with contextlib.ExitStack() as stack:
        executor = None
        if engine == "dask":
            import distributed

            cluster = stack.enter_context(
                distributed.LocalCluster(
                    n_workers=CORES, threads_per_worker=1, dashboard_address=None
                )
            )
            client = stack.enter_context(distributed.Client(cluster))
            executor = client.get_executor()
        workers = 1 if engine == "alone" else CORES
        ingestor = GulpIngestor(adapter, output, 1, workers, executor=executor)
        watch = Watch()
        ingestor.run()
        now = os.times()
        parent = now.user + now.system - watch.times.user - watch.times.system
        watch.print_json(frames=int(chunks), parent_us=parent / int(chunks) * 1e6)


def disk(output: str, num_bytes: str) -> None:
    """Write as many bytes as images have, in files like chunks, and sync them."""
    from pathlib import Path

    folder = Path(output)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    block, left = os.urandom(1 << 18), int(num_bytes)
    watch = Watch()
    while left > 0:
        with (folder / f"{left}").open("wb", buffering=0) as file:
            for _ in range(40):  # ten megabytes, as a chunk of 500 images
                left -= file.write(block)
                if left <= 0:
                    break
            os.fsync(file.fileno())
    watch.print_json()
    shutil.rmtree(folder)


PARTS = {part.__name__: part for part in (limit, bare, ingest, held, disk, overhead)}

if __name__ == "__main__":
    PARTS[sys.argv[1]](*sys.argv[2:])
