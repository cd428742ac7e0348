"""`ChunkWriter`: one chunk at a time, without an ingestor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gulpio2.errors import DuplicateIdError
from gulpio2.ingest.items import check_item

if TYPE_CHECKING:
    from gulpio2.chunk import GulpChunk
    from gulpio2.types import Adapter

__all__ = ["ChunkWriter"]


class ChunkWriter:
    """Writes slices of an adapter into chunks.

    Parameters
    ----------
    adapter : Adapter
        Where the items come from.

    Notes
    -----
    `GulpIngestor` does more: an item that fails there costs itself alone.
    """

    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter

    def write_chunk(self, output_chunk: GulpChunk, input_slice: Any) -> None:
        """Write the items of a slice, from an empty chunk on.

        Parameters
        ----------
        output_chunk : GulpChunk
            Published when all items are written; as it was before if one fails.
        input_slice : slice
            Positions of the items; whatever it is, the adapter's ``iter_data`` gets it.

        Raises
        ------
        AdapterContractError
            An item, a frame or metadata that cannot be stored.
        DuplicateIdError
            Two items of the slice have the same id.

        Notes
        -----
        An item without frames is left out, which is said on stdout as 0.0.4 said it.
        """
        start = (isinstance(input_slice, slice) and input_slice.start) or 0
        with output_chunk.open("wb"):
            items = self.adapter.iter_data(input_slice)
            for position, item in enumerate(items, start):
                placed = check_item(item, position)
                if placed.id_ in output_chunk:
                    raise DuplicateIdError(
                        f"the id {placed.id_!r} (position {position}) is taken by an "
                        "item before it in the same chunk. Give each item an id of its "
                        "own"
                    )
                output_chunk.append(placed.id_, placed.meta, placed.frames)
                # A subclass of the client's may store it under another id.
                entry = output_chunk.meta_dict.get(str(placed.id_))
                if entry is not None and not entry["frame_info"]:
                    del output_chunk.meta_dict[str(placed.id_)]
                    print(  # noqa: T201  # contract of 0.0.4
                        f"Failed to write video with id: {placed.id_}; no frames"
                    )
