"""The compiled library on simulated nodes."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "node")]

from hlml_program import LibraryMaker, maker  # noqa: E402
from simulated_machine import Machine  # noqa: E402


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Machine]]:
    """Makes a booted node without any vendor package."""

    def make(name: str = "gaudi-1", cards: int = 8, **more: str) -> Machine:
        made = Machine(Path(folder) / name, monkeypatch)
        every.append(made)
        options = [word for option, value in more.items() for word in (f"--{option}", value)]
        made.ok("node", "init", "--node", name, "--cards", str(cards), *options)
        made.ok("node", "boot")
        return made

    every: list[Machine] = []
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory, prefix="gaudi3-hlml-") as folder:
        yield make
        for machine in every:
            machine.close()


@pytest.fixture
def machine(bare: Callable[..., Machine]) -> Machine:
    """An eight-card node with release 1.23.0-695 installed and loaded."""
    made = bare()
    made.install()
    made.load()
    made.at(made.now + 100)
    return made


@pytest.fixture
def open_library() -> Iterator[LibraryMaker]:
    """Opens the library of a release on a node; shut down after the test."""
    with maker() as make:
        yield make
