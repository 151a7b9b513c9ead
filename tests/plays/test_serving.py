"""Playbook serving.yml: what is refused before any host changes, and what a dry run predicts."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import stand_in_engine
from tests.served_folder import served

from .cluster import Cluster
from .host import RELEASE

MODEL = "/var/lib/models/llm"
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "max_position_embeddings": 96, "num_hidden_layers": 2,
    "hidden_size": 64, "intermediate_size": 128, "num_attention_heads": 2, "num_key_value_heads": 2, "vocab_size": 128,
}  # fmt: skip


@pytest.fixture(scope="module")
def site(new_cluster: Callable[[], Cluster]) -> Cluster:
    """Two hosts that are to serve, the second of which has the model."""
    cluster = new_cluster()
    for name in ("gaudi-1", "gaudi-2"):
        host = cluster.add(name, "gaudi", "serving", cards=0, driver=False)
        header = json.dumps({"a": {"dtype": "F32", "shape": [16], "data_offsets": [0, 64]}}).encode()
        host.write(f"{MODEL}/config.json", json.dumps(CONFIG))
        stand_in_engine.make(host.path("/usr/bin/podman"), cluster.folder / f"engine-{name}", sys.executable)
        host.write(f"{MODEL}/tokenizer.json", "{}")
        place = host.write(f"{MODEL}/model.safetensors", "")
        place.write_bytes(len(header).to_bytes(8, "little") + header + bytes(64))
    cluster.all |= {"serving_engine": "vllm-cpu", "serving_model": MODEL, "synapseai_release": RELEASE}
    return cluster


def test_a_fault_of_one_host_keeps_all_from_changing(site: Cluster) -> None:
    weights = site["gaudi-2"].path(f"{MODEL}/model.safetensors")
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-8])
    before = site["gaudi-1"].files()
    run = site.play("serving.yml")
    weights.write_bytes(whole)
    assert run.returncode != 0
    assert f"{MODEL}/model.safetensors has" in run.everything and "so it was cut short or changed" in run.everything
    assert site["gaudi-1"].files() == before
    assert site["gaudi-1"].acts() == site["gaudi-2"].acts() == []


def test_variables_are_refused_in_a_sentence(site: Cluster) -> None:
    run = site.play("serving.yml", "-e", "serving_engine=vllm-gaudi", "-e", "serving_vllm_version=0.26.0")
    assert run.returncode != 0
    assert "serving_vllm_version is 0.26.0, which is not for release 1.23.0: give one of 0.11.2" in run.everything
    run = site.play("serving.yml", "-e", "serving_model=registry:llm@champion")
    assert "There is no /opt/gaudi3-scale/venv/bin/gaudi3-train on this host, which fetches models" in run.everything


def test_a_mirror_without_the_image_stops_the_run_before_a_host_changes(site: Cluster, tmp_path: Path) -> None:
    (tmp_path / "lock.json").write_text(json.dumps({"schema": 1, "release": RELEASE, "files": []}))
    before = site["gaudi-1"].files()
    with served(tmp_path) as address:
        engine = ("-e", "serving_engine=vllm-gaudi", "-e", "serving_container_engine=podman")
        run = site.play("serving.yml", "-e", f"gaudi_mirror={address}", *engine)
    assert run.returncode != 0
    assert f"The mirror {address} does not have the image vault.habana.ai/gaudi-docker/1.23.0/" in run.everything
    assert site["gaudi-1"].files() == before
    assert site["gaudi-1"].acts() == site["gaudi-2"].acts() == []
