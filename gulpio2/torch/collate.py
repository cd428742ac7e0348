"""Samples to batches."""

from __future__ import annotations

import copy
import reprlib
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from gulpio2._optional import require
from gulpio2.torch.sending import require_sendable

__all__ = [
    "array_collate",
    "collate_leaves",
    "collate_targets",
    "default_collate",
    "pseudo_collate",
    "stack_leaves",
]

# What becomes an array, or a tensor.
_NUMBERS = (int, float, complex, np.generic, np.ndarray)
_SINGLE_NUMBERS = (int, float, complex, np.number, np.bool_)
_KINDS_OF_NUMBERS = "biufc"
# What is a sequence, and one leaf.
_BYTES_AND_TEXT = (str, bytes, bytearray, memoryview)
# What a tensor of whole numbers holds.
_LEAST, _MOST = -(2**63), 2**63 - 1


def pseudo_collate(data_batch: Sequence[Any]) -> Any:
    """Turn samples into one sample whose leaves are lists.

    Parameters
    ----------
    data_batch : sequence
        Samples, nested alike: dicts, tuples, named tuples and lists.

    Returns
    -------
    object
        Nested like a sample; a tuple becomes a list. Each leaf is a list of what the
        samples have there.

    Raises
    ------
    RuntimeError
        Samples are not nested alike, or sequences at one place differ in length.
    TypeError
        In a worker of a ``DataLoader``: it has what cannot be pickled.

    Examples
    --------
    >>> pseudo_collate([{"id": "a", "box": [1, 2]}, {"id": "b", "box": [3, 4]}])
    {'id': ['a', 'b'], 'box': [[1, 3], [2, 4]]}
    """
    batch = collate_leaves(list(data_batch), list)
    require_sendable(batch)
    return batch


def default_collate(data_batch: Sequence[Any]) -> Any:
    """Turn samples into one whose leaves are stacked.

    Parameters
    ----------
    data_batch : sequence
        Samples, nested alike.

    Returns
    -------
    object
        Nested like a sample. Arrays, tensors and numbers become tensors with a leading
        axis; anything else a list, also whole numbers that no 64 bits hold.

    Raises
    ------
    RuntimeError
        Samples are not nested alike, sequences differ in length, or arrays or tensors
        in shape.
    TypeError
        In a worker of a ``DataLoader``: it has what cannot be pickled.

    Notes
    -----
    Tensors that are views of ``(..., H, W, C)`` memory, as the clips of this package,
    are stacked in that memory order, which is a plain copy, and stay views.
    """
    samples = list(data_batch)
    batch = collate_leaves(samples, lambda leaves: stack_leaves(leaves, _stack))
    require_sendable(batch)
    return batch


def array_collate(data_batch: Sequence[Any]) -> Any:
    """Turn samples into one whose leaves are stacked as numpy arrays; needs no torch.

    Parameters
    ----------
    data_batch : sequence
        Samples, nested alike.

    Returns
    -------
    object
        Nested like a sample. Arrays of one shape, and numbers, become arrays with a
        leading axis; anything else a list.

    Raises
    ------
    RuntimeError
        Samples are not nested alike, or sequences differ in length.
    TypeError
        In a worker of a ``DataLoader``: it has what cannot be pickled.

    Examples
    --------
    >>> array_collate([("a", 1), ("b", 2)])
    [['a', 'b'], array([1, 2])]
    """
    batch = collate_leaves(list(data_batch), _as_array)
    require_sendable(batch)
    return batch


def _as_array(leaves: list[Any]) -> Any:
    if not all(isinstance(leaf, _NUMBERS) for leaf in leaves):
        return leaves
    if len({np.shape(leaf) for leaf in leaves}) > 1:
        return leaves
    made = np.asarray(leaves)
    if made.dtype.kind in "fO" and all(map(_is_whole, leaves)):
        # Some are unsigned: numpy would have no whole numbers for both.
        fit = all(_LEAST <= leaf <= _MOST for leaf in leaves)
        return np.array([*map(int, leaves)], np.int64) if fit else leaves
    # One is beyond every float.
    numbers = all(isinstance(leaf, _SINGLE_NUMBERS) for leaf in leaves)
    return leaves if numbers and made.dtype.kind == "O" else made


