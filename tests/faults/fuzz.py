"""Feed the parsers: ``bin/fuzz`` runs this.

Time is processor time of the process that parses: a busy machine takes nothing from it.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))  # the package of this tree is what is fed

# Seconds of processor time that one input may take; it is looked at so often.
INPUT_SECONDS = 5
# Inputs that Hypothesis draws before it begins again with another seed, since it keeps
# in memory what it has drawn.
ROUND = 2000
# Files that a process may have open: one that an input leaves open is soon found.
OPEN_FILES = 256


class Feeding:
    """Hands inputs to a parser, counts them, and ends what takes too long."""

    def __init__(self, parse: Callable[[bytes], None], seconds: float) -> None:
        self.parse = parse
        self.count = 0
        self.last = b""
        self._looked = -1
        self._began = time.process_time()
        self._seconds = seconds
        # A signal waits until the C code ends that it came in: this does not.
        used = resource.getrusage(resource.RUSAGE_SELF)
        end = int(used.ru_utime + used.ru_stime + seconds + 120)
        resource.setrlimit(resource.RLIMIT_CPU, (end, resource.RLIM_INFINITY))
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, limit))
        warnings.simplefilter("ignore")  # of the grammar, for many conditions
        signal.signal(signal.SIGPROF, self._look)
        signal.setitimer(signal.ITIMER_PROF, INPUT_SECONDS, INPUT_SECONDS)

    def __call__(self, data: bytes) -> None:
        """Parse one input."""
        self.count += 1
        self.last = data
        self.parse(data)

    def seconds(self) -> float:
        """Say how much time there was."""
        return time.process_time() - self._began

    def is_over(self) -> bool:
        """Tell whether the time is."""
        return self.seconds() >= self._seconds

    def end(self) -> None:
        """Look no more: Python lets go of its handlers before the process ends."""
        signal.setitimer(signal.ITIMER_PROF, 0)

    def _look(self, *_args: object) -> None:
        if self.count and self._looked == self.count:
            # Here and now: who looks for a smaller input would wait for each of them.
            traceback.print_stack()
            text = f"FOUND, more than {INPUT_SECONDS} s for {self.last!r}"
            print(text, file=sys.stderr, flush=True)
            os._exit(1)
        self._looked = self.count


# --- drawn by Hypothesis ----------------------------------------------------------


def changed(data: bytes, rng: random.Random) -> bytes:
    """Change a sound input here and there."""
    result = bytearray(data)
    for _ in range(1 + rng.randrange(6)):
        start = rng.randrange(len(result) + 1)
        stop = start + rng.choice((0, 1, 1, 2, 4, 30))
        new = rng.choice(
            (
                rng.randbytes(rng.randrange(6)),
                rng.choice(b'{}[]",:0-9\\\xff\xd8\xd9').to_bytes(1, "big"),
                bytes(result[stop : stop + rng.randrange(60)]),
                str(rng.choice((0, -1, 2**31, 2**63, 10**30, 1e308))).encode(),
            )
        )
        result[start:stop] = new
    return bytes(result)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """List the way to every part of a JSON value."""
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


def with_part(value: Any, path: tuple[Any, ...], part: Any) -> Any:
    """Give a JSON value with one part replaced."""
    if not path:
        return part
    result = value.copy()
    result[path[0]] = with_part(value[path[0]], path[1:], part)
    return result


def is_json(data: bytes) -> bool:
    """Tell whether a sound input is one."""
    try:
        json.loads(data)
    except ValueError:
        return False
    return True


def inputs(pool: list[bytes]) -> Any:
    """Make a strategy of inputs that are nearly sound, in several ways."""
    import hypothesis.strategies as st

    number = st.integers() | st.sampled_from([2**31, 2**53, 2**63, 10**30])
    leaf = st.none() | st.booleans() | number | st.floats() | st.text(max_size=20)
    json_value = st.recursive(
        leaf,
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.text(max_size=8), inner, max_size=4)
        ),
        max_leaves=8,
    )

    @st.composite
    def edited(draw: Any) -> bytes:
        data = bytearray(draw(st.sampled_from(pool)))
        for _ in range(draw(st.integers(1, 4))):
            start = draw(st.integers(0, len(data)))
            stop = start + draw(st.integers(0, 8))
            data[start:stop] = draw(st.binary(max_size=8))
        return bytes(data)

    @st.composite
    def other_parts(draw: Any, values: list[Any]) -> bytes:
        value = draw(st.sampled_from(values))
        for _ in range(draw(st.integers(1, 3))):
            path = draw(st.sampled_from(list(places(value))))
            value = with_part(value, path, draw(json_value))
        return json.dumps(value).encode()

    ways = [
        st.builds(
            lambda data, seed: changed(data, random.Random(seed)),
            st.sampled_from(pool),
            st.integers(0, 2**64 - 1),
        ),
        edited(),
        st.binary(max_size=400),
    ]
    if values := [json.loads(data) for data in pool if is_json(data)]:
        ways.append(other_parts(values))
    return st.one_of(ways)


def feed(name: str, seconds: float) -> bool:
    """Have Hypothesis feed one parser; say if all is well."""
    from hypothesis import HealthCheck, Phase, given, seed, settings

    from tests.faults.parsers import PARSERS, seeds

    feeding = Feeding(PARSERS[name], seconds)
    options = settings(
        max_examples=ROUND,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    turn = 0
    is_well = True
    while is_well and not feeding.is_over():
        draws = seed(zlib.crc32(name.encode()) + turn)
        turn += 1
        try:
            draws(options(given(inputs(seeds()[name]))(lambda data: feeding(data))))()
        except Exception:  # noqa: BLE001  # what is looked for
            traceback.print_exc()
            print(f"{name}: FOUND by {feeding.last!r}", flush=True)
            is_well = False
    feeding.end()
    say(name, feeding)
    return is_well


# --- led by coverage --------------------------------------------------------------


def feed_by_atheris(name: str, seconds: float) -> bool:
    """Have Atheris feed one parser, beginning with sound inputs; say if all is well."""
    from tests.faults.parsers import seeds

    with tempfile.TemporaryDirectory() as corpus:
        for number, data in enumerate(seeds()[name]):
            Path(corpus, str(number)).write_bytes(data)
        command = [sys.executable, __file__, "--be-fed", name, str(seconds)]
        # Its own limits are of the clock on the wall.
        command += [corpus, "-max_total_time=0", "-timeout=1000000"]
        # Under Atheris a process grows by half a kilobyte for each condition that it
        # is fed with; the inputs that it keeps, without it, leave the memory as it is.
        # What one input may take is bounded apart.
        command += ["-rss_limit_mb=8192", "-malloc_limit_mb=1024"]
        command += ["-max_len=20000", "-verbosity=0"]
        done = subprocess.run(command, check=False, stderr=subprocess.PIPE, cwd=corpus)
    if done.returncode:
        print(done.stderr.decode(errors="replace"), flush=True)
        print(f"{name}: FOUND, see above", flush=True)
    return done.returncode == 0


def be_fed(name: str, seconds: float, options: list[str]) -> None:
    """Let Atheris feed a parser of this process, which ends with it."""
    atheris: Any = importlib.import_module("atheris")  # has no types
    with atheris.instrument_imports(include=["gulpio2", "json"]):
        from tests.faults.parsers import PARSERS
    feeding = Feeding(PARSERS[name], seconds)

    def take(data: bytes) -> None:
        if feeding.count % 16 == 0 and feeding.is_over():
            say(name, feeding)
            os._exit(0)  # the only way to end it that is no finding
        feeding(data)

    atheris.Setup([sys.argv[0], *options], take)
    atheris.Fuzz()


def say(name: str, feeding: Feeding) -> None:
    """Tell what was done."""
    seconds = feeding.seconds()
    print(f"{name}: {feeding.count} inputs in {seconds:.1f} s", flush=True)


def main(arguments: list[str]) -> int:
    """Run it."""
    if arguments[:1] == ["--be-fed"]:
        be_fed(arguments[1], float(arguments[2]), arguments[3:])
    from tests.faults.parsers import PARSERS

    parser = argparse.ArgumentParser(prog="bin/fuzz")
    parser.add_argument("--each", action="store_true")
    parser.add_argument("seconds", nargs="?", type=float, default=600.0)
    parser.add_argument("names", nargs="*", metavar="parser")
    options = parser.parse_args(arguments)
    names = options.names or sorted(PARSERS)
    if unknown := set(names) - set(PARSERS):
        parser.error(f"no such parser: {', '.join(sorted(unknown))}")
    seconds = options.seconds if options.each else options.seconds / len(names)
    led = importlib.util.find_spec("atheris") is not None
    well = [(feed_by_atheris if led else feed)(name, seconds) for name in names]
    return 0 if all(well) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
