"""The dashboards of the role grafana keep the rules of grafana/dashboard-linter and those of this project.

The linter itself is a Go program that the tests do not have; its rules are ported here, by their names.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "roles" / "grafana" / "files" / "dashboards"
FILES = sorted(FOLDER.glob("*.json"))
EXCLUDED = yaml.safe_load((FOLDER / ".lint").read_text(encoding="utf-8"))["exclusions"]
CONTRACT = {
    metric["name"]: metric
    for metric in yaml.safe_load((ROOT / "docs" / "reference" / "metrics.yml").read_text())["metrics"]
}
RULE_FILE = (ROOT / "roles/prometheus/templates/gaudi3.rules.yml.j2").read_text(encoding="utf-8")
#: Jobs that each source of a metric is asked in; those of a training are chosen by a variable.
JOBS = {
    "node_exporter": ["node"],
    "hl_smi": ["hpu"],
    "intel": ["hpu"],
    "trainer": [".+"],
    "prometheus": ["node", "hpu", "prometheus", "alertmanager"],
    "alertmanager": ["alertmanager"],
    "vllm": ["serving"],
    "haproxy": ["serving"],
}
#: Servers of the monitoring host, which is none of the nodes to choose from.
SERVERS = {("job", "prometheus"), ("job", "alertmanager")}
#: Prometheus' own series of alerts, which have the labels of each alert.
ALERTS = "ALERTS"
SERVICES = "gaudi_certificate_expiry_timestamp_seconds"
"""Of the monitoring host, which is none of the nodes to choose from."""


def source(record: str) -> str:
    """Whose metrics a record is made of, by its name."""
    beginnings = {"node_": "node_exporter", "habanalabs_": "intel", "gaudi_card_": "intel", "gaudi_nodes": "prometheus"}
    metric = record.split(":")[1]
    return next((found for start, found in beginnings.items() if metric.startswith(start)), "trainer")


#: Records of the role prometheus, with their sources.
RECORDS = {record: [source(record)] for record in re.findall(r"- record: (\S+)", RULE_FILE)}
UNITS = {"none", "percent", "percentunit", "bytes", "Bps", "cps", "s", "celsius", "watt"}
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
Dashboard = dict[str, Any]


def load(file: Path) -> Dashboard:
    dashboard: Dashboard = json.loads(file.read_text(encoding="utf-8"))
    return dashboard


def panels(dashboard: Dashboard, rows: bool = False) -> list[dict[str, Any]]:
    return [panel for panel in dashboard["panels"] if rows or panel["type"] != "row"]


def expressions(dashboard: Dashboard) -> Iterator[str]:
    for panel in panels(dashboard):
        for target in panel["targets"]:
            yield target["expr"]


def parse(expression: str) -> Any:
    """The syntax tree, with Grafana's macros and variables as constants."""
    for macro, value in {"$__rate_interval": "1m", "$instance": ".+", "$job": ".+", "$cluster": ".*"}.items():
        expression = expression.replace(macro, value)
    return promql_parser.parse(expression)


def walk(node: Any, parents: tuple[Any, ...] = ()) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """All nodes with those above them."""
    yield node, parents
    for attribute in ("lhs", "rhs", "expr", "args", "vector_selector"):
        child = getattr(node, attribute, None)
        for one in child if isinstance(child, list) else [child]:
            if one is not None:
                yield from walk(one, (*parents, node))


def selectors(dashboard: Dashboard) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    for expression in expressions(dashboard):
        for node, parents in walk(parse(expression)):
            if isinstance(node, promql_parser.VectorSelector):
                yield node, parents


def variable(dashboard: Dashboard, name: str) -> dict[str, Any]:
    return next((one for one in dashboard["templating"]["list"] if one["name"] == name), {})


# Rules of dashboard-linter: each returns what breaks it.


def template_datasource(dashboard: Dashboard) -> list[str]:
    one = variable(dashboard, "datasource")
    sound = one.get("type") == "datasource" and one.get("query") == "prometheus" and one.get("label") == "Data source"
    return [] if sound else ["no variable datasource"]


def template_instance(dashboard: Dashboard) -> list[str]:
    one = variable(dashboard, "instance")
    wanted = {
        "label": "Instance",
        "multi": True,
        "allValue": ".+",
        "includeAll": True,
        "datasource": DATASOURCE,
    }
    return [key for key, value in wanted.items() if one.get(key) != value]


def template_label_promql(dashboard: Dashboard) -> list[str]:
    faults = []
    for one in dashboard["templating"]["list"]:
        match = re.fullmatch(r"label_values\((.+), *\w+\)", one["query"]["query"]) if one["type"] == "query" else None
        if one["type"] == "query" and match is None:
            faults.append(one["name"])
        elif match:
            parse(match[1])
    return faults


def template_on_time_change_reload(dashboard: Dashboard) -> list[str]:
    return [one["name"] for one in dashboard["templating"]["list"] if one["type"] == "query" and one["refresh"] != 2]


