"""A moto server with what the AWS module needs and moto 5.2.5 lacks. Of the tests only: the module knows nothing of it.

Each patch says what moto does otherwise. ``python moto_server.py -H 127.0.0.1 -p PORT``.
"""

from __future__ import annotations

import copy
import json
import os
import sys
from typing import Any

# Without it, attaching a policy of AWS's own never completes.
os.environ.setdefault("MOTO_IAM_LOAD_MANAGED_POLICIES", "true")

from moto.budgets.responses import BudgetsResponse
from moto.core.responses import ActionResult, EmptyResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models import EC2Backend, instance_types, launch_templates, security_groups
from moto.ec2.responses import EC2Response
from moto.server import main
from moto.ssm.models import SimpleSystemManagerBackend

UBUNTU = "/aws/service/canonical/ubuntu/server/22.04/stable/current/amd64/hvm/ebs-gp2/ami-id"
AMAZON_LINUX = "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64"
NEWER_IMAGE = "/stand-in/newer-image"
REGIONS = ("us-east-1", "us-west-2")


def add_dl1() -> None:
    """The instance type dl1.24xlarge, which the tables from the EC2 API do not have; the rest of it as p4d has it."""
    entry = copy.deepcopy(instance_types.INSTANCE_TYPES["p4d.24xlarge"])
    card = {"Name": "Gaudi HL-205", "Manufacturer": "Habana", "Count": 8, "MemoryInfo": {"SizeInMiB": 32768}}
    entry.update(
        InstanceType="dl1.24xlarge",
        MemoryInfo={"SizeInMiB": 768 * 1024},
        GpuInfo={"Gpus": [card], "TotalGpuMemoryInMiB": 8 * 32768},
    )
    entry["InstanceStorageInfo"].update(Disks=[{"Count": 4, "SizeInGB": 1000, "Type": "ssd"}], TotalSizeInGB=4000)
    instance_types.INSTANCE_TYPES["dl1.24xlarge"] = entry
    instance_types.InstanceTypeBackend.instance_types.append(instance_types.InstanceType("dl1.24xlarge"))
    for regions in instance_types.INSTANCE_TYPE_OFFERINGS.values():
        for region in REGIONS:
            offers = [offer for offer in regions.get(region, []) if offer["InstanceType"] == "p4d.24xlarge"]
            regions.setdefault(region, []).extend({**offer, "InstanceType": "dl1.24xlarge"} for offer in offers)


GROUPS: dict[tuple[str, str, str], dict[str, Any]] = {}


def _key(response: Any, name: str) -> tuple[str, str, str]:
    return response.current_account, response.region, name


def create_placement_group(self: Any) -> Any:
    """Placement groups are not implemented at all."""
    name = self._get_param("GroupName")
    tags = [tag for each in self._get_param("TagSpecifications", []) or [] for tag in each.get("Tags", [])]
    number = len(GROUPS) + 1
    GROUPS[_key(self, name)] = {
        "GroupName": name,
        "GroupId": f"pg-{number:017x}",
        "GroupArn": f"arn:aws:ec2:{self.region}:{self.current_account}:placement-group/{name}",
        "State": "available",
        "Strategy": self._get_param("Strategy", "cluster"),
        "Tags": tags,
    }
    return ActionResult({"PlacementGroup": GROUPS[_key(self, name)]})


def describe_placement_groups(self: Any) -> Any:
    """See create_placement_group."""
    names = self._get_param("GroupNames", []) or self._get_param("GroupName", []) or []
    ids = self._get_param("GroupIds", []) or []
    found = [
        group
        for key, group in GROUPS.items()
        if key[:2] == (self.current_account, self.region)
        and (not names or group["GroupName"] in names)
        and (not ids or group["GroupId"] in ids)
    ]
    if names and not found:
        raise EC2ClientError("InvalidPlacementGroup.Unknown", f"The Placement Group '{names[0]}' is unknown.")
    return ActionResult({"PlacementGroups": found})


def delete_placement_group(self: Any) -> Any:
    """See create_placement_group."""
    GROUPS.pop(_key(self, self._get_param("GroupName")), None)
    return EmptyResult()


def monitor_instances(self: Any) -> Any:
    """Detailed monitoring of a running machine is not implemented."""
    for instance in self.ec2_backend.get_multi_instances_by_id(self._get_param("InstanceIds", [])):
        instance.monitoring_state = "enabled"
    return ActionResult({"InstanceMonitorings": []})


