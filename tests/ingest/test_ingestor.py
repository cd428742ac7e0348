"""`GulpIngestor`: items into chunks, whatever does the work."""

import concurrent.futures
import contextlib
import json
import multiprocessing
import subprocess
import traceback
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.adapters import AbstractDatasetAdapter
from gulpio2.codecs.jpeg import EncoderSettings, encode_frame, read_header
from gulpio2.errors import (
    AdapterContractError,
    DuplicateIdError,
    GulpError,
    IngestError,
    IngestSettingError,
    LockedError,
    SourceReadError,
    StorageError,
)
from gulpio2.sanity import check_directory
from gulpio2.testing import FrameAdapter, make_frames

if TYPE_CHECKING:
    from gulpio2.ingest.report import ItemFailure


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


class ListAdapter(AbstractDatasetAdapter):
    """Yields the items that it was given; an exception among them is raised."""

    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def iter_data(self, slice_element=None):
        for item in self.items[slice_element or slice(None)]:
            if isinstance(item, Exception):
                raise item
            yield item


class ListingAdapter(ListAdapter):
    """Also lists its ids in advance."""

    def item_ids(self):
        return [item["id"] for item in self.items]


def an_item(id_, *, num_frames=2, frames=None, meta=None):
    frames = make_frames(num_frames) if frames is None else frames
    return {"meta": {} if meta is None else meta, "frames": frames, "id": id_}


# --- the bytes ------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"chunk_bytes": 4000}], ids=["count", "bytes"])
@pytest.mark.parametrize("list_ids", [True, False])
def test_the_bytes_are_the_same_for_1_2_and_8_workers(tmp_path, options, list_ids):
    adapter = FrameAdapter(num_items=13, bad=[5], list_ids=list_ids)
    for workers in (1, 2, 8):
        GulpIngestor(adapter, tmp_path / str(workers), 3, workers, **options).run()
    one = content(tmp_path / "1")
    assert len([name for name in one if name.endswith(".gulp")]) >= 5
    assert content(tmp_path / "2") == one
    assert content(tmp_path / "8") == one


@pytest.mark.parametrize(
    "make",
    [
        lambda: concurrent.futures.ThreadPoolExecutor(3),
        lambda: concurrent.futures.ProcessPoolExecutor(2),
        lambda: concurrent.futures.ProcessPoolExecutor(
            2, mp_context=multiprocessing.get_context("spawn")
        ),
    ],
    ids=["threads", "processes", "spawned"],
)
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_any_executor_gives_the_same_bytes(tmp_path, make):
    adapter = FrameAdapter(num_items=7, bad=[2])
    GulpIngestor(adapter, tmp_path / "own", 2, 1).run()
    with make() as executor:
        report = GulpIngestor(
            adapter, tmp_path / "theirs", 2, 2, executor=executor
        ).run()
    assert report.items == 6
    assert content(tmp_path / "theirs") == content(tmp_path / "own")


