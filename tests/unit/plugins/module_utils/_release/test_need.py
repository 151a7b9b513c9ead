"""Which release does what is wished for, and what it needs."""

from __future__ import annotations

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._release.matrix import SOURCES
from ansible_collections.gaudi3.scale.plugins.module_utils._release.need import need


def test_wishes_that_exclude_each_other_and_what_is_nearest() -> None:
    found = need({"torch": "2.11", "system": "RHEL 9.4"})
    assert (found.release, found.candidates, found.rows) == ("", (), ())
    assert found.instead == (
        "PyTorch 2.11 goes with 1.24.1-482.",
        "RHEL 9.4 goes with 1.24.0-1007, 1.23.0-695, 1.22.2-32 and 16 more.",
        "Without PyTorch 2.11 it is 1.23.0-695, which goes with PyTorch 2.9.0.",
        "Without RHEL 9.4 it is 1.24.1-482, which goes with Ubuntu 22.04, Ubuntu 24.04, RHEL 9.6.",
    )


def test_all_that_a_release_needs_with_its_sources() -> None:
    found = need({"vllm": "0.26.0", "system": "ubuntu24.04", "generation": "gaudi3"})
    assert found.candidates == ("1.24.1-482",)
    quotation = SOURCES["quotation"]
    assert [(each.axis, each.value) for each in found.rows if each.source == quotation] == [
        ("generation", "gaudi3"),
        ("system", "Ubuntu 24.04"),
        ("torch", "2.11.0"),
        ("docker", "29.1.5"),
        ("firmware", "gaudi2 1.24.0-fw-62.6.2"),
        ("kernel", "6.8 on Ubuntu 24.04"),
        ("python", "3.12 on Ubuntu 24.04"),
    ]
    assert ("vllm", "0.26.0", SOURCES["vllm"]) in [(each.axis, each.value, each.source) for each in found.rows]
    image = "gaudi-docker/1.24.1/ubuntu24.04/habanalabs/pytorch-installer-2.11.0:1.24.1-482"
    assert found.rows[-1].as_facts() == {"axis": "image", "value": image, "source": SOURCES["dockerfiles"]}


def test_what_sources_confirm_comes_before_what_none_does() -> None:
    found = need({"system": "RHEL 9.4"})
    assert found.release == "1.23.0-695"
    assert found.candidates.index("1.17.0-495") < found.candidates.index("1.24.0-1007")
    assert "1.24.1-482" not in found.candidates
    assert [each.source for each in need({"release": "1.24.0", "system": "RHEL 9.4"}).rows][3:5] == [
        "unconfirmed",
        "unconfirmed",
    ]


def test_a_pytorch_that_nothing_names_is_not_promised() -> None:
    assert "1.24.2-481" not in need({"torch": "2.11"}).candidates
    assert "1.24.2-481" in need({"system": "Ubuntu 24.04"}).candidates


def test_kernels_and_pythons_belong_to_systems() -> None:
    assert need({"kernel": "6.11.0-9", "system": "Ubuntu 24.04"}).release == ""
    assert need({"kernel": "6.11.0-9", "torch": "2.11"}).release == "1.24.1-482"  # on Ubuntu 22.04
    assert need({"python": "3.11", "torch": "2.11"}).release == ""
    assert need({"python": "3.11", "torch": "2.9"}).release == "1.23.0-695"
    assert need({"generation": "gaudi"}).release == "1.18.0-524"


def test_a_generation_is_wished_for_as_people_write_it() -> None:
    assert need({"generation": "Gaudi 3"}).wishes == {"generation": "gaudi3"}


@pytest.mark.parametrize(
    ("wishes", "said"),
    [
        ({}, "Nothing is asked for: give NAME=VALUE with one of release, system, generation"),
        ({"colour": "red"}, "'colour' cannot be asked for: give NAME=VALUE with one of release, system"),
        ({"torch": " "}, "torch is empty: give a version, as torch=... does, or leave it out."),
        ({"torch": "3"}, "torch 3 is in no matrix: give one of 2.11.0, 2.10.0, 2.9.0"),
        ({"system": "Debian 12"}, "system Debian 12 is in no matrix: give one of Ubuntu 22.04, Ubuntu 24.04, RHEL 9.6"),
        ({"release": "1.25.0"}, "Release 1.25.0 is in no matrix: give one of 1.24.2-481, 1.24.1-482, 1.24.0-1007"),
        ({"kernel": "generic"}, "kernel generic is no version: give its numbers, such as 6.8."),
        ({"python": "py312"}, "python py312 is no version: give its numbers, such as 3.12."),
        ({"generation": "gaudi4"}, "generation gaudi4 is in no matrix: give one of gaudi2, gaudi3, gaudi."),
    ],
)
def test_what_nothing_knows_is_refused_in_one_sentence(wishes: dict[str, str], said: str) -> None:
    with pytest.raises(Refusal) as refused:
        need(wishes)
    assert str(refused.value).startswith(said)
