"""The program in this process, and small inputs for it."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from PIL import Image

from gulpio2.cli.main import gulp2 as program
from gulpio2.cli.progress import ProgressBar
from gulpio2.testing import make_frames, make_gulp_directory
from tests.written_once import written_once

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from click.testing import Result

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _clean_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Stand in an empty folder, and forget imports and log settings afterwards."""
    logger = logging.getLogger("gulpio2")
    level, handlers = logger.level, list(logger.handlers)
    path, modules = list(sys.path), set(sys.modules)
    monkeypatch.chdir(tmp_path)
    yield
    logger.setLevel(level)
    logger.handlers[:] = handlers
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        file = getattr(sys.modules[name], "__file__", None)
        if file and Path(file).is_relative_to(tmp_path):
            del sys.modules[name]


@pytest.fixture
def gulp2() -> Callable[..., Result]:
    """Run ``gulp2`` with these arguments and expect this exit status."""

    def run(*arguments: object, status: int = 0) -> Result:
        result = CliRunner().invoke(program, [str(part) for part in arguments])
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == status, result.output
        return result

    return run


@pytest.fixture
def real_item(gulp2: Callable[..., Result], shared_videos: Path, tmp_path: Path) -> str:
    """Ingest a video of 30 frames a second, whose times vary, and give the item's id.

    It is in ``gulped``.
    """
    (tmp_path / "videos").mkdir()
    name = "vp8_audio_30fps.webm"
    (tmp_path / "videos" / name).symlink_to(shared_videos / name)
    gulp2("ingest", "video-folder", "videos", "gulped")
    return f"videos-{name}"


@pytest.fixture
def _drawn_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw bars as if what they are of took a second until its first step."""
    at_once = {"counted": "items", "delay_seconds": 0.0}
    monkeypatch.setattr(ProgressBar.__init__, "__kwdefaults__", at_once)


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Start ``python -m gulpio2.cli.main`` with these arguments."""

    def begin(*arguments: object, **options: Any) -> subprocess.Popen[str]:
        path = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
        return subprocess.Popen(
            [sys.executable, "-m", "gulpio2.cli.main", *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path.rstrip(os.pathsep)},
            **{
                "stdout": subprocess.PIPE,
                "stderr": subprocess.PIPE,
                "text": True,
                **options,
            },
        )

    return begin


@written_once
def encode_video(path: Path, num_frames: int = 6, rate: int = 12) -> Path:
    """Encode a small video; the ending decides on the codec."""
    import av

    codec = "libvpx" if path.suffix == ".webm" else "mpeg4"
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream(codec, rate=rate)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        stream.time_base = Fraction(1, rate)
        for pixels in make_frames(num_frames, 48, 64):
            picture = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            container.mux(stream.encode(picture))
        container.mux(stream.encode(None))
    return path


@pytest.fixture
def make_video() -> Callable[..., Path]:
    """Encode a small video: ``make_video(path, num_frames=6, rate=12)``."""
    return encode_video


def encode_image(path: Path, seed: int = 0) -> Path:
    """Write a small image file."""
    import cv2

    path.parent.mkdir(parents=True, exist_ok=True)
    assert cv2.imwrite(str(path), make_frames(1, seed=seed)[0])
    return path


@pytest.fixture
def make_image() -> Callable[..., Path]:
    """Write a small image file: ``make_image(path, seed=0)``."""
    return encode_image


@pytest.fixture
def gulped(tmp_path: Path) -> Path:
    """Make the directory ``gulped`` of four items of six frames."""
    folder = tmp_path / "gulped"
    make_gulp_directory(folder, num_items=4, num_frames=6).close()
    return folder


ADAPTER_FILE = '''
"""Adapters of a user."""

import os

import numpy as np

from gulpio2.adapters import AbstractDatasetAdapter


class MyAdapter(AbstractDatasetAdapter):
    """Ramps in grey.

    Parameters
    ----------
    source : str
        Where they would come from.
    num_items : int
        How many.
    """

    def __init__(self, source, output_folder=None, num_items=3, bad=-1, quality=""):
        self.source, self.num_items, self.bad = source, num_items, bad
        self.output_folder, self.quality = output_folder, quality

    def __len__(self):
        return self.num_items

    def iter_data(self, slice_element=None):
        for n in range(self.num_items)[slice_element or slice(None)]:
            frames = [np.full((8, 12), n, np.uint8)] if n != self.bad else ["no image"]
            meta = {"n": n, "process": os.getpid(), "quality": self.quality}
            yield {"meta": meta, "frames": frames, "id": f"ramp{n}"}
'''


