"""Data files that have changed places, by their lengths."""

import pytest

from gulpio2.format.changed_places import note_changed_places


@pytest.mark.parametrize(
    ("lengths", "told"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param({0: (8, 8), 1: (4, 4)}, [], id="all fit"),
        pytest.param({0: (8, 4), 1: (4, 4)}, [], id="one that fits no other"),
        pytest.param({0: (8, 4), 1: (6, 8)}, [], id="no way back"),
        pytest.param({0: (8, 4), 1: (4, 8), 2: (4, 8)}, [], id="two maps fit"),
        pytest.param({0: (8, 4), 1: (4, 8), 2: (4, 3)}, [], id="two files fit"),
        pytest.param(
            {0: (8, 4), 1: (5, 5), 3: (4, 8)},
            [
                (
                    "data_0.gulp",
                    "meta_3.gmeta speaks of, data_3.gulp that of meta_0",
                )
            ],
            id="two",
        ),
        pytest.param(
            {0: (8, 4), 1: (9, 8), 2: (4, 9), 5: (1, 2), 6: (2, 1), 7: (7, 3)},
            [
                ("data_0.gulp", "meta_1.gmeta speaks of, data_1.gulp that of meta_2"),
                ("data_5.gulp", "meta_6.gmeta speaks of, data_6.gulp that of meta_5"),
            ],
            id="three, two and one that has lost its end",
        ),
        pytest.param(
            {n: (n + 1, n) if n < 29 else (0, 29) for n in range(30)},
            [("data_0.gulp", "data_9.gulp that of meta_10.gmeta, and so on for 20 ")],
            id="many",
        ),
    ],
)
def test_files_that_fit_the_map_of_another_are_told(lengths, told):
    notes = note_changed_places(lengths)
    assert [note.file for note in notes] == [file for file, _ in told]
    for note, (_, text) in zip(notes, told, strict=True):
        assert note.code == "changed-places"
        assert text in note.message
