"""gaudi3-deploy with the real terraform: it says what it does, asks, and goes on where it was killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest
from conftest import Deploy, listed
from gaudi3_deploy import storage
from gaudi3_deploy.advice import advice
from gaudi3_deploy.collection._terraform.state import read_state
from gaudi3_deploy.estimate import InstanceType, Price, accrued, market
from gaudi3_deploy.record import Deployment, Period, load, write_atomically

NEW = ("up", "demo", "--cloud", "aws", "--size", "16", "--type", "box8")


def test_up_creates_once_scales_by_the_missing_node_and_down_leaves_nothing(deploy: Deploy) -> None:
    said = deploy.run(*NEW, "--yes")
    assert 'create 2: terraform_data.node["demo-gaudi-0"], terraform_data.node["demo-gaudi-1"]' in said
    assert "13.00 USD per node and hour, on-demand in here, not us-west-2 (seen 2026-01-02: a list)" in said
    assert "2 node(s): 26.00 USD per hour" in said
    assert "2/2 resources" in said
    assert said.splitlines()[-1] == "next: gaudi3-deploy site demo"
    two = deploy.state()
    assert set(two) == {"demo-gaudi-0", "demo-gaudi-1"}
    assert deploy.record()["phase"] == "up"

    assert "nothing to change" in deploy.run("up", "demo")  # nothing to ask
    assert deploy.state() == two
    inventory = deploy.deployments / "demo" / "inventory"
    assert deploy.run("inventory", "demo").splitlines()[-1] == str(inventory)
    assert [path.name for path in inventory.iterdir()] == ["terraform.yml"]
    assert listed(inventory)["gaudi"]["hosts"] == ["demo-gaudi-0", "demo-gaudi-1"]

    assert "create 1: " in deploy.run("plan", "demo", "--size", "24")
    deploy.run("up", "demo", "--size", "24", "--yes")
    assert two.items() < deploy.state().items() and len(deploy.state()) == 3
    assert [p["nodes"] for p in deploy.record()["periods"]] == [2, 3]  # type: ignore[attr-defined]
    assert "demo        aws    up     3      box8" in deploy.run("status")
    assert " USD for 0.0 node-hours; nodes only, without storage, traffic and taxes" in deploy.run("cost", "demo")

    said = deploy.run("down", "demo", "--yes")
    assert said.splitlines()[-2:] == [
        "whether anything of cluster demo is left in us-west-2 was not checked: Unable to locate credentials",
        "deployment demo is gone",
    ]
    assert deploy.state() == {}
    assert deploy.record()["phase"] == "down"
    assert list(inventory.iterdir()) == []


WITHDRAWN = """
variable "teardown" {
  type    = bool
  default = false
}
variable "instance_type" {
  type = string
  validation {
    condition     = var.teardown || var.instance_type != "box8"
    error_message = "box8 is withdrawn: take another."
  }
}
"""


def test_what_is_refused_by_now_is_taken_down_all_the_same(deploy: Deploy) -> None:
    deploy.run(*NEW, "--yes")
    main = deploy.folder / "terraform/aws/main.tf"
    main.write_text(main.read_text().replace('variable "instance_type" { type = string }', WITHDRAWN))
    assert "gaudi3-deploy: box8 is withdrawn: take another. (whole output: " in deploy.run("up", "demo", code=2)
    assert len(deploy.state()) == 2
    deploy.run("down", "demo", "--yes")
    assert deploy.state() == {}


def test_a_shell_without_the_variables_takes_down_what_was_made_with_them(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    def key() -> str:
        resources = json.loads((deploy.work / "terraform.tfstate.d/demo/terraform.tfstate").read_text())
        return str(resources["outputs"]["key"]["value"])

    def shell(**variables: str) -> None:
        kept = {k: v for k, v in environment().items() if not k.startswith("TF_VAR_")}
        monkeypatch.setattr(deploy, "environment", lambda: {**kept, **variables})

    environment = deploy.environment
    main = deploy.folder / "terraform/aws/main.tf"
    main.write_text(main.read_text() + 'output "key" { value = var.ssh_public_key }\n')
    shell(TF_VAR_ssh_public_key="one", TF_VAR_name="of another", TF_VAR_unknown="secret")
    deploy.run(*NEW, "--yes")
    assert key() == "one"
    kept = deploy.deployments / "demo/environment.json"
    assert json.loads(kept.read_text()) == {"TF_VAR_name": "of another", "TF_VAR_ssh_public_key": "one"}
    assert kept.stat().st_mode & 0o777 == 0o600

    shell()
    assert "nothing to change" in deploy.run("up", "demo")
    shell(TF_VAR_ssh_public_key="two")
    deploy.run("up", "demo", "--yes")
    assert key() == "two"
    shell()
    assert deploy.run("down", "demo", "--yes").splitlines()[-1] == "deployment demo is gone"


def test_terraform_is_initialised_again_only_where_something_has_changed(deploy: Deploy) -> None:
    def initialised() -> bool:
        (log,) = [*logs.glob("*-init.log")] or [None]
        if log:
            log.unlink()
        return log is not None

    logs = deploy.deployments / "demo" / "logs"
    root = deploy.folder / "terraform" / "aws"
    deploy.run("plan", *NEW[1:])
    assert initialised()
    deploy.run("plan", "demo")
    assert not initialised()
    (root / "more.tf").write_text('module "more" { source = "./more" }\n')
    (root / "more").mkdir()
    (root / "more" / "main.tf").write_text("")
    deploy.run("plan", "demo")
    assert initialised()
    shutil.rmtree(deploy.work / ".terraform" / "modules")
    deploy.run("plan", "demo")
    assert initialised()
    deploy.run("plan", "other", *NEW[2:])
    assert not list(logs.parent.parent.glob("other/logs/*-init.log"))
    assert list(logs.parent.parent.glob("other/logs/*-workspace.log"))


def test_nothing_is_made_without_consent(deploy: Deploy) -> None:
    said = deploy.run(*NEW, code=2)
    assert said.splitlines()[-1] == (
        "gaudi3-deploy: Nobody is there to be asked: look at the plan above and run the command again with --yes."
    )
    assert deploy.state() == {}
    assert not list((deploy.deployments / "demo").glob("plan*"))  # it would hold the variables


def test_nodes_without_a_way_in_are_told_of_before_and_after_they_are_made(deploy: Deploy) -> None:
    warning = "warning: Nobody reaches demo: set jump_host."
    said = deploy.run(*NEW, "--var", 'jump_host=""', code=2)
    assert said.index(warning) < said.index("Nobody is there to be asked")
    said = deploy.run("up", "demo", "--yes")
    assert said.count(warning) == 2
    assert said.splitlines()[-2:] == [warning, "next: gaudi3-deploy site demo"]
    assert warning in deploy.run("up", "demo")  # nothing to change, and still nobody reaches them
    assert "warning" not in deploy.run("plan", "demo", "--var", "jump_host=me@gate")
    assert "warning" not in deploy.run("down", "demo", "--yes")


def test_running_nodes_are_not_replaced_unasked(deploy: Deploy) -> None:
    deploy.run(*NEW, "--yes")
    before = deploy.state()
    # terraform_data is no machine; the rule is tested in test_plan.py.
    said = deploy.run("plan", "demo", "--var", "image=two")
    assert 'replace 2: terraform_data.node["demo-gaudi-0"]' in said
    assert deploy.state() == before


def test_what_holds_checkpoints_stays_with_all_that_it_needs() -> None:
    def resource(kind: str, name: str, *needs: str, key: str | None = None) -> dict[str, object]:
        instance = {"attributes": {"id": f"{kind}-{name}"}, "dependencies": list(needs), "index_key": key}
        return {"mode": "managed", "type": kind, "name": name, "instances": [instance]}

    made = [
        resource("azurerm_resource_group", "cluster"),
        resource("azurerm_subnet", "nodes", "azurerm_resource_group.cluster"),
        resource("azurerm_storage_account", "checkpoints", "azurerm_subnet.nodes"),
        resource("azurerm_linux_virtual_machine", "node", "azurerm_subnet.nodes", key="a-01"),
        resource("ibm_cos_bucket", "flow", "ibm_resource_instance.storage"),
        resource("ibm_resource_instance", "storage"),
    ]
    state = read_state({"resources": made})
    assert state.storage() == {
        "azurerm_resource_group.cluster",
        "azurerm_subnet.nodes",
        "azurerm_storage_account.checkpoints",
        "ibm_resource_instance.storage",
    }
    kept = storage.kept(Deployment("demo", Path("demo"), "azure"), state)
    assert kept.addresses == state.storage()
    assert kept.sentences[0].startswith(
        "azurerm_storage_account-checkpoints may hold checkpoints, which was not checked ("
    )


def test_a_state_that_a_power_cut_has_emptied_comes_back(deploy: Deploy) -> None:
    """Terraform empties the file before it writes it, and so leaves nothing where it is killed in between."""
    deploy.run(*NEW, "--yes")
    two = deploy.state()
    path = deploy.work / "terraform.tfstate.d/demo/terraform.tfstate"
    assert not path.with_name("terraform.tfstate.backup").exists()
    path.write_text("")
    said = deploy.run("plan", "demo")
    copy = deploy.deployments / "demo/terraform.tfstate.copy"
    assert f"Terraform's state was broken, as by a power cut while it was written, and is restored from {copy}" in said
    assert "nothing to change" in said
    assert deploy.state() == two
    assert copy.stat().st_mode & 0o077 == 0
    # Of the copy and Terraform's backup the newer one is taken.
    deploy.run("up", "demo", "--size", "24", "--yes")
    path.write_text('{"version": 4, "ser')
    assert "nothing to change" in deploy.run("plan", "demo")
    assert len(deploy.state()) == 3
    copy.unlink()
    path.write_text("")
    assert "create 1" in deploy.run("plan", "demo")
    deploy.run("down", "demo", "--yes")
    assert not copy.exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "Ctrl-C"])
def test_interrupted_and_run_again_it_converges(deploy: Deploy, number: signal.Signals) -> None:
    """Killed with -9, terraform goes on by itself and the next `up` waits for it; on Ctrl-C it stops in order."""
    process = deploy.start(*NEW, "--var", "wait=3", "--yes")
    logs = deploy.deployments / "demo" / "logs"
    deadline = time.monotonic() + 60
    while not any("apply_start" in log.read_text() for log in logs.glob("*-apply.log")):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    process.send_signal(number)
    process.wait(timeout=60)
    assert deploy.record()["phase"] == "applying"
    deploy.run("up", "demo", "--yes")
    assert set(deploy.state()) == {"demo-gaudi-0", "demo-gaudi-1"}
    assert deploy.record()["phase"] == "up"
    created = [
        event["hook"]["resource"]["addr"]
        for log in sorted(logs.glob("*-apply.log"))
        for line in log.read_text().splitlines()
        if (event := json.loads(line))["type"] == "apply_complete"
    ]
    if number is signal.SIGKILL:  # on Ctrl-C the sleeping provisioners end early, and their nodes are made anew
        assert sorted(created) == ['terraform_data.node["demo-gaudi-0"]', 'terraform_data.node["demo-gaudi-1"]']


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("up", "demo"),
            "Deployment 'demo' is new: say where with --cloud, one of aws, azure, gcp, ibm, onprem.",
        ),
        (
            ("up", "Demo", "--cloud", "aws"),
            "The name 'Demo' can't be used: give 1 to 24 lower-case",
        ),
        (("up", "demo", "--cloud", "oracle"), "The cloud 'oracle' is none of aws, azure, gcp, ibm, onprem: give one"),
        (("up", "demo", "--cloud", "gcp"), "There are no Terraform files in "),
        (("up", "demo", "--cloud", "aws", "--var", "region"), "The variable 'region' is not of the form KEY=VALUE"),
        (("down", "demo"), "There is no deployment 'demo' in "),
        (("site", "demo"), "There is no deployment 'demo' in "),
        (("--terraform", "terrafrom", *NEW), "The command 'terrafrom' is not on this machine: install Terraform 1.9"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else "",
)
def test_bad_input_is_one_sentence(deploy: Deploy, arguments: tuple[str, ...], sentence: str) -> None:
    said = deploy.run(*arguments, code=2)
    assert f"gaudi3-deploy: {sentence}" in said
    assert deploy.state() == {}


def test_terraform_s_own_error_is_told_with_its_log(deploy: Deploy) -> None:
    main = deploy.folder / "terraform/aws/main.tf"
    main.write_text(f'{main.read_text()}\noutput "odd" {{ value = tolist("a") }}\n')
    said = deploy.run("up", "demo", "--cloud", "aws", "--size", "16", "--type", "box8", "--yes", code=1)
    assert "gaudi3-deploy: terraform plan failed (exit code 1): " in said
    assert "Invalid function argument" in said and "-plan.log)" in said
    # What failed may be amiss in what init left behind: it runs again.
    assert not (deploy.work / ".terraform/gaudi3-deploy.json").exists()


def test_a_record_is_on_the_disk_with_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(Path(f"/proc/self/fd/{handle}").readlink()))
    write_atomically(tmp_path / "a.json", "{}")
    assert len(synced) == 2 and synced[0].parent == tmp_path and synced[1] == tmp_path
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_costs_are_summed_over_the_periods_whose_price_is_known(tmp_path: Path) -> None:
    deployment = Deployment("demo", tmp_path / "demo", "aws")
    deployment.count(2, "box8", 10.0, now=0.0)
    deployment.count(2, "box8", 10.0, now=1800.0)  # no change: no new period
    deployment.count(3, "box8", 10.0, now=3600.0)
    deployment.count(3, "other", None, now=7200.0)
    deployment.count(0, "", None, now=10800.0)
    assert deployment.periods[0] == Period(0.0, 2, "box8", 10.0, ended=3600.0)
    assert accrued(deployment.periods, now=99999.0) == (50.0, 5.0, 3.0)
    found = load(tmp_path, "demo")
    assert found is not None and found.periods == deployment.periods


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({}, "13.00 USD per node and hour, on-demand (seen 2026-01-02: a list)"),
        ({"capacity": "reservation"}, "13.00 USD per node and hour, on-demand (seen 2026-01-02: a list)"),
        ({"capacity": "spot"}, "unknown: spot prices change by the hour; give yours with --price"),
        (
            {"capacity": "spot", "on_demand_nodes": 1},
            "unknown: some nodes are bought on demand and some on the spot market, whose prices change by the hour; "
            "give yours with --price",
        ),
        (
            {"capacity": "capacity-block"},
            "unknown: a capacity block is paid beforehand, at the price of its offer; give yours with --price",
        ),
    ],
)
def test_a_price_is_that_of_its_market(variables: dict[str, object], words: str) -> None:
    price = {"market": "on-demand", "usd_per_hour": 13.0, "region": "here", "source": "a list", "seen": "2026-01-02"}
    kind = InstanceType("box8", 8, "Gaudi", (price,))
    assert Price.of(kind, "here", market(variables), None).description == words


def test_ones_own_price_is_remembered_and_the_catalogues_is_not(deploy: Deploy) -> None:
    assert "price: 10.00 USD per node and hour, as given; 2 node(s)" in deploy.run(*NEW, "--yes", "--price", "10")
    assert "price: 10.00 USD per node and hour, as given before; 3" in deploy.run("plan", "demo", "--size", "24")
    other = deploy.run("up", "other", *NEW[2:], "--yes")
    assert other.count("(seen 2026-01-02: a list)") == 1
    assert "as given" not in deploy.run("plan", "other")


def test_a_refusal_of_the_cloud_comes_with_what_to_do() -> None:
    said = (
        "creating EC2 Instance: operation error EC2: RunInstances, api error InsufficientInstanceCapacity: We currently"
    )
    assert advice(said).startswith(
        "; AWS has no such machine free there now: try again later, reserve capacity, or take another zone with "
    )
    assert advice(
        "creating EC2 Placement Group (a): api error InvalidPlacementGroup.Duplicate: The Placement Group 'a'"
    )
    assert advice("CreateInstanceWithContext failed: over_quota: quota exceeded").startswith("; your account has no q")
    full = "deleting S3 Bucket (demo-1): api error BucketNotEmpty: The bucket you tried to delete is not empty"
    assert advice(full) == (
        "; the bucket was filled after it was looked into: run `gaudi3-deploy down` again, which keeps it, or with "
        "--checkpoints, which deletes what is in it"
    )
    assert advice("creating IAM Role: AccessDenied") == ""
