"""Who listens on a port: on made tables of the kernel, and once on the real ones."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._host import listeners

from ...sockets import Sockets


@pytest.mark.parametrize(
    ("there", "asked", "meets"),
    [
        ("10.0.0.1", "10.0.0.1", True),
        ("10.0.0.2", "10.0.0.1", False),
        ("0.0.0.0", "10.0.0.1", True),
        ("::", "10.0.0.1", True),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("::", "fd00::1", True),
        ("0.0.0.0", "fd00::1", False),
        ("fd00::1", "[fd00::1]", True),
        ("127.0.0.1", "gaudi-1", True),
    ],
)
def test_a_listener_counts_where_a_caller_would_meet_it(tmp_path: Path, there: str, asked: str, meets: bool) -> None:
    sockets = Sockets(tmp_path / "proc")
    sockets.listen(there, 9100, "other", "/system.slice/other.service", 41)
    sockets.listen("10.0.0.1", 9101, "third", "/system.slice/third.service", 42)
    sockets.listen("10.0.0.1", 9100, "caller", "/user.slice", 43, state="01")
    found = listeners.on_port(9100, asked, str(tmp_path / "proc"))
    assert [str(each) for each in found] == (["other (process 41, other.service)"] if meets else [])


@pytest.mark.parametrize(
    ("group", "unit", "own"),
    [
        ("/system.slice/prometheus.service", "prometheus.service", True),
        ("/system.slice/prometheus.service/container", "prometheus.service", True),
        ("/system.slice/node-prometheus.service", "node-prometheus.service", False),
        ("/system.slice/docker-0123456789abcdef.scope", "docker-0123456789abcdef.scope", True),
        ("/machine.slice/libpod-0123456789abcdef.scope/container", "libpod-0123456789abcdef.scope", True),
        ("/docker/0123456789abcdef", "", True),
        ("/user.slice/user-0.slice/session-1.scope", "session-1.scope", False),
    ],
)
def test_a_process_belongs_to_its_unit_or_container(group: str, unit: str, own: bool) -> None:
    found = listeners.Listener("10.0.0.1", 9100, 41, "x", group)
    assert found.unit == unit
    assert found.belongs_to(("prometheus.service", "0123456789abcdef")) is own
    assert not found.belongs_to(("service", ""))


def test_a_socket_whose_process_cannot_be_seen_is_somebody_elses(tmp_path: Path) -> None:
    Sockets(tmp_path / "proc").listen("10.0.0.1", 9100)
    (found,) = listeners.on_port(9100, "10.0.0.1", str(tmp_path / "proc"))
    assert str(found) == "a process that cannot be seen" and not found.belongs_to(("prometheus.service",))


def test_the_groups_of_version_1_are_read_too(tmp_path: Path) -> None:
    sockets = Sockets(tmp_path / "proc")
    sockets.listen("10.0.0.1", 9100, "x", "/", 41)
    (tmp_path / "proc/41/cgroup").write_text("4:memory:/x\n1:name=systemd:/system.slice/prometheus.service\n0::/\n")
    assert [each.unit for each in listeners.on_port(9100, "", str(tmp_path / "proc"))] == ["prometheus.service"]


def test_the_real_tables_name_this_process() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert [each.pid for each in listeners.on_port(port, "127.0.0.1")] == [os.getpid()]
        assert listeners.on_port(port, "127.0.0.2") == []
