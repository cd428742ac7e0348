"""``gulp.json``: how a directory was made, and what holds for all of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gulpio2.errors import MetaFileError
from gulpio2.format.checked_json import dump_checked, load_checked

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FORMAT_VERSION", "Manifest", "Run", "dump_manifest", "load_manifest"]

FORMAT_NAME = "gulp2"
FORMAT_VERSION = 1
_ADVICE = "It can be removed: the frames do not depend on it"


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
    files: Mapping[str, str] = field(default_factory=dict)
    """CRC-32, as eight hexadecimal digits, of files that have no check of their own."""


def dump_manifest(manifest: Manifest) -> bytes:
    """Write a manifest as indented JSON with its own CRC-32 as the last key."""
    body: dict[str, Any] = {
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
    if manifest.files:
        body["files"] = dict(manifest.files)
    return dump_checked(body)


def load_manifest(data: bytes, *, where: str) -> Manifest:
    """Read a manifest.

    Raises
    ------
    MetaFileError
        Not a manifest, damaged, or of a format version that this package does not
        know.
    """
    value = load_checked(data, where=where, advice=_ADVICE)
    if value.get("format") != FORMAT_NAME:
        raise MetaFileError(f"{where}: not the manifest of a gulp directory. {_ADVICE}")
    if value.get("format_version") != FORMAT_VERSION:
        raise MetaFileError(
            f"{where}: format version {value.get('format_version')!r}; this package "
            f"reads {FORMAT_VERSION}. Install a newer gulpio2"
        )
    try:
        runs = tuple(
            Run(
                adapter=run["adapter"],
                options=_object(run["options"]),
                encoder=_object(run["encoder"]),
                package=run["package"],
                chunks=tuple(_number(number) for number in run["chunks"]),
            )
            for run in value["runs"]
        )
        files = _object(value.get("files", {}))
        return Manifest(runs, _object(value["metainfo"]), files)
    except (KeyError, TypeError, ValueError) as cause:
        raise MetaFileError(f"{where}: a part is missing: {cause}") from cause


def _number(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"{str(value)[:80]!r} is no number of a chunk")
    return value


def _object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{str(value)[:80]!r} is no object")
    return value
