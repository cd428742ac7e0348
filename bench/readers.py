"""A program that reads clips for as long as it is told: one process per reader.

    python bench/readers.py KIND FACTS

KIND is a key of `READERS`, FACTS the clips as JSON. To each line of standard input, a
task with the seconds that it is to go on, it answers one line of JSON: the frames that
it read and the seconds that it took. It runs in the environments of the programs that
are compared, and so needs the standard library and numpy only.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count, cycle, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Task = dict[str, Any]
# Of a turn, before the clock starts: another program had the processor before.
_WARM_SECONDS = 0.05

# What is read of a clip of so many frames, from a random generator.
PATTERNS: dict[str, Callable[[int, np.random.Generator], list[int]]] = {
    "random 16": lambda n, rng: _window(n, rng, 16, 1),
    "8 uniform": lambda n, rng: [(2 * k + 1) * n // 16 for k in range(8)],
    "32 at stride 2": lambda n, rng: _window(n, rng, 32, 2),
}


def _window(n: int, rng: np.random.Generator, length: int, stride: int) -> list[int]:
    first = int(rng.integers(n - (length - 1) * stride))
    return list(range(first, first + length * stride, stride))


def draw(task: Task, facts: dict[str, Any]) -> Iterator[tuple[int, list[int]]]:
    """Draw clips and their frames: the same for every reader of a round."""
    rng = np.random.default_rng(task["seed"])
    choose = PATTERNS[task["pattern"]]
    while True:
        number = int(rng.integers(len(facts["ids"])))
        yield number, choose(facts["num_frames"], rng)


def selection(indices: list[int]) -> Any:
    """Say a window as a slice, as one does."""
    step = indices[1] - indices[0]
    if all(b - a == step for a, b in pairwise(indices)):
        return slice(indices[0], indices[-1] + 1, step)
    return indices


class Reader:
    """Reads clips one after the other; the kinds below say how."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self.facts = facts
        self.prepare()

    def prepare(self) -> None:
        """Open what is opened once."""

    def reading(self, task: Task) -> Callable[[int, Any], int]:
        """Give what reads one clip, and returns how many frames that were."""
        raise NotImplementedError

    def wanted(self, indices: list[int]) -> Any:
        """Say which frames, as `reading` takes it."""
        return indices

    def run(self, task: Task) -> dict[str, Any]:
        """Read for so long."""
        read, frames = self.reading(task), 0
        clips = draw(task, self.facts)
        # Said beforehand in the reader's own words, as whoever trains has them.
        chosen = [
            (number, self.wanted(indices))
            for number, indices in (next(clips) for _ in range(2000))
        ]
        warm = time.perf_counter() + _WARM_SECONDS
        while time.perf_counter() < warm:
            read(*chosen[-1])
        start = stop = time.perf_counter()
        end = start + task["seconds"]
        for place in count():
            frames += read(*chosen[place % len(chosen)])
            stop = time.perf_counter()
            if stop >= end:
                break
        return {"frames": frames, "seconds": stop - start}


class Ours(Reader):
    """GulpIO2 as it is here."""

    wanted = staticmethod(selection)

    def prepare(self) -> None:
        """Open the directory once for each number of threads."""
        from gulpio2 import GulpDirectory

        counts = {*range(1, 9), *self.facts.get("threads", ())}
        self.directories = {
            threads: GulpDirectory(self.facts["gulped"], threads=threads)
            for threads in (None, *counts)
        }

    def reading(self, task: Task) -> Callable[[int, Any], int]:
        """Give what reads a clip."""
        directory = self.directories[task.get("threads")]
        ids, options = self.facts["ids"], task.get("options", {})
        call = task.get("call", "out")
        if call == "list":
            return lambda number, wanted: len(directory[ids[number], wanted][0])
        if call == "new":
            return lambda number, wanted: len(
                directory.read_clip(ids[number], wanted, **options)
            )
        if call == "batch":
            return self._batches(task, directory)
        indices = next(draw(task, self.facts))[1]
        memory = directory.read_clip(ids[0], indices, **options)

        def read(number: int, wanted: Any) -> int:
            directory.read_clip(ids[number], wanted, out=memory, **options)
            return len(memory)

        return read

    def _batches(self, task: Task, directory: Any) -> Callable[[int, Any], int]:
        ids, size, options = self.facts["ids"], task["batch"], task.get("options", {})
        clips = draw(task, self.facts)
        batches = [
            [
                (ids[number], selection(indices))
                for number, indices in (next(clips) for _ in range(size))
            ]
            for _ in range(64)
        ]
        memory = directory.read_clips(batches[0], **options)
        num_frames = memory.shape[0] * memory.shape[1]
        turn = count()

        def read(number: int, wanted: Any) -> int:
            del number, wanted
            directory.read_clips(batches[next(turn) % 64], out=memory, **options)
            return num_frames

        return read


