"""Steps from a node's versions to those that are wished for, with their rules and what breaks on the way."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._release.journey import journey
from ansible_collections.gaudi3.scale.plugins.module_utils._release.matrix import SOURCES
from ansible_collections.gaudi3.scale.plugins.module_utils._release.node import Node

NODE: dict[str, Any] = {
    "system": "RHEL 9.4",
    "kernel": "5.14.0-427.el9_4.x86_64",
    "generation": "gaudi3",
    "driver": "1.23.0-2eae87a",
    "packages": {"habanalabs": "1.23.0-695.el9"},
    "plugin": "1.23.0.695",
    "torch": "2.9.0a0+git1",
    "python": "3.11.9",
}


def test_each_step_names_the_rule_that_decides_it() -> None:
    found = journey(Node.of(NODE), {"torch": "2.11"})
    assert (found.changes, found.boots, found.release, found.system) == (2, 1, "1.24.1-482", "RedHat 9.6")
    assert [(step.kind, step.what, step.boots, step.because) for step in found.steps] == [
        (
            "system",
            "Upgrade RHEL 9.4 to RHEL 9.6, and boot it",
            1,
            "1.24.1-482 goes with Ubuntu 22.04, Ubuntu 24.04, RHEL 9.6, not with RHEL 9.4",
        ),
        (
            "release",
            "Install 1.24.1-482 with its driver, firmware images and tools, and load it",
            0,
            "it is the release for torch 2.11",
        ),
        (
            "torch",
            "Install PyTorch 2.11.0 of 1.24.1-482",
            0,
            "PyTorch's plugin of 1.23.0 and the loaded driver of 1.24.1 do not go together: both have to be of one "
            "release",
        ),
        (
            "python",
            "Take Python 3.12",
            0,
            "The vendor's PyTorch for RHEL 9.6 is for Python 3.12, not for 3.11.9",
        ),
    ]
    assert found.steps[0].source == SOURCES["quotation"]
    assert found.cautions == ()


def test_what_breaks_is_told_at_its_step() -> None:
    node = {**NODE, "driver": "1.17.0-495", "packages": {}, "plugin": "1.17.0.495", "torch": "", "vllm": "0.1"}
    steps = journey(Node.of(node), {"release": "1.24.1"}).steps
    assert [step.what.split(" with ")[0] for step in steps[:3]] == [
        "Install 1.23.0-695",
        "Upgrade RHEL 9.4 to RHEL 9.6, and boot it",
        "Install 1.24.1-482",
    ]
    first = " ".join(steps[0].breaks)
    assert "PyTorch of 1.17.0 until that of 1.23.0 is there" in first
    assert "from 1.21.0 on eager mode is the default" in first and "--rank-by" in first and "Slurm" not in first
    assert "recipe caches" in first
    assert "jobs have to stop, as the node boots" in steps[1].breaks
    assert "Slurm" in " ".join(steps[2].breaks) and "eager" not in " ".join(steps[2].breaks)


def test_without_a_goal_the_nearest_versions_that_go_together() -> None:
    assert journey(Node.of(NODE), {}).steps == ()
    old = journey(Node.of({**NODE, "driver": "1.22.0-abc"}), {})
    assert [(step.kind, step.what) for step in old.steps] == [
        ("load", "Build the driver of 1.23.0-695 for the kernel that runs, and load it")
    ]
    wrong = journey(Node.of({"system": "RHEL 9.4", "driver": "1.24.1-abc"}), {})
    assert [step.what for step in wrong.steps] == [
        "Install 1.23.0-695 with its driver, firmware images and tools (synapseai_allow_downgrade=true), and load it"
    ]
    coming = {**NODE, "next_kernel": "5.14.0-570.el9_6.x86_64", "built_for": [NODE["kernel"]]}
    found = journey(Node.of(coming), {})
    assert [step.kind for step in found.steps] == ["build"] and (found.changes, found.boots) == (0, 0)
    assert "5.14.0-570.el9_6.x86_64 has no Gaudi driver and comes with the next boot" in found.steps[0].because


def test_a_vllm_that_is_asked_for_brings_its_release() -> None:
    found = journey(Node.of({"system": "Ubuntu 24.04", "driver": "1.23.0", "vllm": "0.16.0"}), {"vllm": "0.26.0"})
    assert [step.kind for step in found.steps] == ["release", "vllm"]
    assert (found.release, found.steps[1].what) == ("1.24.1-482", "Take vLLM 0.26.0")


def test_preboot_firmware_is_flashed_from_the_release_that_has_it() -> None:
    found = journey(Node.of({**NODE, "preboot": "hl-gaudi3-1.21.0-fw-1"}), {"preboot": "1.23.0"})
    assert [step.what for step in found.steps] == [
        "Take the driver out and flash the preboot firmware of 1.23.0 with hl-fw-loader"
    ]
    assert "a card whose power fails meanwhile" in found.steps[0].breaks


def test_a_bare_node_gets_a_release() -> None:
    found = journey(Node.of({"system": "Ubuntu 24.04", "generation": "gaudi3"}), {})
    assert [step.what for step in found.steps] == [
        "Install 1.24.1-482 with its driver, firmware images and tools, and load it"
    ]


def test_the_way_from_a_later_release_than_any_known_is_a_way_back() -> None:
    found = journey(Node.of({"system": "Ubuntu 24.04", "driver": "1.25.0"}), {"release": "1.24.1"})
    assert [step.what for step in found.steps] == [
        "Install 1.24.1-482 with its driver, firmware images and tools (synapseai_allow_downgrade=true), and load it"
    ]


def test_pairs_of_the_end_that_nothing_confirms_are_cautions() -> None:
    found = journey(Node.of({"system": "Ubuntu 24.04", "driver": "1.23.0"}), {"release": "1.24.2"})
    assert found.cautions == ("Nothing says that 1.24.2-481 is for Ubuntu 24.04.",)
    assert found.as_facts()["steps"][0]["kind"] == "release"


@pytest.mark.parametrize(
    ("node", "goal", "keep", "said"),
    [
        (NODE, {"colour": "red"}, (), "'colour' is nothing to go to: give NAME=VALUE with one of release, system"),
        ({"driver": "1.23.0"}, {"system": "Ubuntu 24.04"}, (), "The node's system is not known: give it as system=..."),
        ({}, {}, (), "The node's system is not known: give it as system=..., for example system='Ubuntu 24.04'."),
        (NODE, {}, ("image",), "image cannot be kept, as its release is not known"),
        (NODE, {}, ("hat",), "'hat' cannot be kept: give some of image, plugin, vllm, driver, packages."),
        ({**NODE, "image": "x:1.15.0-479"}, {}, ("image",), "image is of 1.15.0, which is in no matrix"),
    ],
)
def test_what_cannot_be_asked_is_one_sentence(
    node: dict[str, Any], goal: dict[str, str], keep: tuple[str, ...], said: str
) -> None:
    with pytest.raises(Refusal) as refused:
        journey(Node.of(node), goal, keep=keep)
    assert str(refused.value).startswith(said)


@pytest.mark.parametrize(
    ("node", "goal", "said"),
    [
        (
            NODE,
            {"system": "Ubuntu 24.04"},
            "No way leads from 1.23.0-695 on RHEL 9.4 to system Ubuntu 24.04: no upgrade",
        ),
        (
            NODE,
            {"torch": "2.11", "vllm": "0.16.0"},
            "No release does all of torch 2.11, vllm 0.16.0: PyTorch 2.11 goes",
        ),
        (
            NODE,
            {"preboot": "1.22.0"},
            "No way leads from 1.23.0-695 on RHEL 9.4 to preboot 1.22.0: the preboot firmware",
        ),
        (
            {**NODE, "preboot": "1.21.0"},
            {"preboot": "7.0.0"},
            "No way leads from 1.23.0-695 on RHEL 9.4 to preboot 7.0.0: preboot firmware comes with a release",
        ),
        (
            {"system": "Ubuntu 22.04", "generation": "gaudi", "driver": "1.18.0"},
            {"torch": "2.11"},
            "No way leads from 1.18.0-524 on Ubuntu 22.04 to torch 2.11: 1.24.1-482 goes with cards of gaudi2, gaudi3",
        ),
    ],
)
def test_no_way_is_one_sentence(node: dict[str, Any], goal: dict[str, str], said: str) -> None:
    found = journey(Node.of(node), goal)
    assert found.no_way.startswith(said) and found.no_way.endswith(".")
    assert found.steps == ()
