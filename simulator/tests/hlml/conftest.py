"""The compiled library on simulated nodes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hlml_program import LibraryMaker, maker
from simulated_machine import Machine, Machines


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
