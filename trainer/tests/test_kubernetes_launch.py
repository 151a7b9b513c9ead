"""What a pod is told to run, run: the command and the variables of the manifests, without a cluster."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from conftest import SMALL, free_port
from kubernetes_faults import container
from kubernetes_jobs import LEAST, documents, one
from zygote import Client, Started

from gaudi3_scale.config import load


class Pods:
    """The pods of a job of two nodes on this machine, each as its JobSet describes it."""

    def __init__(self, warm: Client, folder: Path, *overrides: str) -> None:
        self._warm, self._folder = warm, folder
        volume = {"claim": "all", "access": "ReadWriteMany", "path": str(folder / "shared")}
        cluster = {**LEAST, "nodes": 2, "processes_per_node": 1, "kind": "jobset", "volumes": [volume]}
        job = load(None, [*SMALL, "metrics.enabled=false", *overrides]).model_dump(mode="json", exclude_unset=True)
        found = documents(job, cluster)
        self._container = container(found)
        self._port = free_port()
        (folder / "job.yml").write_text(one(found, "ConfigMap")["data"]["job.yml"])

    def start(self, index: int) -> Started:
        """The pod of this index; what the kubelet and DNS would say is put in their place."""
        known = {each["name"]: each.get("value", str(index)) for each in self._container["env"]}
        assert known["PET_MASTER_ADDR"] == "big-node-0-0.big"
        known |= {"PET_MASTER_ADDR": "127.0.0.1", "PET_MASTER_PORT": str(self._port)}
        assert self._container["command"] == ["python3", "-m", "gaudi3_scale.launch"]
        words = [word.replace("/etc/gaudi3", str(self._folder)) for word in self._container["args"]]
        return self._warm.start("launch", words, known, self._folder / f"log-{index}")


def test_pods_meet_and_train_by_what_the_manifests_say(warm: Client, tmp_path: Path, text: Path) -> None:
    (tmp_path / "shared").mkdir()
    corpus = Path(shutil.copy(text, tmp_path / "shared"))
    pods = Pods(warm, tmp_path, f"data.source={corpus}", "train.max_steps=4")
    started = [pods.start(0), pods.start(1)]
    assert [each.wait(120) for each in started] == [0, 0], [each.output() for each in started]
    status = json.loads((tmp_path / "shared/big/status.json").read_text())
    assert (status["state"], status["step"], status["world_size"]) == ("finished", 4, 2)


def test_pods_with_a_job_file_that_is_refused_end_with_2(warm: Client, tmp_path: Path) -> None:
    pods = Pods(warm, tmp_path)
    (tmp_path / "job.yml").write_text("train: {max_steps: none}\n")
    started = [pods.start(0), pods.start(1)]
    assert [each.wait(120) for each in started] == [2, 2], [each.output() for each in started]
