"""Records outside the checkout, for their user alone, and one command at a time on each of them."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import SOURCE, Deploy
from gaudi3_deploy import lock, tree
from gaudi3_deploy.errors import UsageError

NEW = ("--cloud", "aws", "--size", "16", "--type", "box8")


def test_all_that_is_kept_is_its_user_s_alone_and_outside_of_the_tree(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {**deploy.environment(), "XDG_STATE_HOME": str(deploy.folder / "state")}
    del environment["GAUDI3_DEPLOYMENTS"]
    monkeypatch.setattr(deploy, "environment", lambda: environment)
    before = {path: path.read_bytes() for path in deploy.folder.joinpath("terraform").rglob("*") if path.is_file()}
    monkeypatch.setattr(os, "umask", os.umask)
    os.umask(0o022)
    deploy.run("up", "demo", *NEW, "--yes")
    kept = deploy.folder / "state/gaudi3-deploy"
    state = kept / ".terraform/aws/terraform.tfstate.d/demo/terraform.tfstate"
    assert len(json.loads(state.read_text())["resources"][0]["instances"]) == 2
    after = {path: path.read_bytes() for path in deploy.folder.joinpath("terraform").rglob("*") if path.is_file()}
    assert after == before
    assert stat.S_IMODE(kept.joinpath("demo").stat().st_mode) == 0o700
    files = [path for path in [state, *kept.joinpath("demo").rglob("*")] if path.is_file()]
    assert {path.name for path in files} >= {
        "deployment.json",
        "terraform.yml",
        "outputs.json",
        "ssh_config",
        "terraform.tfstate",
    }
    assert [path for path in files if stat.S_IMODE(path.stat().st_mode) & 0o077] == []

    # A state that terraform has left in the checkout is worked on there.
    left = deploy.folder / "terraform/aws/terraform.tfstate.d/demo"
    left.parent.mkdir()
    state.parent.rename(left)
    assert "nothing to change" in deploy.run("plan", "demo")
    assert not state.exists()


def test_a_second_command_is_refused_and_told_who_is_at_work(tmp_path: Path) -> None:
    with lock.held(tmp_path / "demo", "up"):
        with (
            pytest.raises(
                UsageError, match=r"^Deployment 'demo' is being worked on by \w+ on .*gaudi3-deploy up, proc"
            ),
            lock.held(tmp_path / "demo", "plan"),
        ):
            pass
        with lock.held(tmp_path / "other", "plan"):
            pass
    code = (
        f"import os, pathlib; from gaudi3_deploy import lock; lock.held(pathlib.Path({str(tmp_path / 'demo')!r}), 'up')"
    )
    killed = f"{code}.__enter__(); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", killed], env={**os.environ, "PYTHONPATH": str(SOURCE)}, check=False)
    (tmp_path / "demo/plan-abc").mkdir()  # which a killed command has left, with variables in it
    with lock.held(tmp_path / "demo", "up"):
        assert not (tmp_path / "demo/plan-abc").exists()


FAKE = """#!{python}
import json, pathlib, sys
arguments = sys.argv[1:]
here = pathlib.Path({folder!r})
given = dict(each.partition("=")[::2] for each in arguments if each.startswith("-"))
if arguments[0] == "init":
    pathlib.Path(".terraform").mkdir(exist_ok=True)
elif arguments[0] == "plan":
    pathlib.Path(given["-out"]).write_text(pathlib.Path(given["-var-file"]).read_text())
    resource = {{"addr": "aws_vpc.v", "resource_type": "aws_vpc"}}
    print(json.dumps({{"type": "planned_change", "change": {{"action": "create", "resource": resource}}}}))
elif arguments[0] == "apply":
    here.joinpath("applied").write_text(pathlib.Path(arguments[-1]).read_text())
elif arguments[0] in ("output", "state"):
    print("{{}}")
if arguments[0] in ("plan", "apply"):
    for path in here.joinpath("deployments/demo").rglob("*"):
        if path.stat().st_mode & 0o077:
            here.joinpath("open").open("a").write(str(path))
