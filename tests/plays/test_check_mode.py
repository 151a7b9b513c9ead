"""What a dry run forgives: only what it cannot know."""

from __future__ import annotations

import os
import time

from .cluster import Cluster


def test_a_misspelt_package_is_not_predicted_to_be_installed(cluster: Cluster) -> None:
    """Where apt's lists are fresh the run itself would fetch none, and not find it either."""
    cluster.add("mon", "monitoring", cards=0, system="debian")
    cluster["mon"].path("/var/lib/apt/lists").mkdir(parents=True)
    secrets = str(cluster.folder / "secrets")
    told = cluster.role(
        "prometheus", "--check", group="monitoring", gaudi_secrets_dir=secrets, prometheus_package="promethes"
    )
    assert (told.returncode, told.messages()) == (2, ["No package matching 'promethes' is available"])


def test_a_source_that_the_run_before_has_added_is_read(cluster: Cluster) -> None:
    """It ended before it installed from there: the lists are fresh, and do not have the package."""
    cluster.add("mon", "monitoring", cards=0, system="debian")
    host = cluster["mon"]
    host.path("/var/lib/apt/lists").mkdir(parents=True)
    os.utime(host.path("/var/lib/apt/lists"), (time.time() - 60,) * 2)
    host.write("/etc/apt/sources.list.d/mine.sources", "Types: deb\n")
    secrets = str(cluster.folder / "secrets")
    run = cluster.role(
        "prometheus", "--check", group="monitoring", gaudi_secrets_dir=secrets, prometheus_package="mine"
    )
    assert run.returncode == 0, run.messages()
    assert any("Install the package" in name for _host, name in run.changed())
