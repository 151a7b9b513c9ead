"""The versions of a node, read from what a host or a file says."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._release.node import (
    Node,
    firmware_release,
    image_release,
    image_torch,
    matches,
    system_name,
)


def test_facts_are_read_and_written_the_same() -> None:
    facts = {
        "system": "RedHat 9.4",
        "built_for": [],
        "driver": "1.23.0-2eae87a",
        "packages": {"habanalabs": "1.23.0-695.el9"},
    }
    assert Node.of(facts).as_facts() == facts
    assert Node.of({"system": "RHEL 9.4", "torch": None}).as_facts() == {"system": "RedHat 9.4"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"colour": "red"}, "colour is no fact of a node's versions: give some of boot_image, built_for, driver"),
        ({"driver": ["1"]}, "driver of the node's versions is \"['1']\": give a short text."),
        ({"driver": "1" * 400}, "driver of the node's versions is"),
        ({"packages": "a"}, "packages of the node's versions is \"'a'\": give names with versions."),
        ({"built_for": "6.8"}, "built_for of the node's versions is \"'6.8'\": give a list of kernels."),
    ],
)
def test_what_is_no_fact_is_refused_in_one_sentence(given: dict[str, Any], said: str) -> None:
    with pytest.raises(Refusal) as refused:
        Node.of(given)
    assert str(refused.value).replace('"', "").startswith(said.replace('"', ""))


def test_a_version_that_a_file_has_as_a_number_is_refused() -> None:
    """YAML and JSON have 2.10 as 2.1, another release of PyTorch."""
    with pytest.raises(Refusal, match=r"torch of the node's versions is the number 2\.1: put it in quotes, as '2.10'"):
        Node.of({"torch": 2.10})
    assert Node.of({"torch": "2.10", "python": 3}).python == "3"


def test_a_generation_is_read_as_people_write_it() -> None:
    assert (Node.of({"generation": "Gaudi 3"}).generation, Node.of({"generation": "gaudi2"}).generation) == (
        "gaudi3",
        "gaudi2",
    )


def test_a_host_cannot_write_to_a_terminal() -> None:
    assert Node.of({"driver": "1.2\x1b[31m"}).driver == "1.2\\x1b[31m"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("RHEL 9.4", "RedHat 9.4"),
        ("rhel9.6", "RedHat 9.6"),
        ("Red Hat Enterprise Linux 9.4", "RedHat 9.4"),
        ("ubuntu22.04", "Ubuntu 22.04"),
        ("Ubuntu 24.04.2", "Ubuntu 24.04"),
        ("Ubuntu 22.04.5 LTS", "Ubuntu 22.04"),
        ("Ubuntu 24.04.1 LTS (Noble Numbat)", "Ubuntu 24.04"),
        ("Red Hat Enterprise Linux 9.4 (Plow)", "RedHat 9.4"),
        ("Red Hat Enterprise Linux release 9.6 (Plow)", "RedHat 9.6"),
        ("Ubuntu 24.04 and more", "Ubuntu 24.04 and more"),
        ("Debian 12", "Debian 12"),
    ],
)
def test_systems_have_one_name(text: str, name: str) -> None:
    assert system_name(text) == name


def test_parts_of_names() -> None:
    image = "vault.habana.ai/gaudi-docker/1.24.1/ubuntu24.04/habanalabs/pytorch-installer-2.11.0"
    assert (image_release(f"{image}:1.24.1-482"), image_release(f"{image}:latest")) == ("1.24.1-482", "1.24.1")
    assert (image_torch(f"{image}:latest"), image_release("other:1"), image_torch("other:1")) == ("2.11.0", "", "")
    assert image_torch("x/vllm-0.26.0-ptupstream-2.11.0:latest") == "2.11.0"
    assert firmware_release("Preboot version hl-gaudi3-1.22.0-fw-61.3.2-sec-9 (...)") == "1.22.0"
    assert firmware_release("hl-1.23.0-fw-62.2.1.1") == "1.23.0"
    assert firmware_release("1.21.2") == "1.21.2" and firmware_release("N/A") == ""
    assert Node.of({"vllm": "0.6.6.post1+Gaudi-1.20.0"}).claims() == {"vllm": "1.20.0"}
    assert matches("2.11", "2.11.0") and not matches("2.1", "2.11.0") and not matches("", "2.11.0")


def test_the_driver_s_package_speaks_for_the_set() -> None:
    assert Node.of(
        {"packages": {"habanalabs-dkms": "1.22.0-740", "a": "1.1.1-1", "b": "1.1.1-1"}}
    ).package_release() == ("1.22.0")
    assert Node.of({"packages": {"a": "1.1.1-1", "b": "1.1.1-1", "c": "1.2.0-1"}}).package_release() == "1.1.1"
    assert Node().package_release() == ""