BUDGET_TAGS: dict[str, list[dict[str, str]]] = {}
_create_budget = BudgetsResponse.create_budget


def create_budget(self: Any) -> Any:
    """A budget's tags are thrown away."""
    BUDGET_TAGS[self._get_param("Budget")["BudgetName"]] = self._get_param("ResourceTags", [])
    return _create_budget(self)


def list_tags_for_resource(self: Any) -> str:
    """See create_budget. Without this, the provider tries for minutes."""
    return json.dumps({"ResourceTags": BUDGET_TAGS.get(self._get_param("ResourceARN").rpartition("/")[2], [])})


def describe_subscribers_for_notification(self: Any) -> str:
    """Who is told about a budget is kept, but cannot be asked for."""
    budget = self.backend.budgets[self._get_param("AccountId")][self._get_param("BudgetName")]
    asked = self._get_param("Notification")
    found = [each.subscribers for each in budget.notifications if each.details["Threshold"] == asked["Threshold"]]
    return json.dumps({"Subscribers": found[0] if found else []})


def patch() -> None:
    """Put everything into moto."""
    add_dl1()
    for action in (create_placement_group, describe_placement_groups, delete_placement_group, monitor_instances):
        setattr(EC2Response, action.__name__, action)

    BudgetsResponse.describe_subscribers_for_notification = describe_subscribers_for_notification
    BudgetsResponse.list_tags_for_resource = list_tags_for_resource
    BudgetsResponse.create_budget = create_budget

    # A template's own tags come back as part of its data, which the next plan takes for a change.
    version_init = launch_templates.LaunchTemplateVersion.__init__

    def init(self: Any, template: Any, number: int, data: Any, description: str) -> None:
        if isinstance(data, dict) and data.get("TagSpecifications"):
            kept = [tags for tags in data["TagSpecifications"] if tags.get("ResourceType") != "launch-template"]
            data["TagSpecifications"] = kept
        version_init(self, template, number, data, description)

    launch_templates.LaunchTemplateVersion.__init__ = init

    # A rule that names a group or a prefix list loses its description.
    rule_init = security_groups.SecurityGroupRule.__init__

    def rule(self: Any, *arguments: Any, **options: Any) -> None:
        rule_init(self, *arguments, **options)
        named = options.get("prefix_list_id") or next((each for each in arguments[7:8] if each), None) or {}
        self.named_description = named.get("Description")

    def description(self: Any) -> Any:
        told = self.ip_range.get("Description") or self.source_group.get("Description")
        return told or getattr(self, "named_description", None)

    security_groups.SecurityGroupRule.__init__ = rule
    security_groups.SecurityGroupRule.description = property(description)

    # RunInstances does not look at the network interfaces of a template: the machine lands outside of the VPC.
    run_instances = EC2Backend.run_instances

    def run(self: Any, *arguments: Any, **options: Any) -> Any:
        template = options.get("launch_template") or {}
        if template and not options.get("subnet_id"):
            by_id, by_name = template.get("LaunchTemplateId"), template.get("LaunchTemplateName")
            found = self.get_launch_template(by_id) if by_id else self.get_launch_template_by_name(by_name)
            data = found.get_version(template.get("Version", "$Default")).data
            interfaces = data.get("NetworkInterfaces") or data.get("NetworkInterface") or []
            if interfaces and interfaces[0].get("SubnetId"):
                options["subnet_id"] = interfaces[0]["SubnetId"]
                options.setdefault("associate_public_ip", False)
        return run_instances(self, *arguments, **options)

    EC2Backend.run_instances = run

    # Canonical's public parameter is not there, and names under /aws/ cannot be put there. An Amazon Linux image stands
    # in, or whatever a test has put at NEWER_IMAGE.
    get_parameter = SimpleSystemManagerBackend.get_parameter

    def get(self: Any, name: str) -> Any:
        if name != UBUNTU:
            return get_parameter(self, name)
        found = copy.copy(get_parameter(self, NEWER_IMAGE) or get_parameter(self, AMAZON_LINUX))
        found.name = UBUNTU
        return found

    SimpleSystemManagerBackend.get_parameter = get


if __name__ == "__main__":
    patch()
    main(sys.argv[1:])
