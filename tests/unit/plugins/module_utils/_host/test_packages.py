"""Packages of the distribution: what Ansible's modules are asked, and what a dry run cannot know."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._host.packages import (
    Wanted,
    is_new,
    query,
    version_of,
)

UNKNOWN = "No package matching 'prometheus' is available"


def found(*files: tuple[str, float, float]) -> dict[str, Any]:
    return {"files": [{"path": path, "mtime": mtime, "ctime": ctime} for path, mtime, ctime in files]}


def test_apt_reads_its_sources_where_they_are_old_and_starts_nothing() -> None:
    apt = {"update_cache": True, "cache_valid_time": 60, "install_recommends": False}
    wanted = Wanted(["a", "b=1"], 60)
    assert wanted.apt() == apt
    assert Wanted(["a", "b=1"], 60, start=False).apt() == {**apt, "policy_rc_d": 101}
    assert Wanted(["a"], 60, new_source=True).apt()["cache_valid_time"] == 0
    assert (wanted.lists()["age"], Wanted(["a"], 0).lists()["age"]) == ("-60s", "-1s")


@pytest.mark.parametrize(
    ("said", "unknown"),
    [
        (UNKNOWN, True),
        ("no available installation candidate for prometheus=2.42", True),
        ("No package matching 'c++' is available", True),
        ("No package matching 'prometheus-alertmanager' is available", False),
        ("No package matching 'other' is available", False),
        ("Failed to lock apt for exclusive operation", False),
    ],
)
def test_a_package_that_apt_does_not_know_is_told_from_another_failure(said: str, unknown: bool) -> None:
    assert Wanted(["prometheus=2.42", "c++"]).unknown(said) is unknown


LISTS, STAMP = ("/var/lib/apt/lists", 50.0, 50.0), ("/var/lib/apt/periodic/update-success-stamp", 60.0, 60.0)
SOURCE = "/etc/apt/sources.list.d/grafana.sources"


@pytest.mark.parametrize(
    ("answer", "new"),
    [
        (found(LISTS, (SOURCE, 55.0, 55.0)), True),
        # One that was put there with the time of another place.
        (found(LISTS, (SOURCE, 5.0, 55.0)), True),
        (found(LISTS, ("/etc/apt/sources.list", 45.0, 45.0), (SOURCE, 55.0, 55.0)), True),
        (found(LISTS, (SOURCE, 45.0, 45.0)), False),
        # Apt's own note counts before the folder.
        (found(LISTS, STAMP, (SOURCE, 55.0, 55.0)), False),
        (found((SOURCE, 55.0, 55.0)), True),
        (found(LISTS), False),
        (found(LISTS, ("/srv/x.sources", 99.0, 99.0)), False),
        ({"files": [{"path": SOURCE, "ctime": "99"}, {"path": ["x"]}, 7]}, False),
        ({"files": "odd"}, False),
        ({}, False),
    ],
)
def test_a_source_is_new_that_was_written_after_apt_read_them(answer: dict[str, Any], new: bool) -> None:
    assert is_new(answer) is new


def test_a_dry_run_without_the_bindings_of_apt_asks_dpkg() -> None:
    said = "python3-apt must be installed to use check mode. If run normally this module can auto-install it, see"
    assert Wanted(["a"]).unbound(said) and not Wanted(["a"]).unbound(UNKNOWN)
    asked = ["dpkg-query", "--show", "--showformat", "${Package} ${Version} ${db:Status-Status}\n", "a", "b"]
    assert Wanted(["a=1.*", "b"]).installed() == asked


@pytest.mark.parametrize(
    ("names", "missing"),
    [
        (["a"], False),
        (["a", "b"], False),
        (["a", "c"], True),
        (["gone"], True),
        (["a=1.5*"], False),
        (["a=1.5.0-1"], False),
        (["a=1.6*"], True),
        (["a>=1.0"], True),
    ],
)
def test_what_dpkg_lists_is_there(names: list[str], missing: bool) -> None:
    listed = "a 1.5.0-1 installed\nb 2 installed\ngone 1 config-files\nodd\n"
    assert Wanted(names).missing(listed) is missing
    assert Wanted(names).missing(None) is True


@pytest.mark.parametrize(("name", "bare"), [("a", "a"), ("a=1.5.0-1~bpo11+1", "a"), ("a >= 2", "a"), ("c++", "c++")])
def test_a_name_may_have_a_version_behind_it(name: str, bare: str) -> None:
    assert Wanted([name, "other=1"]).first == bare


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
    assert (query("Debian", "a=1.5*") or [])[-1] == "a"


@pytest.mark.parametrize(
    ("name", "version", "met"),
    [
        ("a", "1.1", True),
        ("a", "", False),
        ("a=1.5*", "1.5.0-1", True),
        ("a=1.5*", "1.1.2", False),
        ("a=1.5*", "", False),
    ],
)
def test_one_that_is_installed_in_another_version_is_not_the_one_that_is_wanted(
    name: str, version: str, met: bool
) -> None:
    assert Wanted([name, "b=9"]).met_by(version) is met
