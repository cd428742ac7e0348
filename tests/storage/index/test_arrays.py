"""Arrow arrays made of buffers: the same as Arrow's own, and without pandas."""

from __future__ import annotations

import os
import subprocess

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gulpio2.storage.index.arrays import array_of, array_over, texts_over

texts = st.text(st.characters(exclude_categories=["Cs"]))
whole = st.integers(-(2**63), 2**63 - 1)
numbers = st.floats() | st.integers(-(2**53), 2**53)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (texts, pa.string()),
        (texts, pa.large_string()),
        (whole, pa.int64()),
        (numbers, pa.float64()),
    ],
    ids=["strings", "large strings", "integers", "floats"],
)
@pytest.mark.parametrize("missing", [False, True], ids=["all there", "some missing"])
def test_values_become_what_arrow_makes_of_them(values, kind, missing):
    @given(st.lists(values | st.none() if missing else values))
    def check(drawn):
        made, wanted = array_of(drawn, kind), pa.array(drawn, kind)
        made.validate(full=True)
        assert made.type == wanted.type
        assert made.null_count == wanted.null_count
        np.testing.assert_equal(made.to_pylist(), wanted.to_pylist())

    check()


def test_other_kinds_are_left_to_arrow():
    lists = [[1, 2], None, []]
    assert array_of(lists, pa.list_(pa.int64())).to_pylist() == lists
    assert array_of([True, False], pa.bool_()).to_pylist() == [True, False]
    assert array_of([None], pa.null()).to_pylist() == [None]


@pytest.mark.parametrize("dtype", ["<i8", "<i4", "<u8", "<u4", "u1"])
def test_numbers_are_not_copied(dtype):
    values = np.arange(5, dtype=dtype)
    made = array_over(values)
    assert made.type == pa.array(values).type
    values[0] = 7
    assert made.to_pylist() == [7, 1, 2, 3, 4]


def test_texts_lie_one_after_another():
    text = np.frombuffer("aßc".encode(), np.uint8)
    assert texts_over(np.array([0, 1, 1, 4]), text).to_pylist() == ["a", "", "ßc"]


INGEST = """
import sys
from gulpio2 import GulpIngestor
from gulpio2.storage.index.keeping import build_index
from gulpio2.testing import FrameAdapter
GulpIngestor(FrameAdapter(num_items=3), "out", 2, 1).run()
print(build_index("out").items, "pyarrow" in sys.modules, "pandas" in sys.modules)
"""


def test_an_index_is_made_without_pandas(python, tmp_path, repository):
    """Whoever has pandas does not load it; here it is a module that says nothing."""
    (tmp_path / "pandas.py").write_text("")
    paths = os.pathsep.join((str(tmp_path), str(repository)))
    found = subprocess.run(
        [python, "-c", INGEST],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": paths},
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert found.stdout.split() == ["3", "True", "False"]
