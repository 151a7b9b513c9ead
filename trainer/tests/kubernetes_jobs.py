"""Jobs for Kubernetes that tests write and check: the least that is asked for, and all that there is."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from gaudi3_scale.config import Config
from gaudi3_scale.kubernetes.cluster_file import checked
from gaudi3_scale.kubernetes.kubernetes_job import KubernetesJob, make, uses_cards
from gaudi3_scale.kubernetes.manifests import manifests

Document = dict[str, Any]

LEAST: dict[str, Any] = {
    "name": "big",
    "namespace": "training",
    "image": "registry.example/gaudi3-train:1",
    "nodes": 4,
    "processes_per_node": 8,
    "cpu": 128,
    "memory": "800Gi",
    "shared_memory": "64Gi",
    "huge_pages": "95000Mi",
    "volumes": [{"claim": "checkpoints", "access": "ReadWriteMany", "path": "/checkpoints"}],
}
MORE: dict[str, Any] = {
    **LEAST,
    "volumes": [
        *LEAST["volumes"],
        {"claim": "corpus", "access": "ReadOnlyMany", "read_only": True, "path": "/data/corpus"},
        {"secret": "tls", "path": "/etc/tls", "read_only": True},
        {"config_map": "tokenizer", "path": "/etc/tokenizer", "read_only": True},
        {"host_path": "/mnt/fast", "path": "/fast"},
    ],
    "max_restarts": 3,
    "stop_timeout": 545,
    "threads": 4,
    "environment": {"HF_HUB_OFFLINE": 1, "LITERAL": "$(NAME) 1e3"},
    "environment_secrets": ["s3-keys"],
    "queue": "gaudi",
    "topology_preferred": "cloud.provider.com/topology-block",
    "pod_monitor": {
        "namespace": "monitoring",
        "labels": {"release": "prometheus"},
        "interval": "15s",
        "tls_config": {"ca": {"secret": {"name": "tls", "key": "ca.crt"}}, "serverName": "big"},
    },
    "image_pull_secrets": ["registry"],
    "image_folders": ["/opt/models"],
    "node_selector": {"intel.feature.node.kubernetes.io/gaudi": "true"},
    "tolerations": [{"key": "team", "operator": "Equal", "value": "a", "effect": "NoExecute", "tolerationSeconds": 60}],
    "service_account": "trainer",
    "run_as_user": 1000,
    "run_as_group": 1000,
    "fs_group": 1000,
    "host_ipc": True,
    "host_network": True,
    "network_policy": False,
}
JOB: dict[str, Any] = {"train": {"max_steps": 20000}}
MORE_JOB: dict[str, Any] = {
    "model": {"name": "/opt/models/llama"},
    "data": {"source": "/data/corpus/text"},
    "train": {"max_steps": 20000},
    "metrics": {"certificate": "/etc/tls/tls.crt", "key": "/etc/tls/tls.key"},
}


SCRIPT: dict[str, Any] = {
    **LEAST,
    "command": ["train.py", "--name", "$(NAME)"],
    "chdir": "/app",
    "image_folders": ["/app"],
}


def config_of(values: Mapping[str, Any]) -> Config:
    """A job file's values, for a cluster."""
    return Config.model_validate(copy.deepcopy(dict(values)), context={"elsewhere": True})


def made(job: Mapping[str, Any] | None, cluster: Mapping[str, Any]) -> KubernetesJob:
    """The job of these values, or of the cluster's command; ConfigError as of the command line."""
    config = config_of(job) if job is not None else None
    return make(config, checked(copy.deepcopy(dict(cluster)), config is None or uses_cards(config)))


def documents(job: Mapping[str, Any] | None, cluster: Mapping[str, Any]) -> list[Document]:
    """What is written for it."""
    return [each.document for each in manifests(made(job, cluster))]


def every_form() -> Iterator[tuple[str, list[Document]]]:
    """The least and the most, of both kinds, with cards of both ways and without any."""
    for kind in ("trainjob", "jobset"):
        for devices in ("dra", "plugin"):
            chosen = {"kind": kind, "devices": devices}
            yield f"least-{kind}-{devices}", documents(JOB, {**LEAST, **chosen})
            yield f"more-{kind}-{devices}", documents(MORE_JOB, {**MORE, **chosen})
            yield f"card-{kind}-{devices}", documents(JOB, {**LEAST, **chosen, "nodes": 1, "processes_per_node": 1})
        yield f"script-{kind}", documents(None, {**SCRIPT, "kind": kind})
        yield f"cpu-{kind}", documents({**JOB, "device": "cpu"}, {**LEAST, "kind": kind, "huge_pages": None})
    monitored = {**LEAST, "pod_monitor": {"namespace": "monitoring", "labels": {"release": "prometheus"}}}
    yield "monitored", documents(JOB, {**monitored, "queue": "gaudi", "topology_required": "rack"})


def one(documents: list[Document], kind: str) -> Document:
    """The only document of a kind."""
    (found,) = [each for each in documents if each["kind"] == kind]
    return found
