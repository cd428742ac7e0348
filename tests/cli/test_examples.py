"""Every command has help with an example, and every example runs."""

from __future__ import annotations

import shlex

import pytest

from gulpio2 import GulpChunk
from gulpio2.cli.command import DocumentedCommand
from gulpio2.cli.reference import command_lines
from gulpio2.testing import make_frames, make_gulp_directory

COMMANDS = {" ".join(words): context for words, context in command_lines()}
EXAMPLES = sorted(
    {
        example
        for context in COMMANDS.values()
        if isinstance(context.command, DocumentedCommand)
        for example in context.command.examples
    }
)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_documented_and_has_an_example(name):
    command = COMMANDS[name].command
    assert isinstance(command, DocumentedCommand)
    assert command.help
    assert command.examples
    assert all(example.startswith(name) for example in command.examples)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_argument_and_option_has_a_help_text(name):
    command = COMMANDS[name].command
    without = [
        param.name
        for param in command.get_params(COMMANDS[name])
        if not getattr(param, "help", None)
    ]
    assert without == []


@pytest.mark.parametrize(
    "example",
    [
        # Workers are those of torch.
        pytest.param(each, marks=[pytest.mark.torch] if "--workers" in each else [])
        for each in EXAMPLES
    ],
)
def test_the_example_runs(example, gulp2, sources):
    words = shlex.split(example, comments=True)
    assert words.pop(0) == "gulp2"
    if words[0] == "merge":
        for part in words[1:-1]:
            make_part(sources / part)
    elif words[0] != "ingest":
        make_gulp_directory(sources / "gulped").close()
    gulp2(*words)


def make_part(folder):
    """Make a directory of one item with an id that no other part has."""
    if folder.name.startswith("-"):
        return
    folder.mkdir(parents=True)
    chunk = GulpChunk(folder / "data_0.gulp", folder / "meta_0.gmeta")
    with chunk.open("wb"):
        chunk.append(folder.name, {}, make_frames(2))
