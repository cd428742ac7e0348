"""A program for an adapter, written out of its constructor's signature."""

from __future__ import annotations

import math
import re
import stat
import sys
import textwrap
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gulpio2.cli.adapter_lookup import find_adapter
from gulpio2.cli.constructor import (
    OUTPUT,
    Parameter,
    constructor_parameters,
    summary_of,
)
from gulpio2.errors import StorageError
from gulpio2.storage.paths import real_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["program_name", "program_text", "register_adapter"]

_MARK = "Written by gulp2_register_adapter."
# Characters of a text in one line of the program; with its indentation below 79.
_WIDTH = 56
_PLAIN = (bool, int, float, str, type(None))

_PROGRAM = '''\
#!/usr/bin/env python3
"""{title}

{mark}
"""

import argparse
{imports}
from {module} import {name}

from gulpio2 import GulpIngestor


def parse_arguments():
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description={summary},{more}
    )
{options}
    return parser.parse_args()


def main():
    """Ingest."""
    arguments = parse_arguments()
    adapter = {name}({call})
    ingestor = GulpIngestor(
        adapter,
        arguments.output_folder,
        int(arguments.videos_per_chunk),
        int(arguments.num_workers),
    )
    ingestor()


if __name__ == "__main__":
    main()
'''


def register_adapter(module: str, class_name: str) -> tuple[Path, str, list[str]]:
    """Write the program of an adapter into the working directory.

    Parameters
    ----------
    module : str
        Dotted name; it may lie in the working directory.
    class_name : str
        The adapter's class.

    Returns
    -------
    path : Path
        The program, executable.
    text : str
        What is in it.
    left_out : list of str
        Parameters that it cannot give: their default is no plain value.

    Raises
    ------
    click.UsageError
        There is no such module or class.
    StorageError
        A folder of that name is there, or a file that this function has not written,
        or it cannot be written.
    """
    if module.endswith(".py"):
        raise click.UsageError(
            f"{module!r} is a file; give the name it is imported by, as "
            f"{Path(module).stem!r}."
        )
    cls = find_adapter(f"{module}:{class_name}")
    text = program_text(cls, module)
    path = Path(program_name(class_name))
    if path.is_dir():
        raise StorageError(
            None,
            f"{str(path)!r}, the name of the program, is a folder here. Run this in "
            "another folder, with PYTHONPATH naming this one if the module lies here",
        )
    try:
        if path.exists() and _MARK not in path.read_text("utf-8", errors="replace"):
            raise StorageError(
                None,
                f"{path} is there already, and was not written by "
                "gulp2_register_adapter. Move it away first",
            )
        path.write_text(text, "utf-8")
        executable = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH
        path.chmod(path.stat().st_mode | executable)
    except StorageError:
        raise
    except OSError as cause:
        where = real_path(path)
        raise StorageError(
            cause.errno, f"cannot write {where}: {cause.strerror}"
        ) from cause
    left_out = [p.name for p in constructor_parameters(cls) if not _can_be_given(p)]
    return path, text, left_out


def program_name(class_name: str) -> str:
    """Name the program of a class.

    Examples
    --------
    >>> program_name("MyGreatAdapter"), program_name("Custom20BNX")
    ('my_great_adapter', 'custom20_b_n_x')
    """
    return re.sub(r"(?<!^)(?=[A-Z])", "_", class_name).lower()


def program_text(cls: type, module: str) -> str:
    """Write the program of a class.

    Parameters
    ----------
    cls : type
        The adapter's class.
    module : str
        What it is imported from.

    Returns
    -------
    str
        Python 3.10 and newer: what has no default is positional, in the constructor's
        order, the rest are options, flags for what is true or false. A parameter whose
        default is no plain value is left to the constructor.
    """
    parameters = [p for p in constructor_parameters(cls) if _can_be_given(p)]
    names = {parameter.name for parameter in parameters}
    takes_path = any(
        parameter.kinds == {Path} or isinstance(parameter.default, Path)
        for parameter in parameters
    )
    imports = ["from pathlib import Path"] if takes_path else []
    enumerations = {kind for each in parameters if (kind := _enumeration(each))}
    imports += sorted(
        f"from {kind.__module__} import {kind.__name__} as {_alias(kind)}"
        for kind in enumerations
    )
    lines = [_add_argument(parameter) for parameter in parameters]
    if OUTPUT not in names:
        lines.append(_call_add(_quoted(OUTPUT), 'help="the gulp directory"'))
    for name, default, what in (
        ("videos_per_chunk", 100, "items in one chunk"),
        ("num_workers", 4, "worker processes"),
    ):
        if name not in names:
            lines.append(
                _call_add(
                    f'"--{name}"', "type=int", f"default={default}", f'help="{what}"'
                )
            )
    summary = summary_of(cls)
    if "%(prog)" in summary:  # then argparse takes it for a format
        summary = summary.replace("%", "%%")
    # argparse refuses a second --help; -h stays its help.
    more = '\n        conflict_handler="resolve",' if "help" in names else ""
    return _PROGRAM.format(
        title=f"Gulp what {cls.__name__} yields.",
        mark=_MARK,
        imports="".join(f"{line}\n" for line in imports),
        module=module,
        name=cls.__name__,
        summary=_literal(summary),
        more=more,
        options="\n".join(lines),
        call=_call(parameters),
    )


def _can_be_given(parameter: Parameter) -> bool:
    default = parameter.default
    if isinstance(default, (list, tuple, set, frozenset)):
        return all(type(value) in _PLAIN for value in default)
    if isinstance(default, Enum):
        return _enumeration(parameter) is not None
    return type(default) in _PLAIN or isinstance(default, Path)


