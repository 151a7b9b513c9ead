"""What a user can do about cards whose addresses an IOMMU translates."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._plan.run import Run
from ansible_collections.gaudi3.scale.plugins.module_utils._plan.tuning import iommu_problem

ARGUMENTS = ["iommu=pt", "intel_iommu=on"]


def problem(missing: Any, consent: bool = False, tags: str = "all", skipped: str = "") -> str:
    return iommu_problem("translated", ARGUMENTS, missing, consent, Run.of([tags], [skipped] if skipped else []))


@pytest.mark.parametrize("missing", [[], None, "iommu=pt", [{}]])
def test_the_kernel_has_the_arguments_already(missing: Any) -> None:
    assert problem(missing).startswith("translated: the kernel was started with iommu=pt intel_iommu=on, so look for")
    assert problem(missing, consent=True) != ""


def test_without_consent_the_arguments_are_named_and_what_gives_them() -> None:
    said = problem(["iommu=pt"])
    assert said.startswith("translated: start the kernel with iommu=pt, by hand or in this run, with tuning_kernel")


def test_with_consent_the_run_itself_ends_it_unless_it_leaves_the_phase_out() -> None:
    assert problem(["iommu=pt"], consent=True) == ""
    for given in ({"tags": "drivers"}, {"skipped": "tuning"}):
        assert "this run leaves out the phase tuning" in problem(["iommu=pt"], consent=True, **given)
