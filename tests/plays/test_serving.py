"""Playbook serving.yml: what is refused before any host changes, and what a dry run predicts."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from .cluster import Cluster
from .host import RELEASE

MODEL = "/var/lib/models/llm"


@pytest.fixture(scope="module")
def site(new_cluster: Callable[[], Cluster]) -> Cluster:
    """Two hosts that are to serve, the second of which has the model."""
    cluster = new_cluster()
    for name in ("gaudi-1", "gaudi-2"):
        host = cluster.add(name, "gaudi", "serving", cards=0, driver=False)
        header = json.dumps({"a": {"dtype": "F32", "shape": [16], "data_offsets": [0, 64]}}).encode()
        host.write(f"{MODEL}/config.json", '{"architectures": ["LlamaForCausalLM"], "max_position_embeddings": 96}')
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
