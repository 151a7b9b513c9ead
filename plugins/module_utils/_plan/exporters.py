# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Monitoring on a node: the exporters of machine and cards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean

from .._host.service_state import is_unchanged
from .model import Answers, Phase, Question, Values, mapping
from .run import Run

NODE_SERVICE = "Run the service with its arguments"
CARDS_SERVICE = "Run the unit with its program"
UNIT = "gaudi-hpu-exporter.service"
#: Intel's exporter answers 429 to the second request within five seconds, which shows that it runs.
ANSWERS = (200, 429)


def _asks(run: Run, _values: Values) -> bool:
    return run.whole and "monitoring" not in run.skipped


def _claim(values: Values) -> Mapping[str, Any]:
    return {**values("_node_exporter_claim"), "unit": values("_node_exporter_service")}


def _node_listens(values: Values) -> Mapping[str, Any]:
    return {**values("_node_exporter_listens"), "unit": values("_node_exporter_service")}


def _node_port(values: Values) -> Mapping[str, Any]:
    return {"host": values("node_exporter_address"), "port": values("node_exporter_port")}


def _without_certificates(values: Values) -> bool:
    """Exporters with certificates or passwords are not looked at: their roles run."""
    return (
        not values("node_exporter_web_config")
        and not boolean(values("hpu_exporter_tls"), strict=False)
        and not values("_hpu_exporter_tls")
    )


def _node_unchanged(_values: Values, answers: Answers) -> bool:
    """The service runs with its arguments, and its port answers."""
    return is_unchanged(mapping(answers, "node_exporter")) and mapping(answers, "node_exporter_port").get("state") == (
        "started"
    )


def _files(values: Values) -> Mapping[str, Any]:
    return {"paths": [values("_hpu_exporter_program"), "/dev/accel/accel*"]}


def _cards_listen(values: Values) -> Mapping[str, Any]:
    return {**values("_hpu_exporter_listens"), "unit": UNIT}


def _page(values: Values) -> Mapping[str, Any]:
    return {"url": values("_hpu_exporter_url")}


def _cards_unchanged(values: Values, answers: Answers) -> bool:
    """The exporter runs as it is to be, and answers."""
    return (
        is_unchanged(mapping(answers, "hpu_exporter"))
        and mapping(answers, "hpu_exporter_page").get("status") in ANSWERS
        and not values("_hpu_exporter_problems")
    )


NODE = Phase(
    "node_exporter",
    [
        Question("node_exporter_claim", "node_exporter", module="gaudi_claim", options=_claim),
        Question("node_exporter_listener", "node_exporter", module="listener", options=_node_listens),
    ],
    _asks,
    _node_unchanged,
    details=[
        Question("node_exporter", "node_exporter", NODE_SERVICE, applies=_without_certificates, tolerated=True),
        Question("node_exporter_port", "node_exporter", "", "port", _node_port, _without_certificates, tolerated=True),
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
