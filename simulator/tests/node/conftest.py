"""Nodes for the tests."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the helper is found under every import mode of pytest

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
    return machines.loaded()
