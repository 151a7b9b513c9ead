"""Nodes for the tests."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # the helper is found under every import mode of pytest

from simulated_machine import Machine


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Machine]]:
    """Makes a booted node without any vendor package."""
    # A node is a thousand small files: in memory, where the machine has that.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory, prefix="gaudi3-node-") as folder:
        made: list[Machine] = []
        yield _maker(Path(folder), monkeypatch, made)
        for machine in made:
            machine.close()


def _maker(folder: Path, monkeypatch: pytest.MonkeyPatch, every: list[Machine]) -> Callable[..., Machine]:
    def make(name: str = "gaudi-1", cards: int = 8, **more: str) -> Machine:
        made = Machine(folder / name, monkeypatch)
        every.append(made)
        options = [word for option, value in more.items() for word in (f"--{option}", value)]
        made.ok("node", "init", "--node", name, "--cards", str(cards), *options)
        made.ok("node", "boot")
        return made

    return make


@pytest.fixture
def machine(bare: Callable[..., Machine]) -> Machine:
    """An eight-card node with release 1.23.0-695 installed and loaded."""
    made = bare()
    made.install()
    made.load()
    return made
