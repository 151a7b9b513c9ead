"""terraform/aws for real, against a moto server: applied, planned again, grown, given a newer image, destroyed.

The module is used as it is; AWS_ENDPOINT_URL is all that leads it to moto, and support/moto_server.py has what moto
lacks.
The tests of a class run in their order and build on each other.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from .conftest import ROOT
from .support.account import Account, moto_account
from .support.moto_server import NEWER_IMAGE
from .support.provider import shared_provider
from .support.tool import Done, Project, copied

SIZE16 = ("-var=cluster_size=16", "-var=instance_type=dl1.24xlarge")
SIZE32 = ("-var=cluster_size=32", "-var=instance_type=dl1.24xlarge")
GROUP = (
    "-var=cluster_size=24", "-var=instance_type=dl1.24xlarge", "-var=name=group", "-var=autoscaling=true",
    "-var=capacity=spot", "-var=on_demand_nodes=1", "-var=internet=false", "-var=network_cidr=10.43.0.0/16",
    "-var=connection=ssm", '-var=allowed_cidrs=["198.51.100.0/24"]', "-var=monthly_budget_usd=5000",
    '-var=budget_emails=["team@example.com"]',
)  # fmt: skip


@pytest.fixture(scope="module")
def account(terraform: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    """An empty account."""
    with moto_account(tmp_path_factory.mktemp("account"), "us-west-2") as made:
        yield made


@dataclass
class Clusters:
    """Two projects in one account: nodes that Terraform counts, and nodes that a group keeps."""

    fixed: Project
    group: Project
    applied: dict[str, Done]
    before: dict[str, int]


@pytest.fixture(scope="module")
def clusters(account: Account, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    """Both applied, side by side: most of the time is AWS's own waiting."""
    tree = copied(ROOT / "terraform", tmp_path_factory.mktemp("aws") / "terraform")
    other = copied(ROOT / "terraform", tmp_path_factory.mktemp("group") / "terraform")
    fixed, group = (Project(each / "aws", account.environment, account.missing) for each in (tree, other))
    for project in (fixed, group):
        project.init("hashicorp/aws")
    before = account.everything()
    apply = ("apply", "-input=false", "-no-color", "-auto-approve")
    own = account.environment
    with shared_provider(own, tree / "log") as one, shared_provider(own, other / "log") as another:
        fixed.environment, group.environment = {**own, **one}, {**own, **another}
        calls = {
            "fixed": (fixed, fixed.start(*apply, f"-state={fixed.state}", *SIZE16)),
            "group": (group, group.start(*apply, f"-state={group.state}", *GROUP)),
        }
        try:
            applied = {name: project.finish(call, 300) for name, (project, call) in calls.items()}
        finally:
            for _project, call in calls.values():
                call.end()
        yield Clusters(fixed, group, applied, before)


def changes(project: Project, *arguments: str) -> dict[str, list[str]]:
    """What a plan would do, by action."""
    done = project.change("plan", "-json", *arguments)
    assert done.code == 0, done.output[-3000:]
    found: dict[str, list[str]] = {}
    for line in done.output.splitlines():
        event = json.loads(line) if line.startswith("{") else {}
        if event.get("type") == "planned_change" and event["change"]["action"] not in ("noop", "read"):
            found.setdefault(event["change"]["action"], []).append(event["change"]["resource"]["addr"])
    return {action: sorted(addresses) for action, addresses in found.items()}


def listed(project: Project, tmp_path: Path, executable: str = "terraform") -> subprocess.CompletedProcess[str]:
    """The inventory plugin's answer for a project."""
    source = tmp_path / "aws.terraform.yml"
    source.write_text(
        f"plugin: gaudi3.scale.terraform\nstate_file: {project.state}\n"
        if executable == ""
        else f"plugin: gaudi3.scale.terraform\nproject_path: {project.folder}\nexecutable: {executable}\n"
    )
    command = [str(Path(sys.executable).with_name("ansible-inventory")), "-i", str(source), "--list"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)


