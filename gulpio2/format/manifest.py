"""``gulp.json``: how a directory was made, and what holds for all of it."""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gulpio2.errors import MetaFileError
from gulpio2.format.gmeta import load_ordered_json

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FORMAT_VERSION", "Manifest", "Run", "dump_manifest", "load_manifest"]

FORMAT_NAME = "gulp2"
FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Run:
    """One ingest run; without time or host, so that equal runs give equal bytes."""

    adapter: str
    """Name of the adapter's class."""
    options: Mapping[str, Any]
    """Its constructor's arguments."""
    encoder: Mapping[str, Any]
    """Settings of the encoder."""
    package: str
    """Version of this package."""
    chunks: tuple[int, ...]
    """Numbers of the chunks that it wrote."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of a directory."""

    runs: tuple[Run, ...] = ()
    """Ingest runs, oldest first."""
    metainfo: Mapping[str, Any] = field(default_factory=dict)
    """Metadata of the dataset: class names and so on."""


def dump_manifest(manifest: Manifest) -> bytes:
    """Write a manifest as indented JSON with its own CRC-32 as the last key."""
    body = {
        "format": FORMAT_NAME,
        "format_version": FORMAT_VERSION,
        "runs": [
            {
                "adapter": run.adapter,
                "options": dict(run.options),
                "encoder": dict(run.encoder),
                "package": run.package,
                "chunks": list(run.chunks),
            }
            for run in manifest.runs
        ],
        "metainfo": dict(manifest.metainfo),
    }
    return (json.dumps({**body, "check": _check(body)}, indent=1) + "\n").encode()


def load_manifest(data: bytes, *, where: str) -> Manifest:
    """Read a manifest.

    Raises
    ------
    MetaFileError
        Not a manifest, damaged, or of a format version that this package does not
        know.
    """
    value = load_ordered_json(data, where=where)
    if not isinstance(value, dict) or value.get("format") != FORMAT_NAME:
        raise MetaFileError(
            f"{where}: not the manifest of a gulp directory. It can be removed: the "
            "frames do not depend on it"
        )
    if value.get("format_version") != FORMAT_VERSION:
        raise MetaFileError(
            f"{where}: format version {value.get('format_version')!r}; this package "
            f"reads {FORMAT_VERSION}. Install a newer gulpio2"
        )
    body = {key: item for key, item in value.items() if key != "check"}
    # The bytes are compared too: a flipped blank changes no value.
    if value.get("check") != _check(body) or data != (
        json.dumps(value, indent=1) + "\n"
    ).encode("ascii"):
        raise MetaFileError(
            f"{where}: the content does not fit its check: it was damaged or edited. "
            "It can be removed: the frames do not depend on it"
        )
    try:
        runs = tuple(
            Run(
                adapter=run["adapter"],
                options=run["options"],
                encoder=run["encoder"],
                package=run["package"],
                chunks=tuple(run["chunks"]),
            )
            for run in value["runs"]
        )
        return Manifest(runs=runs, metainfo=value["metainfo"])
    except (KeyError, TypeError) as cause:
        raise MetaFileError(f"{where}: a part is missing: {cause}") from cause


def _check(body: Mapping[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(body).encode('ascii')):08x}"
