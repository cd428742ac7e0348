"""``failures.jsonl``: the items that ingests could not store, a line each."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from gulpio2.format.manifest import source_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from gulpio2.format.manifest import Run

__all__ = [
    "INGEST_KEY",
    "digest_of_source",
    "id_of",
    "is_mended",
    "is_of",
    "lines_of",
]

INGEST_KEY = "ingest"
"""Under which a line has the digest of the source that was ingested."""

# Errors that may be about an id which another item has: if the id is stored, it is
# perhaps that item's.
_ABOUT_IDS = {"AdapterContractError", "DuplicateIdError"}


def lines_of(content: bytes) -> list[bytes]:
    """Give the lines of the file, each with its end."""
    if content and not content.endswith(b"\n"):
        content += b"\n"  # an editor may leave it out, and another line comes behind
    return content.splitlines(keepends=True)


def digest_of_source(run: Run) -> str:
    """Give what tells the failures of one adapter and its options from others."""
    return hashlib.sha256(source_of(run).encode()).hexdigest()[:16]


def is_of(line: bytes, digest: str, share: Collection[int] | None) -> bool:
    """Tell whether a line is of an item that an ingest of this source tries.

    Parameters
    ----------
    line : bytes
        Of the file; one that does not say of what source it is, is taken for one of
        this.
    digest : str
        Of the source.
    share : collection of int or None
        Positions that this ingest has a share of; None where it has all, also those
        that the source has no more.
    """
    failure = _load(line)
    if failure is None or failure.get(INGEST_KEY, digest) != digest:
        return False
    return share is None or failure.get("position") in share


def is_mended(line: bytes, stored: Collection[str | None]) -> bool:
    """Tell whether a line is of an item that is stored now."""
    id_, failure = id_of(line), _load(line) or {}
    error = failure.get("error")
    is_told = id_ is not None and isinstance(error, str)
    return is_told and id_ in stored and error not in _ABOUT_IDS


def id_of(line: bytes) -> str | None:
    """Give the id in a line; None where there is none, or the line is damaged."""
    id_ = (_load(line) or {}).get("id")
    return id_ if isinstance(id_, str) else None


def _load(line: bytes) -> dict[str, Any] | None:
    """Read a line; None where it is damaged, which a check tells."""
    try:
        failure = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return failure if isinstance(failure, dict) else None
