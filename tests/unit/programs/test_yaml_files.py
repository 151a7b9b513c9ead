"""Two programs that do not depend on each other read YAML that people write by the same rules."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_both_readers_are_the_same() -> None:
    trainer = (ROOT / "trainer/src/gaudi3_scale/yaml_file.py").read_text()
    deploy = (ROOT / "deploy/src/gaudi3_deploy/yaml_file.py").read_text()
    assert deploy.replace("gaudi3_deploy.", "gaudi3_scale.") == trainer
