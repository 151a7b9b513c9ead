"""A model from the registry to those who ask it: registered, promoted, served, tried, taken back, with real MLflow.

The job, `gaudi3-train`, MLflow's server over SQLite, the module and HAProxy are real; vLLM is a stand-in.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from .module_node import ModuleNode
from .node import ROOT, free_ports, wait

MLFLOW = ROOT / ".cache/mlflow/bin/python"
JOB = """output_dir: run
model: {layers: 1, hidden_size: 64, heads: 2, kv_heads: 1, intermediate_size: 64, sequence_length: 64}
train: {max_steps: 4, threads: 1, micro_batch_size: 2, warmup_steps: 0}
checkpoint: {every: 2, keep: 4}
metrics: {enabled: false}
device: cpu
"""


class Registry:
    """MLflow's server, and the trainer's command beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder, (port,) = folder, free_ports(1)
        self.uri = f"http://127.0.0.1:{port}"
        self.command = folder / "gaudi3-train"
        self.command.write_text(
            f'#!/bin/sh\nPYTHONPATH={ROOT}/trainer/src exec {sys.executable} -m gaudi3_scale "$@"\n'
        )
        self.command.chmod(0o755)
        place = [f"sqlite:///{folder}/runs.db", f"{folder}/artifacts", str(port)]
        with (folder / "mlflow.log").open("w") as log:
            self._server = subprocess.Popen(
                [MLFLOW, "-P", ROOT / "trainer/tests/mlflow_server.py", *place],
                env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
                stdout=log,
                stderr=log,
            )
        asked = ["curl", "-sf", f"{self.uri}/health"]
        wait(lambda: subprocess.run(asked, capture_output=True).returncode == 0, 120, "MLflow's server")

    def trainer(self, *words: str) -> str:
        """What `gaudi3-train` prints."""
        environment = {**os.environ, "MLFLOW_TRACKING_URI": self.uri}
        done = subprocess.run(
            [self.command, *words], cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def stored(self) -> list[Path]:
        """The weights of all versions in the server's storage, the oldest first."""
        found = (self.folder / "artifacts").rglob("model.safetensors")
        return sorted(found, key=lambda path: path.stat().st_mtime_ns)

    def close(self) -> None:
        """End the server."""
        self._server.kill()
        self._server.wait()


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    """With versions 1 and 2 of a model, of steps 2 and 4 of a job; the first is the champion."""
    if not MLFLOW.exists():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"there is no {MLFLOW}: make .cache/mlflow/ready")
    folder = tmp_path / "registry"
    folder.mkdir()
    (folder / "job.yml").write_text(JOB)
    found = Registry(folder)
    try:
        found.trainer("fit", "--config", "job.yml")
        for step in ("2", "4"):
            found.trainer("register", "run", "--name", "notes", "--step", step)
        found.trainer("registry", "promote", "notes@1", "champion")
        yield found
    finally:
        found.close()


def checkpoint(registry: Registry, step: int) -> str:
    """The digest of a checkpoint, as anybody computes it from its manifest."""
    files = json.loads((registry.folder / f"run/checkpoints/step-{step:08}/manifest.json").read_text())["files"]
    return hashlib.sha256(json.dumps({name: files[name]["sha256"] for name in sorted(files)}).encode()).hexdigest()


def test_a_registered_model_is_served_tried_promoted_and_taken_back(registry: Registry, tmp_path: Path) -> None:
    folder = tmp_path / "node"
    folder.mkdir()
    variables = {"MLFLOW_TRACKING_URI": registry.uri, "MLFLOW_TRACKING_PASSWORD": "of-the-registry"}
    given: dict[str, Any] = {"trainer": str(registry.command), "registry_environment": variables}
    node = ModuleNode(folder, **given, served_name="", first_name="notes")
    try:
        _flow(registry, node)
    finally:
        node.close()


def _flow(registry: Registry, node: ModuleNode) -> None:
    champion = {"model": "registry:notes@champion"}
    client = replace(node.client, model="notes")

    def facts(link: str) -> dict[str, Any]:
        return dict(json.loads((node.root / link / "release.json").read_text()))

    predicted = node.run(check=True, **champion)
    assert predicted["changed"] and predicted["model"] == "registry:notes@1" and not node.root.exists()
    first = node.run(**champion)
    assert not first.get("failed"), first
    assert facts("current")["source"] == "registry:notes@1"
    assert facts("current")["checkpoint_sha256"] == checkpoint(registry, 2)
    assert first["said"] == (
        f"notes is served by 2 replicas with {first['current']} (registry:notes@1, checkpoint "
        f"{checkpoint(registry, 2)[:12]})."
    )
    # The release has a copy of its own, and nothing else is left.
    assert not (node.root / "fetched").exists()
    again = node.run(**champion)
    assert (again["changed"], again["done"]) == (False, [])

    # What somebody has changed in the storage is refused by name, and the old version serves on.
    weights = registry.stored()[1]
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    before = node.files()
    for state in ("checked", "serving"):
        refused = node.run(state=state, model="registry:notes@2")
        assert "In notes version 2 the file model.safetensors has another SHA-256" in refused["msg"]
        assert "\n" not in refused["msg"] and "of-the-registry" not in str(refused)
    assert node.files() == before and client.complete("a", 1).whole
    weights.write_bytes(whole)
    missing = node.run(model="registry:notes@canary")
    assert "notes has no canary: promote a version" in missing["msg"], missing

    # A dry run says that an alias has moved.
    registry.trainer("registry", "promote", "notes@candidate", "canary")
    canary = {"model": "registry:notes@canary", "canary": True}
    predicted = node.run(check=True, **canary)
    assert (predicted["changed"], predicted["model"]) == (True, "registry:notes@2")
    third = node.run(**canary)
    assert (third["current"], facts("canary")["source"]) == (first["current"], "registry:notes@2")
    registry.trainer("registry", "promote", "notes@canary", "champion")
    # A run serves everywhere what it has begun with; the next one follows the alias.
    begun = node.run(state="checked", **champion)
    assert begun["model"] == "registry:notes@2"
    registry.trainer("registry", "rollback", "notes")
    promoted = node.run(**champion, seen=begun)
    assert (promoted["current"], promoted["previous"]) == (third["canary"], first["current"])
    assert facts("current")["checkpoint_sha256"] == checkpoint(registry, 4)
    # Back by the registry: the release is there still, so that nothing is fetched or copied.
    for each in registry.stored():
        each.unlink()
    back = node.run(**champion)
    assert (back["current"], back["previous"]) == (first["current"], promoted["current"])
    assert client.complete("a", 1).whole
