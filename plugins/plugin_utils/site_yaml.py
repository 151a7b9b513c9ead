# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""YAML of a site's Prometheus, read as Prometheus reads it, and YAML that is written for services."""

from __future__ import annotations

import re
from typing import Any

import yaml
from ansible.plugins.filter.core import to_nice_yaml

_BOOLEANS = {"true": True, "yes": True, "on": True, "y": True, "false": False, "no": False, "off": False, "n": False}
_TEXTS = {"labels", "external_labels", "params", "headers"}
_SWITCHES = {
    "honor_labels", "honor_timestamps", "track_timestamps_staleness", "follow_redirects", "enable_http2",
    "insecure_skip_verify", "enable_compression", "send", "send_exemplars", "send_native_histograms", "read_recent",
    "filter_external_labels", "retry_on_http_429", "proxy_from_environment", "own_namespace", "allow_stale",
    "all_tenants", "include_parameters", "scrape_classic_histograms", "always_scrape_classic_histograms", "node",
    "convert_classic_histograms_to_nhcb",
}  # fmt: skip


def read(text: str) -> Any:
    """A site's configuration; ``ValueError`` for what is no YAML."""
    try:
        return _with_booleans(yaml.load(text, Loader=_loader()))
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def write(value: Any) -> str:
    """A value as YAML, its keys in their order."""
    text: str = to_nice_yaml(value, sort_keys=False)
    return text


def _loader() -> Any:
    """Reads as Prometheus does, which takes for text what is written where it wants one: no, 1.10, 010, 12:30.

    So only numbers and booleans that are written again in the same way are ones.
    """
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
