"""How a map is written to a file and read from it."""

from __future__ import annotations

import json
import pickle
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gulpio2.errors import GulpError
from gulpio2.format.edits import renew_checks
from gulpio2.format.gmeta import load_ordered_json
from gulpio2.storage.local import LocalStore

if TYPE_CHECKING:
    from gulpio2.types import StrPath

__all__ = [
    "AbstractSerializer",
    "JSONSerializer",
    "PickleSerializer",
    "json_serializer",
    "pickle_serializer",
    "reads_json",
    "serializer_of",
    "writes_json",
]


class AbstractSerializer(ABC):
    """Writes a thing to a file, and reads it back."""

    @abstractmethod
    def load(self, file_name: StrPath) -> Any:
        """Read what `dump` wrote."""

    @abstractmethod
    def dump(self, thing: Any, file_name: StrPath) -> None:
        """Write a thing, replacing the file."""


class JSONSerializer(AbstractSerializer):
    """JSON with the defaults of ``json.dump``: what a gulp directory holds."""

    def load(self, file_name: StrPath) -> Any:
        """Read JSON; mappings are ``OrderedDict`` at every level.

        Raises
        ------
        MetaFileError
            A ``ValueError``: the file is not JSON.
        """
        path = Path(file_name)
        data = LocalStore(path.parent).read(path.name)
        return load_ordered_json(data, where=str(file_name))

    def dump(self, thing: Any, file_name: StrPath) -> None:
        """Write JSON on one line, ASCII only.

        Where a map replaces a file, the checks of entries that were edited since that
        was written are made anew, as by ``GulpChunk.open("ab")``, in memory too.
        """
        text = json.dumps(thing)
        before = self._replaced(file_name)
        if before is not None and renew_checks(thing, before):
            text = json.dumps(thing)
        Path(file_name).write_text(text, encoding="ascii")

    def _replaced(self, file_name: StrPath) -> Mapping[str, Any] | None:
        """Give the map that is there; None where there is none that can be read."""
        try:
            before = JSONSerializer.load(self, file_name)
        except (GulpError, OSError):
            return None
        return before if isinstance(before, Mapping) else None


class PickleSerializer(AbstractSerializer):
    """Binary pickle.

    Kept for programs that use it. It is never chosen for anybody: loading a pickle
    runs whatever code the file asks for, so use it only on files of your own.
    """

    def load(self, file_name: StrPath) -> Any:
        """Unpickle, which runs code from the file."""
        with Path(file_name).open("rb") as file:
            return pickle.load(file)  # noqa: S301  # the caller chose this class

    def dump(self, thing: Any, file_name: StrPath) -> None:
        """Pickle."""
        data = pickle.dumps(thing)  # before what is there is given up for it
        Path(file_name).write_bytes(data)


def serializer_of(given: Any) -> Any:
    """Give a serializer as it is, and that of JSON for None.

    Raises
    ------
    TypeError
        It has none of the functions of one; of a client's own one may do.
    """
    if given is None:
        return json_serializer
    if not any(callable(getattr(given, name, None)) for name in ("load", "dump")):
        raise TypeError(
            f"serializer is {reprlib.repr(given)}, expected an AbstractSerializer of "
            "gulpio2.fileio, with the methods load and dump, or None for JSON"
        )
    return given


def reads_json(serializer: Any) -> bool:
    """Tell whether a serializer reads as `load_ordered_json` does."""
    return type(serializer) is JSONSerializer


def writes_json(serializer: Any) -> bool:
    """Tell whether a serializer writes as `JSONSerializer` does.

    One of a client may be a class itself, or have its functions elsewhere than in one.
    """
    return getattr(serializer.dump, "__func__", None) is JSONSerializer.dump


json_serializer = JSONSerializer()
pickle_serializer = PickleSerializer()
