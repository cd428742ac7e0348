"""Directories that go through operations in any order, beside dictionaries."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from gulpio2 import GulpChunk, GulpDirectory, GulpIngestor
from gulpio2.adapters import AbstractDatasetAdapter
from gulpio2.codecs.jpeg import EncoderSettings, encode_frame
from gulpio2.errors import DuplicateIdError, GulpError
from gulpio2.merge import merge_directories
from gulpio2.removal import compact_directory, delete_items
from gulpio2.repair import repair_directory
from gulpio2.sanity import check_directory
from gulpio2.testing import make_frames

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

Items = dict[str, list[Any]]
# Id to metadata and JPEGs.
State = dict[str, tuple[dict[str, Any], list[bytes]]]


class Given(AbstractDatasetAdapter):
    """Yields what it is given; items without frames are those that fail."""

    def __init__(self, items: Items, *, listed: bool) -> None:
        self.items = items
        self.listed = listed

    def __len__(self) -> int:
        return len(self.items)

    def item_ids(self) -> list[str] | None:
        return list(self.items) if self.listed else None

    def iter_data(self, slice_element: slice | None = None) -> Iterator[Any]:
        for id_ in list(self.items)[slice_element or slice(None)]:
            yield {"id": id_, "meta": {"of": id_}, "frames": self.items[id_]}


class Folders:
    """Some directories, what is in each, and the operations."""

    def __init__(self, root: Path, seed: int) -> None:
        self.root = root
        self.rng = random.Random(seed)
        self.states: dict[str, State] = {}
        self.done: list[Any] = []
        self.count = 0

    def new_ids(self, number: int) -> list[str]:
        self.count += number
        return [f"v{self.count - k}" for k in range(number)]

    def new_items(self, ids: list[str], *, failing: bool = False) -> Items:
        items: Items = {}
        for id_ in ids:
            number = self.rng.choice([0, 1, 2, 9] if failing else [1, 2, 9])
            height, width = self.rng.choice([(16, 24), (33, 40)])
            seed = self.rng.randrange(10**6)
            frames: list[Any] = list(make_frames(9, height, width, seed=seed))
            if self.rng.random() < 0.5:
                frames = [encode_frame(frame, EncoderSettings()) for frame in frames]
            items[id_] = frames[:number]
        return items

    def any_folder(self) -> str:
        return self.rng.choice(sorted(self.states))

    def ingest_into(self, name: str, items: Items, **options: Any) -> None:
        adapter = Given(items, listed=self.rng.random() < 0.5)
        per_chunk = self.rng.randint(1, 4)
        report = GulpIngestor(adapter, self.root / name, per_chunk, 1, **options).run()
        state = self.states.setdefault(name, {})
        new = {id_: frames for id_, frames in items.items() if id_ not in state}
        failed = {failure.id for failure in report.failures}
        assert failed == {id_ for id_, frames in new.items() if not frames}
        with GulpDirectory(self.root / name, indexed=False) as directory:
            for id_ in new.keys() - failed:
                jpegs = directory.read_jpegs(id_)
                assert len(jpegs) == len(items[id_])
                if isinstance(items[id_][0], bytes):
                    assert jpegs == items[id_]
                state[id_] = ({"of": id_}, jpegs)

    # --- operations --------------------------------------------------------------

    def ingest(self) -> None:
        is_new = not self.states or self.rng.random() < 0.3
        name = f"d{len(self.done)}" if is_new else self.any_folder()
        items = self.new_items(self.new_ids(self.rng.randint(1, 6)), failing=True)
        options: dict[str, Any] = {}
        if self.rng.random() < 0.3:
            options["chunk_bytes"] = self.rng.choice([500, 5000, 50_000])
        self.ingest_into(name, items, **options)

    def ingest_again(self) -> None:
        name = self.any_folder()
        known = sorted(self.states[name])
        ids = self.rng.sample(known, min(2, len(known)))
        ids += self.new_ids(self.rng.randint(0, 1))
        if ids:
            items = self.new_items(ids)
            self.ingest_into(name, items, on_duplicate="skip")

    def replace(self) -> None:
        name = self.any_folder()
        if self.states[name]:
            id_ = self.rng.choice(sorted(self.states[name]))
            delete_items(self.root / name, [id_])
            del self.states[name][id_]
            self.ingest_into(name, self.new_items([id_]))

    def append(self) -> None:
        name = self.any_folder()
        with GulpDirectory(self.root / name) as directory:
            numbers = list(directory.chunk_objs_lookup)
        if numbers:
            number = self.rng.choice(numbers)
            folder = self.root / name
            paths = folder / f"data_{number}.gulp", folder / f"meta_{number}.gmeta"
            (id_,) = self.new_ids(1)
            jpegs = [encode_frame(f, EncoderSettings()) for f in make_frames(3)]
            chunk = GulpChunk(*paths)
            with chunk.open("ab"):
                chunk.append(id_, {"of": id_}, jpegs)
            self.states[name][id_] = ({"of": id_}, jpegs)

    def delete(self) -> None:
        name = self.any_folder()
        if self.states[name]:
            known = sorted(self.states[name])
            ids = self.rng.sample(known, self.rng.randint(1, len(known)))
            delete_items(self.root / name, ids)
            for id_ in ids:
                del self.states[name][id_]

    def compact(self) -> None:
        compact_directory(self.root / self.any_folder())

    def merge(self) -> None:
        most = min(3, len(self.states))
        names = self.rng.sample(sorted(self.states), self.rng.randint(1, most))
        target = f"m{len(self.done)}"
        ids = [id_ for name in names for id_ in self.states[name]]
        parts = [self.root / name for name in names]
        try:
            merge_directories(parts, self.root / target, link=self.rng.random() < 0.7)
        except DuplicateIdError:
            assert len({*ids}) < len(ids)
        except GulpError:
            # Items of a part are deleted, and their frames not erased yet.
            assert any((part / "deleted.json").exists() for part in parts)
        else:
            assert len({*ids}) == len(ids)
            self.states[target] = {
                id_: kept for name in names for id_, kept in self.states[name].items()
            }

    def repair(self) -> None:
        name, target = self.any_folder(), f"r{len(self.done)}"
        repair_directory(self.root / name, self.root / target)
        self.states[target] = dict(self.states[name])

    # --- what must hold ----------------------------------------------------------

    def go_on_and_check(self) -> None:
        operations = [
            self.ingest,
            self.ingest_again,
            self.replace,
            self.append,
            self.delete,
            self.compact,
            self.merge,
            self.repair,
        ]
        operation = self.rng.choice(operations if self.states else [self.ingest])
        self.done.append(operation.__name__)
        operation()
        for name, state in self.states.items():
            self.look_at(name, state)

    def look_at(self, name: str, state: State) -> None:
        for indexed in (False, True):
            with GulpDirectory(
                self.root / name, indexed=indexed, verify=True
            ) as directory:
                assert sorted(directory.chunk_lookup) == sorted(state)
                for id_, (meta, jpegs) in state.items():
                    assert directory.read_jpegs(id_) == jpegs
                    assert directory[id_, 0][1] == meta
        problems = check_directory(self.root / name, deep=True).problems
        assert [p for p in problems if state or p.code != "no-chunks"] == []


@pytest.mark.parametrize(
    "seed",
    [
        *range(12),
        *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(12, 300)),
    ],
)
def test_every_directory_holds_what_it_should_whatever_was_done(tmp_path, seed):
    folders = Folders(tmp_path, seed)
    for _ in range(8):
        try:
            folders.go_on_and_check()
        except BaseException as error:
            error.args = (*error.args, f"after {', '.join(folders.done)}")
            raise
