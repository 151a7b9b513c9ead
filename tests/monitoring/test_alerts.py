"""Every alert of the role prometheus fires when it must and not when it must not, by promtool's own verdict.

Needs promtool (Debian: apt-get install --no-install-recommends prometheus). The cases are in alerts.yml.
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

ROOT = Path(__file__).resolve().parents[2]
ROLE = ROOT / "roles" / "prometheus"
CASES: dict[str, dict[str, list[dict[str, Any]]]] = yaml.safe_load(
    (Path(__file__).parent / "alerts.yml").read_text(encoding="utf-8")
)


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
    return {rule["alert"]: rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]}


RULES = rules(render())
# That one always fires, and has no case in which it is quiet.
ALERTS = {name: rule for name, rule in RULES.items() if name != "Watchdog"}


def promtool(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["promtool", *arguments], cwd=cwd, capture_output=True, text=True, check=False)


def failures(directory: Path, text: str, kind: str) -> dict[str, str]:
    """What promtool finds wrong with all cases of a kind, by alert."""
    tests = []
    for name, alert in CASES.items():
        for case in alert[kind]:
            expected = []
            if kind == "fires":
                rule = ALERTS[name]
                told = rule["annotations"] | {key: case[key] for key in ("summary", "description") if key in case}
                expected = [{"exp_labels": rule["labels"] | case["labels"], "exp_annotations": told}]
            tests.append(
                {
                    "interval": "15s",
                    "input_series": [{"series": key, "values": value} for key, value in case["series"].items()],
                    "alert_rule_test": [{"eval_time": case["at"], "alertname": name, "exp_alerts": expected}],
                }
            )
    document = {"rule_files": ["rules.yml"], "evaluation_interval": "1m", "tests": tests}
    (directory / "rules.yml").write_text(text, encoding="utf-8")
    (directory / "test.yml").write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8")
    result = promtool("test", "rules", "test.yml", cwd=directory)
    found = dict(
        re.findall(r"alertname: ?(\w+),((?:.*\n)+?)(?=\s*(?:FAILED|alertname|\Z))", result.stdout + result.stderr)
    )
    assert result.returncode == (1 if found else 0), result.stdout + result.stderr
    return found


def test_every_alert_has_cases_of_both_kinds() -> None:
    assert set(CASES) == set(ALERTS)
    assert all(alert["fires"] and alert["quiet"] for alert in CASES.values())


def test_the_rules_are_valid(tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text(render(), encoding="utf-8")
    result = promtool("check", "rules", "--lint-fatal", "rules.yml", cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr


def test_they_fire_and_say_what_and_where(tmp_path: Path) -> None:
    assert failures(tmp_path, render(), "fires") == {}


def test_they_stay_quiet(tmp_path: Path) -> None:
    assert failures(tmp_path, render(), "quiet") == {}


def with_expressions(expression: str) -> str:
    """The rules with every alert's expression replaced."""
    document = yaml.safe_load(render())
    for group in document["groups"]:
        for rule in group["rules"]:
            if rule["alert"] == "Watchdog":
                continue
            rule["expr"] = expression
            rule.pop("for", None)
    return str(yaml.safe_dump(document))


def test_the_cases_notice_an_alert_that_never_fires(tmp_path: Path) -> None:
    assert set(failures(tmp_path, with_expressions("vector(0) > 1"), "fires")) == set(ALERTS)


def test_the_cases_notice_an_alert_that_always_fires(tmp_path: Path) -> None:
    assert set(failures(tmp_path, with_expressions("vector(1)"), "quiet")) == set(ALERTS)


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
    variables = yaml.safe_load((ROLE / "vars" / "main.yml").read_text(encoding="utf-8"))
    given = [word for word in variables["_prometheus_own_arguments"] if "for-grace-period" in word]
    assert given == ["--rules.alert.for-grace-period=1m"]
    waits = {name: seconds(str(rule["for"])) for name, rule in RULES.items() if "for" in rule}
    assert max(waits.values()) > 600 and {name for name, wait in waits.items() if wait < 60} == set()


def test_without_a_place_for_the_runbooks_no_alert_links_to_one(tmp_path: Path) -> None:
    assert [name for name, rule in RULES.items() if "runbook_url" in rule["annotations"]] == []
    assert all({"summary", "description"} <= rule["annotations"].keys() for rule in RULES.values())
    (tmp_path / "rules.yml").write_text(render(), encoding="utf-8")
    result = promtool("check", "rules", "rules.yml", cwd=tmp_path)
    assert f"SUCCESS: {len(RULES)} rules found" in result.stdout, result.stdout + result.stderr


LINKED = rules(render(prometheus_runbook_url="https://wiki.example/runbooks/"))


def test_but_for_the_link_the_alerts_are_the_same() -> None:
    for name, rule in LINKED.items():
        linked = rule["annotations"]["runbook_url"]
        assert rule == {**RULES[name], "annotations": {**RULES[name]["annotations"], "runbook_url": linked}}


@pytest.mark.parametrize("name", sorted(RULES))
def test_it_says_what_to_do(name: str) -> None:
    rule = LINKED[name]
    assert rule["labels"]["severity"] in (("none",) if name == "Watchdog" else ("critical", "warning"))
    url, _, page = rule["annotations"]["runbook_url"].rpartition("/")
    assert url == "https://wiki.example/runbooks"
    words = re.findall(r"[A-Z][a-z]+", name)
    assert page == "-".join(word.lower() for word in words) + ".md"
    text = (ROOT / "docs" / "runbooks" / page).read_text(encoding="utf-8")
    assert text.startswith(f"# {name}\n")
    assert "## Meaning" in text and "## Check" in text and "## Do" in text


def metrics(node: Any) -> set[str]:
    """Names of the metrics in a parsed expression."""
    if isinstance(node, promql_parser.VectorSelector):
        return {str(node.name)}
    children = [getattr(node, name, None) or [] for name in ("lhs", "rhs", "expr", "args", "vector_selector")]
    return {
        name for child in children for one in (child if isinstance(child, list) else [child]) for name in metrics(one)
    }


def test_alerts_use_only_metrics_of_the_contract() -> None:
    contract = yaml.safe_load((ROOT / "docs" / "metrics.yml").read_text(encoding="utf-8"))
    used = {name for rule in ALERTS.values() for name in metrics(promql_parser.parse(rule["expr"]))}
    assert len(used) > 20
    assert used - {metric["name"] for metric in contract["metrics"]} == set()


def test_the_number_of_cards_is_a_variable(tmp_path: Path) -> None:
    assert set(failures(tmp_path, render(prometheus_cards_per_node=7), "fires")) == {"HpuCardMissing"}
