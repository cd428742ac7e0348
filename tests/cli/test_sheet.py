"""``gulp2 sheet``: the picture."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.cli import contact_sheet
from gulpio2.cli.contact_sheet import draw_contact_sheet
from gulpio2.testing import make_frames
from tests.torch.troubles import fail_reads


def read(path):
    picture = cv2.imread(str(path))
    assert picture is not None
    return picture[..., ::-1]


def test_the_sheet_has_a_row_for_each_item(gulp2, gulped):
    result = gulp2("sheet", gulped)
    assert result.stdout == "contact_sheet.png: 4 items\n"
    four = read("contact_sheet.png").shape
    gulp2("sheet", gulped, "--items", 2, "--out", "two.png")
    two = read("two.png").shape
    assert two[1] == four[1]
    assert (four[0] - 4) == 2 * (two[0] - 4)


def test_the_frames_are_in_their_boxes(gulped):
    with GulpDirectory(gulped) as directory:
        item = directory.item("item2")
        sheet = draw_contact_sheet(
            [item], num_frames=3, frame_height=24, frame_width=32
        )
        frames = item.read_frames([0, 2, 4])
    for column, frame in enumerate(frames):
        left = 4 + column * 36
        assert np.array_equal(sheet[26:50, left : left + 32], frame)


def test_the_id_is_written_above(gulped):
    with GulpDirectory(gulped) as directory:
        sheet = draw_contact_sheet([directory.item("item0")])
    caption = sheet[4:26]
    assert caption.max() > 200
    assert (caption > 100).mean() > 0.005


def caption_of(folder, id_):
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append(id_, {"a": 1}, make_frames(1))
    with GulpDirectory(folder) as directory:
        return draw_contact_sheet([directory.item(id_)])[4:26]


def test_an_id_of_other_letters_is_written_in_them_or_escaped(tmp_path):
    """OpenCV 4 has letters of ASCII alone, and OpenCV 5 more, but not all."""
    expected = np.full((22, 6 * 164 + 4, 3), 24, np.uint8)
    has_letters = int(cv2.__version__.partition(".")[0]) >= 5
    id_ = "Küche groß 台所"
    text = id_ if has_letters else r"K\xfcche gro\xdf \u53f0\u6240"
    line, look = f"{text}  |  1 frame", (cv2.FONT_HERSHEY_SIMPLEX, 0.45)
    cv2.putText(expected, line, (4, 14), *look, (232, 232, 232), 1, cv2.LINE_AA)
    assert np.array_equal(caption_of(tmp_path, id_), expected)


@pytest.mark.parametrize(
    "id_",
    ["a\nb\\c", "\u0928\u093f \U0001f600", "x\u0301\u0301", "\u05d0 \u0645"],
    ids=["not printed", "no such letter", "an accent alone", "from right to left"],
)
def test_what_cannot_be_drawn_rightly_is_escaped(tmp_path, id_):
    shown = "".join(map(contact_sheet._shown, id_))
    assert shown == id_.encode("unicode_escape").decode("ascii")
    assert (caption_of(tmp_path, id_) > 100).any()


def test_a_letter_and_its_accent_are_one(tmp_path):
    """As in names of files that come from a Mac."""
    two, one = (caption_of(tmp_path, id_) for id_ in ("Ku\u0308che", "K\xfcche"))
    assert np.array_equal(two, one)


def test_a_long_label_is_cut_with_few_measurings(tmp_path, monkeypatch):
    measured = []
    measure = cv2.getTextSize

    def counted(text, *arguments):
        measured.append(text)
        return measure(text, *arguments)

    monkeypatch.setattr(cv2, "getTextSize", counted)
    pictures = []
    for label in ("x" * 200, "x" * 100_000):
        chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
        with chunk.open("wb"):
            chunk.append("a", {"label": label}, make_frames(1))
        measured.clear()
        with GulpDirectory(tmp_path) as directory:
            pictures.append(draw_contact_sheet([directory.item("a")]))
        assert 0 < len(measured) < 40  # by halves: 100,000 letters take 17
    short, long = pictures
    assert np.array_equal(short, long)
    assert (short[4:26] != 24).any(), "no caption"


def test_damaged_empty_grey_and_upright_items_have_their_place(tmp_path):
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("damaged", {}, make_frames(1))
        chunk.append("empty", {}, [])
        chunk.append("grey", {"label": "片 \x1b"}, make_frames(2, grey=True))
        chunk.append("x" * 300, {}, make_frames(1, 200, 2))
    data = bytearray((tmp_path / "data_0.gulp").read_bytes())
    data[:50] = bytes(50)
    (tmp_path / "data_0.gulp").write_bytes(data)
    with GulpDirectory(tmp_path) as directory:
        items = [directory.item(id_) for id_ in directory.merged_meta_dict]
        sheet = draw_contact_sheet(items)
    assert sheet.shape == (4 * 146 + 4, 6 * 164 + 4, 3)
    first = sheet[26:146, 4:164].reshape(-1, 3)
    assert (first == (200, 60, 60)).all(axis=1).any(), "no cross for the damaged one"
    assert (sheet[146 + 26 : 2 * 146] == 24).all(), "something drawn for no frames"


def test_a_file_that_was_cut_leaves_the_rest_to_be_seen(gulp2, gulped):
    data = gulped / "data_1.gulp"
    data.write_bytes(data.read_bytes()[:1000])
    gulp2("sheet", gulped)
    picture = read("contact_sheet.png")
    boxes = [picture[4 + row * 146 + 22 : (row + 1) * 146] for row in range(4)]
    crossed = [(box.reshape(-1, 3) == (200, 60, 60)).all(axis=1).any() for box in boxes]
    assert crossed == [False, False, True, True]


def test_a_pattern_chooses_items(gulp2, gulped):
    result = gulp2("sheet", gulped, "item[13]", "-o", "x.png", "--items", 1)
    assert result.stdout == "x.png: 1 item of 2\n"
    assert "has no id like 'y*'" in gulp2("sheet", gulped, "y*", status=1).stderr


def test_a_condition_chooses_items(gulp2, gulped):
    told = gulp2("sheet", gulped, "--where", "number >= 2", "-o", "x.png").stdout
    assert told == "x.png: 2 items\n"
    words = ["sheet", gulped, "item[03]", "--where", "number >= 2"]
    assert gulp2(*words, "-o", "y.png").stdout == "y.png: 1 item\n"
    none = ["sheet", gulped, "item0", "--where", "number >= 2"]
    told = gulp2(*none, "-o", "z.png", status=1).stderr
    assert "no item that meets the condition and is like 'item0'" in told
    assert not Path("z.png").exists()
    assert "--where" in gulp2(*none[:2], "--where", "nosuch > 1", status=2).stderr


def test_nothing_is_overwritten_without_being_asked(gulp2, gulped):
    Path("contact_sheet.png").write_text("mine")
    assert "--overwrite" in gulp2("sheet", gulped, status=1).stderr
    assert Path("contact_sheet.png").read_text() == "mine"
    told = gulp2("sheet", gulped, "--overwrite").stdout
    assert told == "contact_sheet.png: 4 items, replacing the file\n"
    assert read("contact_sheet.png").ndim == 3


def test_a_dry_run_writes_nothing(gulp2, gulped):
    assert "would write contact_sheet.png" in gulp2("sheet", gulped, "--dry-run").stdout
    assert not Path("contact_sheet.png").exists()


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_a_folder_that_is_missing_is_named(gulp2, gulped, options):
    words = ["sheet", gulped, "--out", "no/such/x.png", *options]
    result = gulp2(*words, status=1)
    assert "there is no folder no/such to write x.png to" in result.stderr
    assert not result.stdout


@pytest.mark.parametrize("name", ["x.jpg", "x"])
def test_the_picture_is_a_png(gulp2, gulped, name):
    assert "must end with .png" in gulp2("sheet", gulped, "-o", name, status=2).stderr


def test_a_data_file_that_cannot_be_opened_leaves_the_rest_to_be_seen(
    gulp2, gulped, unopenable
):
    text = unopenable(gulped / "data_1.gulp")
    result = gulp2("sheet", gulped, status=1)
    assert result.stdout == "contact_sheet.png: 4 items\n"
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"gulp2: error: cannot open {gulped / 'data_1.gulp'}: ")
    assert text in line
    picture = read("contact_sheet.png")
    boxes = [picture[4 + row * 146 + 22 : (row + 1) * 146] for row in range(4)]
    crossed = [(box.reshape(-1, 3) == (200, 60, 60)).all(axis=1).any() for box in boxes]
    assert crossed == [False, False, True, True]


def test_an_error_that_passes_is_told_beside_the_picture(gulp2, gulped, monkeypatch):
    real = contact_sheet._caption

    def caption(item):
        monkeypatch.setattr(contact_sheet, "_caption", real)
        fail_reads(monkeypatch, "open", times=1)
        return real(item)

    monkeypatch.setattr(contact_sheet, "_caption", caption)
    result = gulp2("sheet", gulped, status=1)
    assert result.stdout == "contact_sheet.png: 4 items\n"
    assert f"error: cannot open {gulped / 'data_0.gulp'}: Input/o" in result.stderr


def test_no_picture_is_made_of_data_files_none_of_which_can_be_opened(
    gulp2, gulped, unopenable
):
    text = unopenable(gulped / "data_1.gulp")
    result = gulp2("sheet", gulped, "item[23]", status=1)
    assert (result.stdout, text in result.stderr) == ("", True)
    assert result.stderr.startswith("gulp2: error: cannot open")
    assert not Path("contact_sheet.png").exists()
    gulp2("sheet", gulped, "item[01]")


def test_a_url_is_no_folder_for_the_picture(gulp2, gulped):
    for more in ([], ["--dry-run"]):
        said = gulp2("sheet", gulped, "-o", "s3://b/x.png", *more, status=1).stderr
        assert "cannot write to s3:/b/x.png: it is a URL, and a folder of this" in said
