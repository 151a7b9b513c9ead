"""A node to examine that is a folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from node_files import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A folder that stands for a node with two cards."""
    return Machine(tmp_path)
