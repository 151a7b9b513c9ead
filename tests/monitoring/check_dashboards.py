#!/usr/bin/env python3
"""Run every query of every dashboard against a live Prometheus: each must give numbers.

    check_dashboards.py --url https://10.89.78.3:9090 --ca ca.crt --password-file prometheus_password [FILE ...]

Stronger than Grafana loading the files: a panel whose query finds nothing, or NaN only, is a fault here, and so is
a legend that names a label which the series do not have, or a variable without a value. Variables are tried as
"All" and as one value. Queries reach back over --minutes, so series that ended since (a finished training job's)
count. First of all the program proves that it notices: with its metrics renamed, every query must fail.

Exit codes: 0 all well, 1 faults (one line each), 2 Prometheus cannot be asked or the arguments are wrong.
"""

from __future__ import annotations

import argparse
import base64
import json
import math
import re
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

DASHBOARDS = Path(__file__).resolve().parents[2] / "roles" / "grafana" / "files" / "dashboards"
#: What Grafana puts in, at a scrape interval of 15 s.
MACROS = {"__rate_interval": "1m", "__interval": "15s", "__range": "30m"}
ALL = ".+"
STEP = "15s"
#: Of jobs with a price, that evaluate as they train, with several processes, or that hung; of nodes that examine
#: themselves, of hosts that serve models, of hosts with backups, and of Intel's exporter alone.
OPTIONAL = (
    "gaudi_training_validation_loss",
    "gaudi_training_phase_seconds",
    "gaudi_training_hang_timestamp_seconds",
    "gaudi_cost_",
    "instance:gaudi_cost_",
    "gaudi_health_",
    "habanalabs_pending_rows_state",
    "vllm:",
    "haproxy_",
    "gaudi_backup_",
)
#: What "All" stands for where series may have no such label.
ANY = ".*"
#: A variable that is not chosen by anybody, and holds what links need.
HIDDEN = 2
NOTHING = "nothing for"
_METRIC = re.compile(r"\b[a-zA-Z_:][a-zA-Z0-9_:]*(?=\{)")


class AskError(Exception):
    """One sentence: why Prometheus could not be asked."""


@dataclass(frozen=True)
class Query:
    """A query of a panel."""

    where: str
    expression: str
    legend: str


class Prometheus:
    """The HTTP API."""

    def __init__(self, url: str, ca: str | None, user: str, password: str | None, minutes: float) -> None:
        self._url = url.rstrip("/")
        self._context = ssl.create_default_context(cafile=ca) if ca else None
        self._headers = {}
        if password is not None:
            token = base64.b64encode(f"{user}:{password}".encode()).decode()
            self._headers["Authorization"] = f"Basic {token}"
        self._end = time.time()
        self._start = self._end - 60 * minutes

    def _get(self, path: str, **parameters: str) -> Any:
        query = urllib.parse.urlencode(parameters)
        request = urllib.request.Request(f"{self._url}/api/v1/{path}?{query}", headers=self._headers)
        try:
            with urllib.request.urlopen(request, timeout=30, context=self._context) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            if error.code == 400:
                raise ValueError(json.load(error).get("error", "bad query")) from error
            raise AskError(f"{self._url} answers {error.code} {error.reason}.") from error
        except OSError as error:
            raise AskError(f"{self._url} cannot be reached: {error}.") from error

    def series(self, expression: str) -> list[tuple[dict[str, str], list[float]]]:
        """Labels and values of each series of the last minutes. ValueError where it is no query."""
        data = self._get("query_range", query=expression, start=f"{self._start}", end=f"{self._end}", step=STEP)
        return [(one["metric"], [float(value) for _, value in one["values"]]) for one in data["result"]]

    def label_values(self, selector: str, label: str) -> list[str]:
        """Values that a label of some series had in the last minutes."""
        found = self._get("series", **{"match[]": selector, "start": f"{self._start}", "end": f"{self._end}"})
        return sorted({one[label] for one in found if label in one})


