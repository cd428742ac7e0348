"""Readers that it is compared with, in environments of their own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from reader_base import PATTERNS, Reader, Task, selection

if TYPE_CHECKING:
    from collections.abc import Callable


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
