"""What an adapter tells of itself and of its dataset before a run."""

from __future__ import annotations

import logging
import reprlib
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gulpio2.errors import (
    AdapterContractError,
    GulpError,
    IngestSettingError,
    with_article,
)
from gulpio2.format.metadata import plain_metadata
from gulpio2.format.wording import counted

if TYPE_CHECKING:
    from gulpio2.types import Adapter

__all__ = [
    "AdapterFacts",
    "ask",
    "ask_for_facts",
    "count_items",
    "is_utf8",
    "item_ids",
    "require_items",
    "unsendable",
    "warn_of_ids_beyond_utf8",
]

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AdapterFacts:
    """What the files beside the chunks will say.

    It is asked for before the first item is stored, so that an adapter that cannot
    tell it is refused in time.
    """

    options: Mapping[str, Any]
    """The arguments that it was made with, where it knows them."""
    labels: Mapping[str, int] | None
    """Label to index; None without labels."""
    metainfo: Mapping[str, Any]
    """What holds for the dataset as a whole."""


def ask_for_facts(adapter: Adapter) -> AdapterFacts:
    """Ask for all that is told of a dataset beside its items.

    Raises
    ------
    AdapterContractError
        A method of the adapter raises, or gives something that JSON cannot hold.
    """
    labels = ask(adapter, "label_mapping")
    if labels is not None:
        labels = _labels(adapter, labels)
    options = ask(adapter, "describe")
    metainfo = ask(adapter, "metainfo")
    return AdapterFacts(
        {} if options is None else plain_metadata(options, _of(adapter, "describe()")),
        labels,
        {} if metainfo is None else plain_metadata(metainfo, _of(adapter, "metainfo")),
    )


def count_items(adapter: Adapter) -> int:
    """Count the items of an adapter.

    Raises
    ------
    AdapterContractError
        It is no adapter at all: it has no ``iter_data``, or is a class; and as `ask`.
    """
    if isinstance(adapter, type):
        raise AdapterContractError(
            f"the adapter is the class {adapter.__name__}; give an instance of it"
        )
    if not callable(getattr(adapter, "iter_data", None)):
        raise AdapterContractError(
            f"the adapter is {reprlib.repr(adapter)}, which has no iter_data. Give "
            "one of gulpio2.adapters, such as VideoFolderAdapter(folder, "
            "output_folder), or your own"
        )
    try:
        return len(adapter)
    except (Exception, SystemExit) as cause:
        raise _failed(adapter, "__len__()", cause) from cause


def require_items(adapter: Adapter) -> int:
    """Count the items of an adapter, or refuse where there are none.

    Raises
    ------
    IngestSettingError
        There are none.
    """
    num_items = count_items(adapter)
    if num_items == 0:
        options = ask(adapter, "describe")
        given = options if isinstance(options, Mapping) else {}
        made_with = ", ".join(f"{key}={value!r}" for key, value in given.items())
        raise IngestSettingError(
            f"there are no items to ingest: {type(adapter).__name__}({made_with}) "
            "found none. Check the folder or the list that it was given"
        )
    return num_items


def item_ids(adapter: Adapter) -> list[str] | None:
    """List the ids of an adapter by position; None if it does not list them.

    None also where a subclass has its own `iter_data` or ``len``, and the list of ids
    of its base: it may give further items, or other ids.

    Raises
    ------
    AdapterContractError
        They are more or fewer than its items; and as `ask`.
    """
    ids = ask(adapter, "item_ids") if _lists_its_own_items(adapter) else None
    if ids is None:
        return None
    try:
        names = [str(id_) for id_ in ids]
    except (Exception, SystemExit) as cause:
        raise _failed(adapter, "item_ids()", cause) from cause
    num_items = count_items(adapter)
    if len(names) != num_items:
        raise AdapterContractError(
            f"the adapter {type(adapter).__name__} lists "
            f"{counted(len(names), 'id')} for {counted(num_items, 'item')}: "
            "item_ids() must give one for each that len() counts, or None"
        )
    return names


def warn_of_ids_beyond_utf8(ids: Iterable[str]) -> None:
    """Warn of ids that can be stored and read, but not be put into an index."""
    found = [id_ for id_ in ids if not is_utf8(id_)]
    if found:
        _logger.warning(
            "%s no text in UTF-8, as of a file whose name is none: %r%s. Such a "
            "directory can be read, but has no index, and so no table, query or view. "
            "Rename the files before ingesting them",
            f"{counted(len(found), 'id')} {'are' if found[1:] else 'is'}",
            min(found),
            f" (and {len(found) - 1} more)" if found[1:] else "",
        )


def is_utf8(text: str) -> bool:
    """Tell whether a text can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def ask(adapter: Adapter, name: str) -> Any:
    """Call a method that an adapter may have, or take its value; None without it.

    Raises
    ------
    AdapterContractError
        The method raises; the message names the line. Errors of this package are raised
        as they are.
    """
    try:
        found = getattr(adapter, name, None)
        return found() if callable(found) else found
    except GulpError:
        raise
    except (Exception, SystemExit) as cause:
        raise _failed(adapter, name, cause) from cause


def _lists_its_own_items(adapter: Adapter) -> bool:
    for cls in type(adapter).__mro__:
        if "item_ids" in vars(cls):
            return True
        if "iter_data" in vars(cls) or "__len__" in vars(cls):
            break
    return "item_ids" in getattr(adapter, "__dict__", {})


def _failed(adapter: Adapter, name: str, cause: BaseException) -> AdapterContractError:
    place = traceback.extract_tb(cause.__traceback__)[-1]
    return AdapterContractError(
        f"{_of(adapter, name)} failed: {type(cause).__name__}: {cause} "
        f"({place.filename}:{place.lineno}). Nothing was stored"
    )


def _of(adapter: Adapter, name: str) -> str:
    return f"{name} of the adapter {type(adapter).__name__}"


def _labels(adapter: Adapter, labels: Any) -> dict[str, int]:
    if not isinstance(labels, Mapping):
        raise AdapterContractError(
            f"{_of(adapter, 'label_mapping()')} gives "
            f"{with_article(type(labels).__name__)}; it must give a dict of labels to "
            "their numbers, or None"
        )
    plain = plain_metadata(labels, _of(adapter, "label_mapping()"))
    owners: dict[int, str] = {}
    for label, number in plain.items():
        if type(number) is not int or number < 0:
            raise AdapterContractError(
                f"{_of(adapter, 'label_mapping()')} gives {number!r} for {label!r}; a "
                "label has a whole number, from 0 on"
            )
        if owners.setdefault(number, label) != label:
            raise AdapterContractError(
                f"{_of(adapter, 'label_mapping()')} gives {number} for {label!r} and "
                f"for {owners[number]!r}; each label has a number of its own"
            )
    return plain


def unsendable(adapter: Adapter, where: str, cause: Exception) -> AdapterContractError:
    """Make the error of an adapter that cannot be pickled to be sent elsewhere."""
    return AdapterContractError(
        f"the adapter {type(adapter).__name__} cannot be sent to {where}, because it "
        f"cannot be pickled: {cause}. Keep open files, connections, generators and "
        "functions defined inside of functions out of its attributes"
    )
