"""What a dashboard consists of, without a word of Grafana's own.

Queries are PromQL with short forms for what every selector has to name: `{@node}`, `{@hpu}` and `{@training}` stand for
the job and for the variables, `{@services}` for services on whatever host, `{@prometheus}` and `{@alertmanager}` for
those servers, which are on none of the nodes to choose from. Each may be followed by further matchers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

VARIABLES = 'cluster=~"$cluster", instance=~"$instance"'
SELECTORS = {
    "node": f'job="node", {VARIABLES}',
    "services": 'job="node", cluster=~"$cluster"',
    "prometheus": 'job="prometheus", cluster=~"$cluster"',
    "alertmanager": 'job="alertmanager", cluster=~"$cluster"',
    "hpu": f'job="hpu", {VARIABLES}',
    "serving": f'job="serving", {VARIABLES}',
    "training": f'job=~"$job", {VARIABLES}',
}
#: Legends.
NODE = "{{instance}}"
CARD = "{{instance}} card {{id}}"
#: A variable with what the role prometheus was told (prometheus_runbook_url).
RUNBOOKS = "${runbooks:raw}"


def expand(query: str) -> str:
    """The query with its short forms written out."""
    return re.sub(r"@(\w+)", lambda match: SELECTORS[match[1]], query)


def runbook(alert: str) -> str:
    """The address of an alert's runbook."""
    return f"{RUNBOOKS}/{'-'.join(word.lower() for word in re.findall('[A-Z][a-z]+', alert))}.md"


@dataclass(frozen=True)
class Panel:
    """One panel: its queries by legend, and the alerts whose runbooks it links to."""

    title: str
    description: str
    queries: dict[str, str]
    unit: str = "none"
    kind: str = "timeseries"
    width: int = 8
    highest: float | None = None
    #: From these values on it is yellow and red.
    limits: tuple[float, float] | None = None
    stacked: bool = False
    alerts: tuple[str, ...] = ()


def stat(
    title: str,
    description: str,
    query: str,
    unit: str = "none",
    legend: str = "",
    limits: tuple[float, float] | None = None,
    alerts: tuple[str, ...] = (),
) -> Panel:
    """One number, the newest, or one for each label in the legend."""
    queries = {legend or title.lower(): query}
    return Panel(title, description, queries, unit, kind="stat", width=6, limits=limits, alerts=alerts)


@dataclass(frozen=True)
class Row:
    """Panels under a title."""

    title: str
    panels: list[Panel]


@dataclass(frozen=True)
class Board:
    """A dashboard."""

    name: str
    title: str
    description: str
    rows: list[Row] = field(default_factory=list)
