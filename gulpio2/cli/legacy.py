"""The ten ``gulp2_*`` programs of GulpIO2 0.0.4.

Each is a row of a table. They print what they understood, run, and end with a traceback
and 1 if something failed, as there.
"""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from gulpio2.__version__ import __version__
from gulpio2.cli.full_streams import settling_output
from gulpio2.cli.grammar import Grammar, show_mapping
from gulpio2.cli.parameter_types import NumberOrText
from gulpio2.cli.terminal import (
    as_options_of_ingest,
    environment_kept,
    escape,
    note,
    set_verbosity,
    take_any_text,
)
from gulpio2.errors import IngestError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "gulp2_20bn_csv_jpeg",
    "gulp2_20bn_csv_webm",
    "gulp2_20bn_json_videos",
    "gulp2_activitynet",
    "gulp2_image_folder",
    "gulp2_image_list",
    "gulp2_kinetics",
    "gulp2_register_adapter",
    "gulp2_sanity_check",
    "gulp2_video_folder",
]


def _rate(text: str) -> int | float | str:
    return NumberOrText().convert(text, None, None)


@dataclass(frozen=True, slots=True)
class _Option:
    """An option, and the parameter of the adapter that it goes to."""

    name: str
    default: str | bool
    help: str
    parameter: str | None = None
    """None where the adapter is not told."""
    convert: Callable[[Any], Any] = str


_FLAG = False  # the default of an option that takes no value
_VIDEOS = _Option("videos_per_chunk", "100", "Number of videos in one chunk")
_IMAGES = _Option("images_per_chunk", "100", "Number of images in one chunk")
_WORKERS = _Option("num_workers", "4", "Number of parallel processes")
_SHUFFLE = _Option(
    "shuffle", _FLAG, "Shuffle the dataset before ingestion", "shuffle", bool
)
_EXTEND = _Option("extend", _FLAG, "Accepted; a directory is always extended")
_SHM = _Option(
    "shm_dir",
    "/dev/shm",  # noqa: S108  # a default of 0.0.4, unused
    "Accepted; no temporary directory is needed",
    "shm_dir_path",
)
_REMOVE = _Option(
    "remove_duplicates",
    _FLAG,
    "Leave out ids that are repeated or in the output directory already",
    "remove_duplicate_ids",
    bool,
)
_RATE = _Option("frame_rate", "8", "Frames per second to take", "frame_rate", _rate)
_PHASE = _Option("phase", "training", "training, validation or testing", "phase")
_ROOT = _Option("root_path", "", "What the paths are relative to", "root_folder")


def _size(name: str, parameter: str) -> _Option:
    return _Option(name, "-1", "Size of smaller edge of resized frames", parameter, int)


def _label_name(default: str) -> _Option:
    return _Option("label_name", default, "Key of the label", "label_name")


@dataclass(frozen=True, slots=True)
class _Script:
    """An ingest program."""

    adapter: str
    """Class in `gulpio2.adapters`."""
    summary: str
    positionals: dict[str, tuple[str, str]]
    """Name to the adapter's parameter and a help; the output directory is added."""
    options: tuple[_Option, ...]
    told_output: bool = True
    """Whether the adapter takes the output directory."""


_JSON = ("json_file", "Input JSON file")
_CSV = ("csv_file", "Input CSV file")
_FOLDER = ("folder", "Base directory of the files")

