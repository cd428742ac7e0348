"""Item for item what MMEngine 0.10 gives on the same annotations."""

from __future__ import annotations

import importlib
import importlib.util
import json
import logging
from pathlib import Path

import pytest

import gulpio2.torch
from tests.loading import load

scenarios = load(Path(__file__).with_name("mmengine_scenarios.py"))


def test_these_datasets_give_the_answers_of_mmengine(tmp_path):
    expected = json.loads(scenarios.GOLDEN.read_text("utf-8"))
    told = scenarios.answers(gulpio2.torch, tmp_path)
    assert scenarios.differences(told, expected) == []


@pytest.mark.filterwarnings("ignore")  # other people's code
def test_the_answers_on_file_are_those_of_the_installed_mmengine(tmp_path):
    mmengine = pytest.importorskip("mmengine", reason="mmengine is not installed")
    if not mmengine.__version__.startswith("0.10."):
        pytest.skip(f"mmengine is {mmengine.__version__}, the answers are of 0.10")
    library = importlib.import_module("mmengine.dataset")
    logging.disable()
    try:
        told = scenarios.answers(library, tmp_path)
    finally:
        logging.disable(logging.NOTSET)
    assert told == json.loads(scenarios.GOLDEN.read_text("utf-8"))