def _is_whole(leaf: Any) -> bool:
    return isinstance(leaf, (int, np.integer, np.bool_))


def collate_targets(targets: list[Any], *, tensors: bool) -> Any:
    """Stack the targets of a batch, or leave them a list where they cannot be.

    Parameters
    ----------
    targets : list
        One of each sample.
    tensors : bool
        Whether tensors are made, or else arrays.

    Returns
    -------
    object
        As of `default_collate`, or of `array_collate`; but lists and tuples of ``n``
        numbers become ``(B, n)``, and others a list of the targets.

    Examples
    --------
    >>> collate_targets([[1, 2], [3, 4], [5, 6]], tensors=False).shape
    (3, 2)
    >>> collate_targets([[1, 2], [3]], tensors=False)
    [[1, 2], [3]]
    """
    collate = default_collate if tensors else array_collate
    if not all(_is_sequence(row) and not hasattr(row, "_fields") for row in targets):
        with suppress(RuntimeError):  # of several kinds, or shapes
            return collate(targets)
        return targets
    # Else lists would come one way where all happen to be of one length, and another
    # where they are not.
    numbers = [number for row in targets for number in row]
    if len({len(row) for row in targets}) > 1 or not numbers:
        return targets
    if not all(isinstance(number, _SINGLE_NUMBERS) for number in numbers):
        return targets
    made: Any = numbers
    with suppress(RuntimeError):  # of kinds that torch does not bring to one
        made = collate(numbers)
    return targets if isinstance(made, list) else made.reshape(len(targets), -1)


def collate_leaves(batch: list[Any], leaf: Callable[[list[Any]], Any]) -> Any:
    """Turn samples into one, by a function of the leaves at each place.

    Parameters
    ----------
    batch : list
        Samples, nested alike.
    leaf : callable
        Gets what the samples have at one place.

    Raises
    ------
    RuntimeError
        Samples are not nested alike, or sequences differ in length.
    """
    first = batch[0]
    kind: Any = type(first)
    if isinstance(first, Mapping):
        for item in batch:
            if not isinstance(item, Mapping) or first.keys() != item.keys():
                raise _nested_otherwise(first, item)
        collated = {
            key: collate_leaves([item[key] for item in batch], leaf) for key in first
        }
        return collated if kind is dict else _mapping_like(first, collated)
    if _is_sequence(first):
        for item in batch:
            if not _is_sequence(item):
                raise _nested_otherwise(first, item)
        if any(len(item) != len(first) for item in batch):
            raise RuntimeError(
                f"sequences of {sorted({len(item) for item in batch})} elements at one "
                "place of the samples: they must be of equal size"
            )
        parts = [collate_leaves(list(part), leaf) for part in zip(*batch, strict=True)]
        return kind(*parts) if hasattr(first, "_fields") else parts
    return leaf(batch)


def _mapping_like(first: Any, collated: dict[Any, Any]) -> Any:
    """Give what was collated the type of a sample, or else leave it a dict."""
    kind: Any = type(first)
    try:
        if not isinstance(first, MutableMapping):
            return kind(collated)
        # A copy has all that a mapping was made with: a default, say.
        made = copy.copy(first)
        for key, value in collated.items():
            made[key] = value
    except TypeError:  # made from other arguments, not to be copied
        return collated
    return made


def _is_sequence(item: Any) -> bool:
    return isinstance(item, Sequence) and not isinstance(item, _BYTES_AND_TEXT)


def _nested_otherwise(first: Any, other: Any) -> RuntimeError:
    return RuntimeError(
        f"samples are not nested alike: {reprlib.repr(first)} and "
        f"{reprlib.repr(other)} at one place of them. Give all the same keys, and a "
        "value of one kind"
    )