SCRIPTS: dict[str, _Script] = {
    "gulp2_20bn_json_videos": _Script(
        "Custom20BNJsonVideoAdapter",
        "Gulp videos that a JSON file lists: <videos_directory>/<id>/<name>.mp4.",
        {"input_json": _JSON, "videos_directory": _FOLDER},
        (
            _VIDEOS, _WORKERS, _size("frame_size", "frame_size"), _RATE,
            _SHUFFLE, _EXTEND, _SHM, _label_name("template"), _REMOVE,
        ),
    ),
    "gulp2_20bn_csv_webm": _Script(
        "Custom20BNCsvWebmAdapter",
        "Gulp videos that a CSV file lists: <videos_directory>/<id>.webm.",
        {"input_csv": _CSV, "videos_directory": _FOLDER},
        (
            _VIDEOS, _WORKERS, _size("frame_size", "frame_size"), _RATE,
            _SHUFFLE, _EXTEND, _SHM, _label_name("label"), _REMOVE,
        ),
    ),
    "gulp2_20bn_csv_jpeg": _Script(
        "Custom20BNCsvJpegAdapter",
        "Gulp frames of videos that a CSV file lists: <jpeg_directory>/<id>/*.jpg.",
        {"input_csv": _CSV, "jpeg_directory": _FOLDER},
        (_VIDEOS, _WORKERS, _size("image_size", "frame_size"), _SHUFFLE, _SHM),
    ),
    "gulp2_activitynet": _Script(
        "ActivitynetAdapter",
        "Gulp the videos of one phase of ActivityNet.",
        {"input_json": _JSON, "videos_directory": _FOLDER},
        (_VIDEOS, _WORKERS, _size("image_size", "frame_size"), _SHUFFLE, _SHM, _PHASE),
        told_output=False,
    ),
    "gulp2_kinetics": _Script(
        "KineticsAdapter",
        "Gulp the clips of Kinetics: <videos_directory>/<class>/<id>_<from>_<to>.mp4.",
        {"input_json": _JSON, "videos_directory": _FOLDER},
        (_VIDEOS, _WORKERS, _size("image_size", "frame_size"), _SHUFFLE, _SHM),
        told_output=False,
    ),
    "gulp2_image_folder": _Script(
        "ImageFolderAdapter",
        "Gulp images that lie in a folder for each label: "
        "<images_directory>/<label>/<image>.jpg or .png.",
        {"images_directory": _FOLDER},
        (_IMAGES, _WORKERS, _size("image_size", "img_size"), _SHUFFLE),
    ),
    "gulp2_image_list": _Script(
        "ImageListAdapter",
        "Gulp images that a text file lists, one path,label to a line.",
        {"image_list_file": ("input_file", "The text file")},
        (_IMAGES, _WORKERS, _size("image_size", "img_size"), _ROOT, _SHUFFLE),
    ),
    "gulp2_video_folder": _Script(
        "VideoFolderAdapter",
        "Gulp videos that lie in a folder for each label: "
        "<video_directory>/<label>/<video>.mp4 or .webm.",
        {"video_directory": _FOLDER},
        (_VIDEOS, _WORKERS, _size("frame_size", "frame_size"), _SHM, _SHUFFLE),
    ),
}  # fmt: skip


_SANITY_CHECK = Grammar(
    "gulp2_sanity_check",
    "Check a gulp directory; `gulp2 check` says more.",
    {"gulp_directory": "Directory where the Gulp-Files are located"},
)
_REGISTER_ADAPTER = Grammar(
    "gulp2_register_adapter",
    "Write a program that ingests by an adapter of your own; `gulp2 ingest "
    "module:Class` needs no such program.",
    {
        "adapter_file": "Module that the adapter is imported from: package.module",
        "class_name": "Name of the adapter's class",
    },
)


def grammar_of(program: str) -> Grammar:
    """Give the grammar of one of the ten programs.

    Parameters
    ----------
    program : str
        Its name.
    """
    if program not in SCRIPTS:
        others = (_SANITY_CHECK, _REGISTER_ADAPTER)
        return {grammar.program: grammar for grammar in others}[program]
    script = SCRIPTS[program]
    return Grammar(
        program,
        script.summary,
        {
            **{name: text for name, (_, text) in script.positionals.items()},
            "output_directory": "Output directory for GulpIO files",
        },
        {option.name: (option.default, option.help) for option in script.options},
        version=__version__,
    )


@environment_kept()
def _ingest(program: str, argv: Sequence[str] | None = None) -> None:
    """Run an ingest program; the arguments are those of this process by default."""
    with settling_output(program) as write:
        given: Any = grammar_of(program).parse(_words(argv), write)
        take_any_text()
        write(f"{show_mapping(given)}\n")
        _run_ingest(SCRIPTS[program], given)


def _words(argv: Sequence[str] | None) -> Sequence[str]:
    return sys.argv[1:] if argv is None else argv


