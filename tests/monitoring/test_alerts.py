"""Every alert of the role prometheus fires when it must and not when it must not, by promtool's own verdict.

Needs promtool (Debian: apt-get install --no-install-recommends prometheus). The cases are in the folder alerts. Each
alert has some of three kinds: it fires, it is quiet in a sound cluster, and it is quiet where all looks nearly
like its fault. A case gives series as promtool writes them (one value per 15 s, or as `every` says; `_` is no sample),
the moment, and for one that fires the labels and the texts that a person gets.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import jinja2
import promql_parser
import pytest
import yaml

from ansible_collections.gaudi3.scale.plugins.module_utils._plan.prometheus import Prometheus
from tests.unit.plugins.module_utils._plan.services import given as given_of_a_host

ROOT = Path(__file__).resolve().parents[2]
ROLE = ROOT / "roles" / "prometheus"
CASES: dict[str, dict[str, list[dict[str, Any]]]] = {
    name: cases
    for file in sorted((Path(__file__).parent / "alerts").glob("*.yml"))
    for name, cases in yaml.safe_load(file.read_text(encoding="utf-8")).items()
}
KINDS = ("fires", "quiet", "alike")


def render(**variables: Any) -> str:
    """The rule file as the role writes it with its defaults."""
    defaults = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text(encoding="utf-8"))
    header, text = (ROLE / "templates" / "gaudi3.rules.yml.j2").read_text(encoding="utf-8").split("\n", 1)
    assert header == "#jinja2: variable_start_string:'[[', variable_end_string:']]'"
    environment = jinja2.Environment(
        variable_start_string="[[",
        variable_end_string="]]",
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    environment.filters["to_json"] = json.dumps  # as Ansible has it
    return environment.from_string(text).render(defaults | {"ansible_managed": "Ansible managed"} | variables)


def rules(text: str) -> dict[str, dict[str, Any]]:
    """The alerts by name."""
    every = [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]
    return {rule["alert"]: rule for rule in every if "alert" in rule}


RULES = rules(render())
# That one always fires, and has no case in which it is quiet.
ALERTS = {name: rule for name, rule in RULES.items() if name != "Watchdog"}


def promtool(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["promtool", *arguments], cwd=cwd, capture_output=True, text=True, check=False)


def metrics(node: Any) -> set[str]:
    """Names of the metrics in a parsed expression."""
    if isinstance(node, promql_parser.VectorSelector):
        return {str(node.name)}
    children = [getattr(node, name, None) or [] for name in ("lhs", "rhs", "expr", "args", "vector_selector")]
    return {
        name for child in children for one in (child if isinstance(child, list) else [child]) for name in metrics(one)
    }


def with_records(alert: str, text: str) -> dict[str, Any]:
    """A rule file of one alert and the records that it needs, which is evaluated in a twentieth of the time."""
    groups = yaml.safe_load(text)["groups"]
    every = {rule.get("alert", rule.get("record")): rule for group in groups for rule in group["rules"]}
    needed = metrics(promql_parser.parse(every[alert]["expr"]))
    for name in reversed(every):
        if name in needed and name not in RULES:
            needed |= metrics(promql_parser.parse(every[name]["expr"]))
    records = [rule for name, rule in every.items() if name in needed and "record" in rule]
    parts = {"records": records, "alerts": [every[alert]]}
    return {"groups": [{"name": name, "rules": rules} for name, rules in parts.items() if rules]}


def failures(directory: Path, text: str, kind: str) -> dict[str, str]:
    """What promtool finds wrong with all cases of a kind, by alert."""
    for name, alert in CASES.items():
        tests = []
        for case in alert[kind]:
            expected = []
            if kind == "fires":
                rule = ALERTS[name]
                told = rule["annotations"] | {key: case[key] for key in ("summary", "description") if key in case}
                expected = [{"exp_labels": rule["labels"] | case["labels"], "exp_annotations": told}]
            tests.append(
                {
                    "interval": case.get("every", "15s"),
                    "input_series": [{"series": key, "values": value} for key, value in case["series"].items()],
                    "alert_rule_test": [{"eval_time": case["at"], "alertname": name, "exp_alerts": expected}],
                }
            )
        rule_file = with_records(name, text)
        document = {
            "rule_files": [f"{name}.rules.yml"],
            "evaluation_interval": "1m",
            # promtool has no order of its own, and an alert needs the records of the same moment.
            "group_eval_order": [group["name"] for group in rule_file["groups"]],
            "tests": tests,
        }
        (directory / f"{name}.rules.yml").write_text(yaml.safe_dump(rule_file), encoding="utf-8")
        (directory / f"{name}.test.yml").write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8")
    result = promtool("test", "rules", *sorted(path.name for path in directory.glob("*.test.yml")), cwd=directory)
    found = dict(
        re.findall(r"alertname: ?(\w+),((?:.*\n)+?)(?=\s*(?:FAILED|alertname|\Z|\n))", result.stdout + result.stderr)
    )
    assert result.returncode == (1 if found else 0), result.stdout + result.stderr
    return found


def test_every_alert_has_cases_of_all_kinds() -> None:
    assert set(CASES) == set(ALERTS)
    assert len(ALERTS) >= 45
    assert {name: [kind for kind in KINDS if not alert.get(kind)] for name, alert in CASES.items()} == {
        name: [] for name in ALERTS
    }


def test_the_rules_are_valid(tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text(render(), encoding="utf-8")
    result = promtool("check", "rules", "--lint-fatal", "rules.yml", cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr


def test_they_fire_and_say_what_and_where(tmp_path: Path) -> None:
    assert failures(tmp_path, render(), "fires") == {}


@pytest.mark.parametrize("kind", ["quiet", "alike"])
def test_they_stay_quiet(kind: str, tmp_path: Path) -> None:
    assert failures(tmp_path, render(), kind) == {}


def with_expressions(expression: str) -> str:
    """The rules with every alert's expression replaced."""
    document = yaml.safe_load(render())
    for group in document["groups"]:
        for rule in group["rules"]:
            if rule.get("alert", "Watchdog") == "Watchdog":
                continue
            rule["expr"] = expression
            rule.pop("for", None)
    return str(yaml.safe_dump(document))


