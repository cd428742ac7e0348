"""The values and contracts that the layers pass to each other.

Frames on their way in are a `Frame` of some kind, an adapter's lazy `FrameSource`
gives them one at a time as `StoredFrame`, and `Item` is what an adapter yields.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    Protocol,
    TypedDict,
    runtime_checkable,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from fractions import Fraction

    import numpy as np
    import numpy.typing as npt

__all__ = [
    "Adapter",
    "DeferredImage",
    "EncodableFrame",
    "FrameSelection",
    "FrameSource",
    "Item",
    "JsonValue",
    "Meta",
    "Progress",
    "StoredFrame",
    "StrPath",
    "Verify",
    "YuvFrame",
    "no_progress",
]

StrPath = str | os.PathLike[str]
JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]
# Users' metadata is theirs: whatever JSON holds, and on its way in also numpy values.
Meta = dict[str, Any]
# slice, int, sequence of int, integer or boolean array; see format/selection.py.
FrameSelection = Any
# What is compared with the checks that are stored. True: frames and entries of maps,
# what has changed is an error; "frames": entries are warned of only; False: nothing.
Verify = bool | Literal["frames"]


@dataclass(frozen=True, slots=True, eq=False)
class YuvFrame:
    """A frame as three planes, ready for the JPEG encoder without going through RGB.

    The values are what JFIF stores: BT.601 matrix, full range. Rows may be padded
    (a stride larger than the width); columns must be adjacent.
    """

    y: npt.NDArray[np.uint8]
    """Luma, ``(height, width)`` uint8 in [0, 255]."""
    u: npt.NDArray[np.uint8]
    """Blue difference, uint8, half the luma size rounded up per subsampled axis."""
    v: npt.NDArray[np.uint8]
    """Red difference, same shape as `u`."""

    def __post_init__(self) -> None:
        """Check the shapes; the bad one is in the message."""
        (height, width), shape = self.y.shape, self.u.shape
        half = (width + 1) // 2
        allowed = ((height + 1) // 2, half), (height, half), (height, width)
        if shape not in allowed or shape != self.v.shape:
            raise ValueError(
                f"planes of shapes {self.y.shape}, {self.u.shape}, {self.v.shape} "
                "are not 4:4:4, 4:2:2 or 4:2:0"
            )

    @property
    def subsampling(self) -> str:
        """'444', '422' or '420', from the shapes of the planes."""
        if self.u.shape == self.y.shape:
            return "444"
        return "422" if self.u.shape[0] == self.y.shape[0] else "420"

    def __repr__(self) -> str:
        """Show shapes, never pixels."""
        height, width = self.y.shape
        return f"YuvFrame({height}x{width}, {self.subsampling})"


# What may be stored as a frame: an array (H, W), (H, W, 1), (H, W, 3) uint8 or bool,
# a PIL image, planes, or the bytes of a complete JPEG (stored as they are).
EncodableFrame = Any


@dataclass(frozen=True, slots=True, eq=False)
class DeferredImage:
    """An image that is made where it is encoded, by whichever thread does that."""

    make: Callable[[], EncodableFrame]
    """Gives the image; may be called in any thread, also more than once."""


@dataclass(frozen=True, slots=True)
class StoredFrame:
    """One frame on its way into a chunk, with its time."""

    image: EncodableFrame
    """Array, PIL image, `YuvFrame`, or the bytes of a JPEG."""
    pts: int | None = None
    """Presentation time in ticks of the source's time base; None where unknown."""


@runtime_checkable
class FrameSource(Protocol):
    """The frames of one item, lazily: nothing is read before it is iterated.

    Iterating gives what GulpIO2 0.0.4 gave (RGB arrays), so that an adapter's items
    can be used directly; `stored` gives what the store wants (planes or JPEG bytes,
    with times), so that ingest converts as little as it can. Both start afresh on
    each call and hold one frame at a time.
    """

    def __iter__(self) -> Iterator[Any]:
        """Yield each frame as an array, ``(H, W, 3)`` RGB or ``(H, W)`` grey uint8."""
        ...

    def __len__(self) -> int:
        """Count the frames; may have to read the source for it."""
        ...

    def stored(self) -> Iterator[StoredFrame]:
        """Yield each frame in the form in which it is best stored.

        A frame stays as it is after the next one was asked for: it may be encoded by
        another thread meanwhile.
        """
        ...

    @property
    def time_base(self) -> Fraction | None:
        """Seconds per tick of `StoredFrame.pts`; None where frames have no times."""
        ...

    def source_info(self) -> dict[str, JsonValue]:
        """Facts of the source file for the map: sizes, rotation, colour, rate."""
        ...


class Item(TypedDict):
    """What an adapter yields; further keys are ignored. Any mapping like it will do."""

    meta: Meta
    frames: Any
    id: Any


class Adapter(Protocol):
    """What the ingest needs of an adapter; see ``gulpio2.adapters`` for a base class.

    An adapter is sent to other processes and must therefore be picklable. It may
    also have ``item_ids()``, ``label_mapping()`` and ``describe()``, which
    `gulpio2.adapters.AbstractDatasetAdapter` documents, and a dict ``metainfo`` of
    what holds for the dataset as a whole.
    """

    def __len__(self) -> int:
        """Count the items."""
        ...

    def iter_data(
        self, slice_element: slice | None = None
    ) -> Iterator[Mapping[str, Any]]:
        """Yield the items at these positions, in order; all of them for None."""
        ...


class Progress(Protocol):
    """A callback for work under way; a bar belongs to the command line, not here."""

    def __call__(
        self, *, items: int = 0, frames: int = 0, num_bytes: int = 0, failures: int = 0
    ) -> None:
        """Take note of what was done since the last call."""
        ...


def no_progress(
    *, items: int = 0, frames: int = 0, num_bytes: int = 0, failures: int = 0
) -> None:
    """Take no note: the `Progress` of those who asked for none."""
