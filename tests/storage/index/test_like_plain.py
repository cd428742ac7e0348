"""Whatever a program does with a directory, it sees the same with an index."""

from __future__ import annotations

import copy
import json
import multiprocessing
import os
import pickle
import random
import shutil
import threading
from collections import OrderedDict
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gulpio2 import GulpDirectory
from gulpio2.storage.index.entries import IndexedEntry
from gulpio2.storage.index.keeping import build_index, check_index
from tests.forking import forked, status_of
from tests.storage.index.conftest import as_json, assert_same, write_chunks

if TYPE_CHECKING:
    from collections.abc import Callable

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
FOLDERS = sorted(path.name for path in GOLDEN.iterdir() if list(path.glob("*.gmeta")))


def both(folder: Path, **options: Any) -> tuple[GulpDirectory, GulpDirectory]:
    """Open with an index and without."""
    return (
        GulpDirectory(folder, indexed=True, **options),
        GulpDirectory(folder, indexed=False, **options),
    )


@pytest.fixture(params=FOLDERS)
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Copy a directory that GulpIO2 0.0.4 or this package wrote, to write into."""
    name: str = request.param
    return Path(shutil.copytree(GOLDEN / name, tmp_path / name))


def test_a_golden_directory_is_the_same_with_an_index(golden):
    if golden.name == "pickled":
        pytest.skip("its maps are no JSON")
    before = {path.name: path.read_bytes() for path in golden.iterdir()}
    for _ in range(2):  # made, and then found
        one, other = both(golden)
        assert_same(one, other)
        assert as_json(one.all_meta_dicts) == as_json(other.all_meta_dicts)
        for chunk, plain in zip(one, other, strict=True):
            assert repr(list(chunk.iter_all())) == repr(list(plain.iter_all()))
            assert chunk.data_file_path == plain.data_file_path
        (golden / "label2idx.json").write_text("{}")
        assert one._load_label_dict() == other._load_label_dict()
    (golden / "label2idx.json").unlink()
    if "label2idx.json" in before:
        (golden / "label2idx.json").write_bytes(before["label2idx.json"])
    after = {path.name: path.read_bytes() for path in golden.iterdir()}
    after.pop("index.arrow", None)
    assert after == before
    if len(other):
        assert check_index(golden) == []


def test_golden_directories_have_no_index_in_the_repository():
    assert list(GOLDEN.glob("*/index.arrow")) == []


def double(spans: Any) -> None:
    """Make a list twice as long where it is."""
    spans *= 2


# What programs do with an entry: name and what it gives, or does to it.
ENTRY_USES: dict[str, Callable[[Any], Any]] = {
    "keys": lambda e: list(e.keys()),
    "items": lambda e: [(key, as_json(value)) for key, value in e.items()],
    "values": lambda e: [as_json(value) for value in e.values()],
    "json": as_json,
    "json indented": lambda e: json.dumps(e, indent=1),
    "dict": lambda e: as_json(dict(e)),
    "unpacked": lambda e: as_json({**e}),
    "ordered": lambda e: as_json(OrderedDict(e)),
    "copy": lambda e: as_json(copy.copy(e)),
    "own copy": lambda e: as_json(e.copy()),
    "deep copy": lambda e: as_json(copy.deepcopy(e)),
    "pickle": lambda e: as_json(pickle.loads(pickle.dumps(e))),
    "merged": lambda e: as_json(e | {"x": 1}),
    "merged the other way": lambda e: as_json({"x": 1} | e),
    "equal to its copy": lambda e: e == copy.deepcopy(e) or "NaN" in as_json(e),
    "length": len,
    "in": lambda e: ("meta_data" in e, "x" in e),
    "get": lambda e: (as_json(e.get("gulp2")), e.get("x", 3)),
    "missing": lambda e: "x" in e or e.get("x"),
    "setdefault": lambda e: as_json(e.setdefault("meta_data", 3)),
    "setdefault of new": lambda e: as_json(e.setdefault("x", [3])),
    "spans": lambda e: as_json([list(info) for info in e["frame_info"]]),
    "spans as an array": lambda e: np.array(e["frame_info"]).tolist(),
    "number of frames": lambda e: len(e["frame_info"]),
    "first of the metadata": lambda e: as_json(e["meta_data"][0]),
    "extras": lambda e: as_json(e.get("gulp2", {}).get("crc32")),
    "edit": lambda e: e["meta_data"][0].update(edited=1),
    "edit of the extras": lambda e: e.get("gulp2", {}).update(edited=1),
    "delete from the metadata": lambda e: e["meta_data"][0].pop("label", None),
    "drop a frame": lambda e: e["frame_info"].pop() and None,
    "swap": lambda e: e["frame_info"].reverse(),
    "double": lambda e: double(e["frame_info"]),
    "assign": lambda e: e.__setitem__("meta_data", [{"assigned": 1}]),
    "pop": lambda e: as_json(e.pop("gulp2", None)),
    "pop of none": lambda e: e.pop("x", 5),
    "last out": lambda e: as_json(e.popitem()) if len(e) > 2 else None,
}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.sampled_from(sorted(ENTRY_USES)),
            st.integers(0, 4),
            st.sampled_from(["merged", "chunk", "all"]),
        ),
        max_size=12,
    )
)
def test_whatever_is_done_with_entries_is_the_same(folder, uses):
    build_index(folder)
    pair = both(folder)
    for name, item, where in uses:
        results = []
        for directory in pair:
            id_ = f"item 0/{item}"
            number = directory.chunk_lookup[id_]
            mapping = {
                "merged": directory.merged_meta_dict,
                "chunk": directory.chunk_objs_lookup[number].meta_dict,
                "all": directory.all_meta_dicts[number],
            }[where]
            try:
                results.append(ENTRY_USES[name](mapping[id_]))
            except (IndexError, KeyError) as error:
                results.append(type(error))
        assert results[0] == results[1], (name, item)
    one, other = pair
    assert as_json(one.merged_meta_dict) == as_json(other.merged_meta_dict)
    for id_ in other.merged_meta_dict:
        try:
            expected = [as_json(other[id_][1]), len(other[id_][0])]
        except (IndexError, KeyError) as error:
            with pytest.raises(type(error)):
                one[id_]
            continue
        assert [as_json(one[id_][1]), len(one[id_][0])] == expected
    travelled = pickle.loads(pickle.dumps(one))
    assert as_json(travelled.merged_meta_dict) == as_json(other.merged_meta_dict)


def test_an_entry_equals_and_differs_as_a_dictionary_does(folder):
    one, other = both(folder)
    for id_ in ("item 0/0", "item 0/1"):
        entry, want = one.merged_meta_dict[id_], other.merged_meta_dict[id_]
        fresh = GulpDirectory(folder, indexed=True).merged_meta_dict[id_]
        assert isinstance(entry, (dict, IndexedEntry))
        assert (fresh == want, want == fresh, fresh != want, want != fresh) == (
            *(True, True),
            *(False, False),
        )
        assert entry == GulpDirectory(folder, indexed=True).merged_meta_dict[id_]
        assert entry != {**want, "x": 1}
        assert entry != 3
        with pytest.raises(TypeError, match="unhashable"):
            hash(entry)
        assert dict(want) == entry
        assert repr(entry) == repr(want)
    assert sorted(one.merged_meta_dict.items()) is not None


def test_views_of_a_mapping_go_backwards_as_those_of_a_dictionary(folder):
    one, other = both(folder)
    for lazy, plain in (
        (one.chunk_lookup, other.chunk_lookup),
        (one.chunk_objs_lookup, other.chunk_objs_lookup),
    ):
        assert list(reversed(lazy)) == list(reversed(plain))
        assert list(reversed(lazy.keys())) == list(reversed(plain.keys()))
        assert len(list(reversed(lazy.values()))) == len(plain)
        assert [key for key, _ in reversed(lazy.items())] == list(reversed(plain))


def test_what_is_looked_at_and_not_changed_takes_little_memory(folder):
    directory, _ = both(folder)
    for id_ in directory.merged_meta_dict:
        entry = directory.merged_meta_dict[id_]
        assert entry["meta_data"] is not None
        assert len(entry["frame_info"]) == directory.item(id_).num_frames
        # Neither spans nor checksums have become objects.
        assert entry.is_as_stored("frame_info")
        assert entry.is_as_stored("gulp2")
    assert directory._index is not None
    assert directory._index.changed_entries() == {}


def test_deleting_from_the_lookup_hides_an_item_as_it_did(folder):
    for directory in both(folder):
        del directory.chunk_lookup["item 0/1"]
        assert "item 0/1" not in directory
        with pytest.raises(KeyError):
            directory["item 0/1"]
        assert len(directory) == 4


# ------------------------------------------------------------------ processes
def read_all(directory: Any, seed: int) -> list[tuple[str, int, str]]:
    """Read every item, in an order of its own."""
    ids = list(directory.merged_meta_dict)
    random.Random(seed).shuffle(ids)
    return sorted(
        (id_, sum(int(frame.sum()) for frame in frames), as_json(meta))
        for id_ in ids
        for frames, meta in [directory[id_]]
    )


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("mapped", [True, False], ids=["file", "memory"])
def test_processes_read_what_their_parent_reads(folder, method, mapped, monkeypatch):
    if not mapped:
        monkeypatch.setattr(os, "access", lambda *_: False)
    directory, plain = both(folder)
    expected = read_all(plain, 0)
    directory.merged_meta_dict["item 0/0"]["meta_data"][0]["edited"] = 1
    plain.merged_meta_dict["item 0/0"]["meta_data"][0]["edited"] = 1
    expected = read_all(plain, 0)
    assert read_all(directory, 1) == expected
    context = multiprocessing.get_context(method)
    view = directory.query("num_frames > 2")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        results = list(pool.map(partial(read_all, directory), range(4), timeout=60))
        parts = list(pool.map(partial(read_all, view), range(2), timeout=60))
    assert results == [expected] * 4
    assert parts == [[row for row in expected if row[0] in view]] * 2


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_fork_while_a_thread_loads_the_index_does_not_hang(folder):
    directory, plain = both(folder)
    assert directory._index is not None

    def read() -> int:
        directory.close()  # so that it has to be mapped again
        return read_all(directory, 0) != read_all(plain, 0)

    with directory._index._lock:  # as another thread would hold it
        child = forked(read)
    assert status_of(child) == 0


def test_threads_share_an_index_that_is_closed_and_damaged_under_them(
    folder, caplog, monkeypatch
):
    caplog.set_level("CRITICAL")
    monkeypatch.setattr("gulpio2.storage.index.opening._write", lambda *_: False)
    directory, plain = both(folder)
    build_index(folder)
    expected = read_all(plain, 0)
    wrong: list[Any] = []
    stop = threading.Event()

    def read(seed: int) -> None:
        for _ in range(15):
            try:
                if read_all(directory, seed) != expected:
                    wrong.append("other frames")
            except Exception as error:  # noqa: BLE001  # told below
                wrong.append(error)

    def disturb() -> None:
        while not stop.wait(0.002):
            directory.close()

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(6)]
    disturber = threading.Thread(target=disturb)
    for thread in (*threads, disturber):
        thread.start()
    for thread in threads:
        thread.join()
    stop.set()
    disturber.join()
    assert wrong == []


def test_an_index_in_memory_costs_about_what_the_file_does(tmp_path, monkeypatch):
    folder = write_chunks(tmp_path / "gulped")
    monkeypatch.setattr(os, "access", lambda *_: False)
    directory, _ = both(folder)
    assert directory._index is not None
    assert not directory._index.mapped
    columns = directory._index.content.columns
    per_frame = sum(
        getattr(columns, f"frame_{name}").itemsize
        for name in ("offset", "length", "pad", "crc32")
    )
    assert per_frame == 17
    for name in columns.__slots__:
        array = getattr(columns, name)
        # Nothing is kept beside what is used.
        assert (array if array.base is None else array.base).nbytes == array.nbytes