def test_the_cases_notice_an_alert_that_never_fires(tmp_path: Path) -> None:
    assert set(failures(tmp_path, with_expressions("vector(0) > 1"), "fires")) == set(ALERTS)


@pytest.mark.parametrize("kind", ["quiet", "alike"])
def test_the_cases_notice_an_alert_that_always_fires(kind: str, tmp_path: Path) -> None:
    assert set(failures(tmp_path, with_expressions("vector(1)"), kind)) == set(ALERTS)


def test_one_alert_always_fires(tmp_path: Path) -> None:
    """So that a service outside can tell when alerts no longer arrive."""
    case = {"interval": "1m", "input_series": [], "alert_rule_test": [{"eval_time": "1m", "alertname": "Watchdog"}]}
    rule = RULES["Watchdog"]
    expected = {"exp_labels": rule["labels"], "exp_annotations": rule["annotations"]}
    case["alert_rule_test"][0]["exp_alerts"] = [expected]  # type: ignore[index]
    (tmp_path / "rules.yml").write_text(render(), encoding="utf-8")
    (tmp_path / "test.yml").write_text(yaml.safe_dump({"rule_files": ["rules.yml"], "tests": [case]}), encoding="utf-8")
    result = promtool("test", "rules", "test.yml", cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr


def seconds(text: str) -> float:
    return float(text.removesuffix("m")) * 60 if text.endswith("m") else float(text.removesuffix("h")) * 3600


def test_a_restart_of_prometheus_resolves_no_alert() -> None:
    """After it, an alert that waits for less than the grace period waits anew; the others go on where they were.

    Alertmanager takes an alert for resolved that it has not heard of for 4 minutes.
    """
    given = [word for word in Prometheus(given_of_a_host()).arguments if "for-grace-period" in word]
    assert given == ["--rules.alert.for-grace-period=1m"]
    waits = {name: seconds(str(rule["for"])) for name, rule in RULES.items() if "for" in rule}
    assert max(waits.values()) > 600 and {name for name, wait in waits.items() if wait < 60} == set()


def test_without_places_for_runbooks_and_dashboards_no_alert_links_to_one(tmp_path: Path) -> None:
    assert [name for name, rule in RULES.items() if "_url" in str(rule["annotations"].keys())] == []
    assert all({"summary", "description"} <= rule["annotations"].keys() for rule in RULES.values())
    (tmp_path / "rules.yml").write_text(render(), encoding="utf-8")
    result = promtool("check", "rules", "rules.yml", cwd=tmp_path)
    number = len(RULES) + render().count("- record: ")
    assert f"SUCCESS: {number} rules found" in result.stdout, result.stdout + result.stderr


LINKED = rules(
    render(prometheus_runbook_url="https://wiki.example/runbooks/", prometheus_dashboard_url="https://mon:3000/")
)
DASHBOARDS = {path.stem for path in (ROOT / "roles" / "grafana" / "files" / "dashboards").glob("*.json")}


def test_the_dashboards_learn_where_the_runbooks_are() -> None:
    groups = yaml.safe_load(render(prometheus_runbook_url="https://wiki.example/runbooks/"))["groups"]
    record = groups[0]["rules"][-1]
    assert record["record"] == "cluster:gaudi_runbooks:info" and record["expr"] == "vector(1)"
    assert record["labels"] == {"url": "https://wiki.example/runbooks"}
    assert "gaudi_runbooks" not in str(yaml.safe_load(render()))


def test_but_for_the_link_the_alerts_are_the_same() -> None:
    for name, rule in LINKED.items():
        links = {key: rule["annotations"][key] for key in ("runbook_url", "dashboard_url")}
        assert rule == {**RULES[name], "annotations": {**RULES[name]["annotations"], **links}}


@pytest.mark.parametrize("name", sorted(RULES))
def test_it_links_to_a_dashboard_that_there_is_and_chooses_the_node_there(name: str) -> None:
    page, _, chosen = LINKED[name]["annotations"]["dashboard_url"].removeprefix("https://mon:3000/d/").partition("?")
    assert page in DASHBOARDS
    one_node = any("instance" in case["labels"] for case in CASES.get(name, {}).get("fires", []))
    assert chosen == ("var-instance={{ $labels.instance }}" if one_node else "")


@pytest.mark.parametrize("name", sorted(RULES))
def test_it_says_what_to_do(name: str) -> None:
    rule = LINKED[name]
    assert rule["labels"]["severity"] in (("none",) if name == "Watchdog" else ("critical", "warning"))
    url, _, page = rule["annotations"]["runbook_url"].rpartition("/")
    assert url == "https://wiki.example/runbooks"
    words = re.findall(r"[A-Z][a-z]+", name)
    assert page == "-".join(word.lower() for word in words) + ".md"
    text = (ROOT / "docs" / "operate" / "runbooks" / page).read_text(encoding="utf-8")
    assert text.startswith(f"# {name}\n")
    assert "## Meaning" in text and "## Check" in text and "## Do" in text


CONTRACT = {
    metric["name"]: metric["type"]
    for metric in yaml.safe_load((ROOT / "docs" / "reference" / "metrics.yml").read_text(encoding="utf-8"))["metrics"]
}
KNOWN = {name for name, kind in CONTRACT.items() if kind != "histogram"} | {
    name + suffix for name, kind in CONTRACT.items() if kind == "histogram" for suffix in ("_bucket", "_sum", "_count")
}


def test_rules_use_only_metrics_of_the_contract_and_records_before_them() -> None:
    known = set(KNOWN)
    number = 0
    for group in yaml.safe_load(render())["groups"]:
        for rule in group["rules"]:
            used = metrics(promql_parser.parse(rule["expr"]))
            assert used - known == set(), rule
            number += len(used)
            known |= {rule["record"]} if "record" in rule else set()
    assert number > 90


def test_each_record_is_named_after_its_labels_and_is_used() -> None:
    text = render()
    records = re.findall(r"- record: (\S+)", text)
    boards = "".join(path.read_text() for path in (ROOT / "roles/grafana/files/dashboards").glob("*.json"))
    assert all(re.fullmatch(r"(cluster|instance|mountpoint|card):[a-z_]+:[a-z0-9_]+", name) for name in records)
    assert [name for name in records if text.count(name) == 1 and name not in boards] == []


def test_the_number_of_cards_is_a_variable(tmp_path: Path) -> None:
    assert set(failures(tmp_path, render(prometheus_cards_per_node=7), "fires")) == {"HpuCardMissing"}
