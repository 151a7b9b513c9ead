# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The node exporter's arguments, as the version on a host knows them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .._host.address import authority
from .._host.packages import split_name
from .._kinds import exact
from .._refusal import Refusal
from .given import fact, listed, part
from .model import Answers, Question, Values, mapping

#: What a distribution would install: for a host that does not have the package yet. One that is not listed has a newer.
PACKAGED: Mapping[str, Sequence[int]] = {
    "Debian 11": (1, 1),
    "Debian 12": (1, 5),
    "Debian 13": (1, 9),
    "Ubuntu 22.04": (1, 3),
    "Ubuntu 24.04": (1, 7),
}
NEWER = (2, 0)
#: Its package in Debian and Ubuntu; what another one brings is not known.
PACKAGE = "prometheus-node-exporter"
#: The first version whose collector ethtool has a filter.
FILTER = (1, 3)


def _installed(values: Values) -> str:
    """Version of the package on the host; empty where that was not asked, or none is there."""
    return _upstream(part(values("_node_exporter_installed"), "version"))


def _upstream(said: object) -> str:
    """The exporter's version in that of a package; empty where it has none."""
    found = re.match(r"(?:[0-9]+:)?([0-9]+(?:[.][0-9]+)+)", exact(said, 200) or "")
    return found[1] if found else ""


def _wanted(values: Values) -> str:
    """Version that the package's name has behind it; empty where it has none."""
    return _upstream(split_name(str(values("node_exporter_package") or ""))[1])


def _numbers(version: str) -> Sequence[int]:
    return tuple(int(number) for number in version.split("."))


def version(values: Values) -> Sequence[int]:
    """Version of the node exporter: the one that is wanted, there or packaged.

    Arguments came and went: --no-collector.cpu.guest and the ethtool collector's filter with 1.3,
    diskstats.device-exclude with 1.4, web.config.file (before: web.config) with 1.5.
    """
    known = _wanted(values) or _installed(values)
    return _numbers(known) if known else packaged(values)


def packaged(values: Values) -> Sequence[int]:
    """The version that the distribution would install."""
    name, release = fact(values, "distribution"), fact(values, "distribution_version")
    # Debian's facts have the point release (11.11), which changes no package's version.
    return PACKAGED.get(f"{name} {release.partition('.')[0] if name == 'Debian' else release}", NEWER)


def _without_filter(interfaces: Any, here: Sequence[int]) -> str:
    return (
        f'node_exporter_ethtool_interfaces is "{interfaces}", and node_exporter {".".join(map(str, here))} has no such '
        "filter: leave it empty, or install 1.3 or newer."
    )


def _asks_version(values: Values) -> bool:
    """Whether the distribution's version has no filter that is wanted, so that it counts which one is there."""
    return bool(values("node_exporter_ethtool_interfaces")) and tuple(packaged(values)) < FILTER


def _package(values: Values) -> Mapping[str, Any]:
    return {"package": str(values("node_exporter_package")), "candidate": True}


VERSION = Question(
    "node_exporter_version", "node_exporter", "", "package", _package, applies=_asks_version, tolerated=True
)


def version_problem(values: Values, answers: Answers) -> str:
    """Why the version that is there, or would be installed, does not take the arguments; empty where it may."""
    if not _asks_version(values):
        return ""
    package, given, wanted = str(values("node_exporter_package")).partition("=")
    found = mapping(answers, VERSION.name)
    said = _upstream(wanted if given else found.get("version") or found.get("candidate"))
    here = tuple(_numbers(said) if said else packaged(values) if package == PACKAGE and not given else NEWER)
    return _without_filter(values("node_exporter_ethtool_interfaces"), here) if here < FILTER else ""


def arguments(values: Values) -> list[str]:
    """The arguments; ``Refusal`` of a filter that the installed version does not have."""
    address, here = str(values("node_exporter_address")), tuple(version(values))
    ethtool, interfaces = values("node_exporter_ethtool_interfaces"), values("node_exporter_ignored_interfaces")
    # The preflight asks on its own which version is there.
    if ethtool and values("_node_exporter_installed") is not None and here < FILTER:
        raise Refusal(_without_filter(ethtool, here))
    of_disks = "device-exclude" if here >= (1, 4) else "ignored-devices"
    of_collectors = {
        "cpu": "--no-collector.cpu.guest" if here >= (1, 3) else "",
        "netdev": f"--collector.netdev.device-exclude={interfaces}",
        "netclass": f"--collector.netclass.ignored-devices={interfaces}",
        "diskstats": f"--collector.diskstats.{of_disks}={values('node_exporter_ignored_disks')}",
        "systemd": f"--collector.systemd.unit-include={values('node_exporter_units')}",
        "textfile": f"--collector.textfile.directory={values('node_exporter_textfile_directory')}",
    }
    chosen = [str(each) for each in listed(values("node_exporter_collectors"))]
    found = [
        f"--web.listen-address={authority(address, values('node_exporter_port'))}",
        "--web.disable-exporter-metrics",
        "--collector.disable-defaults",
        *(f"--collector.{name}" for name in chosen),
        *(word for name, word in of_collectors.items() if name in chosen and word),
    ]
    if ethtool:
        found += ["--collector.ethtool", f"--collector.ethtool.device-include={ethtool}"]
    if values("node_exporter_web_config"):
        option = "web.config.file" if here >= (1, 5) else "web.config"
        found.append(f"--{option}={values('node_exporter_web_config_file')}")
    return [*found, *map(str, listed(values("node_exporter_extra_arguments")))]
