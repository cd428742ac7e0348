"""The contract between a source dataset and the ingest.

An adapter says how many items there are and yields any slice of them. It holds no
frames: it gives each item's frames as something that is read when it is iterated.
"""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from gulpio2.adapters.description import constructor_arguments

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from typing_extensions import Self

    from gulpio2.types import JsonValue

__all__ = ["AbstractDatasetAdapter"]


class AbstractDatasetAdapter(ABC):
    """Base of everything that can be ingested.

    A subclass gives `iter_data` and ``__len__``. The other methods are hooks with
    useful defaults; what they tell makes the ingest check more, earlier. An adapter
    must be picklable, since worker processes get a copy of it.

    Examples
    --------
    >>> import numpy as np
    >>> class Ramps(AbstractDatasetAdapter):
    ...     def __init__(self, num_items, output_folder=None, *, size=8):
    ...         self.num_items = num_items
    ...         self.size = size
    ...
    ...     def __len__(self):
    ...         return self.num_items
    ...
    ...     def iter_data(self, slice_element=None):
    ...         for number in range(len(self))[slice_element or slice(None)]:
    ...             frame = np.full((self.size, self.size, 3), number, np.uint8)
    ...             yield {"meta": {"number": number}, "frames": [frame], "id": number}
    >>> adapter = Ramps(3, "gulp/ramps")
    >>> [item["id"] for item in adapter.iter_data(slice(1, None))]
    [1, 2]
    >>> adapter.describe()
    {'num_items': 3, 'size': 8}
    """

    _described: dict[str, JsonValue]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Take note of the arguments, whatever the subclass's constructor does.

        Here, because a subclass need not call ``super().__init__()``, and because an
        unpickled copy gets what was noted together with its other attributes.
        """
        init = cls.__init__
        if init is object.__init__ and (args or kwargs):
            raise TypeError(f"{cls.__name__}() takes no arguments")
        self = super().__new__(cls)
        object.__setattr__(
            self, "_described", constructor_arguments(init, args, kwargs)
        )
        return self

    # Tools that read signatures would see *args and **kwargs for a subclass that has
    # no constructor of its own.
    __new__.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # settable
        [inspect.Parameter("cls", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    )

    @abstractmethod
    def iter_data(
        self, slice_element: slice | None = None
    ) -> Iterator[Mapping[str, Any]]:
        """Yield the items at these positions, in order.

        Parameters
        ----------
        slice_element : slice, optional
            Positions, as a slice of a list of all items. Default: all of them.

        Yields
        ------
        dict
            ``meta``, a dict of what JSON holds; ``frames``, an iterable of arrays, PIL
            images or encoded JPEG bytes, or a `gulpio2.types.FrameSource`, read once
            and in order; ``id``, an int or a str, unique in the directory.

        Notes
        -----
        Called once for each chunk, in different processes, and again where a run is
        resumed: the same slice must always give the same items. An exception here
        costs the item at which it comes, as one does that comes out of ``frames``; the
        items after it are asked for one by one.
        """
        raise NotImplementedError

    @abstractmethod
    def __len__(self) -> int:
        """Count the items."""
        raise NotImplementedError

    def item_ids(self) -> Sequence[Any] | None:
        """List all ids in order, without opening any source.

        Returns
        -------
        sequence of int or str, or None
            As `iter_data` gives them, repeats included. None, the default, where that
            would not be cheap; repeated ids are then found only while ingesting.
        """
        return None

    def item_source(self, position: int) -> str | None:
        """Tell where one item comes from, for messages.

        Parameters
        ----------
        position : int
            Position of the item, from 0.

        Returns
        -------
        str or None
            Usually the path of its file or folder; None, the default, for unknown.
        """
        del position
        return None

    def label_mapping(self) -> dict[str, int] | None:
        """Give what the ingest writes to ``label2idx.json``, before the first item.

        Returns
        -------
        dict of str to int, or None
            Label to index, in the order of assignment. None, the default, for none.
        """
        # A mixin may come after this class in the order of bases, as in 0.0.4.
        following = getattr(super(), "label_mapping", None)
        return None if following is None else following()

    def describe(self) -> dict[str, JsonValue]:
        """Tell how this adapter was made, for the manifest.

        Returns
        -------
        dict
            The constructor's arguments by name, defaults included and the output
            folder left out, as JSON values; of a dataclass's ``default_factory`` only
            what was given in its place. A copy.
        """
        return copy.deepcopy(getattr(self, "_described", {}))
