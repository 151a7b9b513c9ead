"""`gaudi3-deploy replace`: a machine beside the old one, a gate, a swap at once, and nothing else is ended."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import Deploy, outputs
from gaudi3_deploy import jobs, replacement, site, ssh
from gaudi3_deploy.app import Context
from gaudi3_deploy.commands import replace as command
from gaudi3_deploy.console import Teller
from gaudi3_deploy.errors import DeployError, UsageError
from gaudi3_deploy.record import Deployment, load
from rich.console import Console

UP = ("up", "demo", "--cloud", "aws", "--size", "16", "--type", "box8", "--yes")
PLAYBOOK = """#!{python}
import json, pathlib, sys
with pathlib.Path({folder!r}, "plays").open("a") as plays:
    plays.write(json.dumps(sys.argv[1:]) + chr(10))
"""


@pytest.fixture
def deploy(deploy: Deploy, monkeypatch: pytest.MonkeyPatch) -> Deploy:
    """Two nodes as the modules name them, whose ssh and playbooks are stand-ins."""
    main = deploy.folder / "terraform/aws/main.tf"
    text = main.read_text().replace('"${var.name}-gaudi-${n}"', 'format("%s-%02d", var.name, n + 1)')
    main.write_text(text.replace("id = node.id", "instance_id = node.id, cards = 8"))
    tools = deploy.folder / "tools"
    tools.mkdir()
    (tools / "ssh").write_text(f'#!/bin/sh\necho "$*" >> {deploy.folder}/calls\n')
    (tools / "ansible-playbook").write_text(PLAYBOOK.format(python=sys.executable, folder=str(deploy.folder)))
    for each in tools.iterdir():
        each.chmod(0o755)
    environment = {**deploy.environment(), "PATH": f"{tools}:{os.environ['PATH']}"}
    monkeypatch.setattr(deploy, "environment", lambda: environment)
    deploy.run(*UP)
    return deploy


def plays(deploy: Deploy) -> list[str]:
    """What of the playbook's arguments matters."""
    path = deploy.folder / "plays"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    path.unlink(missing_ok=True)
    return [" ".join(each for each in play if not each.startswith(("-i", "/", "gaudi3.scale"))) for play in lines]


def steps(deploy: Deploy) -> tuple[command.Steps, Deployment]:
    """What the command does, in this process."""
    console = Console()
    settings = Context(console, deploy.folder / "terraform", "terraform", deploy.deployments)
    deployment = load(deploy.deployments, "demo")
    assert deployment is not None
    return command.Steps(settings, deployment, Teller(console), None, None, []), deployment


def test_a_node_becomes_another_machine_and_only_the_old_one_goes(deploy: Deploy) -> None:
    before = deploy.state()
    said = deploy.run("replace", "demo", "demo-01", "--yes", "--health", "test NODE = demo-03", "--job", "job.yml")
    after = deploy.state()
    assert sorted(after) == ["demo-01", "demo-02"]
    assert after["demo-02"] == before["demo-02"] and after["demo-01"] != before["demo-01"]
    stages = [line.rpartition(" ")[2] for line in said.splitlines() if line.startswith("replace demo-01: ")]
    assert stages == ["grow", "gate", "drain", "swap", "shrink", "start"]
    assert plays(deploy) == ["--limit demo-03 --skip-tags train,verify", "-e @job.yml -e trainer_state=started"]
    # The jobs were stopped on all nodes, the new one among them, before anything was ended.
    assert deploy.folder.joinpath("calls").read_text().count("sh -s") == 3
    endpoints = json.loads((deploy.deployments / "demo/outputs.json").read_text())["cluster_endpoints"]
    assert sorted(endpoints) == ["demo-01", "demo-02"]
    assert [period["nodes"] for period in deploy.record()["periods"]] == [2, 3, 2]  # type: ignore[attr-defined]
    assert "nothing to change" in deploy.run("plan", "demo")


def test_without_a_green_gate_the_old_machine_stays(deploy: Deploy) -> None:
    before = deploy.state()
    said = deploy.run("replace", "demo", "demo-01", "--yes", "--health", "false", code=1)
    assert said.splitlines()[-1] == (
        "gaudi3-deploy: demo-01 was not replaced, and stays as it is: the health command failed (exit code 1)."
    )
    assert deploy.state() == before
    assert "nothing to change" in deploy.run("plan", "demo")
    assert "sh -s" not in deploy.folder.joinpath("calls").read_text()  # no job was stopped


class Cut(BaseException):
    """The command is killed here."""


