"""A job in a container: what podman and docker are asked for, and the job's unit."""

from __future__ import annotations

import dataclasses
import grp
import os
import pwd
import shlex
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._jobs import container as job_container
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.container import (
    Container,
    Share,
    engine_argv,
    file_text,
    group_numbers,
    node_devices,
    node_files,
    quoted,
    unit_lines,
    user_numbers,
    variables_of,
)
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.launch_command import NodeShare
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.spec import JobSpec
from ansible_collections.gaudi3.scale.plugins.module_utils._jobs.unit import unit_text

IMAGE = "vault.habana.ai/gaudi-docker/1.23.0/ubuntu24.04/habanalabs/pytorch-installer-2.9.0:1.23.0-695"
JOBS = "/var/lib/gaudi3-scale/jobs"
PLACE = "/opt/gaudi3-scale/container/0123456789ab"
DIGEST = "sha256:" + "a" * 64
SHARE = Share(
    name="gaudi-train-demo",
    directory=f"{JOBS}/demo",
    control=f"{JOBS}/.control/demo",
    environment=PLACE,
    user="998:997",
    groups=("44", "110"),
    variables={"HOME": "/tmp", "A": 'say "50 %"'},
    files=("/etc/habanalabs/gaudinet.json",),
)
SPEC = JobSpec(
    name="demo",
    config={},
    nodes=("gaudi-1",),
    head_address="10.0.0.1",
    processes_per_node=8,
    environment={"TZ": "UTC"},
    environment_files=("/etc/gaudi3-scale/fabric.env",),
    venv=f"{PLACE}/venv",
    stop_timeout=90,
    container={"engine": "podman", "image": IMAGE, "folders": ["/srv/data"], "cards": True},
)

PODMAN = shlex.split("""
/usr/bin/podman run --rm --name=gaudi-train-demo --init --network=host --ipc=host --cap-drop=all --cap-add=SYS_NICE
--security-opt=no-new-privileges --pull=never --log-driver=none --pids-limit=-1 --stop-timeout=90 --user=998:997
--group-add=44 --group-add=110 --replace --ulimit=host --security-opt=label=disable --device=/dev/accel
--device=/dev/infiniband --volume=/var/lib/gaudi3-scale/jobs/demo:/var/lib/gaudi3-scale/jobs/demo
--workdir=/var/lib/gaudi3-scale/jobs/demo
--volume=/var/lib/gaudi3-scale/jobs/.control/demo:/var/lib/gaudi3-scale/jobs/.control/demo:ro
--volume=/opt/gaudi3-scale/container/0123456789ab:/opt/gaudi3-scale/container/0123456789ab:ro
--volume=/etc/habanalabs/gaudinet.json:/etc/habanalabs/gaudinet.json:ro --volume=/data:/data:ro
--env=INVOCATION_ID '--env=A=say "50 %"' --env=HOME=/tmp --entrypoint=
""")


def container(engine: str = "podman", **more: Any) -> Container:
    return Container(**{"engine": engine, "image": IMAGE, "folders": ("/data",), **more})


def words_of(line: str) -> list[str]:
    return shlex.split(line.partition("=")[2].replace("$$", "$").replace("%%", "%"))


def test_podman_gets_the_device_files() -> None:
    assert engine_argv(container(), SHARE, ["true"], 90) == [*PODMAN, IMAGE, "true"]


def test_docker_gets_the_vendors_runtime() -> None:
    made = engine_argv(container("docker"), SHARE, ["true"], 90)
    assert made[0] == "/usr/bin/docker"
    own = {"--runtime=habana", "--env=HABANA_VISIBLE_DEVICES=all"}
    own |= {"--ulimit=memlock=-1:-1", "--ulimit=nofile=65536:65536"}
    podmans = {"/usr/bin/podman", "--replace", "--ulimit=host", "--security-opt=label=disable"}
    podmans |= {word for word in PODMAN if word.startswith("--device=") or "gaudinet" in word}
    assert set(made) - set(PODMAN) - {IMAGE, "true"} == own | {"/usr/bin/docker"}
    assert set(PODMAN) - set(made) == podmans


@pytest.mark.parametrize("engine", ["podman", "docker"])
def test_what_the_vendor_documents_is_there_and_no_more_rights(engine: str) -> None:
    words = engine_argv(container(engine), SHARE, [], 120)
    assert {"--network=host", "--ipc=host"} <= set(words)
    assert [word for word in words if word.startswith("--cap")] == ["--cap-drop=all", "--cap-add=SYS_NICE"]
    assert not [word for word in words if "privileged" in word or word.startswith(("--user=0", "--pid="))]
    writable = [word for word in words if word.startswith("--volume=") and not word.endswith(":ro")]
    assert writable == [f"--volume={JOBS}/demo:{JOBS}/demo"]


@pytest.mark.parametrize("engine", ["podman", "docker"])
def test_a_job_on_processors_gets_no_cards(engine: str) -> None:
    words = engine_argv(container(engine, cards=False), SHARE, [], 120)
    assert not [word for word in words if word.startswith(("--device", "--runtime", "--env=HABANA_VISIBLE_DEVICES"))]


