# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""The facts of many machines' management controllers as one page of metrics, for node_exporter's collector textfile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .._kinds import mapping, moment, number, text, truth
from .._printable import printable

#: Each metric with its type and its help.
METRICS = {
    "gaudi_bmc_read_timestamp_seconds": ("gauge", "When the management controller was read, in seconds since 1970."),
    "gaudi_bmc_complete": ("gauge", "1 where it gave every answer that it was asked for."),
    "gaudi_bmc_power_on": ("gauge", "1 where it says that the machine is on."),
    "gaudi_bmc_card_info": ("gauge", "1 for each card that it lists."),
    "gaudi_bmc_card_temperature_celsius": ("gauge", "A temperature of the card."),
    "gaudi_bmc_card_power_watts": ("gauge", "Power that the card draws from a rail."),
    "gaudi_bmc_card_memory_errors_total": ("counter", "Memory errors of the card, as the controller counts them."),
    "gaudi_bmc_card_replaced_rows": ("gauge", "Rows of HBM that were replaced."),
    "gaudi_bmc_card_alert": ("gauge", "1 for each alert of the card that is raised."),
    "gaudi_bmc_card_alerts_unclear": ("gauge", "Alerts of the card whose value has no published meaning."),
}
#: Labels of the errors and rows, by the place of the count in the facts.
ERRORS = {
    ("memory", "single_errors"): ("hbm", "single"),
    ("memory", "double_errors"): ("hbm", "double"),
    ("memory", "fatal_errors"): ("hbm", "fatal"),
    ("memory", "fatal_parity_errors"): ("hbm", "parity"),
    ("sram", "single_errors"): ("sram", "single"),
    ("sram", "double_errors"): ("sram", "double"),
    ("sram", "fatal_errors"): ("sram", "fatal"),
}
ROWS = {"rows_replaced_changeable": "changeable", "rows_replaced_for_good": "for_good"}
#: A series: the metric, its labels, its value.
Series = tuple[str, dict[str, str], float]


def page(machines: Mapping[str, object]) -> str:
    """Prometheus' text format; what is no fact of a controller is left out."""
    series = [each for node in sorted(machines) for each in series_of(node, mapping(machines[node]))]
    lines = []
    for name, (kind, help_text) in METRICS.items():
        of_it = [(labels, value) for metric, labels, value in series if metric == name]
        if of_it:
            lines += [f"# HELP {name} {help_text}", f"# TYPE {name} {kind}"]
        lines += [f"{name}{{{_labels(labels)}}} {value:.15g}" for labels, value in of_it]
    return "".join(f"{line}\n" for line in lines)


def series_of(node: str, facts: Mapping[str, object]) -> Iterator[Series]:
    """The series of one machine; none where it was not read."""
    read_at = moment(facts.get("read_at"))
    if read_at is None:
        return
    here = {"node": node}
    yield "gaudi_bmc_read_timestamp_seconds", here, read_at
    yield "gaudi_bmc_complete", here, float(truth(facts.get("complete")) is True)
    if text(facts.get("power")) is not None:
        yield "gaudi_bmc_power_on", here, float(facts.get("power") == "On")
    cards = facts.get("cards")
    for card in cards if isinstance(cards, list) else []:
        found = mapping(card)
        oam = number(found.get("oam"))
        if oam is not None:
            yield from _card_series({**here, "oam": f"{oam:.15g}"}, found)


def _card_series(here: dict[str, str], card: Mapping[str, object]) -> Iterator[Series]:
    firmware = text(mapping(card.get("firmware")).get("management"), 100) or ""
    serial = text(card.get("serial"), 100) or ""
    yield "gaudi_bmc_card_info", {**here, "firmware": firmware, "serial": serial}, 1.0
    for place, reading in _readings(card.get("temperatures"), "Cel"):
        yield "gaudi_bmc_card_temperature_celsius", {**here, "place": place}, reading
    for rail, reading in _readings(card.get("power"), "W"):
        yield "gaudi_bmc_card_power_watts", {**here, "rail": rail}, reading
    for (part, name), (memory, kind) in ERRORS.items():
        count = number(mapping(card.get(part)).get(name))
        if count is not None:
            yield "gaudi_bmc_card_memory_errors_total", {**here, "kind": kind, "memory": memory}, count
    for name, kind in ROWS.items():
        count = number(mapping(card.get("memory")).get(name))
        if count is not None:
            yield "gaudi_bmc_card_replaced_rows", {**here, "kind": kind}, count
    alerts = card.get("alerts")
    found = [mapping(each) for each in alerts] if isinstance(alerts, list) else []
    for alert in found:
        if alert.get("state") == "raised":
            words = {name: text(alert.get(name), 100) or "" for name in ("field", "name", "severity")}
            yield "gaudi_bmc_card_alert", {**here, **words}, 1.0
    yield "gaudi_bmc_card_alerts_unclear", here, float(sum(each.get("state") == "unclear" for each in found))


def _readings(sensors: object, unit: str) -> Iterator[tuple[str, float]]:
    for name, content in sorted(mapping(sensors).items()):
        sensor = mapping(content)
        reading = number(sensor.get("reading"))
        if reading is not None and sensor.get("unit") == unit:
            yield name, reading


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{_escaped(printable(labels[name]))}"' for name in sorted(labels))


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')