"""


def test_what_was_confirmed_is_what_is_applied(deploy: Deploy) -> None:
    fake = deploy.folder / "fake-terraform"
    fake.write_text(FAKE.format(python=sys.executable, folder=str(deploy.folder)))
    fake.chmod(0o755)
    given = ("--terraform", str(fake), "up", "demo", "--cloud", "aws", "--type", "box8")
    ours, theirs = os.openpty()
    command = deploy.command(*given, "--size", "16")
    first = subprocess.Popen(command, cwd=deploy.folder, env=deploy.environment(), stdin=theirs, stderr=subprocess.PIPE)
    try:
        assert first.stderr is not None
        said = b""
        while b"changes?" not in said:
            said += first.stderr.read(1) or pytest.fail(f"it asked nothing: {said!r}")
        refused = deploy.run(*given, "--size", "8", "--yes", code=2)
        assert "gaudi3-deploy: Deployment 'demo' is being worked on by " in refused
        os.write(ours, b"y\n")
        first.wait(timeout=60)
    finally:
        first.kill()
        os.close(ours)
        os.close(theirs)
    assert json.loads((deploy.folder / "applied").read_text())["cluster_size"] == 16
    assert not (deploy.folder / "open").exists()


GROUP_OF_TWO = """#!{python}
import json, pathlib, sys
arguments = sys.argv[1:]
here, group = pathlib.Path({folder!r}), "aws_autoscaling_group"
given = dict(each.partition("=")[::2] for each in arguments if each.startswith("-"))
address = f"module.cluster.{{group}}.nodes[0]"
if arguments[0] == "init":
    pathlib.Path(".terraform").mkdir(exist_ok=True)
elif arguments[0] == "plan":
    pathlib.Path(given["-out"]).write_text(pathlib.Path(given["-var-file"]).read_text())
    resource = {{"addr": address, "resource_type": group}}
    print(json.dumps({{"type": "planned_change", "change": {{"action": "update", "resource": resource}}}}))
elif arguments[0] == "show":
    wanted = json.loads(pathlib.Path(arguments[-1]).read_text())["cluster_size"] // 8
    after = {{"before": {{"desired_capacity": 2}}, "after": {{"desired_capacity": wanted}}}}
    change = {{"type": group, "address": address, "change": {{"actions": ["update"], **after}}}}
    print(json.dumps({{"resource_changes": [change]}}))
elif arguments[0] == "apply":
    here.joinpath("applied").touch()
elif arguments[0] in ("output", "state"):
    print("{{}}")
"""


def test_a_group_is_not_made_smaller_without_consent(deploy: Deploy) -> None:
    main = deploy.folder / "terraform/aws/main.tf"
    main.write_text(main.read_text() + 'variable "autoscaling" { default = false }\n')
    fake = deploy.folder / "fake-terraform"
    fake.write_text(GROUP_OF_TWO.format(python=sys.executable, folder=str(deploy.folder)))
    fake.chmod(0o755)
    group = "module.cluster.aws_autoscaling_group.nodes[0]"
    asked = ("demo", "--cloud", "aws", "--type", "box8", "--var", "autoscaling=true")
    deploy.run("--terraform", str(fake), "plan", *asked, "--size", "16")
    refused = deploy.run("--terraform", str(fake), "up", "demo", "--size", "8", "--yes", code=2)
    assert refused.splitlines()[-1] == (
        f"gaudi3-deploy: The plan destroys or replaces 1 running node(s), {group} (2 nodes, then 1): change what was "
        "asked for, or accept it with --allow-replace."
    )
    assert not (deploy.folder / "applied").exists()
    # One that grows loses none; the stand-in ends there, as it makes no machines.
    grown = deploy.run("--terraform", str(fake), "up", "demo", "--size", "24", "--yes", code=1)
    assert "has no nodes in terraform's outputs" in grown.splitlines()[-1]
    assert (deploy.folder / "applied").exists()


def test_a_tree_is_copied_where_it_changes_and_its_lock_and_states_stay(tmp_path: Path) -> None:
    source, records = tmp_path / "tree", tmp_path / "records"
    for name, text in {"aws/main.tf": "1", "modules/a/main.tf": "2", "modules/a/tests/a.tftest.hcl": "3"}.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(text)
    there = tree.root(source, records, "aws", "demo")
    assert there == records / ".terraform/aws"
    state = there / "terraform.tfstate.d/demo/terraform.tfstate"
    state.parent.mkdir(parents=True)
    state.write_text("state")
    (there / ".terraform.lock.hcl").write_text("lock")
    (there / "backend.tf").write_text("a user's own")
    (source / "modules/a/main.tf").rename(source / "modules/a/other.tf")
    (source / "aws/main.tf").write_text("4")
    tree.root(source, records, "aws", "demo")
    found = {str(path.relative_to(records / ".terraform")) for path in there.parent.rglob("*") if path.is_file()}
    assert found == {
        ".lock", "aws/main.tf", "aws/.terraform.lock.hcl", "aws/terraform.tfstate.d/demo/terraform.tfstate",
        "modules/a/other.tf", "aws/backend.tf",
    }  # fmt: skip
    assert (there / "main.tf").read_text() == "4"
