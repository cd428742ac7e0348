"""An adapter's constructor as arguments and options of a command."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gulpio2.cli.constructor import OUTPUT, Parameter, constructor_parameters
from gulpio2.cli.options import given_once
from gulpio2.cli.parameter_types import Items, NumberOrText, OrNone, ParamType

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ["adapter_options", "make_adapter"]

# Before the names of values, so that they never meet those of the command itself.
_PREFIX = "adapter_"
# How a docstring says that a parameter is there for old callers only.
_WITHOUT_EFFECT = "Accepted and without effect"


def adapter_options(cls: type, taken: Collection[str] = ()) -> list[click.Parameter]:
    """Give the command line form of a constructor.

    Parameters
    ----------
    cls : type
        The adapter's class.
    taken : collection of str
        Names of the command's own options; a parameter of such a name becomes
        ``--adapter-<name>``.

    Returns
    -------
    list of click.Parameter
        What has no default is positional, in the constructor's order; the rest are
        options. The output folder is left out.
    """
    return [
        _positional(parameter)
        if parameter.required or parameter.passing is parameter.passing.VAR_POSITIONAL
        else _option(parameter, taken)
        for parameter in constructor_parameters(cls)
        if parameter.name != OUTPUT
    ]


def make_adapter(cls: type, given: Mapping[str, Any], output: Path) -> Any:
    """Make the adapter out of what was given.

    Parameters
    ----------
    cls : type
        Its class.
    given : mapping
        What stood on the command line, by the names that `adapter_options` gave;
        for all else the constructor has its defaults.
    output : Path
        The output folder, for constructors that take one.
    """
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for parameter in constructor_parameters(cls):
        key = _PREFIX + parameter.name
        if parameter.name == OUTPUT:
            value: Any = str(output)
        elif key in given:
            value = _value(parameter, given[key])
        elif parameter.passing is parameter.passing.VAR_POSITIONAL:
            continue
        else:
            value = parameter.default
        if parameter.passing is parameter.passing.VAR_POSITIONAL:
            args.extend(value)
        elif parameter.passing is parameter.passing.KEYWORD_ONLY:
            kwargs[parameter.name] = value
        else:
            args.append(value)
    return cls(*args, **kwargs)


def _positional(parameter: Parameter) -> click.Parameter:
    several = parameter.passing is parameter.passing.VAR_POSITIONAL
    name = parameter.name.upper()
    return click.Argument(
        [_PREFIX + parameter.name],
        metavar=f"[{name}]..." if several else name,
        type=_type(parameter),
        nargs=-1 if several else 1,
        help=_sentence(parameter.help),
    )


def _option(parameter: Parameter, taken: Collection[str]) -> click.Parameter:
    name = parameter.name.replace("_", "-").strip("-")
    if name in taken:
        name = f"adapter-{name}"
    default, text = parameter.default, _sentence(parameter.help)
    attrs: dict[str, Any] = {"hidden": text.startswith(_WITHOUT_EFFECT)}
    if parameter.is_flag:
        names = f"--{name}/--no-{name}" if default else f"--{name}"
        return click.Option(
            [names, _PREFIX + parameter.name],
            is_flag=True,
            default=default,
            show_default=bool(default),
            help=text,
            **attrs,
        )
    if parameter.optional and default is not None:
        text = f"{text} Empty (''): None.".strip()
    # What a dataclass makes anew each time is nothing that could be shown.
    is_made = type(default).__name__ == "_HAS_DEFAULT_FACTORY_CLASS"
    if default not in (None, "", ()) and not is_made:
        # Said here and not to click, which would make a text of any object.
        text = f"{text}  [default: {_shown(default)}]".strip()
    return click.Option(
        [f"--{name}", _PREFIX + parameter.name],
        type=_type(parameter),
        multiple=True,
        callback=None if parameter.is_sequence else given_once,
        help=text,
        **attrs,
    )


def _type(parameter: Parameter) -> ParamType:
    """Give the type of one value; of a sequence, of values with commas between."""
    kinds = parameter.kinds
    kind: ParamType
    if parameter.choices:
        kind = click.Choice(parameter.choices)
    elif kinds == {bool}:
        kind = click.BOOL
    elif kinds == {int}:
        kind = click.INT
    elif kinds <= {int, float}:
        kind = click.FLOAT
    elif kinds == {str}:
        kind = click.STRING
    elif kinds == {Path}:
        kind = click.Path(path_type=Path)
    else:
        kind = NumberOrText()
    if parameter.passing is parameter.passing.VAR_POSITIONAL:
        return kind  # of each word
    if parameter.is_sequence:
        return Items(kind)
    return (
        OrNone(kind) if parameter.optional and parameter.default is not None else kind
    )


def _value(parameter: Parameter, value: Any) -> Any:
    """Give the constructor's form of a parsed value."""
    of_words = parameter.passing is parameter.passing.VAR_POSITIONAL
    if parameter.is_sequence and not (parameter.required or of_words):
        return [element for group in value for element in group]
    return value


def _shown(default: Any) -> str:
    if isinstance(default, (list, tuple, set, frozenset)):
        return ",".join(map(_shown, default))
    return default.name if isinstance(default, Enum) else str(default)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
