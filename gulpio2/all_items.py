"""All items of a directory, for whoever goes through them in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gulpio2.storage.index.in_blocks import ItemBlock, indexed_blocks
from gulpio2.storage.index.lazy import is_untouched

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gulpio2.directory import GulpDirectory

__all__ = ["item_blocks"]


def item_blocks(directory: GulpDirectory) -> Iterator[ItemBlock]:
    """Go through the items: those of an index together, others one by one.

    Raises
    ------
    MetaFileError
        An entry, or the times in it, are damaged.
    """
    index = directory._index
    if index is not None and not index.entries and _is_untouched(directory):
        blocks = indexed_blocks(index)
        if blocks is not None:
            yield from blocks
            return
    for id_ in directory.merged_meta_dict:
        item = directory.item(id_)
        yield ItemBlock([item.num_frames], [item.num_bytes], [item.meta], [item.times])


def _is_untouched(directory: GulpDirectory) -> bool:
    """Tell whether nothing can be otherwise in memory than the index has it."""
    mappings = (
        directory.merged_meta_dict,
        directory.chunk_lookup,
        directory.chunk_objs_lookup,
    )
    return not directory._made_chunks() and all(map(is_untouched, mappings))