@pytest.mark.parametrize("start", ["spawn", "forkserver"])
def test_every_way_to_start_processes_gives_the_same_bytes(tmp_path, python, start):
    GulpIngestor(FrameAdapter(num_items=7, bad=[2]), tmp_path / "own", 2, 1).run()
    program = tmp_path / "program.py"
    program.write_text(
        "import multiprocessing, sys\n"
        "from gulpio2 import GulpIngestor\n"
        "from gulpio2.testing import FrameAdapter\n"
        "if __name__ == '__main__':\n"
        "    multiprocessing.set_start_method(sys.argv[1])\n"
        "    adapter = FrameAdapter(num_items=7, bad=[2])\n"
        "    GulpIngestor(adapter, 'theirs', 2, 2).run()\n"
    )
    done = subprocess.run(
        [python, program, start], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert content(tmp_path / "theirs") == content(tmp_path / "own")


# From 200 items on the run begins with an estimate, in another process.
@pytest.mark.parametrize(
    ("num_items", "where"), [(4, "the worker processes"), (200, "another process")]
)
def test_an_adapter_that_no_started_process_can_have_is_named(
    tmp_path, python, num_items, where
):
    program = tmp_path / "program.py"
    program.write_text(
        "import multiprocessing, threading\n"
        "from gulpio2 import GulpIngestor\n"
        "from gulpio2.testing import FrameAdapter\n"
        "class Connected(FrameAdapter):\n"
        "    pass\n"
        "if __name__ == '__main__':\n"
        "    multiprocessing.set_start_method('spawn')\n"
        f"    adapter = Connected(num_items={num_items}, num_frames=1)\n"
        "    adapter.connection = threading.Lock()\n"
        "    GulpIngestor(adapter, 'out', 2, 2).run()\n"
    )
    done = subprocess.run(
        [python, program], cwd=tmp_path, capture_output=True, check=False, text=True
    )
    assert done.stderr.splitlines()[-1] == (
        "gulpio2.errors.AdapterContractError: the adapter Connected cannot be sent to "
        f"{where}, because it cannot be pickled: cannot pickle '_thread.lock' object. "
        "Keep open files, connections, generators and functions defined inside of "
        "functions out of its attributes"
    )
    assert not (tmp_path / "out").exists()


def test_items_are_in_the_adapters_order_in_chunks_of_the_size_asked_for(tmp_path):
    GulpIngestor(FrameAdapter(num_items=5), tmp_path, "2", "2").run()
    assert [list(chunk.meta_dict) for chunk in GulpDirectory(tmp_path)] == [
        ["item0", "item1"],
        ["item2", "item3"],
        ["item4"],
    ]


def test_a_chunk_is_closed_once_it_holds_the_bytes_asked_for(tmp_path):
    adapter = FrameAdapter(num_items=6)
    GulpIngestor(adapter, tmp_path / "all", 100, 1).run()
    whole = (tmp_path / "all" / "data_0.gulp").stat().st_size
    GulpIngestor(adapter, tmp_path / "cut", 100, 1, chunk_bytes=whole // 3).run()
    sizes = [
        (tmp_path / "cut" / f"data_{number}.gulp").stat().st_size
        for number in range(GulpDirectory(tmp_path / "cut").num_chunks)
    ]
    assert len(sizes) == 3
    assert all(size >= whole // 3 for size in sizes[:-1])
    assert sum(sizes) == whole


def test_a_second_run_goes_on_after_the_chunks_that_are_there(tmp_path):
    GulpIngestor(FrameAdapter(num_items=3), tmp_path, 2, 1).run()
    before = content(tmp_path)
    report = GulpIngestor(ListAdapter([an_item("new")]), tmp_path, 2, 1).run()
    assert report.chunks == [2]
    after = content(tmp_path)
    assert all(after[name] == data for name, data in before.items() if "_" in name)
    assert [list(run.chunks) for run in GulpDirectory(tmp_path).manifest.runs] == [
        [0, 1],
        [2],
    ]


def test_a_lost_map_does_not_cost_the_data_of_its_chunk(tmp_path):
    GulpIngestor(FrameAdapter(num_items=2), tmp_path, 2, 1).run()
    (tmp_path / "meta_0.gmeta").unlink()
    data = (tmp_path / "data_0.gulp").read_bytes()
    report = GulpIngestor(ListAdapter([an_item("new")]), tmp_path, 2, 1).run()
    assert report.chunks == [1]
    assert (tmp_path / "data_0.gulp").read_bytes() == data


def test_the_manifest_tells_how_it_was_made(tmp_path):
    encoder = EncoderSettings(quality=80)
    GulpIngestor(FrameAdapter(num_items=3), tmp_path, 2, 1, encoder=encoder).run()
    (run,) = GulpDirectory(tmp_path).manifest.runs
    assert run.adapter == "FrameAdapter"
    assert run.options["num_items"] == 3
    assert run.encoder["quality"] == 80
    assert run.chunks == (0, 1)


def test_a_quality_and_a_subsampling_can_be_chosen(tmp_path):
    encoder = EncoderSettings(quality=50, subsampling="420")
    GulpIngestor(FrameAdapter(num_items=1), tmp_path, 1, 1, encoder=encoder).run()
    jpegs = GulpDirectory(tmp_path).read_jpegs("item0")
    frame = make_frames(4, seed=0)[0]
    assert jpegs[0] == encode_frame(frame, encoder)
    assert read_header(jpegs[0]).subsampling == "420"


def test_jpeg_bytes_are_stored_as_they_are(tmp_path):
    jpegs = [encode_frame(f, EncoderSettings(quality=31)) for f in make_frames(3)]
    GulpIngestor(ListAdapter([an_item("a", frames=jpegs)]), tmp_path, 1, 1).run()
    assert GulpDirectory(tmp_path).read_jpegs("a") == jpegs


def test_progress_counts_what_is_stored(tmp_path):
    for workers in (1, 2):
        counts = dict.fromkeys(("items", "frames", "num_bytes", "failures"), 0)

        def count(counts=counts, **new):
            for name, number in new.items():
                counts[name] += number

        adapter = FrameAdapter(num_items=6)
        folder = tmp_path / str(workers)
        report = GulpIngestor(adapter, folder, 2, workers, progress=count).run()
        assert counts == {
            "items": 6,
            "frames": 24,
            "num_bytes": report.num_bytes,
            "failures": 0,
        }


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("of", ["frames", "items"])
def test_what_the_progress_raises_ends_the_run_and_costs_no_item(tmp_path, workers, of):
    def stop(**counts):
        if counts.get(of):
            raise ZeroDivisionError

    noise = np.random.default_rng(0).integers(0, 256, (200, 200, 3), np.uint8)
    adapter = ListAdapter([an_item(id_, frames=[noise] * 4) for id_ in "abc"])
    ingestor = GulpIngestor(adapter, tmp_path, 3, workers, progress=stop)
    with pytest.raises(ZeroDivisionError):
        ingestor.run()
    assert ingestor.report is not None
    assert ingestor.report.failures == []
    report = GulpIngestor(adapter, tmp_path, 3, workers, resume=True).run()
    assert (report.items, report.failures) == (3, [])
    assert check_directory(tmp_path, deep=True).problems == []


# --- items that fail ---------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
def test_a_source_that_cannot_be_read_costs_that_item(tmp_path, workers):
    told: list[ItemFailure] = []
    report = GulpIngestor(
        FrameAdapter(num_items=5, bad=[1, 4]),
        tmp_path,
        3,
        workers,
        on_failure=told.append,
    ).run()
    directory = GulpDirectory(tmp_path)
    assert sorted(directory.merged_meta_dict) == ["item0", "item2", "item3"]
    assert [failure.id for failure in report.failures] == ["item1", "item4"]
    assert {failure.id for failure in told} == {"item1", "item4"}
    lines = (tmp_path / "failures.jsonl").read_text().splitlines()
    first = json.loads(lines[0])
    assert len(first.pop("ingest")) == 16
    assert first == {
        "position": 1,
        "id": "item1",
        "source": None,
        "error": "SourceReadError",
        "message": "item1 was made to fail",
    }
    assert len(lines) == 2
    # What the item had written before it failed is gone.
    for chunk in directory:
        ends = [sum(i[::2]) for e in chunk.meta_dict.values() for i in e["frame_info"]]
        assert max(ends) == (tmp_path / chunk.data_file_path).stat().st_size


def test_a_call_raises_the_first_failure_after_the_rest_was_stored(tmp_path):
    ingestor = GulpIngestor(FrameAdapter(num_items=5, bad=[4, 1]), tmp_path, 1, 2)
    with pytest.raises(SourceReadError, match="item1 was made to fail"):
        ingestor()
    assert len(GulpDirectory(tmp_path)) == 3
    assert ingestor.report is not None
    assert len(ingestor.report.failures) == 2


def test_failures_can_be_allowed(tmp_path):
    adapter = FrameAdapter(num_items=3, bad=[1])
    assert GulpIngestor(adapter, tmp_path, 2, 1, allow_failures=True)() is None
    assert len(GulpDirectory(tmp_path)) == 2


class Mending(FrameAdapter):
    """Is told of what fails after it was made: its options are those of one source."""

    def failing(self, *positions):
        self.bad = positions
        return self


def test_a_run_without_failures_removes_the_list_of_the_run_before(tmp_path):
    GulpIngestor(Mending(num_items=3).failing(1), tmp_path, 2, 1).run()
    assert listed(tmp_path) == [(1, "item1")]
    GulpIngestor(Mending(num_items=3), tmp_path, 2, 1, on_duplicate="skip").run()
    assert not (tmp_path / "failures.jsonl").exists()


def listed(folder):
    """Give position and id of what is listed as failed."""
    lines = (folder / "failures.jsonl").read_text().splitlines()
    return [(line["position"], line["id"]) for line in map(json.loads, lines)]


class Others(Mending):
    """Has ids of its own."""

    def item_ids(self):
        return [f"otheritem{number}" for number in range(self.num_items)]

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            yield {**item, "id": f"other{item['id']}"}


def test_what_an_earlier_ingest_could_not_store_stays_listed(tmp_path, caplog):
    """Who is given the directory must know of all that is missing."""
    GulpIngestor(Mending(num_items=3).failing(1), tmp_path, 2, 1).run()
    GulpIngestor(Others(num_items=4).failing(0), tmp_path, 2, 1).run()
    assert listed(tmp_path) == [(1, "item1"), (0, "otheritem0")]
    report = check_directory(tmp_path)
    assert report.problems == []
    assert [note.code for note in report.notes] == ["failed-items"]
    caplog.clear()
    # What was tried again is told anew, whether it came or not.
    again = Others(num_items=4)
    GulpIngestor(again, tmp_path, 2, 1, on_duplicate="skip").run()
    assert listed(tmp_path) == [(1, "item1")]
    assert not caplog.records
    # As where another option is to help: it is another ingest then.
    other = Mending(num_items=3, num_frames=3).failing(1)
    GulpIngestor(other, tmp_path, 2, 1, on_duplicate="skip").run()
    assert listed(tmp_path) == [(1, "item1")]
    other = Mending(num_items=3, num_frames=2)
    GulpIngestor(other, tmp_path, 2, 1, on_duplicate="skip").run()
    assert not (tmp_path / "failures.jsonl").exists()
    assert check_directory(tmp_path, deep=True).notes == []


def test_damaged_lines_of_an_earlier_ingest_stay(tmp_path):
    """They tell that something is missing, and a check that nobody can say what."""
    GulpIngestor(Mending(num_items=3).failing(1), tmp_path, 2, 1).run()
    path = tmp_path / "failures.jsonl"
    deep = b'{"id": ' + 100_000 * b"[" + 100_000 * b"]" + b"}"
    other = b'{"id": [], "ingest": "another"}'
    lines = path.read_bytes()[:40], b"[]", b'{"id": []}', b"\xff", deep, other
    path.write_bytes(b"\n".join(lines))
    GulpIngestor(Others(num_items=3).failing(2), tmp_path, 2, 1).run()
    *kept, last = path.read_bytes().splitlines()
    # The third says of no other source that it is of that, and this one was tried.
    assert kept == [lines[0], lines[1], *lines[3:]]
    assert json.loads(last)["id"] == "otheritem2"
    assert [each.code for each in check_directory(tmp_path).problems] == [
        "bad-failures"
    ]


def test_failures_stay_where_no_ingest_has_stored_anything(tmp_path, caplog):
    GulpIngestor(Mending(num_items=1).failing(0), tmp_path, 2, 1).run()
    (tmp_path / "gulp.json").unlink()
    GulpIngestor(Others(num_items=1).failing(0), tmp_path, 2, 1).run()
    assert listed(tmp_path) == [(0, "item0"), (0, "otheritem0")]
    # That there is no chunk is said once, as the ingest begins.
    names = [record.name for record in caplog.records]
    assert names.count("gulpio2.directory") == 1


def test_failures_of_another_source_say_nothing_of_items_at_their_places(tmp_path):
    GulpIngestor(Mending(num_items=3).failing(1), tmp_path, 2, 1).run()
    GulpIngestor(Others(num_items=3), tmp_path, 2, 1).run()
    again = GulpIngestor(
        Others(num_items=3), tmp_path, 2, 1, resume=True, on_duplicate="skip"
    )
    assert again.run().failures == []
    chunk = GulpDirectory(tmp_path).chunk_objs_lookup[2]
    with chunk.open("ab"):
        del chunk.meta_dict["otheritem1"]
    assert again.run().items == 1  # it is not taken for one that has failed


class LabelledAdapter(ListingAdapter):
    """Has labels, of which there may be more than items."""

    labels = ("a",)

    def label_mapping(self):
        return {label: index for index, label in enumerate(self.labels)}


@pytest.mark.parametrize("kind", [ListAdapter, ListingAdapter, LabelledAdapter])
def test_a_run_that_has_nothing_to_store_leaves_a_directory_that_is_whole(
    tmp_path, kind
):
    items = [an_item("a"), an_item("b", frames=[])]
    GulpIngestor(kind(items), tmp_path, 2, 1).run()
    assert (tmp_path / "failures.jsonl").exists()
    again = kind(items)
    del again.items[1]
    again.labels = ("a", "z")
    report = GulpIngestor(again, tmp_path, 2, 1, on_duplicate="skip").run()
    assert (report.items, report.skipped) == (0, 1)
    assert not (tmp_path / "failures.jsonl").exists()
    assert check_directory(tmp_path, deep=True).problems == []
    assert len(GulpDirectory(tmp_path).manifest.runs) == 1
    before = content(tmp_path)
    GulpIngestor(again, tmp_path, 2, 1, on_duplicate="skip").run()
    assert content(tmp_path) == before


def test_an_adapter_that_raises_costs_the_item_at_that_position(tmp_path):
    items = [an_item("a"), an_item("b"), KeyError("no row"), an_item("d")]
    report = GulpIngestor(ListAdapter(items), tmp_path, 4, 1).run()
    assert sorted(GulpDirectory(tmp_path).merged_meta_dict) == ["a", "b", "d"]
    (failure,) = report.failures
    assert (failure.position, failure.id, failure.error) == (2, None, "KeyError")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_listed_item_that_was_not_given_is_named_by_what_is_listed(tmp_path, workers):
    class Listed(FrameAdapter):
        item_ids = FrameAdapter.item_ids  # of these items, too

        def iter_data(self, slice_element=None):
            for item in super().iter_data(slice_element):
                if item["id"] in {"item0", "item3"}:
                    raise KeyError("no such row")
                yield item

        def item_source(self, position):
            return f"row {position}"

    adapter = Listed(num_items=4, list_ids=True)
    report = GulpIngestor(adapter, tmp_path, 2, workers, allow_failures=True).run()
    lines = (tmp_path / "failures.jsonl").read_text().splitlines()
    told = [
        (line["position"], line["id"], line["source"])
        for line in map(json.loads, lines)
    ]
    assert told == [(0, "item0", "row 0"), (3, "item3", "row 3")]
    assert report.not_given == 0
    again = GulpIngestor(adapter, tmp_path, 2, workers, resume=True).run()
    assert [failure.id for failure in again.failures] == ["item0", "item3"]


class OwnError(Exception):
    """An exception whose constructor makes it impossible to unpickle."""

    def __init__(self, code, detail):
        super().__init__(f"{code}: {detail}")


def test_an_exception_that_cannot_be_pickled_still_tells_its_cause(tmp_path):
    class Failing(FrameAdapter):
        def _frames(self, number):
            yield from super()._frames(number)
            raise OwnError(7, "broken disk")

    ingestor = GulpIngestor(Failing(num_items=2), tmp_path, 1, 2)
    # Dask, once loaded, makes such exceptions survive: then it comes as it is.
    with pytest.raises((IngestError, OwnError), match="7: broken disk"):
        ingestor()
    assert ingestor.report is not None
    assert ingestor.report.failures[0].error == "OwnError"


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (["no dict"], "is a list; it must be a dict"),
        ({"id": 1, "meta": {}}, "has no 'frames'"),
        ({"meta": {}, "frames": []}, "has no 'id'"),
        (an_item("x", meta=[1]), "it must be a dict"),
        (an_item("x", meta={"a": {"b": {1, 2}}}), r"a set \(at `\$.a.b`\)"),
        (an_item("x", frames=[np.zeros((4, 4, 3))]), "item 'x', frame 0: .*float64"),
        (an_item("x", frames=[b"no jpeg"]), "item 'x', frame 0: .*not a JPEG"),
        (an_item("x", frames=[]), "item 'x' has no frames"),
    ],
    ids=["list", "no frames", "no id", "meta", "set", "float", "bytes", "empty"],
)
def test_an_item_that_breaks_the_contract_is_named(tmp_path, item, message):
    items = [an_item("before"), item, an_item("after")]
    ingestor = GulpIngestor(ListAdapter(items), tmp_path, 3, 1)
    with pytest.raises(GulpError, match=message):
        ingestor()
    assert list(GulpDirectory(tmp_path).merged_meta_dict) == ["before", "after"]


@pytest.mark.parametrize("lists_ids", [True, False])
def test_ids_that_are_no_utf8_are_warned_of(tmp_path, caplog, lists_ids):
    class Listing(ListAdapter):
        def item_ids(self):
            return [item["id"] for item in self.items]

    cls = Listing if lists_ids else ListAdapter
    adapter = cls([an_item(id_) for id_ in ("a", "y\udcff", "é", "x\udcff")])
    assert GulpIngestor(adapter, tmp_path, 2, 1).run().items == 4
    (told,) = caplog.messages
    assert told.startswith("2 ids are no text in UTF-8")
    assert "'x\\udcff' (and 1 more). Such a directory can be read" in told
    caplog.clear()
    adapter = cls([an_item("only\udcff")])
    GulpIngestor(adapter, tmp_path / "other", 2, 1).run()
    (told,) = caplog.messages
    assert told.startswith("1 id is no text in UTF-8")
    assert "'only\\udcff'. Such" in told


@pytest.mark.parametrize("of", [[], [an_item("a"), an_item("a")]], ids=["none", "two"])
def test_a_run_that_is_refused_leaves_no_folder(tmp_path, of):
    class Listing(ListAdapter):
        def item_ids(self):
            return [item["id"] for item in self.items]

    (tmp_path / "there").mkdir()
    for folder in ("new/below", "there", "there/x"):
        with pytest.raises((IngestSettingError, DuplicateIdError)):
            GulpIngestor(Listing(of), tmp_path / folder, 2, 1).run()
        assert [path.name for path in tmp_path.iterdir()] == ["there"]
    assert not list((tmp_path / "there").iterdir())


class ShortAdapter(ListAdapter):
    """Counts more items than it gives."""

    def __len__(self):
        return len(self.items) + 2


def test_items_that_an_adapter_counts_and_does_not_give_are_spoken_of(tmp_path, caplog):
    adapter = ShortAdapter([an_item("a"), an_item("b"), an_item("c")])
    report = GulpIngestor(adapter, tmp_path, 2, 2).run()
    assert (report.items, report.not_given) == (3, 2)
    assert "2 not given by the adapter" in str(report)
    assert "counts 5 items and gave 3" in caplog.text


def test_an_adapter_that_gives_nothing_is_told_of_and_not_its_folder(tmp_path, caplog):
    class Listed(FrameAdapter):
        item_ids = FrameAdapter.item_ids

        def iter_data(self, slice_element=None):
            return iter(())

    adapter = Listed(num_items=2, list_ids=True)
    assert GulpIngestor(adapter, tmp_path / "out", 2, 1).run().not_given == 2
    (record,) = caplog.records
    assert "Listed lists 2 items that it did not give: 'item0'" in record.getMessage()


class UnevenAdapter(ListAdapter):
    """Gives more than it counts at one position, and nothing at another."""

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            if item["id"] != "c":
                yield item
            if item["id"] == "a":
                yield an_item("more")


def test_more_items_than_were_counted_do_not_make_up_for_fewer(tmp_path, caplog):
    adapter = UnevenAdapter([an_item(id_) for id_ in "abcd"])
    report = GulpIngestor(adapter, tmp_path, 2, 1).run()
    assert (report.items, report.not_given) == (4, 1)
    assert "1 not given by the adapter" in str(report)


def test_what_a_call_raises_tells_what_became_of_the_rest(tmp_path):
    ingestor = GulpIngestor(FrameAdapter(num_items=5, bad=[1]), tmp_path, 2, 1)
    with pytest.raises(SourceReadError) as caught:
        ingestor()
    shown = "".join(traceback.format_exception(caught.value))
    assert "1 of the items failed, 4 are stored" in shown
    assert "failures.jsonl" in shown


# --- ids ------------------------------------------------------------------------------


@pytest.mark.parametrize("list_ids", [True, False], ids=["listed", "unlisted"])
@pytest.mark.parametrize("workers", [1, 3])
class TestIdsThatAreTaken:
    def adapter(self, list_ids):
        # item1 comes again in another chunk, item0 in the same one.
        ids = ["item0", "item0", "item1", "item2", "item1", "item3"]
        items = [an_item(id_, meta={"n": n}) for n, id_ in enumerate(ids)]
        return ListingAdapter(items) if list_ids else ListAdapter(items)

    def test_they_are_refused(self, tmp_path, list_ids, workers):
        with pytest.raises(DuplicateIdError, match="item"):
            GulpIngestor(self.adapter(list_ids), tmp_path, 2, workers).run()
        assert len(GulpDirectory(tmp_path)) <= 4  # it opens

    def test_they_are_skipped(self, tmp_path, list_ids, workers):
        report = GulpIngestor(
            self.adapter(list_ids), tmp_path, 2, workers, on_duplicate="skip"
        ).run()
        assert (report.items, report.skipped, report.failures) == (4, 2, [])
        self.expect_first_ones(tmp_path)

    def test_they_are_reported(self, tmp_path, list_ids, workers):
        report = GulpIngestor(
            self.adapter(list_ids), tmp_path, 2, workers, on_duplicate="report"
        ).run()
        assert [(f.position, f.id, f.error) for f in report.failures] == [
            (1, "item0", "DuplicateIdError"),
            (4, "item1", "DuplicateIdError"),
        ]
        self.expect_first_ones(tmp_path)

    def test_a_call_raises_that_of_the_first(self, tmp_path, list_ids, workers):
        ingestor = GulpIngestor(
            self.adapter(list_ids), tmp_path, 2, workers, on_duplicate="report"
        )
        with pytest.raises(DuplicateIdError, match="'item0'"):
            ingestor()
        self.expect_first_ones(tmp_path)

    def expect_first_ones(self, folder):
        with GulpDirectory(folder) as directory:
            stored = {
                id_: entry["meta_data"][0]["n"]
                for id_, entry in directory.merged_meta_dict.items()
            }
        assert stored == {"item0": 0, "item1": 2, "item2": 3, "item3": 5}

    def test_those_in_the_directory_count(self, tmp_path, list_ids, workers):
        GulpIngestor(ListAdapter([an_item("item2", meta={"n": 3})]), tmp_path, 2, 1)()
        report = GulpIngestor(
            self.adapter(list_ids), tmp_path, 2, workers, on_duplicate="skip"
        ).run()
        assert (report.items, report.skipped) == (3, 3)
        self.expect_first_ones(tmp_path)


def test_refused_ids_are_named_with_both_sources_before_anything_is_written(tmp_path):
    class Sourced(ListingAdapter):
        def item_source(self, position):
            return f"folder{position}/x.mp4"

    adapter = Sourced([an_item("x"), an_item("x")])
    with pytest.raises(DuplicateIdError, match=r"folder0/x.mp4.*folder1/x.mp4"):
        GulpIngestor(adapter, tmp_path, 1, 1).run()
    assert content(tmp_path) == {}


# --- settings and folders -------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((2, 0), {}, "num_workers is 0"),
        ((2, 20_000), {}, "num_workers is 20000; 4096 are the most"),
        ((0, 1), {}, "a chunk must hold at least 1 item"),
        ((None, 1), {}, "videos_per_chunk is None; it must be a whole number"),
        ((2, "two"), {}, "num_workers is 'two'; it must be a whole number"),
        ((2, 1), {"chunk_bytes": 1e9 + 0.5}, "chunk_bytes is 1000000000.5; it must be"),
        ((2, 1), {"on_duplicate": "ignore"}, "must be one of raise, skip, report"),
        ((2, 1), {"chunk_bytes": 0}, "at least one byte"),
        ((2, 1), {"chunk_bytes": "1GB"}, "chunk_bytes is '1GB'; it must be a whole"),
        ((2, 1), {"encoder": {"quality": 3}}, "it must be an EncoderSettings"),
        ((2, 1), {"shard": (1, 3)}, r"shard is \(1, 3\); it must be a Shard"),
        ((2, 1), {"executor": multiprocessing}, "must be an Executor, as client"),
        ((2, 1), {"progress": True}, "progress is True; it must be callable, or None"),
        ((2, 1), {"on_failure": "log"}, "on_failure is 'log'; it must be callable"),
    ],
)
def test_settings_that_cannot_be_are_refused(tmp_path, arguments, options, message):
    with pytest.raises(IngestSettingError, match=message):
        GulpIngestor(FrameAdapter(), tmp_path, *arguments, **options).run()


