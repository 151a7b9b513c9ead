"""Releases, their order, and which operating system each is for."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
import yaml

from ansible_collections.gaudi3.scale.plugins.module_utils._release.compat import FORBIDDEN, Matrix
from ansible_collections.gaudi3.scale.plugins.module_utils._release.matrix import GENERATIONS
from ansible_collections.gaudi3.scale.plugins.module_utils._release.support_matrix import (
    TRAINER_TORCH,
    known_releases,
    release_cautions,
    release_problem,
    support,
    torch_version,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._release.versions import Release, version_of

ROOT = Path(__file__).resolve().parents[5]
#: Versions of the wheel habana-pyhlml on the Python package index, 2026-11-22: its build is that of the release.
PUBLISHED = """
    1.24.2.481 1.24.1.482 1.24.0.1007 1.23.0.695 1.22.2.32 1.22.1.6 1.22.0.740 1.21.5.6 1.21.4.3 1.21.3.57 1.21.2.76
    1.21.1.16 1.21.0.555 1.20.1.97 1.20.0.543 1.19.2.32 1.19.1.26 1.19.0.561 1.18.0.524 1.17.1.40 1.17.0.495 1.16.2.2
    1.16.1.7 1.16.0.526 1.15.3.5 1.15.2.12 1.15.1.15 1.15.0.479 1.14.0.493
