# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Logs of all nodes in one place: what role logs runs on a host that collects them, and on one that sends them."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Any

from .._host.address import authority, cluster_address, single_ip
from .._logs import units
from .._logs.questions import UPLOAD, VENDOR, seconds
from .._refusal import Refusal
from . import shipped
from .given import fact, group, host, size_in_bytes
from .model import Values

FOLDER = "/usr/local/lib/gaudi-logs"
#: Where people find the program that reads.
COMMAND = "/usr/local/bin/gaudi-logs"
JOURNAL = "/etc/systemd/journald.conf.d/gaudi3-scale-logs.conf"
#: Where the vendor's tools log.
TOOLS = "/var/log/habana_logs"
#: By program, what of the collection it imports; a test follows the imports.
PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "gaudi_logs": (
        "_kinds.py", "_logs/__init__.py", "_logs/entries.py", "_logs/questions.py", "_printable.py", "_refusal.py",
    ),
    "gaudi_logs_collector": (
        "_kinds.py", "_logs/__init__.py", "_logs/entries.py", "_logs/questions.py", "_logs/receiving.py",
        "_printable.py", "_refusal.py",
    ),
    "gaudi_logs_retention": (
        "_kinds.py", "_logs/__init__.py", "_logs/entries.py", "_logs/questions.py", "_logs/retention.py",
        "_printable.py", "_refusal.py",
    ),
    "gaudi_logs_vendor": ("_files.py", "_logs/__init__.py", "_logs/following.py"),
}  # fmt: skip
#: A certificate's name has no more characters.
LONGEST_NAME = 64
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PATH = re.compile(r"/[A-Za-z0-9._/-]+")


def collector(values: Values) -> str:
    """The host that collects; empty where there is none."""
    return str(values("logs_collector") or next(iter(group(values, "monitoring")), ""))


def _address(values: Values) -> str:
    """Where the collector listens, as its own variables or the inventory have it."""
    name = collector(values)
    if name == values("inventory_hostname"):
        return str(values("logs_address"))
    known = host(values, name)
    given = known.get("logs_address") or cluster_address(name, known)
    return str(given)


def _listen(values: Values) -> str:
    """Address and port, as systemd and addresses of the web have them."""
    return authority(_address(values), values("logs_port"))


def _age(text: object) -> int:
    try:
        return seconds(str(text))
    except Refusal:
        return 0


def _port(values: Values) -> int:
    try:
        return int(values("logs_port"))
    except (TypeError, ValueError):
        return 0


def problems(values: Values) -> list[str]:
    """What cannot work, each in one sentence."""
    name, nodes = str(values("inventory_hostname")), group(values, "gaudi")
    where = collector(values)
    if not where:
        return ["No host is in the group monitoring, where the nodes' logs are collected: put one into it."]
    if where not in group(values, "all"):
        return [f"logs_collector is {where}, which is no host of the inventory: name one that is."]
    size, least = size_in_bytes(values("logs_retention_size")) or 0, units.OF_A_FILE * len(nodes)
    address = _address(values)
    checks = {
        f"{name} runs {fact(values, 'distribution')}, whose package of systemd-journal-remote is not known: name it in "
        "logs_package.": fact(values, "os_family") not in ("Debian", "RedHat")
        and values("logs_package") == "systemd-journal-remote",
        f"logs_port is {values('logs_port')}: give a port from 1 to 65535.": not 0 < _port(values) < 65536,
        f'logs_address of {where} is "{address}": give its IP address on the cluster network.': not _serves(address),
        f'logs_retention_time is "{values("logs_retention_time")}": write a number and one of h and d, such as 30d.': (
            _age(values("logs_retention_time")) < 3600
        ),
        f'logs_retention_size is "{values("logs_retention_size")}": write a number and one of M, G and T, such as '
        "20G.": not size,
        f"logs_retention_size is {values('logs_retention_size')}, and {len(nodes)} nodes have {least // 1024**2} MB of "
        f"files that are still written: give {least * 2 // 1024**2}M or more.": 0 < size < 2 * least,
        f'logs_node_size is "{values("logs_node_size")}": write a number and one of M, G and T, such as 4G, or leave '
        "it empty.": bool(values("logs_node_size")) and not size_in_bytes(values("logs_node_size")),
        f'logs_jobs_dir is "{values("logs_jobs_dir")}": give a path of letters, digits, dots, hyphens, underscores '
        "and slashes.": not _PATH.fullmatch(str(values("logs_jobs_dir"))),
        f"The name {name} cannot be that of a certificate: name the host in the inventory with at most {LONGEST_NAME} "
        "letters, digits, dots, hyphens and underscores.": len(name) > LONGEST_NAME or not _NAME.fullmatch(name),
    }
    return [sentence for sentence, wrong in checks.items() if wrong]


