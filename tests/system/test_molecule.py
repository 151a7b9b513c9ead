"""Every molecule scenario: `molecule test` from the root for the end-to-end run, one per role besides."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import ROOT, run

SCENARIOS = sorted(path.parent.name for path in (ROOT / "extensions" / "molecule").glob("*/molecule.yml"))


def test_every_role_has_a_scenario_with_tests() -> None:
    roles = {path.name for path in (ROOT / "roles").iterdir()}
    assert set(SCENARIOS) == roles | {"default"}
    for scenario in SCENARIOS:
        assert list((ROOT / "extensions" / "molecule" / scenario / "tests").glob("test_*.py")), scenario


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario(scenario: str, tmp_path: Path) -> None:
    try:
        result = run("molecule", "test", "--scenario-name", scenario, timeout=1500)
    finally:
        run("gaudi3-simulator", "down", "--name", f"mol-{scenario}")
    assert result.returncode == 0, (result.stdout + result.stderr)[-8000:]
    assert "passed" in result.stdout + result.stderr
