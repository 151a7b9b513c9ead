"""What Prometheus is configured with beside what a site had: jobs, rules, labels, arguments and retention."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.gaudi3.scale.plugins.module_utils._monitoring import prometheus_plan
from ansible_collections.gaudi3.scale.plugins.module_utils._monitoring.prometheus_plan import Wanted, addresses
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.plugin_utils.site_yaml import read

FILE = "/etc/prometheus/prometheus.yml"
SITE: dict[str, Any] = {
    "global": {"scrape_interval": "1m", "external_labels": {"site": "berlin"}},
    "rule_files": ["site-rules.yml"],
    "alerting": {
        "alertmanagers": [
            {"static_configs": [{"targets": ["alerts.example:9093"]}]},
            {"static_configs": [{"targets": ["localhost:9093"]}]},
        ]
    },
    "remote_write": [{"url": "https://store.example/write"}],
    "scrape_configs": [
        {"job_name": "storage", "static_configs": [{"targets": ["10.5.0.1:9100"]}]},
        {"job_name": "node", "static_configs": [{"targets": ["10.5.0.2:9100", "localhost:9100"]}]},
        {"job_name": "prometheus", "static_configs": [{"targets": ["localhost:9090"]}]},
        {"job_name": "older", "file_sd_configs": [{"files": ["/etc/prometheus/targets-node.yml"]}]},
    ],
}
LIMITS = {"body_size_limit": "10MB", "sample_limit": 20000, "label_limit": 64}


def plan(site: Any = None, hostvars: dict[str, Any] | None = None, **given: Any) -> dict[str, Any]:
    """What is planned, or what is wrong with it."""
    claim = {"kept": {FILE: yaml.safe_dump(site)} if site else {}, **given.pop("claim", {})}
    jobs = [
        {"name": "node", "groups": ["gaudi", "monitoring", "none"], "port": 9100},
        {"name": "prometheus", "groups": ["monitoring"], "port": 9090, "service": "prometheus", "sample_limit": 5},
        {"name": "alertmanager", "groups": ["monitoring"], "port": 9093, "service": "alertmanager"},
    ]
    general = {"scrape_interval": "15s", "evaluation_interval": "15s", "external_labels": {"cluster": "a"}}
    wanted: dict[str, Any] = {
        "host": "mon", "jobs": jobs, "rules": ["rules-gaudi3.rules.yml"], "limits": LIMITS, "general": general,
        "groups": {"gaudi": ["gaudi-1", "gaudi-9"], "monitoring": ["mon"]}, "gone": ["gaudi-9"],
        "arguments": ["--web.config.file=/w"], "extra_scrape_configs": [{"job_name": "x"}], **given,
    }  # fmt: skip
    variables = {"gaudi-1": {"ansible_host": "10.0.0.1"}, "mon": {"gaudi_cluster_address": "fd00::5"}}
    try:
        known = Wanted(**wanted)
        found = prometheus_plan.plan(known, addresses(known, {**variables, **(hostvars or {})}), claim, read)
    except Refusal as refusal:
        return {"problem": str(refusal)}
    return {"problem": "", **vars(found)}


def test_the_sites_part_stays(tmp_path: Path) -> None:
    made = plan(SITE)
    assert made["problem"] == "" and made["replaced"] == ["prometheus", "older"]
    both = made["configuration"]
    jobs = {job["job_name"]: job for job in both["scrape_configs"]}
    assert list(jobs) == ["node", "prometheus", "alertmanager", "x", "storage", "site-node"]
    assert jobs["storage"] == SITE["scrape_configs"][0]
    # Of two jobs of one name, the site's keeps the label that its own rules know.
    assert jobs["site-node"]["relabel_configs"] == [{"target_label": "job", "replacement": "node"}]
    assert both["global"] == {
        "scrape_interval": "1m", "evaluation_interval": "15s", "external_labels": {"site": "berlin", "cluster": "a"},
    }  # fmt: skip
    assert jobs["node"]["scrape_interval"] == "15s"
    assert both["rule_files"] == ["site-rules.yml", "/etc/prometheus/rules-gaudi3.rules.yml"]
    assert both["remote_write"] == SITE["remote_write"]
    first, own = both["alerting"]["alertmanagers"]
    assert first == SITE["alerting"]["alertmanagers"][0] and own["basic_auth"]["username"] == "alertmanager"
    # Prometheus itself takes it.
    for job in both["scrape_configs"]:
        job.pop("basic_auth", None)
        job.pop("tls_config", None)
    for each in (first, own):
        each.pop("basic_auth", None)
        each.pop("tls_config", None)
    both["rule_files"] = []
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(both))
    done = subprocess.run(
        ["promtool", "check", "config", "prometheus.yml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_job_of_the_role_is_bounded_and_may_say_so_itself() -> None:
    for site in (None, SITE):
        jobs = {job["job_name"]: job for job in plan(site)["configuration"]["scrape_configs"]}
        for name in ("node", "prometheus", "alertmanager", "x"):
            wanted = {**LIMITS, **({"sample_limit": 5} if name == "prometheus" else {})}
            assert {key: jobs[name][key] for key in LIMITS} == wanted
    assert "prometheus_scrape_limits has samples: give body_size_limit" in plan(limits={"samples": 1})["problem"]


def test_a_sites_words_stay_as_prometheus_reads_them(tmp_path: Path) -> None:
    """Prometheus takes a label for text where YAML of Python has a number, a boolean or a time."""
    labels = (
        "no",
        "on",
        "y",
        "True",
        "1.10",
        "010",
        "0x1F",
        "1_000",
        "12:30:45",
        "1e3",
        "2024-01-01",
        "+1",
        ".5",
        "7",
        "true",
    )
    named = {f"label_{number}": text for number, text in enumerate(labels)}
    flags = "    honor_labels: yes\n    follow_redirects: Off\n    enable_http2: true\n"
    text = "global:\n  external_labels:\n" + "".join(f"    {name}: {value}\n" for name, value in named.items())
    text += f"scrape_configs:\n  - job_name: storage\n{flags}    sample_limit: 500\n    params: {{m: [on, 1.10]}}\n"
    text += "    static_configs: [{targets: [a], labels: {node: no, send: yes}}]\n"
    text += "    basic_auth: {username: ~, password: null}\n"
    made = plan(claim={"kept": {FILE: text}})
    assert made["problem"] == ""
    site = yaml.safe_load(yaml.safe_dump(made["configuration"]))
    found = {
        name: str(value) if value is not True else "true" for name, value in site["global"]["external_labels"].items()
    }
    assert {name: found[name] for name in named} == named
    (job,) = [each for each in site["scrape_configs"] if each["job_name"] == "storage"]
    assert (job["honor_labels"], job["follow_redirects"], job["enable_http2"]) == (True, False, True)
    assert (job["sample_limit"], job["params"]) == (500, {"m": ["on", "1.10"]})
    assert job["static_configs"][0]["labels"] == {"node": "no", "send": "yes"}
    (tmp_path / "p.yml").write_text(yaml.safe_dump({"global": site["global"], "scrape_configs": [job]}))
    done = subprocess.run(
        ["promtool", "check", "config", "p.yml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "text",
    [
        "global: 7\n", "alerting: [a]\n", "scrape_configs: [{job_name: a, static_configs: [b]}]\n",
        "scrape_configs: [{job_name: a, file_sd_configs: 3}]\n", "global: {external_labels: 5}\n",
        "scrape_configs: [{job_name: a, static_configs: [{targets: 5}]}]\n", "scrape_configs: [{job_name: [node]}]\n",
    ],
)  # fmt: skip
def test_a_part_of_another_kind_is_refused_in_a_sentence(text: str) -> None:
    said = plan(claim={"kept": {FILE: text}})["problem"]
    assert said.startswith(f"{FILE} of mon is no configuration of Prometheus") and said.endswith("correct it there.")


@pytest.mark.parametrize("text", ["[1", "- a\n", "scrape_configs: 7\n", "scrape_configs: [7]\n"])
def test_what_is_no_configuration_is_refused(text: str) -> None:
    assert "prometheus.yml" in plan(claim={"kept": {FILE: text}})["problem"]


def kept(made: dict[str, Any]) -> list[str]:
    assert made["problem"] == ""
    return [word.removeprefix("--storage.tsdb.retention.") for word in made["arguments"] if "retention" in word]


LONG = [
    "--storage.tsdb.retention.time=400d",
    "--storage.tsdb.path=/d",
    "--enable-feature",
    "x",
    "--web.config.file=/s",
]


@pytest.mark.parametrize(
    ("claim", "retention"),
    [
        ({}, ["time=15d", "size=20GB"]),
        ({"running": LONG, "arguments": LONG}, ["time=400d"]),
        ({"in_use": True, "running": []}, ["time=15d"]),
        ({"running": ["--storage.tsdb.retention.size=1TB"]}, ["size=1TB"]),
        ({"running": ["--storage.tsdb.retention=90d"]}, ["time=90d"]),
        ({"running": ["--storage.tsdb.retention.time", "90d"]}, ["time=90d"]),
        # Prometheus takes the newer name, in whatever order the two are.
        ({"running": ["--storage.tsdb.retention.time=400d", "--storage.tsdb.retention=15d"]}, ["time=400d"]),
    ],
)
def test_data_is_kept_for_as_long_as_before(claim: dict[str, Any], retention: list[str]) -> None:
    assert kept(plan(claim=claim)) == retention


@pytest.mark.parametrize(
    ("wanted", "running", "less"),
    [
        ({"time": "15d"}, LONG, "time"),
        ({"time": "500d"}, LONG, ""),
        ({"time": "57w"}, LONG, "time"),
        ({"size": "20GB"}, LONG, "size"),  # there was no limit
        ({"size": "20GB"}, ["--storage.tsdb.retention.size=10GB"], ""),
        ({"size": "900MB"}, ["--storage.tsdb.retention.size=1GB"], "size"),
        ({"time": "30d"}, ["--storage.tsdb.retention.size=1GB"], "time"),
        ({"time": "14d"}, ["--storage.tsdb.path=/d"], "time"),
    ],
)
def test_less_has_to_be_asked_for_twice(wanted: dict[str, str], running: list[str], less: str) -> None:
    given: dict[str, Any] = {"retention": {"time": "", "size": "", **wanted}, "claim": {"running": running}}
    said = plan(**given)["problem"]
    assert bool(said) is bool(less)
    if less:
        assert said.startswith(f"prometheus_retention_{less} is {wanted[less]}, and Prometheus on mon keeps")
        assert f"{less}={wanted[less]}" in kept(plan(**given, shorter_accepted=True))


def test_the_sites_arguments_stay_and_the_roles_own_go_first() -> None:
    made = plan(claim={"running": LONG, "arguments": LONG})["arguments"]
    assert made == [
        "--web.config.file=/w", "--storage.tsdb.retention.time=400d", "--storage.tsdb.path=/d", "--enable-feature", "x",
    ]  # fmt: skip
    elsewhere = plan(claim={"arguments": ["--config.file=/opt/p.yml"]})["problem"]
    assert elsewhere.startswith("Prometheus was started with --config.file=/opt/p.yml")


def test_targets_are_addresses_of_single_hosts() -> None:
    made = plan()
    assert made["targets"]["node"] == [
        {"targets": ["10.0.0.1:9100"], "labels": {"instance": "gaudi-1"}},
        {"targets": ["[fd00::5]:9100"], "labels": {"instance": "mon"}},
    ]
    assert made["nodes"] == {"gaudi-1": "10.0.0.1"}


@pytest.mark.parametrize(
    "address", ['", "10.0.0.2:9100"]\n  labels: {x: y}\n- targets: ["x', "0.0.0.0/0", "a:9", "a b"]
)
def test_an_address_that_is_none_is_refused_with_its_host(address: str) -> None:
    said = plan(hostvars={"gaudi-1": {"ansible_host": address}})["problem"]
    assert said.startswith("gaudi-1 has the address ") and "\n" not in said


def test_two_hosts_of_one_address_are_named() -> None:
    said = plan(hostvars={"gaudi-1": {"gaudi_cluster_address": "fd00:0::5"}})["problem"]
    assert said.startswith("gaudi-1 and mon both have the address fd00::5: ")