def _serves(address: str) -> bool:
    """Whether a collector can listen there, and be meant by it on every node."""
    return single_ip(address) is not None and not ipaddress.ip_address(str(single_ip(address))).is_loopback


def _program(name: str) -> list[dict[str, Any]]:
    """A program with what it imports."""
    files = {
        f"{name}.py": shipped.content_of(f"roles/logs/files/{name}.py"),
        "engine/__init__.py": "",
        **{f"engine/{each}": shipped.content_of(f"plugins/module_utils/{each}") for each in PROGRAMS[name]},
    }
    return [{"path": f"{FOLDER}/{path}", "content": content} for path, content in files.items()]


def _unit(name: str, content: str) -> dict[str, Any]:
    return {"path": f"/etc/systemd/system/{name}", "content": content}


def _collects(values: Values) -> dict[str, Any]:
    """The files of a host that collects, for the service and for the timer that deletes."""
    size, age = size_in_bytes(values("logs_retention_size")) or 0, _age(values("logs_retention_time"))
    command = f'{units.HEADER_OF_A_SCRIPT}exec /usr/bin/python3 -s {FOLDER}/gaudi_logs.py "$@"\n'
    reader = [{**each, "restart": False} for each in _program("gaudi_logs")]
    reader.append({"path": COMMAND, "content": command, "mode": "0755", "restart": False})
    deleted = [{**each, "restart": False} for each in _program("gaudi_logs_retention")]
    deleted.append({**_unit(f"{units.RETENTION}.service", units.retention(FOLDER, age, size)), "restart": False})
    return {
        "collector": [
            {"path": units.CONFIGURATION, "content": units.configuration(size)},
            _unit(units.COLLECTOR, units.collector(FOLDER, _address(values), _port(values))),
            *_program("gaudi_logs_collector"),
            *reader,
        ],
        "retention": [_unit(f"{units.RETENTION}.timer", units.retention_timer()), *deleted],
    }


def _sends(values: Values) -> dict[str, Any]:
    """The files of a host that sends, for each of its services."""
    jobs = str(values("logs_jobs_dir"))
    return {
        "journal": [{"path": JOURNAL, "content": units.kept_journal(str(values("logs_node_size") or ""))}],
        "upload": [_unit(UPLOAD, units.upload(f"https://{_listen(values)}"))],
        "vendor": [_unit(VENDOR, units.vendor(FOLDER, TOOLS, jobs)), *_program("gaudi_logs_vendor")],
    }


def decide(values: Values) -> Mapping[str, Any]:
    """What role logs runs on this host."""
    # The collector's address is in variables of another host.
    unsafe = values("gaudi_settings_problem")
    if unsafe:
        raise Refusal(unsafe)
    name = str(values("inventory_hostname"))
    found = problems(values)
    if found:
        return {"problem": found[0], "collects": False, "sends": False}
    return {
        "problem": "",
        "collects": name == collector(values),
        "sends": name in group(values, "gaudi"),
        "address": _address(values),
        "names": [name, str(values("logs_address"))],
        "secret_files": [f"{units.CERTIFICATES}/{file}" for file in units.FILES.values()],
        "files": {**_collects(values), **_sends(values)},
    }