def panels(dashboard: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """All panels, those in collapsed rows too."""
    for panel in dashboard["panels"]:
        yield panel
        yield from panel.get("panels", [])


def queries(dashboard: dict[str, Any]) -> list[Query]:
    """All queries of a dashboard."""
    return [
        Query(
            f"{dashboard['title']} / {panel['title']} / {target['refId']}",
            target["expr"],
            target.get("legendFormat", ""),
        )
        for panel in panels(dashboard)
        for target in panel.get("targets", [])
    ]


def marks(dashboard: dict[str, Any]) -> list[Query]:
    """Queries of annotations. What they mark may not have happened."""
    found = dashboard["annotations"]["list"]
    return [Query(f"{dashboard['title']} / annotation {one['name']}", one["expr"], "") for one in found]


def expand(text: str, values: dict[str, str]) -> str:
    """Macros and variables replaced as Grafana does; what is neither stays, and Prometheus will refuse it."""
    known = MACROS | values
    return re.sub(r"\$(?:\{(\w+)(?::\w+)?\}|(\w+))", lambda m: known.get(m[1] or m[2], m[0]), text)


def literal(value: str) -> str:
    """A value as Grafana puts it into a regular expression, inside a PromQL string."""
    return re.sub(r"[\\^$.*+?()|\[\]{}]", r"\\\\\g<0>", value)


def variables(dashboard: dict[str, Any], prometheus: Prometheus) -> tuple[dict[str, list[str]], list[str]]:
    """Values to try for each variable, and faults."""
    found: dict[str, list[str]] = {}
    faults = []
    for variable in dashboard["templating"]["list"]:
        if variable["type"] != "query":
            continue
        name = variable["name"]
        match = re.fullmatch(r"label_values\((.+), *(\w+)\)", variable["query"]["query"])
        every = {known: tried[0] for known, tried in found.items()}
        values = prometheus.label_values(expand(match[1], every), match[2]) if match else []
        if not values and variable.get("allValue") != ANY and variable.get("hide") != HIDDEN:
            faults.append(f"{dashboard['title']} / variable {name}: no value")
        found[name] = [variable.get("allValue", "")] * bool(variable["includeAll"]) + [
            literal(value) for value in values[:1]
        ]
    return found, faults


def fault(query: Query, values: dict[str, str], prometheus: Prometheus) -> str:
    """What is wrong with a query; empty where nothing is."""
    expression = expand(query.expression, values)
    try:
        series = prometheus.series(expression)
    except ValueError as error:
        return f"Prometheus refuses {expression}: {error}"
    if not series:
        return f"{NOTHING} {expression}"
    if all(math.isnan(value) for _, numbers in series for value in numbers):
        return f"only NaN for {expression}"
    for label in re.findall(r"\{\{ *(\w+) *\}\}", query.legend):
        if any(label not in labels for labels, _ in series):
            return f"the legend names {label}, which a series of {expression} does not have"
    return ""


def optional(query: Query) -> bool:
    """Whether a query asks for nothing but what a cluster need not have."""
    names = _METRIC.findall(query.expression)
    return bool(names) and all(name.startswith(OPTIONAL) for name in names)


def check(dashboard: dict[str, Any], prometheus: Prometheus, everything: bool = False) -> list[str]:
    """All faults of a dashboard. Everything: with those of what a cluster need not have."""
    values, faults = variables(dashboard, prometheus)
    for query in queries(dashboard):
        for choice in range(max([len(tried) for tried in values.values()], default=1)):
            chosen = {name: tried[min(choice, len(tried) - 1)] for name, tried in values.items() if tried}
            found = fault(query, chosen, prometheus)
            if found and (everything or not (found.startswith(NOTHING) and optional(query))):
                faults.append(f"{query.where}: {found}")
    every = {name: tried[0] for name, tried in values.items() if tried}
    for query in marks(dashboard):
        found = fault(query, every, prometheus)
        if found and not found.startswith(NOTHING):
            faults.append(f"{query.where}: {found}")
    return faults


def blind_spots(dashboard: dict[str, Any], prometheus: Prometheus) -> list[str]:
    """Queries that are found good although their metrics were renamed."""
    values = {name: tried[0] for name, tried in variables(dashboard, prometheus)[0].items() if tried}
    return [
        f"{query.where}: gives numbers although its metrics were renamed, so this check says nothing about it"
        for query in queries(dashboard)
        if not fault(replace(query, expression=_METRIC.sub(r"\g<0>_renamed", query.expression)), values, prometheus)
    ]


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", required=True, help="of Prometheus, e.g. https://10.89.78.3:9090")
    parser.add_argument("--ca", help="file with the certificate of the authority to trust")
    parser.add_argument("--user", default="prometheus", help="name to log in with (default: prometheus)")
    parser.add_argument("--password-file", help="file with the password")
    parser.add_argument("--minutes", type=float, default=30, help="how far back queries reach (default: 30)")
    parser.add_argument("dashboards", nargs="*", type=Path, help="JSON files (default: those of the role grafana)")
    options = parser.parse_args()
    files = options.dashboards or sorted(DASHBOARDS.glob("*.json"))
    if not files:
        parser.error(f"there is no dashboard in {DASHBOARDS}")
    faults = []
    number = 0
    try:
        password = Path(options.password_file).read_text(encoding="utf-8").strip() if options.password_file else None
        prometheus = Prometheus(options.url, options.ca, options.user, password, options.minutes)
        for file in files:
            dashboard = json.loads(file.read_text(encoding="utf-8"))
            number += len(queries(dashboard))
            faults += blind_spots(dashboard, prometheus) + check(dashboard, prometheus)
    except (AskError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    for line in faults:
        print(line)
    print(f"{number} queries of {len(files)} dashboards: {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
