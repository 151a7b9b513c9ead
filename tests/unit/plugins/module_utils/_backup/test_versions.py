"""Data of another version of a program: read, or refused with the way."""

from __future__ import annotations

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._backup import versions


@pytest.mark.parametrize(
    ("installed", "wanted", "is_older"),
    [
        ("2.41.0", "2.42.0", True), ("2.42.0+ds", "2.42.1", False), ("2.9.0", "2.10.0", True), ("3.0", "2.99", False),
        ("", "2.42.0", False), ("unknown", "2", False), ("9", "", False),
    ],
)  # fmt: skip
def test_an_older_program_is_known(installed: str, wanted: str, is_older: bool) -> None:
    assert versions.older(installed, wanted) is is_older


@pytest.mark.parametrize(
    ("item", "installed", "wanted"),
    [
        # Prometheus, Grafana and Alertmanager take over what an older one has left.
        ("prometheus-data", "3.5.0", "2.42.0"),
        ("grafana-database", "12.1.0", "9.5.2"),
        # slurm.schedmd.com/upgrades: the releases that are compatible with each.
        ("slurm-state", "23.02.7", "21.08.8"),
        ("slurm-state", "24.05.4", "23.02.1"),
        ("slurm-accounting", "24.11.5", "23.02.7"),
        ("slurm-state", "25.11.2", "24.05.1"),
        ("slurm-state", "27.05.0", "22.05.8"),
    ],
)
def test_what_an_older_program_has_left_is_read(item: str, installed: str, wanted: str) -> None:
    assert versions.refusal(item, "program", installed, wanted) == ""


@pytest.mark.parametrize(
    ("item", "program", "installed", "wanted", "said"),
    [
        (
            "prometheus-data", "prometheus", "2.42.0", "3.5.0",
            "the backup of prometheus-data is of prometheus 3.5.0, and this machine has 2.42.0, which may not read it: "
            "install that version or a later one first",
        ),
        (
            "slurm-state", "slurmctld", "24.11.5", "22.05.8",
            "the backup of slurm-state is of slurmctld 22.05.8, and 24.11.5 on this machine reads what 23.02 and later "
            "have left: restore it where Slurm 23.11 is, start that, and upgrade from there",
        ),
        (
            "slurm-accounting", "slurmdbd", "25.11.0", "22.05.11",
            "the backup of slurm-accounting is of slurmdbd 22.05.11, and 25.11.0 on this machine reads what 24.05 and "
            "later have left: restore it where Slurm 23.11 is, start that, and upgrade from there",
        ),
        (
            "slurm-state", "slurmctld", "26.05.5", "24.05.1",
            "the backup of slurm-state is of slurmctld 24.05.1, and 26.05.5 on this machine reads what 24.11 and later "
            "have left: restore it where Slurm 25.11 is, start that, and upgrade from there",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_with_the_way(
    item: str, program: str, installed: str, wanted: str, said: str
) -> None:
    assert versions.refusal(item, program, installed, wanted) == said


@pytest.mark.parametrize(
    ("installed", "wanted", "said"),
    [
        ("MariaDB 11.8.3", "MariaDB 10.11.14", ""),
        ("MariaDB 10.11.14", "MariaDB 10.11.14", ""),
        ("", "MariaDB 10.11.14", ""),
        ("MariaDB 10.11.14", "", ""),
        # What mariadb-dump of 10.11.8 and later writes first, 10.11.6 takes for a command that it does not know.
        (
            "MariaDB 10.11.6", "MariaDB 10.11.14",
            "the backup of slurm-accounting is a dump of MariaDB 10.11.14, and this machine has MariaDB 10.11.6, which "
            "may not read it: install that version or a later one first",
        ),
        (
            "MySQL 8.0.36", "MariaDB 10.11.14",
            "the backup of slurm-accounting is a dump of MariaDB 10.11.14, and this machine has MySQL 8.0.36: restore "
            "it where MariaDB is",
        ),
    ],
)  # fmt: skip
def test_a_dump_of_a_later_server_is_refused_with_the_way(installed: str, wanted: str, said: str) -> None:
    assert versions.server_refusal("slurm-accounting", installed, wanted) == said
