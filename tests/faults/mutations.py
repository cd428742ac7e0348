"""Deliberate breaks of the package, each of which the tests must find.

``bin/mutate`` runs this: every break is made in a copy of the package, and the tests
named beside it must fail there, and pass where nothing is broken.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[2]


class Mutation(NamedTuple):
    """A break: a text of a file is replaced, once."""

    name: str
    file: str
    old: str
    new: str
    tests: str
    """What finds it: arguments for pytest."""


POWER = "tests/faults/test_power_loss.py"
KILL = "tests/faults/test_kill.py -k operation"
FLIPS = "tests/faults/test_flips.py"
READERS = "tests/faults/test_readers.py"
TAILS = "tests/codecs/test_tails.py"

MUTATIONS = [
    Mutation(
        "leave out the sync of a file",
        "storage/local_writer.py",
        "            os.fsync(self._descriptor())\n",
        "            pass\n",
        # The recording notes a call of sync, so the call itself is left out below;
        # that the call reaches the disk is for the storage's own tests.
        "tests/storage/test_local.py",
    ),
    Mutation(
        "leave out the sync of the data file",
        "staging.py",
        "        content = self.appender.dump_map()\n        self.writer.sync()\n"
        "        map_writer",
        "        content = self.appender.dump_map()\n        map_writer",
        POWER,
    ),
    Mutation(
        "leave out the sync of the map",
        "staging.py",
        "            map_writer.sync()\n",
        "",
        POWER,
    ),
    Mutation(
        "leave out the sync of the folder",
        "staging.py",
        "                    raise taken_number(data) from cause\n"
        "                store.sync_names()\n",
        "                    raise taken_number(data) from cause\n",
        POWER,
    ),
    Mutation(
        "swap the renames of data and map",
        "staging.py",
        "((self.data, data_name), (self.meta, meta_name))",
        "((self.meta, meta_name), (self.data, data_name))",
        KILL,
    ),
    Mutation(
        "give the map its name before the append is synced",
        "staging.py",
        "        self.writer.sync()\n        if self.partial is None:\n"
        "            refuse_changes",
        "        if self.partial is None:\n            refuse_changes",
        POWER,
    ),
    Mutation(
        "keep the old map while its data file is replaced",
        "staging.py",
        "                        map_file.drop()\n",
        "                        pass\n",
        POWER,
    ),
    Mutation(
        "remove the old map before there is room for the new one",
        "storage/map_file.py",
        "            writer.write(data)\n            writer.sync()\n"
        "            yield\n",
        "            yield\n            writer.write(data)\n",
        "tests/test_chunk_commit.py",
    ),
    Mutation(
        "write small files in place",
        "storage/local.py",
        "                writer.sync()\n                writer.close()\n",
        "                writer.close()\n",
        POWER,
    ),
    Mutation(
        "take a file for synced that was written to since",
        "storage/local_writer.py",
        "        rest = memoryview(data)\n        self._is_synced = False\n",
        "        rest = memoryview(data)\n",
        POWER,
    ),
    Mutation(
        "hide deleted items before saying what they were",
        "removal.py",
        "            write_removals(store, removals)\n            for number, gone",
        "            for number, gone",
        "tests/test_removal.py",
    ),
    Mutation(
        "ignore the checksum of a frame in the check",
        "format/checks.py",
        "    if record.crc32 is None or crc32 == record.crc32:\n",
        "    if record.crc32 is None or crc32:\n",
        FLIPS,
    ),
    Mutation(
        "ignore the checksum of a frame in a verified read",
        "blocks.py",
        "    if found == crc32 or (",
        "    if True or (",
        FLIPS,
    ),
    Mutation(
        "ignore the check of an entry in a verified read",
        "storage/map_file.py",
        "            if verify is True:\n                verify_entry",
        "            if False:\n                verify_entry",
        FLIPS,
    ),
    Mutation(
        "warn of no entry that has changed",
        "format/altered.py",
        "    except MetaFileError:\n        return True\n",
        "    except MetaFileError:\n        return False\n",
        "tests/test_altered_entries.py",
    ),
    Mutation(
        "let padding be anything",
        "format/checks.py",
        "    if any(padding):\n",
        "    if False:\n",
        "tests/format/test_checks.py",
    ),
    Mutation(
        "forget the folder between the last two removals of an ingest",
        "ingest/ingestor.py",
        "        store.sync_names()  # or the disk",
        "        # or the disk",
        "tests/faults/test_power_states.py -k resuming",
    ),
    Mutation(
        "go on after an interrupt that was swallowed",
        "cli/interrupts.py",
        "        if interrupts.came is not None:\n",
        "        if interrupts.came is None:\n",
        "tests/faults/test_interrupts.py -k swallows",
    ),
    Mutation(
        "blame nobody for a worker that crashed",
        "ingest/crashes.py",
        "                self.items[position] = item\n",
        "                is_new = False\n",
        "tests/faults/test_crashes.py",
    ),
    Mutation(
        "blame an item at which a worker was killed once",
        "ingest/crashes.py",
        "crash.is_fault or position in self._suspects",
        "True",
        "tests/faults/test_crashes.py -k killed",
    ),
    Mutation(
        "skip the lock",
        "storage/locks.py",
        "        is_locked = lock_file(fd, shared=shared)\n",
        "        is_locked = True\n",
        READERS + " -k second_writer",
    ),
    Mutation(
        "go on with files that a worker of the killed run has open",
        "storage/locks.py",
        "    deadline = time.monotonic() + _PATIENCE\n",
        "    return True\n",
        "tests/faults/test_kill_moments.py -k outlives",
    ),
    Mutation(
        "wait for workers that never hear of the end",
        "ingest/pool.py",
        "    late = threading.Timer(_END_SECONDS, _kill, [workers, were_killed])\n",
        "    late = threading.Timer(20, terminate, [workers])\n",
        "tests/faults/test_kill_moments.py -k waits_for_work",
    ),
    Mutation(
        "do not go on where a write took a part only",
        "storage/local_writer.py",
        "                rest = rest[written:]\n",
        "                rest = rest[len(rest):]\n",
        "tests/faults/test_failing_disk.py -k part_only",
    ),
    Mutation(
        "write the frames of an item that failed in the place of the next one's",
        "gathering.py",
        'b"".join(self._parts)[: position - self._start]',
        'b"".join(self._parts)',
        "tests/test_gathering.py -k that_wait",
    ),
    Mutation(
        "use a row of the index without looking at the map",
        "storage/index/index.py",
        "            if loaded.mapped and not self._is_right(loaded, row):\n",
        "            if False:\n",
        "tests/faults/test_index.py",
    ),
    Mutation(
        "read a data file that was written anew by the old map",
        "storage/handles.py",
        "            if self.on_open is None or self.on_open(path, handle.fd):\n",
        "            if True:\n",
        "tests/test_rewritten.py",
    ),
    Mutation(
        "take the index of earlier maps for one of these",
        "storage/index/composing.py",
        "old is not None and np.array_equal(old.chunks[:, :3], states[:, :3])\n",
        "old is not None\n",
        "tests/faults/test_index.py",
    ),
    Mutation(
        "leave the index out of the deep check",
        "sanity/directory.py",
        "        if self.findings.report.deep and INDEX_NAME in names:\n",
        "        if False:\n",
        "tests/faults/test_index.py",
    ),
    Mutation(
        "let children keep the lock",
        "storage/locks.py",
        "os.register_at_fork(after_in_child=_drop_inherited)",
        "",
        "tests/storage/test_locks.py",
    ),
    Mutation(
        "do not cut off a half-written item",
        "staging.py",
        "                self.writer.truncate(size)\n",
        "                pass\n",
        KILL,
    ),
    Mutation(
        "resume over a chunk that another has written",
        "staging.py",
        "            if there != store.read(self.meta):\n",
        "            if False:\n",
        "tests/ingest/test_resume_files.py -k written_over",
    ),
    Mutation(
        "clear an abandoned run's files away before its journal",
        "ingest/ingestor.py",
        "            journal.remove()\n            store.sync_names()\n",
        "            remove_partials(store)\n            journal.remove()\n",
        "tests/ingest/test_resume_files.py -k clears_another",
    ),
    Mutation(
        "resume over a data file without a map",
        "staging.py",
        "        if is_begun and not is_beginning(",
        "        if False and not is_beginning(",
        "tests/ingest/test_resume_files.py -k written_over",
    ),
    Mutation(
        "do not cut off an item that failed",
        "gathering.py",
        "            self._writer.truncate(position)\n",
        "",
        "tests/faults/test_failing_disk.py -k half_way",
    ),
    Mutation(
        "leave what there was room for of a write that failed",
        "gathering.py",
        "            self._writer.truncate(self._start)  # some",
        "            # some",
        "tests/test_chunk_writing.py tests/test_gathering.py",
    ),
    Mutation(
        "keep the journal's lines of small items until the chunk is closed",
        "ingest/task.py",
        "            or time.monotonic() >= self._write_at\n",
        "",
        "tests/faults/test_kill.py -k twentieth",
    ),
    Mutation(
        "trust the item journal without looking at the data",
        "ingest/task_journal.py",
        "        return bool(np.array_equal(crcs, extras.crc32))\n",
        "        return True\n",
        POWER,
    ),
    Mutation(
        "give the frames of pieces no place of their own",
        "appending.py",
        "                moved = start - infos[0][0]\n",
        "                moved = 0\n",
        "tests/ingest/test_pieces.py",
    ),
    Mutation(
        "keep pieces that were not given what is listed",
        "ingest/pieces.py",
        "        cut.is_fit = cut.is_fit and not result.is_unfit\n",
        "        cut.is_fit = True\n",
        "tests/ingest/test_pieces.py",
    ),
    Mutation(
        "follow links when resuming",
        "storage/local_writer.py",
        "            flags |= os.O_NOFOLLOW\n",
        "            pass\n",
        "tests/faults/test_hostile.py -k item_journal",
    ),
    Mutation(
        "salvage entries without asking their check",
        "repair/entries.py",
        "        written = covered_part(id_, entry) if ",
        "        written = entry if ",
        "tests/test_repair.py",
    ),
    Mutation(
        "give frames a tail that were not compared with a checksum",
        "jobs.py",
        "                is_sound = block.request.crc32 is not None\n",
        "                is_sound = True\n",
        TAILS,
    ),
    Mutation(
        "give a frame a tail whose header is another",
        "codecs/decode.py",
        "if whole and begins(whole, start) and block.endswith(EOI, start, stop):",
        "if whole and block.endswith(EOI, start, stop):",
        TAILS,
    ),
    Mutation(
        "read ahead, and compare no checksum",
        "torch/stored.py",
        "            is_compared = read.crc32 is not None\n",
        "            is_compared = False\n",
        "tests/torch/test_loader_shares.py",
    ),
]


def run_tests(root: Path, arguments: str) -> bool:
    """Tell whether the tests pass on a copy."""
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"),
            *arguments.split(" ", maxsplit=2),
        ],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    if done.returncode not in (0, 1):
        raise RuntimeError(f"the tests did not run: {done.stdout}{done.stderr}")
    return done.returncode == 0


def main(names: list[str]) -> int:
    """Run it."""
    if unknown := set(names).difference(mutation.name for mutation in MUTATIONS):
        print(f"there is no break {min(unknown)!r}", file=sys.stderr)
        return 2
    chosen = [m for m in MUTATIONS if not names or m.name in names]
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for part in ("gulpio2", "tests"):
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(REPOSITORY / part, root / part, ignore=ignored)
        shutil.copy(REPOSITORY / "pyproject.toml", root)
        for tests in sorted({mutation.tests for mutation in chosen}):
            if not run_tests(root, tests):
                print(f"fails where nothing is broken: {tests}")
                return 1
        for mutation in chosen:
            path = root / "gulpio2" / mutation.file
            text = path.read_text("utf-8")
            if text.count(mutation.old) != 1:
                print(f"NOT THERE any more: {mutation.name}", flush=True)
                missed.append(mutation.name)
                continue
            path.write_text(text.replace(mutation.old, mutation.new), "utf-8")
            found = not run_tests(root, mutation.tests)
            path.write_text(text, "utf-8")
            word = "found" if found else "MISSED"
            print(f"{word}: {mutation.name} ({mutation.tests})", flush=True)
            if not found:
                missed.append(mutation.name)
    print(f"{len(chosen) - len(missed)} of {len(chosen)} breaks were found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
