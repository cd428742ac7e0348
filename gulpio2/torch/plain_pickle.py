"""Pickles of plain values and numpy arrays, read so that nothing in them is run.

A pickle is a list of calls. Those that make plain values are harmless whatever their
arguments. Those that make arrays are not: an array of objects over bytes of the file
is an array of pointers that the file chose. So they are called twice: first a stand-in
of each, which only looks at the arguments, and numpy's where none has refused its own.
A pickle has no branches: the second time makes the same calls as the first.
"""

from __future__ import annotations

import io
import math
import pickle
import re
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["load_plain"]

# What makes plain values.
_PLAIN = {
    ("_codecs", "encode"),  # how old protocols write bytes
    ("collections", "OrderedDict"),
    *(
        (module, name)
        for module in ("builtins", "__builtin__")
        for name in ("bytearray", "bytes", "complex", "frozenset", "set")
    ),
}

# Booleans, numbers, texts, times, and objects, which are values of the pickle.
_DTYPE = re.compile(r"[biufc][0-9]{1,2}|[SU][0-9]+|[mM]8|O8?|O4")
_UNITS = {b"Y", b"M", b"W", b"D", b"h", b"m", b"s", b"ms", b"us", b"ns", b"ps", b"fs"}
_UNITS |= {b"as", b"generic"}
# numpy's NPY_NEEDS_INIT, which some releases write with texts and others do not.
_TEXT_FLAGS = (0, 8)
# Of numpy 1; numpy 2 has 64.
_MAX_AXES = 32


def load_plain(data: bytes) -> Any:
    """Read a pickle of plain values and arrays.

    Parameters
    ----------
    data : bytes
        The pickle.

    Returns
    -------
    object
        What it holds.

    Raises
    ------
    pickle.UnpicklingError
        It names something else, or makes an array as numpy does not write it.
    Exception
        Any other: it is damaged.
    """
    looking = _LookingUnpickler(io.BytesIO(data))
    content = looking.load()
    return _ArrayUnpickler(io.BytesIO(data)).load() if looking.has_arrays else content


class _ArrayUnpickler(pickle.Unpickler):
    """Makes plain values and arrays, of a pickle that was looked at."""

    def find_class(self, module_name: str, global_name: str) -> Any:
        if (module_name, global_name) not in _PLAIN | _STAND_INS.keys():
            raise pickle.UnpicklingError(
                f"it names {module_name}.{global_name}, and only plain values and "
                "numpy arrays are read. Write the annotations as JSON"
            )
        return super().find_class(module_name, global_name)


class _LookingUnpickler(_ArrayUnpickler):
    """Makes plain values, and looks at how arrays are made."""

    has_arrays = False

    def find_class(self, module_name: str, global_name: str) -> Any:
        stand_in = _STAND_INS.get((module_name, global_name))
        if stand_in is None:
            return super().find_class(module_name, global_name)
        self.has_arrays = True
        return stand_in


