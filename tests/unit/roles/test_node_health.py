"""The program of the node's timer brings all that it imports."""

from __future__ import annotations

from ansible_collections.gaudi3.scale.plugins.module_utils._plan import shipped

from .programs import ROOT, sources_of


def test_every_import_of_the_program_is_brought_along() -> None:
    assert [*shipped.HEALTH_SOURCES] == sources_of(ROOT / "roles/node_health/files/gaudi_node_health.py")
