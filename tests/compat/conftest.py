"""Inputs, client code and the original's programs for the compatibility tests."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from gulpio2 import GulpChunk
from tests.written_once import written_once

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]


def colour_frame(seed: int = 0, height: int = 24, width: int = 32) -> np.ndarray:
    """Give a smooth coloured frame: waves without a jump, which JPEG keeps well."""
    rows, columns = np.mgrid[0:height, 0:width]
    planes = [rows * 5 + seed * 29, columns * 4 + seed * 13, rows + columns + seed * 53]
    waves = np.stack(planes, axis=-1) % 510 - 255
    return np.asarray(abs(waves), np.uint8)


def grey_frame(seed: int = 0, height: int = 24, width: int = 32) -> np.ndarray:
    """Give a smooth grey frame."""
    return np.ascontiguousarray(colour_frame(seed, height, width)[..., 0])


@pytest.fixture
def frame() -> Callable[..., np.ndarray]:
    """Make a coloured frame: ``frame(seed, height, width)``."""
    return colour_frame


@pytest.fixture
def grey() -> Callable[..., np.ndarray]:
    """Make a grey frame: ``grey(seed, height, width)``."""
    return grey_frame


@pytest.fixture
def make_directory(tmp_path: Path) -> Callable[..., Path]:
    """Write ``make_directory({id: frames}, {id: frames}, ...)``, a dict per chunk."""

    def make(*chunks: dict[Any, list[np.ndarray]], name: str = "gulp") -> Path:
        folder = tmp_path / name
        folder.mkdir()
        for number, items in enumerate(chunks):
            chunk = GulpChunk(
                str(folder / f"data_{number}.gulp"),
                str(folder / f"meta_{number}.gmeta"),
            )
            with chunk.open("wb"):
                for id_, frames in items.items():
                    chunk.append(id_, {"of": str(id_)}, frames)
        return folder

    return make


@pytest.fixture
def folder(make_directory: Callable[..., Path]) -> Path:
    """Make a directory of two chunks, frames of two and three items."""
    return make_directory(
        {
            "a": [colour_frame(k) for k in range(8)],
            "b": [colour_frame(k + 9) for k in range(3)],
        },
        {k: [colour_frame(k + 30), colour_frame(k + 50)] for k in range(3)},
    )


@pytest.fixture
def chunk(folder: Path) -> GulpChunk:
    """Give the first chunk of that directory, not opened."""
    return GulpChunk(str(folder / "data_0.gulp"), str(folder / "meta_0.gmeta"))


@written_once
def encode_video(
    path: Path,
    *,
    num_frames: int = 12,
    rate: int = 12,
    height: int = 48,
    width: int = 64,
    noise: int = 0,
) -> Path:
    """Encode a small video; the ending decides on the codec."""
    import av

    codec = "libvpx" if path.suffix == ".webm" else "mpeg4"
    rng = np.random.default_rng(0)
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream(codec, rate=rate)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        stream.bit_rate = 2_000_000
        for k in range(num_frames):
            pixels = colour_frame(k, height, width) // 2 + 40
            if noise:
                pixels = pixels + rng.integers(noise, size=pixels.shape, dtype="u1")
            picture = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            container.mux(stream.encode(picture))
        container.mux(stream.encode(None))
    return path


@pytest.fixture
def make_video() -> Callable[..., Path]:
    """Encode a video: ``make_video(path, num_frames=.., rate=..)``, codec by suffix."""
    return encode_video


@pytest.fixture
def client_code(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Import ``client_code.py`` as programs of clients are: from ``sys.path``.

    Worker processes find its classes there too, whatever their start method.
    """
    monkeypatch.syspath_prepend(str(HERE))
    return importlib.import_module("client_code")


def environment(**more: str) -> dict[str, str]:
    """Give an environment in which this checkout is the package."""
    path = os.pathsep.join([str(REPOSITORY), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path.rstrip(os.pathsep), **more}


@dataclass(frozen=True)
class Result:
    """What a program answered."""

    code: int
    out: str
    err: str


def run(command: list[str], cwd: Path, env: dict[str, str]) -> Result:
    """Run a program to its end."""
    done = subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, timeout=300
    )
    return Result(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., Result]:
    """Run one of our ten ``gulp2_*`` programs: ``script("gulp2_kinetics", ...)``."""

    def start(
        name: str, *arguments: object, cwd: Path = tmp_path, flags: tuple[str, ...] = ()
    ) -> Result:
        code = (
            "import sys; from gulpio2.cli import legacy; "
            f"sys.argv[0] = {name!r}; sys.exit(legacy.{name}())"
        )
        command = [sys.executable, *flags, "-c", code, *map(str, arguments)]
        return run(command, cwd, environment())

    return start


@pytest.fixture
def fresh_python(tmp_path: Path) -> Callable[..., Result]:
    """Run code in a fresh interpreter: ``fresh_python(code, *arguments, flags=())``."""

    def start(
        code: str,
        *arguments: object,
        flags: tuple[str, ...] = (),
        cwd: Path = tmp_path,
    ) -> Result:
        command = [sys.executable, *flags, "-c", code, *map(str, arguments)]
        return run(command, cwd, environment())

    return start


class Original:
    """GulpIO2 0.0.4, as programs that run in its own environment."""

    def __init__(self, python: str, cwd: Path) -> None:
        """Take the interpreter and the folder to run in."""
        self.python = Path(python)
        self.cwd = cwd

    def run(self, *command: object, cwd: Path | None = None) -> Result:
        """Run the original's interpreter."""
        env = dict(os.environ)
        env.pop("PYTHONPATH", None)
        env["PATH"] = os.pathsep.join([str(self.python.parent), env.get("PATH", "")])
        parts = [str(self.python), *map(str, command)]
        return run(parts, cwd or self.cwd, env)

    def script(self, name: str, *arguments: object, cwd: Path | None = None) -> Result:
        """Run one of its console scripts."""
        return self.run(self.python.parent / name, *arguments, cwd=cwd)

    def json(self, program: str, *arguments: object) -> Any:
        """Run a file of ``tests/compat/in_original`` and parse what it prints."""
        result = self.run(HERE / "in_original" / program, *arguments)
        assert result.code == 0, result.err
        return json.loads(result.out)


@pytest.fixture
def original(original_python: str, tmp_path: Path) -> Original:
    """Give GulpIO2 0.0.4; skip where it is not installed."""
    return Original(original_python, tmp_path)
