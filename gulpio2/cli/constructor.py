"""What an adapter's constructor takes, read from its signature and docstring."""

from __future__ import annotations

import builtins
import collections.abc
import inspect
import re
import sys
import types
import typing
from dataclasses import dataclass
from enum import Enum
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

__all__ = ["OUTPUT", "Parameter", "constructor_parameters", "summary_of"]

OUTPUT = "output_folder"
_SECTION = re.compile(r"\n[ \t]*(\w[\w ]*)\n[ \t]*-{3,}[ \t]*\n")
_PLAIN = (bool, int, float, str)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a constructor."""

    name: str
    required: bool
    """It has no default."""
    default: Any
    """None where it is required."""
    kinds: frozenset[type]
    """Types that it takes, of bool, int, float, str and Path; {str} where unknown."""
    optional: bool
    """None may be given."""
    choices: tuple[Any, ...]
    """All values that may be given, each by its text, a member of an enumeration by its
    name; empty: anything."""
    is_sequence: bool
    """It takes several values, each of one of `kinds`."""
    passing: inspect._ParameterKind
    """How it is handed over."""
    help: str
    """Its paragraph in the docstring, on one line."""

    @property
    def is_flag(self) -> bool:
        """It is either true or false, and has a default."""
        return not (self.required or self.choices or self.is_sequence) and (
            self.kinds == {bool}
        )


def constructor_parameters(cls: type) -> list[Parameter]:
    """Describe what a class's constructor takes, in its order.

    Parameters
    ----------
    cls : type
        The class. Nothing is called.

    Returns
    -------
    list of Parameter
        Without ``self`` and ``**kwargs``.
    """
    init = cls.__init__  # type: ignore[misc]  # only read
    if init is object.__init__:
        return []
    texts = _parameter_texts(cls)
    # The constructor of a class that is not written in Python has no module.
    module = getattr(init, "__module__", None)
    names = vars(sys.modules.get(module or "", builtins))
    return [
        _describe(parameter, names, texts.get(name, ""))
        for name, parameter in list(inspect.signature(init).parameters.items())[1:]
        if parameter.kind is not parameter.VAR_KEYWORD
    ]


def summary_of(cls: type) -> str:
    """Give the first paragraph of a class's docstring, or a line with its name."""
    text = inspect.cleandoc(cls.__doc__ or "").partition("\n\n")[0]
    return _plain(" ".join(text.split())) or f"Items of {cls.__name__}."


def _describe(
    parameter: inspect.Parameter, names: dict[str, Any], text: str
) -> Parameter:
    required = parameter.default is parameter.empty
    default = None if required else parameter.default
    kinds: set[type] = set()
    choices: list[Any] = []
    optional = is_sequence = False
    if parameter.annotation is not parameter.empty:
        of_one: list[Any] = []
        for part in _alternatives(_evaluate(parameter.annotation, names)):
            if part is None or part is type(None):
                optional = True
            elif _is_sequence(part):
                is_sequence = True
                of_one += get_args(part)
            else:
                of_one.append(part)
        for part in of_one:
            if get_origin(part) is Literal:
                values = [value for value in get_args(part) if value is not None]
                optional = optional or len(values) < len(get_args(part))
                choices += values
            elif _is_enumeration(part):
                choices += part
            elif (kind := _kind(part)) is not None:
                kinds.add(kind)
        of_choices = {_kind(type(value)) or str for value in choices}
        if kinds or (of_choices == {bool} and len(set(choices)) == 2):
            choices = []  # they are not all that may be given, or they are a switch
        kinds |= of_choices
    if isinstance(default, (list, tuple, set, frozenset)):
        is_sequence = True
        kinds = kinds or set(filter(None, map(_kind, map(type, default))))
    elif not kinds and (kind := _kind(type(default))) is not None:
        kinds = {kind}
    if isinstance(default, Enum) and not choices:
        choices = list(type(default))
    if str in kinds:
        kinds.discard(Path)  # what takes both takes a path as it was written
    if default is None and not required:
        optional = True
    return Parameter(
        name=parameter.name,
        required=required and parameter.kind is not parameter.VAR_POSITIONAL,
        default=default,
        kinds=frozenset(kinds or {str}),
        optional=optional,
        choices=tuple(choices),
        is_sequence=is_sequence or parameter.kind is parameter.VAR_POSITIONAL,
        passing=parameter.kind,
        help=text,
    )


def _kind(annotation: Any) -> type | None:
    """Give the type of one value, if the command line can give such values."""
    if annotation in _PLAIN:
        return annotation  # type: ignore[no-any-return]  # one of these types
    is_path = isinstance(annotation, type) and issubclass(annotation, PathLike)
    return Path if is_path else None


def _is_enumeration(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Enum)


def _evaluate(annotation: Any, names: dict[str, Any]) -> Any:
    """Give what an annotation says; `Any` where that cannot be found out.

    `typing.get_type_hints` gives up on the first name that is imported for type
    checkers only, and such names are usual.
    """
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, {}, _Names(names))  # noqa: S307  # the adapter's own code
    except Exception:  # noqa: BLE001  # whatever stands there, the parameter remains
        return Any


class _Names(dict[str, Any]):
    """The names of a module, and those that are usual in annotations."""

    def __missing__(self, name: str) -> Any:
        for module in (builtins, typing, collections.abc):
            if hasattr(module, name):
                return getattr(module, name)
        return Any


def _alternatives(annotation: Any) -> list[Any]:
    if get_origin(annotation) in (Union, types.UnionType):
        return [part for arg in get_args(annotation) for part in _alternatives(arg)]
    return [annotation]


def _is_sequence(annotation: Any) -> bool:
    kind = get_origin(annotation) or annotation
    # A flag can be gone through, but is one value.
    return (
        isinstance(kind, type)
        and issubclass(kind, collections.abc.Iterable)
        and not issubclass(kind, (str, bytes, collections.abc.Mapping, Enum))
    )


def _parameter_texts(cls: type) -> dict[str, str]:
    """Read the Parameters section of a numpydoc docstring."""
    texts: dict[str, str] = {}
    for docstring in (cls.__init__.__doc__, cls.__doc__):  # type: ignore[misc]  # only read
        sections = _SECTION.split("\n" + inspect.cleandoc(docstring or ""))
        for title, body in zip(sections[1::2], sections[2::2], strict=True):
            if title.strip() == "Parameters":
                texts.update(_entries(body))
    return texts


def _entries(body: str) -> dict[str, str]:
    texts: dict[str, str] = {}
    current: list[str] = []
    for line in body.splitlines():
        if line and not line[0].isspace():
            current = [
                name.strip().lstrip("*") for name in line.partition(":")[0].split(",")
            ]
            texts.update(dict.fromkeys(current, ""))
        else:
            for name in current:
                texts[name] = f"{texts[name]} {_plain(line)}".strip()
    return texts


def _plain(line: str) -> str:
    """Take the marks of reStructuredText away."""
    return line.strip().replace("``", "").replace("`", "")
