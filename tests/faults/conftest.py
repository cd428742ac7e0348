"""How much was tried, below the results."""

from collections import Counter


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
