"""Resuming where files have come or gone since the run was interrupted."""

import os
import shutil

import pytest

from gulpio2 import GulpChunk, GulpDirectory, GulpIngestor
from gulpio2.adapters import ImageListAdapter
from gulpio2.codecs.jpeg import EncoderSettings, encode_frame
from gulpio2.errors import IngestError, StorageError
from gulpio2.merge import merge_directories
from gulpio2.removal import compact_directory, delete_items
from gulpio2.sanity import check_directory
from gulpio2.testing import FrameAdapter, make_frames
from tests.faults.killed import is_killed
from tests.faults.operations import content

pytestmark = pytest.mark.usefixtures("_fast_disk")


def ingest(folder, *, resume=False, **options):
    adapter = FrameAdapter(num_items=6, num_frames=2, list_ids="chunk_bytes" in options)
    return GulpIngestor(adapter, folder, 2, 1, resume=resume, **options)


def kill(folder, moment, run):
    """Have a run end at an operation; tell whether it got there."""
    return is_killed(moment, run(folder).run)


def refusal(folder, **options):
    """Resume, and give what is said against it; nothing if all is well."""
    try:
        ingest(folder, resume=True, **options).run()
    except IngestError as error:
        return str(error)
    return ""


@pytest.fixture(params=["one chunk a task", "chunks by bytes"])
def options(request):
    return {} if request.param == "one chunk a task" else {"chunk_bytes": 1500}


def cleared_away(root, options, step):
    """Kill runs at operations all over, and clear away what is unfinished."""
    # As somebody does on a full disk.
    for moment in range(1, 400, step):
        folder = root / str(moment)
        folder.mkdir()
        if not kill(folder, moment, lambda folder: ingest(folder, **options)):
            break
        for path in folder.glob("*.partial"):
            path.unlink()
        yield folder
    assert moment > 50


def test_what_was_cleared_away_is_made_again_or_told(tmp_path, options, kill_step):
    ingest(tmp_path / "whole", **options).run()
    whole = content(tmp_path / "whole")
    endings = set()
    for folder in cleared_away(tmp_path, options, kill_step):
        before = content(folder)
        if told := refusal(folder, **options):
            # Chunks of a task whose first ones are there already.
            assert "which the interrupted run had stored. Put it back" in told
            assert content(folder) == before
            endings.add("told")
        else:
            assert content(folder) == whole
            endings.add("made again")
    assert endings == ({"told", "made again"} if options else {"made again"})


def chunk_files(files):
    return {
        name: data for name, data in files.items() if name.endswith(("gulp", "gmeta"))
    }


def others(folder):
    """Make another run into the same folder."""
    return GulpIngestor(Others(num_items=3, list_ids=False), folder, 1, 1)


class Others(FrameAdapter):
    """Items with other names."""

    def iter_data(self, slice_element=None):
        for item in super().iter_data(slice_element):
            yield {**item, "id": f"other{item['id']}"}


def test_a_run_killed_while_it_clears_another_away_leaves_all_of_it_or_no_journal(
    tmp_path, kill_step
):
    # A journal without the files that it speaks of was taken for a run that had done
    # its work, where a chunk of others had come to the number of one that was not.
    ingest(tmp_path / "whole").run()
    whole = content(tmp_path / "whole")
    endings = set()
    for moment in range(30, 90, 6 * kill_step):
        for later in range(1, 40):
            folder = tmp_path / f"{moment}-{later}"
            assert kill(folder, moment, ingest)
            before = content(folder)
            if not kill(folder, later, others):
                break
            after = content(folder)
            if after == before:
                ingest(folder, resume=True).run()
                assert content(folder) == whole
                endings.add("resumed")
            elif "ingest.journal" not in after:
                assert chunk_files(after) == chunk_files(before)
                endings.add("abandoned")
            else:
                assert after["ingest.journal"] != before["ingest.journal"]
                endings.add("begun")
                break
    assert endings == {"resumed", "abandoned", "begun"}


@pytest.fixture
def interrupted(tmp_path):
    """Make a directory whose ingest was killed when it had one chunk of three."""
    folder = tmp_path / "interrupted"
    assert kill(folder, 68, ingest)
    assert 0 < len(GulpDirectory(folder)) < 6
    return folder


