"""A job in a container: what podman and docker are asked for, and the unit's lines."""

from __future__ import annotations

import dataclasses
import shlex
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils.job_container import (
    Container,
    Share,
    engine_argv,
    inside,
    names_in,
    quoted,
    unit_lines,
)
from ansible_collections.gaudi3.scale.plugins.module_utils.job_text import NodeShare, launch_argv
from ansible_collections.gaudi3.scale.plugins.module_utils.jobs import JobSpec

IMAGE = "vault.habana.ai/gaudi-docker/1.23.0/ubuntu24.04/habanalabs/pytorch-installer-2.9.0:1.23.0-695"
JOBS = "/var/lib/gaudi3-scale/jobs"
TRAINER = "/opt/gaudi3-scale/trainer/0123456789abcdef"
SHARE = Share(
    "gaudi-train-demo", f"{JOBS}/demo", f"{JOBS}/.control/demo", TRAINER, 998, 997, (44, 110), ("HCCL_SOCKET_IFNAME",)
)
SPEC = JobSpec(name="demo", config={}, nodes=("gaudi-1",), head_address="10.0.0.1", processes_per_node=8)

PODMAN = shlex.split("""
/usr/bin/podman run --rm --name=gaudi-train-demo --network=host --ipc=host --cap-add=SYS_NICE --pull=never
--log-driver=none --ulimit=memlock=-1:-1 --ulimit=nofile=65536:65536 --user=998:997 --group-add=44 --group-add=110
--device=/dev/accel --device=/dev/infiniband --security-opt=label=disable
--volume=/var/lib/gaudi3-scale/jobs/demo:/var/lib/gaudi3-scale/jobs/demo --workdir=/var/lib/gaudi3-scale/jobs/demo
--volume=/var/lib/gaudi3-scale/jobs/.control/demo:/var/lib/gaudi3-scale/jobs/.control/demo:ro
--volume=/opt/gaudi3-scale/trainer/0123456789abcdef:/opt/gaudi3-scale/trainer/0123456789abcdef:ro
--volume=/data:/data:ro --env=HCCL_SOCKET_IFNAME --env=PYTHONPATH=/opt/gaudi3-scale/trainer/0123456789abcdef
--env=HOME=/tmp --entrypoint=
""")


def container(engine: str = "podman", **more: Any) -> Container:
    return Container(**{"engine": engine, "image": IMAGE, "folders": ("/data",), **more})


def test_podman_gets_the_device_files() -> None:
    assert engine_argv(container(), SHARE, ["true"]) == [*PODMAN, IMAGE, "true"]


def test_docker_gets_the_vendors_runtime() -> None:
    made = engine_argv(container("docker"), SHARE, ["true"])
    assert made[0] == "/usr/bin/docker"
    own = {"--runtime=habana", "--env=HABANA_VISIBLE_DEVICES=all"}
    others = {word for word in PODMAN if word.startswith(("--device=", "--security-opt="))}
    assert set(made) - set(PODMAN) - {IMAGE, "true"} == own | {"/usr/bin/docker"}
    assert set(PODMAN) - set(made) == others | {"/usr/bin/podman"}


@pytest.mark.parametrize("engine", ["podman", "docker"])
def test_what_the_vendor_documents_is_there(engine: str) -> None:
    words = set(engine_argv(container(engine), SHARE, []))
    assert {"--network=host", "--ipc=host", "--cap-add=SYS_NICE", "--ulimit=memlock=-1:-1"} <= words


def test_the_launcher_runs_with_the_images_python() -> None:
    argv = launch_argv(SPEC, NodeShare(f"{JOBS}/demo"))
    there = inside(container(python="/usr/bin/python3.12"), SPEC.venv, argv)
    assert there[:3] == ["/usr/bin/python3.12", "-m", "gaudi3_scale.launch"]
    start = there.index("--no-python")
    assert there[start : start + 5] == ["--no-python", "/usr/bin/python3.12", "-m", "gaudi3_scale", "fit"]
    assert not [word for word in there if word.startswith(SPEC.venv)]
    with pytest.raises(ValueError, match="is not in the container"):
        inside(container(), SPEC.venv, [f"{SPEC.venv}/bin/pip"])


def test_the_units_lines() -> None:
    argv = ["python3", "-c", 'print("50%")', "$HOME", "a b", ""]
    lines = unit_lines(container(), SHARE, argv, 90)
    values = dict(line.split("=", 1) for line in lines)
    # A client that was killed leaves the container behind, which has the cards.
    assert values["ExecStartPre"] == values["ExecStopPost"] == "-/usr/bin/podman rm --force gaudi-train-demo"
    assert values["TimeoutStopSec"] == "90"
    assert (values["KillMode"], values["Type"], values["LimitMEMLOCK"]) == ("mixed", "exec", "infinity")
    assert "User" not in values, "the container's user is not the client's"
    words = shlex.split(values["ExecStart"].replace("$$", "$").replace("%%", "%"))
    assert words == [*PODMAN, IMAGE, *argv]


def test_names_of_variables() -> None:
    text = "# HCCL\nHCCL_SOCKET_IFNAME=eth0\n\nnot a line\n A_1 =x\n1B=2\n"
    assert names_in([text], {"OMP_NUM_THREADS": "4"}, {}) == ("A_1", "HCCL_SOCKET_IFNAME", "OMP_NUM_THREADS")


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("engine", "lxc", "The container's engine is 'lxc': give one of podman, docker."),
        ("image", "--privileged", "The container's image is '--privileged': write it as REGISTRY/NAME:TAG"),
        ("image", "a b", "The container's image is 'a b'"),
        ("image", "x:y\nExecStartPre=/bin/sh", "The container's image is"),
        ("python", "-c x", "The container's python is '-c x'"),
        ("folders", ("/a:/etc",), "The folder /a:/etc cannot be given to a container"),
        ("folders", ("data",), "folders is 'data', which cannot be written into a unit"),
    ],
)
def test_what_would_be_another_command_is_refused(option: str, value: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match="^" + sentence.split("\n")[0].replace("(", r"\(")):
        container(**{option: value})


@pytest.mark.parametrize(
    "image",
    [IMAGE, "localhost/job:1", "registry:5000/a/b@sha256:" + "0" * 64, f"{IMAGE}@sha256:{'a' * 64}", "busybox"],
)
def test_images_that_may_be(image: str) -> None:
    assert image in engine_argv(container(image=image), SHARE, [])


@pytest.mark.parametrize("folder", ["directory", "control", "trainer"])
def test_a_folder_that_is_no_path_is_refused(folder: str) -> None:
    with pytest.raises(ValueError, match=r"^A folder of the job is"):
        engine_argv(container(), dataclasses.replace(SHARE, **{folder: "x\ny"}), [])


def test_words_of_a_unit() -> None:
    assert [quoted(word) for word in ("", "a", "a b", "$A%", 'a"b', "\\")] == [
        '""', "a", '"a b"', "$$A%%", '"a\\"b"', '"\\\\"',
    ]  # fmt: skip