"""


def test_a_release_is_read_and_written_the_same() -> None:
    release = Release.parse("1.24.0-1007")
    assert (release.version, release.build, str(release)) == ("1.24.0", 1007, "1.24.0-1007")


def test_the_build_does_not_order_different_versions() -> None:
    # 1.24.1-482 came after 1.24.0-1007.
    assert Release.parse("1.24.1-482") > Release.parse("1.24.0-1007") > Release.parse("1.9.9-9999")
    assert Release.parse("1.23.0-700") > Release.parse("1.23.0-695")


@pytest.mark.parametrize("text", ["1.23.0", "1.23-695", "v1.23.0-695", "1.23.0.695", "latest", ""])
def test_what_is_no_release_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(ValueError, match="is not a SynapseAI release") as caught:
        Release.parse(text)
    assert str(caught.value) == (
        f"'{text}' is not a SynapseAI release: write it as MAJOR.MINOR.PATCH-BUILD, for example 1.23.0-695."
    )


@pytest.mark.parametrize(
    ("text", "version"), [("1.23.0-2eae87a", "1.23.0"), ("1.23.0-695", "1.23.0"), (None, None), ("n/a", None)]
)
def test_only_the_version_of_a_driver_is_comparable(text: str | None, version: str | None) -> None:
    assert version_of(text) == version


def test_every_published_build_since_gaudi_3_is_known_and_no_other() -> None:
    builds = [re.sub(r"\.(\d+)$", r"-\1", version) for version in PUBLISHED.split()]
    since = [build for build in builds if Release.parse(build) >= Release.parse("1.16.0-0")]
    assert known_releases() == since[::-1]


def test_every_known_release_but_the_newest_has_a_torch() -> None:
    assert {release for release in known_releases() if torch_version(release) is None} == {"1.24.2-481"}
    versions = [
        torch_version(release) for release in ("1.16.2-2", "1.22.1-6", "1.23.0-695", "1.24.0-1007", "1.24.1-482")
    ]
    assert versions == ["2.2.2", "2.7.1", "2.9.0", "2.10.0", "2.11.0"]


def test_the_trainers_torch_is_the_one_of_its_package() -> None:
    assert f'"torch>={TRAINER_TORCH}.0a0,<' in (ROOT / "trainer/pyproject.toml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("release", "system", "cell"),
    [
        ("1.23.0-695", "Ubuntu 22.04", "supported"),
        ("1.23.0-695", "RedHat 9.6", "supported"),
        ("1.18.0-524", "RedHat 9.6", "unsupported"),
        ("1.17.1-40", "Ubuntu 24.04", "unsupported"),
        ("1.24.0-1007", "Ubuntu 24.04", "unconfirmed"),
        # Only the pages of the releases that are named were found: a patch release of theirs is not on them.
        ("1.22.0-740", "RedHat 9.6", "supported"),
        ("1.22.2-32", "RedHat 9.6", "unconfirmed"),
        ("1.21.0-555", "RedHat 9.4", "supported"),
        ("1.21.2-76", "Ubuntu 22.04", "unconfirmed"),
        ("1.24.1-482", "Ubuntu 22.04", "supported"),
        ("1.24.1-482", "RedHat 9.6", "supported"),
        ("1.24.1-482", "RedHat 9.4", "unsupported"),
        ("1.24.2-481", "RedHat 9.4", "unsupported"),
        ("1.24.2-481", "Ubuntu 24.04", "unconfirmed"),
        # Unknown ones: their minor release's systems, and any Ubuntu or RHEL where that is not known too.
        ("1.21.9-1", "Ubuntu 24.04", "unconfirmed"),
        ("1.21.9-1", "RedHat 9.6", "unsupported"),
        ("1.31.0-12", "Ubuntu 26.04", "unconfirmed"),
        ("1.31.0-12", "Debian 13", "unsupported"),
        ("1.23.0-695", "Debian 12", "unsupported"),
        ("1.23.0-695", "Ubuntu 20.04", "unsupported"),
    ],
)
def test_the_matrix_tells_supported_from_unconfirmed(release: str, system: str, cell: str) -> None:
    assert support(release, system) == cell


def test_an_unsupported_system_is_refused_naming_the_supported_ones() -> None:
    assert release_problem("1.23.0-695", "Debian 12") == (
        "SynapseAI 1.23.0-695 is not supported on Debian 12, only on Ubuntu 22.04, Ubuntu 24.04, RedHat 9.4, RedHat "
        "9.6; use one of these, or set synapseai_accept_unsupported_os=true to try it at your own risk."
    )


@pytest.mark.parametrize("release", ["1.23.0-1", "1.24.3-7", "1.31.0-12", "1.15.1-15"])
def test_an_unknown_release_needs_one_variable(release: str) -> None:
    for accepted in (True, False):
        assert release_problem(release, "Ubuntu 24.04", accept_unsupported=accepted) == (
            f"SynapseAI release '{release}' is not known to this collection; take a known one (the newest are "
            "1.24.2-481, 1.24.1-482, 1.24.0-1007, 1.23.0-695), or set synapseai_accept_unknown_release=true, and the "
            "repository's index decides whether it exists."
        )
    assert release_problem(release, "Ubuntu 24.04", accept_unknown=True) == ""
    assert release_cautions(release, "Ubuntu 24.04")[0] == (
        f"SynapseAI {release} is not known to this collection: neither its systems nor its PyTorch are."
    )


def test_a_release_that_is_none_is_refused_whatever_is_accepted() -> None:
    sentence = "'1.31' is not a SynapseAI release: write it as MAJOR.MINOR.PATCH-BUILD, for example 1.23.0-695."
    assert release_problem("1.31", "Ubuntu 24.04", True, True) == sentence


def test_the_default_is_the_newest_release_that_all_systems_and_the_trainer_take() -> None:
    """A newer one that comes to be known as well as it is a reason to change the default."""
    systems = ("Ubuntu 22.04", "Ubuntu 24.04", "RedHat 9.4", "RedHat 9.6")
    good = [
        release
        for release in known_releases()
        if all(support(release, system) == "supported" for system in systems)
        and not release_cautions(release, systems[0])
    ]
    roles = ROOT / "roles"
    default = yaml.safe_load((roles / "synapseai/defaults/main.yml").read_text())["synapseai_release"]
    assert default == good[-1]
    reasons = (roles / "synapseai/README.md").read_text().partition("is the default.**")[2].partition("\n* ")[0]
    newer = known_releases()[known_releases().index(default) + 1 :]
    assert [release for release in newer if release not in reasons] == []


def test_an_unsupported_system_can_be_accepted() -> None:
    assert release_problem("1.23.0-695", "Debian 12", accept_unsupported=True) == ""
    assert "only on Ubuntu 22.04 (unconfirmed)" in release_problem("1.24.3-7", "Debian 12", accept_unknown=True)


def test_an_unconfirmed_pair_is_cautioned_of() -> None:
    assert release_problem("1.24.0-1007", "Ubuntu 22.04") == ""
    assert release_cautions("1.24.0-1007", "Ubuntu 22.04") == [
        "SynapseAI 1.24.0-1007 on Ubuntu 22.04 is unconfirmed: no support matrix page of the vendor's was found for it."
    ]
    assert release_cautions("1.23.0-695", "Ubuntu 22.04") == []


@pytest.mark.parametrize(("release", "torch"), [("1.22.0-740", "2.7.1"), ("1.16.0-526", "2.2.2")])
def test_a_release_whose_torch_the_trainer_does_not_take_is_for_drivers_only(release: str, torch: str) -> None:
    assert release_problem(release, "Ubuntu 22.04") == ""
    assert release_cautions(release, "Ubuntu 22.04") == [
        f"SynapseAI {release} brings PyTorch {torch}, and the trainer needs 2.9 or newer: the node gets drivers and "
        "tools, but the collection's jobs do not run with this release's PyTorch."
    ]


UNLISTED = "which SynapseAI {} does not drive"
REPORTED = (
    "which could not be acquired any more with SynapseAI 1.19.1 (HabanaAI/hccl_demo#44, 2025-01-20, and "
    "HabanaAI/vllm-fork#776, 2025-02-04)"
)


@pytest.mark.parametrize(
    ("release", "generation", "why"),
    [
        ("1.22.0-740", "gaudi", UNLISTED),
        ("1.23.0-695", "gaudi", UNLISTED),
        ("1.31.0-12", "gaudi", UNLISTED),
        ("1.21.5-6", "gaudi", REPORTED),
        ("1.19.1-26", "gaudi", REPORTED),
        ("1.19.0-561", "gaudi", ""),
        ("1.23.0-695", "gaudi2", ""),
        ("1.23.0-695", "gaudi3", ""),
        ("1.23.0-695", None, ""),
    ],
)
def test_first_generation_cards_are_refused_from_the_first_report_on(
    release: str, generation: str | None, why: str
) -> None:
    sentence = (
        f"The cards are first-generation Gaudi, {why.format(release)}: set synapseai_release to one before 1.19.1 "
        "(1.19.0-561 is the newest), or take this host out of the Gaudi nodes' group."
    )
    assert release_problem(release, "Ubuntu 22.04", True, True, generation) == (sentence if why else "")


def test_preflight_and_solver_refuse_the_same_releases_of_a_generation() -> None:
    table = Matrix()
    for release, generation in itertools.product(known_releases(), GENERATIONS):
        refused = release_problem(release, "Ubuntu 22.04", True, True, generation) != ""
        assert refused == (table.generation(release, generation).level == FORBIDDEN), (release, generation)


def test_what_is_unconfirmed_or_not_known_passes_with_a_caution() -> None:
    assert release_problem("1.24.0-1007", "Ubuntu 24.04", False, False, None) == ""
    (caution,) = release_cautions("1.24.0-1007", "Ubuntu 24.04")
    assert "unconfirmed" in caution
    assert release_problem("1.31.0-12", "Ubuntu 24.04", False, True, None) == ""
    assert "is not known" in release_cautions("1.31.0-12", "Ubuntu 24.04")[-1]
    assert release_cautions("1.23.0-695", "Ubuntu 24.04") == []
    said = release_problem("1.23.0-695", "Debian 12.5", False, False, None)
    assert said.startswith("SynapseAI 1.23.0-695 is not supported on Debian 12.5")
