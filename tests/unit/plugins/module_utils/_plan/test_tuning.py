"""What is set on a kernel of each version, what waits for a reboot, and what is said of cards that are translated."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._plan import tuning
from ansible_collections.gaudi3.scale.plugins.module_utils._plan.run import Run
from ansible_collections.gaudi3.scale.plugins.module_utils._plan.tuning import iommu_problem
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal

ARGUMENT_SPEC = ["iommu=pt", "intel_iommu=on"]


def problem(missing: Any, consent: bool = False, tags: str = "all", skipped: str = "") -> str:
    return iommu_problem("translated", ARGUMENT_SPEC, missing, consent, Run.of([tags], [skipped] if skipped else []))


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


@pytest.mark.parametrize("missing", [[], None])
def test_without_arguments_none_is_named_in_the_sentence(missing: Any) -> None:
    said = iommu_problem("translated", [], missing, True, Run.of(["all"], []))
    assert said.startswith("translated: tuning_kernel_command_line is empty, and nothing else of a run ends that")
    assert "started with" not in said


USUAL: dict[str, Any] = {
    "inventory_hostname": "gaudi-1",
    "tuning_hugepages": -1,
    "tuning_numa_balancing": "auto",
    "tuning_cpu_governor": "",
    "tuning_cstates": "unmanaged",
    "tuning_kernel_command_line": ARGUMENT_SPEC,
    "tuning_kernel_command_line_state": "reported",
    "ansible_facts": {"kernel": "6.8.0-71-generic"},
}


def values(kernel: Any = "6.8.0-71-generic", cards: Any = (), **given: Any) -> Any:
    facts = {"kernel": kernel, "gaudi_pci": {"cards": cards}}
    return {**USUAL, "ansible_facts": facts, **given}.get


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, {}),
        ({"tuning_hugepages": 0}, {"vm.nr_hugepages": 0}),
        ({"tuning_hugepages": "-1"}, {}),
        ({"kernel": "5.9.0"}, {"kernel.numa_balancing": 0}),
        ({"kernel": "5.16.20"}, {"kernel.numa_balancing": 0}),
        ({"kernel": "5.17.0"}, {}),
        ({"kernel": "5.8.18"}, {}),
        ({"kernel": ["5.15"]}, {}),
        ({"tuning_numa_balancing": "disabled"}, {"kernel.numa_balancing": 0}),
        ({"kernel": "5.15.0", "tuning_numa_balancing": "unmanaged"}, {}),
        ({"tuning_hugepages": 5, "tuning_sysctl": {"vm.nr_hugepages": 7, "a": 1}}, {"vm.nr_hugepages": 7, "a": 1}),
    ],
)
def test_kernel_settings(given: dict[str, Any], found: dict[str, Any]) -> None:
    assert tuning.sysctl(values(**given)) == found


def test_the_governor_is_one_of_the_kernels_files() -> None:
    assert tuning.sysfs(values(tuning_cpu_governor="performance")) == {tuning.GOVERNOR: "performance"}
    assert tuning.sysfs(values(tuning_cpu_governor="x", tuning_sysfs={tuning.GOVERNOR: "y"})) == {tuning.GOVERNOR: "y"}


IDENTITY, TRANSLATED, NONE = ({"iommu": kind} for kind in ("identity", "DMA-FQ", None))


@pytest.mark.parametrize(
    ("given", "lines"),
    [
        ({}, ["gaudi3-scale"]),
        ({"kernel": "6.7.9"}, []),
        ({"kernel": "6.10.1"}, ["gaudi3-scale"]),
        ({"kernel": "6.7.9", "cards": [NONE]}, []),
        ({"kernel": "6.7.9", "cards": [NONE, TRANSLATED]}, ["gaudi3-scale"]),
        ({"tuning_kernel_command_line": []}, []),
        ({"tuning_cstates": "disabled"}, ["gaudi3-scale", "gaudi3-scale-cstates"]),
        ({"kernel": "5.8.1", "tuning_cstates": "disabled"}, []),
        ({"kernel": "", "cards": "odd"}, []),
    ],
)
def test_arguments_count_where_they_are_for_something(given: dict[str, Any], lines: list[str]) -> None:
    assert [line["name"] for line in tuning.command_line(values(**given))] == lines


def test_cards_that_nothing_translates_need_no_reason() -> None:
    reasons = [tuning.command_line(values(cards=cards))[0]["reason"] for cards in ([IDENTITY], [IDENTITY, NONE], [])]
    assert reasons[0] == "" and all(each.startswith("with which no IOMMU translates") for each in reasons[1:])
    states = [tuning.command_line(values(tuning_cstates=each))[1]["state"] for each in ("disabled", "reported")]
    assert states == ["present", "reported"]


LINE = {"missing": ["iommu=pt"], "reboot_needed": True}


@pytest.mark.parametrize(
    ("compared", "waiting"),
    [
        ([LINE], ["iommu=pt"]),
        ([{**LINE, "reboot_needed": False}], []),
        ([{"missing": [], "reboot_needed": True}], []),
        ([], []),
    ],
)
def test_arguments_wait_for_a_reboot(compared: Any, waiting: list[str]) -> None:
    assert tuning.waiting(values(_tuning_settings={"command_line": compared})) == waiting
    assert tuning.waiting(values()) == [], "nothing was compared"
    done = values(cards=[IDENTITY], _tuning_settings={"command_line": compared})
    assert tuning.waiting(done) == [], "the cards are as they are to be"


@pytest.mark.parametrize("odd", [None, "x", [5], [{}], [{**LINE, "reboot_needed": "no"}], [{"reboot_needed": True}]])
def test_an_answer_that_cannot_be_read_does_not_say_that_nothing_waits(odd: Any) -> None:
    with pytest.raises(Refusal, match="What gaudi-1 answers about its kernel"):
        tuning.waiting(values(_tuning_settings={"command_line": odd}))


def test_remarks_are_said_once_for_all_hosts() -> None:
    names = [f"gaudi-{number}" for number in range(1, 7)]
    hosts = {name: {"_tuning_settings": {"remarks": ["no governor", 5]}} for name in names[:5]}
    given = {"ansible_play_hosts": names, "hostvars": {**hosts, "gaudi-6": {"_tuning_settings": "odd"}}}
    assert tuning.remarks_of_all(values(**given)) == ["gaudi-1, gaudi-2, gaudi-3, gaudi-4 and 1 more: no governor"]


def test_cards_that_a_reboot_did_not_help_are_refused_with_what_is_left() -> None:
    facts = {"gaudi_pci": {"iommu_problem": "The IOMMU translates"}}
    said = tuning.translated(values(ansible_facts=facts))
    assert said.startswith(
        "gaudi-1: The IOMMU translates: the kernel was started with iommu=pt intel_iommu=on, so look"
    )
    for given in ({"tuning_accept_translated_iommu": "true"}, {"ansible_check_mode": True}):
        assert tuning.translated(values(ansible_facts=facts, **given)) == ""
    assert tuning.translated(values(ansible_facts={"gaudi_pci": {"iommu_problem": None}})) == ""
