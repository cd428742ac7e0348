"""What an adapter raises behind its last item, as a check of its own does, counts."""

from __future__ import annotations

import pytest

from gulpio2 import GulpDirectory, GulpIngestor
from gulpio2.testing import FrameAdapter


class Archive(FrameAdapter):
    """One that looks at the end of its archive, or of each slice."""

    def __init__(self, *, broken=None, each_slice=False, **options):
        super().__init__(num_items=6, num_frames=1, **options)
        self.broken = broken
        self.each_slice = each_slice

    def iter_data(self, slice_element=None):
        part = range(len(self))[slice_element or slice(None)]
        for position in part:
            if position == self.broken:
                raise ValueError("an item is bad")
            yield from super().iter_data(slice(position, position + 1))
        if self.each_slice or part.stop == len(self):
            raise OSError("the archive was cut")


@pytest.mark.parametrize("list_ids", [True, False])
@pytest.mark.parametrize("each_slice", [True, False])
@pytest.mark.parametrize("items_per_chunk", [2, 3, 6])
@pytest.mark.parametrize("bad", [0, 1, 4, 5])
def test_after_a_bad_item_the_end_costs_no_other(
    tmp_path, bad, items_per_chunk, each_slice, list_ids
):
    adapter = Archive(broken=bad, each_slice=each_slice, list_ids=list_ids)
    report = GulpIngestor(adapter, tmp_path, items_per_chunk, 1).run()
    assert [each.position for each in report.failures] == [bad]
    assert (report.items, report.not_given) == (5, 0)
    num_slices = 6 // items_per_chunk if each_slice else 1
    # The last item of a slice, where it is bad, hides what is behind it.
    ends = {n * items_per_chunk - 1 for n in range(1, 7)} if each_slice else {5}
    assert report.raised_behind == num_slices - (bad in ends)
    with GulpDirectory(tmp_path) as directory:
        assert len(directory) == 5