def test_cut_off_after_any_stage_it_goes_on_and_ends_the_old_machine(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in deploy.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(ssh, "wait", lambda *given: None)
    monkeypatch.setattr(jobs, "drain", lambda *given: [])
    monkeypatch.setattr(site, "run_site", lambda *given: 0)
    before = deploy.state()
    for number, stage in enumerate(replacement.STAGES):
        at_work, deployment = steps(deploy)
        found = replacement.load(deployment.directory)
        assert (found is None) == (number == 0)
        done = getattr(command.Steps, stage)

        def cut(of: command.Steps, about: Any, done: Any = done) -> None:
            done(of, about)
            raise Cut

        with monkeypatch.context() as patch:
            patch.setattr(command.Steps, stage, cut)
            with pytest.raises(Cut):
                at_work.go_on(
                    found or replacement.begin(deployment, json.loads(deployment.outputs.read_text()), "demo-01")
                )
        assert before["demo-02"] == deploy.state()["demo-02"]
        assert before["demo-01"] in deploy.state().values() or stage in ("shrink", "start")
    at_work, deployment = steps(deploy)
    found = replacement.load(deployment.directory)
    assert found is not None
    at_work.go_on(found)
    after = deploy.state()
    assert sorted(after) == ["demo-01", "demo-02"] and after["demo-02"] == before["demo-02"]
    assert after["demo-01"] != before["demo-01"]
    assert replacement.load(deployment.directory) is None


def test_where_a_new_name_needs_a_new_machine_nothing_is_ended(deploy: Deploy) -> None:
    main = deploy.folder / "terraform/aws/main.tf"
    main.write_text(main.read_text().replace("= var.image", "= [var.image, each.key]"))
    deploy.run("up", "demo", "--yes")
    before = deploy.state()
    said = deploy.run("replace", "demo", "demo-01", "--yes", code=1)
    assert 'would destroy or replace terraform_data.node["demo-01"], too: nothing was destroyed.' in said
    assert "demo-01 is as it was, and demo-03 one node more: keep it with `gaudi3-deploy up demo --size 24`" in said
    after = deploy.state()
    assert sorted(after) == ["demo-01", "demo-02", "demo-03"] and before.items() < after.items()
    assert not (deploy.deployments / "demo/replace.json").exists()
    assert "nothing to change" in deploy.run("plan", "demo", "--size", "24")


OUTPUTS = outputs(head="demo-01", monitor="demo-monitor")


@pytest.mark.parametrize(
    ("cloud", "variables", "node", "sentence"),
    [
        ("aws", {}, "demo-02", "Deployment 'demo' has no node 'demo-02': there is demo-01."),
        ("aws", {}, "demo-monitor", "has no node 'demo-monitor'"),
        ("onprem", {}, "demo-01", "none can be made beside demo-01: name another in `hosts`"),
        ("aws", {"autoscaling": True}, "demo-01", "kept by an autoscaling group, which makes a new one where one ends"),
        ("gcp", {}, "demo-01", "On gcp a machine cannot change its name"),
    ],
)
def test_where_no_machine_can_stand_beside_another_it_says_what_to_do(
    cloud: str, variables: dict[str, Any], node: str, sentence: str
) -> None:
    deployment = Deployment("demo", Path("demo"), cloud, "up", variables={"cluster_size": 8, **variables})
    with pytest.raises(UsageError) as caught:
        replacement.begin(deployment, OUTPUTS, node)
    assert sentence in str(caught.value)


def test_a_plan_that_would_end_more_is_refused() -> None:
    found = replacement.Replacement("demo-01", "demo-03", 16, 8, "i-1", "shrink")
    replacement.refuse_more(found, ['m.aws_instance.node["demo-03"]', 'm.aws_eip.node["demo-03"]'], [])
    for destroyed, replaced in ((['m.aws_instance.node["demo-02"]'], []), ([], ["m.aws_subnet.nodes"])):
        with pytest.raises(DeployError, match=r"^To end the machine that demo-01 was would destroy or replace m\.aws"):
            replacement.refuse_more(found, destroyed, replaced)


KEPT = "= var.image\n  lifecycle { ignore_changes = [triggers_replace] }"


def of_image(deploy: Deploy) -> dict[str, str]:
    """Of which image each node was made, as the state has it."""
    path = deploy.work / "terraform.tfstate.d/demo/terraform.tfstate"
    found = json.loads(path.read_text())["resources"]
    return {
        each["index_key"]: each["attributes"]["triggers_replace"]["value"] for one in found for each in one["instances"]
    }


def keep_running_nodes(deploy: Deploy) -> None:
    """As the modules do: a newer image is no reason to replace what runs."""
    main = deploy.folder / "terraform/aws/main.tf"
    main.write_text(main.read_text().replace("= var.image", KEPT))


def test_all_nodes_get_another_image_one_after_the_other_the_first_one_last(deploy: Deploy) -> None:
    keep_running_nodes(deploy)
    before = deploy.state()
    said = deploy.run("replace", "demo", "--all", "--image", "image=two", "--yes")
    ended = [line.partition(" ")[0] for line in said.splitlines() if line.endswith(" is another machine now")]
    assert ended == ["demo-02", "demo-01"]
    assert of_image(deploy) == {"demo-01": "two", "demo-02": "two"}
    assert not set(before.values()) & set(deploy.state().values())
    assert [period["nodes"] for period in deploy.record()["periods"]] == [2, 3, 2, 3, 2]  # type: ignore[attr-defined]
    # A node that is added later is made of it, too.
    deploy.run("up", "demo", "--size", "24", "--yes")
    assert of_image(deploy)["demo-03"] == "two"


def test_an_image_that_makes_no_healthy_node_is_given_up(deploy: Deploy) -> None:
    keep_running_nodes(deploy)
    before = deploy.state()
    deploy.run("replace", "demo", "demo-01", "--image", "image=bad", "--health", "false", "--yes", code=1)
    assert deploy.state() == before
    deploy.run("up", "demo", "--size", "24", "--yes")
    assert set(of_image(deploy).values()) == {"one"}
    said = deploy.run("replace", "demo", "demo-01", "--image", "imge=two", "--yes", code=2)
    assert "terraform/aws has no variable 'imge': give VARIABLE=VALUE of the image (image)." in said


def test_all_cut_off_goes_on_with_the_nodes_that_are_left(deploy: Deploy) -> None:
    before = deploy.state()
    tools = deploy.folder / "tools"
    (tools / "ansible-playbook").rename(tools / "kept")
    (tools / "ansible-playbook").write_text(f"#!/bin/sh\n[ ! -e {deploy.folder}/fail ]\n")
    (tools / "ansible-playbook").chmod(0o755)
    once = f"sh -c 'test NODE = demo-03 && [ ! -e {deploy.folder}/once ] && touch {deploy.folder}/once'"
    # The second node's gate is red.
    said = deploy.run("replace", "demo", "--all", "--yes", "--health", once, code=1)
    assert "demo-02 is another machine now" in said and "demo-01 was not replaced" in said
    halfway = deploy.state()
    assert halfway["demo-01"] == before["demo-01"] and halfway["demo-02"] != before["demo-02"]
    said = deploy.run("replace", "demo", "--all", "--yes")
    assert "replace demo-02" not in said and "demo-01 is another machine now" in said
    after = deploy.state()
    assert after["demo-02"] == halfway["demo-02"] and after["demo-01"] != halfway["demo-01"]
    assert not (deploy.deployments / "demo/replace-all.json").exists()


def test_in_place_the_old_machine_ends_first_and_the_others_stay(deploy: Deploy) -> None:
    before = deploy.state()
    said = deploy.run("replace", "demo", "demo-02", "--in-place", "--yes", "--job", "job.yml")
    after = deploy.state()
    assert sorted(after) == ["demo-01", "demo-02"]
    assert after["demo-01"] == before["demo-01"] and after["demo-02"] != before["demo-02"]
    assert "grow" not in said and "gate" not in said
    assert plays(deploy) == ["-e @job.yml -e trainer_state=started"]
    # Jobs were stopped on both before anything was ended, and no third node was ever paid for.
    assert deploy.folder.joinpath("calls").read_text().count("sh -s") == 2
    assert [period["nodes"] for period in deploy.record()["periods"]] == [2]  # type: ignore[attr-defined]
    endpoints = json.loads((deploy.deployments / "demo/outputs.json").read_text())["cluster_endpoints"]
    assert endpoints["demo-02"]["instance_id"] == after["demo-02"]
    assert deploy.record()["phase"] == "ready"
    assert "nothing to change" in deploy.run("plan", "demo")


def test_in_place_ends_nothing_where_more_would_go_or_nothing_can_be_made(deploy: Deploy) -> None:
    before = deploy.state()
    # The image is no reason to keep running nodes here: both would go.
    said = deploy.run("replace", "demo", "demo-02", "--in-place", "--image", "image=two", "--yes", code=1)
    assert 'would destroy or replace terraform_data.node["demo-01"], too: nothing was destroyed.' in said
    assert deploy.state() == before
    said = deploy.run("replace", "demo", "demo-09", "--in-place", "--yes", code=2)
    assert "Deployment 'demo' has no node 'demo-09': there is demo-01, demo-02." in said
    own = Deployment("demo", Path("demo"), "onprem", "up", variables={"cluster_size": 8})
    with pytest.raises(UsageError, match="are your own machines"):
        replacement.refuse(own, OUTPUTS, "demo-01")


@pytest.mark.parametrize("which", [(), ("demo-01", "--all")])
def test_one_node_or_all(deploy: Deploy, which: tuple[str, ...]) -> None:
    said = deploy.run("replace", "demo", *which, "--yes", code=2)
    assert said == "gaudi3-deploy: Say which node is to be replaced, or --all.\n"
