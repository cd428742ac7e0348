"""A file that is made once, and given to each who asks for the same."""

from tests.written_once import written_once


def test_the_same_is_made_once_and_each_has_a_file_of_its_own(tmp_path):
    made = []

    @written_once
    def write(path, num, *, rate=1):
        made.append(path.name)
        path.write_text(f"{path.suffix} {num} {rate}")
        return path

    first = write(tmp_path / "of" / "1.mp4", 3)
    first.write_text("damaged")
    asked = [("2.mp4", 3, {}), ("3.mp4", 4, {}), ("4.mp4", 3, {"rate": 2})]
    paths = [write(tmp_path / name, num, **more) for name, num, more in asked]
    paths.append(write(str(tmp_path / "5.webm"), 3))
    assert [path.read_text() for path in paths] == [
        ".mp4 3 1",
        ".mp4 4 1",
        ".mp4 3 2",
        ".webm 3 1",
    ]
    assert made == ["1.mp4", "3.mp4", "4.mp4", "5.webm"]
    assert first.read_text() == "damaged"
