"""What role pytorch installs for an extra of the trainer is what the extra asks for, and no more."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import yaml

from ansible_collections.gaudi3.scale.plugins.module_utils._plan.shipped import EXTRAS
from ansible_collections.gaudi3.scale.plugins.module_utils._pytorch.pins import pins

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "requirements"))  # the folder of a program that is run
extras_by_name = importlib.import_module("extras_by_name")


def test_the_lists_are_those_of_the_trainers_extras() -> None:
    """After a change: `python requirements/extras_by_name.py`."""
    there = {path.stem: path.read_text() for path in extras_by_name.FOLDER.iterdir()}
    assert there == extras_by_name.lists()
    assert sorted(there) == sorted(EXTRAS)


def test_the_role_takes_each_of_them_and_no_other() -> None:
    options = yaml.safe_load((ROOT / "roles/pytorch/meta/argument_specs.yml").read_text())["argument_specs"]["main"]
    assert options["options"]["pytorch_extras"]["choices"] == list(EXTRAS)


def test_a_package_is_pinned_once_for_all_extras() -> None:
    lines = {line for path in extras_by_name.FOLDER.iterdir() for line in path.read_text().splitlines()} | set(
        (ROOT / "roles/pytorch/files/requirements.txt").read_text().splitlines()[1:]
    )
    assert len(pins(list(lines))) == len(lines)


def test_what_a_package_needs_elsewhere_alone_is_left_out() -> None:
    names = extras_by_name.closure(["tensorboard"])
    assert {"tensorboard", "grpcio", "protobuf"} <= names and "torch" not in names
    assert "torch" not in extras_by_name.closure(["peft"])
