"""What is planned where all but checkpoints is to go; the rest of the module is tried with the real Terraform."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._cloud.ibm import Account
from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._terraform import project as terraform_project
from ansible_collections.gaudi3.scale.plugins.module_utils._terraform.plan import Plan
from ansible_collections.gaudi3.scale.plugins.module_utils._terraform.state import State, read_state
from ansible_collections.gaudi3.scale.plugins.modules import gaudi_terraform
from gaudi3_simulator.cloud import ibm_api
from gaudi3_simulator.cloud.world import World

BUCKET = "module.cluster.aws_s3_bucket.checkpoints"


def resource(kind: str, name: str, *needs: str, **attributes: Any) -> dict[str, Any]:
    instance = {"attributes": attributes, "dependencies": [f"module.cluster.{each}" for each in needs]}
    return {"mode": "managed", "module": "module.cluster", "type": kind, "name": name, "instances": [instance]}


class Project:
    """A project that notes what it is asked to do."""

    def __init__(self, *resources: dict[str, Any], warnings: tuple[str, ...] = ()) -> None:
        self._state = read_state({"resources": list(resources)})
        self._warnings = list(warnings)
        self.storage_lost: list[str] = []
        self.done: list[tuple[str, bool, list[str]]] = []

    def state(self) -> State:
        return self._state

    def plan(self, variables: Any, folder: str, destroy: bool, only: Any = ()) -> tuple[Plan, str]:
        self.done.append(("plan", destroy, list(only)))
        if destroy:
            return Plan(delete=["x"]), "file"
        return Plan(update=list(only), warnings=self._warnings, storage_lost=self.storage_lost), "file"

    def keep_half_made(self) -> None:
        """Nothing is marked."""

    def init(self) -> None:
        """Nothing is fetched."""

    def outputs(self) -> dict[str, Any]:
        return {}

    def apply(self, planned: str) -> None:
        self.done.append(("apply", False, []))

    def forget(self) -> None:
        self.done.append(("forget", False, []))


def end(
    project: Project, filled: bool | set[str], monkeypatch: pytest.MonkeyPatch, **variables: Any
) -> list[str]:  # fmt: skip
    """What stays; `filled`: of all buckets, or which of them are."""

    def may_hold_something(kind: str, attributes: dict[str, Any]) -> bool:
        return filled if isinstance(filled, bool) else attributes["bucket_name"] in filled

    monkeypatch.setattr(gaudi_terraform, "may_hold_something", may_hold_something)
    module = SimpleNamespace(params={"variables": variables}, tmpdir="", check_mode=False)
    kept, _plan, _file = gaudi_terraform.plan_the_end(module, project)
    return list(kept)


MADE = (
    resource("aws_s3_bucket", "checkpoints", bucket="demo-1", force_destroy=False),
    resource("aws_kms_key", "cluster"),
    resource("aws_instance", "node"),
    resource("aws_vpc", "cluster"),
)


def test_a_bucket_with_checkpoints_stays_with_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(*MADE)
    assert end(project, True, monkeypatch) == ["module.cluster.aws_kms_key.cluster", BUCKET]
    assert project.done == [("plan", True, ["module.cluster.aws_instance.node", "module.cluster.aws_vpc.cluster"])]


def test_once_more_there_is_nothing_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(*MADE[:2])
    assert end(project, True, monkeypatch) != []
    assert project.done == []


def test_an_empty_bucket_goes_with_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(*MADE)
    assert end(project, False, monkeypatch) == []
    assert project.done == [("plan", True, [])]


def test_checkpoints_go_where_it_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    project = Project(*MADE)
    assert end(project, True, monkeypatch, destroy_checkpoints=True) == []
    assert project.done == [("plan", False, [BUCKET]), ("apply", False, []), ("plan", True, [])]


IBM = "module.cluster.ibm_cos_bucket"
STORAGE = "module.cluster.ibm_resource_instance.storage"
MADE_ON_IBM = (
    resource("ibm_resource_instance", "storage"),
    resource("ibm_cos_bucket", "checkpoints", "ibm_resource_instance.storage", bucket_name="c", force_delete=False),
    resource("ibm_cos_bucket", "flow", "ibm_resource_instance.storage", bucket_name="f"),
    resource("ibm_is_flow_log", "cluster", "ibm_cos_bucket.flow"),
)


@pytest.mark.parametrize(
    ("filled", "kept", "going"),
    [
        (set(), [], []),
        ({"c"}, [f"{IBM}.checkpoints", STORAGE], [f"{IBM}.flow", "module.cluster.ibm_is_flow_log.cluster"]),
        ({"f"}, [f"{IBM}.flow", STORAGE], [f"{IBM}.checkpoints", "module.cluster.ibm_is_flow_log.cluster"]),
        (
            {"c", "f"},
            [f"{IBM}.checkpoints", f"{IBM}.flow", STORAGE],
            ["module.cluster.ibm_is_flow_log.cluster"],
        ),
    ],
    ids=["empty", "checkpoints", "logs", "both"],
)
def test_what_is_in_the_buckets_of_ibm_stays(
    monkeypatch: pytest.MonkeyPatch, filled: set[str], kept: list[str], going: list[str]
) -> None:
    """A destroy that ends at a bucket with logs would end after the machines are gone."""
    project = Project(*MADE_ON_IBM)
    assert end(project, filled, monkeypatch) == kept
    assert project.done == [("plan", True, going)]
    # Checkpoints go where that is said; a log is nobody's checkpoint.
    project = Project(*MADE_ON_IBM)
    assert end(project, filled, monkeypatch, destroy_checkpoints=True) == ([f"{IBM}.flow", STORAGE] * ("f" in filled))


def test_the_buckets_of_ibm_are_looked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path / "world")
    world.put("ibm_cos_bucket", "demo-1", {"bucket_name": "demo-1"})
    server = ibm_api.serve(world.path, "us-east")
    for name, value in {**ibm_api.environment(server), "IC_API_KEY": "a-key"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("IBMCLOUD_API_KEY", raising=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def filled(bucket: str = "demo-1") -> bool:
        about = {"bucket_name": bucket, "region_location": "us-east"}
        return gaudi_terraform.may_hold_something("ibm_cos_bucket", about)

    try:
        assert (filled(), filled("gone-already")) == (False, False)
        world.put("_object", "demo-1/step-1", {"bucket": "demo-1"})
        assert filled()
        world.drop("_object", "demo-1/step-1")
        monkeypatch.delenv("IC_API_KEY")
        assert filled()
        with pytest.raises(Refusal, match=r"there is no API key: set IC_API_KEY or IBMCLOUD_API_KEY\.$"):
            Account(os.environ).holds_anything("demo-1", "us-east")
    finally:
        server.shutdown()
        server.server_close()
    monkeypatch.setenv("IC_API_KEY", "a-key")
    assert filled()
    with pytest.raises(Refusal, match=r"^IBM Cloud does not answer: 127\.0\.0\.1:[0-9]+/identity/token \("):
        Account(os.environ).holds_anything("demo-1", "us-east")


def test_what_cannot_be_looked_into_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_PROFILE", "AWS_ACCESS_KEY_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    assert gaudi_terraform.may_hold_something("google_storage_bucket", {})
    assert gaudi_terraform.may_hold_something("aws_s3_bucket", {"bucket": "demo-1", "region": "us-west-2"})


@pytest.mark.parametrize("warnings", [(), ("Nobody reaches the nodes.",)])
def test_what_the_checks_of_the_configuration_say_is_a_warning(
    tmp_path: Path, run_module: Any, monkeypatch: pytest.MonkeyPatch, warnings: tuple[str, ...]
) -> None:
    (tmp_path / "main.tf").touch()
    monkeypatch.setattr(gaudi_terraform, "Project", lambda *place: Project(warnings=warnings))
    options = {"project_path": str(tmp_path), "workspace": "demo", "executable": "sh"}
    result = run_module(gaudi_terraform, check=True, **options)
    assert result["changed"] is False
    said = str(result.get("warnings", ""))
    assert all(each in said for each in warnings) and bool(said) is bool(warnings)


@pytest.mark.parametrize("tainted", [True, False])
@pytest.mark.parametrize("check", [True, False])
def test_a_bucket_that_the_real_run_would_unmark_is_no_loss_in_check_mode(
    tmp_path: Path, run_module: Any, monkeypatch: pytest.MonkeyPatch, check: bool, tainted: bool
) -> None:
    (tmp_path / "main.tf").touch()
    made = resource("aws_s3_bucket", "checkpoints")
    made["instances"][0]["status"] = "tainted" if tainted else None
    project = Project(made)
    project.storage_lost = [BUCKET]
    monkeypatch.setattr(gaudi_terraform, "Project", lambda *place: project)
    options = {"project_path": str(tmp_path), "workspace": "demo", "executable": "sh"}
    result = run_module(gaudi_terraform, check=check, **options)
    assert ("destroys or replaces what checkpoints lie in" in str(result.get("msg"))) is not (check and tainted)


def test_a_workspace_that_an_interrupted_end_left_is_removed(
    tmp_path: Path, run_module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All is destroyed already, so nothing is planned."""
    (tmp_path / "main.tf").touch()
    options = {"project_path": str(tmp_path), "workspace": "demo", "executable": "sh", "state": "absent"}
    for resources, forgotten in (((), True), (MADE, False)):
        project = Project(*resources)
        monkeypatch.setattr(project, "plan", lambda *_arguments: (Plan(), "file"))
        monkeypatch.setattr(gaudi_terraform, "may_hold_something", lambda *_arguments: False)
        monkeypatch.setattr(gaudi_terraform, "Project", lambda *_place, made=project: made)
        assert run_module(gaudi_terraform, **options)["changed"] is False
        assert (("forget", False, []) in project.done) is forgotten


