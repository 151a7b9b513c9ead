"""The compiled library on simulated nodes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "node"))
sys.path.insert(0, str(Path(__file__).parent))

from hlml_program import LibraryMaker, maker
from simulated_machine import Machine, Machines, machines


@pytest.fixture(name="machines")
def the_machines(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machines]:
    """Makes the nodes of one test."""
    with machines(monkeypatch) as made:
        yield made


@pytest.fixture
def bare(machines: Machines) -> Callable[..., Machine]:
    """Makes a booted node without any vendor package."""
    return machines.bare


@pytest.fixture
def machine(machines: Machines) -> Machine:
    """An eight-card node with release 1.23.0-695 installed and loaded."""
    made = machines.loaded()
    made.at(made.now + 100)
    return made


@pytest.fixture
def open_library() -> Iterator[LibraryMaker]:
    """Opens the library of a release on a node; shut down after the test."""
    with maker() as make:
        yield make