def test_a_node_without_rdma_files_gives_none() -> None:
    words = engine_argv(container(), dataclasses.replace(SHARE, devices=("/dev/accel",)), [], 120)
    assert [word for word in words if word.startswith("--device=")] == ["--device=/dev/accel"]


@pytest.mark.parametrize("engine", ["podman", "docker"])
def test_no_container_is_left_over(engine: str) -> None:
    """Neither of a client that was killed, nor of one that did not end in time."""
    lines = unit_lines(container(engine), SHARE, ["true"], 90)
    after = [line.partition("=")[2] for line in lines if line.startswith("ExecStopPost=")]
    (before,) = [line.partition("=")[2] for line in lines if line.startswith("ExecStartPre=")]
    if engine == "podman":
        assert before == "-/usr/bin/podman rm --force --ignore gaudi-train-demo"
        # Its time to end was that of the unit.
        assert after == ["-/usr/bin/podman stop --ignore --time=0 gaudi-train-demo", before]
    else:
        assert after == [before] == ["-/usr/bin/docker rm --force gaudi-train-demo"]


@pytest.mark.parametrize("engine", ["podman", "docker"])
def test_the_whole_unit(engine: str) -> None:
    """The client is root's; the launcher and the trainer are those of any job, from the image's environment."""
    spec = dataclasses.replace(SPEC, container={**dict(SPEC.container or {}), "engine": engine})
    share = NodeShare(
        f"{JOBS}/demo", interface="eth0", modules=(0, 1), devices=("/dev/accel",), file_variables={"HCCL_OVER_OFI": "1"}
    )
    lines = unit_text(spec, share).splitlines()
    for line in ("Type=exec", "KillMode=mixed", "TimeoutStopSec=90", "LimitMEMLOCK=infinity", "SuccessExitStatus=75",
                 "RestartPreventExitStatus=75", "SyslogIdentifier=gaudi-train-demo", "WorkingDirectory=/"):  # fmt: skip
        assert line in lines
    # The client makes mounts and takes what the engine's own settings say, and nothing of the job's environment.
    assert not [line for line in lines if line.startswith(("User=", "Environment", "Private", "Protect", "NoNew"))]
    assert ("docker.service" in "".join(line for line in lines if line.startswith("After="))) == (engine == "docker")
    (start,) = [line for line in lines if line.startswith("ExecStart=")]
    words = words_of(start)
    assert words[:2] == [f"/usr/bin/{engine}", "run"]
    inside = words[words.index(IMAGE) + 1 :]
    assert inside[:3] == [f"{PLACE}/venv/bin/python", "-m", "gaudi3_scale.launch"]
    assert f"--status={JOBS}/demo/status.json" in inside
    assert inside[inside.index("--no-python") + 1] == f"{PLACE}/venv/bin/gaudi3-train"
    said = {word.partition("=")[2] for word in words if word.startswith("--env=")}
    assert {"GLOO_SOCKET_IFNAME=eth0", "HABANA_VISIBLE_MODULES=0,1", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT=85", "TZ=UTC",
            f"HABANA_LOGS={JOBS}/demo/habana_logs", "HOME=/tmp", "USER=gaudi3-scale"} <= said  # fmt: skip
    # The vendor's own come with the image.
    assert not [word for word in said if word.startswith(("PYTHONPATH", "LD_LIBRARY_PATH", "GC_KERNEL_PATH"))]
    assert "runtime.env" not in start
    assert f"--env-file={JOBS}/.control/demo/container.env" in words
    assert "--volume=/srv/data:/srv/data:ro" in words


def test_what_files_set_goes_before_what_the_node_tells_and_after_what_the_user_sets() -> None:
    files = {"HCCL_SOCKET_IFNAME": "ens1", "TZ": "CET"}
    text = unit_text(SPEC, NodeShare(f"{JOBS}/demo", interface="eth0", file_variables=files))
    assert "HCCL_SOCKET_IFNAME" not in text and "GLOO_SOCKET_IFNAME=eth0" in text and "--env=TZ=UTC" in text
    assert "--env-file" not in unit_text(SPEC, NodeShare(f"{JOBS}/demo"))


def test_a_command_of_the_users_finds_its_folder() -> None:
    spec = dataclasses.replace(SPEC, command=("train.py", "--lr", "$x"), chdir="/srv/mine", config={})
    (start,) = [
        line for line in unit_text(spec, NodeShare(f"{JOBS}/demo")).splitlines() if line.startswith("ExecStart=")
    ]
    words = words_of(start)
    assert "--workdir=/srv/mine" in words and "--volume=/srv/mine:/srv/mine:ro" in words
    assert words[-4:] == [f"{PLACE}/venv/bin/python", "/srv/mine/train.py", "--lr", "$x"]
    assert f"--env=GAUDI3_JOB_DIRECTORY={JOBS}/demo" in words


@pytest.mark.parametrize(
    "script", ["/usr/local/bin/train.py", "/train.py", "/opt/train.py", "/opt/habanalabs/train.py"]
)
def test_a_script_whose_folder_would_hide_the_images(script: str) -> None:
    spec = dataclasses.replace(SPEC, command=(script,), config={})
    with pytest.raises(
        ValueError, match=r"^The folder /\S* cannot be given to a container, as it would hide the image's"
    ):
        unit_text(spec, NodeShare(f"{JOBS}/demo"))


