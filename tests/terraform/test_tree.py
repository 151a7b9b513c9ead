"""From variables to machines and back to nothing, as `gaudi3-deploy` does it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml

from .conftest import ROOT, Cluster

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKb0Tn0vKkxNm0J2dRZ0l1Cq3sV0m7c8N1S5e0d9fQxT someone@example"
HOSTS = [{"name": f"node-{n}", "address": f"192.0.2.{10 + n}"} for n in range(1, 4)]


def test_the_tree_is_formatted(base: dict[str, str]) -> None:
    result = subprocess.run(
        ["terraform", "fmt", "-check", "-recursive", str(ROOT / "terraform")],
        env=base,
        text=True,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stdout) == (0, "")


def test_machines_that_are_there_become_an_inventory(onprem: Cluster) -> None:
    hosts = onprem.folder / "hosts.yml"
    hosts.write_text(yaml.safe_dump({"hosts": HOSTS}))
    wanted = ("up", "lab", "--cloud", "onprem", "--size", "16", "--type", "onprem-gaudi3-8", "--var-file", str(hosts))
    onprem.run(*wanted, "--yes")
    inventory = yaml.safe_load((onprem.folder / "deployments/lab/inventory/hosts.yml").read_text())["all"]
    groups = {name: sorted(group["hosts"]) for name, group in inventory["children"].items()}
    assert groups["gaudi"] == ["node-1", "node-2"]
    assert groups["gaudi_head"] == groups["monitoring"] == ["node-1"]
    assert inventory["hosts"]["node-2"]["ansible_host"] == "192.0.2.12"
    onprem.run("up", "lab", "--size", "24", "--yes")
    assert len(json.loads((onprem.folder / "deployments/lab/outputs.json").read_text())["cluster_endpoints"]) == 3


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("--type", "dl2q.24xlarge"),
            "dl2q.24xlarge has Qualcomm AI 100 inference cards and no Gaudi: use dl1.24xlarge on AWS (first-generation "
            "Gaudi) or gx3d-160x1792x8gaudi3 on IBM Cloud (Gaudi 3).",
        ),
        (("--size", "12"), "cluster_size is 12, but a onprem-gaudi3-8 has 8 cards: give a multiple of 8, such as 16."),
        (("--type", "HL-9000"), "instance_type is 'HL-9000', which the catalogue does not have: use "),
    ],
    ids=["Qualcomm", "size", "unknown"],
)
def test_wrong_input_is_told_at_plan_time(onprem: Cluster, arguments: tuple[str, ...], sentence: str) -> None:
    hosts = onprem.folder / "hosts.yml"
    hosts.write_text(yaml.safe_dump({"hosts": HOSTS}))
    wanted = ("plan", "lab", "--cloud", "onprem", "--size", "16", "--type", "onprem-gaudi3-8", "--var-file", str(hosts))
    said = onprem.run(*wanted, *arguments, code=1)
    assert sentence in said


def test_aws_from_nothing_to_nodes_to_more_of_them_to_nothing(aws: Cluster) -> None:
    wanted = ("up", "cluster", "--cloud", "aws", "--size", "16", "--type", "dl1.24xlarge")
    settings = ("--var", "region=us-east-1", "--var", f"ssh_public_key={KEY}")
    said = aws.run(*wanted, *settings, "--yes")
    two = _endpoints(aws.folder)
    assert sorted(two) == ["cluster-01", "cluster-02", "cluster-monitor"], said
    assert "nothing to change" in aws.run("plan", "cluster")

    aws.run("up", "cluster", "--size", "32", "--yes")
    four = _endpoints(aws.folder)
    assert sorted(set(four) - set(two)) == ["cluster-03", "cluster-04"]
    assert {name: four[name]["instance_id"] for name in two} == {name: two[name]["instance_id"] for name in two}

    aws.run("down", "cluster", "--yes")
    clients = {name: _client(aws, name) for name in ("ec2", "s3", "iam")}
    reservations = clients["ec2"].describe_instances()["Reservations"]
    assert {i["State"]["Name"] for r in reservations for i in r["Instances"]} == {"terminated"}
    assert [vpc for vpc in clients["ec2"].describe_vpcs()["Vpcs"] if not vpc["IsDefault"]] == []
    assert clients["s3"].list_buckets()["Buckets"] == []
    assert clients["iam"].list_roles()["Roles"] == []


def _endpoints(folder: Path) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads((folder / "deployments/cluster/outputs.json").read_text())[
        "cluster_endpoints"
    ]
    return found


def _client(aws: Cluster, name: str) -> Any:
    settings = aws.environment
    return boto3.client(
        name,
        endpoint_url=settings["AWS_ENDPOINT_URL"],
        region_name=settings["AWS_REGION"],
        aws_access_key_id=settings["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=settings["AWS_SECRET_ACCESS_KEY"],
    )