def test_false_is_no_function_to_call(tmp_path):
    adapter, none = FrameAdapter(num_items=3, bad=[1]), cast("Any", False)
    run = GulpIngestor(adapter, tmp_path, 3, 1, on_failure=none, progress=none).run()
    assert (run.items, len(run.failures)) == (2, 1)


@pytest.mark.parametrize(
    ("adapter", "message"),
    [
        ("videos", "the adapter is 'videos', which has no iter_data. Give one of"),
        (["a.mp4", "b.mp4"], "which has no iter_data"),
        (FrameAdapter, "is the class FrameAdapter; give an instance of it"),
    ],
)
def test_what_is_no_adapter_is_refused_before_an_item(tmp_path, adapter, message):
    ingestor = GulpIngestor(adapter, tmp_path, 2, 1)
    for run in (ingestor, ingestor.run):
        with pytest.raises(AdapterContractError, match=message):
            run()
    assert content(tmp_path) == {}


def test_an_adapter_without_items_is_refused(tmp_path):
    with pytest.raises(AssertionError, match="there are no items to ingest"):
        GulpIngestor(FrameAdapter(num_items=0), tmp_path / "out", 1, 1)()
    assert (tmp_path / "out").is_dir()


def test_an_adapter_without_items_is_refused_for_that_whatever_it_tells(tmp_path):
    class Telling(FrameAdapter):
        def describe(self):
            return ["no", "mapping"]

    with pytest.raises(IngestSettingError, match=r"Telling\(\) found none"):
        GulpIngestor(Telling(num_items=0), tmp_path, 1, 1).run()


