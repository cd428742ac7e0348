"""The programs that are compared, each in an environment of its own.

    python bench/peers.py             make all of them
    python bench/peers.py decord      some

An environment is made once, at the versions that ``bench/pins/PEER.txt`` names, in
``.peers/PEER`` (ignored by git); GulpIO2 0.0.4 is made by ``bin/original``. What cannot
be had is named in one line on stderr, and the benchmark goes on without it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

__all__ = ["PEERS", "Program", "python_of"]

ROOT = Path(__file__).resolve().parents[1]
PINS = ROOT / "bench" / "pins"
FOLDER = ROOT / ".peers"
# Seconds for one pip to install what a peer needs.
_TIMEOUT = 900


@dataclass(frozen=True, slots=True)
class Peer:
    """A program to compare with."""

    probe: str
    """Python code that runs where it works."""
    needs_torch: bool = False
    """Whether torch is to be installed first, as ``bin/environment`` does."""
    ffmpeg: bool = False
    """Whether it looks for FFmpeg's shared libraries; those of PyAV are used."""
    inherits: str | None = None
    """Another peer whose packages it sees."""
    stand_ins: tuple[tuple[str, str], ...] = ()
    """Modules that it imports and does not use here: name and text."""


PEERS = {
    "original": Peer("import gulpio2.adapters"),
    # GulpIO2 0.0.4 with a torch beside it, for torch's DataLoader.
    "original-torch": Peer(
        "import gulpio2.adapters, torch", needs_torch=True, inherits="original"
    ),
    "decord": Peer("import decord; decord.VideoReader"),
    "torchcodec": Peer(
        "from torchcodec.decoders import VideoDecoder", needs_torch=True, ffmpeg=True
    ),
    "webdataset": Peer("import webdataset, simplejpeg, torch", needs_torch=True),
    # Torchvision's wheels in the index load with a torch for CUDA only.
    "streaming": Peer(
        "import streaming, simplejpeg, torch",
        needs_torch=True,
        stand_ins=(
            ("torchvision/__init__.py", ""),
            ("torchvision/datasets.py", "VisionDataset = CIFAR10 = object\n"),
            ("torchvision/transforms/__init__.py", ""),
            ("torchvision/transforms/functional.py", "to_tensor = None\n"),
        ),
    ),
    "plot": Peer("import matplotlib; matplotlib.use('agg')"),
}


class _CannotBeHadError(Exception):
    """Why there is no such peer here."""


@lru_cache
def python_of(peer: str) -> Path | None:
    """Give the Python of a peer's environment, which is made where it is not there.

    Parameters
    ----------
    peer : str
        A name in `PEERS`.

    Returns
    -------
    Path or None
        None after one line on stderr that says why it cannot be had.
    """
    try:
        return _make_original() if peer == "original" else _make(peer)
    except (_CannotBeHadError, OSError, subprocess.SubprocessError) as error:
        text = " ".join(str(error).split())
        sys.stderr.write(f"{peer} is left out: {text}\n")
        return None