def test_a_terraform_that_hangs_is_interrupted_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by Ctrl-C, after which it gives its lock back."""
    stand_in, freed, ready = tmp_path / "terraform", tmp_path / "lock-given-back", tmp_path / "ready"
    stand_in.write_text(f"#!/bin/sh\ntrap 'touch {freed}; exit 1' INT\ntouch {ready}\nwhile :; do sleep 0.1; done\n")
    stand_in.chmod(0o755)

    class Begun(subprocess.Popen[str]):
        """The time counts from where the program can be interrupted."""

        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            while not ready.exists():
                time.sleep(0.01)

    monkeypatch.setattr(terraform_project.subprocess, "Popen", Begun)
    with pytest.raises(Refusal) as caught:
        terraform_project.Project(str(tmp_path), "demo", str(stand_in), 1, timeout=0.5).apply("plan")
    assert str(caught.value) == (
        f"'terraform apply' did not end within 0.5 seconds in {tmp_path} and was interrupted: look at the provider and "
        "the backend, run the same again, or raise timeout."
    )
    assert freed.exists()


def test_outputs_that_are_marked_sensitive_are_left_out(tmp_path: Path) -> None:
    """A result is printed, logged and kept by callbacks."""
    stand_in = tmp_path / "terraform"
    told = {"head": {"value": "10.0.0.11", "sensitive": False}, "token": {"value": "secret", "sensitive": True}}
    stand_in.write_text(f"#!/bin/sh\necho '{json.dumps(told)}'\n")
    stand_in.chmod(0o755)
    assert terraform_project.Project(str(tmp_path), "demo", str(stand_in), 1).outputs() == {"head": "10.0.0.11"}