def test_an_output_folder_without_a_name_is_not_the_current_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(IngestSettingError, match="output_folder is empty"):
        GulpIngestor(FrameAdapter(), "", 1, 1)()
    assert content(tmp_path) == {}
    GulpIngestor(FrameAdapter(), ".", 1, 1)()
    assert GulpDirectory(".").num_chunks == len(FrameAdapter())


class MovingAdapter(FrameAdapter):
    """Changes the current folder while it gives its items."""

    def __init__(self, folder, **options):
        super().__init__(**options)
        self.folder = folder

    def iter_data(self, slice_element=None):
        with contextlib.chdir(self.folder):
            yield from super().iter_data(slice_element)


@pytest.mark.skipif(not hasattr(contextlib, "chdir"), reason="Python 3.10 has no chdir")
@pytest.mark.parametrize("list_ids", [True, False])
@pytest.mark.parametrize("workers", [1, 2])
def test_an_adapter_that_changes_the_current_folder_moves_no_file(
    tmp_path, monkeypatch, workers, list_ids
):
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    adapter = MovingAdapter(tmp_path / "there", bad=[2], list_ids=list_ids)
    GulpIngestor(FrameAdapter(num_items=1), tmp_path / "there" / "out", 1, 1).run()
    before = content(tmp_path / "there" / "out")
    monkeypatch.chdir(tmp_path / "here")
    report = GulpIngestor(adapter, "out", 2, workers).run()
    assert (report.items, [each.id for each in report.failures]) == (3, ["item2"])
    assert content(tmp_path / "there" / "out") == before
    assert check_directory(tmp_path / "here" / "out", deep=True).problems == []
    with GulpDirectory(tmp_path / "here" / "out") as directory:
        assert [*directory.merged_meta_dict] == ["item0", "item1", "item3"]
    report = GulpIngestor(adapter, "out", 2, workers, resume=True).run()
    assert (report.items, len(report.failures)) == (0, 1)


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StorageError, match="cannot create the folder"):
        GulpIngestor(FrameAdapter(), tmp_path / "file", 1, 1).run()
    assert (tmp_path / "file").read_text() == "mine"