def test_a_chunk_that_was_written_meanwhile_is_not_written_over(interrupted):
    (chunk,) = GulpDirectory(interrupted).new_chunks(1)
    with chunk.open("wb"):
        chunk.append("mine", {}, make_frames(2))
    before = content(interrupted)
    for _ in range(2):
        with pytest.raises(IngestError, match=r"meta_2\.gmeta is there, and is not wh"):
            ingest(interrupted, resume=True).run()
        after = content(interrupted)
        assert {name: after[name] for name in before if "journal" not in name} == {
            name: data for name, data in before.items() if "journal" not in name
        }
    report = GulpIngestor(
        FrameAdapter(num_items=6, num_frames=2), interrupted, 2, 1, on_duplicate="skip"
    ).run()
    assert report.items + report.skipped == 6
    assert set(GulpDirectory(interrupted).chunk_lookup) == {
        "mine",
        *(f"item{number}" for number in range(6)),
    }


def test_a_chunk_that_came_when_ours_was_cleared_away_is_not_taken_for_ours(
    tmp_path, options, kill_step
):
    told = 0
    for folder in cleared_away(tmp_path, options, kill_step):
        (chunk,) = GulpDirectory(folder).new_chunks(1)
        with chunk.open("wb"):
            chunk.append("mine", {}, make_frames(2))
        if refusal(folder, **options):
            told += 1
        else:
            assert len(GulpDirectory(folder)) == 7
        assert "mine" in GulpDirectory(folder).chunk_lookup
    assert told * kill_step > 30


def test_a_chunk_of_the_run_whose_items_were_all_deleted_is_ours_until_appended_to(
    interrupted,
):
    number = max(GulpDirectory(interrupted).chunk_lookup.values())
    chunk = GulpDirectory(interrupted).chunk_objs_lookup[number]
    ours = list(chunk.meta_dict)
    delete_items(interrupted, ours)
    twin = interrupted.parent / "twin"
    shutil.copytree(interrupted, twin)
    ingest(twin, resume=True).run()
    assert len(GulpDirectory(twin)) == 6 - len(ours)
    with chunk.open("ab"):
        chunk.append("mine", {}, make_frames(2))
    before = content(interrupted)
    told = rf"meta_{number}\.gmeta is there, and holds none of the items that this run"
    with pytest.raises(IngestError, match=told):
        ingest(interrupted, resume=True).run()
    assert content(interrupted) == before


@pytest.mark.parametrize("length", [400, None])
def test_a_data_file_without_map_is_not_written_over(interrupted, length):
    # It may be all that is left of a chunk.
    ingest(interrupted.parent / "whole").run()
    data = interrupted / "data_2.gulp"
    size = (interrupted.parent / "whole" / data.name).stat().st_size
    data.write_bytes(b"\x07" * (length or size))
    before = data.read_bytes()
    for _ in range(2):
        with pytest.raises(IngestError, match=r"data_2\.gulp is there, and is not wh"):
            ingest(interrupted, resume=True).run()
        assert data.read_bytes() == before
    report = ingest(interrupted, on_duplicate="skip").run()
    assert (report.items, report.skipped) == (2, 4)
    assert data.read_bytes() == before
    assert len(GulpDirectory(interrupted)) == 6


def test_a_data_file_of_the_run_itself_is_no_other(interrupted):
    # The run that renamed it was killed before its map, and lost its journal's end.
    whole = interrupted.parent / "whole"
    ingest(whole).run()
    (interrupted / "data_2.gulp").write_bytes((whole / "data_2.gulp").read_bytes())
    ingest(interrupted, resume=True).run()
    assert content(interrupted) == content(whole)


def begun_anew(folder):
    """Give copies in which a writer of chunk 2 has ended between data file and map."""
    before = (folder / "data_2.gulp").read_bytes()
    for moment in range(1, 200):
        copy = folder.with_name(f"{folder.name}-{moment}")
        shutil.copytree(folder, copy)
        chunk = GulpChunk(copy / "data_2.gulp", copy / "meta_2.gmeta")

        def write(chunk=chunk):
            with chunk.open("wb"):
                chunk.append("mine", {}, make_frames(4, seed=7))

        if not is_killed(moment, write):
            return
        is_mapped = (copy / "meta_2.gmeta").exists()
        if (copy / "data_2.gulp").read_bytes() != before and not is_mapped:
            yield copy


