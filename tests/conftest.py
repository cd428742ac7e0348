"""What the whole suite shares: real inputs, needs of tests, hypothesis profiles.

A test that needs something which is not on every machine says so with a marker
(``torch``, ``gpu``, ``original``) or by asking for a fixture (`shared_data`,
`ffmpeg_program`). Where the thing is absent the test is skipped with the reason; the
environment variable ``GULPIO2_REQUIRE=torch,shared`` turns that skip into a failure,
for machines that must have it.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib.util
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REPOSITORY = Path(__file__).resolve().parents[1]

# ------------------------------------------------------------------ hypothesis
# Quick is reproducible, so that a red run is red again; long looks for new cases.
hypothesis.settings.register_profile(
    "quick",
    max_examples=30,
    derandomize=True,
    database=None,
    deadline=None,  # the machine may be busy; a hang is the faulthandler's business
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.register_profile(
    "long",
    max_examples=1000,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile(os.environ.get("GULPIO2_HYPOTHESIS", "quick"))


@pytest.fixture(autouse=True)
def _stopwatch_off() -> Iterator[None]:
    """Measure where the time of reading goes in tests only that begin with it."""
    yield
    if (module := sys.modules.get("gulpio2.stopwatch")) is not None:
        module.STOPWATCH.is_on = False
        module.STOPWATCH.take()


@pytest.fixture
def _soon_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for a lock a tenth of the time, in modules whose tests are of refusals."""
    monkeypatch.setattr("gulpio2.storage.locks._PATIENCE", 0.1)


# ------------------------------------------------------------------ needs
def _shared_data() -> Path:
    """Give the folder of real inputs, which lies beside the repository."""
    default = REPOSITORY.parent / "shared" / "data"
    return Path(os.environ.get("GULPIO2_SHARED_DATA", default))


def _without_torch() -> str | None:
    if importlib.util.find_spec("torch") is not None:
        return None
    return "torch is not installed (pip install 'gulpio2[torch]')"


def _without_gpu() -> str | None:
    reason = _without_torch()
    if reason is None:
        import torch  # heavy, and only for tests that need it anyway

        reason = None if torch.cuda.is_available() else "no CUDA device"
    return reason


def _original_python() -> Path:
    """Give the interpreter of the original, which ``bin/original`` makes."""
    default = REPOSITORY / ".original-env" / "bin" / "python"
    return Path(os.environ.get("GULPIO2_ORIGINAL_PYTHON", default))


def _ffmpeg() -> str | None:
    """Find an ffmpeg program: on PATH, or the one that the original needs."""
    return shutil.which("ffmpeg") or shutil.which(
        "ffmpeg", path=str(_original_python().parent)
    )


def _without_ffmpeg() -> str | None:
    if _ffmpeg():
        return None
    return "no ffmpeg program on PATH or beside GulpIO2 0.0.4 (bin/original)"


def _without_original() -> str | None:
    path = _original_python()
    if path.is_file():
        return None
    return f"no GulpIO2 0.0.4 at {path}; bin/original makes its environment"


def _without_shared() -> str | None:
    folder = _shared_data()
    return None if folder.is_dir() else f"no real inputs at {folder}"


# Need -> a function that gives the reason to skip, or None where the need is met.
NEEDS: dict[str, Callable[[], str | None]] = {
    "torch": _without_torch,
    "gpu": _without_gpu,
    "ffmpeg": _without_ffmpeg,
    "original": _without_original,
    "shared": _without_shared,
}


def _required() -> set[str]:
    names = os.environ.get("GULPIO2_REQUIRE", "").split(",")
    return {name.strip() for name in names if name.strip()}


def _need(name: str) -> None:
    """Skip the running test where a need is not met, or fail it where it must be."""
    reason = NEEDS[name]()
    if reason is None:
        return
    if name in _required():
        pytest.fail(f"GULPIO2_REQUIRE asks for {name}: {reason}", pytrace=False)
    pytest.skip(reason)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the slow tests too")


