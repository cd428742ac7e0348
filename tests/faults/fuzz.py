"""Feed the parsers: ``bin/fuzz`` runs this."""

from __future__ import annotations

import importlib.util
import random
import re
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))
from gulpio2.testing.fuzzing import PARSERS, seeds  # noqa: E402  # that of this tree

PER_PARSER = """
import atheris, sys
sys.path.insert(0, {repository!r})
with atheris.instrument_imports(include=["gulpio2", "json"]):
    from gulpio2.testing.fuzzing import PARSERS
atheris.Setup([sys.argv[0], *sys.argv[2:]], PARSERS[sys.argv[1]])
atheris.Fuzz()
""".replace("{repository!r}", repr(str(REPOSITORY)))


def changed(data: bytes, rng: random.Random) -> bytes:
    """Change a sound input here and there, or draw one."""
    if rng.random() < 0.05:
        return rng.randbytes(rng.randrange(400))
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


def feed(name: str, seconds: float) -> tuple[int, bytes | None]:
    """Feed one parser; give how many inputs, and the one that was a finding."""
    rng = random.Random(name)
    pool = seeds()[name]
    count = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        data = changed(rng.choice(pool), rng)
        began = time.monotonic()
        try:
            PARSERS[name](data)
        except Exception:  # noqa: BLE001  # what is looked for
            traceback.print_exc()
            return count, data
        if time.monotonic() - began > 5:
            print(f"{name}: took more than 5 s", file=sys.stderr)  # noqa: T201
            return count, data
        count += 1
    return count, None


def feed_led_by_coverage(name: str, seconds: float) -> bool:
    """Have Atheris feed one parser, beginning with sound inputs; say if all is well."""
    with tempfile.TemporaryDirectory() as corpus:
        for number, data in enumerate(seeds()[name]):
            Path(corpus, str(number)).write_bytes(data)
        command = [sys.executable, "-c", PER_PARSER, name, corpus]
        command += [
            f"-max_total_time={int(seconds)}",
            "-timeout=5",
            "-rss_limit_mb=1024",
        ]
        command += ["-max_len=20000", "-verbosity=0", "-print_final_stats=1"]
        done = subprocess.run(
            command, check=False, stderr=subprocess.PIPE, text=True, cwd=corpus
        )
    runs = re.search(r"number_of_executed_units: (\d+)", done.stderr)
    print(f"{name}: {runs[1] if runs else 'no'} inputs", flush=True)  # noqa: T201
    if done.returncode:
        print(done.stderr, flush=True)  # noqa: T201
    return done.returncode == 0


def main(arguments: list[str]) -> int:
    """Run it."""
    seconds = float(arguments[0]) if arguments else 600.0
    names = arguments[1:] or sorted(PARSERS)
    found = 0
    for name in names:
        share = seconds / len(names)
        if importlib.util.find_spec("atheris") is None:
            count, data = feed(name, share)
            print(f"{name}: {count} inputs", flush=True)  # noqa: T201
            if data is not None:
                found += 1
                print(f"{name}: FOUND by {data!r}")  # noqa: T201
        else:
            found += not feed_led_by_coverage(name, share)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
