"""Run by an environment of requirements/kubernetes.txt: which of its packages refuse documents, and with which words.

Standard input has {case: [document, ...]} as JSON; standard output {case: {judge: [words, ...]}}. The Job in a runtime
or JobSet is judged as a Job of its own, since Kubernetes' own packages know nothing of what it is in.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import kubernetes_validate
from kubeflow_trainer_api import models
from kubernetes import client
from pydantic import ValidationError

VERSIONS = ("1.34", "1.35", "1.36", "1.37")
"""With resource.k8s.io/v1, up to the newest of the package."""
KUBEFLOW = {
    "TrainJob": models.TrainerV1alpha1TrainJob,
    "TrainingRuntime": models.TrainerV1alpha1TrainingRuntime,
    "JobSet": models.JobsetV1alpha2JobSet,
}
KUBERNETES = {
    "ResourceClaimTemplate": client.V1ResourceClaimTemplate,
    "ConfigMap": client.V1ConfigMap,
    "NetworkPolicy": client.V1NetworkPolicy,
    "Job": client.V1Job,
}


def builtin(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What of a document Kubernetes itself knows."""
    if document["kind"] in KUBERNETES:
        yield document
    spec = document["spec"]["template"]["spec"] if document["kind"] == "TrainingRuntime" else document.get("spec", {})
    for each in spec.get("replicatedJobs", ()):
        yield {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, "spec": each["template"]["spec"]}


def of_kubeflow(document: dict[str, Any]) -> Iterator[str]:
    """An error, or that something did not come back: unknown fields are dropped."""
    model = KUBEFLOW.get(document["kind"])
    if model is None:
        return
    try:
        back = json.loads(model.from_dict(document).to_json())
    except (ValidationError, ValueError, TypeError, AttributeError) as error:
        yield str(error).splitlines()[0]
        return
    if back != document:
        yield "does not come back as it went in"


def of_kubernetes(document: dict[str, Any]) -> Iterator[str]:
    """An error of the client's models, which take no unknown field."""
    for each in builtin(document):
        try:
            KUBERNETES[each["kind"]].model_validate(each)
        except ValidationError as error:
            yield str(error).splitlines()[1]


def of_schemas(document: dict[str, Any]) -> Iterator[str]:
    """An error of the schemas of any version."""
    for each in builtin(document):
        for version in VERSIONS:
            try:
                kubernetes_validate.validate(each, version, strict=True)
            except (kubernetes_validate.ValidationError, kubernetes_validate.SchemaNotFoundError) as error:
                yield f"{version}: {str(error).splitlines()[0]}"


JUDGES = {"Kubeflow's models": of_kubeflow, "Kubernetes' models": of_kubernetes, "kubernetes-validate": of_schemas}


def main() -> None:
    """Judge what is given."""
    cases: dict[str, list[dict[str, Any]]] = json.load(sys.stdin)
    found = {
        case: {name: [words for each in documents for words in judge(each)] for name, judge in JUDGES.items()}
        for case, documents in cases.items()
    }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
