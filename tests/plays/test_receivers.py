"""What Alertmanager's own tool says of a wrong receiver reaches the user, and the receiver's password does not."""

from __future__ import annotations

from .cluster import Cluster
from .test_secrets import LITTLE, monitor, until_it_runs

#: As amtool says it, which quotes a value that has another type than it wants.
AMTOOL = """#!/bin/sh
echo 'Checking '"$2"'  FAILED: yaml: unmarshal errors:' >&2
echo '  line 9: field chanel not found in type config.plain' >&2
echo '  line 11: cannot unmarshal !!str `hunter2 of the vault` into bool' >&2
exit 1
"""


def test_a_wrong_receiver_is_explained_without_its_password(cluster: Cluster) -> None:
    monitor(cluster)
    host = cluster["mon"]
    (host.folder / "bin/amtool").write_text(AMTOOL)
    receiver = {"name": "us", "slack_configs": [{"chanel": "#a", "send_resolved": "hunter2 of the vault"}]}
    cluster.all |= {"gaudi_secrets": LITTLE, "alertmanager_receivers": [receiver]}
    run = cluster.role(until_it_runs(cluster), "-vvv", group="monitoring")
    assert run.returncode != 0
    assert [message for message in run.messages() if message] == [
        "amtool refuses what alertmanager_receivers, alertmanager_route, alertmanager_global and "
        "alertmanager_inhibit_rules make (quoted values are hidden): yaml: unmarshal errors: line 9: field chanel not "
        "found in type config.plain line 11: cannot unmarshal !!str ... into bool."
    ]
    assert "hunter2" not in run.everything and "of the vault" not in run.everything
    assert not host.path("/etc/prometheus/alertmanager.yml").exists()
