"""What an error tells beside its own message, on every Python."""

import traceback

import pytest

from gulpio2.ingest.report import tell_with


class OldError(Exception):
    """An error that takes no notes, as none did before Python 3.11."""

    @property
    def add_note(self):
        raise AttributeError

    def __init__(self, code):
        super().__init__(f"code {code}")
        self.code = code


def raised(cause):
    try:
        if cause is None:
            raise OldError(7)
        raise OldError(7) from cause
    except OldError as error:
        return error


@pytest.mark.parametrize("cause", [None, ValueError("the first cause")])
def test_an_error_that_takes_no_note_has_it_shown_before_it(cause):
    error = raised(cause)
    tell_with(error, "3 of the items failed")
    assert type(error) is OldError
    assert error.code == 7
    shown = "".join(traceback.format_exception(error))
    assert shown.index("3 of the items failed") < shown.index("code 7")
    if cause is not None:
        assert shown.index("the first cause") < shown.index("3 of the items failed")


def test_an_error_that_takes_notes_has_one():
    error = ValueError("own words")
    tell_with(error, "3 of the items failed")
    assert str(error) == "own words"
    assert "3 of the items failed" in "".join(traceback.format_exception(error))