def pytest_configure(config: pytest.Config) -> None:
    # A shell starts what runs in its background with interrupts ignored, and so would
    # be what the tests start and interrupt.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    unknown = _required() - NEEDS.keys()
    if unknown:
        raise pytest.UsageError(
            f"GULPIO2_REQUIRE has {sorted(unknown)}; known are {sorted(NEEDS)}"
        )


def pytest_collection_finish() -> None:
    # The tests and what they import are half a million objects, and stay to the end:
    # looking through them for garbage would take a quarter of a second each time.
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    if " at 0x" in item.nodeid:
        pytest.fail(
            "the id of this case has an address in it, so that test processes cannot "
            "agree on it: give the case an id, or its class a repr",
            pytrace=False,
        )
    for marker in item.iter_markers():
        if marker.name in NEEDS:
            _need(marker.name)
    if item.get_closest_marker("slow") and not item.config.getoption("--slow"):
        pytest.skip("slow; runs with --slow")


# ------------------------------------------------------------------ fixtures
@pytest.fixture(scope="session")
def repository() -> Path:
    """Give the root of the checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def kill_step(request: pytest.FixtureRequest) -> int:
    """Give the distance of the operations at which runs are killed: 1 with --slow."""
    return 1 if request.config.getoption("--slow") else 3


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Give the folder of real inputs; skip where it is absent."""
    _need("shared")
    return _shared_data()


@pytest.fixture(scope="session")
def shared_videos(shared_data: Path) -> Path:
    """Give the folder of real videos; its README says what is special in each."""
    return shared_data / "videos"


@pytest.fixture(scope="session")
def shared_images(shared_data: Path) -> Path:
    """Give the folder of real JPEG files."""
    return shared_data / "images"


@pytest.fixture(scope="session")
def original_python() -> str:
    """Give the interpreter that has GulpIO2 0.0.4; skip where there is none."""
    _need("original")
    return str(_original_python())


@pytest.fixture(scope="session")
def ffmpeg_program() -> str:
    """Give the path of an ffmpeg program; skip where there is none."""
    _need("ffmpeg")
    return str(_ffmpeg())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    # bin/check goes on after a failed step; said here, the last line stays pytest's.
    failed = os.environ.get("GULPIO2_FAILED_STEPS")
    if failed:
        terminalreporter.section("bin/check")
        terminalreporter.line(f"FAILED before the tests: {failed}", red=True)


@pytest.fixture(scope="session")
def python() -> str:
    """Give this interpreter, for tests that need a fresh process."""
    return sys.executable


@pytest.fixture
def _fast_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for the real disk.

    What a killed process has written is not lost, and a power cut is only replayed.
    """
    monkeypatch.setattr(os, "fsync", lambda fd: None)


@contextlib.contextmanager
def without_override() -> Iterator[None]:
    """Let the permissions of files hold for the superuser too, in this thread.

    Linux: CAP_DAC_OVERRIDE (1) and CAP_DAC_READ_SEARCH (2) are taken out of what is in
    effect, and put back; capabilities(7), capset(2).
    """
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3, self
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; twice 32 bits

    def call(function: str) -> None:
        if getattr(libc, function)(header, sets):
            raise OSError(ctypes.get_errno(), function)

    call("capget")
    before = sets[0]
    sets[0] &= ~0b110
    call("capset")
    try:
        yield
    finally:
        sets[0] = before
        call("capset")


@pytest.fixture
def permissions() -> Iterator[None]:
    """Let the permissions of files hold in this process, whoever runs the tests."""
    with without_override() if os.geteuid() == 0 else contextlib.nullcontext():
        yield


# An iterator of torch's DataLoader that an earlier test left in a cycle is collected by
# whichever process comes to it. In a forked one it waits for ever for a lock that a
# thread of its parent had: what is inherited is left alone there.
os.register_at_fork(after_in_child=gc.freeze)
