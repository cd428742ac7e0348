"""The program: its help, its exit status, and errors as messages."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import gulpio2
from gulpio2 import GulpChunk, GulpDirectory
from gulpio2.cli import main
from gulpio2.cli.terminal import one_line
from gulpio2.errors import IngestError, ItemNotFoundError, LockedError, StorageError
from gulpio2.testing import make_gulp_directory


def test_the_version_is_printed(gulp2):
    assert gulp2("--version").stdout == f"gulp2 {gulpio2.__version__}\n"


def test_help_lists_the_commands(gulp2):
    for option in ("-h", "--help"):
        text = gulp2(option).stdout
        assert all(f"\n  {name} " in text for name in main.COMMANDS)
        assert "..." not in text.partition("Commands:")[2], "cut: give a short_help"


def test_a_wrong_command_names_the_close_one_and_is_wrong_usage(gulp2):
    result = gulp2("chekc", status=2)
    assert "No command 'chekc'. Did you mean check?" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("words", "right"),
    [
        ("ingest --dry-run video-folder v o", "ingest ADAPTER ... OUTPUT --dry-run"),
        ("ingest --frame_size 8 video-folder v o", "OUTPUT --frame-size"),
        ("--json info gulped", "gulp2 COMMAND [ARGS]... --json"),
    ],
)
def test_an_option_before_its_command_is_told_where_it_belongs(gulp2, words, right):
    result = gulp2(*words.split(), status=2)
    assert "That of a command comes behind it: gulp2 " in result.stderr
    assert f"{right}.\n" in result.stderr
    assert "behind it" not in gulp2("--verson", status=2).stderr


@pytest.mark.parametrize(
    "words",
    [
        *(
            [name, "s3://bucket/x"]
            for name in main.COMMANDS
            if name not in ("ingest", "merge", "repair")
        ),
        ["merge", "s3://bucket/x", "out"],
        ["repair", "s3://bucket/x", "out"],
    ],
    ids=lambda words: words[0],
)
def test_a_url_is_told_from_a_folder_that_is_missing(gulp2, words):
    said = gulp2(*words, status=2).stderr
    wanted = "cannot read s3://bucket/x: it is a URL, and a folder of this machine is"
    assert wanted in " ".join(said.split())
    assert "does not exist" not in said


def test_an_unknown_option_is_wrong_usage(gulp2, gulped):
    assert "--deeep" in gulp2("check", "--deeep", gulped, status=2).stderr


@pytest.mark.parametrize(
    ("command", "told"), [("extract", 1), ("delete", 1), ("ls", 1), ("info", 0)]
)
def test_an_id_that_is_taken_for_an_option_is_told_its_place(
    gulp2, gulped, command, told
):
    advice = "An id that begins with - comes last, behind --."
    result = gulp2(command, gulped, "---QUuC4vJs", status=2)
    assert "No such option '---QUuC4vJs'" in result.stderr
    assert result.stderr.count(advice) == told
    result = gulp2(command, gulped, "--quit", status=2)  # of an option mistyped
    assert "--quiet" in result.stderr
    assert advice not in result.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["check", "--dir", "x"],
            "its name: gulp2 check DIR.",
        ),
        (["ingest", "table", "x", "--output=y"], "ingest table TABLE OUTPUT."),
        (["ingest", "table", "x", "--outputs=y"], ""),
    ],
)
def test_an_argument_that_is_taken_for_an_option_is_told_its_place(gulp2, words, told):
    said = " ".join(gulp2(*words, status=2).stderr.split())
    assert "No such option '--" in said
    assert ("given without its name" in said) == bool(told)
    assert told in said


def test_options_may_be_spelled_with_underscores(gulp2, gulped):
    first = gulp2("info", "--label-key", "number", gulped).stdout
    assert gulp2("info", "--label_key", "number", gulped).stdout == first


def test_an_error_of_the_package_is_one_line_and_exit_status_1(gulp2, gulped):
    result = gulp2("extract", gulped, "nobody", status=1)
    assert result.stdout == ""
    assert result.stderr.startswith("gulp2: error: no item 'nobody' in ")
    assert result.stderr.count("\n") == 1


def test_an_error_of_ones_own_constructor_is_told_with_its_place(start, tmp_path):
    (tmp_path / "broken.py").write_text(
        "from gulpio2.testing import FrameAdapter\n"
        "class Broken(FrameAdapter):\n"
        "    def __init__(self):\n"
        "        int('mine')\n"
    )
    process = start("ingest", "broken.py:Broken", "out")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Traceback" not in err
    assert "Broken cannot be made: ValueError: invalid literal for int()" in err
    assert "broken.py:4; -vv" in err
    process = start("ingest", "broken.py:Broken", "out", "-vv")
    assert "Traceback" in process.communicate(timeout=60)[1]


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        ("KeyError('mine')", "KeyError: 'mine'"),
        # Of what stdout says as well, and this is of another file.
        ("OSError(5, 'mine')", "OSError: [Errno 5] mine"),
    ],
)
def test_an_error_of_another_kind_keeps_its_traceback(start, tmp_path, raised, told):
    # A defect, as far as anybody can tell: nothing of the package is to be like that.
    (tmp_path / "broken.py").write_text(
        "import gulpio2.ingest.ingestor\n"
        "from gulpio2.testing import FrameAdapter\n"
        "class Broken(FrameAdapter):\n"
        "    pass\n"
        "def fail(*_):\n"
        f"    raise {raised}\n"
        "gulpio2.ingest.ingestor.calculate_chunk_slices = fail\n"
    )
    process = start("ingest", "broken.py:Broken", "out")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Traceback" in err
    assert "cannot write the output" not in err
    assert told in err


def test_what_led_to_an_error_is_shown_where_everything_is_to_be(start, tmp_path):
    (tmp_path / "broken.py").write_text(
        "from gulpio2.testing import FrameAdapter\n"
        "class Broken(FrameAdapter):\n"
        "    def label_mapping(self):\n"
        "        raise KeyError('mine')\n"
    )
    process = start("ingest", "broken.py:Broken", "out")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "Traceback" not in err
    assert "label_mapping of the adapter Broken failed: KeyError: 'mine'" in err
    process = start("ingest", "broken.py:Broken", "out", "-vv")
    assert "Traceback" in process.communicate(timeout=60)[1]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ItemNotFoundError("no item 'a'"), "no item 'a'"),
        (StorageError(13, "cannot write x: denied"), "cannot write x: denied"),
        (LockedError(None, "two\nlines"), "two lines"),
        (StorageError("no number"), "no number"),
        (ItemNotFoundError("\x1b[2J"), r"\x1b[2J"),
        (
            StorageError(
                28, "run again with resume=True (on the command line --resume)"
            ),
            "run again with --resume",
        ),
        (
            IngestError(
                "skip them (on_duplicate='skip', on the command line "
                "--on-duplicate skip); ignore_space=True (on the command line "
                "--ignore-space) begins all the same"
            ),
            "skip them (--on-duplicate skip); --ignore-space begins all the same",
        ),
    ],
)
def test_a_message_is_one_line_without_numbers_or_control_characters(error, text):
    assert one_line(error) == text


def test_a_closed_pipe_is_quiet(start, tmp_path):
    items = {"num_items": 3000, "num_frames": 0, "items_per_chunk": 1000}
    make_gulp_directory(tmp_path / "g", **items).close()
    process = start("ls", "--json", "g")
    assert process.stdout.readline()
    process.stdout.close()
    err = process.stderr.read()
    process.wait(timeout=60)
    process.stderr.close()
    assert err == ""


def test_an_interrupt_ends_with_130_and_says_how_to_go_on(start, tmp_path):
    (tmp_path / "slow.py").write_text(
        "import os, time\n"
        "class Slow:\n"
        "    def __len__(self):\n"
        "        return 2\n"
        "    def iter_data(self, slice_element=None):\n"
        "        os.mkdir('begun')\n"
        # Not one long call: an interrupt just before it would be seen after it.
        "        for _ in range(600):\n"
        "            time.sleep(0.1)\n"
        "        yield\n"
    )
    process = start("ingest", "slow.py:Slow", "out", "--num-workers", "1")
    while not (tmp_path / "begun").exists():
        assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "--resume" in err
    assert err.splitlines()[-1] == "gulp2: interrupted"


def test_starting_loads_only_what_the_command_needs(tmp_path, repository):
    heavy = ["numpy", "torch", "pyarrow", "av", "cv2", "PIL", "tqdm", "simplejpeg"]
    code = (
        "import sys\n"
        "from gulpio2.cli.main import gulp2\n"
        "try:\n"
        "    gulp2.main(sys.argv[1:])\n"
        "except SystemExit:\n"
        f"    print(*(n for n in {heavy} if n in sys.modules), file=sys.stderr)\n"
    )
    for arguments in (["--version"], ["--help"], ["check", "--help"], ["ls", "-h"]):
        result = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(repository)},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert result.stderr == "\n", arguments


def test_the_package_is_run_as_the_program(
    gulp2, gulped, adapter_file, tmp_path, repository
):
    def run(*words):
        return subprocess.run(
            [sys.executable, "-m", "gulpio2", *map(str, words)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(repository)},
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
        )

    for words, status in ((["--help"], 0), (["ls", gulped], 0), (["ls"], 2)):
        done, wanted = run(*words), gulp2(*words, status=status)
        assert (done.returncode, done.stdout, done.stderr) == (
            status,
            wanted.stdout,
            wanted.stderr,
        )
    assert adapter_file.exists()
    done = run("ingest", "my_adapters.py:MyAdapter", "x", "out", "--num-workers", 2)
    assert done.returncode == 0, done.stderr
    assert gulp2("ls", "out").stdout.split() == ["ramp0", "ramp1", "ramp2"]


@pytest.mark.parametrize("place", [0, 1, 4])
def test_quiet_works_before_and_after_the_command(gulp2, adapter_file, place):
    words = ["ingest", f"{adapter_file}:MyAdapter", "s", "out"]
    assert gulp2(*words[:place], "-q", *words[place:]).output == ""


def test_a_quiet_dry_run_says_what_would_be_done(gulp2, gulped, tmp_path):
    words = ["delete", gulped, "item1"]
    assert "would delete item1" in gulp2(*words, "--dry-run", "-q").stdout
    assert gulp2(*words, "-q").output == ""
    assert "would erase" in gulp2("compact", gulped, "--dry-run", "-q").stdout
    assert gulp2("compact", gulped, "-q").output == ""
    assert "nothing to erase" in gulp2("compact", gulped, "--dry-run", "-q").stdout
    words = ["repair", gulped, tmp_path / "out"]
    assert "can be copied" in gulp2(*words, "--dry-run", "-q").stdout
    assert gulp2(*words, "-q").output == ""


def test_a_number_that_is_none_is_called_so(gulp2, gulped):
    said = gulp2("info", gulped, "--sample", "x", status=2).stderr
    assert "'x' is not a valid whole number." in said


def test_verbose_shows_what_the_library_says(gulp2, adapter_file):
    words = ["ingest", f"{adapter_file}:MyAdapter", "s", "out"]
    first = gulp2(*words, "--resume", "-v")
    assert "gulp2: info: no run was interrupted here: this one is begun" in first.stderr
    again = gulp2(*words, "--resume", "-v")
    assert "gulp2: info: nothing to resume" in again.stderr
    assert "is begun" not in again.stderr


def test_warnings_of_the_library_are_lines_on_stderr(gulp2, gulped):
    (gulped / "data_7.gulp").write_bytes(b"")
    result = gulp2("ls", gulped)
    assert result.stderr.startswith("gulp2: warning: ")
    assert "data_7.gulp has no map" in result.stderr
    assert gulp2("ls", "-q", gulped).stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("words", [["ls"], ["info"], ["check", "--json"]])
def test_output_that_has_no_room_is_an_error_of_one_line(gulped, words):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "gulpio2.cli.main", words[0], gulped, *words[1:]],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    message = "gulp2: error: cannot write the output: No space left on device\n"
    assert done.stderr == message


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["ls", "gulped"], 1),
        (["check", "gulped", "--json"], 1),
        (["info", "--help"], 1),
        (["--version"], 1),
        (["ls", "gulped", "--where", "number == 99"], 1),  # nothing is found
        (["check", "--quiet", "gulped"], 0),
        (["delete", "--quiet", "gulped", "item0"], 0),
        (["delete", "gulped", "item0"], 1),
        (["ls", "nothing"], 2),
    ],
)
def test_output_to_a_stdout_that_is_closed_is_an_error_after_the_work(
    gulped, words, status
):
    done = subprocess.run(
        [
            "/bin/sh",
            "-c",
            'exec "$@" >&-',
            "sh",
            sys.executable,
            "-m",
            "gulpio2",
            *words,
        ],
        cwd=Path(gulped).parent,
        env={**os.environ, "PYTHONPATH": str(Path(gulpio2.__file__).parents[1])},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == status
    message = "gulp2: error: cannot write the output: Bad file descriptor\n"
    assert (done.stderr == message) == (status == 1 and "--where" not in words)
    if words[0] == "delete":
        assert "item0" not in GulpDirectory(gulped)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8"])
def test_an_id_that_the_encoding_lacks_is_shown_as_escapes(
    start, tmp_path, monkeypatch, encoding
):
    chunk = GulpChunk(tmp_path / "data_0.gulp", tmp_path / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append("ä日", {"label": "ő"}, [])
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    out, err = start("ls", ".", "-l", encoding=encoding).communicate(timeout=60)
    assert err == ""
    for char in "ä日ő":
        escaped = char.encode("unicode_escape").decode("ascii")
        assert (char in out) != (escaped in out)


def test_the_status_is_right_where_stderr_is_full(start, tmp_path):
    make_gulp_directory(tmp_path / "g", num_items=2, num_frames=1).close()
    for words, status in (
        (["check", "g"], 0),
        (["check", "nothing"], 2),
        (["ls", "g", "--where", "number == 0"], 0),
        (["ls", "g", "no such"], 1),
        (["extract", "g", "item0", "--format", "mp4", "--frames", "0,0"], 0),
    ):
        with Path("/dev/full").open("wb") as full:
            process = start(*words, stderr=full)
            process.communicate(timeout=60)
        assert process.returncode == status, words


TO_WRITE = [
    ("repair", "gulped", "{}"),
    ("merge", "gulped", "{}"),
    ("extract", "gulped", "item0", "--out", "{}"),
    ("extract", "gulped", "item0", "--format", "mp4", "--out", "{}"),
    ("sheet", "gulped", "--out", "{}/a.png"),
    ("ingest", "my_adapters.py:MyAdapter", "source", "{}"),
    ("ingest", "my_adapters.py:MyAdapter", "source", "{}", "--dry-run"),
]


@pytest.mark.parametrize("arguments", TO_WRITE)
@pytest.mark.parametrize("kind", ["long", "circle", "dark"])
@pytest.mark.usefixtures("gulped", "adapter_file", "permissions")
def test_a_path_that_cannot_be_looked_at_is_told_in_a_line(gulp2, kind, arguments):
    path = {"long": "a" * 300, "circle": "loop", "dark": "dark/x"}[kind]
    Path("loop").symlink_to("loop")
    Path("dark").mkdir(mode=0)
    try:
        result = gulp2(*[word.format(path) for word in arguments], status=1)
    finally:
        Path("dark").chmod(0o755)
    assert result.stdout == ""
    *_, line = result.stderr.splitlines()
    assert line.startswith("gulp2: error: cannot ")
    assert path in line or (kind == "dark" and "look into dark: " in line)


@pytest.mark.usefixtures("permissions")
def test_an_adapter_that_may_not_be_looked_at_is_wrong_usage(gulp2):
    Path("dark").mkdir(mode=0)
    try:
        for name in ("dark/x.py", "dark/x.py:A"):
            said = gulp2("ingest", name, "out", status=2).stderr
            assert "'dark/x.py' cannot be looked at: Permission denied" in said
    finally:
        Path("dark").chmod(0o755)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [(("ls", "{}", "nothing"), 1), (("index", "{}", "--check"), 1),
     (("delete", "{}", "item0"), 0)],
)  # fmt: skip
def test_a_command_that_is_advised_can_be_given_to_a_shell(
    gulp2, gulped, arguments, status
):
    folder = gulped.rename("my 'gulped'")
    result = gulp2(*[word.format(folder) for word in arguments], status=status)
    *_, line = result.output.splitlines()
    advised = shlex.split(line[line.rindex("gulp2 ") :])
    assert advised[2] == str(folder)
    gulp2(*advised[1:])


def test_nothing_is_looked_for_to_be_freed_at_the_end_of_the_program(repository):
    code = (
        "import atexit, gc, sys\n"
        "from gulpio2.cli.main import main\n"
        "atexit.register(lambda: print(gc.get_freeze_count() > 9_999))\n"
        "sys.argv[1:] = ['--version']\n"
        "main()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(repository)},
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.stdout.endswith("\nTrue\n")


@pytest.mark.parametrize("workers", [1, 2])
def test_what_an_adapter_has_written_to_a_file_it_leaves_open_is_there(
    tmp_path, repository, workers
):
    (tmp_path / "mine.py").write_text(
        "import numpy as np\n"
        "from gulpio2.adapters import AbstractDatasetAdapter\n"
        "class Noted(AbstractDatasetAdapter):\n"
        "    def __init__(self):\n"
        "        self.notes = open('notes.txt', 'w')\n"
        "        self.notes.write('two items')\n"
        "    def __len__(self):\n"
        "        return 2\n"
        "    def __getstate__(self):\n"
        "        return {}\n"
        "    def iter_data(self, slice_element=None):\n"
        "        for number in range(2)[slice_element or slice(None)]:\n"
        "            frame = np.zeros((16, 16, 3), np.uint8)\n"
        "            yield {'id': number, 'meta': {}, 'frames': [frame]}\n"
    )
    code = "from gulpio2.cli.main import main\nmain()\n"
    command = f"ingest mine.py:Noted out --num-workers {workers}"
    subprocess.run(
        [sys.executable, "-c", code, *command.split()],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(repository)},
        check=True,
        capture_output=True,
        timeout=60,
    )
    assert (tmp_path / "notes.txt").read_text() == "two items"
