"""What takes long is left to `make proof-docs`."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Name the mark of proofs."""
    config.addinivalue_line(
        "markers", "proof: the part of a series that a sample stands for; `make proof-NAME` runs it"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave proofs out, unless an expression of marks was given."""
    if config.option.markexpr:
        return
    left_out = [item for item in items if item.get_closest_marker("proof")]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)