class _Dtype:
    """Stands for a dtype; a state that is not its own would make it another one."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.itemsize = np.dtype(text).itemsize

    @property
    def is_object(self) -> bool:
        return self.text[0] == "O"

    def __setstate__(self, state: Any) -> None:
        expected = np.dtype(self.text).__reduce__()[2]
        _require(type(state) is tuple and len(state) >= 8, "state of a dtype")
        version, order, *rest, flags = state[:8]
        may_be = "|" if self.text[0] in "OSb" or self.text in ("i1", "u1") else "<>"
        _require(type(order) is str and order in tuple(may_be), "byte order")
        _require(type(flags) is int, "flags of a dtype")
        if self.text[0] in "SU":
            _require(flags in _TEXT_FLAGS, "flags of a dtype")
        else:
            _require(flags == expected[7], "flags of a dtype")
        known = [None, None, None, *expected[5:7]]
        _require(list(map(type, rest)) == list(map(type, known)), "state of a dtype")
        _require(rest == known, "state of a dtype")
        if self.text[0] in "mM":
            _require(version == 4 and len(state) == 9, "state of a dtype")
            _require_unit(state[8])
        else:
            _require(version == 3 and len(state) == 8, "state of a dtype")


class _Array:
    """Stands for an array that gets its content by its state."""

    has_state = False

    def __setstate__(self, state: Any) -> None:
        _require(not self.has_state, "second state of an array")
        self.has_state = True
        _require(type(state) is tuple and len(state) == 5, "state of an array")
        version, shape, dtype, fortran, content = state
        _require(version == 1 and type(fortran) in (bool, int), "state of an array")
        _require(type(dtype) is _Dtype, "dtype")
        size = _size_of(shape)
        if dtype.is_object:
            _require(type(content) is list and len(content) == size, "list of objects")
        else:
            _require(type(content) is bytes, "content of an array")
            _require(len(content) == size * dtype.itemsize, "size of an array")


class _Made:
    """Stands for what nothing more is done to."""

    def __setstate__(self, state: Any) -> None:
        raise _unexpected("state")


class _Function(_Made):
    """Stands for a function; a pickle could change the attributes of a function."""

    def __init__(self, look: Callable[..., Any]) -> None:
        self._look = look

    def __call__(self, *arguments: Any) -> Any:
        return self._look(*arguments)


_NDARRAY = _Made()


def _dtype(text: Any, align: Any, copy: Any) -> _Dtype:
    known = type(text) is str and _DTYPE.fullmatch(text)
    _require(known, f"dtype {text!r:.40}")
    # Of one that is no copy, the state would be that of all arrays of the program.
    _require(align in (False, 0) and copy in (True, 1), "dtype")
    return _Dtype(text)


def _reconstruct(kind: Any, shape: Any, dtype: Any) -> _Array:
    plain = kind is _NDARRAY and shape == (0,) and dtype in (b"b", "b")
    _require(plain, "kind of array")
    return _Array()


def _scalar(dtype: Any, content: Any) -> _Made:
    _require(type(dtype) is _Dtype, "dtype")
    _require(not dtype.is_object, "scalar of an object")
    _require(type(content) is bytes, "content of a scalar")
    _require(len(content) == dtype.itemsize, "size of a scalar")
    return _Made()


def _frombuffer(content: Any, dtype: Any, shape: Any, order: Any, *axes: Any) -> _Made:
    _require(type(content) in (bytes, bytearray), "content of an array")
    _require(type(dtype) is _Dtype and not dtype.is_object, "dtype")
    _require(len(content) == _size_of(shape) * dtype.itemsize, "size of an array")
    _require(type(order) is str and order in ("C", "F", "K"), "order of an array")
    if axes:
        _require(len(axes) == 1 and type(axes[0]) is tuple, "axes of an array")
        _require(all(type(axis) is int for axis in axes[0]), "axes of an array")
    return _Made()


def _size_of(shape: Any) -> int:
    _require(type(shape) is tuple and len(shape) <= _MAX_AXES, "shape of an array")
    _require(all(type(edge) is int and edge >= 0 for edge in shape), "shape")
    return math.prod(shape)


def _require_unit(metadata: Any) -> None:
    """Require what numpy writes of the unit of times."""
    _require(type(metadata) is tuple and len(metadata) == 2, "unit of time")
    others, unit = metadata
    _require(others in (None, {}), "unit of time")
    _require(type(unit) is tuple and len(unit) == 4, "unit of time")
    name, *numbers = unit
    _require(type(name) is bytes and name in _UNITS, "unit of time")
    counts = all(type(number) is int and 0 < number < 1 << 31 for number in numbers)
    _require(counts and numbers[1:] == [1, 1], "unit of time")


def _require(holds: object, what: str) -> None:
    if not holds:
        raise _unexpected(what)


def _unexpected(what: str) -> pickle.UnpicklingError:
    return pickle.UnpicklingError(
        f"it has an array with an unexpected {what}: arrays of booleans, numbers, "
        "texts, times and plain values are read. Write the annotations as JSON"
    )


_STAND_INS: dict[tuple[str, str], Any] = {
    ("numpy", "dtype"): _Function(_dtype),
    ("numpy", "ndarray"): _NDARRAY,
    **{
        (f"{module}.{name}", function): stand_in
        for module in ("numpy.core", "numpy._core")
        for name, function, stand_in in (
            ("multiarray", "_reconstruct", _Function(_reconstruct)),
            ("multiarray", "scalar", _Function(_scalar)),
            ("numeric", "_frombuffer", _Function(_frombuffer)),
        )
    },
}