def _run_ingest(script: _Script, given: Any) -> None:
    set_verbosity(0, say=as_options_of_ingest)
    from gulpio2.ingest.ingestor import GulpIngestor

    output = given["<output_directory>"]
    arguments = {
        parameter: given[f"<{name}>"]
        for name, (parameter, _) in script.positionals.items()
    }
    for option in script.options:
        if option.parameter is not None:
            arguments[option.parameter] = option.convert(given[f"--{option.name}"])
    if script.told_output:
        arguments["output_folder"] = output
    adapter = getattr(importlib.import_module("gulpio2.adapters"), script.adapter)
    per_chunk = given.get("--videos_per_chunk") or given.get("--images_per_chunk")
    try:
        GulpIngestor(
            adapter(**arguments), output, int(per_chunk), int(given["--num_workers"])
        )()
    except Exception as error:
        _advise_ingest(error)
        raise


def _advise_ingest(error: BaseException) -> None:
    """Say in an error whose options it advises: these programs have none of them."""
    error.args = tuple(
        as_options_of_ingest(each) if isinstance(each, str) else each
        for each in error.args
    )
    if notes := getattr(error, "__notes__", None):
        notes[:] = map(as_options_of_ingest, notes)
    if isinstance(error.__cause__, IngestError):  # in place of a note in Python 3.10
        _advise_ingest(error.__cause__)


def gulp2_sanity_check(argv: Sequence[str] | None = None) -> None:
    """Run the tests of 0.0.4 on a directory, and report all else that is wrong.

    Parameters
    ----------
    argv : sequence of str, optional
        Default: the arguments of this process.
    """
    with settling_output("gulp2_sanity_check") as write:
        given = _SANITY_CHECK.parse(_words(argv), write)
        from gulpio2.errors import StorageError
        from gulpio2.sanity import check_directory, original_tests

        try:
            report = check_directory(str(given["<gulp_directory>"]))
        except StorageError as error:
            sys.exit(f"gulp2_sanity_check: {escape(error.strerror or error)}")
        take_any_text()
        for test in original_tests(report):
            write(f"Sanity Check: {test['message']}\n")
            failures = test["failures"]
            write(f"Test failed for: {failures}\n" if failures else "Test passed\n")
        if not report.ok:
            sys.exit(1)


def gulp2_register_adapter(argv: Sequence[str] | None = None) -> None:
    """Write a program for an adapter into the working directory.

    Parameters
    ----------
    argv : sequence of str, optional
        Default: the arguments of this process.
    """
    with settling_output("gulp2_register_adapter") as write:
        given = _REGISTER_ADAPTER.parse(_words(argv), write)
        import click

        from gulpio2.cli.register import register_adapter
        from gulpio2.errors import StorageError

        try:
            path, text, left_out = register_adapter(
                str(given["<adapter_file>"]), str(given["<class_name>"])
            )
        except click.UsageError as error:
            _REGISTER_ADAPTER.fail(error.message)
        except click.ClickException as error:
            sys.exit(f"gulp2_register_adapter: {error.message}")
        except StorageError as error:
            sys.exit(f"gulp2_register_adapter: {escape(error.strerror or error)}")
        take_any_text()
        write(text)
        note(f"gulp2_register_adapter: wrote {path}")
        if left_out:
            note(
                "gulp2_register_adapter: it does not take "
                f"{escape(', '.join(left_out))}, whose default is no plain value: the "
                "constructor has that"
            )


gulp2_20bn_json_videos = partial(_ingest, "gulp2_20bn_json_videos")
gulp2_20bn_csv_webm = partial(_ingest, "gulp2_20bn_csv_webm")
gulp2_20bn_csv_jpeg = partial(_ingest, "gulp2_20bn_csv_jpeg")
gulp2_activitynet = partial(_ingest, "gulp2_activitynet")
gulp2_kinetics = partial(_ingest, "gulp2_kinetics")
gulp2_image_folder = partial(_ingest, "gulp2_image_folder")
gulp2_image_list = partial(_ingest, "gulp2_image_list")
gulp2_video_folder = partial(_ingest, "gulp2_video_folder")
