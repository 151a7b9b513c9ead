"""A moto server with what the AWS module needs and moto 5.2.5 lacks. Of the tests only: the module knows nothing of it.

Each patch says what moto does otherwise. ``python moto_server.py -H 127.0.0.1 -p PORT``.

With GATE, a folder, in the environment, everything stands still at a chosen instant: see ``Gate``. With PUBLIC_NETWORK,
the first three numbers of one, public addresses are of that network.
"""

from __future__ import annotations

import copy
import io
import itertools
import json
import os
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

# Without it, attaching a policy of AWS's own never completes.
os.environ.setdefault("MOTO_IAM_LOAD_MANAGED_POLICIES", "true")

from moto.budgets.responses import BudgetsResponse
from moto.core.responses import ActionResult, EmptyResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models import EC2Backend, elastic_ip_addresses, instance_types, launch_templates, security_groups
from moto.ec2.responses import EC2Response
from moto.ec2.utils import filter_dict_attribute_mapping
from moto.moto_server.werkzeug_app import DomainDispatcherApplication
from moto.server import main
from moto.servicequotas.responses import ServiceQuotasResponse
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
    if _key(self, name) in GROUPS:
        raise EC2ClientError("InvalidPlacementGroup.Duplicate", f"The Placement Group '{name}' already exists.")
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
    wanted = {each["Name"].removeprefix("tag:"): each["Values"] for each in self._get_param("Filters", []) or []}
    ids = self._get_param("GroupIds", []) or []
    found = [
        group
        for key, group in GROUPS.items()
        if key[:2] == (self.current_account, self.region)
        and (not names or group["GroupName"] in names)
        and (not ids or group["GroupId"] in ids)
        and all(any(tag["Key"] == key and tag["Value"] in v for tag in group["Tags"]) for key, v in wanted.items())
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


def get_quota(self: Any) -> str:
    """Quotas of EC2 are not there: enough vCPU for four machines of dl1."""
    asked = {key: str(self._get_param(key)) for key in ("ServiceCode", "QuotaCode")}
    arn = f"arn:aws:servicequotas:::{asked['ServiceCode']}/{asked['QuotaCode']}"
    kept = {"QuotaName": "Running On-Demand", "QuotaArn": arn, "Value": 384.0, "Unit": "None"}
    return json.dumps({"Quota": {**asked, **kept, "Adjustable": True, "GlobalQuota": False}})


class Gate:
    """The account stands still after a change of it: nothing is done any more, and nobody is answered.

    The folder has ``hold``, a JSON object: ``action``, the name of an operation or ``*`` for all that change something,
    and ``count``, how many of them are let through. When it was done, ``held`` appears; when ``hold`` is removed,
    all goes on. ``actions`` lists what was done.

    On a busy machine the development server that moto runs in loses an answer now and then, and the caller asks again
    under the same number: it is told what was done the first time.
    """

    READING = ("Describe", "List", "Get", "Lookup", "Search", "Head", "Filter")

    def __init__(self, folder: Path, application: Callable[..., Iterable[bytes]]) -> None:
        self._folder = folder
        self._application = application
        self._lock = threading.Lock()
        self._counts: dict[str, int] = {}
        self._answers: dict[str, tuple[Any, list[bytes]]] = {}

    @staticmethod
    def action(environ: dict[str, Any]) -> str:
        """The operation that a request asks for; of S3 its method and what it is about."""
        if target := environ.get("HTTP_X_AMZ_TARGET"):
            return str(target).rpartition(".")[2]
        length = int(environ.get("CONTENT_LENGTH") or 0)
        if "form-urlencoded" in environ.get("CONTENT_TYPE", ""):
            body = environ["wsgi.input"].read(length)
            environ["wsgi.input"] = io.BytesIO(body)
            return str(urllib.parse.parse_qs(body.decode()).get("Action", ["?"])[0])
        method = environ["REQUEST_METHOD"].capitalize()
        about = environ.get("QUERY_STRING", "").partition("=")[0].partition("&")[0].capitalize() or "Bucket"
        return f"{method}{about}"

    def _wait(self) -> None:
        while (self._folder / "held").exists() and (self._folder / "hold").exists():
            time.sleep(0.02)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer a request, unless everything stands still."""
        action = self.action(environ)
        if environ.get("PATH_INFO", "").startswith("/moto-api") or action.startswith(self.READING):
            self._wait()
            return self._application(environ, start_response)
        with self._lock:
            self._wait()
            number = environ.get("HTTP_AMZ_SDK_INVOCATION_ID", "")
            if number in self._answers:
                told, body = self._answers[number]
                start_response(*told)
                return body
            answers: list[Any] = []
            body = list(self._application(environ, lambda *arguments: answers.append(arguments)))
            told = answers[0]
            if number and told[0].startswith("2"):
                self._answers[number] = told, body
            with (self._folder / "actions").open("a") as file:
                file.write(f"{action}\n")
            for each in (action, "*"):
                self._counts[each] = self._counts.get(each, 0) + 1
            hold = self._folder / "hold"
            if hold.exists() and not (self._folder / "held").exists():
                asked = json.loads(hold.read_text())
                if self._counts.get(asked["action"], 0) >= asked["count"]:
                    (self._folder / "held").touch()
        self._wait()
        start_response(*told)
        return body


def patch() -> None:
    """Put everything into moto."""
    add_dl1()
    for action in (create_placement_group, describe_placement_groups, delete_placement_group, monitor_instances):
        setattr(EC2Response, action.__name__, action)

    BudgetsResponse.describe_subscribers_for_notification = describe_subscribers_for_notification
    BudgetsResponse.list_tags_for_resource = list_tags_for_resource
    BudgetsResponse.create_budget = create_budget
    ServiceQuotasResponse.get_service_quota = ServiceQuotasResponse.get_aws_default_service_quota = get_quota

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

    # Machines cannot be filtered by how they were bought.
    filter_dict_attribute_mapping["instance-lifecycle"] = "lifecycle"

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


def put_gate(folder: Path) -> None:
    """Let every request pass the gate."""
    answer = DomainDispatcherApplication.__call__
    gates: dict[int, Gate] = {}

    def call(self: Any, environ: dict[str, Any], start_response: Any) -> Any:
        gate = gates.setdefault(id(self), Gate(folder, lambda *arguments: answer(self, *arguments)))
        return gate(environ, start_response)

    DomainDispatcherApplication.__call__ = call


def give_public_addresses_of(network: str) -> None:
    """Public addresses are loopback's, at which no other machine can be reached."""
    numbers = itertools.cycle(range(10, 250))
    elastic_ip_addresses.random_ip = lambda: f"{network}.{next(numbers)}"


if __name__ == "__main__":
    patch()
    if network := os.environ.get("PUBLIC_NETWORK"):
        give_public_addresses_of(network)
    if folder := os.environ.get("GATE"):
        put_gate(Path(folder))
    main(sys.argv[1:])
