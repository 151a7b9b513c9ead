"""Whether the versions of a node go together: each rule on its fault, and on the same node without it."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._release.node import Node
from ansible_collections.gaudi3.scale.plugins.module_utils._release.rules import RULES, check, consistent, culprit

GOOD: dict[str, Any] = {
    "system": "Ubuntu 24.04",
    "kernel": "6.8.0-51-generic",
    "built_for": ["6.8.0-51-generic"],
    "generation": "gaudi3",
    "driver": "1.23.0-2eae87a",
    "packages": {"habanalabs-dkms": "1.23.0-695", "habanalabs-graph": "1.23.0-695"},
    "plugin": "1.23.0.695",
    "torch": "2.9.0a0+git1",
    "python": "3.12.3",
    "image": "vault.habana.ai/gaudi-docker/1.23.0/ubuntu24.04/habanalabs/pytorch-installer-2.9.0:1.23.0-695",
    "vllm": "0.16.0",
    "preboot": "Preboot version hl-gaudi3-1.22.0-fw-61.3.2-sec-9 (Aug 01 2025 - 10:11:12)",
    "tool": "hl-1.23.0-fw-62.2.1.1",
    "iommu": "identity",
}
CASES: list[tuple[str, dict[str, Any], str]] = [
    ("generation-release", {"generation": "gaudi"}, "release"),
    ("system-release", {"system": "Ubuntu 20.04", "kernel": "", "python": ""}, "release"),
    ("kernel-system", {"kernel": "6.11.0-9-generic", "built_for": ["6.11.0-9-generic"]}, "kernel"),
    ("kernel-driver", {"built_for": []}, "kernel"),
    ("next-kernel-driver", {"next_kernel": "6.8.0-60-generic"}, "next_kernel"),
    ("next-kernel-system", {"next_kernel": "6.14.0-1", "built_for": ["6.8.0-51-generic", "6.14.0-1"]}, "next_kernel"),
    ("iommu-driver", {"iommu": "DMA-FQ"}, "iommu"),
    ("one-version", {"packages": {"habanalabs-dkms": "1.23.0-695", "habanalabs-thunk": "1.22.0-740"}}, "packages"),
    ("driver-packages", {"driver": "1.22.0-abc"}, "driver"),
    ("packages-driver", {"packages": {"habanalabs-dkms": "1.24.0-1007"}}, "packages"),
    ("plugin-driver", {"plugin": "1.22.0.740", "torch": "2.7.1a0"}, "plugin"),
    ("image-driver", {"image": "vault.habana.ai/gaudi-docker/1.24.0/ubuntu24.04/habanalabs/x:latest"}, "image"),
    ("image-torch", {"image": str(GOOD["image"]).replace("2.9.0", "2.7.1")}, "image"),
    ("torch-release", {"torch": "2.10.0a0+git1"}, "torch"),
    ("torch-vendor", {"torch": "2.9.0+cu128"}, "torch"),
    ("vllm-release", {"vllm": "0.26.0"}, "vllm"),
    ("vllm-driver", {"vllm": "0.7.2+Gaudi-1.21.0"}, "vllm"),
    ("python-system", {"python": "3.11.9"}, "python"),
]


def test_a_node_whose_versions_go_together() -> None:
    findings = check(Node.of(GOOD))
    assert findings == []
    assert consistent(findings) and culprit(findings) == ""


@pytest.mark.parametrize(("rule", "fault", "blamed"), CASES, ids=[each[0] for each in CASES])
def test_a_fault_is_found_by_its_rule_and_alone(rule: str, fault: dict[str, Any], blamed: str) -> None:
    findings = check(Node.of({**GOOD, **fault}))
    assert [each.rule for each in findings if each.level == "forbidden"] == [rule]
    assert not consistent(findings)
    assert culprit(findings) == blamed
    found = findings[0]
    assert found.source and found.cure and found.sentence.endswith(".") and len(found.pair) == 2


def test_preboot_firmware_of_gaudi_2() -> None:
    node = {"generation": "gaudi2", "driver": "1.20.1-97", "preboot": "hl-gaudi2-1.22.0-fw-61.3.2"}
    assert [each.rule for each in check(Node.of(node)) if each.level == "forbidden"] == ["preboot-release"]
    assert consistent(check(Node.of({**node, "generation": "gaudi3"})))
    assert consistent(check(Node.of({**node, "preboot": "hl-gaudi2-1.21.1-fw-1"})))


def test_a_tool_of_another_release_is_no_fault() -> None:
    findings = check(Node.of({**GOOD, "tool": "hl-1.22.0-fw-61.3.2.1"}))
    assert [(each.rule, each.level) for each in findings] == [("tool-driver", "unconfirmed")]
    assert consistent(findings)


def test_what_nothing_confirms_is_told_apart() -> None:
    findings = check(Node.of({"system": "Ubuntu 24.04", "driver": "1.24.2-481", "torch": "2.11.0"}))
    assert {(each.rule, each.level, each.source) for each in findings} == {
        ("system-release", "unconfirmed", "unconfirmed"),
        ("torch-release", "unconfirmed", "unconfirmed"),
    }


def test_what_is_kept_is_not_to_blame() -> None:
    node = Node.of({"driver": "1.22.0", "image": "x/gaudi-docker/1.23.0/ubuntu24.04/y:latest"})
    assert culprit(check(node)) == "image"
    assert culprit(check(node, keep=("image",))) == "driver"
    at = Node.of({"driver": "1.23.0", "vllm": "0.26.0"})
    assert (culprit(check(at)), culprit(check(at, keep=("vllm",)))) == ("vllm", "release")


def test_nothing_is_said_of_what_is_not_known() -> None:
    assert check(Node()) == []


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        ({"driver": "9.9.9-1", "torch": "3.0"}, "The loaded driver of 9.9.9, which is in no matrix: nothing is known"),
        ({"driver": "v1.23.0"}, "The loaded driver of v1.23.0, which names no release: nothing is known of what goes"),
        ({"plugin": "nightly"}, "PyTorch's plugin of nightly, which names no release: nothing is known of what goes"),
        ({"packages": {"habanalabs-dkms": "9.9.9-1"}}, "Packages of 9.9.9, which is in no matrix: nothing is known of"),
    ],
)
def test_what_cannot_be_judged_is_no_yes(versions: dict[str, Any], said: str) -> None:
    (found,) = check(Node.of({"system": "Ubuntu 24.04", **versions}))
    assert (found.rule, found.level, found.cure) == ("known-release", "unconfirmed", "")
    assert found.sentence.startswith(said)


def test_every_rule_is_tried_here() -> None:
    assert len(RULES) == 14


@pytest.mark.parametrize(
    ("versions", "blamed"),
    [
        ({"packages": {"habanalabs-dkms": "1.23.0-695"}, "plugin": "1.24.1.482"}, "plugin"),
        ({"plugin": "1.24.1.482", "vllm": "0.9.0.1+Gaudi-1.23.0"}, "vllm"),
        ({"vllm": "0.9.0.1+Gaudi-1.23.0", "image": "x/gaudi-docker/1.24.1/ubuntu24.04/y:latest"}, "image"),
        ({"driver": "1.23.0", "packages": {"habanalabs-dkms": "1.24.1-482"}}, "packages"),
    ],
)
def test_of_two_parts_the_one_that_is_changed_most_easily_is_blamed(versions: dict[str, Any], blamed: str) -> None:
    """Without a majority; what runs counts more than what is installed."""
    assert culprit(check(Node.of(versions))) == blamed
