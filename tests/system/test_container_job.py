"""A job in a container on simulated nodes: podman inside of a node, and the image of the simulator's shelf.

The image is the vendor's by its names, variables and packages, and otherwise the node image with torch for CPU and the
simulated device. podman in a node takes crun without cgroups, and keeps its images in memory (3 GB a node): a node's
own files are an overlay, on which there can be no other. A node that was switched off pulls its image again. In the
container there is no card of the node: the simulated device counts as one off a node there.
"""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from .conftest import Site, run, wait_for, went_on

pytestmark = pytest.mark.skipif(
    os.environ.get("GAUDI3_CONTAINER_TEST") != "1",
    reason="it takes minutes, and 3 GB of memory for each node: GAUDI3_CONTAINER_TEST=1 runs it",
)

NODES = ("gaudi-1", "gaudi-2")
RELEASE = "1.23.0-695"
#: Where a name without a port or dot would be a folder of docker.io's.
REGISTRY = "vault:80"
CONTAINERS = """[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime = "crun"
[containers]
cgroups = "disabled"
log_driver = "k8s-file"
"""
STORAGE = """[storage]
driver = "overlay"
graphroot = "/var/lib/containers/storage"
runroot = "/run/containers/storage"
"""
MOUNT = """[Mount]
What=tmpfs
Where=/var/lib/containers
Type=tmpfs
Options=size=6g
[Install]
WantedBy=multi-user.target
"""
CONFIG = {
    "device": "hpu",
    "model": {"layers": 1, "hidden_size": 32, "heads": 2, "kv_heads": 1, "intermediate_size": 64,
              "sequence_length": 64},
    "train": {"mode": "eager", "max_steps": 40, "log_every": 10, "threads": 1},
    "checkpoint": {"every": 20},
}  # fmt: skip
SETTINGS = {
    "trainer_runtime": "container",
    "trainer_container_registry": REGISTRY,
    "trainer_container_plain_http": True,
    "trainer_container_requirements": [],
    "trainer_job_name": "contained",
    "trainer_config": CONFIG,
    "trainer_processes_per_node": 1,
}
STEPS = 4000
LONG = {
    **SETTINGS,
    "trainer_job_name": "long",
    "trainer_max_restarts": 3,
    "trainer_config": {
        **CONFIG,
        "train": {"mode": "eager", "max_steps": STEPS, "log_every": 50, "threads": 1},
        "checkpoint": {"every": 50},
    },
}
TAGS = ("--tags", "preflight,train")


def given(settings: dict[str, Any], **more: Any) -> tuple[str, str]:
    return "-e", json.dumps({**settings, **more})


def containers(site: Site, node: str) -> list[str]:
    """Names of all containers of a node, those that ended included."""
    said = site.ssh(node, "podman ps --all --format 'is:{{.Names}}'")
    assert said.returncode == 0, said.stdout
    return [line.removeprefix("is:") for line in said.stdout.splitlines() if line.startswith("is:")]


@pytest.fixture(scope="module")
def cluster(trained: Site) -> Site:
    """Nodes in order, and an image on the shelf of the vendor's host."""
    made = run("gaudi3-simulator", "repository", "--shelf", "image")
    assert made.returncode == 0, made.stderr
    for node in NODES:
        for path, text in (("containers.conf", CONTAINERS), ("storage.conf", STORAGE)):
            script = f"mkdir -p /etc/containers && printf %s '{text}' > /etc/containers/{path}"
            assert trained.ssh(node, script).returncode == 0
        # By systemd, so that it is there again after the node was off.
        script = f"printf %s '{MOUNT}' > /etc/systemd/system/var-lib-containers.mount && systemctl daemon-reload"
        assert trained.ssh(node, f"{script} && systemctl enable --now var-lib-containers.mount").returncode == 0
    return trained


def test_an_image_of_another_release_is_refused_before_anything_changes(cluster: Site) -> None:
    image = f"{REGISTRY}/gaudi-docker/1.24.0/ubuntu24.04/habanalabs/pytorch-installer-2.10.0:1.24.0-1007"
    refused = cluster.play(*TAGS, *given(SETTINGS, trainer_container_image=image))
    assert refused.returncode != 0 and refused.changed() == set()
    assert "is of release 1.24.0-1007, but the driver's is 1.23.0-695" in " ".join(refused.messages())
    missing = cluster.ssh("gaudi-1", "command -v podman || echo none")
    assert "none" in missing.stdout


