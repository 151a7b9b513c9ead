"""The command line as a new user meets it: names, keys, errors, JSON, and nothing recorded that was refused."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import CATALOGUE, Deploy
from gaudi3_deploy import estimate, preflight, record
from gaudi3_deploy.errors import UsageError
from gaudi3_deploy.record import Deployment
from gaudi3_deploy.requested import default_key, public_key

ROOT = Path(__file__).resolve().parents[2]
NEW = ("--cloud", "aws", "--size", "16", "--type", "box8")


def test_without_arguments_it_prints_its_help_and_nothing_after_it(deploy: Deploy) -> None:
    said = deploy.run(code=2)
    assert "Usage: " in said and "down" in said
    assert "gaudi3-deploy: \n" not in said and not said.rstrip().endswith("gaudi3-deploy:")


def test_one_rule_for_names_in_terraform_ansible_and_here() -> None:
    terraform_rule = re.search(
        r'regex\("\^(\[a-z\].*?)\$", var\.name\)', (ROOT / "terraform/modules/cluster/variables.tf").read_text()
    )
    ansible_rule = re.search(r"is regex\('\^(.*?)\$'\)", (ROOT / "playbooks/provision.yml").read_text())
    assert terraform_rule is not None and ansible_rule is not None
    assert record.NAME.pattern == terraform_rule.group(1) == ansible_rule.group(1)
    for name in ("a", "a" * 24):
        assert record.check_name(name) == name
    for name in ("a" * 25, "1a", "a-", "A", ""):
        with pytest.raises(
            UsageError, match=r"give 1 to 24 lower-case letters, digits and dashes, a letter first and no"
        ):
            record.check_name(name)


def test_what_was_refused_is_not_recorded_and_what_was_only_planned_can_be_forgotten(deploy: Deploy) -> None:
    main = deploy.folder / "terraform/aws/main.tf"
    check = 'validation {\n condition = var.image != "bad"\n error_message = "Take one."\n }'
    text = main.read_text().replace('variable "image" {', f'variable "image" {{\n {check}')
    main.write_text(text)
    said = deploy.run("plan", "demo", *NEW, "--var", "image=bad", code=2)
    # The sentence stands alone: not where in the modules it was written.
    assert "gaudi3-deploy: Take one. (whole output: " in said
    assert "no deployments in " in deploy.run("status")
    deploy.run("plan", "demo", *NEW)
    deploy.run("plan", "demo", "--var", "image=bad", code=2)
    assert "new " in deploy.run("status", "demo")
    assert "create 2: " in deploy.run("plan", "demo")  # still of the image one
    assert "the record of demo is removed" in deploy.run("forget", "demo")
    assert "no deployments in " in deploy.run("status")


def test_a_deployment_with_nodes_is_not_forgotten(deploy: Deploy) -> None:
    deployment = Deployment("demo", deploy.deployments / "demo", "aws", "up")
    deployment.save()
    said = deploy.run("forget", "demo", code=2)
    assert "Deployment 'demo' is not down (its phase is up)" in said
    assert (deploy.deployments / "demo/deployment.json").exists()


def test_a_key_is_taken_from_its_file_or_from_where_it_always_is(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = deploy.environment()
    del environment["TF_VAR_ssh_public_key"]
    monkeypatch.setattr(deploy, "environment", lambda: environment)
    folder = deploy.folder / "home/.ssh"
    folder.mkdir(parents=True)
    (folder / "id_rsa.pub").write_text("ssh-rsa AAAA me@home\n")
    (deploy.folder / "other.pub").write_text("ssh-ed25519 BBBB me@home\n")

    def key() -> str:
        return str(json.loads((deploy.deployments / "demo/variables.tfvars.json").read_text())["ssh_public_key"])

    deploy.run("plan", "demo", *NEW)
    assert key() == "ssh-rsa AAAA me@home"
    deploy.run("plan", "demo", "--ssh-key", "other.pub")
    assert key() == "ssh-ed25519 BBBB me@home"
    deploy.run("plan", "demo")
    assert key() == "ssh-ed25519 BBBB me@home"  # recorded


@pytest.mark.parametrize(("cloud", "name"), [("aws", None), ("ibm", None), ("azure", None), ("onprem", "id_ecdsa.pub")])
def test_a_key_that_the_cloud_does_not_take_is_not_offered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cloud: str, name: str | None
) -> None:
    folder = tmp_path / ".ssh"
    folder.mkdir()
    (folder / "id_ecdsa.pub").write_text("ecdsa-sha2-nistp256 AAAA me@home\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_key(cloud) == (folder / name if name else None)
    (folder / "id_rsa.pub").write_text("ssh-rsa AAAA me@home\n")
    assert default_key(cloud) == folder / "id_rsa.pub"


def test_a_private_key_is_never_read_into_a_variable(tmp_path: Path) -> None:
    (tmp_path / "id").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    with pytest.raises(UsageError, match=r"^The public key of .*/id cannot be read"):
        public_key(tmp_path / "id")
    (tmp_path / "id.pub").write_text("ssh-ed25519 AAAA\n")
    assert public_key(tmp_path / "id") == public_key(tmp_path / "id.pub") == "ssh-ed25519 AAAA"
    (tmp_path / "id.pub").write_text("one\ntwo words\n")
    with pytest.raises(UsageError, match=r"^There is no public key in "):
        public_key(tmp_path / "id.pub")


def as_json(deploy: Deploy, *arguments: str) -> dict[str, Any]:
    """The one document on standard output."""
    command = deploy.command(*arguments, "--json")
    done = subprocess.run(
        command, cwd=deploy.folder, env=deploy.environment(), capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    found = dict(json.loads(done.stdout))
    assert found.pop("schema") == 1
    return found


def test_every_answer_for_a_program_has_one_shape(deploy: Deploy) -> None:
    planned = as_json(deploy, "plan", "demo", *NEW)
    price = planned.pop("price")
    nodes = [f'terraform_data.node["demo-gaudi-{number}"]' for number in (0, 1)]
    assert planned == {
        "deployment": "demo",
        "cloud": "aws",
        "changes": {"create": nodes, "update": [], "replace": [], "delete": [], "adopt": []},
        "nodes_lost": [],
        "storage_lost": [],
        "warnings": [],
    }
    assert price.pop("reason").startswith(
        "13.00 USD per node and hour, on-demand in here, not us-west-2 (seen 2026-01-02"
    )
    assert price == {
        "usd_per_node_hour": 13.0, "nodes": 2, "usd_per_hour": 26.0, "usd_per_hour_all_in": None, "not_included": [],
    }  # fmt: skip
    made = as_json(deploy, "up", "demo", "--yes")
    assert {*made} == {*planned, "price", "phase", "inventory", "nodes"}
    assert [each["name"] for each in made["nodes"]] == ["demo-gaudi-0", "demo-gaudi-1"]
    (status,) = as_json(deploy, "status", "demo")["deployments"]
    nobody = {"address": "127.0.0.1", "port": 22, "private_ip": "127.0.0.1", "public_ip": None}
    nobody |= {"instance_id": None, "instance_type": None, "answers": False}
    assert status.pop("nodes") == [
        {"name": f"demo-gaudi-{number}", "role": role, **nobody} for number, role in enumerate(("head", "worker"))
    ]
    assert status == {
        "deployment": "demo", "cloud": "aws", "region": "us-west-2", "phase": "up", "instance_type": "box8",
        "paid_nodes": 2, "master_ip": "127.0.0.1", "directory": str(deploy.deployments / "demo"), "partial": [],
    }  # fmt: skip
    cost = as_json(deploy, "cost", "demo")
    (period,) = cost.pop("periods")
    assert (period["nodes"], period["to"], period["usd_per_node_hour"]) == (2, None, 13.0)
    assert {*cost} == {"deployment", "usd", "priced_node_hours", "unpriced_node_hours"}
    (offer,) = as_json(deploy, "offers")["offers"]
    assert (offer["type"], offer["cards"], offer["withdrawn"], offer["prices"]) == (
        "box8", 8, None, CATALOGUE["types"]["box8"]["prices"],
    )  # fmt: skip


def test_missing_tools_are_named_those_of_systems_manager_where_it_is_the_way_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for each in ("terraform", "ssh", "aws"):
        (tmp_path / each).touch(0o755)
    deployment = Deployment("demo", tmp_path / "demo", "aws", variables={"connection": "ssm"})
    (found,) = preflight._tools(deployment, "terraform")
    assert (found.what, found.verdict, found.sentence) == (
        "tools", "problem",
        "not on this machine: ansible-playbook (ansible-core 2.17 to 2.21), session-manager-plugin (the AWS command "
        "line's plugin): install what is missing",
    )  # fmt: skip
    for each in ("ansible-playbook", "session-manager-plugin"):
        (tmp_path / each).touch(0o755)
    (found,) = preflight._tools(deployment, "terraform")
    assert (found.verdict, found.sentence) == (
        "ok", "terraform, ssh, ansible-playbook, aws, session-manager-plugin are there",
    )  # fmt: skip
    (tmp_path / "session-manager-plugin").unlink()
    deployment.variables = {"connection": "direct"}
    (found,) = preflight._tools(deployment, "terraform")
    assert (found.verdict, found.sentence) == ("ok", "terraform, ssh, ansible-playbook are there")


def test_the_region_is_the_one_that_terraform_takes() -> None:
    for cloud, region in record.REGIONS.items():
        text = (ROOT / f"terraform/{cloud}/variables.tf").read_text().partition('variable "region"')[2]
        assert re.search(r'default *= "(.*)"', text).group(1) == region  # type: ignore[union-attr]
        deployment = Deployment("demo", ROOT / "demo", cloud)
        assert deployment.region == region
        deployment.environment["TF_VAR_region"] = "of-the-shell"
        assert deployment.region == "of-the-shell"
        deployment.variables["region"] = "asked-for"
        assert deployment.region == "asked-for"
    assert Deployment("demo", ROOT / "demo", "onprem").region == ""


def test_a_price_is_that_of_the_default_region_where_none_is_given() -> None:
    kind = estimate.read_catalogue(ROOT / "terraform/catalogue/instances.json")["dl1.24xlarge"]
    for variables, where in (({}, ""), ({"region": "us-east-1"}, " in us-west-2, not us-east-1")):
        found = estimate.price_of(kind, Deployment("demo", ROOT / "demo", "aws", variables=variables), None)
        assert found.description.startswith(f"13.11 USD per node and hour, on-demand{where} (seen 2026-11-21: ")


def test_a_withdrawn_type_says_so_and_check_names_every_problem_before_anything_is_made(deploy: Deploy) -> None:
    path = deploy.folder / "terraform/catalogue/instances.json"
    catalogue = json.loads(path.read_text())
    catalogue["types"]["box8"]["withdrawn"] = {"since": "2026-07-11", "source": "a table", "seen": "2026-11-25"}
    path.write_text(json.dumps(catalogue))
    assert "withdrawn 2026-07-11" in deploy.run("offers")
    # A type is typed into another command, so it is whole on a narrow terminal, where other columns are left out.
    catalogue["types"]["gx3d-160x1792x8gaudi3-with-a-long-name"] = catalogue["types"]["box8"]
    path.write_text(json.dumps(catalogue))
    environment = {**deploy.environment(), "COLUMNS": "80"}
    narrow = subprocess.run(
        deploy.command("offers"), cwd=deploy.folder, env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert "gx3d-160x1792x8gaudi3-with-a-long-name " in narrow and "…" not in narrow
    assert max(len(line.rstrip()) for line in narrow.splitlines()) <= 80
    said = deploy.run("check", "demo", *NEW, code=1)
    assert "problem  type: box8 is no longer offered (since 2026-07-11): take another type" in said
    assert "problem  credentials: Unable to locate credentials" in said
    assert "ok       price: 13.00 USD per node and hour" in said
    assert "problem  way in: none is set: give jump_host or allowed_cidrs, or connection=ssm" in said
    assert not (deploy.deployments / "demo").exists()


def test_ibm_s_quota_is_named_by_what_a_node_exceeds() -> None:
    offer = {"vcpus": 160, "cards": 8, "nvme_count": 8, "nvme_gb": 3200}
    deployment = Deployment("demo", Path("demo"), "ibm", variables={"cluster_size": 16})
    (found,) = preflight._quota(deployment, offer)
    assert found.sentence == (
        "2 node(s) need 320 vCPU of 200, 51.2 TB of instance storage of 18 that a new account has in a region: ask IBM "
        "for a quota, unless yours is higher already"
    )


def test_what_is_billed_beside_the_nodes_is_counted() -> None:
    addresses = [
        'module.cluster.aws_instance.node["demo-01"]', "module.cluster.aws_instance.monitor[0]",
        "module.cluster.aws_nat_gateway.cluster[0]", "module.cluster.aws_eip.nat[0]", "module.cluster.aws_eip.entry[0]",
        "module.cluster.aws_vpc.cluster",
        "module.cluster.aws_s3_bucket.checkpoints", "module.cluster.aws_s3_bucket_policy.checkpoints",
        "module.cluster.ibm_cos_bucket.flow",
    ]  # fmt: skip
    assert estimate.billed_beside(addresses) == [
        "1 monitoring machine", "1 gateway", "2 public addresses", "2 buckets", "the nodes' disks", "traffic", "taxes",
    ]  # fmt: skip
    assert estimate.billed_beside(["terraform_data.node"]) == []
