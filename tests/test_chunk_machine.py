"""Any sequence of writing, appending, failing and reopening, against a dictionary."""

from __future__ import annotations

import copy
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.codecs.jpeg import EncoderSettings, decode_frame, encode_frame
from gulpio2.sanity import check_directory
from gulpio2.testing import make_frames
from tests.chunks import StopError

JPEGS = [
    encode_frame(frame, EncoderSettings())
    for frame in (*make_frames(3, 8, 8), *make_frames(2, 8, 12, grey=True))
]
CHUNKS = (0, 2, 10)

numbers = st.sampled_from(CHUNKS)
ids = st.sampled_from(["a", "b", "7", "sub/clip", "é", ""])
metas = st.dictionaries(st.text(max_size=3), st.integers() | st.text(), max_size=2)
frames = st.lists(st.integers(0, len(JPEGS) - 1), max_size=5)
appends = st.lists(st.tuples(ids, metas, frames), max_size=4)
selections = st.none() | st.slices(6) | st.integers(-1, 0)

# Id to the indices of its frames in JPEGS, and its metadata, in order of appending.
Items = dict[str, tuple[list[int], list[dict[str, Any]]]]


class ChunkMachine(RuleBasedStateMachine):
    """Chunks of one directory beside a dictionary of what must be in them."""

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="gulp-machine-"))
        self.chunks: dict[int, GulpChunk] = {}
        self.model: dict[int, Items] = {}

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    def chunk(self, number: int) -> GulpChunk:
        """Give the chunk object that is there, or a new one."""
        data, meta = f"data_{number}.gulp", f"meta_{number}.gmeta"
        fresh = GulpChunk(self.folder / data, self.folder / meta)
        return self.chunks.setdefault(number, fresh)

    def free(self, number: int, given: list[Any]) -> list[Any]:
        """Leave out what another chunk has: ids are unique in a directory."""
        taken = {
            id_ for other in self.model if other != number for id_ in self.model[other]
        }
        return [item for item in given if item[0] not in taken]

    def add(self, items: Items, id_: str, meta: dict[str, Any], indices: Any) -> None:
        """Do to the dictionary what an append does."""
        known, metadata = items.setdefault(id_, ([], []))
        known.extend(indices)
        metadata.append(meta)

    @rule(number=numbers, flag=st.sampled_from(["wb", "ab"]), given=appends)
    def write(self, number: int, flag: str, given: list[Any]) -> None:
        """Write or append, to the end of the block."""
        items: Items = {} if flag == "wb" else self.model.get(number, {})
        chunk = self.chunk(number)
        with chunk.open(flag):
            for id_, meta, indices in self.free(number, given):
                chunk.append(id_, meta, [JPEGS[index] for index in indices])
                self.add(items, id_, meta, indices)
        self.model[number] = items

    @rule(
        number=numbers,
        flag=st.sampled_from(["wb", "ab"]),
        given=appends,
        flush_after=st.integers(0, 5),
    )
    def write_and_fail(
        self, number: int, flag: str, given: list[Any], flush_after: int
    ) -> None:
        """End the block with an error: what was flushed stays, nothing else does."""
        before = copy.deepcopy(self.model.get(number))
        items: Items = {} if flag == "wb" else copy.deepcopy(before or {})
        chunk = self.chunk(number)
        try:
            with chunk.open(flag):
                for place, (id_, meta, indices) in enumerate(self.free(number, given)):
                    chunk.append(id_, meta, [JPEGS[index] for index in indices])
                    self.add(items, id_, meta, indices)
                    if place == flush_after:
                        chunk.flush()
                        self.model[number] = copy.deepcopy(items)
                raise StopError
        except StopError:
            pass
        # The object of a block that failed is as before the block.
        self.chunks.pop(number)

    @rule(number=numbers, given=appends, good=frames)
    def lose_one_item(self, number: int, given: list[Any], good: list[int]) -> None:
        """Let an item in the middle fail; those around it are stored."""
        items = self.model.get(number, {})
        chunk = self.chunk(number)
        usable = self.free(number, given)
        with chunk.open("ab"):
            for id_, meta, indices in usable:
                jpegs = [JPEGS[index] for index in good]
                try:
                    chunk.append(id_, {"lost": True}, [*jpegs, b"no jpeg"])
                except ValueError:
                    pass
                else:
                    raise AssertionError("a bad frame was stored")
                chunk.append(id_, meta, [JPEGS[index] for index in indices])
                self.add(items, id_, meta, indices)
        self.model[number] = items

    @rule(number=numbers)
    def reopen(self, number: int) -> None:
        """Go on with a new object."""
        self.chunks.pop(number, None)

    @precondition(lambda self: any(self.model.values()))
    @rule(data=st.data(), selection=selections)
    def read(self, data: st.DataObject, selection: Any) -> None:
        """Read some frames through the object that wrote them."""
        number = data.draw(st.sampled_from([n for n in self.model if self.model[n]]))
        id_ = data.draw(st.sampled_from(list(self.model[number])))
        indices, metadata = self.model[number][id_]
        if isinstance(selection, int):
            selection = [selection] if indices else []
            chosen = [indices[place] for place in selection]
        else:
            chosen = indices[selection or slice(None)]
        got, meta = self.chunk(number)[id_, selection]
        assert meta == metadata[0]
        assert len(got) == len(chosen)
        for frame, index in zip(got, chosen, strict=True):
            assert np.array_equal(frame, decode_frame(JPEGS[index]))

    @invariant()
    def a_directory_opened_now_holds_what_it_must(self) -> None:
        if not hasattr(self, "model"):
            return
        with GulpDirectory(self.folder) as directory:
            assert list(directory.chunk_objs_lookup) == sorted(self.model)
            expected = [id_ for n in sorted(self.model) for id_ in self.model[n]]
            assert list(directory.merged_meta_dict) == expected
            for items in self.model.values():
                for id_, (indices, metadata) in items.items():
                    stored = [JPEGS[index] for index in indices]
                    assert directory.read_jpegs(id_) == stored
                    entry = directory.merged_meta_dict[id_]
                    assert entry["meta_data"] == json.loads(json.dumps(metadata))

    @invariant()
    def the_check_finds_nothing(self) -> None:
        if getattr(self, "model", None):
            report = check_directory(self.folder, deep=True)
            assert report.problems == []
            assert report.frames_without_checksum == 0
            assert len(list(self.folder.iterdir())) == 2 * len(self.model)


TestChunkMachine = ChunkMachine.TestCase