def test_a_job_trains_in_a_container(cluster: Site) -> None:
    predicted = cluster.play(*TAGS, "--check", "--diff", *given(SETTINGS))
    assert predicted.returncode == 0, predicted.messages() or predicted.output
    first = cluster.play(*TAGS, *given(SETTINGS))
    assert first.returncode == 0, first.messages() or first.output
    status = cluster.status("gaudi-1", "contained")
    assert (status["state"], status["step"], status["world_size"], status["device"]) == ("finished", 40, 2, "hpu")
    assert status["loss"] < status["first_loss"]
    owner = cluster.ssh("gaudi-2", "stat -c is:%U /var/lib/gaudi3-scale/jobs/contained/status.json").stdout
    assert "is:gaudi3-scale" in owner
    log = cluster.ssh("gaudi-1", "journalctl --unit=gaudi-train-contained --output=cat --no-pager").stdout
    assert "podman" not in log.lower(), "the trainer's own words, and none of an engine's"
    assert [containers(cluster, node) for node in NODES] == [[], []]


def test_a_second_run_changes_nothing(cluster: Site) -> None:
    again = cluster.play(*TAGS, *given(SETTINGS))
    assert again.returncode == 0, again.messages()
    assert again.changed() == set()


def test_a_job_survives_a_kill_a_stop_and_a_lost_node(cluster: Site) -> None:
    def play(state: str, **more: Any) -> None:
        result = cluster.play(*TAGS, *given(LONG, trainer_state=state, **more))
        assert result.returncode == 0, result.messages() or result.output

    play("started")
    seen = went_on(cluster, "long", after=0)
    assert [containers(cluster, node) for node in NODES] == [["gaudi-train-long"], ["gaudi-train-long"]]

    killed = cluster.ssh("gaudi-2", "pkill --newest --signal KILL --exact gaudi3-train")
    assert killed.returncode == 0, killed.stdout
    seen = went_on(cluster, "long", after=seen["checkpoint_step"])

    play("stopped")
    stopped = cluster.status("gaudi-1", "long")
    assert stopped["state"] == "interrupted" and "SIGTERM" in stopped["interruption"], stopped
    assert seen["checkpoint_step"] <= stopped["checkpoint_step"] == stopped["step"] < STEPS
    assert [containers(cluster, node) for node in NODES] == [[], []]
    play("started", trainer_resume_stopped=True)
    seen = went_on(cluster, "long", after=stopped["step"])
    assert seen["resumed_from_step"] == stopped["step"]

    assert run("gaudi3-simulator", "off", "--name", cluster.name, "gaudi-2").returncode == 0
    cluster.restart("gaudi-2")
    play("finished")
    for node in NODES:
        ended = cluster.status(node, "long")
        assert (ended["state"], ended["step"], ended["world_size"]) == ("finished", STEPS, 2), ended
    assert cluster.status("gaudi-1", "long")["resumed_from_step"] >= stopped["step"]
    assert [containers(cluster, node) for node in NODES] == [[], []]


def test_a_client_that_is_killed_leaves_no_container(cluster: Site) -> None:
    job = {**LONG, "trainer_job_name": "client"}
    started = cluster.play(*TAGS, *given(job, trainer_state="started"))
    assert started.returncode == 0, started.messages() or started.output
    went_on(cluster, "client", after=0)
    for node in NODES:
        killed = cluster.ssh(node, "systemctl kill --signal=KILL --kill-who=main gaudi-train-client")
        assert killed.returncode == 0, killed.stdout
    wait_for(lambda: not any(containers(cluster, node) for node in NODES), "containers to be gone", 60)
    for node in NODES:
        # The brackets keep the pattern from finding the shell that asks.
        left = cluster.ssh(node, "pgrep --full 'gaudi3_scale[.]launch' || echo none")
        assert "none" in left.stdout, left.stdout
