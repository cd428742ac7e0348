"""The examples of the README do what it says; the links of all pages lead on."""

import re
import subprocess
import sys
from pathlib import Path

import av
import numpy as np
import pytest

README = Path(__file__).parents[1] / "README.md"


@pytest.fixture
def folder(tmp_path):
    """Make a folder with ``videos/<label>/<name>.mp4`` in it."""
    for label in ("left", "right"):
        path = tmp_path / "videos" / label / "clip.mp4"
        path.parent.mkdir(parents=True)
        with av.open(str(path), "w") as container:
            stream = container.add_stream("mpeg4", rate=25)
            stream.width, stream.height, stream.pix_fmt = 320, 240, "yuv420p"
            for number in range(20):
                pixels = np.full((240, 320, 3), 10 * number, np.uint8)
                frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
                container.mux(stream.encode(frame))
            container.mux(stream.encode())
    return tmp_path


def example():
    """Give the first block of Python."""
    return re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)[0]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_the_python_example_runs(folder, method):
    # As a file, and as where workers import it: so it is on macOS and Python 3.14.
    choose = f'multiprocessing.set_start_method("{method}")'
    guard = next(line for line in example().splitlines() if "__main__" in line)
    program = folder / "example.py"
    program.write_text(
        f"import multiprocessing\n{example()}".replace(guard, f"{guard}\n    {choose}")
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", program.name],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "left-clip.mp4 (8, 128, 170, 3) left",
        "right-clip.mp4 (8, 128, 170, 3) right",
    ]


@pytest.mark.torch
def test_the_training_example_runs_after_the_first(folder):
    examples = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "\n".join(examples)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert any(line.startswith("32 frames in 2 batches") for line in lines)
    assert lines[-1].startswith("change first: ")


def test_the_example_has_about_ten_lines():
    assert len([line for line in example().splitlines() if line.strip()]) <= 10


def test_the_commands_of_the_readme_run_in_their_order(folder):
    (block,) = re.findall(r"```console\n(.*?)```", README.read_text(), re.DOTALL)
    commands = [line.removeprefix("$ gulp2 ") for line in block.splitlines()]
    assert len(commands) == 5
    for command in commands:
        words = command.replace("ID", "left-clip.mp4").split()
        done = subprocess.run(
            [sys.executable, "-m", "gulpio2.cli.main", *words],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (command, done.stderr)


PAGES = [README, *sorted(README.parent.glob("docs/*.md"))]
PAGES += sorted(README.parent.glob("adapters/*/README.md"))


@pytest.mark.parametrize(
    "page", PAGES, ids=lambda page: str(page.relative_to(README.parent))
)
def test_every_link_of_a_page_leads_somewhere(page):
    assert broken_links(page) == []


def test_every_link_of_a_fragment_of_the_changelog_leads_somewhere():
    fragments = sorted(README.parent.glob("docs/changes/*.md"))
    found = {page.name: broken_links(page) for page in fragments}
    assert {name: links for name, links in found.items() if links} == {}


def broken_links(page):
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
    here = [link for link in links if "://" not in link]
    return [link for link in here if not (page.parent / link).exists()]
