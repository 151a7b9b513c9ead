"""The manifests of a job, in the order in which they are applied: what the job needs, then the job.

Kubeflow Trainer keeps the runtime of a TrainJob as it is when the job is first seen, so the runtime goes first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gaudi3_scale.kubernetes import pod
from gaudi3_scale.kubernetes.kubernetes_job import KubernetesJob

DEVICE_CLASS = "gaudi.intel.com"
"""Of Intel's DRA driver, whose attributes of a card have this name as their domain."""
OF_CARDS = f'device.attributes["{DEVICE_CLASS}"].model == "Gaudi3" && device.attributes["{DEVICE_CLASS}"].healthy'
STEP = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
"""By which Kubeflow Trainer finds the part of a runtime that trains."""


@dataclass(frozen=True)
class KubernetesObject:
    """One object."""

    file: str
    """Name of its file; kubectl applies the files of a folder in the order of their names."""
    about: str
    """What it is for, as a comment."""
    document: dict[str, Any]


def manifests(job: KubernetesJob) -> list[KubernetesObject]:
    """All of a job."""
    found = []
    if job.on_cards and job.options.devices == "dra":
        about = "The cards of a node, as one claim: two claims would set the same variables twice."
        found.append(KubernetesObject("10-cards.yml", about, claim_template(job)))
    if job.text is not None:
        found.append(KubernetesObject("20-job-file.yml", "What gaudi3-train fit reads in each pod.", config_map(job)))
    if job.options.network_policy:
        about = "Whoever reaches the port where the nodes meet can join them: only pods of the job do."
        found.append(KubernetesObject("30-network.yml", about, network_policy(job)))
    if job.options.pod_monitor is not None:
        found.append(KubernetesObject("40-metrics.yml", "Metrics of the pods for Prometheus.", pod_monitor(job)))
    if job.options.kind == "jobset":
        found.append(KubernetesObject("60-job.yml", "The job.", job_set(job)))
    else:
        about = "How the job runs: its TrainJob cannot carry claims, or what to do when a pod ends."
        found.append(KubernetesObject("50-runtime.yml", about, training_runtime(job)))
        found.append(KubernetesObject("60-job.yml", "The job. Apply the runtime first.", train_job(job)))
    return found


def claim_template(job: KubernetesJob) -> dict[str, Any]:
    """Cards of one node, by number: with 'All' a node that lost a card would give seven to eight processes."""
    request = {
        "deviceClassName": DEVICE_CLASS,
        "allocationMode": "ExactCount",
        "count": job.options.processes_per_node,
        "selectors": [{"cel": {"expression": OF_CARDS}}],
    }
    spec = {"spec": {"devices": {"requests": [{"name": pod.CARDS, "exactly": request}]}}}
    return _object(job, "resource.k8s.io/v1", "ResourceClaimTemplate", pod.claim_name(job), spec=spec)


def config_map(job: KubernetesJob) -> dict[str, Any]:
    """The job file. It cannot be changed, as pods that start again would go on with another one than they began."""
    return _object(job, "v1", "ConfigMap", pod.config_map_name(job), immutable=True, data={pod.FILE: job.text})


def network_policy(job: KubernetesJob) -> dict[str, Any]:
    """Who reaches the pods."""
    ingress: list[dict[str, Any]] = [{"from": [{"podSelector": {"matchLabels": job.labels}}]}]
    monitor = job.options.pod_monitor
    if monitor is not None:
        of_prometheus = {"matchLabels": {"kubernetes.io/metadata.name": monitor.namespace}}
        ports = [{"protocol": "TCP", "port": job.metrics_port}]
        ingress.append({"from": [{"namespaceSelector": of_prometheus}], "ports": ports})
    spec = {"podSelector": {"matchLabels": job.labels}, "policyTypes": ["Ingress"], "ingress": ingress}
    return _object(job, "networking.k8s.io/v1", "NetworkPolicy", job.options.name, spec=spec)


def pod_monitor(job: KubernetesJob) -> dict[str, Any]:
    """The metrics, one target for each pod."""
    given = job.options.pod_monitor
    assert given is not None
    endpoint: dict[str, Any] = {"port": "metrics", "path": "/metrics"}
    if given.interval is not None:
        endpoint["interval"] = given.interval
    if given.tls_config is not None:
        endpoint |= {"scheme": "https", "tlsConfig": given.tls_config}
    spec = {"selector": {"matchLabels": job.labels}, "podMetricsEndpoints": [endpoint]}
    found = _object(job, "monitoring.coreos.com/v1", "PodMonitor", job.options.name, spec=spec)
    found["metadata"]["labels"] = {**job.labels, **given.labels}
    return found


def training_runtime(job: KubernetesJob) -> dict[str, Any]:
    """A runtime for this job alone."""
    spec = {
        "mlPolicy": {"numNodes": job.options.nodes, "torch": {}},
        "template": {"spec": _job_set(job, {}, {}, STEP)},
    }
    found = _object(job, "trainer.kubeflow.org/v1alpha1", "TrainingRuntime", _runtime_name(job), spec=spec)
    found["metadata"]["labels"] = {**job.labels, "trainer.kubeflow.org/framework": "torch"}
    return found


def train_job(job: KubernetesJob) -> dict[str, Any]:
    """The job; how many processes a node has is said, as Kubeflow Trainer would count processors.

    It has no resourcesPerNode, beside which the claims of the runtime are lost.
    """
    options = job.options
    spec = {
        "runtimeRef": {
            "apiGroup": "trainer.kubeflow.org",
            "kind": "TrainingRuntime",
            "name": _runtime_name(job),
        },
        "trainer": {
            "numNodes": options.nodes,
            "numProcPerNode": options.processes_per_node,
            "command": pod.COMMAND,
            "args": pod.arguments(job),
            "env": pod.variables(job),
        },
    }
    return _queued(job, _object(job, "trainer.kubeflow.org/v1alpha1", "TrainJob", options.name, spec=spec))


def job_set(job: KubernetesJob) -> dict[str, Any]:
    """The job without Kubeflow Trainer."""
    nodes = job.options.nodes
    runs = {
        "command": pod.COMMAND,
        "args": pod.arguments(job),
        "env": [*pod.meeting(job), *pod.variables(job)],
    }
    spec = _job_set(job, runs, {"parallelism": nodes, "completions": nodes}, {})
    return _queued(job, _object(job, "jobset.x-k8s.io/v1alpha2", "JobSet", job.options.name, spec=spec))


def _job_set(
    job: KubernetesJob, runs: dict[str, Any], counts: dict[str, Any], labels: dict[str, str]
) -> dict[str, Any]:
    template = {
        **({"metadata": {"labels": labels}} if labels else {}),
        "spec": pod.replicated_job(job, runs, counts),
    }
    replicas = {"replicas": 1} if counts else {}
    return {
        "failurePolicy": pod.failure_policy(job),
        "replicatedJobs": [{"name": pod.NODE, **replicas, "template": template}],
    }


def _runtime_name(job: KubernetesJob) -> str:
    return f"{job.options.name}-runtime"


def _queued(job: KubernetesJob, document: dict[str, Any]) -> dict[str, Any]:
    if job.options.queue is not None:
        document["metadata"]["labels"] = {**job.labels, "kueue.x-k8s.io/queue-name": job.options.queue}
    return document


def _object(job: KubernetesJob, version: str, kind: str, name: str, **rest: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": job.options.namespace, "labels": job.labels}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **rest}
