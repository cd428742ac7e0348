"""What an adapter was made with, as JSON values for the manifest."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

from gulpio2.format.metadata import without_addresses

if TYPE_CHECKING:
    from collections.abc import Callable

    from gulpio2.types import JsonValue

__all__ = ["constructor_arguments", "to_json_value"]

# The manifest must not depend on where the directory was written.
_LEFT_OUT = frozenset({"output_folder"})
# Somebody may hand over a whole table; the manifest wants to know that, not the table.
_MAX_ELEMENTS = 1000
# Containers in containers: one that is in itself has no end.
_MAX_DEPTH = 20
_MAX_CHARACTERS = 200
# Python writes no integer of more than 4300 digits.
_MAX_BITS = 10_000
# Datasets are handed on, and their manifests with them: names of what opens a door,
# and the password of a URL.
_SECRETS = re.compile(
    r"(^|_)(passw(or)?ds?|pwd|passphrase|secrets?|tokens?|credentials?|auth"
    r"|authorization|(api|access|private|secret)_?keys?)\d*(_|$)"
)
# In the query of a URL also the signatures and keys of the large stores.
_QUERY_SECRETS = re.compile(r"(^|_)(sig|signature|key)(_|$)")
_WORD_END = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[-.\s]")
# Up to the last @ before the path. Over HTTP a name without a password is a token.
_URL_PASSWORD = re.compile(r"(\w:/{1,2}[^\s/:@?#]*:)[^\s/?#]*(?=@)")
_URL_TOKEN = re.compile(r"(https?:/{1,2})[^\s/:@?#]+(?=@)", re.IGNORECASE)
_URL_QUERY = re.compile(r"([?&#;]([\w.-]+)=)[^?&#;\s]+")
_NOT_RECORDED = "not recorded"


def constructor_arguments(
    init: Callable[..., None], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, JsonValue]:
    """Name the arguments of a constructor call, defaults included.

    Parameters
    ----------
    init : callable
        The ``__init__`` that is about to be called.
    args, kwargs
        What it is called with, without the instance.

    Returns
    -------
    dict
        Parameter name to JSON value, in the constructor's order. The folder that is
        written to is left out; of a password, a token and the like there is only that
        it was given. A default that a dataclass makes for each object is left out: it
        may be another one each time, as a time of day, and two calls that are equal
        are of one run. Empty where the call does not fit the constructor, which will
        say so itself.
    """
    if init is object.__init__:
        return {}
    signature = inspect.signature(init)
    try:
        bound = signature.bind(None, *args, **kwargs)
    except TypeError:
        return {}
    bound.apply_defaults()
    arguments: dict[str, Any] = {}
    for name, parameter in list(signature.parameters.items())[1:]:
        if parameter.kind is parameter.VAR_KEYWORD:
            # A keyword may have the name of what can be given by its place only.
            arguments.update(
                (f"{name}.{key}" if key in arguments else key, value)
                for key, value in bound.arguments[name].items()
            )
        else:
            arguments[name] = bound.arguments[name]
    return {
        name: _value_of(name, value)
        for name, value in arguments.items()
        if name not in _LEFT_OUT
        and not (name in signature.parameters and _is_of_dataclasses(value))
    }


def _is_of_dataclasses(default: object) -> bool:
    """Tell what stands in a signature for a default that is yet to be made."""
    return type(default).__module__ == "dataclasses"


def _value_of(name: str, value: object, depth: int = 0) -> JsonValue:
    """Give the JSON value of what has this name, unless it is a secret."""
    is_number = value is None or isinstance(value, (bool, int, float))
    if not is_number and _SECRETS.search(_in_words(name)):
        return _NOT_RECORDED
    return to_json_value(value, depth)


def _in_words(name: str) -> str:
    return _WORD_END.sub("_", name).lower()


def to_json_value(value: object, depth: int = 0) -> JsonValue:
    """Give the JSON value that tells most about any value.

    Parameters
    ----------
    value : object
        Anything. Paths become strings, sequences and sets lists, numpy scalars
        Python numbers, classes and functions their dotted names, all else its repr
        without memory addresses: equal calls must give equal manifests. Passwords in
        URLs, and values whose keys name a secret, are left out.
    depth : int, optional
        Containers that it is in; more than 20 are not gone into.

    Returns
    -------
    None, bool, int, float, str, list or dict
        Containers longer than 1000 elements are only named, with their length.
    """
    if value is None or isinstance(value, bool):
        return value
    # An enumeration's member and numpy.float64 become the plain value that they are.
    if isinstance(value, int):
        bits = value.bit_length()
        return int(value) if bits <= _MAX_BITS else f"int of {bits} bits"
    if isinstance(value, float):
        return float(value)
    if isinstance(value, str):
        return _without_password(str.__str__(value))
    if isinstance(value, os.PathLike):
        return _without_password(os.fsdecode(value))
    if isinstance(value, Mapping | list | tuple | AbstractSet):
        return _container_to_json(value, depth)
    if isinstance(value, type) or inspect.isroutine(value):
        return f"{value.__module__}.{value.__qualname__}"
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        scalar: Any = value
        plain = scalar.item()
        # There is no Python number for the longest floats.
        if type(plain).__module__ == "numpy":
            plain = complex(plain) if scalar.dtype.kind == "c" else float(plain)
        return to_json_value(plain)
    try:
        text = _without_password(without_addresses(repr(value)))
    except Exception:  # noqa: BLE001  # of a foreign class, and only a note
        return f"{type(value).__module__}.{type(value).__qualname__}"
    return text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}..."


def _without_password(text: str) -> str:
    """Leave the secrets out of every URL in a text."""
    for pattern in (_URL_PASSWORD, _URL_TOKEN):
        text = pattern.sub(rf"\1({_NOT_RECORDED})", text)
    return _URL_QUERY.sub(_without_secret, text)


def _without_secret(part: re.Match[str]) -> str:
    """Leave the value out of what a query calls by the name of a secret."""
    name = _in_words(part[2])
    if _SECRETS.search(name) or _QUERY_SECRETS.search(name):
        return f"{part[1]}({_NOT_RECORDED})"
    return part[0]


def _container_to_json(
    value: Mapping[Any, Any] | list[Any] | tuple[Any, ...] | AbstractSet[Any],
    depth: int,
) -> JsonValue:
    if len(value) > _MAX_ELEMENTS or depth > _MAX_DEPTH:
        return f"{type(value).__name__} of {len(value)} elements"
    if isinstance(value, Mapping):
        return {
            _without_password(str(key)): _value_of(str(key), element, depth + 1)
            for key, element in value.items()
        }
    elements = [to_json_value(element, depth + 1) for element in value]
    return sorted(elements, key=repr) if isinstance(value, AbstractSet) else elements
