"""Every parser of the package as a function of bytes that must raise no other error.

For fuzzers: each function of `PARSERS` takes any bytes, and returns, or fails in a way
that is a finding. ``bin/fuzz`` feeds them.
"""

from __future__ import annotations

import contextlib
import functools
import json
import logging
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from gulpio2.chunk import GulpChunk
from gulpio2.codecs.jpeg import (
    EncoderSettings,
    check_jpeg,
    decode_frame,
    encode_frame,
    read_header,
)
from gulpio2.errors import GulpError
from gulpio2.format.checked_json import dump_checked
from gulpio2.format.checksum import crc32_of
from gulpio2.format.entry import dump_extras, load_extras, verify_entry
from gulpio2.format.gmeta import dump_gmeta, load_gmeta
from gulpio2.format.journal import dump_line, load_lines
from gulpio2.format.label_checks import check_labels
from gulpio2.format.layout import (
    INDEX_NAME,
    JOURNAL_NAME,
    REMOVALS_NAME,
    data_name,
    list_chunks,
    meta_name,
)
from gulpio2.format.manifest import Manifest, Run, dump_manifest, load_manifest
from gulpio2.format.map_checks import (
    check_deleted,
    check_failures_file,
    check_manifest,
    check_map,
)
from gulpio2.format.removals import Removals, dump_removals, load_removals
from gulpio2.format.salvage import JpegFinder, salvage_map
from gulpio2.format.scan import UnusualMapError, scan_gmeta
from gulpio2.ingest.journal import RunJournal
from gulpio2.ingest.task_journal import TaskJournal
from gulpio2.query import parse_condition
from gulpio2.storage.index.keeping import build_index
from gulpio2.storage.index.opening import open_index
from gulpio2.storage.local import open_store
from gulpio2.testing.directories import make_frames

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PARSERS", "seeds"]

# Pixels. What is decoded while fuzzing is small.
_MAX_PIXELS = 2**20


def _gmeta(data: bytes) -> None:
    for id_, entry in load_gmeta(data, where="fuzz").items():
        try:
            load_extras(entry, where=id_)
        except GulpError:
            continue
        verify_entry(id_, entry, where=id_)


def _jpeg(data: bytes) -> None:
    read_header(data)
    check_jpeg(data)
    decode_frame(data, max_pixels=_MAX_PIXELS)


def _salvage(data: bytes) -> None:
    salvage_map(data)
    finder = JpegFinder(data)
    position = 0
    while (found := finder.find(position, len(data))) is not None:
        position = found.stop


def _manifest(data: bytes) -> None:
    check_manifest(data, {0, 1}, {})
    load_manifest(data, where="fuzz")


class _Indexed:
    """A small directory, and what its index has to say of it."""

    def __init__(self) -> None:
        self._holder = tempfile.TemporaryDirectory(prefix="gulpio2-fuzz-")
        self.folder = Path(self._holder.name)
        for number in range(2):
            chunk = GulpChunk(
                self.folder / data_name(number), self.folder / meta_name(number)
            )
            with chunk.open("wb"):
                for item in range(2):
                    name = f"item{number}{item}"
                    chunk.append(name, {"label": name}, make_frames(2, 8, 8, seed=item))
        build_index(self.folder)
        self.path = self.folder / INDEX_NAME
        self.sound = self.path.read_bytes()
        self.expected = self.read()

    def read(self) -> list[Any]:
        """Give ids, spans, checksums and metadata."""
        index = open_index(self.folder, [0, 1], wanted=True, may_write=False)
        found: list[Any] = []
        for id_ in index.ids() if index is not None else ():
            record = index.record(id_) if index is not None else None
            if record is not None:
                crc32 = record.crc32(range(2))
                found.append((id_, list(record.frame_info), crc32, record.meta))
        return found


@functools.cache
def _indexed() -> _Indexed:
    return _Indexed()


def _index(data: bytes) -> None:
    directory = _indexed()
    directory.path.write_bytes(data)
    logger = logging.getLogger("gulpio2.storage.index")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # what is wrong with a file is no news here
    try:
        found = directory.read()
    finally:
        logger.setLevel(level)
    if found != directory.expected:
        raise AssertionError("the index says what the maps do not")


