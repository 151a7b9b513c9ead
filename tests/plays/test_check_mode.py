"""What a dry run forgives: only what it cannot know."""

from __future__ import annotations

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
