"""What is done to directories whose power fails, and what is then asked of them.

For test_power_loss.py, which draws states of the disk, and test_power_states.py, which
goes through all of them.
"""

import os
import shutil

from gulpio2 import GulpChunk
from gulpio2.format.layout import list_chunks
from gulpio2.removal import compact_directory, delete_items
from gulpio2.storage.index.keeping import build_index
from gulpio2.testing import make_frames
from tests.chunks import items_of

LONG = os.environ.get("GULPIO2_FAULTS") == "long"


def put(folder, state):
    """Make a folder hold these files and no other."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, data in state.items():
        (folder / name).write_bytes(data)


def committed(recording, cut):
    """Numbers of the chunks whose map had its name, and the folder was synced since."""
    numbers = set(list_chunks(recording.before).chunks)
    for index, operation in enumerate(recording.operations[:cut]):
        later = recording.operations[index + 1 : cut]
        if operation.kind == "rename" and any(op.kind == "sync names" for op in later):
            numbers.update(list_chunks([operation.name]).meta_only)
    return numbers


# Each change says when what it did so far must last, and can be done again on what is
# left of it.


def append_to_a_chunk(folder, is_done):
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open("ab"):
        if "new" not in chunk:
            chunk.append("new", {"n": 1}, make_frames(3, 8, 8, seed=9))
            chunk.flush()
        is_done()
        if "newer" not in chunk:
            chunk.append("newer", {"n": 2}, make_frames(2, 8, 8, seed=10))


def replace_a_chunk(folder, is_done):
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("new", {"n": 1}, make_frames(3, 8, 8, seed=9))


def delete(folder, id_):
    if id_ in items_of(folder):
        delete_items(folder, [id_])


def delete_some(folder, is_done):
    delete(folder, "item0")
    is_done()
    delete(folder, "item3")


def delete_and_compact(folder, is_done):
    delete(folder, "item0")
    is_done()
    compact_directory(folder)


def index_and_delete(folder, is_done):
    build_index(folder)
    is_done()
    delete(folder, "item0")


CHANGES = {
    change.__name__.replace("_", " "): change
    for change in (
        append_to_a_chunk,
        replace_a_chunk,
        delete_some,
        delete_and_compact,
        index_and_delete,
    )
}
