# Copyright (c) 2026 gaudi3.scale contributors
# Apache License 2.0 (see LICENSE or https://www.apache.org/licenses/LICENSE-2.0)
"""Why a run with these tags would not do what was meant, and still end as if all were well."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from .._printable import printable
from .near import nearest

PHASES = ("preflight", "tuning", "drivers", "fabric", "firewall", "pytorch", "monitoring", "train", "verify")
#: All tags of the collection's playbooks and roles, in the order of the alphabet.
TAGS = (
    "alertmanager", "backup", "backup_install", "backup_preflight", "data", "data_install", "data_preflight",
    "drivers", "fabric", "firewall", "firewall_preflight", "grafana", "hpu_exporter",
    "hpu_exporter_install", "hpu_exporter_preflight", "hpu_exporter_verify", "logs", "logs_install", "logs_preflight",
    "monitoring", "node_exporter",
    "node_exporter_configure", "node_exporter_install", "node_exporter_preflight", "node_health",
    "node_health_install", "node_health_preflight", "preflight", "prometheus", "prometheus_targets",
    "prometheus_verify", "pytorch", "pytorch_install", "pytorch_preflight", "serving", "serving_install",
    "serving_preflight", "slurm", "slurm_install", "slurm_preflight",
    "synapseai", "synapseai_configure", "synapseai_install",
    "synapseai_load", "synapseai_preflight", "train", "trainer", "trainer_install",
    "trainer_job", "trainer_preflight", "tuning", "verify", "watch",
)  # fmt: skip
_OF_ANSIBLE = ("all", "always", "never", "tagged", "untagged")


def tags_problem(given: Mapping[str, Any], root: str) -> str:
    """Which tag nothing has, in one sentence; else empty.

    ``given`` are the arguments of ansible-playbook, ``root`` is the collection's folder. A playbook that is not the
    collection's may have tags of its own.
    """
    playbooks = [str(each) for each in given.get("args") or ()]
    if not playbooks or not all(_is_own(each, root) for each in playbooks):
        return ""
    for option in ("tags", "skip_tags"):
        for tag in given.get(option) or ():
            if tag not in (*TAGS, *_OF_ANSIBLE):
                return f"--{option.replace('_', '-')} has {printable(tag, 100)}, which {_meant(str(tag), TAGS)}"
    return ""


def _meant(tag: str, known: Sequence[str]) -> str:
    near = nearest(tag, known, 0.6)
    phases = f"give a phase, which is one of {', '.join(PHASES)}, or a tag of a role."
    return f"is no tag of this collection: {f'did you mean {near}?' if near else phases}"


def _is_own(playbook: str, root: str) -> bool:
    if playbook.startswith("gaudi3.scale."):
        return True
    path, own = os.path.realpath(playbook), os.path.realpath(root)
    return path == os.path.join(own, "site.yml") or os.path.dirname(path) == os.path.join(own, "playbooks")
