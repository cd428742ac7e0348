"""Whether two processes have the same program of an adapter.

A process that has run for days has the program as it was then, and another machine may
have another version, with a class of the same name.
"""

from __future__ import annotations

import inspect
import sys
from types import CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from gulpio2.format.checksum import crc32_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["Program", "differs", "program_of"]

# Name of a module and a function, to the CRC-32 of what it does.
Program = dict[str, int]

# How functions are compiled: two processes that differ in it cannot be compared.
_PYTHON = f"{sys.version} -O{sys.flags.optimize}"
# A name in functions whose assert statements pytest has rewritten.
_REWRITTEN = "@pytest_ar"
# In place of the check of such a function: it equals every other.
_ANY = -1


def program_of(adapter: object) -> Program:
    """Give checks of all functions in the module of an adapter's class.

    Also in those of its base classes that are adapters. Constants and other modules
    are not looked at.
    """
    program = {_PYTHON: 0}
    classes = [cls for cls in type(adapter).__mro__ if hasattr(cls, "iter_data")]
    for name in dict.fromkeys(cls.__module__ for cls in classes):
        module = sys.modules.get(name)
        # A script's own module has another name in its workers.
        if module is not None and name not in {"__main__", "__mp_main__"}:
            for path, function in _functions(vars(module), name, set()):
                code = function.__code__
                text = _text(code).encode("utf-8", "replace")
                is_known = _REWRITTEN not in _names(code)
                program[path] = crc32_of(text) if is_known else _ANY
    return program


def differs(ours: Program, theirs: Program) -> str | None:
    """Name a function that is not the same in two processes, or is in one alone.

    None if there is none, or nobody can tell, as with another Python.
    """
    if _PYTHON not in theirs:
        return None
    for path in {**ours, **theirs}:
        checks = {ours.get(path), theirs.get(path)}
        if len(checks) > 1 and _ANY not in checks:
            return path
    return None


def _functions(
    members: Mapping[str, Any], module: str, seen: set[int]
) -> Iterator[tuple[str, FunctionType]]:
    """Give functions, and those of classes, that were written in a module."""
    for member in members.values():
        found = _unwrapped(member)
        # By its type: a proxy says of itself what it stands for, or raises.
        is_class = issubclass(type(found), type)
        if not is_class and type(found) is not FunctionType:
            continue
        if id(found) in seen or getattr(found, "__module__", "") != module:
            continue
        seen.add(id(found))
        if is_class:
            yield from _functions(vars(found), module, seen)
        else:
            yield f"{module}.{found.__qualname__}", found


def _unwrapped(member: Any) -> Any:
    """Give what is behind decorators, without asking an object for what it may make up.

    A mock has any attribute, and a setting that is loaded late may raise any error.
    """
    seen: set[int] = set()
    while id(member) not in seen:
        seen.add(id(member))
        if type(member) is property:
            member = member.fget
        elif type(member) in (staticmethod, classmethod, MethodType):
            member = member.__func__
        else:
            member = inspect.getattr_static(member, "__wrapped__", member)
    return member


def _names(code: CodeType) -> set[str]:
    names = {*code.co_names}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names(constant)
    return names


def _text(constant: object) -> str:
    """Describe code, or a constant of it, by what it does and not by where it is."""
    if isinstance(constant, CodeType):
        parts = (constant.co_names, constant.co_varnames, constant.co_freevars)
        inside = ",".join(map(_text, constant.co_consts))
        return f"{constant.co_code.hex()} {parts} [{inside}]"
    if isinstance(constant, tuple):
        return f"({','.join(map(_text, constant))})"
    if isinstance(constant, frozenset):  # in another order in each process
        return f"{{{','.join(sorted(map(_text, constant)))}}}"
    return repr(constant)
