"""Nodes with cards never train on their processors unless someone asks for it."""

from __future__ import annotations

import json

from .conftest import Site

PLUGIN = "/opt/gaudi3-scale/torch/lib/python3.11/site-packages/habana_frameworks/torch/__init__.py"
REASON = "libSynapse.so: cannot open shared object file"
JOB = {
    "trainer_job_name": "broken",
    "trainer_processes_per_node": 1,
    "trainer_config": {"train": {"max_steps": 2, "threads": 1}},
}


def test_a_plugin_that_cannot_be_imported_fails_the_play_and_is_quoted(trained: Site) -> None:
    for node in ("gaudi-1", "gaudi-2"):
        broken = trained.ssh(node, f"""test -f {PLUGIN} && echo 'raise ImportError("{REASON}")' > {PLUGIN}""")
        assert broken.returncode == 0, broken.stdout
        # The trainer is to be installed anew, which looks whether it can be used.
        assert trained.ssh(node, "rm -r /opt/gaudi3-scale/venv").returncode == 0
    result = trained.play("--tags", "preflight,drivers,train,verify", "-e", json.dumps(JOB))
    assert result.returncode == 2, result.output
    told = [message for message in result.messages() if f"ImportError: {REASON}" in message]
    assert told and "gaudi3-scale cannot import torch, habana_frameworks.torch" in told[0], result.messages()
    assert trained.ssh("gaudi-1", "test ! -e /etc/systemd/system/gaudi-train-broken.service").returncode == 0
