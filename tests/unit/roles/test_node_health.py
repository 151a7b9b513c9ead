"""The program of the node's timer brings all that it imports."""

from __future__ import annotations

import yaml

from .programs import ROOT, sources_of


def test_every_import_of_the_program_is_brought_along() -> None:
    role = yaml.safe_load((ROOT / "roles/node_health/vars/main.yml").read_text())
    assert role["_node_health_sources"] == sources_of(ROOT / "roles/node_health/files/gaudi_node_health.py")
