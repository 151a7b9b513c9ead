"""A plugin for `python -m pytest -p tests.suite.cost`: CPU seconds of each test with its fixtures, containers included.

Ended children that were waited for count; so do the simulated nodes' containers. What two tests share is charged to
the one that made it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from tests.suite.run import container_seconds

MOST = 40


def spent() -> float:
    """CPU seconds of this process, its ended children and all containers so far."""
    now = os.times()
    return now.user + now.system + now.children_user + now.children_system + container_seconds()


class Costs:
    """CPU and wall seconds of each test."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, float, str]] = []

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        before, clock = spent(), time.monotonic()
        yield
        self.rows.append((spent() - before, time.monotonic() - clock, item.nodeid))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.write_sep("=", "CPU seconds, seconds")
        for cpu, wall, name in sorted(self.rows, reverse=True)[:MOST]:
            terminalreporter.write_line(f"{cpu:8.1f} {wall:8.1f}  {name}")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Costs(), "gaudi3-costs")