class _Interrupted:
    """A folder that an ingest has left, and lines of journals that are true of it."""

    data = "chunk_0.gulp.a.partial"
    meta = "chunk_0.gmeta.b.partial"
    arguments: ClassVar = {"x": 1}

    def __init__(self) -> None:
        self._holder = tempfile.TemporaryDirectory(prefix="gulpio2-fuzz-")
        self.folder = Path(self._holder.name)
        self.store = open_store(self.folder)
        self.put(self.data, bytes(64))
        self.put(self.meta, b"{}")
        crc32 = crc32_of(bytes(8))

        def item(number: int, place: int) -> dict[str, Any]:
            infos = [[16 * place, 0, 8], [16 * place + 8, 0, 8]]
            extras = dump_extras(crc32=[crc32, crc32])
            entry = {"frame_info": infos, "meta_data": [{}], "gulp2": extras}
            return {"at": number, "id": f"item{number}", "entry": entry}

        failure = {"position": 3, "id": "z", "source": None}
        failure |= {"error": "ValueError", "message": "no"}
        staged = {"data": self.data, "meta": self.meta}
        self.of_task: list[Any] = [
            {"data": self.data},
            {"items": [item(0, 0), item(1, 1)]},
            {"at": 2, "skipped": "y"},
            {"at": 3, "failed": failure},
            {"staged": staged},
            {"data": self.data},
            {"items": [item(4, 0)]},
        ]
        part = {**staged, "number": 7, "ids": ["a"], "frames": 2, "num_bytes": 16}
        task = {"task": 0, "skipped": 0, "not_given": 0, "failures": [failure]}
        task |= {"raised_behind": 1, "error_behind": "OSError: no"}
        head = {"first_number": 7, "plan": "x", "cut_for": 1, "files": {}}
        self.of_run: list[Any] = [
            {"run": self.arguments, **head},
            {**task, "parts": [part]},
        ]

    def put(self, name: str, data: bytes) -> None:
        """Write a file anew: some disks wait where one is cut and written again."""
        path = self.folder / name
        path.unlink(missing_ok=True)
        path.write_bytes(data)


@functools.cache
def _interrupted() -> _Interrupted:
    return _Interrupted()


def _lines(data: bytes) -> bytes | None:
    """Write a JSON list as a journal whose checks fit: what the lines say is tried."""
    try:
        lines = json.loads(data)
        return b"".join(map(dump_line, lines)) if isinstance(lines, list) else None
    except (ValueError, RecursionError):
        return None


def _task_journal(data: bytes) -> None:
    left = _interrupted()
    if (lines := _lines(data)) is None:
        return
    left.put("chunk_0.journal.c.partial", lines)
    journal = TaskJournal(left.store, "chunk_0", 0, 100, resume=True)
    journal.close()
    record, part = journal.record, journal.record.open_part
    position = record.next_position
    if type(position) is not int or position < record.skipped + len(record.failures):
        raise AssertionError(f"the run would go on at {position!r}")
    if part is not None and not 0 <= part.size <= left.store.size(part.partial):
        raise AssertionError(f"{part.size!r} bytes of {part.partial} would be kept")


def _run_journal(data: bytes) -> None:
    left = _interrupted()
    if (lines := _lines(data)) is None:
        return
    left.put(JOURNAL_NAME, lines)
    journal = RunJournal(left.store, left.arguments)
    try:
        journal.take_up()
    finally:
        journal.close()


