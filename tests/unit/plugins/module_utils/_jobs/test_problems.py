"""What keeps a job from running on a node: one sentence for each cause, and none where nothing does."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._jobs import problems

ASKED = {
    "name": "demo",
    "nodes": ["a", "b"],
    "head": "a",
    "cards": 8,
    "processes": 8,
    "config": {},
    "command": [],
    "chdir": "",
}
NODE: dict[str, Any] = {
    "interface": "eth0", "unknown_groups": [], "closed": [], "script": None, "missing": [], "modules": [0],
    "offer": {"uid": 990, "shares": None},
}  # fmt: skip


def job_problems(asked: dict[str, Any], host: str, node: dict[str, Any] | None = None) -> list[str]:
    return problems.job_problems(problems.Asked.of(asked), host, node or {})


def job_node_problems(seen: dict[str, Any], asked: dict[str, Any], host: str, theirs: dict[str, Any]) -> list[str]:
    return problems.node_problems(problems.Asked.of(asked), host, seen, theirs)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, ""),
        ({"config": None, "dataset": None, "digest": None}, ""),
        ({"name": "Demo"}, "trainer_job_name is 'Demo', which cannot be used: take"),
        ({"nodes": []}, "trainer_nodes is empty: put"),
        ({"head": ""}, "There is no head node"),
        ({"head": "c"}, "The head node c is not one of the nodes of the job (a, b): set"),
        ({"cards": 0, "processes": 1}, "b has no cards on its PCI bus: to train"),
        ({"cards": None, "processes": 3}, ""),
        ({"cards": "", "processes": 3}, ""),  # null, as ansible-core 2.17 hands it over
        ({"processes": 0}, "trainer_processes_per_node is 0, but must be from 1 to 1024."),
        ({"processes": "9"}, "b has 8 cards, too few for 9 processes: set"),
        ({"spares": 1, "max_restarts": 0}, "Job demo is to go on without a node that is lost, which is a restart of"),
        ({"spares": "1", "max_restarts": "0"}, "Job demo is to go on without a node that is lost"),
        ({"spares": "1", "max_restarts": "1", "min_nodes": "1"}, ""),
        ({"spares": 2, "max_restarts": 1}, "trainer_spares is 2, but job demo has 2 nodes: leave at least one"),
        ({"min_nodes": "2", "spares": "1", "max_restarts": 1}, "trainer_min_nodes is 2, but must be from 1 to 1"),
        ({"min_nodes": 1, "max_restarts": 0}, "Job demo is to go on without a node that is lost"),
        ({"max_restarts": "1001"}, "trainer_max_restarts is 1001, but must be from 0 to 1000."),
        ({"rdzv_port": "80"}, "trainer_rdzv_port is 80, but must be from 1024 to 65535."),
        ({"stop_timeout": "0"}, "trainer_stop_timeout is 0, but must be from 1 to 86400."),
        ({"threads": "0"}, "trainer_threads is 0, but must be at least 1"),
        ({"threads": ""}, ""),
        ({"user": "My User"}, "User 'My User' is not a name of a user: take"),
        ({"environment_files": ["mine.env"]}, "trainer_environment_files is 'mine.env', which cannot be written"),
        ({"root": "opt"}, "trainer_root is 'opt', which cannot be written into a unit"),
        ({"head_address": "10.0.0.1/24"}, "Head address '10.0.0.1/24' is not a host name or an address: set"),
        ({"digest": "sha256:12"}, "trainer_container_digest is sha256:12: give"),
        ({"digest": "sha256:" + "0" * 64}, ""),
        ({"image_problem": "This image is none."}, "This image is none."),
    ],
)
def test_what_is_asked_for(asked: dict[str, Any], said: str) -> None:
    found = job_problems({**ASKED, **asked}, "b", NODE)
    assert (len(found) >= 1 and found[0].startswith(said)) if said else found == []


@pytest.mark.parametrize(
    ("run", "skipped", "seen", "said"),
    [
        (["all"], [], {"modules": None, "missing": ["/opt/python"]}, []),
        (["all"], ["drivers"], {"modules": None}, ["No driver runs the cards of b"]),
        (["all"], ["drivers"], {}, []),
        (["all"], ["pytorch", "train"], {"missing": ["/opt/python"]}, []),
        (["all"], ["pytorch"], {"missing": ["/opt/python"]}, ["b has no /opt/python to train with"]),
        (["train"], [], {"modules": None, "missing": ["/opt/python"]}, ["No driver runs", "b has no /opt/python"]),
        (["train", "drivers"], [], {"modules": None, "missing": ["/opt/python"]}, ["b has no /opt/python"]),
        (["trainer_job"], [], {"modules": None, "missing": ["/opt/python"]}, []),
        (["all"], ["pytorch"], {"missing": ["/data"]}, ["The dataset /data does not exist on b"]),
    ],
)
def test_a_phase_that_is_left_out(run: list[str], skipped: list[str], seen: dict[str, Any], said: list[str]) -> None:
    asked = {**ASKED, "dataset": "/data", "run_tags": run, "skip_tags": skipped}
    found = job_problems(asked, "b", {**NODE, **seen})
    assert len(found) == len(said) and all(each.startswith(begins) for each, begins in zip(found, said, strict=True))


def test_a_job_on_processors_needs_no_driver() -> None:
    asked = {**ASKED, "config": {"device": "cpu"}, "skip_tags": ["drivers"], "run_tags": ["all"]}
    assert job_problems(asked, "b", {**NODE, "modules": None}) == []
    assert job_problems(asked, "b") == []


OTHER_UID = "gaudi has uid 1 on b and 2 on a, which share /jobs (nas:/j): set"
CLOSED = {"path": "/dev/accel/accel0", "owner": "root", "group": "render", "mode": "0660"}


@pytest.mark.parametrize(
    ("asked", "seen", "theirs", "said"),
    [
        ({}, {}, {}, ""),
        ({}, {"unknown_groups": ["x", "y"]}, {}, "Group x, y of trainer_groups does not exist on b: create"),
        ({}, {"closed": [CLOSED]}, {}, "gaudi cannot open /dev/accel/accel0 on b (owner root, group render, "),
        ({"config": {"device": "cpu"}}, {"closed": [CLOSED], "unknown_groups": ["x"]}, {}, ""),
        ({"script": "/srv/t.py"}, {"script": {"there": False, "closed": None}}, {}, "/srv/t.py, the script"),
        (
            {"config": {"model": {"name": "/m"}, "data": {"mixture": [{"source": "s3://x"}, {"source": "/none"}]}}},
            {"unreadable": [{"path": "/none", "closed": None}]},
            {},
            "data.mixture[1].source of trainer_config is /none, which does not exist on b: copy it to every",
        ),
        (
            {"config": {"model": {"name": "/m/x"}}},
            {"unreadable": [{"path": "/m/x", "closed": "/m"}, {"path": "/other", "closed": None}]},
            {},
            "gaudi cannot read /m on b, which model.name of trainer_config needs: open it to that user",
        ),
        (
            {"dataset": "/d"},
            {"unreadable": [{"path": "/d", "closed": "/d"}]},
            {},
            "gaudi cannot read /d on b, which trainer_dataset needs: open it",
        ),
        ({}, {"script": {"there": True, "closed": "/srv"}}, {}, "gaudi cannot read /srv on b, which the script of"),
        ({"modules_problem": "No cards are left."}, {}, {}, "No cards are left."),
        ({}, {"interface": None}, {}, "No interface of b has the address 10.0.0.2 or leads"),
        ({"nodes": ["b"]}, {"interface": None}, {}, ""),
        ({"environment": {"GLOO_SOCKET_IFNAME": "e", "HCCL_SOCKET_IFNAME": "e"}}, {"interface": None}, {}, ""),
        ({"environment": {"GLOO_SOCKET_IFNAME": "e"}}, {"interface": None}, {}, "No interface of b has"),
        ({}, {"offer": {"uid": 1, "shares": "nas:/j"}}, {"uid": 2, "shares": "nas:/j"}, OTHER_UID),
        ({}, {"offer": {"uid": 1, "shares": "nas:/j"}}, {"uid": 2, "shares": "nas:/k"}, ""),
        ({}, {"offer": {"uid": None, "shares": "nas:/j"}}, {"uid": 2, "shares": "nas:/j"}, ""),
    ],
)  # fmt: skip
def test_what_a_node_lacks(asked: dict[str, Any], seen: dict[str, Any], theirs: dict[str, Any], said: str) -> None:
    given = {**ASKED, "user": "gaudi", "asker": "a", "jobs_dir": "/jobs", "address": "10.0.0.2", **asked}
    found = job_node_problems({**NODE, **seen}, given, "b", theirs)
    assert (len(found) == 1 and found[0].startswith(said)) if said else found == []
