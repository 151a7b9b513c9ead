"""The services of a monitoring host: what is wrong with them, whose their files are, and what is in these."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.gaudi3.scale.plugins.module_utils._plan.prometheus import Prometheus
from ansible_collections.gaudi3.scale.plugins.module_utils._plan.prometheus_targets import silent_sentence
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal

from .services import HOSTS, Desk, files, service

ROOT = Path(__file__).resolve().parents[5]
NAMES = ("prometheus", "alertmanager", "grafana", "watch")
#: The units, and what each starts anew for: its program, and what it reads at its start.
SERVICES = {
    "prometheus": ("prometheus.service", {"/usr/bin/prometheus"}, {"/etc/default/prometheus"}),
    "alertmanager": (
        "prometheus-alertmanager.service",
        {"/usr/bin/prometheus-alertmanager"},
        {"/etc/default/prometheus-alertmanager"},
    ),
    "grafana": (
        "grafana-server.service",
        {"/usr/sbin/grafana-server", "/usr/share/grafana/bin/grafana"},
        {"/etc/grafana/grafana.ini", "/etc/grafana/server.key", "/etc/grafana/admin_password"},
    ),
    "watch": (
        "gaudi3-watch.service",
        {"/usr/bin/python3"},
        {"/etc/gaudi3-scale/watch/server.key", "/etc/systemd/system/gaudi3-watch.service"},
    ),
}
CONVERGED: dict[str, Any] = {
    "": {"changed": False, "done": [], "diff": [], "recorded": True},
    "_package": {"installed": True},
    "_page": {"status": 200, "missing": [], "silent": []},
}


@pytest.mark.parametrize("name", NAMES)
def test_a_service_runs_with_what_lies_on_disk_and_listens_itself(name: str) -> None:
    made = service(name)
    made.learn({})
    options = made.options(made.files(made.secrets(dry_run=True)), made.written())
    unit, programs, read = SERVICES[name]
    assert options["name"] == unit and {*options["restart_files"]} == programs
    assert {file["path"] for file in options["files"] if file["restart"]} >= read
    assert options["listens"]["address"] == "10.0.0.9" and options["listens"]["variable"] == name


@pytest.mark.parametrize("name", NAMES)
def test_every_file_is_claimed_and_recorded(name: str) -> None:
    made = service(name)
    others = {"/etc/apt/keyrings/grafana.asc", "/etc/apt/sources.list.d/grafana.sources"}  # of the package's source
    assert {*files(name)} - others == {*made.written()}
    assert made.claim()["files"] == made.written() == made.record(made.written())["files"]


@pytest.mark.parametrize("name", NAMES)
def test_no_file_with_a_secret_is_open_or_shown(name: str) -> None:
    for path, file in files(name).items():
        text = str(file.content)
        if re.search("the (password|hash) of [a-z]+|^the key$", text, re.MULTILINE):
            assert (file.secret, file.mode) == (True, "0640"), path
        assert file.mode in ("0640", "0644") and file.group in ("root", "prometheus", "grafana")


@pytest.mark.parametrize("name", NAMES)
def test_secrets_that_are_handed_over_are_looked_for_on_the_host(name: str) -> None:
    desk = Desk()
    made = service(name, desk)
    asked = ["gaudi_claim", *(["interpreter"] if name == "watch" else [])]
    assert [part["module"] for part in made.first()] == asked
    made = service(name, desk, **{f"{name}_secrets": {"ca_key": "x"}})
    claim, known = made.first()[:2]
    assert known["arguments"]["paths"] == [*made.secret_files] and set(made.secret_files) < {*made.written()}
    made.learn({f"{name}_claim": {}, f"{name}_secrets": {"texts": {"/a": "a text"}}})
    made.secrets(dry_run=True)
    (wanted,) = desk.asked
    assert (wanted.present, wanted.given, wanted.certificate) == (["a text"], {"ca_key": "x"}, f"{name}-mon")
    assert wanted.others == {"gaudi-1": ["gaudi-1", "10.0.0.1"]} and wanted.hosts == ["10.0.0.9", "mon"]
    assert claim["tolerated"] is False


@pytest.mark.parametrize("name", NAMES)
def test_a_phase_is_left_out_only_where_nothing_is_to_be_done(name: str) -> None:
    made = service(name)
    parts = [end for end in CONVERGED if end != "_package" or made.package]
    answers = {name + end: CONVERGED[end] for end in parts}
    assert made.unchanged(answers)
    disturbed: dict[str, Any] = {
        name: [{"done": ["restart"]}, {"diff": [{"before": "a", "after": "b"}]}, {"recorded": False}, {"failed": True}],
        f"{name}_package": [{"installed": False}, {"installed": None}, {"failed": True}],
        f"{name}_page": [{"status": 401}, {"failed": True}],
    }
    for key in answers:
        for change in disturbed[key]:
            other = {**answers, key: {**answers[key], **change}}
            assert not made.unchanged(other), (key, change)
        assert not made.unchanged({each: answer for each, answer in answers.items() if each != key})


def test_prometheus_is_left_out_only_where_all_its_targets_answer() -> None:
    answers = {"prometheus" + end: answer for end, answer in copy.deepcopy(CONVERGED).items()}
    for key in ("missing", "silent"):
        page = {**CONVERGED["_page"], key: ["node/gaudi-1"]}
        assert not service("prometheus").unchanged({**answers, "prometheus_page": page})


def test_a_grafana_that_is_installed_otherwise_has_only_its_files() -> None:
    made = service("grafana", grafana_install=False)
    made.learn({})
    secrets = made.secrets(dry_run=True)
    (part,) = made.then(secrets)
    assert part["arguments"]["state"] == "written" and not made.before()
    assert made.unchanged({"grafana": CONVERGED[""]})


def test_the_page_of_certificates_is_what_the_contract_says() -> None:
    """One name, one help text in the pages of all roles: node_exporter merges them."""
    name = "gaudi_certificate_expiry_timestamp_seconds"
    metrics = yaml.safe_load((ROOT / "docs/reference/metrics.yml").read_text())["metrics"]
    contract = {each["name"]: each for each in metrics}
    for role in NAMES:
        text = files(role)[f"/var/lib/prometheus/node-exporter/gaudi-certificates-{role}.prom"].content
        assert text.splitlines() == [
            *("#", "# managed", "#"),
            f"# HELP {name} {contract[name]['help']}",
            f"# TYPE {name} {contract[name]['type']}",
            f'{name}{{certificate="authority",service="{role}"}} 2092989600',
            f'{name}{{certificate="server",service="{role}"}} 1780272000',
        ]
        assert not any("gaudi-certificates" in path for path in files(role, **{f"{role}_textfile_directory": ""}))


def test_an_address_of_ipv6_stands_in_brackets() -> None:
    made = service("prometheus", prometheus_listen_address="fd00::9")
    assert isinstance(made, Prometheus)
    assert made.arguments[0] == "--web.listen-address=[fd00::9]:9090"
    assert made.arguments[2] == "--web.external-url=https://[fd00::9]:9090/"
    sources = "/etc/grafana/provisioning/datasources/gaudi3-prometheus.yml"
    text = files("grafana", grafana_listen_address="fd00::9")[sources].content
    assert yaml.safe_load(text)["datasources"][0]["url"] == "https://[fd00::9]:9090"


def test_rules_and_configuration_are_checked_as_the_oldest_promtool_can() -> None:
    """That of Debian 11 (2.24) knows no option of `check`: "unknown long flag '--lint-fatal', try --help"."""
    made = files("prometheus")
    assert made["/etc/prometheus/rules-gaudi3.rules.yml"].validate == "promtool check rules %s"
    assert made["/etc/prometheus/prometheus.yml"].validate == "promtool check config %s"
    order = [*made]
    assert order.index("/etc/prometheus/rules-gaudi3.rules.yml") < order.index("/etc/prometheus/prometheus.yml")


def test_targets_that_do_not_answer_are_named() -> None:
    said = silent_sentence(["hpu/gaudi-2", "node/mon"])
    assert said.startswith("Prometheus gets no answer from hpu/gaudi-2, node/mon: ")
    assert silent_sentence([]) == silent_sentence(None) == ""
    made = service("prometheus")
    assert isinstance(made, Prometheus)
    page = made.page(made.secrets(dry_run=True))
    assert page["quiet"] == ["training", "alertmanager", "serving"] and "hpu/gaudi-1" in page["targets"]
    assert "node/mon" in page["targets"] and len(page["targets"]) == 6


def test_the_cluster_is_known_by_its_authority_and_its_nodes() -> None:
    made = service("prometheus", prometheus_secrets_dir="/srv")
    assert isinstance(made, Prometheus)
    assert made.cluster()["nodes"] == {"gaudi-1": HOSTS["gaudi-1"]["ansible_host"]}
    handed = service("prometheus", prometheus_secrets={"ca_certificate": "of /srv"})
    assert isinstance(handed, Prometheus)
    assert handed.cluster() == made.cluster() and len(made.cluster()["authority"]) == 64
    unknown = service("prometheus")
    assert isinstance(unknown, Prometheus) and unknown.cluster()["authority"] == ""


def test_a_sites_own_part_is_not_shown_in_a_difference() -> None:
    made = service("prometheus")
    made.learn({"prometheus_claim": {"kept": {"/etc/prometheus/prometheus.yml": "global: {}\n"}}})
    shown = {file.path for file in made.files(made.secrets(dry_run=True)) if not file.secret}
    assert shown == {"/var/lib/prometheus/node-exporter/gaudi-certificates-prometheus.prom"}


@pytest.mark.parametrize(
    ("name", "variables", "sentence"),
    [
        (
            "prometheus",
            {"prometheus_listen_address": "0.0.0.0"},
            'prometheus_listen_address is "0.0.0.0"; give the host',
        ),
        ("prometheus", {"prometheus_retention_time": "15"}, 'prometheus_retention_time is "15"; write a number'),
        ("prometheus", {"prometheus_scrape_limits": {"x": 1}}, "prometheus_scrape_limits has x: give body_size_limit"),
        ("alertmanager", {"alertmanager_port": 0}, "alertmanager_port is 0; give a port from 1 to 65535."),
        (
            "alertmanager",
            {"alertmanager_watchdog_receiver": "me"},
            'alertmanager_watchdog_receiver is "me", which is none of alertmanager_receivers (nobody); add it there',
        ),
        ("grafana", {"grafana_repository_url": "ftp://x"}, 'grafana_repository_url is "ftp://x"; give one address'),
    ],
)
def test_what_is_wrong_is_said(name: str, variables: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Refusal) as raised:
        service(name, **variables).refuse()
    assert str(raised.value).startswith(sentence)
    service(name).refuse()


def test_a_system_that_is_too_old_is_refused() -> None:
    with pytest.raises(Refusal, match=r"^mon runs Debian 11, whose Alertmanager knows neither TLS nor passwords: "):
        service("alertmanager", facts={"distribution_major_version": "11"}).refuse()
    with pytest.raises(Refusal, match=r"^mon runs RedHat, and the role grafana installs from Grafana's apt repository"):
        service("grafana", facts={"os_family": "RedHat", "distribution": "RedHat"}).refuse()


def test_receivers_have_one_that_tells_nobody() -> None:
    made = yaml.safe_load(
        files("alertmanager", alertmanager_receivers=[{"name": "us", "x": 1}, {"name": "us"}])[
            "/etc/prometheus/alertmanager.yml"
        ].content
    )
    assert made["receivers"] == [{"name": "us", "x": 1}, {"name": "nobody"}]