def _condition(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        parse_condition(data.decode("utf-8", "replace"), ["label", "n", "a b"])


def _scan(data: bytes) -> None:
    with contextlib.suppress(UnusualMapError):
        for _ in scan_gmeta(data, where="fuzz"):
            pass


def _removals(data: bytes) -> None:
    for pairs in load_removals(data, where="fuzz").deleted.values():
        check_deleted(pairs, REMOVALS_NAME)


def _sign_object(data: bytes) -> bytes | None:
    """Give a JSON object the check that fits what else is in it."""
    try:
        value = json.loads(data)
        if isinstance(value, dict):
            value.pop("check", None)
            return dump_checked(value)
    except (ValueError, RecursionError):
        pass
    return None


def _sign_lines(data: bytes) -> bytes:
    """Give each line of a journal the check that fits it."""
    bodies = [line[9:] for line in data.split(b"\n")]
    return b"".join(b"%08x %s\n" % (crc32_of(body), body) for body in bodies)


def _also_signed(
    parse: Callable[[bytes], object], sign: Callable[[bytes], bytes | None]
) -> Callable[[bytes], None]:
    """Parse bytes as they are, and again with checks that fit.

    Hardly any change of a file that is checked comes past its check, and nothing behind
    that would be tried.
    """

    def both(data: bytes) -> None:
        with contextlib.suppress(GulpError):
            parse(data)
        if (signed := sign(data)) is not None:
            parse(signed)

    return both


def _guarded(parse: Callable[[bytes], object]) -> Callable[[bytes], None]:
    """Make errors of the package no finding."""

    def guarded(data: bytes) -> None:
        with contextlib.suppress(GulpError):
            parse(data)

    return guarded


PARSERS: dict[str, Callable[[bytes], None]] = {
    name: _guarded(parse)
    for name, parse in (
        ("gmeta", _gmeta),
        ("check_map", lambda data: check_map(data, "meta_0.gmeta")),
        ("manifest", _also_signed(_manifest, _sign_object)),
        ("scan", _scan),
        ("removals", _also_signed(_removals, _sign_object)),
        ("index", _index),
        ("condition", _condition),
        ("journal", _also_signed(load_lines, _sign_lines)),
        ("task_journal", _task_journal),
        ("run_journal", _run_journal),
        ("labels", check_labels),
        ("failures", check_failures_file),
        ("names", lambda data: list_chunks(data.decode("utf-8", "replace").split())),
        ("salvage", _salvage),
        ("jpeg", _jpeg),
    )
}


def seeds() -> dict[str, list[bytes]]:
    """Give sound inputs for each parser, for a fuzzer to change."""
    jpegs = [
        encode_frame(frame, EncoderSettings(subsampling=subsampling))
        for subsampling in ("444", "420")
        for frame in make_frames(1, 16, 24)
    ]
    entry = {
        "frame_info": [[0, 1, 8], [8, 0, 12]],
        "meta_data": [{"label": 3, "name": "é"}],
        "gulp2": {
            "crc32": "AAECAwQFBgc=",
            "time_base": [1, 600],
            "pts": [[0, 20, 2]],
            "source": {"width": 32},
            "check": "00000000",
        },
    }
    gmeta = [dump_gmeta({"a": entry, "b": {**entry, "gulp2": {}}}), b"{}"]
    run = Run("A", {"x": 1}, {"quality": 90}, "1.0", (0, 1))
    return {
        "gmeta": gmeta,
        "check_map": gmeta,
        "scan": gmeta,
        "index": [_indexed().sound],
        "condition": [
            b"label == 'x' and n >= 16 or `a b` in [1, 2.5, None]",
            b"not (label.contains('y') or n is not None) and 1 < n <= -3",
        ],
        "manifest": [dump_manifest(Manifest((run,), {"classes": ["a"]}))],
        "removals": [dump_removals(Removals({0: [("a", entry)]}, {1: [(0, 8)]}))],
        "journal": [dump_line({"task": 0}) + dump_line([1, 2])],
        "task_journal": [json.dumps(_interrupted().of_task).encode()],
        "run_journal": [json.dumps(_interrupted().of_run).encode()],
        "labels": [json.dumps({"a": 0, "b": 1}).encode()],
        "failures": [json.dumps({"position": 0}).encode() + b"\n"],
        "names": [b"data_0.gulp meta_0.gmeta data_00.gulp x.1a.partial"],
        "salvage": [*gmeta, *jpegs],
        "jpeg": jpegs,
    }
