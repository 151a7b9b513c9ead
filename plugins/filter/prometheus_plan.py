# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Say what Prometheus is configured with, beside what the host had before."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.gaudi3.scale.plugins.module_utils._host.address import cluster_address, single_host
from ansible_collections.gaudi3.scale.plugins.module_utils._monitoring import prometheus
from ansible_collections.gaudi3.scale.plugins.module_utils._printable import printable
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.plugin_utils.filters import filter_module

DOCUMENTATION = r"""
name: prometheus_plan
short_description: Say what Prometheus is configured with, beside what the host had before
version_added: 0.1.0
author:
  - gaudi3.scale contributors (@gaudi3)
description:
  - Never raises for what the variables hold. What is wrong with them is in C(problem).
options:
  _input:
    description: As C(_prometheus_wanted) of the role prometheus; the variables of all hosts are the argument.
    type: raw
    required: true
"""

EXAMPLES = r"""
- name: Show it
  ansible.builtin.debug:
    msg: "{{ given | gaudi3.scale.prometheus_plan }}"
"""

RETURN = r"""
_value:
  description: The keys problem, configuration, arguments, targets, nodes and replaced.
  type: raw
  sample: {problem: ""}
"""


_BOOLEANS = {"true": True, "yes": True, "on": True, "y": True, "false": False, "no": False, "off": False, "n": False}
#: Mappings of Prometheus' configuration whose names are the site's own.
_TEXTS = {"labels", "external_labels", "params", "headers"}
#: Fields of Prometheus' configuration that are booleans.
_SWITCHES = {
    "honor_labels", "honor_timestamps", "track_timestamps_staleness", "follow_redirects", "enable_http2",
    "insecure_skip_verify", "enable_compression", "send", "send_exemplars", "send_native_histograms", "read_recent",
    "filter_external_labels", "retry_on_http_429", "proxy_from_environment", "own_namespace", "allow_stale",
    "all_tenants", "include_parameters", "scrape_classic_histograms", "always_scrape_classic_histograms", "node",
    "convert_classic_histograms_to_nhcb",
}  # fmt: skip


def prometheus_plan(given: Mapping[str, Any], hostvars: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """See DOCUMENTATION."""
    plan: dict[str, Any] = {
        "problem": "",
        "configuration": {},
        "arguments": [],
        "targets": {},
        "nodes": {},
        "replaced": [],
    }
    if not isinstance(given, Mapping):
        raise AnsibleFilterError("prometheus_plan takes a dictionary.")
    try:
        addresses = _addresses(given, hostvars)
        plan["targets"] = {job["name"]: _targets(job, given, addresses) for job in given["jobs"]}
        plan["nodes"] = {host: addresses[host] for host in _hosts(["gaudi"], given) if host in addresses}
        claim = given["claim"]
        text = (claim.get("kept") or {}).get(given["config_file"], "")
        site = _read(text, given)
        own = prometheus.own_configuration(given)
        written = [f"{given['directory']}/targets-{job['name']}.yml" for job in given["jobs"]]
        try:
            both = prometheus.configuration(own, site, written, given["moved_ports"])
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise Refusal(
                f"{given['config_file']} of {given['host']} is no configuration of Prometheus "
                f"({printable(error, 200)}): correct it there."
            ) from error
        plan["configuration"], plan["replaced"] = both
        running = claim.get("running") or []
        before = running if running or claim.get("in_use") else None
        time, size = prometheus.retention(given["retention"], before, given["shorter_accepted"], given["host"])
        kept = [f"--storage.tsdb.retention.{name}={value}" for name, value in (("time", time), ("size", size)) if value]
        plan["arguments"] = prometheus.arguments(
            [*given["arguments"], *kept], given["extra_arguments"], claim.get("arguments") or [], given["config_file"]
        )
    except Refusal as refusal:
        plan["problem"] = str(refusal)
    return plan


def _hosts(names: Sequence[str], given: Mapping[str, Any]) -> list[str]:
    groups = given["groups"]
    return [
        host
        for host in dict.fromkeys(host for name in names for host in groups.get(name, []))
        if host not in given["gone"]
    ]


def _addresses(given: Mapping[str, Any], hostvars: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The address of every host that is watched."""
    found: dict[str, str] = {}
    for host in _hosts([name for job in given["jobs"] for name in ["gaudi", *job["groups"]]], given):
        said = cluster_address(host, hostvars.get(host) or {})
        address = single_host(said)
        if address is None:
            raise Refusal(
                f"{host} has the address {printable(said)!r}, which is no address of one host: correct its "
                "gaudi_cluster_address or ansible_host."
            )
        twin = next((name for name, known in found.items() if known == address), None)
        if twin:
            raise Refusal(
                f"{twin} and {host} both have the address {address}: correct gaudi_cluster_address or ansible_host of "
                "one, or put one name into both groups."
            )
        found[host] = address
    return found


def _targets(job: Mapping[str, Any], given: Mapping[str, Any], addresses: Mapping[str, str]) -> list[dict[str, Any]]:
    hosts = _hosts(job["groups"], given)
    shown = {host: f"[{addresses[host]}]" if ":" in addresses[host] else addresses[host] for host in hosts}
    return [{"targets": [f"{shown[host]}:{job['port']}"], "labels": {"instance": host}} for host in hosts]


def _read(text: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The site's configuration."""
    import yaml

    try:
        found = _with_booleans(yaml.load(text, Loader=_loader())) or {}
    except yaml.YAMLError as error:
        raise Refusal(
            f"{given['config_file']} of {given['host']} is no YAML ({printable(error)}): correct it there."
        ) from error
    if not isinstance(found, dict):
        raise Refusal(f"{given['config_file']} of {given['host']} is no configuration of Prometheus: correct it there.")
    return found


def _loader() -> Any:
    """Reads as Prometheus does, which takes for text what is written where it wants one: no, 1.10, 010, 12:30.

    So only numbers and booleans that are written again in the same way are ones.
    """
    import yaml

    loader: Any = type("Loader", (yaml.SafeLoader,), {"yaml_implicit_resolvers": {}})
    kinds = (
        ("bool", "true|false"),
        ("int", "0|-?[1-9][0-9]{0,17}"),
        ("float", "-?(?:0|[1-9][0-9]{0,8})[.][0-9]{0,3}[1-9]"),
    )
    for kind, form in (*kinds, ("null", "|~|null|Null|NULL"), ("merge", "<<")):
        loader.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", re.compile(rf"^(?:{form})$"), None)
    return loader


def _with_booleans(value: Any) -> Any:
    """The value, with booleans where Prometheus wants one and the site has another word for it."""
    if isinstance(value, list):
        return [_with_booleans(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for name, each in value.items():
        word = each.lower() if name in _SWITCHES and isinstance(each, str) else ""
        found[name] = each if name in _TEXTS else _BOOLEANS.get(word, _with_booleans(each))
    return found


FilterModule = filter_module(prometheus_plan=prometheus_plan)