def test_a_second_writer_is_refused(tmp_path):
    ingestor = GulpIngestor(FrameAdapter(), tmp_path, 1, 1)
    refused = pytest.raises(LockedError, match="another process is writing")
    with ingestor.output_store().lock(), refused:
        GulpIngestor(FrameAdapter(), tmp_path, 1, 1).run()


def test_an_adapter_that_cannot_be_pickled_is_named_where_that_is_needed(tmp_path):
    adapter = ListAdapter([an_item("a")])
    adapter.items.append(lambda: None)
    with concurrent.futures.ThreadPoolExecutor(1) as executor:
        ingestor = GulpIngestor(adapter, tmp_path, 1, 1, executor=executor)
        with pytest.raises(AdapterContractError, match="ListAdapter cannot be sent"):
            ingestor.run()
    # In this process nothing is pickled, and only the item that is none fails.
    assert GulpIngestor(adapter, tmp_path, 1, 1).run().items == 1


class LateMetadata(FrameAdapter):
    """Adds to an item's metadata what cannot be stored, after it gave the item."""

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            yield item
            if item["id"] in {"item1", "item3"}:
                item["meta"]["late"] = object()


@pytest.mark.parametrize("workers", [1, 2])
def test_metadata_that_turns_bad_late_cost_their_item(tmp_path, workers):
    report = GulpIngestor(LateMetadata(num_items=6), tmp_path, 4, workers).run()
    assert [(f.position, f.id) for f in report.failures] == [(1, "item1"), (3, "item3")]
    assert (report.items, report.frames) == (4, 16)
    ids = list(GulpDirectory(tmp_path).chunk_lookup)
    assert ids == ["item0", "item2", "item4", "item5"]
    assert check_directory(tmp_path, deep=True).problems == []


