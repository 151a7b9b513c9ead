# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Monitoring on a node: the exporters of machine and cards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._host.address import authority
from .._host.service_state import is_unchanged
from .._jobs.rules import number
from .._kinds import exact
from .._monitoring.texts import arguments_line
from .._refusal import Refusal
from . import node_exporter, shipped
from .given import entries, fact, listed, part, truth
from .model import Answers, Phase, Question, Values, mapping
from .run import Run

NODE_SERVICE = "Run the service with its arguments"
CARDS_SERVICE = "Run the unit with its program"
UNIT = "gaudi-hpu-exporter.service"
#: Intel's exporter answers 429 to the second request within five seconds, which shows that it runs.
ANSWERS = (200, 429)


def _asks(run: Run, _values: Values) -> bool:
    return run.whole and "monitoring" not in run.skipped


def asks_package(values: Values, run: Run) -> bool:
    """Whether it is asked for the node exporter's package, which Debian and Ubuntu have."""
    return run.has("monitoring") and fact(values, "os_family") != "Debian"


def service(values: Values) -> str:
    """The node exporter's unit."""
    name = str(values("node_exporter_service"))
    return name if "." in name else f"{name}.service"


def claim(values: Values) -> dict[str, Any]:
    """What of the host the node exporter takes."""
    config = [values("node_exporter_web_config_file")] if values("node_exporter_web_config") else []
    return {
        "service": "node_exporter",
        "variable": "node_exporter",
        "files": [values("node_exporter_arguments_file"), *config],
        "package": values("node_exporter_package"),
        "take_over": truth(values, "node_exporter_take_over"),
    }


def listens(values: Values) -> dict[str, Any]:
    """Where the node exporter listens."""
    return {
        "address": values("node_exporter_address"),
        "port": values("node_exporter_port"),
        "variable": "node_exporter",
    }


def decide_node(values: Values) -> Mapping[str, Any]:
    """What role node_exporter runs on this host."""
    return {
        "arguments": node_exporter.arguments(values),
        "service": service(values),
        "claim": claim(values),
        "listens": listens(values),
    }


def _claim(values: Values) -> Mapping[str, Any]:
    return {**claim(values), "unit": service(values)}


def _node_listens(values: Values) -> Mapping[str, Any]:
    return {**listens(values), "unit": service(values)}


def _node_port(values: Values) -> Mapping[str, Any]:
    return {"host": values("node_exporter_address"), "port": values("node_exporter_port")}


def _without_certificates(values: Values) -> bool:
    """Exporters with certificates or passwords are not looked at: their roles run."""
    return not values("node_exporter_web_config") and not truth(values, "hpu_exporter_tls") and not certificates(values)


def _pinned(values: Values) -> bool:
    """Whether not any version of the node exporter will do."""
    return bool(set("=<>") & set(str(values("node_exporter_package") or "")))


def _package(values: Values) -> Mapping[str, Any]:
    return {"package": values("node_exporter_package")}


def _node_unchanged(values: Values, answers: Answers) -> bool:
    """The service runs with its arguments, its port answers, and the version is the one that is wanted."""
    return (
        is_unchanged(mapping(answers, "node_exporter"))
        and mapping(answers, "node_exporter_port").get("state") == "started"
        and (not _pinned(values) or mapping(answers, "node_exporter_package").get("installed") is True)
    )


def program(values: Values) -> str:
    """The program that the exporter of the cards uses."""
    if values("hpu_exporter_kind") == "hl_smi":
        return str(values("hpu_exporter_hl_smi"))
    return f"/usr/bin/{values('hpu_exporter_container_engine')}"


def certificates(values: Values) -> list[str]:
    """Files that TLS takes; systemd hands the unit copies of them when it starts."""
    names = ("hpu_exporter_certificate", "hpu_exporter_key", "hpu_exporter_client_authority")
    return [file for file in map(values, names) if file]


def _seen(values: Values) -> Mapping[str, Any]:
    """The files that were looked for: by the role itself, or by the host's plan."""
    own = values("_hpu_exporter_devices")
    return entries(own) if own is not None else entries(part(values("_gaudi_plan"), "found", "hpu_exporter_files"))


def groups(values: Values) -> list[str]:
    """Groups of device files that are not open to all; a group that may not write opens nothing."""
    if values("hpu_exporter_groups") is not None:
        return list(values("hpu_exporter_groups"))
    if values("hpu_exporter_kind") != "hl_smi":
        return []
    files = [entries(each) for each in listed(_seen(values).get("files"))]
    closed = [each for each in files if not each.get("woth") and each.get("wgrp") and each.get("gid") != 0]
    devices = [each for each in closed if str(each.get("path")).startswith("/dev/accel/")]
    return sorted({name for each in devices if (name := exact(each.get("gr_name")))})


def url(values: Values) -> str:
    """The page that the exporter of the cards answers."""
    address = str(values("hpu_exporter_address"))
    page = "healthz" if values("hpu_exporter_kind") == "hl_smi" else "metrics"
    return f"http://{authority(address, values('hpu_exporter_port'))}/{page}"