class TestSecondPlan:
    """What was applied is what is wanted."""

    @pytest.mark.parametrize("which", ["fixed", "group"])
    def test_is_empty(self, clusters: Clusters, which: str) -> None:
        project, arguments = (clusters.fixed, SIZE16) if which == "fixed" else (clusters.group, GROUP)
        assert clusters.applied[which].code == 0, clusters.applied[which].output[-4000:]
        done = project.change("plan", "-detailed-exitcode", *arguments)
        assert done.code == 0, done.output[-3000:]


class TestLife:
    """One cluster from its first apply to its end."""

    def test_apply(self, clusters: Clusters, account: Account) -> None:
        done = clusters.applied["fixed"]
        assert done.code == 0, done.output[-4000:]
        assert "Apply complete! Resources: 55 added, 0 changed, 0 destroyed." in done.output
        assert {"gaudi-01", "gaudi-02", "gaudi-monitor"} <= set(account.machines())

    def test_the_outputs_are_what_aws_says(self, clusters: Clusters, account: Account) -> None:
        outputs = clusters.fixed.outputs()
        machines = account.machines()
        endpoints = outputs["cluster_endpoints"]
        told = {name: (each["private_ip"], each["instance_id"], each["zone"]) for name, each in endpoints.items()}
        assert told == {
            name: (machines[name]["PrivateIpAddress"], machines[name]["InstanceId"], "us-west-2a")
            for name in ("gaudi-01", "gaudi-02", "gaudi-monitor")
        }
        assert outputs["master_ip"] == machines["gaudi-01"]["PrivateIpAddress"]
        assert {each["role"] for each in outputs["cluster_endpoints"].values()} == {"head", "worker", "monitor"}
        assert all(each["public_ip"] is None for each in outputs["cluster_endpoints"].values())
        assert all(each["private_ip"].startswith("10.42.16.") for each in outputs["cluster_endpoints"].values())

    def test_what_lies_in_the_account(self, clusters: Clusters, account: Account) -> None:
        ec2, s3 = account.client("ec2"), account.client("s3")
        templates = ec2.describe_launch_templates()["LaunchTemplates"]
        (template,) = [each for each in templates if each["LaunchTemplateName"].startswith("gaudi-")]
        (version,) = ec2.describe_launch_template_versions(LaunchTemplateId=template["LaunchTemplateId"])[
            "LaunchTemplateVersions"
        ]
        data = version["LaunchTemplateData"]
        keys = ("NetworkCardIndex", "DeviceIndex", "InterfaceType")
        cards = [[each[key] for key in keys] for each in data["NetworkInterfaces"]]
        assert cards == [[0, 0, "efa"], [1, 1, "efa-only"], [2, 1, "efa-only"], [3, 1, "efa-only"]]
        assert data["MetadataOptions"]["HttpTokens"] == "required"
        assert data["BlockDeviceMappings"][0]["Ebs"]["Encrypted"] is True
        assert data["Placement"]["GroupName"] == "gaudi"
        (image,) = ec2.describe_images(ImageIds=[account.machines()["gaudi-01"]["ImageId"]])["Images"]
        assert data["BlockDeviceMappings"][0]["DeviceName"] == image["RootDeviceName"] == "/dev/xvda"

        target = clusters.fixed.outputs()["cluster"]["checkpoint_target"]
        bucket = target.removeprefix("s3://").partition("/")[0]
        assert s3.get_bucket_versioning(Bucket=bucket)["Status"] == "Enabled"
        rule = s3.get_bucket_encryption(Bucket=bucket)["ServerSideEncryptionConfiguration"]["Rules"][0]
        assert rule["ApplyServerSideEncryptionByDefault"]["SSEAlgorithm"] == "aws:kms"
        assert set(s3.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"].values()) == {True}
        (deny,) = json.loads(s3.get_bucket_policy(Bucket=bucket)["Policy"])["Statement"]
        assert (deny["Effect"], deny["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})

        rules = ec2.describe_security_group_rules()["SecurityGroupRules"]
        assert [each for each in rules if not each["IsEgress"] and each.get("CidrIpv4") == "0.0.0.0/0"] == []

    def test_nothing_secret_is_in_the_state(self, clusters: Clusters) -> None:
        for project in (clusters.fixed, clusters.group):
            state = json.loads(project.state.read_text())
            text = json.dumps(state)
            assert "PRIVATE KEY" not in text
            for resource in state["resources"]:
                for instance in resource["instances"]:
                    for name, value in instance["attributes"].items():
                        assert not (re.search(r"password|secret|private_key|token$", name) and value), (
                            f"{resource['type']}.{resource['name']} keeps {name}"
                        )

    def test_the_inventory_has_these_machines(self, clusters: Clusters, account: Account, tmp_path: Path) -> None:
        done = listed(clusters.fixed, tmp_path, executable="")
        assert done.returncode == 0, done.stderr
        # Strings that a plugin gives are no templates, and ansible-inventory marks them so.
        found = json.loads(done.stdout, object_hook=lambda read: read.get("__ansible_unsafe", read))
        assert found["gaudi"]["hosts"] == ["gaudi-01", "gaudi-02"]
        assert found["gaudi_head"]["hosts"] == ["gaudi-01"]
        assert found["monitoring"]["hosts"] == ["gaudi-monitor"]
        addresses = {name: each["ansible_host"] for name, each in found["_meta"]["hostvars"].items()}
        assert addresses == {
            name: each["PrivateIpAddress"] for name, each in account.machines().items() if name.startswith("gaudi-")
        }

    def test_a_newer_image_replaces_nothing(self, clusters: Clusters, account: Account) -> None:
        images = account.client("ec2").describe_images(Owners=["amazon"])["Images"]
        running = account.machines()["gaudi-01"]["ImageId"]
        root = {image["ImageId"]: image["RootDeviceName"] for image in images}
        newer = next(image for image in root if image != running and root[image] == root[running])
        account.client("ssm").put_parameter(Name=NEWER_IMAGE, Value=newer, Type="String")
        done = clusters.fixed.change("plan", "-detailed-exitcode", *SIZE16)
        assert done.code == 0, done.output[-3000:]

    def test_growing_adds_the_missing_nodes_and_touches_no_other(self, clusters: Clusters, account: Account) -> None:
        old = account.machines()
        assert changes(clusters.fixed, *SIZE32) == {
            "create": [
                f'module.cluster.{kind}.node["gaudi-{number}"]'
                for kind in ("aws_instance", "terraform_data")
                for number in ("03", "04")
            ],
            "update": ["module.cluster.terraform_data.intent"],
        }
        done = clusters.fixed.change("apply", *SIZE32)
        assert "Resources: 4 added, 1 changed, 0 destroyed." in done.output, done.output[-3000:]
        new = account.machines()
        assert {name: new[name]["InstanceId"] for name in old} == {
            name: each["InstanceId"] for name, each in old.items()
        }
        # The newer image of the test before: the new nodes have it, the old ones keep theirs.
        assert new["gaudi-03"]["ImageId"] != new["gaudi-01"]["ImageId"] == old["gaudi-01"]["ImageId"]
        assert clusters.fixed.outputs()["cluster"]["cluster_size"] == 32

    def test_a_node_that_was_not_made_to_its_end_is_told(self, clusters: Clusters, tmp_path: Path) -> None:
        node = 'module.cluster.aws_instance.node["gaudi-04"]'
        assert clusters.fixed.run("taint", f"-state={clusters.fixed.state}", node).code == 0
        done = listed(clusters.fixed, tmp_path, executable="")
        assert (done.returncode, done.stdout) == (4, "")
        assert f"is half applied, as {node} was not made to its end: replace it with 'terraform apply'." in " ".join(
            done.stderr.split()
        )
        assert clusters.fixed.run("untaint", f"-state={clusters.fixed.state}", node).code == 0

    def test_destroy_leaves_nothing(self, clusters: Clusters, account: Account) -> None:
        done = clusters.fixed.change("destroy", *SIZE32)
        assert "Destroy complete! Resources: 59 destroyed." in done.output, done.output[-3000:]
        assert [name for name in account.machines() if name.startswith("gaudi-")] == []


class TestGroup:
    """The alternative: an autoscaling group on the spot market, without a way to the internet, with a budget."""

    def test_apply(self, clusters: Clusters, account: Account) -> None:
        done = clusters.applied["group"]
        assert done.code == 0, done.output[-4000:]
        (group,) = account.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
        assert (group["MinSize"], group["MaxSize"], len(group["Instances"])) == (3, 3, 3)
        market = group["MixedInstancesPolicy"]["InstancesDistribution"]
        assert (market["OnDemandBaseCapacity"], market["OnDemandPercentageAboveBaseCapacity"]) == (1, 0)
        outputs = clusters.group.outputs()
        ids = {each["InstanceId"] for each in group["Instances"]}
        nodes = {
            each["instance_id"]: each for each in outputs["cluster_endpoints"].values() if each["role"] != "monitor"
        }
        assert set(nodes) == ids
        assert all(each["connect_to"] == identity for identity, each in nodes.items())

    def test_a_newer_image_is_for_nodes_to_come(self, clusters: Clusters) -> None:
        # The newer image was put there in TestLife. The group's template gets it; nothing refreshes the group's nodes.
        assert changes(clusters.group, *GROUP) == {
            "update": [
                "module.cluster.aws_autoscaling_group.nodes[0]",
                'module.cluster.aws_launch_template.node["on-demand"]',
            ]
        }

    def test_a_node_that_the_group_replaced_comes_into_the_outputs(self, clusters: Clusters, account: Account) -> None:
        def nodes() -> set[str]:
            endpoints = clusters.group.outputs()["cluster_endpoints"].values()
            return {each["instance_id"] for each in endpoints if each["role"] != "monitor"}

        before = nodes()
        lost = min(before)
        account.client("ec2").terminate_instances(InstanceIds=[lost])
        (group,) = account.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
        done = clusters.group.change("apply", "-refresh-only", *GROUP)
        assert done.code == 0, done.output[-3000:]
        after = nodes()
        assert after == {each["InstanceId"] for each in group["Instances"]}
        assert (before - after, len(after - before)) == ({lost}, 1)

    def test_destroy_leaves_nothing_at_all(self, clusters: Clusters, account: Account) -> None:
        done = clusters.group.change("destroy", *GROUP)
        assert done.code == 0, done.output[-3000:]
        after = account.everything()
        assert after == clusters.before


class TestRefusals:
    """What only AWS can tell is told when it is planned, too."""

    @pytest.mark.parametrize(
        ("wrong", "sentence"),
        [
            (
                ("-var=efa=true", "-var=instance_type=inf2.48xlarge", "-var=accept_other_accelerators=true",
                 "-var=cluster_size=12"),
                "efa is true, but a inf2.48xlarge has no EFA interface: leave efa out, or take a type that has it "
                "(docs/clouds/instances.md).",
            ),
            (
                ("-var=availability_zone=us-west-2e", *SIZE16),
                "availability_zone is 'us-west-2e', which does not offer dl1.24xlarge: use us-west-2a, us-west-2b, "
                "us-west-2c, us-west-2d, or leave it empty.",
            ),
            (
                ("-var=region=us-east-2", "-var=instance_type=dl1.24xlarge", "-var=cluster_size=8",
                 '-var=extra_instance_types={"dl1.24xlarge"={cloud="aws",accelerator="Gaudi",cards=8,source="a test",'
                 'gaudi_generation=1,efa_interfaces=4,network_cards=4}}'),
                "region us-east-2 has no zone that offers dl1.24xlarge: take another region, or ask AWS whether your "
                "account may use the type.",
            ),
        ],
    )  # fmt: skip
    def test_in_one_sentence(self, clusters: Clusters, wrong: tuple[str, ...], sentence: str) -> None:
        project = Project(clusters.fixed.folder, clusters.fixed.environment, clusters.fixed.watch)
        done = project.change("plan", *wrong)
        assert done.code == 1
        assert done.errors == [sentence]
