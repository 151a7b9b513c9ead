"""What is planned where all but checkpoints is to go; the rest of the module is tried with the real Terraform."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.gaudi3.scale.plugins.module_utils._refusal import Refusal
from ansible_collections.gaudi3.scale.plugins.module_utils._terraform import project as terraform_project
from ansible_collections.gaudi3.scale.plugins.module_utils._terraform.plan import Plan
from ansible_collections.gaudi3.scale.plugins.modules import gaudi_terraform

BUCKET = "module.cluster.aws_s3_bucket.checkpoints"


def resource(kind: str, name: str, **attributes: Any) -> dict[str, Any]:
    instance = {"attributes": attributes}
    return {"mode": "managed", "module": "module.cluster", "type": kind, "name": name, "instances": [instance]}


class Project:
    """A project that notes what it is asked to do."""

    def __init__(self, *resources: dict[str, Any], warnings: tuple[str, ...] = ()) -> None:
        self._state = {"resources": list(resources)}
        self._warnings = list(warnings)
        self.done: list[tuple[str, bool, list[str]]] = []

    def state(self) -> dict[str, Any]:
        return self._state

    def plan(self, variables: Any, folder: str, destroy: bool, only: Any = ()) -> tuple[Plan, str]:
        self.done.append(("plan", destroy, list(only)))
        return Plan(delete=["x"]) if destroy else Plan(update=list(only), warnings=self._warnings), "file"

    def init(self) -> None:
        """Nothing is fetched."""

    def outputs(self) -> dict[str, Any]:
        return {}

    def apply(self, planned: str) -> None:
        self.done.append(("apply", False, []))

    def forget(self) -> None:
        self.done.append(("forget", False, []))


def end(project: Project, filled: bool, monkeypatch: pytest.MonkeyPatch, **variables: Any) -> list[str]:
    monkeypatch.setattr(gaudi_terraform, "may_hold_something", lambda kind, attributes: filled)
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


def test_a_terraform_that_hangs_is_interrupted_and_said(tmp_path: Path) -> None:
    """As by Ctrl-C, after which it gives its lock back."""
    stand_in, freed = tmp_path / "terraform", tmp_path / "lock-given-back"
    stand_in.write_text(f"#!/bin/sh\ntrap 'touch {freed}; exit 1' INT\nwhile :; do sleep 0.1; done\n")
    stand_in.chmod(0o755)
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