def test_a_broken_manifest_is_refused_before_anything_is_written(tmp_path):
    GulpIngestor(FrameAdapter(num_items=2), tmp_path, 2, 1).run()
    (tmp_path / "gulp.json").write_text("junk")
    before = content(tmp_path)
    with pytest.raises(GulpError, match=r"gulp\.json"):
        GulpIngestor(NamedAdapter("x", num_items=2), tmp_path, 2, 1).run()
    assert content(tmp_path) == before


class NamedAdapter(FrameAdapter):
    """Items with another name."""

    def __init__(self, name, **options):
        super().__init__(list_ids=False, **options)
        self.name = name

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            yield {**item, "id": f"{self.name}{item['id']}"}


def test_frames_that_are_none_are_said_to_be_so(tmp_path):
    class NoFrames(FrameAdapter):
        def iter_data(self, slice_element=None):
            for item in super().iter_data(slice_element):
                yield {**item, "frames": None}

    report = GulpIngestor(NoFrames(num_items=1), tmp_path, 2, 1).run()
    assert "its frames are None, a NoneType; they must be" in report.failures[0].message


def test_an_id_of_the_directory_is_said_to_be_there(tmp_path):
    GulpIngestor(FrameAdapter(num_items=2), tmp_path, 2, 1).run()
    with pytest.raises(
        DuplicateIdError, match=r"'item0' \(position 0\) is in .*already"
    ):
        GulpIngestor(FrameAdapter(num_items=2, list_ids=False), tmp_path, 2, 1).run()