def stack_leaves(leaves: list[Any], stack: Callable[[list[Any]], Any]) -> Any:
    """Stack tensors in the order of their memory, and numbers; leave the rest a list.

    Parameters
    ----------
    leaves : list
        What the samples have at one place.
    stack : callable
        Stacks tensors.

    Raises
    ------
    RuntimeError
        Tensors are of several shapes.
    """
    torch = require("torch", extra="torch")
    first = leaves[0]
    if isinstance(first, _BYTES_AND_TEXT) or first is None:
        return leaves
    if not all(isinstance(leaf, torch.Tensor) for leaf in leaves):
        return _stack_others(torch, leaves)
    _require_one_shape(leaves)
    if first.ndim < 3 or first.is_contiguous():
        return stack(leaves)
    moved = [leaf.movedim(-3, -1) for leaf in leaves]
    if not all(leaf.is_contiguous() for leaf in moved):
        return stack(leaves)
    return stack(moved).movedim(-1, -3)


def _require_one_shape(leaves: list[Any]) -> None:
    """Refuse arrays or tensors of several shapes, and say what to do."""
    shapes = [*dict.fromkeys(tuple(np.shape(leaf)) for leaf in leaves)]
    if len(shapes) == 1:
        return
    if min(map(len, shapes)) < 3:  # no frames
        advice = "Pad them to one shape, or take pseudo_collate: it stacks nothing"
    elif len({shape[-2:] for shape in shapes}) > 1:
        advice = (
            "Give the dataset a transform that brings all to one size, or choose the "
            "loader that does (GulpLoader with a view), on the command line --size 224 "
            "in place of --workers"
        )
    elif {shape[-3] for shape in shapes} == {1, 3} and len(
        {shape[:-3] for shape in shapes}
    ) == 1:
        advice = (
            "Some items are grey, and others have colours: give the dataset a "
            "transform that repeats the one channel of those, or choose the loader "
            "that makes all alike (GulpLoader, colorspace='rgb')"
        )
    else:
        advice = (
            "Give the dataset a sampler that chooses as many frames, and as many "
            "clips, of every item; or collate with pseudo_collate, which stacks nothing"
        )
    raise RuntimeError(
        f"samples of shapes {', '.join(map(str, shapes))} at one place of a batch, and "
        f"a batch needs one. {advice}"
    )


def _stack_others(torch: Any, leaves: list[Any]) -> Any:
    if not all(isinstance(leaf, _NUMBERS) for leaf in leaves):
        return leaves
    if any(isinstance(leaf, int) and not _LEAST <= leaf <= _MOST for leaf in leaves):
        return leaves
    single = all(isinstance(leaf, _SINGLE_NUMBERS) for leaf in leaves)
    if not single and all(
        np.asarray(leaf).dtype.kind in _KINDS_OF_NUMBERS for leaf in leaves
    ):
        _require_one_shape(leaves)
    if single and len({*map(type, leaves)}) > 1 and not all(map(_is_whole, leaves)):
        # Torch goes by the first, and takes 32 bits for floats that come later.
        made = _as_array(leaves)
        with suppress(TypeError):  # a type that torch has not
            return torch.from_numpy(made) if isinstance(made, np.ndarray) else made
    try:
        return torch.utils.data.default_collate([*map(_as_torch_takes_it, leaves)])
    except TypeError:  # an array of texts, of objects
        return leaves
    except RuntimeError:  # unsigned whole numbers, and others
        if single:
            return leaves
        raise


def _as_torch_takes_it(leaf: Any) -> Any:
    """Bring an array to this machine's byte order, and to steps forward in memory."""
    if not isinstance(leaf, np.ndarray):
        return leaf
    if not leaf.dtype.isnative:
        return leaf.astype(leaf.dtype.newbyteorder("="), order="C")
    return leaf.copy() if min(leaf.strides, default=0) < 0 else leaf


def _stack(leaves: list[Any]) -> Any:
    torch = require("torch", extra="torch")
    if torch.utils.data.get_worker_info() is None:
        return torch.stack(leaves)
    # In a worker: straight into memory that the trainer sees, without a second copy.
    return torch.utils.data.default_collate(leaves)
