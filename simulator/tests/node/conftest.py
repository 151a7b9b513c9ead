"""Nodes for the tests."""

from __future__ import annotations

import pytest
from simulated_machine import Machine, Machines


@pytest.fixture
def machine(machines: Machines) -> Machine:
    """An eight-card node with release 1.23.0-695 installed and loaded."""
    return machines.loaded()