def panel_datasource(dashboard: Dashboard) -> list[str]:
    owners = [owner for panel in panels(dashboard) for owner in (panel, *panel["targets"])]
    return [str(owner) for owner in owners if owner["datasource"] != DATASOURCE]


def panel_title_description(dashboard: Dashboard) -> list[str]:
    return [str(panel["id"]) for panel in panels(dashboard) if not (panel.get("title") and panel.get("description"))]


def panel_units(dashboard: Dashboard) -> list[str]:
    return [panel["title"] for panel in panels(dashboard) if panel["fieldConfig"]["defaults"].get("unit") not in UNITS]


def panel_no_targets(dashboard: Dashboard) -> list[str]:
    return [panel["title"] for panel in panels(dashboard) if not panel["targets"]]


def target_promql(dashboard: Dashboard) -> list[str]:
    faults = []
    for expression in expressions(dashboard):
        try:
            parse(expression)
        except ValueError as error:
            faults.append(f"{expression}: {error}")
    return faults


def target_rate_interval(dashboard: Dashboard) -> list[str]:
    found = [
        (expression, interval)
        for expression in expressions(dashboard)
        for interval in re.findall(r"\b(?:rate|irate|increase)\([^\[]*\[([^\]]*)\]", expression)
    ]
    return [expression for expression, interval in found if interval != "$__rate_interval"]


def target_instance(dashboard: Dashboard) -> list[str]:
    wanted = (promql_parser.MatchOp.Re, "instance", ".+")
    return [
        str(node.name)
        for node, _ in selectors(dashboard)
        if node.name not in (ALERTS, SERVICES)
        and not SERVERS & {(one.name, one.value) for one in node.matchers.matchers}
        and wanted not in [(one.op, one.name, one.value) for one in node.matchers.matchers]
    ]


def target_counter_agg(dashboard: Dashboard) -> list[str]:
    faults = []
    for node, parents in selectors(dashboard):
        calls = [parent.func.name for parent in parents if isinstance(parent, promql_parser.Call)]
        if node.name.endswith(("_total", "_sum", "_count", "_bucket")) and not {
            "rate",
            "irate",
            "increase",
        } & set(calls):
            faults.append(node.name)
    return faults


def uneditable_dashboard(dashboard: Dashboard) -> list[str]:
    return [] if dashboard["editable"] is False else ["editable"]


# Rules of this project.


def target_names_its_job(dashboard: Dashboard) -> list[str]:
    faults = []
    for node, _ in selectors(dashboard):
        base = re.sub(r"_(bucket|sum|count)$", "", node.name)
        sources = CONTRACT.get(base, CONTRACT.get(node.name, {})).get("sources", RECORDS.get(node.name, []))
        wanted = {job for source in sources for job in JOBS[source]}
        named = {one.value for one in node.matchers.matchers if one.name == "job"}
        if node.name != ALERTS and not (len(named) == 1 and named <= wanted):
            faults.append(node.name)
    return faults


def target_names_its_cluster(dashboard: Dashboard) -> list[str]:
    """Which a store of several clusters needs. Series without the label have to match, too."""
    wanted = (promql_parser.MatchOp.Re, "cluster", ".*")
    return [
        str(node.name)
        for node, _ in selectors(dashboard)
        if wanted not in [(one.op, one.name, one.value) for one in node.matchers.matchers]
    ]


def metric_of_the_contract(dashboard: Dashboard) -> list[str]:
    faults = []
    for node, _ in selectors(dashboard):
        if node.name in RECORDS or node.name == ALERTS:
            continue
        base = re.sub(r"_(bucket|sum|count)$", "", node.name)
        histogram = CONTRACT.get(base, {}).get("type") == "histogram"
        if not (histogram if base != node.name else CONTRACT.get(base, {"type": "histogram"})["type"] != "histogram"):
            faults.append(node.name)
    return faults


def milliwatts_are_divided(dashboard: Dashboard) -> list[str]:
    return [
        node.name
        for node, parents in selectors(dashboard)
        if node.name.endswith("_mW") and not any(is_thousandth(parent) for parent in parents)
    ]


def is_thousandth(node: Any) -> bool:
    """Whether this divides by 1000."""
    divides = isinstance(node, promql_parser.BinaryExpr) and str(node.op) == "/"
    return divides and isinstance(node.rhs, promql_parser.NumberLiteral) and node.rhs.val == 1000


def power_is_that_of_both_rails(dashboard: Dashboard) -> list[str]:
    """hl-smi's power.draw covers one rail (docs/reference/metrics.yml); the record has both where they are known."""
    return [one for one in expressions(dashboard) if re.search("habanalabs_power_mW|gaudi_card_power_watts", one)]


def ids_are_unique(dashboard: Dashboard) -> list[str]:
    ids = [panel["id"] for panel in panels(dashboard, rows=True)]
    return [str(one) for one in ids if ids.count(one) > 1 or one == 0]


