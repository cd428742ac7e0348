"""How much was tried, below the results; and a disk that is not waited for."""

import os
from collections import Counter

import pytest


@pytest.fixture
def _fast_disk(monkeypatch):
    """Do not wait for the real disk.

    What a killed process has written is not lost, and a power cut is only replayed.
    """
    monkeypatch.setattr(os, "fsync", lambda fd: None)


def pytest_terminal_summary(terminalreporter):
    """Print the counts that tests recorded, as of states of the disk."""
    counts: Counter[str] = Counter()
    for report in terminalreporter.stats.get("passed", []):
        counts.update(
            {
                name: count
                for name, count in report.user_properties
                if isinstance(count, int)
            }
        )
    for name, count in sorted(counts.items()):
        terminalreporter.write_line(f"{name}: {count:,}")
