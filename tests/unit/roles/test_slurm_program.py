"""The program of role slurm brings all that it imports."""

from __future__ import annotations

from ansible_collections.gaudi3.scale.plugins.module_utils._plan import shipped, slurm

from .programs import ROOT, sources_of


def test_every_import_of_the_program_is_brought_along() -> None:
    needed = set(sources_of(ROOT / "roles/slurm/files/gaudi_slurm.py"))
    assert set(slurm.SOURCES) <= needed, "a file that nothing imports"
    assert needed <= {*shipped.health_sources(), *slurm.SOURCES}
