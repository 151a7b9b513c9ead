"""Releases, their order, and which operating system each is for."""

from __future__ import annotations

import pytest

from ansible_collections.gaudi3.scale.plugins.filter import synapseai_release as synapseai_filter
from ansible_collections.gaudi3.scale.plugins.module_utils.support_matrix import (
    known_releases,
    release_caution,
    release_problem,
    support,
)
from ansible_collections.gaudi3.scale.plugins.module_utils.versions import Release, version_of


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


def test_the_known_releases_are_in_order() -> None:
    assert known_releases()[0] == "1.16.0-526"
    assert known_releases()[-4:] == ["1.23.0-695", "1.24.0-1007", "1.24.1-482", "1.24.2-481"]


@pytest.mark.parametrize(
    ("release", "system", "cell"),
    [
        ("1.23.0-695", "Ubuntu 22.04", "supported"),
        ("1.23.0-695", "RedHat 9.6", "supported"),
        ("1.18.0-524", "RedHat 9.6", "unsupported"),
        ("1.17.1-40", "Ubuntu 24.04", "unsupported"),
        ("1.24.0-1007", "Ubuntu 24.04", "unconfirmed"),
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


def test_an_unsupported_system_can_be_accepted_but_an_unknown_release_cannot() -> None:
    assert release_problem("1.23.0-695", "Debian 12", accept_unsupported=True) == ""
    problem = release_problem("1.23.0-1", "Debian 12", accept_unsupported=True)
    assert problem.startswith(
        "SynapseAI release '1.23.0-1' is not known; synapseai_release must be one of: 1.16.0-526, "
    )


def test_an_unconfirmed_pair_is_cautioned_of() -> None:
    assert release_problem("1.24.0-1007", "Ubuntu 22.04") == ""
    assert release_caution("1.24.0-1007", "Ubuntu 22.04") == (
        "SynapseAI 1.24.0-1007 on Ubuntu 22.04 is unconfirmed: no support matrix page of the vendor's was found for it."
    )
    assert release_caution("1.23.0-695", "Ubuntu 22.04") == ""


def test_the_filter_warns_and_lets_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    warnings: list[str] = []

    class Display:
        def warning(self, message: str) -> None:
            warnings.append(message)

    monkeypatch.setattr(synapseai_filter, "Display", Display)
    judge = synapseai_filter.FilterModule().filters()["synapseai_release"]
    assert judge("1.24.0-1007", "Ubuntu", "24.04") == ""
    assert len(warnings) == 1
    assert "unconfirmed" in warnings[0]
    assert judge("1.23.0-695", "Ubuntu", "24.04") == ""
    assert judge("1.23.0-695", "Debian", "12.5").startswith("SynapseAI 1.23.0-695 is not supported on Debian 12.5")
    assert len(warnings) == 1
