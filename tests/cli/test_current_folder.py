"""Commands in a folder that somebody has removed."""

from __future__ import annotations

import pytest

from gulpio2.cli import legacy

GONE = "the current folder is gone. Change to another (cd), or give an absolute path"


@pytest.fixture
def in_a_gone_folder(gulped, images, tmp_path, monkeypatch):
    """Stand in it, with a directory and images elsewhere."""
    del gulped, images
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        "extract {}/gulped item0 --frames 0",
        "extract {}/gulped item0 --frames 0 --dry-run",
        "extract {}/gulped item0 --format mp4",
        "ingest image-folder {}/images out",
        "ingest my_adapters.py:MyAdapter {}/images {}/out",
        "merge {}/gulped out",
        "repair {}/gulped out",
        "repair {}/gulped out --dry-run",
        "sheet {}/gulped",
        "sheet {}/gulped --dry-run",
    ],
)
def test_what_would_be_written_there_is_refused_on_one_line(
    gulp2, in_a_gone_folder, words
):
    result = gulp2(*words.replace("{}", str(in_a_gone_folder)).split(), status=1)
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert result.stderr.endswith(f": {GONE}\n")
    names = [path.name for path in in_a_gone_folder.iterdir()]
    assert sorted(names) == ["gulped", "images"]


def test_a_dry_run_says_that_it_would_be_refused(gulp2, in_a_gone_folder):
    words = ["ingest", "image-folder", in_a_gone_folder / "images", "out", "--dry-run"]
    assert (
        f"it would be refused: cannot find out: {GONE}"
        in gulp2(*words, status=1).stdout
    )


def test_absolute_paths_are_written_to_all_the_same(gulp2, in_a_gone_folder):
    out = in_a_gone_folder / "out"
    gulp2("extract", in_a_gone_folder / "gulped", "item0", "-o", out)
    assert len(list((out / "item0").iterdir())) == 6
    adapter = "gulpio2.adapters:ImageFolderAdapter"
    words = [in_a_gone_folder / "images", in_a_gone_folder / "stored"]
    gulp2("ingest", adapter, *words)
    said = gulp2("ingest", "no_module:Adapter", *words, status=2).stderr
    assert "No module 'no_module' in the current folder, which is gone, or" in said
    said = gulp2("ingest", "/no/file.py:Adapter", *words, status=2).stderr
    assert "No file '/no/file.py'. Check" in said


def test_a_program_for_an_adapter_is_not_written_there(in_a_gone_folder):
    with pytest.raises(SystemExit) as end:
        legacy.gulp2_register_adapter(["gulpio2.adapters", "ImageFolderAdapter"])
    assert str(end.value).endswith(f"cannot find image_folder_adapter: {GONE}")
