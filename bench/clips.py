"""The clips that are read: forty of 340x256, as video, gulped twice, and as files.

    python bench/clips.py FOLDER

The videos beside the checkout (``GULPIO2_SHARED_DATA``) are cut into pieces of 280
frames, about the ten seconds of a clip of Kinetics, scaled and cropped to 340x256, as
they are and flipped, and encoded again as H.264 (x264's defaults: crf 23, a key frame
at least each 250 frames). Where they are absent, moving patterns take their place.
Everything is made once per folder.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from peers import python_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    Frame = npt.NDArray[np.uint8]

__all__ = ["CLIP_FRAMES", "HEIGHT", "NUM_CLIPS", "WIDTH", "Clips", "make_clips"]

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("GULPIO2_SHARED_DATA", ROOT.parent / "shared" / "data"))
NUM_CLIPS, CLIP_FRAMES = 40, 280
WIDTH, HEIGHT = 340, 256
# File, and the first frame of each piece that is cut out of it.
SOURCES = (
    ("arm_wrestling_h264_28fps.mp4", (0,)),
    ("pancake_h264_audio.mkv", (0, 15, 30)),
    ("nasa_six_streams.mp4", (0, 22, 44, 66, 88, 110)),
)
_RATE = 25
# Changing this makes the clips afresh.
_VERSION = 3


@dataclass(frozen=True, slots=True)
class Clips:
    """Where the same clips lie in each form; `ids` name them in all."""

    folder: Path
    """Of all of it."""
    videos: Path
    """``clips/<name>.mp4`` in it: H.264 of 340x256."""
    gulped: Path
    """Gulped by this package: quality 90, 4:2:0 as the videos are."""
    original: Path | None
    """Gulped by GulpIO2 0.0.4 itself: quality 90, 4:4:4. None where it is not there."""
    jpegs: Path
    """``<id>/<frame>.jpg`` in it, five digits: the bytes that `gulped` holds."""
    ids: tuple[str, ...]
    """Ids in both gulp directories."""
    num_frames: int
    """Frames of each clip."""
    made_of: str
    """What the clips were made of, for a report."""

    def video_of(self, id_: str) -> Path:
        """Give the video of a clip."""
        return self.videos / "clips" / id_.partition("-")[2]


def make_clips(folder: Path) -> Clips:
    """Make the clips, unless the folder has them.

    Parameters
    ----------
    folder : Path
        Some 600 MB are kept in it.
    """
    folder = folder.absolute()  # for programs that run elsewhere
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        facts = {"version": _VERSION, "number": NUM_CLIPS, "data": DATA.is_dir()}
        stamp = folder / "stamp.json"
        if not stamp.exists() or json.loads(stamp.read_text("utf-8")) != facts:
            stamp.unlink(missing_ok=True)
            (folder / "original.done").unlink(missing_ok=True)
            for name in ("videos", "gulped", "original", "jpegs"):
                shutil.rmtree(folder / name, ignore_errors=True)
            sys.stderr.write(f"making {NUM_CLIPS} clips in {folder}\n")
            _make_videos(folder / "videos" / "clips")
            _gulp(folder / "videos", folder / "gulped")
            _write_jpegs(folder / "gulped", folder / "jpegs")
            stamp.write_text(json.dumps(facts), "utf-8")
        original: Path | None = folder / "original"
        if not (folder / "original.done").exists():
            original = _gulp_by_original(folder / "videos", folder / "original")
            if original is not None:
                (folder / "original.done").touch()
    names = sorted(path.name for path in (folder / "videos" / "clips").iterdir())
    return Clips(
        folder,
        folder / "videos",
        folder / "gulped",
        original,
        folder / "jpegs",
        tuple(f"clips-{name}" for name in names),
        CLIP_FRAMES,
        "real videos" if DATA.is_dir() else "moving patterns",
    )


# ------------------------------------------------------------------ videos
def _make_videos(folder: Path) -> None:
    folder.mkdir(parents=True)
    pieces = _pieces() if DATA.is_dir() else _patterns()
    for place, frames in enumerate(islice(pieces, NUM_CLIPS)):
        _encode(folder / f"clip{place:02d}.mp4", frames)


def _pieces() -> Iterator[list[Frame]]:
    """Cut pieces out of the videos: as they are, flipped, upside down, both."""
    for rows, columns in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
        for name, starts in SOURCES:
            frames = list(_decode(DATA / "videos" / name))
            for start in starts:
                piece = frames[start : start + CLIP_FRAMES]
                yield [
                    np.ascontiguousarray(frame[::rows, ::columns]) for frame in piece
                ]


def _decode(path: Path) -> Iterator[Frame]:
    """Decode a video, scaled to cover 340x256 and cut to it in the middle."""
    import av
    import cv2

    with av.open(str(path)) as container:
        for frame in container.decode(container.streams.best("video")):
            pixels: Any = frame.to_ndarray(format="rgb24")
            height, width = pixels.shape[:2]
            factor = max(HEIGHT / height, WIDTH / width)
            if factor != 1:
                size = (round(width * factor), round(height * factor))
                pixels = cv2.resize(pixels, size, interpolation=cv2.INTER_AREA)
            height, width = pixels.shape[:2]
            top, left = (height - HEIGHT) // 2, (width - WIDTH) // 2
            yield pixels[top : top + HEIGHT, left : left + WIDTH]


def _patterns() -> Iterator[list[Frame]]:
    """Make clips of discs that move over noise of several scales."""
    import cv2

    yy, xx = np.mgrid[:HEIGHT, :WIDTH]
    for number in range(1000):
        rng = np.random.default_rng(number)
        ground = np.zeros((2 * HEIGHT, 2 * WIDTH, 3), np.float32)
        for cells in (4, 16, 64, 256):
            noise = rng.normal(0, 60 / cells**0.4, (cells, cells, 3))
            ground += cv2.resize(
                noise.astype(np.float32),
                (2 * WIDTH, 2 * HEIGHT),
                interpolation=cv2.INTER_CUBIC,
            )
        frames = []
        for time in range(CLIP_FRAMES):
            top, left = time % HEIGHT, 2 * time % WIDTH
            picture = 128 + ground[top : top + HEIGHT, left : left + WIDTH]
            for disc in range(4):
                row = (40 + 60 * disc + (disc + 1) * time) % HEIGHT
                column = (30 + 80 * disc + (disc + 2) * time) % WIDTH
                inside = (yy - row) ** 2 + (xx - column) ** 2 < (12 + 8 * disc) ** 2
                picture[inside] += 50 - 30 * disc
            frames.append(picture.clip(0, 255).astype(np.uint8))
        yield frames


def _encode(path: Path, frames: list[Frame]) -> None:
    """Encode frames as x264 does when nobody says anything."""
    import av

    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("libx264", rate=_RATE)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        for pixels in frames:
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


# ------------------------------------------------------------------ gulped, and files
def _gulp(videos: Path, output: Path) -> None:
    from gulpio2 import GulpIngestor
    from gulpio2.adapters import VideoFolderAdapter

    adapter = VideoFolderAdapter(str(videos), str(output))
    GulpIngestor(adapter, str(output), 10, 2)()


_ORIGINAL = """\
import sys
from gulpio2 import GulpIngestor
from gulpio2.adapters import VideoFolderAdapter
videos, output = sys.argv[1:]
adapter = VideoFolderAdapter(videos + "/", output, file_extensions=[".mp4"])
GulpIngestor(adapter, output, 10, 2)()
"""


def _gulp_by_original(videos: Path, output: Path) -> Path | None:
    """Gulp by GulpIO2 0.0.4; None where it cannot."""
    python = python_of("original")
    if python is None:
        return None
    shutil.rmtree(output, ignore_errors=True)
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(  # noqa: S603  # the original
        [str(python), "-c", _ORIGINAL, str(videos), str(output)],
        env=environment,
        cwd=output.parent,  # not the checkout, whose package has the same name
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.stderr.write(f"the original cannot gulp: {done.stderr[-500:]}\n")
        return None
    return output


def _write_jpegs(gulped: Path, folder: Path) -> None:
    from gulpio2 import GulpDirectory

    with GulpDirectory(gulped) as directory:
        for id_ in directory.merged_meta_dict:
            (folder / id_).mkdir(parents=True)
            for index, jpeg in enumerate(directory.read_jpegs(id_)):
                (folder / id_ / f"{index:05d}.jpg").write_bytes(jpeg)


def main() -> None:
    """Make the clips, and say what they are."""
    clips = make_clips(Path(sys.argv[1]))
    for path in (clips.videos, clips.gulped, clips.original, clips.jpegs):
        if path is None:
            continue  # 0.0.4's, of which was said why
        files = [p for p in path.rglob("*") if p.is_file()]
        size = sum(file.stat().st_size for file in files)
        sys.stdout.write(f"{path}: {len(files)} files, {size / 1e6:.1f} MB\n")


if __name__ == "__main__":
    main()