def test_a_job_in_a_container_is_another_launch_of_the_same_training() -> None:
    plain = dataclasses.replace(SPEC, container=None)
    assert "container" not in plain.as_dict()
    assert plain.sha256 != SPEC.sha256 and plain.config_sha256 == SPEC.config_sha256


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        ("# HCCL\nHCCL_SOCKET_IFNAME=eth0\n\nnot a line\n A_1 =x\n1B=2\n", {"HCCL_SOCKET_IFNAME": "eth0", "A_1": "x"}),
        ('A="two words"\n', {"A": "two words"}),
        ("A='$HOME \\ \"'\n", {"A": '$HOME \\ "'}),
        ('A="a\\"b\\\\c\\d"\n', {"A": 'a"b\\c\\d'}),
        ("A=two words  \n", {"A": "two words"}),
        ("A=a\\\nb\n", {"A": "ab"}),
        (";A=1\nA=\n", {"A": ""}),
        ("A=1\nA=x=y\n", {"A": "x=y"}),
    ],
)
def test_environment_files_are_read_as_systemd_reads_them(text: str, variables: dict[str, str]) -> None:
    assert variables_of(text) == variables


def test_the_engines_file_has_plain_lines() -> None:
    assert file_text({"B": 'a "b" $c', "A": ""}) == 'A=\nB=a "b" $c\n'
    with pytest.raises(ValueError, match="The variable A of environment_files has control characters"):
        file_text({"A": "x\ny"})


@pytest.mark.parametrize(
    ("option", "value", "sentence"),
    [
        ("engine", "lxc", "The container's engine is 'lxc': give one of podman, docker."),
        ("image", "--privileged", "The container's image is '--privileged': write it as REGISTRY/NAME:TAG"),
        ("image", "a b", "The container's image is 'a b'"),
        ("image", "x:y\nExecStartPre=/bin/sh", "The container's image is"),
        ("folders", ("/a:/etc",), "The folder /a:/etc cannot be given to a container"),
        ("folders", ("data",), "folders is 'data', which cannot be written into a unit"),
        ("folders", ("/etc",), "The folder /etc cannot be given to a container, as it would hide the image's own"),
        ("folders", ("/srv/../usr/lib",), "The folder /srv/../usr/lib cannot be given to a container"),
    ],
)
def test_what_would_be_another_command_is_refused(option: str, value: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match="^" + sentence.split("\n")[0].replace("(", r"\(")):
        container(**{option: value})


@pytest.mark.parametrize(
    ("image", "reference"),
    [
        (IMAGE, IMAGE),
        ("localhost/job:1", "localhost/job:1"),
        ("registry:5000/a/b@sha256:" + "0" * 64, "registry:5000/a/b@sha256:" + "0" * 64),
        # Engines differ in whether they take both.
        (f"{IMAGE}@{DIGEST}", f"{IMAGE.rpartition(':')[0]}@{DIGEST}"),
        (f"registry:5000/a:1@{DIGEST}", f"registry:5000/a@{DIGEST}"),
        ("busybox", "busybox"),
    ],
)
def test_images_that_may_be(image: str, reference: str) -> None:
    assert reference in engine_argv(container(image=image), SHARE, [], 120)


@pytest.mark.parametrize("folder", ["directory", "control", "environment"])
def test_a_folder_that_is_no_path_is_refused(folder: str) -> None:
    with pytest.raises(ValueError, match=r"^A folder of the job is"):
        engine_argv(container(), dataclasses.replace(SHARE, **{folder: "x\ny"}), [], 120)


def test_words_of_a_unit() -> None:
    assert [quoted(word) for word in ("", "a", "a b", "$A%", 'a"b', "\\", "a\tb")] == [
        '""', "a", '"a b"', "$$A%%", '"a\\"b"', '"\\\\"', '"a\\tb"',
    ]  # fmt: skip


def test_the_image_knows_numbers_only() -> None:
    me = pwd.getpwuid(os.getuid())
    assert user_numbers(me.pw_name) == f"{me.pw_uid}:{me.pw_gid}"
    assert user_numbers("not-made-yet") == "not-made-yet"
    group = grp.getgrgid(os.getgid())
    assert group_numbers([group.gr_name, "12", "not-there"]) == (str(group.gr_gid), "12", "not-there")


def test_what_the_node_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = (str(tmp_path / "accel"), str(tmp_path / "infiniband"))
    monkeypatch.setattr(job_container, "DEVICES", folders)
    monkeypatch.setattr(job_container, "GAUDINET", str(tmp_path / "gaudinet.json"))
    # Before the driver is loaded, as the preflight of a bare node finds it.
    assert node_devices() == folders and node_files() == ()
    (tmp_path / "accel").mkdir()
    (tmp_path / "gaudinet.json").touch()
    assert node_devices() == folders[:1] and node_files() == (str(tmp_path / "gaudinet.json"),)
