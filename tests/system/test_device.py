"""Nodes with cards never train on their processors unless someone asks for it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from .conftest import Site

PLUGIN = "/opt/gaudi3-scale/torch/lib/python3.11/site-packages/habana_frameworks/torch/__init__.py"
REASON = "libSynapse.so: cannot open shared object file"
NODES = ("gaudi-1", "gaudi-2")
JOB = {
    "trainer_job_name": "broken",
    "trainer_processes_per_node": 1,
    "trainer_config": {"train": {"mode": "eager", "max_steps": 2, "threads": 1}},
}


@pytest.fixture
def broken(trained: Site) -> Iterator[None]:
    """A plugin that cannot be imported, and a trainer to be installed anew, which looks whether it can be used."""
    for node in NODES:
        script = f"""cp {PLUGIN} /srv/plugin && echo 'raise ImportError("{REASON}")' > {PLUGIN}"""
        assert trained.ssh(node, f"{script} && rm -r /opt/gaudi3-scale/venv").returncode == 0
    yield
    for node in NODES:
        assert trained.ssh(node, f"cp /srv/plugin {PLUGIN}").returncode == 0


def test_a_plugin_that_cannot_be_imported_fails_the_play_and_is_quoted(trained: Site, broken: None) -> None:
    result = trained.play("--tags", "preflight,drivers,train,verify", "-e", json.dumps(JOB))
    assert result.returncode == 2, result.output
    told = [message for message in result.messages() if f"ImportError: {REASON}" in message]
    assert told and "gaudi3-scale cannot import torch, habana_frameworks.torch" in told[0], result.messages()
    assert trained.ssh("gaudi-1", "test ! -e /etc/systemd/system/gaudi-train-broken.service").returncode == 0