@pytest.fixture
def adapter_file(tmp_path: Path) -> Path:
    """Write ``my_adapters.py`` with a class ``MyAdapter``."""
    path = tmp_path / "my_adapters.py"
    path.write_text(ADAPTER_FILE)
    return path


@pytest.fixture
def sources(tmp_path: Path, adapter_file: Path) -> Path:
    """Make an input for every adapter, under the names that the examples use."""
    del adapter_file
    for label in ("walk", "run"):
        encode_video(tmp_path / "videos" / label / "1.mp4")
        encode_image(tmp_path / "images" / label / "1.png")
        encode_video(tmp_path / "kinetics" / label / f"{label}_000001_000011.mp4")
        encode_video(tmp_path / "activitynet" / f"{label}.mp4")
        encode_video(tmp_path / "videos-by-id" / label / "x.mp4", 12)
        encode_video(tmp_path / "webm" / f"{label}.webm", 12)
        for number in range(3):
            encode_image(tmp_path / "frames" / label / f"{number}.jpg", number)
    records = {"walk": {"subset": "validation"}, "run": {"subset": "training"}}
    rows = [{"id": label, "template": label} for label in records]
    for name, content in {
        "images.txt": "walk/1.png,walk\nrun/1.png,run\n",
        "clips.csv": "name,path,label\na,videos/walk/1.mp4,w\nb,videos/run/1.mp4,r\n",
        "videos.json": json.dumps(rows),
        "webm.csv": "walk;W\nrun;R\n",
        "frames.csv": "walk;W\nrun;R\n",
        "activitynet.json": json.dumps({"database": records}),
        "kinetics.json": json.dumps(records),
    }.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "source").mkdir()
    make_gulp_directory(tmp_path / "whole").close()
    return tmp_path


@pytest.fixture
def read_only(tmp_path: Path, permissions: None) -> Iterator[Path]:
    """Make a folder that cannot be written to, not even by the superuser."""
    del permissions
    folder = tmp_path / "read-only"
    folder.mkdir()
    folder.chmod(0o555)
    try:
        with pytest.raises(PermissionError):  # or the test would show nothing
            (folder / "probe").touch()
        yield folder
    finally:
        folder.chmod(0o755)


@pytest.fixture
def original_run(original_python: str, tmp_path: Path) -> Callable[..., Any]:
    """Run a program of GulpIO2 0.0.4 and give exit status and stdout."""

    def run(program: str, arguments: list[str]) -> tuple[int, str]:
        result = subprocess.run(
            [original_python, Path(original_python).with_name(program), *arguments],
            cwd=tmp_path,
            env={key: v for key, v in os.environ.items() if key != "PYTHONPATH"},
            capture_output=True,
            text=True,
            timeout=60,
        )
        return result.returncode, result.stdout

    return run


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """Make a folder of ten images in two folders."""
    for label in ("cats", "dogs"):
        (tmp_path / "images" / label).mkdir(parents=True)
        for number in range(5):
            picture = Image.new("RGB", (20, 16), (10 * number, 90, 30))
            picture.save(tmp_path / "images" / label / f"{label}{number}.png")
    return tmp_path / "images"


def _without_rights(path: Path) -> None:
    path.write_bytes(b"x")
    path.chmod(0)


_UNOPENABLE = {
    "folder": (Path.mkdir, "not a regular file"),
    "fifo": (os.mkfifo, "not a regular file"),
    "circular link": (lambda path: path.symlink_to(path), "symbolic links"),
    "broken link": (
        lambda path: path.symlink_to("nothing"),
        "is a link to nothing, which is not there",
    ),
    "no permission": (_without_rights, "Permission denied"),
}


@pytest.fixture(params=_UNOPENABLE.values(), ids=list(_UNOPENABLE))
def unopenable(
    request: pytest.FixtureRequest, permissions: None
) -> Callable[[Path], str]:
    """Put what cannot be opened in the place of a file, and give what is said of it."""
    del permissions  # hold
    put, text = request.param

    def replace(path: Path) -> str:
        path.unlink()
        put(path)
        return str(text)

    return replace
