"""What a cluster of Slurm needs of its hosts."""

from __future__ import annotations

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._slurm import conf, site

POLICY = "slurmd:\n  Installed: {}\n  Candidate: {}\n  Version table:\n     22.05.8-4 500\n"


@pytest.mark.parametrize(
    ("family", "said", "version"),
    [
        ("Debian", POLICY.format("(none)", "22.05.8-4+deb12u3"), "22.05.8-4+deb12u3"),
        ("Debian", POLICY.format("22.05.8-4", "24.11.5-1"), "22.05.8-4"),
        ("Debian", POLICY.format("(none)", "(none)"), ""),
        ("Debian", "", ""),
        ("RedHat", "22.05.9\n", "22.05.9"),
        ("RedHat", "", ""),
    ],
)
def test_the_version_is_the_installed_one_or_the_candidate(family: str, said: str, version: str) -> None:
    assert site.version_of(family, said) == version


@pytest.mark.parametrize(
    ("system", "family", "version", "answered", "problem"),
    [
        ("Debian 12", "Debian", "22.05.8-4", True, ""),
        ("Debian 12", "Debian", "", True, ""),  # lists of packages may be old
        (
            "Ubuntu 22.04",
            "Debian",
            "21.08.5-2ubuntu1",
            True,
            "slurmd of Ubuntu 22.04 on a is 21.08.5-2ubuntu1, and 22.05 to 26.05 are known here: name packages of such "
            "a release in slurm_packages.",
        ),
        (
            "RedHat 9.4",
            "RedHat",
            "",
            True,
            "a knows no package slurmd, which the base of RedHat 9.4 does not have: enable EPEL (dnf install "
            "epel-release) or a repository of your own with Slurm 22.05 to 26.05.",
        ),
        ("RedHat 9.4", "RedHat", "", False, ""),
        (
            "SLES 15",
            "Suse",
            "",
            False,
            "a runs SLES 15, whose packages of Slurm are not known here: install Slurm and leave slurm_existing at "
            "true.",
        ),
    ],
)
def test_packages_that_cannot_serve_are_named(
    system: str, family: str, version: str, answered: bool, problem: str
) -> None:
    assert site.package_problem("a", system, family, "slurmd", version, answered) == problem


def test_there_is_one_controller() -> None:
    assert site.controller_problem(["head"]) == ""
    assert site.controller_problem([]).startswith("No host is in the group slurm_controller")
    assert site.controller_problem(["a", "b"]).startswith("The group slurm_controller has a, b: leave one in it")


def test_the_clock_that_is_furthest_off_is_named_with_its_distance() -> None:
    assert site.clock("1700000000:1700000003") == 3
    assert [site.clock(said) for said in ("", "date: invalid", "1:2:3", "nan:1")] == [None] * 4
    assert site.clock_problem("head", {"head": 2.0, "a": 1.0, "b": 240.0}) == ""
    assert site.clock_problem("head", {"head": 0.0, "a": -400.0, "b": 300.0}) == (
        "The clock of a is 400 s behind that of head, and munge takes nothing that is 300 s off: keep the clocks in "
        "step with chrony."
    )
    assert "The clock of b is 301 s ahead of that of head" in site.clock_problem("head", {"head": -1.0, "b": 300.0})
    assert site.clock_problem("", {}) == ""


def test_hosts_with_another_key_than_most_are_named() -> None:
    assert site.keys_problem({"a": "1", "b": "1", "c": ""}) == ""
    assert site.keys_problem({"a": "1", "b": "2", "c": "1"}) == (
        "/etc/munge/munge.key of b is another one than that of a: copy one to all hosts, owned by munge with mode "
        "0400, and restart munge.service."
    )


def test_the_key_is_the_given_one_or_follows_from_the_secret() -> None:
    assert site.munge_key("k" * 32, "secret") == "k" * 32
    made = site.munge_key("", "secret")
    assert len(made) == 128 and made == site.munge_key("", "secret") != site.munge_key("", "other")
    with pytest.raises(Refusal, match="slurm_munge_key has 31 bytes: give 32 or more, or leave it empty"):
        site.munge_key("k" * 31, "")


@pytest.mark.parametrize(
    "password", ["short", "a b c d e f", "long'enough", "long#enough", "long\nenough", 'long"enough']
)
def test_a_password_that_would_be_read_otherwise_is_refused(password: str) -> None:
    for use in (site.statements, lambda text: site.slurmdbd_conf(conf.Cluster("c", "h", "10.0.0.1"), text)):
        with pytest.raises(Refusal, match="slurm_database_password has characters"):
            use(password)


def test_the_database_is_for_slurmdbd_of_this_host_alone() -> None:
    text = site.slurmdbd_conf(conf.Cluster("c", "h", "10.0.0.1"), "correct-horse")
    assert {"StoragePass=correct-horse", "StorageHost=localhost", "DbdAddr=10.0.0.1", "DbdHost=localhost"} <= set(
        text.splitlines()
    )
    assert "PrivateData" not in text
    private = conf.Cluster("c", "h", "10.0.0.1", settings={"PrivateData": "jobs,nodes,Usage"})
    assert "\nPrivateData=jobs,usage\n" in site.slurmdbd_conf(private, "correct-horse"), "nodes are no word of slurmdbd"
    assert "innodb_buffer_pool_size=128M\n" in site.database_settings(0)
    assert "innodb_buffer_pool_size=4096M\n" in site.database_settings(1_000_000)
    assert "bind-address=127.0.0.1\n" in site.database_settings(0)
    assert "loose_innodb_snapshot_isolation=OFF\n" in site.database_settings(0)
    assert "TO 'slurm'@'localhost';" in site.statements("correct-horse")


def test_why_munge_makes_no_credential() -> None:
    missing = "[Errno 2] No such file or directory: b'munge'"
    assert site.munge_problem("a", missing, has_key=False).startswith("munge is not installed on a: install it")
    assert site.munge_problem("a", "", has_key=False) == (
        "There is no /etc/munge/munge.key on a: copy that of the other hosts there, owned by munge with mode 0400, and "
        "start munge.service."
    )
    assert site.munge_problem("a", "", has_key=True).startswith("munge on a makes no credential: start munge.service")


def test_a_node_that_is_ahead_of_the_controller_is_named() -> None:
    versions = {"head": "22.05.8-4", "a": "23.11.4-1", "b": "22.05.8-4", "c": ""}
    assert site.releases_problem("head", versions) == (
        "Slurm is 22.05 on head and 23.11 on a, and slurmctld serves no slurmd of a newer release: bring head to 23.11 "
        "first."
    )
    assert site.releases_problem("head", {**versions, "a": "22.05.8-4"}) == ""
    assert site.releases_problem("head", {**versions, "head": "24.05.0"}) == "", "older nodes are served"
    assert site.releases_problem("head", {**versions, "head": ""}) == ""
