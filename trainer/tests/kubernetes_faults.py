"""Manifests that are wrong, and what of them belongs together: no schema of one kind sees the latter."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from kubernetes_jobs import Document

HUGE = "hugepages-2Mi"


def job_template(documents: list[Document]) -> Document:
    """The Job of the pods, whatever it is in."""
    (found,) = [each for each in documents if each["kind"] in ("TrainingRuntime", "JobSet")]
    spec = found["spec"]["template"]["spec"] if found["kind"] == "TrainingRuntime" else found["spec"]
    template: Document = spec["replicatedJobs"][0]["template"]
    return template


def pod(documents: list[Document]) -> Document:
    """The pod of a node."""
    found: Document = job_template(documents)["spec"]["template"]["spec"]
    return found


def container(documents: list[Document]) -> Document:
    """The only one of the pod."""
    found: Document = pod(documents)["containers"][0]
    return found


def kind(documents: list[Document], name: str) -> Document | None:
    """The document of a kind, if there is one."""
    return next((each for each in documents if each["kind"] == name), None)


def variables(documents: list[Document]) -> dict[str, Any]:
    """Of the processes."""
    train = kind(documents, "TrainJob")
    listed = [*container(documents).get("env", []), *(train["spec"]["trainer"]["env"] if train else [])]
    assert len({each["name"] for each in listed}) == len(listed), "a variable twice"
    return {each["name"]: each.get("value") for each in listed}


def strife(documents: list[Document]) -> Iterator[str]:
    """What does not go together."""
    yield from _cards(documents)
    yield from _pages(documents)
    found, runs, job = pod(documents), container(documents), job_template(documents)["spec"]
    if {each["name"] for each in runs["volumeMounts"]} != {each["name"] for each in found["volumes"]}:
        yield "mounts and volumes"
    config_map = kind(documents, "ConfigMap")
    named = [each["configMap"]["name"] for each in found["volumes"] if each["name"] == "job"]
    if named != ([config_map["metadata"]["name"]] if config_map else []):
        yield "the job file"
    if found.get("restartPolicy") != "Never" and "podFailurePolicy" in job:
        yield "restartPolicy"
    if found["terminationGracePeriodSeconds"] <= int(variables(documents)["TORCH_ELASTIC_SHUTDOWN_TIMEOUT"]):
        yield "time to save"
    train, runtime = kind(documents, "TrainJob"), kind(documents, "TrainingRuntime")
    if train is not None:
        trainer = train["spec"]["trainer"]
        if {"PET_NNODES", "PET_NPROC_PER_NODE", "PET_NODE_RANK", "PET_MASTER_ADDR", "PET_MASTER_PORT"} & set(
            variables(documents)
        ):
            yield "reserved variables"
        if "resourcesPerNode" in trainer or "numProcPerNode" not in trainer:
            yield "resources or processes of a TrainJob"
        if runtime is None or documents.index(runtime) > documents.index(train):
            yield "order"
        elif train["spec"]["runtimeRef"]["name"] != runtime["metadata"]["name"]:
            yield "the runtime's name"
    monitor = kind(documents, "PodMonitor")
    ports = {each["name"]: each["containerPort"] for each in runs.get("ports", [])}
    for endpoint in monitor["spec"]["podMetricsEndpoints"] if monitor else ():
        if endpoint["port"] not in ports:
            yield "the monitor's port"
    labels = job["template"]["metadata"]["labels"]
    for selector in filter(None, (monitor, kind(documents, "NetworkPolicy"))):
        spec = selector["spec"]
        if not (spec.get("selector") or spec.get("podSelector"))["matchLabels"].items() <= labels.items():
            yield "labels"


def _cards(documents: list[Document]) -> Iterator[str]:
    found, runs, template = pod(documents), container(documents), kind(documents, "ResourceClaimTemplate")
    claims = {each["name"]: each["resourceClaimTemplateName"] for each in found.get("resourceClaims", [])}
    if [each["name"] for each in runs["resources"].get("claims", [])] != list(claims):
        yield "claims of pod and container"
    if list(claims.values()) != ([template["metadata"]["name"]] if template else []):
        yield "the template of claims"
    train, known = kind(documents, "TrainJob"), variables(documents)
    processes = train["spec"]["trainer"].get("numProcPerNode") if train else int(known["PET_NPROC_PER_NODE"])
    request = template["spec"]["spec"]["devices"]["requests"][0] if template else None
    plugin = runs["resources"]["limits"].get("habana.ai/gaudi")
    counts = [request["exactly"]["count"]] if request else [int(plugin)] if plugin else []
    if counts not in ([], [processes]):
        yield "cards and processes"


def _pages(documents: list[Document]) -> Iterator[str]:
    resources = container(documents)["resources"]
    requests, limits = resources["requests"], resources["limits"]
    if requests.get(HUGE) != limits.get(HUGE) or requests.get("habana.ai/gaudi") != limits.get("habana.ai/gaudi"):
        yield "request and limit"
    if HUGE in limits and not {"cpu", "memory"} & set(requests):
        yield "cpu or memory beside huge pages"


def _at(path: str, value: Any) -> Callable[[list[Document]], None]:
    """A change of one field: KIND.field.0.field; None takes it away."""

    def change(documents: list[Document]) -> None:
        name, *keys = path.split(".")
        place: Any = container(documents) if name == "container" else pod(documents) if name == "pod" else None
        if name == "job":
            place = job_template(documents)["spec"]
        place = kind(documents, name) if place is None else place
        for key in keys[:-1]:
            place = place[int(key) if key.isdecimal() else key]
        if value is None:
            del place[keys[-1]]
        else:
            place[int(keys[-1]) if keys[-1].isdecimal() else keys[-1]] = value

    return change


ONE_KIND: dict[str, Callable[[list[Document]], None]] = {
    "numNodes where it was in 2.0": _at("TrainJob.spec.numNodes", 4),
    "overrides of pods as in 2.0": _at("TrainJob.spec.podTemplateOverrides", []),
    "numNodes is a text": _at("TrainJob.spec.trainer.numNodes", "4"),
    "numProcPerNode is auto": _at("TrainJob.spec.trainer.numProcPerNode", "auto"),
    "no runtimeRef": _at("TrainJob.spec.runtimeRef", None),
    "claims on a TrainJob": _at("TrainJob.spec.trainer.resourceClaims", [{"name": "cards"}]),
    "a value that is a number": _at("TrainJob.spec.trainer.env.0.value", 4),
    "numProcPerNode in the runtime": _at("TrainingRuntime.spec.mlPolicy.torch.numProcPerNode", 8),
    "elasticPolicy": _at("TrainingRuntime.spec.mlPolicy.torch.elasticPolicy", {"minNodes": 1}),
    "an action that there is not": _at("TrainingRuntime.spec.template.spec.failurePolicy.rules.0.action", "Again"),
    "a strategy that there is not": _at("TrainingRuntime.spec.template.spec.failurePolicy.restartStrategy", "Slow"),
    "a rule without a name": _at("TrainingRuntime.spec.template.spec.failurePolicy.rules.0.name", None),
    "exit codes that are texts": _at("job.podFailurePolicy.rules.1.onExitCodes.values", ["75"]),
    "a misspelt field of the Job": _at("job.backofLimit", 0),
    "a misspelt field of the pod": _at("pod.resourceClaim", []),
    "a claim in the form of 1.30": _at("pod.resourceClaims.0", {"name": "cards", "source": {}}),
    "a misspelt field of the container": _at("container.volumeMount", []),
    "a number of cards that is a text": _at(
        "ResourceClaimTemplate.spec.spec.devices.requests.0.exactly.count", "8"
    ),
    "a class beside exactly": _at("ResourceClaimTemplate.spec.spec.devices.requests.0.deviceClassName", "x"),
    "no class": _at("ResourceClaimTemplate.spec.spec.devices.requests.0.exactly.deviceClassName", None),
    "an interval that is none": _at("PodMonitor.spec.podMetricsEndpoints.0.interval", "soon"),
    "a misspelt selector": _at("PodMonitor.spec.selectors", {}),
    "a misspelt rule of the network": _at("NetworkPolicy.spec.ingres", []),
}  # fmt: skip
"""What the schema of one kind has to refuse, by name."""

TOGETHER: dict[str, Callable[[list[Document]], None]] = {
    "huge pages: the limit is another": _at("container.resources.limits.hugepages-2Mi", "96000Mi"),
    "a claim that the pod does not have": _at("container.resources.claims", [{"name": "others"}]),
    "a template of another name": _at("pod.resourceClaims.0.resourceClaimTemplateName", "others"),
    "seven cards for eight processes": _at(
        "ResourceClaimTemplate.spec.spec.devices.requests.0.exactly.count", 7
    ),
    "restartPolicy OnFailure": _at("pod.restartPolicy", "OnFailure"),
    "too little time to save": _at("pod.terminationGracePeriodSeconds", 30),
    "PET_NNODES in a TrainJob": _at("TrainJob.spec.trainer.env.0", {"name": "PET_NNODES", "value": "4"}),
    "resourcesPerNode": _at("TrainJob.spec.trainer.resourcesPerNode", {}),
    "no numProcPerNode": _at("TrainJob.spec.trainer.numProcPerNode", None),
    "a runtime of another name": _at("TrainJob.spec.runtimeRef.name", "others"),
    "the job before its runtime": lambda documents: documents.reverse(),
    "a port that is not there": _at("container.ports.0.name", "other"),
    "a volume that is not there": _at("pod.volumes.1.name", "other"),
    "another job's file": _at("pod.volumes.0.configMap.name", "others"),
    "another job's pods": _at("NetworkPolicy.spec.podSelector.matchLabels", {"app.kubernetes.io/instance": "others"}),
}  # fmt: skip
"""What only all documents together show."""


def planted(documents: list[Document], change: Callable[[list[Document]], None]) -> list[Document]:
    """A copy with a fault."""
    found = copy.deepcopy(documents)
    change(found)
    return found