def _enumeration(parameter: Parameter) -> type[Enum] | None:
    """Give the enumeration whose members a parameter takes, if it can be imported."""
    kinds = set(map(type, parameter.choices))
    if len(kinds) != 1 or parameter.is_sequence:
        return None
    (kind,) = kinds
    module = sys.modules.get(kind.__module__)
    is_known = getattr(module, kind.__name__, None) is kind
    return kind if issubclass(kind, Enum) and is_known else None


def _alias(kind: type[Enum]) -> str:
    """Name an enumeration in a program: two may have one name in their modules."""
    return f"{kind.__module__}_{kind.__name__}".replace(".", "_")


def _add_argument(parameter: Parameter) -> str:
    """Write the call that adds one parameter."""
    name, default = parameter.name, parameter.default
    positional = parameter.required or _is_variadic(parameter)
    parts = [_quoted(name if positional else f"--{name}")]
    if parameter.is_flag and default is not False:  # None is neither
        parts += ["action=argparse.BooleanOptionalAction", f"default={default}"]
    elif parameter.is_flag:
        parts.append('action="store_true"')
    else:
        if kind := _type(parameter):
            parts.append(f"type={kind}")
        if enumeration := _enumeration(parameter):
            names = ",".join(member.name for member in enumeration)
            parts.append(f"choices=list({_alias(enumeration)})")
            if not positional:  # whose name it would take the place of
                parts.append(f"metavar={_quoted('{' + names + '}')}")
        elif parameter.choices and not parameter.is_sequence:
            parts.append(f"choices={_quoted(_choices(parameter))}")
        if _is_variadic(parameter):
            parts.append('nargs="*"')
        elif not positional:
            # An adapter may do without the folder, and a program may not.
            needed = name == OUTPUT and default is None
            value = _of_kind(default, _quoted(default))
            parts.append("required=True" if needed else f"default={value}")
    if parameter.help:
        parts.append(f"help={_literal(parameter.help.replace('%', '%%'))}")
    return _call_add(*parts)


def _call_add(*parts: str) -> str:
    one_line = f"    parser.add_argument({', '.join(parts)})"
    if len(one_line) < 80 and "\n" not in one_line:
        return one_line
    return "\n".join(
        ["    parser.add_argument(", *(f"        {part}," for part in parts), "    )"]
    )


def _choices(parameter: Parameter) -> list[Any]:
    """List what may be given; what no program can write, by its text."""
    return [
        value if type(value) in _PLAIN else str(value) for value in parameter.choices
    ]


def _type(parameter: Parameter) -> str:
    """Write what makes a value of a text; nothing where the text is the value."""
    kinds = parameter.kinds
    if enumeration := _enumeration(parameter):
        name = _alias(enumeration)
        kind = f"lambda text: {{each.name: each for each in {name}}}.get(text, text)"
    elif parameter.choices and (len(kinds) > 1 or bool in kinds):
        values = _quoted(_choices(parameter))
        kind = f"lambda text: {{str(each): each for each in {values}}}.get(text, text)"
    elif kinds == {int}:
        kind = "int"
    elif kinds == {bool}:
        kind = 'lambda text: ["false", "true"].index(text.lower()) == 1'
    elif kinds and kinds <= {int, float}:
        kind = "float"
    elif kinds == {Path}:
        kind = "Path"
    else:
        kind = ""
    if not parameter.is_sequence or _is_variadic(parameter):
        return kind
    parts = 'text.split(",")'
    if kind:
        of_one = kind if kind.isidentifier() else f"({kind})"
        parts = f"[{of_one}(part) for part in {parts}]"
    return f"lambda text: {_of_kind(parameter.default, parts)}"


def _of_kind(default: Any, values: str) -> str:
    """Write what makes of a list what an adapter has as its default."""
    kind = type(default)
    return f"{kind.__name__}({values})" if kind in (tuple, set, frozenset) else values


def _call(parameters: Sequence[Parameter]) -> str:
    """Write what stands between the brackets of the constructor's call."""
    variadic = any(_is_variadic(parameter) for parameter in parameters)

    def arguments() -> Iterator[str]:
        for parameter in parameters:
            value = f"arguments.{parameter.name}"
            if _is_variadic(parameter):
                yield f"*{value}"
            elif parameter.passing is parameter.passing.POSITIONAL_ONLY or (
                variadic and parameter.passing is not parameter.passing.KEYWORD_ONLY
            ):
                yield value
            else:
                yield f"{parameter.name}={value}"

    lines = [f"\n        {argument}," for argument in arguments()]
    return "".join([*lines, "\n    "]) if lines else ""


def _is_variadic(parameter: Parameter) -> bool:
    return parameter.passing is parameter.passing.VAR_POSITIONAL


def _literal(text: str) -> str:
    """Write a text as string literals, one to a line."""
    pieces = textwrap.wrap(text, _WIDTH, drop_whitespace=False) or [""]
    return f"\n{'':8}".join(_quoted(piece) for piece in pieces)


def _quoted(value: Any) -> str:
    """Write a plain value, or a list of them, with double quotes where they serve.

    Examples
    --------
    >>> print(_quoted([".a", 'say "b"', 2, None]))
    [".a", 'say "b"', 2, None]
    """
    if isinstance(value, (list, tuple, set, frozenset)):
        values = sorted(value) if isinstance(value, (set, frozenset)) else value
        return f"[{', '.join(_quoted(element) for element in values)}]"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'  # there is no word of Python for these
    if isinstance(value, Path):
        return f"Path({_quoted(str(value))})"
    if isinstance(value, Enum):
        return f"{_alias(type(value))}.{value.name}"
    if not isinstance(value, str) or '"' in value:
        return repr(value)
    # Python prefers double quotes for a text that holds a single one.
    text = repr(f"'{value}")
    return text[0] + text[2:]