class Program:
    """A program in a process of its own, which works when it is its turn.

    Parameters
    ----------
    python : Path
        What runs it.
    script : Path
        Answers a line of JSON to each line of its input, and one before: versions.
    kind : str
        What it is to be, its first argument.
    facts : dict
        Its second.
    has_package : bool
        Whether it is to find this checkout's package, which may not be installed.
    """

    def __init__(
        self,
        python: Path,
        script: Path,
        kind: str,
        facts: dict[str, Any],
        *,
        has_package: bool,
    ) -> None:
        environment = dict(os.environ)
        environment.pop("PYTHONPATH", None)  # else the original would be this package
        if has_package:
            environment["PYTHONPATH"] = str(ROOT)
        self._process = subprocess.Popen(  # noqa: S603  # of this repository
            [str(python), str(script), kind, json.dumps(facts)],
            env=environment,
            cwd=tempfile.gettempdir(),  # not the checkout, for the same reason
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.versions: dict[str, str] = self._answer()

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def run(self, task: Any) -> float:
        """Have it work, and give its frames per second."""
        pipe: Any = self._process.stdin
        pipe.write(json.dumps(task) + "\n")
        pipe.flush()
        answer = self._answer()
        return float(answer["frames"] / answer["seconds"])

    def _answer(self) -> dict[str, Any]:
        pipe: Any = self._process.stdout
        line = pipe.readline()
        if not line:
            raise OSError(f"a program ended with status {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        """End it, and its workers."""
        pipe: Any = self._process.stdin
        pipe.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _make_original() -> Path:
    done = _run([str(ROOT / "bin" / "original")])
    if done.returncode:
        raise _CannotBeHadError(f"bin/original: {_last_line(done)}")
    return ROOT / ".original-env" / "bin" / "python"


def _make(name: str) -> Path:
    """Make an environment unless its stamp says that it is there; one at a time."""
    peer = PEERS[name]
    inherited = None
    if peer.inherits is not None:
        inherited = python_of(peer.inherits)
        if inherited is None:
            raise _CannotBeHadError(f"it needs {peer.inherits}")
    env = FOLDER / name
    pins = (PINS / f"{name}.txt").read_text("utf-8")
    stamp = hashlib.sha256(
        f"{sys.version} {sys.base_prefix} {pins} {peer}".encode()
    ).hexdigest()
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / ".gitignore").write_text("*\n", "utf-8")
    with (FOLDER / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        noted = env / "stamp"
        if noted.exists() and noted.read_text("utf-8") == stamp:
            return _python_in(env, peer)
        shutil.rmtree(env, ignore_errors=True)
        sys.stderr.write(f"making the environment of {name}\n")
        try:
            _install(name, env, inherited)
            _check(_python_in(env, peer), peer)
            noted.write_text(stamp, "utf-8")
        finally:
            if not noted.exists():  # nothing half made is left
                shutil.rmtree(env, ignore_errors=True)
    return _python_in(env, peer)


def _install(name: str, env: Path, inherited: Path | None) -> None:
    peer, pins = PEERS[name], PINS / f"{name}.txt"
    done = _run([sys.executable, "-m", "venv", str(env)])
    if done.returncode:
        raise _CannotBeHadError(f"python -m venv: {_last_line(done)}")
    python = env / "bin" / "python"
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "-q", "install"]
    if peer.needs_torch:
        torch = [line for line in pins.read_text().split() if line.startswith("torch=")]
        # As in bin/environment: the index brings gigabytes, so only where it is asked.
        offline = [] if os.environ.get("TORCH") == "1" else ["--no-index"]
        done = _run([*pip, *offline, "--no-deps", *torch])
        if done.returncode:
            raise _CannotBeHadError(
                f"no {torch[0]} among pip's own wheels (TORCH=1 downloads it)"
            )
    done = _run([*pip, "--retries", "2", "--no-deps", "-r", str(pins)])
    if done.returncode:
        raise _CannotBeHadError(f"pip: {_last_line(done)}")
    if inherited is not None:
        packages = _packages_of(inherited)
        (_packages_of(python) / "inherited.pth").write_text(f"{packages}\n", "utf-8")
    for module, text in peer.stand_ins:
        path = _packages_of(python) / module
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    if peer.ffmpeg:
        _name_libraries(env)


def _packages_of(python: Path) -> Path:
    done = _run(
        [str(python), "-c", "import sysconfig as s; print(s.get_path('purelib'))"]
    )
    return Path(done.stdout.strip())


def _name_libraries(env: Path) -> None:
    """Give the libraries in PyAV's wheel the names that others look for.

    The wheel adds a hash to each, and the names without are found by the loader only
    through a variable that a process must be started with: hence a script.
    """
    libraries = _packages_of(env / "bin" / "python") / "av.libs"
    names = env / "ffmpeg"
    names.mkdir()
    for path in libraries.glob("lib*.so.*"):
        found = re.fullmatch(r"(lib(?:av|sw)\w+)-\w+\.so\.(\d+)[.\d]*", path.name)
        if found:
            (names / f"{found[1]}.so.{found[2]}").symlink_to(path)
    script = env / "bin" / "python-with-ffmpeg"
    script.write_text(
        "#!/bin/sh\n"
        f"export LD_LIBRARY_PATH='{names}:{libraries}'\n"
        f"exec '{env}/bin/python' \"$@\"\n",
        "utf-8",
    )
    script.chmod(0o755)


def _python_in(env: Path, peer: Peer) -> Path:
    return env / "bin" / ("python-with-ffmpeg" if peer.ffmpeg else "python")


def _check(python: Path, peer: Peer) -> None:
    done = _run([str(python), "-c", peer.probe])
    if done.returncode:
        raise _CannotBeHadError(f"installed, but it does not load: {_last_line(done)}")


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    environment = dict(os.environ)
    environment.pop("PYTHONPATH", None)  # else it would see this package
    return subprocess.run(  # noqa: S603  # Python and pip
        command,
        env=environment,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
        check=False,
    )


def _last_line(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return lines[-1][:300] if lines else f"exit status {done.returncode}"


def main() -> None:
    """Make environments, and print where their Pythons are."""
    for peer in sys.argv[1:] or PEERS:
        if peer not in PEERS:
            sys.exit(f"{peer!r} is none of {', '.join(PEERS)}")
        python = python_of(peer)
        if python is not None:
            sys.stdout.write(f"{peer}: {python}\n")


if __name__ == "__main__":
    main()
