"""Transforms applied one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gulpio2.torch.registry import build
from gulpio2.torch.working import timed_transform

__all__ = ["Compose"]


class Compose:
    """A pipeline: each transform gets what the one before gave.

    Parameters
    ----------
    transforms : sequence of callable or mapping, optional
        Mappings are configs, see `gulpio2.torch.build`. None is the identity.

    Attributes
    ----------
    transforms : list of callable
        The transforms, built.

    Raises
    ------
    TypeError
        An element is no callable and builds none.
    KeyError
        A config names nothing that is registered.

    Examples
    --------
    >>> Compose([lambda x: x + 1, lambda x: x * 10])(1)
    20
    """

    def __init__(
        self, transforms: Sequence[Callable[[Any], Any] | Mapping[str, Any]] | None
    ) -> None:
        given: object = () if transforms is None else transforms
        if not isinstance(given, Sequence):
            raise TypeError(f"transforms are {transforms!r}, expected a sequence")
        self.transforms: list[Callable[[Any], Any]] = []
        for transform in given:
            built = build(transform) if isinstance(transform, Mapping) else transform
            if not callable(built):
                raise TypeError(
                    f"transform {built!r} cannot be called: give a callable, or a "
                    "config with a 'type' that builds one"
                )
            self.transforms.append(built)

    def __call__(self, data: Any) -> Any:
        """Apply all transforms; None as soon as one of them gives None."""
        return timed_transform(self._apply, data)

    def _apply(self, data: Any) -> Any:
        for transform in self.transforms:
            data = transform(data)
            if data is None:
                return None
        return data

    def __repr__(self) -> str:
        """Show a transform per line."""
        lines = [f"{type(self).__name__}("]
        lines += [f"    {transform}" for transform in self.transforms]
        return "\n".join([*lines, ")"])
