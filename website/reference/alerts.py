"""The page of all alerts, from the rules that the role prometheus writes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import jinja2
import yaml

from website.reference.text import ROOT, document, prose, table

TITLE = "Alerts"
ROLE = ROOT / "roles/prometheus"
GROUPS = {
    "gaudi3-nodes": "Nodes",
    "gaudi3-cards": "Cards",
    "gaudi3-training": "Training",
    "gaudi3-serving": "Served models",
    "gaudi3-cost": "Cost",
    "gaudi3-monitoring": "Monitoring",
}
_FOLDER = "https://runbooks.invalid"


def groups() -> list[Mapping[str, Any]]:
    """The groups of rules as the role writes them with its defaults, each with a runbook's address."""
    defaults = yaml.safe_load((ROLE / "defaults/main.yml").read_text(encoding="utf-8"))
    _header, text = (ROLE / "templates/gaudi3.rules.yml.j2").read_text(encoding="utf-8").split("\n", 1)
    environment = jinja2.Environment(
        variable_start_string="[[", variable_end_string="]]", undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    environment.filters["to_json"] = json.dumps  # as Ansible has it
    given = defaults | {"ansible_managed": "Ansible managed", "prometheus_runbook_url": _FOLDER}
    found: list[Mapping[str, Any]] = yaml.safe_load(environment.from_string(text).render(given))["groups"]
    return found


def alerts(group: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The alerts among a group's rules."""
    return [each for each in group["rules"] if "alert" in each]


def runbook(alert: Mapping[str, Any]) -> str:
    """The page of an alert's runbook, from this page."""
    return str(alert["annotations"]["runbook_url"]).replace(_FOLDER, "../operate/runbooks")


def readable(text: str) -> str:
    """A message whose templates are the names of what stands there.

    >>> readable("{{ $labels.instance }} has {{ $value | humanizePercentage }} of {{ $labels.cause }} left.")
    '*instance* has *value* of *cause* left.'
    """
    named = re.sub(r"\{\{[^}]*?\$(?:labels\.)?(\w+)[^}]*\}\}", "\0\\1\0", text)
    return prose(named).replace("\0", "*")


def page() -> str:
    """The page."""
    filled = [(each, alerts(each)) for each in groups() if alerts(each)]
    count = sum(len(found) for _group, found in filled)
    parts = [
        f"# {TITLE}",
        f"The {count} alerts of the role prometheus, for whoever is woken by one or tunes them. Each links to its "
        "runbook: what it means, how to check it, what to do. An alert fires when its expression has held for the time "
        "in the column *for*. A word in italics is a label or the value.",
    ]
    for group, found in filled:
        rows = [
            (
                f"[{each['alert']}]({runbook(each)})",
                each["labels"].get("severity", ""),
                str(each.get("for", "at once")),
                readable(". ".join(str(each["annotations"][name]) for name in ("summary", "description"))),
            )
            for each in found
        ]
        parts += [f"## {GROUPS[group['name']]}", table(("alert", "severity", "for", "what it says"), rows)]
    parts.append("## Expressions")
    for _group, found in filled:
        for each in found:
            parts += [f"### {each['alert']}", f"```promql\n{str(each['expr']).strip()}\n```"]
    parts += [
        "## Next",
        "- [Runbooks](../operate/runbooks/README.md)\n- [Metrics](metrics.md): what the expressions read",
    ]
    return document(*parts)