class Limit(Reader):
    """The codec: the same JPEGs from memory, into memory that is there.

    Each thread decodes every so-manieth frame of each clip into the clip's array and
    waits for nobody, until the time is over.
    """

    def prepare(self) -> None:
        """Read every JPEG into memory."""
        from gulpio2 import GulpDirectory

        with GulpDirectory(self.facts["gulped"]) as directory:
            self.jpegs = [directory.read_jpegs(id_) for id_ in self.facts["ids"]]

    def run(self, task: Task) -> dict[str, Any]:
        """Decode for so long."""
        import simplejpeg

        options = task.get("options", {})
        scale, grey = options.get("scale", 1), options.get("colorspace") == "gray"
        threads = task.get("threads") or 2
        clips = draw(task, self.facts)
        chosen = [next(clips) for _ in range(500)]
        header = simplejpeg.decode_jpeg_header(self.jpegs[0][0])
        size = [-(-pixels // scale) for pixels in header[:2]]
        least = size if scale > 1 else [0, 0]
        length = len(chosen[0][1]) * task.get("batch", 1)
        shape = (length, *size, 1 if grey else 3)
        # Memory comes at even addresses.
        odd = int(task.get("odd", False))
        memory = np.zeros(int(np.prod(shape)) + odd, np.uint8)[odd:].reshape(shape)
        colours = "GRAY" if grey else "RGB"
        counts, ends = [0] * threads, [0.0] * threads
        barrier = threading.Barrier(threads + 1)
        start = 0.0

        def work(thread: int) -> None:
            # Both are made before the clock starts: only the codec is in the loop.
            slots = list(memory)
            jpegs = [[self.jpegs[n][k] for k in indices] for n, indices in chosen]
            places = cycle(range(0, len(slots), len(jpegs[0])))
            jobs = [
                list(zip(clip, slots[place:], strict=False))[thread::threads]
                for clip, place in zip(jpegs, places, strict=False)
            ]
            decode, now, frames = simplejpeg.decode_jpeg, time.perf_counter, 0
            height, width = least
            warm = now() + _WARM_SECONDS
            while now() < warm:
                for jpeg, _ in jobs[-1]:
                    decode(jpeg, colours, fastdct=True, fastupsample=True)
            barrier.wait()
            barrier.wait()
            end = now() + task["seconds"]
            while True:
                for clip in jobs:
                    for jpeg, slot in clip:
                        decode(
                            jpeg,
                            colours,
                            fastdct=True,
                            fastupsample=True,
                            min_height=height,
                            min_width=width,
                            buffer=slot,
                        )
                    frames += len(clip)
                    if now() >= end:
                        break
                else:
                    continue
                break
            counts[thread], ends[thread] = frames, now()

        workers = [threading.Thread(target=work, args=(k,)) for k in range(threads)]
        for worker in workers:
            worker.start()
        barrier.wait()
        start = time.perf_counter()
        barrier.wait()
        for worker in workers:
            worker.join()
        rates = [
            frames / (end - start) for frames, end in zip(counts, ends, strict=True)
        ]
        return {"frames": sum(rates), "seconds": 1.0}


class Bare(Reader):
    """The least that a call can do, to see what this machine lets it reach.

    Where the bytes of all frames lie is known beforehand, in lists. Two threads, each
    with memory of its own to read into, read and decode half a clip: neighbours in one
    read, frames further apart one by one. Nothing is checked.
    """

    def prepare(self) -> None:
        """Look up where everything is."""
        from gulpio2 import GulpDirectory

        with GulpDirectory(self.facts["gulped"]) as directory:
            items = [directory.item(id_) for id_ in self.facts["ids"]]
        count = range(self.facts["num_frames"])
        self.spans = [item.record.spans(count) for item in items]
        self.files = [os.open(item.data_path, os.O_RDONLY) for item in items]
        self.pool = ThreadPoolExecutor(1)
        most = max(spans[-1][0] + spans[-1][1] - spans[0][0] for spans in self.spans)
        self.blocks = [memoryview(bytearray(most)) for _ in range(2)]

    def reading(self, task: Task) -> Callable[[int, list[int]], int]:
        """Give what reads a clip."""
        import simplejpeg

        decode, blocks, submit = simplejpeg.decode_jpeg, self.blocks, self.pool.submit
        indices = next(draw(task, self.facts))[1]
        offset, length = self.spans[0][0]
        header = simplejpeg.decode_jpeg_header(os.pread(self.files[0], length, offset))
        rows = list(np.zeros((len(indices), *header[:2], 3), np.uint8))
        half = len(indices) // 2
        step = half if indices[1] - indices[0] <= 2 else 1  # frames in a read

        def work(number: int, indices: list[int], first: int) -> None:
            spans, file, block = self.spans[number], self.files[number], blocks[first]
            for place in range(first * half, (first + 1) * half, step):
                group = indices[place : place + step]
                start = spans[group[0]][0]
                end = sum(spans[group[-1]])
                os.preadv(file, [block[: end - start]], start)
                for row, frame in enumerate(group, place):
                    offset, length = spans[frame]
                    jpeg = block[offset - start : offset - start + length]
                    # In the order of its arguments: fast DCT, fast upsampling, no least
                    # size, any padding.
                    decode(jpeg, "RGB", True, True, 0, 0, 1, rows[row])  # noqa: FBT003  # it takes them by place alone

        def read(number: int, indices: list[int]) -> int:
            other = submit(work, number, indices, 1)
            work(number, indices, 0)
            other.result()
            return len(indices)

        return read


class Original(Reader):
    """GulpIO2 0.0.4, in its own environment: a list of arrays, in one thread."""

    key = "original"
    wanted = staticmethod(selection)

    def prepare(self) -> None:
        """Open the directory."""
        from gulpio2 import GulpDirectory

        self.directory = GulpDirectory(self.facts[self.key])

    def reading(self, task: Task) -> Callable[[int, Any], int]:
        """Give what reads a clip."""
        directory, ids = self.directory, self.facts["ids"]
        stack = task.get("call") != "list"

        def read(number: int, wanted: Any) -> int:
            frames, _ = directory[ids[number], wanted]
            return len(np.stack(frames) if stack else frames)

        return read


class SameBytes(Original):
    """GulpIO2 0.0.4 reading what this package wrote."""

    key = "gulped"


class Decord(Reader):
    """decord, opening the video for each clip."""

    settings: tuple[Any, ...] = (0, 1, 2)
    """Threads; 0 lets decord choose."""

    def prepare(self) -> None:
        """Find the fastest setting for each pattern."""
        self.best = {
            pattern: _best(
                lambda setting, pattern=pattern: Reader.run(
                    self,
                    {"pattern": pattern, "seed": 0, "seconds": 0.3, "set": setting},
                ),
                self.settings,
            )
            for pattern in PATTERNS
        }

    def reading(self, task: Task) -> Callable[[int, list[int]], int]:
        """Give what reads a clip."""
        import decord

        setting = task["set"] if "set" in task else self.best[task["pattern"]]
        videos = self.facts["videos"]

        def read(number: int, indices: list[int]) -> int:
            reader = decord.VideoReader(videos[number], num_threads=setting)
            return len(reader.get_batch(indices).asnumpy())

        return read


class TorchCodec(Decord):
    """torchcodec, opening the video for each clip."""

    settings = tuple((mode, n) for mode in ("exact", "approximate") for n in (0, 1, 2))

    def reading(self, task: Task) -> Callable[[int, list[int]], int]:
        """Give what reads a clip."""
        from torchcodec.decoders import VideoDecoder

        mode, threads = task["set"] if "set" in task else self.best[task["pattern"]]
        videos = self.facts["videos"]

        def read(number: int, indices: list[int]) -> int:
            decoder = VideoDecoder(
                videos[number],
                dimension_order="NHWC",
                num_ffmpeg_threads=threads,
                seek_mode=mode,
            )
            return len(decoder.get_frames_at(indices).data)

        return read


def _best(run: Callable[[Any], dict[str, Any]], settings: tuple[Any, ...]) -> Any:
    """Choose the setting with which a peer is fastest."""
    speeds = {}
    for setting in settings:
        found = run(setting)
        speeds[setting] = found["frames"] / found["seconds"]
    return max(speeds, key=speeds.__getitem__)


class FolderOpenCV(Reader):
    """A folder of JPEG files, by OpenCV, stacked."""

    def reading(self, task: Task) -> Callable[[int, list[int]], int]:
        """Give what reads a clip."""
        import cv2

        cv2.setNumThreads(1)
        folder, ids = Path(self.facts["jpegs"]), self.facts["ids"]

        def read(number: int, indices: list[int]) -> int:
            names = [str(folder / ids[number] / f"{k:05d}.jpg") for k in indices]
            frames = [cv2.cvtColor(cv2.imread(n), cv2.COLOR_BGR2RGB) for n in names]
            return len(np.stack(frames))

        return read


class FolderSimpleJpeg(Reader):
    """A folder of JPEG files, by simplejpeg, stacked."""

    def reading(self, task: Task) -> Callable[[int, list[int]], int]:
        """Give what reads a clip."""
        import simplejpeg

        folder, ids = Path(self.facts["jpegs"]), self.facts["ids"]

        def read(number: int, indices: list[int]) -> int:
            paths = [folder / ids[number] / f"{k:05d}.jpg" for k in indices]
            frames = [
                simplejpeg.decode_jpeg(
                    path.read_bytes(), "RGB", fastdct=True, fastupsample=True
                )
                for path in paths
            ]
            return len(np.stack(frames))

        return read


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
