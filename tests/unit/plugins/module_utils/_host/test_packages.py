"""Packages of the distribution: what Ansible's modules are asked, and what a dry run cannot know."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._host.packages import Wanted, query, version_of

FRESH, OLD = {"matched": 1}, {"matched": 0}


def test_apt_reads_its_sources_where_they_are_old_and_starts_nothing() -> None:
    apt = {"update_cache": True, "cache_valid_time": 60, "install_recommends": False}
    wanted = Wanted(["a", "b=1"], 60)
    assert wanted.apt() == apt
    assert Wanted(["a", "b=1"], 60, start=False).apt() == {**apt, "policy_rc_d": 101}
    assert Wanted(["a"], 60, new_source=True).apt()["cache_valid_time"] == 0
    assert (wanted.lists()["age"], Wanted(["a"], 0).lists()["age"]) == ("-60s", "-1s")


@pytest.mark.parametrize(
    ("said", "lists", "more", "may"),
    [
        ("No package matching 'prometheus' is available", OLD, {}, True),
        ("No package matching 'prometheus' is available", FRESH, {}, False),
        ("No package matching 'prometheus' is available", {}, {}, False),
        ("No package matching 'prometheus' is available", {}, {"new_source": True}, True),
        ("no available installation candidate for prometheus=2.42", OLD, {}, True),
        ("No package matching 'prometheus-alertmanager' is available", OLD, {}, False),
        ("No package matching 'other' is available", OLD, {}, False),
        ("Failed to lock apt for exclusive operation", OLD, {}, False),
    ],
)
def test_a_package_may_come_where_a_dry_run_has_old_lists(
    said: str, lists: dict[str, Any], more: dict[str, Any], may: bool
) -> None:
    assert Wanted(["prometheus=2.42", "c++"], **more).may_come(said, lists) is may


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("1.7.0-1ubuntu0.3 installed", "1.7.0-1ubuntu0.3"),
        ("2:1.5 installed", "2:1.5"),
        ("1.1.2+ds-2.1+b5 config-files", ""),
        ("1.9 installed\x1b", ""),
        ("", ""),
        (None, ""),
        (["1.9.0 installed"], ""),
    ],
)
def test_a_version_is_of_a_package_that_is_installed(said: Any, version: str) -> None:
    assert version_of(said) == version


def test_the_version_is_asked_in_the_words_of_the_family() -> None:
    assert query("Debian", "a") == ["dpkg-query", "--show", "--showformat", "${Version} ${db:Status-Status}", "a"]
    assert query("RedHat", "a") == ["rpm", "--query", "--queryformat", "%{VERSION} installed", "a"]
    assert query("Suse", "a") is None
