# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""What is wrong with variables that are mappings, or lists of them: before any host changes, wherever they are used.

Parts that Prometheus, Alertmanager and Grafana define have the keys of their documents: Prometheus 3.5 (configuration,
web configuration), Alertmanager 0.28 (route, inhibition). What they take as a value, their own checks say when the file
is written. Not looked at: ``prometheus_extra_scrape_configs`` and ``alertmanager_global``, whose keys grow with each
release, and ``*_secrets``, which have a check of their own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .job_config import interruption_faults
from .shapes import Fault, Table, field_faults

Field = Mapping[str, Any]

_ANY: Field = {"type": "any"}
_TEXT: Field = {"type": "str"}
_LIST: Field = {"type": "list"}
_MAPPING: Field = {"type": "mapping"}
_SCALAR: Field = {"type": "scalar"}
_SWITCH: Field = {"type": "bool"}
_COUNT: Field = {"type": "int", "least": 0}


def _section(name: str, fields: Mapping[str, Field], **more: Any) -> dict[str, Field]:
    """The rows of a mapping and its keys; ``name`` may end in ``[]`` for a list of such mappings."""
    kind = "list" if name.endswith("[]") else "section"
    return {name.removesuffix("[]"): {"type": kind, **more}, **{f"{name}.{key}": each for key, each in fields.items()}}


def _keys(names: str, field: Field) -> dict[str, Field]:
    return dict.fromkeys(names.split(), field)


_TLS_CLIENT = {
    **_keys("ca ca_file cert cert_file key key_file server_name min_version max_version", _TEXT),
    "insecure_skip_verify": _SWITCH,
}
_RELABEL = {
    "source_labels": _LIST,
    **_keys("separator target_label regex replacement", _SCALAR),
    "modulus": _COUNT,
    "action": {
        "type": "str",
        "choices": [
            "replace", "lowercase", "uppercase", "keep", "drop", "keepequal", "dropequal", "hashmod", "labelmap",
            "labeldrop", "labelkeep",
        ],
    },
}  # fmt: skip
_LIMITS = {
    "body_size_limit": {"type": "str", "pattern": r"^(0|[0-9]+([KMGTPE]i?)?B)$"},
    **_keys("sample_limit label_limit label_name_length_limit label_value_length_limit", _COUNT),
}
_ENVIRONMENT = {"*": {"type": "scalar", "null": True}}
_ROUTE = {
    **_keys("receiver group_wait group_interval repeat_interval", _TEXT),
    **_keys("group_by matchers mute_time_intervals active_time_intervals", _LIST),
    **_keys("match match_re", _MAPPING),
    "continue": _SWITCH,
    "routes": {"type": "list", "items": _MAPPING},
}
_FIELDS: dict[str, Field] = {
    **_section("alertmanager_receivers[]", {"name": {**_TEXT, "required": True}, "*_configs": _LIST}),
    **_section("alertmanager_route", _ROUTE),
    **_section(
        "alertmanager_inhibit_rules[]",
        {
            "name": _TEXT,
            **_keys("target_match target_match_re source_match source_match_re", _MAPPING),
            **_keys("target_matchers source_matchers equal", _LIST),
        },
    ),
    **_section("data_remotes", {"*": _MAPPING}),
    **_section("data_remote_secrets", {"*": _MAPPING}),
    **_section("fabric_environment", _ENVIRONMENT),
    **_section("fabric_ofi_wrapper_sha256", {"*": {"type": "str", "pattern": "^[0-9a-fA-F]{64}$"}}),
    **_section("backup_environment", {"*": _SCALAR}),
    **_section("backup_keep", _keys("last daily weekly monthly", _COUNT)),
    **_section("grafana_settings", {"*": _MAPPING}),
    **_section("node_exporter_web_config", {"basic_auth_users": _MAPPING}),
    **_section(
        "node_exporter_web_config.tls_server_config",
        {
            **_keys("cert cert_file key key_file client_ca client_ca_file min_version max_version", _TEXT),
            "client_auth_type": {
                "type": "str",
                "choices": [
                    "NoClientCert", "RequestClientCert", "RequireAnyClientCert", "RequireClientCert",
                    "VerifyClientCertIfGiven", "RequireAndVerifyClientCert",
                ],
            },
            **_keys("cipher_suites curve_preferences client_allowed_sans", _LIST),
            "prefer_server_cipher_suites": _SWITCH,
        },
    ),
    **_section("node_exporter_web_config.http_server_config", {"http2": _SWITCH, "headers": _MAPPING}),
    **_section("prometheus_external_labels", {"*": _SCALAR}),
    **_section("prometheus_hpu_metric_relabel_configs[]", _RELABEL),
    **_section("prometheus_metrics_tls_config", _TLS_CLIENT),
    **_section("prometheus_scrape_limits", _LIMITS),
    **_section("serving_environment", _ENVIRONMENT),
    **_section("serving_registry_environment", _ENVIRONMENT),
    **_section("slurm_packages", _keys("node controller accounting", _LIST)),
    **_section("slurm_settings", {"*": _SCALAR}),
    **_section("trainer_environment", _ENVIRONMENT),
    **_section("tuning_sysctl", {"*": _SCALAR}),
    **_section("tuning_sysfs", {"*": _SCALAR}),
    # Their own types are the specification's to check.
    **_section(
        "prometheus_jobs[]",
        {**_keys("name groups port service scrape_interval scrape_timeout metrics_path", _ANY), **_LIMITS},
    ),
    **_section("prometheus_jobs[].replicas", {"*": _SCALAR}),
    **_section("prometheus_jobs[].tls_config", _TLS_CLIENT),
    **_section("prometheus_jobs[].metric_relabel_configs[]", _RELABEL),
}  # fmt: skip

#: The variables that are looked at.
DICTIONARIES = frozenset({"trainer_interruption", *(name for name in _FIELDS if "." not in name)})


def dictionary_faults(name: str, value: object) -> list[Fault]:
    """Everything that is wrong with the value of one of ``DICTIONARIES``; names before values, as they explain most.

    ``None`` stands for nothing given. A value of ``...`` is not known, and right.
    """
    if value is None or value is ...:
        return []
    if name == "trainer_interruption":
        found = interruption_faults(value)
    else:
        found = list(
            field_faults(
                value,
                name,
                Table({key: field for key, field in _FIELDS.items() if re.split(r"[.\[]", key)[0] == name}, name),
            )
        )
    return sorted(found, key=lambda fault: not fault.sentence.startswith("Unknown"))