def test_frames_of_another_in_the_place_of_the_runs_do_not_get_its_map(
    tmp_path, kill_step
):
    told = 0
    for moment in range(1, 400, kill_step):
        folder = tmp_path / str(moment)
        folder.mkdir()
        if not kill(folder, moment, ingest):
            break
        data, map_ = folder / "data_2.gulp", folder / "meta_2.gmeta"
        if not data.exists() or map_.exists():
            continue
        for copy in begun_anew(folder):
            before = (copy / data.name).read_bytes()
            assert "data_2.gulp is there, and is not what" in refusal(copy)
            assert (copy / data.name).read_bytes() == before
            assert not (copy / map_.name).exists()
            told += 1
        whole = data.read_bytes()
        for what, other in {"zeros": bytes(len(whole)), "more": whole + whole}.items():
            copy = shutil.copytree(folder, tmp_path / f"{moment}-{what}")
            (copy / data.name).write_bytes(other)
            assert "data_2.gulp is there, and is not what" in refusal(copy)
        assert refusal(folder) == ""
        assert len(GulpDirectory(folder)) == 6
    assert told


def test_nothing_is_merged_into_an_unfinished_directory(interrupted, tmp_path):
    others(tmp_path / "part").run()
    before = content(interrupted)
    with pytest.raises(IngestError, match="interrupted was not finished, and would go"):
        merge_directories([tmp_path / "part"], interrupted)
    assert content(interrupted) == before
    ingest(interrupted, resume=True).run()
    assert merge_directories([tmp_path / "part"], interrupted).items == 3


def test_a_chunk_of_the_run_that_is_gone_is_told(interrupted):
    (interrupted / "data_0.gulp").unlink()
    (interrupted / "meta_0.gmeta").unlink()
    missing = r"data_0\.gulp \(and 1 more\) is missing, which the interrupted run had"
    with pytest.raises(IngestError, match=missing):
        ingest(interrupted, resume=True).run()


@pytest.mark.parametrize(
    ("where", "what"),
    [
        ("away", "it is a link to away, which is not there"),
        ("data_0.gulp", "Its links"),
    ],
)
def test_a_data_file_that_cannot_be_looked_at_is_told_with_what_to_do(
    tmp_path, where, what
):
    ingest(tmp_path).run()
    data = tmp_path / "data_0.gulp"
    data.unlink()
    data.symlink_to(where)
    with pytest.raises(StorageError, match=rf"cannot read .*data_0\.gulp: .*{what}"):
        ingest(tmp_path, resume=True).run()


def test_a_chunk_of_the_run_that_was_emptied_and_removed_is_not_made_again(tmp_path):
    folder = tmp_path / "interrupted"
    assert kill(folder, 72, ingest)
    names = ("data_1.gulp", "meta_1.gmeta")  # of the last line of the journal
    delete_items(folder, list(GulpChunk(*(folder / name for name in names)).meta_dict))
    compact_directory(folder)
    for name in names:
        (folder / name).unlink()
    before = content(folder)
    with pytest.raises(IngestError, match=r"data_1\.gulp .*is missing, which the int"):
        ingest(folder, resume=True).run()
    assert content(folder) == before
    ingest(folder, on_duplicate="skip").run()
    assert len(GulpDirectory(folder)) == 6
    assert check_directory(folder, deep=True).problems == []


def of_table(root, **options):
    table, output = root / "images.txt", root / "out"
    adapter = ImageListAdapter(table, output, root, id_rule="path")
    return GulpIngestor(adapter, output, 2, 1, **options)


@pytest.fixture
def of_images(tmp_path):
    """Make a table of images of which some were stored when the run was killed."""
    settings = EncoderSettings()
    (frame,) = make_frames(1)
    names = [f"{number}.jpg" for number in range(6)]
    for name in names:
        (tmp_path / name).write_bytes(encode_frame(frame, settings))
    (tmp_path / "images.txt").write_text("".join(f"{name},cat\n" for name in names))
    assert kill(tmp_path, 64, lambda root: of_table(root))
    assert 0 < len(GulpDirectory(tmp_path / "out")) < 6
    return tmp_path


def test_a_table_that_was_mended_meanwhile_is_told_of(of_images, caplog):
    table = of_images / "images.txt"
    # As many bytes as before, and the same time.
    state = table.stat()
    table.write_text(table.read_text().replace("cat", "cow"))
    os.utime(table, ns=(state.st_atime_ns, state.st_mtime_ns))
    of_table(of_images, resume=True).run()
    (record,) = caplog.records
    assert f"{table} has changed since the run began" in record.getMessage()
    directory = GulpDirectory(of_images / "out")
    assert {
        entry["meta_data"][0]["label"] for entry in directory.merged_meta_dict.values()
    } == {"cat", "cow"}


def test_a_table_that_is_as_it_was_is_not_told_of(of_images, caplog):
    os.utime(of_images / "images.txt")
    of_table(of_images, resume=True).run()
    assert not caplog.records
    assert len(GulpDirectory(of_images / "out")) == 6
