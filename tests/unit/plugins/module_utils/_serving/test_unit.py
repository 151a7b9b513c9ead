"""Units of a node that serves."""

from __future__ import annotations

from ansible_collections.gaudi3.scale.plugins.module_utils._serving import unit


def lines(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def test_a_replica_has_time_to_drain_and_leaves_nothing_behind() -> None:
    found = lines(unit.replica_unit("# head\n", unit.Replica(2, "/etc/x/2.json", 1800, 300, state="/var/lib/x")))
    assert found["Type"] == "notify"
    # A server whose Worker died ends with 0; processes of a dead one are killed with their group.
    assert (found["Restart"], found["KillMode"]) == ("always", "mixed")
    assert int(found["TimeoutStopSec"]) > 300 + 20
    assert int(found["TimeoutStartSec"]) > 1800
    assert (found["User"], found["NoNewPrivileges"], found["ProtectSystem"]) == ("gaudi-serving", "yes", "strict")
    assert found["ReadWritePaths"] == "/var/lib/x"


def test_a_container_has_its_own_user_and_its_client_is_roots() -> None:
    found = lines(unit.replica_unit("", unit.Replica(1, "/etc/x/replica-1.json", 1800, 300, contained=True)))
    assert "User" not in found and "ProtectSystem" not in found
    assert found["KillMode"] == "mixed"


def test_the_balancer_is_nobodys_root_and_reads_only_what_is_right() -> None:
    text = unit.balancer_unit("", unit.Proxy())
    found = lines(text)
    assert (found["User"], found["SupplementaryGroups"]) == ("haproxy", "gaudi-serving")
    assert text.count("ExecReload=/usr/sbin/haproxy -c") == 1, "a configuration with a fault would end it"
    assert "User=root" not in text