def panels_do_not_overlap(dashboard: Dashboard) -> list[str]:
    taken: dict[tuple[int, int], str] = {}
    faults = []
    for panel in panels(dashboard, rows=True):
        place = panel["gridPos"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                if x >= 24 or taken.setdefault((x, y), panel["title"]) != panel["title"]:
                    faults.append(f"{panel['title']} at {x},{y}")
    return faults


RULES: list[Callable[[Dashboard], list[str]]] = [
    template_datasource,
    template_instance,
    template_label_promql,
    template_on_time_change_reload,
    panel_datasource,
    panel_title_description,
    panel_units,
    panel_no_targets,
    target_promql,
    target_rate_interval,
    target_instance,
    target_counter_agg,
    uneditable_dashboard,
    target_names_its_job,
    target_names_its_cluster,
    metric_of_the_contract,
    milliwatts_are_divided,
    power_is_that_of_both_rails,
    ids_are_unique,
    panels_do_not_overlap,
]


def edit(path: str, value: Any) -> Callable[[Dashboard], None]:
    """Sets what lies at a path such as ``panels.1.title``."""

    def apply(dashboard: Dashboard) -> None:
        *way, last = path.split(".")
        node: Any = dashboard
        for step in way:
            node = node[int(step) if isinstance(node, list) else step]
        node[int(last) if isinstance(node, list) else last] = value

    return apply


#: For each rule an edit that breaks it. Panel 1 is the first after the row's title.
FAULTS: dict[str, Callable[[Dashboard], None]] = {
    "template_datasource": edit("templating.list.0.query", "loki"),
    "template_instance": edit("templating.list.2.allValue", ".*"),
    "template_label_promql": edit("templating.list.2.query.query", "label_values(instance)"),
    "template_on_time_change_reload": edit("templating.list.2.refresh", 1),
    "panel_datasource": edit("panels.1.datasource", {"type": "prometheus", "uid": "P1809F7CD0C75ACF3"}),
    "panel_title_description": edit("panels.1.description", ""),
    "panel_units": edit("panels.1.fieldConfig.defaults.unit", "wats"),
    "panel_no_targets": edit("panels.1.targets", []),
    "target_promql": edit("panels.1.targets.0.expr", 'sum(up{job="node", instance=~"$instance"}'),
    "target_rate_interval": edit(
        "panels.1.targets.0.expr", 'rate(node_cpu_seconds_total{job="node", instance=~"$instance"}[5m])'
    ),
    "target_instance": edit("panels.1.targets.0.expr", 'sum(up{job="node"})'),
    "target_counter_agg": edit("panels.1.targets.0.expr", 'node_cpu_seconds_total{job="node", instance=~"$instance"}'),
    "uneditable_dashboard": edit("editable", True),
    "target_names_its_job": edit("panels.1.targets.0.expr", 'sum(node_load1{job="hpu", instance=~"$instance"})'),
    "target_names_its_cluster": edit("panels.1.targets.0.expr", 'sum(up{job="node", instance=~"$instance"})'),
    "metric_of_the_contract": edit("panels.1.targets.0.expr", 'node_load15{job="node", instance=~"$instance"}'),
    "milliwatts_are_divided": edit(
        "panels.1.targets.0.expr", 'sum(habanalabs_power_mW{job="hpu", instance=~"$instance"})'
    ),
    "power_is_that_of_both_rails": edit(
        "panels.1.targets.0.expr", 'sum(habanalabs_power_mW{job="hpu", instance=~"$instance"}) / 1000'
    ),
    "ids_are_unique": edit("panels.1.id", 1),
    "panels_do_not_overlap": edit("panels.1.gridPos.w", 7),
}


def test_there_is_a_dashboard_and_its_uid_is_its_file_name() -> None:
    assert [file.stem for file in FILES] == [
        f"gaudi3-{name}" for name in ("cost", "fabric", "fleet", "resources", "serving", "training")
    ]
    defaults = yaml.safe_load((ROOT / "roles/grafana/defaults/main.yml").read_text(encoding="utf-8"))
    assert sorted(defaults["grafana_dashboards"]) == [f"dashboards/{file.name}" for file in FILES]
    assert [load(file)["uid"] for file in FILES] == [file.stem for file in FILES]


def test_every_exclusion_has_a_reason_and_a_rule_of_ours_instead() -> None:
    assert {"template-job-rule", "target-job-rule"} == set(EXCLUDED)
    assert all(len(one["reason"]) > 40 for one in EXCLUDED.values())


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_it_keeps(rule: Callable[[Dashboard], list[str]], file: Path) -> None:
    assert rule(load(file)) == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_breach_is_noticed(rule: Callable[[Dashboard], list[str]]) -> None:
    dashboard = copy.deepcopy(load(FILES[0]))
    FAULTS[rule.__name__](dashboard)
    assert rule(dashboard) != []