def cards_listen(values: Values) -> dict[str, Any]:
    """Where the exporter of the cards listens."""
    found: dict[str, Any] = {
        "address": values("hpu_exporter_address"),
        "port": values("hpu_exporter_port"),
        "variable": "hpu_exporter",
    }
    if values("hpu_exporter_kind") == "intel":
        # A container has a control group of its own, and its image may have to be fetched first.
        found["container"] = [program(values), "inspect", "--format", "{{.Id}}", "gaudi-hpu-exporter"]
        found["timeout"] = 300
    return found


def setting_problems(values: Values) -> list[str]:
    """What of the settings cannot work, whatever is on the host, each in one sentence."""
    intel, found = values("hpu_exporter_kind") == "intel", []
    intervals = (values("hpu_exporter_interval"), values("hpu_exporter_details_interval"))
    if any(number(each) < 5 for each in intervals):
        found.append(
            f"hpu_exporter_interval is {intervals[0]} and hpu_exporter_details_interval is {intervals[1]}: give 5 "
            "seconds or more for each, since hl-smi itself takes seconds."
        )
    given = len(certificates(values))
    if given not in (0, 3) or (given and intel):
        found.append(
            "hpu_exporter_certificate, hpu_exporter_key and hpu_exporter_client_authority belong together, for kind "
            f"hl_smi: give all three or none{', or hl_smi as hpu_exporter_kind' if intel else ''}."
        )
    return found


def demand(values: Values, trains: bool) -> None:
    """Refuse settings that the roles would refuse behind the other phases. A program may come with one of these."""
    arguments_line(node_exporter.arguments(values))
    found = setting_problems(values) if trains else []
    if found:
        raise Refusal(found[0])


def problems(values: Values) -> list[str]:
    """What cannot work, each in one sentence."""
    found = setting_problems(values)
    there = [entries(each).get("path") for each in listed(_seen(values).get("files"))]
    if program(values) not in there and not values("ansible_check_mode"):
        engine = values("hpu_exporter_container_engine")
        remedy = (
            f"install {engine}, or name another engine as hpu_exporter_container_engine"
            if values("hpu_exporter_kind") != "hl_smi"
            else "install it with role gaudi3.scale.synapseai, or give its path as hpu_exporter_hl_smi"
        )
        found.append(f"{program(values)} is not on {values('inventory_hostname')}: {remedy}.")
    return found


def decide_cards(values: Values) -> Mapping[str, Any]:
    """What role hpu_exporter runs on this host."""
    return {
        "program": program(values),
        "certificates": certificates(values),
        "groups": groups(values),
        "url": url(values),
        "listens": cards_listen(values),
        "problem": next(iter(problems(values)), ""),
    }


def sources(values: Values) -> list[dict[str, Any]]:
    """The program of the exporter of the cards; none where a container has it."""
    if values("hpu_exporter_kind") != "hl_smi":
        return []
    folder = values("_hpu_exporter_folder")
    return [
        {"path": f"{folder}/{name}", "content": shipped.content_of(source) if source else ""}
        for name, source in (
            ("gaudi_hpu_exporter.py", "roles/hpu_exporter/files/gaudi_hpu_exporter.py"),
            ("gaudi_hpu_page.py", "roles/hpu_exporter/files/gaudi_hpu_page.py"),
            ("_hl_smi/__init__.py", ""),
            # The parser of hl-smi's texts is the one of this collection's modules.
            ("_hl_smi/command.py", "plugins/module_utils/_hl_smi/command.py"),
            ("_hl_smi/hl_smi.py", "plugins/module_utils/_hl_smi/hl_smi.py"),
        )
    ]


def _files(values: Values) -> Mapping[str, Any]:
    return {"paths": [program(values), "/dev/accel/accel*"]}


def _cards_listen(values: Values) -> Mapping[str, Any]:
    return {**cards_listen(values), "unit": UNIT}


def _page(values: Values) -> Mapping[str, Any]:
    return {"url": url(values)}


def _cards_unchanged(values: Values, answers: Answers) -> bool:
    """The exporter runs as it is to be, and answers."""
    return (
        is_unchanged(mapping(answers, "hpu_exporter"))
        and mapping(answers, "hpu_exporter_page").get("status") in ANSWERS
        and not problems(values)
    )


NODE = Phase(
    "node_exporter",
    [
        Question("node_exporter_claim", "node_exporter", module="gaudi_claim", options=_claim),
        Question("node_exporter_listener", "node_exporter", module="listener", options=_node_listens),
    ],
    _asks,
    _node_unchanged,
    True,
    details=[
        Question("node_exporter", "node_exporter", NODE_SERVICE, applies=_without_certificates, tolerated=True),
        Question("node_exporter_port", "node_exporter", "", "port", _node_port, _without_certificates, tolerated=True),
        Question("node_exporter_package", "node_exporter", "", "package", _package, _pinned, tolerated=True),
    ],
)
CARDS = Phase(
    "hpu_exporter",
    [
        Question("hpu_exporter_files", "hpu_exporter", module="files", options=_files),
        Question("hpu_exporter_listener", "hpu_exporter", module="listener", options=_cards_listen),
    ],
    _asks,
    _cards_unchanged,
    details=[
        Question("hpu_exporter", "hpu_exporter", CARDS_SERVICE, applies=_without_certificates, tolerated=True),
        Question("hpu_exporter_page", "hpu_exporter", "", "page", _page, _without_certificates, tolerated=True),
    ],
)
