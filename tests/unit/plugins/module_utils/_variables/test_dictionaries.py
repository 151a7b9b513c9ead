"""Variables that are mappings, looked at key by key."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.gaudi3.scale.plugins.module_utils._variables.dictionaries import (
    DICTIONARIES,
    dictionary_faults,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._variables.given import plain

ROOT = Path(__file__).resolve().parents[5]
#: Mappings whose keys are for others to know, or that another check looks at.
ELSEWHERE = {
    "alertmanager_global",  # Alertmanager's own, which amtool checks before the file is put there
    # _given_secrets.Given.fault
    "alertmanager_secrets", "grafana_secrets", "prometheus_secrets", "slurm_secrets", "watch_secrets",
    "monitoring_service_options",  # made by roles
    "prometheus_extra_scrape_configs",  # Prometheus' own, which promtool checks before the file is put there
    "trainer_slurm",  # what gaudi_train takes as slurm, whose module looks at it
    "trainer_config", "trainer_jobs", "trainer_node_config",  # job_config
}  # fmt: skip


def said(name: str, value: object) -> list[str]:
    return [fault.said(name) for fault in dictionary_faults(name, value)]


@pytest.mark.parametrize(
    ("name", "value", "sentences"),
    [
        (
            "prometheus_scrape_limits",
            {"sampel_limit": 5, "label_limit": -1, "body_size_limit": "10 MB"},
            [
                "Unknown key 'sampel_limit' in prometheus_scrape_limits: did you mean 'sample_limit'?",
                "In prometheus_scrape_limits, label_limit is -1: give a whole number of at least 0.",
                "In prometheus_scrape_limits, body_size_limit is '10 MB': give text that matches "
                "^(0|[0-9]+([KMGTPE]i?)?B)$.",
            ],
        ),
        ("prometheus_scrape_limits", [1], ["prometheus_scrape_limits is a list: give a mapping of its keys."]),
        (
            "prometheus_metrics_tls_config",
            {"insecure_skip_verfy": True, "ca_file": 5, "zzz": 1},
            [
                "Unknown key 'insecure_skip_verfy' in prometheus_metrics_tls_config: did you mean "
                "'insecure_skip_verify'?",
                "Unknown key 'zzz' in prometheus_metrics_tls_config: give ca, ca_file, cert, cert_file, key, key_file, "
                "server_name, min_version, max_version or insecure_skip_verify.",
                "In prometheus_metrics_tls_config, ca_file is 5: give text.",
            ],
        ),
        (
            "prometheus_jobs",
            [{"name": "a", "tls_config": {"cafile": "x"}, "metric_relabel_configs": [{"action": "dorp"}]}],
            [
                "Unknown key 'tls_config.cafile' in prometheus_jobs: did you mean 'tls_config.ca_file'?",
                "In prometheus_jobs, [0].metric_relabel_configs[0].action is 'dorp': give replace, lowercase, "
                "uppercase, keep, drop, keepequal, dropequal, hashmod, labelmap, labeldrop or labelkeep.",
            ],
        ),
        (
            "node_exporter_web_config",
            {"tls_server_config": {"client_auth_type": "RequireAndVerify", "certfile": "x"}},
            [
                "Unknown key 'tls_server_config.certfile' in node_exporter_web_config: did you mean "
                "'tls_server_config.cert_file'?",
                "In node_exporter_web_config, tls_server_config.client_auth_type is 'RequireAndVerify': give "
                "NoClientCert, RequestClientCert, RequireAnyClientCert, RequireClientCert, VerifyClientCertIfGiven or "
                "RequireAndVerifyClientCert.",
            ],
        ),
        (
            "trainer_interruption",
            {"souces": ["aws"], "poll": 0},
            [
                "Unknown key 'souces' in trainer_interruption: did you mean 'sources'?",
                "In trainer_interruption, poll is 0: give a number of at least 0.1 and of at most 60.",
            ],
        ),
        (
            "alertmanager_receivers",
            [{"webhook_configs": [{"url": "http://a"}]}, {"name": "b", "webhooks": []}],
            [
                "Unknown key 'webhooks' in alertmanager_receivers: give name or *_configs.",
                "In alertmanager_receivers, [0] has no name: give it.",
            ],
        ),
        (
            "alertmanager_route",
            {"group_intervall": "5m"},
            ["Unknown key 'group_intervall' in alertmanager_route: did you mean 'group_interval'?"],
        ),
        (
            "tuning_sysctl",
            {"vm.swappiness": [10]},
            ["In tuning_sysctl, vm.swappiness is a list: give text, a number, true or false."],
        ),
        (
            "fabric_ofi_wrapper_sha256",
            {"a.cpp": "abc"},
            ["In fabric_ofi_wrapper_sha256, a.cpp is 'abc': give text that matches ^[0-9a-fA-F]{64}$."],
        ),
        ("grafana_settings", {"server": 5}, ["In grafana_settings, server is 5: give a mapping."]),
        (
            "trainer_environment",
            {"A": {"b": 1}, "B": None, "C": 1},
            ["In trainer_environment, A is a mapping: give text, a number, true or false or null."],
        ),
    ],
)
def test_a_misspelt_key_or_a_value_of_another_kind_is_named(name: str, value: Any, sentences: list[str]) -> None:
    assert said(name, value) == sentences


@pytest.mark.parametrize("value", [None, ...])
def test_nothing_and_what_is_not_known_are_right(value: object) -> None:
    assert [said(name, value) for name in sorted(DICTIONARIES)] == [[]] * len(DICTIONARIES)


def test_what_the_roles_and_their_documents_have_is_right() -> None:
    looked = 0
    for path in [*ROOT.glob("roles/*/defaults/main.yml"), *ROOT.glob("examples/inventory/group_vars/*.yml")]:
        values = yaml.safe_load(path.read_text())
        for name in DICTIONARIES.intersection(values):
            looked += 1
            assert said(name, plain(values, name)) == [], path
    assert looked >= 10


def mappings(options: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The options whose keys Ansible does not check."""
    kinds = {name: (option.get("type"), option.get("elements")) for name, option in options.items()}
    return {
        name: options[name]
        for name, kind in kinds.items()
        if "dict" in kind and (not options[name].get("options") or mappings(options[name]["options"]))
    }


def test_every_variable_that_is_a_mapping_is_looked_at() -> None:
    found: set[str] = set()
    for path in ROOT.glob("roles/*/meta/argument_specs.yml"):
        for entry in yaml.safe_load(path.read_text())["argument_specs"].values():
            found |= set(mappings(entry.get("options", {})))
    assert found - ELSEWHERE == DICTIONARIES
    assert found >= ELSEWHERE


def test_a_job_has_the_keys_of_its_specification() -> None:
    options = yaml.safe_load((ROOT / "roles/prometheus/meta/argument_specs.yml").read_text())["argument_specs"]["main"][
        "options"
    ]["prometheus_jobs"]["options"]
    assert said("prometheus_jobs", [dict.fromkeys(options, ...)]) == []
    (sentence,) = said("prometheus_jobs", [{"zzzz": 1}])
    assert set(sentence.partition("give ")[2].rstrip(".").replace(" or ", ", ").split(", ")) == set(options)
