"""Readers of this package, and the least that any reader of its frames can do."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count, cycle
from typing import TYPE_CHECKING, Any

import numpy as np
from reader_base import WARM_SECONDS, Reader, Task, draw, selection

if TYPE_CHECKING:
    from collections.abc import Callable


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
            warm = now() + WARM_SECONDS
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
