"""What tests of an ingest share."""

import os

import pytest


@pytest.fixture
def small_disk(monkeypatch):
    """Leave 20 kB free, as the system tells it; give what puts an end to that."""
    real = os.statvfs

    def statvfs(path):
        values = list(real(path))
        values[:5] = [1024, 1024, 1000, 20, 20]  # sizes, blocks, free, available
        return os.statvfs_result(values)

    monkeypatch.setattr(os, "statvfs", statvfs)
    return lambda: monkeypatch.setattr(os, "statvfs", real)
