# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The units of systemd: one for each replica, and one for the balancer.

A replica's unit is ready when its engine is (``Type=notify``). Its end has three parts: the program takes the replica
out of the balancer, waits for the streams, then ends the engine. systemd tells only that program (``KillMode=mixed``:
all processes of the group at once would lose the running answers) and kills whatever is left, Workers of a dead server
too, which would keep their cards. A server whose Worker died ends with exit code 0, hence ``Restart=always``.
"""

from __future__ import annotations

from dataclasses import dataclass

from .balancer import FOLDER, RUNTIME
from .command import PROGRAMS

USER = "gaudi-serving"
BALANCER = "gaudi3-serving-balancer.service"
PROGRAM = "gaudi_serving_replica.py"
ROOT = "/var/lib/gaudi3-serving"
#: Between the end of a drain and systemd's SIGKILL, in seconds: a Worker that does not leave takes 14 of them.
AFTER_DRAIN = 45
_HARDENED = (
    "NoNewPrivileges=yes",
    "ProtectSystem=strict",
    "ProtectHome=yes",
    "PrivateTmp=yes",
    "ProtectControlGroups=yes",
    "ProtectHostname=yes",
    "ProtectClock=yes",
    "ProtectKernelLogs=yes",
    "ProtectKernelModules=yes",
    "ProtectKernelTunables=yes",
    "LockPersonality=yes",
    "RestrictRealtime=yes",
    "RestrictSUIDSGID=yes",
    "RestrictNamespaces=yes",
    "SystemCallArchitectures=native",
)


def unit_of(replica: int) -> str:
    """The name of a replica's unit."""
    return f"gaudi3-serving-{replica}.service"


@dataclass(frozen=True)
class Replica:
    """What its unit says."""

    number: int
    settings: str
    start_seconds: int
    drain_seconds: int
    python: str = "/usr/bin/python3"
    contained: bool = False
    """Whether the engine is in a container, whose client is root's; the container's user is not."""
    user: str = USER
    programs: str = PROGRAMS
    state: str = ""
    """What it may write."""


def replica_unit(head: str, replica: Replica) -> str:
    """The text of a replica's unit."""
    lines = [
        f"{head}[Unit]",
        f"Description=vLLM, replica {replica.number} (gaudi3.scale)",
        "Wants=network-online.target",
        f"After=network-online.target {BALANCER}",
        "StartLimitIntervalSec=0",
        "",
        "[Service]",
        "Type=notify",
        "NotifyAccess=main",
        f"ExecStart={replica.python} -IS {replica.programs}/{PROGRAM} {replica.settings}",
        # The program itself ends a start that takes longer; this is for a program that hangs.
        f"TimeoutStartSec={replica.start_seconds + 60}",
        f"TimeoutStopSec={replica.drain_seconds + AFTER_DRAIN}",
        "KillMode=mixed",
        "Restart=always",
        "RestartSec=5",
        f"WorkingDirectory={replica.state}",
        f"ReadWritePaths={replica.state}",
        "LimitNOFILE=65536",
        "LimitMEMLOCK=infinity",
        "UMask=0077",
    ]
    if not replica.contained:
        # torch makes code at run time, and its processes meet over the loopback address.
        lines += [f"User={replica.user}", f"Group={replica.user}", "CapabilityBoundingSet=", *_HARDENED]
        lines += ["RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK", "PrivateDevices=yes"]
    return "\n".join([*lines, "", "[Install]", "WantedBy=multi-user.target", ""])


@dataclass(frozen=True)
class Proxy:
    """What the balancer's unit says."""

    program: str = "/usr/sbin/haproxy"
    folder: str = FOLDER
    runtime: str = RUNTIME
    user: str = "haproxy"
    group: str = USER
    """Whose members may tell it of their state."""


def balancer_unit(head: str, proxy: Proxy) -> str:
    """The text of the balancer's unit: an HAProxy of its own, beside the distribution's."""
    lines = [
        f"{head}[Unit]",
        "Description=HAProxy in front of vLLM (gaudi3.scale)",
        "Wants=network-online.target",
        "After=network-online.target",
        "StartLimitIntervalSec=0",
        "",
        "[Service]",
        "Type=notify",
        f"ExecStartPre={proxy.program} -c -q -f {proxy.folder}/haproxy.cfg",
        f"ExecStart={proxy.program} -Ws -f {proxy.folder}/haproxy.cfg -p {proxy.runtime}/haproxy.pid",
        f"ExecReload={proxy.program} -c -q -f {proxy.folder}/haproxy.cfg",
        "ExecReload=/bin/kill -USR2 $MAINPID",
        "KillMode=mixed",
        "Restart=always",
        "RestartSec=2",
        "SuccessExitStatus=143",
        f"User={proxy.user}",
        f"Group={proxy.user}",
        f"SupplementaryGroups={proxy.group}",
        f"RuntimeDirectory={proxy.runtime.rpartition('/')[2]}",
        "RuntimeDirectoryMode=0755",
        "AmbientCapabilities=CAP_NET_BIND_SERVICE",
        "CapabilityBoundingSet=CAP_NET_BIND_SERVICE",
        *_HARDENED,
        "PrivateDevices=yes",
        "MemoryDenyWriteExecute=yes",
        "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX",
        "UMask=0077",
    ]
    return "\n".join([*lines, "", "[Install]", "WantedBy=multi-user.target", ""])


def read_by_balancer(folder: str) -> list[str]:
    """What it reads when it starts, and at a reload."""
    return [f"{folder}/{name}" for name in ("haproxy.cfg", "keys", "server.crt", "server.key", "ca.crt")]
