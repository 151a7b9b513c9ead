# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The units that send a node's journal, and those that collect and keep what nodes send.

They run systemd's own programs under names of their own. So a site that sends its journals elsewhere, by the units and
the configuration of the package, goes on with that.
"""

from __future__ import annotations

from collections.abc import Sequence

from .questions import DIRECTORY

HEADER = "# Written by role gaudi3.scale.logs; its next run overwrites what is changed here.\n"
HEADER_OF_A_SCRIPT = f"#!/bin/sh\n{HEADER}"
COLLECTOR = "gaudi-logs-collector.service"
RETENTION = "gaudi-logs-retention"
#: Where the host has its certificate, its key and the cluster's authority.
CERTIFICATES = "/etc/gaudi3-scale/logs"
FILES = {"certificate": "node.crt", "key": "node.key", "authority": "ca.crt"}
#: The configuration of our collector alone: the unit sees it in the place of systemd's.
CONFIGURATION = f"{CERTIFICATES}/journal-remote.conf"
USER = "systemd-journal-remote"
#: Bytes of one file; newer versions of systemd keep to it, others to 128 MB.
OF_A_FILE = 128 * 1024 * 1024
#: How programs find their credentials, which systemd hands over as copies that only the unit's user reads.
_HANDED = "${CREDENTIALS_DIRECTORY}"
_TLS = " ".join(
    f"--{option}={_HANDED}/{name}" for option, name in (("key", "key"), ("cert", "certificate"), ("trust", "authority"))
)
_CREDENTIALS = [f"LoadCredential={name}:{CERTIFICATES}/{file}" for name, file in FILES.items()]
_CLOSED = [
    "LockPersonality=yes", "NoNewPrivileges=yes", "PrivateTmp=yes", "ProtectControlGroups=yes", "ProtectHome=yes",
    "ProtectKernelModules=yes", "ProtectKernelTunables=yes", "ProtectSystem=strict", "RestrictNamespaces=yes",
    "RestrictRealtime=yes", "SystemCallArchitectures=native",
]  # fmt: skip


def _text(*lines: str) -> str:
    return HEADER + "\n".join(lines) + "\n"


def _service(about: str, run: Sequence[str], network: bool = True) -> str:
    """A service that is started again for ever, whatever becomes of what it needs."""
    after = ["Wants=network-online.target", "After=network-online.target"] if network else []
    return _text(
        "[Unit]", f"Description={about}", *after, "StartLimitIntervalSec=0", "",
        "[Service]", *_CLOSED, *run, "Restart=always", "RestartSec=10", "LimitNOFILE=524288", "",
        "[Install]", "WantedBy=multi-user.target",
    )  # fmt: skip


def collector(folder: str, address: str, port: int) -> str:
    """Takes journals from those who have a certificate of the cluster's authority, a file for each name."""
    run = [
        f"ExecStart=/usr/bin/python3 -s {folder}/gaudi_logs_collector.py --address {address} --port {port}",
        # The writer complains of what older versions do not know of its configuration, with each batch.
        "Environment=PYTHONDONTWRITEBYTECODE=1 SYSTEMD_LOG_LEVEL=err",
        f"User={USER}",
        *_CREDENTIALS,
        f"LogsDirectory={DIRECTORY.rpartition('/')[2]}",
        "LogsDirectoryMode=0750",
        f"BindReadOnlyPaths={CONFIGURATION}:/etc/systemd/journal-remote.conf",
        "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6",
    ]
    return _service("Collect the journals of the cluster's nodes", run)


def configuration(most: int) -> str:
    """What newer versions of systemd keep by themselves, which would be 4 GB otherwise; others know none of it."""
    return _text("[Remote]", f"MaxUse={most}", f"MaxFileSize={OF_A_FILE}")


def retention(folder: str, seconds: int, most: int) -> str:
    """Deletes what is too old or too much."""
    command = f"/usr/bin/python3 -s {folder}/gaudi_logs_retention.py --seconds {seconds} --bytes {most}"
    return _text(
        "[Unit]", "Description=Delete old journals of the cluster's nodes", "",
        "[Service]", "Type=oneshot", f"ExecStart={command}", f"User={USER}", *_CLOSED,
        f"ReadWritePaths=-{DIRECTORY}", "Environment=PYTHONDONTWRITEBYTECODE=1", "PrivateNetwork=yes",
    )  # fmt: skip


def retention_timer() -> str:
    """Every quarter of an hour, and soon after a boot."""
    return _text(
        "[Unit]", "Description=Delete old journals of the cluster's nodes, again and again", "",
        "[Timer]", "OnActiveSec=1min", "OnUnitActiveSec=15min", "AccuracySec=1min", "",
        "[Install]", "WantedBy=timers.target",
    )  # fmt: skip


def upload(url: str) -> str:
    """Sends the journal from where the collector has acknowledged it.

    What the node wrote before it was first set up is not sent: that may be months. The collector is asked again every
    ten seconds where it does not answer; the journal itself is what waits.
    """
    state = "/var/lib/gaudi-logs-upload/state"
    first = (
        f"[ -s {state} ] || {{ journalctl --quiet --lines=1 --output=export --output-fields=MESSAGE | "
        f"sed -n s/^__CURSOR=/LAST_CURSOR=/p > {state}.part && mv {state}.part {state}; }}"
    )
    run = [
        f"ExecStartPre=/bin/sh -c '{first}'",
        f"ExecStart=/lib/systemd/systemd-journal-upload --url={url} --save-state={state} {_TLS}",
        "DynamicUser=yes",
        "SupplementaryGroups=systemd-journal",
        "StateDirectory=gaudi-logs-upload",
        *_CREDENTIALS,
        "CapabilityBoundingSet=",
        "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6",
        # Jobs go first.
        "Nice=10",
    ]
    return _service("Send this node's journal to the cluster's collector", run)


def vendor(folder: str, tools: str, jobs: str) -> str:
    """Puts the files of the vendor's libraries into the journal. It may read folders of all users, and nothing else."""
    run = [
        f'ExecStart=/usr/bin/python3 -s {folder}/gaudi_logs_vendor.py --tools "{tools}" --jobs "{jobs}" '
        "--state /var/lib/gaudi-logs-vendor/state.json",
        "StateDirectory=gaudi-logs-vendor",
        "StateDirectoryMode=0700",
        # Where a site has the jobs' folders.
        "ProtectHome=read-only",
        "Environment=PYTHONDONTWRITEBYTECODE=1",
        "CapabilityBoundingSet=CAP_DAC_READ_SEARCH",
        "PrivateNetwork=yes",
        "RestrictAddressFamilies=AF_UNIX",
        # The program paces itself, and what it has not read yet stays in the files.
        "LogRateLimitIntervalSec=0",
        "Nice=10",
    ]
    return _service("Put what Gaudi's libraries log into the journal", run, network=False)


def kept_journal(size: str) -> str:
    """A journal that outlives a boot, as what happened before a crash is what is looked for."""
    return _text("[Journal]", "Storage=persistent", *([f"SystemMaxUse={size}"] if size else []))
