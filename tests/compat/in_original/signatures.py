"""Print the signatures of GulpIO2 0.0.4 as JSON: ``signatures.py NAME NAME ...``.

A name is "module:Class.method". The signature is text as in Python, without self.
"""

from __future__ import annotations

import importlib
import inspect
import json
import sys
from typing import Any

from gulpio2 import fileio


def parameters_of(name):
    """Write the parameters of one callable."""
    module, _, path = name.partition(":")
    thing: Any = importlib.import_module(module)
    for part in path.split("."):
        thing = getattr(thing, part)
    parameters = list(inspect.signature(thing).parameters.values())
    if not inspect.isclass(thing) and parameters and parameters[0].name == "self":
        parameters = parameters[1:]
    return ", ".join(map(written, parameters))


def written(parameter):
    """Write a parameter as it stands in a signature; an object by its name."""
    default = parameter.default
    if default is parameter.empty:
        return parameter.name
    if isinstance(default, fileio.JSONSerializer):
        text = "json_serializer"
    else:
        text = getattr(default, "__name__", repr(default).replace("'", '"'))
    return f"{parameter.name}={text}"


if __name__ == "__main__":
    json.dump({name: parameters_of(name) for name in sys.argv[1:]}, sys.stdout)
