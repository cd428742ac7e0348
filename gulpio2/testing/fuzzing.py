"""Every parser of the package as a function of bytes that must raise no other error.

For fuzzers: each function of `PARSERS` takes any bytes, and returns, or fails in a way
that is a finding. ``bin/fuzz`` feeds them.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING

from gulpio2.codecs.jpeg import (
    EncoderSettings,
    check_jpeg,
    decode_frame,
    encode_frame,
    read_header,
)
from gulpio2.errors import GulpError
from gulpio2.format.entry import load_extras, verify_entry
from gulpio2.format.gmeta import dump_gmeta, load_gmeta
from gulpio2.format.journal import dump_line, load_lines
from gulpio2.format.layout import list_chunks
from gulpio2.format.manifest import Manifest, Run, dump_manifest, load_manifest
from gulpio2.format.map_checks import (
    check_failures_file,
    check_labels,
    check_manifest,
    check_map,
)
from gulpio2.format.removals import Removals, dump_removals, load_removals
from gulpio2.format.salvage import JpegFinder, salvage_map
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
        ("manifest", _manifest),
        ("removals", lambda data: load_removals(data, where="fuzz")),
        ("journal", load_lines),
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
        "manifest": [dump_manifest(Manifest((run,), {"classes": ["a"]}))],
        "removals": [dump_removals(Removals({0: [("a", entry)]}, {1: [(0, 8)]}))],
        "journal": [dump_line({"task": 0}) + dump_line([1, 2])],
        "labels": [json.dumps({"a": 0, "b": 1}).encode()],
        "failures": [json.dumps({"position": 0}).encode() + b"\n"],
        "names": [b"data_0.gulp meta_0.gmeta data_00.gulp x.1a.partial"],
        "salvage": [*gmeta, *jpegs],
        "jpeg": jpegs,
    }
