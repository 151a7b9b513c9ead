"""Schemas of what `gaudi3-train kubernetes` writes, reduced to the fields that it writes: any other is refused.

They come from the definitions of kubeflow/trainer, kubernetes-sigs/jobset, prometheus-operator/prometheus-operator and
Kubernetes, all Apache License 2.0; the file says which version of each. To take newer ones, put their files into a
folder and run

    PYTHONPATH=trainer/src:trainer/tests python trainer/tests/kubernetes_schemas.py FOLDER
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import jsonschema
import yaml
from kubernetes_jobs import Document, every_form

FILE = Path(__file__).with_suffix(".json")
SOURCES = {
    "TrainJob": ("trainer.kubeflow.org_trainjobs.yaml", "kubeflow/trainer v2.3.0, manifests/base/crds"),
    "TrainingRuntime": ("trainer.kubeflow.org_trainingruntimes.yaml", "kubeflow/trainer v2.3.0, manifests/base/crds"),
    "JobSet": ("jobset.x-k8s.io_jobsets.yaml", "kubernetes-sigs/jobset v0.12.0, config/components/crd/bases"),
    "PodMonitor": (
        "monitoring.coreos.com_podmonitors.yaml",
        "prometheus-operator/prometheus-operator v0.93.0, example/prometheus-operator-crd",
    ),
    "ResourceClaimTemplate": ("resourceclaimtemplate-resource-v1.json", "kubernetes-validate 1.37.0, v1.37.0-local"),
    "ConfigMap": ("configmap-v1.json", "kubernetes-validate 1.37.0, v1.37.0-local"),
    "NetworkPolicy": ("networkpolicy-networking-v1.json", "kubernetes-validate 1.37.0, v1.37.0-local"),
}
"""For each kind its file, and where that is from."""
WHOLE = ("tlsConfig",)
"""Fields whose value is the user's."""
KEPT = ("type", "enum", "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "anyOf",
        "format", "x-kubernetes-int-or-string")  # fmt: skip


def problem(document: Document) -> str | None:
    """Why the schema of its kind refuses a document; None where it does not."""
    stored = json.loads(FILE.read_text())["schemas"]
    if document.get("kind") not in stored:
        return f"there is no schema of the kind {document.get('kind')!r}"
    found = jsonschema.Draft7Validator(stored[document["kind"]]).iter_errors(document)
    return next((f"{error.json_path}: {error.message[:200]}" for error in found), None)


def reduced(schema: Any, values: list[Any], name: str = "") -> Any:
    """The part of a schema that says something about these values; objects have no other fields than theirs."""
    whole = name in WHOLE
    found = {key: value for key, value in schema.items() if key in KEPT}
    if isinstance(found.get("type"), list):
        found["type"] = [each for each in found["type"] if each != "null"]
    fields = schema.get("properties")
    if isinstance(fields, dict):
        objects = [value for value in values if isinstance(value, dict)]
        found["properties"] = {
            field: reduced(part, [value[field] for value in objects if field in value], name if whole else field)
            for field, part in fields.items()
            if whole or any(field in value for value in objects)
        }
        found["required"] = schema.get("required", [])
        found["additionalProperties"] = False
    elif isinstance(schema.get("additionalProperties"), dict):
        found["additionalProperties"] = reduced(schema["additionalProperties"], [])
    if isinstance(schema.get("items"), dict):
        items = [each for value in values if isinstance(value, list) for each in value]
        found["items"] = reduced(schema["items"], items, name if whole else "")
    return found


def _resolved(schema: Any, root: Any, depth: int = 0) -> Any:
    """Without references to definitions."""
    if isinstance(schema, list):
        return [_resolved(each, root, depth) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema and depth < 40:
        return _resolved(root["$defs"][schema["$ref"].rpartition("/")[2]], root, depth + 1)
    return {key: _resolved(value, root, depth) for key, value in schema.items()}


def _schema_of(kind: str, folder: Path, version: str) -> Any:
    text = yaml.safe_load((folder / SOURCES[kind][0]).read_text())
    if "spec" not in text or "versions" not in text["spec"]:
        return _resolved(text, json.loads((folder / "_definitions.json").read_text()))
    found = next(each for each in text["spec"]["versions"] if each["name"] == version)["schema"]["openAPIV3Schema"]
    about = {"type": "string"}
    texts = {"type": "object", "additionalProperties": about}
    metadata = {"name": about, "namespace": about, "labels": texts, "annotations": texts}
    found["properties"] |= {"metadata": {"type": "object", "properties": metadata, "required": ["name"]}}
    found["required"] = sorted({*found.get("required", []), "apiVersion", "kind", "metadata", "spec"})
    return found


def _make(folder: Path) -> None:
    written = [document for _, documents in every_form() for document in documents]
    schemas = {}
    for kind in SOURCES:
        mine = [document for document in written if document["kind"] == kind]
        schemas[kind] = reduced(_schema_of(kind, folder, mine[0]["apiVersion"].rpartition("/")[2]), mine)
        schemas[kind]["properties"] |= {key: {"const": mine[0][key]} for key in ("apiVersion", "kind")}
    about = "Reduced from the files named here, which are under the Apache License 2.0, by kubernetes_schemas.py."
    sources = {kind: f"{where}/{file}" for kind, (file, where) in SOURCES.items()}
    FILE.write_text(json.dumps({"about": about, "sources": sources, "schemas": schemas}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    _make(Path(sys.argv[1]))