def test_chunks_that_only_want_other_names_are_not_begun_beside(tmp_path):
    GulpIngestor(FrameAdapter(num_items=4), tmp_path, 2, 1).run()
    for name in ("data_0.gulp", "meta_0.gmeta", "data_1.gulp", "meta_1.gmeta"):
        (tmp_path / name).rename(tmp_path / name.replace("_", "_00"))
    before = sorted(path.name for path in tmp_path.iterdir())
    ingestor = GulpIngestor(FrameAdapter(num_items=6), tmp_path, 2, 1)
    with pytest.raises(IngestError, match=r"data_000\.gulp and 3 .*: rename .* before"):
        ingestor.run()
    assert sorted(path.name for path in tmp_path.iterdir()) == before


class Speechless(FrameAdapter):
    """Fails with an error that has no text and cannot be sent to another process."""

    def iter_data(self, slice_element=None):
        class SpeechlessError(Exception):
            def __str__(self):
                raise ValueError

        for item in super().iter_data(slice_element):
            if item["id"] == "item1":
                raise SpeechlessError
            yield item


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_that_cannot_be_shown_costs_its_item_alone(tmp_path, workers):
    report = GulpIngestor(Speechless(num_items=4), tmp_path, 2, workers).run()
    assert report.items == 3
    (failure,) = report.failures
    assert (failure.position, failure.error) == (1, "SpeechlessError")
    assert failure.message == "its message cannot be shown"


@pytest.mark.parametrize("num_workers", [1, 2])
def test_of_an_item_that_failed_twice_the_first_error_is_told(tmp_path, num_workers):
    class Popping(ListAdapter):
        """It changes what it is asked for again."""

        def __init__(self):
            self.rows = [{"id": n, "path": f"p{n}"} for n in range(5)]

        def __len__(self):
            return len(self.rows)

        def iter_data(self, slice_element=None):
            for row in self.rows[slice_element or slice(None)]:
                path = row.pop("path")
                if path == "p2":
                    raise ConnectionError(f"cannot read {path}")
                yield {"id": row["id"], "meta": row, "frames": make_frames(1)}

    with pytest.raises(ConnectionError, match="cannot read p2"):
        GulpIngestor(Popping(), tmp_path, 2, num_workers)()
    (line,) = (tmp_path / "failures.jsonl").read_text().splitlines()
    assert json.loads(line)["error"] == "ConnectionError"
